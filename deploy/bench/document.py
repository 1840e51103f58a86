"""A report for people: on the terminal, and in a document whose other sections stay as they are.

Room: deploy. May import: rich.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table

from deploy.bench.figures import Figure
from deploy.bench.suite import Report

BEGIN = "<!-- written by `cardleague bench`: begin -->"
END = "<!-- written by `cardleague bench`: end -->"
HEAD = f"""# Benchmarks

What lies between the two marks is written by `cardleague bench --out BENCHMARKS.md`; everything
else is written by hand and kept.

{BEGIN}
{END}

## Strength

Written by hand from the tables that `cardleague match` and the closing tables of runs print.
"""
_TERMINAL_WIDTH = 150


class DocumentError(ValueError):
    """A file that is no such document: it is left as it is."""


def read_document(path: Path) -> str:
    """Return the document at ``path``, or a new one.

    Raises DocumentError for a file without the marks, one that cannot be read, or a missing folder.
    """
    if not path.exists():
        if not path.absolute().parent.is_dir():
            raise DocumentError(f"output {str(path)!r}: its folder does not exist")
        return HEAD
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"output {str(path)!r}: {error}") from error
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(END) < text.index(BEGIN):
        raise DocumentError(
            f"output {str(path)!r}: it has not the lines {BEGIN!r} and {END!r} once each, in this "
            "order, between which the figures go"
        )
    return text


def with_report(text: str, report: Report) -> str:
    """Return the document ``text`` with ``report`` between its marks, the rest as it is."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{markdown(report)}\n{END}{after}"


# --- Markdown -------------------------------------------------------------------------------------


def markdown(report: Report) -> str:
    """Return the report as Markdown."""
    lines = [*_machine_lines(report), ""]
    for warning in report.warnings():
        lines += [f"**{warning}**", ""]
    lines += [*_reading_lines(), ""]
    for group, figures in groupby(report.figures, key=lambda figure: figure.group):
        lines += [f"### {group}", "", *_table_lines(list(figures)), ""]
    if report.commands:
        lines += ["Commands of the comparisons:", "", "```"]
        lines += [*report.commands, "```", ""]
    lines += [f"Not measured, {skipped.group}: {skipped.reason}." for skipped in report.skipped]
    return "\n".join(lines).rstrip() + "\n"


def _machine_lines(report: Report) -> list[str]:
    machine = report.machine
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    before, after = (
        " ".join(f"{load:.2f}" for load in loads)
        for loads in (machine.load_before, machine.load_after)
    )
    lines = [
        f"* {machine.date} UTC, {report.wall_s / 60:.1f} minutes; groups: "
        f"{', '.join(report.groups)}",
        f"* {machine.processor}, {machine.cores} cores, {machine.memory_gb:g} GiB, "
        f"{machine.system}",
        f"* {versions}",
        f"* load average before {before}, after {after}; others used "
        f"{machine.busy_before_percent:.0f} % of the processors before it began",
    ]
    return [*lines, f"* commit {machine.commit}"] if machine.commit else lines


def _reading_lines() -> list[str]:
    return [
        "Values are medians of the repeats, with the lowest and the highest. One-core figures",
        "count processor time; those marked † count the wall clock. Both clocks are sums over the",
        "repeats: where the wall clock is far above the processor time the machine was shared.",
        "References are earlier measurements on two x86 cores under load; a ratio above 1 is",
        "better than the reference, whichever direction better is.",
    ]


def _table_lines(figures: list[Figure]) -> list[str]:
    lines = [
        "| figure | value | low – high | unit | reference | ratio | goal | CPU s | wall s | how |",
        "|---|---:|---|---|---:|---:|---|---:|---:|---|",
    ]
    for figure in figures:
        cells = (figure.name, *_numbers(figure), figure.how)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


def _numbers(figure: Figure) -> tuple[str, ...]:
    """Return the cells between a figure's name and how it was measured."""
    ratio, met = figure.ratio, figure.goal_is_met
    verdict = "" if met is None else (" met" if met else " missed")
    bound = "≤" if figure.lower_is_better else "≥"
    is_timed = figure.wall_s > 0
    return (
        number(figure.value),
        f"{number(figure.low)} – {number(figure.high)}" if figure.repeats > 1 else "",
        figure.unit + ("" if figure.one_core else " †"),
        "" if figure.reference is None else number(figure.reference),
        "" if ratio is None else f"{ratio:.2f}",
        "" if figure.goal is None else f"{bound} {number(figure.goal)}{verdict}",
        f"{figure.cpu_s:.2f}" if is_timed else "",
        f"{figure.wall_s:.2f}" if is_timed else "",
    )


def number(value: float) -> str:
    """Return ``value`` with three significant digits, whole thousands with commas."""
    if value >= 999.5:
        digits = len(str(int(value))) - 3
        return f"{round(value / 10**digits) * 10**digits:,}"
    return f"{value:.3g}"


# --- terminal -------------------------------------------------------------------------------------


def print_report(report: Report, console: Console | None = None) -> None:
    """Print the figures, without how they were measured."""
    console = console or Console()
    if not console.is_terminal:
        console = Console(file=console.file, width=_TERMINAL_WIDTH)
    table = Table(box=None, pad_edge=False)
    for title in ("group", "figure"):
        table.add_column(title)
    for title in ("value", "low – high"):
        table.add_column(title, justify="right")
    for title in ("unit", "reference", "ratio", "goal", "CPU s", "wall s"):
        table.add_column(title, justify="left" if title in ("unit", "goal") else "right")
    for figure in report.figures:
        table.add_row(figure.group, figure.name, *_numbers(figure))
    console.print(table)
    for command in report.commands:
        console.print(command, style="dim", soft_wrap=True, highlight=False)
    for skipped in report.skipped:
        console.print(f"not measured, {skipped.group}: {skipped.reason}", highlight=False)
    for warning in report.warnings():
        console.print(warning, style="yellow", highlight=False)
