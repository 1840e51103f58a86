"""Where the time goes: named functions of other rooms, timed while they run.

Room: deploy. Standard library.

The watched names are replaced in their module or class by wrappers for the time of a measurement,
so that the rooms carry no clocks of their own. Times are processor time of the thread and
exclusive: what a watched function spends in another watched one is the other's.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any


class Stopwatch:
    """Seconds and calls per part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self._inner: list[float] = []  # per watched function under way: time spent in others

    def reset(self) -> None:
        """Start over."""
        self.seconds = dict.fromkeys(self.seconds, 0.0)
        self.calls = dict.fromkeys(self.calls, 0)

    def wrap(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function`` with its time added to ``part``."""
        self.seconds.setdefault(part, 0.0)
        self.calls.setdefault(part, 0)

        @functools.wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            self._inner.append(0.0)
            began = time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                spent = time.thread_time() - began
                self.seconds[part] += spent - self._inner.pop()
                self.calls[part] += 1
                if self._inner:
                    self._inner[-1] += spent

        return timed


@contextmanager
def watched(places: Mapping[str, tuple[tuple[Any, str], ...]]) -> Iterator[Stopwatch]:
    """Time functions by part: ``{part: ((module or class, name), ...)}``; single-threaded.

    Raises AttributeError for a name that does not exist.
    """
    stopwatch = Stopwatch()
    with ExitStack() as undo:
        for part, names in places.items():
            for owner, name in names:
                original = getattr(owner, name)
                undo.callback(setattr, owner, name, original)
                setattr(owner, name, stopwatch.wrap(part, original))
        yield stopwatch
