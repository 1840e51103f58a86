"""Durak with 36 cards for two to four players; every rule option, as compiled kernels.

Room: engine. Rules: https://www.pagat.com/beating/podkidnoy_durak.html describes the common game,
https://www.pagat.com/beating/perevodnoy_durak.html the one in which attacks are passed on. One seat
attacks the next, others may throw in cards of ranks on the table, and the defender beats all of
them or takes them. Who is out of cards once the stock is gone is out; the last one is the *durak*.

Cards that are drawn after a bout are a chance event: that position is ``CHANCE`` where anybody
draws. There is one loser (-1), the others share +1; a drawn game is 0 for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.game import Encoder, GameSpec, register
from engine.games.durak_checks import STATE_RELATIONS, VIEW_RELATIONS
from engine.games.durak_deal import start
from engine.games.durak_documents import state_from_document
from engine.games.durak_encoder import (
    ACTION_SIZE,
    OBSERVATION_SIZE,
    encode_actions,
    encode_view,
)
from engine.games.durak_encoder_d import (
    D_ACTION_SIZE,
    D_OBSERVATION_SIZE,
    D_TRANSFER_ACTION_SIZE,
    encode_actions_d,
    encode_view_d,
)
from engine.games.durak_levels import DEEPER_AT_THE_END, greedy_action, guess, order_actions
from engine.games.durak_play import play, refill, unseen_draws
from engine.games.durak_rules import write_actions
from engine.games.durak_state import (
    MAX_ACTIONS,
    MAX_PLIES,
    NOBODY,
    OPTIONS,
    OVER,
    PRESETS,
    STATE,
    Durak,
    fields,
)
from engine.games.durak_text import format_action, format_table, format_view, spellings
from engine.games.durak_worlds import draw_world, has_one_world, write_view

SUITS, REPORT_D, REPORT_D_TRANSFER = 0, 1, 2
"""Codes of the encoders."""


def num_seats(game: Any) -> Any:  # documented in engine.rules, as all below
    return game.players


def num_sides(game: Any) -> Any:
    return game.players


def side_of(game: Any, seat: Any) -> Any:
    return seat


def deal(game: Any, state: Any, seed: Any) -> Any:
    start(game, state, np.uint64(seed))


def current_seat(game: Any, state: Any) -> Any:
    return np.int64(state.to_move)


def legal_actions(game: Any, state: Any, actions: Any) -> Any:
    if state.to_move < 0:
        return 0
    return write_actions(game, state, actions)


def apply(game: Any, state: Any, action: Any) -> Any:
    play(game, state, action)


def deal_next(game: Any, state: Any) -> Any:
    refill(game, state)


def receives_cards(game: Any, state: Any, seat: Any) -> Any:
    return unseen_draws(game, state, seat) > 0  # the card turned up is no news


def returns(game: Any, state: Any, out: Any) -> Any:
    share = 0.0 if state.durak == NOBODY else 1.0 / (game.players - 1)
    for side in range(game.players):
        out[side] = -1.0 if side == state.durak else share


def view(game: Any, state: Any, seat: Any, out: Any) -> Any:
    write_view(state, seat, out)


def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> Any:
    draw_world(game, view, seat, rng, out)


def observe(game: Any, view: Any, seat: Any, encoder: Any, out: Any) -> Any:
    if encoder == SUITS:
        encode_view(game, view, seat, out)
    else:
        encode_view_d(game, view, seat, out)


def describe_actions(game: Any, view: Any, encoder: Any, actions: Any, count: Any, out: Any) -> Any:
    if encoder == SUITS:
        encode_actions(game, view, actions, count, out)
    else:
        encode_actions_d(view, actions, count, encoder == REPORT_D_TRANSFER, out)


def observe_action(game: Any, state: Any, action: Any, seat: Any) -> Any:
    return action


def reward_terms(game: Any, state: Any, out: Any) -> Any:
    share = 0.0 if state.durak == NOBODY else 1.0 / (game.players - 1)
    for side in range(game.players):
        out[side, 0] = -1.0 if side == state.durak else share


def statistics(game: Any, state: Any, out: Any) -> Any:
    for side in range(game.players):
        out[side, 0] = 1.0 if state.durak == side else 0.0
        out[side, 1] = 1.0 if state.phase == OVER and state.durak == NOBODY else 0.0
        out[side, 2] = state.finished[side]


def rule_action(game: Any, view: Any, seat: Any, rng: Any) -> Any:
    return greedy_action(game, view)


def static_value(game: Any, state: Any, side: Any) -> Any:
    return guess(game, state, side)


def rank_actions(game: Any, state: Any, actions: Any, count: Any, most: Any) -> Any:
    return order_actions(game, state, actions, count, most)


def extra_depth(game: Any, view: Any) -> Any:
    return DEEPER_AT_THE_END if view.stock_size == 0 else 0


def is_certain(game: Any, view: Any, seat: Any) -> Any:
    return has_one_world(game, view, seat)


SPEC = register(
    GameSpec(
        name="durak",
        game_type=Durak,
        options=OPTIONS,
        presets=PRESETS,
        state_dtype=STATE,
        fields=fields,
        view_relations=VIEW_RELATIONS,
        state_relations=STATE_RELATIONS,
        encoders=(
            Encoder(
                name="suits",
                version=1,
                code=SUITS,
                observation_size=OBSERVATION_SIZE,
                action_size=ACTION_SIZE,
            ),
            Encoder(
                name="report_d",
                version=1,
                code=REPORT_D,
                observation_size=D_OBSERVATION_SIZE,
                action_size=D_ACTION_SIZE,
            ),
            Encoder(
                name="report_d_transfer",
                version=1,
                code=REPORT_D_TRANSFER,
                observation_size=D_OBSERVATION_SIZE,
                action_size=D_TRANSFER_ACTION_SIZE,
            ),
        ),
        max_actions=MAX_ACTIONS,
        max_plies=MAX_PLIES,
        statistics=("durak", "drawn", "place"),
        levels=("random", "rules", "pimc:25x4", "pimc:300x6"),
        format_action=format_action,
        spellings=spellings,
        format_view=format_view,
        format_table=format_table,
        state_from_document=state_from_document,
    ),
    globals(),
)
