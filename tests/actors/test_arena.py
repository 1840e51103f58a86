"""Behaviours of the arena:

* the gate worker idles, challenges with the newest version, and reports each ended gate once
* candidates are promoted, rejected or undecided after exactly as many pairs as the test needs
* counters alone decide what a call does without a budget; interrupted equals uninterrupted
* the run's last gate is the newest version's: an older candidate gives way, nothing else is played
* a time budget and its share are kept; games go on from call to call
* gates that are out of date, or whose models are gone, are dropped; foreign models are refused
* a value head that its metadata forbids to value leaves has no say in a gate
* the match worker plays every job, also those that come later
"""

from __future__ import annotations

from typing import Any

import pytest

from actors.arena import GateWorker
from actors.config import SearchConfig
from actors.pairs import MatchWorker
from engine import rules
from engine.play import GameJob, GameResult
from engine.players import Player, RandomPlayer, RulePlayer
from league.config import GateConfig
from league.duplicate import game_jobs, pair_jobs
from league.messages import GateOutcome, GateReply, GateRequest, GateStatus, LeagueState
from league.models import MemoryModelStore, ModelError
from league.stores import ModelsUnreachable
from tests.actors.models import untrained_model
from tests.league.tiny_models import ENCODER, GAME, SPEC, make_metadata, make_model

PASS, BET = 0, 1
# Whoever always bets wins every hand from whoever always passes: all pairs are decided.
WINS_TO_PROMOTE = 17  # ceil(ln(0.96 / 0.05) / ln(0.6 / 0.5))
LOSSES_TO_REJECT = 15  # ceil(ln(0.04 / 0.95) / ln(0.4 / 0.5))
RANDOM = -1


def store_of(*preferences: int) -> MemoryModelStore:
    """Return a store whose version v always prefers ``preferences[v]``."""
    store = MemoryModelStore()
    for version, prefer in enumerate(preferences):
        metadata = make_metadata(version=version)
        chosen = None if prefer == RANDOM else prefer
        store.put(version, make_model(version, metadata=metadata, prefer=chosen))
    return store


def worker(store: Any, snapshot: bytes | None = None, **changes: Any) -> GateWorker:
    config = {"simulations": 0, "games": 8, "max_pairs": 40} | changes
    others = {key: config.pop(key) for key in ("clock", "sleep", "run_id") if key in config}
    return GateWorker(
        config=GateConfig(**config),
        search=SearchConfig(),
        spec=SPEC,
        game=GAME,
        encoder=ENCODER,
        models=store,
        seed=3,
        epoch=7,
        snapshot=snapshot,
        **{"run_id": "test", **others},
    )


def league(newest: int, champion: int = 0) -> LeagueState:
    return LeagueState(newest=newest, champion=champion, pool=(0,))


def request(newest: int = 1, champion: int = 0, **changes: Any) -> GateRequest:
    fields: dict[str, Any] = {"league": league(newest, champion), "max_pairs": 4} | changes
    return GateRequest(epoch=7, **fields)


def run_gate(gate_worker: GateWorker, asked: GateRequest) -> list[GateReply]:
    """Step until a gate ends; return all replies."""
    replies = []
    for _ in range(200):
        replies.append(gate_worker.step(asked))
        if replies[-1].outcomes:
            return replies
    raise AssertionError("the gate never ended")


# --- which gate -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("newest", "champion"), [(-1, -1), (0, -1), (0, 0), (3, 3)])
def test_without_a_newer_version_the_worker_idles(newest: int, champion: int) -> None:
    reply = worker(store_of()).step(request(newest, champion))
    assert reply.status == GateStatus()
    assert (reply.outcomes, reply.num_games, reply.epoch) == ([], 0, 7)
    assert reply.resident_bytes > 0


def test_a_winner_is_promoted_after_exactly_as_many_pairs_as_it_takes() -> None:
    replies = run_gate(worker(store_of(PASS, BET)), request())
    (outcome,) = replies[-1].outcomes
    assert (outcome.outcome, outcome.candidate, outcome.champion) == ("promoted", 1, 0)
    assert outcome.num_pairs == outcome.num_decided == outcome.wins == WINS_TO_PROMOTE
    assert outcome.score == 1.0
    assert replies[-1].status == GateStatus()
    assert all(reply.status.candidate == 1 for reply in replies[:-1])


def test_a_loser_is_rejected_and_the_next_version_has_its_own_gate() -> None:
    gate_worker = worker(store_of(BET, PASS, BET, PASS))
    (outcome,) = run_gate(gate_worker, request(1))[-1].outcomes
    assert (outcome.outcome, outcome.candidate) == ("rejected", 1)
    assert (outcome.num_pairs, outcome.wins) == (LOSSES_TO_REJECT, 0)
    for _ in range(3):
        reply = gate_worker.step(request(1))
        assert (reply.status, reply.outcomes, reply.num_games) == (GateStatus(), [], 0)
    assert gate_worker.step(request(3)).status.candidate == 3


def test_equal_players_split_every_pair_and_stay_undecided() -> None:
    (outcome,) = run_gate(worker(store_of(BET, BET)), request())[-1].outcomes
    assert outcome.outcome == "undecided"
    assert (outcome.num_pairs, outcome.num_decided, outcome.score) == (40, 0, 0.5)


def test_a_head_that_must_not_value_leaves_has_no_say_in_a_gate() -> None:
    def outcome(value_bias: float, leaf_value: str) -> GateOutcome:
        store = MemoryModelStore()
        for version in range(2):
            bias = value_bias * version  # the champion's head is sound
            model = untrained_model("kuhn", version=version, value_bias=bias, leaf_value=leaf_value)
            store.put(version, model)
        return run_gate(worker(store, simulations=8, max_pairs=60), request())[-1].outcomes[0]

    assert outcome(-3.0, "network") != outcome(3.0, "network")
    assert outcome(-3.0, "playout") == outcome(3.0, "playout")


def test_candidate_and_champion_stay_fixed_while_newer_versions_come() -> None:
    gate_worker = worker(store_of(PASS, BET, BET, BET))
    gate_worker.step(request(1))
    replies = run_gate(gate_worker, request(3))
    assert replies[-1].outcomes[0].candidate == 1
    assert gate_worker.step(request(3, champion=1)).status.candidate == 3


def test_a_gate_against_a_dethroned_champion_is_dropped_without_outcome() -> None:
    gate_worker = worker(store_of(PASS, BET, BET, BET))
    gate_worker.step(request(1))
    reply = gate_worker.step(request(1, champion=1))
    assert (reply.status, reply.outcomes) == (GateStatus(), [])
    assert gate_worker.step(request(2, champion=1)).status == GateStatus(
        candidate=2, champion=1, num_pairs=4
    )


def test_in_the_last_gate_an_older_candidate_gives_way_to_the_newest() -> None:
    gate_worker = worker(store_of(PASS, PASS, BET))
    gate_worker.step(request(1))
    reply = gate_worker.step(request(2, final=True))
    assert (reply.status.candidate, reply.outcomes) == (2, [])
    assert reply.notes == ["gate of version 1 gives way to version 2"]
    # One that is the newest itself goes on, and so does one that comes out of a snapshot.
    again = worker(store_of(PASS, PASS, BET), gate_worker.snapshot())
    reply = again.step(request(2, final=True))
    assert (reply.status.num_pairs, reply.notes) == (8, [])
    assert run_gate(again, request(2, final=True))[-1].outcomes[0].outcome == "promoted"
    assert again.step(request(2, champion=2, final=True)).num_games == 0


def test_the_last_gate_takes_the_place_of_one_that_was_restored() -> None:
    before = worker(store_of(PASS, PASS, BET))
    before.step(request(1))
    gate_worker = worker(store_of(PASS, PASS, BET), before.snapshot())
    assert gate_worker.step(request(2, final=True)).status.candidate == 2


# --- counters -------------------------------------------------------------------------------------


def test_without_a_budget_a_call_plays_its_pairs_to_the_end() -> None:
    gate_worker = worker(store_of(PASS, BET))
    for call in range(1, 5):
        reply = gate_worker.step(request(max_pairs=4))
        assert (reply.num_games, reply.status.num_pairs) == (8, 4 * call)
        assert reply.status.wins == reply.status.num_decided == 4 * call
        assert 2 * 8 <= reply.num_plies <= 3 * 8


def without_memory(reply: GateReply) -> GateReply:
    reply.resident_bytes = 0
    return reply


@pytest.mark.parametrize("simulations", [0, 6])
def test_interrupted_at_every_call_equals_uninterrupted(simulations: int) -> None:
    store = store_of(RANDOM, RANDOM)
    steady = worker(store, simulations=simulations)
    expected = [without_memory(reply) for reply in run_gate(steady, request(max_pairs=3))]
    assert expected[-1].outcomes[0].num_decided > 0
    restarted = worker(store, simulations=simulations)
    for reply in expected:
        restarted = worker(store, restarted.snapshot(), simulations=simulations)
        assert without_memory(restarted.step(request(max_pairs=3))) == reply
    assert restarted.snapshot() == steady.snapshot()
    idle = worker(store, restarted.snapshot()).step(request())
    assert (idle.status, idle.num_games) == (GateStatus(), 0)


def test_a_restored_gate_keeps_the_config_it_began_with() -> None:
    store = store_of(BET, BET)
    first = worker(store, max_pairs=12)
    first.step(request())
    second = worker(store, first.snapshot(), max_pairs=500)
    assert run_gate(second, request())[-1].outcomes[0].num_pairs == 12


# --- time -----------------------------------------------------------------------------------------


class Clock:
    """A clock that plies and sleep advance; nothing else takes time."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds
        self.slept_s += seconds


PLY_S = 0.07


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    step = MatchWorker.step

    def timed_step(self: MatchWorker) -> list[GameResult]:
        clock.now_s += PLY_S
        return step(self)

    monkeypatch.setattr(MatchWorker, "step", timed_step)
    return clock


def test_games_go_on_from_call_to_call_and_across_a_restart_to_the_same_outcome(
    clock: Clock,
) -> None:
    store = store_of(RANDOM, RANDOM)
    expected = run_gate(worker(store, simulations=6), request())[-1].outcomes
    timed: dict[str, Any] = {"simulations": 6, "clock": clock, "sleep": clock.sleep}
    asked = request(budget_s=2 * PLY_S, max_pairs=0)
    gate_worker = worker(store, **timed)
    calls = []
    for call in range(300):
        calls.append(gate_worker.step(asked))
        if calls[-1].outcomes:
            break
        if call % 5 == 4:
            gate_worker = worker(store, gate_worker.snapshot(), **timed)
    assert calls[-1].outcomes == expected
    assert len(calls) > 5


@pytest.mark.parametrize("share", [0.15, 0.5, 1.0])
def test_the_share_of_time_is_kept_although_plies_overrun_it(clock: Clock, share: float) -> None:
    gate_worker = worker(store_of(BET, BET), max_pairs=3000, clock=clock, sleep=clock.sleep)
    asked = request(budget_s=0.1, max_pairs=0, share=share)
    num_games = sum(gate_worker.step(asked).num_games for _ in range(100))
    assert num_games > 0
    assert 1.0 - clock.slept_s / clock.now_s == pytest.approx(share, abs=0.02)
    assert clock.now_s >= 100 * 0.1 - 1e-6


def test_an_idle_worker_sleeps_its_budget(clock: Clock) -> None:
    worker(store_of(), clock=clock, sleep=clock.sleep).step(request(0, 0, budget_s=1.0))
    assert clock.slept_s == pytest.approx(1.0)


def test_pairs_bound_a_timed_call_too(clock: Clock) -> None:
    gate_worker = worker(store_of(PASS, BET), games=2, clock=clock, sleep=clock.sleep)
    reply = gate_worker.step(request(budget_s=60.0, max_pairs=3))
    assert reply.status.num_pairs == 3
    assert clock.slept_s > 50


# --- faults ---------------------------------------------------------------------------------------


class UnsteadyStore(MemoryModelStore):
    """A store that can go away."""

    away = False

    def get(self, version: int) -> bytes:
        if self.away:
            raise ModelsUnreachable("away")
        return super().get(version)

    def versions(self) -> list[int]:
        if self.away:
            raise ModelsUnreachable("away")
        return super().versions()


def test_a_store_that_is_away_is_waited_for_with_and_without_a_gate() -> None:
    store = UnsteadyStore()
    for version, prefer in enumerate((PASS, BET)):
        store.put(version, make_model(1, metadata=make_metadata(version=version), prefer=prefer))
    gate_worker = worker(store)
    store.away = True
    assert gate_worker.step(request()).status == GateStatus()
    store.away = False
    assert gate_worker.step(request()).status.num_pairs == 4
    store.away = True
    assert gate_worker.step(request()).status.num_pairs == 8
    restored = worker(store, gate_worker.snapshot())
    waiting = restored.step(request())
    assert (waiting.status.candidate, waiting.status.num_pairs, waiting.num_games) == (1, 8, 0)
    store.away = False
    assert restored.step(request()).status.num_pairs == 12


def test_a_restored_gate_whose_models_are_gone_is_dropped() -> None:
    store = store_of(PASS, BET, BET)
    gate_worker = worker(store)
    gate_worker.step(request(1))
    store.delete(1)
    restored = worker(store, gate_worker.snapshot())
    assert restored.step(request(1)).status == GateStatus()
    assert restored.step(request(2)).status.candidate == 2


def test_missing_and_foreign_models_are_refused_by_name() -> None:
    store = store_of(PASS, BET)
    with pytest.raises(ModelError, match="model version 5: stored are"):
        worker(store).step(request(5))
    with pytest.raises(ModelError, match="model 1 of run 'mine' says that it is version 1 of run"):
        worker(store, run_id="mine").step(request())
    store.put(2, make_model(2, metadata=make_metadata(version=9)))
    with pytest.raises(ModelError, match="says that it is version 9"):
        worker(store).step(request(2))
    store.put(3, make_model(3, metadata=make_metadata(version=3, encoder="other")))
    with pytest.raises(ModelError, match="model 3 has encoder other, not cards"):
        worker(store).step(request(3))


def test_snapshots_of_something_else_are_refused() -> None:
    with pytest.raises(ValueError, match="gate snapshot of 5 bytes"):
        worker(store_of(), b"hello")
    snapshot = worker(store_of()).snapshot()
    with pytest.raises(ValueError, match="gate snapshot schema 9: this program reads 1"):
        worker(store_of(), snapshot.replace(b'"schema_version":1', b'"schema_version":9'))


def test_a_config_that_is_no_test_and_a_game_of_three_sides_are_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="p0 < p1"):
        worker(store_of(), p0=0.7, p1=0.6)
    monkeypatch.setattr(rules, "num_sides", lambda game: 3)
    with pytest.raises(ValueError, match="kuhn has 3 sides: gates need two sides"):
        worker(store_of())


# --- matches --------------------------------------------------------------------------------------


def jobs_of_pairs(first: int, count: int) -> list[GameJob]:
    jobs = [game_jobs(GAME, job) for job in pair_jobs(11, range(first, first + count))]
    return [job for pair in jobs for job in pair]


def play(match: MatchWorker) -> dict[tuple[int, int], GameResult]:
    results: dict[tuple[int, int], GameResult] = {}
    while match.num_unfinished:
        results |= {(r.job.pair, r.job.replay): r for r in match.step()}
    return results


def test_every_job_is_played_alike_whether_it_comes_early_or_late() -> None:
    players: list[Player] = [RandomPlayer(SPEC, GAME), RulePlayer(SPEC, GAME)]
    match = MatchWorker(SPEC, GAME, players, games=3)
    assert match.num_free == 3
    match.submit(jobs_of_pairs(0, 5))
    assert (match.num_unfinished, match.num_free) == (10, 0)
    results = play(match)
    assert match.step() == []
    match.submit(jobs_of_pairs(5, 4))
    results |= play(match)
    assert sorted(results) == [(pair, replay) for pair in range(9) for replay in range(2)]
    at_once = MatchWorker(SPEC, GAME, players, games=18)
    at_once.submit(jobs_of_pairs(0, 9))
    digests = {key: result.digest for key, result in play(at_once).items()}
    assert {key: result.digest for key, result in results.items()} == digests
    assert len(set(digests.values())) > 1
