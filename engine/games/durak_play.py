"""Durak: the compiled rules - one ply, what a bout becomes, who draws, and who is left.

Room: engine. May import: engine.bits, jit, rules (sentinels), and of Durak state and rules.

A bout is a sequence of single plies: the attacker plays, the defender covers the oldest uncovered
attack or takes, the seats in turn throw in or pass. Its end is looked at once the seats have drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, bit, popcount
from engine.games.durak_rules import may_throw, next_active, table_cards
from engine.games.durak_state import (
    ATTACK,
    ATTACKER_WINS,
    BEATEN,
    DEFEND,
    HAND_SIZE,
    MULTI,
    NO_CARD,
    NOBODY,
    NUM_RANKS,
    NUM_SUITS,
    OVER,
    PASS,
    SHOW,
    SHOWN_SEAT,
    SUIT_SETS,
    SWAP,
    TAKEN,
    TAKING,
    THROW_IN,
    TRANSFER,
)
from engine.jit import kernel
from engine.rules import CHANCE, TERMINAL

# --- one ply --------------------------------------------------------------------------------------


@kernel
def _reveal(state: Any, seat: Any, card: Any) -> None:
    """Note that all see ``card``, which ``seat`` holds and perhaps nobody has seen before."""
    if state.seen & bit(card) == U0:
        state.first_shown[card] = seat * SHOWN_SEAT + np.int64(state.given[seat])
        state.seen |= bit(card)


@kernel
def _leave_hand(state: Any, seat: Any, card: Any) -> None:
    """Take ``card`` out of the hand of ``seat``; all see it."""
    _reveal(state, seat, card)
    state.hands[seat] &= ~bit(card)
    state.sizes[seat] -= 1


@kernel
def _attack(state: Any, seat: Any, card: Any) -> None:
    """Put ``card`` of ``seat`` on the table as another attack."""
    _leave_hand(state, seat, card)
    state.attacks[state.num_attacks] = card
    state.num_attacks += 1


@kernel
def _put_card(state: Any, seat: Any, card: Any) -> None:
    """Play a card: an attack, a cover, or a card thrown in."""
    if state.phase == DEFEND:
        _leave_hand(state, seat, card)
        state.covers |= bit(card)
        state.num_covers += 1
        if state.num_covers == state.num_attacks:
            state.phase = THROW_IN
            state.passed = 0
        return
    _attack(state, seat, card)
    if state.phase == TAKING:
        state.passed = 0
    else:
        state.phase = DEFEND


@kernel
def _pass_on(game: Any, state: Any, seat: Any) -> None:
    """Make ``seat`` the attacker, and the next one the defender."""
    state.attacker = seat
    state.defender = next_active(game, state, seat)
    state.defender_cards = state.sizes[state.defender]


@kernel
def _swap(state: Any, seat: Any) -> None:
    """Exchange the trump six for the card at the bottom of the stock."""
    six = NUM_RANKS * np.int64(state.trump)
    card = np.int64(state.stock[0])
    _leave_hand(state, seat, six)
    state.stock[0] = six
    state.turned_up = six
    state.hands[seat] |= bit(card)
    state.sizes[seat] += 1


@kernel
def play(game: Any, state: Any, code: Any) -> None:
    """Play the action ``code`` of the seat to move, in place."""
    seat = np.int64(state.to_move)
    code = np.int64(code)
    state.plies += 1
    if code < PASS:
        _put_card(state, seat, code)
    elif code == PASS and state.phase == DEFEND:
        state.phase = TAKING
        state.passed = 0
    elif code == PASS:
        state.passed |= 1 << seat
    elif code < SHOW:
        _attack(state, seat, code - TRANSFER)
        _pass_on(game, state, seat)
    elif code < SWAP:
        _reveal(state, seat, code - SHOW)
        _pass_on(game, state, seat)
    elif code == SWAP:
        _swap(state, seat)
    else:
        rank, suits = (code - MULTI) // SUIT_SETS, (code - MULTI) % SUIT_SETS
        for suit in range(NUM_SUITS):
            if (suits >> suit) & 1:
                _attack(state, seat, suit * NUM_RANKS + rank)
        state.phase = DEFEND
    _find_turn(game, state)


@kernel
def _find_turn(game: Any, state: Any) -> None:
    """Give the turn to whom the phase gives it, and end the bout if that is nobody."""
    if state.phase == ATTACK:
        state.to_move = state.attacker
    elif state.phase == DEFEND:
        state.to_move = state.defender
    else:
        state.to_move = NOBODY
        if state.phase == THROW_IN or game.throw_after_take:
            for step in range(game.players):
                seat = (np.int64(state.attacker) + step) % game.players
                if may_throw(game, state, seat):
                    state.to_move = seat
                    break
        if state.to_move == NOBODY:
            _end_bout(game, state)
    end_of_plies(game, state)


@kernel
def end_of_plies(game: Any, state: Any) -> None:
    """End the game without a loser where a seat would move and no ply is left."""
    if state.to_move >= 0 and state.plies >= game.max_plies:
        finish(state, NOBODY)


# --- the end of a bout ----------------------------------------------------------------------------


@kernel
def _end_bout(game: Any, state: Any) -> None:
    """Clear the table, and draw or begin the next bout."""
    cards = table_cards(state)
    defender = np.int64(state.defender)
    if state.phase == TAKING:
        state.hands[defender] |= cards
        state.sizes[defender] += popcount(cards)
        state.phase = TAKEN
    else:
        state.beaten = 1
        state.phase = BEATEN
    for i in range(state.num_attacks):
        state.attacks[i] = NO_CARD
    state.covers = U0
    state.num_attacks = 0
    state.num_covers = 0
    state.passed = 0
    if state.stock_size > 0:
        for seat in range(game.players):
            if state.sizes[seat] < HAND_SIZE:
                state.to_move = CHANCE
                return
    open_bout(game, state)


@kernel
def unseen_draws(game: Any, state: Any, seat: Any) -> Any:
    """Return how many cards that others do not see ``seat`` is about to draw after a bout."""
    left = int(state.stock_size) - 1  # the last one lies face up
    for step in range(game.players):
        other = drawing_seat(game, state, step)
        wanted = min(max(HAND_SIZE - int(state.sizes[other]), 0), left)
        if other == seat:
            return wanted
        left -= wanted
    return 0


@kernel
def drawing_seat(game: Any, state: Any, step: Any) -> Any:
    """Return who draws at the given step: the attacker, the others clockwise, the defender last."""
    if step == game.players - 1:
        return np.int64(state.defender)
    seat = (np.int64(state.attacker) + step) % game.players
    past = (np.int64(state.defender) - np.int64(state.attacker)) % game.players
    return (seat + 1) % game.players if step >= past else seat


@kernel
def refill(game: Any, state: Any) -> None:
    """Let the seats draw from the stock, and begin the next bout."""
    for step in range(game.players):
        seat = drawing_seat(game, state, step)
        while state.sizes[seat] < HAND_SIZE and state.stock_size > 0:
            state.stock_size -= 1
            card = np.int64(state.stock[state.stock_size])
            state.stock[state.stock_size] = NO_CARD
            state.hands[seat] |= bit(card)
            state.sizes[seat] += 1
            if state.stock_size > 0:  # the last one lay face up
                state.given[seat] += 1
    open_bout(game, state)
    end_of_plies(game, state)


@kernel
def open_bout(game: Any, state: Any) -> None:
    """After the draw: see who is out and whether the game is, and give out the new roles."""
    taken = state.phase == TAKEN
    state.bouts += 1
    num_active = 0
    active = NOBODY
    place = 1
    for seat in range(game.players):
        place += 1 if state.finished[seat] > 0 else 0
    for seat in range(game.players):
        if state.stock_size == 0 and state.sizes[seat] == 0 and state.finished[seat] == 0:
            state.finished[seat] = place
        if state.finished[seat] == 0:
            num_active += 1
            active = seat
    if num_active == 0:
        finish(state, np.int64(state.defender) if game.draw == ATTACKER_WINS else NOBODY)
    elif num_active == 1:
        finish(state, active)
    else:
        attacker = np.int64(state.defender)
        if taken or state.finished[attacker] != 0:
            attacker = next_active(game, state, attacker)
        state.phase = ATTACK
        state.to_move = attacker
        _pass_on(game, state, attacker)


@kernel
def finish(state: Any, durak: Any) -> None:
    """End the game: ``durak`` is the seat that lost, or NOBODY for a draw."""
    state.phase = OVER
    state.to_move = TERMINAL
    state.durak = durak
