"""Does something grow? Pure functions over samples; they know no process and no clock.

Source of the method: Theil 1950 and Sen 1968 (median of the slopes of all pairs, with Kendall's
interval), of the medians of equal stretches of time: memory is no independent noise around a line.
It breathes with snapshots, exports and rewrites, and lies still for minutes in between. Medians of
stretches that are longer than a breath come close to the independence that the interval assumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import theilslopes

HOUR_S = 3600.0
MAX_STRETCHES = 20
MIN_STRETCHES = 4
CONFIDENCE = 0.95


class Sample(NamedTuple):
    """One value of one thing."""

    at_s: float
    value: float


@dataclass(frozen=True)
class Trend:
    """A fitted line: values as they were sampled, slopes per hour."""

    level: float
    """Median of all values."""
    per_hour: float
    low: float
    """Lower end of the 95 % interval of ``per_hour``."""
    high: float

    @property
    def percent_per_hour(self) -> float:
        """Slope as a share of the level."""
        return 100.0 * self.per_hour / self.level if self.level else 0.0


@dataclass(frozen=True)
class Limit:
    """Growth that is no leak: the larger of the two."""

    percent_per_hour: float
    floor_per_hour: float = 0.0
    """In the values' own unit: what one cannot tell from nothing in something that is small."""

    def allows(self, trend: Trend) -> bool:
        """Return whether ``trend`` stays within the limit."""
        allowed = max(self.percent_per_hour / 100.0 * trend.level, self.floor_per_hour)
        return trend.per_hour <= allowed


def after(samples: Sequence[Sample], warm_s: float) -> list[Sample]:
    """Return the samples from ``warm_s`` on."""
    return [sample for sample in samples if sample.at_s >= warm_s]


def trend(samples: Sequence[Sample]) -> Trend:
    """Fit a line through ``samples`` (in order of time).

    Raises ValueError for samples that are too few or too close to carry one.
    """
    centers, medians = _stretches(samples)
    if len(centers) < MIN_STRETCHES:
        raise ValueError(
            f"{len(samples)} samples fill {len(centers)} stretches of time: at least "
            f"{MIN_STRETCHES} are needed for a slope"
        )
    found = theilslopes(medians, centers, alpha=CONFIDENCE)
    return Trend(
        level=float(np.median([sample.value for sample in samples])),
        per_hour=HOUR_S * float(found.slope),
        low=HOUR_S * float(found.low_slope),
        high=HOUR_S * float(found.high_slope),
    )


def _stretches(samples: Sequence[Sample]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return middle and median of up to MAX_STRETCHES equal stretches that hold samples."""
    if len(samples) < 2 or samples[-1].at_s <= samples[0].at_s:
        return np.zeros(0), np.zeros(0)
    times, values = np.array(samples, np.float64).T
    number = min(MAX_STRETCHES, len(samples) // 2)
    edges = np.linspace(times[0], times[-1], number + 1)
    edges[-1] = np.inf
    held = [values[(times >= low) & (times < high)] for low, high in pairwise(edges)]
    filled = [i for i, part in enumerate(held) if len(part)]
    middles = (np.arange(number) + 0.5) * (times[-1] - times[0]) / number
    return middles[filled], np.array([np.median(held[i]) for i in filled])


def peaks(samples: Sequence[Sample]) -> tuple[float, float]:
    """Return the highest value of the first and of the second half of the time.

    For what grows and is cut back in turn (an append-only file): no slope says anything, but its
    peaks have to stay where they are. Raises ValueError for fewer than two samples.
    """
    if len(samples) < 2:
        raise ValueError(f"{len(samples)} samples have no two halves")
    middle = (samples[0].at_s + samples[-1].at_s) / 2.0
    first = [sample.value for sample in samples if sample.at_s <= middle]
    second = [sample.value for sample in samples if sample.at_s > middle]
    return max(first), max(second)
