"""Many games at once.

Behaviours: a game follows from its job and its players, whatever the number of slots and whoever
sits in the others; the same seed deals the same cards with the sides exchanged; results carry the
figures of the game's own kernels; a game that its deal ends is a result too; illegal moves and jobs
that do not fit are refused by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.game import get_spec
from engine.play import GameJob, GameResult, Table
from engine.players import Player, RandomPlayer, RulePlayer, SearchPlayer
from engine.search.rollout import HashingEvaluator
from tests.engine import relay_game

SPEC = get_spec("cuarenta")
GAME = SPEC.make("report_a_4p")


class Spy:
    """Plays as another player does and keeps what it was shown."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.first_views: dict[int, bytes] = {}
        self.keys: list[int] = []
        self.batches: list[int] = []
        self.opening = b""

    def act(self, views: Any, seats: Any, keys: Any, out_actions: Any) -> None:
        self.keys += keys.tolist()
        self.batches.append(len(seats))
        self.opening = self.opening or views[0].tobytes()
        for view, seat in zip(views, seats, strict=True):
            self.first_views.setdefault(int(seat), view.tobytes())
        self._player.act(views, seats, keys, out_actions)


def table_players() -> list[Player]:
    search = SearchPlayer(SPEC, GAME, SPEC.encoders[0], HashingEvaluator(), simulations=4, batch=16)
    return [RulePlayer(SPEC, GAME), RandomPlayer(SPEC, GAME), search]


def pair_jobs(count: int, first: int, second: int) -> list[GameJob]:
    seats = ((first, second) * 2, (second, first) * 2)
    return [GameJob(i // 2, 0, 1000 + i // 2, seats[i % 2]) for i in range(count)]


def played(jobs: list[GameJob], num_slots: int) -> dict[GameJob, GameResult]:
    results = Table(SPEC, GAME, table_players(), jobs, num_slots=num_slots).play_all()
    assert len(results) == len(jobs)
    return {result.job: result for result in results}


def test_a_game_does_not_depend_on_slots_or_neighbours() -> None:
    jobs = pair_jobs(12, 0, 2)
    others = pair_jobs(10, 1, 0)
    wide = played(jobs, 64)
    narrow = played(jobs[::-1] + others, 5)
    for job in jobs:
        for name in ("digest", "plies"):
            assert getattr(wide[job], name) == getattr(narrow[job], name)
        for name in ("returns", "statistics", "reward_terms"):
            np.testing.assert_array_equal(getattr(wide[job], name), getattr(narrow[job], name))
    assert len({result.digest for result in wide.values()}) == len(jobs)


def test_a_game_that_its_deal_ends_is_a_result() -> None:
    game = SPEC.make("report_b_2p")  # four of a kind in the five cards dealt win at once
    state = SPEC.new_state()
    seed = 684
    rules.deal(game, state, np.uint64(seed))
    assert rules.current_seat(game, state) == rules.TERMINAL
    jobs = [GameJob(0, 0, seed, (0, 1)), GameJob(1, 0, seed + 1, (0, 1))]
    table = Table(SPEC, game, [RulePlayer(SPEC, game)] * 2, jobs, num_slots=2)
    found = {}
    for _ in range(500):
        found |= {result.job: result for result in table.step()}
    assert [found[job].plies > 0 for job in jobs] == [False, True]
    assert np.abs(found[jobs[0]].returns).tolist() == [1.0, 1.0]


def test_jobs_go_on_when_all_games_under_way_end_in_one_step() -> None:
    jobs = pair_jobs(4, 0, 1)
    assert set(played(jobs, 1)) == set(jobs)


def test_equal_players_exchange_sides_and_play_the_same_game() -> None:
    results = Table(
        SPEC,
        GAME,
        [RulePlayer(SPEC, GAME), RulePlayer(SPEC, GAME)],
        pair_jobs(20, 0, 1),
        num_slots=8,
    ).play_all()
    by_pair: dict[int, set[int]] = {}
    for result in results:
        by_pair.setdefault(result.job.pair, set()).add(result.digest)
    assert all(len(digests) == 1 for digests in by_pair.values())
    assert len(set.union(*by_pair.values())) == 10


def test_another_replay_of_a_pair_has_other_randomness_on_the_same_cards() -> None:
    digests, openings = set(), set()
    for replay in range(3):
        spy = Spy(RandomPlayer(SPEC, GAME))
        job = GameJob(4, replay, 77, (0, 0, 0, 0))
        result = Table(SPEC, GAME, [spy], [job]).play_all()[0]
        digests.add(result.digest)
        openings.add(spy.opening)
        assert len(set(spy.keys)) == result.plies
    assert len(digests) == 3
    assert len(openings) == 1


def test_results_are_those_of_the_games_own_kernels() -> None:
    result = Table(
        SPEC, GAME, [RulePlayer(SPEC, GAME), RandomPlayer(SPEC, GAME)], pair_jobs(1, 0, 1)
    ).play_all()[0]
    captured = SPEC.statistics.index("captured")
    assert result.reward_terms[:, SPEC.reward_terms.index("captured")].tolist() == (
        result.statistics[:, captured].tolist()
    )
    assert sorted(result.returns.tolist()) == [-1.0, 1.0]
    winner = int(result.returns.argmax())
    assert result.reward_terms[winner, SPEC.reward_terms.index("win")] > 0
    assert result.plies > 20
    assert result.seconds > 0.0


def test_rules_beat_random_play_from_either_side() -> None:
    results = Table(
        SPEC, GAME, [RulePlayer(SPEC, GAME), RandomPlayer(SPEC, GAME)], pair_jobs(100, 0, 1)
    ).play_all()
    wins = [result.returns[result.job.seat_players.index(0)] > 0 for result in results]
    assert np.mean(wins) > 0.9


def test_players_meet_their_positions_as_a_batch() -> None:
    spy = Spy(RulePlayer(SPEC, GAME))
    table = Table(SPEC, GAME, [spy], [GameJob(i, 0, i, (0,) * 4) for i in range(30)], num_slots=10)
    table.step()
    assert spy.batches == [10]
    assert table.num_active == 10


def test_a_table_goes_on_where_it_stopped_and_ends_without_jobs() -> None:
    spec, game = relay_game.SPEC, relay_game.Relay()
    jobs = [GameJob(i, 0, i, (0, 0, 0)) for i in range(7)]
    table = Table(spec, game, [RulePlayer(spec, game)], jobs, num_slots=3)
    steps, results = 0, []
    while len(results) < 7:
        results += table.step()
        steps += 1
    assert steps == 3 * 4  # four plies a game, three games at once
    assert table.num_active == 0
    assert table.step() == []
    for result in results:
        assert result.plies == 4
        assert result.returns.sum() == pytest.approx(0.0)
        assert result.returns.shape == (3,)


def test_cards_follow_from_the_seed_alone() -> None:
    state = SPEC.new_state()
    rules.deal(GAME, state, np.uint64(31))
    seat = int(rules.current_seat(GAME, state))
    expected = SPEC.new_state()
    rules.view(GAME, state, seat, expected)
    for pair in (0, 9):
        spy = Spy(RulePlayer(SPEC, GAME))
        table = Table(SPEC, GAME, [spy], [GameJob(pair, pair, 31, (0, 0, 0, 0))])
        table.step()
        assert spy.first_views == {seat: expected.tobytes()}


class Cheat:
    """Plays an action that does not exist."""

    def act(self, views: Any, seats: Any, keys: Any, out_actions: Any) -> None:
        out_actions[:] = -7


def test_what_is_not_allowed_is_named() -> None:
    rule = RulePlayer(SPEC, GAME)
    with pytest.raises(ValueError, match=r"player 0 \(Cheat\) chose action -7 .* not legal"):
        Table(SPEC, GAME, [Cheat()], [GameJob(0, 0, 0, (0,) * 4)]).step()
    with pytest.raises(ValueError, match="cuarenta has 4 seats"):
        Table(SPEC, GAME, [rule], [GameJob(0, 0, 0, (0, 0))]).step()
    with pytest.raises(ValueError, match="players are 0 to 0"):
        Table(SPEC, GAME, [rule], [GameJob(0, 0, 0, (0, 1, 0, 1))]).step()
    with pytest.raises(ValueError, match="num_slots = 0"):
        Table(SPEC, GAME, [rule], [], num_slots=0)
