"""Roots that are special, and their noise.

Behaviours: a forced root is finished at once; 0 simulations are the policy alone; a slot may be
begun again at any time; noise is drawn anew each search, only where asked, and is Dirichlet.
"""

from __future__ import annotations

import numpy as np
import pytest

from engine import rules
from engine.search.rollout import ConstantEvaluator, HashingEvaluator
from tests.engine.searching import (
    assert_same,
    begin,
    cuarenta_positions,
    kuhn_positions,
    new_search,
    read,
    relay_positions,
    search_all,
)


def test_a_forced_root_is_finished_at_once_without_a_value() -> None:
    positions = relay_positions(1)
    view = positions.spec.new_state()
    rules.deal(positions.game, view, np.uint64(3))
    view.cards[0], view.cards[1], view.cards[2] = 0, -1, -1
    positions.views[0] = view
    positions.seats[0] = 0
    search = new_search(positions)
    begin(search, positions, 64)
    assert search.finished().tolist() == [0]
    found = read(search, [0])
    assert found.counts[0] == 1
    assert found.visits[0].tolist() == [1, 0, 0]
    assert np.isnan(found.values[0])
    assert search.step(ConstantEvaluator()) == 0
    assert search.num_simulations == 0


def test_zero_simulations_are_one_evaluation_and_the_first_choice_of_the_policy() -> None:
    positions = cuarenta_positions(10)
    search = new_search(positions, simulations=0)
    found = search_all(search, HashingEvaluator(), positions, 0)
    assert search.num_rows_evaluated == 10
    assert search.num_simulations == 0
    for row in range(10):
        priors = found.priors[row, : found.counts[row]]
        assert priors.sum() == pytest.approx(1.0, abs=1e-6)
        assert found.visits[row].sum() == 1
        assert found.visits[row].argmax() == priors.argmax()
        assert found.best[row] == found.actions[row, priors.argmax()]
        assert -1.0 < found.values[row] < 1.0


def test_a_slot_can_be_begun_again_while_it_runs() -> None:
    positions = relay_positions(4)
    evaluator = HashingEvaluator()
    search = new_search(positions)
    expected = search_all(search, evaluator, positions, 64)
    begin(search, positions, 64, seed=9)
    search.step(evaluator)
    again = search_all(search, evaluator, positions, 64)
    assert_same(expected, again)


# --- noise ----------------------------------------------------------------------------------------


def test_noise_is_drawn_anew_each_search_and_only_where_asked() -> None:
    positions = cuarenta_positions(20)
    search = new_search(positions)
    evaluator = HashingEvaluator()
    plain_priors = search_all(search, evaluator, positions, 0).priors
    noisy = []
    for seed in (1, 2):
        begin(search, positions, 0, noise=0.25, seed=seed)
        search.run(evaluator)
        noisy.append(read(search, np.arange(20)).priors)
    np.testing.assert_allclose(noisy[0].sum(axis=1), 1.0, atol=1e-5)
    assert np.all(noisy[0] >= 0.75 * plain_priors - 1e-6)
    assert not np.allclose(noisy[0], noisy[1], atol=1e-3)
    # Recovered from the mixture, the noise is a distribution over the legal actions of its own.
    noise = (noisy[0] - 0.75 * plain_priors) / 0.25
    np.testing.assert_allclose(noise.sum(axis=1), 1.0, atol=1e-4)


def test_root_noise_has_the_moments_of_a_dirichlet_distribution() -> None:
    positions = kuhn_positions()
    rows = np.zeros(4000, np.int64)
    search = new_search(positions, trees=4000, simulations=0)
    search.begin(
        np.arange(4000),
        positions.views[rows],
        positions.seats[rows],
        np.zeros(4000, np.int32),
        np.zeros(4000, np.int64),
        np.arange(4000).astype(np.uint64) << np.uint64(32),
        np.ones(4000),
        0.6,
    )
    search.run(ConstantEvaluator())
    share = read(search, np.arange(4000)).priors[:, 0]
    variance = 0.25 / (2 * 0.6 + 1)  # a Beta(0.6, 0.6) variable
    assert abs(share.mean() - 0.5) < 4 * np.sqrt(variance / 4000)
    assert abs(share.var() / variance - 1.0) < 0.1
