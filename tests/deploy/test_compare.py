"""``cardleague compare``: where runs differ, and how strong they became.

* only the options that differ are shown, with every run's value
* a curve per opponent and simulations; records in order of training, the same games once, a line
  that is being written left out; unknown fields of newer programs ignored
* tables show every figure that the records name, whatever the game; long runs are thinned
* pictures are real: opened, of the right size, with the line of every run in every panel
* a missing run, one twice, different games, damaged records and bad file names are refused by name;
  a run without evaluations is named and the others are shown
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from numpy.typing import NDArray
from rich.console import Console

from deploy import cli, plots
from deploy.commands import compare as command
from deploy.comparison import Comparison, compare_runs, read_evaluations, thinned
from deploy.manifest import ResumeError
from league.messages import EVALUATIONS
from tests.deploy.evaluated_runs import make_run, record

BUDGETS = (0, 128)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two runs of Cuarenta, evaluated at two budgets, in an otherwise empty working directory."""
    monkeypatch.chdir(tmp_path)
    slow = [record(n, simulations=s) for n in (1, 2, 3) for s in BUDGETS]
    fast = [record(n + 2, simulations=s, seed=n) for n in (1, 2, 3, 4) for s in BUDGETS]
    return [
        make_run(tmp_path / "runs" / "slow", slow, "seed=1"),
        make_run(tmp_path / "runs" / "fast", fast, "seed=2", "learner.batch_size=512"),
    ]


def shown(comparison: Comparison) -> str:
    console = Console(file=io.StringIO(), width=200)
    command.print_comparison(comparison, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert cli.main(["compare", *argv]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    return output.err


# --- configurations -------------------------------------------------------------------------------


def test_only_options_that_differ_are_listed_with_every_runs_value(runs: list[Path]) -> None:
    found = compare_runs(runs).config
    assert found["seed"] == {"slow": 1, "fast": 2}
    assert found["learner.batch_size"]["fast"] == 512
    assert set(found) == {"seed", "learner.batch_size"}


def test_rule_options_of_one_run_alone_are_a_difference_and_a_note(tmp_path: Path) -> None:
    first = make_run(tmp_path / "a", [record(1)])
    second = make_run(tmp_path / "b", [record(1)], "game.options.sum_cards=2+")
    found = compare_runs([first, second])
    assert found.config == {"game.options.sum_cards": {"b": "2+"}}
    assert "different rules" in " ".join(found.notes)
    lines = [line for line in shown(found).splitlines() if "sum_cards" in line]
    assert lines[0].split("│")[1:4] == [" game.options.sum_cards ", " – ", " 2+ "]


def test_options_that_a_resume_changed_are_noted(tmp_path: Path) -> None:
    first = make_run(tmp_path / "a", [record(1)], changed=("gate.alpha", "self_play.games"))
    assert compare_runs([first]).notes == (
        "run 'a' went on with other options: gate.alpha, self_play.games",
    )


# --- records --------------------------------------------------------------------------------------


def test_records_are_in_order_of_training_and_the_same_games_count_once(tmp_path: Path) -> None:
    again = record(2, time="2026-01-02T00:00:00Z")
    folder = make_run(tmp_path / "a", [record(3), record(2), record(1), again])
    assert read_evaluations(folder) == [record(1), again, record(3)]
    with (folder / EVALUATIONS).open("ab") as file:
        file.write(b'{"kind":"sched')
    assert len(read_evaluations(folder)) == 3


def test_fields_of_a_newer_program_are_ignored(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "a", [record(1)])
    path = folder / EVALUATIONS
    document = {**json.loads(path.read_bytes()), "weather": "fine"}
    path.write_text(json.dumps(document) + "\n")
    assert read_evaluations(folder) == [record(1)]


def test_damaged_records_are_refused_by_file_and_line(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "a", [record(1)])
    with (folder / EVALUATIONS).open("ab") as file:
        file.write(b'{"kind":"odd"}\n' + msgspec.json.encode(record(2)) + b"\n")
    with pytest.raises(ResumeError, match=r"evaluations\.jsonl, line 2: not an evaluation"):
        compare_runs([folder])


def test_a_curve_per_opponent_and_budget(tmp_path: Path) -> None:
    ismcts = [record(1, opponent="ismcts:2000", simulations=128)]
    rules = [record(n, simulations=s) for n in (1, 2) for s in (128, 0)]
    folder = make_run(tmp_path / "a", [*rules, *ismcts])
    found = compare_runs([folder]).curves
    named = {(curve.opponent, curve.simulations): len(curve.runs["a"]) for curve in found}
    assert named == {("rules", 0): 2, ("rules", 128): 2, ("ismcts:2000", 128): 1}


def test_thinned_keeps_first_and_last_evenly_spread() -> None:
    records = [record(n) for n in range(101)]
    found = [kept.seed for kept in thinned(records, 11)]
    assert found == list(range(0, 101, 10))
    assert thinned(records[:11], 11) == records[:11]


# --- tables ---------------------------------------------------------------------------------------


def cells_of(text: str) -> list[list[str]]:
    """Return the cells of the tables in ``text``, a list per line, without headings."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines()]


def test_tables_show_every_evaluation_of_every_run(runs: list[Path]) -> None:
    text = shown(compare_runs(runs))
    assert "against rules, policy alone: win rate" in text
    part = text.split("against rules, 128 simulations: win rate")[1]
    rows = [row for row in cells_of(part.split("means a game")[0]) if len(row) == 6]
    assert rows[0] == ["slow", "v10", "100", "1,000", "0.50", "45.0 (41.0–48.0)"]
    assert rows[1][1] == "v20*"
    assert rows[-1] == ["fast", "v60*", "600", "6,000", "3.00", "70.0 (66.0–73.0)"]
    assert [row[0] for row in rows] == ["slow"] * 3 + ["fast"] * 4


def test_figures_of_both_sides_are_shown_by_evaluation(runs: list[Path]) -> None:
    text = shown(compare_runs(runs))
    for budget in ("policy alone", "128 simulations"):
        assert f"fast against rules, {budget}: means a game, own – other" in text
        part = text.split(f"slow against rules, {budget}: means a game, own – other")[1]
        part = part.split("means a game")[0]
        for version in ("v10", "v20*", "v30"):
            assert version in part.splitlines()[2]
        figures = {row[0]: row[1:] for row in cells_of(part) if row}
        assert figures["score"] == ["0.45 – 0.55", "0.50 – 0.50", "0.55 – 0.45"]
        assert figures["return"] == ["3.00 – -3.00", "6.00 – -6.00", "9.00 – -9.00"]
        assert figures["caidas"] == ["1.60 – 1.25", "1.70 – 1.25", "1.80 – 1.25"]


def test_figures_are_named_by_the_records_alone(tmp_path: Path) -> None:
    strange = record(1, own={"sunk ships": 2.5}, other={"sunk ships": 1.5, "storms": 7.0})
    folder = make_run(tmp_path / "a", [strange])
    found = compare_runs([folder])
    assert found.curves[0].figures() == ["sunk ships", "storms"]
    text = shown(found)
    rows = cells_of(text.split("means a game")[1])
    assert ["sunk ships", "2.50 – 1.50"] in rows
    assert ["storms", "? – 7.00"] in rows
    assert "caidas" not in text


def test_long_runs_are_thinned_in_tables_and_whole_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    closing = record(60, kind="closing")
    make_run(tmp_path / "runs" / "long", [*(record(n) for n in range(1, 60)), closing])
    assert cli.main(["compare", "long"]) == 0
    text = capsys.readouterr().out.split("means a game")[0]
    assert text.count("│ long ") == command.MAX_ROWS
    assert "v10 " in text
    assert "v600* c" in text
    assert cli.main(["compare", "long", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["curves"][0]["runs"]["long"]) == 60


# --- pictures -------------------------------------------------------------------------------------


def pixels(path: Path) -> NDArray[np.float32]:
    picture = imread(path)
    assert picture.ndim == 3
    return picture[..., :3]


def count_of(part: NDArray[np.float32], colour: str) -> int:
    return int((np.abs(part - np.array(to_rgb(colour))).max(axis=-1) < 0.004).sum())


def test_pictures_show_every_run_in_every_panel(
    runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["compare", "slow", "fast", "--png", "out.png"]) == 0
    output = capsys.readouterr()
    assert output.err.splitlines() == ["drawn: out.png", "drawn: out-figures.png"]
    width, height = plots.PANEL_INCHES
    rates = pixels(Path("out.png"))
    expected = ((2 * height + plots.LEGEND_INCHES) * plots.DPI, 3 * width * plots.DPI)
    assert rates.shape[:2] == tuple(round(size) for size in expected)
    legend = round(plots.LEGEND_INCHES * plots.DPI)
    for part in np.array_split(rates[legend:], 2):
        for panel in np.array_split(part, 3, axis=1):
            for colour in plots.COLOURS[:2]:
                assert count_of(panel, colour) > 100
            assert count_of(panel, plots.COLOURS[2]) == 0
            assert count_of(panel, "white") > panel[..., 0].size / 2
    figures = pixels(Path("out-figures.png"))
    for part in np.array_split(figures[legend:], 2):
        for panel in np.array_split(part, 3, axis=1):  # score, return, caidas
            for colour in plots.COLOURS[:2]:
                assert count_of(panel, colour) > 100


def test_the_band_spans_the_interval(tmp_path: Path) -> None:
    """A wide interval paints more of the panel in the run's light colour than a narrow one."""

    def tinted(half: float) -> int:
        records = [
            record(n, win_rate=0.5, win_rate_low=0.5 - half, win_rate_high=0.5 + half)
            for n in (1, 2, 3)
        ]
        # The second run holds the vertical range.
        wide = [record(1, win_rate=0.5, win_rate_low=0.0, win_rate_high=1.0)]
        name = f"half {100 * half:.0f}"
        folders = [make_run(tmp_path / name, records), make_run(tmp_path / f"{name} w", wide)]
        path = tmp_path / "out.png"
        path.write_bytes(plots.strength_figure(compare_runs(folders)))
        tint = 1 - plots.BAND_OPACITY * (1 - np.array(to_rgb(plots.COLOURS[0])))
        return int((np.abs(pixels(path) - tint).max(axis=-1) < 0.01).sum())

    narrow, wide = tinted(0.1), tinted(0.4)
    assert narrow > 1_000
    assert wide == pytest.approx(4 * narrow, rel=0.1)


def test_names_and_single_evaluations_do_not_break_a_picture(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / name, [record(2)]) for name in ("_hidden", "two$dollars$_x^")]
    path = tmp_path / "out.png"
    path.write_bytes(plots.strength_figure(compare_runs(folders)))
    assert count_of(pixels(path), plots.COLOURS[0]) > 0  # in the legend at least
    assert count_of(pixels(path), plots.COLOURS[1]) > 0


# --- refusals -------------------------------------------------------------------------------------


def test_a_run_without_evaluations_is_named_and_the_others_are_shown(
    runs: list[Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    make_run(tmp_path / "runs" / "fresh", None)
    make_run(tmp_path / "runs" / "empty", [])
    assert cli.main(["compare", "fresh", "slow", "empty"]) == 0
    text = capsys.readouterr().out
    for name in ("fresh", "empty"):
        assert f"run '{name}' has no evaluations yet" in text
    assert "45.0" in text
    line = refused(capsys, "fresh", "empty", "--png", "none.png")
    assert "nothing to draw" in line
    assert "'fresh'" in line
    assert not Path("none.png").exists()


def test_what_cannot_be_compared_is_refused_by_name(
    runs: list[Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    make_run(tmp_path / "runs" / "poker", [record(1)], preset="kuhn-smoke")
    assert "'nothing' does not exist" in refused(capsys, "slow", "nothing")
    line = refused(capsys, "slow", "poker")
    assert "slow plays 'cuarenta'" in line
    assert "poker plays 'kuhn'" in line
    assert "'slow' is named twice" in refused(capsys, "slow", "fast", "runs/slow")
    assert "0 runs" in refused(capsys)
    assert "'out.pdf'" in refused(capsys, "slow", "--png", "out.pdf")
    assert "'nowhere'" in refused(capsys, "slow", "--png", "nowhere/out.png")
    (tmp_path / "folder.png").mkdir()
    assert "folder.png" in refused(capsys, "slow", "--png", "folder.png")


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / place / "run", [record(1)]) for place in ("here", "there")]
    assert compare_runs(folders).runs == tuple(str(folder) for folder in folders)
