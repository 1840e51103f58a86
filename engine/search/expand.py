"""Expansion: the evaluator's answers become priors, drawn actions and backed-up values.

Room: engine. May import: numpy and the other rooms of engine below search.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.jit import inlined, kernel
from engine.rng import uniform
from engine.rules import num_sides, side_of
from engine.search.borrow import borrow
from engine.search.tree import (
    AWAITS_POLICY,
    AWAITS_PRIORS,
    AWAITS_VALUE,
    BAD_VALUES,
    CHOSEN,
    EXPANDED,
    NO_ROW,
    ROOT,
    RUNNING,
    back_up,
)


@kernel
def absorb(game: Any, forest: Any, batch: Any, alpha: Any, weights: Any) -> None:
    """Give every waiting descent its answer: expand and back up, or draw the action it waits for.

    ``alpha`` is the concentration of the root noise; ``weights`` is scratch, ``float64[A]``.
    """
    forest, batch = borrow(forest), borrow(batch)
    for t in range(forest.trees.shape[0]):
        if forest.trees[t].status != RUNNING:
            continue
        for d in range(forest.descents.shape[1]):
            descent = forest.descents[t, d]
            if descent.phase == AWAITS_POLICY:
                draw_action(forest, batch, t, d, weights)
            elif descent.phase == AWAITS_PRIORS:
                expand(forest, batch, t, d, weights)
                descent.phase = EXPANDED
            elif descent.phase == AWAITS_VALUE:
                if descent.policy_row != NO_ROW:
                    expand(forest, batch, t, d, weights)
                    if descent.node == ROOT and forest.trees[t].noise_share > 0.0:
                        add_noise(forest, t, d, alpha, weights)
                read_value(game, forest, batch, t, d)
                back_up(forest, t, d)


@inlined
def softmax(batch: Any, row: Any, weights: Any) -> Any:
    """Write the policy of a row to ``weights``, in float64; return its number of candidates."""
    first = batch.offsets[row]
    count = batch.offsets[row + 1] - first
    highest = np.float64(batch.logits[first])
    for i in range(1, count):
        highest = max(highest, np.float64(batch.logits[first + i]))
    total = 0.0
    for i in range(count):
        weights[i] = math.exp(np.float64(batch.logits[first + i]) - highest)
        total += weights[i]
    for i in range(count):
        weights[i] /= total
    return count


@inlined
def expand(forest: Any, batch: Any, t: Any, d: Any, weights: Any) -> None:
    """Add one evaluation to the mean priors of the descent's node."""
    descent = forest.descents[t, d]
    count = softmax(batch, descent.policy_row, weights)
    if math.isnan(weights[0]):
        forest.counters[BAD_VALUES] += 1
    for i in range(count):
        edge = forest.edges[t, forest.slots[t, d, i]]
        edge.num_priors += 1
        mean = np.float64(edge.prior)
        edge.prior = mean + (weights[i] - mean) / edge.num_priors
    node = forest.nodes[t, descent.node]
    node.num_evaluations += 1
    node.pending -= 1


@inlined
def draw_action(forest: Any, batch: Any, t: Any, d: Any, weights: Any) -> None:
    """Choose the descent's action from the policy of its row, with the tree's own generator."""
    descent = forest.descents[t, d]
    count = softmax(batch, descent.policy_row, weights)
    threshold = uniform(forest.rngs[t])
    chosen = 0
    reached = weights[0]
    while reached <= threshold and chosen < count - 1:
        chosen += 1
        reached += weights[chosen]
    descent.action = forest.legal[t, d, chosen]
    descent.phase = CHOSEN


@inlined
def read_value(game: Any, forest: Any, batch: Any, t: Any, d: Any) -> None:
    """Spread the value of the descent's row over the sides; columns are relative to its own."""
    descent = forest.descents[t, d]
    own = side_of(game, descent.value_seat)
    sides = num_sides(game)
    first = np.float64(batch.values[descent.value_row, 0])
    if math.isnan(first):
        forest.counters[BAD_VALUES] += 1
    if batch.values.shape[1] == 1:
        forest.values[t, d, own] = first
        forest.values[t, d, 1 - own] = -first
    else:
        for k in range(sides):
            value = np.float64(batch.values[descent.value_row, k])
            forest.values[t, d, (own + k) % sides] = value


# --- root noise -----------------------------------------------------------------------------------


@inlined
def add_noise(forest: Any, t: Any, d: Any, alpha: Any, weights: Any) -> None:
    """Mix Dirichlet(alpha) noise into the priors of the root's edges."""
    count = forest.descents[t, d].num_legal
    share = forest.trees[t].noise_share
    total = 0.0
    for i in range(count):
        weights[i] = gamma(forest.rngs[t], alpha)
        total += weights[i]
    if total <= 0.0:
        return
    for i in range(count):
        edge = forest.edges[t, forest.slots[t, d, i]]
        edge.prior = (1.0 - share) * np.float64(edge.prior) + share * weights[i] / total


@inlined
def gamma(rng: Any, shape: Any) -> Any:
    """Return a Gamma(shape, 1) number, advancing ``rng``.

    Marsaglia, Tsang: A Simple Method for Generating Gamma Variables (2000), sections 2 and 6.
    """
    boost = 1.0
    if shape < 1.0:
        boost = (1.0 - uniform(rng)) ** (1.0 / shape)
        shape = shape + 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(rng)
        v = (1.0 + c * x) ** 3
        if v > 0.0:
            u = 1.0 - uniform(rng)
            if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                return boost * d * v


@inlined
def normal(rng: Any) -> Any:
    """Return a standard normal number, advancing ``rng`` (Box and Muller 1958)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(rng)))
    return radius * math.cos(2.0 * math.pi * uniform(rng))
