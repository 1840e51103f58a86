"""Held-out figures and trust.

* R² by hand; NaN where the targets do not vary.
* Trust needs the bound *and* enough games, and is False for NaN.
* A head that has learned its training games by heart is found out: trust goes off, and with it the
  bootstrapping; a useful head gets it (again).
* Such a head, once it was trusted, values no leaves any more: the next version says so, and after
  a restart too. A head that was never trusted goes on.
* Root-value bias by phase.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from league.evaluator import read_metadata
from learner.alerts import alerts
from learner.batches import make_batch
from learner.config import LearnerConfig
from learner.device import Device
from learner.evaluate import (
    HeldOut,
    evaluate,
    is_trusted,
    needs_playouts,
    r_squared,
    root_value_bias,
)
from learner.features import FeatureMaker
from learner.messages import LearnRequest
from learner.network import CandidateNetwork, NetworkShape, build_network
from learner.targets import outcome_targets
from replay.codec import encode
from replay.memory import MemoryReader, MemoryStore
from replay.split import is_held_out
from replay.trajectory import VALUE, Trajectory
from replay.window import Window
from tests.learner.kuhn_data import (
    ENCODER,
    GAME,
    NETWORK,
    SPEC,
    config,
    new_learner,
    play,
    write,
)

NAN = float("nan")
HELD_OUT_SHARE = 0.3


def measured(outcome_r2: float, num_games: int) -> HeldOut:
    return HeldOut(num_games, 1.0, 1.0, 0.0, outcome_r2, 1.0, {})


def window_of(num_games: int, seed: int) -> Window:
    window = Window(SPEC, GAME, capacity=2000)
    generator = np.random.default_rng(seed)
    for _ in range(num_games):
        window.add(play(generator), "1-0")
    return window


def telling(window: Window) -> int:
    """Return how many games have a position that is measured."""
    return sum(game.num_eligible > 0 for game in window.games)


def network() -> CandidateNetwork:
    shape = NetworkShape.of(NETWORK, ENCODER.observation_size, ENCODER.action_size, 1)
    return build_network(shape, seed=2)


def measure(window: Window, net: CandidateNetwork, options: LearnerConfig) -> HeldOut:
    features = FeatureMaker(SPEC, GAME, ENCODER)
    result = evaluate(window, net, features, Device("cpu", 1), options, None)
    assert result is not None
    return result


def test_r_squared_by_hand() -> None:
    targets = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    assert r_squared(targets, targets) == 1.0
    assert r_squared(np.zeros((4, 1)), targets) == 0.0
    assert r_squared(0.5 * targets, targets) == pytest.approx(0.75)
    assert r_squared(-targets, targets) == pytest.approx(-3.0)
    assert np.isnan(r_squared(np.zeros((4, 1)), np.ones((4, 1))))


@pytest.mark.parametrize(
    ("figure", "games", "trusted"),
    [(0.1, 1000, True), (0.099, 1000, False), (0.5, 999, False), (NAN, 5000, False)],
)
def test_trust_needs_the_bound_over_enough_games(figure: float, games: int, trusted: bool) -> None:
    assert is_trusted(measured(figure, games), LearnerConfig()) is trusted


def test_nothing_measured_is_nothing_trusted() -> None:
    assert not is_trusted(None, LearnerConfig())


@pytest.mark.parametrize("until_now", [False, True])
@pytest.mark.parametrize(
    ("figure", "games", "ever_trusted", "playouts"),
    [
        (-0.01, 1000, True, True),
        (0.0, 1000, True, False),
        (-5.0, 1000, False, False),
        (-0.01, 999, True, None),
        (0.5, 999, True, None),
        (NAN, 1000, True, None),
    ],
)
def test_leaves_are_played_out_below_zero_once_the_head_was_trusted(
    figure: float, games: int, ever_trusted: bool, playouts: bool | None, until_now: bool
) -> None:
    state = {"ever_trusted": ever_trusted, "until_now": until_now}
    found = needs_playouts(measured(figure, games), LearnerConfig(), **state)
    assert found is (until_now if playouts is None else playouts)
    assert needs_playouts(None, LearnerConfig(), **state) is until_now


def test_untrained_head_explains_nothing() -> None:
    window = window_of(200, seed=1)
    figures = measure(window, network(), config())
    assert 150 < figures.num_games == telling(window) < 200
    assert abs(figures.outcome_r2) < 0.05
    assert figures.scale < 0.1
    assert figures.policy_loss == pytest.approx(np.log(2), abs=0.05)


def test_measurement_looks_at_all_games_in_chunks_of_any_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window, net = window_of(200, seed=1), network()
    whole = measure(window, net, config())
    monkeypatch.setattr("learner.evaluate.CHUNK_ROWS", 17)
    parts = measure(window, net, config())
    assert parts.policy_loss == pytest.approx(whole.policy_loss, rel=1e-5)
    assert parts.value_loss == pytest.approx(whole.value_loss, rel=1e-5)
    fewer = measure(window, net, config(held_out_rows=50))
    assert fewer.value_loss != whole.value_loss
    assert fewer.num_games == 50


def test_games_that_tell_nothing_do_not_count_towards_trust() -> None:
    window, generator = window_of(20, seed=1), np.random.default_rng(2)
    for _ in range(30):
        game = play(generator)
        game.examples["flags"] = VALUE
        game.examples["num_actions"] = 0
        window.add(Trajectory(game.header, game.examples, game.views, game.visits[:0]), "1-0")
    assert window.num_games == 50
    assert 10 < measure(window, network(), config()).num_games == telling(window) <= 20


def test_root_value_bias_by_phase() -> None:
    window = window_of(200, seed=1)
    batch = window.gather(window.all_eligible())
    outcomes = outcome_targets(batch, config())
    batch.examples["root_value"] = outcomes[:, 0] + 0.25 * batch.examples["ply"]
    bias = root_value_bias(batch, outcomes)
    assert bias["early"] == pytest.approx(0.0, abs=1e-6)
    assert bias["late"] > bias["early"]
    batch.examples["root_value"] = np.nan
    assert root_value_bias(batch, outcomes) == {}


def games(num_games: int, first: int, seed: int, *, flip_held_out: bool) -> list[bytes]:
    """Games whose held-out part may have its outcomes exchanged.

    A head that is right about the games that train is then wrong about all others, which is what
    learning them by heart comes to.
    """
    generator = np.random.default_rng(seed)
    made = []
    for i in range(num_games):
        game = play(generator)
        if flip_held_out and is_held_out("worker-0", first + i, HELD_OUT_SHARE):
            returns = game.header.returns
            header = msgspec.structs.replace(game.header, returns=(returns[1], returns[0]))
            game = Trajectory(header, game.examples, game.views, game.visits)
        made.append(encode(game))
    return made


def test_overfit_head_loses_trust_and_a_useful_one_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrapped: list[bool] = []

    def spy(*arguments: Any, bootstrap: bool) -> Any:
        bootstrapped.append(bootstrap)
        return make_batch(*arguments, bootstrap=bootstrap)

    monkeypatch.setattr("learner.train.make_batch", spy)
    store = MemoryStore()
    options = config(td_lambda=0.8, held_out_share=HELD_OUT_SHARE, samples_per_insert=6.0)
    learner = new_learner(MemoryReader(store), options)
    learner.step(LearnRequest(epoch=1, next_version=0))

    write(store, games(1000, 1, seed=8, flip_held_out=False))
    reply = learner.step(LearnRequest(epoch=1, next_version=1))
    assert reply.metrics.value_trusted
    assert reply.metrics.held_out_outcome_r2 > 0.1
    assert read_metadata(reply.model).leaf_value == "network"
    assert not any(bootstrapped)  # before the first measurement nobody is trusted
    learner.step(LearnRequest(epoch=1, next_version=2, max_updates=5))
    assert bootstrapped[-5:] == [True] * 5

    write(store, games(4000, 1001, seed=9, flip_held_out=True), first_sequence=1001)
    reply = learner.step(LearnRequest(epoch=1, next_version=2))
    assert reply.metrics.value_r2 > 0.3
    assert reply.metrics.held_out_outcome_r2 < 0.0
    assert not reply.metrics.value_trusted
    assert reply.metrics.leaves_by_playout
    assert "playouts" in alerts(reply.metrics, options)[0]
    assert read_metadata(reply.model).leaf_value == "playout"
    reply = learner.step(LearnRequest(epoch=1, next_version=3, max_updates=5, snapshot=True))
    assert bootstrapped[-5:] == [False] * 5

    restored = new_learner(MemoryReader(store), options, snapshot=reply.snapshot)
    reply = restored.step(LearnRequest(epoch=1, next_version=3))
    assert read_metadata(reply.model).leaf_value == "playout"


def test_head_that_was_never_trusted_goes_on_valuing_leaves() -> None:
    store = MemoryStore()
    options = config(held_out_share=HELD_OUT_SHARE, samples_per_insert=6.0)
    learner = new_learner(MemoryReader(store), options)
    learner.step(LearnRequest(epoch=1, next_version=0))
    write(store, games(2000, 1, seed=9, flip_held_out=True))
    reply = learner.step(LearnRequest(epoch=1, next_version=1))
    assert reply.metrics.held_out_outcome_r2 < 0.0
    assert not reply.metrics.leaves_by_playout
    assert read_metadata(reply.model).leaf_value == "network"


def test_a_head_far_too_large_shows_in_the_scale() -> None:
    net = network()
    with torch.no_grad():
        net.value_out.weight.fill_(50.0)
    options = config(target="return", return_scale=100.0)
    assert measure(window_of(200, seed=1), net, options).scale > 20.0
