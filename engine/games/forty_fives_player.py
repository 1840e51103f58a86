"""Forty-fives: the rule-based player.

Room: engine. May import: engine.bits, jit, and of Forty-fives state, cards, rules and
worlds.

**Bid.** A suit is worth ``TRUMP_WORTH`` of its trumps in hand, and ``KING_WORTH`` for each plain
king; the best suit counts. A level may be bid from ``LEVEL_WORTH`` on, ``LATE_BONUS`` sooner by a
side past 100, which scores nothing without a bid. In this order: *hold* as dealer what an opponent
bid, if the hand is worth that level; *leave it to partner*, unless the hand is worth 30for60; *bid*
the highest level that it is worth (the dealer, who speaks last, the lowest that wins, or 30for60);
*pass*. A dealer who has to bid takes the lowest level.

**Trump.** The suit of the highest worth among all cards in hand.

**Discard.** Keep trumps, throw everything else.

**Lead.** *Draw trumps*: the bidder leads its best trump while no unseen one is higher and others
may hold some. *Cash*: the best plain card left in its suit. *Lead low*: the lowest plain card. With
trumps alone the best one if it cannot be beaten, else the lowest.

**Follow.** *Partner's trick*: where partner's card wins and nobody is left to beat it, or no unseen
card could, throw the lowest card; in third place strengthen it with an unbeatable card that is none
of the three best trumps. *Last*: the cheapest card that wins (a plain one before a trump, a low
trump before a high one). *Save*: five, jack and ace of hearts are not spent on a trick that only
plain cards lie in while partner is still to play and more than two tricks are left. *Ruff*: take
the trick with the cheapest card that wins, in third place with one that no unseen card beats, else
with the highest. *Throw off*: the lowest plain card, else the lowest trump.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, bit, contains, lowest, without_lowest
from engine.games.forty_fives_cards import led_card, playable, present_trick, trick_power
from engine.games.forty_fives_rules import card_to_decide, write_calls
from engine.games.forty_fives_state import (
    ABOVE,
    AUCTION,
    DISCARD,
    HOLD,
    KEEP,
    KING,
    LEVEL_60,
    MAX_ACTIONS,
    NAME_TRUMP,
    NEEDS_A_BID,
    NO_CARD,
    NUM_RANKS,
    NUM_SEATS,
    NUM_SLOTS,
    NUM_SUITS,
    NUM_TRICKS,
    PASS,
    PLAY_CARD,
    POWER,
    SLOT,
    THROW,
    TRUMP,
    TRUMP_POWER,
    TRUMPS,
)
from engine.games.forty_fives_worlds import unseen_cards
from engine.jit import kernel

TRUMP_WORTH = np.array([12, 10, 9, 7, 6, 5, 4, 4, 3, 3, 3, 3, 3, 3], np.int64)
"""By slot, in tenths of a trick or so."""
KING_WORTH = 3
LEVEL_WORTH = np.array([0, 8, 12, 21, 27, 34], np.int64)
"""By level. In games of this player against itself a bidder whose five cards are worth 12 makes 20
in two hands of three; from 21 on it makes 25 in more than half, from 34 on all in two of three."""
LATE_BONUS = 3
_SAVED = TRUMP_POWER + NUM_SLOTS - 3
"""Least power of the three best trumps."""


@kernel
def suit_worth(hand: Any, suit: Any) -> Any:
    """Return what ``hand`` is worth with ``suit`` as trump."""
    worth = 0
    while hand != U0:
        card = lowest(hand)
        hand = without_lowest(hand)
        slot = SLOT[suit, card]
        if slot >= 0:
            worth += TRUMP_WORTH[slot]
        elif card % NUM_RANKS == KING:
            worth += KING_WORTH
    return worth


@kernel
def best_suit(hand: Any) -> Any:
    """Return the suit that ``hand`` is worth most with."""
    best = 0
    for suit in range(1, NUM_SUITS):
        if suit_worth(hand, suit) > suit_worth(hand, best):
            best = suit
    return best


@kernel
def choose_call(game: Any, view: Any, seat: Any) -> Any:
    """Return the call of ``seat``."""
    calls = np.empty(MAX_ACTIONS, np.int64)
    count = write_calls(game, view, calls)
    hand = view.hands[seat]
    worth = suit_worth(hand, best_suit(hand))
    if game.over100 == NEEDS_A_BID and view.scores[seat & 1] > 100:
        worth += LATE_BONUS
    high = np.int64(view.high)
    if calls[count - 1] == HOLD and (view.bidder ^ seat) & 1 and worth >= LEVEL_WORTH[high]:
        return np.int64(HOLD)
    partners = view.bidder == (seat + 2) % NUM_SEATS
    chosen = calls[0]  # a pass, or the least that a dealer has to bid
    for i in range(count):
        level = calls[i]
        if level in (PASS, HOLD) or worth < LEVEL_WORTH[level]:
            continue
        if level == LEVEL_60:
            return level
        if not partners and (chosen == PASS or seat != view.dealer):
            chosen = level
    return chosen


@kernel
def is_best(trump: Any, unseen: Any, card: Any) -> Any:
    """Return whether no unseen trump beats a trump, or no unseen card of its suit a plain card."""
    return ABOVE[trump, card] & unseen == U0


@kernel
def lowest_card(trump: Any, cards: Any) -> Any:
    """Return the card of least power."""
    best = lowest(cards)
    cards = without_lowest(cards)
    while cards != U0:
        card = lowest(cards)
        cards = without_lowest(cards)
        if POWER[trump, card] < POWER[trump, best]:
            best = card
    return best


@kernel
def highest_card(trump: Any, cards: Any) -> Any:
    """Return the card of greatest power; NO_CARD for the empty set."""
    best: Any = np.int64(NO_CARD)
    while cards != U0:
        card = lowest(cards)
        cards = without_lowest(cards)
        if best < 0 or POWER[trump, card] > POWER[trump, best]:
            best = card
    return best


@kernel
def choose_lead(view: Any, seat: Any) -> Any:
    """Return the card to lead."""
    trump, hand = np.int64(view.trump), view.hands[seat]
    unseen = unseen_cards(view, seat)
    plain = hand & ~TRUMPS[trump]
    top = highest_card(trump, hand & TRUMPS[trump])
    strong = top >= 0 and is_best(trump, unseen, top)
    if strong and seat == view.bidder and unseen & TRUMPS[trump] != U0:
        return top
    if plain == U0:
        return top if strong else lowest_card(trump, hand)
    rest = plain
    while rest != U0:
        card = highest_card(trump, rest)
        if is_best(trump, unseen, card):
            return card
        rest &= ~bit(card)
    return lowest_card(trump, plain)


@kernel
def choose_follow(game: Any, view: Any, seat: Any) -> Any:
    """Return the card to play to a trick that has been led."""
    trump, led = np.int64(view.trump), led_card(view)
    cards = playable(game, trump, led, view.hands[seat])
    place, winning, best = present_trick(view)
    power = trick_power(trump, led, best)
    unseen = unseen_cards(view, seat)
    winners, sure, spare = U0, U0, U0
    rest = cards
    while rest != U0:
        card = lowest(rest)
        rest = without_lowest(rest)
        if trick_power(trump, led, card) > power:
            winners |= bit(card)
            if is_best(trump, unseen, card):
                sure |= bit(card)
            if POWER[trump, card] < _SAVED:
                spare |= bit(card)
    low = lowest_card(trump, cards)
    last = place == NUM_SEATS - 1
    if (place - winning) == 2:  # partner wins
        if last or is_best(trump, unseen, best) or sure & spare == U0:
            return low
        return lowest_card(trump, sure & spare)
    if winners == U0:
        return low
    if last:
        return lowest_card(trump, winners)
    tricks_left = NUM_TRICKS - np.int64(view.num_played) // NUM_SEATS
    if place == 1:
        if spare == U0 and power < TRUMP_POWER and tricks_left > 2:
            return low
        return lowest_card(trump, spare if spare != U0 else winners)
    if sure != U0:
        return lowest_card(trump, sure)
    return highest_card(trump, spare if spare != U0 else winners)


@kernel
def choose(game: Any, view: Any, seat: Any) -> Any:
    """Return the action of the rule-based player for ``seat``, which is to move."""
    if view.phase == AUCTION:
        return choose_call(game, view, seat)
    if view.phase == TRUMP:
        return np.int64(NAME_TRUMP + best_suit(view.hands[seat]))
    if view.phase == DISCARD:
        trump = np.int64(view.trump)
        card = card_to_decide(trump, view.hands[seat] & ~view.kept)
        return np.int64(KEEP if contains(TRUMPS[trump], card) else THROW)
    if led_card(view) < 0:
        return np.int64(PLAY_CARD + choose_lead(view, seat))
    return np.int64(PLAY_CARD + choose_follow(game, view, seat))
