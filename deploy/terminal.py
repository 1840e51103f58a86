"""Who on a terminal receives Ctrl-C. Room: deploy. Standard library only.

``make`` ends at the second Ctrl-C and leaves what it started to itself. A command that has things
to save therefore takes the terminal's foreground for its own process group, and gives it back.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator


def _hand_terminal_to(descriptor: int, group: int) -> None:
    """Make ``group`` the foreground of the terminal; a background process may do so only when it
    ignores SIGTTOU."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.tcsetpgrp(descriptor, group)
    finally:
        signal.signal(signal.SIGTTOU, before)


@contextlib.contextmanager
def own_foreground_group() -> Iterator[None]:
    """Be alone in the terminal's foreground while the context lasts.

    Does nothing without a terminal, in the background, or when this process leads its group already
    (started by a shell). Main thread only.
    """
    descriptor = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else -1
    former = os.getpgrp()
    if descriptor < 0 or former == os.getpid() or os.tcgetpgrp(descriptor) != former:
        yield
        return
    os.setpgid(0, 0)
    _hand_terminal_to(descriptor, os.getpgrp())
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the terminal, or the former group, may be gone
            _hand_terminal_to(descriptor, former)
            os.setpgid(0, former)
