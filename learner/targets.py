"""What the value head is to predict. Pure numpy.

Room: learner. May import: numpy, replay (trajectory, window), learner.config.

Targets are differences between sides (own minus other), so that a value and its negation are the
two sides' views of one fact. Three kinds:

    win      outcome of the game, in [-1, 1]
    return   difference of the shaped returns at the end of the game / scale, cut to [-1, 1]
    equity   2 p - 1, p the probability of winning the game from where the example's hand ended
             (match-equity table); in the last hand the outcome

With V > 1 values (more than two sides) column k speaks of the side k places after the observer.

The targets are worked out when an example is sampled, with the equity table of that moment. Only
the λ-chain needs the rest of the game; it is linear in the final target z and is worked out once,
at ingestion: λ-return = chain_sum + chain_weight * z.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from learner.config import LearnerConfig
from replay.trajectory import BETWEEN_DEALS, FULL_SEARCH, OFF_TURN, Trajectory
from replay.window import LAST_HAND, Batch

CHAIN = np.dtype([("chain_sum", np.float32), ("chain_weight", np.float32)])


def facts_dtype(config: LearnerConfig) -> np.dtype[Any] | None:
    """Return the record that the window keeps beside each example; None when none is needed."""
    return CHAIN if config.td_lambda < 1.0 else None


def check_targets(config: LearnerConfig, num_values: int, num_equity_states: int) -> None:
    """Raise ValueError where the options of the targets exclude one another."""
    with_lambda, with_mix = config.td_lambda < 1.0, config.root_value_mix > 0.0
    if with_lambda and with_mix:
        raise ValueError(
            f"td_lambda = {config.td_lambda} and root_value_mix = {config.root_value_mix}: allowed "
            f"is one of the two (td_lambda = 1 or root_value_mix = 0)"
        )
    if num_values > 1 and (with_lambda or with_mix):
        raise ValueError(
            f"td_lambda = {config.td_lambda}, root_value_mix = {config.root_value_mix}: with more "
            f"than two sides allowed are td_lambda = 1 and root_value_mix = 0 (a search stores "
            f"one root value)"
        )
    target = effective_target(config.target, num_equity_states)
    if num_values > 1 and target != "win":
        raise ValueError(f"target = {target} with more than two sides: allowed is win")


def effective_target(target: str, num_equity_states: int) -> str:
    """Return ``target``, or ``win`` for ``equity`` in a game of a single hand."""
    return "win" if target == "equity" and num_equity_states == 0 else target


def facts_of(trajectory: Trajectory, config: LearnerConfig) -> NDArray[Any] | None:
    """Return the record of each example of ``trajectory``, or None when none is needed."""
    dtype = facts_dtype(config)
    if dtype is None:
        return None
    facts = np.zeros(len(trajectory.examples), dtype)
    facts["chain_sum"], facts["chain_weight"] = lambda_chains(
        trajectory.examples, config.td_lambda, per_hand=config.target == "equity"
    )
    return facts


def is_full_search(examples: NDArray[Any]) -> NDArray[np.bool_]:
    """Return bool[N]: own positions whose root value comes from a full search."""
    flags = examples["flags"]
    full: NDArray[np.bool_] = (flags & FULL_SEARCH) != 0
    return full & ((flags & (OFF_TURN | BETWEEN_DEALS)) == 0) & np.isfinite(examples["root_value"])


def lambda_chains(
    examples: NDArray[Any], td_lambda: float, *, per_hand: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return (chain_sum, chain_weight): the λ-return of an example is sum + weight * z.

    The chain of an example runs through the *same seat's own later* positions with a full search,
    and no others: v_1 … v_k, then z.

        G = (1 - λ) Σ λ^(n-1) v_n + λ^k z        (Sutton, Barto 2018, equation 12.3, no discount)

    ``per_hand``: it ends with the example's hand (z is then the equity at that hand's end).
    """
    chain_sum = np.zeros(len(examples), np.float32)
    chain_weight = np.ones(len(examples), np.float32)
    if td_lambda >= 1.0:
        return chain_sum, chain_weight
    full = is_full_search(examples)
    for seat in np.unique(examples["seat"]):
        total, weight, hand, later_ply = 0.0, 1.0, -1, -1
        pending: list[float] = []
        for i in np.flatnonzero(examples["seat"] == seat)[::-1]:
            example = examples[i]
            if per_hand and int(example["hand"]) != hand:
                total, weight, hand, pending = 0.0, 1.0, int(example["hand"]), []
            if int(example["ply"]) != later_ply:  # several examples of one ply are not later
                for value in pending:
                    total = (1.0 - td_lambda) * value + td_lambda * total
                    weight *= td_lambda
                pending, later_ply = [], int(example["ply"])
            chain_sum[i], chain_weight[i] = total, weight
            if full[i]:
                pending.append(float(example["root_value"]))
    return chain_sum, chain_weight


def value_targets(
    batch: Batch,
    config: LearnerConfig,
    equity: NDArray[np.float64] | None,
    *,
    bootstrap: bool,
) -> NDArray[np.float32]:
    """Return the targets ``float32[B, V]`` of sampled examples.

    Args:
        batch: B examples.
        config: kind of target, λ and share of the root value.
        equity: match-equity table, probability that the row's side wins; None without hands.
        bootstrap: whether the value head is trusted; without it λ = 1 and nothing is mixed in.
    """
    final = final_targets(batch, config, equity)
    if not bootstrap:
        return final
    if batch.facts is not None and config.td_lambda < 1.0:
        return (batch.facts["chain_sum"] + batch.facts["chain_weight"] * final[:, 0])[:, None]
    if config.root_value_mix > 0.0:
        full = is_full_search(batch.examples)
        share = np.where(full, np.float32(config.root_value_mix), np.float32(0.0))
        root = np.where(full, batch.examples["root_value"], np.float32(0.0))
        return ((1.0 - share) * final[:, 0] + share * root)[:, None]
    return final


def final_targets(
    batch: Batch, config: LearnerConfig, equity: NDArray[np.float64] | None
) -> NDArray[np.float32]:
    """Return z, ``float32[B, V]``: the target without any bootstrapping."""
    targets = outcome_targets(batch, config)
    if config.target == "equity" and equity is not None:
        known = batch.equity_row != LAST_HAND
        targets[known, 0] = 2.0 * equity[batch.equity_row[known]] - 1.0
    return targets


def outcome_targets(batch: Batch, config: LearnerConfig) -> NDArray[np.float32]:
    """Return ``float32[B, V]``: what trust in the value head is measured against.

    The end of the game on the scale of the head: its outcome, or the shaped return.
    """
    if config.target == "return":
        return np.clip(batch.shaped / np.float32(config.return_scale), -1.0, 1.0)[:, None]
    outcome = batch.outcome
    if outcome.shape[1] == 2:
        outcome = (outcome[:, :1] - outcome[:, 1:]) / np.float32(2.0)
    return np.clip(outcome, -1.0, 1.0)


def reward_differences(reward_terms: tuple[tuple[float, ...], ...]) -> NDArray[np.float64]:
    """Return ``float64[terms]``: the absolute difference between the sides in each reward term.

    More than two sides: the mean absolute difference to the mean of all.
    """
    terms = np.asarray(reward_terms, np.float64)
    if len(terms) == 2:
        return np.asarray(np.abs(terms[0] - terms[1]))
    return np.asarray(np.abs(terms - terms.mean(axis=0)).mean(axis=0))
