"""Forty-fives: what a seat knows, and full states drawn from those that agree with it.

Room: engine. May import: engine.bits, jit, rng, rules (sentinels), the other modules of Forty-fives
below it.

A seat knows its own cards and discards (the bidder the kitty among them), all calls and cards
played, and how many cards each seat drew. Before the discards every assignment of the unseen cards
is equally likely. Seats that have discarded and not drawn have shown nothing yet: their discards
are replayed from a drawn hand. After the draw ``count_hands`` draws hands and discards together,
with what each seat has shown that it lacks and with the number it drew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, bit, contains, fill_cards, popcount
from engine.games.forty_fives_cards import played_cards
from engine.games.forty_fives_counting import FLOOR, count_hands
from engine.games.forty_fives_rules import decide, settle
from engine.games.forty_fives_state import (
    AFTER_KITTY,
    ALL_CARDS,
    DISCARD,
    DRAW,
    HAND_SIZE,
    KEEP,
    NUM_CARDS,
    NUM_SEATS,
    NUM_TRICKS,
    THROW,
    TRUMP,
    TRUMPS,
)
from engine.jit import kernel
from engine.rng import below, next_u64, uniform


@kernel
def copy_public(state: Any, out: Any) -> None:
    """Copy everything that all seats see."""
    for seat in range(NUM_SEATS):
        out.lacks[seat] = state.lacks[seat]
        out.drawn[seat] = state.drawn[seat]
        out.bids[seat] = state.bids[seat]
        out.passed[seat] = state.passed[seat]
    for side in range(2):
        out.scores[side] = state.scores[side]
        out.contracts[side] = state.contracts[side]
        out.made[side] = state.made[side]
        out.sets[side] = state.sets[side]
        out.tricks[side] = state.tricks[side]
    for i in range(NUM_TRICKS * NUM_SEATS):
        out.played[i] = state.played[i]
    out.phase = state.phase
    out.to_move = state.to_move
    out.winner = state.winner
    out.hand_index = state.hand_index
    out.dealer = state.dealer
    out.turns = state.turns
    out.high = state.high
    out.bidder = state.bidder
    out.held = state.held
    out.trump = state.trump
    out.leader = state.leader
    out.num_played = state.num_played
    out.best_trump = state.best_trump
    out.best_side = state.best_side


@kernel
def write_view(state: Any, seat: Any, out: Any) -> None:
    """Overwrite ``out`` with the knowledge of ``seat``."""
    own, thrown = state.hands[seat], state.thrown[seat]
    kept = state.kept if state.to_move == seat else U0
    copy_public(state, out)
    for other in range(NUM_SEATS):
        out.hands[other] = U0
        out.thrown[other] = U0
    out.hands[seat] = own
    out.thrown[seat] = thrown
    out.kept = kept
    out.stock = U0
    out.seed = U0


@kernel
def cards_held(game: Any, view: Any, seat: Any) -> Any:
    """Return how many cards ``seat`` holds, as all see it: before the draw, discards included."""
    taken = view.phase == DISCARD or view.phase == DRAW
    taken = taken or (view.phase == TRUMP and game.trump_named == AFTER_KITTY)
    kitty = game.kitty if taken and view.bidder == seat else 0
    return HAND_SIZE + kitty - popcount(played_cards(view, seat))


@kernel
def unseen_cards(view: Any, seat: Any) -> Any:
    """Return the cards that ``seat`` does not see: other hands, their discards, and the stock."""
    seen = view.hands[seat] | view.thrown[seat]
    for other in range(NUM_SEATS):
        seen |= played_cards(view, other)
    return ALL_CARDS & ~seen


@kernel
def replay_discards(game: Any, out: Any, seat: Any, rng: Any) -> None:
    """Let ``seat`` discard of all its cards: its trumps are kept, or a coin is tossed for each."""
    out.kept = U0
    by_rule = uniform(rng) >= FLOOR
    while True:
        card = settle(game, out, seat)
        if card < 0:
            out.kept = U0
            return
        keeps = contains(TRUMPS[out.trump], card) if by_rule else below(rng, 2) == 1
        decide(out, seat, card, KEEP if keeps else THROW)


@kernel
def _shuffle_hands(game: Any, out: Any, seat: Any, rng: Any) -> None:
    """Deal the unseen cards at random to the other hands of ``out``; nothing of them is thrown."""
    cards = np.empty(NUM_CARDS, np.uint8)
    left = fill_cards(unseen_cards(out, seat), cards)
    for offset in range(1, NUM_SEATS):
        other = (seat + offset) % NUM_SEATS
        hand = U0
        for _ in range(cards_held(game, out, other)):
            pick = below(rng, left)
            left -= 1
            hand |= bit(cards[pick])
            cards[pick] = cards[left]
        out.hands[other] = hand
        out.thrown[other] = U0


@kernel
def _discard_again(game: Any, out: Any, seat: Any, rng: Any) -> Any:
    """Replay the discards of the other seats; False if the one to move had no choice to make.

    A seat that is still discarding begins anew: how far it has come nobody else sees.
    """
    kept = out.kept
    done = NUM_SEATS if out.phase == DRAW else (out.leader - out.dealer - 1) % NUM_SEATS
    for turn in range(done):
        other = (np.int64(out.dealer) + 1 + turn) % NUM_SEATS
        if other != seat:
            replay_discards(game, out, other, rng)
    out.kept = kept
    if out.to_move < 0 or out.to_move == seat:
        return True
    return settle(game, out, np.int64(out.to_move)) >= 0


@kernel
def draw_world(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
    """Overwrite ``out`` with a draw from the states that agree with ``view``."""
    own, thrown, kept = view.hands[seat], view.thrown[seat], view.kept
    copy_public(view, out)
    for other in range(NUM_SEATS):
        out.hands[other] = U0
        out.thrown[other] = U0
    out.hands[seat] = own
    out.thrown[seat] = thrown
    out.kept = kept
    unseen = unseen_cards(out, seat)
    if out.drawn[seat] >= 0:
        while not count_hands(game, out, seat, unseen, rng, out):
            pass
    else:
        _shuffle_hands(game, out, seat, rng)
        if out.phase == DISCARD or out.phase == DRAW:
            while not _discard_again(game, out, seat, rng):
                out.kept = kept
                _shuffle_hands(game, out, seat, rng)
    for other in range(NUM_SEATS):
        if other != seat:
            unseen &= ~(out.hands[other] | out.thrown[other])
    out.stock = unseen
    out.seed = next_u64(rng)
