"""The plies before a decision, as the seat that decides saw them: for players that infer from play.

Room: engine. May import: numpy and the rooms of engine below it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.jit import kernel
from engine.rules import observe_action, view


class Past(NamedTuple):
    """Earlier plies of n positions, the oldest first; P plies at the most.

    A seat remembers what it saw, so that this is nothing that its own views did not hold.
    """

    views: Any
    """state_dtype[n, P] the deciding seat's view before each ply, a plain array of records."""
    actions: NDArray[np.int64]
    """[n, P] key of the action as that seat saw it: its code, or below 0 where it was hidden."""
    counts: NDArray[np.int64]
    """[n] plies that are there."""


class _Plies(NamedTuple):
    """The last P plies of the games in G slots, each a ring that ply number p enters at p mod P."""

    states: Any
    """state_dtype[G, P] before the ply."""
    actions: NDArray[np.int64]
    """[G, P]."""
    counts: NDArray[np.int64]
    """[G] plies since the game's start."""


class PastPlies:
    """Keeps the last plies of many games, and shows them to seats."""

    def __init__(self, state_dtype: np.dtype[Any], num_slots: int, num_plies: int) -> None:
        """Prepare ``num_slots`` games of which the last ``num_plies`` (at least 1) are kept."""
        shape = (num_slots, num_plies)
        self._plies = _Plies(
            np.zeros(shape, state_dtype), np.zeros(shape, np.int64), np.zeros(num_slots, np.int64)
        )
        self._shown = Past(
            np.zeros(shape, state_dtype), np.zeros(shape, np.int64), np.zeros(num_slots, np.int64)
        )

    def start(self, slot: int) -> None:
        """Begin a new game in ``slot``."""
        self._plies.counts[slot] = 0

    def add(self, states: Any, group: NDArray[np.int64], actions: NDArray[np.int64]) -> None:
        """Add one ply to each game of ``group``: ``states[slot]`` is before it.

        Args:
            states: state_dtype[G] of all slots.
            group: int64[n] slots.
            actions: int64[n] what is played there.
        """
        _add_plies(self._plies, states, group, actions)

    def seen(self, game: Any, group: NDArray[np.int64], seats: NDArray[np.int64]) -> Past:
        """Return the plies of the games of ``group`` as ``seats`` ``[n]`` saw them.

        The arrays are reused by the next call.
        """
        count = len(group)
        shown = Past(*(array[:count] for array in self._shown))
        _show_plies(game, self._plies, group, seats, shown)
        return shown


@kernel
def _add_plies(plies: Any, states: Any, group: Any, actions: Any) -> None:
    for i in range(group.shape[0]):
        slot = group[i]
        at = plies.counts[slot] % plies.actions.shape[1]
        plies.states[slot, at] = states[slot]
        plies.actions[slot, at] = actions[i]
        plies.counts[slot] += 1


@kernel
def _show_plies(game: Any, plies: Any, group: Any, seats: Any, out: Any) -> None:
    length = plies.actions.shape[1]
    for i in range(group.shape[0]):
        slot = group[i]
        kept = min(plies.counts[slot], length)
        first = plies.counts[slot] - kept
        out.counts[i] = kept
        for p in range(kept):
            at = (first + p) % length
            view(game, plies.states[slot, at], seats[i], out.views[i, p])
            out.actions[i, p] = observe_action(
                game, plies.states[slot, at], plies.actions[slot, at], seats[i]
            )
