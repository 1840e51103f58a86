"""Durable files.

Behaviours checked:
* a write that fails on a full disk leaves nothing of itself behind
* an atomic write cut at every instant leaves old or new on every disk a power cut may leave
* once it has returned, only new
* the double notices each of the three syncs when it is left out
* a lock is exclusive between processes and is not inherited through exec
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploy.files import Files, LockedError, MemoryFiles, PowerCut, bound_log

TARGET = Path("/run/manifest.json")
OLD, NEW = b"old " * 100, b"new " * 200


def cut_everywhere(kind: type[MemoryFiles]) -> set[bytes | None]:
    """Write NEW over OLD, cut at every primitive; return everything a disk may then hold."""
    seen: set[bytes | None] = set()
    for crash_at in range(100):
        files = kind({TARGET: OLD})
        files.crash_at = crash_at
        try:
            files.write_atomic(TARGET, NEW)
        except PowerCut:
            seen |= {disk.get(TARGET) for disk in files.survivors()}
            continue
        assert all(disk.get(TARGET) == NEW for disk in files.survivors())
        return seen
    raise AssertionError("the write never finished")


def test_atomic_write_cut_at_every_instant_leaves_old_or_new() -> None:
    assert cut_everywhere(MemoryFiles) == {OLD, NEW}


def test_first_write_cut_at_every_instant_leaves_nothing_or_new() -> None:
    seen: set[bytes | None] = set()
    for crash_at in range(4):
        files = MemoryFiles()
        files.crash_at = crash_at
        with pytest.raises(PowerCut):
            files.write_atomic(TARGET, NEW)
        seen |= {disk.get(TARGET) for disk in files.survivors()}
    assert seen == {None, NEW}


def test_append_cut_at_every_instant_leaves_what_was_there_in_front() -> None:
    for crash_at in range(4):
        files = MemoryFiles({TARGET: OLD})
        files.crash_at = crash_at
        try:
            files.append(TARGET, NEW)
        except PowerCut:
            for disk in files.survivors():
                assert disk[TARGET].startswith(OLD)
                assert len(disk[TARGET]) in (len(OLD), len(OLD + NEW))
            continue
        assert all(disk[TARGET] == OLD + NEW for disk in files.survivors())
        break
    else:
        raise AssertionError("the write never finished")
    files = MemoryFiles()
    files.append(TARGET, NEW)
    assert all(disk[TARGET] == NEW for disk in files.survivors())


def test_append_on_a_disk_adds_to_the_end(tmp_path: Path) -> None:
    for part in (OLD, NEW):
        Files().append(tmp_path / "file", part)
    assert (tmp_path / "file").read_bytes() == OLD + NEW


class _NoContentSync(MemoryFiles):
    def _sync(self, path: Path) -> None:
        if path in self._names:
            self._count()
            return
        super()._sync(path)


class _NoFolderSync(MemoryFiles):
    def _sync(self, path: Path) -> None:
        if path not in self._names:
            self._count()
            return
        super()._sync(path)


def test_double_notices_a_rename_before_the_contents_are_synced() -> None:
    with pytest.raises(AssertionError):
        assert cut_everywhere(_NoContentSync) <= {OLD, NEW}


def test_double_notices_a_folder_that_was_not_synced() -> None:
    with pytest.raises(AssertionError):
        cut_everywhere(_NoFolderSync)


def test_real_files_hold_what_was_written(tmp_path: Path) -> None:
    files, path = Files(), tmp_path / "folder" / "file"
    files.make_folder(path.parent)
    files.write_atomic(path, OLD)
    files.write_atomic(path, NEW)
    assert files.read(path) == NEW
    assert files.names(path.parent) == ["file"]
    assert files.names(tmp_path / "absent") == []
    files.remove(path)
    files.remove(path)
    assert not path.exists()


def test_secret_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"before")
    path.chmod(0o644)
    Files().write_secret(path, b"after")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == b"after"


def test_lock_is_exclusive_until_released(tmp_path: Path) -> None:
    files, path = Files(), tmp_path / "run.lock"
    assert not files.is_locked(path)
    with files.lock(path):
        assert files.is_locked(path)
        with pytest.raises(LockedError, match=r"run\.lock"):
            files.lock(path)
    assert not files.is_locked(path)


def test_lock_is_not_inherited_by_a_started_program(tmp_path: Path) -> None:
    files, path = Files(), tmp_path / "run.lock"
    lock = files.lock(path)
    read, write = os.pipe()
    os.set_inheritable(read, True)
    child = subprocess.Popen(
        [sys.executable, "-c", f"import os; os.read({read}, 1)"], close_fds=False
    )
    try:
        lock.release()
        deadline = time.monotonic() + 5  # the kernel closes descriptors one by one during exec
        while files.is_locked(path) and time.monotonic() < deadline:
            os.sched_yield()
        assert not files.is_locked(path)
        assert child.poll() is None
    finally:
        os.close(write)
        os.close(read)
        child.wait(timeout=20)


def test_long_log_begins_again_under_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "owner.log"
    bound_log(path, 10)  # none yet
    with open(path, "ab", buffering=0) as writer:
        writer.write(b"first line\n")
        bound_log(path, 100)
        assert path.read_bytes() == b"first line\n"
        bound_log(path, 10)
        writer.write(b"second\n")
        assert path.read_bytes() == b"second\n"
        assert (tmp_path / "owner.log.1").read_bytes() == b"first line\n"
