"""The sequential test: its arithmetic, its exact error rates, and Wald's own approximations.

* boundaries and log-likelihood ratio are Wald's; a boundary counts when reached
* exact: equal players promoted 4.62 %, power 96.3 % at 0.6, 146 and 239 decided pairs on average
* a shorter maximum costs power; split pairs change nothing but the length
* the exact figures agree with enumerating every sequence of a short test, and with Wald's formulas
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from league import sprt
from league.sprt import PROMOTED, REJECTED, RUNNING, UNDECIDED, Sprt

TEST = Sprt()


def test_boundaries_and_ratio_are_walds() -> None:
    assert math.exp(sprt.bounds(TEST).upper) == pytest.approx(0.96 / 0.05)
    assert math.exp(sprt.bounds(TEST).lower) == pytest.approx(0.04 / 0.95)
    assert math.exp(float(sprt.llr(TEST, 7, 4))) == pytest.approx(0.6**7 * 0.4**4 / 0.5**11)
    several = sprt.llr(TEST, np.array([0, 3, 7]), np.array([2, 3, 4]))
    assert several.tolist() == [sprt.llr(TEST, w, n) for w, n in ((0, 2), (3, 3), (7, 4))]


def test_shortest_ways_to_either_end() -> None:
    wins = math.ceil(math.log(19.2) / math.log(1.2))
    assert sprt.decide(TEST, wins - 1, 0, wins - 1) == RUNNING
    assert sprt.decide(TEST, wins, 0, wins) == PROMOTED
    losses = math.ceil(math.log(0.04 / 0.95) / math.log(0.8))
    assert sprt.decide(TEST, 0, losses - 1, losses - 1) == RUNNING
    assert sprt.decide(TEST, 0, losses, losses) == REJECTED


def test_maxima_end_undecided_but_a_crossing_comes_first() -> None:
    assert sprt.decide(TEST, 439, 360, 799) == RUNNING
    assert sprt.decide(TEST, 440, 360, 800) == UNDECIDED
    assert sprt.decide(TEST, 0, 0, 2999) == RUNNING
    assert sprt.decide(TEST, 0, 0, 3000) == UNDECIDED
    assert sprt.decide(TEST, 17, 0, 3000) == PROMOTED
    assert sprt.decide(TEST, 460, 340, 800) == PROMOTED


def test_equal_candidate_is_promoted_4_62_percent_and_takes_146_decided_pairs() -> None:
    exact = sprt.characteristics(TEST, 0.5)
    assert exact.promoted == pytest.approx(0.0462, abs=0.00005)
    assert exact.promoted <= 0.05
    assert exact.mean_decided == pytest.approx(146, abs=0.5)


def test_candidate_at_60_percent_of_decided_pairs_is_promoted_96_3_percent() -> None:
    exact = sprt.characteristics(TEST, 0.6)
    assert exact.promoted == pytest.approx(0.963, abs=0.0005)


def test_candidate_halfway_takes_239_decided_pairs() -> None:
    assert sprt.characteristics(TEST, 0.55).mean_decided == pytest.approx(239, abs=0.5)


def test_maximum_of_200_decided_pairs_leaves_77_percent_power() -> None:
    short = sprt.characteristics(TEST._replace(max_decided=200), 0.6)
    assert short.promoted == pytest.approx(0.77, abs=0.005)
    assert short.undecided > 0.15


def test_worse_candidates_are_promoted_less_often() -> None:
    promoted = [sprt.characteristics(TEST, p).promoted for p in (0.0, 0.4, 0.5, 0.55, 0.6, 1.0)]
    assert promoted == sorted(promoted)
    assert promoted[0] == 0.0
    assert promoted[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("p", [0.5, 0.6])
@pytest.mark.parametrize("split_share", [0.2, 0.5, 0.8])
def test_split_pairs_lengthen_a_gate_and_never_raise_a_promotion(
    p: float, split_share: float
) -> None:
    without = sprt.characteristics(TEST._replace(max_pairs=10**6), p)
    exact = sprt.characteristics(TEST, p, split_share=split_share)
    assert exact.promoted <= without.promoted + 1e-12
    assert exact.promoted == pytest.approx(without.promoted, abs=0.004)
    assert exact.mean_pairs == pytest.approx(exact.mean_decided / (1 - split_share))
    assert exact.promoted + exact.rejected + exact.undecided == pytest.approx(1.0)


def test_all_split_pairs_end_undecided_at_the_maximum() -> None:
    exact = sprt.characteristics(TEST, 0.5, split_share=1.0)
    assert exact == sprt.Characteristics(0.0, 0.0, 1.0, 0.0, 3000.0)


@pytest.mark.parametrize("p", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("split_share", [0.0, 0.4])
def test_exact_figures_agree_with_every_sequence_of_a_short_test(
    p: float, split_share: float
) -> None:
    test = Sprt(p0=0.5, p1=0.8, alpha=0.2, beta=0.2, max_decided=5, max_pairs=8)
    chances = {"w": (1 - split_share) * p, "l": (1 - split_share) * (1 - p), "s": split_share}
    ends = dict.fromkeys((PROMOTED, REJECTED, UNDECIDED), 0.0)
    mean_decided = mean_pairs = 0.0
    for sequence in itertools.product("wls", repeat=test.max_pairs):
        chance = math.prod(chances[pair] for pair in sequence)
        for length in range(1, test.max_pairs + 1):
            wins, losses = sequence[:length].count("w"), sequence[:length].count("l")
            end = sprt.decide(test, wins, losses, length)
            if end != RUNNING:
                ends[end] += chance
                mean_decided += chance * (wins + losses)
                mean_pairs += chance * length
                break
    exact = sprt.characteristics(test, p, split_share=split_share)
    assert exact.promoted == pytest.approx(ends[PROMOTED], abs=1e-12)
    assert exact.rejected == pytest.approx(ends[REJECTED], abs=1e-12)
    assert exact.undecided == pytest.approx(ends[UNDECIDED], abs=1e-12)
    assert exact.mean_decided == pytest.approx(mean_decided, abs=1e-9)
    assert exact.mean_pairs == pytest.approx(mean_pairs, abs=1e-9)


def test_exact_length_is_near_walds_formula_for_small_steps() -> None:
    """Sequential Analysis, section 3.5: E(n) is about (P ln A + (1 - P) ln B) / E(z)."""
    test = Sprt(p0=0.5, p1=0.52, max_decided=12_000, max_pairs=12_000)
    limits = sprt.bounds(test)
    drift = 0.5 * sprt.llr(test, 1, 0) + 0.5 * sprt.llr(test, 0, 1)
    wald = (0.05 * limits.upper + 0.95 * limits.lower) / drift
    assert sprt.characteristics(test, 0.5).mean_decided == pytest.approx(wald, rel=0.02)


def test_parameters_out_of_range_are_refused_by_name() -> None:
    for bad, text in (
        (TEST._replace(p1=0.5), "p0 = 0.5, p1 = 0.5"),
        (TEST._replace(alpha=0.0), "alpha = 0.0"),
        (TEST._replace(beta=0.7), "beta = 0.7"),
        (TEST._replace(max_decided=0), "max_decided = 0"),
    ):
        with pytest.raises(ValueError, match=text):
            sprt.validate(bad)
        with pytest.raises(ValueError, match=text):
            sprt.characteristics(bad, 0.5)
    with pytest.raises(ValueError, match=r"p = 1\.5"):
        sprt.characteristics(TEST, 1.5)
    with pytest.raises(ValueError, match=r"split_share = -0\.1"):
        sprt.characteristics(TEST, 0.5, split_share=-0.1)
