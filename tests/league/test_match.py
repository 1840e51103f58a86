"""A match from its games to its report.

* figures by hand from constructed games; every player's figures follow the player, not the seat
* the winner is found, equals are not told apart, mirrored players mirror the report
* returns agree with exact values of the naive game
* the same seed gives the same report whatever the number of slots; another seed other games
* odd game counts, incomplete pairs and repeated games are refused
* a deadline counts only the pairs before the first unfinished one, and says how many games that was
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from engine.game import get_spec
from engine.play import GameJob, GameResult
from engine.players import RandomPlayer, RulePlayer
from league import duplicate, match
from league.match import MatchReport
from tests.naive import kuhn as naive

SPEC = get_spec("kuhn")
GAME = SPEC.make()
DRAW = 0.0


class Cautious:
    """Bets with the king alone; the same view always gives the same action."""

    def act(
        self,
        views: Any,
        seats: NDArray[np.int64],
        keys: NDArray[np.uint64],
        out_actions: NDArray[np.int64],
    ) -> None:
        for i in range(len(out_actions)):
            out_actions[i] = int(views[i].cards[seats[i]] == 2)


class Generous(Cautious):
    """Bets with the jack alone."""

    def act(
        self,
        views: Any,
        seats: NDArray[np.int64],
        keys: NDArray[np.uint64],
        out_actions: NDArray[np.int64],
    ) -> None:
        for i in range(len(out_actions)):
            out_actions[i] = int(views[i].cards[seats[i]] == 0)


def game_result(pair: int, replay: int, gain: float, digest: int = 0) -> GameResult:
    """A game that player 0 won by ``gain``; it bets twice a game, player 1 once."""
    side = replay
    values = np.zeros(2)
    values[side], values[1 - side] = gain, -gain
    bets = np.zeros((2, 1))
    bets[side], bets[1 - side] = 2.0, 1.0
    return GameResult(
        job=GameJob(pair=pair, replay=replay, seed=pair, seat_players=(replay, 1 - replay)),
        returns=values,
        statistics=bets,
        reward_terms=values[:, None].copy(),
        plies=2 + replay,
        digest=digest,
        seconds=0.5,
    )


def report_on(results: list[GameResult]) -> MatchReport:
    pairs = match.pairs_of(GAME, results)
    return match.build_report(SPEC, GAME, ("A", "B"), pairs, seed=1)


def play(first: Any, second: Any, num_games: int, seed: int, **options: Any) -> MatchReport:
    return match.play_match(SPEC, GAME, (first, second), num_games, seed, **options)


def without_time(report: MatchReport) -> MatchReport:
    return msgspec.structs.replace(report, seconds_per_game=0.0)


def test_figures_by_hand() -> None:
    results = [
        game_result(1, 1, 1.0, digest=5),
        game_result(0, 0, 2.0, digest=5),
        game_result(0, 1, 2.0, digest=6),
        game_result(1, 0, -1.0, digest=7),
        game_result(2, 1, DRAW, digest=8),
        game_result(2, 0, 1.0, digest=7),
    ]
    report = report_on(results)
    assert (report.wins, report.draws, report.losses) == (4, 1, 1)
    assert (report.num_games, report.num_pairs, report.num_requested) == (6, 3, 6)
    assert report.distinct_games == 4
    assert report.win_rate == pytest.approx((1.0 + 0.5 + 0.75) / 3)
    expected = duplicate.interval([1.0, 0.5, 0.75])
    assert (report.win_rate_low, report.win_rate_high) == (expected.low, expected.high)
    assert report.verdict == "no clear winner"
    assert report.within_pair_correlation == duplicate.within_pair_correlation(
        [[1.0, 1.0], [0.0, 1.0], [1.0, 0.5]]
    )
    assert report.seconds_per_game == pytest.approx(0.5)
    first, second = report.players
    assert (first.name, second.name) == ("A", "B")
    assert first.score == pytest.approx(0.75)
    assert second.score == pytest.approx(0.25)
    assert first.shaped_return == pytest.approx(5 / 6)
    assert second.shaped_return == pytest.approx(-5 / 6)
    assert first.statistics == {"bets": pytest.approx(2.0)}
    assert second.statistics == {"bets": pytest.approx(1.0)}
    assert first.reward_terms == {"win": pytest.approx(5 / 6)}
    assert first.plies == second.plies == pytest.approx(2.5)


def test_verdict_names_the_winner() -> None:
    won = [game_result(pair, replay, 1.0) for pair in range(20) for replay in range(2)]
    lost = [game_result(pair, replay, -1.0) for pair in range(20) for replay in range(2)]
    assert report_on(won).verdict == "A is stronger"
    assert report_on(lost).verdict == "B is stronger"
    assert report_on(won).distinct_games == 1


def test_incomplete_and_repeated_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"pairs \[4\] are incomplete"):
        report_on([game_result(4, 0, 1.0)])
    with pytest.raises(ValueError, match="replay 0 of pair 4 came twice"):
        report_on([game_result(4, 0, 1.0), game_result(4, 0, 1.0)])
    foreign = GameResult(
        **vars(game_result(0, 0, 1.0)) | {"job": GameJob(0, 2, 0, (0, 1))},
    )
    with pytest.raises(ValueError, match="replay 2 of pair 0"):
        report_on([foreign])
    same_seats = GameResult(
        **vars(game_result(0, 0, 1.0)) | {"job": GameJob(0, 1, 0, (0, 1))},
    )
    with pytest.raises(ValueError, match=r"needed is seating \(1, 0\)"):
        report_on([same_seats])


def test_equal_deterministic_players_split_every_pair() -> None:
    report = play(Cautious(), Cautious(), 200, 3)
    assert report.win_rate == 0.5
    assert (report.wins, report.draws, report.losses) == (100, 0, 100)
    assert report.within_pair_correlation == pytest.approx(-1.0)
    assert report.verdict == "no clear winner"
    assert 0.0 < report.win_rate_high - report.win_rate_low < 0.1


def test_winner_is_found_and_mirroring_the_players_mirrors_the_report() -> None:
    report = play(Cautious(), Generous(), 300, 5, names=("cautious", "generous"))
    assert report.verdict == "generous is stronger"  # bluffs win games, though fewer antes
    mirrored = play(Generous(), Cautious(), 300, 5, names=("generous", "cautious"))
    assert mirrored.verdict == report.verdict
    assert mirrored.win_rate == pytest.approx(1 - report.win_rate)
    assert (mirrored.wins, mirrored.losses) == (report.losses, report.wins)
    for own, other in ((0, 1), (1, 0)):
        assert report.players[own].statistics == mirrored.players[other].statistics
        assert report.players[own].shaped_return == pytest.approx(
            mirrored.players[other].shaped_return
        )


def test_same_seed_same_games_whatever_the_slots_and_another_seed_others() -> None:
    players = (RulePlayer(SPEC, GAME), RandomPlayer(SPEC, GAME))
    narrow = play(*players, 200, 8, slots=3)
    wide = play(*players, 200, 8, slots=500)
    assert without_time(narrow) == without_time(wide)
    assert narrow.num_games == narrow.num_requested == 200
    assert narrow.players[0].shaped_return != play(*players, 200, 9).players[0].shaped_return


def test_figures_of_random_players_agree_with_the_exact_ones() -> None:
    def rule(card: str, history: str) -> float:
        if card == "K":
            return 1.0
        faces_bet = history.endswith("b")
        return 1 / 3 if faces_bet == (card == "Q") else 0.0

    def uniform(card: str, history: str) -> float:
        return 0.5

    exact = (naive.game_value(rule, uniform) - naive.game_value(uniform, rule)) / 2
    num_games = 16_000
    report = play(RulePlayer(SPEC, GAME), RandomPlayer(SPEC, GAME), num_games, 2)
    assert exact > 0.1
    # A return is at most 2 antes, and so is the standard deviation of a pair's mean.
    margin = 4 * 2 / (num_games / 2) ** 0.5
    assert report.players[0].shaped_return == pytest.approx(exact, abs=margin)
    assert report.players[1].shaped_return == pytest.approx(-report.players[0].shaped_return)
    assert report.distinct_games == 5  # all lines of play


def test_progress_is_told_up_to_the_last_game() -> None:
    told: list[tuple[int, int]] = []
    play(Cautious(), Generous(), 40, 5, slots=4, progress=lambda *counts: told.append(counts))
    assert told[-1] == (40, 40)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert len(told) > 5


def test_odd_numbers_of_games_and_of_players_are_refused() -> None:
    with pytest.raises(duplicate.OddGamesError, match="13 games"):
        play(Cautious(), Cautious(), 13, 1)
    with pytest.raises(ValueError, match="3 players: a match has 2"):
        match.play_match(SPEC, GAME, (Cautious(),) * 3, 12, 1)


def test_deadline_counts_the_pairs_before_the_first_unfinished_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Scripted:
        """A table on which pair 2 is slow."""

        num_active = 1

        def __init__(self, *args: Any, **options: Any) -> None:
            self.rounds = [
                [game_result(3, 0, 1.0), game_result(3, 1, 1.0), game_result(0, 1, 1.0)],
                [game_result(0, 0, 1.0), game_result(1, 0, -1.0), game_result(1, 1, 1.0)],
                [game_result(2, 0, 1.0)],
            ]

        def step(self) -> list[GameResult]:
            clock.append(clock[-1] + 10.0)
            return self.rounds.pop(0)

    clock = [0.0]
    monkeypatch.setattr(match, "Table", Scripted)
    report = play(Cautious(), Cautious(), 8, 1, deadline_s=25.0, clock=lambda: clock[-1])
    assert (report.num_pairs, report.num_games, report.num_requested) == (2, 4, 8)
    assert (report.wins, report.losses) == (3, 1)


def test_deadline_before_the_first_pair_claims_nothing() -> None:
    report = play(Cautious(), Cautious(), 1_000, 1, slots=1, deadline_s=0.0)
    assert report.num_games == 0
    assert (report.win_rate_low, report.win_rate_high) == (0.0, 1.0)
    assert report.verdict == match.NOT_PLAYED
    assert report.within_pair_correlation is None


def test_report_survives_json() -> None:
    report = play(Cautious(), Generous(), 20, 5)
    data = msgspec.json.encode(report)
    assert msgspec.json.decode(data, type=MatchReport) == report
