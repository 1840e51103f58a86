"""The tree's own operations, on trees made by hand.

Behaviours: edges stay in ascending order whatever legal sets come; availability counts the visits
at which an action was legal; the score is PUCT with availability and first-play urgency, priors
renormalised over what is legal, ties by prior and then by order; a child is found by what was
observed; full pools say so and change nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.games.kuhn import STATE
from engine.jit import kernel
from engine.search.select import Plan
from engine.search.tree import (
    NO_EDGE,
    NO_NODE,
    ROOT,
    ForestShape,
    PoolSize,
    choose_edge,
    count_visit,
    find_child,
    merge_legal,
    new_forest,
    new_node,
)

PLAN = Plan(
    exploration=1.5, fpu_reduction=0.2, partner_mode=0, opponent_mode=0, leaf_value=0, encoder=0
)


@kernel
def make_root(forest: Any) -> Any:
    return new_node(forest, 0, NO_NODE, 0)


@kernel
def merge(forest: Any, legal: Any) -> Any:
    forest.legal[0, 0, : len(legal)] = legal
    forest.descents[0, 0].num_legal = len(legal)
    forest.descents[0, 0].node = ROOT
    return merge_legal(forest, 0, 0, ROOT, len(legal))


@kernel
def count(forest: Any) -> Any:
    return count_visit(forest, 0, 0, forest.descents[0, 0].num_legal)


@kernel
def choose(forest: Any, plan: Any) -> Any:
    return choose_edge(forest, plan, 0, 0)


@kernel
def child(forest: Any, edge: Any, key: Any) -> Any:
    return find_child(forest, 0, ROOT, edge, key)


def forest_of(nodes: int = 10, edges: int = 40) -> Any:
    forest = new_forest(
        ForestShape(
            trees=1,
            descents=1,
            pool=PoolSize(nodes, edges),
            actions=8,
            path=4,
            sides=2,
            models=1,
            equity_states=0,
            features=0,
        ),
        STATE,
    )
    assert make_root(forest) == ROOT
    return forest


def visit(forest: Any, *legal: int) -> bool:
    assert merge(forest, np.array(legal, np.int64))
    return bool(count(forest))


def edges_of(forest: Any) -> dict[int, Any]:
    found = {}
    index = int(forest.nodes[0, ROOT].first_edge)
    while index != NO_EDGE:
        edge = forest.edges[0, index]
        found[int(edge.action)] = edge
        index = int(edge.next_edge)
    return found


def test_edges_stay_in_order_and_availability_counts_where_an_action_was_legal() -> None:
    forest = forest_of()
    visit(forest, 30, 50)
    visit(forest, 10, 30, 70)
    visit(forest, 50)
    visit(forest, 10, 20, 30, 40, 50, 60, 70, 80)
    edges = edges_of(forest)
    assert list(edges) == [10, 20, 30, 40, 50, 60, 70, 80]
    availability = {action: int(edge.availability) for action, edge in edges.items()}
    assert availability == {10: 2, 20: 1, 30: 3, 40: 1, 50: 3, 60: 1, 70: 2, 80: 1}


def test_a_visit_says_whether_every_legal_action_has_a_prior() -> None:
    forest = forest_of()
    assert not visit(forest, 1, 2)
    for edge in edges_of(forest).values():
        edge.prior, edge.num_priors = 0.5, 1
    assert visit(forest, 1, 2)
    assert not visit(forest, 1, 3)
    assert visit(forest, 2)


def test_score_is_puct_with_availability_and_priors_of_what_is_legal() -> None:
    random = np.random.default_rng(7)
    for _ in range(300):
        forest = forest_of()
        actions = sorted(random.choice(90, size=8, replace=False).tolist())
        merge(forest, np.array(actions, np.int64))
        for edge in edges_of(forest).values():
            edge.visits = int(random.integers(0, 5))
            edge.value_sum = float(random.uniform(-1, 1)) * edge.visits
            edge.availability = int(random.integers(5, 60))
            edge.prior = random.uniform(0.01, 1)
        root = forest.nodes[0, ROOT]
        root.returned, root.value_sum = 20, float(random.uniform(-20, 20))
        legal = sorted(random.choice(actions, size=int(random.integers(2, 8)), replace=False))
        merge(forest, np.array(legal, np.int64))
        edges = edges_of(forest)
        total = sum(float(edges[action].prior) for action in legal)
        scores = []
        for action in legal:
            edge = edges[action]
            value = root.value_sum / 20 - 0.2
            if edge.visits:
                value = edge.value_sum / edge.visits
            # The visit that asks is already counted in the availability; it does not count yet.
            bonus = 1.5 * float(edge.prior) / total * math.sqrt(edge.availability - 1)
            scores.append(value + bonus / (1 + edge.visits))
        assert choose(forest, PLAN) == int(np.argmax(scores))


def test_an_action_is_explored_by_its_own_availability_and_not_by_the_visits_of_the_node() -> None:
    forest = forest_of()
    merge(forest, np.array([1, 2], np.int64))
    rare, common = edges_of(forest)[1], edges_of(forest)[2]
    for edge in (rare, common):
        edge.prior, edge.num_priors, edge.visits, edge.value_sum = 0.5, 1, 3, 0.0
    rare.availability, common.availability = 5, 101
    assert choose(forest, PLAN) == 1
    rare.availability, common.availability = 101, 5
    assert choose(forest, PLAN) == 0


def test_first_play_urgency_is_the_value_of_the_node_minus_the_reduction() -> None:
    for seen, expected in ((0.25, 0), (0.35, 1)):
        # Without exploration the unvisited action counts as 0.5 - 0.2.
        forest = forest_of()
        merge(forest, np.array([1, 2], np.int64))
        new, visited = edges_of(forest)[1], edges_of(forest)[2]
        new.availability = visited.availability = 5
        new.prior = visited.prior = 0.5
        visited.visits, visited.value_sum = 4, 4 * seen
        forest.nodes[0, ROOT].returned, forest.nodes[0, ROOT].value_sum = 4, 2.0
        assert choose(forest, PLAN._replace(exploration=0.0)) == expected


def test_ties_go_by_prior_and_then_by_order() -> None:
    forest = forest_of()
    merge(forest, np.array([1, 2, 3], np.int64))
    for edge, prior in zip(edges_of(forest).values(), (0.2, 0.4, 0.4), strict=True):
        edge.prior, edge.availability = prior, 1  # no earlier visit: all bonuses are 0
    assert choose(forest, PLAN) == 1


def test_children_are_told_apart_by_what_was_observed() -> None:
    forest = forest_of()
    merge(forest, np.array([1, 2], np.int64))
    first = child(forest, 0, 5)
    assert child(forest, 1, 5) == first  # another action that looks the same
    second = child(forest, 0, 6)
    assert second != first
    assert [child(forest, 0, 5), child(forest, NO_EDGE, 6)] == [first, second]
    assert forest.trees[0].num_nodes == 3


def test_a_full_node_pool_gives_no_child_but_still_finds_old_ones() -> None:
    forest = forest_of(nodes=2)
    merge(forest, np.array([1], np.int64))
    known = child(forest, 0, 1)
    assert known != NO_NODE
    assert child(forest, 0, 2) == NO_NODE
    assert child(forest, 0, 1) == known


def test_a_full_edge_pool_refuses_and_keeps_what_is_there() -> None:
    forest = forest_of(edges=3)
    visit(forest, 2, 4)
    assert not merge(forest, np.array([1, 3, 4], np.int64))
    assert merge(forest, np.array([2, 4], np.int64))
    edges = edges_of(forest)
    assert [int(edges[action].availability) for action in (2, 4)] == [1, 1]


def test_priors_that_vanish_are_uniform() -> None:
    forest = forest_of()
    merge(forest, np.array([1, 2], np.int64))
    edges = edges_of(forest)
    for edge in edges.values():
        edge.availability, edge.visits, edge.value_sum = 26, 1, 0.0
    edges[1].visits = 2
    assert choose(forest, PLAN) == 1
