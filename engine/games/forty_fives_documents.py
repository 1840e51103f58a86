"""Forty-fives: positions from documents.

Room: engine. Python only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from engine.documents import Fields, PositionError, shown
from engine.games.forty_fives_deal import start_hand
from engine.games.forty_fives_rules import act, begin_play, write_actions
from engine.games.forty_fives_state import (
    HAND_SIZE,
    LEVEL_20,
    MAX_ACTIONS,
    NOBODY,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SEATS,
    STATE,
    SUIT_NAMES,
)
from engine.games.forty_fives_text import card_name, format_action, parse_card
from engine.rng import Rng, shuffle

SCORE_KEYS = ("score", "other_score")
"""Points of the side of the seat to move, and of the other side."""


class _Deck:
    """Hands out the cards that a document does not name."""

    def __init__(self, named: Iterable[int], rng: Rng | None) -> None:
        named = list(named)
        for card in named:
            if named.count(card) > 1:
                raise ValueError(f"card {card_name(card)!r}: named twice")
        # Suit by suit within each rank, so that what is filled in is spread over suits and ranks.
        order = np.array(sorted(range(NUM_CARDS), key=lambda card: (card * 5) % NUM_RANKS))
        if rng is not None:
            shuffle(rng, order, NUM_CARDS)
        self.left = [int(card) for card in order if card not in named]

    def take(self, count: int) -> np.uint64:
        taken, self.left = self.left[:count], self.left[count:]
        return _mask(taken)


def _mask(cards: Iterable[int]) -> np.uint64:
    return np.uint64(sum(1 << card for card in cards))


def _new_hand(game: Any, dealer: int) -> Any:
    state = np.zeros(1, dtype=STATE).view(np.recarray)[0]
    state.winner = NOBODY
    start_hand(game, state, 0, dealer)
    return state


def _set_scores(game: Any, state: Any, fields: Fields, side: int) -> None:
    for offset, key in enumerate(SCORE_KEYS):
        state.scores[(side + offset) % 2] = fields.number(key, -1000, int(game.target) - 1, 0)


def _follow(game: Any, document: Mapping[str, Any], rng: Rng | None) -> Any:
    """Return seat 0 to play to a card that seat 3 led, or to lead; seat 0 deals, seat 2 has bid."""
    fields = Fields(document, "follow", ("trump", "hand"), ("led", *SCORE_KEYS))
    trump = fields.word("trump", SUIT_NAMES)
    hand = [parse_card(word) for word in fields.words("hand", 1, HAND_SIZE)]
    led = parse_card(fields.get("led")) if "led" in fields else None
    deck = _Deck(hand if led is None else [*hand, led], rng)
    state = _new_hand(game, 0)
    state.high, state.bidder, state.bids[2], state.turns = LEVEL_20, 2, LEVEL_20, NUM_SEATS
    state.passed[0] = state.passed[1] = state.passed[3] = 1
    state.trump = SUIT_NAMES.index(trump)
    begin_play(game, state)
    tricks = HAND_SIZE - len(hand)
    for trick in range(tricks):
        for seat in range(NUM_SEATS):
            state.played[trick * NUM_SEATS + seat] = int(deck.take(1)).bit_length() - 1
    state.num_played = tricks * NUM_SEATS
    state.hands[0] = _mask(hand)
    state.tricks[0], state.tricks[1] = tricks // 2, tricks - tricks // 2
    state.drawn[0] = 0
    for seat in range(1, NUM_SEATS):
        # To draw five is what tells least of a hand.
        state.drawn[seat] = HAND_SIZE
        state.thrown[seat] = deck.take(HAND_SIZE + (int(game.kitty) if seat == 2 else 0))
        state.hands[seat] = deck.take(len(hand))
    state.leader, state.to_move = 0, 0
    if led is not None:
        spare = int(state.hands[3])
        lowest = spare & -spare
        deck.left.append(lowest.bit_length() - 1)
        state.hands[3] = np.uint64(spare & ~lowest)
        state.played[state.num_played + 3] = led
        state.num_played += 1
        state.leader = 3
    state.stock = _mask(deck.left)
    _set_scores(game, state, fields, 0)
    return state


def _auction(game: Any, document: Mapping[str, Any], rng: Rng | None) -> Any:
    """Return the auction after the calls of a document; the dealer is seat 0 and speaks last."""
    optional = ("is_dealer", "hand", *SCORE_KEYS)
    fields = Fields(document, "auction", ("bids_so_far",), optional)
    calls = fields.words("bids_so_far", 0, NUM_SEATS - 1, "calls")
    dealer = len(calls) == NUM_SEATS - 1
    said = fields.get("is_dealer")
    if said is not None and (not isinstance(said, bool) or said != dealer):
        raise PositionError(
            f"is_dealer {shown(said)}: the dealer speaks fourth, here after {len(calls)} calls"
        )
    state = _new_hand(game, 0)
    actions = np.zeros(MAX_ACTIONS, np.int64)
    for word in calls:
        count = int(write_actions(game, state, actions))
        legal = {format_action(game, state, int(code)): int(code) for code in actions[:count]}
        if word not in legal:
            raise ValueError(f"call {shown(word)}: allowed are {', '.join(legal)}")
        act(game, state, legal[word])
    _deal(state, fields, rng)
    _set_scores(game, state, fields, int(state.to_move) % 2)
    return state


def _deal(state: Any, fields: Fields, rng: Rng | None) -> None:
    """Give the seat to move the hand of a document, where there is one, and cards to all others."""
    own = [parse_card(word) for word in fields.words("hand", 0, HAND_SIZE)]
    if own and len(own) < HAND_SIZE:
        raise ValueError(f"hand of {len(own)} cards: allowed are {HAND_SIZE} in an auction")
    deck = _Deck(own, rng)
    for seat in range(NUM_SEATS):
        given = own and seat == state.to_move
        state.hands[seat] = _mask(own) if given else deck.take(HAND_SIZE)
    state.stock = _mask(deck.left)


def state_from_document(game: Any, document: Mapping[str, Any], rng: Rng | None = None) -> Any:
    """Return a state with what a document of kind ``follow`` or ``auction`` gives.

    What it leaves open is filled with cards that it does not name, drawn from ``rng`` where there
    is one, which is advanced.

    Raises:
        ValueError: a kind, key, card or call that no position of a game can show.
    """
    kind = document.get("kind", "auction" if "bids_so_far" in document else "follow")
    if kind == "auction":
        return _auction(game, document, rng)
    if kind == "follow":
        return _follow(game, document, rng)
    raise PositionError(f"position of kind {shown(kind)}: allowed are auction, follow")
