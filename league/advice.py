"""What a player would play in a position, and what each legal action is worth.

Room: league. May import: engine, league.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from engine.notation import legal_codes
from engine.past import Past
from engine.players import SearchPlayer, act_with_past
from engine.rng import make_rng
from engine.search.flat_values import playout_values
from engine.search.tree import plain_records
from league.players import PlayContext, ResolvedPlayer, build_player

PLAYOUTS = 256
"""Playouts of an action that no search has valued."""
LEAST_SIMULATIONS = 50
"""A search gets at least so many where its budget is shared among several views."""


class ActionAdvice(NamedTuple):
    """One legal action."""

    action: int
    value: float
    """Mean outcome for the side of the seat to move, in the unit of the game's returns."""
    share: float
    """Share of the search's simulations, or of the player's choices, that went to it."""


class Advice(NamedTuple):
    """What was found."""

    best: int
    """The action that the player plays."""
    actions: tuple[ActionAdvice, ...]
    """All legal ones, in canonical order."""


class Advisor:
    """Asks one player for its move and values all others beside it.

    Where the player searches, the values are those of its search. Actions that it never tried, and
    all actions of players that do not search, are valued by playouts from sampled worlds.
    """

    def __init__(
        self,
        player: ResolvedPlayer,
        context: PlayContext,
        *,
        num_views: int = 1,
        playouts: int = PLAYOUTS,
    ) -> None:
        """Build the player.

        Args:
            player: Who advises.
            context: The game.
            num_views: Views of one position (``advise``) among which a search's simulations are
                shared.
            playouts: Playouts of an action that no search has valued, shared in the same way.

        Raises:
            ModelError, PlayerError: A player that cannot play this game.
        """
        simulations = player.spec.simulations
        if simulations:
            least = min(LEAST_SIMULATIONS, simulations)
            shared = max(simulations // num_views, least)
            spec = msgspec.structs.replace(player.spec, simulations=shared)
            player = player._replace(spec=spec)
        self._spec, self._game = context.spec, context.game
        self._num_views = num_views
        self._playouts = max(playouts // num_views, 1)
        self._player = build_player(player, context._replace(batch=num_views))

    def advise(self, views: Any, seat: int, key: np.uint64, past: Past | None = None) -> Advice:
        """Return the player's move, and the value of every legal action.

        Args:
            views: state_dtype[k] views of the seat to move, k up to ``num_views``. They are of one
                position and differ in what is not known of it: the advice is for all of them.
            seat: The seat to move.
            key: All randomness follows from it.
            past: What the seat saw of the plies before, k positions; None: it is not known.
        """
        count = len(views)
        seed = int(key)
        keys = np.array([make_rng(seed, index)[0] for index in range(count)], np.uint64)
        chosen = np.zeros(count, np.int64)
        positions = (views, np.full(count, seat, np.int64), keys)
        act_with_past(self._player, positions, past, chosen)
        codes = legal_codes(self._spec, self._game, views[0])
        visits, values = self._searched(count, chosen, codes)
        missing = [index for index in range(len(codes)) if np.isnan(values[index])]
        if missing:
            untried = [codes[index] for index in missing]
            values[missing] = self._played_out(views, seat, untried, seed)
        share = visits / max(visits.sum(), 1.0)
        # One view is the player's own choice; among several the action that most of them favour.
        best = int(chosen[0]) if count == 1 else codes[int(np.argmax(visits))]
        rows = zip(codes, values.tolist(), share.tolist(), strict=True)
        return Advice(best, tuple(ActionAdvice(*row) for row in rows))

    def _searched(
        self, count: int, chosen: NDArray[np.int64], codes: list[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return visits (or choices) and values of ``codes`` over all views; NaN where unknown."""
        if not isinstance(self._player, SearchPlayer):
            visits = np.array([np.count_nonzero(chosen == code) for code in codes], np.float64)
            return visits, np.full(len(codes), np.nan)
        slots = np.arange(count)
        shape = (count, self._spec.max_actions)
        actions, tried = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        counts, roots, means = np.zeros(count, np.int64), np.zeros(count), np.full(shape, np.nan)
        self._player.search.results(slots, actions, tried, counts, roots)
        self._player.search.action_values(slots, means)
        num = len(codes)
        visits = tried[:, :num].sum(axis=0).astype(np.float64)
        known = ~np.isnan(means[:, :num])
        weights = np.where(known, tried[:, :num], 0).astype(np.float64)
        totals = (np.where(known, means[:, :num], 0.0) * weights).sum(axis=0)
        with np.errstate(invalid="ignore"):
            return visits, totals / weights.sum(axis=0)

    def _played_out(
        self, views: Any, seat: int, actions: list[int], seed: int
    ) -> NDArray[np.float64]:
        total = np.zeros(len(actions))
        for index, view in enumerate(views):
            rng = make_rng(seed, index, 1)
            total += playout_values(
                self._spec, self._game, view, seat, actions, rng, self._playouts
            )
        return total / len(views)


def as_views(records: list[Any], dtype: np.dtype[Any]) -> Any:
    """Return records as the plain array that players and ``Advisor.advise`` take."""
    views = plain_records(dtype, len(records))
    for index, record in enumerate(records):
        views[index] = record
    return views
