"""The gate: a candidate meets the champion in pairs until a sequential test decides.

Room: league. May import: engine, league. A pure state machine: no clock, no store, no games of its
own. Whoever plays asks for pairs (``issue``) and hands in scores (``report``) in any order.

The test reads pairs strictly in the order of issue; results that are early wait. Short games end
first, and a test that read them first would be biased towards whoever wins quickly. For the same
reason what comes after the decision is discarded. Candidate and champion are fixed for a gate.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from league import sprt
from league.config import GateConfig
from league.duplicate import PAIR_SCORES, SPLIT, PairJob, pair_jobs
from league.messages import GateOutcome, GateStatus

SNAPSHOT_SCHEMA = 1
"""Raised whenever the meaning of a snapshot changes; others are refused by name."""


MAX_UNDER_WAY = 1 << 17
"""Pairs issued and not read: as many as are played side by side, and early ones behind them."""


class GateError(ValueError):
    """A report or a snapshot that does not belong to this gate; names what is wrong."""


class GateSnapshot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of a gate. Pairs that were being played are not in it: they are issued again."""

    schema_version: int = SNAPSHOT_SCHEMA
    config: GateConfig
    candidate: int
    champion: int
    seed: int
    num_issued: int
    num_read: int
    wins: int
    losses: int
    score_sum: float
    waiting: dict[int, float]
    """Scores of pairs that ended before an earlier one did."""


def sprt_of(config: GateConfig) -> sprt.Sprt:
    """Return the test that ``config`` describes. Raises ValueError when it is none."""
    test = sprt.Sprt(
        p0=config.p0,
        p1=config.p1,
        alpha=config.alpha,
        beta=config.beta,
        max_decided=config.max_decided,
        max_pairs=config.max_pairs,
    )
    sprt.validate(test)
    return test


class Gatekeeper:
    """One gate, from its first pair to its outcome. Scores are the candidate's, in [0, 1]."""

    def __init__(self, config: GateConfig, *, candidate: int, champion: int, seed: int) -> None:
        """Start a gate; all its deals follow from ``seed``. Raises ValueError for a bad config."""
        self.config = config
        self.candidate = candidate
        self.champion = champion
        self.seed = seed
        self._test = sprt_of(config)
        self._num_issued = 0
        self._again: list[int] = []
        """Lost pairs to be issued again, ascending."""
        self._waiting: dict[int, float] = {}
        self._num_read = 0
        self._wins = 0
        self._losses = 0
        self._score_sum = 0.0
        self._end = sprt.RUNNING

    # --- playing ------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether the gate has its outcome."""
        return self._end != sprt.RUNNING

    @property
    def num_outstanding(self) -> int:
        """Pairs handed out whose score has not come in and is still wanted."""
        if self.is_over:
            return 0
        return self._num_issued - self._num_read - len(self._waiting) - len(self._again)

    def issue(self, count: int) -> list[PairJob]:
        """Hand out up to ``count`` pairs, lost ones first, else in order; none after the end.

        No pair beyond the configured maximum is ever handed out.
        """
        if self.is_over or count <= 0:
            return []
        again, self._again = self._again[:count], self._again[count:]
        first = self._num_issued
        self._num_issued = min(first + count - len(again), self.config.max_pairs)
        return pair_jobs(self.seed, (*again, *range(first, self._num_issued)))

    def report(self, index: int, score: float) -> None:
        """Hand in the candidate's score of pair ``index``, in any order.

        A second score of the same pair (it was issued again) and one that comes after the end are
        discarded. Raises GateError for a pair that was never issued, or a score no pair can have.
        """
        if not 0 <= index < self._num_issued:
            raise GateError(f"pair {index}: issued are pairs 0 to {self._num_issued - 1}")
        if score not in PAIR_SCORES:
            raise GateError(f"pair {index} scores {score}: allowed are {PAIR_SCORES}")
        if self.is_over or index < self._num_read or index in self._waiting:
            return
        if index in self._again:
            self._again.remove(index)
        self._waiting[index] = score
        while not self.is_over and self._num_read in self._waiting:
            self._read(self._waiting.pop(self._num_read))
        if self.is_over:
            self._waiting.clear()
            self._again.clear()

    def requeue(self, indices: Iterable[int]) -> None:
        """Issue pairs again whose player was lost. Those that were reported are ignored."""
        again = set(self._again)
        for index in indices:
            if not 0 <= index < self._num_issued:
                raise GateError(f"pair {index}: issued are pairs 0 to {self._num_issued - 1}")
            if index >= self._num_read and index not in self._waiting and not self.is_over:
                again.add(index)
        self._again = sorted(again)

    def _read(self, score: float) -> None:
        """Feed the test the next pair in order of issue."""
        self._num_read += 1
        self._score_sum += score
        if score > SPLIT:
            self._wins += 1
        elif score < SPLIT:
            self._losses += 1
        self._end = sprt.decide(self._test, self._wins, self._losses, self._num_read)

    # --- reporting ----------------------------------------------------------------------------

    def status(self) -> GateStatus:
        """Return where the gate stands: only what the test has read."""
        return GateStatus(
            candidate=self.candidate,
            champion=self.champion,
            num_pairs=self._num_read,
            num_decided=self._wins + self._losses,
            wins=self._wins,
            llr=sprt.llr(self._test, self._wins, self._losses),
        )

    def outcome(self) -> GateOutcome | None:
        """Return how the gate ended; None while it runs."""
        if not self.is_over:
            return None
        return GateOutcome(
            candidate=self.candidate,
            champion=self.champion,
            outcome=self._end,
            num_pairs=self._num_read,
            num_decided=self._wins + self._losses,
            wins=self._wins,
            llr=sprt.llr(self._test, self._wins, self._losses),
            score=self._score_sum / self._num_read,
        )

    # --- surviving ----------------------------------------------------------------------------

    def snapshot(self) -> GateSnapshot:
        """Return all of the gate; ``restore`` goes on from it."""
        return GateSnapshot(
            config=self.config,
            candidate=self.candidate,
            champion=self.champion,
            seed=self.seed,
            num_issued=self._num_issued,
            num_read=self._num_read,
            wins=self._wins,
            losses=self._losses,
            score_sum=self._score_sum,
            waiting=dict(self._waiting),
        )

    @classmethod
    def restore(cls, snapshot: GateSnapshot) -> Gatekeeper:
        """Return the gate of ``snapshot``; pairs that were being played are issued again.

        Raises GateError when the numbers of the snapshot contradict one another.
        """
        if snapshot.schema_version != SNAPSHOT_SCHEMA:
            raise GateError(
                f"gate snapshot schema {snapshot.schema_version}: this program reads "
                f"{SNAPSHOT_SCHEMA}"
            )
        gate = cls(
            snapshot.config,
            candidate=snapshot.candidate,
            champion=snapshot.champion,
            seed=snapshot.seed,
        )
        read, issued, waiting = snapshot.num_read, snapshot.num_issued, snapshot.waiting
        decided = snapshot.wins + snapshot.losses
        if not (
            0 <= snapshot.wins <= decided <= read <= issued <= snapshot.config.max_pairs
            and issued - read <= MAX_UNDER_WAY
            and all(read < index < issued for index in waiting)
            and set(waiting.values()) <= set(PAIR_SCORES)
        ):
            raise GateError(
                f"gate snapshot of {issued} issued pairs, {read} read, {decided} decided, "
                f"{len(waiting)} waiting: these contradict one another"
            )
        gate._num_issued, gate._num_read = issued, read
        gate._wins, gate._losses = snapshot.wins, snapshot.losses
        gate._score_sum = snapshot.score_sum
        gate._waiting = dict(waiting)
        if read:
            gate._end = sprt.decide(gate._test, snapshot.wins, snapshot.losses, read)
        if not gate.is_over:
            gate._again = [index for index in range(read, issued) if index not in waiting]
        return gate
