"""Runs a real training run, watches what it occupies, and says whether anything grows.

``python -m tests.soak.run --minutes 60`` (``make soak``): a table and a verdict; exit code 1 when
something grows. The run is started and ended as users do it: ``cardleague train``, Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from deploy.evaluations import read_records
from deploy.ray_session import session_folder
from deploy.rundir import RunDirectory
from deploy.status import RunStatus
from tests.deploy.waiting import ROOT, nothing_left, wait_for
from tests.soak.fit import Limit, Sample, after
from tests.soak.verdict import Row, judge, table
from tests.soak.watch import Watcher

NAME = "soak"
PROGRAM = (sys.executable, "-c", "import sys; from deploy.cli import main; sys.exit(main())")
OVERRIDES = (
    # All of them are bounds: the sooner they are reached, the more of the time is measured. (Below
    # 450,000 the stream would hold more than the window: held-out games are kept for longer then.)
    "learner.window_positions=450000",
    "league.pool_size=2",
    "evaluation.every_minutes=2",
    "evaluation.num_games=10",
    "report.interrupted_s=0",
    "replay.min_free_disk_gb=0",
)
STOP_S = 180.0
FULL = 1.3
"""Positions ingested, in windows, from which both windows hold what they can and evict."""
EVERY_S = 5.0


@dataclass
class Plan:
    """What to run, for how long, and what growth is allowed."""

    preset: str = "cuarenta-laptop"
    overrides: tuple[str, ...] = OVERRIDES
    measured_s: float = 2700.0
    start_s: float = 5400.0
    """Starting and getting warm take no longer, be the machine as busy as it may."""
    pool: int = 2
    """Past champions that make a full pool: each of them is loaded by workers and by the gate."""
    evaluations: int = 4
    """Kinds of evaluations, each played once before anything counts: they seat trees of their own,
    those of an opponent without a network take 20 MB, and on a busy machine one takes half an
    hour."""
    settle_s: float = 900.0
    """Between being warm and the first value that counts: the window turns over, allocators have
    met the largest batch."""
    limit: Limit = field(default_factory=lambda: Limit(2.0, floor_per_hour=1e6))
    every_s: float = EVERY_S


@dataclass
class Outcome:
    """What was sampled and what it means."""

    samples: dict[str, list[Sample]]
    warm_s: float
    status: RunStatus
    rows: list[Row]

    @property
    def grows(self) -> list[Row]:
        """The rows that are no longer within their limits."""
        return [row for row in self.rows if not row.is_fine]


@contextlib.contextmanager
def training(folder: Path, plan: Plan) -> Iterator[subprocess.Popen[bytes]]:
    """Train in ``folder``; at the end Ctrl-C, and nothing of the run is left."""
    options = [word for pair in plan.overrides for word in ("--set", pair)]
    command = [*PROGRAM, "train", plan.preset, "--name", NAME, *options]
    run = folder / "runs" / NAME
    with nothing_left(run), open(folder / "output", "wb") as output:
        supervisor = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            yield supervisor
        finally:
            _stop(supervisor)
            if RunDirectory(run).exists():
                session = session_folder(RunDirectory(run).load().run_id)
                with nothing_left(session):
                    pass
                shutil.rmtree(session, ignore_errors=True)


def _stop(supervisor: subprocess.Popen[bytes]) -> None:
    if supervisor.poll() is None:
        supervisor.send_signal(signal.SIGINT)
    try:
        supervisor.wait(STOP_S)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()


def soak(folder: Path, plan: Plan) -> Outcome:
    """Run ``plan`` in ``folder``, an empty one.

    Raises AssertionError when the run ends by itself.
    """
    directory = RunDirectory(folder / "runs" / NAME)
    with training(folder, plan) as supervisor:

        def warm() -> bool:
            assert supervisor.poll() is None, (folder / "output").read_text()[-3000:]
            return _is_warm(directory, plan)

        wait_for(warm, plan.start_s, "a full window, a full pool, all evaluations")
        watcher, began = Watcher(directory.path, supervisor.pid), time.monotonic()
        samples: dict[str, list[Sample]] = defaultdict(list)
        while (at := time.monotonic() - began) < plan.settle_s + plan.measured_s:
            assert supervisor.poll() is None, (folder / "output").read_text()[-3000:]
            for name, value in watcher.sample().items():
                samples[name].append(Sample(at, value))
            _sleep_until(began + at + plan.every_s)
        status = directory.read_status()
    assert status is not None
    rows = judge({name: after(found, plan.settle_s) for name, found in samples.items()}, plan.limit)
    return Outcome(dict(samples), plan.settle_s, status, rows)


def _is_warm(directory: RunDirectory, plan: Plan) -> bool:
    """Return whether every game that comes evicts old ones and all has been done once."""
    status = directory.read_status()
    if status is None or status.totals.examples < FULL * max(1, status.window_capacity):
        return False
    kinds = {(record.opponent, record.simulations) for record in read_records(directory)}
    return len(status.pool) >= plan.pool and len(kinds) >= plan.evaluations


def _sleep_until(deadline: float) -> None:
    time.sleep(max(0.0, deadline - time.monotonic()))


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="a quarter of it settles")
    parser.add_argument("--preset", default="cuarenta-laptop")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--keep", type=Path, help="file for all samples (JSON)")
    arguments = parser.parse_args()
    total_s = 60.0 * arguments.minutes
    plan = Plan(
        preset=arguments.preset,
        overrides=(*OVERRIDES, *arguments.set),
        settle_s=0.25 * total_s,
        measured_s=0.75 * total_s,
    )
    with tempfile.TemporaryDirectory(prefix="cardleague-soak-") as folder:
        outcome = soak(Path(folder), plan)
    if arguments.keep:
        arguments.keep.write_bytes(msgspec.json.encode(outcome.samples))
    totals = outcome.status.totals
    print(
        f"{plan.measured_s / 60:g} minutes after {plan.settle_s / 60:g} to settle with a full "
        f"window; {totals.games} games, {outcome.status.step} updates, "
        f"{outcome.status.newest + 1} versions, {outcome.status.worker_restarts} restarts of actors"
    )
    print(table(outcome.rows))
    for row in outcome.grows:
        print(f"GROWS: {row.name}")
    print("something grows" if outcome.grows else "nothing grows")
    return 1 if outcome.grows else 0


if __name__ == "__main__":
    sys.exit(main())
