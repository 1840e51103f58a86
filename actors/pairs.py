"""Tables at which pairs are played: jobs in, finished pairs out, a ply of every game at a time.

Room: actors. May import: engine, league. Nothing that is played here is training data.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from engine.game import GameSpec
from engine.play import GameJob, GameResult, Table
from engine.players import Player
from league.duplicate import PairCollector, PairJob, PairResult, block_size, game_jobs


class _Queue(Iterator[GameJob]):
    """Jobs that are still to be seated; may be refilled after it ran dry."""

    def __init__(self) -> None:
        self.jobs: deque[GameJob] = deque()

    def __next__(self) -> GameJob:
        if not self.jobs:
            raise StopIteration
        return self.jobs.popleft()


class MatchWorker:
    """Plays jobs at one table, a ply of every game at a time, for as long as it is stepped."""

    def __init__(self, spec: GameSpec, game: Any, players: Sequence[Player], *, games: int) -> None:
        """Seat up to ``games`` games at once; jobs name ``players`` by index."""
        self._queue = _Queue()
        self._games = games
        self._table = Table(spec, game, players, self._queue, num_slots=games)

    def submit(self, jobs: Iterable[GameJob]) -> None:
        """Queue ``jobs``; they are begun in this order as seats become free."""
        self._queue.jobs.extend(jobs)

    @property
    def num_unfinished(self) -> int:
        """Games queued or under way."""
        return len(self._queue.jobs) + self._table.num_active

    @property
    def num_free(self) -> int:
        """Games that could be begun at once if their jobs were submitted."""
        return max(0, self._games - self.num_unfinished)

    def step(self) -> list[GameResult]:
        """Begin what fits, play one ply in every game, and return the games that ended."""
        return self._table.step()


class Played(NamedTuple):
    """What was finished."""

    num_pairs: int
    num_games: int
    num_plies: int
    """Of the finished games."""


class PairTable:
    """Plays the pairs of one match between two players."""

    def __init__(
        self,
        spec: GameSpec,
        game: Any,
        players: Sequence[Player],
        *,
        games: int,
        issue: Callable[[int], list[PairJob]],
        report: Callable[[PairResult], None],
    ) -> None:
        """Seat up to ``games`` games; ``issue`` hands out up to so many pairs that are to be played
        and ``report`` takes those that ended."""
        self._game, self._size = game, block_size(game)
        self._issue, self._report = issue, report
        self._match = MatchWorker(spec, game, players, games=games)
        self._pairs = PairCollector(game)

    def ply(self) -> Played:
        """Keep the table full and play one ply in every game."""
        self._submit(-(-self._match.num_free // self._size))
        return self._step()

    def play(self, count: int, is_over: Callable[[], bool]) -> Played:
        """Play ``count`` pairs to their end; what is left when ``is_over`` says so is dropped."""
        self._submit(count)
        played = Played(0, 0, 0)
        while self._match.num_unfinished and not is_over():
            more = self._step()
            played = Played(*(a + b for a, b in zip(played, more, strict=True)))
        return played

    def _submit(self, count: int) -> None:
        for job in self._issue(count):
            self._match.submit(game_jobs(self._game, job))

    def _step(self) -> Played:
        results = self._match.step()
        num_pairs = 0
        for result in results:
            pair = self._pairs.add(result)
            if pair is not None:
                num_pairs += 1
                self._report(pair)
        return Played(num_pairs, len(results), sum(result.plies for result in results))
