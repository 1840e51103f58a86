"""The record of a game: what self-play hands to the learner.

Room: replay. Knows the engine's state records; knows nothing of torch, Redis or Ray.

An example is *the view that a seat held*, packed as the game's own record, beside what the search
found there. Nothing else of the true state is stored, so a decoded example cannot contain what
the seat did not know. Features are computed from the view when a batch is sampled. (A game of
public events plus hand masks, replayed by the reader, is smaller by a little and needs a second
implementation of every rule's bookkeeping; views compress to about the same size.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

SCHEMA_VERSION = 1
"""Raised whenever the meaning or layout of a trajectory changes; readers refuse others by name."""

# --- flags of an example --------------------------------------------------------------------------
POLICY = 1
"""The visits are a policy target (fully searched, seat of the learning model)."""
VALUE = 2
"""The outcome is a value target."""
BETWEEN_DEALS = 4
"""The view is of a position before a deal (no seat to move)."""
OFF_TURN = 8
"""The view belongs to a seat that is not to move."""
FULL_SEARCH = 16
"""The root value comes from a full search (fast searches never feed λ-returns)."""

EXAMPLE = np.dtype(
    (
        np.record,
        [
            ("ply", np.uint16),  # plies played before this position
            ("seat", np.uint8),  # whose view this is; all values below are from this seat's side
            ("flags", np.uint8),
            ("hand", np.uint16),  # index into Header.hand_ends
            ("num_actions", np.uint16),  # entries in ``visits``; 0 without POLICY
            ("model_version", np.uint32),  # version that searched here (policy lag)
            ("root_value", np.float32),  # in [-1, 1]; NaN where no search was made
        ],
    )
)


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts of the whole game. Lists over sides are in order of the side."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    game: str
    rules: dict[str, str]
    """All rule options in words (``GameSpec.describe``)."""
    engine_hash: str
    seed: int
    matchup: str
    """``self_play``, ``league`` or ``partner`` (a foreign partner sat in)."""
    seat_versions: tuple[int, ...]
    """Model version per seat at the first ply."""
    learner_seats: tuple[bool, ...]
    """Seats played by the learning model."""
    num_plies: int
    num_simulations: int
    num_full_searches: int
    returns: tuple[float, ...]
    """Outcome per side: +1, 0, -1."""
    reward_terms: tuple[tuple[float, ...], ...]
    """Per side, per ``GameSpec.reward_terms``."""
    statistics: tuple[tuple[float, ...], ...]
    """Per side, per ``GameSpec.statistics``."""
    hand_ends: tuple[tuple[int, ...], ...] = ()
    """Per finished hand but the last, per side: row of the match-equity table (engine.rules)."""


@dataclass(frozen=True)
class Trajectory:
    """One game's examples.

    N examples; ``visits`` holds the visit counts of all examples one after another, each in the
    canonical order of the legal actions of its view.
    """

    header: Header
    examples: NDArray[Any]
    """EXAMPLE[N], in order of ply."""
    views: Any
    """state_dtype[N]."""
    visits: NDArray[np.uint16]
    """uint16[sum of num_actions]."""

    def num_eligible(self) -> int:
        """Return how many examples carry a policy target (what samples-per-insert counts)."""
        return int(np.count_nonzero(self.examples["flags"] & POLICY))


Reason: TypeAlias = Literal[
    "stray",
    "damaged",
    "schema",
    "game",
    "record",
    "rules",
    "run",
    "view",
    "visits",
    "content",
    "size",
]
"""Why an entry of a stream is refused, in a word; what is counted and shown by it."""


class TrajectoryError(ValueError):
    """Bytes that are not a trajectory of this schema, game or engine; names what differs."""

    def __init__(self, message: str, reason: Reason = "content") -> None:
        super().__init__(message)
        self.reason = reason


def validate(trajectory: Trajectory) -> None:
    """Raise TrajectoryError unless the arrays of ``trajectory`` agree with one another."""
    examples, header = trajectory.examples, trajectory.header
    if examples.dtype != EXAMPLE:
        raise TrajectoryError(f"examples have dtype {examples.dtype}, expected {EXAMPLE}")
    if len(trajectory.views) != len(examples):
        raise TrajectoryError(f"{len(examples)} examples but {len(trajectory.views)} views")
    expected = int(examples["num_actions"].astype(np.int64).sum())
    if len(trajectory.visits) != expected:
        raise TrajectoryError(f"{len(trajectory.visits)} visit counts, examples name {expected}")
    with_policy = (examples["flags"] & POLICY) != 0
    if np.any(examples["num_actions"][with_policy] == 0):
        raise TrajectoryError("a policy example without visit counts")
    if len(examples) and int(examples["hand"].max()) > len(header.hand_ends):
        raise TrajectoryError("an example of a hand that the header does not know")
