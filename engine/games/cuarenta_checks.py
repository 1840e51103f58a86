"""Cuarenta: what makes the numbers of a record a position, in numpy. For records from outside.

Room: engine. May import: numpy, engine.layout, rules (sentinels), and of Cuarenta state.

All that compiled code relies on: where the cards are, whose turn it is, that a deal finds its cards
and that a score between two hands has its row in the equity table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.games.cuarenta_state import ALL_CARDS, CARDS_PER_DEAL, MAX_HANDS, NUM_CARDS
from engine.layout import Relation
from engine.rules import CHANCE, TERMINAL


def _sizes(cards: Any) -> Any:
    """Return the number of cards in each set as int64."""
    return np.bitwise_count(cards).astype(np.int64)


def every_card_once(game: Any, states: Any, seats: Any) -> Any:
    """Hands, table, piles and stock have each of the cards in one of them."""
    parts = np.concatenate(
        [states["hands"], states["piles"], states["table"][:, None], states["stock"][:, None]],
        axis=1,
    )
    whole = np.bitwise_or.reduce(parts, axis=1) == ALL_CARDS
    return whole & (_sizes(parts).sum(axis=1) == NUM_CARDS)


def every_ply_a_card(game: Any, states: Any, seats: Any) -> Any:
    """Every ply of the hand brought a card to the table or a pile; five are a deal's hand."""
    on_table = _sizes(states["table"]) + _sizes(states["piles"]).sum(axis=1)
    held = _sizes(states["hands"][:, : game.players])
    played = _sizes(states["played"][:, : game.players])
    return (on_table == states["plies_in_hand"]) & np.all(held + played == CARDS_PER_DEAL, axis=1)


def turns_go_round(game: Any, states: Any, seats: Any) -> Any:
    """The seat to move follows from the plies of the deal; so does who has played how often."""
    plies = states["plies_in_hand"].astype(np.int64)
    to_move, dealer = states["to_move"].astype(np.int64), states["dealer"].astype(np.int64)
    whole = CARDS_PER_DEAL * game.players
    in_deal = np.where(to_move == CHANCE, whole, plies % whole)
    turn = (np.arange(game.players) - dealer[:, None] - 1) % game.players
    expected = (in_deal[:, None] + game.players - 1 - turn) // game.players
    played = _sizes(states["played"][:, : game.players])
    right = to_move == (dealer + 1 + in_deal) % game.players
    waits = (to_move == CHANCE) & (plies % whole == 0) & (plies > 0)
    goes_on = (right | waits) & np.all(played == expected, axis=1)
    return goes_on | (to_move == TERMINAL)


def hands_go_on(game: Any, states: Any, seats: Any) -> Any:
    """Between two hands no side has won, and there may be another hand."""
    between = (states["to_move"] == CHANCE) & (states["plies_in_hand"] == NUM_CARDS)
    open_game = np.all(states["scores"] < game.target, axis=1)
    return ~between | (open_game & (states["hand_index"] < MAX_HANDS - 1))


def reference_lies_on_the_table(game: Any, states: Any, seats: Any) -> Any:
    """The card open to a caida is on the table."""
    ref = states["ref"].astype(np.int64)
    on_table = (states["table"] >> np.maximum(ref, 0).astype(np.uint64)) & np.uint64(1)
    return (ref < 0) | (on_table == 1)


STATE_RELATIONS: dict[str, Relation] = {
    "every card is in one place": every_card_once,
    "every ply brought a card": every_ply_a_card,
    "turns go round": turns_go_round,
    "hands go on": hands_go_on,
    "the reference lies on the table": reference_lies_on_the_table,
}
