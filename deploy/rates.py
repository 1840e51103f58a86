"""Rates over a sliding window. Room: deploy. Standard library only."""

from __future__ import annotations

from collections import deque


class Rate:
    """Amounts per second over the last ``window_s`` seconds."""

    def __init__(self, window_s: float = 30.0) -> None:
        self._window_s = window_s
        self._events: deque[tuple[float, float]] = deque()
        self._sum = 0.0
        self._began: float | None = None

    def add(self, amount: float, now: float) -> None:
        """Count ``amount`` at ``now`` (seconds of a clock that never goes back)."""
        if self._began is None:
            self._began = now
        self._events.append((now, amount))
        self._sum += amount
        self._expire(now)

    def per_s(self, now: float) -> float:
        """Return the rate; while younger than the window, over its age (at least a second)."""
        self._expire(now)
        if self._began is None:
            return 0.0
        return self._sum / max(1.0, min(self._window_s, now - self._began))

    def _expire(self, now: float) -> None:
        while self._events and self._events[0][0] < now - self._window_s:
            self._sum -= self._events.popleft()[1]
        if not self._events:
            self._sum = 0.0


class Growth:
    """The rate at which a total grows; a total that falls (a restored learner) starts afresh."""

    def __init__(self, window_s: float = 30.0) -> None:
        self._rate = Rate(window_s)
        self._last: float | None = None

    def see(self, total: float, now: float) -> None:
        """Tell the present total."""
        if self._last is not None:
            self._rate.add(max(0.0, total - self._last), now)
        self._last = total

    def per_s(self, now: float) -> float:
        """Return the growth per second."""
        return self._rate.per_s(now)
