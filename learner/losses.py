"""Losses over ragged candidates. Pure functions of tensors.

Room: learner. May import: torch.

R rows, C candidates of all rows; ``row`` is int64[C], the row of each candidate, ascending. A row
without candidates takes no part in the policy loss.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Losses(NamedTuple):
    """Scalars, each a mean over the rows that it speaks of."""

    policy: Tensor
    """Cross-entropy of the policy to the normalised visits, nats."""
    value: Tensor
    """Mean squared error on the [-1, 1] scale, over the rows that have a value target."""
    entropy: Tensor
    """Entropy of the normalised visits, nats: the least that ``policy`` can become."""


def segment_log_softmax(logits: Tensor, row: Tensor, num_rows: int) -> Tensor:
    """Return log-probabilities [C], normalised within each row.

    The largest logit of the row is taken off first, so that large logits do not overflow.
    """
    lowest = logits.new_full((num_rows,), -torch.inf)
    largest = lowest.scatter_reduce(0, row, logits.detach(), "amax", include_self=True)
    shifted = logits - largest.index_select(0, row)
    total = logits.new_zeros(num_rows).index_add(0, row, shifted.exp())
    return shifted - total.log().index_select(0, row)


def policy_loss(
    logits: Tensor, visit_shares: Tensor, row: Tensor, num_rows: int, num_policy_rows: int
) -> Tensor:
    """Return the mean cross-entropy over the policy rows, nats (0 without any).

    Args:
        logits: [C].
        visit_shares: [C], sums to 1 within each row that has candidates.
        row: int64[C].
        num_rows: R.
        num_policy_rows: rows that have candidates.
    """
    log_probabilities = segment_log_softmax(logits, row, num_rows)
    return -(visit_shares * log_probabilities).sum() / max(num_policy_rows, 1)


def visit_entropy(visit_shares: Tensor, num_policy_rows: int) -> Tensor:
    """Return the mean entropy of the visit shares over the policy rows, nats."""
    return torch.special.entr(visit_shares).sum() / max(num_policy_rows, 1)


def value_loss(values: Tensor, targets: Tensor, weight: Tensor) -> Tensor:
    """Return the weighted mean squared error of ``values`` [R, V] to ``targets`` [R, V].

    ``weight`` is [R]. Squared, not Huber: both sides are within [-1, 1], where outliers cannot be,
    and the outcome is nearly binary: its mean is wanted, not its median.
    """
    squares = (values - targets).square().mean(dim=1)
    return (squares * weight).sum() / weight.sum().clamp_min(1.0)


def losses(
    logits: Tensor,
    values: Tensor,
    visit_shares: Tensor,
    row: Tensor,
    targets: Tensor,
    value_weight: Tensor,
    num_policy_rows: int,
) -> Losses:
    """Return all losses of a batch; shapes as above."""
    num_rows = values.shape[0]
    return Losses(
        policy_loss(logits.float(), visit_shares, row, num_rows, num_policy_rows),
        value_loss(values.float(), targets, value_weight),
        visit_entropy(visit_shares, num_policy_rows),
    )
