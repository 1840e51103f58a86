"""Everything that a seat cannot know, listed or drawn from the rules of what is public.

It imports nothing of the engine: tests of hidden information that took their worlds from the code
under test would trust what they test. A world says where the hidden cards lie. ``all_*`` list every
world that agrees with what a seat knows, each as often as there are ways to deal it;
``random_cuarenta_world`` draws one of them uniformly where there are too many to list.
"""

from __future__ import annotations

import itertools
import math
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


# --- Durak ----------------------------------------------------------------------------------------
# A card is suit * 9 + rank. A seat was dealt six cards; what it got later, unseen by others, is
# told in its history among the cards that it showed.
GOT_CARD = None
"""In a history: the seat drew a card that nobody else saw."""


class DurakSeat(NamedTuple):
    """What everybody knows of a seat's hidden cards."""

    num_hidden: int
    """Cards in hand that nobody else has seen."""
    history: tuple[int | None, ...]
    """GOT_CARD, or a card that the seat showed for the first time, in order."""


class DurakKnowledge(NamedTuple):
    """What one seat knows of the cards that it does not see, and of the deal."""

    unseen: frozenset[int]
    """Cards hidden in other hands, or in the stock above the card turned up."""
    others: Mapping[int, DurakSeat]
    """By seat."""
    seat: int
    own_low: int | None
    """Rank of the lowest trump that the seat itself was dealt; None for no trump."""
    trump: int
    first: int | None
    """The seat that was dealt the lowest trump of all; None if that is not known."""
    nobody_had_trump: bool
    at_most_four: bool
    """No hand was dealt five cards of a suit."""


DurakWorld = tuple[Hands, tuple[int, ...]]
"""Hidden cards of the other seats, and those of the stock from the top down."""


class _Dealt(NamedTuple):
    """What matters of the six cards that a seat was dealt."""

    low: int
    """Rank of the lowest trump, 9 for none."""
    suits: tuple[int, ...]
    """Cards of each suit, () where they do not matter."""


def _with_card(dealt: _Dealt, card: int, trump: int) -> _Dealt:
    suit, rank = divmod(card, 9)
    suits = tuple(count + (suit == i) for i, count in enumerate(dealt.suits))
    return _Dealt(min(dealt.low, rank) if suit == trump else dealt.low, suits)


def _ways_of_seat(
    knowledge: DurakKnowledge, other: DurakSeat, hidden: frozenset[int]
) -> Counter[_Dealt]:
    """Return in how many ways a seat was dealt what; all places are told apart."""
    start = _Dealt(9, (0, 0, 0, 0) if knowledge.at_most_four else ())
    found: Counter[tuple[_Dealt, int, int]] = Counter({(start, 6, 0): 1})
    for event in (*other.history, *sorted(hidden)):
        after: Counter[tuple[_Dealt, int, int]] = Counter()
        for (dealt, first_places, later_places), ways in found.items():
            if event is GOT_CARD:
                after[dealt, first_places, later_places + 1] += ways
                continue
            if first_places:
                with_card = _with_card(dealt, event, knowledge.trump)
                after[with_card, first_places - 1, later_places] += ways * first_places
            if later_places:
                after[dealt, first_places, later_places - 1] += ways * later_places
        found = after
    return Counter({dealt: ways for (dealt, _, _), ways in found.items()})


def _deal_is_possible(knowledge: DurakKnowledge, dealt: Mapping[int, _Dealt]) -> bool:
    """Whether the facts of the deal hold when the other seats were dealt this."""
    lows = {seat: cards.low for seat, cards in dealt.items() if cards.low < 9}
    if knowledge.own_low is not None:
        lows[knowledge.seat] = knowledge.own_low
    if any(max(cards.suits, default=0) > 4 for cards in dealt.values()):
        return False
    if knowledge.nobody_had_trump:
        return not lows
    return knowledge.first is None or min(lows, key=lows.__getitem__, default=-1) == knowledge.first


def durak_ways(knowledge: DurakKnowledge, hands: Hands) -> int:
    """Return in how many ways the other seats can have come by these hidden cards."""
    seats = list(knowledge.others)
    found = [
        _ways_of_seat(knowledge, knowledge.others[seat], hand).items()
        for seat, hand in zip(seats, hands, strict=True)
    ]
    total = 0
    for chosen in itertools.product(*found):
        dealt = dict(zip(seats, (cards for cards, _ in chosen), strict=True))
        if _deal_is_possible(knowledge, dealt):
            total += math.prod(ways for _, ways in chosen)
    return total


def all_durak_worlds(knowledge: DurakKnowledge) -> Counter[DurakWorld]:
    """Return every possible world with the number of ways to it."""
    found: Counter[DurakWorld] = Counter()
    for hands, left in _durak_hands(knowledge, list(knowledge.others), knowledge.unseen):
        ways = durak_ways(knowledge, hands)
        if ways:
            for stock in itertools.permutations(sorted(left)):
                found[hands, stock] = ways
    return found


def _durak_hands(
    knowledge: DurakKnowledge, seats: list[int], left: frozenset[int]
) -> Iterator[tuple[Hands, frozenset[int]]]:
    if not seats:
        yield (), left
        return
    for cards in itertools.combinations(sorted(left), knowledge.others[seats[0]].num_hidden):
        for hands, rest in _durak_hands(knowledge, seats[1:], left - set(cards)):
            yield (frozenset(cards), *hands), rest


def random_durak_world(
    knowledge: DurakKnowledge, rng: random.Random
) -> tuple[DurakWorld, dict[int, int]]:
    """Draw a world, all ways alike: shuffle until it fits.

    Also returns the lowest trump that each other seat was dealt in it, 9 for none.
    """
    cards = sorted(knowledge.unseen)
    while True:
        rng.shuffle(cards)
        hands, dealt, first = [], {}, 0
        for seat, other in knowledge.others.items():
            hand = frozenset(cards[first : first + other.num_hidden])
            first += other.num_hidden
            hands.append(hand)
            dealt[seat] = _random_dealt(knowledge, other, hand, rng)
        if _deal_is_possible(knowledge, dealt):
            lows = {seat: cards_dealt.low for seat, cards_dealt in dealt.items()}
            return (tuple(hands), tuple(cards[first:])), lows


def _random_dealt(
    knowledge: DurakKnowledge, other: DurakSeat, hand: frozenset[int], rng: random.Random
) -> _Dealt:
    """Give every card one of the places that there were for it, all alike."""
    places = ["dealt"] * 6
    dealt = _Dealt(9, (0, 0, 0, 0) if knowledge.at_most_four else ())
    for event in (*other.history, *hand):
        if event is GOT_CARD:
            places.append("later")
        elif places.pop(rng.randrange(len(places))) == "dealt":
            dealt = _with_card(dealt, event, knowledge.trump)
    return dealt


# --- Forty-fives ----------------------------------------------------------------------------------
# A world says, for every other seat, what it holds and what it has thrown.
Holdings = tuple[tuple[frozenset[int], frozenset[int]], ...]


class FortyFivesSeat(NamedTuple):
    """What everybody knows of the cards of a seat."""

    num_cards: int
    """Cards that it holds or, while it may still throw some of them, has thrown."""
    num_thrown: int | None
    """Cards that it has thrown; None while nobody has been told."""
    lacks: frozenset[int]
    """Cards with which one of its plays would not have been legal."""
    played: frozenset[int] = frozenset()
    """Cards that it has played."""
    most: int = 5
    """Cards that it may keep at the most, and ``least`` at the least, where it has discarded."""
    least: int = 0


class FortyFivesKnowledge(NamedTuple):
    """What one seat knows of the cards that it does not see."""

    unseen: frozenset[int]
    others: Mapping[int, FortyFivesSeat]
    """By seat, in the order of play from the observer on."""
    discarded: frozenset[int] = frozenset()
    """Seats that have discarded, while nobody has been told how many cards."""


def holding_is_possible(
    knowledge: FortyFivesKnowledge, seat: int, hand: frozenset[int], thrown: frozenset[int]
) -> bool:
    """Whether ``seat`` may hold ``hand`` and have thrown ``thrown``."""
    other = knowledge.others[seat]
    if hand & thrown or not hand | thrown <= knowledge.unseen or hand & other.lacks:
        return False
    if other.num_thrown is not None:
        return len(hand) == other.num_cards and len(thrown) == other.num_thrown
    if len(hand) + len(thrown) != other.num_cards:
        return False
    if seat in knowledge.discarded:
        return other.least <= len(hand) <= other.most
    return True  # how far a seat has come with its discards is its own to know


def forty_fives_world_is_possible(knowledge: FortyFivesKnowledge, holdings: Holdings) -> bool:
    """Whether the other seats may hold and have thrown ``holdings`` together."""
    used = [card for hand, thrown in holdings for card in (*hand, *thrown)]
    if len(used) != len(set(used)):
        return False
    return all(
        holding_is_possible(knowledge, seat, hand, thrown)
        for seat, (hand, thrown) in zip(knowledge.others, holdings, strict=True)
    )


def all_forty_fives_worlds(knowledge: FortyFivesKnowledge) -> Iterator[Holdings]:
    """Yield every possible world once; numbers of thrown cards have to be known."""
    yield from _holdings(knowledge, list(knowledge.others), knowledge.unseen)


def _holdings(
    knowledge: FortyFivesKnowledge, seats: list[int], left: frozenset[int]
) -> Iterator[Holdings]:
    if not seats:
        yield ()
        return
    other = knowledge.others[seats[0]]
    assert other.num_thrown is not None
    for cards in itertools.combinations(sorted(left - other.lacks), other.num_cards):
        hand = frozenset(cards)
        for gone in itertools.combinations(sorted(left - hand), other.num_thrown):
            thrown = frozenset(gone)
            for rest in _holdings(knowledge, seats[1:], left - hand - thrown):
                yield ((hand, thrown), *rest)


def random_forty_fives_world(knowledge: FortyFivesKnowledge, rng: random.Random) -> Holdings:
    """Draw a possible world: shuffle until it fits."""
    cards = sorted(knowledge.unseen)
    while True:
        rng.shuffle(cards)
        holdings = []
        first = 0
        for seat, other in knowledge.others.items():
            hand = frozenset(cards[first : first + other.num_cards])
            first += other.num_cards
            thrown = frozenset[int]()
            if other.num_thrown is not None:
                thrown = frozenset(cards[first : first + other.num_thrown])
                first += other.num_thrown
            elif seat in knowledge.discarded:
                kept = rng.sample(sorted(hand), rng.randint(other.least, other.most))
                thrown, hand = hand - set(kept), frozenset(kept)
            holdings.append((hand, thrown))
        if forty_fives_world_is_possible(knowledge, tuple(holdings)):
            return tuple(holdings)


class DiscardModel(NamedTuple):
    """How a seat is taken to discard: it keeps its trumps, or tosses a coin for each card."""

    trumps: tuple[int, ...]
    """Highest first."""
    floor: float
    """Probability of the coins."""
    min_keep: int
    may_throw_trump: bool

    def by_rule(self, kept: frozenset[int], thrown: frozenset[int]) -> float:
        """Return the probability that a seat which keeps its trumps keeps ``kept``."""
        own = [card for card in self.trumps if card in kept | thrown]
        if not own and self.min_keep:
            return 1 / len(kept | thrown) if len(kept) == 1 else 0.0
        return float(kept == frozenset(own[:5]))

    def by_coins(self, kept: frozenset[int], thrown: frozenset[int]) -> float:
        """Return the probability that coins keep ``kept``; a full hand ends the tosses.

        Which five cards fill the hand is taken to be a matter of chance.
        """
        num_cards = len(kept) + len(thrown)
        if not self.may_throw_trump and any(card in self.trumps for card in thrown):
            own = [card for card in self.trumps if card in kept | thrown]
            if len(own) <= 5 or any(card not in own for card in kept) or len(kept) < 5:
                return 0.0
        if len(kept) < 5 or num_cards == 5:
            return float(0.5**num_cards)
        fewer = sum(math.comb(num_cards, k) for k in range(5)) * 0.5**num_cards
        return (1 - fewer) / math.comb(num_cards, 5)

    def weight(self, final: frozenset[int], thrown: frozenset[int], num_kept: int) -> float:
        """Return the weight of having come to the five cards ``final`` from any cards kept."""
        return sum(
            (1 - self.floor) * self.by_rule(frozenset(kept), thrown)
            + self.floor * self.by_coins(frozenset(kept), thrown)
            for kept in itertools.combinations(sorted(final), num_kept)
        )
