"""Evaluators without a network.

Behaviours: the mean of many playouts is the exact value of the playing policy; playouts use the
row's own seed, its world and its seat's side, and change none of them; with a table they end at the
hand's end; a decision about a hand whose actions are the same in all hands is the rule player's, in
playouts and, mostly, in the policy; the hash depends on every feature of its row, its candidate and
its model, and on nothing else; a mixture is refused outside [0, 1].
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.evaluation import EvalBatch, new_batch
from engine.game import GameSpec, get_spec
from engine.games.forty_fives import HIGHEST_SCORE, LOWEST_SCORE
from engine.games.forty_fives_state import LEVEL_20
from engine.search.rollout import (
    PREFERENCE,
    ConstantEvaluator,
    HashingEvaluator,
    RolloutEvaluator,
)
from tests.engine import relay_game
from tests.engine.forty_fives_controls import at_play, do, to_discards


def batch_of(spec: GameSpec, game: Any, states: list[Any], seats: list[int]) -> EvalBatch:
    """Return a batch of worlds, without features, with one seed per row."""
    batch = new_batch(spec, spec.encoders[0], int(rules.num_sides(game)), len(states))
    for row, state in enumerate(states):
        batch.worlds[row] = state
        batch.seats[row] = seats[row]
        batch.seeds[row] = row
    return batch


def values(evaluator: Any, batch: EvalBatch) -> Any:
    evaluator.evaluate(batch, len(batch.seats), 0)
    return batch.values.copy()


def random_play_value(game: Any, state: Any) -> float:
    """Return the exact value for side 0 of a Kuhn world when both seats choose evenly."""
    if rules.current_seat(game, state) == rules.TERMINAL:
        out = np.zeros(2)
        rules.returns(game, state, out)
        return float(out[0])
    total = 0.0
    for action in (0, 1):
        after = state.copy()
        rules.apply(game, after, action)
        total += 0.5 * random_play_value(game, after)
    return total


def test_mean_of_random_playouts_is_the_exact_value_of_random_play() -> None:
    spec = get_spec("kuhn")
    game = spec.make()
    assert spec.initial_states is not None
    evaluator = RolloutEvaluator(spec, game, rule_share=0.0)
    for _, state in spec.initial_states(game):
        exact = random_play_value(game, state)
        for seat, sign in ((0, 1.0), (1, -1.0)):
            found = values(evaluator, batch_of(spec, game, [state] * 4000, [seat] * 4000))
            deviation = found.std() / np.sqrt(4000)
            assert abs(found.mean() - sign * exact) < 4 * deviation


def test_playouts_depend_on_their_own_row_alone() -> None:
    spec = get_spec("cuarenta")
    game = spec.make("report_a_4p")
    states = []
    for seed in range(6):
        state = spec.new_state()
        rules.deal(game, state, np.uint64(seed))
        states.append(state)
    evaluator = RolloutEvaluator(spec, game)
    batch = batch_of(spec, game, states, [0, 1, 2, 3, 0, 1])
    together = values(evaluator, batch)
    for row in range(6):
        alone = batch_of(spec, game, [states[row]], [int(batch.seats[row])])
        alone.seeds[0] = batch.seeds[row]
        assert values(evaluator, alone)[0, 0] == together[row, 0]
    # What was handed in is still there.
    assert batch.seeds.tolist() == list(range(6))
    for row in range(6):
        assert batch.worlds[row].tobytes() == states[row].tobytes()
    # Partners share a value, opponents have its negative.
    for seat, sign in ((0, 1.0), (1, -1.0), (2, 1.0), (3, -1.0)):
        alone = batch_of(spec, game, [states[0]], [seat])
        assert values(evaluator, alone)[0, 0] == sign * together[0, 0]


def test_playouts_of_rule_players_are_the_games_of_rule_players() -> None:
    game = relay_game.Relay()
    spec = relay_game.SPEC
    state = spec.new_state()
    rules.deal(game, state, np.uint64(5))
    found = values(
        RolloutEvaluator(spec, game, rule_share=1.0), batch_of(spec, game, [state] * 3, [0, 1, 2])
    )
    while rules.current_seat(game, state) != rules.TERMINAL:
        seat = rules.current_seat(game, state)
        if seat == rules.CHANCE:
            rules.deal_next(game, state)
            continue
        action = rules.rule_action(game, state, seat, np.zeros(1, np.uint64))
        rules.apply(game, state, action)
    exact = np.zeros(3)
    rules.returns(game, state, exact)
    for seat in range(3):  # columns are relative to the observing seat's side
        np.testing.assert_allclose(found[seat], np.roll(exact, -seat), rtol=1e-6)


def test_the_share_of_the_rule_player_is_the_games() -> None:
    spec = dataclasses.replace(relay_game.SPEC, playout_rule_share=1.0)
    game = relay_game.Relay()
    states = []
    for seed in range(20):
        state = spec.new_state()
        rules.deal(game, state, np.uint64(seed))
        states.append(state)
    batch = batch_of(spec, game, states, [0] * len(states))
    found = values(RolloutEvaluator(spec, game), batch)
    by_rules = values(RolloutEvaluator(relay_game.SPEC, game, rule_share=1.0), batch)
    mixed = values(RolloutEvaluator(relay_game.SPEC, game), batch)
    assert found.tolist() == by_rules.tolist() != mixed.tolist()


def test_with_an_equity_table_a_playout_ends_with_the_hand() -> None:
    spec = get_spec("cuarenta")
    game = spec.make("report_a_4p")
    state = spec.new_state()
    rules.deal(game, state, np.uint64(1))
    batch = batch_of(spec, game, [state] * 200, [0] * 200)
    table = np.full(spec.num_equity_states, 0.8)
    by_table = values(RolloutEvaluator(spec, game, equity=table), batch)
    ended = np.abs(by_table) == 1.0
    np.testing.assert_allclose(by_table[~ended], 0.6, rtol=1e-6)
    assert np.count_nonzero(ended) < 100
    whole = values(RolloutEvaluator(spec, game, equity=np.zeros(0)), batch)
    assert set(np.unique(whole).tolist()) <= {-1.0, 0.0, 1.0}
    prior = values(RolloutEvaluator(spec, game), batch)
    assert len(np.unique(prior)) > 5  # by default the prior table of the game


def test_bids_of_playouts_are_the_rule_players() -> None:
    spec = get_spec("forty_fives")
    game = spec.make()
    states = []
    for seed in range(100):  # the dealer has to bid: 30for60 at random, 20 with a hand like most
        state = spec.new_state()
        rules.deal(game, state, np.uint64(seed))
        do(game, state, "pass", "pass", "pass")
        if rules.rule_action(game, state, state.dealer, np.zeros(1, np.uint64)) == LEVEL_20:
            states.append(state)
    assert len(states) > 50
    # Won where the dealer's side has lost 30 points or gained 60.
    scores = np.arange(LOWEST_SCORE, HIGHEST_SCORE + 1, 5)
    row = np.isin(scores, (-30, 60)).astype(float)
    table = np.repeat(row, 2 * len(scores))
    seats = [int(state.dealer) for state in states]
    found = values(
        RolloutEvaluator(spec, game, rule_share=1e-9, equity=table),
        batch_of(spec, game, states, seats),
    )
    assert np.all(found[:, 0] == -1.0)
    by_chance = values(
        RolloutEvaluator(spec, game, rule_share=0.0, equity=table),
        batch_of(spec, game, states, seats),
    )
    assert np.mean(by_chance[:, 0] == 1.0) > 0.2


def test_the_policy_of_playouts_prefers_the_rule_player_where_a_hand_is_decided_about() -> None:
    spec = get_spec("forty_fives")
    game = spec.make()
    dealt = spec.new_state()
    rules.deal(game, dealt, np.uint64(4))
    hands = ["9S 2C 3C 4C 6C", "5S 10S KD QD 9D", "2D 3D 4D 6D 7D", "2H 3H 4H 6H 7H"]
    states = [dealt, to_discards(game), at_play(game, "S", hands)]
    seats = [int(rules.current_seat(game, state)) for state in states]
    batch = batch_of(spec, game, states, seats)
    legal = np.zeros((3, spec.max_actions), np.int64)
    counts = [rules.legal_actions(game, state, legal[i]) for i, state in enumerate(states)]
    batch.offsets[:] = np.cumsum([0, *counts])
    batch.logits[:] = np.nan
    RolloutEvaluator(spec, game).evaluate(batch, 3, sum(counts))
    for i, state in enumerate(states):
        chosen = rules.rule_action(game, state, seats[i], np.zeros(1, np.uint64))
        preferred = i < 2
        expected = [PREFERENCE * (preferred and code == chosen) for code in legal[i, : counts[i]]]
        assert batch.logits[batch.offsets[i] : batch.offsets[i + 1]].tolist() == expected


def test_hash_depends_on_every_feature_of_the_row_and_on_nothing_else() -> None:
    game, spec = relay_game.Relay(), relay_game.SPEC
    batch = new_batch(spec, relay_game.ENCODER, 3, 2)
    random = np.random.default_rng(0)
    batch.observations[:] = random.random(batch.observations.shape)
    batch.candidates[:5] = random.random((5, 1))
    batch.offsets[:] = [0, 2, 5]
    evaluator = HashingEvaluator()

    def answers() -> tuple[Any, Any]:
        evaluator.evaluate(batch, 2, 5)
        return batch.values.copy(), batch.logits[:5].copy()

    values_before, logits_before = answers()
    assert len(np.unique(values_before)) == 6
    assert len(np.unique(logits_before)) == 5
    for feature in range(batch.observations.shape[1]):
        kept = batch.observations[0, feature]
        batch.observations[0, feature] += 1e-3
        values_after, logits_after = answers()
        assert np.all(values_after[0] != values_before[0])
        assert np.all(logits_after[:2] != logits_before[:2])
        np.testing.assert_array_equal(values_after[1], values_before[1])
        np.testing.assert_array_equal(logits_after[2:], logits_before[2:])
        batch.observations[0, feature] = kept
    batch.candidates[1] += 1e-3
    values_after, logits_after = answers()
    np.testing.assert_array_equal(values_after, values_before)
    assert (logits_after != logits_before).tolist() == [False, True, False, False, False]
    batch.candidates[1] -= 1e-3
    batch.model[1] = 1
    assert np.all(answers()[0][1] != values_before[1])
    batch.model[1] = 0
    batch.seats[:] = 2
    batch.seeds[:] = 99
    rules.deal(game, batch.worlds[0], np.uint64(1))
    np.testing.assert_array_equal(answers()[0], values_before)


def test_constant_evaluator_answers_for_the_observing_side() -> None:
    batch = new_batch(relay_game.SPEC, relay_game.ENCODER, 3, 2)
    ConstantEvaluator(0.5).evaluate(batch, 2, 0)
    assert batch.values.tolist() == [[0.5, -0.25, -0.25]] * 2


def test_what_is_not_allowed_is_named() -> None:
    spec = get_spec("cuarenta")
    with pytest.raises(ValueError, match=r"rule_share = 1.5: allowed are 0 to 1"):
        RolloutEvaluator(spec, spec.make(), rule_share=1.5)
    with pytest.raises(ValueError, match="equity table of 3 rows"):
        RolloutEvaluator(spec, spec.make(), equity=np.zeros(3))
