"""The guards on the value head, told as one story: trusted, overfitted, found out, healed.

The game is Cuarenta to four points, the target the shaped return. What ``Learner.step`` returns is
all that is looked at, beside what its batches were told about bootstrapping:

* A sound head explains held-out games. It gets trust, and with it bootstrapped targets (λ-returns,
  and root values mixed in: the story is told for both); nothing is alerted. Before the first
  measurement nothing was bootstrapped.
* Then it learns a few games by heart, whose searches were sure of themselves without a reason. All
  guards see it at once: trust and bootstrapping end, leaves are valued by playouts, and there are
  alerts for that, for the size of the values and for the bias of every phase.
* The next version carries it: its metadata says ``playout``, and the evaluator that searches run
  on takes the network's policy and the playouts' values.
* With sound games the head is trusted again and values leaves again, and the alerts end.
* Shares of the reward terms are the games' own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import rules
from engine.evaluation import EvalBatch, new_batch
from engine.game import get_spec
from engine.jit import engine_hash
from engine.rng import make_rng
from engine.search.rollout import RolloutEvaluator
from league.evaluator import OnnxEvaluator, read_metadata
from learner.alerts import alerts
from learner.batches import make_batch
from learner.config import LearnerConfig, NetworkConfig
from learner.evaluate import PHASES
from learner.messages import LearnReply, LearnRequest
from learner.train import Learner
from replay.codec import decode, encode
from replay.memory import MemoryReader, MemoryStore, MemoryWriter
from replay.trajectory import EXAMPLE, FULL_SEARCH, POLICY, VALUE, Header, Trajectory

SPEC = get_spec("cuarenta")
GAME = SPEC.make("report_a_4p")
ENCODER = SPEC.encoders[0]
SCALE = 400.0
"""Divisor of the shaped return: a game is won by 20 to 30 points, so that targets are small."""
NUM_SOUND, NUM_WILD = 1400, 1400
HELD_OUT_SHARE = 0.85
"""Few games train, and more than a thousand are left to be measured on."""
CONFIG: dict[str, Any] = {
    "device": "cpu",
    "target": "return",
    "return_scale": SCALE,
    "held_out_share": HELD_OUT_SHARE,
    "batch_size": 128,
    "learning_rate": 2e-3,
    "min_window_positions": 500,
    "window_positions": 20_000,
    "insert_slack_positions": 100_000,
    "samples_per_insert": 16.0,
    "updates_per_version": 60,
    "held_out_every": 60,
}
BY_HEART = {
    "window_positions": 1_300,
    "samples_per_insert": 60.0,
    "updates_per_version": 300,
    "held_out_every": 420,
}
"""What a user might ask for who wants much from few games; measured once, at update 420."""
MAX_PLIES = 200
WORDS, ENGINE = SPEC.describe(GAME), engine_hash()
Root = Callable[[float, np.random.Generator], float]
"""(own shaped return on the scale of the targets, generator) -> root value of a search."""


def sound(outcome: float, generator: np.random.Generator) -> float:
    """A search that knows a part of what will come."""
    return 0.5 * outcome


def wild(outcome: float, generator: np.random.Generator) -> float:
    """A search with an overfitted head: very sure, mostly of its own side, for no reason."""
    return 0.95 if generator.random() < 0.8 else -0.95


def play(seed: int, root_value: Root) -> bytes:
    """Play one game by the rule player and return what self-play would store of it."""
    rng, generator = make_rng(seed), np.random.default_rng(seed)
    state, views = SPEC.new_state(), SPEC.new_states(MAX_PLIES)
    legal = np.zeros(SPEC.max_actions, np.int64)
    examples = np.zeros(MAX_PLIES, EXAMPLE)
    visits: list[int] = []
    rules.deal(GAME, state, np.uint64(seed))
    state.scores[:] = 2 * generator.integers(10, 20, 2)
    ply = hand = 0
    while (seat := int(rules.current_seat(GAME, state))) != rules.TERMINAL:
        if seat == rules.CHANCE:
            hand += int(rules.equity_index(GAME, state, 0)) != rules.NO_HAND_END
            rules.deal_next(GAME, state)
            continue
        rules.view(GAME, state, seat, views[ply])
        count = int(rules.legal_actions(GAME, views[ply], legal))
        full = ply % 5 == 0
        flags = VALUE | (POLICY | FULL_SEARCH if full else 0)
        examples[ply] = (ply, seat, flags, hand, count if full else 0, 0, np.nan)
        visits += [10] * count if full else []
        rules.apply(GAME, state, rules.rule_action(GAME, views[ply], seat, rng))
        ply += 1
    outcome, terms = np.zeros(2), np.zeros((2, len(SPEC.reward_terms)))
    rules.returns(GAME, state, outcome)
    rules.reward_terms(GAME, state, terms)
    lead = float(terms[0].sum() - terms[1].sum()) / SCALE
    for example in examples[:ply]:
        if example["flags"] & FULL_SEARCH:
            own = lead if example["seat"] % 2 == 0 else -lead
            example["root_value"] = root_value(own, generator)
    header = Header(
        run_id="run",
        game=SPEC.name,
        rules=WORDS,
        engine_hash=ENGINE,
        seed=seed,
        matchup="self_play",
        seat_versions=(0,) * 4,
        learner_seats=(True,) * 4,
        num_plies=ply,
        num_simulations=0,
        num_full_searches=0,
        returns=tuple(outcome.tolist()),
        reward_terms=tuple(tuple(row) for row in terms.tolist()),
        statistics=((0.0,) * len(SPEC.statistics),) * 2,
        hand_ends=((0, 0),) * hand,
    )
    return encode(Trajectory(header, examples[:ply], views[:ply], np.array(visits, np.uint16)))


@pytest.fixture(scope="module")
def sound_games() -> list[bytes]:
    return [play(seed, sound) for seed in range(1, NUM_SOUND + 1)]


@pytest.fixture(scope="module")
def wild_games() -> list[bytes]:
    return [play(seed, wild) for seed in range(NUM_SOUND + 1, NUM_SOUND + NUM_WILD + 1)]


class Told:
    """Whether each batch of the learner was to be bootstrapped."""

    def __init__(self) -> None:
        self.bootstrap: list[bool] = []

    def make_batch(self, *arguments: Any, bootstrap: bool) -> Any:
        self.bootstrap.append(bootstrap)
        return make_batch(*arguments, bootstrap=bootstrap)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    told = Told()
    monkeypatch.setattr("learner.train.make_batch", told.make_batch)
    return told


class Stream:
    """A run's stream; every start of its learner goes on where the last one was."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self._store = MemoryStore()
        self._sequence, self._version = 1, 0
        self._snapshot: bytes | None = None

    def write(self, games: list[bytes]) -> None:
        writer = MemoryWriter(
            self._store, "worker", max_pending=len(games), first_sequence=self._sequence
        )
        for game in games:
            writer.append(game)
        assert writer.poll(0.0) == len(games)
        self._sequence += len(games)

    def learn(self, num_versions: int, **changes: Any) -> LearnReply:
        """Return the reply that carries the last of so many versions."""
        learner = Learner(
            config=LearnerConfig(**(CONFIG | self.options | changes)),
            network=NetworkConfig(width=64, num_layers=2, candidate_width=32),
            spec=SPEC,
            game=GAME,
            encoder=ENCODER,
            reader=MemoryReader(self._store),
            run_id="run",
            seed=1,
            epoch=1,
            snapshot=self._snapshot,
        )
        for _ in range(num_versions):
            request = LearnRequest(epoch=1, next_version=self._version, snapshot=True)
            reply = learner.step(request)
            assert reply.model, "there was not enough to train on"
            self._version += 1
        self._snapshot = reply.snapshot
        return reply


def leaves(games: list[bytes], num_rows: int) -> EvalBatch:
    """Return leaves of a search: the last positions of games, each in a sampled world."""
    batch, rng = new_batch(SPEC, ENCODER, 2, num_rows), make_rng(3)
    actions = np.zeros(SPEC.max_actions, np.int64)
    for row in range(num_rows):
        game = decode(games[row], SPEC)
        view, seat = game.views[-1], int(game.examples["seat"][-1])
        rules.determinize(GAME, view, seat, rng, batch.worlds[row])
        rules.observe(GAME, view, seat, ENCODER.code, batch.observations[row])
        count, first = int(rules.legal_actions(GAME, view, actions)), int(batch.offsets[row])
        candidates = batch.candidates[first : first + count]
        rules.describe_actions(GAME, view, ENCODER.code, actions, count, candidates)
        batch.candidate_row[first : first + count] = row
        batch.offsets[row + 1] = first + count
        batch.seats[row], batch.seeds[row] = seat, 7 * row + 1
    return batch


def answers(model: bytes, batch: EvalBatch) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return logits and values that searches get for ``batch`` from ``model``."""
    evaluator = OnnxEvaluator(SPEC, GAME, ENCODER)
    evaluator.set_model(0, model)
    num_rows, num_candidates = len(batch.seats), int(batch.offsets[-1])
    evaluator.evaluate(batch, num_rows, num_candidates)
    return batch.logits[:num_candidates].copy(), batch.values.copy()


def played_out(batch: EvalBatch) -> NDArray[np.float32]:
    RolloutEvaluator(SPEC, GAME).evaluate(batch, len(batch.seats), 0)
    return batch.values.copy()


def reward_shares(games: list[bytes]) -> dict[str, float]:
    terms = np.array([decode(game, SPEC).header.reward_terms for game in games])
    sums = np.abs(terms[:, 0] - terms[:, 1]).sum(axis=0)
    return dict(zip(SPEC.reward_terms, (sums / sums.sum()).tolist(), strict=True))


@pytest.mark.parametrize("options", [{"root_value_mix": 0.8}, {"td_lambda": 0.1}])
def test_story_of_a_head_that_overfits(
    options: dict[str, Any], sound_games: list[bytes], wild_games: list[bytes], told: Told
) -> None:
    stream, config = Stream(options), LearnerConfig()
    assert (config.trust_r2, config.trust_games) == (0.1, 1000)
    stream.learn(1)
    batch = leaves(sound_games, 60)
    playouts = played_out(batch)

    # It learns: without bootstrapping until it was measured, and with it from then on.
    stream.write(sound_games)
    stream.learn(1)
    assert told.bootstrap == [False] * 60
    reply = stream.learn(1)
    assert told.bootstrap[60:] == [True] * 60
    figures = reply.metrics
    assert figures.held_out_games >= 1000
    assert figures.held_out_outcome_r2 >= 0.1
    assert figures.value_trusted
    assert not figures.leaves_by_playout
    assert alerts(figures, config) == []
    assert figures.reward_shares == pytest.approx(reward_shares(sound_games), abs=0.05)
    assert read_metadata(reply.model).leaf_value == "network"
    assert not np.array_equal(answers(reply.model, batch)[1], playouts)

    # It overfits: few games, often, whose searches were sure without a reason.
    stream.write(wild_games)
    reply = stream.learn(1, **BY_HEART)
    assert told.bootstrap[120:] == [True] * 300
    figures = reply.metrics
    assert figures.value_r2 > 0.3, "on what it trains it looks well"
    assert figures.held_out_games >= 1000
    assert figures.held_out_outcome_r2 < 0.0
    assert not figures.value_trusted
    assert figures.leaves_by_playout
    found = alerts(figures, config)
    assert len(found) == 2 + len(PHASES), figures
    assert "leaves are valued by playouts" in found[0]
    assert "times too large on held-out games" in found[1]
    for phase, alert in zip(PHASES, found[2:], strict=True):
        assert f"root values of {phase} plies" in alert
        assert "too high" in alert

    # The version says so, and a search takes its policy and the playouts' values.
    facts = read_metadata(reply.model)
    assert (facts.value_trusted, facts.leaf_value) == (False, "playout")
    logits, values = answers(reply.model, batch)
    np.testing.assert_array_equal(values, playouts)
    assert len(np.unique(logits)) > len(batch.seats), "the policy is the network's"

    # It heals: sound games again, and nothing is bootstrapped until they have been measured.
    stream.write(sound_games)
    reply = stream.learn(1, window_positions=BY_HEART["window_positions"])
    assert told.bootstrap[420:] == [False] * 60
    figures = reply.metrics
    assert figures.value_trusted
    assert not figures.leaves_by_playout
    assert alerts(figures, config) == []
    assert read_metadata(reply.model).leaf_value == "network"
