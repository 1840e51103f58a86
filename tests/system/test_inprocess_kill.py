"""An in-process run that is killed at twenty random moments equals one that was not, bit for bit.

Behaviours checked:
* models, snapshots, segments, evaluations and every counter of the manifest are the same
* the moments are anywhere: while a run is opened, in a turn, between two writes of a boundary
* nothing half written is left over
"""

from __future__ import annotations

import json
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

STEPS, KILLS = 240, 20


def live(folder: Path, kills: int, seed: int) -> str:
    """Live a run to its end with so many kills; return what its host said."""
    command = [sys.executable, "-m", "tests.system.inprocess_host", str(folder)]
    done = subprocess.run(
        [*command, str(STEPS), str(kills), str(seed)],
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


def test_killed_at_twenty_random_moments_equals_uninterrupted(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    live(tmp_path / "whole", 0, 0)
    said = live(tmp_path / "killed", KILLS, seed)
    print(said)
    assert f"{KILLS} of {KILLS} killed" in said
    check_equal(RunDirectory(tmp_path / "whole"), RunDirectory(tmp_path / "killed"))


def check_equal(whole: RunDirectory, killed: RunDirectory) -> None:
    """Assert that both runs came to the same, and that it was worth comparing."""
    expected, found = whole.load(), killed.load()
    assert found.owner_starts > KILLS / 2  # some died before they could say that they began
    assert counters(found) == counters(expected)
    assert files(killed) == files(whole)
    assert evaluations(killed) == evaluations(whole)
    assert len(evaluations(whole)) > 5
    stores = [SegmentStore(directory.segments_path) for directory in (whole, killed)]
    edge = f"{int(expected.trim_edge['0'].partition('-')[0]) - 1}-0"
    entries = [list(store.entries(edge)) for store in stores]
    assert entries[0] == entries[1]
    assert len(entries[0]) > 300
    assert stores[0].end == stores[1].end == expected.stream_end
    # The run did what a run does: evicted games, ended gates, trimmed.
    assert expected.totals.evicted_games > 0
    assert expected.gates.promoted + expected.gates.rejected > 0
    assert expected.newest > 10
    assert min(path.name for path in whole.segments_path.glob("*.seg")) > "000000000001.seg"
