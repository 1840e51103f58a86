"""The tables of measured strength, on real matches of Kuhn poker.

* the closing table plays the champion at every budget of the configuration against the yardstick
* a table that is cut short says how many games it is made of
* the same seed gives the same figures; a missing champion is refused by name
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from deploy import closing, report
from deploy.config import RunConfig
from deploy.evaluations import read_records
from deploy.manifest import new_manifest
from deploy.presets import load
from deploy.rundir import RunDirectory
from league.models import ModelError
from league.players import PlayerError
from tests.league.tiny_models import make_metadata, make_model


def console() -> Console:
    return Console(file=io.StringIO(), width=100)


def text_of(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


def config(*overrides: str) -> RunConfig:
    return load("kuhn-smoke", overrides=overrides, environment={})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run whose champion is version 3."""
    directory = RunDirectory(tmp_path / "demo")
    directory.prepare()
    manifest = new_manifest(config(), ["cardleague"])
    manifest.models[3] = directory.put_model(
        3, make_model(3, metadata=make_metadata(version=3)), step=30
    )
    manifest.champion = manifest.newest = 3
    directory.save(manifest)
    return directory.path


def test_closing_table_has_a_column_per_budget(run: Path) -> None:
    shown = console()
    found = report.closing_table(run, config("report.num_games=40"), console=shown)
    assert [r.num_games for r in found] == [40, 40]
    assert {r.players[0].name for r in found} == {"champion"}
    text = text_of(shown)
    for word in ("champion v3 against rules", "policy alone", "8 simulations", "win rate", "40"):
        assert word in text
    for row in ("verdict", "95 % interval", "shaped return", "bets", "plies a game", "seconds"):
        assert row in text
    assert "cut short" not in text


def test_the_closing_table_is_recorded_once_and_followed_by_the_curve(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = RunDirectory(run)
    manifest = directory.load()
    manifest.config = config("report.num_games=40")
    directory.save(manifest)
    for _ in range(2):
        assert closing.main([str(run)]) == 0
        text = capsys.readouterr().out
        assert "strength against rules, policy alone: v3" in text
        assert "strength against rules, 8 simulations: v3" in text
    found = read_records(directory)
    assert [(r.kind, r.version, r.simulations, r.games) for r in found] == [
        ("closing", 3, 0, 40),
        ("closing", 3, 8, 40),
    ]
    assert found[0].step == 30
    assert set(found[0].own) == {"bets", "return", "plies"}
    assert found[0].wins + found[0].draws + found[0].losses == 40


def test_closing_table_of_a_seed_is_reproducible(run: Path) -> None:
    first, second, other = (
        [
            (r.wins, r.draws, r.win_rate, r.players[0].shaped_return)
            for r in report.closing_table(
                run, config("report.num_games=60", f"seed={seed}"), console=console()
            )
        ]
        for seed in (1, 1, 2)
    )
    assert first == second
    assert first != other


def test_a_table_that_is_cut_short_says_so(run: Path) -> None:
    shown = console()
    asked = config("report.num_games=2000000", "report.simulations=0")
    found = report.closing_table(run, asked, limit_s=1.0, console=shown)
    assert 0 < found[0].num_games < 2_000_000
    assert f"{found[0].num_games:,} of 2,000,000 (cut short)" in text_of(shown)


def test_without_a_champion_there_is_no_table(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "new")
    directory.prepare()
    directory.save(new_manifest(config(), ["cardleague"]))
    with pytest.raises(ModelError, match="no champion"):
        report.closing_table(directory.path, config(), console=console())


def test_an_unknown_yardstick_is_refused(run: Path) -> None:
    with pytest.raises(PlayerError, match="'ruels'"):
        report.closing_table(run, config("report.opponent=ruels"), console=console())


def test_match_of_a_player_against_itself_names_both() -> None:
    found = report.match(("rules", "rules"), 20, 0, game="kuhn", rules="standard")
    assert [player.name for player in found.players] == ["rules (1)", "rules (2)"]
    assert found.verdict == "no clear winner"
    assert found.win_rate == 0.5, "a pair of a deterministic player against itself is split"


def test_progress_without_a_terminal_is_one_line() -> None:
    shown = console()
    report.match(("random", "rules"), 20, 0, game="kuhn", rules="standard", console=shown)
    assert text_of(shown) == "playing: random against rules\n"


def test_progress_on_a_terminal_leaves_nothing_behind() -> None:
    shown = Console(file=io.StringIO(), width=100, force_terminal=True)
    report.match(("random", "rules"), 20, 0, game="kuhn", rules="standard", console=shown)
    assert text_of(shown).endswith("\x1b[2K")
