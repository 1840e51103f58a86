"""What the samples of a soak mean: a row and a verdict for each thing. Pure; see fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.soak.fit import Limit, Sample, peaks, trend
from tests.soak.watch import BUDGET, FILES, MEMORY, PROPORTIONAL, STREAMS, THREADS

MIN_SHARE = 0.6
"""A process that was there for less of the time (a child that rewrites a file) has no slope."""
PEAK_SHARE, PEAK_BYTES = 1.25, 16e6
"""What is cut back in turn may peak higher in the second half by the larger of the two."""
MORE_FILES, MORE_THREADS = 8.0, 4.0


@dataclass(frozen=True)
class Row:
    """One thing that was watched."""

    name: str
    shown: str
    is_fine: bool


def judge(samples: Mapping[str, Sequence[Sample]], limit: Limit) -> list[Row]:
    """Return a row for everything that was there for most of the time.

    * memory of processes and of the server: the slope, within ``limit``
    * folders, open files, threads: the peak of the second half against that of the first
    * the streams, to their last byte: the same, and never more than their budget

    Raises ValueError when nothing was.
    """
    longest = max((len(found) for found in samples.values()), default=0)
    rows = [
        _row(name, found, limit)
        for name, found in sorted(samples.items())
        if len(found) >= MIN_SHARE * longest and name != BUDGET
    ]
    if STREAMS in samples:
        rows.append(_within(samples[STREAMS], samples[BUDGET]))
    if not any(row.name.startswith(MEMORY) for row in rows):
        raise ValueError(f"no process in {sorted(samples)}: nothing was watched")
    return rows


def _within(streams: Sequence[Sample], budget: Sequence[Sample]) -> Row:
    largest = max(sample.value for sample in streams)
    allowed = min(sample.value for sample in budget)
    shown = f"{allowed / 1e6:9.1f} MB, of which {largest / 1e6:.1f} MB at most were filled"
    return Row(BUDGET, shown, largest <= allowed)


def _row(name: str, samples: Sequence[Sample], limit: Limit) -> Row:
    kind = name.partition(" ")[0]
    if kind in (MEMORY, PROPORTIONAL) or name == "server memory":
        found = trend(samples)
        shown = (
            f"{found.level / 1e6:9.1f} MB {found.per_hour / 1e6:+9.2f} MB/h "
            f"({found.low / 1e6:+.2f} to {found.high / 1e6:+.2f}) = "
            f"{found.percent_per_hour:+.2f} %/h"
        )
        # The resident size is what is judged; a shared page moves the proportional one.
        return Row(name, shown, kind == PROPORTIONAL or limit.allows(found))
    first, second = peaks(samples)
    if kind in (FILES, THREADS):
        more = MORE_FILES if kind == FILES else MORE_THREADS
        return Row(name, f"{first:9.0f} at most, later {second:.0f}", second <= first + more)
    allowed = max(PEAK_SHARE * first, first + PEAK_BYTES)
    shown = f"{first / 1e6:9.1f} MB at most, later {second / 1e6:.1f} MB"
    return Row(name, shown, second <= allowed)


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text, a line each."""
    width = max(len(row.name) for row in rows)
    return "\n".join(
        f"{'ok   ' if row.is_fine else 'GROWS'} {row.name:{width}} {row.shown}" for row in rows
    )
