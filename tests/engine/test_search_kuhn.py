"""The search against exact values of Kuhn poker, computed here over all worlds.

Behaviours: against opponents that play by a fixed policy it converges to the best response at every
information set, whatever that policy is; outcomes have the right sign for both seats; the most
visited move is never a dominated one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.evaluation import EvalBatch
from engine.search.ismcts import Search, search_options
from engine.search.rollout import ConstantEvaluator, RolloutEvaluator
from tests.engine.searching import Positions, begin, kuhn_positions, read, search_all

PASS, BET = 0, 1


class FixedPolicy:
    """Bets with one probability everywhere; knows nothing of values."""

    def __init__(self, bet: float) -> None:
        self._logits = np.log(np.array([1.0 - bet, bet], np.float32))

    def evaluate(self, batch: EvalBatch, num_rows: int, num_candidates: int) -> None:
        chosen = batch.candidates[:num_candidates].argmax(axis=1)
        batch.logits[:num_candidates] = self._logits[chosen]
        batch.values[:num_rows] = 0.0


def best_response(positions: Positions, row: int, bet: float) -> float:
    """Return the exact value of the position for its seat against a policy that bets so often."""
    view, seat = positions.views[row], int(positions.seats[row])
    worlds = []
    for card in range(3):
        if card != view.cards[seat]:
            world = view.copy()
            world.cards[1 - seat] = card
            worlds.append(world)
    # Both are equally likely: what the other seat did does not depend on its card here.
    return response(positions.game, worlds, seat, bet)


def response(game: Any, worlds: list[Any], seat: int, bet: float) -> float:
    mover = rules.current_seat(game, worlds[0])
    if mover == rules.TERMINAL:
        total = 0.0
        for world in worlds:
            out = np.zeros(2)
            rules.returns(game, world, out)
            total += out[seat]
        return total / len(worlds)
    values = []
    for action in (PASS, BET):
        after = [world.copy() for world in worlds]
        for world in after:
            rules.apply(game, world, action)
        values.append(response(game, after, seat, bet))
    return max(values) if mover == seat else (1.0 - bet) * values[PASS] + bet * values[BET]


@pytest.mark.parametrize("bet", [0.5, 0.2])
def test_policy_mode_converges_to_the_best_response_at_every_information_set(bet: float) -> None:
    positions = kuhn_positions()
    simulations = 60_000
    search = Search(
        positions.spec,
        positions.game,
        positions.spec.encoders[0],
        search_options(opponents="policy"),
        num_trees=12,
        max_simulations=simulations,
        descents=64,
    )
    evaluator = ConstantEvaluator() if bet == 0.5 else FixedPolicy(bet)
    found = search_all(search, evaluator, positions, simulations)
    for row in range(12):
        exact = best_response(positions, row, bet)
        chosen = found.visits[row].argmax()
        assert found.action_values[row, chosen] == pytest.approx(exact, abs=0.02)
        assert found.values[row] == pytest.approx(exact, abs=0.02)


def test_outcomes_have_the_right_sign_for_both_seats() -> None:
    positions = kuhn_positions()
    search = Search(
        positions.spec,
        positions.game,
        positions.spec.encoders[0],
        num_trees=12,
        max_simulations=100,
    )
    found = search_all(search, ConstantEvaluator(), positions, 100)
    facing_bet = {
        row: int(positions.views[row].cards[positions.seats[row]]) for row in range(6, 12)
    }
    for row, card in facing_bet.items():
        assert found.action_values[row, PASS] == -1.0
        if card == 0:
            assert found.action_values[row, BET] == -2.0
        if card == 2:
            assert found.action_values[row, BET] == 2.0


@pytest.mark.parametrize("descents", [1, 8])
@pytest.mark.parametrize("opponents", ["tree", "policy"])
def test_most_visited_move_is_never_dominated(opponents: str, descents: int) -> None:
    positions = kuhn_positions()
    evaluator = RolloutEvaluator(positions.spec, positions.game)
    search = Search(
        positions.spec,
        positions.game,
        positions.spec.encoders[0],
        search_options(opponents=opponents),
        num_trees=12,
        max_simulations=400,
        descents=descents,
    )
    for seed in range(20):
        begin(search, positions, 400, seed=seed)
        search.run(evaluator)
        best = read(search, np.arange(12)).best
        for row in range(6, 12):  # facing a bet
            card = int(positions.views[row].cards[positions.seats[row]])
            assert card != 0 or best[row] == PASS
            assert card != 2 or best[row] == BET
        assert best[5] == BET  # the king after a pass
