"""Options of self-play and of search. Room: actors. Field docstrings are the help texts."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class SearchConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one seat searches (learning.md, the tree)."""

    exploration: Annotated[float, Meta(gt=0)] = 1.5
    """PUCT constant c."""
    fpu_reduction: Annotated[float, Meta(ge=0)] = 0.2
    """First-play urgency: parent's value minus this, on the [-1, 1] scale."""
    partner: str = "tree"
    """How a partner's nodes choose: ``tree``, ``policy``, or ``by_hand``: by policy where a
    decision is about a hand and its actions are the same in all hands (bids, face-down discards).
    """
    opponents: str = "tree"
    """How opponents' nodes choose: ``tree``, ``policy`` or ``by_hand``."""
    leaf_value: str = "mover"
    """Whose view is valued at a leaf: ``mover`` or ``root_seat``."""


class SelfPlayConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One self-play worker."""

    num_workers: Annotated[int, Meta(ge=1, le=10_000)] = 2
    """Self-play workers over all nodes."""
    games: Annotated[int, Meta(ge=1, le=4096)] = 192
    """Games in lockstep per worker."""
    full_simulations: Annotated[int, Meta(ge=1, le=100_000)] = 64
    """Simulations of a full search (a policy target)."""
    fast_simulations: Annotated[int, Meta(ge=1, le=100_000)] = 16
    """Simulations of a fast search (a move, no policy target)."""
    full_share: Annotated[float, Meta(gt=0, le=1)] = 0.3
    """Share of moves that are searched fully, drawn per move from the game's own numbers."""
    dirichlet_alpha: Annotated[float, Meta(gt=0)] = 0.6
    """Concentration of the root noise of full searches."""
    noise_share: Annotated[float, Meta(ge=0, lt=1)] = 0.25
    """Share of the noise in the root priors of full searches."""
    temperature: Annotated[float, Meta(ge=0)] = 1.0
    """Moves are drawn from visits ** (1 / temperature); 0 plays the most visited."""
    off_turn_share: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Share of positions at which one other seat's view is stored as a value example."""
    outbox_games: Annotated[int, Meta(ge=1)] = 512
    """Finished games that a worker holds before acceptance; then it pauses."""
    share: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Part of its wall clock that a worker may spend playing."""
