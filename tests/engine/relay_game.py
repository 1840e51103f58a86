"""Relay: a game for the tests of the search, with what the real ones have only in places.

Three seats, each its own side. Each holds a card 0..2 and plays a number no higher, in turn; seat
1 plays face down. Then seat 1 gets a new card and a public bonus is drawn; last, seat 0 plays 0..2.
A seat that holds 0 is forced, and the others do not know. Not in the registry of games.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.game import Encoder, GameSpec, Option
from engine.jit import kernel
from engine.layout import PERHAPS_SHOWN, SHOWN_TO_NONE, SHOWN_TO_OWN, Field
from engine.rng import below, mix, next_u64
from engine.rules import CHANCE, TERMINAL, implement

HIDDEN = -1
_DEAL = np.uint64(0)
_BONUS = np.uint64(1)
_SHIFT = np.uint64(32)
_THREE = np.uint64(3)


class Relay(NamedTuple):
    """Options."""

    deaf: int = 0
    """1 plants a fault: what a seat observes of an action does not tell the actions apart."""


STATE = np.dtype(
    (
        np.record,
        [
            ("seed", np.uint64),
            ("cards", np.int8, (3,)),
            ("moves", np.int8, (4,)),
            ("num_moves", np.int8),
            ("bonus", np.int8),
            ("dealt", np.int8),
        ],
    )
)


def _fields(game: Any) -> dict[str, Field]:
    return {
        "seed": Field(cards=(1 << 64) - 1, shown=SHOWN_TO_NONE),
        "cards": Field(0, 2, shown=SHOWN_TO_OWN, blank=HIDDEN),
        "moves": Field(0, 2, shown=PERHAPS_SHOWN, blank=HIDDEN),
        "num_moves": Field(0, 4),
        "bonus": Field(0, 2),
        "dealt": Field(0, 1),
    }


@kernel
def _third(seed: Any, index: Any) -> Any:
    """Return a number 0..2 that follows from the seed."""
    return np.int64(((mix(seed, index) >> _SHIFT) * _THREE) >> _SHIFT)


def num_seats(game: Any) -> Any:
    return 3


def num_sides(game: Any) -> Any:
    return 3


def side_of(game: Any, seat: Any) -> Any:
    return seat


def deal(game: Any, state: Any, seed: Any) -> Any:
    state.seed = seed
    for seat in range(3):
        state.cards[seat] = _third(seed, np.uint64(2 + seat))
    for ply in range(4):
        state.moves[ply] = 0
    state.num_moves = 0
    state.bonus = 0
    state.dealt = 0


@kernel
def _seat_to_move(state: Any) -> Any:
    if state.num_moves < 3:
        return np.int64(state.num_moves)
    if state.dealt == 0:
        return CHANCE
    return 0 if state.num_moves == 3 else TERMINAL


def current_seat(game: Any, state: Any) -> Any:
    return _seat_to_move(state)


def legal_actions(game: Any, state: Any, actions: Any) -> Any:
    highest = 2
    if state.num_moves < 3:
        highest = np.int64(state.cards[state.num_moves])
    for action in range(highest + 1):
        actions[action] = action
    return highest + 1


def apply(game: Any, state: Any, action: Any) -> Any:
    state.moves[state.num_moves] = action
    state.num_moves += 1


def deal_next(game: Any, state: Any) -> Any:
    state.cards[1] = _third(state.seed, _DEAL)
    state.bonus = _third(state.seed, _BONUS)
    state.dealt = 1


def receives_cards(game: Any, state: Any, seat: Any) -> Any:
    return seat == 1


def observe_chance(game: Any, state: Any, seat: Any) -> Any:
    return np.int64(state.bonus)


@kernel
def _write_returns(state: Any, out: Any) -> None:
    out[0] = 0.25 * (state.moves[0] + state.moves[3] * (np.int64(state.bonus) - 1))
    out[1] = 0.25 * (state.moves[1] + np.int64(state.cards[1]))
    out[2] = 0.25 * (2 * np.int64(state.moves[2]) - state.moves[3])
    mean = (out[0] + out[1] + out[2]) / 3.0
    for side in range(3):
        out[side] -= mean


def returns(game: Any, state: Any, out: Any) -> Any:
    _write_returns(state, out)


def view(game: Any, state: Any, seat: Any, out: Any) -> Any:
    out.seed = np.uint64(0)
    for other in range(3):
        out.cards[other] = state.cards[other] if other == seat else HIDDEN
    for ply in range(4):
        out.moves[ply] = state.moves[ply]
    if seat != 1 and state.num_moves > 1:
        out.moves[1] = HIDDEN
    out.num_moves = state.num_moves
    out.bonus = state.bonus
    out.dealt = state.dealt


def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> Any:
    for ply in range(4):
        out.moves[ply] = view.moves[ply]
    out.num_moves = view.num_moves
    out.bonus = view.bonus
    out.dealt = view.dealt
    for other in range(3):
        out.cards[other] = view.cards[other]
        if other == seat:
            continue
        while True:
            card = below(rng, 3)
            move = np.int64(view.moves[other])
            if other == 1:
                move = below(rng, 3)
            if other >= view.num_moves or move <= card:
                break
        out.cards[other] = card
        if other == 1 and view.num_moves > 1:
            out.moves[1] = move
            if view.dealt == 1:
                out.cards[1] = below(rng, 3)
    out.seed = next_u64(rng)


def observe(game: Any, view: Any, seat: Any, encoder: Any, out: Any) -> Any:
    out[0] = view.cards[seat]
    out[1] = seat
    out[2] = view.num_moves
    out[3] = view.bonus
    out[4] = view.dealt
    for ply in range(4):
        out[5 + ply] = view.moves[ply]


def describe_actions(game: Any, view: Any, encoder: Any, actions: Any, count: Any, out: Any) -> Any:
    for i in range(count):
        out[i, 0] = actions[i]


def observe_action(game: Any, state: Any, action: Any, seat: Any) -> Any:
    if game.deaf == 1 or (state.num_moves == 1 and seat != 1):
        return np.int64(-1)
    return np.int64(action)


def reward_terms(game: Any, state: Any, out: Any) -> Any:
    for side in range(3):
        out[side, 0] = 0.0
    if _seat_to_move(state) == TERMINAL:
        _write_returns(state, out[:, 0])


def statistics(game: Any, state: Any, out: Any) -> Any:
    pass


def rule_action(game: Any, view: Any, seat: Any, rng: Any) -> Any:
    return np.int64(0 if view.num_moves == 3 else view.cards[seat])


ENCODER = Encoder(name="numbers", version=1, code=0, observation_size=9, action_size=1)
implement(Relay, globals())
SPEC = GameSpec(
    name="relay",
    game_type=Relay,
    options={"deaf": Option(low=0, high=1)},
    presets={"standard": Relay()},
    state_dtype=STATE,
    fields=_fields,
    encoders=(ENCODER,),
    max_actions=3,
    max_plies=4,
)
