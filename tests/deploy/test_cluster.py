"""Decisions of the Ray runtime that need no Ray.

Behaviours checked:
* a worker with other engine sources is refused, naming its node and both hashes; when every start
  of it is refused, the owner gives up and says why
* an actor that fails because its server is away is started again and again; the owner gives up on
  one that fails for another reason
* an owner that was stopped itself does not hold it against its actors; one that hangs is replaced
* the last gate begins a little before the limit, lasts until it is decided or the limit is
  reached, and is left out where there is nothing to decide
* the last snapshot of a run is taken once the learner has read what was accepted
* SIGTERM: the drain and the wait for snapshots end in time, the manifest is written all the same
* the last line that a refused owner leaves in its log is the reason, and it leaves no process
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from deploy import cluster
from deploy.cluster import ClusterRuntime
from deploy.config import RunConfig
from deploy.control import EXIT_REFUSED, WITHIN, Control
from deploy.crew import MAX_FAILED_STARTS, CrewError, Member
from deploy.hosts import HostFacts
from deploy.manifest import new_manifest
from deploy.owner import Owner
from deploy.rundir import RunDirectory
from deploy.tracker import GATE, LEARNER, SELFPLAY
from league.models import MemoryModelStore
from learner.messages import LearnRequest
from tests.deploy.waiting import ROOT


class NoSession:
    """A local Ray that nobody calls."""

    is_local = True

    def has_gpu(self) -> bool:
        return False


class NoServer:
    """A store of which only the name is there."""

    full = ""


class AwayStore(MemoryModelStore):
    """Models that nobody reaches."""

    def versions(self) -> list[int]:
        raise ConnectionError("nobody answers")


@pytest.fixture
def runtime(tmp_path: Path) -> ClusterRuntime:
    directory = RunDirectory(tmp_path / "run")
    directory.prepare()
    directory.save(new_manifest(RunConfig(), ["test"]))
    owner = Owner(directory, directory.load(), MemoryModelStore())
    for role, slot in ((LEARNER, 0), (GATE, 0), (SELFPLAY, 0), (SELFPLAY, 1)):
        owner.start_actor(role, slot)
    return ClusterRuntime(owner, NoServer(), NoSession(), "the-owners")  # type: ignore[arg-type]


def member(runtime: ClusterRuntime, role: str) -> Member:
    return next(found for found in runtime.crew.members if found.role == role)


def test_worker_with_another_engine_is_refused_by_name(runtime: ClusterRuntime) -> None:
    worker = member(runtime, SELFPLAY)
    same = HostFacts(node="near", process=None, engine_hash="the-owners")
    other = HostFacts(node="far", process=None, engine_hash="older")
    worker.is_ready = True
    runtime._take(worker, "ready", same)
    assert worker.is_ready
    runtime._take(worker, "ready", other)
    assert not worker.is_ready
    message = runtime.owner.tracker.status.message
    assert all(word in message for word in ("far", "older", "the-owners", "refused"))
    for _ in range(MAX_FAILED_STARTS - 2):
        runtime._take(worker, "ready", other)
    with pytest.raises(CrewError, match="older"):
        runtime._take(worker, "ready", other)


def test_actor_whose_server_is_away_is_not_given_up(
    runtime: ClusterRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = member(runtime, LEARNER)
    away = "replay.redis_link.StoreUnreachable: redis://10.0.0.5:6379: timed out"
    for _ in range(3 * MAX_FAILED_STARTS):
        runtime.crew.replace(learner, away)
    assert learner.due_at > time.monotonic() + 10.0  # not in a hurry
    # Its own words do not say so, but the owner has seen it since the actor was started.
    learner.started_at = time.monotonic()
    monkeypatch.setattr(runtime.owner, "_unavailable", (ConnectionError,))
    monkeypatch.setattr(runtime.owner, "_store", AwayStore())
    assert not runtime.owner.publish()
    for _ in range(MAX_FAILED_STARTS):
        runtime.crew.replace(learner, "no reply to step for 30 s")
    monkeypatch.undo()
    # It is back: from now on failures are the actor's own.
    learner.started_at = time.monotonic()
    for _ in range(MAX_FAILED_STARTS - 1):
        runtime.crew.replace(learner, "its process died")
    with pytest.raises(CrewError, match="learner 0 failed 5 times: its process died"):
        runtime.crew.replace(learner, "its process died")


def test_pause_of_the_owner_is_not_held_against_its_actors(runtime: ClusterRuntime) -> None:
    crew, worker = runtime.crew, member(runtime, SELFPLAY)
    worker.reference, worker.has_stepped, worker.method = object(), True, "step"
    limit_s, now = crew._step_limit_s, time.monotonic()

    crew._looked_at, worker.sent_at = now - limit_s - 60.0, now - limit_s - 60.0
    crew._forgive_own_pause()
    crew._check_limits()
    assert worker.reference is not None
    assert worker.sent_at <= time.monotonic()

    crew._looked_at, worker.sent_at = now - 1.0, now - limit_s - 0.1
    crew._forgive_own_pause()
    crew._check_limits()
    assert worker.reference is None
    assert "no reply to step" in runtime.owner.tracker.status.message


@pytest.fixture
def undecided(runtime: ClusterRuntime) -> ClusterRuntime:
    """A run of ten minutes whose newest version is not its champion; the last gate has 60 s."""
    owner = runtime.owner
    owner.manifest.champion, owner.manifest.newest = 0, 1
    owner.tracker.status.limit_s = 600.0
    runtime._config = msgspec.structs.replace(
        runtime._config, gate=msgspec.structs.replace(runtime._config.gate, final_s=60.0)
    )
    return runtime


def test_last_gate_begins_before_the_limit_and_ends_the_run_once_it_is_decided(
    undecided: ClusterRuntime,
) -> None:
    runtime, owner = undecided, undecided.owner
    assert (runtime._is_over(61.0), owner.deciding) == (False, False)
    assert (runtime._is_over(59.0), owner.deciding) == (False, True)
    assert not runtime._is_over(1.0)
    assert runtime._is_over(0.0)
    owner.manifest.champion = 1
    assert runtime._is_over(40.0)


def test_learner_rests_during_the_last_gate(
    undecided: ClusterRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    monkeypatch.setattr(undecided.crew, "start_missing", lambda: None)
    monkeypatch.setattr(undecided.crew, "call", lambda who, method, *_: called.append(who.role))
    for role in (LEARNER, GATE):
        member(undecided, role).is_ready = True
        member(undecided, role).handle = object()
    undecided.owner._announced = 1
    undecided._learner_due = False
    undecided._dispatch()
    assert called == [LEARNER, GATE]
    undecided._is_over(30.0)
    undecided._dispatch()
    assert called == [LEARNER, GATE, GATE]
    undecided._learner_due = True  # a snapshot is taken all the same
    undecided._dispatch()
    assert called == [LEARNER, GATE, GATE, LEARNER, GATE]


def test_last_snapshot_of_a_run_is_taken_once_the_streams_are_read(
    undecided: ClusterRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[LearnRequest] = []
    monkeypatch.setattr(undecided.crew, "start_missing", lambda: None)
    monkeypatch.setattr(undecided.crew, "call", lambda who, method, asked: requests.append(asked))
    member(undecided, LEARNER).is_ready = True
    member(undecided, LEARNER).handle = object()
    for undecided._learner_due in (True, False):
        undecided._dispatch()
    undecided._may_start = False
    for undecided._learner_due in (False, True):
        undecided._dispatch()
    asked = [(request.snapshot, request.drain) for request in requests]
    assert asked == [(True, False), (False, False), (False, False), (True, True)]


def test_there_is_no_last_gate_where_nothing_is_to_decide(undecided: ClusterRuntime) -> None:
    undecided.owner.manifest.newest = 0
    assert (undecided._is_over(30.0), undecided.owner.deciding) == (False, False)
    undecided.owner.manifest.newest = 1
    undecided.owner.tracker.status.limit_s = 100.0  # a tenth at the most
    assert (undecided._is_over(30.0), undecided.owner.deciding) == (False, False)
    undecided._config = RunConfig()  # switched off
    assert (undecided._is_over(0.5), undecided.owner.deciding) == (False, False)


def test_stop_in_a_hurry_saves_without_actors_that_do_not_answer(
    runtime: ClusterRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "SNAPSHOT_RESERVE_S", 1.5)
    monkeypatch.setattr(cluster, "END_RESERVE_S", 1.0)
    rounds: list[float] = []

    def tick() -> None:
        rounds.append(time.monotonic())
        time.sleep(0.01)

    monkeypatch.setattr(runtime, "_tick", tick)
    for role in (LEARNER, GATE, SELFPLAY):  # alive and silent
        member(runtime, role).is_ready = True
    monkeypatch.setattr(runtime, "_is_drained", lambda: False)
    before = runtime.owner.directory.load().elapsed_s
    runtime.owner.tracker.start_clock()
    control = Control(-1)
    began = time.monotonic()
    control.take(f"{WITHIN} 2")
    runtime.stop(control, lambda: None)
    assert 0.9 < time.monotonic() - began < 8.0
    assert rounds
    assert runtime.owner.directory.load().elapsed_s > before


def test_refused_owner_says_why_in_the_last_line_of_its_log(tmp_path: Path) -> None:
    # Standard error ends when the last process that holds it has ended: a child of the owner too.
    refused = subprocess.run(
        [sys.executable, "-m", "deploy.cluster", str(tmp_path / "nothing")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert refused.returncode == EXIT_REFUSED
    assert refused.stderr.splitlines()[-1].startswith("ResumeError: ")
