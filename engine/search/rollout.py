"""Evaluators without a network: playouts, a constant, and a hash of the row's features.

Room: engine. May import: numpy and the other rooms of engine below search.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.evaluation import EvalBatch
from engine.game import GameSpec
from engine.jit import inlined, kernel
from engine.rng import below, finalize, mix, uniform
from engine.rules import (
    CHANCE,
    NO_HAND_END,
    TERMINAL,
    apply,
    by_hand,
    current_seat,
    deal_next,
    equity_index,
    legal_actions,
    num_sides,
    returns,
    rule_action,
    side_of,
    view,
)
from engine.search.borrow import borrow
from engine.search.tree import plain_records

_TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53
_TOP_53 = np.uint64(11)
PREFERENCE = 4.0
"""Logit of the rule player's action beside 0 of the others: of four actions it gets 0.95."""


class ConstantEvaluator:
    """Uniform policy and one value: what a search does without any knowledge."""

    def __init__(self, value: float = 0.0) -> None:
        """Answer ``value`` for the observing side (and its negative, shared, for the others)."""
        self._value = value

    def evaluate(self, batch: EvalBatch, num_rows: int, num_candidates: int) -> None:
        """Fill the outputs of ``batch``."""
        batch.logits[:num_candidates] = 0.0
        batch.values[:num_rows] = 0.0
        batch.values[:num_rows, 0] = self._value
        others = batch.values.shape[1] - 1
        if others:
            batch.values[:num_rows, 1:] = -self._value / others


class HashingEvaluator:
    """Values and logits that are a hash of the row's own features.

    Any change of a feature changes the answer, and nothing else does: two searches that agree
    under it saw exactly the same features in the same order.
    """

    def __init__(self, salt: int = 0) -> None:
        """Different salts give unrelated evaluators."""
        self._salt = np.uint64(salt)

    def evaluate(self, batch: EvalBatch, num_rows: int, num_candidates: int) -> None:
        """Fill the outputs of ``batch``."""
        words = batch.observations.view(np.uint32), batch.candidates.view(np.uint32)
        _hash_rows(batch, words, self._salt, num_rows)


@kernel
def _hash_words(seed: Any, words: Any) -> Any:
    """Return the hash of a row of uint32 words."""
    for i in range(words.shape[0]):
        seed = finalize(seed ^ np.uint64(words[i])) + np.uint64(i)
    return finalize(seed)


@kernel
def _unit(bits: Any) -> Any:
    """Return a number in [0, 1) made of the high bits."""
    return np.float64(bits >> _TOP_53) * _TO_UNIT


@kernel
def _hash_rows(batch: Any, words: Any, salt: Any, num_rows: Any) -> None:
    observations, candidates = words
    for row in range(num_rows):
        model = mix(salt, np.uint64(batch.model[row]))
        hashed = _hash_words(model, observations[row])
        for k in range(batch.values.shape[1]):
            batch.values[row, k] = 2.0 * _unit(mix(hashed, np.uint64(k))) - 1.0
        for c in range(batch.offsets[row], batch.offsets[row + 1]):
            batch.logits[c] = 4.0 * _unit(_hash_words(hashed, candidates[c])) - 2.0


class RolloutEvaluator:
    """The outcome of one playout from the row's sampled world, and a policy.

    The policy is uniform, but for decisions about a hand whose actions are the same in all hands
    (``engine.rules.by_hand``): there the rule player's action has most of it.

    Each ply is played by the rule player with probability ``rule_share``, else at random; those
    decisions are all the rule player's. Playouts go through chance and end with the game or, where
    the game has hands and an equity table is given, at the hand's end with the table. They draw
    from the row's own seed.
    """

    def __init__(
        self,
        spec: GameSpec,
        game: Any,
        *,
        rule_share: float | None = None,
        equity: NDArray[np.float64] | None = None,
    ) -> None:
        """Prepare playouts.

        Args:
            spec: The game's facts; ``game`` is one of its variants.
            game: Rule options.
            rule_share: Probability in [0, 1] of a ply by the rule player; by default the spec's.
            equity: ``float64[num_equity_states]``; by default the spec's prior table, where it has
                one. An empty array plays to the end of the game.

        Raises:
            ValueError: ``rule_share`` or the length of ``equity`` is not allowed.
        """
        if rule_share is None:
            rule_share = spec.playout_rule_share
        if not 0.0 <= rule_share <= 1.0:
            raise ValueError(f"rule_share = {rule_share}: allowed are 0 to 1")
        if equity is None:
            prior = spec.equity_prior
            equity = np.zeros(0) if prior is None else np.asarray(prior(game), np.float64)
        if len(equity) not in (0, spec.num_equity_states):
            raise ValueError(
                f"equity table of {len(equity)} rows: {spec.name} has {spec.num_equity_states}"
            )
        self._game = game
        self._equity = np.ascontiguousarray(equity, np.float64)
        self._rule_share = float(rule_share)
        self._records = plain_records(spec.state_dtype, 2)
        self._actions = np.zeros(spec.max_actions, np.int64)
        self._outcome = np.zeros(int(num_sides(game)))
        self._rng = np.zeros(1, np.uint64)

    def evaluate(self, batch: EvalBatch, num_rows: int, num_candidates: int) -> None:
        """Fill the outputs of ``batch``."""
        batch.logits[:num_candidates] = 0.0
        scratch = (self._records, self._actions, self._outcome, self._rng)
        policy = (self._rule_share, self._equity)
        _play_rows(self._game, batch, num_rows, policy, scratch)


@kernel
def _play_rows(game: Any, batch: Any, num_rows: Any, policy: Any, scratch: Any) -> None:
    """Play every row out and write its values."""
    batch, policy, scratch = borrow(batch), borrow(policy), borrow(scratch)
    records, _, outcome, rng = scratch
    sides = num_sides(game)
    for row in range(num_rows):
        rng[0] = batch.seeds[row]
        records[0] = batch.worlds[row]
        if batch.logits.shape[0] > 0 and batch.offsets[row + 1] - batch.offsets[row] > 1:
            prefer_rules(game, batch, row, scratch)
        if batch.wants_value[row] == 0:
            batch.values[row] = 0.0
            continue
        play_out(game, policy, scratch)
        own = side_of(game, batch.seats[row])
        for k in range(batch.values.shape[1]):
            batch.values[row, k] = outcome[(own + k) % sides]


@inlined
def prefer_rules(game: Any, batch: Any, row: Any, scratch: Any) -> None:
    """Prefer the rule player's action among a row's candidates, where a hand is decided about.

    ``records[0]`` of ``scratch`` is the row's world, whose legal actions are the candidates.
    """
    records, actions, _, rng = scratch
    if not by_hand(game, records[0]):
        return
    count = legal_actions(game, records[0], actions)
    view(game, records[0], batch.seats[row], records[1])
    chosen = rule_action(game, records[1], batch.seats[row], rng)
    for i in range(count):
        if actions[i] == chosen:
            batch.logits[batch.offsets[row] + i] = PREFERENCE


@inlined
def play_out(game: Any, policy: Any, scratch: Any) -> None:
    """Play ``records[0]`` of ``scratch`` to its end and write the outcome per side.

    ``policy`` is (rule share, equity table or an empty array), ``scratch`` is (records[2],
    actions[A], outcome[S], rng); the rng is advanced.
    """
    records, _, outcome, _ = scratch
    _, equity = policy
    while True:
        seat = current_seat(game, records[0])
        if seat == TERMINAL:
            returns(game, records[0], outcome)
            return
        if seat == CHANCE:
            if equity.shape[0] > 0 and equity_index(game, records[0], 0) != NO_HAND_END:
                for side in range(outcome.shape[0]):
                    outcome[side] = 2.0 * equity[equity_index(game, records[0], side)] - 1.0
                return
            deal_next(game, records[0])
        else:
            apply(game, records[0], playout_action(game, seat, policy, scratch))


@inlined
def playout_action(game: Any, seat: Any, policy: Any, scratch: Any) -> Any:
    """Return the rule player's action (from its seat's own view) or a random one."""
    records, actions, _, rng = scratch
    rule_share, _ = policy
    count = legal_actions(game, records[0], actions)
    if count == 1:
        return actions[0]
    if rule_share > 0.0 and (by_hand(game, records[0]) or uniform(rng) < rule_share):
        view(game, records[0], seat, records[1])
        return np.int64(rule_action(game, records[1], seat, rng))
    return actions[below(rng, count)]
