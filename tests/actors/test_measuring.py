"""Evaluations and rating games of the arena's worker, beside the gate.

* without a gate everything goes to them; with one they get their shares, and no more
* blocks count once: interrupted at every call equals uninterrupted; ended blocks are in one reply
* a stronger version is rated higher, and evaluated as what it is
* models that are gone, a store that is away, a rule player that changed
* the share of time holds for all together
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import league.anchor
from actors.arena import GateWorker, WorkerSnapshot
from actors.config import SearchConfig
from actors.pairs import MatchWorker
from engine.play import GameResult
from engine.players import RandomPlayer
from league.config import EvaluationConfig, GateConfig, RatingConfig
from league.messages import GateReply, GateRequest, LeagueState
from league.players import PlayerError
from league.ratings import versions_of
from tests.actors.test_arena import BET, PASS, PLY_S, RANDOM, Clock, UnsteadyStore, store_of
from tests.league.tiny_models import ENCODER, GAME, SPEC, make_metadata, make_model

RATING = {"min_share": 0.2, "simulations": 0, "block_pairs": 4, "newest_pairs": 8}
EVALUATION = {
    "every_versions": 1,
    "every_minutes": 0.0,
    "opponents": ("rules",),
    "simulations": (0,),
    "num_games": 12,
    "games": 8,
    "min_share": 0.2,
}


def worker(
    store: Any,
    snapshot: bytes | None = None,
    *,
    rating: dict[str, Any] | None = None,
    evaluation: dict[str, Any] | None = None,
    **others: Any,
) -> GateWorker:
    return GateWorker(
        config=GateConfig(simulations=0, games=8, max_pairs=others.pop("max_pairs", 400)),
        search=SearchConfig(),
        spec=SPEC,
        game=GAME,
        encoder=ENCODER,
        models=store,
        run_id="test",
        seed=3,
        epoch=7,
        rating=RatingConfig(**RATING | (rating or {})),
        evaluation=EvaluationConfig(**EVALUATION | (evaluation or {})),
        snapshot=snapshot,
        **others,
    )


def request(newest: int = 1, champion: int = 0, **changes: Any) -> GateRequest:
    league_state = LeagueState(newest=newest, champion=champion, pool=tuple(range(champion + 1)))
    fields: dict[str, Any] = {"league": league_state, "max_pairs": 4} | changes
    return GateRequest(epoch=7, **fields)


def saved(gate_worker: GateWorker) -> WorkerSnapshot:
    return msgspec.json.decode(gate_worker.snapshot(), type=WorkerSnapshot)


def num_rated_pairs(gate_worker: GateWorker) -> int:
    ratings = saved(gate_worker).ratings
    assert ratings is not None
    return sum(sum(tally.scores) for tally in ratings.table.tallies)


# --- what is played -------------------------------------------------------------------------------


def test_without_a_candidate_everything_goes_to_evaluation_and_rating() -> None:
    gate_worker = worker(store_of(BET, RANDOM))
    replies = [gate_worker.step(request(1, 1)) for _ in range(20)]
    assert sum(reply.num_games for reply in replies) == 0
    (found,) = [found for reply in replies for found in reply.evaluations]
    assert (found.version, found.is_champion, found.opponent, found.games) == (1, True, "rules", 12)
    assert sum(reply.num_evaluation_games for reply in replies) == 12
    assert sum(reply.num_rating_games for reply in replies) >= 2 * num_rated_pairs(gate_worker) > 0
    assert set(found.own) == set(found.other) == {"bets", "return", "plies"}


def test_gates_that_follow_one_another_leave_the_others_their_shares() -> None:
    # Equals: the gate goes on and on.
    gate_worker = worker(store_of(BET, BET), evaluation={"num_games": 2000})
    replies = [gate_worker.step(request(max_pairs=5)) for _ in range(60)]
    games = [
        sum(getattr(reply, name) for reply in replies)
        for name in ("num_games", "num_evaluation_games", "num_rating_games")
    ]
    assert all(reply.status.candidate == 1 for reply in replies)
    assert [count / sum(games) for count in games] == pytest.approx([0.6, 0.2, 0.2], abs=0.05)


def test_rating_is_off_with_a_share_of_0_and_evaluation_without_a_schedule() -> None:
    gate_worker = worker(
        store_of(BET, BET), rating={"min_share": 0.0}, evaluation={"every_versions": 0}
    )
    replies = [gate_worker.step(request(1, 1)) for _ in range(5)]
    assert sum(r.num_rating_games + r.num_evaluation_games + r.num_games for r in replies) == 0
    assert gate_worker.step(request(0, 0)).ratings is None


def test_a_version_that_wins_is_rated_above_one_that_loses() -> None:
    gate_worker = worker(store_of(PASS, BET), rating={"newest_pairs": 1000})
    ratings: dict[int, float] = {}
    for _ in range(60):
        reply = gate_worker.step(request(1, 1))
        if reply.ratings is not None:
            ratings = {entry.version: entry.rating for entry in reply.ratings}
    assert ratings.keys() == {0, 1}
    assert ratings[1] > ratings[0] + 100


# --- once -----------------------------------------------------------------------------------------


def facts(reply: GateReply) -> GateReply:
    reply.resident_bytes = 0
    reply.ratings = None  # said again after a restart
    return reply


def test_interrupted_at_every_call_equals_uninterrupted() -> None:
    store = store_of(RANDOM, RANDOM, RANDOM)
    steady, parts = worker(store, max_pairs=30), worker(store, max_pairs=30)
    num_evaluations = 0
    for call in range(50):
        asked = request(1 + call // 25, max_pairs=3)
        expected = facts(steady.step(asked))
        parts = worker(store, parts.snapshot(), max_pairs=30)
        assert facts(parts.step(asked)) == expected
        num_evaluations += len(expected.evaluations)
    assert num_evaluations >= 2
    assert parts.snapshot() == steady.snapshot()
    assert num_rated_pairs(steady) > 8


def test_a_worker_that_is_killed_plays_again_what_was_not_saved_and_counts_it_once() -> None:
    store = store_of(BET, RANDOM)
    gate_worker = worker(store)
    snapshot = gate_worker.snapshot()
    first = [facts(gate_worker.step(request(1, 1))) for _ in range(12)]
    before = num_rated_pairs(gate_worker)
    again = worker(store, snapshot)  # of before all that
    assert [facts(again.step(request(1, 1))) for _ in range(12)] == first
    assert num_rated_pairs(again) == before


# --- faults ---------------------------------------------------------------------------------------


def test_an_evaluation_whose_version_is_gone_is_given_up_in_words() -> None:
    store = store_of(BET, BET, BET)
    gate_worker = worker(store, rating={"min_share": 0.0}, evaluation={"num_games": 400})
    assert gate_worker.step(request(2, 2)).versions_in_use == (2,)
    snapshot = gate_worker.snapshot()
    store.delete(2)
    reply = worker(store, snapshot, rating={"min_share": 0.0}).step(request(1, 1))
    assert any("version 2 is not kept any more" in note for note in reply.notes)
    assert reply.versions_in_use == ()


def test_a_rating_block_whose_version_is_gone_makes_way_for_another() -> None:
    store = store_of(BET, BET, BET)
    gate_worker = worker(store, evaluation={"every_versions": 0}, rating={"block_pairs": 400})
    only = LeagueState(newest=2, champion=1, pool=(1,))
    for _ in range(2):
        assert 2 in gate_worker.step(request(league=only)).versions_in_use
    snapshot = gate_worker.snapshot()
    players = saved(gate_worker).ratings
    assert players is not None
    assert players.players == (1, 2)
    store.delete(2)
    restored = worker(store, snapshot, evaluation={"every_versions": 0})
    for _ in range(6):
        restored.step(request(1, 1))
    table = saved(restored).ratings
    assert table is not None
    assert set(versions_of(table.table)) <= {0, 1}
    assert num_rated_pairs(restored) > 0


def test_a_store_that_is_away_is_waited_for() -> None:
    store = UnsteadyStore()
    for version in range(2):
        store.put(version, make_model(1, metadata=make_metadata(version=version), prefer=BET))
    gate_worker = worker(store)
    store.away = True
    reply = gate_worker.step(request(1, 1))
    assert (reply.num_rating_games, reply.num_evaluation_games) == (0, 0)
    store.away = False
    reply = gate_worker.step(request(1, 1))
    assert reply.num_rating_games + reply.num_evaluation_games == 8


def test_another_rule_player_begins_the_ratings_anew_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = store_of(BET, RANDOM)
    gate_worker = worker(store)
    for _ in range(12):
        gate_worker.step(request(1, 1))
    assert num_rated_pairs(gate_worker) > 0
    unchanged = worker(store, gate_worker.snapshot())
    assert num_rated_pairs(unchanged) == num_rated_pairs(gate_worker)
    assert unchanged.step(request(1, 1)).notes == []
    monkeypatch.setattr(league.anchor, "RulePlayer", RandomPlayer)
    begun = worker(store, gate_worker.snapshot())
    assert num_rated_pairs(begun) == 0
    assert any("ratings begin anew" in note for note in begun.step(request(1, 1)).notes)
    slower = worker(store, gate_worker.snapshot(), rating={"simulations": 2})
    assert num_rated_pairs(slower) == 0, "and so does another way of playing"


def test_an_opponent_that_is_no_player_is_refused_at_once() -> None:
    with pytest.raises(PlayerError, match="'ruels'"):
        worker(store_of(), evaluation={"opponents": ("ruels",)})


def test_a_snapshot_of_before_ratings_is_still_read() -> None:
    store = store_of(RANDOM, RANDOM)
    plain = worker(store, rating={"min_share": 0.0}, evaluation={"every_versions": 0})
    plain.step(request())
    document = msgspec.json.decode(plain.snapshot())
    for key in ("ratings", "evaluations", "shares"):
        del document[key]
    restored = worker(store, msgspec.json.encode(document))
    assert restored.step(request()).status.candidate == 1
    assert num_rated_pairs(restored) == 0


# --- time -----------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    step = MatchWorker.step

    def timed_step(self: MatchWorker) -> list[GameResult]:
        clock.now_s += PLY_S
        return step(self)

    monkeypatch.setattr(MatchWorker, "step", timed_step)
    return clock


def test_gate_rating_and_evaluation_keep_the_share_of_time_together(clock: Clock) -> None:
    timed: dict[str, Any] = {"clock": clock, "sleep": clock.sleep}
    gate_worker = worker(
        store_of(BET, BET), evaluation={"num_games": 2000}, max_pairs=100_000, **timed
    )
    asked = request(budget_s=1.0, max_pairs=0, share=0.3)
    replies = [gate_worker.step(asked) for _ in range(80)]
    assert 1.0 - clock.slept_s / clock.now_s == pytest.approx(0.3, abs=0.02)
    for name in ("num_games", "num_rating_games", "num_evaluation_games"):
        assert sum(getattr(reply, name) for reply in replies) > 0, name


def test_evaluations_come_due_by_the_time_of_the_run(clock: Clock) -> None:
    gate_worker = worker(
        store_of(BET, BET),
        evaluation={"every_versions": 0, "every_minutes": 1.0},
        clock=clock,
        sleep=clock.sleep,
    )
    asked = {"budget_s": 2.0, "max_pairs": 0}
    early = [gate_worker.step(request(1, 1, elapsed_s=59.0, **asked)) for _ in range(3)]
    assert not any(reply.num_evaluation_games for reply in early)
    late = [gate_worker.step(request(1, 1, elapsed_s=61.0, **asked)) for _ in range(5)]
    assert sum(len(reply.evaluations) for reply in late) == 1
