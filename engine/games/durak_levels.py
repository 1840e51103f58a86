"""Durak: the greedy player of medium strength, and what its choices cost.

Room: engine. May import: engine.bits, jit, and of Durak state and rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, lowest
from engine.games.durak_rules import (
    playable_cards,
    rank_of,
    suit_cards,
    suit_of,
    write_actions,
)
from engine.games.durak_state import (
    ATTACK,
    DEFEND,
    MAX_ACTIONS,
    NUM_CARDS,
    NUM_RANKS,
    PASS,
    SHOW,
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
