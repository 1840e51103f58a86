"""What each legal action is worth by the playouts that searches without a network use.

Room: engine. May import: numpy and the other rooms of engine. All actions are tried in the same
worlds, so that their differences are less noisy than their values. ``flat`` is a player: it follows
each action with the rule player alone, and no further than the searching seat's next cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import rules
from engine.evaluation import new_batch
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
    batch = new_batch(spec, spec.encoders[0], int(rules.num_sides(game)), worlds)
    batch = batch._replace(worlds=plain_records(spec.state_dtype, worlds))
    batch.seats[:] = seat
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
