"""A Ray-free process that runs the supervisor, for tests to signal and to kill.

``python -m tests.deploy.supervisor_host RUN_DIR [--server] [--owner MODE]``. Its owner is this file
too (``--act``): it writes what happens to ``events`` in the run directory, one line each, and obeys
its control pipe as MODE says.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from deploy.config import RunConfig, RuntimeConfig
from deploy.control import EXIT_REFUSED, Control
from deploy.rundir import RunDirectory
from deploy.supervise import Supervisor, _bundled_server


def record(folder: Path, event: str) -> None:
    with open(folder / "events", "a") as file:
        file.write(f"{event}\n")


def act(arguments: argparse.Namespace) -> int:
    """Be the owner."""
    folder: Path = arguments.folder

    def orphaned() -> None:
        record(folder, f"orphaned {os.getpid()}")

    control = Control(arguments.control_fd, orphaned)
    record(folder, f"owner {os.getpid()} limit {arguments.limit_elapsed_s}")
    if arguments.owner == "refuse":
        sys.stderr.write("game 'whist' is not known\n")
        return EXIT_REFUSED
    if arguments.owner == "finish":
        return 0
    while not control.stopping.wait(0.05):
        if arguments.owner == "show":
            (folder / "status.json").touch()
    record(folder, "stop")
    drained_by = time.monotonic() + (60.0 if arguments.owner == "slow" else 0.0)
    while time.monotonic() < drained_by and not control.skip_drain.wait(0.05):
        pass
    record(folder, "saved")
    return 0


def host(arguments: argparse.Namespace) -> int:
    """Be the supervisor."""
    config = RunConfig(
        runtime=RuntimeConfig(kind="ray" if arguments.server else "inprocess", stop_timeout_s=7.0)
    )
    directory = RunDirectory(arguments.folder)
    me = [sys.executable, "-m", "tests.deploy.supervisor_host"]
    events = str(arguments.folder / "events")
    closing = "import sys, time; print('closing', sys.argv[2], file=open(sys.argv[1], 'a'));"
    if arguments.owner == "slow-closing":
        closing += "time.sleep(60)"
    supervisor = Supervisor(
        config,
        directory,
        resume=directory.exists(),
        minutes=arguments.minutes,
        owner_command=lambda where, _, url: [
            *me,
            str(where.path),
            "--act",
            *("--owner", arguments.owner),
            *("--server-url", url),
        ],
        server=_bundled_server(directory, config) if arguments.server else None,
        owner_silence_s=arguments.silence_s,
        closing_command=lambda _, limit_s: [sys.executable, "-c", closing, events, str(limit_s)],
    )
    return supervisor.run()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--act", action="store_true")
    parser.add_argument("--server", action="store_true")
    parser.add_argument("--owner", default="obey")
    parser.add_argument("--silence-s", type=float, default=180.0)
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--control-fd", type=int, default=-1)
    parser.add_argument("--limit-elapsed-s", type=float, default=0.0)
    parser.add_argument("--server-url", default="")
    arguments = parser.parse_args()
    return act(arguments) if arguments.act else host(arguments)


if __name__ == "__main__":
    sys.exit(main())
