"""Network and losses.

* An untrained value is about 0 and an untrained policy near uniform; weights follow from the seed.
* Ragged logits, log-probabilities and losses equal a padded reference.
* A row's answer does not depend on the other rows.
* Every parameter gets a gradient; rows without candidates get none from the policy loss.
* Large logits do not overflow; the least policy loss is the entropy of the visits.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from learner.config import NetworkConfig
from learner.export import check_inputs
from learner.losses import (
    losses,
    policy_loss,
    segment_log_softmax,
    value_loss,
    visit_entropy,
)
from learner.network import CandidateNetwork, NetworkShape, build_network

SHAPE = NetworkShape.of(
    NetworkConfig(width=24, num_layers=2, candidate_width=16),
    observation_size=11,
    action_size=5,
    num_values=1,
)


def ragged(num_rows: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    inputs = check_inputs(SHAPE, num_rows, seed)
    return (
        torch.from_numpy(inputs.observations),
        torch.from_numpy(inputs.candidates),
        torch.from_numpy(inputs.candidate_row),
    )


def visit_shares(row: torch.Tensor, num_rows: int) -> torch.Tensor:
    visits = torch.from_numpy(np.random.default_rng(5).integers(1, 50, len(row))).float()
    total = torch.zeros(num_rows).index_add(0, row, visits)
    return visits / total[row]


def equal_weights(row: torch.Tensor, num_rows: int) -> torch.Tensor:
    """1 for the rows with candidates."""
    return (torch.bincount(row, minlength=num_rows) > 0).float()


def test_untrained_value_is_near_zero_and_policy_near_uniform() -> None:
    network = build_network(SHAPE, seed=3)
    observations, candidates, row = ragged(64)
    logits, values = network(observations, candidates, row)
    assert values.shape == (64, 1)
    assert float(values.detach().abs().max()) < 0.1
    assert float(logits.detach().std()) < 0.5


def test_weights_follow_from_the_seed_and_leave_the_global_generator_alone() -> None:
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    first, again, other = (build_network(SHAPE, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])
    assert not torch.equal(first.input.weight, other.input.weight)


def padded_reference(
    network: CandidateNetwork, observations: torch.Tensor, candidates: torch.Tensor, row: list[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Each row on its own with its candidates padded to the longest and masked."""
    num_rows = len(observations)
    counts = [row.count(r) for r in range(num_rows)]
    longest = max(counts)
    log_probabilities = torch.full((num_rows, longest), -torch.inf)
    values = torch.zeros(num_rows, 1)
    start = 0
    for r, count in enumerate(counts):
        block = torch.zeros(longest, candidates.shape[1])
        block[:count] = candidates[start : start + count]
        start += count
        logits, value = network(observations[r : r + 1], block, torch.zeros(longest).long())
        logits = logits.masked_fill(torch.arange(longest) >= count, -torch.inf)
        values[r] = value[0]
        if count:
            log_probabilities[r] = torch.log_softmax(logits, 0)
    return log_probabilities, values


@pytest.mark.parametrize("num_rows", [1, 3, 64])
def test_ragged_equals_padded(num_rows: int) -> None:
    network = build_network(SHAPE, seed=4)
    observations, candidates, row = ragged(num_rows)
    rows = row.tolist()
    with torch.no_grad():
        logits, values = network(observations, candidates, row)
        got = segment_log_softmax(logits, row, num_rows)
        expected, expected_values = padded_reference(network, observations, candidates, rows)
    mask = torch.isfinite(expected)
    torch.testing.assert_close(got, expected[mask], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(values, expected_values, atol=1e-5, rtol=1e-5)
    shares = visit_shares(row, num_rows)
    padded_loss = -(shares * expected[mask]).sum() / len(set(rows))
    weight = equal_weights(row, num_rows)
    torch.testing.assert_close(
        policy_loss(logits, shares, row, weight), padded_loss, atol=1e-5, rtol=1e-5
    )


def test_a_row_does_not_depend_on_the_others() -> None:
    network = build_network(SHAPE, seed=4)
    observations, candidates, row = ragged(8)
    changed = observations.clone()
    changed[0] += 1.0
    changed[2:] -= 1.0
    own = row == 1
    with torch.no_grad():
        logits, values = network(observations, candidates, row)
        other_logits, other_values = network(changed, candidates, row)
    assert torch.equal(logits[own], other_logits[own])
    assert torch.equal(values[1], other_values[1])
    assert not torch.equal(logits[~own], other_logits[~own])


def test_every_parameter_gets_a_gradient() -> None:
    network = build_network(SHAPE, seed=6)
    observations, candidates, row = ragged(32)
    shares = visit_shares(row, 32)
    targets = torch.linspace(-1, 1, 32)[:, None]
    logits, values = network(observations, candidates, row)
    parts = losses(logits, values, shares, row, targets, torch.ones(32), equal_weights(row, 32))
    torch.autograd.backward(parts.policy + parts.value)
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        if name == "logit_out.bias":  # a softmax does not see a common shift
            assert float(parameter.grad.abs().max()) < 1e-5
        else:
            assert float(parameter.grad.abs().max()) > 0, name


def test_rows_without_candidates_take_no_part_in_the_policy_loss() -> None:
    observations, candidates, row = ragged(32)
    observations.requires_grad_(True)
    network = build_network(SHAPE, seed=6)
    logits, _ = network(observations, candidates, row)
    loss = policy_loss(logits, visit_shares(row, 32), row, equal_weights(row, 32))
    torch.autograd.backward(loss)
    assert observations.grad is not None
    num_candidates = torch.bincount(row, minlength=32)
    assert int((num_candidates == 0).sum()) > 0
    touched = observations.grad.abs().sum(dim=1) > 0
    assert torch.equal(touched, num_candidates > 1)  # one candidate alone has probability 1


def test_large_logits_do_not_overflow() -> None:
    logits = torch.tensor([1e4, 0.0, -1e4, 3.0])
    row = torch.tensor([0, 0, 0, 2])
    got = segment_log_softmax(logits, row, 3)
    torch.testing.assert_close(got, torch.tensor([0.0, -1e4, -2e4, 0.0]))


def test_least_policy_loss_is_the_entropy_of_the_visits() -> None:
    row = torch.tensor([0, 0, 1, 1, 1])
    shares = torch.tensor([0.25, 0.75, 0.5, 0.5, 0.0])
    loss = policy_loss(shares.clamp_min(1e-30).log(), shares, row, torch.ones(2))
    entropy = (-0.25 * np.log(0.25) - 0.75 * np.log(0.75) + np.log(2)) / 2
    assert float(loss) == pytest.approx(entropy, abs=1e-6)
    assert float(visit_entropy(shares, row, torch.ones(2))) == pytest.approx(entropy, abs=1e-6)


def test_a_batch_without_policy_rows_has_no_policy_loss() -> None:
    empty = torch.zeros(0)
    assert float(policy_loss(empty, empty, empty.long(), torch.zeros(4))) == 0.0


def test_a_row_of_a_quarter_of_the_weight_counts_a_quarter() -> None:
    row = torch.tensor([0, 0, 2, 2])
    logits = torch.tensor([0.0, 0.0, 3.0, -2.0])
    shares = torch.tensor([1.0, 0.0, 0.5, 0.5])
    first, last = np.log(2.0), (np.log1p(np.exp(-5.0)) + np.log1p(np.exp(5.0))) / 2
    weight = torch.tensor([1.0, 0.0, 0.25])
    loss = policy_loss(logits, shares, row, weight)
    assert float(loss) == pytest.approx((first + 0.25 * last) / 1.25)
    assert float(visit_entropy(shares, row, weight)) == pytest.approx(0.25 * np.log(2.0) / 1.25)


def test_value_loss_is_the_mean_square_over_the_weighted_rows() -> None:
    values, targets = torch.tensor([[0.5], [-1.0]]), torch.tensor([[1.0], [1.0]])
    assert float(value_loss(values, targets, torch.ones(2))) == pytest.approx((0.25 + 4.0) / 2)
    assert float(value_loss(values, targets, torch.tensor([1.0, 0.0]))) == pytest.approx(0.25)
    assert float(value_loss(values, targets, torch.zeros(2))) == 0.0
