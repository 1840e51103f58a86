"""Options of matchmaking, gate, ratings and evaluations. Field docstrings are the help texts.

Room: league.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class LeagueConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who sits where in self-play."""

    pool_size: Annotated[int, Meta(ge=1, le=1000)] = 8
    """Past champions kept as opponents (bounds the models in a worker)."""
    self_play_floor: Annotated[float, Meta(ge=0, le=1)] = 0.7
    """Share of pure self-play."""
    self_play_ceiling: Annotated[float, Meta(ge=0, le=1)] = 0.9
    """Share once every pool member is beaten (posterior mean above one half)."""
    partner_share: Annotated[float, Meta(ge=0, le=1)] = 0.25
    """Share of league games in which a pool member sits in as the learner's partner."""
    pfsp_hard: Annotated[float, Meta(ge=0, le=1)] = 0.5
    """Weight of (1 - p)^2 against p (1 - p) in the choice of opponents."""


class GateConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Wald's sequential test on decided pairs (learning.md, gate and matches)."""

    p0: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    """Share of decided pairs that an equal candidate wins."""
    p1: Annotated[float, Meta(gt=0, lt=1)] = 0.6
    """Share from which a candidate should be promoted."""
    alpha: Annotated[float, Meta(gt=0, lt=0.5)] = 0.05
    """Nominal rate of promoting an equal candidate."""
    beta: Annotated[float, Meta(gt=0, lt=0.5)] = 0.04
    """Nominal rate of not promoting at ``p1``."""
    max_decided: Annotated[int, Meta(ge=1)] = 800
    """Decided pairs at the most; then undecided."""
    max_pairs: Annotated[int, Meta(ge=1)] = 3000
    """Issued pairs at the most; then undecided."""
    simulations: Annotated[int, Meta(ge=0)] = 64
    """Simulations a move for both; 0 is the argmax of the policy."""
    games: Annotated[int, Meta(ge=2, le=4096)] = 128
    """Games in lockstep."""
    share: Annotated[float, Meta(gt=0, le=1)] = 0.15
    """Share of the machine that gate, ratings and evaluations together may take."""
    final_s: Annotated[float, Meta(ge=0)] = 0.0
    """Last seconds of a run with a time limit, of the run's own: self-play and training rest, and
    the newest version challenges the champion at full speed. At most a tenth of the limit."""


class RatingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rating games between pool, newest version and rule-based player: neither gate nor training.

    They take what the gate leaves of ``gate.share``.
    """

    min_share: Annotated[float, Meta(ge=0, le=0.4)] = 0.1
    """Part of ``gate.share`` that they get although a gate runs; 0 plays none at all."""
    simulations: Annotated[int, Meta(ge=0)] = 16
    """Simulations a move for both; 0 is the argmax of the policy."""
    block_pairs: Annotated[int, Meta(ge=1, le=2048)] = 16
    """Pairs of the same two players that are played side by side."""
    newest_pairs: Annotated[int, Meta(ge=1)] = 48
    """Pairs for a version that is no champion before a newer one takes its place."""
    max_versions: Annotated[int, Meta(ge=2, le=1000)] = 64
    """Versions whose results are kept; members of the pool always are."""


class EvaluationConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Champion and newest version against fixed opponents, on a schedule, beside training.

    Without ``every_versions`` and ``every_minutes`` there are none.
    """

    every_versions: Annotated[int, Meta(ge=0)] = 0
    """Due again after so many versions; 0: not by versions."""
    every_minutes: Annotated[float, Meta(ge=0)] = 10.0
    """Due again after so much training; 0: not by time. Not in the in-process runtime."""
    opponents: tuple[str, ...] = ("rules", "ismcts:2000")
    """Written like players of ``cardleague match``; the first ones are played first."""
    simulations: tuple[Annotated[int, Meta(ge=0, le=1_000_000)], ...] = (0, 128)
    """Simulations a move of the measured version; 0 is its policy alone."""
    num_games: Annotated[int, Meta(ge=2, le=100_000)] = 100
    """Games of a block (even: they are played in pairs)."""
    games: Annotated[int, Meta(ge=2, le=4096)] = 32
    """Games in lockstep."""
    min_share: Annotated[float, Meta(ge=0.01, le=0.4)] = 0.15
    """Part of ``gate.share`` that they get although a gate runs."""
