"""Groups ``network``, ``decision`` and ``onnx``: search that asks a network. Room: deploy.

The network is the preset's. What it costs does not depend on its weights, but the trees do: those
of a trained network are deeper and narrower.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deploy.bench.figures import (
    MICROSECONDS,
    MILLISECONDS,
    Estimate,
    Figure,
    Sample,
    cost,
    figure,
    measured,
    rate,
    repeated,
    timed,
)
from deploy.bench.playouts import Work
from deploy.bench.setup import SEED, Setup, positions
from deploy.bench.stopwatch import watched
from engine.evaluation import EvalBatch, Evaluator, new_batch
from engine.jit import kernel
from engine.players import SearchPlayer
from engine.rng import make_rng
from engine.rules import (
    current_seat,
    describe_actions,
    determinize,
    legal_actions,
    num_sides,
    observe,
    view,
)
from engine.search import ismcts
from engine.search.ismcts import Search
from engine.search.tree import plain_records
from league.evaluator import OnnxEvaluator

TREES = 256
STRIDE = 3
DECISION = 128
"""Simulations of one decision."""
DECISION_GOAL_MS = 4.0
DESCENTS = (1, 2, 4, 8, 16, 32)
BATCHES = {1: 34.0, 64: 6.0, 192: None}
"""Leaves a batch, and the reference in microseconds a leaf."""
CANDIDATES = 7
"""Candidates a leaf."""
SEARCH_PARTS: dict[str, tuple[tuple[Any, str], ...]] = {
    "network": ((OnnxEvaluator, "evaluate"),),
    "select": ((ismcts, "select"),),
    "absorb": ((ismcts, "absorb"),),
}


# --- many trees in lockstep -----------------------------------------------------------------------


def measure(setup: Setup) -> list[Figure]:
    """Return network-guided simulations a second and the parts of one simulation."""
    parts, budget = setup.parts, setup.pick(128, 8)
    trees = setup.pick(TREES, 16)
    search = Search(parts.spec, parts.game, parts.encoder, num_trees=trees, max_simulations=budget)
    search.set_equity(0, setup.equity())
    evaluator = Last(setup.evaluator())
    work = Work(parts.spec, parts.game, search, evaluator, budget, STRIDE)
    work()
    with watched(SEARCH_PARTS) as stopwatch:
        samples, splits, leaves = [], [], []
        for _ in range(setup.repeats):
            stopwatch.reset()
            rows = search.num_rows_evaluated
            samples.append(timed(work))
            splits.append(dict(stopwatch.seconds))
            leaves.append((search.num_rows_evaluated - rows) / samples[-1].done)
    how = f"{trees} trees, {budget} simulations each, {setup.network}, one core"
    return [
        figure(
            "network",
            "search with network",
            "simulations/s",
            rate(samples),
            how,
            reference=85_000,
            goal=100_000,
        ),
        figure(
            "network",
            "the engine's own share",
            "µs/simulation",
            measured(
                [
                    MICROSECONDS * (sample.cpu_s - split["network"]) / sample.done
                    for sample, split in zip(samples, splits, strict=True)
                ],
                samples,
            ),
            "everything but the evaluator: select, absorb, starting trees, Python",
            goal=6.0,
            lower_is_better=True,
        ),
        figure(
            "network",
            "evaluations a simulation",
            "rows",
            measured(leaves, samples),
            "the rest ends with the game, or with the equity table at a hand's end",
        ),
        *_parts(samples, splits),
        *_kernels(setup, evaluator),
    ]


def _parts(samples: list[Sample], splits: list[dict[str, float]]) -> list[Figure]:
    """Return the microseconds of each watched part a simulation."""
    hows = {
        "network": "ONNX Runtime and what surrounds it in league.evaluator",
        "select": "worlds, descents, views and features of the leaves (in part below)",
        "absorb": "priors and backing up",
    }
    return [
        figure(
            "network",
            f"part: {part}",
            "µs/simulation",
            measured(
                [
                    MICROSECONDS * split[part] / sample.done
                    for sample, split in zip(samples, splits, strict=True)
                ],
                samples,
            ),
            how,
            lower_is_better=True,
        )
        for part, how in hows.items()
    ]


class Last:
    """An evaluator that keeps the leaves of the last batch that was full."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.worlds: Any = None
        self.seats = np.zeros(0, np.int64)

    def evaluate(self, batch: EvalBatch, num_rows: int, num_candidates: int) -> None:
        """Pass the batch on."""
        if num_rows > len(self.seats):
            self.worlds, self.seats = batch.worlds[:num_rows].copy(), batch.seats[:num_rows].copy()
        self._evaluator.evaluate(batch, num_rows, num_candidates)


def _kernels(setup: Setup, last: Last) -> list[Figure]:
    """Return what sampling a world and writing a leaf's features cost by themselves."""
    parts, rounds = setup.parts, setup.pick(200, 2)
    spec, game, encoder = parts.spec, parts.game, parts.encoder
    scratch = plain_records(spec.state_dtype, 1)
    features = (
        np.zeros(encoder.observation_size, np.float32),
        np.zeros((spec.max_actions, encoder.action_size), np.float32),
        np.zeros(spec.max_actions, np.int64),
    )
    leaves = (last.worlds, last.seats)
    roots, rng = positions(spec, game, setup.pick(TREES, 16), stride=STRIDE), make_rng(SEED)
    encoded = repeated(
        lambda: float(_encode(game, encoder.code, leaves, scratch, features, rounds)),
        setup.repeats,
    )
    drawn = repeated(
        lambda: float(_draw_worlds(game, tuple(roots), scratch, rng, rounds)), setup.repeats
    )
    return [
        figure(
            "network",
            "part of select: features of a leaf",
            "µs/leaf",
            cost(encoded, MICROSECONDS),
            f"view, legal actions, encoder {encoder.name}; leaves of the search, by themselves",
            lower_is_better=True,
        ),
        figure(
            "network",
            "part of select: a sampled world",
            "µs/world",
            cost(drawn, MICROSECONDS),
            "determinize of the same roots, by itself; one a simulation",
            lower_is_better=True,
        ),
    ]


@kernel
def _encode(game: Any, encoder: Any, leaves: Any, scratch: Any, features: Any, rounds: Any) -> Any:
    """Write the features of all leaves some times; return how many that were."""
    worlds, seats = leaves
    observation, candidates, legal = features
    for _ in range(rounds):
        for i in range(seats.shape[0]):
            observation[:] = 0.0
            view(game, worlds[i], seats[i], scratch[0])
            observe(game, scratch[0], seats[i], encoder, observation)
            if current_seat(game, worlds[i]) == seats[i]:
                count = legal_actions(game, scratch[0], legal)
                describe_actions(game, scratch[0], encoder, legal, count, candidates[:count])
    return rounds * seats.shape[0]


@kernel
def _draw_worlds(game: Any, roots: Any, scratch: Any, rng: Any, rounds: Any) -> Any:
    """Draw a world of every root some times; return how many that were."""
    views, seats = roots
    for _ in range(rounds):
        for i in range(seats.shape[0]):
            determinize(game, views[i], seats[i], rng, scratch[0])
    return rounds * seats.shape[0]


# --- a single game --------------------------------------------------------------------------------


def measure_decision(setup: Setup) -> list[Figure]:
    """Return the time of one decision with one descent, and with the best number of them."""
    simulations = setup.pick(DECISION, 8)
    found = {
        descents: cost(_decide(setup, descents, simulations), MILLISECONDS)
        for descents in setup.pick(DESCENTS, DESCENTS[:2])
    }
    best = min(found, key=lambda descents: found[descents].value)
    enough = next((n for n in found if found[n].value <= DECISION_GOAL_MS), best)
    table = ", ".join(f"{descents}: {found[descents].value:.2f}" for descents in found)
    return [
        _decision(
            setup, found[1], f"one decision, {simulations} simulations, one descent", "one tree"
        ),
        *(
            [
                _decision(
                    setup,
                    found[enough],
                    f"one decision, {simulations} simulations, {enough} descents at once",
                    "one tree with virtual loss, the fewest descents that reach the goal",
                )
            ]
            if 1 < enough < best
            else []
        ),
        _decision(
            setup,
            found[best],
            f"one decision, {simulations} simulations, {best} descents at once",
            f"one tree with virtual loss, the quickest of (descents: ms) {table}; "
            "what it costs in strength is not measured here",
        ),
    ]


def _decision(setup: Setup, estimate: Estimate, name: str, how: str) -> Figure:
    return figure(
        "decision",
        name,
        "ms",
        estimate,
        f"{how}; {setup.network}, positions of random games",
        reference=10.0,
        goal=DECISION_GOAL_MS,
        lower_is_better=True,
    )


def _decide(setup: Setup, descents: int, simulations: int) -> list[Sample]:
    parts, count = setup.parts, setup.pick(64, 2)
    met = positions(parts.spec, parts.game, count, stride=STRIDE)
    player = SearchPlayer(
        parts.spec,
        parts.game,
        parts.encoder,
        setup.evaluator(),
        simulations=simulations,
        equity=setup.equity(),
        batch=1,
        descents=descents,
    )
    keys, actions = np.arange(count, dtype=np.uint64), np.zeros(count, np.int64)

    def decide() -> float:
        player.act(met.views, met.seats, keys, actions)
        return float(count)

    return repeated(decide, setup.repeats)


# --- the network alone ----------------------------------------------------------------------------


def measure_onnx(setup: Setup) -> list[Figure]:
    """Return the time of a leaf in ONNX Runtime at several batch sizes, as played and in float32.

    A model that is played in float32 anyway has one row a size.
    """
    as_played, plain = setup.evaluator(), setup.evaluator("float32")
    if not as_played.in_eight_bits(0):
        return _leaves(setup, plain, "float32")
    return [*_leaves(setup, as_played, "eight bits"), *_leaves(setup, plain, "float32")]


def _leaves(setup: Setup, evaluator: OnnxEvaluator, numbers: str) -> list[Figure]:
    shape = f"{setup.parts.encoder.observation_size} features, {setup.network}"
    return [
        figure(
            "onnx",
            f"a leaf in batches of {rows}, {numbers}",
            "µs/leaf",
            cost(_evaluate(setup, evaluator, rows), MICROSECONDS),
            f"{shape}, {CANDIDATES} candidates a leaf, one thread, through league.evaluator"
            + ("; reference of a 208-256-256 network" if reference else ""),
            reference=reference,
            lower_is_better=True,
        )
        for rows, reference in BATCHES.items()
    ]


def _evaluate(setup: Setup, evaluator: OnnxEvaluator, rows: int) -> list[Sample]:
    parts = setup.parts
    batch = new_batch(parts.spec, parts.encoder, int(num_sides(parts.game)), rows)
    generator = np.random.default_rng(SEED)
    batch.observations[...] = generator.random(batch.observations.shape) < 0.3
    batch.candidates[...] = generator.random(batch.candidates.shape) < 0.3
    count = rows * CANDIDATES
    batch.candidate_row[:count] = np.repeat(np.arange(rows), CANDIDATES)
    batch.offsets[...] = np.arange(rows + 1) * CANDIDATES
    calls = setup.pick(max(20, 20_000 // rows), 2)

    def work() -> float:
        for _ in range(calls):
            evaluator.evaluate(batch, rows, count)
        return float(calls * rows)

    return repeated(work, setup.repeats)
