"""Games of two sides that the rule player plays, as self-play would store them, without any search.

Every position of the seat to move has a value target, every third one a policy target.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine import rules
from engine.game import GameSpec
from engine.jit import engine_hash
from engine.rng import make_rng
from replay.trajectory import EXAMPLE, POLICY, VALUE, Header, Trajectory


def play(spec: GameSpec, game: Any, seed: int) -> Trajectory:
    """Play one game by the rule player; its move has most of the visits of every third ply."""
    rng = make_rng(seed)
    state, views = spec.new_state(), spec.new_states(spec.max_plies)
    legal = np.zeros(spec.max_actions, np.int64)
    examples = np.zeros(spec.max_plies, EXAMPLE)
    visits: list[int] = []
    hand_ends: list[tuple[int, ...]] = []
    rules.deal(game, state, np.uint64(seed))
    ply = 0
    while (seat := int(rules.current_seat(game, state))) != rules.TERMINAL:
        if seat == rules.CHANCE:
            rows = tuple(int(rules.equity_index(game, state, side)) for side in range(2))
            if rows[0] != rules.NO_HAND_END:
                hand_ends.append(rows)
            rules.deal_next(game, state)
            continue
        rules.view(game, state, seat, views[ply])
        count = int(rules.legal_actions(game, views[ply], legal))
        action = int(rules.rule_action(game, views[ply], seat, rng))
        flags = VALUE | (POLICY if ply % 3 == 0 else 0)
        examples[ply] = (ply, seat, flags, len(hand_ends), 0, 0, np.nan)
        if ply % 3 == 0:
            examples["num_actions"][ply] = count
            visits += [30 if a == action else 1 for a in legal[:count].tolist()]
        rules.apply(game, state, action)
        ply += 1
    header = _header(spec, game, state, (seed, ply), tuple(hand_ends))
    return Trajectory(header, examples[:ply], views[:ply], np.array(visits, np.uint16))


def _header(
    spec: GameSpec, game: Any, state: Any, course: tuple[int, int], hand_ends: tuple[Any, ...]
) -> Header:
    seed, num_plies = course
    seats = int(rules.num_seats(game))
    returns, terms = np.zeros(2), np.zeros((2, len(spec.reward_terms)))
    rules.returns(game, state, returns)
    rules.reward_terms(game, state, terms)
    return Header(
        run_id="run",
        game=spec.name,
        rules=spec.describe(game),
        engine_hash=engine_hash(),
        seed=seed,
        matchup="self_play",
        seat_versions=(0,) * seats,
        learner_seats=(True,) * seats,
        num_plies=num_plies,
        num_simulations=0,
        num_full_searches=0,
        returns=tuple(returns.tolist()),
        reward_terms=tuple(tuple(row) for row in terms.tolist()),
        statistics=((0.0,) * len(spec.statistics),) * 2,
        hand_ends=hand_ends,
    )
