"""Cuarenta: what a seat knows, and full states drawn uniformly from all that agree with it.

Room: engine. May import: engine.bits, jit, rng, the other modules of Cuarenta below it.

Hidden are the cards of the other hands and the stock. Facts that bind them are the sizes of the
hands and, where the options announce them, three and four of a rank among the five cards that a
seat was dealt - also their absence. Without such facts one shuffle of the unseen cards is
uniform. With them shuffles are rejected until one fits, and after ``MAX_TRIES`` (a seat that
announced three of a rank makes fits rare) the world is drawn by exact counting; both are uniform,
so the mixture is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, bit, fill_cards
from engine.games.cuarenta_counting import count_hands
from engine.games.cuarenta_deal import has_four, threes
from engine.games.cuarenta_encoder import cards_in_hand, unseen_cards
from engine.games.cuarenta_rules import rank_counts
from engine.games.cuarenta_state import (
    CARDS_PER_DEAL,
    MAX_SEATS,
    NIBBLE,
    NUM_CARDS,
    RONDA_ABSENT,
    RONDA_ANNOUNCED,
    RONDA_RANK,
)
from engine.jit import kernel
from engine.rng import below, next_u64

MAX_TRIES = 200


@kernel
def copy_public(state: Any, out: Any) -> None:
    """Copy everything that all seats see."""
    out.table = state.table
    out.plies_in_hand = state.plies_in_hand
    out.hand_index = state.hand_index
    out.dealer = state.dealer
    out.to_move = state.to_move
    out.winner = state.winner
    out.ref = state.ref
    out.ref_seat = state.ref_seat
    out.last_capturer = state.last_capturer
    for side in range(2):
        out.piles[side] = state.piles[side]
        out.scores[side] = state.scores[side]
        out.captured[side] = state.captured[side]
        out.caidas[side] = state.caidas[side]
        out.limpias[side] = state.limpias[side]
        out.carton[side] = state.carton[side]
    for seat in range(MAX_SEATS):
        out.played[seat] = state.played[seat]
        out.ronda[seat] = state.ronda[seat]
        out.passed[seat] = state.passed[seat]


@kernel
def write_view(state: Any, seat: Any, out: Any) -> None:
    """Overwrite ``out`` with the knowledge of ``seat``."""
    know(state, seat, state.hands[seat], out)


@kernel
def know(public: Any, seat: Any, hand: Any, out: Any) -> None:
    """Overwrite ``out`` with what everybody sees of ``public`` and ``seat``'s ``hand``."""
    copy_public(public, out)
    for other in range(MAX_SEATS):
        out.hands[other] = U0
    out.hands[seat] = hand
    out.stock = U0
    out.seed = U0


@kernel
def fits(game: Any, view: Any, seat: Any, hand: Any) -> Any:
    """Return whether ``seat`` may hold ``hand``, given what it announced when it was dealt."""
    dealt = hand | view.played[seat]
    if game.four_of_a_kind and has_four(dealt):
        return False
    ronda = np.int64(view.ronda[seat])
    if ronda == RONDA_ABSENT:
        return threes(dealt) == U0
    if ronda == RONDA_ANNOUNCED:
        return threes(dealt) != U0
    if ronda >= RONDA_RANK:
        return (threes(dealt) >> np.uint64(4 * (ronda - RONDA_RANK))) & NIBBLE != U0
    return True


@kernel
def _shuffle_hands(game: Any, out: Any, seat: Any, rng: Any) -> Any:
    """Deal the unseen cards at random to the other hands of ``out``; return whether they fit."""
    cards = np.empty(NUM_CARDS, np.uint8)
    left = fill_cards(unseen_cards(out, seat), cards)
    bound = game.four_of_a_kind != 0 or game.ronda != 0
    for other in range(game.players):
        if other == seat:
            continue
        hand = U0
        for _ in range(cards_in_hand(out, other)):
            pick = below(rng, left)
            left -= 1
            hand |= bit(cards[pick])
            cards[pick] = cards[left]
        if bound and not fits(game, out, other, hand):
            return False
        out.hands[other] = hand
    return True


@kernel
def draw_world(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
    """Overwrite ``out`` with a uniform draw from the states that agree with ``view``."""
    unseen = unseen_cards(view, seat)
    know(view, seat, view.hands[seat], out)
    tries = 0
    while not _shuffle_hands(game, out, seat, rng):
        tries += 1
        if tries == MAX_TRIES:
            count_hands(game, out, seat, rng, out)
            break
    for other in range(game.players):
        if other != seat:
            unseen &= ~out.hands[other]
    out.stock = unseen
    out.seed = next_u64(rng)


@kernel
def rewind_view(game: Any, past: Any, world: Any, out: Any) -> Any:
    """Overwrite ``out`` with the knowledge of the seat to move in ``past``, in the same deal.

    See ``engine.rules.view_then``. What a seat held then is what it holds in ``world`` and what it
    has played since; suits do not matter.
    """
    cards_a_deal = CARDS_PER_DEAL * game.players
    if past.hand_index != world.hand_index:
        return -1
    if past.plies_in_hand // cards_a_deal != world.plies_in_hand // cards_a_deal:
        return -1
    seat = np.int64(past.to_move)
    hand = world.hands[seat] | (world.played[seat] & ~past.played[seat])
    know(past, seat, hand, out)
    return np.int64(rank_counts(hand))
