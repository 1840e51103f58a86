"""The in-process runtime: everything in one process, triggered by counters, never by time.

Room: deploy. No Ray, no Redis. A run is a sequence of turns: every worker plays a fixed number of
evaluation batches, the gate plays a fixed number of pairs, the learner reads and takes at most a
fixed number of optimizer steps. Between turns lies a boundary. What a snapshot at a boundary holds
is everything that the next turn depends on, and taking one changes nothing, so that a run that was
interrupted and resumed goes on bit for bit as one that was not, on the same type of machine.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from deploy import components
from deploy.control import EXIT_REFUSED, Control
from deploy.manifest import Manifest, ResumeError, record_engine
from deploy.owner import Owner
from deploy.patience import Patience, PatientFiles, told_once
from deploy.rundir import RunDirectory
from deploy.tracker import GATE, LEARNER, SELFPLAY
from engine.jit import engine_hash
from league.models import MemoryModelStore
from replay.segments import SegmentReader, SegmentStore, SegmentWriter

NODE = "local"
LOW_DISK_CHECK_S = 0.5


class SegmentStream:
    """The owner's view of the segments."""

    def __init__(self, store: SegmentStore, folder: Path) -> None:
        self._store = store
        self._folder = folder

    def trim(self, edges: dict[str, str]) -> None:
        """See TrajectoryStream; whole segments only."""
        for edge in edges.values():
            self._store.trim(edge)

    def size(self) -> tuple[int, int]:
        """See TrajectoryStream. Entries are counted from the run's beginning."""
        num_bytes = sum(path.stat().st_size for path in self._folder.glob("*.seg"))
        return int(self._store.end.partition("-")[0]), num_bytes


class LocalRuntime:
    """One run in this process."""

    def __init__(self, directory: RunDirectory, manifest: Manifest) -> None:
        """Go on from ``manifest``. Raises ResumeError, and the rooms' own errors."""
        self._config = config = manifest.config
        self._manifest = manifest
        record_engine(manifest, engine_hash())
        self._segments = SegmentStore(directory.segments_path, disk=directory.files)
        if manifest.stream_end:
            self._segments.truncate(manifest.stream_end)
        elif manifest.learner is None:
            self._segments.truncate("0-0")
        models = MemoryModelStore()
        stream = SegmentStream(self._segments, directory.segments_path)
        self.owner = Owner(directory, manifest, models, stream=stream)
        self.owner.begin()
        self._start_workers(directory, models)
        self._gate = components.build_gate(
            config,
            models,
            manifest.run_id,
            epoch=self.owner.start_actor(GATE, node=NODE),
            snapshot=directory.get(manifest.gate) if manifest.gate else None,
        )
        self._learner = components.build_learner(
            config,
            SegmentReader(self._segments),
            manifest.run_id,
            epoch=self.owner.start_actor(LEARNER, node=NODE),
            snapshot=directory.get(manifest.learner) if manifest.learner else None,
        )
        self._turns_to_boundary = self._turns_between()

    def _start_workers(self, directory: RunDirectory, models: MemoryModelStore) -> None:
        config, manifest = self._config, self._manifest
        num_workers = config.self_play.num_workers
        if manifest.workers and len(manifest.workers) != num_workers:
            raise ResumeError(
                f"self_play.num_workers is {num_workers}, the snapshot has "
                f"{len(manifest.workers)}: in the in-process runtime a resume may not change it"
            )
        sequences = manifest.worker_sequences or [1] * num_workers
        self._writers, self._workers = [], []
        for slot in range(num_workers):
            writer = SegmentWriter(
                self._segments,
                components.producer_name(NODE, slot, 0),
                max_pending=config.self_play.outbox_games + config.self_play.games,
                first_sequence=sequences[slot],
            )
            worker = components.build_worker(
                config,
                models,
                writer,
                manifest.run_id,
                node=NODE,
                slot=slot,
                epoch=self.owner.start_actor(SELFPLAY, slot, NODE),
            )
            if manifest.workers:
                worker.restore(directory.get(manifest.workers[slot]))
            self._writers.append(writer)
            self._workers.append(worker)

    def _turns_between(self) -> int:
        """Return the number of turns between two snapshots."""
        updates = self._config.runtime.inprocess_updates
        return max(1, self._config.learner.snapshot_updates // updates)

    def turn(self, *, boundary: bool = False) -> None:
        """Let everybody do a fixed amount; with ``boundary`` make the result the truth."""
        owner = self.owner
        for slot, worker in enumerate(self._workers):
            step = owner.step_request(slot)
            if step is not None:
                owner.on_step(worker.step(step))
        pairs = owner.gate_request()
        if pairs is not None:
            owner.on_gate(self._gate.step(pairs))
        self._turns_to_boundary -= 1
        boundary = boundary or self._turns_to_boundary == 0
        owner.on_learn(self._learner.step(owner.learn_request(snapshot=boundary)))
        if boundary:
            self._turns_to_boundary = self._turns_between()
            self._save()

    def _save(self) -> None:
        if not self.owner.settle():  # its files gave up waiting: the run is as of its manifest
            raise OSError(errno.ENOSPC, self.owner.tracker.disk_trouble)
        self.owner.take_worker_snapshots([worker.snapshot() for worker in self._workers])
        self.owner.take_gate_snapshot(self._gate.snapshot())
        self._segments.sync()
        self._manifest.stream_end = self._segments.end
        self._manifest.worker_sequences = [writer.next_sequence for writer in self._writers]
        self.owner.save()

    def run(
        self, stopping: Callable[[], bool], limit_elapsed_s: float, show: Callable[[], None]
    ) -> None:
        """Take turns until ``stopping`` or the limit of training time (0: none), then save."""
        tracker, pause = self.owner.tracker, threading.Event()
        tracker.start_clock()
        last = False
        while not last:
            last = stopping() or 0 < limit_elapsed_s <= tracker.elapsed_s()
            if not last and tracker.low_disk():
                tracker.status.state = "paused"
                show()
                pause.wait(LOW_DISK_CHECK_S)
                continue
            tracker.status.state = "running"
            self.turn(boundary=last)
            self.owner.measure_stream()
            show()
        tracker.stop_clock()

    def close(self) -> None:
        """Close files and writers."""
        for worker in self._workers:
            worker.close()
        self._segments.close()


def main(arguments: list[str] | None = None) -> int:
    """Be the owner of a run directory; the supervisor starts this. Returns the exit code."""
    from deploy.screen import Screen

    parser = argparse.ArgumentParser()
    parser.add_argument("run_directory", type=Path)
    parser.add_argument("--control-fd", type=int, default=-1)
    parser.add_argument("--limit-elapsed-s", type=float, default=0.0)
    parsed = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = Control(parsed.control_fd)
    patience = Patience(control.stopping)
    patience.report = told_once(sys.stdout)
    directory = RunDirectory(parsed.run_directory, PatientFiles(patience))
    try:
        runtime = LocalRuntime(directory, directory.load())
    except ValueError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return EXIT_REFUSED
    tracker = runtime.owner.tracker
    tracker.root_pid = os.getppid()
    tracker.status.limit_s = max(0.0, parsed.limit_elapsed_s - tracker.elapsed_s())
    screen = Screen(runtime.owner.config, directory, tracker, sys.stdout)

    def report(trouble: str) -> None:
        tracker.disk_trouble = trouble
        screen.state("paused" if trouble else "running")

    patience.report = report
    try:
        runtime.run(control.stopping.is_set, parsed.limit_elapsed_s, screen.update)
        screen.state("stopped")
    finally:
        control.close()
        screen.close()
        runtime.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
