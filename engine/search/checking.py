"""Whether saved trees are trees: for snapshots, whose numbers compiled code would trust.

Room: engine. May import: numpy and the other rooms of engine below search.

Checked is all that kernels use as an index, a loop's bound or a list to walk: indices lie in the
pools, lists end, every node but the root hangs below one older node, what is in flight agrees with
what was begun, and actions are legal where they will be played. Sums and priors may be any numbers.
Letters are those of engine.search.tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.jit import kernel
from engine.layout import Layout
from engine.rules import current_seat, legal_actions
from engine.search.tree import (
    AT_NODE,
    BAD_VALUES,
    BAD_VIEWS,
    CHOSEN,
    EMPTY,
    EXPANDED,
    FINISHED,
    IDLE,
    NO_EDGE,
    NO_NODE,
    PREPARATION,
    ROOT,
    RUNNING,
    Forest,
)


class TreeError(ValueError):
    """Saved trees that no search has left; names what disagrees."""


def check_forest(
    game: Any, layout: Layout, forest: Forest, num_seats: int, max_simulations: int
) -> None:
    """Raise TreeError unless a search of ``game`` may go on with ``forest`` between two steps.

    Shapes and dtypes are right already. Changes nothing.
    """
    alive = forest.trees["status"] != EMPTY
    _check_counts(forest, alive, num_seats, max_simulations)
    owner = _check_edges(forest, alive)
    level = _check_nodes(forest, alive, owner)
    _check_descents(forest, alive, owner, level)
    busy = (forest.descents["phase"] != IDLE) & alive[:, None]
    fault = layout.fault_of_views(forest.roots[alive], forest.trees["seat"][alive])
    fault = fault or layout.fault_of_states(forest.worlds[busy])
    if fault:
        raise TreeError(f"trees of a snapshot: {fault}")
    actions = np.zeros(forest.legal.shape[2], np.int64)
    tree = int(_first_illegal(game, forest, actions))
    if tree >= 0:
        raise TreeError(f"trees of a snapshot: actions that are not legal (tree {tree})")


def _demand(holds: Any, what: str) -> None:
    """Raise TreeError for the first tree in which ``holds`` [T, ...] is not so."""
    bad = ~np.asarray(holds)
    if bad.any():
        raise TreeError(f"trees of a snapshot: {what} (tree {int(np.argwhere(bad)[0][0])})")


def _within(values: Any, low: Any, high: Any) -> Any:
    return (values >= low) & (values < high)


def _check_counts(forest: Forest, alive: Any, num_seats: int, max_simulations: int) -> None:
    counters = forest.counters
    if counters.min() < 0 or counters[BAD_VALUES] or counters[BAD_VIEWS]:
        raise TreeError(f"trees of a snapshot: counters {counters.tolist()}")
    trees = forest.trees
    status, budget = trees["status"], trees["budget"]
    _demand(np.isin(status, (EMPTY, RUNNING, FINISHED)), "status")
    bounds = {
        "seat": (0, num_seats),
        "model": (0, len(forest.has_equity)),
        "budget": (0, max_simulations + 1),
        "num_nodes": (1, forest.nodes.shape[1] + 1),
        "num_edges": (1, forest.edges.shape[1] + 1),
        "started": (PREPARATION, budget + 1),
        "completed": (PREPARATION, budget + 1),
    }
    for name, (low, high) in bounds.items():
        _demand(_within(trees[name], low, high) | ~alive, name)
    in_flight = (forest.descents["phase"] != IDLE).sum(axis=1)
    _demand((trees["started"] - trees["completed"] == in_flight) | ~alive, "what is in flight")
    is_forced = (trees["num_edges"] == 1) & (trees["completed"] == PREPARATION)
    ended = (trees["completed"] == budget) | is_forced
    _demand((ended == (status == FINISHED)) | ~alive, "simulations")


def _used(pool: Any, counts: Any, alive: Any) -> Any:
    """Return bool[T, N]: the rows of a pool that are taken."""
    return np.arange(pool.shape[1]) < np.where(alive, counts, 0)[:, None]


def _owners(heads: Any, following: Any, is_head: Any, what: str) -> NDArray[np.int64]:
    """Return int64[T, P]: whose list each item of a pool is in, NO_NODE for none.

    ``heads`` [T, N] are the first items of the lists of the nodes ``is_head``, ``following`` [T, P]
    the next ones; all lists end. Raises TreeError for an item in two lists.
    """
    owner = np.full(following.shape, NO_NODE, np.int64)
    tree, node = np.nonzero(is_head)
    item = heads[tree, node].astype(np.int64)
    while True:
        on = item >= 0
        tree, node, item = tree[on], node[on], item[on]
        if not len(item):
            return owner
        taken = owner[tree, item] != NO_NODE
        owner[tree, item] = node
        taken |= owner[tree, item] != node  # two nodes at once
        if taken.any():
            raise TreeError(f"trees of a snapshot: {what} (tree {int(tree[taken][0])})")
        item = following[tree, item].astype(np.int64)


def _check_edges(forest: Forest, alive: Any) -> NDArray[np.int64]:
    """Check the lists of edges; return the node of each edge."""
    nodes, edges, counts = forest.nodes, forest.edges, forest.trees["num_edges"]
    used = _used(edges, counts, alive)
    has_nodes = _used(nodes, forest.trees["num_nodes"], alive)
    limit = counts[:, None]
    first, following = nodes["first_edge"], edges["next_edge"]
    _demand(_within(first, NO_EDGE, limit) | ~has_nodes, "first edge of a node")
    _demand(_within(following, NO_EDGE, limit) | ~used, "next edge")
    index = np.clip(following, 0, edges.shape[1] - 1).astype(np.int64)
    ascends = np.take_along_axis(edges["action"], index, axis=1) > edges["action"]
    _demand((following == NO_EDGE) | ascends | ~used, "order of edges")
    owner = _owners(first, following, has_nodes, "an edge of two nodes")
    _demand((owner != NO_NODE) | ~used, "an edge of no node")
    return owner


def _check_nodes(forest: Forest, alive: Any, owner: Any) -> NDArray[np.int64]:
    """Check the links between nodes; return how far below the root each lies."""
    nodes, edges, counts = forest.nodes, forest.edges, forest.trees["num_nodes"]
    used, limit = _used(nodes, counts, alive), counts[:, None]
    own = np.arange(nodes.shape[1])
    child, sibling = nodes["first_child"], nodes["next_sibling"]
    _demand((child == NO_NODE) | _within(child, own + 1, limit) | ~used, "first child")
    _demand(_within(sibling, NO_NODE, own) | ~used, "next sibling")  # from new to old: it ends
    _demand(_within(nodes["side"], 0, forest.values.shape[2]) | ~used, "side of a node")
    _demand((nodes["pending"] == 0) | ~used, "evaluations awaited")
    parent = _owners(child, sibling, used, "a node below two")
    older = np.where(own == ROOT, parent == NO_NODE, _within(parent, 0, own))
    _demand(older | ~used, "a node that is not below an older one")
    level = np.zeros(nodes.shape, np.int64)
    for index in range(1, nodes.shape[1]):
        above = np.maximum(parent[:, index], 0)
        level[:, index] = level[np.arange(len(nodes)), above] + 1
    reached = edges["child"].astype(np.int64)
    below = np.take_along_axis(parent, np.clip(reached, 0, nodes.shape[1] - 1), axis=1)
    fits = (reached == NO_NODE) | (_within(reached, 0, limit) & (below == owner))
    _demand(fits | ~_used(edges, forest.trees["num_edges"], alive), "child of an edge")
    return level


def _check_descents(forest: Forest, alive: Any, owner: Any, level: Any) -> None:
    """Check what is in flight: it stands at a node, by a path, and has chosen or is to choose."""
    descents = forest.descents
    phase, depth = descents["phase"], descents["depth"].astype(np.int64)
    busy = (phase != IDLE) & alive[:, None]
    _demand(np.isin(phase, (IDLE, AT_NODE, CHOSEN, EXPANDED)) | ~busy, "phase of a descent")
    nodes, edges = (forest.trees[f"num_{name}"][:, None] for name in ("nodes", "edges"))
    node = np.where(busy, descents["node"], 0).astype(np.int64)
    _demand(_within(node, 0, nodes), "node of a descent")
    at = np.take_along_axis(level, np.minimum(node, level.shape[1] - 1), axis=1)
    _demand((at == depth) & (depth < forest.path_nodes.shape[2]) | ~busy, "depth of a descent")
    walked = busy[:, :, None] & (np.arange(forest.path_nodes.shape[2]) < depth[:, :, None])
    _demand(_within(forest.path_nodes, 0, nodes[:, :, None]) | ~walked, "nodes of a path")
    _demand(_within(forest.path_edges, NO_EDGE, edges[:, :, None]) | ~walked, "edges of a path")
    legal = np.where(busy & (phase != AT_NODE), descents["num_legal"], 1)
    _demand(_within(legal, 1, forest.legal.shape[2] + 1), "legal actions of a descent")
    chosen = np.where(busy & (phase == CHOSEN), descents["edge"], NO_EDGE).astype(np.int64)
    _demand(_within(chosen, NO_EDGE, edges), "edge of a descent")
    of_node = np.take_along_axis(owner, np.maximum(chosen, 0), axis=1) == node
    _demand((chosen == NO_EDGE) | of_node, "edge of another node")
    listed = np.arange(forest.slots.shape[2]) < legal[:, :, None]
    listed &= (busy & (phase == EXPANDED))[:, :, None]
    slots = np.where(listed, forest.slots, 0).astype(np.int64)
    _demand(_within(slots, 0, edges[:, :, None]) | ~listed, "edges that a descent may take")
    flat = np.clip(slots, 0, owner.shape[1] - 1).reshape(len(slots), -1)
    holders = np.take_along_axis(owner, flat, axis=1).reshape(slots.shape)
    _demand((holders == node[:, :, None]) | ~listed, "edges of another node")


@kernel
def _first_illegal(game: Any, forest: Any, actions: Any) -> Any:
    """Return the first tree whose root or whose descents have other actions than the rules give.

    -1: none. ``actions`` is scratch.
    """
    for t in range(forest.trees.shape[0]):
        tree = forest.trees[t]
        if tree.status == EMPTY:
            continue
        if current_seat(game, forest.roots[t]) != tree.seat:
            return t
        count = legal_actions(game, forest.roots[t], actions)
        edge = np.int64(forest.nodes[t, ROOT].first_edge)
        for i in range(count):
            if edge == NO_EDGE or forest.edges[t, edge].action != actions[i]:
                return t
            edge = np.int64(forest.edges[t, edge].next_edge)
        if edge != NO_EDGE or count == 0:
            return t
        for d in range(forest.descents.shape[1]):
            descent = forest.descents[t, d]
            if descent.phase == IDLE:
                continue
            if current_seat(game, forest.worlds[t, d]) < 0:
                return t
            count = legal_actions(game, forest.worlds[t, d], actions)
            if descent.phase != AT_NODE and count != descent.num_legal:
                return t
            found = descent.phase != CHOSEN
            for i in range(count):
                if descent.phase != AT_NODE and forest.legal[t, d, i] != actions[i]:
                    return t
                found = found or descent.action == actions[i]
            if not found:
                return t
    return -1
