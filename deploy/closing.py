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

    from rich.console import Console

    from deploy.evaluations import EvaluationLog, record_of
    from deploy.manifest import ResumeError
    from deploy.report import closing_results, closing_table
    from deploy.rundir import RunDirectory
    from deploy.standings import curve_lines, rating_lines, read_table
    from league.models import ModelError
    from league.players import PlayerError

    try:
        directory = RunDirectory(arguments.run_directory)
        manifest = directory.load()
        log = EvaluationLog(directory)
        if manifest.champion < 0:
            sys.stderr.write("cardleague: there is no version yet, so no closing table\n")
            return 0
        console = Console()
        reports = closing_table(
            arguments.run_directory, manifest.config, arguments.limit_s, console
        )
        for found in closing_results(manifest.champion, manifest.config, reports):
            log.add(record_of(manifest, found, is_closing=True))
        for line in (*curve_lines(log.records), *rating_lines(read_table(directory, manifest))):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    except (ModelError, PlayerError, ResumeError) as error:
        sys.stderr.write(f"cardleague: closing table: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
