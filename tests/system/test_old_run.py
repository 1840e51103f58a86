"""The run of schema 1 that is checked in, over real Ray with the bundled server's files.

Behaviours checked:
* today's program rebuilds its window from the server's file, loses nothing, and trains on
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from deploy.rundir import RunDirectory
from tests.fixtures.make import unpack
from tests.system.running import START_S, live_run, warm_kernels

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(600)]


def test_the_run_of_schema_1_trains_on(tmp_path: Path) -> None:
    warm_kernels()
    folder = unpack(1, "ray", tmp_path)
    before = RunDirectory(folder).load()
    assert before.totals.games > 100
    settings = ("seed=5", "learner.insert_slack_positions=1000", "learner.window_positions=1000")
    started = time.time()
    with live_run(folder, *settings) as (run, _):
        run.wait(
            lambda status: (
                status.started_at > started
                and status.totals.games > before.totals.games + 100
                and status.step > before.step
                and status.newest > before.newest
            ),
            "games, steps and a version beyond those of the old run",
            4 * START_S,
        )
    after = RunDirectory(folder).load()
    assert after.totals.games >= before.totals.games
    assert after.totals.lost_entries == 0
    assert not after.totals.rejected
    assert max(after.models) > before.newest
    assert after.owner_starts == before.owner_starts + 1
