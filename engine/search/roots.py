"""Roots: how searches start, and how their results are read.

Room: engine. May import: numpy and the other rooms of engine below search.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.jit import inlined, kernel
from engine.rules import current_seat, legal_actions, side_of
from engine.search.borrow import borrow
from engine.search.tree import (
    FINISHED,
    IDLE,
    NO_EDGE,
    NO_NODE,
    PREPARATION,
    ROOT,
    RUNNING,
    merge_legal,
    new_node,
)

NO_ERROR, BAD_SLOT, BAD_SEAT, NOT_FINISHED = 0, 1, 2, 3


@kernel
def begin_trees(game: Any, forest: Any, trees: Any, views: Any, settings: Any) -> Any:
    """Start a search in each slot of ``trees``; return an error code.

    ``settings`` is (seats, models, simulations, seeds, noise shares), each of the length of trees.
    """
    forest, settings = borrow(forest), borrow(settings)
    seats, models, simulations, seeds, noise_shares = settings
    for i in range(trees.shape[0]):
        if not 0 <= trees[i] < forest.trees.shape[0]:
            return BAD_SLOT
        if current_seat(game, views[i]) != seats[i]:
            return BAD_SEAT
    for i in range(trees.shape[0]):
        t = trees[i]
        tree = forest.trees[t]
        tree.seat = seats[i]
        tree.model = models[i]
        tree.budget = simulations[i]
        tree.noise_share = noise_shares[i]
        tree.started = PREPARATION
        tree.completed = PREPARATION
        tree.num_nodes = 0
        tree.num_edges = 0
        forest.shares[t, :] = 0.0
        forest.rngs[t, 0] = seeds[i]
        forest.roots[t] = views[i]
        begin_tree(game, forest, t)
    return NO_ERROR


@inlined
def begin_tree(game: Any, forest: Any, t: Any) -> None:
    """Make the root and its edges; a forced move is finished at once with one visit."""
    tree = forest.trees[t]
    for d in range(forest.descents.shape[1]):
        forest.descents[t, d].phase = IDLE
    new_node(forest, t, NO_NODE, 0)
    forest.nodes[t, ROOT].side = side_of(game, tree.seat)
    num_legal = legal_actions(game, forest.roots[t], forest.legal[t, 0])
    merge_legal(forest, t, 0, ROOT, num_legal)
    tree.status = RUNNING
    if num_legal == 1:
        forest.edges[t, forest.slots[t, 0, 0]].visits = 1
        forest.edges[t, forest.slots[t, 0, 0]].prior = 1.0
        tree.status = FINISHED


@inlined
def best_edge(forest: Any, t: Any) -> Any:
    """Return the most visited edge of the root; ties go by prior, then by order."""
    best = np.int64(forest.nodes[t, ROOT].first_edge)
    index = best
    while index != NO_EDGE:
        edge, leader = forest.edges[t, index], forest.edges[t, best]
        tied = edge.visits == leader.visits
        if edge.visits > leader.visits or (tied and edge.prior > leader.prior):
            best = index
        index = np.int64(edge.next_edge)
    return best


@inlined
def all_finished(forest: Any, trees: Any) -> Any:
    """Return whether ``trees`` are finished slots."""
    for i in range(trees.shape[0]):
        if not 0 <= trees[i] < forest.trees.shape[0]:
            return False
        if forest.trees[trees[i]].status != FINISHED:
            return False
    return True


@kernel
def read_roots(forest: Any, trees: Any, outputs: Any) -> Any:
    """Write (actions, visits, counts, values) of finished roots; return an error code."""
    actions, visits, counts, values = outputs
    if not all_finished(forest, trees):
        return NOT_FINISHED
    for i in range(trees.shape[0]):
        t = trees[i]
        root = forest.nodes[t, ROOT]
        count = 0
        index = np.int64(root.first_edge)
        while index != NO_EDGE:
            edge = forest.edges[t, index]
            actions[i, count] = edge.action
            visits[i, count] = edge.visits
            if forest.trees[t].budget == 0:
                visits[i, count] = 1 if index == best_edge(forest, t) else 0
            count += 1
            index = np.int64(edge.next_edge)
        counts[i] = count
        values[i] = root.value_sum / root.returned if root.returned > 0 else np.nan
    return NO_ERROR


@kernel
def read_priors(forest: Any, trees: Any, out: Any) -> Any:
    """Write the priors of finished roots; return an error code."""
    if not all_finished(forest, trees):
        return NOT_FINISHED
    for i in range(trees.shape[0]):
        count = 0
        index = np.int64(forest.nodes[trees[i], ROOT].first_edge)
        while index != NO_EDGE:
            out[i, count] = forest.edges[trees[i], index].prior
            count += 1
            index = np.int64(forest.edges[trees[i], index].next_edge)
    return NO_ERROR


@kernel
def read_action_values(forest: Any, trees: Any, out: Any) -> Any:
    """Write the mean value of each action of finished roots; return an error code."""
    if not all_finished(forest, trees):
        return NOT_FINISHED
    for i in range(trees.shape[0]):
        count = 0
        index = np.int64(forest.nodes[trees[i], ROOT].first_edge)
        while index != NO_EDGE:
            edge = forest.edges[trees[i], index]
            searched = forest.nodes[trees[i], ROOT].returned > 0 and edge.visits > 0
            out[i, count] = edge.value_sum / edge.visits if searched else np.nan
            count += 1
            index = np.int64(edge.next_edge)
    return NO_ERROR


@kernel
def best_actions(forest: Any, trees: Any, out: Any) -> Any:
    """Write the most visited action of finished roots; return an error code."""
    if not all_finished(forest, trees):
        return NOT_FINISHED
    for i in range(trees.shape[0]):
        out[i] = forest.edges[trees[i], best_edge(forest, trees[i])].action
    return NO_ERROR
