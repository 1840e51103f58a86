"""Group ``play``: the rules by themselves. Room: deploy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from deploy.bench.figures import Figure, figure, measured, rate, repeated
from deploy.bench.setup import SEED, Setup
from engine.game import game_names, get_spec
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


class RandomPlay(NamedTuple):
    """How random games of a game are measured: its first rules, unless a row says others."""

    games: int = 2_000
    reference: float | None = None
    goal: float | None = None
    reference_plies: float | None = None
    """Plies a game of that reference."""


RANDOM_PLAY = {
    "cuarenta": RandomPlay(20_000, 5_800_000, 8_000_000, 309),
    "durak": RandomPlay(20_000),
    "forty_fives": RandomPlay(2_000),
    "kuhn": RandomPlay(1_000_000),
    "leduc": RandomPlay(500_000),
}
"""Games that stand here last for about a second; any other one gets the defaults."""


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
    """Return random play of every game, and games between rule players."""
    figures = [figure for name in game_names() for figure in _random_play(setup, name)]
    return [*figures, _rule_play(setup)]


def _random_play(setup: Setup, name: str) -> list[Figure]:
    spec, size = get_spec(name), RANDOM_PLAY.get(name, RandomPlay())
    game, preset = spec.make(), next(iter(spec.presets))
    states = plain_records(spec.state_dtype, 1)
    legal, rng = np.zeros(spec.max_actions, np.int64), make_rng(SEED)
    games = setup.pick(size.games, 50)
    samples = repeated(lambda: float(random_games(game, states, legal, games, rng)), setup.repeats)
    how = f"{games} games of uniformly random moves, {preset}, one compiled loop"
    lengths = measured([sample.done / games for sample in samples], samples)
    return [
        figure(
            GROUP,
            f"random play, {name}",
            "plies/s",
            rate(samples),
            how,
            reference=size.reference,
            goal=size.goal,
        ),
        figure(
            GROUP,
            f"random play, {name}, length of a game",
            "plies",
            lengths,
            how,
            reference=size.reference_plies,
        ),
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
