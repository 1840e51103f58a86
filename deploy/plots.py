"""Strength curves as pictures.

Room: deploy. May import: deploy.comparison, league.messages, matplotlib (which is heavy: commands
load this module late). Figures are drawn in memory by Agg: no display and no global state.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter

from deploy.comparison import Comparison, Curve, curve_words
from league.messages import EvaluationRecord

COLOURS = (
    "#1f77b4",
    "#d62728",
    "#2ca02c",
    "#9467bd",
    "#ff7f0e",
    "#17becf",
    "#8c564b",
    "#e377c2",
    "#bcbd22",
    "#000000",
)
"""Of the runs, in the order in which they were named."""
DPI = 100
PANEL_INCHES = (4.6, 3.2)
LEGEND_INCHES = 0.6
MAX_LEGEND_COLUMNS = 4
BAND_OPACITY = 0.2


class Axis(NamedTuple):
    """What stands on the horizontal axis of a panel."""

    label: str
    of: Callable[[EvaluationRecord], float]


AXES = (
    Axis("self-play games", lambda record: record.generated_games),
    Axis("examples", lambda record: record.examples),
    Axis("hours of training", lambda record: record.elapsed_s / 3600.0),
)


def strength_figure(comparison: Comparison) -> bytes:
    """Return win rates as PNG: a row per curve, panels against games, examples and hours.

    One line per run, its 95 % intervals as a band.
    """
    figure, panels = _grid(comparison, comparison.curves, len(AXES))
    for row, curve in zip(panels, comparison.curves, strict=True):
        for panel, axis in zip(row, AXES, strict=True):
            panel.axhline(50.0, color="grey", linewidth=0.8, linestyle=":")
            for name, records in curve.runs.items():
                _draw_rates(panel, axis, records, _colour(comparison, name))
            _name_axis(panel, axis)
        row[0].set_ylabel("win rate, %")
        row[0].set_title(curve_words(curve), loc="left", parse_math=False)
    return _png(figure)


def figures_figure(comparison: Comparison) -> bytes:
    """Return the means a game as PNG: a row per curve, a panel per figure, against games.

    One line per run for the measured side, a dashed one for its opponent.
    """
    shown = [curve for curve in comparison.curves if curve.figures()]
    columns = max((len(curve.figures()) for curve in shown), default=1)
    figure, panels = _grid(comparison, shown, columns, dashed="its opponent")
    for row, curve in zip(panels, shown, strict=True):
        names = curve.figures()
        for panel in row[len(names) :]:
            panel.set_axis_off()
        for panel, name in zip(row, names, strict=False):
            for run, records in curve.runs.items():
                _draw_sides(panel, name, records, _colour(comparison, run))
            _name_axis(panel, AXES[0])
            panel.set_ylabel(f"{name} a game", parse_math=False)
        row[0].set_title(curve_words(curve), loc="left", parse_math=False)
    return _png(figure)


def _grid(
    comparison: Comparison, curves: Sequence[Curve], columns: int, dashed: str = ""
) -> tuple[Figure, Any]:
    """Return a figure with a legend of the runs, and its panels, ``[curves, columns]``."""
    width, height = PANEL_INCHES
    figure = Figure(
        figsize=(width * columns, height * len(curves) + LEGEND_INCHES),
        dpi=DPI,
        layout="constrained",
    )
    panels = figure.subplots(len(curves), columns, squeeze=False)
    handles = [
        Line2D([], [], color=_colour(comparison, name), marker="o") for name in comparison.runs
    ]
    labels = [f"run {name}" for name in comparison.runs]
    if dashed:
        handles.append(Line2D([], [], color="grey", linestyle="--"))
        labels.append(dashed)
    legend = figure.legend(handles, labels, loc="outside upper left", ncols=MAX_LEGEND_COLUMNS)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure, panels


def _name_axis(panel: Any, axis: Axis) -> None:
    panel.set_xlabel(axis.label)
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))


def _draw_rates(panel: Any, axis: Axis, records: Sequence[EvaluationRecord], colour: str) -> None:
    places = [axis.of(record) for record in records]
    low = [100 * record.win_rate_low for record in records]
    high = [100 * record.win_rate_high for record in records]
    panel.fill_between(places, low, high, color=colour, alpha=BAND_OPACITY, linewidth=0)
    # A band of one evaluation has no width; its bar stands for it.
    panel.vlines(places, low, high, color=colour, linewidth=0.8, alpha=0.6)
    rates = [100 * record.win_rate for record in records]
    panel.plot(places, rates, color=colour, marker="o", markersize=4)


def _draw_sides(panel: Any, name: str, records: Sequence[EvaluationRecord], colour: str) -> None:
    for own, style in ((True, "-"), (False, "--")):
        known = [
            (AXES[0].of(record), figures[name])
            for record in records
            if name in (figures := record.own if own else record.other)
        ]
        places, values = [place for place, _ in known], [value for _, value in known]
        marker = "o" if own else "x"
        panel.plot(places, values, color=colour, linestyle=style, marker=marker, markersize=4)


def _colour(comparison: Comparison, run: str) -> str:
    return COLOURS[comparison.runs.index(run)]


def _png(figure: Figure) -> bytes:
    target = io.BytesIO()
    FigureCanvasAgg(figure).print_png(target)
    return target.getvalue()
