"""Trajectories of Kuhn poker and of random content for the tests of this room."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.game import GameSpec, get_spec
from engine.games.kuhn import NO_CARD
from replay.trajectory import (
    EXAMPLE,
    FULL_SEARCH,
    POLICY,
    VALUE,
    Header,
    Trajectory,
)


def kuhn() -> tuple[GameSpec, Any]:
    """Return spec and default rules of Kuhn poker."""
    spec = get_spec("kuhn")
    return spec, spec.make()


def make_trajectory(
    seed: int,
    *,
    num_eligible: int = 3,
    num_values: int = 2,
    num_hands: int = 1,
    game: str = "kuhn",
    max_actions: int = 4,
) -> Trajectory:
    """Return a game of random content; every number in it can be told from ``seed``."""
    rng = np.random.default_rng(seed)
    spec, rules = kuhn()
    count = num_eligible + num_values
    examples = np.zeros(count, EXAMPLE)
    policy = np.zeros(count, bool)
    policy[rng.choice(count, size=num_eligible, replace=False)] = True
    examples["ply"] = np.arange(count)
    examples["seat"] = rng.integers(0, 2, count)
    examples["flags"] = np.where(policy, POLICY | VALUE | FULL_SEARCH, VALUE)
    examples["hand"] = np.sort(rng.integers(0, num_hands, count))
    examples["num_actions"] = np.where(policy, rng.integers(1, max_actions + 1, count), 0)
    examples["model_version"] = seed
    examples["root_value"] = np.where(policy, rng.uniform(-1, 1, count), np.nan)
    views = spec.new_states(count)
    views.cards[:] = NO_CARD
    views.cards[np.arange(count), examples["seat"]] = rng.integers(0, 3, count)
    views.num_plies[:] = rng.integers(0, 4, count)
    outcome = float(rng.choice([-1.0, 0.0, 1.0]))
    points = rng.integers(0, 30, (2, 1)).astype(float)
    header = Header(
        run_id="test",
        game=game,
        rules=spec.describe(rules),
        engine_hash="0123456789abcdef",
        seed=seed,
        matchup="self_play",
        seat_versions=(seed, seed),
        learner_seats=(True, True),
        num_plies=count,
        num_simulations=16 * count,
        num_full_searches=num_eligible,
        returns=(outcome, -outcome),
        reward_terms=tuple(tuple(row) for row in points.tolist()),
        statistics=((0.0,), (1.0,)),
        hand_ends=tuple((2 * hand, 2 * hand + 1) for hand in range(num_hands - 1)),
    )
    visits = rng.integers(0, 64, int(examples["num_actions"].sum())).astype(np.uint16)
    return Trajectory(header=header, examples=examples, views=views, visits=visits)


def assert_same(one: Trajectory, other: Trajectory) -> None:
    """Assert that two trajectories are equal, bit for bit."""
    assert one.header == other.header
    assert one.examples.tobytes() == other.examples.tobytes()
    assert np.asarray(one.views).tobytes() == np.asarray(other.views).tobytes()
    assert one.visits.tobytes() == other.visits.tobytes()
