"""Plays what is measured: the pairs of the gate, rating pairs, and evaluations when they are due.

Room: actors. May import: engine, league. Nothing that is played here is training data.

The owner calls ``GateWorker.step`` again and again; each call is short and leaves its games where
they are. Cards and randomness of a pair follow from a seed and the pair's number alone, so it does
not matter in which call, or in which life of the process, a pair is played.

The gate comes first. Evaluations and ratings get what it leaves, and at least the shares of their
configuration, since a run in which one gate follows the other would never measure anything else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import psutil

from actors.config import SearchConfig
from actors.measuring import Measuring
from actors.pairs import PairTable, Played
from actors.seating import Seating
from engine import rules
from engine.game import Encoder, GameSpec
from engine.rng import make_rng
from league.config import EvaluationConfig, GateConfig, RatingConfig
from league.duplicate import PairResult
from league.gatekeeper import Gatekeeper, GateSnapshot
from league.messages import GateReply, GateRequest, GateStatus, LeagueState
from league.models import ModelStore
from league.schedule import EvaluationSnapshot, FairShares, RatingSnapshot, SharesSnapshot
from league.stores import ModelsUnreachable

SNAPSHOT_SCHEMA = 1
"""Raised whenever the meaning of a worker's snapshot changes; others are refused by name."""
GATE, EVALUATION, RATING = "gate", "evaluation", "rating"
NO_RATINGS = RatingConfig(min_share=0.0)
NO_EVALUATIONS = EvaluationConfig(every_versions=0, every_minutes=0.0)
_GATE_STREAM = 0x47415445


class WorkerSnapshot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a gate worker is between two calls."""

    schema_version: int = SNAPSHOT_SCHEMA
    last_candidate: int
    """Newest version that ever began a gate; no older one gets another."""
    gate: GateSnapshot | None
    """The gate under way."""
    ratings: RatingSnapshot | None = None
    """All rating results; None in runs that have none."""
    evaluations: EvaluationSnapshot | None = None
    shares: SharesSnapshot | None = None


class _Gate(NamedTuple):
    """A gate and what plays it."""

    keeper: Gatekeeper
    table: PairTable


class GateWorker:
    """Lets the newest version challenge the champion, one gate after the other, and measures.

    Not thread-safe; the host calls one method at a time. Candidate and champion are fixed for a
    gate. A gate whose champion is no longer the league's is dropped without an outcome: it can
    only come from a snapshot that is older than its own promotion.
    """

    def __init__(
        self,
        *,
        config: GateConfig,
        search: SearchConfig,
        spec: GameSpec,
        game: Any,
        encoder: Encoder,
        models: ModelStore,
        run_id: str,
        seed: int,
        epoch: int,
        rating: RatingConfig = NO_RATINGS,
        evaluation: EvaluationConfig = NO_EVALUATIONS,
        snapshot: bytes | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Go on from ``snapshot``, or idle until there is a candidate.

        Args:
            config: The gate's test, budget and number of games in lockstep.
            search: How both sides search.
            spec: The game's facts; ``game`` is the variant that is learned.
            game: Rule options.
            encoder: Encoder that the run's models use.
            models: Where the versions are.
            run_id: Models of another run are refused.
            seed: All deals of all gates, ratings and evaluations follow from it.
            epoch: This start of the worker; returned in every reply.
            rating: Rating games; by default none.
            evaluation: Scheduled evaluations; by default none.
            snapshot: Bytes of ``snapshot()`` of an earlier life.
            clock: Seconds, monotonic.
            sleep: Waits for some seconds.

        Raises:
            ValueError: A game of more than two sides, a config that is no test, an opponent that is
                no player, or a snapshot that is none or of another schema.
        """
        if int(rules.num_sides(game)) != 2:
            raise ValueError(
                f"{spec.name} has {int(rules.num_sides(game))} sides: gates need two sides"
            )
        Gatekeeper(config, candidate=1, champion=0, seed=0)  # checks the config
        self._config, self._seed, self._epoch = config, seed, epoch
        self._seating = Seating(spec, game, encoder, search, models, run_id)
        self._clock, self._sleep = clock, sleep
        self._debt_s = 0.0
        self._gate: _Gate | None = None
        saved = WorkerSnapshot(last_candidate=-1, gate=None)
        if snapshot is not None:
            saved = _decode_snapshot(snapshot)
        self._last_candidate = saved.last_candidate
        self._restored = Gatekeeper.restore(saved.gate) if saved.gate else None
        self._measuring = Measuring(
            self._seating, rating, evaluation, seed, saved.ratings, saved.evaluations
        )
        shares = {EVALUATION: evaluation.min_share, RATING: rating.min_share}
        beside = {name: shares[name] for name in shares if self._measuring.is_on(name)}
        self._shares = FairShares({GATE: 1.0 - sum(beside.values()), **beside}, saved.shares)

    def snapshot(self) -> bytes:
        """Return everything that is needed to go on in another process (no models).

        Pairs that are being played are in it as issued; they are played again from their start.
        """
        keeper = self._gate.keeper if self._gate else self._restored
        return msgspec.json.encode(
            WorkerSnapshot(
                last_candidate=self._last_candidate,
                gate=keeper.snapshot() if keeper else None,
                ratings=self._measuring.ratings_snapshot(),
                evaluations=self._measuring.evaluations_snapshot(),
                shares=self._shares.snapshot(),
            )
        )

    def step(self, request: GateRequest) -> GateReply:
        """Play for a short while; see GateRequest for the bounds.

        With ``budget_s`` 0 whole pairs are played, ``max_pairs`` of them at the most, and none is
        left under way: what happens then depends on counters alone. A gate or evaluation that ends
        is in this call's reply and in no other; the next gate begins with the next call, which
        knows the league after it.

        Raises:
            ModelError: The candidate's or the champion's model is missing, damaged or foreign.
        """
        reply = GateReply(epoch=self._epoch, status=GateStatus())
        began = self._clock()
        if request.final:
            self._make_way(request.league, reply)
        self._ready(request.league)
        self._measuring.look(request)
        if request.budget_s > 0:
            allowed_s = request.budget_s * request.share - self._debt_s
            self._play_until(began + allowed_s, request, reply)
        else:
            self._play_pairs(request, reply)
        self._end_gate(reply)
        reply.versions_in_use = self._measuring.versions()
        reply.notes += self._measuring.take_notes()
        reply.resident_bytes = psutil.Process().memory_info().rss
        if request.budget_s > 0:
            self._rest(began, request)
        return reply

    # --- which gate -------------------------------------------------------------------------------

    def _ready(self, league: LeagueState) -> None:
        """Make a gate the one to play, if there is any."""
        try:
            if self._restored is not None:
                self._resume(league)
            if self._gate is not None and self._gate.keeper.champion != league.champion:
                self._gate = None
            if self._gate is None:
                self._challenge(league)
        except ModelsUnreachable:
            return

    def _make_way(self, league: LeagueState, reply: GateReply) -> None:
        """Leave a gate without an outcome whose candidate is not the newest version."""
        for keeper in filter(None, (self._gate and self._gate.keeper, self._restored)):
            if keeper.candidate < league.newest and not keeper.is_over:
                reply.notes.append(
                    f"gate of version {keeper.candidate} gives way to version {league.newest}"
                )
                self._gate = self._restored = None

    def _challenge(self, league: LeagueState) -> None:
        """Begin the gate of the newest version, if it has had none and is no champion already."""
        candidate, champion = league.newest, league.champion
        if champion < 0 or candidate <= max(champion, self._last_candidate):
            return
        seed = int(make_rng(self._seed, _GATE_STREAM, candidate, champion)[0])
        keeper = Gatekeeper(self._config, candidate=candidate, champion=champion, seed=seed)
        self._gate = self._seat(keeper)
        self._last_candidate = candidate

    def _resume(self, league: LeagueState) -> None:
        """Go on with the gate of the snapshot, unless it is out of date or its models are gone."""
        keeper = self._restored
        assert keeper is not None
        if keeper.champion == league.champion and self._seating.has(
            {keeper.candidate, keeper.champion}
        ):
            self._gate = self._seat(keeper)
        self._restored = None

    def _seat(self, keeper: Gatekeeper) -> _Gate:
        """Return ``keeper`` with a table at which candidate (0) and champion (1) play."""
        games, simulations = self._config.games, keeper.config.simulations
        players = [
            self._seating.version(version, simulations, games)
            for version in (keeper.candidate, keeper.champion)
        ]

        def report(pair: PairResult) -> None:
            keeper.report(pair.pair, pair.score)

        return _Gate(keeper, self._seating.table(players, games, keeper.issue, report))

    # --- playing ----------------------------------------------------------------------------------

    def _runnable(self, request: GateRequest) -> list[str]:
        """Return what can be played now."""
        gate = self._gate is not None and not self._gate.keeper.is_over
        measured = [] if request.final else self._measuring.runnable(request.league)
        return ([GATE] if gate else []) + measured

    def _play_until(self, deadline: float, request: GateRequest, reply: GateReply) -> None:
        """Play until ``deadline`` or the call's number of whole pairs (0: no bound)."""
        num_pairs = 0
        while (at := self._clock()) < deadline:
            name = self._shares.choose(self._runnable(request))
            if name is None:
                return
            played = self._table(name).ply()
            self._count(name, played, request.league, reply)
            self._shares.charge(name, self._clock() - at)
            num_pairs += played.num_pairs
            if 0 < request.max_pairs <= num_pairs:
                return

    def _play_pairs(self, request: GateRequest, reply: GateReply) -> None:
        """Play the call's number of pairs to their end, shared out first."""
        runnable = self._runnable(request)
        shared = dict.fromkeys(runnable, 0)
        for _ in range(request.max_pairs):
            name = self._shares.choose(runnable)
            if name is not None:
                self._shares.charge(name, 1.0)
                shared[name] += 1
        for name, count in shared.items():
            if count:
                played = self._table(name).play(count, lambda name=name: self._is_over(name))  # type: ignore[misc]
                self._count(name, played, request.league, reply)

    def _table(self, name: str) -> PairTable:
        if name != GATE:
            return self._measuring.table(name)
        assert self._gate is not None
        return self._gate.table

    def _is_over(self, name: str) -> bool:
        return name == GATE and self._gate is not None and self._gate.keeper.is_over

    def _count(self, name: str, played: Played, league: LeagueState, reply: GateReply) -> None:
        """Put what was played into ``reply``, and what a block found if it ended."""
        reply.num_plies += played.num_plies
        if name == GATE:
            reply.num_games += played.num_games
        elif name == EVALUATION:
            reply.num_evaluation_games += played.num_games
        else:
            reply.num_rating_games += played.num_games
        self._measuring.collect(league, reply)

    def _end_gate(self, reply: GateReply) -> None:
        """Put the gate's standing, or its outcome if it is over, into ``reply``."""
        if self._gate is None:
            if self._restored is not None:  # its models are still needed
                reply.status = self._restored.status()
            return
        outcome = self._gate.keeper.outcome()
        if outcome is None:
            reply.status = self._gate.keeper.status()
            return
        reply.outcomes.append(outcome)
        self._gate = None

    def _rest(self, began: float, request: GateRequest) -> None:
        """Sleep the rest of the budget; what was computed beyond the share is owed later."""
        spent = self._clock() - began
        earned = max(spent, request.budget_s) * request.share
        self._debt_s = max(0.0, self._debt_s + spent - earned)
        if spent < request.budget_s:
            self._sleep(request.budget_s - spent)


def _decode_snapshot(data: bytes) -> WorkerSnapshot:
    try:
        snapshot = msgspec.json.decode(data, type=WorkerSnapshot)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"gate snapshot of {len(data)} bytes: {error}") from error
    if snapshot.schema_version != SNAPSHOT_SCHEMA:
        raise ValueError(
            f"gate snapshot schema {snapshot.schema_version}: this program reads {SNAPSHOT_SCHEMA}"
        )
    return snapshot
