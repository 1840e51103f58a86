"""Information-set Monte Carlo tree search over a batch of trees in lockstep.

Room: engine. May import: numpy and the other rooms of engine below search.

One ``step`` lets every running tree select its leaves, evaluates all of them in one batch, expands
and backs up. A tree is given a view, never a state, and owns its random numbers: what it finds
depends on nothing but its own row of ``begin`` and the evaluator.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.evaluation import EvalBatch, Evaluator, new_batch
from engine.game import Encoder, GameSpec
from engine.past import Past
from engine.rules import num_seats, num_sides
from engine.search.belief import Belief, BeliefOptions
from engine.search.checking import check_forest
from engine.search.expand import absorb
from engine.search.roots import (
    BAD_SEAT,
    BAD_SLOT,
    begin_trees,
    best_actions,
    read_action_values,
    read_priors,
    read_roots,
)
from engine.search.select import (
    BY_HAND,
    BY_POLICY,
    BY_TREE,
    OF_MOVER,
    OF_ROOT_SEAT,
    Plan,
    select,
)
from engine.search.tree import (
    BAD_VALUES,
    BAD_VIEWS,
    FINISHED,
    NUM_CANDIDATES,
    NUM_ROWS,
    POOL_FULL,
    RUNNING,
    SIMULATIONS,
    WEIGHTED,
    Forest,
    ForestShape,
    PoolSize,
    default_pool,
    new_forest,
)

SEAT_MODES = {"tree": BY_TREE, "policy": BY_POLICY, "by_hand": BY_HAND}
LEAF_VALUES = {"mover": OF_MOVER, "root_seat": OF_ROOT_SEAT}


class KnowledgeError(AssertionError):
    """Two worlds in which the root seat knows different things met in one node."""


class SearchOptions(NamedTuple):
    """How trees grow."""

    exploration: float = 1.5
    """PUCT constant c."""
    fpu_reduction: float = 0.2
    """First-play urgency: the node's value minus this."""
    partner_mode: int = BY_TREE
    """How a partner's nodes choose: BY_TREE, BY_POLICY or BY_HAND."""
    opponent_mode: int = BY_TREE
    """How opponents' nodes choose."""
    leaf_value: int = OF_MOVER
    """Whose view is valued at a leaf: OF_MOVER or OF_ROOT_SEAT."""


def search_options(
    *,
    exploration: float = 1.5,
    fpu_reduction: float = 0.2,
    partner: str = "tree",
    opponents: str = "tree",
    leaf_value: str = "mover",
) -> SearchOptions:
    """Return options from words. Raises ValueError for a word that does not exist."""
    return SearchOptions(
        exploration=float(exploration),
        fpu_reduction=float(fpu_reduction),
        partner_mode=_word("partner", partner, SEAT_MODES),
        opponent_mode=_word("opponents", opponents, SEAT_MODES),
        leaf_value=_word("leaf_value", leaf_value, LEAF_VALUES),
    )


def _word(name: str, word: str, allowed: dict[str, int]) -> int:
    if word not in allowed:
        raise ValueError(f"search option {name} = {word!r}: allowed are {', '.join(allowed)}")
    return allowed[word]


class Search:
    """``num_trees`` slots, each of which searches one position at a time."""

    def __init__(
        self,
        spec: GameSpec,
        game: Any,
        encoder: Encoder,
        options: SearchOptions = SearchOptions(),  # noqa: B008 - immutable
        *,
        num_trees: int,
        max_simulations: int,
        descents: int = 1,
        num_models: int = 1,
        pool: PoolSize | None = None,
        check_views: bool = False,
        belief: BeliefOptions | None = None,
    ) -> None:
        """Allocate everything; nothing is allocated later.

        Args:
            spec: The game's facts; ``game`` is one of its variants.
            game: Rule options.
            encoder: How rows for the evaluator are written.
            options: How trees grow.
            num_trees: Slots.
            max_simulations: Largest budget of one search.
            descents: Simulations of one tree that may be in flight at once (virtual loss). More
                than one makes batches out of a single game, and changes what is found.
            num_models: Models that the evaluator tells apart; each may have an equity table.
            pool: Nodes and edges per tree; by default so many that pools rarely fill.
            check_views: Check at every visit that the root seat, by the features of its view, knows
                what it knew at the node's first visit. For tests: it costs time and memory.
            belief: How worlds are weighted by past plays; None: they are equally likely.

        Raises:
            ValueError: A count that is out of range.
        """
        counts = {"num_trees": num_trees, "descents": descents, "num_models": num_models}
        for name, count in counts.items():
            if count < 1:
                raise ValueError(f"{name} = {count}: at least 1 is allowed")
        if max_simulations < 0:
            raise ValueError(f"max_simulations = {max_simulations}: at least 0 is allowed")
        pool = pool or default_pool(max_simulations, spec.max_actions)
        sides = int(num_sides(game))
        shape = ForestShape(
            trees=num_trees,
            descents=descents,
            pool=pool,
            actions=spec.max_actions,
            path=min(spec.max_plies, pool.nodes) + 1,
            sides=sides,
            models=num_models,
            equity_states=spec.num_equity_states,
            features=encoder.observation_size if check_views else 0,
            worlds=belief.worlds if belief else 0,
        )
        self._belief = Belief(spec, game, encoder, belief, num_trees) if belief else None
        self.spec = spec
        self.game = game
        self.encoder = encoder
        self.options = options
        self.num_trees = num_trees
        self.max_simulations = max_simulations
        self.num_rows_evaluated = 0
        self.evaluate_s = 0.0
        self._num_equity_states = spec.num_equity_states
        self._forest: Forest = new_forest(shape, spec.state_dtype)
        rows = num_trees * descents * (2 if options.leaf_value == OF_ROOT_SEAT else 1)
        batch = new_batch(spec, encoder, sides, rows)
        self._batch: EvalBatch = batch._replace(worlds=np.asarray(batch.worlds).view(np.ndarray))
        self._plan = Plan(*options, encoder=encoder.code)
        self._alpha = 1.0
        self._weights = np.zeros(spec.max_actions)

    @property
    def forest(self) -> Forest:
        """The arrays of all trees; to look at, not to change."""
        return self._forest

    # --- one search -------------------------------------------------------------------------------

    def set_equity(self, model: int, table: NDArray[np.float64] | None) -> None:
        """Use a table of winning probabilities between hands for ``model``.

        ``table`` is ``float64[num_equity_states]``. None or an empty table: the model's own values
        are used there.
        """
        forest = self._forest
        if not 0 <= model < len(forest.has_equity):
            raise ValueError(f"model {model}: allowed are 0 to {len(forest.has_equity) - 1}")
        if table is None or len(table) == 0:
            forest.has_equity[model] = 0
            return
        if len(table) != self._num_equity_states:
            raise ValueError(
                f"equity table of {len(table)} rows: {self.spec.name} has {self._num_equity_states}"
            )
        forest.equity[model] = table
        forest.has_equity[model] = 1

    def begin(
        self,
        trees: NDArray[np.int64],
        views: Any,
        seats: NDArray[np.int64],
        models: NDArray[np.int32],
        simulations: NDArray[np.int64],
        seeds: NDArray[np.uint64],
        noise_share: NDArray[np.float64],
        dirichlet_alpha: float = 1.0,
    ) -> None:
        """Start a search in each of the slots ``trees``, whatever they held before.

        A position with one legal action is finished at once. ``dirichlet_alpha`` is one number for
        the whole search: it holds for every root that is expanded after the call.

        Args:
            trees: int64[k] slots.
            views: state_dtype[k] view of the seat to move (states never enter a search).
            seats: int64[k] that seat.
            models: int32[k] model that answers all rows of the tree.
            simulations: int64[k] budget; 0 evaluates the root alone: the policy by itself.
            seeds: uint64[k] all randomness of the search follows from it.
            noise_share: float64[k] share of Dirichlet noise in the root's priors; 0 for none.
            dirichlet_alpha: Concentration of that noise, above 0.

        Raises:
            ValueError: A slot, budget, model or seat that is not allowed; names the first one.
        """
        if not dirichlet_alpha > 0:
            raise ValueError(f"dirichlet_alpha = {dirichlet_alpha}: above 0 is allowed")
        if len(trees) == 0:
            return
        if simulations.min() < 0 or simulations.max() > self.max_simulations:
            raise ValueError(
                f"simulations {simulations.min()} to {simulations.max()}: "
                f"allowed are 0 to {self.max_simulations}"
            )
        if models.min() < 0 or models.max() >= len(self._forest.has_equity):
            raise ValueError(
                f"models {models.min()} to {models.max()}: "
                f"allowed are 0 to {len(self._forest.has_equity) - 1}"
            )
        self._alpha = float(dirichlet_alpha)
        # One layout and one set of dtypes: another would be compiled anew.
        settings = (
            np.ascontiguousarray(seats, np.int64),
            np.ascontiguousarray(models, np.int32),
            np.ascontiguousarray(simulations, np.int64),
            np.ascontiguousarray(seeds, np.uint64),
            np.ascontiguousarray(noise_share, np.float64),
        )
        slots = np.ascontiguousarray(trees, np.int64)
        records = np.ascontiguousarray(views).view(np.ndarray)
        error = begin_trees(self.game, self._forest, slots, records, settings)
        if error == BAD_SLOT:
            raise ValueError(f"trees {trees}: allowed are 0 to {self.num_trees - 1}")
        if error == BAD_SEAT:
            raise ValueError("a view that is searched must be of the seat to move")

    def weigh_worlds(self, trees: NDArray[np.int64], past: Past, evaluator: Evaluator) -> None:
        """Let the searches that have just begun in ``trees`` infer worlds from what was played.

        Without this call they draw worlds by the hard facts alone.

        Args:
            trees: int64[k] slots, as given to ``begin``.
            past: What the seats to move there saw, k positions.
            evaluator: Its policy is the model of the other seats' play.

        Raises:
            ValueError: The search was made without ``belief``.
        """
        if self._belief is None:
            raise ValueError("belief = None: this search weighs no worlds")
        self._belief.weigh(self._forest, np.ascontiguousarray(trees, np.int64), past, evaluator)

    def step(self, evaluator: Evaluator) -> int:
        """Advance all running trees by one evaluation; return the number of rows evaluated.

        0 means that nothing runs any more.

        Raises:
            FloatingPointError: The evaluator answered with NaN.
            KnowledgeError: Only with ``check_views``.
        """
        forest, batch = self._forest, self._batch
        select(self.game, forest, batch, self._plan)
        rows = int(forest.counters[NUM_ROWS])
        if rows:
            start = time.perf_counter()
            evaluator.evaluate(batch, rows, int(forest.counters[NUM_CANDIDATES]))
            self.evaluate_s += time.perf_counter() - start
            self.num_rows_evaluated += rows
            absorb(self.game, forest, batch, self._alpha, self._weights)
        if forest.counters[BAD_VALUES]:
            raise FloatingPointError("the evaluator answered with values that are not numbers")
        if forest.counters[BAD_VIEWS]:
            raise KnowledgeError("worlds that the root seat can tell apart met in one node")
        return rows

    def run(self, evaluator: Evaluator) -> None:
        """Step until every tree is finished."""
        while self.step(evaluator):
            pass

    def finished(self) -> NDArray[np.int64]:
        """Return the slots whose budget is spent; they stay finished until ``begin``."""
        found: NDArray[np.int64] = np.flatnonzero(self._forest.trees["status"] == FINISHED)
        return found

    def num_running(self) -> int:
        """Return the number of slots that still search."""
        return int(np.count_nonzero(self._forest.trees["status"] == RUNNING))

    # --- what it found ----------------------------------------------------------------------------

    def results(
        self,
        trees: NDArray[np.int64],
        actions_out: NDArray[np.int64],
        visits_out: NDArray[np.int64],
        counts_out: NDArray[np.int64],
        values_out: NDArray[np.float64],
    ) -> None:
        """Write what finished searches found at their roots.

        The visits sum to the simulations. With 0 simulations, and for a forced move, they are 1 for
        the policy's first choice and 0 for the others.

        Args:
            trees: int64[k] finished slots.
            actions_out: int64[k, A] legal actions in canonical order.
            visits_out: int64[k, A] their visits.
            counts_out: int64[k] number of legal actions.
            values_out: float64[k] mean value of the evaluation of the root and of all simulations,
                for the root seat's side; NaN for a forced move, where nothing was searched.

        Raises:
            ValueError: A slot that is not finished.
        """
        outputs = (actions_out, visits_out, counts_out, values_out)
        self._check(read_roots(self._forest, trees, outputs), trees)

    def priors(self, trees: NDArray[np.int64], priors_out: NDArray[np.float64]) -> None:
        """Write the priors of the root's legal actions, noise included, to ``[k, A]``."""
        self._check(read_priors(self._forest, trees, priors_out), trees)

    def action_values(self, trees: NDArray[np.int64], values_out: NDArray[np.float64]) -> None:
        """Write the mean value of each root action for the root seat's side to ``[k, A]``.

        NaN where an action was never visited.
        """
        self._check(read_action_values(self._forest, trees, values_out), trees)

    def best_actions(self, trees: NDArray[np.int64], actions_out: NDArray[np.int64]) -> None:
        """Write the most visited root action to ``[k]``; ties go by prior, then by order."""
        self._check(best_actions(self._forest, trees, actions_out), trees)

    def _check(self, error: int, trees: NDArray[np.int64]) -> None:
        if error:
            raise ValueError(f"slots {trees}: only finished searches have results")

    @property
    def num_simulations(self) -> int:
        """Simulations backed up since the search was made (the roots' own evaluations excluded)."""
        return int(self._forest.counters[SIMULATIONS])

    @property
    def num_pool_full(self) -> int:
        """Leaves that were valued and not expanded because a pool was full."""
        return int(self._forest.counters[POOL_FULL])

    # --- snapshots --------------------------------------------------------------------------------

    def _saved(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that a snapshot holds."""
        arrays = self._forest._asdict()
        for name in WEIGHTED:
            del arrays[name]
        return arrays

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Return a copy of the whole state between two steps, as plain arrays by name.

        Raises:
            ValueError: The search weighs worlds: players do, whose searches end within one call.
        """
        if self._belief is not None:
            raise ValueError("a search that weighs worlds has no snapshot")
        arrays = {name: np.array(array) for name, array in self._saved().items()}
        arrays["alpha"] = np.array([self._alpha])
        arrays["rows_evaluated"] = np.array([self.num_rows_evaluated])
        return arrays

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go back to a snapshot of a search of the same shape, bit for bit.

        Raises:
            ValueError: A missing array, one of another shape or dtype, or trees that no search of
                this game has left; the search is as it was.
        """
        for name, array in self._saved().items():
            saved = arrays.get(name)
            if saved is None or saved.shape != array.shape or saved.dtype != array.dtype:
                found = None if saved is None else (saved.shape, saved.dtype)
                raise ValueError(
                    f"snapshot array {name!r}: {found}, this search has {array.shape, array.dtype}"
                )
        alpha, rows = (np.asarray(arrays.get(name)) for name in ("alpha", "rows_evaluated"))
        if alpha.shape != (1,) or not alpha[0] > 0 or rows.shape != (1,) or rows.dtype.kind != "i":
            raise ValueError(f"snapshot of a search with alpha {alpha}, rows evaluated {rows}")
        saved_forest = self._forest._replace(
            **{
                name: np.ascontiguousarray(arrays[name]).view(array.dtype).reshape(array.shape)
                for name, array in self._saved().items()
            }
        )
        seats = int(num_seats(self.game))
        layout = self.spec.layout(self.game)
        check_forest(self.game, layout, saved_forest, seats, self.max_simulations)
        for name, array in self._saved().items():
            array[...] = arrays[name]
        self._alpha = float(alpha[0])
        self.num_rows_evaluated = int(rows[0])
