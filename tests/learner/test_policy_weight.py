"""What a game says that a decision weighs reaches the policy loss.

Forty-fives splits a discard into steps that weigh a quarter of a play each.

* A batch has the game's weight of each row with a policy target, and 0 for the others.
* An update's loss, and the gradient with it, are means weighted so; so is the held-out loss,
  however it is cut into chunks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engine import rules
from engine.game import get_spec
from learner import evaluate as measuring
from learner.batches import TrainingBatch, make_batch
from learner.config import LearnerConfig, NetworkConfig
from learner.device import Device
from learner.evaluate import evaluate
from learner.features import FeatureMaker
from learner.losses import segment_log_softmax
from learner.network import CandidateNetwork, NetworkShape, build_network
from learner.update import Updater, UpdateSums
from replay.trajectory import POLICY
from replay.window import Batch, Window
from tests.learner.rule_games import play

SPEC = get_spec("forty_fives")
GAME = SPEC.make()
ENCODER = SPEC.encoder("symmetric")
FEATURES = FeatureMaker(SPEC, GAME, ENCODER)
CONFIG = LearnerConfig(device="cpu", target="win", value_weight=0.0, gradient_clip=1e9)
STEP, PLAY = 0.25, 1.0
"""Weights of a discard step and of everything else."""


@pytest.fixture(scope="module")
def window() -> Window:
    made = Window(SPEC, GAME, capacity=400)
    for seed in (1, 2):
        made.add(play(SPEC, GAME, seed), "1-0")
    return made


def new_network() -> CandidateNetwork:
    shape = NetworkShape.of(
        NetworkConfig(width=16, num_layers=1, candidate_width=16),
        ENCODER.observation_size,
        ENCODER.action_size,
        1,
    )
    return build_network(shape, seed=1)


def examples(window: Window) -> Batch:
    values = window.sample_values(np.random.default_rng(1), 50)
    return window.gather(np.concatenate([window.all_eligible(), values]))


def batch_of(window: Window) -> TrainingBatch:
    return make_batch(examples(window), FEATURES, CONFIG, None, bootstrap=False)


def row_losses(network: CandidateNetwork, batch: TrainingBatch) -> torch.Tensor:
    """Return the cross-entropy [R] of each row."""
    inputs = [torch.from_numpy(array) for array in batch.features]
    logits, values = network(*inputs)
    row = inputs[2]
    terms = -torch.from_numpy(batch.visit_shares) * segment_log_softmax(logits, row, len(values))
    return torch.zeros(len(values)).index_add(0, row, terms)


def weighted(losses: torch.Tensor, weights: NDArray[Any]) -> torch.Tensor:
    return (losses * torch.from_numpy(weights)).sum() / float(weights.sum())


def test_a_batch_has_the_weight_that_the_game_says(window: Window) -> None:
    drawn = examples(window)
    weights = batch_of(window).policy_weight
    policy = (drawn.examples["flags"] & POLICY) != 0
    assert weights[~policy].tolist() == [0.0] * int((~policy).sum())
    expected = [float(rules.policy_weight(GAME, view)) for view in drawn.views[policy]]
    assert weights[policy].tolist() == expected
    assert set(expected) == {STEP, PLAY}
    assert policy.sum() < len(policy)


def test_the_loss_and_the_gradient_of_an_update_are_weighted(window: Window) -> None:
    batch, network = batch_of(window), new_network()
    losses = row_losses(network, batch)
    loss = weighted(losses, batch.policy_weight)
    expected = float(loss.detach())
    plain = float(weighted(losses.detach(), (batch.policy_weight > 0).astype(np.float32)))
    assert abs(plain - expected) > 0.02  # without the weights it would be another figure
    gradients = torch.autograd.grad(loss, list(network.parameters()), allow_unused=True)
    updater, sums = Updater(new_network(), Device("cpu", 1), CONFIG), UpdateSums()
    updater.update(batch, 0, 0, sums)
    assert sums.means()["policy_loss"] == pytest.approx(expected, rel=1e-5)
    for got, wanted in zip(updater.network.parameters(), gradients, strict=True):
        assert got.grad is not None
        none = torch.zeros_like(got) if wanted is None else wanted
        torch.testing.assert_close(got.grad, none, atol=1e-6, rtol=1e-4)


def test_the_held_out_loss_is_weighted_however_it_is_cut(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, network = batch_of(window), new_network()
    with torch.no_grad():
        expected = float(weighted(row_losses(network, batch), batch.policy_weight))
    for rows in (4096, 7):
        monkeypatch.setattr(measuring, "CHUNK_ROWS", rows)
        measured = evaluate(window, network, FEATURES, Device("cpu", 1), CONFIG, None)
        assert measured is not None
        assert measured.policy_loss == pytest.approx(expected, rel=1e-5)
