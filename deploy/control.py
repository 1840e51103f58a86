"""How the supervisor speaks to the owner: a pipe of lines, whose end means that it has died.

Room: deploy. Standard library only.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

STOP = "stop"
"""Drain, snapshot, manifest, end."""
NOW = "now"
"""The same without the drain."""
WITHIN = "within"
"""``within S``: as ``stop``, but everything has to be saved and ended in S seconds."""
SERVER_RESTARTED = "server-restarted"
"""The bundled server was started again on the same address."""

EXIT_ORPHANED = 5
"""Exit code of an owner whose supervisor has died."""
EXIT_REFUSED = 3
"""Exit code of an owner that a restart would not help (wrong configuration, damaged run)."""


class Control:
    """The owner's end. Fields are set by a thread of its own; the owner reads them in its loop."""

    def __init__(self, descriptor: int, on_orphaned: Callable[[], None] | None = None) -> None:
        """Listen on ``descriptor``; -1 listens to nobody (a run without a supervisor).

        Once the supervisor is gone, ``on_orphaned`` is called in the listening thread and the
        process ends: the manifest is the truth, and the server is about to end as well.
        """
        self.stopping = threading.Event()
        self.skip_drain = threading.Event()
        self.num_server_restarts = 0
        self._deadline = float("inf")
        self._descriptor = descriptor
        self.on_orphaned = on_orphaned
        self._ended = False
        if descriptor >= 0:
            threading.Thread(target=self._listen, name="control", daemon=True).start()

    def _listen(self) -> None:
        pending = b""
        while True:
            data = os.read(self._descriptor, 4096)
            if not data:
                if not self._ended:
                    self._end_orphaned()
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                self.take(line.decode())

    def _end_orphaned(self) -> None:
        try:
            if self.on_orphaned is not None:
                self.on_orphaned()
        finally:
            os._exit(EXIT_ORPHANED)

    @property
    def is_attached(self) -> bool:
        """Whether there is a supervisor."""
        return self._descriptor >= 0

    def take(self, line: str) -> None:
        """Obey one line. Raises ValueError for an unknown one."""
        if line == STOP:
            self.stopping.set()
        elif line == NOW:
            self.skip_drain.set()
            self.stopping.set()
        elif line == SERVER_RESTARTED:
            self.num_server_restarts += 1
        elif line.startswith(f"{WITHIN} "):
            self._deadline = time.monotonic() + float(line.split()[1])
            self.stopping.set()
        else:
            raise ValueError(
                f"control line {line!r}: allowed are stop, now, within S, server-restarted"
            )

    def left_s(self) -> float:
        """Return how long saving may still take; infinite while there is no hurry."""
        return self._deadline - time.monotonic()

    def close(self) -> None:
        """The owner ends by itself: the pipe's end means nothing any more."""
        self._ended = True
