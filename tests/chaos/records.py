"""What a run under attack leaves behind outside its server: logs that no part of it reads.

Files of one folder, a JSON document a line, only ever appended to, each line with one write:

    starts.jsonl              every start of an actor
    accepted-SLOT-EPOCH.jsonl trajectories that the server has confirmed to a worker
    ingested-EPOCH.jsonl      what a learner restored, read, and put into snapshots
    owner.jsonl               what owners said and announced

A process that is killed in the middle of a write leaves a last line that is none: it is left out.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import TypeVar

import msgspec

from deploy.processes import ProcessMark, mark

FOLDER_VARIABLE = "CHAOS_LOGS"


class Started(msgspec.Struct, frozen=True, tag="started"):
    """An actor's process began."""

    role: str
    slot: int
    epoch: int
    process: ProcessMark
    at: float


class Accepted(msgspec.Struct, frozen=True, tag="accepted"):
    """A worker's trajectory was confirmed."""

    producer: str
    sequence: int
    digest: str
    at: float


class Restored(msgspec.Struct, frozen=True, tag="restored"):
    """A learner begins from a snapshot, or from nothing (empty)."""

    snapshot: str


class Ingested(msgspec.Struct, frozen=True, tag="ingested"):
    """A learner read an entry that its marks let pass."""

    producer: str
    sequence: int
    digest: str


class Snapshot(msgspec.Struct, frozen=True, tag="snapshot"):
    """A learner returned a snapshot with these marks."""

    snapshot: str
    marks: dict[str, int]


class Said(msgspec.Struct, frozen=True, tag="said"):
    """An owner's event in words."""

    text: str
    at: float


class Champion(msgspec.Struct, frozen=True, tag="champion"):
    """An owner told its actors of another champion than before."""

    version: int
    at: float


LearnerRecord = Restored | Ingested | Snapshot
OwnerRecord = Said | Champion
T = TypeVar("T")


def digest_of(data: bytes) -> str:
    """Return the hash under which ``data`` is recorded."""
    return hashlib.sha256(data).hexdigest()


class Log:
    """One file of records, appended to."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, *records: msgspec.Struct) -> None:
        """Append ``records`` with one write: they outlive this process."""
        os.write(self._descriptor, b"".join(msgspec.json.encode(r) + b"\n" for r in records))


def read_log(path: Path, kind: type[T]) -> list[T]:
    """Return the whole lines of a log; none when there is no file."""
    if not path.exists():
        return []
    *lines, _ = path.read_bytes().split(b"\n")
    decoder = msgspec.json.Decoder(kind)
    return [decoder.decode(line) for line in lines]


class Logs:
    """The folder of a run's records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of_environment(cls) -> Logs:
        """Return the folder that whoever started this process named."""
        return cls(Path(os.environ[FOLDER_VARIABLE]))

    # --- writing ----------------------------------------------------------------------------------

    def note_start(self, role: str, slot: int, epoch: int) -> None:
        """Record that this process is an actor from now on."""
        process = mark(os.getpid())
        assert process is not None
        Log(self.folder / "starts.jsonl").write(Started(role, slot, epoch, process, time.time()))

    def accepted_log(self, slot: int, epoch: int) -> Log:
        """Return the log of one start of a worker."""
        return Log(self.folder / f"accepted-{slot}-{epoch}.jsonl")

    def ingested_log(self, epoch: int) -> Log:
        """Return the log of one start of the learner."""
        return Log(self.folder / f"ingested-{epoch}.jsonl")

    def owner_log(self) -> Log:
        """Return the log of all owners, one after another."""
        return Log(self.folder / "owner.jsonl")

    # --- reading ----------------------------------------------------------------------------------

    def starts(self) -> list[Started]:
        """Return all starts of actors, in order."""
        return read_log(self.folder / "starts.jsonl", Started)

    def accepted(self) -> dict[int, list[Accepted]]:
        """Return what was accepted of each slot, by start and in order."""
        found: dict[int, list[Accepted]] = {}
        for (slot, _), path in sorted(self._numbered("accepted-*-*.jsonl").items()):
            found.setdefault(slot, []).extend(read_log(path, Accepted))
        return found

    def ingested(self) -> dict[int, list[LearnerRecord]]:
        """Return the records of each start of the learner, by epoch."""
        return {
            epoch: read_log(path, LearnerRecord)  # type: ignore[arg-type]
            for (epoch,), path in sorted(self._numbered("ingested-*.jsonl").items())
        }

    def owner(self) -> list[OwnerRecord]:
        """Return what owners said."""
        return read_log(self.folder / "owner.jsonl", OwnerRecord)  # type: ignore[arg-type]

    def last_accepted_at(self, slot: int) -> float:
        """Return when a game of ``slot`` was accepted last (Unix time); 0 before the first one."""
        paths = self.folder.glob(f"accepted-{slot}-*.jsonl")
        return max((path.stat().st_mtime for path in paths if path.stat().st_size), default=0.0)

    def _numbered(self, pattern: str) -> dict[tuple[int, ...], Path]:
        return {
            tuple(int(part) for part in path.stem.split("-")[1:]): path
            for path in self.folder.glob(pattern)
        }
