"""Group ``levels``: the classical players of Durak. Room: deploy."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deploy.bench.figures import (
    MILLISECONDS,
    Estimate,
    Figure,
    Sample,
    figure,
    measured,
    rate,
    repeated,
)
from deploy.bench.setup import SEED, Setup
from engine.game import get_spec
from engine.play import GameJob, Table
from engine.players import Player
from engine.search.pimc import Effort, PimcPlayer
from league.players import PlayContext, build_player, parse_player, resolve

GROUP = "levels"
GAME, RULES = "durak", "report_d"
MEDIUM, SMALL, EXPERT = "level:2", "pimc:15x3", "level:4"
MEDIUM_GOAL, SMALL_REFERENCE, SMALL_GOAL = 700.0, 0.2, 4.0
EXPERT_GOAL_MS = 300.0
SLOTS = 256
PERCENTILE = 95


class Decision(NamedTuple):
    """One decision of a timed player."""

    cpu_s: float
    wall_s: float
    effort: Effort


class TimedPlayer:
    """Passes positions on to a player one by one and notes what each decision took."""

    def __init__(self, player: PimcPlayer) -> None:
        """Begin with no decisions."""
        self._player = player
        self.decisions: list[Decision] = []
        """Those that were not forced."""

    def act(
        self,
        views: Any,
        seats: NDArray[np.int64],
        keys: NDArray[np.uint64],
        out_actions: NDArray[np.int64],
    ) -> None:
        """Write one legal action per position."""
        for i in range(len(out_actions)):
            row = slice(i, i + 1)
            wall, cpu = time.perf_counter(), time.process_time()
            self._player.act(views[row], seats[row], keys[row], out_actions[row])
            cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - wall
            if self._player.effort.worlds > 0:
                self.decisions.append(Decision(cpu_s, wall_s, self._player.effort))


def measure(setup: Setup) -> list[Figure]:
    """Return games a second of two players, and how long the strongest one thinks."""
    return [
        _games(setup, MEDIUM, setup.pick(4000, 20), goal=MEDIUM_GOAL),
        _games(setup, SMALL, setup.pick(200, 2), reference=SMALL_REFERENCE, goal=SMALL_GOAL),
        _expert(setup),
    ]


def _player(text: str) -> Player:
    spec = get_spec(GAME)
    return build_player(resolve(parse_player(text)), PlayContext(spec, spec.make(RULES)))


def _play(players: list[Player], games: int, slots: int) -> float:
    spec = get_spec(GAME)
    jobs = (GameJob(pair, 0, SEED + pair, (0, 1)) for pair in range(games))
    return float(len(Table(spec, spec.make(RULES), players, jobs, num_slots=slots).play_all()))


def _games(
    setup: Setup, text: str, games: int, *, goal: float, reference: float | None = None
) -> Figure:
    players = [_player(text), _player(text)]
    samples = repeated(lambda: _play(players, games, SLOTS), setup.repeats)
    how = f"{games} games of {text}, {RULES}, {SLOTS} side by side"
    return figure(
        GROUP,
        f"Durak, {text} against itself",
        "games/s",
        rate(samples),
        how,
        reference=reference,
        goal=goal,
    )


def _expert(setup: Setup) -> Figure:
    games = setup.pick(20, 1)
    player = _player(EXPERT)
    assert isinstance(player, PimcPlayer)
    estimates: list[float] = []
    decisions: list[Decision] = []

    def play() -> float:
        timed = TimedPlayer(player)
        _play([timed, timed], games, 1)
        decisions[:] = timed.decisions
        times = [decision.cpu_s for decision in timed.decisions]
        estimates.append(MILLISECONDS * float(np.percentile(times, PERCENTILE)))
        return float(len(timed.decisions))

    samples: list[Sample] = repeated(play, setup.repeats)
    found: Estimate = measured(estimates[-len(samples) :], samples)
    how = (
        f"decisions of {games} games of {EXPERT} with itself, one by one: {effort_words(decisions)}"
    )
    return figure(
        GROUP,
        f"Durak, {EXPERT}: {PERCENTILE} % of the moves that are not forced take less than",
        "ms",
        found,
        how,
        goal=EXPERT_GOAL_MS,
        lower_is_better=True,
    )


def effort_words(decisions: list[Decision]) -> str:
    """Return how many worlds and decisions deep was searched, how often, and whether completely."""
    counts = Counter((found.effort.worlds, found.effort.depth) for found in decisions)
    total = len(decisions)
    parts = [
        f"{worlds} world{'s' if worlds > 1 else ''} to depth {depth} in {100 * n / total:.0f} %"
        for (worlds, depth), n in sorted(counts.items(), reverse=True)
    ]
    cut = sum(found.effort.cut > 0 for found in decisions)
    walls = [MILLISECONDS * found.wall_s for found in decisions]
    return (
        f"{total} decisions, {', '.join(parts)}; {cut} cut short; no budget of nodes; longest "
        f"{max(walls):.0f} ms by the clock on the wall"
    )
