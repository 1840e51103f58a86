"""An in-process run that is killed at random moments equals one that was not, bit for bit.

Kuhn is killed twenty times. Cuarenta, whose games are long enough for every life to end in the
middle of most of them, four times, or as often as ``CUARENTA_KILLS`` says.

Behaviours checked:
* models, snapshots, segments, evaluations and every counter of the manifest are the same
* the moments are anywhere: while a run is opened, in a turn, between two writes of a boundary
* unfinished games, searches in flight and half-played gates are part of it
* nothing half written is left over
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deploy.evaluations import read_records
from deploy.manifest import Manifest
from deploy.rundir import RunDirectory
from replay.segments import SegmentStore
from tests.deploy.waiting import ROOT

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]

KILLS = {"kuhn": 20, "cuarenta": int(os.environ.get("CUARENTA_KILLS", "4"))}
STEPS = {"kuhn": 240, "cuarenta": 120}
LEAST = {"kuhn": (5, 300, 10), "cuarenta": (1, 10, 8)}
"""Evaluations, games in the window and versions that make a run worth comparing."""


def live(game: str, folder: Path, kills: int, seed: int) -> str:
    """Live a run to its end with so many kills; return what its host said."""
    command = [sys.executable, "-m", "tests.system.inprocess_host", game, str(folder)]
    done = subprocess.run(
        [*command, str(STEPS[game]), str(kills), str(seed)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=850,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def counters(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest without its clocks and the number of its lives."""
    document: dict[str, Any] = json.loads(msgspec.json.encode(manifest))
    for name in ("elapsed_s", "owner_starts", "git_commit", "git_dirty", "invocations"):
        del document[name]
    for record in document["models"].values():
        del record["elapsed_s"]
    return document


def files(directory: RunDirectory) -> dict[str, bytes]:
    """Return the models and snapshots by name."""
    folders = (directory.path / "models", directory.path / "snapshots")
    return {path.name: path.read_bytes() for folder in folders for path in folder.iterdir()}


def evaluations(directory: RunDirectory) -> list[Any]:
    return [
        msgspec.structs.replace(record, time="", elapsed_s=0.0)
        for record in read_records(directory)
    ]


@pytest.mark.parametrize("game", list(KILLS))
def test_killed_at_random_moments_equals_uninterrupted(game: str, tmp_path: Path) -> None:
    seed, kills = random.SystemRandom().randrange(10**6), KILLS[game]
    print(f"seed {seed}")
    live(game, tmp_path / "whole", 0, 0)
    said = live(game, tmp_path / "killed", kills, seed)
    print(said)
    assert f"{kills} of {kills} killed" in said
    check_equal(game, RunDirectory(tmp_path / "whole"), RunDirectory(tmp_path / "killed"))


def check_equal(game: str, whole: RunDirectory, killed: RunDirectory) -> None:
    """Assert that both runs came to the same, and that it was worth comparing."""
    least_evaluations, least_games, least_versions = LEAST[game]
    expected, found = whole.load(), killed.load()
    assert found.owner_starts > KILLS[game] / 2  # some died before they could say they began
    assert counters(found) == counters(expected)
    assert files(killed) == files(whole)
    assert evaluations(killed) == evaluations(whole)
    assert len(evaluations(whole)) > least_evaluations
    stores = [SegmentStore(directory.segments_path) for directory in (whole, killed)]
    edge = f"{int(expected.trim_edge['0'].partition('-')[0]) - 1}-0"
    entries = [list(store.entries(edge)) for store in stores]
    assert entries[0] == entries[1]
    assert len(entries[0]) > least_games
    assert stores[0].end == stores[1].end == expected.stream_end
    # The run did what a run does: evicted games, ended gates, trimmed.
    assert expected.totals.evicted_games > 0
    assert expected.gates.promoted + expected.gates.rejected > 0
    assert expected.newest > least_versions
    assert min(path.name for path in whole.segments_path.glob("*.seg")) > "000000000001.seg"
