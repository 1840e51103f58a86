"""The owner: what both runtimes share, the one writer of the manifest.

Room: deploy. Knows no Ray and no Redis: it builds requests, takes replies, and decides. Runtimes
carry the messages (deploy.local in one process, deploy.cluster over Ray).

Order of every decision: blob durable, manifest durable, then announced. What a full disk refuses
waits as a step (deploy.patience), nothing overtakes it, and workers rest meanwhile. A reply counts
only with the epoch that the actor's last start was given, so a replaced actor that wakes late is
refused.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from actors.messages import StepReply, StepRequest
from deploy.decisions import RECENT_VERSIONS, add_version, end_gate, forget_models
from deploy.evaluations import EvaluationLog, record_of
from deploy.manifest import Manifest
from deploy.patience import Steps
from deploy.rundir import RunDirectory
from deploy.tracker import GATE, LEARNER, SELFPLAY, Tracker
from league.messages import (
    EvaluationRecord,
    EvaluationResult,
    GateOutcome,
    GateReply,
    GateRequest,
    LeagueState,
)
from league.models import ModelStore
from league.records import apply_result
from learner.messages import LearnReply, LearnRequest


class TrajectoryStream(Protocol):
    """What the owner needs of the stream that workers write and the learner reads."""

    def trim(self, edges: dict[str, str]) -> None:
        """Forget, per shard, the entries below the edge."""
        ...

    def size(self) -> tuple[int, int]:
        """Return entries and bytes held."""
        ...


class Owner:
    """State of a run and every decision about it."""

    def __init__(
        self,
        directory: RunDirectory,
        manifest: Manifest,
        store: ModelStore,
        *,
        stream: TrajectoryStream | None = None,
        unavailable: tuple[type[Exception], ...] = (),
        clock: Callable[[], float] = time.monotonic,
        num_cpus: int = 0,
    ) -> None:
        """Go on from ``manifest``; ``store`` is where actors fetch models.

        ``unavailable`` are the errors by which store and stream say that they are away for a while.
        """
        self.directory = directory
        self.manifest = manifest
        self.config = manifest.config
        self.tracker = Tracker(directory, manifest, clock)
        self.paused = False
        self.deciding = False
        """The run's last gate is on: self-play and training rest."""
        self._steps = Steps(clock)
        self._durable = (manifest.newest, manifest.champion, manifest.pool)
        """Newest version, champion and pool of the durable manifest: what may be announced."""
        self._store = store
        self._stream = stream
        self._unavailable = unavailable
        self._announced = -1
        self._store_away = False
        self._store_away_at = float("-inf")
        self._clock = clock
        self._num_cpus = num_cpus or self.config.runtime.num_cpus or os.cpu_count() or 1
        # In the in-process runtime nobody outside hears of a version, and a crash goes back to the
        # last boundary as a whole: that is what makes resumed equal uninterrupted.
        self._by_counters = self.config.runtime.kind == "inprocess"
        self._epochs: dict[tuple[str, int], int] = {}
        self._evaluations = EvaluationLog(directory)
        self._unwritten: list[EvaluationRecord] = []
        """In-process runtime: they count from the boundary on, as everything does."""
        self._measured: tuple[int, ...] = ()
        """Versions that the arena still needs."""
        for record in self._evaluations.records:
            self.tracker.evaluated(record)
        self._insert_budget = manifest.insert_budget if self._by_counters else 0
        self._finished = 0
        self._finished_at_request = 0
        self._finished_at_reply = 0

    # --- life of actors ---------------------------------------------------------------------------

    def begin(self, take_lease: Callable[[int], None] = lambda epoch: None) -> None:
        """Open this invocation: save the manifest, publish what the store lacks.

        Between the two ``take_lease`` is given the number of this start; it may refuse by raising.
        Raises OSError when the disk is full; it may be called again.
        """
        self.manifest.owner_starts += 1
        self._write_manifest()
        take_lease(self.manifest.owner_starts)
        self.publish()

    def publish(self) -> bool:
        """Bring the store in line with the durable manifest, then announce the newest version.

        Also heals a store that lost its models. A store that is away is tried at the next call.
        """
        if self._steps.trouble:
            return False
        wanted = self._playing()
        try:
            present = set(self._store.versions())
            for version in sorted(wanted - present):
                self._store.put(version, self.directory.model(self.manifest, version))
            for version in sorted(present - wanted):
                self._store.delete(version)
        except self._unavailable as error:
            if not self._store_away:
                self.tracker.say(f"model store is away: {error}")
            self._store_away, self._store_away_at = True, self._clock()
            return False
        self._store_away = False
        self._announced = self._durable[0]
        return True

    def was_store_away_since(self, at: float) -> bool:
        """Return whether the store was away at any look since ``at`` (the owner's clock)."""
        return self._store_away_at >= at

    def start_actor(self, role: str, slot: int = 0, node: str = "") -> int:
        """Return the epoch for a start of an actor; durable first, so no other start has it.

        Raises OSError when the disk is full: the actor cannot be started now.
        """
        restart = (role, slot) in self._epochs
        if self._by_counters:
            # Workers' seeds hold the epoch: a resume must give them what the first start gave.
            epoch = len(self._epochs) + 1
            self.manifest.epoch = max(self.manifest.epoch, epoch)
        else:
            epoch = self.manifest.epoch = self.manifest.epoch + 1
            self.manifest.worker_restarts += restart
            try:
                self._write_manifest()
            except OSError:
                self.manifest.worker_restarts -= restart
                self._do(self._write_manifest)  # workers pause until it can be done
                raise
        self._epochs[role, slot] = epoch
        self.tracker.started(role, slot, epoch, node, restart=restart)
        return epoch

    def lost_actor(self, role: str, slot: int, reason: str) -> None:
        """Record that an actor is gone; ``start_actor`` follows."""
        self.tracker.lost(role, slot, reason)

    def is_current(self, role: str, slot: int, epoch: int) -> bool:
        """Return whether ``epoch`` is that of the actor's last start; others are refused."""
        return self._epochs.get((role, slot)) == epoch

    # --- league -----------------------------------------------------------------------------------

    def league(self) -> LeagueState:
        """Return what actors are told."""
        _, champion, pool = self._durable
        return LeagueState(
            newest=self._announced,
            champion=champion,
            pool=pool,
            records=dict(self.manifest.records),
        )

    # --- learner ----------------------------------------------------------------------------------

    def learn_request(self, *, snapshot: bool = False, drain: bool = False) -> LearnRequest:
        """Return the learner's next call. One call at a time: the reply closes its account.

        With ``drain`` it reads what workers have delivered, and trains no more.
        """
        runtime = self.config.runtime
        self._finished_at_request = self._finished
        return LearnRequest(
            epoch=self._epochs[LEARNER, 0],
            budget_s=0.0 if self._by_counters else runtime.step_s,
            max_updates=runtime.inprocess_updates if self._by_counters else 0,
            next_version=self.manifest.next_version,
            snapshot=snapshot,
            drain=drain,
            share=1.0 if self._by_counters else runtime.learner_share,
        )

    def on_learn(self, reply: LearnReply) -> bool:
        """Take the learner's reply; return False when it is refused (older epoch)."""
        if not self.is_current(LEARNER, 0, reply.epoch):
            self.tracker.refused(LEARNER, 0, reply.epoch)
            return False
        self._insert_budget = reply.insert_budget
        self._finished_at_reply = self._finished_at_request
        self.tracker.learned(reply)
        if reply.model:
            said = f"version {self.manifest.next_version} at step {reply.step}"
            self._do(lambda: self._store_version(reply), self._commit, lambda: self._announce(said))
        if reply.snapshot:
            self._do(lambda: self._take_learner_snapshot(reply))
            if not self._by_counters:
                self._do(self.save)
        return True

    def _announce(self, said: str) -> None:
        self.tracker.say(said)
        self._steps.add(self.publish)

    def _store_version(self, reply: LearnReply) -> None:
        manifest = self.manifest
        stored = self.directory.put_model(manifest.next_version, reply.model, reply.step)
        record = msgspec.structs.replace(
            stored,
            games=reply.totals.games,
            examples=reply.totals.examples,
            elapsed_s=self.tracker.elapsed_s(),
        )
        add_version(manifest, record, self.config.league.pool_size)
        gate = self.tracker.status.gate
        forget_models(manifest, {gate.candidate, gate.champion, *self._measured})

    def _playing(self) -> set[int]:
        """Return the versions that actors may play; only these are in the store."""
        manifest, gate = self.manifest, self.tracker.status.gate
        if self._by_counters:  # a restored worker may hold a model of any age in a slot
            return set(manifest.models)
        playing = {*manifest.pool, manifest.champion, gate.candidate, gate.champion}
        playing |= set(self._measured)
        playing |= set(sorted(manifest.models)[-RECENT_VERSIONS:])
        return playing & manifest.models.keys()

    def _take_learner_snapshot(self, reply: LearnReply) -> None:
        manifest = self.manifest
        manifest.learner = self.directory.put_snapshot("learner", reply.snapshot)
        manifest.trim_edge = dict(reply.window_edge)
        manifest.step = reply.step
        manifest.totals = reply.totals
        manifest.insert_budget = reply.insert_budget

    # --- self-play --------------------------------------------------------------------------------

    def insert_budget(self) -> int:
        """Return a worker's share of what may still be inserted; negative means unbounded.

        What workers finished since the learner was last asked may not have reached it yet.
        """
        if self._insert_budget < 0:
            return -1
        under_way = self._finished - self._finished_at_reply
        free = max(0, self._insert_budget - under_way)
        return free // (1 if self._by_counters else self.config.self_play.num_workers)

    def step_request(self, slot: int) -> StepRequest | None:
        """Return a worker's next call; None before there is a version to play."""
        if self._announced < 0:
            return None
        runtime = self.config.runtime
        return StepRequest(
            epoch=self._epochs[SELFPLAY, slot],
            league=self.league(),
            budget_s=0.0 if self._by_counters else runtime.step_s,
            max_evaluations=runtime.inprocess_evaluations if self._by_counters else 0,
            insert_budget=self.insert_budget(),
            paused=self.paused or self.deciding or bool(self._steps.trouble),
        )

    def on_step(self, reply: StepReply) -> bool:
        """Take a worker's reply; return False when it is refused (older epoch)."""
        if not self.is_current(SELFPLAY, reply.slot, reply.epoch):
            self.tracker.refused(SELFPLAY, reply.slot, reply.epoch)
            return False
        self._finished += reply.num_examples
        for result in reply.results:
            if result.opponent in self.manifest.pool:
                apply_result(self.manifest.records, result.opponent, result.score)
        self.tracker.stepped(reply)
        return True

    # --- gate -------------------------------------------------------------------------------------

    def gate_request(self) -> GateRequest | None:
        """Return the gate's next call; None before there is a version."""
        if self._announced < 0:
            return None
        runtime, share = self.config.runtime, self.config.gate.share
        return GateRequest(
            epoch=self._epochs[GATE, 0],
            league=self.league(),
            budget_s=0.0 if self._by_counters else runtime.step_s,
            max_pairs=runtime.inprocess_gate_pairs if self._by_counters else 0,
            share=1.0 if self._by_counters or self.deciding else min(1.0, share * self._num_cpus),
            final=self.deciding,
            elapsed_s=0.0 if self._by_counters else self.tracker.elapsed_s(),
        )

    def on_gate(self, reply: GateReply) -> bool:
        """Take the gate's reply; return False when it is refused (older epoch)."""
        if not self.is_current(GATE, 0, reply.epoch):
            self.tracker.refused(GATE, 0, reply.epoch)
            return False
        self.manifest.gates.games += reply.num_games
        self.manifest.rating_games += reply.num_rating_games
        self.manifest.evaluation_games += reply.num_evaluation_games
        self._measured = reply.versions_in_use
        self.tracker.gated(reply)
        for note in reply.notes:
            self.tracker.say(note)
        for found in reply.evaluations:
            self._end_evaluation(found)
        for outcome in reply.outcomes:
            self._do(functools.partial(self._end_gate, outcome))
        return True

    def is_decided(self) -> bool:
        """Return whether the newest version is champion or has had its gate."""
        outcomes = self.manifest.gates.outcomes
        newest = self.manifest.newest
        return newest == self.manifest.champion or bool(
            outcomes and outcomes[-1].candidate >= newest
        )

    def _end_gate(self, outcome: GateOutcome) -> None:
        if not end_gate(self.manifest, outcome, self.config.league.pool_size):
            self.tracker.say(f"gate of version {outcome.candidate} ended before: not counted twice")
            return
        said = (
            f"version {outcome.candidate} {outcome.outcome} after {outcome.num_pairs} pairs "
            f"({outcome.wins} of {outcome.num_decided} decided won)"
        )
        self._steps.add(self._commit, lambda: self.tracker.say(said))

    def _end_evaluation(self, found: EvaluationResult) -> None:
        record = record_of(self.manifest, found)
        if self._by_counters:
            self._unwritten.append(record)
            self._say_evaluation(record)
        else:
            self._do(lambda: self._record_evaluation(record))

    def _record_evaluation(self, record: EvaluationRecord) -> None:
        if self._evaluations.add(record):
            self._say_evaluation(record)
        else:
            self.tracker.say(f"evaluation of version {record.version} was recorded before")

    def _say_evaluation(self, record: EvaluationRecord) -> None:
        self.tracker.evaluated(record)
        self.tracker.say(
            f"version {record.version} with {record.simulations} simulations against "
            f"{record.opponent}: {100 * record.win_rate:.1f} % of {record.games} games"
        )

    # --- saving -----------------------------------------------------------------------------------

    def settle(self) -> bool:
        """Do what waits for the disk; return False while it refuses. To be called often."""
        done, trouble = self._steps.run(), self._steps.trouble
        if bool(trouble) != bool(self.tracker.disk_trouble):
            self.tracker.say(trouble or "the disk takes data again: what waited is saved")
        self.tracker.disk_trouble = trouble
        return done

    def _do(self, *steps: Callable[[], object]) -> None:
        self._steps.add(*steps)
        self.settle()

    def take_gate_snapshot(self, data: bytes) -> None:
        """Store the gate's state; it counts from the next ``save`` on."""
        self._do(lambda: setattr(self.manifest, "gate", self.directory.put_snapshot("gate", data)))

    def take_worker_snapshots(self, snapshots: list[bytes]) -> None:
        """Store the workers' states by slot (in-process runtime); they count from ``save`` on."""
        self.manifest.workers = [
            self.directory.put_snapshot(f"worker-{slot}", data)
            for slot, data in enumerate(snapshots)
        ]

    def save(self) -> None:
        """Make the present state the truth, then forget what it does not need any more.

        Raises OSError when the disk is full; it may be called again.
        """
        for record in self._unwritten:
            self._evaluations.add(record)
        self._unwritten.clear()
        self._write_manifest()
        self.directory.prune(self.manifest)
        if self._stream is not None and self.manifest.trim_edge:
            try:
                self._stream.trim(self.manifest.trim_edge)
            except self._unavailable as error:
                self.tracker.say(f"stream is away, not trimmed: {error}")

    def _commit(self) -> None:
        if self._by_counters:
            self._durable = self._standing()
        else:
            self._write_manifest()

    def _write_manifest(self) -> None:
        self.manifest.elapsed_s = self.tracker.elapsed_s()
        self.directory.save(self.manifest)
        self._durable = self._standing()

    def _standing(self) -> tuple[int, int, tuple[int, ...]]:
        return self.manifest.newest, self.manifest.champion, self.manifest.pool

    def measure_stream(self) -> None:
        """Put the size of the stream into the status."""
        if self._stream is not None:
            with contextlib.suppress(*self._unavailable):
                self.tracker.stream_size(*self._stream.size())
