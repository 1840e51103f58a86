"""Leduc poker: rule options, the state record, what a record may hold, and the codes of actions.

Room: engine. May import: engine.layout, engine.rules (sentinels), numpy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.layout import PERHAPS_SHOWN, SHOWN_TO_OWN, Field, Relation
from engine.rules import CHANCE, TERMINAL

FOLD, CALL, RAISE = 0, 1, 2
"""A call that nothing faces is a check."""
NO_CARD = -1
NUM_RANKS, NUM_COPIES = 3, 2
NUM_CARDS = NUM_RANKS * NUM_COPIES
NUM_ROUNDS = 2
MOST_RAISES = 4
MAX_MOVES = MOST_RAISES + 2
"""Moves of a round at the most: a check, all raises, a call."""


class Leduc(NamedTuple):
    """Options of Leduc poker."""

    ante: int = 1
    first_raise: int = 2
    second_raise: int = 4
    max_raises: int = 2


STATE = np.dtype(
    (
        np.record,
        [
            ("cards", np.int8, (2,)),  # rank in hand: 0 J, 1 Q, 2 K; NO_CARD in a view: hidden
            ("board", np.int8),  # rank of the card to turn up; NO_CARD in a view: still hidden
            ("shown", np.int8),  # 1 once it is turned up
            ("betting_round", np.int8),  # 0 or 1
            ("num_moves", np.int8, (NUM_ROUNDS,)),
            ("moves", np.int8, (NUM_ROUNDS, MAX_MOVES)),  # FOLD, CALL or RAISE; 0 where none yet
            ("raises", np.int8),  # of the present round
            ("to_move", np.int8),  # seat, CHANCE or TERMINAL
            ("folded", np.int8),  # seat that folded, or NO_CARD
            ("paid", np.int16, (2,)),  # chips in the pot by seat
        ],
    )
)


def fields(game: Any) -> dict[str, Field]:
    return {
        "cards": Field(0, NUM_RANKS - 1, shown=SHOWN_TO_OWN, blank=NO_CARD),
        "board": Field(0, NUM_RANKS - 1, shown=PERHAPS_SHOWN, blank=NO_CARD),
        "shown": Field(0, 1),
        "betting_round": Field(0, NUM_ROUNDS - 1),
        "num_moves": Field(0, MAX_MOVES),
        "moves": Field(FOLD, RAISE),
        "raises": Field(0, game.max_raises),
        "to_move": Field(TERMINAL, 1),
        "folded": Field(NO_CARD, 1),
        "paid": Field(0, game.ante + game.max_raises * (game.first_raise + game.second_raise)),
    }


def _board_agrees(game: Any, views: Any, seats: Any) -> Any:
    """A view has the card on the board exactly when it is turned up."""
    return (views["board"] == NO_CARD) == (views["shown"] == 0)


def _cards_agree(game: Any, states: Any, seats: Any) -> Any:
    """The deck has two cards of each rank."""
    first, second = states["cards"].T
    return ~((first == second) & (first == states["board"]))


def _rounds_agree(game: Any, states: Any, seats: Any) -> Any:
    """Round, board and moves fit; the opener checked before the raises or did not."""
    index, to_move = states["betting_round"], states["to_move"]
    moves = np.take_along_axis(states["num_moves"], index[:, None].astype(np.int64), axis=1)[:, 0]
    extra = moves - states["raises"]
    decides = to_move >= 0
    faced = states["paid"][:, 0] != states["paid"][:, 1]
    fits = ((extra == 0) | (extra == 1)) & (to_move == moves % 2)
    fits &= faced == (states["raises"] > 0)
    between = (to_move != CHANCE) | (index == 0)
    later = (index == 1) | (states["num_moves"][:, 1] == 0)
    return (states["shown"] == index) & between & later & (fits | ~decides)


VIEW_RELATIONS: dict[str, Relation] = {"the board": _board_agrees}
STATE_RELATIONS: dict[str, Relation] = {"the cards": _cards_agree, "the rounds": _rounds_agree}
