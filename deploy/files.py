"""The files of a run: durable writes (replay.disk), locks, secrets, and a double for tests.

Room: deploy. Standard library only (the supervisor loads this module).
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shutil
import stat
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from replay.disk import Disk


class FilesError(RuntimeError):
    """A file operation that cannot be done; names the path."""


class LockedError(FilesError):
    """Somebody else holds the lock."""


class Lock:
    """A held ``flock``; released by ``release``, by leaving the context, or as the process ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Let go; repeated calls do nothing. The file stays: removing it would split the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class Files(Disk):
    """Durable operations, and locks between processes."""

    def read_bounded(self, path: Path, max_bytes: int) -> bytes:
        """Return the contents of a file that may be anything: never more than ``max_bytes``.

        Raises FileNotFoundError, and FilesError for what is no file or larger.
        """
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise FilesError(f"{path} is not a file")
        if found.st_size > max_bytes:
            raise FilesError(f"{path} has {found.st_size} bytes, allowed are {max_bytes}")
        return self.read(path)

    def copy(self, source: Path, target: Path) -> None:
        """Copy the contents of a file; on return they are durable, its name is not yet."""
        shutil.copyfile(source, target)
        self._sync(target)

    def move_folder(self, source: Path, target: Path) -> None:
        """Give a folder another name beside its own, which nothing has; durable on return."""
        self._sync(source)
        self._rename(source, target)
        self._sync(target.parent)

    def lock(self, path: Path) -> Lock:
        """Take the exclusive lock on ``path`` without waiting; close-on-exec.

        Raises LockedError when it is held, by whichever process.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise LockedError(f"{path} is held by another process") from None
        return Lock(path, descriptor)

    def is_locked(self, path: Path) -> bool:
        """Return whether somebody holds the lock on ``path``."""
        if not path.exists():
            return False
        try:
            self.lock(path).release()
        except LockedError:
            return True
        return False

    def write_secret(self, path: Path, data: bytes) -> None:
        """Write a file that only its owner can read (mode 0600 from its first instant)."""
        self._unlink(path)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with contextlib.closing(os.fdopen(descriptor, "wb")) as file:
            file.write(data)


def bound_log(path: Path, max_bytes: int) -> None:
    """Begin a log again when it is longer than ``max_bytes``; one earlier piece is kept beside it.

    The file stays the same one: its writer holds it open for appending and goes on. On a full disk
    there is no earlier piece.
    """
    if path.exists() and path.stat().st_size > max_bytes:
        with contextlib.suppress(OSError):
            shutil.copyfile(path, path.with_suffix(".log.1"))
        os.truncate(path, 0)


class PowerCut(BaseException):
    """Raised by ``MemoryFiles`` at its crash point; no ``except Exception`` may survive it."""


class MemoryFiles(Files):
    """Files in memory that tell apart what is visible and what would survive a power cut.

    ``crash_at`` counts primitives: the one with that number (from 0) does not happen any more.
    After a ``PowerCut``, ``survivors`` lists what the disk may hold.
    """

    def __init__(self, contents: dict[Path, bytes] | None = None) -> None:
        start = dict(contents or {})
        self._inodes: dict[int, bytes] = dict(enumerate(start.values()))
        self._durable: dict[int, bytes] = dict(self._inodes)
        self._names: dict[Path, int] = {path: i for i, path in enumerate(start)}
        self._durable_names: dict[Path, int] = dict(self._names)
        self.num_operations = 0
        self.crash_at: int | None = None

    def _count(self) -> None:
        if self.crash_at is not None and self.num_operations >= self.crash_at:
            raise PowerCut(self.num_operations)
        self.num_operations += 1

    def _write(self, path: Path, data: bytes) -> None:
        self._count()
        inode = self._names.get(path)
        if inode is None:
            inode = max(self._inodes, default=-1) + 1
            self._names[path] = inode
        self._inodes[inode] = bytes(data)

    def _append(self, path: Path, data: bytes) -> None:
        self._count()
        if path not in self._names:
            inode = max(self._inodes, default=-1) + 1
            self._names[path], self._inodes[inode] = inode, b""
        self._inodes[self._names[path]] += data

    def _cut(self, path: Path, size: int) -> None:
        self._count()
        inode = self._names[path]
        self._inodes[inode] = self._inodes[inode][:size]

    def _sync(self, path: Path) -> None:
        self._count()
        inode = self._names.get(path)
        if inode is not None:
            self._durable[inode] = self._inodes[inode]
            return
        for name in [name for name in self._durable_names if name.parent == path]:
            del self._durable_names[name]
        for name, number in self._names.items():
            if name.parent == path:
                self._durable_names[name] = number

    def _rename(self, source: Path, target: Path) -> None:
        self._count()
        self._names[target] = self._names.pop(source)

    def _unlink(self, path: Path) -> None:
        self._count()
        self._names.pop(path, None)

    def _make_folder(self, path: Path) -> None:
        self._count()

    def open(self, path: Path) -> BinaryIO:
        """See Disk."""
        if path not in self._names:
            raise FileNotFoundError(str(path))
        return io.BytesIO(self._inodes[self._names[path]])

    def read_bounded(self, path: Path, max_bytes: int) -> bytes:
        """See Files."""
        data = self.read(path)
        if len(data) > max_bytes:
            raise FilesError(f"{path} has {len(data)} bytes, allowed are {max_bytes}")
        return data

    def names(self, folder: Path) -> list[str]:
        """See Disk."""
        return sorted(path.name for path in self._names if path.parent == folder)

    def survivors(self) -> list[dict[Path, bytes]]:
        """Return four disks a power cut may leave: unsynced work lost, kept, torn, and the worst.

        The worst keeps the names and loses the contents: a file that was renamed before its
        contents were synced is then empty or cut in half. A torn one has a part of what was
        appended, and bytes of zero for the rest.
        """
        lost = {path: self._durable.get(i, b"") for path, i in self._durable_names.items()}
        kept = {path: self._inodes[i] for path, i in self._names.items()}
        torn = {path: self._torn(i) for path, i in self._names.items()}
        worst = {
            path: self._durable.get(i, self._inodes[i][: len(self._inodes[i]) // 2])
            for path, i in self._names.items()
        }
        return [lost, kept, torn, worst]

    def _torn(self, inode: int) -> bytes:
        durable, visible = self._durable.get(inode, b""), self._inodes[inode]
        if not visible.startswith(durable):
            return durable
        half = (len(durable) + len(visible)) // 2
        return visible[:half] + bytes(len(visible) - half)
