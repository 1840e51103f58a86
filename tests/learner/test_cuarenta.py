"""A game of several hands, end to end: equity targets, the table, and its way to the search.

* The table is learned from the training games' own hands and travels in the metadata.
* Held-out games have no part in it, nor in the samples per insert.
* A resumed learner has the same table; its next version is the same bytes.
* Held-out policy and value losses fall; the equity target is easier to predict than the outcome.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from engine.game import get_spec
from league.models import METADATA_KEY, ModelMetadata
from learner.config import LearnerConfig, NetworkConfig
from learner.export import open_session
from learner.ingest import Ingest
from learner.messages import LearnRequest
from learner.train import Learner
from replay.codec import encode
from replay.memory import MemoryReader, MemoryStore, MemoryWriter
from replay.split import is_held_out
from replay.trajectory import Trajectory
from tests.learner.rule_games import play

SPEC = get_spec("cuarenta")
GAME = SPEC.make("report_a_4p")
NUM_GAMES = 250


@pytest.fixture(scope="module")
def games() -> list[Trajectory]:
    return [play(SPEC, GAME, seed) for seed in range(1, NUM_GAMES + 1)]


def test_games_have_hands_whose_rows_mirror_each_other(games: list[Trajectory]) -> None:
    prior = np.array(_prior())
    ends = np.array([row for game in games for row in game.header.hand_ends])
    assert len(ends) > NUM_GAMES
    np.testing.assert_allclose(prior[ends[:, 0]] + prior[ends[:, 1]], 1.0, atol=1e-9)


def filled_store(games: list[Trajectory]) -> MemoryStore:
    store = MemoryStore()
    writer = MemoryWriter(store, "worker", max_pending=NUM_GAMES)
    for game in games:
        writer.append(encode(game))
    writer.poll(0.0)
    return store


def new_learner(store: MemoryStore, snapshot: bytes | None = None) -> Learner:
    return Learner(
        config=LearnerConfig(
            device="cpu",
            batch_size=128,
            learning_rate=2e-3,
            min_window_positions=1000,
            samples_per_insert=3.0,
            updates_per_version=50,
            held_out_every=25,
        ),
        network=NetworkConfig(width=64, num_layers=2, candidate_width=32),
        spec=SPEC,
        game=GAME,
        encoder=SPEC.encoder("ranks"),
        reader=MemoryReader(store),
        run_id="run",
        seed=1,
        epoch=1,
        snapshot=snapshot,
    )


def test_restored_learner_keeps_the_table_it_has_learned(games: list[Trajectory]) -> None:
    store = filled_store(games)
    learner = new_learner(store)
    learner.step(LearnRequest(epoch=1, next_version=0))
    taken = learner.step(LearnRequest(epoch=1, next_version=1, max_updates=30, snapshot=True))
    restored = new_learner(store, taken.snapshot)
    models = [
        each.step(LearnRequest(epoch=1, next_version=1)).model for each in (learner, restored)
    ]
    assert models[0]
    assert models[0] == models[1]
    assert max(abs(a - b) for a, b in zip(_equity(models[0]), _prior(), strict=True)) > 0.01


def test_held_out_games_have_no_part_in_the_table(games: list[Trajectory]) -> None:
    config = LearnerConfig(held_out_share=0.4, min_window_positions=100)
    ingest = Ingest(config, SPEC, GAME, MemoryReader(filled_store(games)), "run")
    while ingest.read(0.0):
        pass
    trained = [
        game
        for number, game in enumerate(games, start=1)
        if not is_held_out("worker", number, config.held_out_share)
    ]
    assert 0 < len(trained) < NUM_GAMES == ingest.totals.games
    assert ingest.totals.held_out_games == NUM_GAMES - len(trained)
    hands = np.zeros(SPEC.num_equity_states)
    wins = np.zeros(SPEC.num_equity_states)
    for game in trained:
        for ends in game.header.hand_ends:
            for side, row in enumerate(ends):  # each hand is seen from both sides
                hands[row] += 1
                wins[row] += game.header.returns[side] > 0
    table = ingest.state().equity
    assert table is not None
    np.testing.assert_array_equal(table.hands, hands)
    np.testing.assert_array_equal(table.wins, wins)
    assert ingest.controller.state.num_inserted == sum(game.num_eligible() for game in trained)


def test_learner_learns_the_table_and_from_it(games: list[Trajectory]) -> None:
    learner = new_learner(filled_store(games))
    untrained = learner.step(LearnRequest(epoch=1, next_version=0))
    first = learner.step(LearnRequest(epoch=1, next_version=1, max_updates=25)).metrics
    last = learner.step(LearnRequest(epoch=1, next_version=1))
    for _ in range(2):
        last = learner.step(LearnRequest(epoch=1, next_version=last.step // 50 + 1))
    assert last.step >= 100
    assert last.metrics.held_out_policy_loss < first.held_out_policy_loss
    assert last.metrics.held_out_value_r2 > 0.15
    assert last.metrics.held_out_value_r2 > last.metrics.held_out_outcome_r2
    assert set(last.metrics.reward_shares) == set(SPEC.reward_terms)
    assert sum(last.metrics.reward_shares.values()) == pytest.approx(1.0)
    before, after = np.array(_equity(untrained.model)), np.array(_equity(last.model))
    assert len(before) == len(after) == SPEC.num_equity_states
    np.testing.assert_allclose(before, _prior())
    assert np.max(np.abs(after - before)) > 0.01


def _prior() -> list[float]:
    assert SPEC.equity_prior is not None
    return list(np.asarray(SPEC.equity_prior(GAME)).tolist())


def _equity(model: bytes) -> tuple[float, ...]:
    text = open_session(model).get_modelmeta().custom_metadata_map[METADATA_KEY]
    facts = msgspec.json.decode(text, type=ModelMetadata)
    assert facts.target == "equity"
    return facts.equity
