"""Self-play: ask the league for a matchup, play it in lockstep, write trajectories.

Room: actors. May import: engine, league, replay (its protocols, record and codec). Knows no Ray, no
Redis client, no torch: it is a plain class that somebody hosts and calls.

New model versions are taken between moves: a search keeps the model it began with, so the newest
model alternates between two evaluator slots, and pool members have slots of their own.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
import numpy as np
import psutil

from actors.arrays import copy_into, pack_arrays, unpack_arrays
from actors.config import SearchConfig, SelfPlayConfig
from actors.lockstep import (
    FINISHED,
    HAND,
    NEWEST,
    NUM_EXAMPLES,
    NUM_FULL,
    NUM_SIMULATIONS,
    NUM_VISITS,
    PLY,
    Games,
    MoveOptions,
    Newest,
    grown,
    new_games,
    new_searches,
    play_moves,
    room_left,
    start_games,
)
from actors.messages import MatchupResult, StepReply, StepRequest
from actors.model_slots import NEWEST_SLOTS, ModelSlots
from engine import rules
from engine.game import Encoder, GameSpec
from engine.jit import engine_hash
from engine.rng import make_rng, mix
from engine.search.ismcts import Search, search_options
from league.config import LeagueConfig
from league.evaluator import OnnxEvaluator
from league.matchmaking import Matchmaker, Matchup
from league.messages import LeagueState
from league.models import ModelStore
from replay.buffer import OutboxFull, TrajectoryWriter
from replay.codec import encode
from replay.trajectory import Header, Trajectory

SNAPSHOT_SCHEMA = 1
"""Raised whenever the meaning of a worker's snapshot changes; others are refused by name."""
_FIRST_CAPACITY = 192


class SelfPlayWorker:
    """Plays ``config.games`` games in lockstep. Not thread-safe."""

    def __init__(
        self,
        *,
        config: SelfPlayConfig,
        search: SearchConfig,
        league: LeagueConfig,
        spec: GameSpec,
        game: Any,
        encoder: Encoder,
        models: ModelStore,
        writer: TrajectoryWriter,
        run_id: str,
        node: str,
        slot: int,
        epoch: int,
        seed: int,
    ) -> None:
        if search.leaf_value == "root_seat" and config.off_turn_share == 0:
            raise ValueError(
                "search.leaf_value = root_seat with self_play.off_turn_share = 0: leaves would be "
                "valued from off-turn views that nothing is ever learned from; needed is a share "
                "above 0"
            )
        self._config, self._spec, self._game = config, spec, game
        self._writer, self._run_id = writer, run_id
        self._node, self._slot, self._epoch = node, slot, epoch
        # A replaced worker must not deal its predecessor's cards again: the epoch is in the seed.
        self._seed = make_rng(seed, slot, epoch)[0]
        self._rules = spec.describe(game)
        seats, sides = int(rules.num_seats(game)), int(rules.num_sides(game))
        self._seats, self._sides = seats, sides
        self._side_of = [int(rules.side_of(game, seat)) for seat in range(seats)]
        num_slots = NEWEST_SLOTS + league.pool_size + 1
        self._search = Search(
            spec,
            game,
            encoder,
            search_options(**msgspec.structs.asdict(search)),
            num_trees=config.games,
            max_simulations=max(config.full_simulations, config.fast_simulations),
            num_models=num_slots,
        )
        self._evaluator = OnnxEvaluator(spec, game, encoder, num_slots)
        self._slots = ModelSlots(self._evaluator, self._search, models, num_slots)
        self._league = league
        self._matchmaker = self._new_matchmaker()
        self._options = MoveOptions(
            full_share=config.full_share,
            full_simulations=config.full_simulations,
            fast_simulations=config.fast_simulations,
            noise_share=config.noise_share,
            temperature=config.temperature,
            off_turn_share=config.off_turn_share,
        )
        self._games: Games = new_games(spec, seats, sides, config.games, _FIRST_CAPACITY)
        self._searches = new_searches(spec, config.games)
        self._matchups: list[Matchup | None] = [None] * config.games
        self._search_slots = np.full(config.games, -1, np.int32)
        self._newest = Newest(0, -1)
        self._num_started = 0
        self._reply = self._new_reply()

    # --- one short call ---------------------------------------------------------------------------

    def step(self, request: StepRequest) -> StepReply:
        """Play for ``budget_s`` or ``max_evaluations``, deliver, and report."""
        self._reply = self._new_reply()
        accepted_before = self._writer.num_accepted
        began = time.perf_counter()
        evaluate_before = self._search.evaluate_s
        if not request.paused and request.league.newest >= 0:
            self._take_newest(request.league)
            self._play(request, began)
        reply = self._reply
        reply.evaluate_s = self._search.evaluate_s - evaluate_before
        reply.busy_s = time.perf_counter() - began
        idle_s = max(0.0, request.budget_s - reply.busy_s)
        self._writer.poll(idle_s if request.paused or not reply.num_evaluations else 0.0)
        if request.budget_s > 0 and self._config.share < 1:
            time.sleep(reply.busy_s * (1 / self._config.share - 1))
        reply.model_version = self._newest.version
        reply.outbox = self._writer.num_pending
        reply.num_accepted = self._writer.num_accepted - accepted_before
        reply.resident_bytes = psutil.Process().memory_info().rss
        return reply

    def _new_matchmaker(self) -> Matchmaker:
        return Matchmaker(self._league, self._seats, self._side_of, int(self._seed))

    def _new_reply(self) -> StepReply:
        return StepReply(epoch=self._epoch, node=self._node, slot=self._slot, model_version=-1)

    def _play(self, request: StepRequest, began: float) -> None:
        if self._num_started == 0:
            self._start(np.arange(self._config.games), request.league)
        reply = self._reply
        deadline = began + request.budget_s
        batches = 0
        while True:
            if 0 <= request.insert_budget <= reply.num_examples:
                return
            if self._writer.num_pending >= self._config.outbox_games:
                return
            if request.max_evaluations and batches >= request.max_evaluations:
                return
            if request.budget_s > 0 and time.perf_counter() >= deadline:
                return
            self._advance(request.league)
            reply.num_evaluations += self._search.step(self._evaluator)
            batches += 1

    def _advance(self, league: LeagueState) -> None:
        """Play the moves of all finished searches; replace finished games."""
        finished = self._search.finished()
        if not len(finished):
            return
        count = len(finished)
        searches = self._searches
        searches.games[:count] = finished
        self._search.results(
            finished, searches.actions, searches.visits, searches.counts, searches.values
        )
        if not room_left(self._games, self._spec.max_actions, self._seats):
            self._grow()
        before = int(self._games.counters[finished, PLY].sum())
        play_moves(self._games, self._game, self._options, searches, count, self._newest)
        self._reply.num_plies += int(self._games.counters[finished, PLY].sum()) - before
        over = self._games.status[finished] == FINISHED
        self._begin(np.flatnonzero(~over))
        if over.any():
            ended = finished[over]
            for g in ended:
                self._finish(int(g))
            self._start(ended, league)

    def _begin(self, rows: Any) -> None:
        """Begin the searches that lie in ``rows`` of the search buffers."""
        s = self._searches
        self._search_slots[s.games[rows]] = s.models[rows]
        self._search.begin(
            s.games[rows],
            s.views[rows],
            s.seats[rows],
            s.models[rows],
            s.simulations[rows],
            s.search_seeds[rows],
            s.noise[rows],
            self._config.dirichlet_alpha,
        )
        self._reply.num_simulations += int(s.simulations[rows].sum())

    def _start(self, indices: Any, league: LeagueState) -> None:
        """Draw matchups for the games ``indices``, deal them and begin their first searches.

        A game that ends without a single decision (all moves forced) is written and dealt again.
        """
        while len(indices):
            for g in indices:
                self._seat_players(int(g), league)
            count = len(indices)
            self._searches.games[:count] = indices
            start_games(self._games, self._game, self._options, self._searches, count, self._newest)
            over = self._games.status[indices] == FINISHED
            self._begin(np.flatnonzero(~over))
            for g in indices[over]:
                self._finish(int(g))
            indices = indices[over]

    def _seat_players(self, g: int, league: LeagueState) -> None:
        """Seed game ``g`` and seat its players."""
        number = self._num_started
        self._num_started += 1
        self._games.seeds[g] = mix(self._seed, np.uint64(number))
        self._games.rngs[g] = mix(self._games.seeds[g], np.uint64(1))
        # A version that waits for its slot plays nowhere yet: seats hold what this worker plays.
        league = msgspec.structs.replace(league, newest=self._newest.version)
        matchup = self._matchmaker.draw(number, league)
        slots = self._matchup_slots(matchup)
        if slots is None:  # every slot is held by games in play: the newest plays alone instead
            matchup = self._matchmaker.draw(number, msgspec.structs.replace(league, pool=()))
            slots = [NEWEST] * self._seats
        self._matchups[g] = matchup
        self._games.seat_models[g] = slots

    def _matchup_slots(self, matchup: Matchup) -> list[int] | None:
        """Return the evaluator slot of every seat; None when a model has no slot to go to."""
        slots = []
        in_use = {int(slot) for slot in np.unique(self._games.seat_models) if slot != NEWEST}
        foreign = {
            version
            for version, learning in zip(matchup.seat_versions, matchup.learner_seats, strict=True)
            if not learning
        }
        for version, learning in zip(matchup.seat_versions, matchup.learner_seats, strict=True):
            slot = NEWEST if learning else self._slots.find(version, in_use, foreign)
            if slot == -1 and not learning:
                return None
            slots.append(slot)
        return slots

    def _take_newest(self, league: LeagueState) -> None:
        """Load the newest version into the slot that no running search uses."""
        if league.newest == self._newest.version:
            return
        slot = 1 - self._newest.slot
        if slot in self._search_slots:
            return  # searches of the version before last still run; the next step tries again
        self._slots.load(slot, league.newest)
        self._newest = Newest(slot, league.newest)

    # --- finished games ---------------------------------------------------------------------------

    def _finish(self, g: int) -> None:
        """Write the trajectory of the finished game ``g``."""
        trajectory = self._trajectory(g)
        reply = self._reply
        reply.num_games += 1
        reply.num_examples += trajectory.num_eligible()
        matchup = self._matchups[g]
        assert matchup is not None
        if matchup.rated and matchup.opponent is not None:
            score = (np.sign(trajectory.header.returns[matchup.learner_side]) + 1.0) / 2.0
            reply.results.append(MatchupResult(opponent=matchup.opponent, score=float(score)))
        payload = encode(trajectory)
        try:
            self._writer.append(payload)
        except OutboxFull:
            # Bounded by one game per lockstep row: _play stops before the next batch.
            self._writer.poll(1.0)
            self._writer.append(payload)

    def _trajectory(self, g: int) -> Trajectory:
        games, spec, matchup = self._games, self._spec, self._matchups[g]
        assert matchup is not None
        state, counters = games.states[g], games.counters[g]
        returns = np.zeros(self._sides)
        terms = np.zeros((self._sides, len(spec.reward_terms)))
        statistics = np.zeros((self._sides, max(1, len(spec.statistics))))
        rules.returns(self._game, state, returns)
        rules.reward_terms(self._game, state, terms)
        rules.statistics(self._game, state, statistics)
        count = int(counters[NUM_EXAMPLES])
        header = Header(
            run_id=self._run_id,
            game=spec.name,
            rules=self._rules,
            engine_hash=engine_hash(),
            seed=int(games.seeds[g]),
            matchup=matchup.kind,
            seat_versions=matchup.seat_versions,
            learner_seats=matchup.learner_seats,
            num_plies=int(counters[PLY]),
            num_simulations=int(counters[NUM_SIMULATIONS]),
            num_full_searches=int(counters[NUM_FULL]),
            returns=tuple(returns.tolist()),
            reward_terms=tuple(map(tuple, terms.tolist())),
            statistics=tuple(map(tuple, statistics.tolist())),
            hand_ends=tuple(map(tuple, games.hand_ends[g, : counters[HAND]].tolist())),
        )
        return Trajectory(
            header=header,
            examples=games.examples[g, :count].copy(),
            views=games.views[g, :count].copy(),
            visits=games.visits[g, : counters[NUM_VISITS]].copy(),
        )

    def _grow(self) -> None:
        """Double what a game can hold."""
        old = self._games
        capacity = 2 * old.examples.shape[1]
        new = new_games(self._spec, self._seats, self._sides, self._config.games, capacity)
        self._games = grown(new, old)

    # --- snapshot ---------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return everything that the next step depends on: games in play, searches, generators."""
        arrays = {f"games.{name}": a for name, a in self._games._asdict().items()}
        arrays |= {f"search.{name}": a for name, a in self._search.snapshot().items()}
        meta = _SnapshotMeta(
            seed=int(self._seed),
            num_started=self._num_started,
            newest=(self._newest.slot, self._newest.version),
            slots=list(self._slots.versions),
            matchups=list(self._matchups),
            capacity=self._games.examples.shape[1],
        )
        arrays["search_slots"] = self._search_slots
        arrays["meta"] = np.frombuffer(msgspec.msgpack.encode(meta), np.uint8)
        return pack_arrays(arrays)

    def restore(self, data: bytes) -> None:
        """Continue from ``snapshot``: the same games follow, bit for bit.

        Raises ValueError for bytes that are no snapshot of such a worker.
        """
        arrays, meta = _opened(data)
        try:
            held = arrays["games.examples"].shape
            if held != (self._config.games, meta.capacity):  # no number alone sets memory aside
                raise ValueError(
                    f"worker snapshot with examples {held}, expected {self._config.games} games of "
                    f"{meta.capacity}"
                )
            if len(meta.slots) != len(self._slots.versions):
                raise ValueError(f"worker snapshot with {len(meta.slots)} slots")
            self._take(arrays, meta)
        except (KeyError, OverflowError) as error:
            raise ValueError(f"worker snapshot: {type(error).__name__}: {error}") from error

    def _take(self, arrays: dict[str, Any], meta: _SnapshotMeta) -> None:
        self._games = new_games(
            self._spec, self._seats, self._sides, self._config.games, meta.capacity
        )
        for name, target in self._games._asdict().items():
            copy_into(target, arrays[f"games.{name}"])
        for slot, version in enumerate(meta.slots):
            if version >= 0:
                self._slots.load(slot, version)
        copy_into(self._search_slots, arrays["search_slots"])
        prefix = "search."
        self._search.restore(
            {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}
        )
        self._seed = np.uint64(meta.seed)
        self._matchmaker = self._new_matchmaker()
        self._num_started = meta.num_started
        self._newest = Newest(*meta.newest)
        self._matchups = list(meta.matchups)

    def close(self) -> None:
        """Close the writer; games that were not accepted are lost work."""
        self._writer.close()


def _opened(data: bytes) -> tuple[dict[str, Any], _SnapshotMeta]:
    """Return arrays and facts of a snapshot. Raises ValueError for one that is none."""
    arrays = unpack_arrays(data)
    if "meta" not in arrays:
        raise ValueError(f"not a worker's snapshot: arrays {sorted(arrays)[:5]}")
    try:
        meta = msgspec.msgpack.decode(arrays.pop("meta").tobytes(), type=_SnapshotMeta)
    except RecursionError as error:
        raise ValueError("not a worker's snapshot: nested too deeply") from error
    if meta.schema_version != SNAPSHOT_SCHEMA:
        raise ValueError(
            f"worker snapshot schema {meta.schema_version}: this program reads {SNAPSHOT_SCHEMA}"
        )
    return arrays, meta


class _SnapshotMeta(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a snapshot that is not an array."""

    schema_version: int = SNAPSHOT_SCHEMA
    seed: int
    num_started: int
    newest: tuple[int, int]
    slots: list[int]
    matchups: list[Matchup | None]
    capacity: int
