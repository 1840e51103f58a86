"""Training and held-out games, each in a window of its own, and what a snapshot says about both.

Room: replay. May import: numpy, engine.game, replay.window, replay.buffer.

Whether a game is held out is decided by a hash of who wrote it and its number: the same game falls
to the same side after every resume and every rebuild, without a list of any kind.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.game import GameSpec
from replay.buffer import Entry, ReaderState
from replay.trajectory import Trajectory
from replay.window import HeldGame, Window

_MIN_HELD_OUT_POSITIONS = 50_000
"""So that even a short window keeps the thousand or so held-out games that figures need."""


def is_held_out(producer: str, sequence: int, share: float) -> bool:
    """Return whether the game is one of the ``share`` that never trains (a fixed hash decides)."""
    digest = hashlib.blake2b(f"{producer}\0{sequence}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") < share * 2.0**64


def held_out_capacity(capacity: int, share: float) -> int:
    """Return the eligible positions kept of held-out games: as old as those that train, or more."""
    if share <= 0.0:
        return 1
    proportional = math.ceil(capacity * share / (1.0 - share))
    return max(proportional, min(capacity, _MIN_HELD_OUT_POSITIONS))


class SplitWindow:
    """Two windows behind one ``add``.

    Args:
        spec: the game.
        game: its rule options.
        capacity: eligible training positions.
        held_out_share: share of whole games that go to the held-out window, in [0, 1).
        held_out_positions: eligible positions there; 0 derives them from capacity and share.
        values_per_position: see Window.
        facts_dtype: see Window.
    """

    def __init__(
        self,
        spec: GameSpec,
        game: Any,
        capacity: int,
        *,
        held_out_share: float,
        held_out_positions: int = 0,
        values_per_position: float = 4.0,
        facts_dtype: np.dtype[Any] | None = None,
    ) -> None:
        if not 0.0 <= held_out_share < 1.0:
            raise ValueError(f"held-out share {held_out_share}: allowed are 0 up to below 1")
        self.share = held_out_share
        other = held_out_positions or held_out_capacity(capacity, held_out_share)
        self.training, self.held_out = (
            Window(
                spec,
                game,
                positions,
                values_per_position=values_per_position,
                facts_dtype=facts_dtype,
            )
            for positions in (capacity, other)
        )
        self._serials: dict[str, int] = {}
        self._since: dict[str, deque[tuple[int, str, int]]] = {}
        """Per shard: (serial, producer, sequence) of what was ingested since the edge of the last
        description."""

    def add(
        self, entry: Entry, trajectory: Trajectory, facts: NDArray[Any] | None = None
    ) -> Window:
        """Copy a game into the window that it belongs to and return that window.

        Raises what ``Window.add`` raises.
        """
        held_out = is_held_out(entry.producer, entry.sequence, self.share)
        window = self.held_out if held_out else self.training
        serial = self._serials.get(entry.shard, 0)
        window.add(
            trajectory,
            entry.cursor,
            entry.shard,
            producer=entry.producer,
            sequence=entry.sequence,
            serial=serial,
            facts=facts,
        )
        self.skip(entry)
        return window

    def skip(self, entry: Entry) -> None:
        """Count an entry that no window takes: a rebuild finds it all the same."""
        serial = self._serials.get(entry.shard, 0)
        self._serials[entry.shard] = serial + 1
        since = self._since.setdefault(entry.shard, deque())
        since.append((serial, entry.producer, entry.sequence))

    def clear(self) -> None:
        """Forget all games."""
        self.training.clear()
        self.held_out.clear()
        self._serials.clear()
        self._since.clear()

    def window_edge(self) -> dict[str, str]:
        """Return per shard the cursor of the oldest game held in either window."""
        return {shard: game.cursor for shard, game in self._oldest().items()}

    def describe(self, state: ReaderState) -> None:
        """Write what a rebuild needs to know about the windows into ``state``, in place."""
        oldest = self._oldest()
        state.window_edge = {shard: game.cursor for shard, game in oldest.items()}
        state.window_entries = {
            shard: self._serials[shard] - game.serial for shard, game in oldest.items()
        }
        state.floors = _floors((*self.training.games, *self.held_out.games))
        state.bases = {}
        for shard, since in self._since.items():
            edge = oldest[shard].serial if shard in oldest else self._serials[shard]
            while since and since[0][0] < edge:
                since.popleft()
            for _, producer, sequence in since:
                state.bases.setdefault(producer, sequence)

    def _oldest(self) -> dict[str, HeldGame]:
        oldest: dict[str, HeldGame] = {}
        for window in (self.training, self.held_out):
            seen: set[str] = set()
            for game in window.games:
                if game.shard not in seen:
                    seen.add(game.shard)
                    known = oldest.get(game.shard, game)
                    oldest[game.shard] = min(known, game, key=lambda held: held.serial)
                if len(seen) == len(self._serials):
                    break  # each shard's first one is its oldest; the other games are younger
        return oldest


def _floors(games: Iterable[HeldGame]) -> dict[str, int]:
    floors: dict[str, int] = {}
    for game in games:
        floors[game.producer] = min(game.sequence, floors.get(game.producer, game.sequence))
    return floors
