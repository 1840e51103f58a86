"""Cuarenta: shuffling, dealing, and what the dealt cards pay.

Room: engine. May import: engine.bits, jit, rng, rules (sentinels), and of Cuarenta state and rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, bit, fill_cards, lowest
from engine.games.cuarenta_rules import finish, rank_counts
from engine.games.cuarenta_state import (
    ALL_CARDS,
    CARDS_PER_DEAL,
    LOW_BITS,
    MAX_SEATS,
    NO_CARD,
    NOBODY,
    NUM_CARDS,
    RONDA_ABSENT,
    RONDA_ANNOUNCED,
    RONDA_RANK,
    RONDA_UNKNOWN,
)
from engine.jit import kernel
from engine.rng import GOLDEN_GAMMA, finalize, mix
from engine.rules import TERMINAL

_S1, _S2, _S32 = (np.uint64(n) for n in (1, 2, 32))
_DEALER_STREAM = np.uint64(0xDEA1)


@kernel
def start(game: Any, state: Any, seed: Any) -> None:
    """Overwrite ``state`` with the first deal of the game ``seed``."""
    state.seed = seed
    for side in range(2):
        state.scores[side] = 0
        state.captured[side] = 0
        state.caidas[side] = 0
        state.limpias[side] = 0
        state.carton[side] = 0
    state.winner = NOBODY
    bits = mix(seed, _DEALER_STREAM) >> _S32
    dealer = np.int64((bits * np.uint64(game.players)) >> _S32)
    start_hand(game, state, 0, dealer)


@kernel
def start_hand(game: Any, state: Any, hand_index: Any, dealer: Any) -> None:
    """Gather and shuffle all cards, and make the first deal of a hand."""
    state.hand_index = hand_index
    state.dealer = dealer
    state.plies_in_hand = 0
    state.table = U0
    state.piles[0] = U0
    state.piles[1] = U0
    state.stock = ALL_CARDS
    state.ref = NO_CARD
    state.ref_seat = 0
    state.last_capturer = NOBODY
    for seat in range(MAX_SEATS):
        state.hands[seat] = U0
        state.played[seat] = U0
        state.passed[seat] = 0
        state.ronda[seat] = RONDA_UNKNOWN
    deal_five(game, state)


@kernel
def deal_five(game: Any, state: Any) -> None:
    """Deal five cards to each seat, the seat after the dealer first, and score what that pays.

    The cards are a function of the seed, the hand and the number of the deal (and of the stock,
    which is one itself): a stock has no order of its own that a copy could give away.
    """
    deal_index = state.plies_in_hand // (CARDS_PER_DEAL * game.players)
    stream = mix(mix(state.seed, state.hand_index), deal_index)
    cards = np.empty(NUM_CARDS, np.uint8)
    left = fill_cards(state.stock, cards)
    for turn in range(game.players):
        hand = U0
        for _ in range(CARDS_PER_DEAL):
            stream += GOLDEN_GAMMA
            pick = np.int64(((finalize(stream) >> _S32) * np.uint64(left)) >> _S32)
            left -= 1
            hand |= bit(cards[pick])
            cards[pick] = cards[left]
        seat = (state.dealer + 1 + turn) % game.players
        state.hands[seat] = hand
        state.played[seat] = U0
        state.passed[seat] = 0
        state.ronda[seat] = RONDA_UNKNOWN
        state.stock &= ~hand
    first = (state.dealer + 1) % game.players
    state.to_move = first
    if game.four_of_a_kind:
        _score_fours(game, state)
    if game.ronda and state.to_move != TERMINAL:
        for turn in range(game.players):
            _score_ronda(game, state, (first + turn) % game.players)


@kernel
def has_four(hand: Any) -> Any:
    """Return whether ``hand`` holds all four cards of a rank."""
    pairs = hand & (hand >> _S1)
    return (pairs & (pairs >> _S2) & LOW_BITS) != U0


@kernel
def threes(hand: Any) -> Any:
    """Return the lowest bit of each rank of which ``hand`` holds exactly three cards."""
    counts = rank_counts(hand)
    return counts & (counts >> _S1) & LOW_BITS


@kernel
def _score_fours(game: Any, state: Any) -> None:
    """End the game if a hand holds four of a rank: a win, or a draw if both sides have one."""
    found = 0
    for seat in range(game.players):
        if has_four(state.hands[seat]):
            found |= 1 << (seat & 1)
    if found == 3:
        finish(state, NOBODY)
    elif found != 0:
        winner = found >> 1
        state.scores[winner] = max(np.int64(state.scores[winner]), game.target)
        finish(state, winner)


@kernel
def _score_ronda(game: Any, state: Any, seat: Any) -> None:
    """Pay and announce the three of a rank that ``seat`` was dealt, if its side is paid for it."""
    side = seat & 1
    if state.to_move == TERMINAL or state.scores[side] >= game.ronda_cap:
        return
    three = threes(state.hands[seat])
    if three == U0:
        state.ronda[seat] = RONDA_ABSENT
        return
    shown = game.ronda_reveals_rank
    state.ronda[seat] = RONDA_RANK + (lowest(three) >> 2) if shown else RONDA_ANNOUNCED
    state.scores[side] += game.ronda
    if game.end_mid_deal and state.scores[side] >= game.target:
        finish(state, side)
