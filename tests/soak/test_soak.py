"""Five minutes of a real run on Ray, watched from outside: nothing in it grows quickly.

Kuhn's games are short: what is leaked for each game, version, call or evaluation comes a hundred
times as often as in Cuarenta. In three minutes an allocator that has not met its largest batch yet
moves a process by some megabytes, which two per cent an hour would not allow; hence a bound in
megabytes a minute, which a leak of one byte in ten of what flows through would break. The hour
with the real bound is ``make soak``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.fit import Limit
from tests.soak.run import Plan, soak
from tests.system.running import warm_kernels

MEGABYTES_A_MINUTE = 2.0
PLAN = Plan(
    preset="kuhn-smoke",
    overrides=(
        "runtime.kind=ray",
        "runtime.step_s=0.3",
        "runtime.num_cpus=2",
        "runtime.snapshot_s=5",
        "self_play.share=0.3",
        "learner.window_positions=4000",
        "learner.held_out_share=0.5",  # both windows full at once
        "league.pool_size=4",
        "evaluation.every_minutes=0.5",
        "replay.min_free_disk_gb=0",
        "report.interrupted_s=0",
    ),
    start_s=900.0,
    pool=0,
    evaluations=1,
    settle_s=75.0,
    measured_s=180.0,
    limit=Limit(0.0, floor_per_hour=60.0 * MEGABYTES_A_MINUTE * 1e6),
    every_s=2.0,
)


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.timeout(1800)
def test_nothing_grows_in_five_minutes_of_a_real_run(tmp_path: Path) -> None:
    warm_kernels()
    outcome = soak(tmp_path, PLAN)
    names = {row.name for row in outcome.rows}
    roles = ("supervisor", "owner", "server", "learner", "gate", "worker", "ray gcs_server")
    assert {f"rss {role} 1" for role in roles} <= names
    assert {"server memory", "bytes of the run", "bytes of Ray's folder"} <= names
    assert outcome.status.worker_restarts == 0
    assert outcome.status.newest > 3
    assert outcome.grows == []
