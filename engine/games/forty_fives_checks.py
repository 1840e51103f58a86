"""Forty-fives: what makes the numbers of a record a position, in numpy. For records from outside.

Room: engine. May import: numpy, engine.layout, rules (sentinels), and of Forty-fives state.

All that compiled code relies on: each card in one place, hands of the sizes that the phase has, a
trick that is what was played to it, and a turn that follows from all this.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.games.forty_fives_state import (
    AFTER_KITTY,
    ALL_CARDS,
    AUCTION,
    BEFORE_KITTY,
    DISCARD,
    DRAW,
    HAND_END,
    HAND_SIZE,
    KITTY,
    LACKED_TRUMPS,
    LACKS_SHIFT,
    MAX_HANDS,
    NUM_CARDS,
    NUM_SEATS,
    NUM_SUITS,
    NUM_TRICKS,
    OVER,
    PLAIN,
    PLAY,
    TRUMP,
)
from engine.layout import Relation
from engine.rules import CHANCE, TERMINAL

_ONE = np.uint64(1)
_SEATS = np.arange(NUM_SEATS)


def _sizes(cards: Any) -> Any:
    """Return the number of cards in each set as int64."""
    return np.bitwise_count(cards).astype(np.int64)


def _column(records: Any, name: str) -> Any:
    return records[name].astype(np.int64)


def _of_seat(entries: Any, seats: Any) -> Any:
    """Return the entry of one seat in each record; of seat 0 where there is none."""
    return np.take_along_axis(entries, np.maximum(seats, 0)[:, None], axis=1)[:, 0]


def _tricks(records: Any) -> Any:
    """Return (played [N, T, seats], whether a card lies there by number, leader and turn)."""
    played = records["played"].reshape(len(records), NUM_TRICKS, NUM_SEATS)
    number, place = np.divmod(_column(records, "num_played"), NUM_SEATS)
    turn = (_SEATS - _column(records, "leader")[:, None]) % NUM_SEATS
    trick = np.arange(NUM_TRICKS)
    whole = (trick < number[:, None])[:, :, None]
    present = (trick == number[:, None])[:, :, None] & (turn < place[:, None])[:, None, :]
    return played, whole | present


def trick_has_cards(game: Any, records: Any, seats: Any) -> Any:
    """In play there is a trump, a card to come, and what was played is cards."""
    played, lies = _tricks(records)
    cards = np.all((played >= 0) | ~lies, axis=(1, 2))
    plays = (records["trump"] >= 0) & (records["num_played"] < NUM_TRICKS * NUM_SEATS) & cards
    small = np.all(_sizes(records["hands"]) <= HAND_SIZE, axis=1)
    return (plays & small) | (records["phase"] != PLAY)


def contract_is_known(game: Any, records: Any, seats: Any) -> Any:
    """Whoever bids has a level; trump, and what it is asked for, come with it."""
    phase = records["phase"]
    bids = (records["bidder"] >= 0) == (records["high"] > 0)
    bought = (records["bidder"] >= 0) | (phase == AUCTION) | (phase >= HAND_END)
    named = (records["trump"] >= 0) | (phase < DISCARD) | (phase >= HAND_END)
    return bids & bought & named


def card_is_decided(game: Any, records: Any, seats: Any) -> Any:
    """A seat that discards, as it sees itself, has a card to decide on; the others keep none."""
    to_move = _column(records, "to_move")
    decides = (records["phase"] == DISCARD) & (to_move >= 0)
    if seats is not None:
        decides &= to_move == seats
    hand, kept = _of_seat(records["hands"], to_move), records["kept"]
    open_cards = (hand & ~kept != 0) & (kept & ~hand == 0) & (_sizes(kept) < HAND_SIZE)
    return np.where(decides, open_cards, kept == 0)


def every_card_once(game: Any, states: Any, seats: Any) -> Any:
    """Hands, discards, stock and what was played have each of the cards once."""
    played = states["played"]
    lies = played >= 0
    bits = np.where(lies, _ONE << np.maximum(played, 0).astype(np.uint64), 0).astype(np.uint64)
    parts = np.concatenate(
        [states["hands"], states["thrown"], states["stock"][:, None], bits], axis=1
    )
    union = np.bitwise_or.reduce(parts, axis=1)
    _, expected = _tricks(states)
    placed = np.all(lies == expected.reshape(lies.shape), axis=1)
    return (
        (union == ALL_CARDS)
        & (_sizes(parts).sum(axis=1) == NUM_CARDS)
        & (placed | (states["phase"] >= HAND_END))
    )


def hands_have_their_sizes(game: Any, states: Any, seats: Any) -> Any:
    """Five cards and the kitty less what was thrown; then five less what was played."""
    phase = states["phase"]
    bidder, dealer, leader = (_column(states, name) for name in ("bidder", "dealer", "leader"))
    taken = (phase == DISCARD) | (phase == DRAW) | (phase == PLAY)
    taken |= (phase == TRUMP) & (game.trump_named == AFTER_KITTY)
    kitty = np.where((bidder[:, None] == _SEATS) & taken[:, None], game.kitty, 0)
    held, thrown = _sizes(states["hands"]), _sizes(states["thrown"])
    played = (states["played"].reshape(len(states), NUM_TRICKS, NUM_SEATS) >= 0).sum(axis=1)
    drawn = states["drawn"].astype(np.int64)
    before = (held + thrown == HAND_SIZE + kitty) & (drawn < 0) & (played == 0)
    before &= (thrown == 0) | (phase >= DISCARD)[:, None]
    # Seats before the one that discards have done so; nobody behind it has begun.
    turn, at = (_SEATS - dealer[:, None] - 1) % NUM_SEATS, (leader - dealer - 1) % NUM_SEATS
    waits = (turn > at[:, None]) | ((turn == at[:, None]) & (states["to_move"] == CHANCE)[:, None])
    waits &= (phase == DISCARD)[:, None]
    done = ((turn < at[:, None]) & (phase == DISCARD)[:, None]) | (phase == DRAW)[:, None]
    before &= ((thrown == 0) | ~waits) & ((held <= HAND_SIZE) | ~done)
    after = (held + played == HAND_SIZE) & (drawn == thrown - kitty) & (drawn >= 0)
    return np.all(np.where((phase < PLAY)[:, None], before, after), axis=1) | (phase >= HAND_END)


def turn_follows(game: Any, states: Any, seats: Any) -> Any:
    """The seat to move follows from the phase, the calls and the cards played."""
    phase, to_move = states["phase"], _column(states, "to_move")
    dealer, leader = _column(states, "dealer"), _column(states, "leader")
    turns, number = _column(states, "turns"), _column(states, "num_played")
    first_round = to_move == (dealer + 1 + turns) % NUM_SEATS
    calls = np.where(turns < NUM_SEATS, first_round, (to_move >= 0) & (states["high"] > 0))
    calls &= _of_seat(states["passed"], to_move) == 0
    discards = np.where(to_move >= 0, to_move == leader, to_move == CHANCE)
    # The first seat begins by itself; a chance position is for one that comes after it.
    discards &= (to_move >= 0) | (leader != (dealer + 1) % NUM_SEATS)
    plays = to_move == (leader + number) % NUM_SEATS
    plays &= states["tricks"].sum(axis=1) == number // NUM_SEATS
    kitty = (game.kitty > 0) & (to_move == CHANCE)
    kitty &= (states["trump"] >= 0) == (game.trump_named == BEFORE_KITTY)
    goes_on = (to_move == CHANCE) & (states["hand_index"] < MAX_HANDS - 1)
    return np.select(
        [phase == step for step in (AUCTION, KITTY, TRUMP, DISCARD, DRAW, PLAY, HAND_END)],
        [calls, kitty, to_move == states["bidder"], discards, to_move == CHANCE, plays, goes_on],
        (phase == OVER) & (to_move == TERMINAL),
    )


def what_is_lacking_is_not_there(game: Any, states: Any, seats: Any) -> Any:
    """No seat holds a card that it has shown not to hold."""
    trump, lacks = np.maximum(_column(states, "trump"), 0), states["lacks"].astype(np.int64)
    cards = LACKED_TRUMPS[trump[:, None], lacks >> LACKS_SHIFT]
    for suit in range(NUM_SUITS):
        cards = cards | np.where((lacks >> suit) & 1, PLAIN[trump, suit][:, None], 0).astype(
            np.uint64
        )
    shown = (lacks == 0) | (states["phase"] >= PLAY)[:, None]
    return np.all(((states["hands"] & cards) == 0) & shown, axis=1) | (states["phase"] >= HAND_END)


VIEW_RELATIONS: dict[str, Relation] = {
    "cards of a trick": trick_has_cards,
    "the contract": contract_is_known,
    "the card to decide on": card_is_decided,
}
STATE_RELATIONS: dict[str, Relation] = {
    **VIEW_RELATIONS,
    "every card is in one place": every_card_once,
    "sizes of the hands": hands_have_their_sizes,
    "the turn": turn_follows,
    "what seats lack": what_is_lacking_is_not_there,
}
