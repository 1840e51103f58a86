"""Plays many games at once, with one player per seat.

Room: engine. May import: numpy and the other rooms of engine.

A ``Table`` keeps a number of games going and moves all of them by one ply a step, so that a player
meets its positions as a batch. A game's course follows from its job and its players alone: the
cards from the job's seed, a player's randomness from (pair, replay, seat, ply).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.game import GameSpec
from engine.jit import kernel
from engine.past import PastPlies
from engine.players import Player, RecallingPlayer, act_with_past
from engine.rng import mix
from engine.rules import (
    CHANCE,
    TERMINAL,
    apply,
    current_seat,
    deal,
    deal_next,
    legal_actions,
    num_seats,
    num_sides,
    returns,
    reward_terms,
    statistics,
    view,
)
from engine.search.tree import plain_records

_U0 = np.uint64(0)


class GameJob(NamedTuple):
    """One game to play."""

    pair: int
    """Number of the pair (or block) that the game belongs to."""
    replay: int
    """Tells apart repeated games of a pair; the games of one pair share it to share randomness."""
    seed: int
    """Seed of the cards: equal in the games of one pair."""
    seat_players: tuple[int, ...]
    """Per seat, the index of its player at the table."""


@dataclass(frozen=True)
class GameResult:
    """A finished game."""

    job: GameJob
    returns: NDArray[np.float64]
    """[sides] outcome."""
    statistics: NDArray[np.float64]
    """[sides, len(spec.statistics)]."""
    reward_terms: NDArray[np.float64]
    """[sides, len(spec.reward_terms)]."""
    plies: int
    digest: int
    """Hash of the action sequence: equal games have equal digests."""
    seconds: float
    """Wall time, the time of a batch shared evenly among its games."""


class _Slots(NamedTuple):
    """The games under way, one per slot G."""

    states: Any
    """state_dtype[G]."""
    seats: NDArray[np.int64]
    """[G] seat to move, TERMINAL for a finished or empty slot."""
    plies: NDArray[np.int64]
    """[G]."""
    digests: NDArray[np.uint64]
    """[G] hash of the actions so far."""
    pair_keys: NDArray[np.uint64]
    """[G] hash of (pair, replay)."""


class Table:
    """Keeps up to ``num_slots`` games going until the jobs run out."""

    def __init__(
        self,
        spec: GameSpec,
        game: Any,
        players: Sequence[Player],
        jobs: Iterable[GameJob],
        *,
        num_slots: int = 64,
    ) -> None:
        """Prepare the slots; nothing is dealt before the first ``step``.

        Raises:
            ValueError: ``num_slots`` is below 1.
        """
        if num_slots < 1:
            raise ValueError(f"num_slots = {num_slots}: at least 1 is allowed")
        self._spec = spec
        self._game = game
        self._players = players
        self._jobs: Iterator[GameJob] = iter(jobs)
        self._slot_jobs: list[GameJob | None] = [None] * num_slots
        self._seat_players = np.zeros((num_slots, int(num_seats(game))), np.int64)
        self._seconds = np.zeros(num_slots)
        self._slots = _Slots(
            states=plain_records(spec.state_dtype, num_slots),
            seats=np.full(num_slots, TERMINAL, np.int64),
            plies=np.zeros(num_slots, np.int64),
            digests=np.zeros(num_slots, np.uint64),
            pair_keys=np.zeros(num_slots, np.uint64),
        )
        self._views = plain_records(spec.state_dtype, num_slots)
        self._keys = np.zeros(num_slots, np.uint64)
        self._actions = np.zeros(num_slots, np.int64)
        self._legal = np.zeros(spec.max_actions, np.int64)
        plies = [p.num_recalled if isinstance(p, RecallingPlayer) else 0 for p in players]
        recalled = max(plies, default=0)
        self._asks = [count > 0 for count in plies]
        self._past = PastPlies(spec.state_dtype, num_slots, recalled) if recalled else None

    @property
    def num_active(self) -> int:
        """Games under way."""
        return sum(job is not None for job in self._slot_jobs)

    def step(self) -> list[GameResult]:
        """Refill empty slots, play one ply in every slot, and return the games that ended.

        Raises:
            ValueError: A job that does not fit the table, or a player's illegal action.
        """
        start = time.perf_counter()
        self._refill()
        active = np.flatnonzero(self._slots.seats >= 0)
        movers = self._seat_players[active, self._slots.seats[active]]
        spent = 0.0
        for player in np.unique(movers):
            group = active[movers == player]
            began = time.perf_counter()
            self._play(int(player), group)
            elapsed = time.perf_counter() - began
            self._seconds[group] += elapsed / len(group)
            spent += elapsed
        if len(active):
            self._seconds[active] += (time.perf_counter() - start - spent) / len(active)
        # Of all held slots, not of the active ones: some deals end a game before anybody moves.
        over = self._slots.seats == TERMINAL
        ended = [slot for slot, job in enumerate(self._slot_jobs) if job is not None and over[slot]]
        return [self._finish(slot) for slot in ended]

    def play_all(self) -> list[GameResult]:
        """Step until all jobs are played; return the results in the order in which they ended."""
        results: list[GameResult] = []
        while True:
            ended = self.step()
            results += ended
            # All games may have ended in this step while jobs are waiting; nothing ends in a step
            # that found no job either.
            if not ended and not self.num_active:
                return results

    def _refill(self) -> None:
        for slot, held in enumerate(self._slot_jobs):
            if held is not None:
                continue
            job = next(self._jobs, None)
            if job is None:
                return
            self._check(job)
            self._slot_jobs[slot] = job
            self._seat_players[slot] = job.seat_players
            self._seconds[slot] = 0.0
            # Compiled code returns a uint64 as a Python int, which numba would take for an int64.
            key = np.uint64(mix(np.uint64(mix(_U0, _u64(job.pair))), _u64(job.replay)))
            _start_game(self._game, self._slots, slot, _u64(job.seed), key)
            if self._past:
                self._past.start(slot)

    def _check(self, job: GameJob) -> None:
        seats = self._seat_players.shape[1]
        if len(job.seat_players) != seats:
            raise ValueError(f"job {job}: {self._spec.name} has {seats} seats here")
        if not all(0 <= player < len(self._players) for player in job.seat_players):
            raise ValueError(f"job {job}: players are 0 to {len(self._players) - 1}")

    def _play(self, player: int, group: NDArray[np.int64]) -> None:
        """Let one player move in the slots of ``group``."""
        count = len(group)
        views, keys, actions = self._views[:count], self._keys[:count], self._actions[:count]
        _write_views(self._game, self._slots, group, views, keys)
        seats = self._slots.seats[group]
        asks = self._asks[player]
        past = self._past.seen(self._game, group, seats) if asks and self._past else None
        act_with_past(self._players[player], (views, seats, keys), past, actions)
        if self._past:
            self._past.add(self._slots.states, group, actions)
        illegal = _play_actions(self._game, self._slots, group, actions, self._legal)
        if illegal >= 0:
            raise ValueError(
                f"player {player} ({type(self._players[player]).__name__}) chose action "
                f"{actions[illegal]} in {self._slot_jobs[group[illegal]]}: it is not legal"
            )
        longest = int(self._slots.plies[group].max())
        if longest > self._spec.max_plies:
            raise ValueError(f"a game of {longest} plies: {self._spec.max_plies} are allowed")

    def _finish(self, slot: int) -> GameResult:
        job = self._slot_jobs[slot]
        assert job is not None
        self._slot_jobs[slot] = None
        state, sides = self._slots.states[slot], int(num_sides(self._game))
        outcome = np.zeros(sides)
        figures = np.zeros((sides, len(self._spec.statistics)))
        terms = np.zeros((sides, len(self._spec.reward_terms)))
        returns(self._game, state, outcome)
        statistics(self._game, state, figures)
        reward_terms(self._game, state, terms)
        return GameResult(
            job=job,
            returns=outcome,
            statistics=figures,
            reward_terms=terms,
            plies=int(self._slots.plies[slot]),
            digest=int(self._slots.digests[slot]),
            seconds=float(self._seconds[slot]),
        )


def _u64(value: int) -> np.uint64:
    return np.uint64(value & 0xFFFFFFFFFFFFFFFF)


@kernel
def _start_game(game: Any, slots: Any, slot: Any, seed: Any, key: Any) -> None:
    """Deal a new game into a slot."""
    deal(game, slots.states[slot], seed)
    slots.plies[slot] = 0
    slots.digests[slot] = _U0
    slots.pair_keys[slot] = key
    slots.seats[slot] = _next_seat(game, slots.states[slot])


@kernel
def _next_seat(game: Any, state: Any) -> Any:
    """Deal what is due and return the seat to move, or TERMINAL."""
    seat = np.int64(current_seat(game, state))
    while seat == CHANCE:
        deal_next(game, state)
        seat = np.int64(current_seat(game, state))
    return seat


@kernel
def _write_views(game: Any, slots: Any, group: Any, views: Any, keys: Any) -> None:
    """Write the view and the key of the seat to move of each slot of ``group``."""
    for i in range(group.shape[0]):
        slot = group[i]
        seat = slots.seats[slot]
        view(game, slots.states[slot], seat, views[i])
        key = mix(slots.pair_keys[slot], np.uint64(seat))
        keys[i] = mix(key, np.uint64(slots.plies[slot]))


@kernel
def _play_actions(game: Any, slots: Any, group: Any, actions: Any, legal: Any) -> Any:
    """Play one action per slot of ``group``; return the first row with an illegal one, or -1."""
    for i in range(group.shape[0]):
        slot = group[i]
        state = slots.states[slot]
        found = False
        for k in range(legal_actions(game, state, legal)):
            found = found or legal[k] == actions[i]
        if not found:
            return i
        apply(game, state, actions[i])
        slots.plies[slot] += 1
        slots.digests[slot] = mix(slots.digests[slot], np.uint64(actions[i]))
        slots.seats[slot] = _next_seat(game, state)
    return -1
