"""The compiled search against its obvious twin, simulation by simulation.

Behaviours: visits, values and priors of every root action agree, for every seat mode and leaf
value, in a two-sided game, a game of two teams with hands and an equity table, and a three-sided
game with face-down moves, moves that are forced in some worlds only, and deals on the way; in a
game with bids and discards also where others make those by policy and all else by their nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import rng, rules
from engine.game import get_spec
from engine.search.ismcts import Search, search_options
from engine.search.rollout import HashingEvaluator
from tests.engine.searching import (
    Positions,
    cuarenta_positions,
    kuhn_positions,
    one_row_answers,
    played_positions,
    relay_positions,
    search_all,
)
from tests.naive.search import NaiveSearch

OPTIONS = [
    {},
    {"opponents": "policy"},
    {"partner": "policy"},
    {"leaf_value": "root_seat"},
    {"partner": "policy", "opponents": "policy", "leaf_value": "root_seat"},
]


def assert_like_twin(
    positions: Positions, simulations: int, words: dict[str, str], equity: Any = None
) -> None:
    evaluator = HashingEvaluator(salt=5)
    search = Search(
        positions.spec,
        positions.game,
        positions.spec.encoders[0],
        search_options(**words),  # type: ignore[arg-type]
        num_trees=len(positions),
        max_simulations=simulations,
        check_views=True,
    )
    search.set_equity(0, equity)
    found = search_all(search, evaluator, positions, simulations)
    assert search.num_pool_full == 0
    for row in range(len(positions)):
        twin = NaiveSearch(
            rules=rules,
            random=rng,
            game=positions.game,
            view=positions.views[row],
            seat=int(positions.seats[row]),
            rng=rng.make_rng(0, row),
            evaluate=one_row_answers(positions, evaluator),
            max_actions=positions.spec.max_actions,
            equity=equity,
            **words,  # type: ignore[arg-type]
        )
        twin.run(simulations)
        count = found.counts[row]
        edges = twin.root.edges
        assert list(edges) == found.actions[row, :count].tolist()
        assert [edge.visits for edge in edges.values()] == found.visits[row, :count].tolist()
        priors = [edge.prior() for edge in edges.values()]
        np.testing.assert_allclose(priors, found.priors[row, :count], rtol=1e-6)
        assert twin.root.total / twin.root.returned == pytest.approx(found.values[row], abs=1e-12)


@pytest.mark.parametrize("words", OPTIONS, ids=str)
def test_kuhn_search_agrees_with_its_twin(words: dict[str, str]) -> None:
    assert_like_twin(kuhn_positions(), 200, words)


@pytest.mark.parametrize("words", OPTIONS, ids=str)
def test_three_sided_search_agrees_with_its_twin(words: dict[str, str]) -> None:
    assert_like_twin(relay_positions(12), 300, words)


@pytest.mark.parametrize("words", OPTIONS, ids=str)
def test_team_game_search_agrees_with_its_twin(words: dict[str, str]) -> None:
    assert_like_twin(cuarenta_positions(6), 120, words)


def test_search_of_a_game_with_bids_agrees_with_its_twin() -> None:
    spec = get_spec("forty_fives")
    game = spec.make()
    positions = played_positions(spec, game, 8)
    by_hand = [bool(rules.by_hand(game, view)) for view in positions.views]
    assert 2 <= sum(by_hand) <= 6
    assert_like_twin(positions, 60, {"partner": "by_hand", "opponents": "by_hand"})


def test_search_with_an_equity_table_agrees_with_its_twin() -> None:
    positions = cuarenta_positions(8, seed=3)
    table = np.random.default_rng(0).random(positions.spec.num_equity_states)
    assert_like_twin(positions, 150, {}, table)
