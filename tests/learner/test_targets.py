"""Targets, by hand-computed cases.

* ``win`` and ``return`` are own minus other; both sides' targets are each other's negation.
* ``equity`` is 2p - 1 at the end of the example's hand; in the last hand the outcome.
* λ-chains run through the same seat's own later full searches and nothing else.
* Without trust there is no bootstrapping; λ and root-value mixing exclude one another.
* With three sides column k is the side k places after the observer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.game import get_spec
from learner.config import LearnerConfig
from learner.targets import (
    check_targets,
    effective_target,
    facts_dtype,
    facts_of,
    final_targets,
    lambda_chains,
    outcome_targets,
    reward_differences,
    value_targets,
)
from replay.trajectory import (
    BETWEEN_DEALS,
    EXAMPLE,
    FULL_SEARCH,
    OFF_TURN,
    POLICY,
    VALUE,
    Header,
    Trajectory,
)
from replay.window import Batch, Window

SPEC = get_spec("kuhn")
GAME = SPEC.make()
FULL = VALUE | POLICY | FULL_SEARCH
NAN = float("nan")


def example_rows(rows: list[tuple[int, int, int, int, float]]) -> NDArray[Any]:
    """Rows of (ply, seat, flags, hand, root value)."""
    examples = np.zeros(len(rows), EXAMPLE)
    for name, column in zip(
        ("ply", "seat", "flags", "hand", "root_value"), zip(*rows, strict=True), strict=True
    ):
        examples[name] = column
    return examples


def trajectory(
    rows: list[tuple[int, int, int, int, float]],
    *,
    returns: tuple[float, float] = (1.0, -1.0),
    reward_terms: tuple[tuple[float, ...], ...] = ((20.0, 9.0), (0.0, 5.0)),
    hand_ends: tuple[tuple[int, ...], ...] = (),
) -> Trajectory:
    header = Header(
        run_id="run",
        game="kuhn",
        rules=SPEC.describe(GAME),
        engine_hash="x",
        seed=1,
        matchup="self_play",
        seat_versions=(0, 0),
        learner_seats=(True, True),
        num_plies=len(rows),
        num_simulations=0,
        num_full_searches=0,
        returns=returns,
        reward_terms=reward_terms,
        statistics=((), ()),
        hand_ends=hand_ends,
    )
    examples = example_rows(rows)
    examples["num_actions"] = np.where(examples["flags"] & POLICY, 2, 0)
    visits = np.ones(int(examples["num_actions"].sum()), np.uint16)
    return Trajectory(header, examples, SPEC.new_states(len(rows)), visits)


def gathered(
    rows: list[tuple[int, int, int, int, float]], config: LearnerConfig, **header: Any
) -> Batch:
    """All examples of one game, as a window hands them out."""
    game = trajectory(rows, **header)
    window = Window(SPEC, GAME, capacity=100, facts_dtype=facts_dtype(config))
    window.add(game, "1-0", facts=facts_of(game, config))
    return window.gather(np.arange(len(rows)))


TWO_SEATS = [(0, 0, VALUE, 0, NAN), (1, 1, VALUE, 0, NAN)]


def test_win_target_is_own_minus_other() -> None:
    config = LearnerConfig(target="win")
    batch = gathered(TWO_SEATS, config)
    assert final_targets(batch, config, None).tolist() == [[1.0], [-1.0]]
    draw = gathered(TWO_SEATS, config, returns=(0.0, 0.0))
    assert final_targets(draw, config, None).tolist() == [[0.0], [0.0]]


def test_return_target_is_the_scaled_difference_of_the_sums_of_terms() -> None:
    config = LearnerConfig(target="return", return_scale=60.0)
    batch = gathered(TWO_SEATS, config)
    np.testing.assert_allclose(final_targets(batch, config, None), [[24 / 60], [-24 / 60]])
    np.testing.assert_allclose(outcome_targets(batch, config), [[24 / 60], [-24 / 60]])


def test_return_target_is_cut_to_the_range_of_the_value_head() -> None:
    config = LearnerConfig(target="return", return_scale=10.0)
    batch = gathered(TWO_SEATS, config)
    assert final_targets(batch, config, None).tolist() == [[1.0], [-1.0]]


def test_equity_target_is_the_table_at_the_hands_end_and_the_outcome_in_the_last_hand() -> None:
    config = LearnerConfig(target="equity")
    rows = [(0, 0, VALUE, 0, NAN), (1, 1, VALUE, 0, NAN), (2, 0, VALUE, 1, NAN), TWO_SEATS[1]]
    rows[3] = (3, 1, VALUE, 2, NAN)
    table = np.array([0.1, 0.9, 0.6, 0.4])
    batch = gathered(rows, config, returns=(-1.0, 1.0), hand_ends=((1, 0), (2, 3)))
    np.testing.assert_allclose(
        final_targets(batch, config, table), [[0.8], [-0.8], [0.2], [1.0]], rtol=1e-6
    )
    np.testing.assert_allclose(outcome_targets(batch, config), [[-1.0], [1.0], [-1.0], [1.0]])


def test_equity_of_a_game_of_one_hand_is_win() -> None:
    config = LearnerConfig(target="equity")
    batch = gathered(TWO_SEATS, config)
    assert final_targets(batch, config, None).tolist() == [[1.0], [-1.0]]
    assert effective_target("equity", 0) == "win"
    assert effective_target("equity", 7) == "equity"
    assert effective_target("return", 0) == "return"


CHAIN = [
    (0, 0, FULL, 0, 0.1),
    (1, 1, FULL, 0, -0.7),  # the other seat: never in seat 0's chain
    (2, 0, VALUE, 0, 0.9),  # fast search: its root value is not used
    (3, 1, FULL, 0, -0.6),
    (4, 0, FULL, 0, 0.5),
    (5, 0, FULL | OFF_TURN, 0, 0.8),  # off-turn view: not an own position
    (6, 0, FULL | BETWEEN_DEALS, 0, 0.8),
    (7, 0, FULL, 0, NAN),  # no search value
    (8, 0, FULL, 0, 0.3),
]


def test_lambda_chain_runs_through_own_later_full_searches_only() -> None:
    lam = 0.8
    chain_sum, chain_weight = lambda_chains(example_rows(CHAIN), lam, per_hand=False)
    last = 0.2 * 0.3  # behind ply 8 there is only z
    both = 0.2 * 0.5 + lam * last
    own = [0, 2, 4, 5, 6, 7, 8]
    np.testing.assert_allclose(chain_sum[own], [both, both, last, last, last, last, 0], rtol=1e-6)
    np.testing.assert_allclose(chain_weight[own], [lam**2] * 2 + [lam] * 4 + [1.0], rtol=1e-6)
    other = 0.2 * -0.6
    np.testing.assert_allclose(chain_sum[[1, 3]], [other, 0.0], rtol=1e-6)
    np.testing.assert_allclose(chain_weight[[1, 3]], [lam, 1.0], rtol=1e-6)


def test_lambda_chain_ignores_values_of_other_seats() -> None:
    examples = example_rows(CHAIN)
    expected = lambda_chains(examples, 0.8, per_hand=False)
    examples["root_value"][examples["seat"] == 1] = 0.99
    got = lambda_chains(examples, 0.8, per_hand=False)
    own = examples["seat"] == 0
    assert np.array_equal(got[0][own], expected[0][own])


def test_two_examples_of_one_ply_are_not_later_than_each_other() -> None:
    rows = [(4, 0, FULL, 0, 0.5), (4, 0, VALUE | OFF_TURN, 0, NAN), (6, 0, FULL, 0, -0.5)]
    chain_sum, chain_weight = lambda_chains(example_rows(rows), 0.5, per_hand=False)
    np.testing.assert_allclose(chain_sum, [-0.25, -0.25, 0.0])
    np.testing.assert_allclose(chain_weight, [0.5, 0.5, 1.0])


def test_lambda_chain_of_equity_ends_with_the_hand() -> None:
    rows = [(0, 0, FULL, 0, 0.1), (1, 0, FULL, 0, 0.5), (2, 0, FULL, 1, 0.9), (3, 0, FULL, 1, 0.7)]
    chain_sum, chain_weight = lambda_chains(example_rows(rows), 0.5, per_hand=True)
    np.testing.assert_allclose(chain_sum, [0.25, 0.0, 0.35, 0.0], rtol=1e-6)
    np.testing.assert_allclose(chain_weight, [0.5, 1.0, 0.5, 1.0])


def test_lambda_returns_are_used_only_with_trust() -> None:
    config = LearnerConfig(target="win", td_lambda=0.5)
    batch = gathered([(0, 0, FULL, 0, 0.1), (1, 0, FULL, 0, 0.5)], config)
    assert value_targets(batch, config, None, bootstrap=False).tolist() == [[1.0], [1.0]]
    np.testing.assert_allclose(value_targets(batch, config, None, bootstrap=True), [[0.75], [1.0]])


def test_root_values_are_mixed_in_only_with_trust_and_only_of_full_searches() -> None:
    config = LearnerConfig(target="win", root_value_mix=0.25)
    rows = [(0, 0, FULL, 0, -0.2), (1, 0, VALUE, 0, -0.9), (2, 0, FULL | OFF_TURN, 0, -0.9)]
    batch = gathered(rows, config)
    assert value_targets(batch, config, None, bootstrap=False).tolist() == [[1.0]] * 3
    np.testing.assert_allclose(
        value_targets(batch, config, None, bootstrap=True), [[0.7], [1.0], [1.0]], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("config", "num_values", "allowed"),
    [
        (LearnerConfig(td_lambda=0.9, root_value_mix=0.1), 1, "one of the two"),
        (LearnerConfig(target="win", td_lambda=0.9), 3, "td_lambda = 1"),
        (LearnerConfig(target="win", root_value_mix=0.1), 3, "root_value_mix = 0"),
        (LearnerConfig(target="equity"), 3, "allowed is win"),
        (LearnerConfig(target="return"), 3, "allowed is win"),
    ],
)
def test_options_that_exclude_one_another_are_refused(
    config: LearnerConfig, num_values: int, allowed: str
) -> None:
    with pytest.raises(ValueError, match=allowed):
        check_targets(config, num_values, num_equity_states=4)


def test_three_sides_are_relative_to_the_observer() -> None:
    config = LearnerConfig(target="win")
    # The window has put the observer's side first: the loser gets -1, the others half a point.
    outcome = np.array([[-1.0, 0.5, 0.5], [0.5, 0.5, -1.0]], np.float32)
    batch = gathered(TWO_SEATS, config)._replace(outcome=outcome)
    assert final_targets(batch, config, None).tolist() == outcome.tolist()


def test_reward_differences_per_term() -> None:
    np.testing.assert_allclose(reward_differences(((20.0, 9.0), (0.0, 5.0))), [20.0, 4.0])
    np.testing.assert_allclose(reward_differences(((3.0,), (0.0,), (0.0,))), [4.0 / 3.0])
