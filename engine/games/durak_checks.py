"""Durak: what makes the numbers of a record a position, in numpy. For records from outside.

Room: engine. May import: numpy, engine.layout, rules (sentinels), and of Durak state.

All that compiled code relies on: cards where it looks for cards, each in one place, as many attacks
as the arrays have room for, and somebody who can move.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.games.durak_state import (
    ALL_CARDS,
    ATTACK,
    BEATEN,
    DEFEND,
    HAND_SIZE,
    MAX_ATTACKS,
    MAX_STOCK,
    NUM_CARDS,
    OVER,
    SHOWN_SEAT,
    THROW_IN,
)
from engine.layout import Relation
from engine.rules import CHANCE, TERMINAL

_ONE = np.uint64(1)


def _sizes(cards: Any) -> Any:
    """Return the number of cards in each set as int64."""
    return np.bitwise_count(cards).astype(np.int64)


def _cards_in(entries: Any, counts: Any) -> Any:
    """Return the set of the cards among the first ``counts`` [N] of the entries [N, E]."""
    used = np.arange(entries.shape[1]) < counts[:, None]
    bits = np.where(used & (entries >= 0), _ONE << np.maximum(entries, 0).astype(np.uint64), 0)
    return np.bitwise_or.reduce(bits.astype(np.uint64), axis=1)


def table_has_cards(game: Any, records: Any, seats: Any) -> Any:
    """Attacks are cards; where something is to be covered there is one that is not."""
    count = records["num_attacks"].astype(np.int64)
    used = np.arange(MAX_ATTACKS) < count[:, None]
    open_attack = records["num_covers"] < records["num_attacks"]
    return np.all((records["attacks"] >= 0) | ~used, axis=1) & (
        open_attack | (records["phase"] != DEFEND)
    )


def bottom_is_a_card(game: Any, records: Any, seats: Any) -> Any:
    """A stock has a card at its bottom."""
    return (records["stock"][:, 0] >= 0) | (records["stock_size"] == 0)


def every_card_once(game: Any, states: Any, seats: Any) -> Any:
    """No card is in two places; those that are nowhere were seen, on the discard pile."""
    attacks = _cards_in(states["attacks"], states["num_attacks"])
    stock = _cards_in(states["stock"], states["stock_size"])
    parts = np.concatenate(
        [states["hands"], np.stack([states["covers"], attacks, stock], axis=1)], axis=1
    )
    union = np.bitwise_or.reduce(parts, axis=1)
    whole = (_sizes(attacks) == states["num_attacks"]) & (_sizes(stock) == states["stock_size"])
    return (
        whole & (_sizes(parts).sum(axis=1) == _sizes(union)) & (union | states["seen"] == ALL_CARDS)
    )


def what_is_seen_agrees(game: Any, states: Any, seats: Any) -> Any:
    """All have seen the table and the bottom of the stock, and nothing above it."""
    table = states["covers"] | _cards_in(states["attacks"], states["num_attacks"])
    stock = _cards_in(states["stock"], states["stock_size"])
    bottom = _cards_in(states["stock"], np.minimum(states["stock_size"], 1))
    return (table & ~states["seen"] == 0) & (stock & states["seen"] == bottom)


def counts_agree(game: Any, states: Any, seats: Any) -> Any:
    """Sizes are those of the hands; covers are counted; the defender's hand is what it was."""
    sizes = states["sizes"].astype(np.int64)
    covers = states["num_covers"].astype(np.int64)
    defends = np.take_along_axis(sizes, states["defender"][:, None].astype(np.int64), axis=1)[:, 0]
    hand = (states["defender_cards"] == defends + covers) | (states["phase"] >= BEATEN)
    counted = (_sizes(states["covers"]) == covers) & (covers <= states["num_attacks"])
    behind = np.arange(MAX_STOCK) >= states["stock_size"][:, None]
    empty = np.all((states["stock"] < 0) | ~behind, axis=1)
    return np.all(_sizes(states["hands"]) == sizes, axis=1) & counted & hand & empty


def turn_agrees(game: Any, states: Any, seats: Any) -> Any:
    """Whose turn it is follows from the phase, and there is something to do."""
    phase, to_move = states["phase"], states["to_move"].astype(np.int64)
    attacker, defender = states["attacker"], states["defender"]
    held = np.take_along_axis(states["sizes"], np.maximum(to_move, 0)[:, None], axis=1)[:, 0]
    opens = (to_move == attacker) & (held > 0) & (states["num_attacks"] == 0)
    throws = (to_move >= 0) & (to_move != defender) & (states["num_attacks"] > 0)
    draws = (to_move == CHANCE) & (states["num_attacks"] == 0) & (states["stock_size"] > 0)
    right = np.select(
        [phase == ATTACK, phase == DEFEND, phase < BEATEN, phase < OVER],
        [opens, to_move == defender, throws, draws],
        to_move == TERMINAL,
    )
    others = (attacker != defender) | (phase >= BEATEN)
    covered = (phase != THROW_IN) | (states["num_covers"] == states["num_attacks"])
    return right & others & covered & ((to_move < 0) | (states["plies"] < game.max_plies))


def who_is_out_has_nothing(game: Any, states: Any, seats: Any) -> Any:
    """Seats that are out hold no card; who attacks or defends is in, and so are two seats."""
    out = states["finished"][:, : game.players] > 0
    roles = np.stack([states["attacker"], states["defender"]], axis=1).astype(np.int64)
    active = ~np.take_along_axis(out, roles, axis=1).any(axis=1)
    empty = np.all((states["sizes"][:, : game.players] == 0) | ~out, axis=1)
    return (empty & active & ((~out).sum(axis=1) > 1)) | (states["phase"] >= BEATEN)


def what_was_shown_agrees(game: Any, states: Any, seats: Any) -> Any:
    """A seat has shown, or still hides, each card that it was given; none before it had it."""
    first = states["first_shown"].astype(np.int64)
    by, since = np.divmod(first, SHOWN_SEAT)
    seen = states["seen"][:, None] >> np.arange(NUM_CARDS, dtype=np.uint64) & _ONE
    right = np.all((first == 0) | (seen == 1), axis=1)
    for seat in range(game.players):
        own = (first > 0) & (by == seat)
        given = states["given"][:, seat].astype(np.int64)
        hidden = _sizes(states["hands"][:, seat] & ~states["seen"])
        right &= hidden + own.sum(axis=1) == given
        right &= np.all(~own | ((since >= HAND_SIZE) & (since <= given[:, None])), axis=1)
        for count in range(HAND_SIZE, HAND_SIZE + MAX_STOCK + 1):
            right &= (own & (since <= count)).sum(axis=1) <= count
    return right


VIEW_RELATIONS: dict[str, Relation] = {
    "attacks are cards": table_has_cards,
    "the stock has a bottom": bottom_is_a_card,
}
STATE_RELATIONS: dict[str, Relation] = {
    **VIEW_RELATIONS,
    "every card is in one place": every_card_once,
    "what all have seen": what_is_seen_agrees,
    "sizes and counts": counts_agree,
    "the turn": turn_agrees,
    "who is out": who_is_out_has_nothing,
    "what seats have shown": what_was_shown_agrees,
}
