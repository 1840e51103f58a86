"""A stream in memory: the same writer and reader without a server, for tests and small runs.

Room: replay. May import: replay.buffer, replay.marks.

The store can be told to hold back confirmations, to go away and to forget, so that a test of
whoever uses it meets everything that a server does.
"""

from __future__ import annotations

import heapq
import secrets
import threading
import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator

from replay.buffer import Entry, OutboxFull, ReaderState
from replay.marks import START, cursor_key, ingest, rebuild_shard


class MemoryStore:
    """Streams by shard. Safe for threads."""

    def __init__(self, num_shards: int = 1) -> None:
        self.shards = tuple(str(shard) for shard in range(num_shards))
        self.confirming = True
        """False: entries arrive and are not confirmed, as with a disk that hangs."""
        self.reachable = True
        """False: nothing arrives and nothing is read."""
        self._changed = threading.Condition()
        self._next = 1
        self._streams: dict[str, list[Entry]] = {shard: [] for shard in self.shards}
        self._ends: dict[str, str] = dict.fromkeys(self.shards, START)
        self.lineage = secrets.token_hex(8)

    def append(self, shard: str, producer: str, sequence: int, payload: bytes) -> None:
        """Add one entry to the end of a shard. Raises ValueError for an unknown shard."""
        self._append(Entry("", producer, sequence, payload, shard))

    def append_stray(self, shard: str, fault: str) -> None:
        """Add what no producer has written, as anybody may do to a server's stream."""
        self._append(Entry("", "", 0, b"", shard, fault))

    def _append(self, entry: Entry) -> None:
        shard = entry.shard
        if shard not in self._streams:
            raise ValueError(f"shard {shard!r}: allowed are {', '.join(self.shards)}")
        with self._changed:
            cursor = f"{self._next}-0"
            self._next += 1
            self._streams[shard].append(entry._replace(cursor=cursor))
            self._ends[shard] = cursor
            self._changed.notify_all()

    def after(self, shard: str, cursor: str, count: int) -> list[Entry]:
        """Return up to ``count`` entries behind ``cursor``."""
        with self._changed:
            stream = self._streams[shard]
            first = bisect_right(stream, cursor_key(cursor), key=lambda e: cursor_key(e.cursor))
            return stream[first : first + count]

    def since(self, shard: str, cursor: str) -> list[Entry]:
        """Return all entries at or behind ``cursor``."""
        with self._changed:
            stream = self._streams[shard]
            return stream[bisect_left(stream, cursor_key(cursor), key=_key) :]

    def end(self, shard: str) -> str:
        """Return the cursor of the last entry ever added to the shard."""
        return self._ends[shard]

    def trim(self, edges: dict[str, str]) -> int:
        """Remove what lies below the edge of each shard; return how many entries that were."""
        removed = 0
        with self._changed:
            for shard, edge in edges.items():
                stream = self._streams[shard]
                keep = bisect_left(stream, cursor_key(edge), key=_key)
                removed += keep
                del stream[:keep]
        return removed

    def forget(self) -> None:
        """Lose everything, as a flushed server does."""
        with self._changed:
            for shard in self.shards:
                self._streams[shard].clear()
                self._ends[shard] = START
            self.lineage = secrets.token_hex(8)

    def wait(self, timeout_s: float) -> None:
        """Return after the next change, or after ``timeout_s``."""
        with self._changed:
            self._changed.wait(timeout_s)


def _key(entry: Entry) -> tuple[int, int]:
    return cursor_key(entry.cursor)


class MemoryWriter:
    """TrajectoryWriter over a MemoryStore."""

    def __init__(
        self,
        store: MemoryStore,
        producer: str,
        *,
        shard: str = "0",
        max_pending: int = 512,
        first_sequence: int = 1,
    ) -> None:
        self._store, self._producer, self._shard = store, producer, shard
        self._max_pending = max_pending
        self._sequence = first_sequence - 1
        self._outbox: deque[tuple[int, bytes]] = deque()
        self._num_sent = 0
        self._num_accepted = 0

    def append(self, payload: bytes) -> None:
        """See TrajectoryWriter."""
        if len(self._outbox) >= self._max_pending:
            raise OutboxFull(f"{len(self._outbox)} trajectories wait for acceptance: none dropped")
        self._sequence += 1
        self._outbox.append((self._sequence, payload))

    def poll(self, timeout_s: float) -> int:
        """See TrajectoryWriter."""
        if not self._store.reachable:
            self._num_sent = 0  # a broken connection: what was not confirmed is sent again
            return 0
        for sequence, payload in list(self._outbox)[self._num_sent :]:
            self._store.append(self._shard, self._producer, sequence, payload)
            self._num_sent += 1
        if not self._store.confirming:
            return 0
        accepted, self._num_sent = self._num_sent, 0
        self._outbox.clear()
        self._num_accepted += accepted
        return accepted

    @property
    def num_pending(self) -> int:
        """See TrajectoryWriter."""
        return len(self._outbox)

    @property
    def num_accepted(self) -> int:
        """See TrajectoryWriter."""
        return self._num_accepted

    @property
    def next_sequence(self) -> int:
        """Number that the next trajectory takes; a deterministic run stores it in its snapshot."""
        return self._sequence + 1

    def close(self) -> None:
        """See TrajectoryWriter."""


class MemoryReader:
    """TrajectoryReader over a MemoryStore."""

    def __init__(
        self,
        store: MemoryStore,
        state: ReaderState | None = None,
        *,
        shards: tuple[str, ...] | None = None,
    ) -> None:
        self._store = store
        self._shards = store.shards if shards is None else shards
        self.state = state or ReaderState()
        self._check_lineage()

    def _check_lineage(self) -> None:
        state, store = self.state, self._store
        lost = bool(state.lineage) and state.lineage != store.lineage
        state.lineage = store.lineage
        for shard in self._shards:
            cursor = state.cursors.get(shard, START)
            if lost or cursor_key(store.end(shard)) < cursor_key(cursor):
                state.cursors[shard] = START
                if shard in state.window_edge:
                    state.window_edge[shard] = START

    def read(self, max_entries: int, timeout_s: float) -> list[Entry]:
        """See TrajectoryReader."""
        deadline = time.monotonic() + timeout_s
        while True:
            if self._store.reachable:
                self._check_lineage()
                fresh = self._read_once(max_entries)
                if fresh:
                    return fresh
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return []
            self._store.wait(remaining)

    def _read_once(self, max_entries: int) -> list[Entry]:
        fresh: list[Entry] = []
        for shard in self._shards:
            while len(fresh) < max_entries:
                cursor = self.state.cursors.get(shard, START)
                entries = self._store.after(shard, cursor, max_entries - len(fresh))
                if not entries:
                    break
                fresh += ingest(self.state, shard, entries)
        return fresh

    def rebuild(self) -> Iterator[Entry]:
        """See TrajectoryReader."""
        self._check_lineage()
        state = self.state
        parts = [
            rebuild_shard(
                state,
                shard,
                self._store.since(shard, state.window_edge[shard]),
                state.window_entries.get(shard, 0),
            )
            for shard in self._shards
            if shard in state.window_edge
        ]
        yield from heapq.merge(*parts, key=_key)

    def close(self) -> None:
        """See TrajectoryReader."""
