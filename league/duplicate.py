"""Duplicate play: the same cards with the sides exchanged make one paired score.

Room: league. May import: engine. Pure functions; they know no store and no clock.

Two players, 0 and 1, meet on one deal as often as there are sides; in replay r player 0 holds side
r and player 1 all other seats. Two sides: a pair. More sides: a block of all rotations. The luck of
the cards falls on both players alike, and the score of the whole block is one observation: its
games are not independent, so intervals come from blocks and never from games.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine import rules
from engine.play import GameJob, GameResult
from engine.rng import mix

NUM_PLAYERS = 2
"""Players of a match; every seat belongs to one of them."""
PAIR_SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Possible scores of a pair of a two-sided game."""
SPLIT = 0.5
"""Pair score of a split pair: it decides nothing."""
CONFIDENCE = 0.95
"""Of all intervals; two-sided."""
_MASK_64 = 0xFFFFFFFFFFFFFFFF


class OddGamesError(ValueError):
    """A number of games that is not a number of whole pairs (blocks); names what is allowed."""


# --- who sits where -------------------------------------------------------------------------------


def block_size(game: Any) -> int:
    """Return the games of one block: 2 in a two-sided game (a pair), else the number of sides."""
    return int(rules.num_sides(game))


def num_pairs(game: Any, num_games: int) -> int:
    """Return the number of pairs (blocks) in ``num_games``; OddGamesError for a remainder."""
    size = block_size(game)
    if num_games < size or num_games % size:
        word = "an even number" if size == 2 else f"a multiple of {size}"
        raise OddGamesError(
            f"{num_games} games: needed is {word} of at least {size} (every deal is played with "
            "the sides exchanged)"
        )
    return num_games // size


def seatings(game: Any) -> tuple[tuple[int, ...], ...]:
    """Return, per replay, the player at every seat; player 0 holds side ``replay``."""
    sides = [int(rules.side_of(game, seat)) for seat in range(int(rules.num_seats(game)))]
    return tuple(
        tuple(0 if side == replay else 1 for side in sides) for replay in range(block_size(game))
    )


class PairJob(NamedTuple):
    """One pair (block) to be played."""

    pair: int
    """Place in the order of issue, from 0."""
    seed: int
    """uint64: all cards of all its games follow from it."""


def pair_jobs(match_seed: int, pairs: Iterable[int]) -> list[PairJob]:
    """Return the given pairs of a match; a seed is a function of (match seed, pair) alone."""
    seed = np.uint64(match_seed & _MASK_64)
    with np.errstate(over="ignore"):  # without the JIT, numpy's scalars warn where they wrap round
        return [PairJob(pair, int(mix(seed, pair))) for pair in pairs]


def game_jobs(game: Any, job: PairJob) -> tuple[GameJob, ...]:
    """Return the games of a pair, in order of replay."""
    return tuple(
        GameJob(pair=job.pair, replay=replay, seed=job.seed, seat_players=seat_players)
        for replay, seat_players in enumerate(seatings(game))
    )


# --- scores ---------------------------------------------------------------------------------------


def game_score(returns: Sequence[float], side: int) -> float:
    """Return the score of ``side`` in [0, 1] from the outcome of a game (per side, sum zero).

    Two sides: 1 for a win, 1/2 for a draw, 0 for a loss. More: (1 + return) / 2, so that equal
    players score 1/2 on average whatever the number of sides.
    """
    own = float(returns[side])
    if len(returns) == 2:
        return 1.0 if own > 0 else 0.0 if own < 0 else 0.5
    return (1.0 + min(1.0, max(-1.0, own))) / 2.0


def pair_score(scores: Sequence[float]) -> float:
    """Return player 0's score of a whole pair (block) from its scores in every replay."""
    return math.fsum(scores) / len(scores)


class PairResult(NamedTuple):
    """A finished pair (block)."""

    pair: int
    score: float
    """Player 0's, in [0, 1]."""
    game_scores: tuple[float, ...]
    """Player 0's, per replay."""
    games: tuple[GameResult, ...]
    """Per replay."""


class PairCollector:
    """Puts finished games together to pairs, in whatever order they end."""

    def __init__(self, game: Any) -> None:
        self._seatings = seatings(game)
        self._sides = [int(rules.side_of(game, seat)) for seat in range(len(self._seatings[0]))]
        self._open: dict[int, dict[int, GameResult]] = {}

    @property
    def open_pairs(self) -> list[int]:
        """Pairs that lack a game, ascending."""
        return sorted(self._open)

    def side_of_player(self, job: GameJob, player: int) -> int:
        """Return the side that ``player`` held; the first of several."""
        return self._sides[job.seat_players.index(player)]

    def add(self, result: GameResult) -> PairResult | None:
        """Take a game; return its pair once complete. Raises ValueError for a repeated game."""
        job = result.job
        if not 0 <= job.replay < len(self._seatings):
            raise ValueError(
                f"replay {job.replay} of pair {job.pair}: needed are 0 to {len(self._seatings) - 1}"
            )
        if job.seat_players != self._seatings[job.replay]:
            raise ValueError(f"{job}: needed is seating {self._seatings[job.replay]}")
        games = self._open.setdefault(job.pair, {})
        if job.replay in games:
            raise ValueError(f"replay {job.replay} of pair {job.pair} came twice")
        games[job.replay] = result
        if len(games) < len(self._seatings):
            return None
        del self._open[job.pair]
        ordered = tuple(games[replay] for replay in range(len(self._seatings)))
        scores = tuple(
            game_score(
                [float(value) for value in played.returns], self.side_of_player(played.job, 0)
            )
            for played in ordered
        )
        return PairResult(job.pair, pair_score(scores), scores, ordered)


def num_distinct(digests: Iterable[bytes | str | int]) -> int:
    """Return how many different games there are among ``digests``.

    Deterministic players on few deals repeat themselves: fifty copies of a game are one game.
    """
    return len(set(digests))


# --- statistics of pairs --------------------------------------------------------------------------


class Interval(NamedTuple):
    """A mean score and its two-sided 95 % interval, all in [0, 1]."""

    mean: float
    low: float
    high: float


def interval(pair_scores: ArrayLike) -> Interval:
    """Return the mean of ``pair_scores`` ([P], each in [0, 1]) with its two-sided 95 % interval.

    Wilson's score interval (Wilson, Probable Inference, JASA 22, 1927), with two changes. A pair
    score varies less than a coin of the same mean: its variance is f m (1 - m) with f <= 1, so P
    pairs count like P / f coins. f is estimated from the pairs together with two virtual ones that
    score 0 and 1, so the interval has a width even when all pairs agree. And the quantile is
    Student's with P - 1 degrees of freedom. Raises ValueError for no pairs or scores out of range.
    """
    scores = _checked(pair_scores)
    count, mean = len(scores), float(scores.mean())
    padded = np.concatenate((scores, [0.0, 1.0]))
    centre = float(padded.mean())
    factor = float(padded.var(ddof=1)) / (centre * (1.0 - centre))
    # Solve (mean - m)^2 = z2 m (1 - m) for m.
    z2 = student_quantile(max(1, count - 1)) ** 2 * factor / count
    middle = (mean + z2 / 2.0) / (1.0 + z2)
    half = math.sqrt(max(0.0, z2 * mean * (1.0 - mean) + z2 * z2 / 4.0)) / (1.0 + z2)
    # Rounding must not push a bound beyond the mean that it belongs to.
    low = min(mean, max(0.0, middle - half))
    return Interval(mean, low, max(mean, min(1.0, middle + half)))


def student_quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t with ``degrees`` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1.0 + CONFIDENCE) / 2.0))


def within_pair_correlation(scores: ArrayLike) -> float | None:
    """Return the intraclass correlation of player 0's scores within pairs, in [-1, 1].

    ``scores`` is [P, R], by pair and replay. Fisher, Statistical Methods for Research Workers
    (1925), section 38: with R games to a block the variance of a block's mean is
    s^2 (1 + (R - 1) r) / R. Negative: the cards decide and exchanging them helps. Positive: the
    players decide. None where nothing varies or there is one pair alone.
    """
    table = np.asarray(scores, np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(
            f"scores of shape {table.shape}: needed is [pairs, replays of two or more]"
        )
    if len(table) < 2:
        return None
    spread = float(table.var())
    if spread == 0.0:
        return None
    size = table.shape[1]
    between = float(table.mean(axis=1).var())
    return (size * between / spread - 1.0) / (size - 1)


def verdict(names: tuple[str, str], result: Interval) -> str:
    """Return in words who won: player 0's interval against one half."""
    if result.low > SPLIT:
        return f"{names[0]} is stronger"
    if result.high < SPLIT:
        return f"{names[1]} is stronger"
    return "no clear winner"


def _checked(pair_scores: ArrayLike) -> NDArray[np.float64]:
    scores = np.asarray(pair_scores, np.float64)
    if scores.ndim != 1 or len(scores) == 0:
        raise ValueError(f"pair scores of shape {scores.shape}: needed is at least one pair")
    if not np.all((scores >= 0.0) & (scores <= 1.0)):
        raise ValueError("pair scores must lie in 0 .. 1")
    return scores
