"""What can be done to which kind of process, dealt at random like a deck of cards."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from tests.chaos.proxy import REFUSED, SILENT

KILL, STOP = "kill", "stop"
CUTS = (REFUSED, SILENT)
WORKER, LEARNER, GATE = "worker", "learner", "gate"
OWNER, SUPERVISOR, SERVER = "owner", "supervisor", "server"
GCS, HEAD_RAYLET, SECOND_RAYLET = "gcs", "raylet of the head", "raylet of the second node"


class Card(NamedTuple):
    """One kind of process and what happens to it."""

    kind: str
    action: str


def _cards(action: str, kinds: Iterable[str]) -> list[Card]:
    return [Card(kind, action) for kind in kinds]


LOCAL_CARDS = [
    *_cards(KILL, (WORKER, WORKER, LEARNER, GATE, OWNER, SUPERVISOR, SERVER, SERVER, GCS)),
    *_cards(KILL, (HEAD_RAYLET,)),
    *_cards(STOP, (WORKER, LEARNER, GATE, OWNER, SUPERVISOR, SERVER)),
]
"""A Ray and a server of the run's own."""
CLUSTER_CARDS = [
    *_cards(KILL, (WORKER, WORKER, LEARNER, GATE, OWNER, SUPERVISOR, SERVER)),
    *_cards(KILL, (SECOND_RAYLET, SECOND_RAYLET)),
    *_cards(STOP, (WORKER, LEARNER, GATE, OWNER, SERVER)),
    *_cards(REFUSED, (WORKER, LEARNER, OWNER)),
    *_cards(SILENT, (WORKER, LEARNER, GATE)),
]
"""An existing cluster of two nodes, and an own server behind a proxy."""


_LATER = 4
"""Cards that come before one that was taken back."""


class Deck:
    """Deals all cards in turn, shuffled anew each time that they are through."""

    def __init__(self, cards: list[Card], rng: random.Random) -> None:
        self._cards, self._rng = cards, rng
        self._left: list[Card] = []

    def deal(self, count: int) -> list[Card]:
        """Return ``count`` cards of different kinds."""
        dealt: list[Card] = []
        passed: list[Card] = []
        while len(dealt) < count:
            if not self._left:
                self._left = self._rng.sample(self._cards, len(self._cards))
            card = self._left.pop()
            same = any(card.kind == other.kind for other in dealt)
            (passed if same else dealt).append(card)
        self._left += passed
        return dealt

    def take_back(self, card: Card) -> None:
        """Deal ``card`` again a little later: there was nobody to do it to."""
        self._left.insert(max(0, len(self._left) - _LATER), card)


@dataclass(frozen=True)
class Pace:
    """How hard a run is attacked."""

    minutes: float
    least_faults: int
    """It goes on after ``minutes`` until there were so many, twice as long at the most."""
    most_at_once: int
    stop_s: tuple[float, float]
    cut_s: tuple[float, float]
    bound_s: float
    """A worker has to deliver within this time of what disturbed it."""
    step_limit_s: float
    """An actor that does not answer for so long is replaced."""


TEN_MINUTES = Pace(10.0, 30, 4, (20.0, 60.0), (8.0, 30.0), 60.0, 15.0)
ONE_MINUTE = Pace(1.0, 5, 2, (2.0, 7.0), (2.0, 7.0), 240.0, 6.0)
"""For a suite that shares its machine with other tests."""


class Fault(msgspec.Struct, tag="fault"):
    """Something that was done."""

    number: int
    round: int
    kind: str
    action: str
    target: str
    at: float
    """Unix time."""
    until: float
    """When it was over: at once for a kill, when it goes on or is let in again for the others."""

    def disturbs_until(self, step_limit_s: float) -> float:
        """Return until when workers may be kept from delivering; 0 when they are not.

        A stopped actor is replaced after ``step_limit_s``, however long it stands still.
        """
        if self.kind == GATE:
            return 0.0
        if self.action == STOP and self.kind in (WORKER, LEARNER):
            return min(self.until, self.at + step_limit_s)
        return self.until
