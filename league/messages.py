"""What the league tells everybody: who may play, and who leads. Small, typed, sent every step.

Room: league.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class PairRecord(msgspec.Struct, frozen=True, kw_only=True):
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


ANCHOR = -1
"""Stands for the rule-based player among rated versions; its rating is 0 by definition."""


class PairTally(msgspec.Struct, frozen=True, kw_only=True):
    """Rating games between two players, as the first one sees them."""

    first: int
    """Version, or ANCHOR; the smaller number."""
    second: int
    scores: tuple[int, ...] = (0, 0, 0, 0, 0)
    """Pairs (the same cards twice) by score: 0, 1/4, 1/2, 3/4, 1."""
    wins: int = 0
    """Games."""
    draws: int = 0
    losses: int = 0


class RatingTable(msgspec.Struct, frozen=True, kw_only=True):
    """All rating games that count, and what they have in common."""

    basis: str = ""
    """Anchor (hash of golden games) and way of playing: results of another one are not added."""
    tallies: tuple[PairTally, ...] = ()
    """Ascending by (first, second)."""


class RatedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version's rating in Elo; the rule-based player has 0."""

    version: int
    rating: float
    low: float
    """Two-sided 95 % interval."""
    high: float
    num_pairs: int


class EvaluationResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a block of games against a fixed opponent found; everything counts whole pairs only."""

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
    """Means a game of the measured model's side: the game's statistics under their own names
    (``GameSpec.statistics``, such as ``score`` and ``caidas``), ``return`` (shaped, in points) and
    ``plies`` (of all seats)."""
    other: dict[str, float]
    """The same of the opponent's side."""
    seed: int
    """All deals of the block follow from it; with version, opponent, simulations and games (and a
    record's kind) it tells one block from another."""


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
    elapsed_s: float = 0.0
    """Training time of the run; 0 in the in-process runtime, where nothing hangs on time."""
    final: bool = False
    """The run's last gate: the newest version takes the place of an older candidate at once, and
    nothing else is played."""


class GateReply(msgspec.Struct, kw_only=True):
    """Reply of ``Gatekeeper.step``. ``outcomes`` holds each ended gate exactly once."""

    epoch: int
    status: GateStatus
    outcomes: list[GateOutcome] = []
    num_games: int = 0
    """Gate games finished in this call (never training data, as the two below)."""
    num_rating_games: int = 0
    num_evaluation_games: int = 0
    num_plies: int = 0
    evaluations: list[EvaluationResult] = []
    """Each ended block exactly once."""
    ratings: list[RatedVersion] | None = None
    """All ratings, best first, if they changed in this call."""
    versions_in_use: tuple[int, ...] = ()
    """Versions that evaluation and rating still need."""
    notes: list[str] = []
    """Events in words, for the log."""
    resident_bytes: int = 0


class EvaluationRecord(EvaluationResult, frozen=True, kw_only=True):
    """A block with where its version stood: a line of a run's ``evaluations.jsonl``.

    Unknown fields are ignored when a line is read, so that a newer program's file can be compared.
    """

    kind: Literal["scheduled", "closing"]
    """Played beside training, or by the closing table."""
    generated_games: int
    """Self-play games ingested when the version was made; -1 where the run does not know."""
    examples: int
    """Searched positions (eligible examples) ingested then; -1 where it does not know."""
    step: int
    """Optimizer steps of the version."""
    elapsed_s: float
    """Training time of the run when the version was made, over all invocations; -1 likewise."""
    time: str
    """When the record was written: ISO 8601, UTC."""


EVALUATIONS = "evaluations.jsonl"
"""File of the run directory with one EvaluationRecord a line, oldest first."""
