"""Forty-fives: shuffling, dealing, the kitty and the draws.

Room: engine. May import: engine.bits, jit, rng, rules (sentinels), and of Forty-fives the state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, bit, fill_cards, popcount
from engine.games.forty_fives_state import (
    ALL_CARDS,
    AUCTION,
    HAND_SIZE,
    NO_CARD,
    NO_SUIT,
    NOBODY,
    NUM_CARDS,
    NUM_SEATS,
    NUM_TRICKS,
    UNKNOWN,
)
from engine.jit import kernel
from engine.rng import GOLDEN_GAMMA, finalize, mix

_S32 = np.uint64(32)
_DEALER_STREAM = np.uint64(0xDEA1)
HANDS, KITTY_CARDS, DRAWS = 0, 1, 2
"""Streams of a hand's cards."""


@kernel
def start(game: Any, state: Any, seed: Any) -> None:
    """Overwrite ``state`` with the first deal of the game ``seed``."""
    state.seed = seed
    for side in range(2):
        state.scores[side] = 0
        state.contracts[side] = 0
        state.made[side] = 0
        state.sets[side] = 0
    state.winner = NOBODY
    dealer = np.int64(((mix(seed, _DEALER_STREAM) >> _S32) * np.uint64(NUM_SEATS)) >> _S32)
    start_hand(game, state, 0, dealer)


@kernel
def take(state: Any, stream: Any, count: Any, out: Any) -> None:
    """Write the first ``count`` cards of the shuffled stock to ``out``; take none away.

    The cards are a function of the seed, the hand and the stream (and of the stock, which is one
    itself): a stock has no order of its own that a copy could give away.
    """
    counter = mix(mix(state.seed, np.uint64(state.hand_index)), np.uint64(stream))
    left = fill_cards(state.stock, out)
    for i in range(count):
        counter += GOLDEN_GAMMA
        pick = i + np.int64(((finalize(counter) >> _S32) * np.uint64(left - i)) >> _S32)
        card = out[pick]
        out[pick] = out[i]
        out[i] = card


@kernel
def start_hand(game: Any, state: Any, hand_index: Any, dealer: Any) -> None:
    """Gather and shuffle all cards and deal five to each seat; the auction is open."""
    state.hand_index = hand_index
    state.dealer = dealer
    state.kept = U0
    state.stock = ALL_CARDS
    for side in range(2):
        state.tricks[side] = 0
    for i in range(NUM_TRICKS * NUM_SEATS):
        state.played[i] = NO_CARD
    cards = np.empty(NUM_CARDS, np.uint8)
    take(state, HANDS, NUM_SEATS * HAND_SIZE, cards)
    for turn in range(NUM_SEATS):
        hand = U0
        for i in range(HAND_SIZE):
            hand |= bit(cards[turn * HAND_SIZE + i])
        seat = (dealer + 1 + turn) % NUM_SEATS
        state.hands[seat] = hand
        state.stock &= ~hand
        state.thrown[seat] = U0
        state.lacks[seat] = 0
        state.drawn[seat] = UNKNOWN
        state.bids[seat] = 0
        state.passed[seat] = 0
    state.phase = AUCTION
    state.to_move = (dealer + 1) % NUM_SEATS
    state.turns = 0
    state.high = 0
    state.held = 0
    state.bidder = NOBODY
    state.trump = NO_SUIT
    state.leader = 0
    state.num_played = 0
    state.best_trump = NO_CARD
    state.best_side = NOBODY


@kernel
def take_kitty(game: Any, state: Any) -> None:
    """Give the kitty to the bidder."""
    cards = np.empty(NUM_CARDS, np.uint8)
    take(state, KITTY_CARDS, game.kitty, cards)
    for i in range(game.kitty):
        state.hands[state.bidder] |= bit(cards[i])
        state.stock &= ~bit(cards[i])


@kernel
def draw(game: Any, state: Any) -> None:
    """Let every seat draw back to five cards; how many it draws is public from here on.

    A seat's i-th draw is the same card however many the others draw.
    """
    cards = np.empty(NUM_CARDS, np.uint8)
    take(state, DRAWS, NUM_SEATS * HAND_SIZE, cards)
    for turn in range(NUM_SEATS):
        seat = (np.int64(state.dealer) + 1 + turn) % NUM_SEATS
        count = HAND_SIZE - popcount(state.hands[seat])
        state.drawn[seat] = count
        for i in range(count):
            card = bit(cards[turn * HAND_SIZE + i])
            state.hands[seat] |= card
            state.stock &= ~card
