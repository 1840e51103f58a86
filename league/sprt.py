"""Wald's sequential probability ratio test on decided pairs, and its exact error rates.

Room: league. Pure functions of numbers: it knows no store, no game and no clock.

A pair is decided when its score differs from one half. Given that a pair is decided, whether the
candidate won it is a Bernoulli trial, and its probability does not depend on how many pairs are
split: the test is exact whatever the share of split pairs.

Wald, Sequential Analysis (1947): the test and its boundaries A = (1 - beta) / alpha and
B = beta / (1 - alpha) are sections 3.1 to 3.3, the binomial case chapter 5, the truncated test
section 3.8. Wald's formulas for error rates and lengths neglect the overshoot over the boundary;
the figures here are computed exactly instead, by following the distribution of the number of won
pairs from one decided pair to the next through the very function that decides a running test.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

PROMOTED = "promoted"
REJECTED = "rejected"
UNDECIDED = "undecided"
"""The test ended at a maximum. Not promoted."""
RUNNING = ""
"""The test goes on."""


class Sprt(NamedTuple):
    """The test: share ``p0`` of decided pairs against share ``p1``. Check it with ``validate``."""

    p0: float = 0.5
    p1: float = 0.6
    alpha: float = 0.05
    """Nominal probability of promoting at ``p0``."""
    beta: float = 0.04
    """Nominal probability of rejecting at ``p1``."""
    max_decided: int = 800
    max_pairs: int = 3000
    """Pairs read at the most, split ones included."""


class Bounds(NamedTuple):
    """Logarithms of B and A (Wald 1947, section 3.3)."""

    lower: float
    upper: float


def validate(test: Sprt) -> None:
    """Raise ValueError naming the first parameter that is out of range."""
    if not 0.0 < test.p0 < test.p1 < 1.0:
        raise ValueError(f"p0 = {test.p0}, p1 = {test.p1}: needed is 0 < p0 < p1 < 1")
    for name, rate in (("alpha", test.alpha), ("beta", test.beta)):
        if not 0.0 < rate < 0.5:
            raise ValueError(f"{name} = {rate}: allowed is 0 < {name} < 0.5")
    if test.max_decided < 1 or test.max_pairs < 1:
        raise ValueError(
            f"max_decided = {test.max_decided}, max_pairs = {test.max_pairs}: at least 1 each"
        )


@functools.lru_cache(maxsize=64)
def bounds(test: Sprt) -> Bounds:
    """Return the boundaries of the log-likelihood ratio."""
    return Bounds(
        lower=math.log(test.beta / (1.0 - test.alpha)),
        upper=math.log((1.0 - test.beta) / test.alpha),
    )


@overload
def llr(test: Sprt, wins: int, losses: int) -> float: ...


@overload
def llr(test: Sprt, wins: NDArray[np.int64], losses: NDArray[np.int64]) -> NDArray[np.float64]: ...


def llr(test: Sprt, wins: Any, losses: Any) -> Any:
    """Return the log-likelihood ratio of p1 to p0 after ``wins`` and ``losses`` (Wald, chapter 5).

    Numbers give a float, int64 arrays a float64 array.
    """
    win, loss = math.log(test.p1 / test.p0), math.log((1.0 - test.p1) / (1.0 - test.p0))
    return wins * win + losses * loss


def decide(test: Sprt, wins: int, losses: int, num_pairs: int) -> str:
    """Return how a test stands after ``num_pairs`` pairs, ``wins + losses`` of them decided.

    One of ``PROMOTED``, ``REJECTED``, ``UNDECIDED``, ``RUNNING``. A boundary is crossed when it is
    reached; a crossing counts before a maximum.
    """
    value, limits = llr(test, wins, losses), bounds(test)
    if value >= limits.upper:
        return PROMOTED
    if value <= limits.lower:
        return REJECTED
    if wins + losses >= test.max_decided or num_pairs >= test.max_pairs:
        return UNDECIDED
    return RUNNING


# --- exact error rates ----------------------------------------------------------------------------


class Characteristics(NamedTuple):
    """How a test behaves at one strength. The three probabilities sum to 1."""

    promoted: float
    rejected: float
    undecided: float
    mean_decided: float
    """Expected number of decided pairs read."""
    mean_pairs: float
    """Expected number of pairs read."""


class Stopping(NamedTuple):
    """When the test ends on decided pairs alone, before any maximum of read pairs.

    D = max_decided; row d is the d-th decided pair (row 0 is never used).
    """

    promoted: NDArray[np.float64]
    """[D + 1] probability that it promotes exactly there."""
    rejected: NDArray[np.float64]
    """[D + 1] probability that it rejects exactly there."""
    running: NDArray[np.float64]
    """[D + 1] probability that neither boundary is crossed after d decided pairs."""


def stopping(test: Sprt, p: float) -> Stopping:
    """Return the exact law of the test's end when a decided pair is won with probability ``p``.

    Dynamic programming over (decided pairs, won pairs): each step convolves with one Bernoulli
    trial and removes what crosses a boundary.
    """
    validate(test)
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p = {p}: allowed is 0 to 1")
    limits, size = bounds(test), test.max_decided
    promoted, rejected, running = np.zeros(size + 1), np.zeros(size + 1), np.zeros(size + 1)
    alive = np.ones(1)
    running[0] = 1.0
    for decided in range(1, size + 1):
        alive = np.concatenate((alive * (1.0 - p), [0.0])) + np.concatenate(([0.0], alive * p))
        wins = np.arange(decided + 1)
        value = llr(test, wins, decided - wins)
        up, down = value >= limits.upper, value <= limits.lower
        promoted[decided], rejected[decided] = alive[up].sum(), alive[down].sum()
        alive[up | down] = 0.0
        running[decided] = alive.sum()
    return Stopping(promoted, rejected, running)


def characteristics(test: Sprt, p: float, *, split_share: float = 0.0) -> Characteristics:
    """Return the exact behaviour of the test.

    Args:
        test: the test.
        p: probability that the candidate wins a decided pair.
        split_share: probability that a pair is split (score one half), independent of the others.
    """
    if not 0.0 <= split_share <= 1.0:
        raise ValueError(f"split_share = {split_share}: allowed is 0 to 1")
    law = stopping(test, p)
    decided_share = 1.0 - split_share
    # in_time[d]: the d-th decided pair is among the first max_pairs pairs. Independent of who won.
    in_time = _at_least(test.max_pairs, decided_share, test.max_decided)
    promoted = float(law.promoted @ in_time)
    rejected = float(law.rejected @ in_time)
    # The d-th decided pair is read when the test still runs after d - 1 and it comes in time.
    mean_decided = float(law.running[:-1] @ in_time[1:])
    # Wald's equation (On Cumulative Sums of Random Variables, 1944): each pair read is decided with
    # the same probability, and whether to read on depends on the past alone.
    mean_pairs = mean_decided / decided_share if decided_share > 0 else float(test.max_pairs)
    return Characteristics(
        promoted=promoted,
        rejected=rejected,
        undecided=max(0.0, 1.0 - promoted - rejected),
        mean_decided=mean_decided,
        mean_pairs=mean_pairs,
    )


def _at_least(num_trials: int, p: float, most: int) -> NDArray[np.float64]:
    """Return P(Binomial(num_trials, p) >= d) for d = 0 .. ``most``."""
    if p in (0.0, 1.0):
        return (np.arange(most + 1) <= (num_trials if p == 1.0 else 0)).astype(np.float64)
    counts = np.arange(num_trials + 1)
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, num_trials + 1)))))
    log_mass = (
        log_factorial[-1]
        - log_factorial
        - log_factorial[::-1]
        + counts * math.log(p)
        + (num_trials - counts) * math.log1p(-p)
    )
    tail = np.cumsum(np.exp(log_mass)[::-1])[::-1]
    out = np.zeros(most + 1)
    known = min(most, num_trials) + 1
    out[:known] = np.minimum(tail[:known], 1.0)
    out[0] = 1.0
    return out
