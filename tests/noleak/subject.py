"""What the no-leak checks look at: a game, and the parts of the program that may leak.

Every part can be replaced by a sabotaged one, so that a test can see the checks fail.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from actors.config import SearchConfig, SelfPlayConfig
from actors.lockstep import FINISHED, _prepare
from actors.messages import StepRequest
from actors.selfplay import SelfPlayWorker
from engine import rules
from engine.evaluation import Evaluator, num_value_heads
from engine.game import Encoder, GameSpec
from engine.rng import below, make_rng
from engine.rules import CHANCE, TERMINAL
from engine.search.rollout import HashingEvaluator, RolloutEvaluator
from league.config import LeagueConfig
from league.evaluator import OnnxEvaluator
from league.messages import LeagueState
from league.models import MemoryModelStore, ModelMetadata
from learner.config import NetworkConfig
from learner.export import Exporter
from learner.network import NetworkShape, build_network
from replay.codec import decode
from replay.marks import START
from replay.memory import MemoryStore, MemoryWriter
from replay.trajectory import Trajectory
from tests.engine.hidden_worlds import HIDDEN, HiddenPart

FEWER_GAMES = {"forty_fives": 3}
"""Games whose stored examples are compared, where self-play of one takes long."""
MakeEvaluator = Callable[["Subject", Any], Evaluator]
"""``(subject, true state)`` -> evaluator. An honest one has no use for the state."""


class WorkerFromState(SelfPlayWorker):
    """Self-play in which every game starts from one given state instead of a deal."""

    first_state: Any = None
    searched: list[tuple[Any, int]]
    """What every search was given: (record, seat)."""

    def _begin(self, rows: Any) -> None:
        for row in rows:
            seat = int(self._searches.seats[row])
            self.searched.append((self._searches.views[row].copy(), seat))
        super()._begin(rows)

    def _start(self, indices: Any, league: LeagueState) -> None:
        for g in indices:
            self._seat_players(int(g), league)
            self._games.counters[g] = 0
            self._games.states[g] = self.first_state
            self._searches.games[0] = g
            _prepare(self._games, self._game, self._options, self._searches, 0, self._newest)
            assert self._games.status[g] != FINISHED
            self._begin(np.zeros(1, np.int64))


def _hashing(subject: Subject, state: Any) -> Evaluator:
    return HashingEvaluator()


def _playouts(subject: Subject, state: Any) -> Evaluator:
    return RolloutEvaluator(subject.spec, subject.game)


def _network(subject: Subject, state: Any) -> Evaluator:
    evaluator = OnnxEvaluator(subject.spec, subject.game, subject.encoder)
    evaluator.set_model(0, subject.model)
    return evaluator


def _view(subject: Subject, state: Any, seat: int) -> Any:
    return subject.view(state, seat)


@dataclass(frozen=True)
class Subject:
    """A game, and what is checked about it."""

    spec: GameSpec
    game: Any
    hidden: HiddenPart
    evaluators: dict[str, MakeEvaluator] = field(
        default_factory=lambda: {"hashing": _hashing, "playouts": _playouts, "network": _network}
    )
    search_input: Callable[[Subject, Any, int], Any] = _view
    """``(subject, state, seat)`` -> the record that a search is given."""
    worker_type: type[WorkerFromState] = WorkerFromState
    num_positions: int = 60
    """Positions at which views, features, actions and worlds are compared."""
    num_searched: int = 12
    """Positions whose searches are compared."""
    num_games: int = 10
    """Games whose stored examples are compared."""
    encoder_name: str = ""
    """What searches and self-play run on; empty takes the game's first encoder."""

    @classmethod
    def of(cls, spec: GameSpec, game: Any) -> Subject:
        """Return the honest subject of a registered game."""
        num_games = FEWER_GAMES.get(spec.name, cls.num_games)
        return cls(spec, game, HIDDEN[spec.name], num_games=num_games)

    @functools.cached_property
    def encoder(self) -> Encoder:
        """Encoder of searches and self-play."""
        return self.spec.encoder(self.encoder_name or self.spec.encoders[0].name)

    @functools.cached_property
    def num_seats(self) -> int:
        """Seats of the game."""
        return int(rules.num_seats(self.game))

    @functools.cached_property
    def model(self) -> bytes:
        """ONNX bytes of a small untrained network."""
        encoder = self.encoder
        num_values = num_value_heads(int(rules.num_sides(self.game)))
        config = NetworkConfig(width=16, num_layers=1, candidate_width=16)
        shape = NetworkShape.of(config, encoder.observation_size, encoder.action_size, num_values)
        metadata = ModelMetadata(
            run_id="test",
            version=0,
            parent=-1,
            step=0,
            num_examples=0,
            game=self.spec.name,
            rules=self.spec.describe(self.game),
            encoder=encoder.name,
            encoder_version=encoder.version,
            observation_size=encoder.observation_size,
            action_size=encoder.action_size,
            num_values=num_values,
            target="win",
            network=shape.describe(),
        )
        return Exporter(shape).export(build_network(shape, seed=1), metadata)

    def view(self, state: Any, seat: int) -> Any:
        """Return ``seat``'s view of ``state``."""
        out = self.spec.new_state()
        rules.view(self.game, state, seat, out)
        return out

    def mover(self, state: Any) -> int:
        """Return the seat to move, CHANCE or TERMINAL."""
        return int(rules.current_seat(self.game, state))

    def legal(self, record: Any) -> list[int]:
        """Return the legal actions of a state or view."""
        actions = np.zeros(self.spec.max_actions, np.int64)
        count = int(rules.legal_actions(self.game, record, actions))
        return [int(action) for action in actions[:count]]

    def positions(self, seed: int, count: int) -> list[Any]:
        """Return ``count`` unfinished positions of random games, those before a deal among them."""
        rng = make_rng(seed)
        found: list[Any] = []
        number = 0
        while len(found) < 20 * count and number < 2 * count:
            state = self.spec.new_state()
            rules.deal(self.game, state, np.uint64(1000 * seed + number))
            number += 1
            while (seat := self.mover(state)) != TERMINAL:
                found.append(state.copy())
                if seat == CHANCE:
                    rules.deal_next(self.game, state)
                else:
                    legal = self.legal(state)
                    rules.apply(self.game, state, legal[below(rng, len(legal))])
        return random.Random(seed).sample(found, count)

    def play_from(self, state: Any, seed: int) -> tuple[Trajectory, list[tuple[Any, int]]]:
        """Return what self-play stores of a game that starts with ``state``.

        Also (record, seat) of everything that was given to a search on the way. All randomness but
        the cards follows from ``seed``.
        """
        store, models = MemoryStore(), MemoryModelStore()
        models.put(0, self.model)
        worker = self.worker_type(
            config=SelfPlayConfig(
                games=1,
                full_simulations=12,
                fast_simulations=4,
                full_share=0.7,
                off_turn_share=0.5,
            ),
            search=SearchConfig(),
            league=LeagueConfig(pool_size=1),
            spec=self.spec,
            game=self.game,
            encoder=self.encoder,
            models=models,
            writer=MemoryWriter(store, "test"),
            run_id="test",
            node="here",
            slot=0,
            epoch=1,
            seed=seed,
        )
        worker.first_state, worker.searched = state, []
        league = LeagueState(newest=0, champion=0, pool=())
        request = StepRequest(epoch=1, league=league, max_evaluations=50, insert_budget=-1)
        for _ in range(2_000):
            worker.step(request)
            if entries := store.since("0", START):
                return decode(entries[0].payload, self.spec), worker.searched
        raise AssertionError("no game ended in 100,000 batches")
