"""The window that the learner samples: the newest games, in preallocated arrays.

Room: replay. May import: numpy, engine (rules of sides), replay (trajectory, records).

Positions lie in rings: one of slots (an example each), two of slot numbers in order of age (those
with a policy target, and value-only ones), one of visit counts. A game is stored whole and evicted
whole, oldest first, as soon as the next game does not fit. Which games are held then depends on
the last games added alone and not on where the rings began, and sampling counts positions by age:
a window rebuilt from the stream therefore draws the same examples from the same random numbers.
At the first eviction all memory that was never used is claimed: the window grows no more.

Dimensions: N examples of a game, B sampled examples, S sides.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine import rules
from engine.game import GameSpec
from replay.records import Records
from replay.trajectory import EXAMPLE, POLICY, VALUE, Header, Trajectory, TrajectoryError

LAST_HAND = -1
"""``equity_row`` in the last hand of a game: its target is the outcome."""


class HeldGame(NamedTuple):
    """What the window knows of a game that it holds."""

    shard: str
    cursor: str
    producer: str
    sequence: int
    num_examples: int
    num_eligible: int
    num_values: int
    num_visits: int
    serial: int
    """Number of the game within its shard, counted by whoever adds (order of ingestion)."""


class Batch(NamedTuple):
    """Sampled examples; every array is freshly allocated and contiguous."""

    views: Any
    """state_dtype[B], a recarray."""
    examples: NDArray[Any]
    """EXAMPLE[B]."""
    visits: NDArray[np.uint16]
    """[offsets[B]] visit counts of all examples one after another."""
    offsets: NDArray[np.int64]
    """[B + 1] visits of example b are offsets[b] : offsets[b + 1]."""
    outcome: NDArray[np.float32]
    """[B, S] result of the game; column k is the side k places after the example's own side."""
    shaped: NDArray[np.float32]
    """[B] own side's shaped return minus the (mean) other side's, in points, at the game's end."""
    equity_row: NDArray[np.int32]
    """[B] own side's row of the match-equity table at the end of the hand, or LAST_HAND."""
    facts: NDArray[Any] | None
    """facts_dtype[B], what the learner worked out at ingestion; None without such a column."""


class _Ring:
    """Slot numbers in order of age."""

    def __init__(self, capacity: int) -> None:
        self.slots = np.zeros(capacity, np.int64)
        self.tail, self.count = 0, 0

    def push(self, values: NDArray[np.int64]) -> None:
        capacity = len(self.slots)
        places = (self.tail + self.count + np.arange(len(values))) % max(capacity, 1)
        self.slots[places] = values
        self.count += len(values)

    def drop(self, count: int) -> None:
        self.tail = (self.tail + count) % max(len(self.slots), 1)
        self.count -= count

    def by_age(self, ages: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slots at ``ages`` (0 is the oldest)."""
        return self.slots.take(self.tail + ages, mode="wrap")


class Window:
    """Holds whole games, newest last; bounded by positions, never by time.

    Args:
        spec: the game.
        game: its rule options; a trajectory with other rules is refused.
        capacity: eligible positions (with a policy target) held at the most.
        values_per_position: room for value-only examples, as a multiple of ``capacity``.
        actions_per_position: room for visit counts, per eligible position (mean, not maximum).
        facts_dtype: record that the caller adds for each example.
    """

    def __init__(
        self,
        spec: GameSpec,
        game: Any,
        capacity: int,
        *,
        values_per_position: float = 4.0,
        actions_per_position: int = 16,
        facts_dtype: np.dtype[Any] | None = None,
    ) -> None:
        if capacity < 1:
            raise ValueError(f"window of {capacity} positions: allowed are 1 and more")
        self.spec, self.game, self.capacity = spec, game, capacity
        self._rules = spec.describe(game)
        self._num_sides = int(rules.num_sides(game))
        seats = range(int(rules.num_seats(game)))
        self._side_of_seat = np.array([rules.side_of(game, seat) for seat in seats], np.int64)
        self._value_capacity = int(np.ceil(capacity * values_per_position))
        self._visit_capacity = max(capacity * actions_per_position, spec.max_actions)
        num_slots = capacity + self._value_capacity
        self._num_slots = num_slots
        columns = {
            "view": spec.state_dtype,
            "example": EXAMPLE,
            "visit_start": np.dtype(np.int64),
            "outcome": np.dtype((np.float32, (self._num_sides,))),
            "shaped": np.dtype(np.float32),
            "equity_row": np.dtype(np.int32),
        }
        self._has_facts = facts_dtype is not None
        if facts_dtype is not None:
            columns["facts"] = facts_dtype
        self._slots = Records(num_slots, columns)
        self._visits = np.zeros(self._visit_capacity, np.uint16)
        self._slot_head, self._visit_head = 0, 0
        self._slots_used, self._visits_used = 0, 0
        self._eligible, self._values = _Ring(capacity), _Ring(self._value_capacity)
        self._games: deque[HeldGame] = deque()
        self._is_claimed = False

    # --- size -------------------------------------------------------------------------------------

    @property
    def num_eligible(self) -> int:
        """Positions with a policy target."""
        return self._eligible.count

    @property
    def num_values(self) -> int:
        """Value-only examples."""
        return self._values.count

    @property
    def num_games(self) -> int:
        """Games held."""
        return len(self._games)

    @property
    def nbytes(self) -> int:
        """Bytes of the preallocated arrays."""
        rings = self._eligible.slots.nbytes + self._values.slots.nbytes
        return self._slots.nbytes + rings + self._visits.nbytes

    @property
    def games(self) -> deque[HeldGame]:
        """The games held, oldest first (not to be changed)."""
        return self._games

    def window_edge(self) -> dict[str, str]:
        """Return per shard the cursor of the oldest game held; shards without one are absent."""
        edges: dict[str, str] = {}
        for held in self._games:
            edges.setdefault(held.shard, held.cursor)
        return edges

    # --- adding -----------------------------------------------------------------------------------

    def add(
        self,
        trajectory: Trajectory,
        cursor: str,
        shard: str = "0",
        *,
        producer: str = "",
        sequence: int = 0,
        serial: int = 0,
        facts: NDArray[Any] | None = None,
    ) -> int:
        """Copy a game in, evicting the oldest ones; return its number of eligible positions.

        Raises:
            TrajectoryError: the game does not belong in here: other rules, seats or sides, or it
                alone is larger than the window. The window is as it was.
            ValueError: ``facts`` do not fit.
        """
        self._check(trajectory, facts)
        flags = trajectory.examples["flags"]
        if not len(flags):
            return 0  # nothing to hold, and nothing that would ever be evicted for it
        eligible = (flags & POLICY) != 0
        value_only = ~eligible & ((flags & VALUE) != 0)
        held = HeldGame(
            shard=shard,
            cursor=cursor,
            producer=producer,
            sequence=sequence,
            num_examples=len(flags),
            num_eligible=int(np.count_nonzero(eligible)),
            num_values=int(np.count_nonzero(value_only)),
            num_visits=len(trajectory.visits),
            serial=serial,
        )
        self._make_room(held)
        slots = (self._slot_head + np.arange(held.num_examples)) % self._num_slots
        self._write(trajectory, facts)
        self._eligible.push(slots[eligible])
        self._values.push(slots[value_only])
        self._slot_head = (self._slot_head + held.num_examples) % self._num_slots
        self._visit_head = (self._visit_head + held.num_visits) % self._visit_capacity
        self._slots_used += held.num_examples
        self._visits_used += held.num_visits
        self._games.append(held)
        return held.num_eligible

    def clear(self) -> None:
        """Forget all games; the arrays stay allocated."""
        while self._games:
            self._evict()

    def _check(self, trajectory: Trajectory, facts: NDArray[Any] | None) -> None:
        header, examples = trajectory.header, trajectory.examples
        if header.game != self.spec.name:
            raise TrajectoryError(
                f"a game of {header.game!r}, this window holds {self.spec.name}", "game"
            )
        check_rules(header, self._rules)
        sides = {len(header.returns), len(header.reward_terms)} | {len(e) for e in header.hand_ends}
        if sides != {self._num_sides}:
            raise TrajectoryError(f"a game of {sides} sides, expected {self._num_sides}")
        if len(examples) and int(examples["seat"].max()) >= len(self._side_of_seat):
            raise TrajectoryError(f"an example of seat {int(examples['seat'].max())}")
        if (facts is None) == self._has_facts or (
            facts is not None and len(facts) != len(examples)
        ):
            raise ValueError("facts are needed exactly when the window has a column for them")

    def _make_room(self, held: HeldGame) -> None:
        bounds = (
            ("eligible positions", held.num_eligible, self.capacity),
            ("value-only examples", held.num_values, self._value_capacity),
            ("examples", held.num_examples, self._num_slots),
            ("visit counts", held.num_visits, self._visit_capacity),
        )
        for name, needed, bound in bounds:
            if needed > bound:
                raise TrajectoryError(
                    f"a game with {needed} {name} does not fit in a window for {bound} of them: "
                    f"window of {self.capacity} positions is too small",
                    "size",
                )
        while self._games and (
            self._eligible.count + held.num_eligible > self.capacity
            or self._values.count + held.num_values > self._value_capacity
            or self._slots_used + held.num_examples > self._num_slots
            or self._visits_used + held.num_visits > self._visit_capacity
        ):
            self._evict()

    def _evict(self) -> None:
        if not self._is_claimed:
            self._claim()
        oldest = self._games.popleft()
        self._eligible.drop(oldest.num_eligible)
        self._values.drop(oldest.num_values)
        self._slots_used -= oldest.num_examples
        self._visits_used -= oldest.num_visits

    def _claim(self) -> None:
        """Write to all memory that was never used (nothing has been evicted yet).

        The rings do not fill at the same rate. The tail of one that has room to spare would become
        resident bit by bit over hours, and look like a leak that ends nowhere.
        """
        self._slots.clear_from(self._slots_used)
        self._visits[self._visits_used :] = 0
        for ring in (self._eligible, self._values):
            ring.slots[ring.count :] = 0
        self._is_claimed = True

    def _write(self, trajectory: Trajectory, facts: NDArray[Any] | None) -> None:
        """Write a game behind the newest one."""
        header, examples = trajectory.header, trajectory.examples
        counts = examples["num_actions"].astype(np.int64)
        starts = self._visit_head + np.cumsum(counts) - counts
        places = (self._visit_head + np.arange(len(trajectory.visits))) % self._visit_capacity
        self._visits[places] = trajectory.visits

        side = self._side_of_seat[examples["seat"]]
        outcome = np.asarray(header.returns, np.float64)
        shaped = np.asarray(header.reward_terms, np.float64).sum(axis=1)
        others = (shaped.sum() - shaped) / (self._num_sides - 1)
        column = (side[:, None] + np.arange(self._num_sides)) % self._num_sides
        columns = {
            "view": np.asarray(trajectory.views),
            "example": examples,
            "visit_start": starts % self._visit_capacity,
            "outcome": outcome[column],
            "shaped": (shaped - others)[side],
            "equity_row": _equity_rows(header.hand_ends, examples["hand"], side),
        }
        if facts is not None:
            columns["facts"] = facts
        self._slots.put(self._slot_head, columns)

    # --- sampling ---------------------------------------------------------------------------------

    def sample(
        self, rng: np.random.Generator, count: int, newest: float = 1.0
    ) -> NDArray[np.int64]:
        """Return slots of ``count`` eligible positions, uniform with replacement; advances ``rng``.

        ``newest``, in (0, 1], is the share of the window that is drawn from, the newest positions.
        Slots are valid until the next ``add``. Raises ValueError when there are none.
        """
        return _draw(self._eligible, rng, count, newest, "eligible position")

    def sample_values(
        self, rng: np.random.Generator, count: int, newest: float = 1.0
    ) -> NDArray[np.int64]:
        """Return slots of ``count`` value-only examples, as ``sample`` does for eligible ones."""
        return _draw(self._values, rng, count, newest, "value-only example")

    def gather(self, indices: NDArray[np.int64]) -> Batch:
        """Return copies of the examples in the slots ``indices`` [B]."""
        rows = self._slots.take(indices)
        counts = rows["example"]["num_actions"].astype(np.int64)
        offsets = np.zeros(len(indices) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        places = np.repeat(rows["visit_start"] - offsets[:-1], counts)
        places += np.arange(offsets[-1])
        return Batch(
            views=rows["view"].view(np.recarray),
            examples=rows["example"],
            visits=self._visits.take(places, mode="wrap"),
            offsets=offsets,
            outcome=rows["outcome"],
            shaped=rows["shaped"],
            equity_row=rows["equity_row"],
            facts=rows.get("facts"),
        )

    def all_eligible(self) -> NDArray[np.int64]:
        """Return the slots of all eligible positions, oldest first."""
        return self._eligible.by_age(np.arange(self._eligible.count))


def check_rules(header: Header, rules_in_words: dict[str, str]) -> None:
    """Raise TrajectoryError for a game by other rules."""
    if header.rules != rules_in_words:
        differing = sorted(set(header.rules.items()) ^ set(rules_in_words.items()))
        raise TrajectoryError(f"rules of the game differ from the window's in {differing}", "rules")


def _draw(
    ring: _Ring, rng: np.random.Generator, count: int, newest: float, what: str
) -> NDArray[np.int64]:
    if not 0.0 < newest <= 1.0:
        raise ValueError(f"newest = {newest}: allowed are shares above 0, up to 1")
    if ring.count == 0:
        raise ValueError(f"the window holds no {what}: nothing to sample from")
    oldest = ring.count - int(np.ceil(ring.count * newest))
    return ring.by_age(rng.integers(oldest, ring.count, size=count))


def _equity_rows(
    hand_ends: tuple[tuple[int, ...], ...], hands: NDArray[Any], side: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Return int32[N]: own side's row at the end of each example's hand, or LAST_HAND."""
    table = np.full((len(hand_ends) + 1, int(side.max(initial=0)) + 1), LAST_HAND, np.int32)
    for hand, ends in enumerate(hand_ends):
        table[hand] = ends[: table.shape[1]]
    return table[hands, side]
