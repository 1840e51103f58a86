"""Pairs: who sits where, which cards, and what may be concluded from the scores.

* both games of a pair have the same cards and every player holds every side once
* the two games of a pair by deterministic equals cancel: exactly one half
* odd numbers of games are refused with a reason
* intervals: exact coverage at least 95 % by enumeration, never of zero width, shrink like 1/sqrt(n)
* within-pair correlation has the known values, and explains the variance of the pair means
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.game import get_spec
from league import duplicate
from league.duplicate import Interval

SPEC = get_spec("kuhn")
GAME = SPEC.make()


def test_each_player_holds_each_side_once_on_the_same_cards() -> None:
    job = duplicate.pair_jobs(5, [3])[0]
    first, second = duplicate.game_jobs(GAME, job)
    assert (first.pair, second.pair, first.replay, second.replay) == (3, 3, 0, 1)
    assert first.seed == second.seed == job.seed
    assert first.seat_players == (0, 1)
    assert second.seat_players == (1, 0)


def test_four_seats_in_two_teams_exchange_whole_teams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "num_seats", lambda game: 4)
    monkeypatch.setattr(rules, "side_of", lambda game, seat: seat % 2)
    assert duplicate.seatings(GAME) == ((0, 1, 0, 1), (1, 0, 1, 0))


def test_three_sides_rotate_in_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "num_seats", lambda game: 3)
    monkeypatch.setattr(rules, "num_sides", lambda game: 3)
    assert duplicate.seatings(GAME) == ((0, 1, 1), (1, 0, 1), (1, 1, 0))
    assert duplicate.num_pairs(GAME, 9) == 3
    with pytest.raises(duplicate.OddGamesError, match="10 games: needed is a multiple of 3"):
        duplicate.num_pairs(GAME, 10)


@pytest.mark.parametrize("num_games", [1, 101, 0, -2])
def test_odd_number_of_games_is_refused(num_games: int) -> None:
    with pytest.raises(duplicate.OddGamesError, match=f"{num_games} games: needed is an even"):
        duplicate.num_pairs(GAME, num_games)
    assert duplicate.num_pairs(GAME, 100) == 50


def test_pair_seeds_differ_between_pairs_and_matches_and_do_not_depend_on_the_batch() -> None:
    several = duplicate.pair_jobs(1, range(1_000))
    assert len({job.seed for job in several}) == 1_000
    assert duplicate.pair_jobs(1, [17]) == [several[17]]
    assert not {job.seed for job in several} & {job.seed for job in duplicate.pair_jobs(2, [0, 1])}
    assert all(0 <= job.seed < 2**64 for job in several)


def test_equal_deterministic_players_score_exactly_one_half_in_every_pair() -> None:
    def play(job: Any) -> tuple[float, ...]:
        state, view = SPEC.new_state(), SPEC.new_state()
        rules.deal(GAME, state, np.uint64(job.seed))
        while (seat := int(rules.current_seat(GAME, state))) != rules.TERMINAL:
            rules.view(GAME, state, seat, view)
            rules.apply(GAME, state, 1 if view.cards[seat] == 2 else 0)
        returns = np.zeros(2)
        rules.returns(GAME, state, returns)
        return tuple(returns.tolist())

    outcomes = set()
    for pair in duplicate.pair_jobs(9, range(50)):
        scores = []
        for job in duplicate.game_jobs(GAME, pair):
            side = job.seat_players.index(0)
            scores.append(duplicate.game_score(play(job), side))
        outcomes.add(scores[0])
        assert duplicate.pair_score(scores) == 0.5
    assert outcomes == {0.0, 1.0}  # the cards decided each game


def test_scores_of_games_and_pairs() -> None:
    assert [duplicate.game_score((gain, -gain), 0) for gain in (2.0, 0.0, -1.0)] == [1.0, 0.5, 0.0]
    assert [duplicate.game_score((gain, -gain), 1) for gain in (2.0, 0.0, -1.0)] == [0.0, 0.5, 1.0]
    loser_of_three = (0.5, -1.0, 0.5)
    scores = [duplicate.game_score(loser_of_three, side) for side in range(3)]
    assert scores == [0.75, 0.0, 0.75]
    assert duplicate.pair_score(scores) == 0.5  # equal players score one half
    games = itertools.product((0.0, 0.5, 1.0), repeat=2)
    assert {duplicate.pair_score(pair) for pair in games} == set(duplicate.PAIR_SCORES)


def test_distinct_games_are_counted_by_digest() -> None:
    assert duplicate.num_distinct([b"x", b"y", b"x", b"x"]) == 2
    assert duplicate.num_distinct([]) == 0


# --- intervals ------------------------------------------------------------------------------------


def coverage(count: int, chances: tuple[float, ...], values: tuple[float, ...]) -> float:
    """Exact probability that the interval of ``count`` pairs holds the true mean."""
    true_mean = sum(chance * value for chance, value in zip(chances, values, strict=True))
    total = 0.0
    for tally in itertools.product(range(count + 1), repeat=len(values)):
        if sum(tally) != count:
            continue
        ways = math.factorial(count) // math.prod(math.factorial(part) for part in tally)
        chance = ways * math.prod(c**part for c, part in zip(chances, tally, strict=True))
        result = duplicate.interval(np.repeat(values, tally))
        if result.low - 1e-12 <= true_mean <= result.high + 1e-12:
            total += chance
    return total


@pytest.mark.parametrize("count", [4, 12, 24])
@pytest.mark.parametrize(
    "chances",
    [(0.25, 0.5, 0.25), (0.05, 0.9, 0.05), (0.1, 0.4, 0.5), (0.45, 0.1, 0.45), (0.01, 0.19, 0.8)],
)
def test_interval_holds_the_true_mean_at_least_95_percent_of_the_time(
    count: int, chances: tuple[float, ...]
) -> None:
    assert coverage(count, chances, (0.0, 0.5, 1.0)) >= 0.95


@pytest.mark.parametrize("score", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("count", [1, 2, 10, 1_000])
def test_interval_has_a_width_even_when_all_pairs_agree(score: float, count: int) -> None:
    result = duplicate.interval([score] * count)
    assert result.mean == score
    assert 0.0 <= result.low <= score <= result.high <= 1.0
    assert result.high - result.low > 0.5 / count


def test_all_won_pairs_do_not_prove_certainty() -> None:
    """The exact lower bound of 10 wins of 10 is 0.025 ** (1 / 10) = 0.69 (Clopper, Pearson)."""
    result = duplicate.interval([1.0] * 10)
    assert result.low < 0.025 ** (1 / 10)
    assert result.high == 1.0


def test_interval_of_many_pairs_is_the_textbook_one() -> None:
    scores = np.repeat([0.0, 0.25, 0.5, 0.75, 1.0], [100, 150, 300, 250, 200])
    result = duplicate.interval(scores)
    half = 1.96 * scores.std(ddof=1) / math.sqrt(len(scores))
    assert result.low == pytest.approx(scores.mean() - half, abs=0.001)
    assert result.high == pytest.approx(scores.mean() + half, abs=0.001)


def test_interval_is_symmetric_between_the_players() -> None:
    scores = np.array([1.0, 0.75, 0.5, 1.0, 0.25, 1.0])
    own, other = duplicate.interval(scores), duplicate.interval(1 - scores)
    assert own.low == pytest.approx(1 - other.high)
    assert own.high == pytest.approx(1 - other.low)


def test_scores_that_are_none_are_refused() -> None:
    for bad in ([], [1.5], [-0.1, 0.5], [float("nan")], [[0.5]]):
        with pytest.raises(ValueError, match="pair"):
            duplicate.interval(bad)


def test_student_quantiles_are_those_of_the_tables() -> None:
    assert duplicate.student_quantile(1) == pytest.approx(12.706, abs=0.001)
    assert duplicate.student_quantile(9) == pytest.approx(2.262, abs=0.001)
    assert duplicate.student_quantile(100_000) == pytest.approx(1.960, abs=0.001)


def test_verdict_in_words() -> None:
    names = ("A", "B")
    assert duplicate.verdict(names, Interval(0.6, 0.51, 0.7)) == "A is stronger"
    assert duplicate.verdict(names, Interval(0.4, 0.3, 0.49)) == "B is stronger"
    assert duplicate.verdict(names, Interval(0.6, 0.5, 0.7)) == "no clear winner"
    assert duplicate.verdict(names, Interval(0.5, 0.4, 0.6)) == "no clear winner"


# --- correlation ----------------------------------------------------------------------------------


def test_correlation_is_minus_one_when_cards_decide_and_one_when_players_do() -> None:
    assert duplicate.within_pair_correlation([[1, 0], [0, 1], [1, 0]]) == pytest.approx(-1.0)
    assert duplicate.within_pair_correlation([[1, 1], [0, 0], [1, 1]]) == pytest.approx(1.0)
    assert duplicate.within_pair_correlation([[1, 1], [0, 0], [1, 0], [0, 1]]) == 0.0
    rotations = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert duplicate.within_pair_correlation(rotations) == pytest.approx(-0.5)


def test_correlation_explains_the_variance_of_the_pair_means() -> None:
    rng = np.random.default_rng(4)
    scores = (rng.normal(size=(500, 1)) * 0.5 + rng.normal(size=(500, 3)) > 0.2).astype(float)
    r = duplicate.within_pair_correlation(scores)
    assert r is not None
    assert 0.05 < r < 0.5
    assert scores.mean(axis=1).var() == pytest.approx(scores.var() * (1 + 2 * r) / 3)


def test_correlation_is_none_where_nothing_varies() -> None:
    assert duplicate.within_pair_correlation([[1, 1], [1, 1]]) is None
    assert duplicate.within_pair_correlation([[1, 0]]) is None
    with pytest.raises(ValueError, match="needed is"):
        duplicate.within_pair_correlation([[1], [0]])
