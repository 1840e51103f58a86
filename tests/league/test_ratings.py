"""Behaviours of the ratings:

* planted strengths lie within their intervals in about 95 % of cases, for few and many pairs
* a version that won everything, and one that never met the anchor, have finite, wide ratings
* the maximum is the one of a general optimiser; draws count as half
* results add up whoever comes first; old versions are forgotten, the pool never is
* the next pair is the one that tells most
"""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.optimize import minimize

from league.messages import ANCHOR, PairTally, RatingTable
from league.ratings import (
    ELO_PER_NAT,
    SCORES,
    add_tally,
    keep_versions,
    most_informative,
    rate,
    tally_between,
    versions_of,
)

NUM_LEAGUES = 150


def tally(first: int, second: int, *scores: int) -> PairTally:
    wins = scores[4] * 2 + scores[3] + scores[2]
    return PairTally(
        first=first, second=second, scores=scores, wins=wins, losses=2 * sum(scores) - wins
    )


def table(*tallies: PairTally) -> RatingTable:
    result = RatingTable(basis="test")
    for entry in tallies:
        result = add_tally(result, entry)
    return result


def planted(generator: np.random.Generator, num_pairs: int, size: int) -> tuple[int, int]:
    """Return how many of a simulated league's ratings hold their planted value, and of how many.

    A pair's two games share their luck: they are correlated, as those of one deal are.
    """
    strength = np.concatenate(([0.0], np.cumsum(generator.normal(0.25, 0.25, size - 1))))
    league = RatingTable()
    for first, second in itertools.combinations(range(size), 2):
        if generator.random() < 0.3:
            continue
        p = 1.0 / (1.0 + math.exp(strength[second] - strength[first]))
        luck = generator.random(num_pairs)[:, None]
        own = generator.random((num_pairs, 2))
        won = np.where(generator.random((num_pairs, 2)) < 0.3, luck, own) < p
        counts = np.bincount(2 * won.sum(axis=1), minlength=5)
        league = add_tally(league, tally(first - 1, second - 1, *map(int, counts)))
    found = rate(league, num_resamples=100)
    truth = ELO_PER_NAT * strength[[version + 1 for version in found.versions]]
    inside = (found.low <= truth) & (truth <= found.high)
    return int(inside[1:].sum()), len(truth) - 1


@pytest.mark.parametrize(("num_pairs", "size"), [(6, 6), (40, 7)])
def test_planted_strengths_lie_within_about_95_percent_of_their_intervals(
    num_pairs: int, size: int
) -> None:
    generator = np.random.default_rng(num_pairs)
    counts = [planted(generator, num_pairs, size) for _ in range(NUM_LEAGUES)]
    inside, total = map(sum, zip(*counts, strict=True))
    # Errors within a league are correlated: four standard errors of as many leagues, not ratings.
    margin = 4.0 * math.sqrt(0.95 * 0.05 / NUM_LEAGUES)
    assert inside / total == pytest.approx(0.95, abs=margin)


def test_intervals_shrink_with_the_root_of_the_number_of_pairs() -> None:
    few, many = (rate(table(tally(ANCHOR, 3, n, 0, n, 0, n))) for n in (10, 90))
    ratio = (few.high[1] - few.low[1]) / (many.high[1] - many.low[1])
    assert ratio == pytest.approx(3.0, rel=0.15)
    assert few.rating[1] == pytest.approx(0.0, abs=1e-6)


def test_a_version_that_won_everything_is_finite_and_uncertain() -> None:
    (entry,) = rate(table(tally(ANCHOR, 0, 20, 0, 0, 0, 0))).rated()
    # One virtual draw beside 20 lost pairs of the anchor: odds of 20.5 to 0.5.
    assert entry.rating == pytest.approx(ELO_PER_NAT * math.log(41.0))
    assert math.isfinite(entry.low)
    assert 100 < entry.low < entry.rating - 150
    assert entry.high > entry.rating + 150


def test_versions_that_never_met_the_anchor_are_held_by_it_and_uncertain() -> None:
    found = rate(table(tally(0, 1, 30, 0, 30, 0, 120), tally(ANCHOR, 5, 40, 0, 80, 0, 40)))
    entries = {entry.version: entry for entry in found.rated()}
    assert entries[0].rating + entries[1].rating == pytest.approx(0.0, abs=1e-6)
    difference = entries[0].rating - entries[1].rating
    assert difference == pytest.approx(ELO_PER_NAT * math.log(3.0), rel=0.05)
    width = {version: entry.high - entry.low for version, entry in entries.items()}
    assert width[0] > 5 * width[5]
    a, b = found.versions.index(0), found.versions.index(1)
    variance = found.covariance[a, a] + found.covariance[b, b] - 2 * found.covariance[a, b]
    assert math.sqrt(variance) < width[0] / 10, "their difference is known well"


def test_strengths_are_those_of_a_general_optimiser() -> None:
    generator = np.random.default_rng(3)
    entries = [
        tally(a, b, *map(int, generator.integers(0, 9, 5)))
        for a, b in itertools.combinations((ANCHOR, 0, 2, 5), 2)
    ]
    found = rate(table(*entries), num_resamples=0)

    def loss(free: np.ndarray) -> float:
        at = dict(zip((ANCHOR, 0, 2, 5), (0.0, *free), strict=True))
        total = 0.0
        for version in (0, 2, 5):  # the virtual draws
            total += 0.5 * np.logaddexp(0, at[version]) + 0.5 * np.logaddexp(0, -at[version])
        for entry in entries:
            d = at[entry.first] - at[entry.second]
            counts = np.array(entry.scores)
            total += counts @ SCORES * np.logaddexp(0, -d)
            total += counts @ (1 - SCORES) * np.logaddexp(0, d)
        return float(total)

    best = minimize(loss, np.zeros(3), tol=1e-10).x
    np.testing.assert_allclose(found.rating[1:] / ELO_PER_NAT, best, atol=1e-4)


def test_the_same_results_give_the_same_bits_in_whatever_order_they_came() -> None:
    entries = [
        tally(ANCHOR, 1, 1, 2, 3, 4, 5),
        tally(1, 4, 2, 2, 2, 2, 2),
        tally(0, 4, 0, 0, 1, 0, 0),
    ]
    forth, back = rate(table(*entries)), rate(table(*entries[::-1]))
    assert forth.rated() == back.rated()
    assert forth.rated() != rate(table(*entries), seed=1).rated()


def test_a_table_without_games_has_no_ratings() -> None:
    assert rate(RatingTable()).rated() == []


def test_results_of_two_players_add_up_and_can_be_seen_from_both_sides() -> None:
    found = table(tally(2, 7, 1, 0, 0, 0, 3), tally(2, 7, 0, 2, 0, 0, 0))
    assert len(found.tallies) == 1
    assert tally_between(found, 2, 7).scores == (1, 2, 0, 0, 3)
    other = tally_between(found, 7, 2)
    assert other.scores == (3, 0, 0, 2, 1)
    assert (other.wins, other.losses) == (found.tallies[0].losses, found.tallies[0].wins)
    assert tally_between(found, 2, 9).scores == (0, 0, 0, 0, 0)
    with pytest.raises(ValueError, match="tally of 7 and 2: needed is first < second"):
        add_tally(found, tally(7, 2, 1, 0, 0, 0, 0))


def test_the_oldest_versions_outside_the_pool_are_forgotten() -> None:
    full = table(*[tally(ANCHOR, version, 0, 0, 1, 0, 0) for version in range(6)])
    full = add_tally(full, tally(0, 2, 1, 0, 0, 0, 0))
    kept = keep_versions(full, {0, 5}, 4)
    assert versions_of(kept) == [0, 3, 4, 5]
    assert all(2 not in (entry.first, entry.second) for entry in kept.tallies)
    assert keep_versions(full, set(range(6)), 2) == full


def test_the_next_pair_is_one_that_tells_most() -> None:
    assert most_informative(RatingTable(), [ANCHOR], ANCHOR) is None
    known = table(tally(ANCHOR, 0, 50, 0, 100, 0, 50), tally(0, 1, 50, 0, 100, 0, 50))
    first, second = most_informative(known, [ANCHOR, 0, 1, 8], 1) or (0, 0)
    assert 8 in (first, second), "nothing is known of version 8"
    # Far apart, a pair tells little: the nearer neighbour of the stranger's prior is preferred.
    lopsided = table(tally(ANCHOR, 0, 400, 0, 0, 0, 0), tally(ANCHOR, 1, 40, 0, 80, 0, 40))
    assert most_informative(lopsided, [0, 1, 8], 1) == (1, 8)


def test_a_version_that_always_loses_is_left_alone_for_near_equals() -> None:
    played = table(tally(ANCHOR, 0, 0, 0, 2, 0, 30), tally(ANCHOR, 5, 10, 0, 44, 0, 10))
    played = add_tally(played, tally(5, 6, 10, 0, 44, 0, 10))
    met: Counter[int] = Counter()
    for _ in range(40):
        pair = most_informative(played, [ANCHOR, 0, 5, 6], 6)
        assert pair is not None
        met.update(pair)
        scores = {0: (8, 0, 0, 0, 0)}.get(pair[0], (0, 0, 0, 0, 8) if pair[1] == 0 else None)
        played = add_tally(played, tally(*pair, *(scores or (1, 0, 6, 0, 1))))
    assert met[0] <= 3, "its variance is the largest, and nobody asks for it"
    assert min(met[5], met[6]) >= 10
