"""The package that docs/new-game.md builds is a game like any other.

* Its files are those that the page lists; this program alone does not know the game.
* What must hold of it holds, with the same digest compiled and as Python; a view that holds too
  much, and a world that contradicts it, are found.
* It is played at the terminal, with hints and in its notation.
* No record within what it declares leads out of an array; without a part of that some do.
* A mistake that Python finds is told by ``cardleague games`` in one line.
* Every command of the page runs: the game is listed, trains for a minute, and its newest version
  beats random moves by its policy alone.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deploy.rundir import RunDirectory
from engine.game import UnknownGameError, get_spec
from tests import new_game
from tests.deploy.waiting import ROOT

PROGRAMS = {"python": [sys.executable], "cardleague": [sys.executable, "-m", "deploy.cli"]}
CHECKS = [command for command in new_game.commands() if "check.py" in command]
PLAY = next(command for command in new_game.commands() if " play " in command)
OTHERS = [
    command for command in new_game.commands() if "check.py" not in command and command != PLAY
]
VERSIONS = 3
"""What a run has to reach; on a busy machine a minute is too short for it."""


def run(
    folder: Path, command: str, timeout_s: float = 280.0, lines: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command of the page in the package's folder."""
    words = shlex.split(command)
    settings = [words.pop(0) for word in list(words) if re.match(r"[A-Z_]+=", word)]
    path = f"{folder}{os.pathsep}{ROOT}"
    return subprocess.run(
        [*PROGRAMS[words[0]], *words[1:]],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path} | dict(word.split("=", 1) for word in settings),
        input=lines,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def printed(folder: Path, command: str) -> str:
    """Return what a command that succeeds prints."""
    done = run(folder, command)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]} {done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("highcard")
    new_game.install(folder)
    return folder


def test_the_page_lists_the_files_that_it_builds() -> None:
    listed = re.search(r"^```\nhighcard/\n(.*?)^```$", new_game.PAGE.read_text(), re.DOTALL | re.M)
    assert listed is not None
    assert {line.split()[0] for line in listed[1].splitlines()} == set(new_game.files())


def test_without_its_package_the_game_is_unknown() -> None:
    with pytest.raises(UnknownGameError, match="game 'highcard': allowed are cuarenta, "):
        get_spec("highcard")


def test_the_code_of_the_page_is_formatted(package: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--check", "--line-length", "100", "."],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.system
def test_what_must_hold_holds_and_compiled_code_does_the_same(package: Path) -> None:
    assert len(CHECKS) == 2
    compiled, interpreted = (printed(package, command) for command in CHECKS)
    assert compiled == interpreted
    assert re.fullmatch(r"[0-9a-f]{64}\n", compiled)


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        ("    out.hands[1 - seat] = U0\n", "", "a view holds nothing of the other hand"),
        ("        held -= 1", "        held -= 0", "hands have their sizes"),
        ("view.hands[seat] | view.played", "view.played", "a card is in one place"),
        ("out.hands[1 - seat] |= bit", "out.hands[seat] |= bit", "a world has the view"),
    ],
)
def test_a_mistake_in_the_game_is_found(tmp_path: Path, right: str, wrong: str, found: str) -> None:
    new_game.install(tmp_path)
    path = tmp_path / "highcard.py"
    source = path.read_text()
    assert source.count(right) == 1
    path.write_text(source.replace(right, wrong))
    done = run(tmp_path, CHECKS[1])
    assert done.returncode == 1
    assert f"AssertionError: {found}" in done.stderr


STRAYS = (
    'NUMBA_DISABLE_JIT=1 python -W error -W "ignore:overflow encountered:RuntimeWarning" '
    "-m tests.engine.stray_records 1 100 300 60 highcard"
)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("", ""), ("state_relations=", "view_relations={} and ")],
)
def test_no_record_that_the_page_allows_leads_out_of_an_array(
    tmp_path: Path, right: str, wrong: str
) -> None:
    new_game.install(tmp_path)
    path = tmp_path / "highcard.py"
    path.write_text(path.read_text().replace(right, wrong))
    done = run(tmp_path, STRAYS)
    if right:
        assert done.returncode == 1
        return
    assert done.returncode == 0, done.stderr[-3000:]
    passed = re.findall(r"(\d+) of 100 views and (\d+) of 300 states", done.stdout)
    assert len(passed) == 2
    assert all(int(views) == 100 and int(states) > 10 for views, states in passed)


def test_a_game_that_does_not_load_is_told_in_one_line(tmp_path: Path) -> None:
    new_game.install(tmp_path)
    path = tmp_path / "highcard.py"
    path.write_text(path.read_text().replace("def side_of(", "def no_such_function("))
    done = run(tmp_path, "cardleague games")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "game 'highcard' of highcard 0.1 cannot be loaded: TypeError: " in line
    assert "does not implement 'side_of'" in line


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.timeout(900)
def test_the_game_is_listed_trains_and_beats_random_moves(package: Path) -> None:
    listing, train, *matches = OTHERS
    assert "\nhighcard\n  rules     three, five\n" in printed(package, listing)
    directory = RunDirectory(package / "runs" / "highcard")
    for _ in range(5):
        printed(package, train)
        newest = directory.load().newest
        if newest >= VERSIONS:
            break
    report: dict[str, Any] = json.loads(
        printed(package, f"cardleague match highcard@v{newest}:0 random --games 400 --json")
    )
    assert report["num_games"] == 400
    assert report["win_rate_low"] > 0.5, report
    assert len(matches) == 2
    for match in matches:
        assert "highcard" in printed(package, match)


@pytest.mark.slow
@pytest.mark.system
def test_the_game_is_played_at_the_terminal(package: Path) -> None:
    done = run(package, PLAY, lines="hint\nno card\n#1\n#1\nundo\n#1\n#1\n")
    assert done.returncode == 0, done.stderr
    for words in ("Legal: ", "ismcts:1000 would play: ", "'no card': allowed are ", "you: "):
        assert words in done.stdout
    assert "Back to your move before." in done.stdout
    assert "The game is over. " in done.stdout
    assert "hand " in done.stdout.split("Legal: ")[0]
