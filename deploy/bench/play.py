"""Group ``play``: the rules by themselves. Room: deploy."""

from __future__ import annotations

from typing import Any

import numpy as np

from deploy.bench.figures import Figure, figure, measured, rate, repeated
from deploy.bench.setup import SEED, Setup
from engine.game import get_spec
from engine.jit import kernel
from engine.play import GameJob, Table
from engine.players import RulePlayer
from engine.rng import below, make_rng, next_u64
from engine.rules import (
    CHANCE,
    TERMINAL,
    apply,
    current_seat,
    deal,
    deal_next,
    legal_actions,
    num_seats,
    side_of,
)
from engine.search.tree import plain_records

GROUP = "play"
RULES = "report_a_4p"
SLOTS = 256


@kernel
def random_games(game: Any, states: Any, legal: Any, count: Any, rng: Any) -> Any:
    """Play ``count`` games of random moves in ``states[0]``; return their plies."""
    plies = 0
    for _ in range(count):
        deal(game, states[0], next_u64(rng))
        while True:
            seat = current_seat(game, states[0])
            if seat == TERMINAL:
                break
            if seat == CHANCE:
                deal_next(game, states[0])
                continue
            number = legal_actions(game, states[0], legal)
            apply(game, states[0], legal[below(rng, number)])
            plies += 1
    return plies


def measure(setup: Setup) -> list[Figure]:
    """Return random play and games between rule players."""
    return [*_random_play(setup), _rule_play(setup)]


def _random_play(setup: Setup) -> list[Figure]:
    spec = get_spec("cuarenta")
    game = spec.make(RULES)
    states = plain_records(spec.state_dtype, 1)
    legal, rng = np.zeros(spec.max_actions, np.int64), make_rng(SEED)
    games = setup.pick(20_000, 50)
    samples = repeated(lambda: float(random_games(game, states, legal, games, rng)), setup.repeats)
    how = f"{games} games of uniformly random moves, {RULES}, one compiled loop"
    lengths = measured([sample.done / games for sample in samples], samples)
    return [
        figure(
            GROUP, "random play", "plies/s", rate(samples), how, reference=5_800_000, goal=8_000_000
        ),
        figure(GROUP, "random play, length of a game", "plies", lengths, how, reference=309),
    ]


def _rule_play(setup: Setup) -> Figure:
    spec = get_spec("cuarenta")
    game = spec.make(RULES)
    seats = tuple(int(side_of(game, seat)) for seat in range(int(num_seats(game))))
    games = setup.pick(4000, 20)

    def play() -> float:
        jobs = (GameJob(pair, 0, SEED + pair, seats) for pair in range(games))
        players = [RulePlayer(spec, game), RulePlayer(spec, game)]
        return float(len(Table(spec, game, players, jobs, num_slots=SLOTS).play_all()))

    how = (
        f"{games} games of the rule player with itself, {SLOTS} side by side, as matches play them"
    )
    return figure(GROUP, "rules against rules", "games/s", rate(repeated(play, setup.repeats)), how)
