"""Information-set search the obvious way: dictionaries, one simulation after the other.

Imports nothing of ``engine``: the rules, the random numbers and the evaluator are handed in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CHANCE, TERMINAL = -1, -2

Answer = tuple[list[float], list[float]]
"""Logits of the candidates, and values: own side first."""


@dataclass
class Edge:
    visits: int = 0
    total: float = 0.0
    available: int = 0
    priors: list[float] = field(default_factory=list)

    def prior(self) -> float:
        return sum(self.priors) / len(self.priors)


@dataclass
class Node:
    visits: int = 0
    returned: int = 0
    total: float = 0.0
    valued: bool = False
    edges: dict[int, Edge] = field(default_factory=dict)
    children: dict[tuple[int, ...], Node] = field(default_factory=dict)


@dataclass
class NaiveSearch:
    """One tree. ``evaluate(world, seat, legal)`` answers a row; ``legal`` is empty for a value."""

    rules: Any
    random: Any
    game: Any
    view: Any
    seat: int
    rng: Any
    evaluate: Callable[[Any, int, list[int]], Answer]
    max_actions: int
    partner: str = "tree"
    opponents: str = "tree"
    leaf_value: str = "mover"
    exploration: float = 1.5
    fpu_reduction: float = 0.2
    equity: Any = None
    root: Node = field(default_factory=Node)

    def run(self, simulations: int) -> None:
        for _ in range(simulations + 1):  # the first one evaluates the root
            self.simulate()

    def simulate(self) -> None:
        world = self.view.copy()
        self.rules.determinize(self.game, self.view, self.seat, self.rng, world)
        node: Node | None = self.root
        path: list[tuple[Node, int, Edge | None]] = []
        values: list[float] | None = None
        while values is None:
            mover = int(self.rules.current_seat(self.game, world))
            if mover == TERMINAL:
                out = np.zeros(int(self.rules.num_sides(self.game)))
                self.rules.returns(self.game, world, out)
                values, node = list(out), None
            elif mover == CHANCE:
                values, node = self.value_between_deals(world), None
            else:
                assert node is not None
                values, action, edge = self.visit(node, world, mover)
                if values is None:
                    path.append((node, int(self.rules.side_of(self.game, mover)), edge))
                    if edge is not None:
                        edge.visits += 1
                    key = self.play(world, action)
                    node = node.children.setdefault(key, Node())
        if node is not None:
            mover = int(self.rules.current_seat(self.game, world))
            path.append((node, int(self.rules.side_of(self.game, mover)), None))
        for passed, side, taken in path:
            passed.returned += 1
            passed.total += values[side]
            if taken is not None:
                taken.total += values[side]

    def visit(
        self, node: Node, world: Any, mover: int
    ) -> tuple[list[float] | None, int, Edge | None]:
        node.visits += 1
        buffer = np.zeros(self.max_actions, np.int64)
        count = int(self.rules.legal_actions(self.game, world, buffer))
        legal = [int(action) for action in buffer[:count]]
        own = mover == self.seat
        partners = self.rules.side_of(self.game, mover) == self.rules.side_of(self.game, self.seat)
        mode = self.partner if partners else self.opponents
        by_hand = mode == "by_hand" and bool(self.rules.by_hand(self.game, world))
        if not own and (mode == "policy" or by_hand):
            if count == 1:
                return None, legal[0], None
            if not node.valued:
                node.valued = True
                return self.value(world, mover, None), 0, None
            return None, self.draw(world, mover, legal), None
        for action in legal:
            node.edges.setdefault(action, Edge()).available += 1
        missing = any(not node.edges[action].priors for action in legal)
        if count > 1 and missing:
            first = not node.valued
            node.valued = True
            logits, answer = self.ask(world, mover, legal)
            for action, share in zip(legal, softmax(logits), strict=True):
                node.edges[action].priors.append(share)
            if first:
                return self.value(world, mover, answer), 0, None
        action = legal[0] if count == 1 else self.choose(node, legal)
        return None, action, node.edges[action]

    def choose(self, node: Node, legal: list[int]) -> int:
        total = sum(node.edges[action].prior() for action in legal)

        def score(action: int) -> tuple[float, float, int]:
            edge = node.edges[action]
            quality = node.total / node.returned - self.fpu_reduction
            if edge.visits:
                quality = edge.total / edge.visits
            bonus = self.exploration * edge.prior() / total * math.sqrt(edge.available - 1)
            return quality + bonus / (1 + edge.visits), edge.prior(), -action

        return max(legal, key=score)

    def play(self, world: Any, action: int) -> tuple[int, ...]:
        key = [int(self.rules.observe_action(self.game, world, action, self.seat))]
        self.rules.apply(self.game, world, action)
        while self.rules.current_seat(self.game, world) == CHANCE:
            if self.hand_value(world) or self.rules.receives_cards(self.game, world, self.seat):
                break
            self.rules.deal_next(self.game, world)
            key.append(int(self.rules.observe_chance(self.game, world, self.seat)))
        return tuple(key)

    def hand_value(self, world: Any) -> list[float]:
        """Value per side between two hands, by the equity table; empty elsewhere."""
        if self.equity is None or self.rules.equity_index(self.game, world, 0) < 0:
            return []
        sides = int(self.rules.num_sides(self.game))
        rows = [self.rules.equity_index(self.game, world, side) for side in range(sides)]
        values = [2.0 * float(self.equity[row]) - 1.0 for row in rows]
        if sides == 2:
            own = int(self.rules.side_of(self.game, self.seat))
            values[1 - own] = -values[own]
        return values

    def value_between_deals(self, world: Any) -> list[float]:
        by_table = self.hand_value(world)
        return by_table or self.spread(self.seat, self.ask(world, self.seat, [])[1])

    def value(self, world: Any, mover: int, answer: list[float] | None) -> list[float]:
        seat = mover if self.leaf_value == "mover" else self.seat
        if answer is None or seat != mover:
            answer = self.ask(world, seat, [])[1]
        return self.spread(seat, answer)

    def ask(self, world: Any, seat: int, legal: list[int]) -> Answer:
        self.random.next_u64(self.rng)  # the row's own random bits
        return self.evaluate(world, seat, legal)

    def draw(self, world: Any, mover: int, legal: list[int]) -> int:
        shares = softmax(self.ask(world, mover, legal)[0])
        threshold = self.random.uniform(self.rng)
        reached = 0.0
        for action, share in zip(legal, shares, strict=True):
            reached += share
            if threshold < reached:
                return action
        return legal[-1]

    def spread(self, seat: int, answer: list[float]) -> list[float]:
        sides = int(self.rules.num_sides(self.game))
        own = int(self.rules.side_of(self.game, seat))
        if sides == 2:
            answer = [answer[0], -answer[0]]
        return [answer[(side - own) % sides] for side in range(sides)]


def softmax(logits: list[float]) -> list[float]:
    weights = [math.exp(logit - max(logits)) for logit in logits]
    return [weight / sum(weights) for weight in weights]
