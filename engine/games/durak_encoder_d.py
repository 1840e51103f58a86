"""Durak: the encoders of report D - 235 numbers, and one action of 37, or of 73 with transfers.

Room: engine. May import: engine.bits, jit, and of Durak state, rules and counting.

Cards are told apart by suit and rank, ``suit * 9 + rank``. The 37 actions are the cards, and
passing or taking; passing on with a card has 36 more, which ``report_d`` gives the number of the
card alone. What neither has a number for (sets of cards, showing, exchanging the six) is described
by the cards that it is about.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, lowest, without_lowest
from engine.games.durak_rules import discarded, known_cards, rank_of, table_cards
from engine.games.durak_state import (
    ALL_CARDS,
    DEFEND,
    MAX_STOCK,
    MULTI,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SUITS,
    PASS,
    SHOW,
    SUIT_SETS,
    SWAP,
    TRANSFER,
)
from engine.jit import kernel

# --- observation: offsets as a sum of sections ----------------------------------------------------
D_HAND = 0  # own hand
D_TAKEN = D_HAND + NUM_CARDS  # cards that others took and still hold
D_ATTACKS = D_TAKEN + NUM_CARDS
D_COVERS = D_ATTACKS + NUM_CARDS
D_DISCARD = D_COVERS + NUM_CARDS
D_UNSEEN = D_DISCARD + NUM_CARDS  # neither in the own hand, on the table nor discarded
D_TRUMP = D_UNSEEN + NUM_CARDS  # suit
D_TURNED_UP = D_TRUMP + NUM_SUITS  # rank of the card turned up
D_STOCK = D_TURNED_UP + NUM_RANKS  # its size / 24
D_OTHERS = D_STOCK + 1  # cards of the other seats / 36
D_ATTACKER = D_OTHERS + 1  # the observer attacks
D_DEFENDING = D_ATTACKER + 1  # there is something to cover
D_EMPTY = D_DEFENDING + 1  # the stock is
D_DEFENDER = D_EMPTY + 1  # the observer defends
D_OBSERVATION_SIZE = D_DEFENDER + 1

D_ACTION_SIZE = PASS + 1
D_TRANSFER_ACTION_SIZE = D_ACTION_SIZE + NUM_CARDS


@kernel
def _write_cards(mask: Any, out: Any, offset: Any) -> None:
    """Set ``out[offset + card]`` for each card of ``mask``."""
    while mask != U0:
        out[offset + lowest(mask)] = 1.0
        mask = without_lowest(mask)


@kernel
def encode_view_d(game: Any, view: Any, seat: Any, out: Any) -> None:
    """Write the observation (``float32[D_OBSERVATION_SIZE]``)."""
    for i in range(D_OBSERVATION_SIZE):
        out[i] = 0.0
    own = view.hands[seat]
    others = np.int64(0)
    for other in range(game.players):
        if other != seat:
            others += np.int64(view.sizes[other])
            # A card of the stock's bottom is known too, and was never shown by anybody.
            known = known_cards(view, other)
            while known != U0:
                card = lowest(known)
                known = without_lowest(known)
                if view.first_shown[card] != 0:
                    out[D_TAKEN + card] = 1.0
    _write_cards(own, out, D_HAND)
    for i in range(view.num_attacks):
        out[D_ATTACKS + np.int64(view.attacks[i])] = 1.0
    discard = discarded(view)
    _write_cards(view.covers, out, D_COVERS)
    _write_cards(discard, out, D_DISCARD)
    _write_cards(ALL_CARDS & ~(own | table_cards(view) | discard), out, D_UNSEEN)
    out[D_TRUMP + np.int64(view.trump)] = 1.0
    out[D_TURNED_UP + rank_of(view.turned_up)] = 1.0
    out[D_STOCK] = np.float32(view.stock_size) / np.float32(MAX_STOCK)
    out[D_OTHERS] = np.float32(others) / np.float32(NUM_CARDS)
    out[D_ATTACKER] = 1.0 if view.attacker == seat else 0.0
    out[D_DEFENDING] = 1.0 if view.phase == DEFEND else 0.0
    out[D_EMPTY] = 1.0 if view.stock_size == 0 else 0.0
    out[D_DEFENDER] = 1.0 if view.defender == seat else 0.0


@kernel
def encode_actions_d(view: Any, actions: Any, count: Any, transfers: Any, out: Any) -> None:
    """Write the features of ``actions[:count]``, one of 37 or (with ``transfers``) of 73."""
    size = D_TRANSFER_ACTION_SIZE if transfers else D_ACTION_SIZE
    passed_on = D_ACTION_SIZE if transfers else 0
    for i in range(count):
        code = np.int64(actions[i])
        for k in range(size):
            out[i, k] = 0.0
        if code <= PASS:
            out[i, code] = 1.0
        elif code < SHOW:
            out[i, passed_on + code - TRANSFER] = 1.0
        elif code < SWAP:
            out[i, passed_on + code - SHOW] = 1.0
            out[i, PASS] = 1.0
        elif code == SWAP:
            out[i, NUM_RANKS * np.int64(view.trump)] = 1.0
            out[i, PASS] = 1.0
        else:
            rank, suits = (code - MULTI) // SUIT_SETS, (code - MULTI) % SUIT_SETS
            for suit in range(NUM_SUITS):
                if (suits >> suit) & 1:
                    out[i, suit * NUM_RANKS + rank] = 1.0
