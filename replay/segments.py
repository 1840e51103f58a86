"""A stream in append-only files: what the in-process runtime uses in place of a server.

Room: replay. May import: msgspec, replay (buffer, disk, marks).

A folder of segments, each named by the number of its first entry. A record is its length, a digest
and MessagePack; a torn or damaged tail of the last segment (the process died in mid-write) is cut
off when the store is opened, damage anywhere else is an error. Entries are numbered 1, 2, 3 …
without gaps, so a cursor is a number, and a run that resumes from a snapshot first cuts the store
back to where the snapshot was taken: the games played after it will be played again.
"""

from __future__ import annotations

import hashlib
import secrets
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from replay.buffer import Entry, OutboxFull, ReaderState
from replay.disk import Disk
from replay.marks import START, cursor_key, ingest, rebuild_shard

_RECORD = msgspec.msgpack.Decoder(tuple[str, int, bytes])
_FRAME = struct.Struct("<I8s")
_FLUSH_BYTES = 1 << 20
"""Appended bytes that wait in memory at the most."""
_SUFFIX = ".seg"
SHARD = "0"


class SegmentError(ValueError):
    """Segments that do not fit together; names the file."""


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()


def _number(cursor: str) -> int:
    return cursor_key(cursor)[0]


def _encode(producer: str, sequence: int, payload: bytes) -> bytes:
    record = msgspec.msgpack.encode((producer, sequence, payload))
    return _FRAME.pack(len(record), _digest(record)) + record


def _decode(record: bytes, path: Path) -> tuple[str, int, bytes]:
    try:
        return _RECORD.decode(record)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SegmentError(f"{path} has a record that is no entry: {error}") from None


class SegmentStore:
    """Owns the folder: one writing process, any number of readers in it.

    What is appended waits in memory until it is flushed, and stays there when the disk is full: the
    files hold whole records in order, or a torn one at the very end after a crash.

    Args:
        folder: made if missing.
        segment_bytes: a segment that has grown beyond this is followed by a new one.
        disk: where the folder is.

    Raises:
        SegmentError: a segment is missing or damaged other than at the very end.
    """

    def __init__(
        self, folder: Path, *, segment_bytes: int = 64 << 20, disk: Disk | None = None
    ) -> None:
        self._folder, self._segment_bytes = folder, segment_bytes
        self._disk = disk or Disk()
        self._disk.make_folder(folder)
        self.lineage = self._read_lineage()
        names = [name for name in self._disk.names(folder) if name.endswith(_SUFFIX)]
        self._firsts = sorted(int(name.removesuffix(_SUFFIX)) for name in names)
        self._end = self._firsts[-1] - 1 if self._firsts else 0
        self._buffer = bytearray()
        self._size = 0  # of the last segment, with what waits in memory
        self._is_named = bool(self._firsts)  # the last segment's name is durable
        self._is_synced = True
        self.num_torn_bytes = 0
        """Bytes of an unfinished record that opening the store cut off."""
        if self._firsts:
            self._recover(self._firsts[-1])

    @property
    def end(self) -> str:
        """Cursor of the last entry; ``START`` before the first."""
        return f"{self._end}-0"

    def append(self, producer: str, sequence: int, payload: bytes) -> str:
        """Add an entry and return its cursor; durable after ``sync``.

        Raises OSError when the disk is full and too much waits for it already; nothing was added.
        """
        if not self._firsts or self._size >= self._segment_bytes:
            self.sync()
            self._firsts.append(self._end + 1)
            self._size, self._is_named = 0, False
        elif len(self._buffer) > _FLUSH_BYTES:
            self.flush()
        record = _encode(producer, sequence, payload)
        self._buffer += record
        self._size += len(record)
        self._end += 1
        return self.end

    def flush(self) -> None:
        """Make what was appended visible to readers."""
        if self._buffer:
            self._disk.extend(self._path(self._firsts[-1]), bytes(self._buffer))
            self._buffer.clear()
            self._is_synced = False

    def sync(self) -> None:
        """Make everything appended so far durable."""
        self.flush()
        if not self._is_synced:
            self._disk.sync(self._path(self._firsts[-1]))
            self._is_synced = True
        if not self._is_named and self._size:
            self._disk.sync(self._folder)
            self._is_named = True

    def entries(self, after: str) -> Iterator[Entry]:
        """Yield the entries behind the cursor ``after`` that are there now (trimmed ones are not).

        Raises SegmentError when a segment is damaged or missing.
        """
        self.flush()
        last, wanted = self._end, _number(after) + 1
        if wanted > last:
            return
        index = max(0, bisect_right(self._firsts, wanted) - 1)
        number = self._firsts[index] - 1
        for first in self._firsts[index:]:
            if first != number + 1:
                raise SegmentError(f"{self._path(first)} follows entry {number}: one is missing")
            for number, (record, _) in enumerate(self._records(first), first):
                if number >= wanted:
                    producer, sequence, payload = _decode(record, self._path(first))
                    yield Entry(f"{number}-0", producer, sequence, payload, SHARD)
                # What lies behind may be half written: it is not even looked at.
                if number == last:
                    return

    def truncate(self, cursor: str) -> int:
        """Remove all entries behind ``cursor``; return their number. Readers must start anew.

        Raises SegmentError when ``cursor`` is not within the store: accepted entries are missing.
        """
        target = _number(cursor)
        first_kept = self._firsts[0] if self._firsts else 1
        if not first_kept - 1 <= target <= self._end:
            raise SegmentError(
                f"{self._folder} holds entries {first_kept} to {self._end}, cannot go back to the "
                f"end of entry {target}"
            )
        self.flush()
        removed = self._end - target
        while len(self._firsts) > 1 and self._firsts[-1] > target:
            self._disk.remove(self._path(self._firsts.pop()))
            self._is_named = True
        if removed:
            position = 0
            for number, (_, end) in enumerate(self._records(self._firsts[-1]), self._firsts[-1]):
                if number > target:
                    break
                position = end
            self._disk.cut(self._path(self._firsts[-1]), position)
            self._size = position
        self._end = target
        self._disk.sync(self._folder)
        return removed

    def trim(self, edge: str) -> int:
        """Remove segments that lie wholly below ``edge``; return the number of entries in them."""
        number, removed = _number(edge), 0
        while len(self._firsts) > 1 and self._firsts[1] <= number:
            first = self._firsts.pop(0)
            removed += self._firsts[0] - first
            self._disk.remove(self._path(first))
        return removed

    def rewrite(self, convert: Callable[[bytes], bytes]) -> int:
        """Replace every payload by what ``convert`` makes of it; return the number of entries.

        Numbers and producers stay; each segment is old or new. Readers must start anew. Raises
        SegmentError for damage.
        """
        self.sync()
        count = 0
        for first in self._firsts:
            path, fresh = self._path(first), bytearray()
            for record, _ in self._records(first):
                producer, sequence, payload = _decode(record, path)
                fresh += _encode(producer, sequence, convert(payload))
                count += 1
            self._disk.write_atomic(path, bytes(fresh))
            self._size = len(fresh)
        return count

    def close(self) -> None:
        """Make everything durable."""
        self.sync()

    # --- files ------------------------------------------------------------------------------------

    def _path(self, first: int) -> Path:
        return self._folder / f"{first:012d}{_SUFFIX}"

    def _read_lineage(self) -> str:
        path = self._folder / "lineage"
        try:
            return self._disk.read(path).decode()
        except FileNotFoundError:
            lineage = secrets.token_hex(8)
            self._disk.write_atomic(path, lineage.encode())
            return lineage

    def _recover(self, first: int) -> None:
        """Find the end of the last segment and cut off what is not a whole record."""
        with self._disk.open(self._path(first)) as file:
            size = file.seek(0, 2)
        for _, end in self._records(first, tolerate_tail=True):
            self._size = end
            self._end += 1
        self.num_torn_bytes = size - self._size
        if self.num_torn_bytes:
            self._disk.cut(self._path(first), self._size)

    def _records(self, first: int, *, tolerate_tail: bool = False) -> Iterator[tuple[bytes, int]]:
        """Yield (record, offset behind it) of one segment.

        With ``tolerate_tail`` it ends at the first record that is cut or damaged, else that raises
        SegmentError.
        """
        path = self._path(first)
        with self._disk.open(path) as file:
            position, size = 0, file.seek(0, 2)
            file.seek(0)
            while prefix := file.read(_FRAME.size):
                whole = len(prefix) == _FRAME.size
                length, digest = _FRAME.unpack(prefix) if whole else (0, b"")
                # A damaged length must not set gigabytes aside before they turn out missing.
                record = file.read(min(length, size - position))
                if not whole or len(record) != length or _digest(record) != digest:
                    if tolerate_tail:
                        return
                    raise SegmentError(f"{path} is damaged at byte {position}")
                position += _FRAME.size + length
                yield record, position


class SegmentWriter:
    """TrajectoryWriter over a SegmentStore."""

    def __init__(
        self,
        store: SegmentStore,
        producer: str,
        *,
        max_pending: int = 512,
        first_sequence: int = 1,
    ) -> None:
        self._store, self._producer, self._max_pending = store, producer, max_pending
        self._sequence = first_sequence - 1
        self._outbox: list[bytes] = []
        self._num_written = 0  # of the outbox: appended, not durable yet
        self._num_accepted = 0

    def append(self, payload: bytes) -> None:
        """See TrajectoryWriter."""
        if len(self._outbox) >= self._max_pending:
            raise OutboxFull(f"{len(self._outbox)} trajectories wait for acceptance: poll first")
        self._outbox.append(payload)

    def poll(self, timeout_s: float) -> int:
        """Append what is queued and make it durable; see TrajectoryWriter.

        Raises OSError when the disk is full; the next call goes on where this one ended.
        """
        if not self._outbox:
            return 0
        for payload in self._outbox[self._num_written :]:
            self._store.append(self._producer, self._sequence + 1, payload)
            self._sequence += 1
            self._num_written += 1
        self._store.sync()
        accepted, self._num_written = self._num_written, 0
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
        """``first_sequence`` of the writer that goes on after a snapshot (poll first)."""
        return self._sequence + 1

    def close(self) -> None:
        """See TrajectoryWriter."""


class SegmentReader:
    """TrajectoryReader over a SegmentStore of the same process."""

    def __init__(self, store: SegmentStore, state: ReaderState | None = None) -> None:
        self._store = store
        self.state = state or ReaderState()
        self._ahead: Iterator[Entry] = iter(())
        self._check_lineage()

    def _check_lineage(self) -> None:
        self._ahead = iter(())
        known, self.state.lineage = self.state.lineage, self._store.lineage
        cursor = self.state.cursors.get(SHARD, START)
        if (known and known != self._store.lineage) or _number(self._store.end) < _number(cursor):
            self.state.cursors[SHARD] = START
            if SHARD in self.state.window_edge:
                self.state.window_edge[SHARD] = START

    def read(self, max_entries: int, timeout_s: float) -> list[Entry]:
        """See TrajectoryReader; never waits, since the writer is in the same process."""
        fresh: list[Entry] = []
        while len(fresh) < max_entries:
            # The iterator stays at its place in the file; a new one begins where it ended.
            entry = next(self._ahead, None)
            if entry is None:
                self._ahead = self._store.entries(self.state.cursors.get(SHARD, START))
                entry = next(self._ahead, None)
                if entry is None:
                    break
            fresh += ingest(self.state, SHARD, [entry])
        return fresh

    def rebuild(self) -> Iterator[Entry]:
        """See TrajectoryReader."""
        self._check_lineage()
        edge = self.state.window_edge.get(SHARD)
        if edge is None:
            return
        last = _number(self.state.cursors.get(SHARD, START)) or _number(self._store.end)
        before = f"{max(0, _number(edge) - 1)}-0"
        entries = (e for e in self._store.entries(before) if _number(e.cursor) <= last)
        expected = self.state.window_entries.get(SHARD, 0)
        yield from rebuild_shard(self.state, SHARD, entries, expected)

    def close(self) -> None:
        """See TrajectoryReader."""
        self._ahead = iter(())
