"""Processes by pid *and* start time, so that a reused pid is never signalled.

Room: deploy. Standard library, msgspec, psutil and replay.launch_server (the supervisor loads this
module). A run directory may have come from another machine: marks name the boot that they are of.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
import psutil
from msgspec import Meta

from deploy.files import Files
from replay.launch_server import boot_id

_PR_SET_PDEATHSIG = 1
_POLL_S = 0.02


class ProcessMark(msgspec.Struct, frozen=True, kw_only=True):
    """One process, beyond doubt."""

    pid: Annotated[int, Meta(gt=1, lt=1 << 31)]
    started: float
    """Start time: clock ticks since boot on Linux (no set clock moves them), else Unix time."""
    name: str = ""
    boot: str = ""
    """Machine and boot in which it ran; empty in books of earlier versions: this one."""
    folder: int = 0
    """Inode of the folder whose book it stands in; 0 in books of earlier versions: any."""


def mark(pid: int) -> ProcessMark | None:
    """Return the mark of a running process; None when it is gone."""
    try:
        process = psutil.Process(pid)
        return ProcessMark(pid=pid, started=_started(process), name=process.name(), boot=boot_id())
    except (psutil.Error, OSError):
        return None


def find(marked: ProcessMark) -> psutil.Process | None:
    """Return the marked process while it runs here (a zombie does not)."""
    if marked.boot not in ("", boot_id()):
        return None
    try:
        process = psutil.Process(marked.pid)
        same = abs(_started(process) - marked.started) < 0.02
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except (psutil.Error, OSError):
        return None


def _started(process: psutil.Process) -> float:
    if sys.platform == "linux":
        stat = Path(f"/proc/{process.pid}/stat").read_text(errors="replace")
        return float(stat.rpartition(")")[2].split()[19])
    return float(process.create_time())


def descendants(pid: int) -> list[ProcessMark]:
    """Return the marks of all living descendants of ``pid``."""
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    return [marked for child in children if (marked := mark(child.pid)) is not None]


def end(
    marks: Iterable[ProcessMark], timeout_s: float, *, gently: bool = True
) -> list[ProcessMark]:
    """End processes: SIGTERM, then SIGKILL to those that are left after ``timeout_s``.

    Waits until they are gone. Returns those that were alive when it began.
    """
    alive = [marked for marked in marks if find(marked) is not None]
    if gently:
        _signal_all(alive, signal.SIGTERM)
        wait_gone(alive, timeout_s)
    _signal_all(alive, signal.SIGKILL)
    wait_gone(alive, 5.0)
    return alive


def _signal_all(marks: Iterable[ProcessMark], number: signal.Signals) -> None:
    for marked in marks:
        process = find(marked)
        if process is not None:
            try:
                process.send_signal(number)
            except psutil.Error:
                continue


def wait_gone(marks: Iterable[ProcessMark], timeout_s: float) -> bool:
    """Wait until none of the processes runs; return whether that happened in time."""
    deadline = time.monotonic() + timeout_s
    waiting = list(marks)
    while waiting:
        waiting = [marked for marked in waiting if find(marked) is not None]
        if not waiting or time.monotonic() >= deadline:
            break
        time.sleep(_POLL_S)
    return not waiting


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this process ``number`` when the thread that started it ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def resident_bytes(root_pid: int) -> int:
    """Return the memory of a process and all its descendants.

    Proportional set size where the system tells it: pages that several processes share count once.
    """
    total = 0
    try:
        root = psutil.Process(root_pid)
        processes = [root, *root.children(recursive=True)]
    except psutil.Error:
        return 0
    for process in processes:
        try:
            total += _proportional(process)
        except psutil.Error:
            continue
    return total


def _proportional(process: psutil.Process) -> int:
    rollup = Path(f"/proc/{process.pid}/smaps_rollup")
    try:
        for line in rollup.read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return int(process.memory_info().rss)


class LifeSign:
    """Tells a process that works from one that hangs, by a file that it keeps replacing."""

    def __init__(self, path: Path, silence_s: float, start_s: float) -> None:
        """The file has to change every ``silence_s``; for the first time within ``start_s``."""
        self._path = path
        self._silence_s, self._start_s = silence_s, start_s
        self.begin()

    def begin(self) -> None:
        """A process was started now."""
        self._seen = self._changed()
        self._seen_at, self._limit_s = time.monotonic(), self._start_s

    def is_silent(self) -> bool:
        """Return whether the file has not changed for too long."""
        changed = self._changed()
        if changed != self._seen:
            self._seen, self._limit_s = changed, self._silence_s
            self._seen_at = time.monotonic()
        return time.monotonic() - self._seen_at > self._limit_s

    def _changed(self) -> int:
        try:
            return self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return 0


class ProcessBook:
    """Who was started for a run, on disk: the next start ends what a killed one left behind.

    One file per writer. It counts in the folder where it was written: a copy of a live run's
    directory says nothing about processes of its own.
    """

    def __init__(self, path: Path, files: Files | None = None) -> None:
        self._path = path
        self._files = files or Files()

    def read(self) -> list[ProcessMark]:
        """Return the marks; nothing when there is no book or it is damaged."""
        try:
            return msgspec.json.decode(self._files.read(self._path), type=list[ProcessMark])
        except (FileNotFoundError, msgspec.MsgspecError, RecursionError):
            return []

    def write(self, marks: list[ProcessMark]) -> None:
        """Replace the book; on a full disk the one before stays, and an empty one is removed."""
        here = self._folder()
        placed = [msgspec.structs.replace(marked, folder=here) for marked in marks]
        if not placed:
            self._files.remove(self._path)
        elif self.read() != placed:
            with contextlib.suppress(OSError):
                self._files.replace(self._path, msgspec.json.encode(placed))

    def end_all(self, timeout_s: float = 5.0) -> list[ProcessMark]:
        """End whatever of the book still runs, and clear it. Returns what was still alive."""
        here, mine = self._folder(), os.getpid()
        own = [marked for marked in self.read() if marked.folder in (0, here)]
        ended = end([marked for marked in own if marked.pid != mine], timeout_s)
        self.write([])
        return ended

    def _folder(self) -> int:
        try:
            return self._path.parent.stat().st_ino
        except OSError:
            return 0
