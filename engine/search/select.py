"""Selection: descents walk their trees until they need the evaluator.

Room: engine. May import: numpy and the other rooms of engine below search.

Each descent plays in a world drawn from the root seat's view, or taken from the weighted worlds of
``engine.search.belief``. It ends at a node
without priors, at the end of the game, between two hands where the equity table answers, or where
the root seat itself would receive cards. Ends that need no evaluation are backed up at once and
the tree goes on with its next simulation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.bits import U1
from engine.jit import inlined, kernel
from engine.rng import mix, next_u64
from engine.rules import (
    CHANCE,
    NO_HAND_END,
    TERMINAL,
    apply,
    by_hand,
    current_seat,
    deal_next,
    describe_actions,
    determinize,
    equity_index,
    legal_actions,
    num_sides,
    observe,
    observe_action,
    observe_chance,
    receives_cards,
    returns,
    side_of,
    view,
)
from engine.search.borrow import borrow
from engine.search.tree import (
    AT_NODE,
    AWAITS_POLICY,
    AWAITS_PRIORS,
    AWAITS_VALUE,
    BAD_VIEWS,
    CHOSEN,
    EXPANDED,
    IDLE,
    NO_EDGE,
    NO_NODE,
    NO_ROW,
    NUM_CANDIDATES,
    NUM_ROWS,
    POOL_FULL,
    ROOT,
    RUNNING,
    VIRTUAL_LOSS,
    back_up,
    choose_edge,
    count_visit,
    find_child,
    merge_legal,
)

BY_TREE, BY_POLICY, BY_HAND = 0, 1, 2
"""How other seats choose: by the statistics of their nodes, drawn from the policy, or one or the
other as a decision is about the seat's hand or not (``engine.rules.by_hand``)."""
OF_MOVER, OF_ROOT_SEAT = 0, 1
"""Whose view is valued at a leaf."""
GOLDEN_RATIO = 0.6180339887498949
"""Its multiples, modulo 1, lie evenly in [0, 1), wherever they stop."""


class Plan(NamedTuple):
    """What the kernels need to know of the search's options."""

    exploration: float
    fpu_reduction: float
    partner_mode: int
    opponent_mode: int
    leaf_value: int
    encoder: int


@kernel
def select(game: Any, forest: Any, batch: Any, plan: Any) -> None:
    """Run every descent of every running tree until it awaits the evaluator or nothing is left."""
    forest, batch = borrow(forest), borrow(batch)
    forest.counters[NUM_ROWS] = 0
    forest.counters[NUM_CANDIDATES] = 0
    batch.offsets[0] = 0
    for t in range(forest.trees.shape[0]):
        waiting = False
        while not waiting and forest.trees[t].status == RUNNING:
            for d in range(forest.descents.shape[1]):
                if descend(game, forest, batch, plan, t, d):
                    waiting = True


@inlined
def descend(game: Any, forest: Any, batch: Any, plan: Any, t: Any, d: Any) -> Any:
    """Move one descent on until its simulation ends or waits; return whether it awaits rows.

    It begins one simulation at the most: while others of its tree wait under virtual losses, one
    that ends at once must not run through the budget.
    """
    descent = forest.descents[t, d]
    going = descent.phase != IDLE or start(game, forest, t, d)
    while going:
        if descent.phase == AT_NODE:
            going = visit(game, forest, plan, t, d)
        elif descent.phase == EXPANDED:
            going = take_best(forest, plan, t, d)
        else:
            going = descent.phase == CHOSEN and follow(game, forest, t, d)
    if descent.phase >= AWAITS_VALUE:
        write_rows(game, forest, batch, plan, t, d)
        return True
    return False


@inlined
def start(game: Any, forest: Any, t: Any, d: Any) -> Any:
    """Begin a simulation at the root in a world; False when the budget is spent."""
    tree = forest.trees[t]
    if tree.started >= tree.budget:
        return False
    tree.started += 1
    last = forest.shares.shape[1] - 1
    if last >= 0 and forest.shares[t, last] > 0.0:
        forest.worlds[t, d] = forest.pooled[t, next_world(forest, t)]
    else:
        determinize(game, forest.roots[t], tree.seat, forest.rngs[t], forest.worlds[t, d])
    descent = forest.descents[t, d]
    descent.phase = AT_NODE
    descent.depth = 0
    descent.node = ROOT
    return True


@inlined
def next_world(forest: Any, t: Any) -> Any:
    """Return the kept world for the simulation that begins.

    A walk by the golden ratio: at any time each world has had nearly its share.
    """
    at = forest.offsets[t] + forest.trees[t].started * GOLDEN_RATIO
    at -= np.floor(at)
    k = 0
    while k < forest.shares.shape[1] - 1 and forest.shares[t, k] <= at:
        k += 1
    return k


@inlined
def visit(game: Any, forest: Any, plan: Any, t: Any, d: Any) -> Any:
    """Choose an action at the descent's node, or end there; False when the descent has to wait."""
    descent = forest.descents[t, d]
    tree = forest.trees[t]
    node = forest.nodes[t, descent.node]
    mover = current_seat(game, forest.worlds[t, d])
    own = mover == tree.seat
    if own and node.pending > 0 and node.num_evaluations == 0:
        # Another descent awaits this very evaluation (the own view is the same in all worlds).
        return False
    node.visits += 1
    node.side = side_of(game, mover)
    if forest.node_features.shape[1] > 0:
        check_knowledge(game, forest, plan, t, d)
    num_legal = legal_actions(game, forest.worlds[t, d], forest.legal[t, d])
    descent.num_legal = num_legal
    if not own and seat_mode(game, plan, tree.seat, forest.worlds[t, d]) == BY_POLICY:
        return visit_by_policy(forest, t, d)
    if not merge_legal(forest, t, d, descent.node, num_legal):
        forest.counters[POOL_FULL] += 1
        return await_value(descent, False)
    if not count_visit(forest, t, d, num_legal) and num_legal > 1:
        node.pending += 1
        if node.num_evaluations == 0:
            return await_value(descent, True)
        # A world that brings actions without priors tells of them and is followed further:
        # to end it here would leave a tree of few simulations shallow at others' nodes.
        descent.phase = AWAITS_PRIORS
        descent.expands = 1
        return False
    return take_best(forest, plan, t, d)


@inlined
def take_best(forest: Any, plan: Any, t: Any, d: Any) -> Any:
    """Choose the best of the descent's actions, all of which have priors (or there is but one)."""
    descent = forest.descents[t, d]
    chosen = choose_edge(forest, plan, t, d) if descent.num_legal > 1 else 0
    descent.action = forest.legal[t, d, chosen]
    descent.edge = forest.slots[t, d, chosen]
    descent.phase = CHOSEN
    return True


@inlined
def visit_by_policy(forest: Any, t: Any, d: Any) -> Any:
    """At another seat's node: pass a forced move, value a new node, else ask for the policy."""
    descent = forest.descents[t, d]
    descent.edge = NO_EDGE
    if descent.num_legal == 1:
        descent.action = forest.legal[t, d, 0]
        descent.phase = CHOSEN
        return True
    node = forest.nodes[t, descent.node]
    if node.num_evaluations == 0:
        node.num_evaluations = 1
        return await_value(descent, False)
    descent.phase = AWAITS_POLICY
    descent.expands = 0
    return False


@inlined
def await_value(descent: Any, expands: Any) -> Any:
    """Let the simulation end here with a value, and with priors for the node where it expands."""
    descent.phase = AWAITS_VALUE
    descent.expands = 1 if expands else 0
    return False


@inlined
def follow(game: Any, forest: Any, t: Any, d: Any) -> Any:
    """Play the chosen action and stand at the next node; False when the descent awaits a value."""
    descent = forest.descents[t, d]
    if descent.depth >= forest.path_nodes.shape[2]:
        return await_value(descent, False)  # only in a world that an edited snapshot brought
    parent, edge = np.int64(descent.node), np.int64(descent.edge)
    forest.path_nodes[t, d, descent.depth] = parent
    forest.path_edges[t, d, descent.depth] = edge
    descent.depth += 1
    if edge != NO_EDGE:
        forest.edges[t, edge].visits += 1
        if forest.descents.shape[1] > 1:
            forest.edges[t, edge].value_sum -= VIRTUAL_LOSS
    key = play(game, forest, t, d)
    mover = current_seat(game, forest.worlds[t, d])
    descent.node = NO_NODE
    if mover == TERMINAL or (mover == CHANCE and between_hands(game, forest, t, d)):
        if mover == TERMINAL:
            returns(game, forest.worlds[t, d], forest.values[t, d])
        else:
            value_by_equity(game, forest, t, d)
        back_up(forest, t, d)
        return True
    if mover == CHANCE:
        return await_value(descent, False)
    descent.node = find_child(forest, t, parent, edge, key)
    if descent.node == NO_NODE:
        forest.counters[POOL_FULL] += 1
        return await_value(descent, False)
    descent.phase = AT_NODE
    return True


@inlined
def play(game: Any, forest: Any, t: Any, d: Any) -> Any:
    """Play the chosen action and the deals that the root seat sits out; return what it observed."""
    world = forest.worlds[t, d]
    seat = forest.trees[t].seat
    action = forest.descents[t, d].action
    key = np.int64(observe_action(game, world, action, seat))
    apply(game, world, action)
    while current_seat(game, world) == CHANCE:
        if between_hands(game, forest, t, d) or receives_cards(game, world, seat):
            break
        deal_next(game, world)
        seen = np.int64(observe_chance(game, world, seat))
        key = np.int64(mix(np.uint64(key), np.uint64(seen)) >> U1)
    return key


@inlined
def between_hands(game: Any, forest: Any, t: Any, d: Any) -> Any:
    """Return whether this chance position is between two hands and the equity table is in use."""
    tree = forest.trees[t]
    if forest.has_equity[tree.model] == 0:
        return False
    return equity_index(game, forest.worlds[t, d], side_of(game, tree.seat)) != NO_HAND_END


@inlined
def value_by_equity(game: Any, forest: Any, t: Any, d: Any) -> None:
    """Write 2 p - 1 to the descent's values: of the root's side, and of the others where several.

    With two sides the other has the negative, whatever an estimated table says of its row.
    """
    tree = forest.trees[t]
    own = side_of(game, tree.seat)
    sides = num_sides(game)
    for side in range(sides):
        if side == own or sides > 2:
            row = equity_index(game, forest.worlds[t, d], side)
            forest.values[t, d, side] = 2.0 * forest.equity[tree.model, row] - 1.0
    if sides == 2:
        forest.values[t, d, 1 - own] = -forest.values[t, d, own]


@inlined
def seat_mode(game: Any, plan: Any, root_seat: Any, world: Any) -> Any:
    """Return how another seat's node chooses: BY_TREE or BY_POLICY."""
    partners = side_of(game, current_seat(game, world)) == side_of(game, root_seat)
    mode = plan.partner_mode if partners else plan.opponent_mode
    if mode == BY_HAND:
        return BY_POLICY if by_hand(game, world) else BY_TREE
    return mode


# --- rows for the evaluator -----------------------------------------------------------------------


@inlined
def write_rows(game: Any, forest: Any, batch: Any, plan: Any, t: Any, d: Any) -> None:
    """Write what the descent awaits: a row of the seat to move with its candidates, and one of the
    root seat where that is whose value is wanted; a single row where one serves for both.
    """
    descent = forest.descents[t, d]
    mover = current_seat(game, forest.worlds[t, d])
    seat = mover
    if mover == CHANCE or plan.leaf_value == OF_ROOT_SEAT:
        seat = forest.trees[t].seat
    with_policy = descent.phase == AWAITS_POLICY or descent.expands == 1
    with_value = descent.phase == AWAITS_VALUE and not (with_policy and seat == mover)
    descent.value_seat = seat
    descent.policy_row = NO_ROW
    if with_policy:
        descent.policy_row = write_row(game, forest, batch, plan, (t, d), mover)
        add_candidates(game, forest, batch, plan, t, d)
        descent.value_row = descent.policy_row
        if with_value or descent.phase != AWAITS_VALUE:
            batch.wants_value[descent.policy_row] = 0
    if with_value:
        descent.value_row = write_row(game, forest, batch, plan, (t, d), seat)


@inlined
def write_row(game: Any, forest: Any, batch: Any, plan: Any, at: Any, seat: Any) -> Any:
    """Write a row with ``seat``'s view of the world of descent ``at = (t, d)``; return its index.

    The view is left in ``forest.scratch[0]``; the row has no candidates yet.
    """
    t, d = at
    row = forest.counters[NUM_ROWS]
    forest.counters[NUM_ROWS] = row + 1
    view(game, forest.worlds[t, d], seat, forest.scratch[0])
    observe(game, forest.scratch[0], seat, plan.encoder, batch.observations[row])
    batch.model[row] = forest.trees[t].model
    batch.seats[row] = seat
    batch.worlds[row] = forest.worlds[t, d]
    batch.seeds[row] = next_u64(forest.rngs[t])
    batch.wants_value[row] = 1
    batch.offsets[row + 1] = forest.counters[NUM_CANDIDATES]
    return row


@inlined
def add_candidates(game: Any, forest: Any, batch: Any, plan: Any, t: Any, d: Any) -> None:
    """Give the newest row the legal actions of the descent as candidates."""
    descent = forest.descents[t, d]
    first = forest.counters[NUM_CANDIDATES]
    last = first + descent.num_legal
    actions = forest.legal[t, d]
    out = batch.candidates[first:last]
    describe_actions(game, forest.scratch[0], plan.encoder, actions, descent.num_legal, out)
    batch.candidate_row[first:last] = descent.policy_row
    forest.counters[NUM_CANDIDATES] = last
    batch.offsets[descent.policy_row + 1] = last


@inlined
def check_knowledge(game: Any, forest: Any, plan: Any, t: Any, d: Any) -> None:
    """Count a bad view unless the root seat knows here what it knew at the node's first visit.

    Compared by features: a game may merge actions that differ in nothing that matters (suits).
    """
    index = forest.descents[t, d].node
    seat = forest.trees[t].seat
    view(game, forest.worlds[t, d], seat, forest.scratch[0])
    observe(game, forest.scratch[0], seat, plan.encoder, forest.features)
    known = forest.node_features[t, index]
    first = forest.nodes[t, index].visits == 1
    for i in range(known.shape[0]):
        if first:
            known[i] = forest.features[i]
        elif known[i] != forest.features[i]:
            forest.counters[BAD_VIEWS] += 1
