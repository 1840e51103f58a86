"""Random games of every game, with any options, compared with the naive twins: in ``make fuzz``.

    python -m tests.engine.fuzz_games [--games 20000] [--first 0] [--seed 1] [--jobs 1] [GAME ...]

* Legal moves at every ply, places of all cards and what each seat knows every few plies, and
  outcomes are the twin's.
* A world drawn from a seat's view now and then has that view, and the seat's features are finite.

Every switch is drawn anew for each game. A finding is printed with the number of its game and its
options; ``--first NUMBER --games 1`` plays that game again.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from engine import rules
from engine.game import GameSpec, get_spec
from engine.rng import make_rng
from engine.rules import TERMINAL
from tests.engine import cuarenta_pairs, durak_pairs, forty_fives_pairs, poker_pairs
from tests.engine.twins import Mismatch, expect

LOOKS = 10
"""Every so many looks compare all that all seats know."""
WORLDS = 0.1
"""Share of the positions in which a seat's world is drawn."""
WHOLE = 0.01
"""Share of the games of Forty-fives that begin at nothing and are played to the end, for which
random bids take 60 hands; the others begin at any scores and are compared for PART positions."""
PART = 100
CHUNK = 100
"""Games between two looks at what the other processes found."""


class Counts(NamedTuple):
    """What was compared."""

    games: int = 0
    positions: int = 0
    worlds: int = 0

    def plus(self, other: Counts) -> Counts:
        """Return the sums."""
        return Counts(*map(sum, zip(self, other, strict=True)))


class Twin(NamedTuple):
    """How a game is drawn, and begun in the engine and in its twin."""

    options: Callable[[random.Random], dict[str, str]]
    start: Callable[[dict[str, str], random.Random], tuple[Any, int]]
    """Returns a pair, and how many positions to compare at the most."""


def _seeded(new_game: Callable[[dict[str, str], int], Any]) -> Any:
    return lambda options, rng: (new_game(options, rng.getrandbits(64)), sys.maxsize)


def _forty_fives(options: dict[str, str], rng: random.Random) -> tuple[Any, int]:
    seed = rng.getrandbits(64)
    if rng.random() < WHOLE:
        return forty_fives_pairs.new_game(options, seed), sys.maxsize
    scores = (5 * rng.randint(0, 23), 5 * rng.randint(0, 23))
    return forty_fives_pairs.new_game(options, seed, scores=scores), PART


def _poker(name: str, pair: Callable[[dict[str, str], int], Any]) -> Twin:
    return Twin(partial(poker_pairs.random_options, get_spec(name)), _seeded(pair))


TWINS = {
    "cuarenta": Twin(cuarenta_pairs.random_options, _seeded(cuarenta_pairs.new_game)),
    "durak": Twin(durak_pairs.random_options, _seeded(durak_pairs.new_game)),
    "forty_fives": Twin(forty_fives_pairs.random_options, _forty_fives),
    "kuhn": _poker("kuhn", poker_pairs.KuhnPair),
    "leduc": _poker("leduc", poker_pairs.LeducPair),
}


def check_world(spec: GameSpec, pair: Any, rng: random.Random) -> None:
    """Draw a world from the view of a random seat; raise Mismatch unless it has that view."""
    game, state = pair.game, pair.state
    seat = rng.randrange(int(rules.num_seats(game)))
    view, world, again = spec.new_states(3)
    rules.view(game, state, seat, view)
    rules.determinize(game, view, seat, make_rng(rng.getrandbits(64)), world)
    rules.view(game, world, seat, again)
    expect("view of a drawn world", again.tobytes(), view.tobytes())
    for encoder in spec.encoders:
        seen = np.full(encoder.observation_size, np.nan, np.float32)
        rules.observe(game, view, seat, encoder.code, seen)
        expect("finite features", bool(np.isfinite(seen).all()), True)


def play(name: str, number: int, seed: int) -> Counts:
    """Compare one game. Raises Mismatch with its number and options."""
    spec, rng = get_spec(name), random.Random(f"{name} {seed} {number}")
    options = TWINS[name].options(rng)
    positions = worlds = 0
    try:
        pair, most = TWINS[name].start(options, rng)
        pair.every = LOOKS
        while positions < most and pair.step(rng):
            positions += 1
            if int(rules.current_seat(pair.game, pair.state)) == TERMINAL:
                pair.every = 1
                pair.look()
            elif rng.random() < WORLDS:
                check_world(spec, pair, rng)
                worlds += 1
    except Exception as error:
        raise Mismatch(f"{name}, game {number} of seed {seed}, {options}: {error!r}") from error
    return Counts(1, positions, worlds)


def fuzz(name: str, numbers: range, seed: int = 1) -> Counts:
    """Compare games ``numbers`` of a game. Raises Mismatch at the first difference."""
    total = Counts()
    for number in numbers:
        total = total.plus(play(name, number, seed))
    return total


def _all(name: str, numbers: range, seed: int, jobs: int) -> Iterator[Counts]:
    chunks = [
        range(first, min(first + CHUNK, numbers.stop))
        for first in range(numbers.start, numbers.stop, CHUNK)
    ]
    if jobs == 1:
        yield from (fuzz(name, chunk, seed) for chunk in chunks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(fuzz, [name] * len(chunks), chunks, [seed] * len(chunks))


def main() -> int:
    """Fuzz; return 1 after a finding."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--games", type=int, default=20_000, help="of each game")
    parser.add_argument("--first", type=int, default=0, help="number of the first game")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("names", nargs="*", metavar="GAME", help="by default all")
    parsed = parser.parse_args()
    if unknown := set(parsed.names) - TWINS.keys():
        parser.error(f"{', '.join(sorted(unknown))}: allowed are {', '.join(TWINS)}")
    numbers, found = range(parsed.first, parsed.first + parsed.games), 0
    for name in parsed.names or TWINS:
        began, total = time.monotonic(), Counts()
        try:
            for counts in _all(name, numbers, parsed.seed, parsed.jobs):
                total = total.plus(counts)
        except Mismatch as finding:
            found = 1
            print(f"FINDING: {finding}", flush=True)
        took = time.monotonic() - began
        print(
            f"{name}: {total.games:,} games, {total.positions:,} positions and {total.worlds:,} "
            f"worlds compared in {took:.0f} s",
            flush=True,
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
