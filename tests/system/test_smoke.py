"""A minute of the preset ``smoke``, as a user runs it.

* on Ray: the newest version beats the untrained version 0, by its policy alone and with search
* in one process: the same seed plays the same games, byte for byte
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deploy.rundir import RunDirectory
from engine.game import get_spec
from replay.codec import decode, encode
from replay.segments import SegmentStore
from tests.deploy.waiting import ROOT

pytestmark = [pytest.mark.system, pytest.mark.slow]

PROGRAM = [sys.executable, "-c", "import sys; from deploy.cli import main; sys.exit(main())"]
QUICK_REPORT = ("--set", "report.num_games=2", "--set", "report.simulations=0")


def cardleague(folder: Path, *arguments: str, timeout_s: float) -> str:
    """Run the program in ``folder``; return what it printed. Fails with its output."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout[-3000:]} {done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which ``smoke`` has trained for a minute on Ray."""
    folder = tmp_path_factory.mktemp("smoke")
    cardleague(folder, "train", "smoke", "--minutes", "1", *QUICK_REPORT, timeout_s=280)
    return folder


@pytest.mark.timeout(600)
@pytest.mark.parametrize("simulations", [0, 64])
def test_newest_version_beats_the_untrained_one(trained: Path, simulations: int) -> None:
    newest = RunDirectory(trained / "runs" / "smoke").load().newest
    assert newest > 1
    players = (f"smoke@v{newest}:{simulations}", f"smoke@v0:{simulations}")
    report: dict[str, Any] = json.loads(
        cardleague(trained, "match", *players, "--games", "200", "--json", timeout_s=200)
    )
    assert report["num_games"] == 200
    assert report["win_rate_low"] > 0.5, report
    assert report["distinct_games"] > 100


@pytest.mark.timeout(600)
def test_same_seed_in_one_process_plays_the_same_games(tmp_path: Path) -> None:
    games = []
    for name in ("first", "second"):
        arguments = ("train", "smoke", "--name", name, "--runtime", "inprocess", "--seed", "11")
        segments = tmp_path / "runs" / name / "segments"
        # Where the clock stops a run is not part of it: what both have must be the same.
        for _ in range(6):  # a busy machine plays little in that time: it goes on then
            cardleague(tmp_path, *arguments, "--minutes", "0.4", *QUICK_REPORT, timeout_s=280)
            if len(played(segments)) > 20:
                break
        games.append(played(segments))
    common = min(map(len, games))
    assert common > 20
    assert games[0][:common] == games[1][:common]


def played(folder: Path) -> list[bytes]:
    """Return all games of a run as bytes, without the run's own random name."""
    spec = get_spec("cuarenta")
    trajectories = [decode(e.payload, spec) for e in SegmentStore(folder).entries("0-0")]
    return [
        encode(replace(t, header=msgspec.structs.replace(t.header, run_id="")))
        for t in trajectories
    ]
