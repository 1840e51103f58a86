"""A real run stopped and gone on with: owner killed, Ctrl-C, second Ctrl-C.

Behaviours checked:
* a killed owner is started again from the manifest, with a fresh Ray
* Ctrl-C and a second Ctrl-C leave a resumable run and no process
* a resume continues counters, window, optimizer and champion, without a catch-up burst
"""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from deploy.manifest import Manifest
from tests.deploy.waiting import wait_for
from tests.system.running import LiveRun, kill, live_run, warm_kernels

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(300)]

SAMPLES_PER_INSERT, BATCH, SLACK = 2.0, 64, 1_000
"""Of the preset that these runs use."""


def assert_continues(before: Manifest, after: Manifest) -> None:
    """The later manifest goes on where the earlier one ended."""
    assert after.run_id == before.run_id
    assert after.step > before.step
    assert after.totals.games > before.totals.games
    assert after.totals.examples > before.totals.examples
    assert after.champion >= before.champion
    assert after.next_version >= before.next_version
    assert after.epoch > before.epoch
    assert after.elapsed_s > before.elapsed_s
    assert set(before.pool) & set(after.pool) or len(after.pool) > 1
    assert after.totals.lost_entries == 0
    # No burst: what was sampled since then is what was inserted since then, give or take the slack.
    sampled = (after.step - before.step) * BATCH
    inserted = after.totals.examples - before.totals.examples
    assert sampled <= SAMPLES_PER_INSERT * (inserted + SLACK) + BATCH
    assert inserted <= sampled / SAMPLES_PER_INSERT / 0.8 + 2 * SLACK  # 0.8: games held out


def _is_stopping(run: LiveRun) -> bool:
    status = run.status()
    return status is not None and status.state in ("stopping", "stopped")


def stop(run: LiveRun, supervisor: subprocess.Popen[bytes], *signals: signal.Signals) -> Manifest:
    for number in signals:
        supervisor.send_signal(number)
        wait_for(lambda: _is_stopping(run), 30, "the run stopping")
    assert supervisor.wait(60) == 0
    run.assert_nothing_left()
    status = run.status()
    assert status is not None
    assert status.state == "stopped"
    return run.directory.load()


def test_killed_owner_goes_on_and_every_stop_is_resumable(tmp_path: Path) -> None:
    warm_kernels()
    folder, began = tmp_path / "run", time.time()
    one_worker = "self_play.num_workers=1"
    with live_run(folder, one_worker) as (run, supervisor):
        first = run.wait_started(began)
        run.wait(lambda s: s.step > 30 and s.window_positions > 500, "some training")
        run.wait(lambda s: run.directory.load().step > 0, "a snapshot in the manifest")
        before, killed = run.directory.load(), time.time()
        kill(run.owner())
        second = run.wait_started(killed)
        assert time.time() - killed < 60
        assert second.epoch > first.epoch
        run.wait(lambda s: s.step > before.step + 20, "training that goes on")
        stopped = stop(run, supervisor, signal.SIGINT)
    assert_continues(before, stopped)
    assert stopped.owner_starts == 2

    began = time.time()
    with live_run(folder, one_worker) as (run, supervisor):
        status = run.wait_started(began)
        assert status.window_positions >= min(500, stopped.totals.examples // 2)
        run.wait(lambda s: s.step > stopped.step + 20, "training that goes on")
        resumed = stop(run, supervisor, signal.SIGINT, signal.SIGINT)
    assert_continues(stopped, resumed)
