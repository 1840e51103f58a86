"""What the arena plays beside the gate, and how its time is shared: pure state machines.

Room: league. May import: engine.rng, league. No clock, no store, no games of their own; each has a
snapshot from which it goes on as if nothing had happened.

    Evaluations   champion and newest version against yardsticks, when they are due
    RatingGames   pairs between pool, newest version and anchor, the most informative ones first
    FairShares    who plays next, so that nobody falls behind its share
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from engine.rng import make_rng
from league.blocks import BlockSnapshot, PairBlock, tally_of
from league.config import EvaluationConfig, RatingConfig
from league.messages import ANCHOR, LeagueState, RatingTable
from league.ratings import (
    add_tally,
    keep_versions,
    most_informative,
    tally_between,
)

_EVALUATION_STREAM = 0x4556414C
_RATING_STREAM = 0x52415445


# --- evaluations ----------------------------------------------------------------------------------


class EvaluationTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One block that is to be played."""

    version: int
    is_champion: bool
    opponent: str
    simulations: int

    @property
    def key(self) -> tuple[int, str, int]:
        """What is measured: each once."""
        return self.version, self.opponent, self.simulations


class EvaluationSnapshot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of the schedule."""

    tasks: tuple[EvaluationTask, ...]
    """Still to be played; the first one may be under way."""
    block: BlockSnapshot | None
    evaluated: tuple[tuple[int, str, int], ...]
    last_version: int
    """Newest version when evaluations were due last."""
    last_elapsed_s: float


class Evaluations:
    """The schedule of evaluations.

    A block that is under way is played to its end. Behind it come the opponents in the order of
    the configuration: a slow one does not hold up the curve of a quick one, it is skipped until its
    own blocks are played.
    """

    def __init__(
        self, config: EvaluationConfig, seed: int, snapshot: EvaluationSnapshot | None = None
    ) -> None:
        """Go on from ``snapshot``; all deals follow from ``seed``."""
        self._config, self._seed = config, seed
        self._tasks: list[EvaluationTask] = []
        self._block: PairBlock | None = None
        self._evaluated: list[tuple[int, str, int]] = []
        self._last_version, self._last_elapsed_s = 0, 0.0
        if snapshot is not None:
            self._tasks = list(snapshot.tasks)
            self._block = PairBlock.restore(snapshot.block) if snapshot.block else None
            self._evaluated = list(snapshot.evaluated)
            self._last_version = snapshot.last_version
            self._last_elapsed_s = snapshot.last_elapsed_s

    @property
    def is_on(self) -> bool:
        """Whether there is a schedule at all."""
        return is_scheduled(self._config)

    @property
    def versions(self) -> set[int]:
        """Versions that are still to be measured."""
        return {task.version for task in self._tasks}

    def look(self, league: LeagueState, elapsed_s: float) -> None:
        """Queue what is due now; ``elapsed_s`` is the run's training time."""
        config = self._config
        by_versions = 0 < config.every_versions <= league.newest - self._last_version
        by_time = 0 < 60.0 * config.every_minutes <= elapsed_s - self._last_elapsed_s
        if league.champion < 0 or not (by_versions or by_time):
            return
        self._last_version, self._last_elapsed_s = league.newest, elapsed_s
        # Only the champion and what is newer than it can be asked for again.
        self._evaluated = [key for key in self._evaluated if key[0] >= league.champion]
        under_way = self._tasks[:1] if self._block is not None else []
        others = self._tasks[len(under_way) :]
        queue: list[EvaluationTask] = []
        for opponent in config.opponents:
            waiting = [task for task in others if task.opponent == opponent]
            busy = waiting or any(task.opponent == opponent for task in under_way)
            queue += waiting if busy else self._tasks_against(opponent, league)
        queue += [task for task in others if task.opponent not in config.opponents]
        self._tasks = under_way + queue

    def _tasks_against(self, opponent: str, league: LeagueState) -> list[EvaluationTask]:
        tasks = [
            EvaluationTask(
                version=version,
                is_champion=version == league.champion,
                opponent=opponent,
                simulations=simulations,
            )
            for simulations in self._config.simulations
            for version in dict.fromkeys((league.champion, league.newest))
        ]
        return [task for task in tasks if task.key not in self._evaluated]

    def current(self) -> tuple[EvaluationTask, PairBlock] | None:
        """Return the block that is to be played, or None when nothing is due."""
        if not self._tasks:
            return None
        task = self._tasks[0]
        if self._block is None:
            seed = _seed(self._seed, _EVALUATION_STREAM, task.version, _number(task.opponent))
            self._block = PairBlock(_seed(seed, task.simulations), 0, self._config.num_games // 2)
        return task, self._block

    def finish(self) -> None:
        """Take the finished block out of the queue; it is not played again."""
        self._evaluated.append(self._tasks[0].key)
        self.drop()

    def drop(self) -> None:
        """Take the first block out of the queue: it cannot be played."""
        self._tasks, self._block = self._tasks[1:], None

    def snapshot(self) -> EvaluationSnapshot:
        """Return all of the schedule."""
        return EvaluationSnapshot(
            tasks=tuple(self._tasks),
            block=self._block.snapshot() if self._block else None,
            evaluated=tuple(self._evaluated),
            last_version=self._last_version,
            last_elapsed_s=self._last_elapsed_s,
        )


def is_scheduled(config: EvaluationConfig) -> bool:
    """Return whether ``config`` asks for evaluations."""
    return config.every_versions > 0 or config.every_minutes > 0


# --- rating games ---------------------------------------------------------------------------------


class RatingSnapshot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All results, and the block under way."""

    table: RatingTable
    contender: int
    """Version that is no champion and is rated now; -1 for none."""
    players: tuple[int, int] | None
    block: BlockSnapshot | None


class RatingBlock(NamedTuple):
    """Pairs between ``first`` (player 0) and ``second``; versions or ANCHOR, ascending."""

    first: int
    second: int
    block: PairBlock


class RatingGames:
    """Which rating pairs are played, and what came of them."""

    def __init__(
        self, config: RatingConfig, seed: int, basis: str, snapshot: RatingSnapshot | None = None
    ) -> None:
        """Go on from ``snapshot``, or begin anew when its results have another ``basis``.

        Then ``note`` says so.
        """
        self._config, self._seed = config, seed
        self.table = RatingTable(basis=basis)
        self.note = ""
        self._contender = -1
        self._block: RatingBlock | None = None
        if snapshot is None:
            return
        if snapshot.table.basis != basis:
            self.note = (
                f"ratings begin anew: results of {snapshot.table.basis!r} are not mixed with "
                f"those of {basis!r}"
            )
            return
        self.table, self._contender = snapshot.table, snapshot.contender
        if snapshot.players is not None and snapshot.block is not None:
            self._block = RatingBlock(*snapshot.players, PairBlock.restore(snapshot.block))

    @property
    def versions(self) -> set[int]:
        """Versions whose models are needed."""
        players = {self._contender}
        if self._block is not None:
            players |= {self._block.first, self._block.second}
        return players - {-1, ANCHOR}

    def current(self, league: LeagueState) -> RatingBlock | None:
        """Return the block that is to be played; None while there is no version."""
        if league.champion < 0:
            return None
        if self._block is None:
            chosen = most_informative(self.table, self._players(league), league.champion)
            if chosen is None:
                return None
            first, second = chosen
            seed = _seed(self._seed, _RATING_STREAM, first, second)
            played = sum(tally_between(self.table, first, second).scores)
            block = PairBlock(seed, played, self._config.block_pairs)
            self._block = RatingBlock(first, second, block)
        return self._block

    def _players(self, league: LeagueState) -> list[int]:
        """Return anchor, pool and one version that is not of it; keep that for its pairs."""
        pool = {*league.pool, league.champion}
        if self._contender in pool or self._num_pairs(self._contender) >= self._config.newest_pairs:
            self._contender = -1
        newest = league.newest
        if self._contender < 0 and newest not in pool:
            rated = self._num_pairs(newest) >= self._config.newest_pairs
            self._contender = -1 if rated else newest
        return sorted({ANCHOR, *pool, self._contender})

    def _num_pairs(self, version: int) -> int:
        return sum(
            sum(tally.scores)
            for tally in self.table.tallies
            if version in (tally.first, tally.second) and version != ANCHOR
        )

    def finish(self, league: LeagueState) -> None:
        """Add the finished block to the results."""
        assert self._block is not None
        first, second, block = self._block
        table = add_tally(self.table, tally_of(first, second, block))
        keep = {*league.pool, league.champion, first, second}
        self.table = keep_versions(table, keep, self._config.max_versions)
        self._block = None

    def drop(self) -> None:
        """Give the block up: a model of it is gone."""
        self._block, self._contender = None, -1

    def snapshot(self) -> RatingSnapshot:
        """Return all results and the block under way."""
        block = self._block
        return RatingSnapshot(
            table=self.table,
            contender=self._contender,
            players=(block.first, block.second) if block else None,
            block=block.block.snapshot() if block else None,
        )


# --- shares ---------------------------------------------------------------------------------------


class SharesSnapshot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where everybody stands."""

    passed: dict[str, float]
    active: tuple[str, ...]


class FairShares:
    """Stride scheduling (Waldspurger and Weihl, MIT/LCS/TM-528, 1995): costs in any one unit.

    Whoever has used least for its share is next. Shares of those that have nothing to do go to the
    others in proportion, and are not owed afterwards.
    """

    def __init__(self, shares: Mapping[str, float], snapshot: SharesSnapshot | None = None) -> None:
        """``shares`` are positive; names in their order win ties."""
        self._shares = dict(shares)
        self._passed = dict.fromkeys(self._shares, 0.0)
        self._active: tuple[str, ...] = ()
        if snapshot is not None:
            self._passed |= {k: v for k, v in snapshot.passed.items() if k in self._shares}
            self._active = tuple(name for name in snapshot.active if name in self._shares)

    def choose(self, runnable: Sequence[str]) -> str | None:
        """Return who is next among ``runnable``; None when that is empty."""
        if not runnable:
            self._active = ()
            return None
        going_on = [self._passed[name] for name in runnable if name in self._active]
        floor = min(going_on, default=max(self._passed[name] for name in runnable))
        for name in runnable:
            if name not in self._active:
                self._passed[name] = max(self._passed[name], floor)
        self._active = tuple(runnable)
        order = list(self._shares)
        return min(runnable, key=lambda name: (self._passed[name], order.index(name)))

    def charge(self, name: str, cost: float) -> None:
        """Count what ``name`` has used."""
        self._passed[name] += cost / self._shares[name]

    def snapshot(self) -> SharesSnapshot:
        """Return where everybody stands."""
        return SharesSnapshot(passed=dict(self._passed), active=self._active)


def _seed(*parts: int) -> int:
    return int(make_rng(*parts)[0])


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
