"""Figures on games that never train, and whether the value head may be trusted.

Room: learner. May import: numpy, torch, replay, learner.

In-sample figures do not show an overfit value head (in-sample R² of 0.77 has been seen with −0.27
on held-out games); everything here is measured on whole games kept out of training.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from learner.batches import make_batch
from learner.config import LearnerConfig
from learner.device import Device
from learner.features import FeatureMaker
from learner.losses import policy_loss
from learner.network import CandidateNetwork
from learner.targets import final_targets, is_full_search, outcome_targets
from replay.window import Batch, Window

CHUNK_ROWS = 2048
PHASES = ("early", "middle", "late")
"""Thirds of the measured positions, by ply."""


class HeldOut(NamedTuple):
    """One measurement."""

    num_games: int
    """Games that the measured positions come from."""
    policy_loss: float
    value_loss: float
    value_r2: float
    """Of the head against its own target, without bootstrapping."""
    outcome_r2: float
    """Of the head against the end of the game."""
    scale: float
    """Mean absolute prediction over mean absolute target: 1 is right, 70 has been seen."""
    root_value_bias: dict[str, float]
    """Mean of root value minus outcome, by phase."""


def r_squared(predictions: NDArray[Any], targets: NDArray[Any]) -> float:
    """Return 1 - squared error / variance of ``targets``; NaN where these do not vary."""
    targets = targets.astype(np.float64)
    spread = float(np.sum((targets - targets.mean(axis=0)) ** 2))
    if spread <= 0.0:
        return float("nan")
    return 1.0 - float(np.sum((predictions - targets) ** 2)) / spread


def evaluate(
    window: Window,
    network: CandidateNetwork,
    features: FeatureMaker,
    device: Device,
    config: LearnerConfig,
    equity: NDArray[np.float64] | None,
) -> HeldOut | None:
    """Measure ``network`` on up to ``config.held_out_rows`` positions spread over all games.

    Returns None when the window holds no position.
    """
    slots = window.all_eligible()
    if len(slots) == 0:
        return None
    ages = np.arange(len(slots))
    if len(slots) > config.held_out_rows:
        ages = np.linspace(0, len(slots) - 1, config.held_out_rows).astype(np.int64)
        slots = slots[ages]
    batch = window.gather(slots)
    policy_sum = weight_sum = 0.0
    values: list[NDArray[np.float32]] = []
    for start in range(0, len(slots), CHUNK_ROWS):
        part = window.gather(slots[start : start + CHUNK_ROWS])
        loss, weight, predicted = _forward(part, network, features, device, config)
        policy_sum += loss * weight
        weight_sum += weight
        values.append(predicted)
    predictions = np.concatenate(values)
    targets = final_targets(batch, config, equity)
    outcomes = outcome_targets(batch, config)
    size = float(np.mean(np.abs(targets)))
    return HeldOut(
        num_games=_num_games(window, ages),
        policy_loss=policy_sum / weight_sum if weight_sum > 0.0 else float("nan"),
        value_loss=float(np.mean((predictions - targets) ** 2)),
        value_r2=r_squared(predictions, targets),
        outcome_r2=r_squared(predictions, outcomes),
        scale=float(np.mean(np.abs(predictions))) / size if size > 0.0 else float("nan"),
        root_value_bias=root_value_bias(batch, outcomes),
    )


def _num_games(window: Window, ages: NDArray[np.int64]) -> int:
    """Return how many games the eligible positions ``ages`` (0 is the oldest) come from.

    Games without an eligible position, and those that the sample passed over, tell nothing.
    """
    ends = np.cumsum([game.num_eligible for game in window.games])
    return len(np.unique(np.searchsorted(ends, ages, side="right")))


def _forward(
    batch: Batch,
    network: CandidateNetwork,
    features: FeatureMaker,
    device: Device,
    config: LearnerConfig,
) -> tuple[float, float, NDArray[np.float32]]:
    """Return the mean policy loss of ``batch``, the weight of its rows there, and its values."""
    made = make_batch(batch, features, config, None, bootstrap=False)
    inputs = [device.tensor(array) for array in made.features]
    with torch.no_grad():
        with device.autocast():
            logits, values = network(*inputs)
        loss = policy_loss(
            logits.float(),
            device.tensor(made.visit_shares),
            inputs[2],
            device.tensor(made.policy_weight),
        )
    return float(loss), float(made.policy_weight.sum()), values.float().cpu().numpy()


def root_value_bias(batch: Batch, outcomes: NDArray[np.float32]) -> dict[str, float]:
    """Return the mean of root value minus outcome by phase; phases without a value are absent."""
    full = is_full_search(batch.examples)
    if not np.any(full):
        return {}
    plies = batch.examples["ply"][full].astype(np.float64)
    bias = (batch.examples["root_value"][full] - outcomes[full, 0]).astype(np.float64)
    phase = np.searchsorted(np.quantile(plies, (1 / 3, 2 / 3)), plies, side="left")
    return {
        name: float(bias[phase == index].mean())
        for index, name in enumerate(PHASES)
        if np.any(phase == index)
    }


def is_trusted(measured: HeldOut | None, config: LearnerConfig) -> bool:
    """Return whether the value head has shown its worth: λ-returns and root values may be used.

    R² on the outcome of at least ``trust_r2`` over at least ``trust_games`` held-out games. It is
    asked anew with every measurement, so that trust goes off again when the head overfits.
    """
    if measured is None or measured.num_games < config.trust_games:
        return False
    return measured.outcome_r2 >= config.trust_r2  # False for NaN


def needs_playouts(
    measured: HeldOut | None, config: LearnerConfig, *, ever_trusted: bool, until_now: bool
) -> bool:
    """Return whether leaves are better valued by playouts than by the value head.

    So it is when a head that was trusted once explains less of the outcome than a constant would
    (R² below 0, over at least ``trust_games`` held-out games). A head that was never trusted goes
    on: without its own values a young run would never learn any. Where too little can be measured
    (a stream was lost) what holds ``until_now`` goes on.
    """
    if measured is None or measured.num_games < config.trust_games:
        return until_now
    if math.isnan(measured.outcome_r2):
        return until_now
    return ever_trusted and measured.outcome_r2 < 0.0
