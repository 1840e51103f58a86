"""Waiting on a condition with a deadline, and processes that a test ends whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psutil

ROOT = Path(__file__).resolve().parents[2]

T = TypeVar("T")


def wait_for(condition: Callable[[], T | None], timeout_s: float, what: str) -> T:
    """Return the first true answer of ``condition``; fail after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {what}")
        time.sleep(0.02)


def files_below(folder: Path) -> Iterator[Path]:
    """Yield what lies below ``folder`` and is no folder; files and folders may go meanwhile.

    (``Path.rglob`` raises when a folder is removed while it looks.)
    """
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in names)


def files_with(secret: str, folder: Path) -> list[Path]:
    """Return the files below ``folder`` that hold ``secret``; at least one has to be there."""
    found, num_read = [], 0
    for path in files_below(folder):
        with contextlib.suppress(OSError):  # sockets, and what is removed meanwhile
            if path.is_file():
                found += [path] if secret.encode() in path.read_bytes() else []
                num_read += 1
    assert num_read > 0, f"nothing to look at in {folder}"
    return found


def processes_of(folder: Path) -> list[psutil.Process]:
    """Return the running processes whose command line or working directory names ``folder``."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            words = [*process.cmdline(), process.cwd()]
            if any(str(folder) in word for word in words):
                found.append(process)
    return found


def spawn(*command: str) -> subprocess.Popen[bytes]:
    """Start ``python -m COMMAND`` from the repository's root in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


@contextlib.contextmanager
def nothing_left(folder: Path) -> Iterator[None]:
    """At the end of the context kill every process that names ``folder``."""
    try:
        yield
    finally:
        for process in processes_of(folder):
            with contextlib.suppress(psutil.Error):
                process.kill()


@contextlib.contextmanager
def started(folder: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``python -m COMMAND``; at the end nothing of it is left."""
    with nothing_left(folder):
        child = spawn(*command)
        try:
            yield child
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
            child.wait()


def heed_ctrl_c() -> None:
    """Undo what a shell does to the tests' process when it runs in the background.

    For ``preexec_fn`` of a program that gets SIGINT.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
