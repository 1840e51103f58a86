"""Cuarenta: hidden hands drawn by exact counting, for announcements that shuffles rarely meet.

Room: engine. May import: engine.bits, jit, rng, and of Cuarenta state, rules and encoder.

Ranks are dealt out one after another. ``ways[rank, a, b, c, need]`` is the number of worlds of the
ranks from ``rank`` on in which the three hidden hands still take a, b and c cards, and the seats of
the bit set ``need`` still lack the three of a rank that they announced. What no hand takes stays in
the stock. Counts are at most 35! / (5!^3 20!) < 2^53, so float64 holds them exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.bits import U0, bit, fill_cards
from engine.games.cuarenta_encoder import cards_in_hand, unseen_cards
from engine.games.cuarenta_rules import count_of_rank
from engine.games.cuarenta_state import (
    CARDS_PER_DEAL,
    NIBBLE,
    NUM_RANKS,
    NUM_SUITS,
    RONDA_ABSENT,
    RONDA_ANNOUNCED,
    RONDA_RANK,
)
from engine.jit import kernel
from engine.rng import below, uniform

_HIDDEN = 3
"""Hidden hands at most; with two players two of them take no card."""
_CHOOSE = np.array(
    [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 2, 1, 0, 0], [1, 3, 3, 1, 0], [1, 4, 6, 4, 1]],
    dtype=np.float64,
)


class Slots(NamedTuple):
    """What the hidden hands may take. H = 3 hands, R = 10 ranks, T = 0 .. 4 cards of a rank."""

    sizes: Any
    """int64[H] cards in hand."""
    allowed: Any
    """bool[H, R, T] whether a hand may hold T cards of a rank."""
    three: Any
    """bool[H, R, T] whether these make three of the rank among the five cards dealt."""
    unseen: Any
    """int64[R] unseen cards of each rank."""
    ways: Any
    """float64[R + 1, 6, 6, 6, 8], see above."""


@kernel
def _new_slots(game: Any, view: Any, seat: Any) -> Any:
    """Return the slots of the seats after ``seat``, and the set of those that lack a three."""
    sizes = np.zeros(_HIDDEN, np.int64)
    allowed = np.ones((_HIDDEN, NUM_RANKS, NUM_SUITS + 1), np.bool_)
    three = np.zeros((_HIDDEN, NUM_RANKS, NUM_SUITS + 1), np.bool_)
    unseen = np.zeros(NUM_RANKS, np.int64)
    size = CARDS_PER_DEAL + 1
    ways = np.zeros((NUM_RANKS + 1, size, size, size, 1 << _HIDDEN))
    need = 0
    for slot in range(game.players - 1):
        other = (seat + 1 + slot) % game.players
        ronda = np.int64(view.ronda[other])
        sizes[slot] = cards_in_hand(view, other)
        if ronda == RONDA_ANNOUNCED:
            need |= 1 << slot
        for rank in range(NUM_RANKS):
            played = count_of_rank(view.played[other], rank)
            for taken in range(NUM_SUITS + 1):
                dealt = played + taken
                three[slot, rank, taken] = dealt == 3
                if (
                    (game.four_of_a_kind and dealt == 4)
                    or (ronda == RONDA_ABSENT and dealt == 3)
                    or (ronda - RONDA_RANK == rank and dealt != 3)
                ):
                    allowed[slot, rank, taken] = False
    mask = unseen_cards(view, seat)
    for rank in range(NUM_RANKS):
        unseen[rank] = count_of_rank(mask, rank)
    return Slots(sizes, allowed, three, unseen, ways), need


@kernel
def _weigh(slots: Any, rank: Any, left: Any, need: Any, weights: Any) -> Any:
    """Write the number of worlds of every split of ``rank`` to ``weights``; return their sum.

    ``weights`` is float64[T, T, T]: cards that the three hands take. ``left`` is int64[H].
    """
    weights[:] = 0.0
    total = 0.0
    unseen = slots.unseen[rank]
    for a in range(min(unseen, left[0]) + 1):
        if not slots.allowed[0, rank, a]:
            continue
        need_a = need & ~1 if slots.three[0, rank, a] else need
        for b in range(min(unseen - a, left[1]) + 1):
            if not slots.allowed[1, rank, b]:
                continue
            need_b = need_a & ~2 if slots.three[1, rank, b] else need_a
            suits = _CHOOSE[unseen, a] * _CHOOSE[unseen - a, b]
            for c in range(min(unseen - a - b, left[2]) + 1):
                if not slots.allowed[2, rank, c]:
                    continue
                need_c = need_b & ~4 if slots.three[2, rank, c] else need_b
                weight = (
                    suits
                    * _CHOOSE[unseen - a - b, c]
                    * slots.ways[rank + 1, left[0] - a, left[1] - b, left[2] - c, need_c]
                )
                weights[a, b, c] = weight
                total += weight
    return total


@kernel
def _fill_ways(slots: Any, need: Any, weights: Any) -> None:
    """Fill ``slots.ways`` from the last rank to the first, for the subsets of ``need``."""
    slots.ways[NUM_RANKS, 0, 0, 0, 0] = 1.0
    left = np.zeros(_HIDDEN, np.int64)
    sizes = slots.sizes
    for rank in range(NUM_RANKS - 1, -1, -1):
        for a in range(sizes[0] + 1):
            for b in range(sizes[1] + 1):
                for c in range(sizes[2] + 1):
                    left[0], left[1], left[2] = a, b, c
                    for subset in range(need + 1):
                        if subset & ~need == 0:
                            slots.ways[rank, a, b, c, subset] = _weigh(
                                slots, rank, left, subset, weights
                            )


@kernel
def _pick_split(weights: Any, threshold: Any, split: Any) -> None:
    """Write to ``split`` (int64[H]) the split at which the running sum passes ``threshold``."""
    for a in range(NUM_SUITS + 1):
        for b in range(NUM_SUITS + 1):
            for c in range(NUM_SUITS + 1):
                weight = weights[a, b, c]
                if weight > 0.0:
                    split[0], split[1], split[2] = a, b, c
                    threshold -= weight
                    if threshold < 0.0:
                        return


@kernel
def count_hands(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> Any:
    """Write a uniform draw of the other hands to ``out``; return whether there is any.

    ``out`` already holds the public part and the own hand; it may be ``view`` itself.
    """
    slots, need = _new_slots(game, view, seat)
    weights = np.zeros((NUM_SUITS + 1, NUM_SUITS + 1, NUM_SUITS + 1))
    _fill_ways(slots, need, weights)
    left = slots.sizes.copy()
    if slots.ways[0, left[0], left[1], left[2], need] == 0.0:
        return False
    unseen = unseen_cards(view, seat)
    cards = np.empty(NUM_SUITS, np.uint8)
    split = np.zeros(_HIDDEN, np.int64)
    for slot in range(game.players - 1):
        out.hands[(seat + 1 + slot) % game.players] = U0
    for rank in range(NUM_RANKS):
        total = _weigh(slots, rank, left, need, weights)
        _pick_split(weights, uniform(rng) * total, split)
        remaining = fill_cards(unseen & (NIBBLE << np.uint64(4 * rank)), cards)
        for slot in range(game.players - 1):
            left[slot] -= split[slot]
            if slots.three[slot, rank, split[slot]]:
                need &= ~(1 << slot)
            for _ in range(split[slot]):
                pick = below(rng, remaining)
                remaining -= 1
                out.hands[(seat + 1 + slot) % game.players] |= bit(cards[pick])
                cards[pick] = cards[remaining]
    return True
