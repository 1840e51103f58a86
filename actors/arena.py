"""Plays what is measured: pairs for the gate, and whatever jobs a match or a rating asks for.

Room: actors. May import: engine, league. Nothing that is played here is training data.

The owner calls ``GateWorker.step`` again and again; each call is short and leaves its games where
they are. Cards and randomness of a pair follow from the gate's seed and the pair's number alone,
so it does not matter in which call, or in which life of the process, a pair is played.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import psutil

from actors.config import SearchConfig
from engine import rules
from engine.game import Encoder, GameSpec
from engine.play import GameJob, GameResult, Table
from engine.players import Player
from engine.rng import make_rng
from engine.search.ismcts import search_options
from league.config import GateConfig
from league.duplicate import PairCollector, block_size, game_jobs
from league.evaluator import read_metadata
from league.gatekeeper import Gatekeeper, GateSnapshot
from league.messages import GateReply, GateRequest, GateStatus, LeagueState
from league.models import ModelError, ModelStore
from league.players import PlayContext, model_player
from league.stores import ModelsUnreachable

SNAPSHOT_SCHEMA = 1
"""Raised whenever the meaning of a worker's snapshot changes; others are refused by name."""
_GATE_STREAM = 0x47415445


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


class WorkerSnapshot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a gate worker is between two calls."""

    schema_version: int = SNAPSHOT_SCHEMA
    last_candidate: int
    """Newest version that ever began a gate; no older one gets another."""
    gate: GateSnapshot | None
    """The gate under way."""


class _Gate(NamedTuple):
    """A gate and what plays it."""

    keeper: Gatekeeper
    match: MatchWorker
    pairs: PairCollector


class GateWorker:
    """Lets the newest version challenge the champion, one gate after the other.

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
            seed: All deals of all gates follow from it.
            epoch: This start of the worker; returned in every reply.
            snapshot: Bytes of ``snapshot()`` of an earlier life.
            clock: Seconds, monotonic.
            sleep: Waits for some seconds.

        Raises:
            ValueError: A game of more than two sides, a config that is no test, or a snapshot that
                is none or of another schema.
        """
        if int(rules.num_sides(game)) != 2:
            raise ValueError(
                f"{spec.name} has {int(rules.num_sides(game))} sides: gates need two sides"
            )
        Gatekeeper(config, candidate=1, champion=0, seed=0)  # checks the config
        self._config, self._seed, self._epoch = config, seed, epoch
        self._models, self._run_id = models, run_id
        self._encoder = encoder
        options = search_options(**msgspec.structs.asdict(search))
        self._context = PlayContext(spec, game, options, batch=config.games)
        self._clock, self._sleep = clock, sleep
        self._debt_s = 0.0
        self._gate: _Gate | None = None
        self._restored: Gatekeeper | None = None
        self._last_candidate = -1
        if snapshot is not None:
            saved = _decode_snapshot(snapshot)
            self._last_candidate = saved.last_candidate
            self._restored = Gatekeeper.restore(saved.gate) if saved.gate else None

    def snapshot(self) -> bytes:
        """Return everything that a gate needs to go on in another process (no models).

        Pairs that are being played are in it as issued; they are played again from their start.
        """
        keeper = self._gate.keeper if self._gate else self._restored
        return msgspec.json.encode(
            WorkerSnapshot(
                last_candidate=self._last_candidate,
                gate=keeper.snapshot() if keeper else None,
            )
        )

    def step(self, request: GateRequest) -> GateReply:
        """Play for a short while; see GateRequest for the bounds.

        With ``budget_s`` 0 whole pairs are played, ``max_pairs`` of them at the most, and none is
        left under way: what happens then depends on counters alone. A gate that ends is in this
        call's ``outcomes`` and in no other; the next one begins with the next call, which knows
        the league after it.

        Raises:
            ModelError: The candidate's or the champion's model is missing, damaged or foreign.
        """
        reply = GateReply(epoch=self._epoch, status=GateStatus())
        began = self._clock()
        if self._ready(request.league):
            if request.budget_s > 0:
                allowed_s = request.budget_s * request.share - self._debt_s
                self._play_until(began + allowed_s, request.max_pairs, reply)
            else:
                self._play_pairs(request.max_pairs, reply)
        self._end_gate(reply)
        reply.resident_bytes = psutil.Process().memory_info().rss
        if request.budget_s > 0:
            self._rest(began, request)
        return reply

    # --- which gate -------------------------------------------------------------------------------

    def _ready(self, league: LeagueState) -> bool:
        """Make a gate the one to play, if there is any; return whether there is."""
        try:
            if self._restored is not None:
                self._resume(league)
            if self._gate is not None and self._gate.keeper.champion != league.champion:
                self._gate = None
            if self._gate is None:
                self._challenge(league)
        except ModelsUnreachable:
            return False
        return self._gate is not None

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
        if keeper.champion == league.champion:
            held = self._models.versions()
            if keeper.candidate in held and keeper.champion in held:
                self._gate = self._seat(keeper)
        self._restored = None

    def _seat(self, keeper: Gatekeeper) -> _Gate:
        """Return ``keeper`` with a table at which candidate (0) and champion (1) play."""
        spec, game = self._context.spec, self._context.game
        players = [self._player(keeper, v) for v in (keeper.candidate, keeper.champion)]
        match = MatchWorker(spec, game, players, games=self._config.games)
        return _Gate(keeper, match, PairCollector(game))

    def _player(self, keeper: Gatekeeper, version: int) -> Player:
        model = self._models.get(version)
        metadata = read_metadata(model)
        if (metadata.run_id, metadata.version) != (self._run_id, version):
            raise ModelError(
                f"model {version} of run {self._run_id!r} says that it is version "
                f"{metadata.version} of run {metadata.run_id!r}"
            )
        if metadata.encoder != self._encoder.name:
            raise ModelError(
                f"model {version} has encoder {metadata.encoder}, not {self._encoder.name}"
            )
        return model_player(model, keeper.config.simulations, self._context)

    # --- playing ----------------------------------------------------------------------------------

    def _play_until(self, deadline: float, max_pairs: int, reply: GateReply) -> None:
        """Keep the table full until ``deadline`` or ``max_pairs`` whole pairs (0: no bound)."""
        gate = self._gate
        assert gate is not None
        size = block_size(self._context.game)
        num_pairs = 0
        while self._clock() < deadline and not gate.keeper.is_over:
            for job in gate.keeper.issue(-(-gate.match.num_free // size)):
                gate.match.submit(game_jobs(self._context.game, job))
            num_pairs += self._play_ply(gate, reply)
            if 0 < max_pairs <= num_pairs:
                return

    def _play_pairs(self, max_pairs: int, reply: GateReply) -> None:
        """Play ``max_pairs`` pairs to their end."""
        gate = self._gate
        assert gate is not None
        for job in gate.keeper.issue(max_pairs):
            gate.match.submit(game_jobs(self._context.game, job))
        while gate.match.num_unfinished and not gate.keeper.is_over:
            self._play_ply(gate, reply)

    def _play_ply(self, gate: _Gate, reply: GateReply) -> int:
        """Play one ply in every game; report whole pairs and return their number."""
        num_pairs = 0
        for result in gate.match.step():
            reply.num_games += 1
            reply.num_plies += result.plies
            pair = gate.pairs.add(result)
            if pair is not None:
                num_pairs += 1
                gate.keeper.report(pair.pair, pair.score)
        return num_pairs

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
    except msgspec.DecodeError as error:
        raise ValueError(f"gate snapshot of {len(data)} bytes: {error}") from error
    if snapshot.schema_version != SNAPSHOT_SCHEMA:
        raise ValueError(
            f"gate snapshot schema {snapshot.schema_version}: this program reads {SNAPSHOT_SCHEMA}"
        )
    return snapshot
