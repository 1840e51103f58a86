"""``cardleague league``: the table of a run's versions.

* ratings, intervals, games and results against the champion, of a real short run
* a matrix of at most so many versions, newest first; gates in short
* JSON has everything; what there is not yet is said in words; a run that is none is refused
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from deploy import cli
from deploy.commands.league import MAX_MATRIX, print_standings
from deploy.evaluations import read_records
from deploy.manifest import new_manifest
from deploy.rundir import RunDirectory
from deploy.standings import MAX_POINTS, Standings, curve_lines, rating_lines, standings
from league.messages import PairTally, RatingTable
from league.ratings import add_tally, rate
from tests.deploy.statuses import evaluation, outcome
from tests.deploy.test_local import kuhn_config, new_run, opened, take_turns


def text_of(found: Standings, width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_standings(found, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def run_with(folder: Path, table: RatingTable, champion: int, newest: int) -> RunDirectory:
    """Return a run whose arena has played ``table``."""
    directory = RunDirectory(folder)
    directory.prepare()
    manifest = new_manifest(kuhn_config(), ["test"])
    manifest.champion, manifest.newest = champion, newest
    manifest.pool = tuple(range(champion + 1))[-8:]
    manifest.gates.promoted, manifest.gates.rejected = 2, 1
    manifest.gates.outcomes = [outcome(5, "rejected"), outcome(9, "promoted")]
    arena = {"schema_version": 1, "last_candidate": 1, "ratings": {"table": table}}
    manifest.gate = directory.put_snapshot("gate", msgspec.json.encode(arena))
    directory.save(manifest)
    return directory


def played(num_versions: int) -> RatingTable:
    table = RatingTable(basis="rules 12ab, 16 simulations")
    for version in range(num_versions):
        new = PairTally(first=-1, second=version, scores=(6, 0, 4, 0, 2), wins=8, losses=16)
        table = add_tally(table, new)
    return add_tally(
        table, PairTally(first=1, second=3, scores=(5, 0, 2, 0, 1), wins=4, draws=1, losses=11)
    )


def test_table_matrix_and_gates_of_a_run(tmp_path: Path) -> None:
    found = standings(run_with(tmp_path / "run", played(4), champion=3, newest=6))
    rated = {entry.version: entry for entry in rate(played(4)).rated()}
    assert [entry.version for entry in found.versions] == [3, 0, 2, 1, 6]
    for entry in found.versions[:4]:
        assert entry.rating == rated[entry.version].rating
        assert entry.games == 2 * rated[entry.version].num_pairs
    one = next(entry for entry in found.versions if entry.version == 1)
    assert (one.wins, one.draws, one.losses) == (4, 1, 11)
    text = text_of(found)
    row = next(line for line in text.splitlines() if "v1 " in line and "to" in line)
    for word in (f"{rated[1].rating:+.0f}", "pool", "40", " 4 ", " 11 "):
        assert word in row, word
    matrix = text[text.index("in percent") :].splitlines()
    assert matrix[2].split() == [
        "┃",
        "┃",
        *["v3", "┃", "v2", "┃", "v1", "┃", "v0", "┃", "rules", "┃"],
    ]
    v1 = next(line for line in matrix if "v1 │" in line)
    assert v1.split("│")[2].strip() == "25", "points against version 3"
    assert "2 promoted, 1 rejected, 0 undecided" in text
    assert text.index("v9 promoted") < text.index("v5 rejected"), "newest gate first"
    assert "12ab" in text


def test_the_matrix_is_bounded_and_says_so(tmp_path: Path) -> None:
    text = text_of(standings(run_with(tmp_path / "run", played(20), champion=3, newest=19)))
    matrix = text[text.index("in percent") :]
    assert "v8 │" in matrix
    assert "v7 │" not in matrix
    assert f"and {20 - MAX_MATRIX} older versions" in matrix


def test_what_is_not_there_yet_is_said_in_words(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "new")
    directory.prepare()
    directory.save(new_manifest(kuhn_config(), ["test"]))
    assert "there is no version yet" in text_of(standings(directory))
    text = text_of(standings(run_with(tmp_path / "run", RatingTable(), champion=0, newest=2)))
    assert "there are no rating games yet" in text
    assert "v2" in text
    assert curve_lines([]) == rating_lines(RatingTable()) == []


def test_a_real_run_is_shown_stopped_and_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    directory = new_run(folder, kuhn_config("gate.max_pairs=24", "evaluation.every_versions=2"))
    runtime = opened(directory)
    take_turns(runtime, 60)
    runtime.close()
    manifest = directory.load()
    assert manifest.rating_games > 0
    assert manifest.evaluation_games > 0
    records = read_records(directory)
    assert records
    assert {record.opponent for record in records} == {"rules"}
    for record in records:
        assert record.games == 20
        model = manifest.models.get(record.version)
        if model is not None:
            assert (record.step, record.generated_games) == (model.step, model.games)
    capsys.readouterr()
    assert cli.main(["league", str(folder), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["live"] is False
    assert document["champion"] == manifest.champion
    assert any(entry["rating"] is not None for entry in document["versions"])
    pairs = sum(sum(tally["scores"]) for tally in document["results"])
    # Blocks count when they are over; a part of one may be under way.
    block = manifest.config.rating.block_pairs
    assert 0 <= manifest.rating_games / 2 - pairs < block
    assert cli.main(["league", str(folder)]) == 0
    assert "Elo, rules = 0" in capsys.readouterr().out


def test_a_run_that_does_not_exist_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["league", str(tmp_path / "none")]) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("count", [1, MAX_POINTS, 40])
def test_the_strength_curve_is_one_line_of_few_points(count: int) -> None:
    records = [evaluation(v, elapsed_s=60.0 * v, win_rate=v / 100) for v in range(1, count + 1)]
    closing = {"elapsed_s": 60.0 * count, "win_rate": 0.9}
    records.append(evaluation(count, kind="closing", games=2000, **closing))
    (line,) = curve_lines(records)
    assert line.startswith("strength against rules, policy alone: v1 (1:00)")
    assert line.endswith("90.0 %"), "of several figures the one of most games"
    assert line.count("%") == min(count, MAX_POINTS)
