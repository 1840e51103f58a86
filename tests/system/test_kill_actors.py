"""Processes of a live run killed with SIGKILL: it survives in place.

Behaviours checked, in one run on real Ray with the real bundled server:
* a self-play worker works again within 60 s and the run goes on; so do learner and gate
* a worker that hangs is replaced after the limit of a step
* the bundled server is started again; nothing accepted is lost
* a disk that runs low pauses the workers until there is room again
* a killed raylet costs a restart of the owner, within 60 s
* SIGTERM saves within its limit and leaves no process
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import psutil
import pytest

from deploy.processes import find, mark
from deploy.status import RunStatus
from tests.system.running import LiveRun, kill, live_run, warm_kernels

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(300)]
AGAIN_S = 60.0
BALLAST_GB = 8


def restarts(status: RunStatus, role: str) -> int:
    return sum(worker.restarts for worker in status.workers if worker.role == role)


def loaded(process: psutil.Process, library: str) -> bool:
    return any(library in mapped.path for mapped in process.memory_maps())


def low_disk_threshold(folder: Path) -> float:
    """Return a limit in GB that ``BALLAST_GB`` less of free disk falls below."""
    free_gb = shutil.disk_usage(folder).free / 1e9
    return max(0.0, free_gb - BALLAST_GB / 2)


def check_low_disk(run: LiveRun, ballast: Path) -> None:
    """Fill the disk to below the limit, without writing; make room again."""
    if run.directory.load().config.replay.min_free_disk_gb <= BALLAST_GB:
        return  # a disk as small as that is left alone
    with open(ballast, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, BALLAST_GB * 10**9)
    paused = run.wait(lambda s: s.state == "paused" and bool(s.alerts), "a pause")
    assert "disk" in paused.alerts[0]
    drained = run.wait(
        lambda s: s.updated_at > paused.updated_at + 1 and not any(w.outbox for w in s.workers),
        "steps that began before the pause",
    )
    added = run.num_entries_added()
    run.wait(lambda s: s.updated_at > drained.updated_at + 2, "a while")
    assert run.num_entries_added() == added
    ballast.unlink()
    run.wait(lambda s: s.state == "running", "the end of the pause")
    run.wait(lambda _: run.num_entries_added() > added, "games again", AGAIN_S)


def test_killed_actors_and_server_work_again_and_the_run_goes_on(tmp_path: Path) -> None:
    warm_kernels()
    folder, began = tmp_path / "run", time.time()
    least_free = f"replay.min_free_disk_gb={low_disk_threshold(tmp_path)}"
    with live_run(folder, least_free) as (run, supervisor):
        run.wait_started(began)

        # torch is loaded by the learner alone, machine code of kernels not by the owner.
        assert loaded(run.actors("LearnerHost")[0], "libtorch")
        for process in (run.owner(), *run.actors("SelfPlayHost"), *run.actors("GateHost")):
            assert not loaded(process, "libtorch")
        assert not loaded(run.owner(), "libllvmlite")

        # A self-play worker.
        kill(run.actors("SelfPlayHost")[0])
        run.wait(
            lambda s: (
                restarts(s, "selfplay") == 1
                and all(w.plies_per_s > 0 for w in s.workers if w.role == "selfplay")
            ),
            "the killed worker playing again",
            AGAIN_S,
        )

        # The learner, from its snapshot: steps go on, nothing starts from zero.
        before = run.wait(lambda s: s.step > 0 and s.newest > 0, "an update")
        kill(run.actors("LearnerHost")[0])
        after = run.wait(
            lambda s: restarts(s, "learner") == 1 and s.step > before.step,
            "the killed learner training again",
            AGAIN_S,
        )
        assert after.newest >= before.newest

        # The gate.
        kill(run.actors("GateHost")[0])
        before = run.wait(lambda s: restarts(s, "gate") == 1, "the gate being replaced", AGAIN_S)
        run.wait(lambda s: s.gate_games > before.gate_games, "the gate playing again", AGAIN_S)

        # A worker that hangs.
        hung = mark(run.actors("SelfPlayHost")[0].pid)
        assert hung is not None
        os.kill(hung.pid, signal.SIGSTOP)
        run.wait(lambda s: restarts(s, "selfplay") == 2, "the hung worker being replaced", AGAIN_S)
        assert find(hung) is None

        # The server.
        before = run.wait(lambda s: s.games_per_s > 0, "games")
        kill(psutil.Process(run.server()["pid"]))
        run.wait(
            lambda s: s.server_restarts == 1 and s.totals.games > before.totals.games + 50,
            "games behind the server's restart",
            AGAIN_S,
        )
        added = run.num_entries_added()
        run.wait(lambda s: s.totals.games >= added, "all accepted games ingested", AGAIN_S)

        # The disk.
        check_low_disk(run, tmp_path / "ballast")

        # Ray itself: its driver does not notice, so the owner looks, ends and is started again.
        before = run.wait(lambda s: run.directory.load().step > 0, "a snapshot")
        lost = time.time()
        kill(next(p for p in run.owner().children(recursive=True) if p.name() == "raylet"))
        after = run.wait_started(lost)
        assert time.time() - lost < AGAIN_S
        assert after.newest >= before.newest
        run.wait(lambda s: s.totals.games > before.totals.games, "more games", AGAIN_S)

        limit_s = run.directory.load().config.runtime.stop_timeout_s
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(limit_s + 1.0) == 0
        run.assert_nothing_left()
        manifest = run.directory.load()
        assert manifest.totals.lost_entries == 0
        assert manifest.learner is not None
        assert manifest.gate is not None
        assert run.directory.get(manifest.learner)
        assert manifest.totals.games >= before.totals.games
