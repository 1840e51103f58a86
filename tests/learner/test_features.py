"""Features of stored views.

* Observations and candidates are what the game's own functions give, row by row.
* Rows without a policy target get no candidates; another number of legal actions is refused.
"""

from __future__ import annotations

import numpy as np
import pytest

from engine import rules
from learner.batches import draw, make_batch
from learner.features import FeatureMaker
from replay.trajectory import POLICY
from replay.window import Window
from tests.learner.kuhn_data import ENCODER, GAME, SPEC, VISITS, bet_share, config, play


def filled_window(num_games: int = 40) -> Window:
    window = Window(SPEC, GAME, capacity=500)
    generator = np.random.default_rng(3)
    for _ in range(num_games):
        window.add(play(generator, version=7), "1-0")
    return window


def test_features_are_what_the_game_gives_row_by_row() -> None:
    window = filled_window()
    batch = window.gather(window.sample(np.random.default_rng(1), 50))
    batch.examples["num_actions"][::3] = 0
    made = FeatureMaker(SPEC, GAME, ENCODER).make(
        batch.views, batch.examples["seat"], batch.examples["num_actions"]
    )
    start = 0
    actions = np.zeros(SPEC.max_actions, np.int64)
    for i in range(50):
        view, seat = batch.views[i], int(batch.examples["seat"][i])
        observation = np.zeros(ENCODER.observation_size, np.float32)
        rules.observe(GAME, view, seat, ENCODER.code, observation)
        assert np.array_equal(made.observations[i], observation)
        own = made.candidate_row == i
        if i % 3 == 0:
            assert not own.any()
            continue
        count = int(rules.legal_actions(GAME, view, actions))
        candidates = np.zeros((count, ENCODER.action_size), np.float32)
        rules.describe_actions(GAME, view, ENCODER.code, actions, count, candidates)
        assert np.array_equal(made.candidates[own], candidates)
        assert np.flatnonzero(own).tolist() == list(range(start, start + count))
        start += count
    assert start == len(made.candidates)


def test_another_number_of_legal_actions_is_refused() -> None:
    view = SPEC.new_states(1)
    with pytest.raises(ValueError, match="3 visit counts, its view has 2 legal actions"):
        FeatureMaker(SPEC, GAME, ENCODER).make(view, np.array([0]), np.array([3]))


def test_batch_holds_eligible_then_value_only_rows_with_normalised_visits() -> None:
    window = filled_window()
    options = config(batch_size=32, value_only_share=0.5)
    slots = draw(window, np.random.default_rng(2), options)
    batch = window.gather(slots)
    made = make_batch(batch, FeatureMaker(SPEC, GAME, ENCODER), options, None, bootstrap=False)
    policy = (batch.examples["flags"] & POLICY) != 0
    assert policy.tolist() == [True] * 32 + [False] * 16
    assert made.num_policy_rows == 32
    assert made.value_weight.tolist() == [1.0] * 48
    assert made.mean_version == 7.0
    rows = made.features.candidate_row
    np.testing.assert_allclose(
        np.bincount(rows, weights=made.visit_shares, minlength=48), [1.0] * 32 + [0.0] * 16
    )
    for i in range(32):
        view, seat = batch.views[i], int(batch.examples["seat"][i])
        plies = int(view.num_plies)
        facing = plies > 0 and int(view.history[plies - 1]) == 1
        expected = round(bet_share(int(view.cards[seat]), facing) * VISITS) / VISITS
        assert made.visit_shares[rows == i][1] == pytest.approx(expected)


def test_without_value_only_examples_a_batch_is_the_eligible_ones() -> None:
    window = filled_window()
    slots = draw(window, np.random.default_rng(2), config(batch_size=32, value_only_share=0.0))
    assert len(slots) == 32
