"""Keeps ``RunStatus`` up to date from replies and events. Room: deploy.

Decides nothing: what is wrong here is wrong on a screen only.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable

import msgspec

from actors.messages import StepReply
from deploy.manifest import Manifest
from deploy.processes import resident_bytes
from deploy.rates import Growth, Rate
from deploy.rundir import RunDirectory
from deploy.status import RunStatus, WorkerStatus
from league.messages import EvaluationRecord, GateReply
from learner.alerts import alerts as learner_alerts
from learner.messages import LearnReply

SELFPLAY, LEARNER, GATE = "selfplay", "learner", "gate"
ROLES = (SELFPLAY, LEARNER, GATE)
REJECTED_ALERT_S = 600.0
"""How long an alert says that entries of the stream were rejected."""


class WorkerRates:
    """What one self-play worker did lately; a call in which it only waited changes no share."""

    def __init__(self) -> None:
        self.plies, self.simulations = Rate(), Rate()
        self._busy, self._evaluate = Rate(), Rate()

    def add(self, reply: StepReply, now: float) -> None:
        """Count one reply."""
        self.plies.add(reply.num_plies, now)
        self.simulations.add(reply.num_simulations, now)
        self._busy.add(reply.busy_s, now)
        self._evaluate.add(reply.evaluate_s, now)

    def evaluate_share(self, now: float) -> float:
        """Return the part of busy time that the network took; 0 before there was any."""
        busy = self._busy.per_s(now)
        return self._evaluate.per_s(now) / busy if busy > 0 else 0.0


class Tracker:
    """Status of one run."""

    def __init__(
        self, directory: RunDirectory, manifest: Manifest, clock: Callable[[], float]
    ) -> None:
        """Start from what the manifest says; training time runs from ``start_clock`` on."""
        self._directory = directory
        self._manifest = manifest
        self._clock = clock
        self._elapsed_before = manifest.elapsed_s
        self._running_since: float | None = None
        self._workers: dict[tuple[str, int], WorkerStatus] = {}
        self._replied_at: dict[tuple[str, int], float] = {}
        self._rates = {name: Rate() for name in ("plies", "simulations", "updates")}
        self._worker_rates: dict[int, WorkerRates] = {}
        self._gate_plies = Rate()
        self._growth = {name: Growth() for name in ("games", "examples")}
        self._rejected = sum(manifest.totals.rejected.values())
        self._rejected_at = float("-inf")
        self.log: list[str] = []
        """Events in words since they were last taken, oldest first."""
        self.stream_full = ""
        """Why the streams' size makes workers pause; empty while it does not."""
        self.disk_trouble = ""
        """Why nothing can be saved now; empty while all is well."""
        self.root_pid = os.getpid()
        """Memory is that of this process and its descendants."""
        self.status = self._initial_status()

    def _initial_status(self) -> RunStatus:
        manifest, config = self._manifest, self._manifest.config
        return RunStatus(
            run=str(self._directory.path),
            run_id=manifest.run_id,
            game=config.game.name,
            rules=config.game.rules,
            started_at=time.time(),
            totals=manifest.totals,
            step=manifest.step,
            window_capacity=config.learner.window_positions,
        )

    # --- events -----------------------------------------------------------------------------------

    def say(self, message: str) -> None:
        """Note an event in words."""
        self.status.message = message
        self.log.append(message)

    def take_log(self) -> list[str]:
        """Return the events since the last call."""
        taken, self.log = self.log, []
        return taken

    def start_clock(self) -> None:
        """Training begins: ``elapsed_s`` runs from now on."""
        if self._running_since is None:
            self._running_since = self._clock()
            self.status.started_at = time.time()

    @property
    def clock_runs(self) -> bool:
        """Whether training has begun."""
        return self._running_since is not None

    def located(self, role: str, slot: int, node: str) -> None:
        """An actor runs on ``node``."""
        self._workers[role, slot].node = node

    def stop_clock(self) -> None:
        """Training ends: ``elapsed_s`` stands still."""
        self._elapsed_before = self.elapsed_s()
        self._running_since = None

    def elapsed_s(self) -> float:
        """Return the training time over all invocations."""
        if self._running_since is None:
            return self._elapsed_before
        return self._elapsed_before + self._clock() - self._running_since

    def started(self, role: str, slot: int, epoch: int, node: str, *, restart: bool) -> None:
        """An actor was started."""
        worker = self._workers.setdefault((role, slot), WorkerStatus(role=role, slot=slot))
        worker.epoch, worker.alive = epoch, True
        worker.node = node or worker.node
        worker.restarts += restart
        self._replied_at[role, slot] = self._clock()

    def lost(self, role: str, slot: int, reason: str) -> None:
        """An actor is gone."""
        worker = self._workers.setdefault((role, slot), WorkerStatus(role=role, slot=slot))
        worker.alive = False
        worker.plies_per_s = worker.simulations_per_s = 0.0
        if role == SELFPLAY:
            self._worker_rates.pop(slot, None)
        self.say(f"{role} {slot} lost: {reason}")

    def refused(self, role: str, slot: int, epoch: int) -> None:
        """A reply came from an older start of an actor."""
        self.say(f"{role} {slot}: reply of epoch {epoch} refused, it was replaced")

    # --- replies ----------------------------------------------------------------------------------

    def stepped(self, reply: StepReply) -> None:
        """A self-play worker answered."""
        now = self._clock()
        worker = self._workers[SELFPLAY, reply.slot]
        rates = self._worker_rates.setdefault(reply.slot, WorkerRates())
        rates.add(reply, now)
        self._rates["plies"].add(reply.num_plies, now)
        self._rates["simulations"].add(reply.num_simulations, now)
        worker.node = reply.node
        worker.outbox = reply.outbox
        worker.model_version = reply.model_version
        worker.resident_bytes = reply.resident_bytes
        self._replied_at[SELFPLAY, reply.slot] = now

    def learned(self, reply: LearnReply) -> None:
        """The learner answered."""
        now, status = self._clock(), self.status
        self._rates["updates"].add(reply.num_updates, now)
        self._growth["games"].see(reply.totals.games, now)
        self._growth["examples"].see(reply.totals.examples, now)
        status.totals, status.metrics, status.step = reply.totals, reply.metrics, reply.step
        for note in reply.notes:
            self.say(note)
        rejected = sum(reply.totals.rejected.values())
        if rejected > self._rejected:
            self._rejected_at = now
        self._rejected = rejected
        status.window_positions = reply.window_positions
        worker = self._workers[LEARNER, 0]
        worker.device, worker.resident_bytes = reply.device, reply.resident_bytes
        self._replied_at[LEARNER, 0] = now

    def gated(self, reply: GateReply) -> None:
        """The gate answered."""
        self.status.gate = reply.status
        now, worker = self._clock(), self._workers[GATE, 0]
        self._gate_plies.add(reply.num_plies, now)
        if reply.ratings is not None:
            self.status.ratings = reply.ratings
        worker.model_version = reply.status.candidate
        worker.resident_bytes = reply.resident_bytes
        self._replied_at[GATE, 0] = now

    def evaluated(self, record: EvaluationRecord) -> None:
        """There is a new evaluation: it takes the place of the last one of its kind."""

        def what(record: EvaluationRecord) -> tuple[str, int, bool]:
            return record.opponent, record.simulations, record.is_champion

        others = [old for old in self.status.evaluations if what(old) != what(record)]
        self.status.evaluations = sorted([*others, record], key=what)

    def stream_size(self, entries: int, num_bytes: int) -> None:
        """The stream was measured."""
        self.status.stream_entries, self.status.stream_bytes = entries, num_bytes

    def measure_memory(self) -> None:
        """Measure the memory of all processes of the run on this machine."""
        self.status.resident_bytes = resident_bytes(self.root_pid)

    def low_disk(self) -> bool:
        """Return whether the disk of the run has less than ``replay.min_free_disk_gb``."""
        free = shutil.disk_usage(self._directory.path).free
        return free < self._manifest.config.replay.min_free_disk_gb * 1e9

    # --- status -----------------------------------------------------------------------------------

    def refresh(self) -> RunStatus:
        """Bring every derived field up to date and return a copy of the status."""
        now, status, manifest = self._clock(), self.status, self._manifest
        status.updated_at = time.time()
        status.elapsed_s = self.elapsed_s()
        status.epoch = manifest.epoch
        for name, rate in self._rates.items():
            setattr(status, f"{name}_per_s", rate.per_s(now))
        for name, growth in self._growth.items():
            setattr(status, f"{name}_per_s", growth.per_s(now))
        status.newest, status.champion, status.pool = (
            manifest.newest,
            manifest.champion,
            manifest.pool,
        )
        gates = manifest.gates
        status.outcomes = gates.outcomes
        status.num_promoted, status.num_rejected = gates.promoted, gates.rejected
        status.num_undecided, status.gate_games = gates.undecided, gates.games
        status.rating_games = manifest.rating_games
        status.evaluation_games = manifest.evaluation_games
        status.worker_restarts = manifest.worker_restarts
        status.server_restarts = manifest.server_restarts
        self._refresh_workers(now)
        status.alerts = self._alerts()
        shown = msgspec.structs.replace(status)
        shown.workers = [msgspec.structs.replace(worker) for worker in status.workers]
        return shown

    def _refresh_workers(self, now: float) -> None:
        for (role, slot), worker in self._workers.items():
            worker.last_reply_s = now - self._replied_at.get((role, slot), now)
            if role == SELFPLAY and slot in self._worker_rates:
                rates = self._worker_rates[slot]
                worker.plies_per_s = rates.plies.per_s(now)
                worker.simulations_per_s = rates.simulations.per_s(now)
                worker.evaluate_share = rates.evaluate_share(now)
            elif role == GATE and worker.alive:
                worker.plies_per_s = self._gate_plies.per_s(now)
        order = sorted(self._workers, key=lambda key: (ROLES.index(key[0]), key[1]))
        self.status.workers = [self._workers[key] for key in order]

    def _alerts(self) -> list[str]:
        status, config = self.status, self._manifest.config
        alerts = []
        limit = config.runtime.max_memory_gb * 1e9
        if status.resident_bytes > limit:
            alerts.append(
                f"memory {status.resident_bytes / 1e9:.1f} GB, limit {limit / 1e9:.1f} GB"
            )
        if self.low_disk():
            alerts.append(
                f"disk below {config.replay.min_free_disk_gb:g} GB free: workers are paused "
                "(replay.min_free_disk_gb)"
            )
        if self.disk_trouble:
            alerts.append(self.disk_trouble)
        if self.stream_full:
            alerts.append(self.stream_full)
        alerts += learner_alerts(status.metrics, config.learner)
        if self._clock() - self._rejected_at < REJECTED_ALERT_S:
            words = ", ".join(f"{n} {word}" for word, n in sorted(status.totals.rejected.items()))
            alerts.append(f"entries of the stream are rejected ({words} in all): see the log")
        if status.totals.lost_entries:
            alerts.append(f"{status.totals.lost_entries} accepted trajectories were lost")
        return alerts
