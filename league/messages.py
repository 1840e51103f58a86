"""What the league tells everybody: who may play, and who leads. Small, typed, sent every step.

Room: league.
"""

from __future__ import annotations

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
