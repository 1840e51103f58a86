"""The owner, with actors that are only their replies.

Behaviours checked:
* a version is in the durable manifest before the store or anybody else hears of it; a number is
  never used twice, whatever a resume goes back to
* replies of an older epoch are refused, epochs rise over restarts and invocations
* promotion changes champion, pool and records, once per gate
* the insert budget is shared out and counts what is under way
* a store that is away, and one that lost its models
* snapshots, then manifest, then trimming; what is kept and what is pruned
* status: rates, alerts, restarts
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from actors.config import SelfPlayConfig
from actors.messages import MatchupResult, StepReply, StepRequest
from deploy.config import RunConfig, RuntimeConfig
from deploy.decisions import RECENT_VERSIONS
from deploy.evaluations import read_records
from deploy.manifest import new_manifest
from deploy.owner import Owner
from deploy.rundir import RunDirectory
from deploy.tracker import GATE, LEARNER, SELFPLAY
from league.config import LeagueConfig
from league.messages import (
    EvaluationResult,
    GateOutcome,
    GateReply,
    GateRequest,
    GateStatus,
    RatedVersion,
)
from league.models import MemoryModelStore
from league.stores import ModelsUnreachable
from learner.messages import IngestedTotals, LearnMetrics, LearnReply, LearnRequest
from replay.config import ReplayConfig
from tests.deploy.statuses import evaluation


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class WatchedStore(MemoryModelStore):
    """Checks at every ``put`` that the durable manifest names the version already."""

    def __init__(self, directory: RunDirectory) -> None:
        super().__init__()
        self._directory = directory
        self.away = False

    def put(self, version: int, model: bytes) -> None:
        self._check_there()
        assert version in self._directory.load().models
        super().put(version, model)

    def versions(self) -> list[int]:
        self._check_there()
        return super().versions()

    def _check_there(self) -> None:
        if self.away:
            raise ModelsUnreachable("no answer")


class Stream:
    """Remembers what was trimmed, and what the durable manifest said at that moment."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self.trimmed: list[dict[str, str]] = []

    def trim(self, edges: dict[str, str]) -> None:
        assert self._directory.load().trim_edge == edges
        self.trimmed.append(edges)

    def size(self) -> tuple[int, int]:
        return 7, 700


class World(NamedTuple):
    owner: Owner
    directory: RunDirectory
    store: WatchedStore
    stream: Stream
    clock: Clock


CONFIG = RunConfig(
    self_play=SelfPlayConfig(num_workers=2),
    league=LeagueConfig(pool_size=3),
    replay=ReplayConfig(min_free_disk_gb=0.0),
)


def make_owner(directory: RunDirectory, store: WatchedStore, clock: Clock) -> World:
    stream = Stream(directory)
    owner = Owner(
        directory,
        directory.load(),
        store,
        stream=stream,
        unavailable=(ModelsUnreachable,),
        clock=clock,
        num_cpus=2,
    )
    owner.begin()
    for role, slot in ((LEARNER, 0), (GATE, 0), (SELFPLAY, 0), (SELFPLAY, 1)):
        owner.start_actor(role, slot, "here")
    return World(owner, directory, store, stream, clock)


@pytest.fixture
def world(tmp_path: Path) -> World:
    directory = RunDirectory(tmp_path / "run")
    directory.prepare()
    directory.save(new_manifest(CONFIG, ["test"]))
    return make_owner(directory, WatchedStore(directory), Clock())


def resumed(world: World) -> World:
    """A new owner of the same run with an empty store (a new server)."""
    return make_owner(world.directory, WatchedStore(world.directory), world.clock)


def epoch_of(world: World, role: str, slot: int = 0) -> int:
    request: LearnRequest | GateRequest | StepRequest | None
    if role == LEARNER:
        request = world.owner.learn_request()
    elif role == GATE:
        request = world.owner.gate_request()
    else:
        request = world.owner.step_request(slot)
    assert request is not None
    return int(request.epoch)


def learn(world: World, model: bytes = b"", **fields: object) -> bool:
    epoch = world.owner.learn_request().epoch
    return world.owner.on_learn(LearnReply(epoch=epoch, model=model, **fields))  # type: ignore[arg-type]


def end_gate(world: World, candidate: int, champion: int, outcome: str = "promoted") -> None:
    ended = GateOutcome(
        candidate=candidate,
        champion=champion,
        outcome=outcome,
        num_pairs=20,
        num_decided=15,
        wins=12,
        llr=3.0,
        score=0.7,
    )
    reply = GateReply(epoch=epoch_of(world, GATE), status=GateStatus(), outcomes=[ended])
    assert world.owner.on_gate(reply)


# --- versions -------------------------------------------------------------------------------------


def test_nobody_is_asked_to_play_before_there_is_a_version(world: World) -> None:
    assert world.owner.step_request(0) is None
    assert world.owner.gate_request() is None
    assert world.owner.learn_request().next_version == 0


def test_first_version_is_champion_and_announced(world: World) -> None:
    assert learn(world, b"zero")
    request = world.owner.step_request(0)
    assert request is not None
    assert (request.league.newest, request.league.champion, request.league.pool) == (0, 0, (0,))
    assert world.store.get(0) == b"zero"
    assert world.owner.learn_request().next_version == 1


def test_number_is_never_used_twice_though_the_learner_goes_back(world: World) -> None:
    learn(world, b"zero", step=0, snapshot=b"at zero")
    learn(world, b"one", step=100)
    learn(world, b"two", step=200)
    again = resumed(world)
    manifest = again.owner.manifest
    assert manifest.learner is not None
    assert again.directory.get(manifest.learner) == b"at zero"
    assert again.owner.learn_request().next_version == 3
    assert again.owner.league().newest == 2
    learn(again, b"another one", step=100)
    assert again.directory.model(again.owner.manifest, 3) == b"another one"
    assert again.directory.model(again.owner.manifest, 1) == b"one"


def test_resume_publishes_what_an_empty_store_lacks(world: World) -> None:
    for number in range(4):
        learn(world, b"%d" % number)
    again = resumed(world)
    assert {v: again.store.get(v) for v in again.store.versions()} == {
        number: b"%d" % number for number in range(4)
    }


def test_lost_models_are_published_again(world: World) -> None:
    learn(world, b"zero")
    world.store.delete(0)
    assert world.owner.publish()
    assert world.store.get(0) == b"zero"


def test_version_is_announced_only_once_the_store_has_it(world: World) -> None:
    learn(world, b"zero")
    world.store.away = True
    learn(world, b"one")
    assert world.directory.load().newest == 1
    assert world.owner.league().newest == 0
    world.store.away = False
    assert world.owner.publish()
    assert world.owner.league().newest == 1
    assert world.store.get(1) == b"one"


def test_promoted_versions_are_kept_others_only_for_a_while(world: World) -> None:
    for number in range(20):
        learn(world, b"%d" % number)
        if number == 3:
            end_gate(world, 3, 0)
    manifest = world.directory.load()
    world.directory.prune(manifest)
    assert {0, 3, 19} <= manifest.models.keys()
    assert 8 not in manifest.models
    assert world.directory.model(manifest, 3) == b"3"
    names = world.directory.files.names(world.directory.path / "models")
    assert names == [f"v{number:06d}.onnx" for number in sorted(manifest.models)]
    assert world.store.versions() == sorted(manifest.models)


def test_of_promoted_versions_the_newest_keep_their_files(world: World) -> None:
    limited = RuntimeConfig(kept_champions=12)
    manifest = world.owner.manifest
    manifest.config = msgspec.structs.replace(manifest.config, runtime=limited)
    learn(world, b"0")
    for number in range(1, 40):
        learn(world, b"%d" % number)
        end_gate(world, number, number - 1)
    manifest = world.directory.load()
    world.directory.prune(manifest)
    kept = max(12, manifest.config.league.pool_size + RECENT_VERSIONS)
    # The last promotion came after the last version: it was forgotten at that one.
    assert sorted(manifest.models) == list(range(39 - kept, 40))
    assert set(manifest.pool) <= manifest.models.keys()
    names = world.directory.files.names(world.directory.path / "models")
    assert names == [f"v{number:06d}.onnx" for number in sorted(manifest.models)]


# --- epochs ---------------------------------------------------------------------------------------


def test_replies_of_a_replaced_actor_are_refused(world: World) -> None:
    learn(world, b"zero")
    old = {
        LEARNER: world.owner.learn_request().epoch,
        GATE: epoch_of(world, GATE),
        SELFPLAY: epoch_of(world, SELFPLAY, 1),
    }
    for role, slot in ((LEARNER, 0), (GATE, 0), (SELFPLAY, 1)):
        world.owner.lost_actor(role, slot, "killed")
        world.owner.start_actor(role, slot)
    owner, before = world.owner, world.directory.load()
    assert not owner.on_learn(LearnReply(epoch=old[LEARNER], model=b"stale", snapshot=b"stale"))
    stale = StepReply(epoch=old[SELFPLAY], node="here", slot=1, model_version=0, num_examples=5)
    assert not owner.on_step(stale)
    assert not owner.on_gate(GateReply(epoch=old[GATE], status=GateStatus(), num_games=9))
    assert world.directory.load() == before
    assert owner.manifest.gates.games == 0
    assert before.worker_restarts == 3


def test_epochs_rise_over_restarts_and_invocations(world: World) -> None:
    learn(world, b"zero")
    seen = [epoch_of(world, SELFPLAY, slot) for slot in (0, 1)]
    world.owner.start_actor(SELFPLAY, 0)
    seen.append(epoch_of(world, SELFPLAY, 0))
    again = resumed(world)
    seen.append(epoch_of(again, LEARNER))
    assert len(set(seen)) == len(seen)
    assert seen == sorted(seen)
    assert again.directory.load().epoch >= seen[-1]


# --- league ---------------------------------------------------------------------------------------


def test_promotion_changes_champion_and_bounded_pool(world: World) -> None:
    for number in range(6):
        learn(world, b"%d" % number)
        if number:
            end_gate(world, number, number - 1)
    manifest = world.directory.load()
    assert manifest.champion == 5
    assert manifest.pool == (3, 4, 5)
    assert manifest.gates.promoted == 5
    assert [outcome.candidate for outcome in manifest.gates.outcomes] == [1, 2, 3, 4, 5]


def test_gate_that_is_played_again_counts_once(world: World) -> None:
    for number in range(3):
        learn(world, b"%d" % number)
    end_gate(world, 1, 0, "rejected")
    end_gate(world, 1, 0, "promoted")
    assert world.owner.manifest.champion == 0
    end_gate(world, 2, 0, "promoted")
    end_gate(world, 2, 0, "promoted")
    gates = world.owner.manifest.gates
    assert (gates.promoted, gates.rejected, gates.undecided) == (1, 1, 0)
    assert world.owner.manifest.champion == 2


def test_results_against_the_pool_are_recorded(world: World) -> None:
    learn(world, b"zero")
    learn(world, b"one")
    end_gate(world, 1, 0)
    results = [MatchupResult(opponent=v, score=s) for v, s in ((0, 1.0), (0, 0.5), (7, 1.0))]
    epoch = epoch_of(world, SELFPLAY)
    reply = StepReply(epoch=epoch, node="here", slot=0, model_version=1, results=results)
    assert world.owner.on_step(reply)
    records = world.owner.league().records
    assert records.keys() == {0}
    assert (records[0].wins, records[0].games) == (1.5, 2)
    world.owner.save()
    assert resumed(world).owner.league().records[0].games == 2


# --- evaluations and ratings ----------------------------------------------------------------------


def evaluated(version: int, **changes: object) -> EvaluationResult:
    fields = msgspec.structs.asdict(evaluation(version, **changes))
    return EvaluationResult(**{name: fields[name] for name in EvaluationResult.__struct_fields__})


def measure(world: World, *found: EvaluationResult, **fields: Any) -> bool:
    epoch = epoch_of(world, GATE)
    reply = GateReply(epoch=epoch, status=GateStatus(), evaluations=[*found], **fields)
    return world.owner.on_gate(reply)


def test_evaluation_is_recorded_once_though_owner_and_arena_are_killed(world: World) -> None:
    world.owner.tracker.start_clock()
    world.clock.now += 30
    learn(world, b"zero", step=7, totals=IngestedTotals(games=3, examples=40))
    world.clock.now += 30
    assert measure(world, evaluated(0))
    (record,) = read_records(world.directory)
    stood = (record.step, record.generated_games, record.examples, record.elapsed_s)
    assert stood == (7, 3, 40, 30.0), "of when the version was made"
    again = resumed(world)  # of a manifest that is older than the record
    assert again.owner.tracker.refresh().evaluations == [record]
    assert measure(again, evaluated(0), evaluated(0, simulations=128))
    assert [found.simulations for found in read_records(again.directory)] == [0, 128]


def test_evaluations_of_a_replaced_arena_are_refused(world: World) -> None:
    learn(world, b"zero")
    old = epoch_of(world, GATE)
    world.owner.start_actor(GATE, 0)
    reply = GateReply(epoch=old, status=GateStatus(), evaluations=[evaluated(0)])
    assert not world.owner.on_gate(reply)
    assert read_records(world.directory) == []


def test_versions_that_are_being_measured_are_kept_until_they_are_not(world: World) -> None:
    learn(world, b"zero")
    learn(world, b"one")
    assert measure(world, versions_in_use=(1,))
    for number in range(2, 14):
        learn(world, b"%d" % number)
    assert 1 in world.store.versions()
    assert 1 in world.directory.load().models
    assert measure(world)
    learn(world, b"another")
    assert 1 not in world.store.versions()
    assert 1 not in world.directory.load().models


def test_games_and_ratings_reach_the_status_and_time_reaches_the_arena(world: World) -> None:
    learn(world, b"zero")
    rated = [RatedVersion(version=0, rating=5.0, low=-40.0, high=50.0, num_pairs=16)]
    fields = {"num_rating_games": 32, "num_evaluation_games": 10, "num_games": 4}
    assert measure(world, ratings=rated, notes=["ratings begin anew"], **fields)
    assert measure(world, num_rating_games=8)
    status = world.owner.tracker.refresh()
    assert (status.gate_games, status.rating_games, status.evaluation_games) == (4, 40, 10)
    assert status.ratings == rated
    assert "ratings begin anew" in world.owner.tracker.take_log()
    world.owner.save()
    assert resumed(world).owner.manifest.rating_games == 40
    world.owner.tracker.start_clock()
    world.clock.now += 61
    request = world.owner.gate_request()
    assert request is not None
    assert request.elapsed_s == 61.0


# --- insert budget --------------------------------------------------------------------------------


def finish(world: World, slot: int, examples: int) -> None:
    epoch = epoch_of(world, SELFPLAY, slot)
    assert world.owner.on_step(
        StepReply(epoch=epoch, node="here", slot=slot, model_version=0, num_examples=examples)
    )


def test_budget_is_shared_out_and_counts_what_is_under_way(world: World) -> None:
    learn(world, b"zero", insert_budget=1000)
    assert world.owner.insert_budget() == 500
    finish(world, 0, 400)
    assert world.owner.insert_budget() == 300
    finish(world, 1, 700)
    assert world.owner.insert_budget() == 0


def test_what_is_finished_while_the_learner_works_stays_under_way(world: World) -> None:
    learn(world, b"zero", insert_budget=1000)
    finish(world, 0, 100)
    request = world.owner.learn_request()
    finish(world, 1, 200)
    world.owner.on_learn(LearnReply(epoch=request.epoch, insert_budget=900))
    assert world.owner.insert_budget() == (900 - 200) // 2


def test_workers_insert_nothing_after_a_resume_before_the_learner_spoke(world: World) -> None:
    learn(world, b"zero", insert_budget=1000)
    again = resumed(world)
    request = again.owner.step_request(0)
    assert request is not None
    assert request.insert_budget == 0


def test_negative_budget_is_unbounded(world: World) -> None:
    learn(world, b"zero", insert_budget=-1)
    finish(world, 0, 10_000)
    assert world.owner.insert_budget() == -1


def test_paused_workers_are_told(world: World) -> None:
    learn(world, b"zero")
    world.owner.paused = True
    request = world.owner.step_request(0)
    assert request is not None
    assert request.paused


def test_in_the_last_gate_workers_rest_and_the_gate_plays_at_full_speed(world: World) -> None:
    learn(world, b"zero")
    assert world.owner.is_decided()  # version 0 is champion
    learn(world, b"one")
    assert not world.owner.is_decided()
    usual = world.owner.gate_request()
    world.owner.deciding = True
    gate, step = world.owner.gate_request(), world.owner.step_request(0)
    assert usual is not None
    assert gate is not None
    assert step is not None
    assert (usual.final, gate.final, gate.share, step.paused) == (False, True, 1.0, True)
    assert usual.share < 1.0
    end_gate(world, 1, 0, "undecided")
    assert world.owner.is_decided()
    learn(world, b"two")
    assert not world.owner.is_decided()


# --- saving ---------------------------------------------------------------------------------------


def test_snapshot_is_in_the_manifest_before_the_stream_is_trimmed(world: World) -> None:
    totals = IngestedTotals(games=10, examples=100)
    learn(world, b"zero", snapshot=b"state", window_edge={"0": "5-0"}, step=40, totals=totals)
    manifest = world.directory.load()
    assert manifest.learner is not None
    assert world.directory.get(manifest.learner) == b"state"
    assert (manifest.step, manifest.totals) == (40, totals)
    assert world.stream.trimmed == [{"0": "5-0"}]


def test_old_snapshots_are_pruned_with_the_manifest_that_replaces_them(world: World) -> None:
    for number in range(5):
        world.owner.take_gate_snapshot(b"gate %d" % number)
        learn(world, snapshot=b"learner %d" % number)
    manifest = world.directory.load()
    assert manifest.learner is not None
    assert manifest.gate is not None
    assert world.directory.get(manifest.learner) == b"learner 4"
    assert world.directory.get(manifest.gate) == b"gate 4"
    assert len(world.directory.files.names(world.directory.path / "snapshots")) == 2


def test_training_time_is_counted_over_all_invocations(world: World) -> None:
    world.owner.tracker.start_clock()
    world.clock.now += 50
    world.owner.save()
    again = resumed(world)
    again.clock.now += 1000
    assert again.owner.tracker.elapsed_s() == 50
    again.owner.tracker.start_clock()
    again.clock.now += 5
    again.owner.save()
    assert again.directory.load().elapsed_s == 55


# --- status ---------------------------------------------------------------------------------------


def test_rates_are_over_the_last_half_minute(world: World) -> None:
    learn(world, b"zero", totals=IngestedTotals(games=0))
    for second in range(1, 61):
        world.clock.now += 1
        epoch = epoch_of(world, SELFPLAY)
        plies = 10 if second <= 20 else 40
        world.owner.on_step(
            StepReply(epoch=epoch, node="n", slot=0, model_version=0, num_plies=plies)
        )
        learn(world, totals=IngestedTotals(games=2 * second), num_updates=3)
    status = world.owner.tracker.refresh()
    assert status.plies_per_s == pytest.approx(40, rel=0.05)
    assert status.games_per_s == pytest.approx(2, rel=0.05)
    assert status.updates_per_s == pytest.approx(3, rel=0.05)
    world.clock.now += 100
    assert world.owner.tracker.refresh().plies_per_s == 0


def test_waiting_does_not_change_the_share_of_the_network(world: World) -> None:
    learn(world, b"zero")
    epoch = epoch_of(world, SELFPLAY)
    for busy_s, evaluate_s in ((0.8, 0.4), (0.2, 0.1), (1e-5, 0.0)):
        world.clock.now += 1
        world.owner.on_step(
            StepReply(
                epoch=epoch, node="n", slot=0, model_version=0, busy_s=busy_s, evaluate_s=evaluate_s
            )
        )
    worker = world.owner.tracker.refresh().workers[0]
    assert worker.evaluate_share == pytest.approx(0.5, rel=0.01)
    world.owner.lost_actor(SELFPLAY, 0, "killed by a test")
    assert world.owner.tracker.refresh().workers[0].plies_per_s == 0


def test_gate_shows_what_it_plays_and_how_fast(world: World) -> None:
    learn(world, b"zero")
    learn(world, b"one")
    for _ in range(10):
        world.clock.now += 1
        reply = GateReply(
            epoch=epoch_of(world, GATE), status=GateStatus(candidate=1, champion=0), num_plies=50
        )
        assert world.owner.on_gate(reply)
    gate = world.owner.tracker.refresh().workers[-1]
    assert (gate.role, gate.model_version) == (GATE, 1)
    assert gate.plies_per_s == pytest.approx(50, rel=0.2)


def test_learner_is_told_its_share(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    directory.prepare()
    for kind, share in (("ray", 0.4), ("inprocess", 1.0)):  # counters alone, there
        runtime = RuntimeConfig(kind=kind, learner_share=0.4)  # type: ignore[arg-type]
        directory.save(new_manifest(RunConfig(runtime=runtime), ["test"]))
        world = make_owner(directory, WatchedStore(directory), Clock())
        assert world.owner.learn_request().share == share


def test_status_is_what_readers_find(world: World) -> None:
    learn(world, b"zero", step=3, window_positions=12)
    world.owner.measure_stream()
    world.owner.lost_actor(SELFPLAY, 1, "killed by a test")
    world.directory.write_status(world.owner.tracker.refresh())
    status = world.directory.read_status()
    assert status is not None
    assert (status.newest, status.champion, status.step, status.window_positions) == (0, 0, 3, 12)
    assert (status.stream_entries, status.stream_bytes) == (7, 700)
    assert "killed by a test" in status.message
    roles = [(worker.role, worker.slot, worker.alive) for worker in status.workers]
    assert roles == [
        (SELFPLAY, 0, True),
        (SELFPLAY, 1, False),
        (LEARNER, 0, True),
        (GATE, 0, True),
    ]


def test_rejected_entries_raise_an_alert_and_the_log_says_why(world: World) -> None:
    tracker = world.owner.tracker
    learn(world, totals=IngestedTotals(entries=5, games=3, rejected={"schema": 2}), notes=("why",))
    assert "why" in tracker.take_log()
    (alert,) = tracker.refresh().alerts
    assert "rejected (2 schema in all)" in alert
    world.clock.now += 601  # none lately
    learn(world, totals=IngestedTotals(entries=6, games=4, rejected={"schema": 2}))
    assert tracker.refresh().alerts == []
    learn(world, totals=IngestedTotals(entries=7, games=4, rejected={"run": 1, "schema": 2}))
    assert "1 run, 2 schema" in tracker.refresh().alerts[0]


def test_alerts_name_their_figures(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = world.owner.tracker
    assert tracker.refresh().alerts == []
    tracker.status.resident_bytes = 4_000_000_000
    lost = IngestedTotals(lost_entries=3)
    metrics = LearnMetrics(policy_lag=5000.0, held_out_scale=70.0, held_out_games=1000)
    learn(world, metrics=metrics, totals=lost)
    usage = shutil.disk_usage(world.directory.path)._replace(free=-1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    alerts = " / ".join(tracker.refresh().alerts)
    for figure in ("4.0 GB, limit 3.0 GB", "5000 versions", "70.0 times", "3 accepted", "paused"):
        assert figure in alerts
