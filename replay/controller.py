"""Samples per insert: how far training and self-play may run ahead of each other.

Room: replay. Standard library and msgspec only.

Every eligible position that enters the training window is worth ``samples_per_insert`` samples of
credit, every sampled position costs one. Training stops when the credit is short of a batch;
self-play is told to stop when the credit is worth ``slack`` positions. The state is the credit
itself and not a pair of totals whose difference is worked off: credit beyond twice the slack (a
stream read again after a resume) is forfeited, so there is no catch-up burst, and an empty window
(a lost stream) always leaves room to insert, so there is no deadlock.
"""

from __future__ import annotations

import math

import msgspec


class ControllerState(msgspec.Struct, kw_only=True):
    """What a snapshot stores."""

    credit: float = 0.0
    """Samples that may be taken."""
    num_inserted: int = 0
    """Eligible training positions since the run began."""
    num_sampled: int = 0
    """Positions sampled since the run began."""
    num_forfeited: float = 0.0
    """Samples of credit given up because training was too far behind."""


class SamplesPerInsert:
    """Bounds both sides.

    Args:
        samples_per_insert: times that a position is sampled on average.
        batch_size: positions of one update.
        min_window: no update before the window holds so many eligible positions.
        slack: positions by which inserting may run ahead of training.
        state: from a snapshot; the caller then says with ``rebuilt`` what the window holds.

    Raises:
        ValueError: the figures would block both sides for ever.
    """

    def __init__(
        self,
        *,
        samples_per_insert: float,
        batch_size: int,
        min_window: int,
        slack: int,
        state: ControllerState | None = None,
    ) -> None:
        if samples_per_insert <= 0 or batch_size < 1 or min_window < 1:
            raise ValueError(
                f"samples_per_insert {samples_per_insert}, batch_size {batch_size}, min_window "
                f"{min_window}: allowed are positive numbers"
            )
        # One position of room must be left whenever the credit is short of one batch.
        needed = math.ceil(batch_size / samples_per_insert) + 1
        if slack < needed:
            raise ValueError(
                f"insert slack of {slack} positions cannot pay a batch of {batch_size} at "
                f"{samples_per_insert} samples per insert: allowed are {needed} and more"
            )
        self.samples_per_insert = samples_per_insert
        self.batch_size, self.min_window, self.slack = batch_size, min_window, slack
        self.state = state or ControllerState()
        self.window_positions = 0

    def rebuilt(self, window_positions: int) -> None:
        """Say how many eligible positions the window holds after a resume (no credit for them)."""
        self.window_positions = window_positions

    def inserted(self, count: int) -> None:
        """Count ``count`` eligible positions that entered the training window."""
        state = self.state
        state.num_inserted += count
        # Evictions do not matter here: a window that has been full stays above its minimum.
        self.window_positions += count
        credit = state.credit + count * self.samples_per_insert
        state.credit = min(credit, 2.0 * self.slack * self.samples_per_insert)
        state.num_forfeited += credit - state.credit

    def sampled(self, count: int) -> None:
        """Count ``count`` sampled positions."""
        self.state.num_sampled += count
        self.state.credit -= count

    def may_sample(self, batch: int) -> bool:
        """Return whether ``batch`` positions may be sampled now."""
        return self.window_positions >= self.min_window and self.state.credit >= batch

    def insert_budget(self) -> int:
        """Return how many eligible positions workers may insert now; never negative."""
        ahead = self.state.credit / self.samples_per_insert
        to_minimum = self.min_window - self.window_positions
        return max(0, math.floor(self.slack - ahead), to_minimum)
