"""Belief: worlds weighted by how likely the others' past plays were, had they held these cards.

Room: engine. May import: numpy and the other rooms of engine below search.

By the hard facts alone all worlds that agree with a view are equally likely. What the other seats
chose tells more: a search that asks for it draws a number of worlds, rebuilds in each of them what
every other seat knew when it played (``engine.rules.view_then``), and weighs the world by the
product of the probabilities that the policy gives to what was played: Bayes' rule with the policy
as a model of the players. Simulations then take worlds in proportion to their weights. The model
is wrong about players unlike it, hence a floor: no play counts as less likely than that. Like
inference from play in Skat (Buro, Long, Furtak, Sturtevant, Improving State Evaluation, Inference,
and Search in Trick-Based Card Games, 2009; Rebstock et al., Policy Based Inference, 2019).

Dimensions: n positions, P past plies, K worlds, R rows of one evaluation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.evaluation import EvalBatch, Evaluator, new_batch
from engine.game import Encoder, GameSpec
from engine.jit import inlined, kernel
from engine.past import Past
from engine.rng import uniform
from engine.rules import (
    current_seat,
    describe_actions,
    determinize,
    legal_actions,
    num_sides,
    observe,
    view_then,
)
from engine.search.borrow import borrow
from engine.search.expand import softmax
from engine.search.tree import NO_ROW, RUNNING, Forest

NOT_THERE = -1
MOST_WORLDS = 256
_LEAST_ROWS = 192
"""R is this or K: the worlds of a ply, all of which may differ, lie in one evaluation."""


class BeliefOptions(NamedTuple):
    """How worlds are weighted."""

    worlds: int = 48
    """K: worlds that a search draws and weighs."""
    floor: float = 0.02
    """Least probability that a past play counts with."""


class _Weighing(NamedTuple):
    """Buffers of one call."""

    log_weights: NDArray[np.float64]
    """[n, K]."""
    rows: NDArray[np.int32]
    """[R, K] row of the world at each ply of the evaluation, or NO_ROW: it tells nothing."""
    positions: NDArray[np.int64]
    """[R] position that the ply belongs to."""
    played: NDArray[np.int64]
    """[R] index of what was played among the candidates of the row, or NOT_THERE."""
    likelihoods: NDArray[np.float64]
    """[R] probability of what was played."""
    policy: NDArray[np.float64]
    """[A]."""
    keys: NDArray[np.int64]
    """[K] of the worlds at one ply."""
    legal: NDArray[np.int64]
    """[A]."""
    known: Any
    """state_dtype[1]."""
    cursor: NDArray[np.int64]
    """[_CURSOR] (position, ply) that is next, and the plies and rows of this evaluation."""


def belief_for(simulations: int) -> BeliefOptions:
    """Return options for a search of so many simulations.

    48 worlds tell most of what there is to tell. A short search has fewer, which would cost it more
    than its simulations do; a long one more, among which it can choose (see BENCHMARKS.md).
    """
    worlds = max(12 * simulations // 100, min(3 * simulations // 8, BeliefOptions().worlds), 1)
    return BeliefOptions(worlds=min(worlds, MOST_WORLDS))


_POSITION, _PLY, _NUM_PLIES, _NUM_ROWS, _NUM_CANDIDATES, _CURSOR = range(6)


class Belief:
    """Draws and weighs the worlds of a search."""

    def __init__(
        self, spec: GameSpec, game: Any, encoder: Encoder, options: BeliefOptions, num_trees: int
    ) -> None:
        """Prepare for up to ``num_trees`` positions at once.

        Raises:
            ValueError: A number of worlds or a floor that is not allowed, or a game without
                ``view_then``.
        """
        if options.worlds < 1:
            raise ValueError(f"belief worlds = {options.worlds}: at least 1 is allowed")
        if not 0.0 < options.floor <= 1.0:
            raise ValueError(f"belief floor = {options.floor}: above 0 and up to 1 are allowed")
        if not spec.recalled_plies:
            raise ValueError(f"game {spec.name!r} tells nothing of past plays (view_then)")
        self.options = options
        self._game = game
        self._encoder = encoder.code
        rows = max(_LEAST_ROWS, options.worlds)
        batch = new_batch(spec, encoder, int(num_sides(game)), rows)
        self._batch: EvalBatch = batch._replace(worlds=np.asarray(batch.worlds).view(np.ndarray))
        self._batch.wants_value[:] = 0
        self._buffers = _Weighing(
            log_weights=np.zeros((num_trees, options.worlds)),
            rows=np.zeros((rows, options.worlds), np.int32),
            positions=np.zeros(rows, np.int64),
            played=np.zeros(rows, np.int64),
            likelihoods=np.zeros(rows),
            policy=np.zeros(spec.max_actions),
            keys=np.zeros(options.worlds, np.int64),
            legal=np.zeros(spec.max_actions, np.int64),
            known=np.zeros(1, spec.state_dtype),
            cursor=np.zeros(_CURSOR, np.int64),
        )

    def weigh(
        self, forest: Forest, trees: NDArray[np.int64], past: Past, evaluator: Evaluator
    ) -> None:
        """Give each of ``trees``, whose searches have just begun, its worlds and their weights.

        Args:
            forest: With room for ``options.worlds`` worlds a tree.
            trees: int64[n].
            past: What the seats that search saw, n positions.
            evaluator: Its policy is the model of the other seats.
        """
        game, batch, buffers = self._game, self._batch, self._buffers
        draw_worlds(game, forest, trees, buffers)
        while True:
            write_plies(game, forest, batch, (trees, past, self._encoder), buffers)
            rows = int(buffers.cursor[_NUM_ROWS])
            if not rows:
                break
            evaluator.evaluate(batch, rows, int(buffers.cursor[_NUM_CANDIDATES]))
            absorb_plies(batch, buffers, self.options.floor)
        share_worlds(forest, trees, buffers)


@kernel
def draw_worlds(game: Any, forest: Any, trees: Any, buffers: Any) -> None:
    """Draw the worlds of all trees that will search, and reset the cursor."""
    forest, buffers = borrow(forest), borrow(buffers)
    buffers.cursor[:] = 0
    for i in range(trees.shape[0]):
        t = trees[i]
        buffers.log_weights[i, :] = 0.0
        if not searches(forest, t):
            continue
        for k in range(forest.pooled.shape[1]):
            seat = forest.trees[t].seat
            determinize(game, forest.roots[t], seat, forest.rngs[t], forest.pooled[t, k])
        forest.offsets[t] = uniform(forest.rngs[t])


@inlined
def searches(forest: Any, t: Any) -> Any:
    """Return whether the tree has simulations to run."""
    return forest.trees[t].status == RUNNING and forest.trees[t].budget > 0


@kernel
def write_plies(game: Any, forest: Any, batch: Any, given: Any, buffers: Any) -> None:
    """Write rows of the next plies, as many as fit; none are left when there are no rows.

    ``given`` is (trees, past, encoder).
    """
    trees, past, encoder = given
    forest, batch = borrow(forest), borrow(batch)
    past, buffers = borrow(past), borrow(buffers)
    cursor = buffers.cursor
    cursor[_NUM_PLIES] = 0
    cursor[_NUM_ROWS] = 0
    cursor[_NUM_CANDIDATES] = 0
    batch.offsets[0] = 0
    worlds = forest.pooled.shape[1]
    while cursor[_POSITION] < trees.shape[0]:
        i = cursor[_POSITION]
        t = trees[i]
        if cursor[_PLY] >= past.counts[i] or not searches(forest, t):
            cursor[_POSITION] += 1
            cursor[_PLY] = 0
            continue
        if cursor[_NUM_ROWS] + worlds > batch.model.shape[0]:
            return
        p = cursor[_PLY]
        cursor[_PLY] += 1
        mover = current_seat(game, past.views[i, p])
        if mover >= 0 and mover != forest.trees[t].seat and past.actions[i, p] >= 0:
            write_ply(game, forest, batch, (t, i, mover, encoder), (past, buffers))


@inlined
def write_ply(game: Any, forest: Any, batch: Any, at: Any, given: Any) -> None:
    """Write one row for each group of worlds in which the seat to move then knew the same.

    ``at`` is (tree, position, seat that moved, encoder); ``given`` is (past, buffers), the ply the
    one before the cursor.
    """
    t, i, mover, encoder = at
    past, buffers = given
    cursor = buffers.cursor
    p = cursor[_PLY] - 1
    j = cursor[_NUM_PLIES]
    before = cursor[_NUM_ROWS]
    out = buffers.known[0]
    for k in range(forest.pooled.shape[1]):
        key = np.int64(view_then(game, past.views[i, p], forest.pooled[t, k], out))
        buffers.keys[k] = key
        buffers.rows[j, k] = NO_ROW
        if key < 0:
            continue
        twin = 0
        while twin < k and buffers.keys[twin] != key:
            twin += 1
        if twin < k:
            buffers.rows[j, k] = buffers.rows[j, twin]
            continue
        count = legal_actions(game, out, buffers.legal)
        if count == 1:
            continue
        row = cursor[_NUM_ROWS]
        first = cursor[_NUM_CANDIDATES]
        last = first + count
        observe(game, out, mover, encoder, batch.observations[row])
        candidates = batch.candidates[first:last]
        describe_actions(game, out, encoder, buffers.legal, count, candidates)
        batch.candidate_row[first:last] = row
        batch.offsets[row + 1] = last
        batch.model[row] = forest.trees[t].model
        batch.seats[row] = mover
        batch.worlds[row] = out  # a view is all of it that a policy may read
        buffers.played[row] = NOT_THERE
        for a in range(count):
            if buffers.legal[a] == past.actions[i, p]:
                buffers.played[row] = a
        buffers.rows[j, k] = row
        cursor[_NUM_ROWS] = row + 1
        cursor[_NUM_CANDIDATES] = last
    if cursor[_NUM_ROWS] > before:
        buffers.positions[j] = i
        cursor[_NUM_PLIES] = j + 1


@kernel
def absorb_plies(batch: Any, buffers: Any, floor: Any) -> None:
    """Add the log-probabilities of what was played to the worlds' weights."""
    batch, buffers = borrow(batch), borrow(buffers)
    for row in range(buffers.cursor[_NUM_ROWS]):
        softmax(batch, row, buffers.policy)
        index = buffers.played[row]
        buffers.likelihoods[row] = buffers.policy[index] if index != NOT_THERE else 0.0
    for j in range(buffers.cursor[_NUM_PLIES]):
        i = buffers.positions[j]
        for k in range(buffers.log_weights.shape[1]):
            own = buffers.rows[j, k]
            if own != NO_ROW:
                buffers.log_weights[i, k] += math.log(max(floor, buffers.likelihoods[own]))


@kernel
def share_worlds(forest: Any, trees: Any, buffers: Any) -> None:
    """Turn weights into cumulative shares of the simulations."""
    forest, buffers = borrow(forest), borrow(buffers)
    worlds = forest.shares.shape[1]
    for i in range(trees.shape[0]):
        t = trees[i]
        if not searches(forest, t):
            continue
        highest = -np.inf
        for k in range(worlds):
            highest = max(highest, buffers.log_weights[i, k])
        total = 0.0
        for k in range(worlds):
            total += math.exp(buffers.log_weights[i, k] - highest)
            forest.shares[t, k] = total
        for k in range(worlds):
            forest.shares[t, k] /= total
        forest.shares[t, worlds - 1] = 1.0
