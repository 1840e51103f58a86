"""The Ray runtime: the owner's process, its loop, and its end.

Room: deploy. Loads neither torch nor numba. Trajectories go from workers through the server to the
learner, models from the owner through the server to the workers; Ray carries small messages, the
learner's versions and its snapshots.

The process is crash-only: whatever happens here, the supervisor starts it again and it goes on from
the manifest with a fresh local Ray.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from deploy.control import EXIT_REFUSED, Control
from deploy.credentials import forget_password
from deploy.crew import Crew, CrewError, Member
from deploy.hosts import GateHost, HostFacts, LearnerHost, SelfPlayHost, environment
from deploy.manifest import Manifest, ResumeError, record_engine
from deploy.owner import Owner
from deploy.patience import RETRY_S, in_words, told_once
from deploy.ray_session import Compiling, RaySession, RaySessionError
from deploy.rundir import RunDirectory
from deploy.screen import Screen
from deploy.store import AWAY, UNREACHABLE, RunStore
from deploy.tracker import GATE, LEARNER, SELFPLAY
from replay.disk import is_disk_trouble
from replay.lease import LeaseHeld
from replay.redis_link import StoreError, StoreRefused

TICK_S = 0.1
DRAIN_LIMIT_S = 10.0
"""Workers get so long to have their finished games accepted."""
SNAPSHOT_LIMIT_S = 60.0
SNAPSHOT_RESERVE_S = 10.0
"""In a hurry: the drain ends so long before the limit, so that there is a snapshot."""
END_RESERVE_S = 4.0
"""In a hurry: kept for the manifest and the end of Ray."""
HOUSEKEEPING_S = 2.0


def actor_options(
    name: str, *, is_local: bool, threads: int, gpu: bool, gives_back: bool = False
) -> dict[str, Any]:
    """Return what Ray is told about an actor; ``gives_back``: see ``hosts.environment``."""
    return {
        "name": name,
        # Locally the shares of the configuration bound the load, not Ray's accounts.
        "num_cpus": 0 if is_local else 1,
        "num_gpus": 1 if gpu else 0,
        "max_restarts": 0,
        "max_task_retries": 0,
        "scheduling_strategy": "SPREAD",
        # Ray's head would remember every call: 40 MB an hour, up to 300 MB.
        "enable_task_events": False,
        "runtime_env": {"env_vars": environment(threads, gpu=gpu, gives_back=gives_back)},
    }


class ClusterRuntime:
    """One run over Ray. Everything happens in the calling thread."""

    def __init__(
        self, owner: Owner, store: RunStore, session: RaySession, engine_hash: str
    ) -> None:
        self.owner = owner
        self._config = owner.config
        self._store = store
        self._session = session
        self._engine_hash = engine_hash
        self._may_start = True
        roles = [(LEARNER, 0), (GATE, 0)]
        roles += [(SELFPLAY, slot) for slot in range(self._config.self_play.num_workers)]
        step_limit_s = self._config.runtime.step_limit_s
        self.crew = Crew(roles, self._start, self._lost, self._is_excused, step_limit_s)
        self._has_gpu = self._config.learner.device != "cpu" and session.has_gpu()
        self._learner_due = owner.manifest.learner is None
        self._gate_due = False
        self._drained: set[int] = set()
        self._snapshot_at = time.monotonic()
        self._kept_at = 0.0
        self._server_restarts = 0
        self._lease_in_doubt = False

    # --- actors -----------------------------------------------------------------------------------

    def _start(self, member: Member) -> tuple[Any, int]:
        """Start an actor with a new epoch."""
        owner, manifest = self.owner, self.owner.manifest
        epoch = owner.start_actor(member.role, member.slot)
        server, config = self._store.server, self._config
        if member.role == SELFPLAY:
            return self._actor(member, epoch, SelfPlayHost, config, server, member.slot, epoch)
        blob = manifest.learner if member.role == LEARNER else manifest.gate
        snapshot = owner.directory.get(blob) if blob is not None else None
        host = LearnerHost if member.role == LEARNER else GateHost
        return self._actor(member, epoch, host, config, server, epoch, snapshot)

    def _actor(self, member: Member, epoch: int, host: type, *arguments: Any) -> tuple[Any, int]:
        import ray

        learner = member.role == LEARNER
        options = actor_options(
            f"{self._store.server.run_id}-{member.role}-{member.slot}-{epoch}",
            is_local=self._session.is_local,
            threads=self._config.learner.threads if learner else 1,
            gpu=learner and self._has_gpu,
            # Gates, ratings and evaluations: now these search trees, now others, for minutes each.
            gives_back=member.role == GATE,
        )
        return ray.remote(host).options(**options).remote(*arguments), epoch

    def _lost(self, member: Member, reason: str) -> None:
        self.owner.lost_actor(member.role, member.slot, reason)
        self.owner.publish()  # perhaps it missed a model that the server has lost

    def _is_excused(self, member: Member, reason: str) -> bool:
        """Return whether an actor failed because it, or this owner, did not reach the server."""
        said = any(error.__name__ in reason for error in UNREACHABLE)
        return said or self.owner.was_store_away_since(member.started_at)

    # --- calls ------------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Give every idle actor its next call."""
        owner = self.owner
        blocked = not owner.settle()
        if self._may_start and not blocked:
            self._start_missing()
        for member in self.crew.members:
            if not member.idle or not member.is_ready:
                continue
            if blocked and member.role != SELFPLAY:
                continue  # what they did last is not saved yet
            if member.role == LEARNER:
                snapshot, self._learner_due = self._learner_due, False
                if owner.deciding and not snapshot:
                    continue
                ending = snapshot and not self._may_start
                learn = owner.learn_request(snapshot=snapshot, drain=ending)
                self.crew.call(member, "step", learn)
            elif member.role == GATE and self._gate_due:
                self.crew.call(member, "snapshot")
            else:
                gate = member.role == GATE
                request = owner.gate_request() if gate else owner.step_request(member.slot)
                if request is not None:
                    self.crew.call(member, "step", request)

    def _start_missing(self) -> None:
        try:
            self.crew.start_missing()
        except OSError as error:  # an epoch that is not durable may not be given
            if not is_disk_trouble(error):
                raise

    def _take(self, member: Member, method: str, reply: Any) -> None:
        """Hand a reply to the owner."""
        if method == "ready":
            self._check_host(member, reply)
        elif method == "snapshot":
            self._gate_due = False
            self.owner.take_gate_snapshot(reply)
        elif self._take_step(member.role, reply):
            if member.role == LEARNER and self._may_start:  # not while it stops
                self.owner.tracker.start_clock()
            elif member.role == GATE:
                self._gate_due = self._gate_due or bool(reply.outcomes or reply.evaluations)
            elif member.role == SELFPLAY and self.owner.paused and reply.outbox == 0:
                self._drained.add(member.slot)

    def _take_step(self, role: str, reply: Any) -> bool:
        """Hand the reply of a step to the owner; return False when it refuses it."""
        if role == LEARNER:
            return self.owner.on_learn(reply)
        return self.owner.on_gate(reply) if role == GATE else self.owner.on_step(reply)

    def _check_host(self, member: Member, facts: HostFacts) -> None:
        self.owner.tracker.located(member.role, member.slot, facts.node)
        if self._session.is_local:
            member.process = facts.process
        if facts.engine_hash != self._engine_hash:
            self.crew.replace(
                member,
                f"refused: {facts.node} has engine {facts.engine_hash}, the owner "
                f"{self._engine_hash}; install the same program on every node",
            )

    def _tick(self) -> None:
        """One round: send, wait, take."""
        self._dispatch()
        for member, method, reply in self.crew.wait(TICK_S):
            self._take(member, method, reply)
        for member, reply in self.crew.late_replies():
            self._take_step(member.role, reply)  # refused: its epoch is over

    # --- the run ----------------------------------------------------------------------------------

    def run(self, control: Control, limit_elapsed_s: float, show: Callable[[], None]) -> None:
        """Train until told to stop or the limit of training time (0: none), then save."""
        tracker = self.owner.tracker
        while not control.stopping.is_set():
            if limit_elapsed_s > 0 and self._is_over(limit_elapsed_s - tracker.elapsed_s()):
                break
            self._tick()
            self._housekeeping(control)
            if tracker.status.state in ("starting", "running", "paused"):
                running = "paused" if self.owner.paused else "running"
                tracker.status.state = running if tracker.clock_runs else "starting"
            show()
        self.stop(control, show)

    def _is_over(self, left_s: float) -> bool:
        """Return whether a run with a time limit ends now; begin its last gate when that is due."""
        owner = self.owner
        if not owner.deciding:
            final_s = min(self._config.gate.final_s, 0.1 * owner.tracker.status.limit_s)
            owner.deciding = left_s <= final_s > 0 and not owner.is_decided()
            if owner.deciding:
                owner.tracker.say(f"last gate: version {owner.manifest.newest}, {left_s:.0f} s")
        return left_s <= 0 or (owner.deciding and owner.is_decided())

    def _housekeeping(self, control: Control) -> None:
        now = time.monotonic()
        if now - self._kept_at < HOUSEKEEPING_S:
            return
        self._kept_at = now
        self._session.check()
        owner = self.owner
        new_restarts = control.num_server_restarts - self._server_restarts
        owner.manifest.server_restarts += new_restarts
        self._server_restarts += new_restarts
        owner.publish()
        owner.measure_stream()
        owner.tracker.stream_full = self._store.full
        owner.paused = owner.tracker.low_disk() or bool(self._store.full)
        self._session.record()
        try:
            self._store.hold_lease(owner.manifest.owner_starts)
        except LeaseHeld:
            raise
        except StoreError as error:
            if not self._lease_in_doubt:  # told once, not at every try
                owner.tracker.say(f"the lease could not be renewed: {error}")
            self._lease_in_doubt = True
        else:
            self._lease_in_doubt = False
        if now - self._snapshot_at >= self._config.runtime.snapshot_s:
            self._snapshot_at = now
            self._learner_due = self._gate_due = True

    # --- the end ----------------------------------------------------------------------------------

    def stop(self, control: Control, show: Callable[[], None]) -> None:
        """Pause workers, drain, snapshot, manifest. The drain is skipped when ``control`` says so.

        In a hurry (SIGTERM) each part ends early enough for the next one; a snapshot that is not
        there in time leaves the last one in force. No actor that is lost now is started again.
        """
        tracker = self.owner.tracker
        tracker.status.state = "stopping"
        tracker.stop_clock()
        self._may_start = False
        self.owner.paused, self.owner.deciding = True, False
        self._drained.clear()
        self._until(
            self._is_drained,
            DRAIN_LIMIT_S,
            show,
            lambda: control.skip_drain.is_set() or control.left_s() < SNAPSHOT_RESERVE_S,
        )
        before = self.owner.manifest.learner
        learner, gate = self._member(LEARNER), self._member(GATE)
        self._learner_due, self._gate_due = learner.is_ready, gate.is_ready
        self._until(
            lambda: (
                (not learner.is_ready or self.owner.manifest.learner is not before)
                and (not gate.is_ready or not self._gate_due)
            ),
            SNAPSHOT_LIMIT_S,
            show,
            lambda: control.left_s() < END_RESERVE_S,
        )
        self.owner.save()
        self.crew.end()

    def _is_drained(self) -> bool:
        alive = {m.slot for m in self.crew.members if m.role == SELFPLAY and m.handle is not None}
        return alive <= self._drained

    def _member(self, role: str) -> Member:
        return next(member for member in self.crew.members if member.role == role)

    def _until(
        self,
        done: Callable[[], bool],
        limit_s: float,
        show: Callable[[], None],
        skip: Callable[[], bool],
    ) -> None:
        deadline = time.monotonic() + limit_s
        while not done() and not skip() and time.monotonic() < deadline:
            self._tick()
            show()


# --- the process ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _hashing_engine() -> Iterator[subprocess.Popen[str]]:
    """Run a child that prints the hash of the engine's sources; numba stays out of the owner.

    It does not outlive the context: it would find nobody that reads it, and what it then wrote into
    the log would stand below the reason for which this owner ended.
    """
    code = "from engine.jit import engine_hash; print(engine_hash())"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def _begin(owner: Owner, store: RunStore, control: Control, terminal: TextIO) -> None:
    """Open the invocation once the disk takes it. Raises OSError when the run is to end first."""
    tell = told_once(terminal)
    while True:
        try:
            owner.begin(store.take_lease)
            return
        except OSError as error:
            if not is_disk_trouble(error) or control.stopping.wait(RETRY_S):
                raise
            owner.tracker.disk_trouble = in_words(error)
            tell(owner.tracker.disk_trouble)


def _open_run(
    directory: RunDirectory, bundled_url: str, control: Control
) -> tuple[Manifest, RunStore]:
    manifest = directory.load()
    for blob in (manifest.learner, manifest.gate):
        if blob is not None:
            directory.get(blob)

    def waiting(reason: str) -> bool:
        if reason:
            sys.stderr.write(f"{reason}\n")
        return not control.stopping.is_set()

    return manifest, RunStore(directory, manifest.config, manifest.run_id, bundled_url, waiting)


def _serve(
    directory: RunDirectory,
    arguments: argparse.Namespace,
    control: Control,
    hashing: subprocess.Popen[str],
) -> None:
    manifest, store = _open_run(directory, arguments.server_url, control)
    forget_password()  # before Ray: its processes would inherit it
    config = manifest.config
    session = RaySession(config, directory, manifest.run_id)
    control.on_orphaned = session.abandon
    owner = Owner(directory, manifest, store.models(), stream=store, unavailable=AWAY)
    owner.tracker.root_pid = os.getppid() if control.is_attached else os.getpid()
    owner.tracker.status.limit_s = max(0.0, arguments.limit_elapsed_s - manifest.elapsed_s)
    if store.facts.can_lose:
        owner.tracker.say(store.facts.can_lose)
    if config.replay.tls_insecure_skip_host_name:
        owner.tracker.say("DANGEROUS: the host name in the server's certificate is not checked")
    _begin(owner, store, control, arguments.terminal)
    with session:
        if store.is_bundled and session.num_nodes() > 1:
            raise RaySessionError(
                f"Ray has {session.num_nodes()} nodes and the bundled server is on this one alone: "
                "give a server that all nodes reach with --redis-url"
            )
        signal.signal(signal.SIGTERM, lambda *_: control.take("now"))
        screen = Screen(config, directory, owner.tracker, arguments.terminal)
        try:
            compiling = Compiling(config.game.name, owner.tracker.say, screen.update)
            session.warm_up(config.game.name, control.stopping.is_set, compiling.waiting_for)
            store.hold_lease(manifest.owner_starts)  # again: it may have taken longer than it lasts
            engine_hash = hashing.communicate(timeout=120)[0].strip()
            record_engine(owner.manifest, engine_hash)
            runtime = ClusterRuntime(owner, store, session, engine_hash)
            runtime.run(control, arguments.limit_elapsed_s, screen.update)
            store.release_lease(manifest.owner_starts)
            screen.state("stopped")
        finally:
            screen.close()


def main(arguments: list[str] | None = None) -> int:
    """Be the owner of a run directory; the supervisor starts this. Returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run_directory", type=Path)
    parser.add_argument("--control-fd", type=int, default=-1)
    parser.add_argument("--limit-elapsed-s", type=float, default=0.0)
    parser.add_argument("--server-url", default="")
    parsed = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The terminal belongs to the live view; what libraries print belongs into the log.
    parsed.terminal, sys.stdout = sys.stdout, sys.stderr
    control = Control(parsed.control_fd)
    refused = (ResumeError, StoreRefused, LeaseHeld, RaySessionError, CrewError)
    try:
        with _hashing_engine() as hashing:
            _serve(RunDirectory(parsed.run_directory), parsed, control, hashing)
    except refused as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return EXIT_REFUSED
    finally:
        control.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
