"""Time of one ``step``: its budget, what of it was work, and the share that may be.

Room: learner. Standard library only. Nothing that is computed depends on it but where a step ends.
"""

from __future__ import annotations

import time
from types import TracebackType

from learner.messages import LearnRequest


class Clock:
    """Wall clock of one step. As a context manager it counts what runs inside as work."""

    def __init__(self, request: LearnRequest) -> None:
        self._budget_s, self._share = request.budget_s, request.share
        self._start = time.monotonic()
        self._entered = self._start
        self._rested_at = 0.0
        self.busy_s = 0.0

    def __enter__(self) -> Clock:
        self._entered = time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.busy_s += time.monotonic() - self._entered

    @property
    def remaining_s(self) -> float:
        """Seconds left of the budget; 0 where there is none."""
        return max(0.0, self._budget_s - (time.monotonic() - self._start))

    @property
    def is_over(self) -> bool:
        """Whether there was a budget and it is spent."""
        return self._budget_s > 0.0 and self.remaining_s == 0.0

    def rest(self) -> None:
        """Sleep until the work since the last rest is its share of the time, within the budget."""
        if self._share >= 1.0:
            return
        worked_s = self.busy_s - self._rested_at
        self._rested_at = self.busy_s
        time.sleep(min(worked_s * (1.0 / self._share - 1.0), self.remaining_s))
