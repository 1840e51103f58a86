"""Durak: places of hidden cards, and worlds drawn by exact counting where shuffles rarely fit.

Room: engine. May import: engine.bits, jit, rng, and of Durak state and rules.

Every card that a seat held without anybody seeing it took a *place*: one of the six that it was
dealt, or one for each card that it drew later. The facts of the deal are about trumps: all those
below a certain rank are in places that were not dealt to a hand, and the trump of that rank was
dealt to the first attacker. ``ways[h, n]`` is the number of ways in which the cards that a seat has
shown took its places so that n of those dealt are left for hidden cards; these then take the places
that are left, those of the stock among them. The lowest rank, and the numbers of places left, are
drawn by exact weights (products below 30!, so float64 is good to 13 digits), the cards uniformly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.bits import U0, bit, lowest, popcount, without_lowest
from engine.games.durak_rules import known_cards, low_trump_of, suit_cards
from engine.games.durak_state import (
    ALL_CARDS,
    HAND_SIZE,
    MAX_SEATS,
    NO_TRUMP,
    NOBODY,
    NOBODY_HAD_TRUMP,
    NUM_CARDS,
    NUM_RANKS,
    SHOWN_SEAT,
)
from engine.jit import kernel
from engine.rng import below, uniform

GIVEN = -1
"""Event of a seat: it was given a card that nobody else saw."""
_HIDDEN = MAX_SEATS - 1
"""Hidden hands at most."""
_LEFT = HAND_SIZE + 1
_STOCK = MAX_SEATS
"""Owners from here on are places of the stock."""


class Places(NamedTuple):
    """The hidden hands. H = 3 hands, in order from the seat after the observer."""

    seats: Any
    """int64[H] their seats; NOBODY where there are fewer."""
    sizes: Any
    """int64[H] cards in them that are not known to all."""
    events: Any
    """int64[H, 72] after the deal: GIVEN, or a card that the seat showed for the first time."""
    num_events: Any
    """int64[H]."""
    ways: Any
    """float64[H, 7], see above."""


@kernel
def unseen_cards(view: Any, seat: Any) -> Any:
    """Return the cards whose place ``seat`` does not know: in other hands or in the stock."""
    return ALL_CARDS & ~(view.hands[seat] | view.seen)


@kernel
def new_places(game: Any, view: Any, seat: Any) -> Any:
    """Return the places of the seats other than ``seat``, with ``ways`` not yet counted."""
    seats = np.full(_HIDDEN, NOBODY, np.int64)
    sizes = np.zeros(_HIDDEN, np.int64)
    events = np.zeros((_HIDDEN, 2 * NUM_CARDS), np.int64)
    num_events = np.zeros(_HIDDEN, np.int64)
    for h in range(game.players - 1):
        other = (seat + 1 + h) % game.players
        seats[h] = other
        sizes[h] = np.int64(view.sizes[other]) - popcount(known_cards(view, other))
        count = 0
        for given in range(HAND_SIZE, np.int64(view.given[other]) + 1):
            if given > HAND_SIZE:
                events[h, count] = GIVEN
                count += 1
            for card in range(NUM_CARDS):
                if view.first_shown[card] == other * SHOWN_SEAT + given:
                    events[h, count] = card
                    count += 1
        num_events[h] = count
    return Places(seats, sizes, events, num_events, np.zeros((_HIDDEN, _LEFT)))


@kernel
def _count_ways(view: Any, places: Any, low: Any) -> None:
    """Fill ``places.ways`` if ``low`` is the lowest rank of the trumps that were dealt to hands."""
    places.ways[:] = 0.0
    for h in range(_HIDDEN):
        ways = places.ways[h]
        if places.seats[h] == NOBODY:
            ways[0] = 1.0
            continue
        ways[HAND_SIZE] = 1.0
        num_left = HAND_SIZE
        for i in range(places.num_events[h]):
            card = places.events[h, i]
            if card == GIVEN:
                num_left += 1
                continue
            is_trump = card // NUM_RANKS == view.trump
            rank = card % NUM_RANKS if is_trump else NO_TRUMP + 1
            for dealt in range(_LEFT):
                here = ways[dealt]
                ways[dealt] = here * (num_left - dealt) if rank != low else 0.0
                if dealt > 0 and rank >= low:
                    ways[dealt - 1] += here * dealt
            num_left -= 1


@kernel
def _low_cards(view: Any, unseen: Any, low: Any) -> Any:
    """Return the unseen trumps below rank ``low``."""
    trumps = suit_cards(view.trump)
    below_low = bit(NUM_RANKS * np.int64(view.trump) + low) - np.uint64(1)
    return unseen & trumps & below_low


@kernel
def _lowest_card(view: Any, unseen: Any, seat: Any, low: Any) -> Any:
    """Return the trump of rank ``low`` as a set of one if it is hidden in the first hand, or none.

    None too where the observer was dealt it himself or nobody was dealt a trump, and where the
    first attacker has shown it. Rank ``low`` is impossible where ``_count_ways`` counts no way.
    """
    if low == NO_TRUMP or view.first_attacker == seat:
        return U0
    return unseen & bit(NUM_RANKS * np.int64(view.trump) + low)


@kernel
def _is_possible(view: Any, unseen: Any, low: Any) -> Any:
    """Return whether the first attacker, another seat, may have been dealt the trump ``low``."""
    card = NUM_RANKS * np.int64(view.trump) + low
    shown = np.int64(view.first_shown[card])
    return unseen & bit(card) != U0 or (
        shown > 0 and shown // SHOWN_SEAT == np.int64(view.first_attacker)
    )


@kernel
def _pick_split(view: Any, places: Any, hidden: Any, drawn: Any, rng: Any) -> Any:
    """Go through all numbers of places left under one lowest rank; return whether one was drawn.

    ``hidden`` is (number of unseen cards, of low ones among them, hand that hides the lowest or
    -1). ``drawn`` is (float64[1] weight of all that was met so far, int64[3] the places left of the
    one drawn from them): a reservoir of one by weight.
    """
    num_cards, num_low, holder = hidden
    total, split = drawn
    sizes, ways = places.sizes, places.ways
    stock = max(np.int64(view.stock_size) - 1, 0)
    found = False
    left = np.zeros(_HIDDEN, np.int64)
    for a in range(min(sizes[0], HAND_SIZE) + 1):
        for b in range(min(sizes[1], HAND_SIZE) + 1):
            for c in range(min(sizes[2], HAND_SIZE) + 1):
                weight = ways[0, a] * ways[1, b] * ways[2, c]
                left[0], left[1], left[2] = a, b, c
                later = stock + sizes.sum() - a - b - c
                for i in range(num_low):
                    weight *= max(later - i, 0) / (num_cards - i)
                if holder >= 0:
                    weight *= left[holder] / (num_cards - num_low)
                if weight > 0.0:
                    total[0] += weight
                    if uniform(rng) * total[0] < weight:
                        found = True
                        split[:] = left
    return found


@kernel
def _place_cards(view: Any, places: Any, split: Any, hidden: Any, rng: Any, out: Any) -> None:
    """Give the cards ``hidden`` = (all, low ones, the lowest that was dealt) their places."""
    cards, low, lowest_dealt = hidden
    owners = np.empty(NUM_CARDS, np.int64)
    dealt = 0
    for h in range(_HIDDEN):
        num_left = split[h]
        if lowest_dealt != U0 and places.seats[h] == view.first_attacker:
            out.hands[places.seats[h]] |= lowest_dealt
            num_left -= 1
        for _ in range(num_left):
            owners[dealt] = places.seats[h]
            dealt += 1
    count = dealt
    for h in range(_HIDDEN):
        for _ in range(places.sizes[h] - split[h]):
            owners[count] = places.seats[h]
            count += 1
    for place in range(1, view.stock_size):
        owners[count] = _STOCK + place
        count += 1
    others = cards & ~low & ~lowest_dealt
    while low != U0 or others != U0:
        first = dealt if low != U0 else 0  # low ones go first, to places that were not dealt
        card = lowest(low) if low != U0 else lowest(others)
        if low != U0:
            low = without_lowest(low)
        else:
            others = without_lowest(others)
        pick = first + below(rng, count - first)
        if owners[pick] < _STOCK:
            out.hands[owners[pick]] |= bit(card)
        else:
            out.stock[owners[pick] - _STOCK] = card
        count -= 1
        owners[pick] = owners[count]


@kernel
def count_hands(view: Any, seat: Any, places: Any, unseen: Any, rng: Any, out: Any) -> None:
    """Write a uniform draw of the other hands and the stock to ``out``, which may be ``view``.

    ``out`` already holds the rest, and the known cards of the other hands or more.
    """
    first_low = 0
    # Another seat was dealt a lower one. (What a seat was dealt is UNKNOWN in worlds alone.)
    last_low = min(int(low_trump_of(view, seat)), NO_TRUMP) - 1
    if view.facts & NOBODY_HAD_TRUMP:
        first_low, last_low = NO_TRUMP, NO_TRUMP
    elif view.first_attacker == seat:
        first_low, last_low = last_low + 1, last_low + 1
    total = np.zeros(1)
    split, best = np.zeros(_HIDDEN, np.int64), np.zeros(_HIDDEN, np.int64)
    best_low = first_low
    for low in range(first_low, last_low + 1):
        is_own = low == NO_TRUMP or view.first_attacker == seat
        if not is_own and not _is_possible(view, unseen, low):
            continue
        _count_ways(view, places, low)
        lowest_dealt = _lowest_card(view, unseen, seat, low)
        holder = -1
        for h in range(_HIDDEN):
            if lowest_dealt != U0 and places.seats[h] == view.first_attacker:
                holder = h
        counts = (popcount(unseen), popcount(_low_cards(view, unseen, low)), holder)
        if _pick_split(view, places, counts, (total, split), rng):
            best_low = low
            best[:] = split
    for h in range(_HIDDEN):
        if places.seats[h] != NOBODY:
            out.hands[places.seats[h]] = known_cards(view, places.seats[h])
    hidden = (
        unseen,
        _low_cards(view, unseen, best_low),
        _lowest_card(view, unseen, seat, best_low),
    )
    _place_cards(view, places, best, hidden, rng, out)
