"""The match-equity table: who wins the game from a score between two hands. Pure numpy.

Room: learner, which owns the table; it travels to the search in a model's metadata.

A row stands for (own score, other score, who deals next) from one side's perspective. Each hand of
a finished game is seen from both sides: the row of each side counts that side's outcome, so a row
and its mirror image add up to 1 whenever their priors do.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

PRIOR_HANDS = 50.0
"""Hands that the prior of a row counts for."""
SLOPE_HANDS = 50.0
"""Hands, spread evenly over the rows, whose information holds the slope of the prior at 1."""
HALF_LIFE_HANDS = 100_000.0
"""Hands after which an older one counts for half: the table follows as play improves."""
_SLOPE_BOUNDS = (0.1, 10.0)
_NEWTON_STEPS = 20


class EquityState(msgspec.Struct, kw_only=True):
    """What a snapshot stores."""

    wins: list[float]
    hands: list[float]
    probabilities: list[float]
    slope: float
    num_new: int


class EquityTable:
    """Counts of the run's own hands over a prior; ``probabilities`` change only on ``refresh``.

    A row that is rarely seen stays near its prior, and the prior itself is steepened or flattened
    by one slope (on the logit scale) fitted to all rows, so that unseen scores follow the level of
    play too.
    """

    def __init__(self, prior: NDArray[np.float64]) -> None:
        if prior.ndim != 1 or not np.all((prior > 0.0) & (prior < 1.0)):
            raise ValueError("equity prior: allowed are probabilities strictly between 0 and 1")
        self._logits = np.log(prior) - np.log1p(-prior)
        self._wins = np.zeros(len(prior))
        self._hands = np.zeros(len(prior))
        self._num_new = 0
        self.slope = 1.0
        self.probabilities: NDArray[np.float64] = prior.astype(np.float64)

    def observe(self, hand_ends: tuple[tuple[int, ...], ...], returns: tuple[float, ...]) -> None:
        """Count the finished hands of one game: per hand and side a row, per side the outcome."""
        if not hand_ends:
            return
        scores = np.sign(np.asarray(returns)) / 2.0 + 0.5  # win 1, draw 1/2, loss 0
        rows = np.asarray(hand_ends, np.int64)
        if rows.min() < 0 or rows.max() >= len(self._hands):
            raise ValueError(
                f"equity row {rows.min()} to {rows.max()}: allowed are 0 to {len(self._hands) - 1}"
            )
        np.add.at(self._wins, rows, np.broadcast_to(scores, rows.shape))
        np.add.at(self._hands, rows, 1.0)
        self._num_new += len(rows)

    def refresh(self) -> None:
        """Recompute ``probabilities`` from the counts, then age the counts."""
        self.slope = _fit_slope(self._logits, self._wins, self._hands)
        prior = _sigmoid(self.slope * self._logits)
        self.probabilities = (PRIOR_HANDS * prior + self._wins) / (PRIOR_HANDS + self._hands)
        keep = 0.5 ** (self._num_new / HALF_LIFE_HANDS)
        self._wins *= keep
        self._hands *= keep
        self._num_new = 0

    def state(self) -> EquityState:
        """Return everything that ``restore`` needs."""
        return EquityState(
            wins=self._wins.tolist(),
            hands=self._hands.tolist(),
            probabilities=self.probabilities.tolist(),
            slope=self.slope,
            num_new=self._num_new,
        )

    def restore(self, state: EquityState) -> None:
        """Go on from ``state``. Raises ValueError for a table of another size."""
        if len(state.hands) != len(self._hands):
            raise ValueError(
                f"equity table of {len(state.hands)} rows: this game has {len(self._hands)}"
            )
        self._wins = np.array(state.wins)
        self._hands = np.array(state.hands)
        self.probabilities = np.array(state.probabilities)
        self.slope = state.slope
        self._num_new = state.num_new


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def _fit_slope(
    logits: NDArray[np.float64], wins: NDArray[np.float64], hands: NDArray[np.float64]
) -> float:
    """Return the slope a that best explains the counts by sigmoid(a * logits).

    Penalised maximum likelihood in one variable: the log-likelihood is concave, so Newton's steps,
    kept within the bounds, find its top.
    """
    p = _sigmoid(logits)
    hold = SLOPE_HANDS * float(np.mean(p * (1.0 - p) * logits**2))
    if hold == 0.0:  # a prior of one half everywhere has no slope
        return 1.0
    slope = 1.0
    for _ in range(_NEWTON_STEPS):
        p = _sigmoid(slope * logits)
        gradient = float(np.sum((wins - hands * p) * logits)) - hold * (slope - 1.0)
        curvature = float(np.sum(hands * p * (1.0 - p) * logits**2)) + hold
        step = np.clip(gradient / curvature, -1.0, 1.0)
        slope = float(np.clip(slope + step, *_SLOPE_BOUNDS))
        if abs(step) < 1e-9:
            break
    return slope


def equity_table(spec: Any, game: Any) -> EquityTable | None:
    """Return the table of ``game`` at its prior; None for games of a single hand."""
    if spec.num_equity_states == 0 or spec.equity_prior is None:
        return None
    return EquityTable(np.asarray(spec.equity_prior(game), np.float64))
