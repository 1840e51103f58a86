"""The program on a real terminal, for tests: a pseudo-terminal that types and reads."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import pexpect

from tests.deploy.waiting import heed_ctrl_c

PROMPT = "your move> "
TIMEOUT_S = 240.0
"""A first game may have to compile its kernels."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """``cardleague`` with a keyboard and a screen of its own."""

    def __init__(
        self, *argv: str, columns: int = 100, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start the program."""
        variables = {
            name: value
            for name, value in os.environ.items()
            if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")
        }
        variables |= {"TERM": "xterm-256color", **(environment or {})}
        with warnings.catch_warnings():
            # Python warns of fork in a process with threads; the child does nothing but exec.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._child: Any = pexpect.spawn(
                sys.executable,
                ["-m", "deploy.cli", *argv],
                encoding="utf-8",
                codec_errors="replace",
                timeout=TIMEOUT_S,
                dimensions=(50, columns),
                env=variables,
                preexec_fn=heed_ctrl_c,
            )
        self._child.delaybeforesend = None
        self.raw = ""

    def wait_for(self, *words: str) -> int:
        """Read until one of ``words`` is shown and return which, -1 for the end of the program."""
        index = int(self._child.expect_exact([*words, pexpect.EOF]))
        shown = self._child.before
        self.raw += shown if index == len(words) else shown + self._child.after
        return index if index < len(words) else -1

    def answer(self, line: str) -> str:
        """Write a line at the prompt; return what is shown up to the next prompt, or the end."""
        self._child.sendline(line)
        return self.next_prompt()

    def next_prompt(self) -> str:
        """Return what is shown up to the next prompt, or to the end, without escape codes."""
        self.wait_for(PROMPT)
        return ESCAPES.sub("", self._child.before).replace("\r\n", "\n")

    def press(self, letter: str) -> None:
        """Press Ctrl and a letter."""
        self._child.sendcontrol(letter)

    def send_bytes(self, content: bytes) -> None:
        """Write bytes that may be no text."""
        os.write(self._child.child_fd, content)

    @property
    def ended(self) -> bool:
        """Whether everything was read that the program will ever show."""
        return bool(self._child.flag_eof)

    def close(self) -> int:
        """Read the rest and return the exit code (minus the signal that ended the program)."""
        if not self.ended:
            self.wait_for()
        self._child.close()
        status = self._child.exitstatus
        return int(status) if status is not None else -int(self._child.signalstatus)
