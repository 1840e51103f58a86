"""Options of matchmaking and of the gate. Room: league. Field docstrings are the help texts."""

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
    """Share of the machine that gate and rating together may take."""
