"""Forty-fives with bidding, "30 for 60": four players in two teams, every rule option as kernels.

Room: engine. Rules: https://www.pagat.com/spoil5/45.html describes the family; where tables differ
there is an option. A hand is an auction, a kitty for the bidder, who names trump, discards and
draws for everyone, and five tricks; played to 120. Five, jack and ace of hearts are the best three
trumps, and may be held back from a lower trump that is led.

A discard is a step for each card, in the order trumps before plain cards and high before low: keep
it or throw it. Steps about which there is no choice are skipped. Nobody sees what others throw; how
many is shown when all draw. A seat's last step is followed by a ``CHANCE`` position that tells the
others that it has done; kitty, draws and the next hand are ``CHANCE`` positions too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.bits import popcount
from engine.game import Encoder, GameSpec, register
from engine.games.forty_fives_checks import STATE_RELATIONS, VIEW_RELATIONS
from engine.games.forty_fives_deal import start
from engine.games.forty_fives_documents import state_from_document
from engine.games.forty_fives_encoder import (
    ACTION_SIZE,
    OBSERVATION_SIZE,
    encode_actions,
    encode_view,
)
from engine.games.forty_fives_encoder_full import ACTION_SIZE as FULL_ACTION_SIZE
from engine.games.forty_fives_encoder_full import OBSERVATION_SIZE as FULL_OBSERVATION_SIZE
from engine.games.forty_fives_encoder_full import encode_actions_full, encode_view_full
from engine.games.forty_fives_player import choose
from engine.games.forty_fives_rules import act, pass_chance, write_actions
from engine.games.forty_fives_state import (
    DISCARD,
    DRAW,
    HAND_END,
    HAND_SIZE,
    KITTY,
    MAX_ACTIONS,
    MAX_PLIES,
    NUM_SEATS,
    OPTIONS,
    PLAY,
    PRESETS,
    STATE,
    WIN_BONUS,
    FortyFives,
    fields,
)
from engine.games.forty_fives_text import format_action, format_table, format_view, spellings
from engine.games.forty_fives_worlds import draw_world, write_view
from engine.rules import CHANCE, NO_HAND_END

LOWEST_SCORE, HIGHEST_SCORE = -40, 120
"""Of the equity table. Where a side has less, both are raised until it has the lowest."""
NUM_SCORES = (HIGHEST_SCORE - LOWEST_SCORE) // 5 + 1
NUM_EQUITY_STATES = NUM_SCORES * NUM_SCORES * 2
SYMMETRIC, FULL = 0, 1
"""Codes of the encoders."""
DISCARD_WEIGHT = 0.25
"""Policy weight of a step: a hand has up to 24 of them, as many as six plays of its 20 together."""


def num_seats(game: Any) -> Any:  # documented in engine.rules, as all below
    return NUM_SEATS


def num_sides(game: Any) -> Any:
    return 2


def side_of(game: Any, seat: Any) -> Any:
    return seat & 1


def deal(game: Any, state: Any, seed: Any) -> Any:
    start(game, state, np.uint64(seed))


def current_seat(game: Any, state: Any) -> Any:
    return np.int64(state.to_move)


def legal_actions(game: Any, state: Any, actions: Any) -> Any:
    return write_actions(game, state, actions)


def apply(game: Any, state: Any, action: Any) -> Any:
    act(game, state, action)


def deal_next(game: Any, state: Any) -> Any:
    pass_chance(game, state)


def receives_cards(game: Any, state: Any, seat: Any) -> Any:
    if state.phase == KITTY:
        return state.bidder == seat
    if state.phase == DRAW:
        return popcount(state.hands[seat]) < HAND_SIZE
    return state.phase == HAND_END


def returns(game: Any, state: Any, out: Any) -> Any:
    out[0] = 0.0
    out[1] = 0.0
    if state.winner >= 0:
        out[state.winner] = 1.0
        out[1 - state.winner] = -1.0


def view(game: Any, state: Any, seat: Any, out: Any) -> Any:
    write_view(state, seat, out)


def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> Any:
    draw_world(game, view, seat, rng, out)


def observe(game: Any, view: Any, seat: Any, encoder: Any, out: Any) -> Any:
    if encoder == FULL:
        encode_view_full(game, view, seat, out)
    else:
        encode_view(game, view, seat, out)


def describe_actions(game: Any, view: Any, encoder: Any, actions: Any, count: Any, out: Any) -> Any:
    if encoder == FULL:
        encode_actions_full(game, view, actions, count, out)
    else:
        encode_actions(game, view, actions, count, out)


def observe_action(game: Any, state: Any, action: Any, seat: Any) -> Any:
    # What others keep or throw is face down.
    return np.int64(-1) if state.phase == DISCARD and state.to_move != seat else np.int64(action)


def observe_chance(game: Any, state: Any, seat: Any) -> Any:
    # Who has done with its discards, and how many cards each seat drew.
    key = np.int64(state.phase) * 4 + np.int64(state.leader)
    for other in range(NUM_SEATS):
        key = key * 8 + np.int64(state.drawn[other]) + 1
    return key * 8 + np.int64(state.to_move) + 2


def equity_index(game: Any, state: Any, side: Any) -> Any:
    if state.phase != HAND_END or state.to_move != CHANCE:
        return NO_HAND_END
    own: Any = np.int64(state.scores[side])
    other: Any = np.int64(state.scores[1 - side])
    # Were they cut off, sides far below zero could neither gain nor lose: untrained players, who
    # get there, would learn nothing.
    base = min(own, other, LOWEST_SCORE)
    own = min((own - base) // 5, NUM_SCORES - 1)
    other = min((other - base) // 5, NUM_SCORES - 1)
    deals_next = 1 if ((np.int64(state.dealer) + 1) & 1) == side else 0
    return (own * NUM_SCORES + other) * 2 + deals_next


def reward_terms(game: Any, state: Any, out: Any) -> Any:
    for side in range(2):
        lost = np.int64(state.sets[side])
        out[side, 0] = np.int64(state.scores[side]) + lost
        out[side, 1] = -lost
        out[side, 2] = WIN_BONUS if state.winner == side else 0.0


def statistics(game: Any, state: Any, out: Any) -> Any:
    for side in range(2):
        out[side, 0] = state.scores[side]
        out[side, 1] = state.contracts[side]
        out[side, 2] = state.made[side]
        out[side, 3] = state.sets[side]


def policy_weight(game: Any, view: Any) -> Any:
    return DISCARD_WEIGHT if view.phase == DISCARD else 1.0


def by_hand(game: Any, state: Any) -> Any:
    return state.phase != PLAY


def rule_action(game: Any, view: Any, seat: Any, rng: Any) -> Any:
    return choose(game, view, seat)


def equity_prior(game: Any) -> NDArray[np.float64]:
    """Return the prior probability to win for every row of the equity table.

    Logistic in the lead, in units that shrink with the points that both sides still need. To deal
    next, and so to speak last, is worth little. The three constants are a fit to 15,000 games of
    rule players, where this predicts the winner to within 0.005 nats of the observed frequency of
    each row.
    """
    scores = np.arange(LOWEST_SCORE, HIGHEST_SCORE + 1, 5)
    own, other, deals_next = np.meshgrid(scores, scores, np.array([-1, 1]), indexing="ij")
    missing = np.maximum(2 * game.target - own - other, 0)
    logit = (own - other) / (17.0 + 0.16 * missing) + 0.03 * deals_next
    return (1.0 / (1.0 + np.exp(-logit))).reshape(-1)


SPEC = register(
    GameSpec(
        name="forty_fives",
        game_type=FortyFives,
        options=OPTIONS,
        presets=PRESETS,
        state_dtype=STATE,
        fields=fields,
        view_relations=VIEW_RELATIONS,
        state_relations=STATE_RELATIONS,
        encoders=(
            Encoder(
                name="symmetric",
                version=1,
                code=SYMMETRIC,
                observation_size=OBSERVATION_SIZE,
                action_size=ACTION_SIZE,
            ),
            Encoder(
                name="full",
                version=1,
                code=FULL,
                observation_size=FULL_OBSERVATION_SIZE,
                action_size=FULL_ACTION_SIZE,
            ),
        ),
        max_actions=MAX_ACTIONS,
        max_plies=MAX_PLIES,
        # With half, the search was not shown to beat the rule player (see BENCHMARKS.md).
        playout_rule_share=0.9,
        num_equity_states=NUM_EQUITY_STATES,
        equity_prior=equity_prior,
        reward_terms=("points", "sets", "win"),
        statistics=("score", "contracts", "made", "sets"),
        format_action=format_action,
        spellings=spellings,
        format_view=format_view,
        format_table=format_table,
        state_from_document=state_from_document,
    ),
    globals(),
)
