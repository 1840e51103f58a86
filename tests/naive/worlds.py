"""Everything that a seat cannot know, listed or drawn from the rules of what is public.

It imports nothing of the engine: tests of hidden information that took their worlds from the code
under test would trust what they test. A world says where the hidden cards lie. ``all_*`` list every
world that agrees with what a seat knows, each as often as there are ways to deal it;
``random_cuarenta_world`` draws one of them uniformly where there are too many to list.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

Hands = tuple[frozenset[int], ...]

# --- poker ----------------------------------------------------------------------------------------


def all_kuhn_worlds(own: int, seat: int) -> list[tuple[int, ...]]:
    """Return the cards of seats 0 and 1 that agree with ``seat`` holding ``own``."""
    others = [card for card in range(3) if card != own]
    return [(own, other) if seat == 0 else (other, own) for other in others]


def all_leduc_worlds(own: int, board: int | None, seat: int) -> list[tuple[int, ...]]:
    """Return (card of seat 0, card of seat 1, card to turn up) by rank, one entry for each way.

    ``board`` is the rank turned up, None while it is hidden.
    """
    deck = [rank for rank in range(3) for _ in range(2)]
    deck.remove(own)
    if board is None:
        pairs = list(itertools.permutations(deck, 2))
    else:
        deck.remove(board)
        pairs = [(other, board) for other in deck]
    return [(own, other, up) if seat == 0 else (other, own, up) for other, up in pairs]


# --- Cuarenta -------------------------------------------------------------------------------------
# A card is rank * 4 + suit.
UNKNOWN, ABSENT, ANNOUNCED = "unknown", "absent", "announced"
"""What a seat told of three of a rank among its five cards."""


class OtherSeat(NamedTuple):
    """What everybody knows of the five cards that a seat was dealt."""

    num_cards: int
    """Cards in hand."""
    played: frozenset[int]
    """Those of the five that it has played."""
    told: str | int
    """UNKNOWN, ABSENT, ANNOUNCED, or the rank that it showed."""


class CuarentaKnowledge(NamedTuple):
    """What one seat knows of the cards that it does not see."""

    unseen: frozenset[int]
    """Cards in the other hands and the stock."""
    others: Mapping[int, OtherSeat]
    """By seat, in ascending order."""
    fours_end: bool
    """Four of a rank would have ended the game when they were dealt."""


def hand_is_possible(knowledge: CuarentaKnowledge, seat: int, hand: frozenset[int]) -> bool:
    """Whether ``seat`` may hold ``hand``, after what it told and did not tell."""
    other = knowledge.others[seat]
    if len(hand) != other.num_cards or not hand <= knowledge.unseen:
        return False
    counts = Counter(card // 4 for card in hand | other.played)
    threes = [rank for rank, count in counts.items() if count == 3]
    if knowledge.fours_end and 4 in counts.values():
        return False
    if other.told == ABSENT:
        return not threes
    if other.told == ANNOUNCED:
        return bool(threes)
    return other.told == UNKNOWN or other.told in threes


def cuarenta_world_is_possible(knowledge: CuarentaKnowledge, hands: Hands) -> bool:
    """Whether the other seats may hold ``hands`` together."""
    together = frozenset[int]().union(*hands)
    if len(together) != sum(len(hand) for hand in hands):
        return False
    return all(
        hand_is_possible(knowledge, seat, hand)
        for seat, hand in zip(knowledge.others, hands, strict=True)
    )


def all_cuarenta_worlds(knowledge: CuarentaKnowledge) -> Iterator[Hands]:
    """Yield the hands of the other seats, every possible assignment once."""
    yield from _assignments(knowledge, list(knowledge.others), knowledge.unseen)


def _assignments(
    knowledge: CuarentaKnowledge, seats: list[int], left: frozenset[int]
) -> Iterator[Hands]:
    if not seats:
        yield ()
        return
    for cards in itertools.combinations(sorted(left), knowledge.others[seats[0]].num_cards):
        hand = frozenset(cards)
        if hand_is_possible(knowledge, seats[0], hand):
            for rest in _assignments(knowledge, seats[1:], left - hand):
                yield (hand, *rest)


def random_cuarenta_world(knowledge: CuarentaKnowledge, rng: random.Random) -> Hands:
    """Draw the hands of the other seats, all possible assignments alike: shuffle until it fits."""
    cards = sorted(knowledge.unseen)
    while True:
        rng.shuffle(cards)
        hands = []
        first = 0
        for other in knowledge.others.values():
            hands.append(frozenset(cards[first : first + other.num_cards]))
            first += other.num_cards
        if cuarenta_world_is_possible(knowledge, tuple(hands)):
            return tuple(hands)
