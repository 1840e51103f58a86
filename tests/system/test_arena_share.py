"""Gate, ratings and evaluations of a live run stay under their share of compute, and all go on.

* processor time of the arena's process against that of all processes of the run
* the arena killed with SIGKILL goes on with its ratings and records no evaluation twice
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil
import pytest

from deploy.evaluations import key_of, read_records
from deploy.standings import load
from tests.system.running import LiveRun, kill, live_run, warm_kernels

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(300)]

SHARE = 0.15
NUM_CPUS = 2
MEASURE_S = 12.0
AGAIN_S = 60.0
OPTIONS = (
    f"gate.share={SHARE}",
    f"runtime.num_cpus={NUM_CPUS}",
    "self_play.share=0.7",
    "rating.min_share=0.2",
    "evaluation.every_versions=2",
    "evaluation.min_share=0.2",
)


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def of_run(run: LiveRun, supervisor_pid: int) -> dict[psutil.Process, float]:
    """Return the processor time of every process of the run that is there now."""
    root = psutil.Process(supervisor_pid)
    found = {}
    for process in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            found[process] = cpu_s(process)
    return found


def test_the_arena_stays_under_its_share_and_all_its_games_go_on(tmp_path: Path) -> None:
    warm_kernels()
    folder, began = tmp_path / "run", time.time()
    with live_run(folder, *OPTIONS) as (run, supervisor):
        run.wait_started(began)
        first = run.wait(
            lambda s: s.gate_games > 0 and s.rating_games > 0 and s.evaluation_games > 0,
            "games of gate, rating and evaluation",
            AGAIN_S,
        )
        before, started = of_run(run, supervisor.pid), time.monotonic()
        (arena,) = run.actors("GateHost")
        assert "MALLOC_MMAP_THRESHOLD_" in arena.environ()
        run.wait(lambda s: s.updated_at > first.updated_at + MEASURE_S, "a while", AGAIN_S)
        spent = {p: s - before.get(p, 0.0) for p, s in of_run(run, supervisor.pid).items()}
        elapsed_s = time.monotonic() - started
        # Of the machine: the bound holds however busy the others are.
        assert 0 < spent[arena] <= 1.1 * SHARE * NUM_CPUS * elapsed_s + 0.3
        # Of the run: where its other processes get the time that is theirs.
        others = sum(spent.values()) - spent[arena]
        if others >= (1.0 - SHARE) * NUM_CPUS * elapsed_s:
            assert spent[arena] <= 1.1 * SHARE * sum(spent.values())

        run.wait(lambda _: len(read_records(run.directory)) >= 2, "evaluations", AGAIN_S)
        kill(arena)
        again = run.wait(
            lambda s: any(w.role == "gate" and w.restarts == 1 and w.alive for w in s.workers),
            "the arena again",
            AGAIN_S,
        )
        known = len(read_records(run.directory))
        run.wait(
            lambda s: (
                s.rating_games > again.rating_games and len(read_records(run.directory)) > known
            ),
            "ratings and evaluations of the arena's next life",
            AGAIN_S,
        )
        keys = [key_of(record) for record in read_records(run.directory)]
        assert len(keys) == len(set(keys))
        _, table = load(run.directory)
        assert table.tallies
