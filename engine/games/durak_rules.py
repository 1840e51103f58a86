"""Durak: the compiled rules - what beats what, who may throw in, what may be played.

Room: engine. May import: engine.bits, jit, and of Durak state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, U1, bit, lowest, popcount, without_lowest
from engine.games.durak_state import (
    ATTACK,
    ATTACKER_THROWS,
    DEFEND,
    EVERY_SUIT,
    MAX_SEATS,
    MULTI,
    NEIGHBOURS_THROW,
    NUM_RANKS,
    NUM_SUITS,
    PASS,
    SHOW,
    SUIT_BITS,
    SUIT_SETS,
    SWAP,
    TRANSFER,
    UNKNOWN,
)
from engine.jit import kernel

_S9, _S18 = np.uint64(9), np.uint64(18)
_U2 = np.uint64(2)

# --- masks ----------------------------------------------------------------------------------------


@kernel
def rank_of(card: Any) -> Any:
    """Return the rank of a card, 0 for a six."""
    return np.int64(card) % NUM_RANKS


@kernel
def suit_of(card: Any) -> Any:
    """Return the suit of a card."""
    return np.int64(card) // NUM_RANKS


@kernel
def suit_cards(suit: Any) -> Any:
    """Return all cards of a suit."""
    return SUIT_BITS << np.uint64(NUM_RANKS * np.int64(suit))


@kernel
def ranks_in(mask: Any) -> Any:
    """Return the ranks of the cards in ``mask``, a bit each."""
    halves = mask | (mask >> _S9)
    return (halves | (halves >> _S18)) & SUIT_BITS


@kernel
def cards_beating(card: Any, trump: Any) -> Any:
    """Return all cards that beat ``card``."""
    card = np.int64(card)
    suit = suit_of(card)
    higher = suit_cards(suit) & ~((_U2 << np.uint64(card)) - U1)
    return higher if suit == trump else higher | suit_cards(trump)


@kernel
def table_cards(state: Any) -> Any:
    """Return all cards on the table."""
    mask = U0
    for i in range(state.num_attacks):
        mask |= bit(state.attacks[i])
    return mask | state.covers


@kernel
def known_cards(state: Any, seat: Any) -> Any:
    """Return the cards that all know to be in the hand of ``seat``."""
    return state.hands[seat] & state.seen


@kernel
def discarded(state: Any) -> Any:
    """Return the cards on the discard pile: those seen that lie nowhere else."""
    mask = state.seen & ~table_cards(state)
    for seat in range(MAX_SEATS):
        mask &= ~state.hands[seat]
    return mask & ~bit(state.stock[0]) if state.stock_size > 0 else mask


@kernel
def low_trump_of(state: Any, seat: Any) -> Any:
    """Return the rank of the lowest trump that ``seat`` was dealt, NO_TRUMP or UNKNOWN."""
    return (np.int64(state.low_trumps) >> (4 * seat)) & UNKNOWN


# --- seats and limits -----------------------------------------------------------------------------


@kernel
def next_active(game: Any, state: Any, seat: Any) -> Any:
    """Return the next seat clockwise from ``seat`` that has not gone out (``seat`` if none)."""
    for step in range(1, game.players):
        other = (np.int64(seat) + step) % game.players
        if state.finished[other] == 0:
            return other
    return np.int64(seat)


@kernel
def attack_limit(game: Any, state: Any) -> Any:
    """Return how many attacks a bout may have at this time, whatever the defender holds."""
    limit = np.int64(game.limit)
    return min(limit, 5) if game.first_limit == 5 and state.beaten == 0 else limit


@kernel
def room_left(game: Any, state: Any) -> Any:
    """Return how many more attacks this bout may have."""
    cap = min(attack_limit(game, state), np.int64(state.defender_cards))
    return cap - np.int64(state.num_attacks)


@kernel
def may_throw(game: Any, state: Any, seat: Any) -> Any:
    """Return whether ``seat`` is asked whether it throws in."""
    if seat == state.defender or state.sizes[seat] == 0 or (state.passed >> seat) & 1:
        return False
    if game.throwers == ATTACKER_THROWS:
        return seat == state.attacker
    if game.throwers == NEIGHBOURS_THROW:
        return seat == state.attacker or seat == next_active(game, state, state.defender)
    return True


# --- legal actions --------------------------------------------------------------------------------


@kernel
def _rank_to_transfer(game: Any, state: Any) -> Any:
    """Return the cards of the attack's rank, if it can be passed on at all; else no card."""
    if game.transfer == 0 or state.num_covers > 0:
        return U0
    if game.transfer_first_bout == 0 and state.bouts == 0:
        return U0
    return EVERY_SUIT << np.uint64(rank_of(state.attacks[0]))


@kernel
def _write_cards(mask: Any, first: Any, actions: Any, count: Any) -> Any:
    """Append ``first + card`` for each card of ``mask``; return the new count."""
    while mask != U0:
        actions[count] = first + lowest(mask)
        mask = without_lowest(mask)
        count += 1
    return count


@kernel
def _write_transfers(game: Any, state: Any, actions: Any, count: Any) -> Any:
    """Append the ways to pass the attack on."""
    seat = np.int64(state.to_move)
    after = next_active(game, state, seat)
    cards = _rank_to_transfer(game, state) & state.hands[seat]
    room = min(attack_limit(game, state), np.int64(state.sizes[after]))
    if after == seat:
        return count
    if state.num_attacks < room:
        count = _write_cards(cards, TRANSFER, actions, count)
    if game.transfer_show_trump and state.num_attacks <= room:
        count = _write_cards(cards & suit_cards(state.trump), SHOW, actions, count)
    return count


@kernel
def _write_sets(game: Any, state: Any, actions: Any, count: Any) -> Any:
    """Append the attacks with two or more cards of a rank."""
    room = room_left(game, state)
    hand = state.hands[state.to_move]
    for rank in range(NUM_RANKS):
        held = np.int64(0)
        for suit in range(NUM_SUITS):
            held |= np.int64((hand >> np.uint64(suit * NUM_RANKS + rank)) & U1) << suit
        for suits in range(3, SUIT_SETS):
            size = popcount(np.uint64(suits))
            if size > 1 and size <= room and suits & ~held == 0:
                actions[count] = MULTI + rank * SUIT_SETS + suits
                count += 1
    return count


@kernel
def playable_cards(game: Any, state: Any) -> Any:
    """Return the cards that the seat to move may play, cover with or throw in."""
    hand = state.hands[state.to_move]
    if state.phase == ATTACK:
        return hand
    if state.phase == DEFEND:
        return hand & cards_beating(state.attacks[state.num_covers], np.int64(state.trump))
    if room_left(game, state) <= 0:
        return U0
    return hand & (ranks_in(table_cards(state)) * EVERY_SUIT)


@kernel
def write_actions(game: Any, state: Any, actions: Any) -> Any:
    """Write the actions of the seat to move in ascending order; return their number."""
    count = _write_cards(playable_cards(game, state), 0, actions, 0)
    if state.phase != ATTACK:
        actions[count] = PASS
        count += 1
    if state.phase == DEFEND:
        count = _write_transfers(game, state, actions, count)
    if game.swap_trump_six and state.stock_size > 0:
        six = suit_cards(state.trump) & EVERY_SUIT
        if state.hands[state.to_move] & six != U0:
            actions[count] = SWAP
            count += 1
    if game.multi_card_attack and state.phase == ATTACK:
        count = _write_sets(game, state, actions, count)
    return count
