"""What the tests of the search share: positions, one call for a whole search, one-row answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import rules
from engine.evaluation import Evaluator, new_batch
from engine.game import GameSpec, get_spec
from engine.rng import make_rng, next_u64
from engine.search.ismcts import Search, SearchOptions
from engine.search.tree import PoolSize
from tests.engine import relay_game


@dataclass
class Positions:
    """Views of seats to move, in games of one variant."""

    spec: GameSpec
    game: Any
    views: Any
    seats: Any

    def __len__(self) -> int:
        return len(self.seats)


def kuhn_positions() -> Positions:
    """Return all twelve information sets of Kuhn poker, seat 0's first."""
    spec = get_spec("kuhn")
    game = spec.make()
    views = spec.new_states(12)
    seats = np.zeros(12, np.int64)
    histories = ((), (0,), (1,), (0, 1))
    for i, history in enumerate(histories):
        for card in range(3):
            row = 3 * i + card
            seats[row] = len(history) % 2
            state = spec.new_state()
            state.cards[seats[row]] = card
            state.cards[1 - seats[row]] = (card + 1) % 3
            for action in history:
                rules.apply(game, state, action)
            rules.view(game, state, seats[row], views[row])
    return Positions(spec, game, plain(views), seats)


def played_positions(spec: GameSpec, game: Any, count: int, seed: int = 0) -> Positions:
    """Return positions with a choice, each from a game of random plies of its own."""
    views, seats = spec.new_states(count), np.zeros(count, np.int64)
    legal = np.zeros(spec.max_actions, np.int64)
    rng = make_rng(seed)
    found = 0
    while found < count:
        state = spec.new_state()
        rules.deal(game, state, np.uint64(next_u64(rng)))
        for _ in range(int(next_u64(rng)) % min(spec.max_plies, 50)):
            play_random(spec, game, state, rng, legal)
        seat = int(rules.current_seat(game, state))
        if seat >= 0 and rules.legal_actions(game, state, legal) > 1:
            rules.view(game, state, seat, views[found])
            seats[found] = seat
            found += 1
    return Positions(spec, game, plain(views), seats)


def play_random(spec: GameSpec, game: Any, state: Any, rng: Any, legal: Any) -> None:
    """Play one random ply or deal what is due; nothing at the end of the game."""
    seat = rules.current_seat(game, state)
    if seat == rules.CHANCE:
        rules.deal_next(game, state)
    elif seat != rules.TERMINAL:
        count = int(rules.legal_actions(game, state, legal))
        rules.apply(game, state, legal[int(next_u64(rng)) % count])


def cuarenta_positions(count: int, seed: int = 0) -> Positions:
    spec = get_spec("cuarenta")
    return played_positions(spec, spec.make("report_a_4p"), count, seed)


def relay_positions(count: int, seed: int = 0, deaf: int = 0) -> Positions:
    return played_positions(relay_game.SPEC, relay_game.Relay(deaf=deaf), count, seed)


def plain(records: Any) -> Any:
    return np.asarray(records).view(np.ndarray)


@dataclass
class Found:
    """What searches found at their roots."""

    actions: Any
    visits: Any
    counts: Any
    values: Any
    action_values: Any
    priors: Any
    best: Any


def begin(
    search: Search,
    positions: Positions,
    simulations: int,
    *,
    rows: Any = None,
    slots: Any = None,
    seed: int = 0,
    noise: float = 0.0,
    models: Any = None,
) -> None:
    """Start the positions ``rows`` in ``slots``; a position's seed depends on its row alone."""
    rows = np.arange(len(positions)) if rows is None else np.asarray(rows)
    slots = np.arange(len(rows)) if slots is None else np.asarray(slots)
    search.begin(
        slots,
        positions.views[rows],
        positions.seats[rows],
        np.zeros(len(rows), np.int32) if models is None else np.asarray(models, np.int32),
        np.full(len(rows), simulations),
        np.array([make_rng(seed, int(row))[0] for row in rows], np.uint64),
        np.full(len(rows), noise),
        0.6,
    )


def read(search: Search, slots: Any) -> Found:
    """Return the results of finished slots; unused entries are zero."""
    slots = np.asarray(slots)
    shape = (len(slots), search.spec.max_actions)
    found = Found(
        actions=np.zeros(shape, np.int64),
        visits=np.zeros(shape, np.int64),
        counts=np.zeros(len(slots), np.int64),
        values=np.zeros(len(slots)),
        action_values=np.zeros(shape),
        priors=np.zeros(shape),
        best=np.zeros(len(slots), np.int64),
    )
    search.results(slots, found.actions, found.visits, found.counts, found.values)
    search.action_values(slots, found.action_values)
    search.priors(slots, found.priors)
    search.best_actions(slots, found.best)
    return found


def search_all(search: Search, evaluator: Evaluator, positions: Positions, n: int) -> Found:
    """Search every position in the slot of its own number."""
    begin(search, positions, n)
    search.run(evaluator)
    return read(search, np.arange(len(positions)))


def one_row_answers(positions: Positions, evaluator: Evaluator, model: int = 0) -> Any:
    """Return ``evaluate(world, seat, legal) -> (logits, values)`` that asks a row at a time."""
    spec, game, encoder = positions.spec, positions.game, positions.spec.encoders[0]
    batch = new_batch(spec, encoder, int(rules.num_sides(game)), 1)
    view = spec.new_state()

    def evaluate(world: Any, seat: int, legal: list[int]) -> tuple[list[float], list[float]]:
        rules.view(game, world, seat, view)
        rules.observe(game, view, seat, encoder.code, batch.observations[0])
        if legal:
            actions = np.array(legal, np.int64)
            rules.describe_actions(
                game, view, encoder.code, actions, len(legal), batch.candidates[: len(legal)]
            )
        batch.offsets[1] = len(legal)
        batch.model[0] = model
        batch.seats[0] = seat
        evaluator.evaluate(batch, 1, len(legal))
        return [float(x) for x in batch.logits[: len(legal)]], [float(x) for x in batch.values[0]]

    return evaluate


def new_search(
    positions: Positions,
    *,
    options: SearchOptions = SearchOptions(),  # noqa: B008 - immutable
    trees: int = 0,
    simulations: int = 64,
    descents: int = 1,
    models: int = 1,
    pool: PoolSize | None = None,
    check_views: bool = False,
) -> Search:
    return Search(
        positions.spec,
        positions.game,
        positions.spec.encoders[0],
        options,
        num_trees=trees or len(positions),
        max_simulations=simulations,
        descents=descents,
        num_models=models,
        pool=pool,
        check_views=check_views,
    )


def assert_same(left: Found, right: Found) -> None:
    for name, array in vars(left).items():
        np.testing.assert_array_equal(array, getattr(right, name), err_msg=name)
