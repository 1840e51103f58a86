"""Files that survive a power cut: the primitives, and the one way to replace a file.

Room: replay. Standard library only (the supervisor loads this module through deploy.files).

A power cut keeps what was fsynced and may lose, or keep in part, everything else. Three rules make
"old or new, never else" out of that: contents are fsynced before they get their name, a name
changes by ``rename`` alone, and the folder is fsynced before anybody is told. A write that fails
(a full disk) leaves no part of itself behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_PROBE_BYTES = 1 << 18
_TROUBLES = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)


def is_disk_trouble(error: OSError) -> bool:
    """Return whether ``error`` is the disk's and may heal: full, over quota, failing, read-only."""
    return error.errno in _TROUBLES


def trouble_of(folder: Path) -> OSError | None:
    """Return why ``folder`` takes no data, by trying; None when it does, or it is not the disk's.

    A folder that is not there yet stands for its nearest parent.
    """
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    probe = nearest / f".room-{os.getpid()}"
    try:
        with open(probe, "wb") as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error if is_disk_trouble(error) else None
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return None


class Disk:
    """Durable operations made of nine primitives, which a test double replaces."""

    # --- primitives -------------------------------------------------------------------------------

    def _write(self, path: Path, data: bytes) -> None:
        """Create or truncate ``path`` and write ``data``; nothing is durable yet."""
        self._put(path, data, os.O_TRUNC)

    def _append(self, path: Path, data: bytes) -> None:
        """Write ``data`` behind what ``path`` holds; nothing is durable yet."""
        self._put(path, data, os.O_APPEND)

    def _put(self, path: Path, data: bytes, how: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how
        descriptor = os.open(path, flags, 0o644)
        try:
            before = os.fstat(descriptor).st_size
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(descriptor, view) :]
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, before)
                raise
        finally:
            os.close(descriptor)

    def _cut(self, path: Path, size: int) -> None:
        """Shorten ``path``; nothing is durable yet."""
        os.truncate(path, size)

    def _sync(self, path: Path) -> None:
        """Make the contents of a file durable, or the names in a folder."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _rename(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def _unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def _make_folder(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def open(self, path: Path) -> BinaryIO:
        """Return ``path`` opened for reading. Raises FileNotFoundError."""
        return open(path, "rb")

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; an absent folder is empty."""
        return sorted(os.listdir(folder)) if folder.is_dir() else []

    # --- operations -------------------------------------------------------------------------------

    def read(self, path: Path) -> bytes:
        """Return the contents. Raises FileNotFoundError."""
        with self.open(path) as file:
            return file.read()

    def make_folder(self, path: Path) -> None:
        """Create ``path`` and its parents, durable in the nearest parent."""
        self._make_folder(path)
        self._sync(path.parent)

    def write_atomic(self, path: Path, data: bytes) -> None:
        """Replace ``path`` by ``data``: afterwards, and after any crash, it holds old or new.

        When this returns the new contents are durable.
        """
        temporary = path.with_name(f".{path.name}.new")
        with self._removed_on_failure(temporary):
            self._write(temporary, data)
            self._sync(temporary)
            self._rename(temporary, path)
        self._sync(path.parent)

    def replace(self, path: Path, data: bytes) -> None:
        """Replace ``path`` for readers at once, without asking for durability (status files)."""
        temporary = path.with_name(f".{path.name}.new")
        with self._removed_on_failure(temporary):
            self._write(temporary, data)
            self._rename(temporary, path)

    @contextlib.contextmanager
    def _removed_on_failure(self, temporary: Path) -> Iterator[None]:
        try:
            yield
        except OSError:
            with contextlib.suppress(OSError):
                self._unlink(temporary)
            raise

    def append(self, path: Path, data: bytes) -> None:
        """Add ``data`` to the end of ``path``, which may be new.

        When this returns it is durable; a crash before that may leave a part of it at the end.
        """
        self._append(path, data)
        self._sync(path)
        self._sync(path.parent)

    def extend(self, path: Path, data: bytes) -> None:
        """Add ``data`` to the end of ``path`` for readers; durable after ``sync``."""
        self._append(path, data)

    def sync(self, path: Path) -> None:
        """Make the contents of a file durable, or the names in a folder."""
        self._sync(path)

    def cut(self, path: Path, size: int) -> None:
        """Shorten ``path`` to ``size`` bytes, durable on return."""
        self._cut(path, size)
        self._sync(path)

    def remove(self, path: Path) -> None:
        """Remove a file; a missing one is fine. Durable whenever the system gets to it."""
        self._unlink(path)
