"""Migrates a run again and again, killed one file operation later each time.

    python -m tests.deploy.migrate_killed RUN TARGET

The run is of the planted schema 0. Prints how many operations it took until nothing was killed any
more; ends with an assertion where a killed migration left anything that looks like a run.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from deploy.commands.runs import RUNS, UserError, find_run
from deploy.files import Files
from deploy.migration import migrate
from deploy.rundir import RunDirectory
from tests.deploy.aged import STEP


class DeadlyFiles(Files):
    """Kills the process in place of the primitive with a certain number."""

    def __init__(self, deadly: int) -> None:
        self._left = deadly

    def _count(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def _write(self, path: Path, data: bytes) -> None:
        self._count()
        half = len(data) // 2
        super()._write(path, data[:half])  # a kill may come in the middle of a file
        self._count()
        super()._write(path, data)

    def _sync(self, path: Path) -> None:
        self._count()
        super()._sync(path)

    def _rename(self, source: Path, target: Path) -> None:
        self._count()
        super()._rename(source, target)

    def _make_folder(self, path: Path) -> None:
        self._count()
        super()._make_folder(path)


def runs_there() -> list[str]:
    """Return what the program lists as runs."""
    try:
        find_run("?")
    except UserError as error:
        return str(error).rpartition("there are: ")[2].split(", ")
    raise AssertionError


def main() -> None:
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    assert source.parent == target.parent == RUNS
    for deadly in range(1000):
        child = os.fork()
        if child == 0:
            try:
                migrate(source, target, steps={0: STEP}, files=DeadlyFiles(deadly))
            finally:
                os._exit(0)
        _, state = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(state)
        there = runs_there()
        if target.name in there:
            copy = RunDirectory(target)
            copy.check_named(copy.load())
            assert not (killed and target.with_name(f".{target.name}.migrating").exists())
        else:
            assert killed
            assert there == [source.name]
            assert not target.exists()
        if not killed:
            break
        if target.exists():
            break
    sys.stdout.write(f"{deadly}\n")


if __name__ == "__main__":
    main()
