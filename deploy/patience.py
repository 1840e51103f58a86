"""What waits for a disk that takes no data: a full one heals, and no run ends for it.

Room: deploy. May import: deploy.files, replay.disk.

In the in-process runtime everything waits with the write (``PatientFiles``). Over Ray the owner has
to go on answering: it queues what is to be written (``Steps``), in order, and tries again.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar

from deploy.files import Files
from replay.disk import is_disk_trouble, trouble_of

T = TypeVar("T")

RETRY_S = 1.0
LAST_TRIES_S = 10.0
"""So long after a wish to stop, saving is tried; then the run is as of its manifest."""


def in_words(error: OSError) -> str:
    """Return the alert for a disk that takes no data."""
    return (
        f"the run directory cannot be written ({error.strerror}): workers are paused, nothing new "
        "is announced; it goes on by itself once there is room"
    )


def no_room(folder: Path, error: OSError) -> str:
    """Return what somebody is told whose run cannot even start."""
    return (
        f"{folder} takes no data ({error.strerror}): free space on its disk; the run goes on by "
        "itself once there is room"
    )


def told_once(terminal: TextIO) -> Callable[[str], None]:
    """Return a ``Patience.report`` for a terminal that shows no screen yet."""
    told: set[str] = set()

    def report(trouble: str) -> None:
        if trouble and trouble not in told:
            told.add(trouble)
            terminal.write(f"{trouble}\n")
            terminal.flush()

    return report


class NoRoomError(RuntimeError):
    """The run was to end while the disk still took no data; says where to free space."""


class _Waiting(Protocol):
    """``deploy.signals.Signals``."""

    @property
    def stopping(self) -> bool: ...

    def wait(self, timeout_s: float) -> None: ...


class Room:
    """What the supervisor does with a disk that takes no data: it says so once, and waits."""

    def __init__(self, folder: Path, signals: _Waiting, say: Callable[[str], None]) -> None:
        self._folder, self._signals, self._say = folder, signals, say

    def patiently(self, operation: Callable[[], T]) -> T:
        """Return what ``operation`` returns once the disk takes what it writes.

        It may be done several times. Raises NoRoomError when the run is to end before.
        """
        while True:
            try:
                return operation()
            except OSError as error:
                if not is_disk_trouble(error):
                    raise
                self.wait(error)

    def wait(self, error: OSError) -> None:
        """Return once there is room again. Raises NoRoomError when the run is to end before."""
        words = no_room(self._folder, error)
        self._say(words)
        while not self._signals.stopping:
            self._signals.wait(RETRY_S)
            if trouble_of(self._folder) is None:
                return
        raise NoRoomError(f"the run is as of its manifest: {words}")


class Steps:
    """Work on the disk, in order: what fails waits here, and nothing overtakes it.

    A step is done again as a whole, so it may change nothing before its first write succeeded.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: deque[Callable[[], object]] = deque()
        self._try_at = float("-inf")
        self.trouble = ""
        """Why steps wait, in words; empty while none does."""

    def add(self, *steps: Callable[[], object]) -> None:
        """Queue steps; ``run`` does them."""
        self._waiting.extend(steps)

    def run(self) -> bool:
        """Do what is queued; return False while the disk refuses (tried once in RETRY_S)."""
        if self.trouble and self._clock() < self._try_at:
            return False
        while self._waiting:
            try:
                self._waiting[0]()
            except OSError as error:
                if not is_disk_trouble(error):
                    raise
                self.trouble = in_words(error)
                self._try_at = self._clock() + RETRY_S
                return False
            self.trouble = ""
            self._waiting.popleft()
        self.trouble = ""
        return True


class Patience:
    """How long a write waits for its disk, and who hears of it."""

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._give_up_at = float("inf")
        self.report: Callable[[str], None] = lambda trouble: None
        """Told what is wrong at every try, and "" once it is over."""

    def wait(self, error: OSError) -> None:
        """Return when it is time to try again. Raises ``error`` once the run has to end."""
        self.report(in_words(error))
        if self._stopping.is_set():
            now = time.monotonic()
            self._give_up_at = min(self._give_up_at, now + LAST_TRIES_S)
            if now > self._give_up_at:
                raise error
            time.sleep(RETRY_S)
        else:
            self._stopping.wait(RETRY_S)


class PatientFiles(Files):
    """Files whose durable writes wait while the disk is full; status files do not."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._is_patient = True

    def replace(self, path: Path, data: bytes) -> None:
        """See Disk. A screen must not wait for the disk."""
        self._is_patient = False
        try:
            super().replace(path, data)
        finally:
            self._is_patient = True

    def _write(self, path: Path, data: bytes) -> None:
        self._try(super()._write, path, data)

    def _append(self, path: Path, data: bytes) -> None:
        self._try(super()._append, path, data)

    def _sync(self, path: Path) -> None:
        self._try(super()._sync, path)

    def _rename(self, source: Path, target: Path) -> None:
        self._try(super()._rename, source, target)

    def _make_folder(self, path: Path) -> None:
        self._try(super()._make_folder, path)

    def _try(self, operation: Callable[..., None], *arguments: Any) -> None:
        waited = False
        while True:
            try:
                operation(*arguments)
                break
            except OSError as error:
                if not self._is_patient or not is_disk_trouble(error):
                    raise
                self._patience.wait(error)
                waited = True
        if waited:
            self._patience.report("")
