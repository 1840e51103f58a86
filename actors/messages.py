"""The worker's ``step()``: request and reply.

Room: actors. The owner keeps exactly one short step in flight per worker; the reply carries what
the owner's metrics need (workers know no prometheus_client) and what the league needs.
"""

from __future__ import annotations

import msgspec

from league.messages import LeagueState


class StepRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One short call of ``SelfPlayWorker.step``."""

    epoch: int
    league: LeagueState
    budget_s: float = 0.0
    """Wall clock to spend; 0 in the in-process runtime."""
    max_evaluations: int = 0
    """Search evaluation batches to run at the most; 0 means no such bound."""
    insert_budget: int = 0
    """Eligible examples that the worker may still finish: the controller's back-pressure.

    When it is spent the worker idles (it still polls its outbox). Negative means unbounded.
    """
    paused: bool = False
    """Play nothing; only deliver what is in the outbox (drain before a stop, low disk)."""


class MatchupResult(msgspec.Struct, frozen=True, kw_only=True):
    """One finished game in which the learner's whole side met a pool member (for PFSP)."""

    opponent: int
    score: float
    """1 win of the learning side, 0.5 draw, 0 loss."""


class StepReply(msgspec.Struct, kw_only=True):
    """Reply of ``SelfPlayWorker.step``: figures of this call alone, unless said otherwise."""

    epoch: int
    node: str
    slot: int
    model_version: int
    """Newest version that the worker plays."""
    num_games: int = 0
    num_plies: int = 0
    num_simulations: int = 0
    num_evaluations: int = 0
    """Rows sent to the evaluator."""
    num_examples: int = 0
    """Eligible examples in games finished by this call."""
    busy_s: float = 0.0
    evaluate_s: float = 0.0
    """Part of ``busy_s`` spent in the network."""
    outbox: int = 0
    """Games not yet accepted (gauge)."""
    num_accepted: int = 0
    """Games accepted in this call."""
    resident_bytes: int = 0
    results: list[MatchupResult] = []
