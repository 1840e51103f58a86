"""Features of stored views.

* Observations and candidates are what the game's own functions give, row by row.
* Rows without a policy target get no candidates; another number of legal actions is refused.
"""

from __future__ import annotations

import numpy as np
import pytest

from engine import rules
from learner.batches import draw, make_batch, newest_share
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
    assert made.policy_weight.tolist() == [1.0] * 32 + [0.0] * 16
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


def test_sampled_share_starts_at_its_positions_and_grows_sublinearly() -> None:
    options = config(sampled_positions=1_000)
    assert newest_share(500, 500, options) == 1.0  # no more than there is
    assert newest_share(1_000, 1_000, options) == 1.0
    # N = 16 c: c (1 + 0.4 (16 ** 0.75 - 1) / 0.75) = c (1 + 0.4 * 7 / 0.75).
    assert newest_share(16_000, 16_000, options) == pytest.approx((1 + 2.8 / 0.75) / 16)
    positions = [newest_share(n, n, options) * n for n in range(1_000, 50_000, 1_000)]
    grown = np.diff(positions)
    assert np.all(grown > 0)
    assert np.all(np.diff(grown) < 0)
    # A window that forgets old games: the share is one of what it holds.
    assert newest_share(10**7, 5_000, options) == 1.0


def test_whole_window_is_sampled_without_the_option() -> None:
    assert newest_share(10**6, 10**6, config(sampled_positions=0)) == 1.0


def test_draw_takes_the_newest_share_of_both_kinds_of_examples() -> None:
    window = filled_window()
    options = config(batch_size=400, value_only_share=1.0)
    slots = draw(window, np.random.default_rng(2), options, 0.25)
    for drawn, ring in ((slots[:400], window._eligible), (slots[400:], window._values)):
        newest = ring.by_age(np.arange(ring.count))[-int(np.ceil(ring.count / 4)) :]
        assert set(drawn.tolist()) == set(newest.tolist())


def test_without_value_only_examples_a_batch_is_the_eligible_ones() -> None:
    window = filled_window()
    slots = draw(window, np.random.default_rng(2), config(batch_size=32, value_only_share=0.0))
    assert len(slots) == 32
