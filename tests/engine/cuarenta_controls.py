"""Many games of Cuarenta between rule players, in one compiled loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import rules
from engine.game import get_spec
from engine.jit import kernel
from engine.rng import make_rng
from engine.rules import CHANCE, TERMINAL
from engine.rules import view as view_of

SPEC = get_spec("cuarenta")


@kernel
def _play(game: Any, states: Any, rng: Any, num_games: Any, totals: Any) -> Any:
    """Add the statistics of both sides to ``totals``; return the plies of all games."""
    state, seen = states[0], states[1]
    figures = np.zeros((2, len(totals)))
    plies = 0
    for index in range(num_games):
        rules.deal(game, state, np.uint64(index))
        seat = rules.current_seat(game, state)
        while seat != TERMINAL:
            if seat == CHANCE:
                rules.deal_next(game, state)
            else:
                view_of(game, state, seat, seen)
                rules.apply(game, state, rules.rule_action(game, seen, seat, rng))
                plies += 1
            seat = rules.current_seat(game, state)
        rules.statistics(game, state, figures)
        for k in range(len(totals)):
            totals[k] += figures[0, k] + figures[1, k]
    return plies


def play_rule_games(game: Any, num_games: int, seed: int) -> tuple[float, NDArray[np.float64]]:
    """Return plies, and ``SPEC.statistics`` of both sides together, per game."""
    totals = np.zeros(len(SPEC.statistics))
    plies = _play(game, SPEC.new_states(2), make_rng(seed), num_games, totals)
    return plies / num_games, totals / num_games
