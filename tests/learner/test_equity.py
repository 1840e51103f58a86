"""The match-equity table.

* Prior weight 50 hands; each hand counts for both sides, so mirrored rows add up to 1.
* The table changes on refresh alone; a steeper level of play moves rows that were never seen.
* It recovers a known table from simulated games; older hands fade; snapshot and refusal.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from learner.equity import HALF_LIFE_HANDS, EquityState, EquityTable

SIZE = 11


def prior(slope: float = 0.2) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Row d is a lead of d - 5; row 10 - d is its mirror image."""
    return 1.0 / (1.0 + np.exp(-slope * (np.arange(SIZE) - SIZE // 2)))


def test_prior_counts_for_fifty_hands() -> None:
    table = EquityTable(np.full(SIZE, 0.5))
    for _ in range(50):
        table.observe(((8, 2),), (1.0, -1.0))
    np.testing.assert_allclose(table.probabilities, 0.5)
    table.refresh()
    assert table.probabilities[8] == pytest.approx((25 + 50) / 100)
    assert table.probabilities[2] == pytest.approx(25 / 100)
    assert table.probabilities[5] == 0.5


def test_draws_are_half_a_win() -> None:
    table = EquityTable(np.full(SIZE, 0.5))
    for _ in range(100):
        table.observe(((8, 2),), (0.0, 0.0))
    table.refresh()
    assert table.probabilities[8] == pytest.approx(0.5)


def test_mirrored_rows_add_up_to_one() -> None:
    generator = np.random.default_rng(0)
    table = EquityTable(prior())
    for _ in range(500):
        rows = tuple((d, SIZE - 1 - d) for d in generator.integers(0, SIZE, 3).tolist())
        score = float(generator.choice([-1.0, 0.0, 1.0]))
        table.observe(rows, (score, -score))
    table.refresh()
    np.testing.assert_allclose(table.probabilities + table.probabilities[::-1], 1.0, atol=1e-9)


def test_slope_carries_the_level_of_play_to_rows_never_seen() -> None:
    truth = prior(slope=0.5)
    generator = np.random.default_rng(1)
    table = EquityTable(prior(slope=0.2))
    for _ in range(3000):
        d = int(generator.choice([3, 4, 6, 7]))  # never 9
        score = 1.0 if generator.random() < truth[d] else -1.0
        table.observe(((d, SIZE - 1 - d),), (score, -score))
    table.refresh()
    assert table.slope == pytest.approx(2.5, abs=0.25)
    assert abs(table.probabilities[9] - truth[9]) < 0.03 < abs(prior(0.2)[9] - truth[9])


def test_known_table_is_recovered_from_games() -> None:
    truth = np.clip(prior(0.5) + 0.1 * np.sin(np.arange(SIZE)), 0.02, 0.98)
    truth = (truth + 1.0 - truth[::-1]) / 2.0
    generator = np.random.default_rng(2)
    table = EquityTable(prior())
    for _ in range(40_000):
        d = int(generator.integers(0, SIZE))
        score = 1.0 if generator.random() < truth[d] else -1.0
        table.observe(((d, SIZE - 1 - d),), (score, -score))
    table.refresh()
    # Standard error of a row is about 0.006 (each row is seen from both sides).
    assert np.max(np.abs(table.probabilities - truth)) < 0.03


def test_older_hands_fade() -> None:
    table = EquityTable(np.full(SIZE, 0.5))
    many = tuple((8, 2) for _ in range(1000))
    for _ in range(int(HALF_LIFE_HANDS / 1000)):
        table.observe(many, (1.0, -1.0))
    table.refresh()
    high = table.probabilities[8]
    for _ in range(int(HALF_LIFE_HANDS / 1000)):
        table.observe(many, (-1.0, 1.0))
    table.refresh()
    assert high > 0.99
    assert table.probabilities[8] == pytest.approx(1.0 / 3.0, abs=0.01)


def test_snapshot_goes_on_where_it_was() -> None:
    table, other = EquityTable(prior()), EquityTable(prior())
    table.observe(((8, 2), (7, 3)), (1.0, -1.0))
    table.refresh()
    table.observe(((6, 4),), (1.0, -1.0))
    other.restore(msgspec.json.decode(msgspec.json.encode(table.state()), type=EquityState))
    assert np.array_equal(other.probabilities, table.probabilities)
    for each in (table, other):
        each.refresh()
    assert np.array_equal(other.probabilities, table.probabilities)
    with pytest.raises(ValueError, match="this game has 3"):
        EquityTable(np.full(3, 0.5)).restore(table.state())


def test_rows_outside_the_table_are_refused() -> None:
    with pytest.raises(ValueError, match="allowed are 0 to 10"):
        EquityTable(prior()).observe(((11, 0),), (1.0, -1.0))
    with pytest.raises(ValueError, match="strictly between"):
        EquityTable(np.array([0.0, 1.0]))
