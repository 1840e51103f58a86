"""How trajectories travel: writer and reader protocols. The window is in replay.window.

Room: replay. A writer belongs to one self-play worker, a reader to one learner rank.

Accepted, then ingested: ``append`` only queues; a trajectory is *accepted* once the store has
confirmed that it is on disk; the reader ingests each accepted trajectory exactly once, by cursor
and by (producer, sequence) marks that are part of its snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import msgspec


class Entry(NamedTuple):
    """One accepted trajectory as a reader sees it."""

    cursor: str
    """Position in the stream, comparable within one shard; the snapshot stores the last one."""
    producer: str
    """Incarnation of the worker that wrote it (unique for every start of a process)."""
    sequence: int
    """1, 2, 3 … within the producer."""
    payload: bytes
    """replay.codec bytes."""
    shard: str = "0"
    """Stream that it was read from."""
    fault: str = ""
    """Why this is no trajectory of any producer, in words; such an entry has no sequence."""


class ReaderState(msgspec.Struct, kw_only=True):
    """What a learner's snapshot stores so that ingestion is exactly once per line of snapshots."""

    lineage: str = ""
    """Random id of the stream; a different one after a restart means that the stream was lost."""
    cursors: dict[str, str] = {}
    """Per shard: the last entry read."""
    marks: dict[str, int] = {}
    """Per producer: the highest sequence number ingested."""
    window_edge: dict[str, str] = {}
    """Per shard: the oldest entry that the window still holds (trim below it, rebuild from it)."""
    window_entries: dict[str, int] = {}
    """Per shard: entries ingested from that edge on (what a rebuild has to find)."""
    bases: dict[str, int] | None = None
    """Per producer: its lowest sequence number among those entries. A repeat of an earlier one may
    stand there too and is none of them. None: of a program that did not know."""
    floors: dict[str, int] = {}
    """Per producer: the lowest sequence number in the window; what lies below is no part of it."""
    strays: dict[str, str] = {}
    """Per shard: the last entry met that was no trajectory; at or below it none counts again."""
    num_lost: int = 0
    """Accepted entries that were gone when the stream was read (flush, failover, old backup)."""


class TrajectoryWriter(Protocol):
    """Bounded outbox in front of a store."""

    def append(self, payload: bytes) -> None:
        """Queue one trajectory. Raises OutboxFull when the bound is reached; nothing is dropped."""
        ...

    def poll(self, timeout_s: float) -> int:
        """Send what is queued and wait up to ``timeout_s`` for acceptance; return how many are new.

        A store that is away is not an error here: entries stay queued and are sent again.
        """
        ...

    @property
    def num_pending(self) -> int:
        """Trajectories queued or sent and not yet accepted."""
        ...

    @property
    def num_accepted(self) -> int:
        """Trajectories accepted since the writer began."""
        ...

    def close(self) -> None:
        """Close connections; what was not accepted is lost work (counted by the caller)."""
        ...


class TrajectoryReader(Protocol):
    """Reads every accepted trajectory once, in order per producer."""

    state: ReaderState
    """Changed in place by reading. A snapshot's state may take its place before ``rebuild``."""

    def read(self, max_entries: int, timeout_s: float) -> list[Entry]:
        """Return new entries (empty after ``timeout_s``); repeats are dropped by the marks.

        Advances ``state``: what is returned counts as ingested. What is no trajectory of any
        producer is among them once, with its ``fault``.
        """
        ...

    def rebuild(self) -> Iterator[Entry]:
        """Yield the entries of the window that ``state`` describes, in the order of ingestion.

        Those that were refused when they were read are among them.

        To be read to its end before the first ``read``: what is missing then is added to
        ``state.num_lost``. Nothing here counts as ingested again.
        """
        ...

    def close(self) -> None: ...


class OutboxFull(RuntimeError):
    """The store has not confirmed for so long that the outbox is full: pause, then poll again."""
