"""Kuhn and Leduc poker against OpenSpiel: every node of both games has the same legal actions,
seat to move and returns, and the probability of every deal is the same.

Skipped where OpenSpiel is not installed (it has wheels for few platforms).
"""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.game import get_spec

if importlib.util.find_spec("pyspiel") is None:
    pytest.skip("OpenSpiel is not installed (package open_spiel)", allow_module_level=True)

import pyspiel

GAMES = {"kuhn": "kuhn_poker", "leduc": "leduc_poker"}
MOVES = {"kuhn": {0: 0, 1: 1}, "leduc": {0: 0, 1: 1, 2: 2}}
"""Their code of each of our actions: pass and bet; fold, call and raise."""
NUM_NODES = {"kuhn": 54, "leduc": 9300}
"""Nodes of each game in which a seat is to move or that are final, suits told apart."""


def ranks_of(name: str, cards: list[int]) -> tuple[int, ...]:
    """Return the ranks of OpenSpiel's cards; those of Leduc are rank * 2 + suit."""
    return tuple(card // 2 if name == "leduc" else card for card in cards)


class Walk:
    """Both games side by side, from every deal to every end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec = get_spec(name)
        self.game = self.spec.make()
        self.theirs = pyspiel.load_game(GAMES[name])
        self.actions = np.zeros(self.spec.max_actions, np.int64)
        self.num_nodes = 0
        self.starts: dict[tuple[int, ...], Any] = {}
        """First positions by the ranks dealt, and by the first two of them."""
        assert self.spec.initial_states is not None
        for _, start in self.spec.initial_states(self.game):
            dealt = tuple(int(card) for card in start.cards)
            self.starts[dealt] = start
            if name == "leduc":
                self.starts[(*dealt, int(start.board))] = start

    def ours(self, cards: list[int], moves: list[int | None]) -> Any:
        """Return our state after a deal and moves; None stands for a card turned up."""
        mine = self.spec.new_states(1)
        mine[0] = self.starts[ranks_of(self.name, cards)]
        for move in moves:
            if move is None:
                rules.deal_next(self.game, mine[0])
            else:
                rules.apply(self.game, mine[0], move)
        return mine[0]

    def visit(self, state: Any, cards: list[int], moves: list[int | None]) -> None:
        """Compare a node and go on to its children."""
        if state.is_chance_node():
            if len(cards) == 2:
                mine = self.ours(cards, moves)
                assert rules.current_seat(self.game, mine) == rules.CHANCE
                moves = [*moves, None]
            for card, _ in state.chance_outcomes():
                self.visit(state.child(card), [*cards, card], moves)
            return
        self.num_nodes += 1
        mine = self.ours(cards, moves)
        if state.is_terminal():
            assert rules.current_seat(self.game, mine) == rules.TERMINAL
            outcome = np.zeros(2)
            rules.returns(self.game, mine, outcome)
            assert outcome.tolist() == state.returns()
            return
        assert rules.current_seat(self.game, mine) == state.current_player()
        count = rules.legal_actions(self.game, mine, self.actions)
        legal = [int(code) for code in self.actions[:count]]
        assert [MOVES[self.name][code] for code in legal] == state.legal_actions()
        for code in legal:
            self.visit(state.child(MOVES[self.name][code]), cards, [*moves, code])


@pytest.mark.parametrize("name", list(GAMES))
def test_every_node_has_the_same_legal_actions_and_returns(name: str) -> None:
    walk = Walk(name)
    walk.visit(walk.theirs.new_initial_state(), [], [])
    assert walk.num_nodes == NUM_NODES[name]


@pytest.mark.parametrize("name", list(GAMES))
def test_every_deal_has_the_same_probability(name: str) -> None:
    walk = Walk(name)
    theirs: dict[tuple[int, ...], float] = defaultdict(float)

    def deal(state: Any, cards: list[int], probability: float) -> None:
        if not state.is_chance_node():
            theirs[ranks_of(name, cards)] += probability
            return
        for card, share in state.chance_outcomes():
            deal(state.child(card), [*cards, card], probability * share)

    deal(walk.theirs.new_initial_state(), [], 1.0)
    ours: dict[tuple[int, ...], float] = defaultdict(float)
    assert walk.spec.initial_states is not None
    for probability, state in walk.spec.initial_states(walk.game):
        ours[tuple(int(card) for card in state.cards)] += probability
    assert ours == pytest.approx(theirs)
