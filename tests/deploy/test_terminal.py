"""Who receives Ctrl-C, tried on a real pseudo-terminal.

* started by a program like make, the command alone gets every Ctrl-C, and gives the terminal back
* without a terminal, and as a group's leader, nothing changes
"""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time

import pytest

from deploy.terminal import own_foreground_group

COMMAND = """
import os, signal, sys
from deploy.terminal import own_foreground_group
# Blocked and waited for: one that comes before the wait is not lost.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
with own_foreground_group():
    print("ready", os.getpgrp() == os.getpid(), os.tcgetpgrp(0) == os.getpid(), flush=True)
    for count in (1, 2):
        signal.sigwait({signal.SIGINT})
        print("taken", count, flush=True)
print("back", os.tcgetpgrp(0) == os.getppid(), os.getpgrp() == os.getppid(), flush=True)
"""
# Like make: waits for its command, and notes every Ctrl-C that it receives itself.
STARTER = f"""
import signal, subprocess, sys
hit = []
signal.signal(signal.SIGINT, lambda number, frame: hit.append(number))
child = subprocess.run([sys.executable, "-c", {COMMAND!r}])
print("starter", len(hit), child.returncode, flush=True)
"""


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, code: str) -> None:
        self.text = ""
        self._pid, self._descriptor = pty.fork()
        if self._pid == 0:  # the child: nothing but exec
            os.execv(sys.executable, [sys.executable, "-c", code])

    def wait_for(self, word: str, timeout_s: float = 30.0) -> None:
        """Read until ``word`` was shown."""
        deadline = time.monotonic() + timeout_s
        while word not in self.text:
            left = deadline - time.monotonic()
            assert left > 0, f"{word!r} was not shown in time; shown was {self.text!r}"
            if select.select([self._descriptor], [], [], left)[0]:
                try:
                    self.text += os.read(self._descriptor, 4096).decode()
                except OSError:  # the program has ended
                    assert word in self.text, self.text

    def press_ctrl_c(self) -> None:
        """Type Ctrl-C."""
        os.write(self._descriptor, b"\x03")

    def close(self) -> None:
        """Hang up and reap."""
        os.close(self._descriptor)
        os.waitpid(self._pid, 0)


# Python warns of a fork beside threads; the child does nothing but exec.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_started_by_make_the_command_alone_receives_ctrl_c() -> None:
    terminal = Terminal(STARTER)
    try:
        terminal.wait_for("ready True True")
        terminal.press_ctrl_c()
        terminal.wait_for("taken 1")
        terminal.press_ctrl_c()
        terminal.wait_for("taken 2")
        terminal.wait_for("back True True")
        terminal.wait_for("starter 0 0")
    finally:
        terminal.close()


def test_without_a_terminal_nothing_changes() -> None:
    code = (
        "import os\nfrom deploy.terminal import own_foreground_group\nbefore = os.getpgrp()\n"
        "with own_foreground_group():\n    print(os.getpgrp() == before)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert found.stdout.strip() == "True"


def test_standard_input_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    group = os.getpgrp()
    with own_foreground_group():
        assert os.getpgrp() == group
