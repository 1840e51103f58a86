"""How large the streams are, measured at little cost to the server.

* A look at all of a stream is followed by a pause a hundred times as long.
* Between two looks entries that came and went count as large as the mean.
"""

from __future__ import annotations

from typing import Any

from replay.redis_admin import STREAM_SHARE, StreamMeter
from replay.redis_keys import RunKeys

KEYS = RunKeys("run")
LOOK_S = 0.25


class Streams:
    """Answers like a server with streams of given sizes, and takes LOOK_S for every look."""

    def __init__(self) -> None:
        self.now, self.num_looks = 100.0, 0
        self.sizes: dict[str, list[int]] = {KEYS.stream("0"): [], KEYS.stream("1"): []}

    def execute_command(self, name: str, *arguments: Any) -> int:
        if name == "XLEN":
            return len(self.sizes[arguments[0]])
        assert (name, arguments[0], arguments[2:]) == ("MEMORY", "USAGE", ("SAMPLES", 0))
        self.now += LOOK_S
        self.num_looks += 1
        return sum(self.sizes[arguments[1]])

    def clock(self) -> float:
        return self.now


def test_looks_are_spaced_and_what_comes_between_counts_as_the_mean() -> None:
    streams = Streams()
    first, second = streams.sizes.values()
    first += [100] * 30 + [10_000] * 10
    meter = StreamMeter(KEYS, ("0", "1"), streams.clock)
    stats = meter.measure(streams, 1_000_000)
    assert (stats.num_entries, stats.num_bytes) == (40, 103_000)
    assert stats.budget_bytes == int(STREAM_SHARE * 1_000_000)
    looks = streams.num_looks
    first += [10_000] * 4
    assert meter.measure(streams, 0).num_bytes == 103_000 + 4 * 103_000 // 40
    del first[:40]
    assert meter.measure(streams, 0).num_bytes == 103_000 - 36 * 103_000 // 40
    streams.now += 98 * 2 * LOOK_S
    meter.measure(streams, 0)
    assert streams.num_looks == looks
    streams.now += 3 * 2 * LOOK_S
    second += [7]
    assert meter.measure(streams, 0).num_bytes == 4 * 10_000 + 7
    assert streams.num_looks == looks + 2


def test_empty_streams_have_no_bytes() -> None:
    streams = Streams()
    meter = StreamMeter(KEYS, ("0", "1"), streams.clock)
    assert meter.measure(streams, 0).num_bytes == 0
    streams.sizes[KEYS.stream("0")] += [50]
    assert meter.measure(streams, 0).num_entries == 1
    assert meter.measure(streams, 0).num_bytes >= 0
