"""Plays evaluations and rating games, a block at a time, for the arena's worker.

Room: actors. May import: engine, league.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from actors.pairs import PairTable
from actors.seating import Seating
from engine.players import Player
from league.blocks import PairBlock, evaluation_of, figures_of
from league.config import EvaluationConfig, RatingConfig
from league.duplicate import PairResult
from league.messages import ANCHOR, GateReply, GateRequest, LeagueState
from league.models import ModelError
from league.players import parse_player
from league.ratings import rate
from league.schedule import (
    Evaluations,
    EvaluationSnapshot,
    EvaluationTask,
    RatingGames,
    RatingSnapshot,
    is_scheduled,
)
from league.stores import ModelsUnreachable

EVALUATION, RATING = "evaluation", "rating"


class _Playing(NamedTuple):
    """A block and what plays it."""

    block: PairBlock
    table: PairTable


class Measuring:
    """What the arena plays beside the gate.

    A block whose models are not in the store any more is given up; one whose store is away waits.
    """

    def __init__(
        self,
        seating: Seating,
        rating: RatingConfig,
        evaluation: EvaluationConfig,
        seed: int,
        ratings: RatingSnapshot | None,
        evaluations: EvaluationSnapshot | None,
    ) -> None:
        """Go on from the snapshots. Raises PlayerError for an opponent that is no player."""
        for opponent in evaluation.opponents:
            parse_player(opponent)
        self._seating = seating
        self._rating, self._evaluation = rating, evaluation
        self._notes: list[str] = []
        self._evaluations = Evaluations(evaluation, seed, evaluations)
        self._saved_ratings = ratings
        self._ratings: RatingGames | None = None
        if self.is_on(RATING):
            basis = seating.basis(rating.simulations)
            self._ratings = RatingGames(rating, seed, basis, ratings)
            self._notes += [self._ratings.note] if self._ratings.note else []
        self._playing: dict[str, _Playing] = {}
        self._blocked: set[str] = set()
        """What cannot begin in this call: asking the store before every ply would cost too much."""
        self._is_new = True

    def is_on(self, name: str) -> bool:
        """Return whether the configuration asks for it."""
        if name == RATING:
            return self._rating.min_share > 0
        return is_scheduled(self._evaluation)

    def look(self, request: GateRequest) -> None:
        """A call begins: queue the evaluations that are due; what could not begin may try again."""
        self._blocked.clear()
        if self.is_on(EVALUATION):
            self._evaluations.look(request.league, request.elapsed_s)

    def versions(self) -> tuple[int, ...]:
        """Return the versions whose models are still needed."""
        rated = self._ratings.versions if self._ratings else set()
        return tuple(sorted(self._evaluations.versions | rated))

    def take_notes(self) -> list[str]:
        """Return the events since the last call."""
        taken, self._notes = self._notes, []
        return taken

    # --- blocks -----------------------------------------------------------------------------------

    def runnable(self, league: LeagueState) -> list[str]:
        """Return what can be played now; begins the blocks that are next."""
        begin: dict[str, Callable[[LeagueState], bool]] = {
            EVALUATION: self._begin_evaluation,
            RATING: self._begin_rating,
        }
        found = []
        for name, begins in begin.items():
            if not self.is_on(name) or name in self._blocked:
                continue
            if name in self._playing or self._tried(begins, league):
                found.append(name)
            else:
                self._blocked.add(name)
        return found

    @staticmethod
    def _tried(begins: Callable[[LeagueState], bool], league: LeagueState) -> bool:
        try:
            return begins(league)
        except ModelsUnreachable:
            return False

    def table(self, name: str) -> PairTable:
        """Return what plays the block that is under way."""
        return self._playing[name].table

    def _begin_evaluation(self, league: LeagueState) -> bool:
        """Seat the next evaluation whose players are there; return whether there is one."""
        while (found := self._evaluations.current()) is not None:
            task, block = found
            try:
                if self._seating.has({task.version}):
                    self._seat(EVALUATION, block, self._players_of(task), self._evaluation.games)
                    return True
                reason = f"version {task.version} is not kept any more"
            except ModelError as error:
                reason = str(error)
            self._notes.append(f"evaluation against {task.opponent} given up: {reason}")
            self._evaluations.drop()
        return False

    def _players_of(self, task: EvaluationTask) -> list[Player]:
        games = self._evaluation.games
        return [
            self._seating.version(task.version, task.simulations, games, infers=True),
            self._seating.opponent(task.opponent, games),
        ]

    def _begin_rating(self, league: LeagueState) -> bool:
        """Seat the next rating block; return whether its players are there."""
        assert self._ratings is not None
        found = self._ratings.current(league)
        if found is None:
            return False
        if not self._seating.has({found.first, found.second} - {ANCHOR}):
            self._ratings.drop()
            return False
        games = 2 * self._rating.block_pairs
        players = [
            self._seating.rated(player, self._rating.simulations, games)
            for player in (found.first, found.second)
        ]
        self._seat(RATING, found.block, players, games)
        return True

    def _seat(self, name: str, block: PairBlock, players: list[Player], games: int) -> None:
        def report(pair: PairResult) -> None:
            block.report(pair.pair, figures_of(pair))

        table = self._seating.table(players, games, block.issue, report)
        self._playing[name] = _Playing(block, table)

    def collect(self, league: LeagueState, reply: GateReply) -> None:
        """Put what ended blocks found into ``reply``."""
        for name, playing in list(self._playing.items()):
            if not playing.block.is_over:
                continue
            del self._playing[name]
            if name == EVALUATION:
                self._end_evaluation(reply)
            elif self._ratings is not None:
                self._ratings.finish(league)
                self._is_new = True
        if self._is_new and self._ratings is not None:
            self._is_new = False
            reply.ratings = rate(self._ratings.table).rated()

    def _end_evaluation(self, reply: GateReply) -> None:
        found = self._evaluations.current()
        assert found is not None
        task, block = found
        reply.evaluations.append(
            evaluation_of(
                self._seating.spec,
                block,
                version=task.version,
                is_champion=task.is_champion,
                opponent=task.opponent,
                simulations=task.simulations,
            )
        )
        self._evaluations.finish()

    # --- surviving --------------------------------------------------------------------------------

    def ratings_snapshot(self) -> RatingSnapshot | None:
        """Return all rating results; those of an earlier life while rating is switched off."""
        return self._ratings.snapshot() if self._ratings else self._saved_ratings

    def evaluations_snapshot(self) -> EvaluationSnapshot:
        """Return the schedule of evaluations."""
        return self._evaluations.snapshot()
