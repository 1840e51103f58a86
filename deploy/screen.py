"""Where an owner shows its status: the terminal, ``status.json``, the metrics and the log.

Room: deploy. Imports rich and prometheus_client (through deploy.liveview and deploy.metrics).
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TextIO

import structlog
from rich.console import Console

from deploy.config import RunConfig
from deploy.liveview import LiveView
from deploy.metrics import Metrics
from deploy.rundir import RunDirectory
from deploy.status import RunStatus
from deploy.tracker import Tracker

DRAW_EVERY_S = 0.5
MEASURE_MEMORY_EVERY_S = 10.0


class Screen:
    """Shows a tracker's status at a bounded rate. ``close`` ends live view and endpoint."""

    def __init__(
        self, config: RunConfig, directory: RunDirectory, tracker: Tracker, terminal: TextIO
    ) -> None:
        """Draw on ``terminal``; whatever else is printed goes to where standard error went."""
        log = sys.stderr
        structlog.configure(
            processors=[
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0),
            ],
            logger_factory=structlog.PrintLoggerFactory(file=log),
        )
        self._log = structlog.get_logger()
        self._directory = directory
        self._tracker = tracker
        self._metrics = Metrics(config.runtime.metrics_port)
        self._view = LiveView(config, Console(file=terminal))
        sys.stdout = sys.stderr = log  # a live view takes both over, to print above itself
        self._drawn_at = self._measured_at = float("-inf")
        tracker.status.metrics_url = self._metrics.url

    def update(self, *, now: bool = False) -> None:
        """Show the present status, unless it was shown a moment ago (``now`` shows it anyway)."""
        clock = time.monotonic()
        for event in self._tracker.take_log():
            with contextlib.suppress(OSError):  # the log may be on a full disk
                self._log.info(event)
        if not now and clock < self._drawn_at + DRAW_EVERY_S:
            return
        self._drawn_at = clock
        if clock >= self._measured_at + MEASURE_MEMORY_EVERY_S:
            self._measured_at = clock
            self._tracker.measure_memory()
        status = self._tracker.refresh()
        self._write(status)
        self._metrics.update(status)
        self._view.update(status)

    def _write(self, status: RunStatus) -> None:
        """Replace ``status.json``. A full disk must not end the run for a screen."""
        try:
            self._directory.write_status(status)
        except OSError:
            with contextlib.suppress(OSError):  # still a sign of life for the supervisor
                os.utime(self._directory.status_path)

    def state(self, word: str) -> None:
        """Set and show the state in a word of ``RunStatus.state``."""
        self._tracker.status.state = word
        self.update(now=True)

    def close(self) -> None:
        """Leave the terminal as it was; repeated calls do nothing."""
        self._view.close()
        self._metrics.close()
