"""Flat Monte Carlo: what each legal action is worth by playouts from sampled worlds.

Room: engine. May import: numpy and the other rooms of engine. All actions are tried in the same
worlds, so that their differences are less noisy than their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import rules
from engine.evaluation import EvalBatch, num_value_heads
from engine.game import GameSpec
from engine.rng import Rng, next_u64
from engine.search.rollout import RolloutEvaluator
from engine.search.tree import plain_records


def playout_values(
    spec: GameSpec, game: Any, view: Any, seat: int, actions: Sequence[int], rng: Rng, worlds: int
) -> NDArray[np.float64]:
    """Return the mean outcome of each action for the side of ``seat``, one playout a world.

    Args:
        spec: The game's facts; ``game`` is one of its variants.
        game: Rule options.
        view: View of ``seat``, which is to move.
        seat: That seat.
        actions: Legal actions.
        rng: Of worlds and playouts; it is advanced.
        worlds: Sampled worlds.
    """
    batch = _batch(spec, game, seat, worlds)
    drawn = plain_records(spec.state_dtype, worlds)
    for world in drawn:
        rules.determinize(game, view, seat, rng, world)
    for row in range(worlds):
        batch.seeds[row] = np.uint64(next_u64(rng))
    evaluator = RolloutEvaluator(spec, game)
    values = np.zeros(len(actions))
    for index, action in enumerate(actions):
        batch.worlds[:] = drawn
        for world in batch.worlds:
            rules.apply(game, world, np.int64(action))
        evaluator.evaluate(batch, worlds, 0)
        values[index] = float(np.mean(batch.values[:, 0]))
    return values


def _batch(spec: GameSpec, game: Any, seat: int, rows: int) -> EvalBatch:
    """Return rows that ask ``seat``'s value of their worlds and have no candidates."""
    return EvalBatch(
        observations=np.zeros((rows, 1), np.float32),
        candidates=np.zeros((1, 1), np.float32),
        candidate_row=np.zeros(1, np.int64),
        offsets=np.zeros(rows + 1, np.int64),
        model=np.zeros(rows, np.int32),
        seats=np.full(rows, seat, np.int64),
        worlds=plain_records(spec.state_dtype, rows),
        seeds=np.zeros(rows, np.uint64),
        wants_value=np.ones(rows, np.uint8),
        logits=np.zeros(1, np.float32),
        values=np.zeros((rows, num_value_heads(int(rules.num_sides(game)))), np.float32),
    )
