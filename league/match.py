"""A match: two players, whole pairs, and a report that says what may be concluded.

Room: league. May import: engine, league.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np

from engine import rules
from engine.game import GameSpec
from engine.play import GameJob, GameResult, Table
from engine.players import Player
from league import duplicate
from league.duplicate import Interval, PairCollector, PairResult

Progress: TypeAlias = Callable[[int, int], None]
"""Told (finished games, games of the match) after every step in which games ended."""
NOT_PLAYED = "no pair was finished"
"""The verdict on a match that its deadline ended before the first pair."""


class PlayerReport(msgspec.Struct, frozen=True, kw_only=True):
    """One player's figures, each a mean over games (and over its sides, if it holds several)."""

    name: str
    score: float
    """Share of the possible: 1 for a win, 1/2 for a draw (``duplicate.game_score``)."""
    shaped_return: float
    """Sum of the reward terms, in points."""
    plies: float
    """Plies of all seats in its games."""
    reward_terms: dict[str, float]
    """By ``GameSpec.reward_terms``."""
    statistics: dict[str, float]
    """By ``GameSpec.statistics``."""


class SequentialOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a sequential test ended that asked whether the first player is stronger."""

    p0: float
    """Share of decided pairs that an equal player wins."""
    p1: float
    """Share that the first player wins, if it is stronger."""
    alpha: float
    """Nominal rate of calling an equal player stronger."""
    beta: float
    """Nominal rate of not calling it so at ``p1``."""
    max_pairs: int
    outcome: str
    """``promoted``, ``rejected`` or ``undecided``, as of a gate (``league.sprt``)."""
    num_decided: int
    """Pairs read that were not split."""
    wins: int
    """Those that the first player won."""
    llr: float
    """Log-likelihood ratio of p1 to p0."""
    verdict: str
    """In words."""


class MatchReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a match found. Everything counts whole pairs only."""

    game: str
    rules: dict[str, str]
    """All rule options in words."""
    seed: int
    num_requested: int
    """Games asked for."""
    num_games: int
    """Games counted; fewer when a deadline ended the match."""
    num_pairs: int
    win_rate: float
    """Mean pair score of the first player, draws as half; 0.5 of no pairs."""
    win_rate_low: float
    """Two-sided 95 % interval (``duplicate.interval``); 0 to 1 of no pairs."""
    win_rate_high: float
    wins: int
    """Games won by the first player."""
    draws: int
    losses: int
    verdict: str
    """In words; "no clear winner" when the interval spans one half."""
    within_pair_correlation: float | None
    """Of the first player's scores; None where it is not defined."""
    distinct_games: int
    """Different sequences of actions among the games."""
    seconds_per_game: float
    """Wall time, shared evenly among games that were played side by side."""
    players: tuple[PlayerReport, PlayerReport]
    sequential: SequentialOutcome | None = None
    """Of a match that a test ended; the interval of such a match leans towards the winner."""


def play_match(
    spec: GameSpec,
    game: Any,
    players: Sequence[Player],
    num_games: int,
    seed: int,
    *,
    names: tuple[str, str] = ("first", "second"),
    slots: int = 64,
    progress: Progress | None = None,
    deadline_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> MatchReport:
    """Play ``num_games`` games, every deal with the sides exchanged, and report.

    All deals follow from ``seed``; the result does not depend on ``slots``, a deadline apart.

    Args:
        spec: The game.
        game: Its rule options.
        players: The two players.
        num_games: A multiple of the pair (block) size.
        seed: Of all deals and of the players' own randomness.
        names: Of the players, for the report.
        slots: Games side by side.
        progress: Called as games end.
        deadline_s: Stop after this many seconds (at the next ply of the table). Then only the pairs
            before the first unfinished one count: the pairs that happen to have ended early are
            the short ones, and would favour whoever wins quickly.
        clock: Seconds, for the deadline alone.

    Raises:
        OddGamesError: ``num_games`` is not a number of whole pairs.
        ValueError: Not two players.
    """
    if len(players) != duplicate.NUM_PLAYERS:
        raise ValueError(f"{len(players)} players: a match has {duplicate.NUM_PLAYERS}")
    count = duplicate.num_pairs(game, num_games)
    table = Table(spec, game, players, _jobs(game, seed, count), num_slots=min(slots, num_games))
    start = clock()

    def is_late() -> bool:
        return deadline_s is not None and clock() - start >= deadline_s

    finished = _play_pairs(table, PairCollector(game), num_games, progress, is_late)
    pairs: list[PairResult] = []
    while len(pairs) in finished:
        pairs.append(finished[len(pairs)])
    return build_report(spec, game, names, pairs, seed=seed, num_requested=num_games)


def _play_pairs(
    table: Table,
    collector: PairCollector,
    num_games: int,
    progress: Progress | None,
    is_late: Callable[[], bool],
) -> dict[int, PairResult]:
    """Step ``table`` until all games are played or it is late; return the finished pairs."""
    finished: dict[int, PairResult] = {}
    num_finished = 0
    while num_finished < num_games:
        ended = table.step()
        for result in ended:
            pair = collector.add(result)
            if pair is not None:
                finished[pair.pair] = pair
        num_finished += len(ended)
        if ended and progress is not None:
            progress(num_finished, num_games)
        if is_late():
            break
    return finished


def _jobs(game: Any, seed: int, count: int) -> Iterable[GameJob]:
    """Yield the games of all pairs, a pair's games next to each other."""
    for pair in range(count):
        for job in duplicate.pair_jobs(seed, [pair]):
            yield from duplicate.game_jobs(game, job)


def pairs_of(game: Any, results: Iterable[GameResult]) -> list[PairResult]:
    """Return finished games as pairs, by number. Raises ValueError naming incomplete pairs."""
    collector, pairs = PairCollector(game), []
    for result in results:
        pair = collector.add(result)
        if pair is not None:
            pairs.append(pair)
    if collector.open_pairs:
        raise ValueError(f"pairs {collector.open_pairs} are incomplete: a report needs whole pairs")
    return sorted(pairs, key=lambda pair: pair.pair)


def build_report(
    spec: GameSpec,
    game: Any,
    names: tuple[str, str],
    pairs: Sequence[PairResult],
    *,
    seed: int,
    num_requested: int | None = None,
) -> MatchReport:
    """Return the report on finished pairs (``pairs_of`` makes them from games)."""
    games = [result for pair in pairs for result in pair.games]
    scores = [score for pair in pairs for score in pair.game_scores]
    if pairs:
        found = duplicate.interval([pair.score for pair in pairs])
        verdict = duplicate.verdict(names, found)
        correlation = duplicate.within_pair_correlation([pair.game_scores for pair in pairs])
    else:
        found, verdict, correlation = Interval(0.5, 0.0, 1.0), NOT_PLAYED, None
    outcomes = [_outcome(game, result) for result in games]
    return MatchReport(
        game=spec.name,
        rules=spec.describe(game),
        seed=seed,
        num_requested=len(games) if num_requested is None else num_requested,
        num_games=len(games),
        num_pairs=len(pairs),
        win_rate=found.mean,
        win_rate_low=found.low,
        win_rate_high=found.high,
        wins=outcomes.count(1),
        draws=outcomes.count(0),
        losses=outcomes.count(-1),
        verdict=verdict,
        within_pair_correlation=correlation,
        distinct_games=duplicate.num_distinct(result.digest for result in games),
        seconds_per_game=_mean([result.seconds for result in games]),
        players=(
            _player_report(spec, game, games, 0, names[0], _mean(scores)),
            _player_report(spec, game, games, 1, names[1], _mean([1 - s for s in scores])),
        ),
    )


def _outcome(game: Any, result: GameResult) -> int:
    """Return +1, 0 or -1: how the game ended for player 0."""
    own = float(result.returns[_sides_of(game, result, 0)[0]])
    return (own > 0) - (own < 0)


def _sides_of(game: Any, result: GameResult, player: int) -> list[int]:
    """Return the sides that ``player`` held."""
    seats = result.job.seat_players
    return sorted(
        {int(rules.side_of(game, seat)) for seat, held in enumerate(seats) if held == player}
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _player_report(
    spec: GameSpec, game: Any, games: Sequence[GameResult], player: int, name: str, score: float
) -> PlayerReport:
    terms = np.zeros(len(spec.reward_terms))
    figures = np.zeros(len(spec.statistics))
    for result in games:
        sides = _sides_of(game, result, player)
        terms += result.reward_terms[sides].mean(axis=0) / len(games)
        figures += result.statistics[sides].mean(axis=0) / len(games)
    return PlayerReport(
        name=name,
        score=score,
        shaped_return=float(terms.sum()),
        plies=_mean([result.plies for result in games]),
        reward_terms=dict(zip(spec.reward_terms, terms.tolist(), strict=True)),
        statistics=dict(zip(spec.statistics, figures.tolist(), strict=True)),
    )
