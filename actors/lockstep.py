"""Many games of self-play side by side: arrays and kernels. No network, no store, no clock.

Room: actors. May import: engine, the record of replay.trajectory.

A game plays from search to search: ``play_moves`` takes the finished searches, records examples,
plays the moves, goes on through forced moves and deals, and leaves each game either at the next
position to search or finished. Every draw comes from the game's own generator, so a game does not
depend on its neighbours.

Dimensions: G games, S seats, E examples that a game can hold, H hands that a game can hold,
A legal actions at the most, K searches handled in one call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.game import GameSpec
from engine.jit import kernel
from engine.rng import below, next_u64, uniform
from engine.rules import (
    CHANCE,
    NO_HAND_END,
    TERMINAL,
    apply,
    current_seat,
    deal,
    deal_next,
    equity_index,
    legal_actions,
    num_seats,
    num_sides,
    side_of,
    view,
)
from replay.trajectory import BETWEEN_DEALS, EXAMPLE, FULL_SEARCH, OFF_TURN, POLICY, VALUE

NEWEST = -1
"""Entry of ``seat_models`` for a seat of the learning model: the newest slot of the moment."""

SEARCHING, FINISHED = 0, 1


class Games(NamedTuple):
    """State of G games; kernels change it in place."""

    states: Any
    """[G] true states. Only ``view`` reads them."""
    rngs: NDArray[np.uint64]
    """[G] one generator per game: kind of search, move, search seed, off-turn examples."""
    seeds: NDArray[np.uint64]
    """[G] seed of the deal."""
    seat_models: NDArray[np.int32]
    """[G, S] evaluator slot of a foreign seat, NEWEST for seats of the learning model."""
    status: NDArray[np.int8]
    """[G] SEARCHING or FINISHED."""
    full: NDArray[np.bool_]
    """[G] whether the present search is a full one."""
    versions: NDArray[np.uint32]
    """[G] newest version when the present search began: the stamp of what is recorded."""
    counters: NDArray[np.int64]
    """[G, 6] see the constants below."""
    examples: NDArray[Any]
    """EXAMPLE[G, E]."""
    views: Any
    """[G, E] the views of the examples."""
    visits: NDArray[np.uint16]
    """[G, E * A] visit counts, one after another."""
    hand_ends: NDArray[np.int32]
    """[G, H, sides] rows of the match-equity table."""
    scratch: NDArray[np.int64]
    """[A] legal actions."""


class Newest(NamedTuple):
    """The learning model of this moment."""

    slot: int
    """Its slot in the evaluator."""
    version: int


PLY, HAND, NUM_EXAMPLES, NUM_VISITS, NUM_SIMULATIONS, NUM_FULL = range(6)


class MoveOptions(NamedTuple):
    """Options of SelfPlayConfig that the kernels need."""

    full_share: float
    full_simulations: int
    fast_simulations: int
    noise_share: float
    temperature: float
    off_turn_share: float


class Searches(NamedTuple):
    """K finished searches going in, and the next searches coming out, by index of the game."""

    games: NDArray[np.int64]
    """[K] index of the game."""
    actions: NDArray[np.int64]
    """[K, A] legal actions at the root, canonical order."""
    visits: NDArray[np.int64]
    """[K, A]."""
    counts: NDArray[np.int64]
    """[K] legal actions."""
    values: NDArray[np.float64]
    """[K] root value for the searching seat's side."""
    views: Any
    """[K] out: view to search next."""
    seats: NDArray[np.int64]
    """[K] out: seat to move."""
    models: NDArray[np.int32]
    """[K] out: evaluator slot."""
    simulations: NDArray[np.int64]
    """[K] out."""
    search_seeds: NDArray[np.uint64]
    """[K] out."""
    noise: NDArray[np.float64]
    """[K] out: share of root noise."""


def new_games(spec: GameSpec, seats: int, sides: int, count: int, capacity: int) -> Games:
    """Return arrays for ``count`` games that hold ``capacity`` examples each."""
    hands = max(8, capacity // 8)
    return Games(
        states=spec.new_states(count),
        rngs=np.zeros(count, np.uint64),
        seeds=np.zeros(count, np.uint64),
        seat_models=np.full((count, seats), NEWEST, np.int32),
        status=np.zeros(count, np.int8),
        full=np.zeros(count, np.bool_),
        versions=np.zeros(count, np.uint32),
        counters=np.zeros((count, 6), np.int64),
        examples=np.zeros((count, capacity), EXAMPLE),
        views=spec.new_states(count * capacity).reshape(count, capacity),
        visits=np.zeros((count, capacity * min(spec.max_actions, 16)), np.uint16),
        hand_ends=np.zeros((count, hands, sides), np.int32),
        scratch=np.zeros(spec.max_actions, np.int64),
    )


def grown(games: Games, old: Games) -> Games:
    """Copy ``old`` into the larger ``games`` and return it."""
    for name, source, target in zip(Games._fields, old, games, strict=True):
        if name == "scratch":
            continue
        target[tuple(slice(0, size) for size in source.shape)] = source
    return games


def new_searches(spec: GameSpec, count: int) -> Searches:
    """Return buffers for ``count`` searches."""
    return Searches(
        games=np.zeros(count, np.int64),
        actions=np.zeros((count, spec.max_actions), np.int64),
        visits=np.zeros((count, spec.max_actions), np.int64),
        counts=np.zeros(count, np.int64),
        values=np.zeros(count, np.float64),
        views=spec.new_states(count),
        seats=np.zeros(count, np.int64),
        models=np.zeros(count, np.int32),
        simulations=np.zeros(count, np.int64),
        search_seeds=np.zeros(count, np.uint64),
        noise=np.zeros(count, np.float64),
    )


def room_left(games: Games, most_actions: int, seats: int) -> bool:
    """Return whether every game can take one more round of examples, visits and hands."""
    # One call records at most: the searched position, an off-turn view, and, over a chain of forced
    # moves and deals, a few rounds of each.
    margin = 4 * seats + 8  # beyond it value-only examples are dropped, never overwritten
    used = games.counters
    return bool(
        used[:, NUM_EXAMPLES].max() + margin < games.examples.shape[1]
        and used[:, NUM_VISITS].max() + most_actions < games.visits.shape[1]
        and used[:, HAND].max() + 2 < games.hand_ends.shape[1]
    )


@kernel
def _record(games: Any, game: Any, g: Any, seat: Any, flags: Any) -> Any:
    """Store ``seat``'s view of game ``g`` as an example; return its index, -1 without room."""
    index = games.counters[g, NUM_EXAMPLES]
    if index >= games.examples.shape[1]:
        return -1
    view(game, games.states[g], seat, games.views[g, index])
    example = games.examples[g, index]
    example.ply = games.counters[g, PLY]
    example.seat = seat
    example.flags = flags
    example.hand = games.counters[g, HAND]
    example.num_actions = 0
    example.model_version = games.versions[g]
    example.root_value = np.nan
    games.counters[g, NUM_EXAMPLES] = index + 1
    return index


@kernel
def _record_search(games: Any, searches: Any, k: Any, index: Any) -> None:
    """Add the visits and the root value of search ``k`` to example ``index``."""
    g = searches.games[k]
    example = games.examples[g, index]
    example.root_value = searches.values[k]
    if not games.full[g]:
        return
    start = games.counters[g, NUM_VISITS]
    count = searches.counts[k]
    for i in range(count):
        games.visits[g, start + i] = min(searches.visits[k, i], 65535)
    games.counters[g, NUM_VISITS] = start + count
    example.num_actions = count


@kernel
def _choose(searches: Any, k: Any, temperature: Any, rng: Any) -> Any:
    """Return a move drawn from visits ** (1 / temperature); the most visited at 0."""
    count = searches.counts[k]
    best = 0
    for i in range(1, count):
        if searches.visits[k, i] > searches.visits[k, best]:
            best = i
    if temperature <= 0.0:
        return searches.actions[k, best]
    # Shares of the most visited one: powers of the visits themselves overflow when it is cold.
    most = np.float64(searches.visits[k, best])
    total = 0.0
    for i in range(count):
        total += (np.float64(searches.visits[k, i]) / most) ** (1.0 / temperature)
    point = uniform(rng) * total
    for i in range(count):
        point -= (np.float64(searches.visits[k, i]) / most) ** (1.0 / temperature)
        if point < 0.0:
            return searches.actions[k, i]
    return searches.actions[k, best]  # rounding alone leads here


@kernel
def _record_off_turn(games: Any, game: Any, g: Any, mover: Any, share: Any) -> None:
    """With probability ``share`` store the view of one other seat of the learning model."""
    rng = games.rngs[g : g + 1]
    if share <= 0.0 or uniform(rng) >= share:
        return
    seat = (mover + 1 + below(rng, num_seats(game) - 1)) % num_seats(game)
    if games.seat_models[g, seat] == NEWEST:
        _record(games, game, g, seat, VALUE | OFF_TURN)


@kernel
def _pass_deal(games: Any, game: Any, g: Any) -> None:
    """Record the position before a deal for one seat of each side, note a hand's end, and deal."""
    state = games.states[g]
    seats = num_seats(game)
    first = below(games.rngs[g : g + 1], seats)
    recorded = 0
    for offset in range(seats):
        seat = (first + offset) % seats
        side_bit = 1 << side_of(game, seat)
        if games.seat_models[g, seat] == NEWEST and recorded & side_bit == 0:
            recorded |= side_bit
            _record(games, game, g, seat, VALUE | BETWEEN_DEALS)
    if equity_index(game, state, 0) != NO_HAND_END:
        hand = games.counters[g, HAND]
        if hand >= games.hand_ends.shape[1]:
            raise IndexError("a chain of forced moves passed more hands than there is room for")
        for side in range(num_sides(game)):
            games.hand_ends[g, hand, side] = equity_index(game, state, side)
        games.counters[g, HAND] = hand + 1
    deal_next(game, state)


@kernel
def _advance(games: Any, game: Any, g: Any) -> Any:
    """Go on through deals and forced moves; return the seat to search, or TERMINAL."""
    state = games.states[g]
    while True:
        seat = current_seat(game, state)
        if seat == TERMINAL:
            return TERMINAL
        if seat == CHANCE:
            _pass_deal(games, game, g)
            continue
        if legal_actions(game, state, games.scratch) > 1:
            return seat
        if games.seat_models[g, seat] == NEWEST:
            _record(games, game, g, seat, VALUE)
        apply(game, state, games.scratch[0])
        games.counters[g, PLY] += 1


@kernel
def _prepare(games: Any, game: Any, options: Any, searches: Any, k: Any, newest: Any) -> None:
    """Advance the game of search ``k`` and write its next search, or mark it FINISHED."""
    g = searches.games[k]
    games.versions[g] = newest.version  # forced moves and deals on the way are of this moment too
    seat = _advance(games, game, g)
    if seat == TERMINAL:
        games.status[g] = FINISHED
        return
    rng = games.rngs[g : g + 1]
    learning = games.seat_models[g, seat] == NEWEST
    full = uniform(rng) < options.full_share
    games.full[g] = full and learning
    games.status[g] = SEARCHING
    view(game, games.states[g], seat, searches.views[k])
    searches.seats[k] = seat
    searches.models[k] = newest.slot if learning else games.seat_models[g, seat]
    searches.simulations[k] = options.full_simulations if full else options.fast_simulations
    searches.search_seeds[k] = next_u64(rng)
    searches.noise[k] = options.noise_share if full and learning else 0.0
    games.counters[g, NUM_SIMULATIONS] += searches.simulations[k]
    if games.full[g]:
        games.counters[g, NUM_FULL] += 1


@kernel
def write_roots(game: Any, games: Any, seats: Any, views: Any) -> None:
    """Write the seat to move of every game, CHANCE or TERMINAL, and the view that it searches."""
    for g in range(len(seats)):
        seats[g] = current_seat(game, games.states[g])
        if seats[g] >= 0:
            view(game, games.states[g], seats[g], views[g])


@kernel
def start_games(
    games: Any, game: Any, options: Any, searches: Any, count: Any, newest: Any
) -> None:
    """Deal ``searches.games[:count]`` from their seeds and write their first searches."""
    for k in range(count):
        g = searches.games[k]
        for i in range(games.counters.shape[1]):
            games.counters[g, i] = 0
        deal(game, games.states[g], games.seeds[g])
        _prepare(games, game, options, searches, k, newest)


@kernel
def play_moves(games: Any, game: Any, options: Any, searches: Any, count: Any, newest: Any) -> None:
    """Play the moves of ``count`` finished searches and write the next ones (see Searches)."""
    for k in range(count):
        g = searches.games[k]
        state = games.states[g]
        seat = current_seat(game, state)
        if games.seat_models[g, seat] == NEWEST:
            flags = VALUE | POLICY | FULL_SEARCH if games.full[g] else VALUE
            index = _record(games, game, g, seat, flags)
            if index >= 0:
                _record_search(games, searches, k, index)
        _record_off_turn(games, game, g, seat, options.off_turn_share)
        action = _choose(searches, k, options.temperature, games.rngs[g : g + 1])
        apply(game, state, action)
        games.counters[g, PLY] += 1
        _prepare(games, game, options, searches, k, newest)
