"""What the samples of a soak mean: a row and a verdict for each thing. Pure; see fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tests.soak.fit import Limit, Sample, Trend, peaks, trend
from tests.soak.watch import BUDGET, FILES, KEPT, MEMORY, PROPORTIONAL, STREAMS, THREADS

MIN_SHARE = 0.6
"""A process that was there for less of the time (a child that rewrites a file) has no slope."""
PEAK_SHARE, PEAK_BYTES = 1.25, 16e6
"""What is cut back in turn may peak higher in the second half by the larger of the two."""
MORE_FILES, MORE_THREADS = 8.0, 4.0
MORE_KEPT = 1.05
"""Times as many games for each in the window, at their fewest: just after the streams were trimmed,
when it does not matter how quickly games come."""
SERVER, USED = f"{MEMORY} server 1", "server memory"
"""Hold the streams, whose size is that of the games; see ``judge``."""


@dataclass(frozen=True)
class Row:
    """One thing that was watched."""

    name: str
    shown: str
    is_fine: bool


def judge(samples: Mapping[str, Sequence[Sample]], limit: Limit) -> list[Row]:
    """Return a row for everything that was there for most of the time.

    * memory of processes: the slope, within ``limit``
    * memory of the server: what it holds beside the streams, within ``limit`` of all of it; games
      that become longer or shorter, as play improves, are no leak, and the streams have bounds of
      their own
    * folders, open files, threads: the peak of the second half against that of the first
    * the streams: the same, and never more than their budget; no more games in them in the second
      half, for each in the window, than in the first

    Raises ValueError when nothing was.
    """
    longest = max((len(found) for found in samples.values()), default=0)
    judged = {n: s for n, s in sorted(samples.items()) if len(s) >= MIN_SHARE * longest}
    holds_streams = (SERVER, USED) if STREAMS in judged else ()
    rows = [
        _row(name, found, limit, is_judged=name not in holds_streams)
        for name, found in judged.items()
        if name != BUDGET
    ]
    rows += [_beside(name, judged, limit) for name in holds_streams if name in judged]
    if STREAMS in judged:
        rows.append(_within(judged[STREAMS], judged[BUDGET]))
    if not any(row.name.startswith(MEMORY) for row in rows):
        raise ValueError(f"no process in {sorted(samples)}: nothing was watched")
    return rows


def _within(streams: Sequence[Sample], budget: Sequence[Sample]) -> Row:
    largest = max(sample.value for sample in streams)
    allowed = min(sample.value for sample in budget)
    shown = f"{allowed / 1e6:9.1f} MB, of which {largest / 1e6:.1f} MB at most were filled"
    return Row(BUDGET, shown, largest <= allowed)


def _beside(name: str, samples: Mapping[str, Sequence[Sample]], limit: Limit) -> Row:
    """Judge what is left of ``name`` without the streams, by the level of all of ``name``."""
    streams = {sample.at_s: sample.value for sample in samples[STREAMS]}
    left = [Sample(at, value - streams[at]) for at, value in samples[name] if at in streams]
    found = trend(left)
    allowed = replace(found, level=trend(samples[name]).level)
    shown = f"{_line(found)} = {allowed.percent_per_hour:+.2f} %/h of all"
    return Row(f"{name} beside the streams", shown, limit.allows(allowed))


def _line(found: Trend) -> str:
    return (
        f"{found.level / 1e6:9.1f} MB {found.per_hour / 1e6:+9.2f} MB/h "
        f"({found.low / 1e6:+.2f} to {found.high / 1e6:+.2f})"
    )


def _row(name: str, samples: Sequence[Sample], limit: Limit, *, is_judged: bool) -> Row:
    kind = name.partition(" ")[0]
    if kind in (MEMORY, PROPORTIONAL) or name == USED:
        found = trend(samples)
        shown = f"{_line(found)} = {found.percent_per_hour:+.2f} %/h"
        # The resident size is what is judged; a shared page moves the proportional one.
        is_judged = is_judged and kind != PROPORTIONAL
        return Row(name, shown, not is_judged or limit.allows(found))
    if name == KEPT:
        first, second = (-peak for peak in peaks([Sample(at, -value) for at, value in samples]))
        shown = f"{first:9.3f} at least, later {second:.3f}"
        return Row(name, shown, second <= MORE_KEPT * first)
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
