"""What Ctrl-C and SIGTERM ask the supervisor for. Room: deploy. Standard library only."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from deploy import control


class Signals:
    """What was asked for. Handlers only count; ``wait`` returns at once when one comes."""

    def __init__(self) -> None:
        self.interrupts = 0
        self.terminated = 0
        self._interrupts_when_saved = 0
        self._wake_read, self._wake_write = -1, -1

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Take the signals while the context lasts. Main thread only."""
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        wakeup = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        before: dict[int, Any] = {
            number: signal.signal(number, self._take)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            self.interrupts += 1
        elif number in (signal.SIGTERM, signal.SIGHUP):
            self.terminated += 1

    @property
    def stopping(self) -> bool:
        """Whether anything was asked for."""
        return bool(self.interrupts or self.terminated)

    def wishes(self) -> list[str]:
        """Return what the owner is to be told, each once; a later one hurries more."""
        told = [(self.interrupts, control.STOP), (self.interrupts > 1, control.NOW)]
        return [word for asked, word in [*told, (self.terminated, control.WITHIN)] if asked]

    def saved(self) -> None:
        """From now on a further Ctrl-C is meant for the closing table."""
        self._interrupts_when_saved = self.interrupts

    def interrupted_again(self) -> bool:
        """Whether a signal came since ``saved``."""
        return self.terminated > 0 or self.interrupts > self._interrupts_when_saved

    def wait(self, timeout_s: float) -> None:
        """Return after a signal (a child's end is one) or ``timeout_s``."""
        ready, _, _ = select.select([self._wake_read], [], [], timeout_s)
        if ready:
            os.read(self._wake_read, 4096)
