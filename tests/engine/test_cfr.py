"""CFR+ on Kuhn: it finds an equilibrium, and says honestly how far away it is.

* exploitability falls below 0.01 and the value tends to -1/18
* the average lies in Kuhn's equilibrium family; dominated actions vanish
* running in two parts equals running in one
* brute force over all pure strategies agrees with the reported exploitability
"""

from __future__ import annotations

import numpy as np
import pytest

from engine import exact
from engine.game import get_spec
from engine.search.cfr import CfrSolver
from tests.naive import kuhn as naive

SPEC = get_spec("kuhn")
TREE = exact.enumerate_game(SPEC.make())


def bets_of(solver: CfrSolver) -> dict[tuple[str, str], float]:
    bets = {}
    for key, row in solver.average_policy().items():
        view = TREE.infosets[TREE.index[key]].view
        history = "".join("pb"[move] for move in view.history[: view.num_plies])
        bets[naive.CARDS[view.cards[key[0]]], history] = float(row[1])
    return bets


def test_average_policy_reaches_the_equilibrium_of_kuhn() -> None:
    solver = CfrSolver(TREE)
    start = solver.exploitability()
    assert start == pytest.approx(11 / 24)
    solver.run(500)
    assert solver.exploitability() < 0.001
    assert solver.value() == pytest.approx(-1 / 18, abs=0.001)
    bets = bets_of(solver)
    alpha = bets["J", ""]
    assert -1e-9 <= alpha <= 1 / 3 + 0.01
    wanted = naive.equilibrium(alpha)
    for (card, history), bet in bets.items():
        assert bet == pytest.approx(wanted(card, history), abs=0.03), (card, history)


def test_exploitability_below_a_hundredth_agrees_with_all_pure_strategies() -> None:
    solver = CfrSolver(TREE)
    solver.run(100)
    bets = bets_of(solver)
    by_hand = naive.exploitability(lambda card, history: bets[card, history])
    assert solver.exploitability() == pytest.approx(by_hand, abs=1e-12)
    assert by_hand < 0.01


def test_dominated_actions_vanish() -> None:
    solver = CfrSolver(TREE)
    solver.run(300)
    bets = bets_of(solver)
    for card, history, bet in (("J", "b", 0), ("J", "pb", 0), ("K", "b", 1), ("K", "pb", 1)):
        assert bets[card, history] == pytest.approx(bet, abs=0.001), (card, history)


def test_two_runs_in_a_row_equal_one_long_run() -> None:
    whole, parts = CfrSolver(TREE), CfrSolver(TREE)
    whole.run(40)
    parts.run(15)
    parts.run(25)
    for key, row in whole.average_policy().items():
        assert np.array_equal(row, parts.average_policy()[key])
    with pytest.raises(ValueError, match="num_iterations = -1"):
        whole.run(-1)
