"""Forty-fives: what beats what, what may be played, and what a play shows of the hand behind it.

Room: engine. May import: engine.bits, jit, and of Forty-fives the state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, bit, contains
from engine.games.forty_fives_state import (
    ALL_LACKED,
    LACKED_TRUMPS,
    LACKS_SHIFT,
    LACKS_SUITS,
    NO_CARD,
    NUM_RANKS,
    NUM_SEATS,
    NUM_SUITS,
    NUM_TRICKS,
    PLAIN,
    POWER,
    SLOT,
    TRUMP_POWER,
    TRUMPS,
)
from engine.jit import kernel

# --- a trick --------------------------------------------------------------------------------------


@kernel
def led_card(state: Any) -> Any:
    """Return the card led to the present trick, NO_CARD for the seat that leads."""
    in_trick = np.int64(state.num_played) % NUM_SEATS
    if in_trick == 0:
        return np.int64(NO_CARD)
    return np.int64(state.played[np.int64(state.num_played) - in_trick + np.int64(state.leader)])


@kernel
def trick_power(trump: Any, led: Any, card: Any) -> Any:
    """Return what ``card`` is worth in a trick to ``led``: -1 for a plain card of another suit."""
    power = POWER[trump, card]
    if power < TRUMP_POWER and not contains(PLAIN[trump, led // NUM_RANKS], led):
        return -1  # a plain card to a trump, the ace of hearts included
    if power < TRUMP_POWER and card // NUM_RANKS != led // NUM_RANKS:
        return -1
    return power


@kernel
def winning_place(trump: Any, cards: Any, leader: Any, count: Any) -> Any:
    """Return which of the first ``count`` cards of a trick wins; 0 is the leader's.

    ``cards`` is int8[4], by seat.
    """
    led = np.int64(cards[leader])
    best = 0
    most = trick_power(trump, led, led)
    for place in range(1, count):
        power = trick_power(trump, led, np.int64(cards[(leader + place) % NUM_SEATS]))
        if power > most:
            best = place
            most = power
    return best


@kernel
def present_trick(state: Any) -> Any:
    """Return (cards in the present trick, place that wins it, its card); there has to be one."""
    place = np.int64(state.num_played) % NUM_SEATS
    first = np.int64(state.num_played) - place
    leader = np.int64(state.leader)
    cards = state.played[first : first + NUM_SEATS]
    winning = winning_place(np.int64(state.trump), cards, leader, place)
    return place, winning, np.int64(cards[(leader + winning) % NUM_SEATS])


# --- what may be played ---------------------------------------------------------------------------


@kernel
def owed_row(game: Any, trump: Any, led: Any) -> Any:
    """Return the row of LACKED_TRUMPS any of which obliges to play a trump on the trump ``led``."""
    if game.renege:
        return ALL_LACKED - min(SLOT[trump, led], 3)
    return np.int64(ALL_LACKED)


@kernel
def playable(game: Any, trump: Any, led: Any, hand: Any) -> Any:
    """Return the cards of ``hand`` that may be played to ``led`` (NO_CARD: lead anything).

    Five, jack and ace of hearts may be held back from a lower trump that is led, not refused to it:
    where an unprivileged trump obliges to play a trump, any trump will do.
    """
    if led < 0:
        return hand
    trumps = hand & TRUMPS[trump]
    if contains(TRUMPS[trump], led):
        owes = hand & LACKED_TRUMPS[trump, owed_row(game, trump, led)]
        return hand if owes == U0 else trumps
    followers = hand & PLAIN[trump, led // NUM_RANKS]
    return hand if followers == U0 else followers | trumps


# --- what is known of a seat ----------------------------------------------------------------------


@kernel
def shown_lacking(game: Any, trump: Any, led: Any, card: Any) -> Any:
    """Return, as ``lacks`` has it, what a seat that plays ``card`` to ``led`` cannot hold."""
    if contains(TRUMPS[trump], card):
        return np.int64(0)
    if contains(TRUMPS[trump], led):
        return owed_row(game, trump, led) << LACKS_SHIFT
    if card // NUM_RANKS != led // NUM_RANKS:
        return np.int64(1) << (led // NUM_RANKS)
    return np.int64(0)


@kernel
def merge_lacks(first: Any, second: Any) -> Any:
    """Return what a seat lacks that has shown both."""
    suits = (first | second) & LACKS_SUITS
    return suits | max(first >> LACKS_SHIFT, second >> LACKS_SHIFT) << LACKS_SHIFT


@kernel
def lacking_cards(state: Any, seat: Any) -> Any:
    """Return the cards that ``seat`` has shown that it does not hold."""
    lacks = np.int64(state.lacks[seat])
    if lacks == 0:
        return U0
    cards = LACKED_TRUMPS[state.trump, lacks >> LACKS_SHIFT]
    for suit in range(NUM_SUITS):
        if (lacks >> suit) & 1:
            cards |= PLAIN[state.trump, suit]
    return cards


@kernel
def played_cards(state: Any, seat: Any) -> Any:
    """Return the cards that ``seat`` has played in this hand."""
    cards = U0
    for trick in range(NUM_TRICKS):
        card = np.int64(state.played[trick * NUM_SEATS + seat])
        if card >= 0:
            cards |= bit(card)
    return cards
