"""Forty-fives: the compiled rules - calls, discards and tricks.

Room: engine. May import: engine.bits, jit, rules (sentinels), and of Forty-fives state, cards,
deal and score.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, bit, contains, lowest, popcount, without_lowest
from engine.games.forty_fives_cards import (
    led_card,
    merge_lacks,
    playable,
    shown_lacking,
    winning_place,
)
from engine.games.forty_fives_deal import draw, start_hand, take_kitty
from engine.games.forty_fives_score import count_hand, end_hand
from engine.games.forty_fives_state import (
    AFTER_KITTY,
    AUCTION,
    BEFORE_KITTY,
    CONTINUE,
    DISCARD,
    DRAW,
    FORCED,
    HAND_SIZE,
    HOLD,
    KEEP,
    KITTY,
    LEFT_OF_BIDDER,
    LEVEL_60,
    NAME_TRUMP,
    NO_CARD,
    NUM_RANKS,
    NUM_SEATS,
    NUM_SUITS,
    NUM_TRICKS,
    PASS,
    PLAY,
    PLAY_CARD,
    POWER,
    THROW,
    TRUMP,
    TRUMPS,
)
from engine.jit import kernel
from engine.rules import CHANCE

# --- auction --------------------------------------------------------------------------------------


@kernel
def write_calls(game: Any, state: Any, actions: Any) -> Any:
    """Write the calls of the seat to move; return their number."""
    seat, high = np.int64(state.to_move), np.int64(state.high)
    dealer = seat == state.dealer
    bagged = dealer and high == 0 and game.all_pass == FORCED
    count = 0
    if not bagged:
        actions[count] = PASS
        count += 1
    for level in range(high + 1, LEVEL_60 + 1):
        if (game.min_bid >> level) & 1:
            actions[count] = level
            count += 1
    may_hold = dealer and game.dealer_hold != 0 and high > 0 and state.bidder != seat
    if may_hold and (high < LEVEL_60 or game.hold_30for60 != 0):
        actions[count] = HOLD
        count += 1
    return count


@kernel
def call(game: Any, state: Any, action: Any) -> None:
    """Make a call in place: the next seat speaks, or the auction ends."""
    seat = np.int64(state.to_move)
    state.turns += 1
    if action == PASS:
        state.passed[seat] = 1
    else:
        if action == HOLD:
            state.held = 1
        else:
            state.high = action
        state.bidder = seat
        state.bids[seat] = state.high
    if state.turns < NUM_SEATS:
        state.to_move = (seat + 1) % NUM_SEATS
        return
    if game.auction == CONTINUE and state.held:
        for offset in range(1, NUM_SEATS):
            other = (seat + offset) % NUM_SEATS
            if state.passed[other] == 0 and other != state.bidder:
                state.to_move = other
                return
    end_auction(game, state)


@kernel
def end_auction(game: Any, state: Any) -> None:
    """Go on to the kitty or to naming trump; without a bid the deal passes on."""
    if state.high == 0:
        end_hand(game, state)
    elif game.kitty > 0 and game.trump_named == AFTER_KITTY:
        state.phase = KITTY
        state.to_move = CHANCE
    else:
        state.phase = TRUMP
        state.to_move = state.bidder


@kernel
def name_trump(game: Any, state: Any, suit: Any) -> None:
    """Name trump in place."""
    state.trump = suit
    if game.kitty > 0 and game.trump_named == BEFORE_KITTY:
        state.phase = KITTY
        state.to_move = CHANCE
    else:
        begin_discards(game, state)


# --- discards -------------------------------------------------------------------------------------


@kernel
def begin_discards(game: Any, state: Any) -> None:
    """Let the seat at the dealer's left discard first."""
    state.phase = DISCARD
    state.kept = U0
    discard_next(game, state, (np.int64(state.dealer) + 1) % NUM_SEATS)


@kernel
def card_to_decide(trump: Any, undecided: Any) -> Any:
    """Return the card that is decided on next: trumps, then plain cards, from the highest on."""
    best = NO_CARD
    highest = -1
    while undecided != U0:
        card = lowest(undecided)
        undecided = without_lowest(undecided)
        # Plain cards of equal power by suit: the order has to be fixed and no more.
        power = POWER[trump, card] * NUM_SUITS + NUM_SUITS - 1 - card // NUM_RANKS
        if power > highest:
            best = card
            highest = power
    return best


@kernel
def settle(game: Any, state: Any, seat: Any) -> Any:
    """Decide on the cards about which ``seat`` has no choice; return the next one, or NO_CARD.

    Changes ``hands`` and ``thrown`` of the seat, and ``kept``, in place.
    """
    trumps = TRUMPS[state.trump]
    while True:
        hand = state.hands[seat]
        undecided = hand & ~state.kept
        num_kept = popcount(state.kept)
        if num_kept == HAND_SIZE:
            state.thrown[seat] |= undecided
            state.hands[seat] = state.kept
            return NO_CARD
        if undecided == U0:
            return NO_CARD
        card = card_to_decide(np.int64(state.trump), undecided)
        must_keep = game.min_keep > num_kept and without_lowest(undecided) == U0
        if game.may_throw_trump == 0 and contains(trumps, card):
            must_keep = must_keep or popcount(hand & trumps) <= HAND_SIZE
        if not must_keep:
            return card
        state.kept |= bit(card)


@kernel
def decide(state: Any, seat: Any, card: Any, action: Any) -> None:
    """Keep or throw ``card`` of ``seat`` in place."""
    if action == KEEP:
        state.kept |= bit(card)
    else:
        state.hands[seat] &= ~bit(card)
        state.thrown[seat] |= bit(card)


@kernel
def discard_next(game: Any, state: Any, seat: Any) -> None:
    """Let ``seat`` go on with its discards, or leave a CHANCE position when it has done.

    How far a seat has come is its own to know; that it has done is seen by all, as a chance event
    of its own, because whether one more card settles it depends on cards that are hidden.
    """
    state.leader = seat
    if settle(game, state, seat) >= 0:
        state.to_move = seat
        return
    state.kept = U0
    state.to_move = CHANCE
    state.leader = (seat + 1) % NUM_SEATS
    if seat == state.dealer:
        state.phase = DRAW


@kernel
def discard(game: Any, state: Any, action: Any) -> None:
    """Keep or throw the card that is to be decided on, in place."""
    seat = np.int64(state.to_move)
    card = card_to_decide(np.int64(state.trump), state.hands[seat] & ~state.kept)
    decide(state, seat, card, action)
    discard_next(game, state, seat)


# --- chance ---------------------------------------------------------------------------------------


@kernel
def pass_chance(game: Any, state: Any) -> None:
    """Resolve the pending chance event in place."""
    if state.phase == KITTY:
        take_kitty(game, state)
        if game.trump_named == AFTER_KITTY:
            state.phase = TRUMP
            state.to_move = state.bidder
        else:
            begin_discards(game, state)
    elif state.phase == DISCARD:
        discard_next(game, state, np.int64(state.leader))
    elif state.phase == DRAW:
        draw(game, state)
        begin_play(game, state)
    else:
        dealer = (np.int64(state.dealer) + 1) % NUM_SEATS
        start_hand(game, state, np.int64(state.hand_index) + 1, dealer)


# --- tricks ---------------------------------------------------------------------------------------


@kernel
def begin_play(game: Any, state: Any) -> None:
    """Let the first trick be led."""
    state.phase = PLAY
    offset = 1 if game.leader == LEFT_OF_BIDDER else 0
    state.leader = (np.int64(state.bidder) + offset) % NUM_SEATS
    state.to_move = state.leader


@kernel
def play_card(game: Any, state: Any, card: Any) -> None:
    """Play a card in place; the fourth ends the trick, the last one of the hand is counted."""
    seat, trump = np.int64(state.to_move), np.int64(state.trump)
    led = led_card(state)
    if led >= 0:
        shown = shown_lacking(game, trump, led, card)
        state.lacks[seat] = merge_lacks(np.int64(state.lacks[seat]), shown)
    state.hands[seat] &= ~bit(card)
    state.played[np.int64(state.num_played) // NUM_SEATS * NUM_SEATS + seat] = card
    state.num_played += 1
    best = np.int64(state.best_trump)
    if contains(TRUMPS[trump], card) and (best < 0 or POWER[trump, card] > POWER[trump, best]):
        state.best_trump = card
        state.best_side = seat & 1
    if np.int64(state.num_played) % NUM_SEATS != 0:
        state.to_move = (seat + 1) % NUM_SEATS
        return
    leader, first = np.int64(state.leader), np.int64(state.num_played) - NUM_SEATS
    place = winning_place(trump, state.played[first : first + NUM_SEATS], leader, NUM_SEATS)
    winner = (leader + place) % NUM_SEATS
    state.tricks[winner & 1] += 1
    state.leader = winner
    state.to_move = winner
    if state.num_played == NUM_TRICKS * NUM_SEATS:
        count_hand(game, state)


# --- all phases -----------------------------------------------------------------------------------


@kernel
def write_actions(game: Any, state: Any, actions: Any) -> Any:
    """Write the legal actions of the seat to move, ascending; return their number."""
    if state.to_move < 0:
        return 0
    if state.phase == AUCTION:
        return write_calls(game, state, actions)
    count = 0
    if state.phase == TRUMP:
        for suit in range(NUM_SUITS):
            actions[suit] = NAME_TRUMP + suit
        count = NUM_SUITS
    elif state.phase == DISCARD:
        actions[0] = KEEP
        actions[1] = THROW
        count = 2
    else:
        cards = playable(game, np.int64(state.trump), led_card(state), state.hands[state.to_move])
        while cards != U0:
            actions[count] = PLAY_CARD + lowest(cards)
            cards = without_lowest(cards)
            count += 1
    return count


@kernel
def act(game: Any, state: Any, action: Any) -> None:
    """Play the legal ``action`` of the seat to move, in place."""
    if state.phase == AUCTION:
        call(game, state, action)
    elif state.phase == TRUMP:
        name_trump(game, state, action - NAME_TRUMP)
    elif state.phase == DISCARD:
        discard(game, state, action)
    else:
        play_card(game, state, action - PLAY_CARD)
