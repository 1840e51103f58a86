"""Players: one per seat, each acting on a batch of positions.

Room: engine. May import: numpy and the other rooms of engine.

A player is given views, never states, and a key per position from which all of its randomness
follows: the same view, seat and key give the same action whatever else is in the batch. Some also
want to know what their seat saw before (``RecallingPlayer``).
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from engine.evaluation import Evaluator
from engine.game import Encoder, GameSpec
from engine.jit import kernel
from engine.past import Past
from engine.rng import below
from engine.rules import legal_actions, rule_action, style_action
from engine.search.belief import BeliefOptions
from engine.search.ismcts import Search, SearchOptions

_NO_STYLE = -1


class Player(Protocol):
    """Chooses actions."""

    def act(
        self,
        views: Any,
        seats: NDArray[np.int64],
        keys: NDArray[np.uint64],
        out_actions: NDArray[np.int64],
    ) -> None:
        """Write one legal action per position to ``out_actions``.

        Args:
            views: state_dtype[n] views of the seats to move, a plain array of records.
            seats: int64[n] the seats to move.
            keys: uint64[n] randomness of the decision.
            out_actions: int64[n].
        """
        ...


@runtime_checkable
class RecallingPlayer(Player, Protocol):
    """A player that also wants to know what was played before."""

    @property
    def num_recalled(self) -> int:
        """Plies before a decision that it wants to be told of; 0: none."""
        ...

    def act_on_past(
        self,
        views: Any,
        seats: NDArray[np.int64],
        keys: NDArray[np.uint64],
        past: Past,
        out_actions: NDArray[np.int64],
    ) -> None:
        """Write one legal action per position, as ``act``, knowing what the seats saw before."""
        ...


def act_with_past(
    player: Player,
    positions: tuple[Any, NDArray[np.int64], NDArray[np.uint64]],
    past: Past | None,
    out_actions: NDArray[np.int64],
) -> None:
    """Let ``player`` move in ``positions`` (views, seats, keys), told of the past if it asks."""
    views, seats, keys = positions
    if past is not None and isinstance(player, RecallingPlayer) and player.num_recalled:
        player.act_on_past(views, seats, keys, past, out_actions)
    else:
        player.act(views, seats, keys, out_actions)


class RandomPlayer:
    """Plays any legal action with equal probability."""

    def __init__(self, spec: GameSpec, game: Any) -> None:
        """Play ``game``."""
        self._game = game
        self._legal = np.zeros(spec.max_actions, np.int64)

    def act(
        self,
        views: Any,
        seats: NDArray[np.int64],
        keys: NDArray[np.uint64],
        out_actions: NDArray[np.int64],
    ) -> None:
        """Write one legal action per position."""
        _random_actions(self._game, views, np.array(keys), self._legal, out_actions)


class RulePlayer:
    """Plays the game's own rule-based strategy, or another that the game has a name for."""

    def __init__(self, spec: GameSpec, game: Any, style: str = "") -> None:
        """Play ``game``, a variant of ``spec``.

        Args:
            spec: The game's facts.
            game: Rule options.
            style: One of ``spec.styles``; empty for the rule-based player itself.

        Raises:
            ValueError: The game has no player of that name.
        """
        if style and style not in spec.styles:
            allowed = ", ".join(spec.styles) or "none"
            raise ValueError(f"rule-based player {style!r} of {spec.name}: allowed are {allowed}")
        self._game = game
        self._style = spec.styles.index(style) if style else _NO_STYLE

    def act(
        self,
        views: Any,
        seats: NDArray[np.int64],
        keys: NDArray[np.uint64],
        out_actions: NDArray[np.int64],
    ) -> None:
        """Write one legal action per position."""
        if self._style == _NO_STYLE:
            _rule_actions(self._game, views, seats, np.array(keys), out_actions)
        else:
            positions = (views, seats, np.array(keys))
            _style_actions(self._game, positions, self._style, out_actions)


@kernel
def _random_actions(game: Any, views: Any, keys: Any, legal: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i] = legal[below(keys[i : i + 1], legal_actions(game, views[i], legal))]


@kernel
def _rule_actions(game: Any, views: Any, seats: Any, keys: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i] = rule_action(game, views[i], seats[i], keys[i : i + 1])


@kernel
def _style_actions(game: Any, positions: Any, style: Any, out: Any) -> None:
    views, seats, keys = positions
    for i in range(out.shape[0]):
        out[i] = style_action(game, views[i], seats[i], style, keys[i : i + 1])


class SearchPlayer:
    """Plays the most visited move of a search without noise; ties go by prior, then by order.

    With 0 simulations it plays the policy's first choice. The evaluator may be a network or, for a
    player without one, playouts.
    """

    def __init__(
        self,
        spec: GameSpec,
        game: Any,
        encoder: Encoder,
        evaluator: Evaluator,
        *,
        simulations: int,
        options: SearchOptions = SearchOptions(),  # noqa: B008 - immutable
        model: int = 0,
        num_models: int = 1,
        equity: NDArray[np.float64] | None = None,
        batch: int = 64,
        descents: int = 1,
        belief: BeliefOptions | None = None,
    ) -> None:
        """Prepare ``batch`` trees.

        Args:
            spec: The game's facts; ``game`` is one of its variants.
            game: Rule options.
            encoder: The evaluator's encoder.
            evaluator: Values and policies.
            simulations: A move's budget.
            options: How trees grow.
            model: Which of the evaluator's models plays, below ``num_models``.
            num_models: Models that the evaluator holds.
            equity: The model's match-equity table, used between hands; None for none.
            batch: Positions that are searched in lockstep. Changes the speed alone.
            descents: Simulations of one tree in flight at once; more than one makes batches out of
                a single game, and changes what is found.
            belief: How worlds are weighted by what the other seats have played; None: not at all.
        """
        self._search = Search(
            spec,
            game,
            encoder,
            options,
            num_trees=batch,
            max_simulations=simulations,
            descents=descents,
            num_models=num_models,
            belief=belief,
        )
        self._num_recalled = spec.recalled_plies if belief else 0
        self._search.set_equity(model, equity)
        self._evaluator = evaluator
        self._simulations = simulations
        self._model = model
        self._batch = batch
        self._slots = np.arange(batch)

    @property
    def search(self) -> Search:
        """The search, for its counters."""
        return self._search

    @property
    def num_recalled(self) -> int:
        """Plies before a decision that it wants to be told of."""
        return self._num_recalled

    def act(
        self,
        views: Any,
        seats: NDArray[np.int64],
        keys: NDArray[np.uint64],
        out_actions: NDArray[np.int64],
    ) -> None:
        """Write one legal action per position."""
        self._act(views, seats, keys, None, out_actions)

    def act_on_past(
        self,
        views: Any,
        seats: NDArray[np.int64],
        keys: NDArray[np.uint64],
        past: Past,
        out_actions: NDArray[np.int64],
    ) -> None:
        """Write one legal action per position, knowing what the seats saw before."""
        self._act(views, seats, keys, past, out_actions)

    def _act(
        self,
        views: Any,
        seats: NDArray[np.int64],
        keys: NDArray[np.uint64],
        past: Past | None,
        out_actions: NDArray[np.int64],
    ) -> None:
        for first in range(0, len(out_actions), self._batch):
            rows = slice(first, min(first + self._batch, len(out_actions)))
            count = rows.stop - rows.start
            slots = self._slots[:count]
            self._search.begin(
                slots,
                views[rows],
                seats[rows],
                np.full(count, self._model, np.int32),
                np.full(count, self._simulations, np.int64),
                keys[rows],
                np.zeros(count),
            )
            if past is not None:
                seen = Past(*(array[rows] for array in past))
                self._search.weigh_worlds(slots, seen, self._evaluator)
            self._search.run(self._evaluator)
            self._search.best_actions(slots, out_actions[rows])
