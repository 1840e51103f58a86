"""Cuarenta: four players in two teams, or two players; every rule option, as compiled kernels.

Room: engine. Rules: https://www.pagat.com/fishing/cuarenta.html describes the common game; where
tables differ there is an option, and the presets are three full sets of them. Played to 40 in hands
of 40 cards, dealt five at a time. A card captures an equal card, or number cards that add to it,
and the ranks that follow without a gap. Taking the card just placed by match is a *caida*, clearing
the table a *limpia* (2 points each), and at the end of a hand a pile of 20 cards or more pays its
*carton*. Scores are even at all times.

Before every deal but the first of a game the position is a ``CHANCE`` position; what a hand's piles
pay is counted with its last ply.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.bits import popcount
from engine.game import Encoder, GameSpec, register
from engine.games.cuarenta_checks import STATE_RELATIONS
from engine.games.cuarenta_deal import deal_five, start, start_hand
from engine.games.cuarenta_encoder import (
    ACTION_SIZE,
    OBSERVATION_SIZE,
    encode_actions,
    encode_view,
)
from engine.games.cuarenta_encoder_bits import ACTION_SIZE as BITS_ACTION_SIZE
from engine.games.cuarenta_encoder_bits import OBSERVATION_SIZE as BITS_OBSERVATION_SIZE
from engine.games.cuarenta_encoder_bits import encode_actions_bits, encode_view_bits
from engine.games.cuarenta_levels import (
    LEAD_UNIT,
    LEAD_UNIT_PER_POINT,
    STYLES,
    guess,
    style_choice,
)
from engine.games.cuarenta_rules import (
    action_base,
    action_rank,
    count_of_rank,
    is_caida,
    is_paid_limpia,
    play,
    taken_cards,
    write_actions,
)
from engine.games.cuarenta_state import (
    CARDS_PER_DEAL,
    MAX_ACTIONS,
    MAX_PLIES,
    MAX_SEATS,
    NUM_CARDS,
    OPTIONS,
    PLACE,
    PRESETS,
    STATE,
    WIN_BONUS,
    Cuarenta,
    fields,
)
from engine.games.cuarenta_text import (
    format_action,
    format_table,
    format_view,
    spellings,
    state_from_document,
)
from engine.games.cuarenta_worlds import draw_world, rewind_view, write_view
from engine.rng import below
from engine.rules import CHANCE, NO_HAND_END, TERMINAL

NUM_EQUITY_STATES = 20 * 20 * 2
RANKS, BITS = 0, 1
"""Codes of the encoders."""
CAIDA_CLASS, LIMPIA_CLASS = 3000, 2000
"""Ranks of the rule player's choices; a capture is worth 1000 and its cards, a placement 0."""


def num_seats(game: Any) -> Any:  # documented in engine.rules, as all below
    return game.players


def num_sides(game: Any) -> Any:
    return 2


def side_of(game: Any, seat: Any) -> Any:
    return seat & 1


def deal(game: Any, state: Any, seed: Any) -> Any:
    start(game, state, np.uint64(seed))


def current_seat(game: Any, state: Any) -> Any:
    return np.int64(state.to_move)


def legal_actions(game: Any, state: Any, actions: Any) -> Any:
    if state.to_move < 0:
        return 0
    return write_actions(game, state.hands[state.to_move], state.table, actions)


def apply(game: Any, state: Any, action: Any) -> Any:
    play(game, state, action)


def deal_next(game: Any, state: Any) -> Any:
    if state.plies_in_hand == NUM_CARDS:
        dealer = (np.int64(state.dealer) + 1) % game.players
        start_hand(game, state, np.int64(state.hand_index) + 1, dealer)
    else:
        deal_five(game, state)


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


def view_then(game: Any, past: Any, world: Any, out: Any) -> Any:
    return rewind_view(game, past, world, out)


def observe(game: Any, view: Any, seat: Any, encoder: Any, out: Any) -> Any:
    if encoder == BITS:
        encode_view_bits(game, view, seat, out)
    else:
        encode_view(game, view, seat, out)


def describe_actions(game: Any, view: Any, encoder: Any, actions: Any, count: Any, out: Any) -> Any:
    if encoder == BITS:
        encode_actions_bits(game, view, actions, count, out)
    else:
        encode_actions(game, view, actions, count, out)


def observe_action(game: Any, state: Any, action: Any, seat: Any) -> Any:
    return action


def observe_chance(game: Any, state: Any, seat: Any) -> Any:
    # Announcements, and four of a kind (which ends the game).
    key = np.int64(0)
    for other in range(MAX_SEATS):
        key = key * 16 + np.int64(state.ronda[other])
    over = 1 if state.to_move == TERMINAL else 0
    return (key * 2 + over) * 4 + np.int64(state.winner) + 1


def equity_index(game: Any, state: Any, side: Any) -> Any:
    if state.to_move != CHANCE or state.plies_in_hand != NUM_CARDS:
        return NO_HAND_END
    own = np.int64(state.scores[side]) >> 1
    other = np.int64(state.scores[1 - side]) >> 1
    deals_next = 1 if ((np.int64(state.dealer) + 1) & 1) == side else 0
    return (own * 20 + other) * 2 + deals_next


def reward_terms(game: Any, state: Any, out: Any) -> Any:
    for side in range(2):
        out[side, 0] = state.captured[side]
        out[side, 1] = 2 * np.int64(state.caidas[side])
        out[side, 2] = 2 * np.int64(state.limpias[side])
        out[side, 3] = state.carton[side]
        out[side, 4] = WIN_BONUS if state.winner == side else 0.0


def statistics(game: Any, state: Any, out: Any) -> Any:
    for side in range(2):
        out[side, 0] = state.scores[side]
        out[side, 1] = state.caidas[side]
        out[side, 2] = state.limpias[side]
        out[side, 3] = state.captured[side]
        out[side, 4] = state.carton[side]


def rule_action(game: Any, view: Any, seat: Any, rng: Any) -> Any:
    actions = np.empty(MAX_ACTIONS, np.int64)
    hand = view.hands[seat]
    count = write_actions(game, hand, view.table, actions)
    best = -1
    total = np.int64(0)
    chosen = actions[0]
    for i in range(count):
        code = actions[i]
        priority = 0
        if action_base(code) != PLACE:
            taken = taken_cards(game, view.table, view.ref, code)
            caida = is_caida(game, view, code, taken)
            if caida:
                priority = CAIDA_CLASS
            elif is_paid_limpia(game, view, taken, caida):
                priority = LIMPIA_CLASS
            else:
                priority = 1000 + popcount(taken)
        if priority < best:
            continue
        # One pass of weighted reservoir sampling: every equal card in hand is a lot of its own.
        weight = count_of_rank(hand, action_rank(code))
        total = weight if priority > best else total + weight
        best = priority
        if total == weight or below(rng, total) < weight:
            chosen = code
    return chosen


def style_action(game: Any, view: Any, seat: Any, style: Any, rng: Any) -> Any:
    return style_choice(game, view, seat, style, rng)


def static_value(game: Any, state: Any, side: Any) -> Any:
    return guess(game, state, side)


def equity_prior(game: Any) -> NDArray[np.float64]:
    """Return the prior probability to win for every row of the equity table.

    Logistic in the lead, in units that shrink with the points that both sides still need: the
    fewer are left, the fewer chances there are to turn the game. To deal next, and so to play
    last, is worth a little. The three constants are a fit to 100,000 games of rule players, where
    this predicts the winner to within 0.01 nats of the observed frequency of each row.
    """
    own, other, deals_next = np.meshgrid(
        np.arange(0, 40, 2), np.arange(0, 40, 2), np.array([-1, 1]), indexing="ij"
    )
    missing = np.maximum(2 * game.target - own - other, 0)
    logit = (own - other) / (LEAD_UNIT + LEAD_UNIT_PER_POINT * missing) + 0.2 * deals_next
    return (1.0 / (1.0 + np.exp(-logit))).reshape(-1)


SPEC = register(
    GameSpec(
        name="cuarenta",
        game_type=Cuarenta,
        options=OPTIONS,
        presets=PRESETS,
        state_dtype=STATE,
        fields=fields,
        state_relations=STATE_RELATIONS,
        encoders=(
            Encoder(
                name="ranks",
                version=2,
                code=RANKS,
                observation_size=OBSERVATION_SIZE,
                action_size=ACTION_SIZE,
            ),
            Encoder(
                name="bits",
                version=1,
                code=BITS,
                observation_size=BITS_OBSERVATION_SIZE,
                action_size=BITS_ACTION_SIZE,
            ),
        ),
        max_actions=MAX_ACTIONS,
        max_plies=MAX_PLIES,
        recalled_plies=CARDS_PER_DEAL * MAX_SEATS,
        num_equity_states=NUM_EQUITY_STATES,
        equity_prior=equity_prior,
        reward_terms=("captured", "caida", "limpia", "carton", "win"),
        statistics=("score", "caidas", "limpias", "captured", "carton"),
        styles=STYLES,
        levels=("random", "rules:biggest", "rules:careful", "rollouts:50"),
        format_action=format_action,
        spellings=spellings,
        format_view=format_view,
        format_table=format_table,
        state_from_document=state_from_document,
    ),
    globals(),
)
