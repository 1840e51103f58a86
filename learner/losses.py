"""Losses over ragged candidates. Pure functions of tensors.

Room: learner. May import: torch.

R rows, C candidates of all rows; ``row`` is int64[C], the row of each candidate, ascending. Weights
are [R]; a row without candidates has policy weight 0.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Losses(NamedTuple):
    """Scalars, each a weighted mean over the rows that it speaks of."""

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


def policy_loss(logits: Tensor, visit_shares: Tensor, row: Tensor, weight: Tensor) -> Tensor:
    """Return the weighted mean cross-entropy of the rows, nats (0 where none has a weight).

    Args:
        logits: [C].
        visit_shares: [C], sums to 1 within each row that has candidates.
        row: int64[C].
        weight: [R].
    """
    log_probabilities = segment_log_softmax(logits, row, len(weight))
    return _candidate_mean(-visit_shares * log_probabilities, row, weight)


def visit_entropy(visit_shares: Tensor, row: Tensor, weight: Tensor) -> Tensor:
    """Return the weighted mean entropy of the visit shares of the rows, nats."""
    return _candidate_mean(torch.special.entr(visit_shares), row, weight)


def _candidate_mean(terms: Tensor, row: Tensor, weight: Tensor) -> Tensor:
    """Return the weighted mean over the rows of the sums of their candidates' ``terms`` [C]."""
    total = weight.sum().clamp_min(torch.finfo(weight.dtype).tiny)
    return (terms * weight.index_select(0, row)).sum() / total


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
    policy_weight: Tensor,
) -> Losses:
    """Return all losses of a batch; shapes as above."""
    return Losses(
        policy_loss(logits.float(), visit_shares, row, policy_weight),
        value_loss(values.float(), targets, value_weight),
        visit_entropy(visit_shares, row, policy_weight),
    )
