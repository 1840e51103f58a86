"""What is played beside the gate, and when.

* evaluations: due by versions or by time, each once, champion and newest, quick opponents first
* rating games: anchor, pool and one newer version; results of another basis are not mixed
* shares: everybody gets its own, what is idle is not owed, interrupted equals uninterrupted
"""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from league.blocks import PairBlock, PairFigures
from league.config import EvaluationConfig, RatingConfig
from league.messages import ANCHOR, LeagueState
from league.schedule import (
    Evaluations,
    EvaluationSnapshot,
    FairShares,
    RatingGames,
    RatingSnapshot,
)


def state(newest: int, champion: int = 0, pool: tuple[int, ...] = (0,)) -> LeagueState:
    return LeagueState(newest=newest, champion=champion, pool=pool)


def finish(block: PairBlock, score: float = 1.0) -> None:
    """Hand in every pair of ``block`` with the same score."""
    wins = round(2 * score)
    for job in block.issue(10_000):
        figures = PairFigures(
            score=score, wins=wins, draws=0, losses=2 - wins, own=(1.0,), other=(2.0,)
        )
        block.report(job.pair, figures)


# --- evaluations ----------------------------------------------------------------------------------


def evaluations(snapshot: EvaluationSnapshot | None = None, **changes: object) -> Evaluations:
    fields: dict[str, object] = {
        "every_versions": 10,
        "every_minutes": 0.0,
        "opponents": ("rules", "ismcts:2000"),
        "simulations": (0, 128),
        "num_games": 20,
    }
    return Evaluations(EvaluationConfig(**fields | changes), 3, snapshot)  # type: ignore[arg-type]


def play_all(schedule: Evaluations) -> list[tuple[int, str, int]]:
    played = []
    while (found := schedule.current()) is not None:
        task, block = found
        finish(block)
        played.append(task.key)
        schedule.finish()
    return played


def test_champion_and_newest_are_measured_once_each_when_due() -> None:
    schedule = evaluations()
    schedule.look(state(9, 4), 0.0)
    assert play_all(schedule) == []
    schedule.look(state(10, 4), 0.0)
    assert play_all(schedule) == [
        (version, opponent, simulations)
        for opponent in ("rules", "ismcts:2000")
        for simulations in (0, 128)
        for version in (4, 10)
    ]
    schedule.look(state(19, 4), 0.0)
    assert play_all(schedule) == []
    schedule.look(state(20, 4), 0.0)
    assert {version for version, _, _ in play_all(schedule)} == {20}
    schedule.look(state(30, 20), 0.0)
    assert {version for version, _, _ in play_all(schedule)} == {30}, "20 was measured before"


def test_champion_that_is_the_newest_is_measured_once() -> None:
    schedule = evaluations(opponents=("rules",), simulations=(0,))
    schedule.look(state(10, 10), 0.0)
    found = schedule.current()
    assert found is not None
    assert found[0].is_champion
    assert play_all(schedule) == [(10, "rules", 0)]


def test_time_makes_them_due_as_well() -> None:
    schedule = evaluations(every_versions=0, every_minutes=2.0, opponents=("rules",))
    schedule.look(state(50, 4), 119.0)
    assert schedule.current() is None
    schedule.look(state(50, 4), 120.0)
    assert len(play_all(schedule)) == 4
    schedule.look(state(60, 4), 239.0)
    assert schedule.current() is None
    assert not evaluations(every_versions=0).is_on


def test_a_slow_opponent_does_not_hold_up_the_curve_of_a_quick_one() -> None:
    schedule = evaluations(simulations=(0,))
    schedule.look(state(10), 0.0)
    for _ in range(2):
        schedule.finish()  # rules
    under_way = schedule.current()
    assert under_way is not None
    assert under_way[0].opponent == "ismcts:2000"
    schedule.look(state(20), 0.0)
    assert schedule.current() == under_way, "what is under way is played to its end"
    assert play_all(schedule) == [
        (0, "ismcts:2000", 0),
        (20, "rules", 0),
        (10, "ismcts:2000", 0),
    ]


def test_deals_differ_between_versions_and_opponents_and_follow_from_the_seed() -> None:
    def seeds() -> list[int]:
        schedule, found = evaluations(), []
        schedule.look(state(10, 4), 0.0)
        while (current := schedule.current()) is not None:
            found.append(current[1].seed)
            schedule.finish()
        return found

    assert seeds() == seeds()
    assert len(set(seeds())) == 8


def test_interrupted_schedule_goes_on_where_it_was() -> None:
    steady, parts = evaluations(), evaluations()
    for schedule in (steady, parts):
        schedule.look(state(10, 4), 0.0)
        schedule.finish()
    found = parts.current()
    assert found is not None
    first = found[1].issue(1)[0]
    figures = PairFigures(score=0.5, wins=1, draws=0, losses=1, own=(), other=())
    found[1].report(first.pair, figures)
    data = msgspec.json.encode(parts.snapshot())
    restored = evaluations(msgspec.json.decode(data, type=EvaluationSnapshot))
    again = restored.current()
    assert again is not None
    assert again[1].figures() == [figures]
    assert play_all(restored) == play_all(steady)
    for schedule in (steady, restored):
        schedule.look(state(20, 4), 0.0)
    assert play_all(restored) == play_all(steady) != []


# --- rating games ---------------------------------------------------------------------------------


def rating_games(
    snapshot: RatingSnapshot | None = None, basis: str = "here", **changes: int
) -> RatingGames:
    config = RatingConfig(**{"block_pairs": 8, "newest_pairs": 16} | changes)  # type: ignore[arg-type]
    return RatingGames(config, 3, basis, snapshot)


def play_block(games: RatingGames, league: LeagueState) -> tuple[int, int]:
    found = games.current(league)
    assert found is not None
    finish(found.block, 0.5)
    games.finish(league)
    return found.first, found.second


def test_pool_newest_and_anchor_all_meet() -> None:
    games, league = rating_games(newest_pairs=10_000), state(9, 4, (0, 2, 4))
    met = Counter(play_block(games, league) for _ in range(60))
    assert {player for pair in met for player in pair} == {ANCHOR, 0, 2, 4, 9}
    assert all(first < second for first, second in met)
    per_player = Counter(player for pair in met.elements() for player in pair)
    assert max(per_player.values()) < 2.5 * min(per_player.values())
    assert sum(sum(tally.scores) for tally in games.table.tallies) == 60 * 8


def test_a_version_that_is_no_champion_makes_room_after_its_pairs() -> None:
    games = rating_games()
    for _ in range(30):
        play_block(games, state(9, 0))
    of_nine = [tally for tally in games.table.tallies if 9 in (tally.first, tally.second)]
    assert 16 <= sum(sum(tally.scores) for tally in of_nine) < 24
    for newest in (10, 11, 12, 13):  # 10 is taken up and kept while newer ones come
        play_block(games, state(newest, 0))
    rated = {p for tally in games.table.tallies for p in (tally.first, tally.second)}
    assert 10 in rated
    assert not {11, 12} <= rated


def test_no_pair_is_ever_dealt_twice() -> None:
    games, league, seen = rating_games(), state(3, 3, (0, 3)), set()
    for _ in range(12):
        found = games.current(league)
        assert found is not None
        seeds = {job.seed for job in PairBlock.restore(found.block.snapshot()).issue(100)}
        assert not seeds & seen
        seen |= seeds
        play_block(games, league)


def test_interrupted_rating_goes_on_and_counts_nothing_twice() -> None:
    league = state(9, 4, (0, 4))
    steady, parts = rating_games(), rating_games()
    for _ in range(10):
        play_block(steady, league)
        found = parts.current(league)
        assert found is not None
        finish(found.block, 0.5)
        # Killed before and after the block was counted.
        parts = rating_games(parts.snapshot())
        assert parts.current(league) is not None
        parts.finish(league)
        data = msgspec.json.encode(parts.snapshot())
        parts = rating_games(msgspec.json.decode(data, type=RatingSnapshot))
    assert parts.snapshot() == steady.snapshot()


def test_results_of_another_rule_player_are_not_mixed() -> None:
    games = rating_games()
    play_block(games, state(0))
    begun = rating_games(games.snapshot(), basis="there")
    assert begun.table.tallies == ()
    assert "'here' are not mixed with those of 'there'" in begun.note
    assert rating_games(games.snapshot()).note == ""


# --- shares ---------------------------------------------------------------------------------------


def spend(shares: FairShares, runnable: list[str], rounds: int) -> Counter[str]:
    used: Counter[str] = Counter()
    for _ in range(rounds):
        name = shares.choose(runnable)
        assert name is not None
        cost = {"gate": 1, "evaluation": 5, "rating": 2}[name]
        shares.charge(name, cost)
        used[name] += cost
    return used


SHARES = {"gate": 0.7, "evaluation": 0.2, "rating": 0.1}


def test_everybody_gets_its_share_whatever_a_turn_costs() -> None:
    used = spend(FairShares(SHARES), list(SHARES), 4000)
    for name, share in SHARES.items():
        assert used[name] / used.total() == pytest.approx(share, abs=0.01)


def test_shares_of_the_idle_go_to_the_others_and_are_not_owed() -> None:
    shares = FairShares(SHARES)
    used = spend(shares, ["evaluation", "rating"], 1000)
    assert used["evaluation"] / used.total() == pytest.approx(2 / 3, abs=0.01)
    used = spend(shares, list(SHARES), 1000)
    assert used["rating"] / used.total() == pytest.approx(0.1, abs=0.02)
    assert shares.choose([]) is None


def test_interrupted_shares_go_on() -> None:
    steady, parts = FairShares(SHARES), FairShares(SHARES)
    order = []
    for _ in range(50):
        for shares in (steady, parts):
            name = shares.choose(["gate", "rating"])
            assert name is not None
            shares.charge(name, 1.0)
            order.append(name)
        parts = FairShares(SHARES, parts.snapshot())
    assert order[::2] == order[1::2]
