"""A block: a fixed number of pairs between the same two players, counted when all are played.

Room: league. May import: engine, league. A pure state machine, as the gate is: no clock, no store,
no games of its own. Because a block counts as a whole, it does not matter which of its pairs ended
first, or how often the process that played them was replaced.
"""

from __future__ import annotations

from typing import Any

import msgspec

from engine.game import GameSpec
from engine.play import GameResult
from league.duplicate import PairJob, PairResult, interval, pair_jobs
from league.messages import EvaluationResult, PairTally

MAX_PAIRS = 1 << 17
"""No configured block is larger."""


class PairFigures(msgspec.Struct, frozen=True, kw_only=True):
    """A finished pair in numbers; ``own`` is player 0, ``other`` player 1."""

    score: float
    """Player 0's, in [0, 1]."""
    wins: int
    draws: int
    losses: int
    own: tuple[float, ...]
    """Means over the pair's games, in the order of ``figure_names``."""
    other: tuple[float, ...]


class BlockSnapshot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of a block; pairs that were being played are not in it and are issued again."""

    seed: int
    first: int
    count: int
    finished: dict[int, PairFigures]


class PairBlock:
    """Pairs ``first`` to ``first + count - 1`` of the match with ``seed``."""

    def __init__(self, seed: int, first: int, count: int) -> None:
        self.seed = seed
        self._first, self._count = first, count
        self._waiting = list(range(first, first + count))
        self._finished: dict[int, PairFigures] = {}

    @property
    def is_over(self) -> bool:
        """Whether all pairs are in."""
        return len(self._finished) == self._count

    def issue(self, count: int) -> list[PairJob]:
        """Hand out up to ``count`` pairs, in order."""
        chosen, self._waiting = self._waiting[:count], self._waiting[count:]
        return pair_jobs(self.seed, chosen)

    def report(self, index: int, figures: PairFigures) -> None:
        """Hand in a pair. Raises ValueError for one that is not of this block."""
        if not self._first <= index < self._first + self._count:
            raise ValueError(
                f"pair {index}: this block has {self._first} to {self._first + self._count - 1}"
            )
        self._finished[index] = figures

    def figures(self) -> list[PairFigures]:
        """Return the finished pairs in order of issue."""
        return [self._finished[index] for index in sorted(self._finished)]

    def snapshot(self) -> BlockSnapshot:
        """Return all of the block."""
        return BlockSnapshot(
            seed=self.seed, first=self._first, count=self._count, finished=dict(self._finished)
        )

    @classmethod
    def restore(cls, snapshot: BlockSnapshot) -> PairBlock:
        """Return the block of ``snapshot``. Raises ValueError for pairs that are not its own."""
        if not (0 < snapshot.count <= MAX_PAIRS and 0 <= snapshot.first < 1 << 48):
            raise ValueError(
                f"block of {snapshot.count} pairs from {snapshot.first}: allowed are up to "
                f"{MAX_PAIRS}"
            )
        block = cls(snapshot.seed, snapshot.first, snapshot.count)
        for index, figures in snapshot.finished.items():
            block.report(index, figures)
        block._waiting = [index for index in block._waiting if index not in snapshot.finished]
        return block


def figure_names(spec: GameSpec) -> tuple[str, ...]:
    """Return the names of a side's figures."""
    return (*spec.statistics, "return", "plies")


def figures_of(pair: PairResult) -> PairFigures:
    """Return a pair of a two-sided game in numbers; player 0 holds side r in replay r."""
    own, other = ([_side_figures(g, abs(p - g.job.replay)) for g in pair.games] for p in (0, 1))
    return PairFigures(
        score=pair.score,
        wins=sum(score == 1.0 for score in pair.game_scores),
        draws=sum(score == 0.5 for score in pair.game_scores),
        losses=sum(score == 0.0 for score in pair.game_scores),
        own=_means(own),
        other=_means(other),
    )


def _side_figures(game: GameResult, side: int) -> list[float]:
    shaped = float(game.reward_terms[side].sum())
    return [*game.statistics[side].tolist(), shaped, float(game.plies)]


def _means(rows: list[list[float]]) -> tuple[float, ...]:
    return tuple(sum(column) / len(rows) for column in zip(*rows, strict=True))


# --- what a block says ----------------------------------------------------------------------------


def tally_of(first: int, second: int, block: PairBlock) -> PairTally:
    """Return a finished block of rating games; ``first`` was player 0."""
    pairs = block.figures()
    scores = [0] * 5
    for pair in pairs:
        scores[round(4 * pair.score)] += 1
    return PairTally(
        first=first,
        second=second,
        scores=tuple(scores),
        wins=sum(pair.wins for pair in pairs),
        draws=sum(pair.draws for pair in pairs),
        losses=sum(pair.losses for pair in pairs),
    )


def evaluation_of(spec: GameSpec, block: PairBlock, **about: Any) -> EvaluationResult:
    """Return a finished block as an evaluation; ``about`` says of what."""
    pairs = block.figures()
    found = interval([pair.score for pair in pairs])
    names = figure_names(spec)
    wins, draws = sum(pair.wins for pair in pairs), sum(pair.draws for pair in pairs)
    losses = sum(pair.losses for pair in pairs)
    return EvaluationResult(
        games=wins + draws + losses,
        wins=wins,
        draws=draws,
        losses=losses,
        win_rate=found.mean,
        win_rate_low=found.low,
        win_rate_high=found.high,
        own=dict(zip(names, _means([list(pair.own) for pair in pairs]), strict=True)),
        other=dict(zip(names, _means([list(pair.other) for pair in pairs]), strict=True)),
        seed=block.seed,
        **about,
    )
