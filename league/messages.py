"""What the league tells everybody: who may play, and who leads. Small, typed, sent every step.

Room: league.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class PairRecord(msgspec.Struct, kw_only=True):
    """Games of the learning model (whole side) against one pool member, draws counted as half."""

    wins: float = 0.0
    games: int = 0


class LeagueState(msgspec.Struct, frozen=True, kw_only=True):
    """Enough for a worker to draw matchups on its own."""

    newest: int
    """Version that the learning seats play."""
    champion: int
    pool: tuple[int, ...]
    """Past champions, oldest first (bounded)."""
    records: dict[int, PairRecord] = {}


class GateStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Where the present gate stands."""

    candidate: int = -1
    """-1 when idle."""
    champion: int = -1
    num_pairs: int = 0
    """Pairs read in order of issue."""
    num_decided: int = 0
    wins: int = 0
    """Decided pairs won by the candidate."""
    llr: float = 0.0


class GateOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a gate ended."""

    candidate: int
    champion: int
    outcome: str
    """``promoted``, ``rejected`` or ``undecided``."""
    num_pairs: int
    num_decided: int
    wins: int
    llr: float
    score: float
    """Mean pair score of the candidate, draws as half."""


class GateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One short call of the gatekeeper; the owner keeps one in flight."""

    epoch: int
    league: LeagueState
    budget_s: float = 0.0
    """Wall clock to spend; 0 with ``max_pairs`` in the in-process runtime."""
    max_pairs: int = 0
    """Pairs to finish at the most; 0 means no such bound."""
    share: float = 1.0
    """Part of ``budget_s`` that may be spent computing; the rest is slept."""


class GateReply(msgspec.Struct, kw_only=True):
    """Reply of ``Gatekeeper.step``. ``outcomes`` holds each ended gate exactly once."""

    epoch: int
    status: GateStatus
    outcomes: list[GateOutcome] = []
    num_games: int = 0
    """Games finished in this call (never training data)."""
    num_plies: int = 0
    resident_bytes: int = 0


class EvaluationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One block of games against a fixed opponent: a line of a run's ``evaluations.jsonl``.

    Everything counts whole pairs only. Unknown fields are ignored when a line is read, so that a
    newer program's file can be compared.
    """

    kind: Literal["scheduled", "closing"]
    """Played beside training, or by the closing table."""
    version: int
    """Model version that was measured."""
    is_champion: bool
    """Whether it was the champion when its games began."""
    opponent: str
    """As players are written: ``rules``, ``ismcts:2000``."""
    simulations: int
    """Simulations a move of the measured model; 0 is its policy alone."""
    games: int
    wins: int
    """Games won by the measured model."""
    draws: int
    losses: int
    win_rate: float
    """Mean pair score of the measured model in [0, 1], draws as half."""
    win_rate_low: float
    """Two-sided 95 % interval, from pair scores."""
    win_rate_high: float
    own: dict[str, float]
    """Means a game of the measured model's side: ``score`` (win 1, draw 1/2), ``return`` (shaped),
    ``plies`` and the game's statistics under their own names (``GameSpec.statistics``)."""
    other: dict[str, float]
    """The same of the opponent's side."""
    generated_games: int
    """Self-play games ingested when the version was made known to the evaluation."""
    examples: int
    """Searched positions (eligible examples) ingested then."""
    step: int
    """Optimizer steps of the version."""
    elapsed_s: float
    """Training time of the run when the version was taken up, over all invocations."""
    seed: int
    """All deals of the block follow from it; with kind, version, opponent and simulations it tells
    one record from another."""
    time: str
    """When the record was written: ISO 8601, UTC."""


EVALUATIONS = "evaluations.jsonl"
"""File of the run directory with one EvaluationRecord a line, oldest first."""
