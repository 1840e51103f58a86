"""One measured figure, and how work is repeated and timed.

Room: deploy. Standard library and msgspec.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

MICROSECONDS, MILLISECONDS = 1e6, 1e3


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table."""

    group: str
    name: str
    value: float
    """Median over the repeats."""
    unit: str
    how: str
    """What was run, in a sentence."""
    reference: float | None = None
    """An earlier measurement of the same thing on two x86 cores under load."""
    goal: float | None = None
    lower_is_better: bool = False
    repeats: int = 1
    low: float = 0.0
    """Lowest of the repeats."""
    high: float = 0.0
    """Highest of the repeats."""
    wall_s: float = 0.0
    """Wall clock of all repeats."""
    cpu_s: float = 0.0
    """Processor time of all repeats, of all processes that took part."""
    one_core: bool = True
    """Counted against processor time; False: against the wall clock."""

    @property
    def ratio(self) -> float | None:
        """Return how many times better than the reference; None without one."""
        return self._against(self.reference)

    @property
    def goal_is_met(self) -> bool | None:
        """Return whether the goal is reached; None without one."""
        ratio = self._against(self.goal)
        return None if ratio is None else ratio >= 1.0

    def _against(self, other: float | None) -> float | None:
        if other is None or self.value <= 0.0:
            return None
        return other / self.value if self.lower_is_better else self.value / other


class Sample(NamedTuple):
    """One repeat."""

    done: float
    """How much was done."""
    wall_s: float
    cpu_s: float


class Estimate(NamedTuple):
    """What the repeats say; the fields of ``Figure`` with the same names."""

    value: float
    low: float
    high: float
    repeats: int
    wall_s: float
    cpu_s: float
    one_core: bool


def timed(work: Callable[[], float]) -> Sample:
    """Run ``work``, which returns how much it did, against both clocks of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    count = work()
    return Sample(count, time.perf_counter() - wall, time.process_time() - cpu)


def repeated(work: Callable[[], float], repeats: int, *, warm: bool = True) -> list[Sample]:
    """Run ``work`` some times; ``warm`` runs it once more before, untimed."""
    if warm:
        work()
    return [timed(work) for _ in range(repeats)]


def rate(samples: Sequence[Sample], *, one_core: bool = True) -> Estimate:
    """Return how much is done a second (of processor time, or of the wall clock)."""
    return _estimate([s.done / _seconds(s, one_core) for s in samples], samples, one_core)


def cost(samples: Sequence[Sample], scale: float, *, one_core: bool = True) -> Estimate:
    """Return the seconds that one takes, times ``scale``."""
    return _estimate([scale * _seconds(s, one_core) / s.done for s in samples], samples, one_core)


def measured(values: Sequence[float], samples: Sequence[Sample]) -> Estimate:
    """Return ``values``, one a repeat, with the clocks of the ``samples`` they come from."""
    return _estimate(values, samples, True)


def _seconds(sample: Sample, one_core: bool) -> float:
    return max(sample.cpu_s if one_core else sample.wall_s, 1e-9)


def _estimate(values: Sequence[float], samples: Sequence[Sample], one_core: bool) -> Estimate:
    return Estimate(
        value=statistics.median(values),
        low=min(values),
        high=max(values),
        repeats=len(values),
        wall_s=sum(s.wall_s for s in samples),
        cpu_s=sum(s.cpu_s for s in samples),
        one_core=one_core,
    )


def figure(
    group: str,
    name: str,
    unit: str,
    estimate: Estimate,
    how: str,
    *,
    reference: float | None = None,
    goal: float | None = None,
    lower_is_better: bool = False,
) -> Figure:
    """Return the row of an estimate."""
    return Figure(
        group=group,
        name=name,
        unit=unit,
        how=how,
        reference=reference,
        goal=goal,
        lower_is_better=lower_is_better,
        **estimate._asdict(),
    )
