"""Search trees as arrays: what a node is, and the operations on it that know no game.

Room: engine. May import: numpy and the other rooms of engine below search.

A node is what the root seat can tell apart: it is found from its parent by the key of what that
seat observed. Statistics sit on its edges (node, action). A node keeps its edges in a linked list
in ascending order of the action, so that merging the legal actions of a sampled world, which come
in the same order, is one walk, and nothing moves while other descents hold an edge's index.

Dimensions, here and in all kernels of the search:
    T trees   D descents in flight per tree   N nodes per tree   E edges per tree
    A most legal actions   L longest path   S sides   M models   Q rows of the equity table
    K worlds that are kept per tree
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.jit import inlined

ROOT = 0
NO_NODE = -1
NO_EDGE = -1
NO_ROW = -1
NO_ACTION = -1
PREPARATION = -1
"""Value of ``started`` and ``completed`` before the evaluation that gives the root its priors; that
evaluation is no simulation, so that the visits of the root's edges sum to the simulations."""
VIRTUAL_LOSS = 1.0
"""Taken from an edge's value sum while a descent through it is in flight (only with D > 1)."""

# --- status of a tree -----------------------------------------------------------------------------
EMPTY, RUNNING, FINISHED = 0, 1, 2

# --- phase of a descent ---------------------------------------------------------------------------
IDLE = 0
"""No simulation is under way."""
AT_NODE = 1
"""The world stands at a decision of the descent's node."""
CHOSEN = 2
"""An action is chosen there and has to be played."""
EXPANDED = 3
"""The actions there have their priors now, and one has to be chosen."""
AWAITS_VALUE = 4
"""The simulation ends with the evaluation of its row."""
AWAITS_POLICY = 5
"""The evaluation of its row draws another seat's action; then the descent goes on."""
AWAITS_PRIORS = 6
"""The evaluation of its row gives priors to actions that had none; then the descent goes on."""

# --- counters -------------------------------------------------------------------------------------
NUM_ROWS, NUM_CANDIDATES, SIMULATIONS, POOL_FULL, BAD_VALUES, BAD_VIEWS = range(6)
NUM_COUNTERS = 6

NODE = np.dtype(
    (
        np.record,
        [
            ("key", np.int64),  # what the root seat observed on the way from the parent
            ("value_sum", np.float64),  # of the returned simulations, for the mover's side
            ("visits", np.int32),  # arrivals
            ("returned", np.int32),  # simulations backed up through or at the node
            ("first_edge", np.int32),
            ("first_child", np.int32),
            ("next_sibling", np.int32),
            ("num_evaluations", np.int32),
            ("pending", np.int32),  # evaluations in flight
            ("side", np.int32),  # of the seat to move
        ],
    )
)

EDGE = np.dtype(
    (
        np.record,
        [
            ("action", np.int64),
            ("value_sum", np.float64),  # for the mover's side; holds the virtual losses
            ("visits", np.int32),  # simulations that took the action, in flight or returned
            ("availability", np.int32),  # visits of the node while the action was legal
            ("prior", np.float32),  # mean over the evaluations in which the action was legal
            ("num_priors", np.int32),  # those evaluations
            ("child", np.int32),  # child reached last: the guess that is tried first
            ("next_edge", np.int32),
        ],
    )
)

TREE = np.dtype(
    (
        np.record,
        [
            ("seat", np.int64),  # root seat
            ("budget", np.int64),  # simulations asked for
            ("started", np.int64),
            ("completed", np.int64),
            ("noise_share", np.float64),
            ("num_nodes", np.int32),
            ("num_edges", np.int32),
            ("model", np.int32),
            ("status", np.int32),
        ],
    )
)

DESCENT = np.dtype(
    (
        np.record,
        [
            ("action", np.int64),  # chosen at the node
            ("value_seat", np.int64),  # whose view the value row holds
            ("phase", np.int32),
            ("depth", np.int32),  # edges on the path
            ("node", np.int32),  # node that the world stands at; NO_NODE beyond the tree
            ("edge", np.int32),  # of the action; NO_EDGE where the policy chose
            ("num_legal", np.int32),
            ("policy_row", np.int32),  # row whose logits are awaited, or NO_ROW
            ("value_row", np.int32),  # row whose value is awaited, or NO_ROW
            ("expands", np.int32),  # 1: the awaited evaluation adds priors to the node
        ],
    )
)


class Forest(NamedTuple):
    """All trees of one search. Kernels change it in place; a copy of its arrays is a snapshot."""

    nodes: NDArray[Any]
    """NODE[T, N]."""
    edges: NDArray[Any]
    """EDGE[T, E]."""
    trees: NDArray[Any]
    """TREE[T]."""
    descents: NDArray[Any]
    """DESCENT[T, D]."""
    path_nodes: NDArray[np.int32]
    """[T, D, L] nodes from the root on."""
    path_edges: NDArray[np.int32]
    """[T, D, L] edge taken at each, NO_EDGE where a policy chose."""
    legal: NDArray[np.int64]
    """[T, D, A] legal actions at the descent's node in its world."""
    slots: NDArray[np.int32]
    """[T, D, A] their edges."""
    values: NDArray[np.float64]
    """[T, D, S] value of the simulation that ends, per side."""
    rngs: NDArray[np.uint64]
    """[T, 1] one generator a tree: a tree does not depend on its neighbours."""
    roots: Any
    """state_dtype[T] the root seat's view."""
    worlds: Any
    """state_dtype[T, D] the descent's sampled world."""
    scratch: Any
    """state_dtype[1]."""
    pooled: Any
    """state_dtype[T, K] worlds that simulations take; K = 0: each draws its own."""
    shares: NDArray[np.float64]
    """[T, K] cumulative shares of these worlds, the last 1; or 0: they are not in use."""
    offsets: NDArray[np.float64]
    """[T] in [0, 1): where the simulations' walk through the shares begins."""
    equity: NDArray[np.float64]
    """[M, Q] probability of winning between two hands."""
    has_equity: NDArray[np.uint8]
    """[M] whether the model's table is used in place of its values there."""
    counters: NDArray[np.int64]
    """[NUM_COUNTERS] see the named indices."""
    features: NDArray[np.float32]
    """[F] scratch of a checked search."""
    node_features: NDArray[np.float32]
    """[T, N, F] the root seat's features at each node, or N = 0: the search is not checked."""


WEIGHTED = ("pooled", "shares", "offsets")
"""Arrays of a forest that only searches with weighted worlds use."""


class PoolSize(NamedTuple):
    """Rows of one tree's pools."""

    nodes: int
    edges: int


def default_pool(max_simulations: int, max_actions: int) -> PoolSize:
    """Return pools that rarely fill: forced moves make nodes beside the one a simulation."""
    nodes = 2 * max_simulations + 8
    return PoolSize(nodes=nodes, edges=nodes * min(max_actions, 6) + max_actions)


class ForestShape(NamedTuple):
    """Dimensions of a forest (letters as above)."""

    trees: int
    descents: int
    pool: PoolSize
    actions: int
    path: int
    sides: int
    models: int
    equity_states: int
    features: int
    """0: nodes are not checked."""
    worlds: int = 0
    """K."""


def plain_records(dtype: np.dtype[Any], *shape: int) -> Any:
    """Return zeroed records as a plain array (numba knows it quicker than a ``np.recarray``)."""
    return np.zeros(shape, dtype)


def new_forest(shape: ForestShape, state_dtype: np.dtype[Any]) -> Forest:
    """Return a forest of empty trees."""
    t, d, pool = shape.trees, shape.descents, shape.pool
    checked_nodes = pool.nodes if shape.features else 0
    return Forest(
        nodes=plain_records(NODE, t, pool.nodes),
        edges=plain_records(EDGE, t, pool.edges),
        trees=plain_records(TREE, t),
        descents=plain_records(DESCENT, t, d),
        path_nodes=np.zeros((t, d, shape.path), np.int32),
        path_edges=np.zeros((t, d, shape.path), np.int32),
        legal=np.zeros((t, d, shape.actions), np.int64),
        slots=np.zeros((t, d, shape.actions), np.int32),
        values=np.zeros((t, d, shape.sides), np.float64),
        rngs=np.zeros((t, 1), np.uint64),
        roots=plain_records(state_dtype, t),
        worlds=plain_records(state_dtype, t, d),
        scratch=plain_records(state_dtype, 1),
        pooled=plain_records(state_dtype, t, shape.worlds),
        shares=np.zeros((t, shape.worlds), np.float64),
        offsets=np.zeros(t, np.float64),
        equity=np.zeros((shape.models, max(1, shape.equity_states)), np.float64),
        has_equity=np.zeros(shape.models, np.uint8),
        counters=np.zeros(NUM_COUNTERS, np.int64),
        features=np.zeros(shape.features, np.float32),
        node_features=np.zeros((t, checked_nodes, shape.features), np.float32),
    )


@inlined
def new_node(forest: Any, t: Any, parent: Any, key: Any) -> Any:
    """Take a node from tree ``t``'s pool and link it below ``parent``; NO_NODE when it is full."""
    tree = forest.trees[t]
    index = np.int64(tree.num_nodes)
    if index >= forest.nodes.shape[1]:
        return NO_NODE
    tree.num_nodes = index + 1
    node = forest.nodes[t, index]
    node.key = key
    node.value_sum = 0.0
    node.visits = 0
    node.returned = 0
    node.first_edge = NO_EDGE
    node.first_child = NO_NODE
    node.next_sibling = NO_NODE
    node.num_evaluations = 0
    node.pending = 0
    node.side = 0
    if parent != NO_NODE:
        above = forest.nodes[t, parent]
        node.next_sibling = above.first_child
        above.first_child = index
    return index


@inlined
def find_child(forest: Any, t: Any, parent: Any, edge: Any, key: Any) -> Any:
    """Return the child of ``parent`` that the root seat tells by ``key``, made where it is new.

    ``edge`` is the edge taken, or NO_EDGE; it remembers its last child. NO_NODE: the pool is full.
    """
    if edge != NO_EDGE:
        guess = np.int64(forest.edges[t, edge].child)
        if guess != NO_NODE and forest.nodes[t, guess].key == key:
            return guess
    child = np.int64(forest.nodes[t, parent].first_child)
    while child != NO_NODE and forest.nodes[t, child].key != key:
        child = np.int64(forest.nodes[t, child].next_sibling)
    if child == NO_NODE:
        child = new_node(forest, t, parent, key)
    if edge != NO_EDGE and child != NO_NODE:
        forest.edges[t, edge].child = child
    return child


@inlined
def new_edge(forest: Any, t: Any, action: Any, next_edge: Any) -> Any:
    """Take an edge from tree ``t``'s pool; NO_EDGE when it is full."""
    tree = forest.trees[t]
    index = np.int64(tree.num_edges)
    if index >= forest.edges.shape[1]:
        return NO_EDGE
    tree.num_edges = index + 1
    edge = forest.edges[t, index]
    edge.action = action
    edge.value_sum = 0.0
    edge.visits = 0
    edge.availability = 0
    edge.prior = 0.0
    edge.num_priors = 0
    edge.child = NO_NODE
    edge.next_edge = next_edge
    return index


@inlined
def merge_legal(forest: Any, t: Any, d: Any, node_index: Any, num_legal: Any) -> Any:
    """Write the edges of the descent's legal actions to its slots, making those that are new.

    Returns False when the edge pool is full; no visit has been counted then.
    """
    node = forest.nodes[t, node_index]
    previous: Any = NO_EDGE
    edge: Any = np.int64(node.first_edge)
    for i in range(num_legal):
        action = forest.legal[t, d, i]
        while edge != NO_EDGE and forest.edges[t, edge].action < action:
            previous = edge
            edge = np.int64(forest.edges[t, edge].next_edge)
        if edge == NO_EDGE or forest.edges[t, edge].action != action:
            fresh = new_edge(forest, t, action, edge)
            if fresh == NO_EDGE:
                return False
            if previous == NO_EDGE:
                node.first_edge = fresh
            else:
                forest.edges[t, previous].next_edge = fresh
            edge = fresh
        forest.slots[t, d, i] = edge
        previous = edge
        edge = np.int64(forest.edges[t, edge].next_edge)
    return True


@inlined
def count_visit(forest: Any, t: Any, d: Any, num_legal: Any) -> Any:
    """Count a visit in the availability of the legal edges; return whether all have priors."""
    complete = True
    for i in range(num_legal):
        edge = forest.edges[t, forest.slots[t, d, i]]
        edge.availability += 1
        if edge.num_priors == 0:
            complete = False
    return complete


@inlined
def choose_edge(forest: Any, plan: Any, t: Any, d: Any) -> Any:
    """Return the index among the descent's legal actions of the one with the highest score.

    Q(a) + c P(a) sqrt(avail(a)) / (1 + n(a)): PUCT (Rosin 2011; Silver et al. 2017) with the
    availability of Cowling, Powley, Whitehouse (Information Set MCTS, 2012) in place of the
    parent's visits; avail counts the visits before this one. P is renormalised over what is legal.
    """
    descent = forest.descents[t, d]
    node = forest.nodes[t, descent.node]
    total = 0.0
    for i in range(descent.num_legal):
        total += np.float64(forest.edges[t, forest.slots[t, d, i]].prior)
    urgency = -plan.fpu_reduction
    if node.returned > 0:
        urgency += node.value_sum / node.returned
    best = 0
    best_score = -np.inf
    best_prior = -np.inf
    for i in range(descent.num_legal):
        edge = forest.edges[t, forest.slots[t, d, i]]
        visits = np.float64(edge.visits)
        prior = np.float64(edge.prior)
        share = prior / total if total > 0.0 else 1.0 / descent.num_legal
        score = edge.value_sum / visits if edge.visits > 0 else urgency
        score += plan.exploration * share * np.sqrt(edge.availability - 1.0) / (1.0 + visits)
        if score > best_score or (score == best_score and prior > best_prior):
            best, best_score, best_prior = i, score, prior
    return best


@inlined
def back_up(forest: Any, t: Any, d: Any) -> None:
    """Add the descent's value to its path, release its virtual losses and count the simulation."""
    descent = forest.descents[t, d]
    virtual = VIRTUAL_LOSS if forest.descents.shape[1] > 1 else 0.0
    for i in range(descent.depth):
        node = forest.nodes[t, forest.path_nodes[t, d, i]]
        value = forest.values[t, d, node.side]
        node.value_sum += value
        node.returned += 1
        index = forest.path_edges[t, d, i]
        if index != NO_EDGE:
            forest.edges[t, index].value_sum += value + virtual
    if descent.node != NO_NODE:
        node = forest.nodes[t, descent.node]
        node.value_sum += forest.values[t, d, node.side]
        node.returned += 1
    descent.phase = IDLE
    tree = forest.trees[t]
    tree.completed += 1
    if tree.completed > 0:
        forest.counters[SIMULATIONS] += 1
    if tree.completed == tree.budget:
        tree.status = FINISHED
