"""A process that lives an in-process run in child after child, for a test of SIGKILL.

``python -m tests.system.inprocess_host GAME RUN_DIR STEPS KILLS SEED``: makes the run in RUN_DIR
and goes on with it until STEPS optimizer steps. KILLS children are killed before, each at a random
moment: after a random number of events (turns and file operations, also those of opening the run)
and a random part of a second. Nothing is shared with a child but loaded code: it opens the run from
its directory as ``deploy.local`` does.
"""

from __future__ import annotations

import functools
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

from deploy import local, presets
from deploy.files import Files
from deploy.manifest import new_manifest
from deploy.rundir import RunDirectory
from deploy.warm import train, warm_up
from replay.segments import SegmentStore

LEAST_EVENTS, SPREAD_EVENTS = 40, 600
"""A life has up to 40 events, and its share of 600: it opens a run in some thirty."""
LONGEST_DELAY_S = 0.03
LIFE_LIMIT_S = 240.0
OVERRIDES = (
    "runtime.kind=inprocess",
    "gate.max_pairs=40",
    "gate.p0=0.3",
    "gate.p1=0.7",
    "gate.alpha=0.45",
    "gate.beta=0.45",
    "learner.window_positions=1000",
    "learner.td_lambda=0.9",
    "learner.held_out_share=0.3",
    "replay.min_free_disk_gb=0",
)
PRESETS: dict[str, tuple[str, tuple[str, ...]]] = {
    "kuhn": ("kuhn-smoke", ("evaluation.every_versions=1",)),
    # Games of some hundred plies, a few of them at once: lives end in the middle of most.
    "cuarenta": (
        "smoke",
        (
            "network.width=16",
            "network.num_layers=1",
            "self_play.games=6",
            "self_play.full_simulations=6",
            "self_play.fast_simulations=2",
            "self_play.full_share=0.5",
            "search.opponents=policy",
            "league.pool_size=2",
            "league.self_play_floor=0.3",
            "learner.min_window_positions=100",
            "learner.insert_slack_positions=1000",
            "learner.samples_per_insert=2",
            "learner.batch_size=32",
            "learner.updates_per_version=10",
            "learner.held_out_every=10",
            "learner.snapshot_updates=10",
            "learner.calibration_positions=64",
            "gate.simulations=1",
            "gate.games=8",
            "gate.max_pairs=6",
            "rating.simulations=1",
            "rating.block_pairs=2",
            "evaluation.every_versions=5",
            "evaluation.opponents=rules",
            "evaluation.simulations=0",
            "evaluation.num_games=2",
            "evaluation.games=2",
            "runtime.inprocess_evaluations=64",
            "runtime.inprocess_updates=2",
            "runtime.inprocess_gate_pairs=2",
        ),
    ),
}


class Telling(Files):
    """Files that tell of every change before it happens."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def tell(self) -> None:
        os.write(self._descriptor, b".")

    def _write(self, path: Path, data: bytes) -> None:
        self.tell()
        super()._write(path, data)

    def _append(self, path: Path, data: bytes) -> None:
        self.tell()
        super()._append(path, data)

    def _sync(self, path: Path) -> None:
        self.tell()
        super()._sync(path)

    def _rename(self, source: Path, target: Path) -> None:
        self.tell()
        super()._rename(source, target)

    def _unlink(self, path: Path) -> None:
        self.tell()
        super()._unlink(path)


def create(game: str, folder: Path) -> None:
    """Make the run; its ids are fixed, which are random otherwise."""
    directory = RunDirectory(folder)
    directory.prepare()
    preset, overrides = PRESETS[game]
    manifest = new_manifest(presets.load(preset, overrides=(*OVERRIDES, *overrides)), ["test"])
    manifest.run_id, manifest.created_at = "fixed", 0.0
    directory.save(manifest)
    directory.segments_path.mkdir()
    (directory.segments_path / "lineage").write_text("fixed")


def live(folder: Path, steps: int, descriptor: int) -> None:
    """Open the run and go on with it until it has taken so many optimizer steps."""
    local.SegmentStore = functools.partial(SegmentStore, segment_bytes=30_000)  # type: ignore
    files = Telling(descriptor)
    directory = RunDirectory(folder, files)
    runtime = local.LocalRuntime(directory, directory.load())
    status = runtime.owner.tracker.status
    runtime.run(lambda: status.step >= steps, 0.0, files.tell)
    runtime.close()


def child(folder: Path, steps: int) -> tuple[int, int]:
    """Start a life; return its pid and where it tells of its events."""
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    code = 1
    try:
        os.close(read)
        live(folder, steps, write)
        code = 0
    finally:
        os._exit(code)


def has_told(descriptor: int, events: int) -> bool:
    """Wait for so many events; return False when the child has ended before."""
    deadline = time.monotonic() + LIFE_LIMIT_S
    while events > 0:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError(f"no event in {LIFE_LIMIT_S:g} s")
        told = os.read(descriptor, events)
        if not told:
            return False
        events -= len(told)
    return True


def main() -> int:
    game, folder = sys.argv[1], Path(sys.argv[2])
    steps, kills, seed = (int(word) for word in sys.argv[3:6])
    rng = random.Random(seed)
    warm_up([game])
    train(game)  # loads everything: children begin at once
    create(game, folder)
    killed = 0
    while True:
        pid, told = child(folder, steps)
        last = killed == kills
        events = 10**9 if last else rng.randint(1, LEAST_EVENTS + SPREAD_EVENTS // kills)
        if has_told(told, events) and not last:
            time.sleep(rng.uniform(0.0, LONGEST_DELAY_S))
            os.kill(pid, signal.SIGKILL)
            killed += 1
        _, ended = os.waitpid(pid, 0)
        os.close(told)
        code = os.waitstatus_to_exitcode(ended)
        manifest = RunDirectory(folder).load()
        print(f"life ended with {code} after {events} events, step {manifest.step}", flush=True)
        if code != -signal.SIGKILL:
            print(f"{killed} of {kills} killed")
            return code


if __name__ == "__main__":
    sys.exit(main())
