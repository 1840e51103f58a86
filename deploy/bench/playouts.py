"""Group ``playouts``: tree search without a network, and OpenSpiel's beside it. Room: deploy."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np

from deploy.bench.figures import Estimate, Figure, Sample, figure, rate, repeated
from deploy.bench.setup import SEED, Setup, Unavailable, need, positions
from engine.game import GameSpec, game_names, get_spec
from engine.search.ismcts import Search
from engine.search.rollout import RolloutEvaluator

GROUP = "playouts"
BATCH = 64
"""Positions in lockstep, one thread: as a match searches them."""


class Ours(NamedTuple):
    """A game of this program."""

    game: str
    rules: str
    stride: int
    """Every so many decisions of a random game are searched."""
    rule_share: float = 0.0
    """Plies of a playout by the rule player."""
    reference: float | None = None
    note: str = ""
    rounds: int = 1
    """Searches of all positions in one repeat."""

    @property
    def label(self) -> str:
        """The game, with its rules where they are not its first ones."""
        first = next(iter(get_spec(self.game).presets))
        return self.game if self.rules == first else f"{self.game} {self.rules}"


class Theirs(NamedTuple):
    """A game of OpenSpiel, and the ones of ours that it is compared with."""

    game: str
    reference: float | None
    against: tuple[tuple[str, float | None], ...]
    """(label of ours, goal)."""
    stride: int = 1
    skip: int = 0
    note: str = ""


OURS = (
    Ours("cuarenta", "report_a_4p", 3, 0.0, 150_000, "; reference range 150,000 to 230,000"),
    Ours("cuarenta", "report_a_4p", 3, 0.5, 150_000, "; as the player ismcts:N plays"),
    Ours("cuarenta", "report_b_2p", 3),
    Ours("durak", "report_d", 3),
    Ours("durak", "classic_4p", 3),
    Ours("forty_fives", "report_c", 3),
    Ours("kuhn", "standard", 1, rounds=20),
    Ours("leduc", "standard", 1, rounds=10),
)
FOUR_PLAYERS = (("cuarenta", 3.0), ("durak classic_4p", 3.0), ("forty_fives", 3.0))
THEIRS = (
    Theirs("euchre", 57_000, FOUR_PLAYERS),
    Theirs(
        "hearts",
        49_000,
        FOUR_PLAYERS,
        skip=12,
        note=" (tricks only: its search ends with a crash while cards are passed)",
    ),
    Theirs("oh_hell", 47_000, (("cuarenta", None),)),
    Theirs("leduc_poker", 325_000, (("leduc", 4.0),)),
    Theirs("kuhn_poker", None, (("kuhn", None),)),
)


def measure(setup: Setup) -> list[Figure]:
    """Return simulations a second, theirs, and the ratios."""
    figures: list[Figure] = []
    found: dict[str, list[Sample]] = {}
    for ours in (*OURS, *_others()):
        samples = _samples(setup, ours)
        figures.append(_row(setup, ours, samples))
        found.setdefault(ours.label, samples)
    try:
        need("pyspiel", "there is no ratio to OpenSpiel's search; the package is open_spiel")
    except Unavailable as reason:
        setup.left_out.append((GROUP, str(reason)))
        return figures
    for theirs in THEIRS:
        figures += _compare(setup, theirs, found)
    return figures


def _others() -> list[Ours]:
    """Return the first rules of every game that OURS does not name."""
    named = {ours.game for ours in OURS}
    others = [get_spec(name) for name in game_names() if name not in named]
    return [Ours(spec.name, next(iter(spec.presets)), 1) for spec in others]


def _simulations(setup: Setup) -> int:
    return setup.pick(1000, 20)


def _samples(setup: Setup, ours: Ours) -> list[Sample]:
    spec = get_spec(ours.game)
    game = spec.make(ours.rules)
    search = Search(
        spec,
        game,
        spec.encoders[0],
        num_trees=BATCH,
        max_simulations=_simulations(setup),
    )
    evaluator = RolloutEvaluator(spec, game, rule_share=ours.rule_share)
    work = Work(spec, game, search, evaluator, _simulations(setup), ours.stride)
    return repeated(lambda: sum(work() for _ in range(ours.rounds)), setup.repeats)


class Work:
    """Searches the same positions again with every call; returns the simulations."""

    def __init__(
        self, spec: GameSpec, game: Any, search: Search, evaluator: Any, budget: int, stride: int
    ) -> None:
        """Take ``search.num_trees`` positions, every ``stride``-th of random games."""
        count = search.num_trees
        self._positions = positions(spec, game, count, stride=stride)
        self._search, self._evaluator = search, evaluator
        self._slots = np.arange(count)
        self._models = np.zeros(count, np.int32)
        self._budgets = np.full(count, budget, np.int64)
        self._seeds = np.arange(count, dtype=np.uint64) + np.uint64(SEED)
        self._noise = np.zeros(count)

    def __call__(self) -> float:
        """Search all positions to their budget."""
        before = self._search.num_simulations
        views, seats = self._positions
        self._search.begin(
            self._slots, views, seats, self._models, self._budgets, self._seeds, self._noise
        )
        self._search.run(self._evaluator)
        return float(self._search.num_simulations - before)


def _row(setup: Setup, ours: Ours, samples: list[Sample]) -> Figure:
    policy = "random playouts" if ours.rule_share == 0 else "half of the plies by the rule player"
    ends = "the hand's end" if get_spec(ours.game).num_equity_states else "the game's end"
    return figure(
        GROUP,
        f"search with playouts, {ours.label}, {policy}",
        "simulations/s",
        rate(samples),
        f"{ours.rules}, {BATCH} positions of random games in lockstep, {_simulations(setup)} "
        f"simulations each, one thread, one playout a leaf to {ends}{ours.note}",
        reference=ours.reference,
    )


def _compare(setup: Setup, theirs: Theirs, found: dict[str, list[Sample]]) -> list[Figure]:
    """Run OpenSpiel's search on one game and return its figure and the ratios."""
    arguments = [theirs.game, "--simulations", str(_simulations(setup))]
    arguments += ["--decisions", str(setup.pick(BATCH, 4)), "--stride", str(theirs.stride)]
    arguments += ["--skip", str(theirs.skip)]
    words = ["-m", "deploy.bench.spiel", *arguments]
    setup.commands.append(" ".join(["python", *words]))
    setup.say(setup.commands[-1])
    estimate = rate([_one(words) for _ in range(setup.pick(3, 1))])
    how = f"ISMCTSBot, RandomRolloutEvaluator(1), the same simulations a decision{theirs.note}"
    own = figure(
        GROUP,
        f"OpenSpiel, {theirs.game}",
        "simulations/s",
        estimate,
        how,
        reference=theirs.reference,
    )
    return [
        own,
        *(
            figure(
                GROUP,
                f"{label} to OpenSpiel's {theirs.game}",
                "×",
                _ratio(rate(found[label]), estimate),
                "random playouts on both sides, one thread, equal simulations; the trees differ",
                goal=goal,
            )
            for label, goal in theirs.against
        ),
    ]


def _ratio(mine: Estimate, theirs: Estimate) -> Estimate:
    """Return mine over theirs, with the widest bounds that both allow."""
    return Estimate(
        value=mine.value / theirs.value,
        low=mine.low / theirs.high,
        high=mine.high / theirs.low,
        repeats=theirs.repeats,
        wall_s=mine.wall_s + theirs.wall_s,
        cpu_s=mine.cpu_s + theirs.cpu_s,
        one_core=True,
    )


def _one(words: list[str]) -> Sample:
    result = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=600, check=True
    )
    found = json.loads(result.stdout.splitlines()[-1])
    return Sample(found["simulations"], found["wall_s"], found["cpu_s"])
