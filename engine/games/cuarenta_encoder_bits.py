"""Cuarenta: the encoder ``bits`` - every card by itself, 208 numbers a view and 84 a candidate.

Room: engine. May import: engine.bits, jit, and of Cuarenta state, rules and the other encoder.

The plain encoding: sets of cards as 40 numbers each, with the suits that the engine happens to have
dealt (no rule asks for one, so a network has to find out that suits are alike). Beside ``ranks`` it
shows what the knowledge in that one is worth, and reads models that know no more than this. Dealer,
announcements and unseen cards are not in it.

All features lie in about [0, 1]. Sets of cards are 1 at ``rank * 4 + suit`` of each card in them.
"Own" and "other" are sides, relative to the observing seat; seats are counted from the observer
(own, next, partner, previous).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import lowest, popcount
from engine.games.cuarenta_encoder import stock_size, write_bits
from engine.games.cuarenta_rules import (
    action_base,
    action_rank,
    is_caida,
    is_paid_limpia,
    taken_cards,
)
from engine.games.cuarenta_state import MAX_SEATS, NIBBLE, NUM_CARDS, PLACE
from engine.jit import kernel

# --- observation: offsets as a sum of sections ----------------------------------------------------
O_HAND = 0  # own hand: 40 cards
O_TABLE = O_HAND + NUM_CARDS  # table: 40 cards
O_OWN_PILE = O_TABLE + NUM_CARDS  # own side's pile: 40 cards
O_OTHER_PILE = O_OWN_PILE + NUM_CARDS  # other side's pile: 40 cards
O_REF = O_OTHER_PILE + NUM_CARDS  # the last placed card, while it is open to a caida: 40 cards
O_OWN_SCORE = O_REF + NUM_CARDS  # own side's score / 40
O_OTHER_SCORE = O_OWN_SCORE + 1  # other side's score / 40
O_MOVER = O_OTHER_SCORE + 1  # (relative seat to move + 1) / 4; 0 between deals
O_STOCK = O_MOVER + 1  # cards in the stock / 40; 0 before a new hand too
O_PLAYS = O_STOCK + 1  # share of its cards of this hand played, by relative seat (tenths with four)
OBSERVATION_SIZE = O_PLAYS + MAX_SEATS  # 208

# --- action ---------------------------------------------------------------------------------------
A_CARD = 0  # card played, the lowest suit of its rank in hand: 40 cards
A_TAKEN = A_CARD + NUM_CARDS  # table cards taken: 40 cards
A_CAIDA = A_TAKEN + NUM_CARDS  # scores a caida
A_LIMPIA = A_CAIDA + 1  # clears the table, and that pays
A_NUM_TAKEN = A_LIMPIA + 1  # number of table cards taken / 6
A_PLACE = A_NUM_TAKEN + 1  # placed: takes nothing
ACTION_SIZE = A_PLACE + 1  # 84


@kernel
def encode_view_bits(game: Any, view: Any, seat: Any, out: Any) -> None:
    """Write the observation (``float32[OBSERVATION_SIZE]``)."""
    own = seat & 1
    for i in range(OBSERVATION_SIZE):
        out[i] = 0.0
    write_bits(view.hands[seat], out, O_HAND)
    write_bits(view.table, out, O_TABLE)
    write_bits(view.piles[own], out, O_OWN_PILE)
    write_bits(view.piles[1 - own], out, O_OTHER_PILE)
    if view.ref >= 0:
        out[O_REF + np.int64(view.ref)] = 1.0
    out[O_OWN_SCORE] = np.float32(view.scores[own]) / np.float32(40.0)
    out[O_OTHER_SCORE] = np.float32(view.scores[1 - own]) / np.float32(40.0)
    out[O_STOCK] = np.float32(stock_size(game, view)) / np.float32(40.0)
    plies, first = np.int64(view.plies_in_hand), np.int64(view.dealer) + 1
    for relative in range(game.players):
        if view.to_move == (seat + relative) % game.players:
            out[O_MOVER] = np.float32(relative + 1) / np.float32(MAX_SEATS)
        # The seat after the dealer begins every deal of a hand, and nobody is ever passed over.
        turn = (seat + relative + game.players - first) % game.players
        plays = (plies + game.players - 1 - turn) // game.players
        out[O_PLAYS + relative] = np.float32(plays * game.players) / np.float32(NUM_CARDS)


@kernel
def encode_actions_bits(game: Any, view: Any, actions: Any, count: Any, out: Any) -> None:
    """Write the features of ``actions[:count]`` (``float32[>= count, ACTION_SIZE]``)."""
    hand = view.hands[view.to_move]
    for i in range(count):
        code = actions[i]
        features = out[i]
        for k in range(ACTION_SIZE):
            features[k] = 0.0
        rank = action_rank(code)
        features[A_CARD + lowest(hand & (NIBBLE << np.uint64(4 * rank)))] = 1.0
        taken = taken_cards(game, view.table, view.ref, code)
        write_bits(taken, features, A_TAKEN)
        caida = is_caida(game, view, code, taken)
        features[A_CAIDA] = np.float32(caida)
        features[A_LIMPIA] = np.float32(is_paid_limpia(game, view, taken, caida))
        features[A_NUM_TAKEN] = np.float32(popcount(taken)) / np.float32(6.0)
        if action_base(code) == PLACE:
            features[A_PLACE] = 1.0
