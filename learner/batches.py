"""Sampled examples -> one batch of network inputs and targets. numpy only.

Room: learner. May import: numpy, engine, replay, learner (features, targets, config).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from learner.config import LearnerConfig
from learner.features import FeatureMaker, Features
from learner.targets import value_targets
from replay.trajectory import POLICY, VALUE
from replay.window import Batch, Window

_GROWTH_EXPONENT = 0.75
_FIRST_GROWTH = 0.4


class TrainingBatch(NamedTuple):
    """R rows, C candidates of the rows with a policy target, V values."""

    features: Features
    visit_shares: NDArray[np.float32]
    """[C], sums to 1 within each row that has candidates."""
    targets: NDArray[np.float32]
    """[R, V], in [-1, 1]."""
    value_weight: NDArray[np.float32]
    """[R], 1 where the outcome is a value target, 0 elsewhere."""
    policy_weight: NDArray[np.float32]
    """[R], what the game says of rows with a policy target, 0 elsewhere."""
    mean_version: float
    """Mean over the policy rows of the version that made the example."""


def newest_share(num_inserted: int, num_eligible: int, config: LearnerConfig) -> float:
    """Return the share, in (0, 1], of the window that is sampled: its newest positions.

        c (1 + β ((N / c)^α - 1) / α) positions, α = 0.75, β = 0.4    (Wu 2019, appendix C)

    A window that only fills up would sample the first games most often, which are the weakest.
    Here the sampled part starts at c = ``config.sampled_positions`` positions, grows by β an
    insertion at first and more slowly later.

    Args:
        num_inserted: N, eligible training positions since the run began.
        num_eligible: eligible positions that the window holds.
        config: 0 ``sampled_positions`` means the whole window.
    """
    start = config.sampled_positions
    if start == 0 or num_eligible == 0:
        return 1.0
    growth = max(num_inserted / start, 1.0) ** _GROWTH_EXPONENT - 1.0
    wanted = start * (1.0 + _FIRST_GROWTH * growth / _GROWTH_EXPONENT)
    return min(1.0, wanted / num_eligible)


def draw(
    window: Window, rng: np.random.Generator, config: LearnerConfig, newest: float = 1.0
) -> NDArray[np.int64]:
    """Return the slots of one update: eligible examples, then value-only ones; advances ``rng``.

    Value-only examples are added, not counted: samples per insert speaks of eligible ones.
    ``newest`` is the share of the window that is drawn from.
    """
    slots = window.sample(rng, config.batch_size, newest)
    num_values = round(config.batch_size * config.value_only_share)
    if num_values == 0 or window.num_values == 0:
        return slots
    return np.concatenate([slots, window.sample_values(rng, num_values, newest)])


def make_batch(
    batch: Batch,
    features: FeatureMaker,
    config: LearnerConfig,
    equity: NDArray[np.float64] | None,
    *,
    bootstrap: bool,
) -> TrainingBatch:
    """Return what an update needs of the gathered examples. See ``value_targets``."""
    flags = batch.examples["flags"]
    policy = (flags & POLICY) != 0
    num_actions = np.where(policy, batch.examples["num_actions"], 0).astype(np.int64)
    made = features.make(batch.views, batch.examples["seat"], num_actions)
    versions = batch.examples["model_version"][policy]
    return TrainingBatch(
        features=made,
        visit_shares=_visit_shares(batch, policy, made.candidate_row),
        targets=value_targets(batch, config, equity, bootstrap=bootstrap),
        value_weight=((flags & VALUE) != 0).astype(np.float32),
        policy_weight=features.policy_weights(batch.views, policy),
        mean_version=float(versions.mean()) if len(versions) else float("nan"),
    )


def _visit_shares(
    batch: Batch, policy: NDArray[np.bool_], row: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the visits of the policy rows, normalised within each row."""
    visits = batch.visits.astype(np.float64)
    stored = batch.examples["num_actions"].astype(np.int64)
    visits = visits[np.repeat(policy, stored)]
    totals = np.bincount(row, weights=visits, minlength=len(policy))
    return np.asarray(visits / totals[row], np.float32)
