"""The closing table as a process of its own: the supervisor starts it after the last manifest.

Room: deploy. ``python -m deploy.closing RUN_DIRECTORY [--limit-s S]``. SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the champion of a run and print the table; return the exit code."""
    parser = argparse.ArgumentParser(description="Print the closing table of a run.")
    parser.add_argument("run_directory", type=Path)
    parser.add_argument("--limit-s", type=float, default=0.0, help="0: play all games")
    arguments = parser.parse_args(argv)

    from deploy.manifest import ResumeError
    from deploy.report import closing_table
    from deploy.rundir import RunDirectory
    from league.models import ModelError
    from league.players import PlayerError

    try:
        manifest = RunDirectory(arguments.run_directory).load()
        if manifest.champion < 0:
            sys.stderr.write("cardleague: there is no version yet, so no closing table\n")
            return 0
        closing_table(arguments.run_directory, manifest.config, arguments.limit_s)
    except (ModelError, PlayerError, ResumeError) as error:
        sys.stderr.write(f"cardleague: closing table: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
