"""The learner's ``step()``: request, reply and announcement of a version.

Room: learner.
"""

from __future__ import annotations

import msgspec


class LearnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One short call of ``Learner.step``."""

    epoch: int
    budget_s: float = 0.0
    """Wall clock to spend; 0 in the in-process runtime."""
    max_updates: int = 0
    """Optimizer steps at the most; 0 means no such bound."""
    next_version: int = 0
    """Number that the next exported version takes (the owner counts; never used twice)."""
    snapshot: bool = False
    """Return a snapshot at the end of this call."""
    drain: bool = False
    """Take no optimizer step: ingest what the streams hold, for the last snapshot of a run."""
    share: float = 1.0
    """Part of ``budget_s`` that may be spent computing; the rest is slept."""


class IngestedTotals(msgspec.Struct, kw_only=True):
    """Exact totals of all ingested entries since the run began (in the snapshot).

    Always ``entries = games + sum(rejected.values())`` and
    ``games = window_games + evicted_games + held_out_games``.
    """

    entries: int = 0
    """Entries of the streams, each once; the rejected ones included."""
    rejected: dict[str, int] = {}
    """By reason (replay.trajectory.Reason): entries that are no games of this run."""
    games: int = 0
    plies: int = 0
    simulations: int = 0
    full_searches: int = 0
    examples: int = 0
    """Eligible (policy) examples."""
    value_examples: int = 0
    """Value-only examples."""
    held_out_games: int = 0
    window_games: int = 0
    """Training games in the window now."""
    evicted_games: int = 0
    """Training games that are not in the window any more: newer ones took their place, or a
    rebuild did not find them."""
    lost_entries: int = 0

    def copy(self) -> IngestedTotals:
        """Return totals that do not change with these."""
        return msgspec.structs.replace(self, rejected=dict(self.rejected))


class LearnMetrics(msgspec.Struct, kw_only=True):
    """Figures of the latest updates; NaN where nothing is known yet."""

    policy_loss: float = float("nan")
    value_loss: float = float("nan")
    held_out_policy_loss: float = float("nan")
    held_out_value_loss: float = float("nan")
    value_r2: float = float("nan")
    held_out_value_r2: float = float("nan")
    held_out_outcome_r2: float = float("nan")
    held_out_scale: float = float("nan")
    """Mean absolute prediction over mean absolute target, held out."""
    held_out_games: int = 0
    """Held-out games that these figures rest on."""
    root_value_bias: dict[str, float] = {}
    """Mean of root value minus outcome on held-out games: ``early``, ``middle``, ``late`` plies."""
    value_trusted: bool = False
    """The held-out R² on the outcome has passed its bound over enough games."""
    leaves_by_playout: bool = False
    """The head was trusted once and its R² is below 0: searches value leaves by playouts."""
    learning_rate: float = float("nan")
    entropy: float = float("nan")
    """Mean entropy of the search policy in the batch, nats."""
    policy_lag: float = float("nan")
    """Mean over the batch of newest version minus version that made the example."""
    gradient_norm: float = float("nan")
    reward_shares: dict[str, float] = {}
    """Share of each reward term in the absolute differences between the sides."""


class LearnReply(msgspec.Struct, kw_only=True):
    """Reply of ``Learner.step``."""

    epoch: int
    num_updates: int = 0
    """Optimizer steps in this call."""
    step: int = 0
    """Optimizer steps since the run began."""
    totals: IngestedTotals = msgspec.field(default_factory=IngestedTotals)
    notes: tuple[str, ...] = ()
    """What the log has to say of rejected entries, in words."""
    metrics: LearnMetrics = msgspec.field(default_factory=LearnMetrics)
    window_positions: int = 0
    insert_budget: int = -1
    """Eligible examples that workers may insert before training catches up."""
    window_edge: dict[str, str] = {}
    """Per shard: streams may be trimmed below it once a manifest names this snapshot."""
    model: bytes = b""
    """ONNX bytes of a new version, exported and checked against torch; empty when none is due."""
    snapshot: bytes = b""
    """Whole learner state (weights, optimizer, RNG, reader state, controller), when asked for."""
    device: str = "cpu"
    busy_s: float = 0.0
    resident_bytes: int = 0
