"""Trajectories over Redis streams: the reader of one learner rank.

Room: replay. May import: replay.

Plain XREAD from cursors that the learner's snapshot holds; no consumer group, because a group's
idea of what was delivered lives on the server and not in the snapshot. Every read also fetches the
lineage of the streams, so that a flushed server is noticed at once and not by silence.
"""

from __future__ import annotations

import heapq
import secrets
import threading
import time
from collections.abc import Iterator
from typing import Any

from replay.buffer import Entry, ReaderState
from replay.config import ReplayConfig
from replay.marks import START, cursor_key, ingest, rebuild_shard
from replay.redis_buffer import Backoff
from replay.redis_keys import PAYLOAD, PRODUCER, SEQUENCE, RunKeys
from replay.redis_link import Command, Link, ReplyError, StoreRefused, StoreUnreachable

_REBUILD_BATCH = 256
_MAX_SEQUENCE = 1 << 53
"""No producer counts so far; a stray number must not lift a mark, nor break a snapshot."""
_SHOWN_FIELDS = 5


class RedisReader:
    """TrajectoryReader over shards of a run.

    Args:
        url: address of the server.
        run_id: part of every key.
        shards: streams to read.
        state: from a snapshot; changed in place by reading.
        config: time limits.
        password: kept out of ``url`` so that the address can be shown.
    """

    def __init__(
        self,
        url: str,
        run_id: str,
        *,
        shards: tuple[str, ...] = ("0",),
        state: ReaderState | None = None,
        config: ReplayConfig | None = None,
        password: str = "",
    ) -> None:
        self._url, self._password = url, password
        self._config = config or ReplayConfig()
        self._keys = RunKeys(run_id)
        self._shards = shards
        self._shard_of = {self._keys.stream(shard).encode(): shard for shard in shards}
        self.state = state or ReaderState()
        self._link: Link | None = None
        self._backoff = Backoff()
        self._pause = threading.Event()
        self.last_error = ""
        """The latest failure in words; empty while all is well."""

    def read(self, max_entries: int, timeout_s: float) -> list[Entry]:
        """See TrajectoryReader. A server that is away gives an empty list.

        Raises StoreRefused when the server wants no such client.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            remaining = max(0.0, deadline - time.monotonic())
            try:
                fresh = self._read_once(max_entries, remaining)
            except StoreUnreachable as error:
                self._drop_link(str(error))
                fresh = []
            if fresh or time.monotonic() >= deadline:
                return fresh

    def rebuild(self) -> Iterator[Entry]:
        """See TrajectoryReader. Raises StoreUnreachable when the server stays away."""
        self.close()  # connecting compares lineage and ends with the state that holds now
        self._request([])
        state = self.state
        parts = [
            rebuild_shard(state, shard, self._range(shard), state.window_entries.get(shard, 0))
            for shard in self._shards
            if shard in state.window_edge
        ]
        yield from heapq.merge(*parts, key=lambda entry: cursor_key(entry.cursor))

    def lag_s(self) -> float:
        """Return how much older the last entry read is than the newest one, in seconds."""
        ends = [self._end(reply) for reply in self._request(self._end_commands())]
        lags = [
            cursor_key(end)[0] - cursor_key(self.state.cursors[shard])[0]
            for shard, end in zip(self._shards, ends, strict=True)
            if shard in self.state.cursors
        ]
        return max(0.0, max(lags, default=0) / 1000.0)

    def close(self) -> None:
        """See TrajectoryReader."""
        if self._link is not None:
            self._link.close()
            self._link = None

    # --- reading ----------------------------------------------------------------------------------

    def _read_once(self, max_entries: int, timeout_s: float) -> list[Entry]:
        if self._link is None and self._backoff.wait_s() > 0:
            self._pause.wait(min(timeout_s, self._backoff.wait_s()))
            return []
        link = self._open()
        # A block longer than the socket's time limit would look like a dead server.
        block_ms = round(1000 * min(timeout_s, self._config.socket_timeout_s / 2))
        cursors = [self.state.cursors.get(shard, START) for shard in self._shards]
        command: Command = ("XREAD", "COUNT", max(1, max_entries // len(self._shards)))
        if block_ms > 0:  # BLOCK 0 waits for ever
            command += ("BLOCK", block_ms)
        streams = [self._keys.stream(shard) for shard in self._shards]
        link.send([("GET", self._keys.lineage), (*command, "STREAMS", *streams, *cursors)])
        lineage, reply = link.read(), _checked(link.read())
        if lineage != self.state.lineage.encode():
            self._reconcile(link)  # flushed under our feet: what was read is read again
            return []
        self.last_error = ""
        self._backoff.succeeded()
        fresh: list[Entry] = []
        for key, rows in reply or []:
            shard = self._shard_of[key]
            fresh += ingest(self.state, shard, [_entry(row, shard) for row in rows])
        return fresh

    def _range(self, shard: str) -> Iterator[Entry]:
        """Yield the entries from the window's edge to the cursor, or to the end after a loss."""
        first = self.state.window_edge[shard]
        cursor = self.state.cursors.get(shard, START)
        last = "+" if cursor == START else cursor
        key = self._keys.stream(shard)
        while True:
            (rows,) = self._request([("XRANGE", key, first, last, "COUNT", _REBUILD_BATCH)])
            for row in _checked(rows):
                yield _entry(row, shard)
            if len(rows) < _REBUILD_BATCH:
                return
            first = f"({rows[-1][0].decode()}"

    # --- connection -------------------------------------------------------------------------------

    def _open(self) -> Link:
        if self._link is None:
            link = Link(self._url, self._password, self._config)
            try:
                self._reconcile(link)
            except StoreUnreachable:
                link.close()
                raise
            self._link = link
        return self._link

    def _request(self, commands: list[Command]) -> list[Any]:
        """Return the replies; connects again for up to three socket time limits."""
        deadline = time.monotonic() + 3 * self._config.socket_timeout_s
        while True:
            try:
                link = self._open()
                link.send(commands)
                return [link.read() for _ in commands]
            except StoreUnreachable as error:
                self._drop_link(str(error))
                if time.monotonic() > deadline:
                    raise
                self._pause.wait(self._backoff.wait_s())

    def _drop_link(self, reason: str) -> None:
        self.close()
        self.last_error = reason
        self._backoff.failed()

    def _end_commands(self) -> list[Command]:
        return [("XINFO", "STREAM", self._keys.stream(shard)) for shard in self._shards]

    def _end(self, reply: Any) -> str:
        """Return the cursor of the last entry ever added to a stream."""
        if isinstance(reply, ReplyError):
            if "no such key" in str(reply):
                return START
            raise StoreUnreachable(str(reply))
        facts = dict(zip(reply[::2], reply[1::2], strict=True))
        return str(facts[b"last-generated-id"].decode())

    def _lineage(self, link: Link) -> str:
        """Return the id of the streams' contents; an empty server gets a new one."""
        key = self._keys.lineage
        link.send([("GET", key)])
        known = _checked(link.read())
        if known is None:
            link.send([("SET", key, secrets.token_hex(8), "NX"), ("GET", key)])
            written, known = link.read(), _checked(link.read())
            if known is None:
                raise StoreUnreachable(f"the lineage of the streams cannot be written: {written}")
        return str(known.decode())

    def _reconcile(self, link: Link) -> None:
        """Compare the streams with the state; where they were lost, read from the start again."""
        lineage = self._lineage(link)
        link.send(self._end_commands())
        ends = [self._end(link.read()) for _ in self._shards]
        lost = bool(self.state.lineage) and self.state.lineage != lineage
        self.state.lineage = lineage
        for shard, end in zip(self._shards, ends, strict=True):
            cursor = self.state.cursors.get(shard, START)
            if lost or cursor_key(end) < cursor_key(cursor):
                self.state.cursors[shard] = START
                if shard in self.state.window_edge:
                    self.state.window_edge[shard] = START


def _checked(reply: Any) -> Any:
    """Return ``reply`` unless it is an error: loading passes, anything else does not."""
    if isinstance(reply, ReplyError):
        raise StoreRefused(str(reply))
    return reply


def _entry(row: Any, shard: str) -> Entry:
    """Return the entry of a stream's row; one that names no producer has a ``fault``."""
    cursor, fields = row[0].decode(), row[1] or []
    known = dict(zip(fields[::2], fields[1::2], strict=True))
    try:
        producer, sequence = known[PRODUCER].decode(), int(known[SEQUENCE])
        if 1 <= sequence <= _MAX_SEQUENCE:
            return Entry(cursor, producer, sequence, known[PAYLOAD], shard)
    except (KeyError, ValueError):
        pass
    names = ", ".join(repr(name[:20])[1:] for name in list(known)[:_SHOWN_FIELDS])
    fault = f"no trajectory of any producer (its fields: {names or 'none'})"
    return Entry(cursor, "", 0, b"", shard, fault)
