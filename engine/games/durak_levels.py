"""Durak: the greedy player of medium strength, and what search by sampled worlds is told.

Room: engine. May import: engine.bits, jit, and of Durak state and rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, lowest, popcount, without_lowest
from engine.games.durak_rules import (
    playable_cards,
    rank_of,
    suit_cards,
    suit_of,
    table_cards,
    write_actions,
)
from engine.games.durak_state import (
    ATTACK,
    DEFEND,
    HAND_SIZE,
    MAX_ACTIONS,
    NUM_CARDS,
    NUM_RANKS,
    PASS,
    SHOW,
    TAKING,
    TRANSFER,
)
from engine.jit import kernel

_NONE = 1000


@kernel
def cost_of(view: Any, card: Any) -> Any:
    """Return what a card is worth keeping: its rank, and all trumps above all plain cards."""
    return rank_of(card) + (NUM_RANKS if suit_of(card) == view.trump else 0)


@kernel
def _cheapest(view: Any, cards: Any) -> Any:
    """Return the cheapest card of a set, the lowest suit of equal ones; -1 for the empty set."""
    best = np.int64(-1)
    least = _NONE
    while cards != U0:
        card = lowest(cards)
        cards &= cards - np.uint64(1)
        cost = cost_of(view, card)
        if cost < least:
            least = cost
            best = card
    return best


@kernel
def greedy_action(game: Any, view: Any) -> Any:
    """Return the greedy player's action for the seat to move.

    It attacks with its cheapest card, covers with the cheapest that beats and throws in plain cards
    alone, the cheapest first. It passes an attack on where a plain card does that, or a card that
    is cheaper than the cover or that it would else have to take for; it never exchanges the six or
    attacks with more than one card.
    """
    cards = playable_cards(game, view)
    if view.phase == ATTACK:
        return _cheapest(view, cards)
    if view.phase != DEFEND:
        plain = _cheapest(view, cards & ~suit_cards(view.trump))
        return plain if plain >= 0 else PASS
    cover = _cheapest(view, cards)
    if game.transfer == 0:
        return cover if cover >= 0 else PASS
    actions = np.empty(MAX_ACTIONS, np.int64)
    best = cover if cover >= 0 else PASS
    least = cost_of(view, cover) if cover >= 0 else _NONE
    for i in range(write_actions(game, view, actions)):
        code = actions[i]
        if TRANSFER <= code < SHOW and cost_of(view, code - TRANSFER) < least:
            least = cost_of(view, code - TRANSFER)
            best = code
        elif SHOW <= code < SHOW + NUM_CARDS:
            return code  # it costs nothing
    return best


# --- search by sampled worlds ---------------------------------------------------------------------
DEEPER_AT_THE_END = 4
_AFTER_CARDS, _OTHERWISE = 40, 60
"""Places of passing and taking, and of what costs nothing, among cards that are told by cost."""


@kernel
def order_actions(game: Any, view: Any, actions: Any, count: Any, most: Any) -> Any:
    """Put what costs least first; return how many of the actions to try, ``most`` at the most.

    Passing and taking are always among them.
    """
    costs = np.empty(MAX_ACTIONS, np.int64)
    for i in range(count):
        code = actions[i]
        if code < PASS:
            costs[i] = cost_of(view, code)
        elif code == PASS:
            # A trump is thrown in rather than nothing only at the end, so passing comes before it.
            costs[i] = _AFTER_CARDS if view.phase == DEFEND else NUM_RANKS
        elif code < SHOW:
            costs[i] = cost_of(view, code - TRANSFER)
        else:
            costs[i] = 0 if code < SHOW + NUM_CARDS else _OTHERWISE
    for i in range(1, count):  # insertion sort, stable
        code, cost = actions[i], costs[i]
        k = i
        while k > 0 and costs[k - 1] > cost:
            actions[k], costs[k] = actions[k - 1], costs[k - 1]
            k -= 1
        actions[k], costs[k] = code, cost
    if count <= most:
        return count
    for i in range(most, count):
        if actions[i] == PASS:
            actions[most - 1] = PASS
    return most


@kernel
def strength(view: Any, seat: Any) -> Any:
    """Return how good the hand of ``seat`` is: good cards, and few of them once none are drawn."""
    hand = view.hands[seat]
    if view.phase == TAKING and view.defender == seat:
        hand |= table_cards(view)
    size = popcount(hand)
    total = -0.9 * size if view.stock_size == 0 else -0.4 * max(size - HAND_SIZE, 0)
    while hand != U0:
        total += (cost_of(view, lowest(hand)) - 6.0) / 8.0
        hand = without_lowest(hand)
    return total


@kernel
def guess(game: Any, state: Any, seat: Any) -> Any:
    """Return a guess of the outcome for ``seat``: how much stronger it is than the others."""
    others = 0.0
    num_others = 0
    for other in range(game.players):
        if other != seat and state.finished[other] == 0:
            others += strength(state, other)
            num_others += 1
    if state.finished[seat] > 0 or num_others == 0:
        return 0.9 if num_others > 0 else -0.9
    lead = strength(state, seat) - others / num_others
    return lead / (4.0 + abs(lead))
