"""Durak: shuffling, dealing, and who attacks first.

Room: engine. May import: engine.bits, jit, rng, and of Durak state and rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, bit, fill_cards, lowest, popcount
from engine.games.durak_rules import next_active, suit_cards, suit_of
from engine.games.durak_state import (
    AFTER_LAST_LOSER,
    ALL_CARDS,
    ALL_UNKNOWN,
    ATTACK,
    HAND_SIZE,
    LOWEST_BEGAN,
    LOWEST_TRUMP,
    MAX_ATTACKS,
    MAX_SEATS,
    MAX_STOCK,
    NO_CARD,
    NO_FIVE_OF_SUIT,
    NO_TRUMP,
    NOBODY,
    NOBODY_HAD_TRUMP,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SUITS,
    UNKNOWN,
)
from engine.jit import kernel
from engine.rng import mix, shuffle

_S32 = np.uint64(32)
_SEAT_STREAM = np.uint64(0x5EA7)
MOST_OF_SUIT = 4
"""Cards of a suit in a hand with which it is not dealt anew, where that is an option."""


@kernel
def clear(state: Any) -> None:
    """Overwrite ``state`` with an empty table."""
    state.seen = U0
    state.covers = U0
    for seat in range(MAX_SEATS):
        state.hands[seat] = U0
        state.finished[seat] = 0
        state.given[seat] = 0
        state.sizes[seat] = 0
    for i in range(MAX_STOCK):
        state.stock[i] = NO_CARD
    for i in range(MAX_ATTACKS):
        state.attacks[i] = NO_CARD
    for card in range(NUM_CARDS):
        state.first_shown[card] = 0
    state.plies = 0
    state.bouts = 0
    state.beaten = 0
    state.low_trumps = ALL_UNKNOWN
    state.stock_size = 0
    state.facts = 0
    state.passed = 0
    state.num_attacks = 0
    state.num_covers = 0
    state.durak = NOBODY
    state.phase = ATTACK


@kernel
def start(game: Any, state: Any, seed: Any) -> None:
    """Overwrite ``state`` with the first position of the game ``seed``."""
    clear(state)
    cards = np.empty(NUM_CARDS, np.uint8)
    fill_cards(ALL_CARDS, cards)
    rng = np.empty(1, np.uint64)
    rng[0] = seed
    shuffle(rng, cards, NUM_CARDS)
    while game.redeal and _is_dealt_anew(game, cards):
        shuffle(rng, cards, NUM_CARDS)
    for seat in range(game.players):
        for i in range(HAND_SIZE):
            state.hands[seat] |= bit(cards[HAND_SIZE * seat + i])
        state.sizes[seat] = HAND_SIZE
        state.given[seat] = HAND_SIZE
    # The next card is turned up and lies under the others, which follow in order.
    dealt = HAND_SIZE * game.players
    state.stock_size = NUM_CARDS - dealt
    state.stock[0] = cards[dealt]
    for i in range(1, NUM_CARDS - dealt):
        state.stock[NUM_CARDS - dealt - i] = cards[dealt + i]
    state.turned_up = state.stock[0]
    state.seen = bit(state.turned_up)
    state.trump = suit_of(state.turned_up)
    attacker = _first_attacker(game, state, seed)
    state.first_attacker = attacker
    state.attacker = attacker
    state.to_move = attacker
    state.defender = next_active(game, state, attacker)
    state.defender_cards = HAND_SIZE


@kernel
def _is_dealt_anew(game: Any, cards: Any) -> Any:
    """Return whether a hand of the shuffled ``cards`` has five of a suit."""
    for seat in range(game.players):
        hand = U0
        for i in range(HAND_SIZE):
            hand |= bit(cards[HAND_SIZE * seat + i])
        if has_five(hand):
            return True
    return False


@kernel
def has_five(hand: Any) -> Any:
    """Return whether ``hand`` has five cards of a suit or more."""
    found = False
    for suit in range(NUM_SUITS):
        found = found or popcount(hand & suit_cards(suit)) > MOST_OF_SUIT
    return found


@kernel
def lowest_trump(state: Any, hand: Any) -> Any:
    """Return the rank of the lowest trump in ``hand``, or NO_TRUMP."""
    trumps = hand & suit_cards(state.trump)
    return NO_TRUMP if trumps == U0 else lowest(trumps) % NUM_RANKS


@kernel
def _first_attacker(game: Any, state: Any, seed: Any) -> Any:
    """Return who attacks first, and note what that tells of the hands."""
    if game.redeal:
        state.facts |= NO_FIVE_OF_SUIT
    if game.first_attacker == AFTER_LAST_LOSER:
        return (game.last_loser + game.players - 1) % game.players
    if game.first_attacker == LOWEST_TRUMP:
        best = np.int64(NO_TRUMP)
        attacker = NOBODY
        lows = np.int64(ALL_UNKNOWN)
        for seat in range(game.players):
            low = np.int64(lowest_trump(state, state.hands[seat]))
            lows ^= (low ^ UNKNOWN) << (4 * seat)
            if low < best:
                best = low
                attacker = seat
        state.low_trumps = lows
        if attacker != NOBODY:
            state.facts |= LOWEST_BEGAN
            return attacker
        state.facts |= NOBODY_HAD_TRUMP
    bits = mix(seed, _SEAT_STREAM) >> _S32
    return np.int64((bits * np.uint64(game.players)) >> _S32)
