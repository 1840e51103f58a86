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


class Theirs(NamedTuple):
    """A game of OpenSpiel, and the one of ours that it is compared with."""

    game: str
    reference: float | None
    against: str
    goal: float | None
    stride: int = 1
    skip: int = 0
    note: str = ""


OURS = (
    Ours("cuarenta", "report_a_4p", 3, 0.0, 150_000, "; reference range 150,000 to 230,000"),
    Ours("cuarenta", "report_a_4p", 3, 0.5, 150_000, "; as the player ismcts:N plays"),
    Ours("kuhn", "standard", 1, rounds=20),
    Ours("leduc", "standard", 1, rounds=10),
)
THEIRS = (
    Theirs("euchre", 57_000, "cuarenta", 3.0),
    Theirs(
        "hearts",
        49_000,
        "cuarenta",
        3.0,
        skip=12,
        note=" (tricks only: its search ends with a crash while cards are passed)",
    ),
    Theirs("oh_hell", 47_000, "cuarenta", None),
    Theirs("leduc_poker", 325_000, "leduc", 4.0),
    Theirs("kuhn_poker", None, "kuhn", None),
)


def measure(setup: Setup) -> list[Figure]:
    """Return simulations a second, theirs, and the ratios."""
    figures: list[Figure] = []
    found: dict[str, list[Sample]] = {}
    for ours in OURS:
        if ours.game not in game_names():
            continue
        samples = _samples(setup, ours)
        figures.append(_row(setup, ours, samples))
        found.setdefault(ours.game, samples)
    try:
        need("pyspiel", "there is no ratio to OpenSpiel's search; the package is open_spiel")
    except Unavailable as reason:
        setup.left_out.append((GROUP, str(reason)))
        return figures
    for theirs in THEIRS:
        if theirs.against in found:
            figures += _compare(setup, theirs, found[theirs.against])
    return figures


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
        f"search with playouts, {ours.game}, {policy}",
        "simulations/s",
        rate(samples),
        f"{ours.rules}, {BATCH} positions of random games in lockstep, {_simulations(setup)} "
        f"simulations each, one thread, one playout a leaf to {ends}{ours.note}",
        reference=ours.reference,
    )


def _compare(setup: Setup, theirs: Theirs, ours: list[Sample]) -> list[Figure]:
    """Run OpenSpiel's search on one game and return its figure and the ratio."""
    arguments = [theirs.game, "--simulations", str(_simulations(setup))]
    arguments += ["--decisions", str(setup.pick(BATCH, 4)), "--stride", str(theirs.stride)]
    arguments += ["--skip", str(theirs.skip)]
    words = ["-m", "deploy.bench.spiel", *arguments]
    setup.commands.append(" ".join(["python", *words]))
    setup.say(setup.commands[-1])
    samples = [_one(words) for _ in range(setup.pick(3, 1))]
    estimate = rate(samples)
    how = f"ISMCTSBot, RandomRolloutEvaluator(1), the same simulations a decision{theirs.note}"
    mine = rate(ours)
    ratio = Estimate(
        value=mine.value / estimate.value,
        low=mine.low / estimate.high,
        high=mine.high / estimate.low,
        repeats=estimate.repeats,
        wall_s=mine.wall_s + estimate.wall_s,
        cpu_s=mine.cpu_s + estimate.cpu_s,
        one_core=True,
    )
    return [
        figure(
            GROUP,
            f"OpenSpiel, {theirs.game}",
            "simulations/s",
            estimate,
            how,
            reference=theirs.reference,
        ),
        figure(
            GROUP,
            f"{theirs.against} to OpenSpiel's {theirs.game}",
            "×",
            ratio,
            "random playouts on both sides, one thread, equal simulations; the trees differ",
            goal=theirs.goal,
        ),
    ]


def _one(words: list[str]) -> Sample:
    result = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=600, check=True
    )
    found = json.loads(result.stdout.splitlines()[-1])
    return Sample(found["simulations"], found["wall_s"], found["cpu_s"])
