"""Behaviours of what deals the faults.

* every card comes equally often, and no deal has two of one kind
* a card that found nobody comes again before the deck is dealt anew; the same seed, the same deals
* how long a fault keeps workers from delivering
"""

from __future__ import annotations

import collections
import random

import pytest

from tests.chaos.faults import (
    CLUSTER_CARDS,
    GATE,
    KILL,
    LEARNER,
    LOCAL_CARDS,
    OWNER,
    STOP,
    WORKER,
    Card,
    Deck,
    Fault,
)


@pytest.mark.parametrize("cards", [LOCAL_CARDS, CLUSTER_CARDS])
def test_every_card_comes_equally_often(cards: list[Card]) -> None:
    deck, rng = Deck(cards, random.Random(3)), random.Random(4)
    dealt: list[Card] = []
    while len(dealt) < 6 * len(cards):
        hand = deck.deal(rng.randint(1, 4))
        assert len({card.kind for card in hand}) == len(hand)
        dealt += hand
    counts = collections.Counter(dealt)
    for card, copies in collections.Counter(cards).items():
        assert abs(counts[card] - 6 * copies) <= copies + 1


def test_card_that_found_nobody_comes_again_soon() -> None:
    deck, again = Deck(LOCAL_CARDS, random.Random(3)), Deck(LOCAL_CARDS, random.Random(3))
    (first,) = deck.deal(1)
    assert again.deal(1) == [first]
    deck.take_back(first)
    assert first in [card for _ in range(5) for card in deck.deal(1)]


def fault(kind: str, action: str) -> Fault:
    return Fault(1, 1, kind, action, "pid 7", 100.0, 100.0 if action == KILL else 140.0)


def test_how_long_a_fault_disturbs() -> None:
    assert fault(WORKER, KILL).disturbs_until(6.0) == 100.0
    assert fault(WORKER, STOP).disturbs_until(6.0) == 106.0
    assert fault(LEARNER, STOP).disturbs_until(60.0) == 140.0
    assert fault(OWNER, STOP).disturbs_until(6.0) == 140.0
    assert fault(GATE, STOP).disturbs_until(6.0) == 0.0
