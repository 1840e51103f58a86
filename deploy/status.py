"""What the owner says of a run: one struct for the live view, ``status``, and the metrics.

Room: deploy. The owner replaces ``status.json`` in the run directory atomically with it; readers
need nothing but this module.
"""

from __future__ import annotations

import msgspec

from league.messages import EvaluationRecord, GateOutcome, GateStatus, RatedVersion
from learner.messages import IngestedTotals, LearnMetrics


class WorkerStatus(msgspec.Struct, kw_only=True):
    """One actor as the owner sees it."""

    role: str
    """``selfplay``, ``learner`` or ``gate``."""
    node: str = ""
    slot: int = 0
    epoch: int = 0
    alive: bool = True
    restarts: int = 0
    last_reply_s: float = 0.0
    """Seconds since its last reply."""
    plies_per_s: float = 0.0
    simulations_per_s: float = 0.0
    evaluate_share: float = 0.0
    """Part of busy time in the network."""
    outbox: int = 0
    model_version: int = -1
    resident_bytes: int = 0
    device: str = ""


class RunStatus(msgspec.Struct, kw_only=True):
    """State of a run. Counters are totals since the run began, over all invocations."""

    run: str
    run_id: str = ""
    game: str = ""
    rules: str = ""
    state: str = "starting"
    """``starting``, ``running``, ``paused``, ``stopping``, ``stopped``."""
    message: str = ""
    """Latest event in words (promotion, restart, alert)."""
    epoch: int = 0
    started_at: float = 0.0
    """Unix time of this invocation."""
    updated_at: float = 0.0
    elapsed_s: float = 0.0
    """Training time over all invocations."""
    limit_s: float = 0.0
    """``--minutes`` in seconds; 0 without."""
    totals: IngestedTotals = msgspec.field(default_factory=IngestedTotals)
    metrics: LearnMetrics = msgspec.field(default_factory=LearnMetrics)
    games_per_s: float = 0.0
    plies_per_s: float = 0.0
    simulations_per_s: float = 0.0
    examples_per_s: float = 0.0
    updates_per_s: float = 0.0
    step: int = 0
    window_positions: int = 0
    window_capacity: int = 0
    stream_entries: int = 0
    stream_bytes: int = 0
    newest: int = -1
    champion: int = -1
    pool: tuple[int, ...] = ()
    gate: GateStatus = msgspec.field(default_factory=GateStatus)
    outcomes: list[GateOutcome] = []
    """Last ended gates, oldest first."""
    num_promoted: int = 0
    num_rejected: int = 0
    num_undecided: int = 0
    gate_games: int = 0
    rating_games: int = 0
    evaluation_games: int = 0
    evaluations: list[EvaluationRecord] = []
    """The last one of champion and of newest version, by opponent and simulations."""
    ratings: list[RatedVersion] = []
    """All rated versions, best first; empty until the arena has said so in this invocation."""
    workers: list[WorkerStatus] = []
    worker_restarts: int = 0
    server_restarts: int = 0
    resident_bytes: int = 0
    """All processes of the run on this machine."""
    metrics_url: str = ""
    alerts: list[str] = []
