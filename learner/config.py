"""Options of network and training. Room: learner. Field docstrings are the help texts."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class NetworkConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Residual network that scores candidates."""

    width: Annotated[int, Meta(ge=8, le=8192)] = 192
    """Width of the trunk."""
    num_layers: Annotated[int, Meta(ge=1, le=64)] = 3
    """Residual layers of the trunk."""
    candidate_width: Annotated[int, Meta(ge=8, le=8192)] = 96
    """Width of the tower that scores a candidate."""


class LearnerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Training, targets and window."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """``auto`` takes a GPU when there is one (bf16 there)."""
    threads: Annotated[int, Meta(ge=1)] = 1
    """Threads of torch on a CPU."""
    target: Literal["win", "return", "equity"] = "equity"
    """What the value head predicts; games of one hand use ``win`` for ``equity``."""
    return_scale: Annotated[float, Meta(gt=0)] = 30.0
    """Divisor of the shaped return."""
    td_lambda: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """λ of λ-returns; below 1 only in effect once the value head is trusted."""
    root_value_mix: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    """Share of the root value in value targets; never together with ``td_lambda`` < 1."""
    trust_r2: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """Held-out R² on the outcome from which the value head is trusted."""
    trust_games: Annotated[int, Meta(ge=1)] = 1000
    """Held-out games before a held-out figure is trusted."""
    held_out_share: Annotated[float, Meta(ge=0, lt=1)] = 0.1
    """Share of whole games kept out of training. With 0 the value head is never trusted, so that
    ``td_lambda`` below 1 and a ``root_value_mix`` are refused: they would do nothing."""
    held_out_rows: Annotated[int, Meta(ge=1)] = 8192
    """Held-out positions that one measurement looks at, spread over all held-out games."""
    batch_size: Annotated[int, Meta(ge=8)] = 1024
    """Eligible examples (with a policy target) an update."""
    value_only_share: Annotated[float, Meta(ge=0, le=4)] = 0.25
    """Value-only examples added to an update, as a share of ``batch_size``."""
    values_per_position: Annotated[float, Meta(ge=0, le=1000)] = 3.5
    """Room in the window for value-only examples, per eligible position. Too little of it shrinks
    the window: four-player Cuarenta makes 3.25 of them where 0.3 of the searches are full."""
    learning_rate: Annotated[float, Meta(gt=0)] = 1e-3
    """AdamW's step size."""
    final_learning_rate: Annotated[float, Meta(gt=0)] = 1e-3
    """Step size reached after ``decay_steps``."""
    decay_steps: Annotated[int, Meta(ge=1)] = 10_000
    """Updates over which the step size decays (cosine)."""
    weight_decay: Annotated[float, Meta(ge=0)] = 1e-4
    """AdamW's decay."""
    gradient_clip: Annotated[float, Meta(gt=0)] = 1.0
    """Largest norm of a gradient."""
    value_weight: Annotated[float, Meta(ge=0)] = 1.0
    """Weight of the value loss."""
    window_positions: Annotated[int, Meta(ge=1000)] = 600_000
    """Eligible positions that the window holds."""
    sampled_positions: Annotated[int, Meta(ge=0)] = 0
    """Newest eligible positions that updates sample at first; their number grows with the 3/4th
    power of the positions inserted, up to the whole window. 0 samples the whole window always."""
    min_window_positions: Annotated[int, Meta(ge=100)] = 10_000
    """No update before the window holds this many."""
    samples_per_insert: Annotated[float, Meta(gt=0)] = 3.0
    """Times an eligible example is sampled on average."""
    insert_slack_positions: Annotated[int, Meta(ge=1000)] = 20_000
    """Positions by which inserting may run ahead of training."""
    calibration_positions: Annotated[int, Meta(ge=0)] = 2048
    """Positions on which a version's ranges are measured, so that CPUs play it in eight bits; 0:
    they play it in float32."""
    updates_per_version: Annotated[int, Meta(ge=1)] = 100
    """Optimizer steps between two versions."""
    held_out_every: Annotated[int, Meta(ge=1)] = 100
    """Optimizer steps between two measurements on held-out games."""
    snapshot_updates: Annotated[int, Meta(ge=1)] = 500
    """Optimizer steps between two snapshots (both runtimes; the owner may ask sooner)."""
    max_lag: Annotated[int, Meta(ge=1)] = 1000
    """Versions of policy lag from which the metrics raise an alert."""
