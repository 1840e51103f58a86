"""Whisper: a partnership game in which a convention is everything. Not in the registry of games.

Four seats; 0 and 2 play against 1 and 3. Every seat holds a card 0 or 1. In turn each seat says a
number 0 or 1, then in turn each guesses its partner's card. The side with more right guesses wins.
Without an agreement on what a number means nobody can do better than even.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.game import Encoder, GameSpec, Option
from engine.jit import kernel
from engine.layout import SHOWN_TO_NONE, SHOWN_TO_OWN, Field
from engine.rng import below, mix, next_u64
from engine.rules import TERMINAL, implement

HIDDEN = -1
NUM_PLIES = 8
_SHIFT = np.uint64(63)


class Whisper(NamedTuple):
    """Options."""

    unused: int = 0


STATE = np.dtype(
    (
        np.record,
        [("seed", np.uint64), ("cards", np.int8, (4,)), ("said", np.int8, (8,)), ("ply", np.int8)],
    )
)


def _fields(game: Any) -> dict[str, Field]:
    return {
        "seed": Field(cards=(1 << 64) - 1, shown=SHOWN_TO_NONE),
        "cards": Field(0, 1, shown=SHOWN_TO_OWN, blank=HIDDEN),
        "said": Field(HIDDEN, 1),
        "ply": Field(0, NUM_PLIES),
    }


def num_seats(game: Any) -> Any:
    return 4


def num_sides(game: Any) -> Any:
    return 2


def side_of(game: Any, seat: Any) -> Any:
    return seat & 1


def deal(game: Any, state: Any, seed: Any) -> Any:
    state.seed = seed
    for seat in range(4):
        state.cards[seat] = np.int64(mix(np.uint64(seed), np.uint64(seat)) >> _SHIFT)
    for ply in range(NUM_PLIES):
        state.said[ply] = HIDDEN
    state.ply = 0


@kernel
def _seat_to_move(state: Any) -> Any:
    return np.int64(state.ply) % 4 if state.ply < NUM_PLIES else TERMINAL


def current_seat(game: Any, state: Any) -> Any:
    return _seat_to_move(state)


def legal_actions(game: Any, state: Any, actions: Any) -> Any:
    actions[0] = 0
    actions[1] = 1
    return 2


def apply(game: Any, state: Any, action: Any) -> Any:
    state.said[state.ply] = action
    state.ply += 1


@kernel
def _write_right(state: Any, out: Any) -> None:
    """Write the right guesses of each side to ``out``."""
    out[0] = 0.0
    out[1] = 0.0
    for seat in range(4):
        if state.said[4 + seat] == state.cards[(seat + 2) & 3]:
            out[seat & 1] += 1.0


@kernel
def _write_returns(state: Any, out: Any) -> None:
    _write_right(state, out)
    lead = np.sign(out[0] - out[1])
    out[0] = lead
    out[1] = -lead


def returns(game: Any, state: Any, out: Any) -> Any:
    _write_returns(state, out)


def view(game: Any, state: Any, seat: Any, out: Any) -> Any:
    out.seed = np.uint64(0)
    for other in range(4):
        out.cards[other] = state.cards[other] if other == seat else HIDDEN
    for ply in range(NUM_PLIES):
        out.said[ply] = state.said[ply]
    out.ply = state.ply


def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> Any:
    for other in range(4):
        out.cards[other] = view.cards[other] if other == seat else below(rng, 2)
    for ply in range(NUM_PLIES):
        out.said[ply] = view.said[ply]
    out.ply = view.ply
    out.seed = next_u64(rng)


def observe(game: Any, view: Any, seat: Any, encoder: Any, out: Any) -> Any:
    out[0] = view.cards[seat]
    for ply in range(NUM_PLIES):
        out[1 + ply] = view.said[ply]


def describe_actions(game: Any, view: Any, encoder: Any, actions: Any, count: Any, out: Any) -> Any:
    for i in range(count):
        out[i, 0] = actions[i]


def observe_action(game: Any, state: Any, action: Any, seat: Any) -> Any:
    return np.int64(action)


def reward_terms(game: Any, state: Any, out: Any) -> Any:
    out[0, 0] = 0.0
    out[1, 0] = 0.0
    if _seat_to_move(state) == TERMINAL:
        _write_returns(state, out[:, 0])


def statistics(game: Any, state: Any, out: Any) -> Any:
    _write_right(state, out[:, 0])


def rule_action(game: Any, view: Any, seat: Any, rng: Any) -> Any:
    return below(rng, 2)


implement(Whisper, globals())
SPEC = GameSpec(
    name="whisper",
    game_type=Whisper,
    options={"unused": Option(low=0, high=1)},
    presets={"standard": Whisper()},
    state_dtype=STATE,
    fields=_fields,
    encoders=(Encoder(name="numbers", version=1, code=0, observation_size=9, action_size=1),),
    max_actions=2,
    max_plies=NUM_PLIES,
    statistics=("right guesses",),
)


class Whisperer:
    """Says its card under a code of its own, and reads its partner's word by the same code."""

    def __init__(self, code: int, *, signals: bool = True) -> None:
        """``code`` 1 swaps the words. A player that does not signal says and guesses anything."""
        self._code = code
        self._signals = signals

    def act(
        self,
        views: Any,
        seats: NDArray[np.int64],
        keys: NDArray[np.uint64],
        out_actions: NDArray[np.int64],
    ) -> None:
        for i, seat in enumerate(seats):
            known = views[i].cards[seat] if views[i].ply < 4 else views[i].said[(seat + 2) & 3]
            if self._signals:
                out_actions[i] = int(known) ^ self._code
            else:
                out_actions[i] = (int(keys[i]) >> (7 + self._code)) & 1
