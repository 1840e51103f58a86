"""What the value head is to predict. Pure numpy.

Room: learner. May import: numpy, engine (rules of sides), replay.trajectory, learner.config.

Targets are differences between sides (own minus other), so that a value and its negation are the
two sides' views of one fact. Three kinds:

    win      outcome of the game, in [-1, 1]
    return   difference of the shaped returns at the end of the game / scale, cut to [-1, 1]
    equity   2 p - 1, p the probability of winning the game from where the example's hand ended
             (match-equity table); in the last hand the outcome

With V > 1 values (more than two sides) column k speaks of the side k places after the observer.

What does not depend on the equity table is worked out once per example, at ingestion (``FACTS``);
the target itself when the example is sampled, with the table of that moment. A λ-return is linear
in the final target z: ``chain_sum + chain_weight * z``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import rules
from engine.evaluation import num_value_heads
from learner.config import LearnerConfig
from replay.trajectory import BETWEEN_DEALS, FULL_SEARCH, OFF_TURN, Trajectory

LAST_HAND = -1
"""``equity_row`` of an example in the last hand of its game."""


def facts_dtype(num_values: int) -> np.dtype[Any]:
    """Return the dtype of the facts that targets are made of, one record an example."""
    return np.dtype(
        [
            ("outcome", np.float32, (num_values,)),  # [-1, 1], observer first
            ("shaped", np.float32, (num_values,)),  # scaled and cut to [-1, 1]
            ("equity_row", np.int32),  # row of the observer's side, or LAST_HAND
            ("chain_sum", np.float32),  # λ-return = chain_sum + chain_weight * z
            ("chain_weight", np.float32),
            ("root_value", np.float32),  # of a full search; NaN without one
        ]
    )


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
    if num_values > 1 and config.target == "equity" and num_equity_states > 0:
        raise ValueError("target = equity with more than two sides: allowed are win, return")


def effective_target(target: str, num_equity_states: int) -> str:
    """Return ``target``, or ``win`` for ``equity`` in a game of a single hand."""
    return "win" if target == "equity" and num_equity_states == 0 else target


def relative_to_sides(per_side: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``[num_sides, V]``: what every side's observer is to predict.

    Two sides: half of own minus other. More: own entry first, then those after it, each as its
    difference to the mean of all (so that a row sums to zero).
    """
    num_sides = len(per_side)
    if num_sides == 2:
        half = (per_side[0] - per_side[1]) / 2.0
        return np.array([[half], [-half]])
    centred = per_side - per_side.mean()
    return np.stack([np.roll(centred, -side) for side in range(num_sides)])


def facts_of(game: Any, trajectory: Trajectory, config: LearnerConfig) -> NDArray[Any]:
    """Return the FACTS of all examples of ``trajectory``, in its order."""
    header, examples = trajectory.header, trajectory.examples
    num_sides = int(rules.num_sides(game))
    facts = np.zeros(len(examples), facts_dtype(num_value_heads(num_sides)))
    sides = np.array([rules.side_of(game, seat) for seat in range(rules.num_seats(game))], np.int64)
    side = sides[examples["seat"]]

    outcome = relative_to_sides(np.asarray(header.returns, np.float64))
    facts["outcome"] = np.clip(outcome, -1.0, 1.0)[side]
    totals = np.asarray(header.reward_terms, np.float64).sum(axis=1)
    # Own minus other, not half of it: the scale is stated for the difference.
    shaped = relative_to_sides(totals) * (2.0 if num_sides == 2 else 1.0)
    facts["shaped"] = np.clip(shaped / config.return_scale, -1.0, 1.0)[side]
    facts["equity_row"] = _equity_rows(header.hand_ends, examples["hand"], side)

    full = is_full_search(examples)
    facts["root_value"] = np.where(full, examples["root_value"], np.nan)
    per_hand = config.target == "equity"
    chain_sum, chain_weight = lambda_chains(examples, config.td_lambda, per_hand=per_hand)
    facts["chain_sum"], facts["chain_weight"] = chain_sum, chain_weight
    return facts


def _equity_rows(
    hand_ends: tuple[tuple[int, ...], ...], hand: NDArray[Any], side: NDArray[np.int64]
) -> NDArray[np.int32]:
    rows = np.full(len(hand), LAST_HAND, np.int32)
    if hand_ends:
        ends = np.asarray(hand_ends, np.int32)
        known = hand < len(ends)
        rows[known] = ends[hand[known].astype(np.int64), side[known]]
    return rows


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
    facts: NDArray[Any],
    config: LearnerConfig,
    equity: NDArray[np.float64] | None,
    *,
    bootstrap: bool,
) -> NDArray[np.float32]:
    """Return the targets ``float32[B, V]`` of sampled examples.

    Args:
        facts: FACTS[B].
        config: kind of target, λ and share of the root value.
        equity: match-equity table, probability that the row's side wins; None without hands.
        bootstrap: whether the value head is trusted; without it λ = 1 and nothing is mixed in.
    """
    final = final_targets(facts, config, equity)
    if not bootstrap:
        return final
    if config.td_lambda < 1.0:
        return (facts["chain_sum"] + facts["chain_weight"] * final[:, 0])[:, None]
    if config.root_value_mix > 0.0:
        root = facts["root_value"]
        share = np.where(np.isfinite(root), config.root_value_mix, 0.0).astype(np.float32)
        return ((1.0 - share) * final[:, 0] + share * np.nan_to_num(root))[:, None]
    return final


def final_targets(
    facts: NDArray[Any], config: LearnerConfig, equity: NDArray[np.float64] | None
) -> NDArray[np.float32]:
    """Return z, ``float32[B, V]``: the target without any bootstrapping."""
    if config.target == "return":
        return np.array(facts["shaped"])
    targets = np.array(facts["outcome"])
    if config.target == "equity" and equity is not None:
        known = facts["equity_row"] != LAST_HAND
        targets[known, 0] = 2.0 * equity[facts["equity_row"][known]] - 1.0
    return targets


def outcome_targets(facts: NDArray[Any], config: LearnerConfig) -> NDArray[np.float32]:
    """Return ``float32[B, V]``: what trust in the value head is measured against.

    The end of the game on the scale of the head: its outcome, or the shaped return.
    """
    return np.array(facts["shaped" if config.target == "return" else "outcome"])


def reward_differences(reward_terms: tuple[tuple[float, ...], ...]) -> NDArray[np.float64]:
    """Return ``float64[terms]``: the absolute difference between the sides in each reward term.

    More than two sides: the mean absolute difference to the mean of all.
    """
    terms = np.asarray(reward_terms, np.float64)
    if len(terms) == 2:
        return np.asarray(np.abs(terms[0] - terms[1]))
    return np.asarray(np.abs(terms - terms.mean(axis=0)).mean(axis=0))
