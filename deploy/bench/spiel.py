"""OpenSpiel's ISMCTS with random playouts: ``python -m deploy.bench.spiel GAME``.

Room: deploy. A process of its own: it needs the package ``open_spiel`` (extra ``test``), nothing
else of the program. One thread. Searches decisions along games of random moves and prints one line
of JSON: simulations, processor seconds, wall seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from typing import Any

UCT_C = 2.0


def main(argv: list[str] | None = None) -> int:
    """Measure one game."""
    parser = argparse.ArgumentParser(description="Simulations a second of OpenSpiel's ISMCTS.")
    parser.add_argument("game")
    parser.add_argument("--simulations", type=int, default=1000, help="a decision")
    parser.add_argument("--decisions", type=int, default=64)
    parser.add_argument("--stride", type=int, default=1, help="search every so many decisions")
    parser.add_argument("--skip", type=int, default=0, help="plies of each game left out")
    parser.add_argument("--seed", type=int, default=20)
    options = parser.parse_args(argv)

    import pyspiel

    evaluator = pyspiel.RandomRolloutEvaluator(1, options.seed)
    bot = pyspiel.ISMCTSBot(
        options.seed,
        evaluator,
        UCT_C,
        options.simulations,
        -1,  # a new world for every simulation
        pyspiel.ISMCTSFinalPolicyType.MAX_VISIT_COUNT,
        False,
        True,
    )
    wall, cpu = run(pyspiel.load_game(options.game), bot, options)
    count = options.decisions * options.simulations
    sys.stdout.write(json.dumps({"simulations": count, "cpu_s": cpu, "wall_s": wall}) + "\n")
    return 0


def run(game: Any, bot: Any, options: argparse.Namespace) -> tuple[float, float]:
    """Return the wall and processor seconds of ``options.decisions`` searches."""
    generator = random.Random(options.seed)
    state, plies, met, searched = game.new_initial_state(), 0, 0, 0
    wall = cpu = 0.0
    while searched < options.decisions:
        if state.is_terminal():
            state, plies = game.new_initial_state(), 0
        if state.is_chance_node():
            outcomes, weights = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(generator.choices(outcomes, weights)[0])
            continue
        legal = state.legal_actions()
        if len(legal) > 1 and plies >= options.skip:
            if met % options.stride == 0:
                began = time.perf_counter(), time.process_time()
                bot.step(state)
                wall += time.perf_counter() - began[0]
                cpu += time.process_time() - began[1]
                searched += 1
            met += 1
        state.apply_action(generator.choice(legal))
        plies += 1
    return wall, cpu


if __name__ == "__main__":
    sys.exit(main())
