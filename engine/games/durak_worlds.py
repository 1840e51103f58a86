"""Durak: what a seat knows, and full states drawn uniformly from all that agree with it.

Room: engine. May import: engine.bits, jit, rng, the other modules of Durak below it.

Hidden are the cards of the other hands that nobody saw there, and the order of the stock above the
card turned up. A card that was taken from the table, or drawn from the bottom, stays known until it
is played. What else binds is told by the deal: the first attacker was dealt the lowest trump of all
hands (or nobody a trump), and no hand five cards of a suit where that is dealt anew. So it matters
which cards of a seat it was *dealt*, and which it drew later; also of those that it has played.

Cards take places: six that were dealt to a seat, one for each unseen card that it drew, and those
of the stock. Uniform are the assignments of cards to places in which every card was in the
hand when it was first shown. Such assignments are drawn until one fits the facts; after
``MAX_TRIES`` the world is drawn by exact counting. Both are uniform, so the mixture is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, bit, fill_cards, lowest, popcount, without_lowest
from engine.games.durak_counting import GIVEN, count_hands, new_places, unseen_cards
from engine.games.durak_deal import has_five
from engine.games.durak_rules import known_cards, low_trump_of, rank_of, suit_cards
from engine.games.durak_state import (
    ALL_UNKNOWN,
    HAND_SIZE,
    LOWEST_BEGAN,
    MAX_ATTACKS,
    MAX_SEATS,
    MAX_STOCK,
    NO_CARD,
    NO_FIVE_OF_SUIT,
    NO_TRUMP,
    NOBODY,
    NOBODY_HAD_TRUMP,
    NUM_CARDS,
    UNKNOWN,
)
from engine.jit import kernel
from engine.rng import below

MAX_TRIES = 40
MOST_DRAWS = 5000
"""Never needed: facts that no deal had, in a record that was made up, must not hang a search."""


@kernel
def copy_public(state: Any, out: Any) -> None:
    """Copy everything that all seats see, and the card turned up with it."""
    out.seen = state.seen
    out.covers = state.covers
    out.plies = state.plies
    out.bouts = state.bouts
    out.beaten = state.beaten
    out.stock_size = state.stock_size
    out.trump = state.trump
    out.turned_up = state.turned_up
    out.facts = state.facts
    out.first_attacker = state.first_attacker
    out.attacker = state.attacker
    out.defender = state.defender
    out.defender_cards = state.defender_cards
    out.phase = state.phase
    out.to_move = state.to_move
    out.passed = state.passed
    out.num_attacks = state.num_attacks
    out.num_covers = state.num_covers
    out.durak = state.durak
    for seat in range(MAX_SEATS):
        out.finished[seat] = state.finished[seat]
        out.given[seat] = state.given[seat]
        out.sizes[seat] = state.sizes[seat]
    for i in range(MAX_ATTACKS):
        out.attacks[i] = state.attacks[i]
    for card in range(NUM_CARDS):
        out.first_shown[card] = state.first_shown[card]
    for i in range(1, MAX_STOCK):
        out.stock[i] = NO_CARD
    out.stock[0] = state.stock[0]


@kernel
def write_view(state: Any, seat: Any, out: Any) -> None:
    """Overwrite ``out`` with the knowledge of ``seat``."""
    low = low_trump_of(state, seat) ^ UNKNOWN
    copy_public(state, out)
    for other in range(MAX_SEATS):
        hand = state.hands[other] if other == seat else known_cards(state, other)
        out.hands[other] = hand
    out.low_trumps = ALL_UNKNOWN ^ (low << (4 * seat))


@kernel
def shuffle_cards(game: Any, out: Any, seat: Any, rng: Any) -> None:
    """Deal the unseen cards at random to the other hands and the stock of ``out``."""
    cards = np.empty(NUM_CARDS, np.uint8)
    left = fill_cards(unseen_cards(out, seat), cards)
    for other in range(game.players):
        if other == seat:
            continue
        hand = known_cards(out, other)
        for _ in range(np.int64(out.sizes[other]) - popcount(hand)):
            pick = below(rng, left)
            left -= 1
            hand |= bit(cards[pick])
            cards[pick] = cards[left]
        out.hands[other] = hand
    for i in range(1, out.stock_size):
        pick = below(rng, left)
        left -= 1
        out.stock[i] = cards[pick]
        cards[pick] = cards[left]


@kernel
def _draw_dealt(places: Any, h: Any, hidden: Any, rng: Any) -> Any:
    """Return which of its cards hand ``h`` was dealt, drawn uniformly from what is possible.

    ``hidden`` are the cards in it that are not known to all. A card that was shown when the seat
    had been given n cards has one of the first n places. In the order in which cards were shown
    each takes any place that is left: how many ways remain for the others does not depend on it.
    """
    dealt, later = HAND_SIZE, 0  # places that are left
    found = U0
    for i in range(places.num_events[h]):
        card = places.events[h, i]
        if card == GIVEN:
            later += 1
        elif below(rng, dealt + later) < dealt:
            dealt -= 1
            found |= bit(card)
        else:
            later -= 1
    while hidden != U0:
        if below(rng, dealt + later) < dealt:
            dealt -= 1
            found |= bit(lowest(hidden))
        else:
            later -= 1
        hidden = without_lowest(hidden)
    return found


@kernel
def _fitting(out: Any, seat: Any, places: Any, rng: Any) -> Any:
    """Draw which cards the other seats were dealt; return the bits of the facts that agree."""
    none_dealt = np.int64(out.facts) & NOBODY_HAD_TRUMP != 0
    trumps = suit_cards(out.trump)
    lows = np.full(MAX_SEATS, NO_TRUMP, np.int64)
    if not none_dealt:
        lows[seat] = low_trump_of(out, seat)
    fitting = NO_FIVE_OF_SUIT
    for h in range(places.seats.shape[0]):
        other = places.seats[h]
        if other == NOBODY:
            continue
        dealt = _draw_dealt(places, h, out.hands[other] & ~out.seen, rng)
        if dealt & trumps != U0:
            lows[other] = rank_of(lowest(dealt & trumps))
        if has_five(dealt):
            fitting = 0
    low = lows.min()
    if none_dealt:
        return fitting | (NOBODY_HAD_TRUMP if low == NO_TRUMP else 0)
    is_first = low < NO_TRUMP and lows[out.first_attacker] == low
    return fitting | (LOWEST_BEGAN if is_first else 0)


@kernel
def _is_open(places: Any, out: Any) -> Any:
    """Return whether a hidden card may lie in more than one hand, or in a hand or the stock."""
    holders = 1 if out.stock_size > 1 else 0
    for h in range(places.seats.shape[0]):
        holders += 1 if places.sizes[h] > 0 else 0
    return holders > 1


@kernel
def _draw_until_facts_fit(game: Any, out: Any, seat: Any, rng: Any) -> None:
    """Draw the hidden cards of ``out`` anew until they agree with the facts of the deal."""
    unseen = unseen_cards(out, seat)
    facts = np.int64(out.facts)
    of_trumps = facts & (LOWEST_BEGAN | NOBODY_HAD_TRUMP)
    if unseen & suit_cards(out.trump) == U0 and facts & NO_FIVE_OF_SUIT == 0:
        return
    places = new_places(game, out, seat)
    if not _is_open(places, out):
        return
    for _ in range(MAX_TRIES):
        if facts & ~_fitting(out, seat, places, rng) == 0:
            return
        shuffle_cards(game, out, seat, rng)
    left = MOST_DRAWS
    while left > 0:
        if of_trumps != 0:
            count_hands(out, seat, places, unseen, rng, out)
        else:
            shuffle_cards(game, out, seat, rng)
        if facts == of_trumps:
            return
        # The world agrees with what is known of trumps: so must the cards that were dealt. Where
        # they have five of a suit the whole draw is void.
        fitting = _fitting(out, seat, places, rng)
        left -= 1
        while of_trumps & ~fitting != 0 and left > 0:
            fitting = _fitting(out, seat, places, rng)
            left -= 1
        if facts & ~fitting == 0:
            return


@kernel
def draw_world(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
    """Overwrite ``out`` with a uniform draw from the states that agree with ``view``."""
    write_view(view, seat, out)
    shuffle_cards(game, out, seat, rng)
    if out.facts != 0:
        _draw_until_facts_fit(game, out, seat, rng)


@kernel
def has_one_world(game: Any, view: Any, seat: Any) -> Any:
    """Return whether ``seat`` knows where every card lies."""
    in_stock = max(np.int64(view.stock_size) - 1, 0)
    holders = 0
    for other in range(game.players):
        if other != seat and view.sizes[other] > popcount(known_cards(view, other)):
            holders += 1
    return (in_stock == 0 and holders <= 1) or (in_stock == 1 and holders == 0)
