"""Flat Monte Carlo: in sampled worlds every action is followed by the game's rule player.

Room: engine. May import: numpy and the other rooms of engine below search.

There is no tree: an action is worth the mean over all worlds of where the rule player's play takes
it. A playout ends with the game, or where the searching seat would receive cards; there the game's
guess values it. All actions of a decision meet the same worlds with the same random numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.game import GameSpec
from engine.jit import inlined, kernel
from engine.rules import (
    CHANCE,
    TERMINAL,
    apply,
    current_seat,
    deal_next,
    determinize,
    legal_actions,
    num_sides,
    receives_cards,
    returns,
    rule_action,
    side_of,
    static_value,
    view,
)
from engine.search.borrow import borrow
from engine.search.tree import plain_records

_WORLD, _LINE, _SEEN = range(3)


class FlatPlayer:
    """Plays the action of the best mean outcome; ties go by the order of the actions."""

    def __init__(self, spec: GameSpec, game: Any, worlds: int) -> None:
        """Play ``game`` with ``worlds`` sampled worlds a move. Raises ValueError below one."""
        if worlds < 1:
            raise ValueError(f"worlds = {worlds}: at least 1 is allowed")
        self._game, self._worlds = game, worlds
        self._records = plain_records(spec.state_dtype, 3)
        self._actions = np.zeros(spec.max_actions, np.int64)
        self._values = np.zeros(spec.max_actions)
        self._outcome = np.zeros(int(num_sides(game)))
        self._rng = np.zeros(1, np.uint64)

    def act(
        self,
        views: Any,
        seats: NDArray[np.int64],
        keys: NDArray[np.uint64],
        out_actions: NDArray[np.int64],
    ) -> None:
        """Write one legal action per position."""
        scratch = (self._records, self._actions, self._values, self._outcome, self._rng)
        positions = (views, seats, np.array(keys))
        _choose(self._game, self._worlds, positions, scratch, out_actions)


@kernel
def _choose(game: Any, worlds: Any, positions: Any, scratch: Any, out_actions: Any) -> None:
    """Write the chosen action of every position."""
    positions, scratch = borrow(positions), borrow(scratch)
    views, seats, keys = positions
    records, actions, values, outcome, line_rng = scratch
    for i in range(out_actions.shape[0]):
        seat, rng = seats[i], keys[i : i + 1]
        count = legal_actions(game, views[i], actions)
        values[:count] = 0.0
        for _ in range(worlds if count > 1 else 0):
            determinize(game, views[i], seat, rng, records[_WORLD])
            for k in range(count):
                line_rng[0] = rng[0]
                records[_LINE] = records[_WORLD]
                apply(game, records[_LINE], actions[k])
                values[k] += play_on(game, records, seat, outcome, line_rng)
        best = 0
        for k in range(1, count):
            if values[k] > values[best]:
                best = k
        out_actions[i] = actions[best]


@inlined
def play_on(game: Any, records: Any, seat: Any, outcome: Any, rng: Any) -> Any:
    """Play the line on with the rule player; return its value for the side of ``seat``."""
    state = records[_LINE]
    side = side_of(game, seat)
    while True:
        mover = current_seat(game, state)
        if mover == TERMINAL:
            returns(game, state, outcome)
            return outcome[side]
        if mover == CHANCE:
            if receives_cards(game, state, seat):
                return static_value(game, state, side)
            deal_next(game, state)
        else:
            view(game, state, mover, records[_SEEN])
            apply(game, state, rule_action(game, records[_SEEN], mover, rng))
