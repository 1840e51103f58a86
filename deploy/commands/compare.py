"""``compare``: runs beside one another. Room: deploy; light imports."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import Positional, arg

from deploy.commands import UserError, option
from deploy.commands.runs import find_run

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from deploy.comparison import Comparison, Curve
    from league.messages import EvaluationRecord

MAX_ROWS = 12
"""Evaluations of a run whose win rates are shown; JSON and the plot have all."""
MAX_COLUMNS = 4
"""Evaluations of a run whose figures are shown."""
MIN_NAME_WIDTH = 8
"""A longer name of a run is folded in a narrow terminal."""
FIGURES_SUFFIX = "-figures"
"""What is appended to the name of the second picture."""


def compare(
    runs: Annotated[Positional[tuple[str, ...]], arg(metavar="RUN RUN ...")],
    /,
    *,
    png: Annotated[str, option("FILE.png")] = "",
    json: Annotated[bool, option("")] = False,
) -> int:
    """Show where the configurations of runs differ, and how strong the runs became.

    Strength comes from the evaluations that runs record beside training and in their closing table.

    Args:
        runs: Folders of runs, or their names.
        png: Draw win rates against games, examples and hours into this file, and the other figures
            of the games into a second one beside it (FILE-figures.png).
        json: Print everything as JSON.
    """
    from deploy.comparison import ComparisonError, compare_runs
    from deploy.manifest import ResumeError

    target = picture_path(png) if png else None
    try:
        found = compare_runs([find_run(name) for name in runs])
    except (ComparisonError, ResumeError) as error:
        raise UserError(str(error)) from error
    if target is not None and not found.curves:
        raise UserError(f"--png {png!r}: nothing to draw; {'; '.join(found.notes)}")
    drawn = draw(found, target) if target is not None else []
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
    else:
        from rich.console import Console

        print_comparison(found, Console())
    for path in drawn:
        sys.stderr.write(f"drawn: {path}\n")
    return 0


def picture_path(text: str) -> Path:
    """Return the path of a picture. Raises UserError unless it can be one."""
    path = Path(text)
    if path.suffix != ".png":
        raise UserError(f"--png {text!r}: allowed is a file name that ends in .png")
    if not path.parent.is_dir():
        raise UserError(f"--png {text!r}: there is no folder {str(path.parent)!r}")
    return path


def draw(comparison: Comparison, target: Path) -> list[Path]:
    """Write both pictures; return their paths. Raises UserError when one cannot be written."""
    from deploy.files import Files
    from deploy.plots import figures_figure, strength_figure

    pictures = {target: strength_figure(comparison)}
    if any(curve.figures() for curve in comparison.curves):
        beside = target.with_name(f"{target.stem}{FIGURES_SUFFIX}.png")
        pictures[beside] = figures_figure(comparison)
    for path, data in pictures.items():
        try:
            Files().write_atomic(path, data)
        except OSError as error:
            raise UserError(f"--png {str(path)!r}: {error}") from error
    return list(pictures)


# --- tables ---------------------------------------------------------------------------------------


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print the notes, the options that differ, and per curve win rates and every run's figures."""
    for note in comparison.notes:
        console.print(note, style="yellow", markup=False, highlight=False)
    if len(comparison.runs) > 1:
        console.print(config_table(comparison))
    for curve in comparison.curves:
        console.print(strength_table(comparison, curve))
        for run in curve.runs:
            if curve.figures():
                console.print(figures_table(curve, run))
    if comparison.curves:
        console.print(
            "* the champion of its time; c: closing table. Games and examples are those that had "
            "been ingested. Win rates with 95 % intervals, from pairs of games. Of each run at "
            f"most {MAX_ROWS} evaluations are shown, and the figures of {MAX_COLUMNS}.",
            style="dim",
            markup=False,
            highlight=False,
        )


def config_table(comparison: Comparison) -> Table:
    """Return the options that differ, a column per run."""
    table = _titled("options that differ" if comparison.config else "all options are equal")
    table.add_column("", overflow="fold")
    for name in comparison.runs:
        table.add_column(name, justify="right", overflow="fold")
    for key, values in comparison.config.items():
        table.add_row(key, *(_value(values, name) for name in comparison.runs))
    return table


def strength_table(comparison: Comparison, curve: Curve) -> Table:
    """Return the win rates of a curve, a row per evaluation."""
    from deploy.comparison import curve_words

    table = _titled(f"{curve_words(curve)}: win rate")
    table.add_column("run", overflow="fold", min_width=MIN_NAME_WIDTH)
    table.add_column("version", no_wrap=True)
    for head in ("games", "examples", "hours", "win rate, %"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, record, last in _rows(comparison, curve):
        low, high = 100 * record.win_rate_low, 100 * record.win_rate_high
        table.add_row(
            name,
            _version(record),
            f"{record.generated_games:,}",
            f"{record.examples:,}",
            f"{record.elapsed_s / 3600:.2f}",
            f"{100 * record.win_rate:.1f} ({low:.1f}–{high:.1f})",
            end_section=last,
        )
    return table


def figures_table(curve: Curve, run: str) -> Table:
    """Return the means a game of one run, a row per figure and a column per evaluation."""
    from deploy.comparison import curve_words, thinned

    table = _titled(f"{run} {curve_words(curve)}: means a game, own – other")
    table.add_column("", overflow="fold")
    shown = thinned(curve.runs[run], MAX_COLUMNS)
    for record in shown:
        table.add_column(_version(record), justify="right")
    for name in curve.figures():
        sides = [(_figure(record.own, name), _figure(record.other, name)) for record in shown]
        table.add_row(name, *(" – ".join(both) for both in sides))
    return table


def _titled(title: str) -> Table:
    """Return a table that is wide enough for its title, which would be broken otherwise."""
    from rich.table import Table
    from rich.text import Text

    return Table(title=Text(title), title_justify="left", min_width=len(title))


def _rows(comparison: Comparison, curve: Curve) -> list[tuple[str, EvaluationRecord, bool]]:
    """Return (run, evaluation, whether it is the run's last) in order."""
    from deploy.comparison import thinned

    found = []
    for name in comparison.runs:
        shown = thinned(curve.runs.get(name, []), MAX_ROWS)
        found += [(name, record, record is shown[-1]) for record in shown]
    return found


def _version(record: EvaluationRecord) -> str:
    champion = "*" if record.is_champion else ""
    return f"v{record.version}{champion}{' c' if record.kind == 'closing' else ''}"


def _figure(figures: dict[str, float], name: str) -> str:
    return f"{figures[name]:.2f}" if name in figures else "?"


def _value(values: dict[str, Any], name: str) -> str:
    value = values.get(name, "–")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(item) for item in value)
    return "yes" if value is True else "no" if value is False else str(value)
