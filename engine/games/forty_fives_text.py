"""Forty-fives in words: cards, actions, views, and positions from documents.

Room: engine. Python only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from engine.games.forty_fives_deal import start_hand
from engine.games.forty_fives_rules import act, begin_play, card_to_decide, write_actions
from engine.games.forty_fives_state import (
    DISCARD,
    HAND_SIZE,
    HOLD,
    KEEP,
    LEVEL_20,
    LEVEL_NAMES,
    MAX_ACTIONS,
    NAME_TRUMP,
    NOBODY,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SEATS,
    PLAY_CARD,
    RANK_NAMES,
    STATE,
    SUIT_NAMES,
    THROW,
)
from engine.games.forty_fives_worlds import cards_held
from engine.rules import CHANCE, TERMINAL

PHASE_NAMES = ("auction", "kitty", "trump", "discard", "draw", "play", "hand end", "over")


def card_name(card: int) -> str:
    """Return a card as rank and suit, such as ``10S``."""
    return RANK_NAMES[card % NUM_RANKS] + SUIT_NAMES[card // NUM_RANKS]


def parse_card(word: object) -> int:
    """Return the card of a name. Raises ValueError."""
    text = str(word)
    if text[:-1] not in RANK_NAMES or text[-1:] not in SUIT_NAMES:
        ranks, suits = " ".join(RANK_NAMES), " ".join(SUIT_NAMES)
        raise ValueError(f"card {word!r}: allowed are a rank of {ranks} and a suit of {suits}")
    return SUIT_NAMES.index(text[-1]) * NUM_RANKS + RANK_NAMES.index(text[:-1])


def cards_of(mask: int) -> list[str]:
    """Return the names of the cards of ``mask``."""
    return [card_name(card) for card in range(NUM_CARDS) if int(mask) >> card & 1]


def text_of(mask: int) -> str:
    """Return the cards of ``mask`` as text, ``-`` for the empty set."""
    return " ".join(cards_of(mask)) or "-"


def format_action(game: Any, view: Any, action: int) -> str:
    """Return an action as text: a call, a suit, what becomes of a card, or the card played."""
    action = int(action)
    if action >= PLAY_CARD:
        return card_name(action - PLAY_CARD)
    if action in (KEEP, THROW):
        undecided = np.uint64(view.hands[view.to_move]) & ~np.uint64(view.kept)
        card = card_name(int(card_to_decide(int(view.trump), undecided)))
        return f"{'keep' if action == KEEP else 'throw'} {card}"
    if action >= NAME_TRUMP:
        return SUIT_NAMES[action - NAME_TRUMP]
    return "hold" if action == HOLD else LEVEL_NAMES[action]


def format_view(game: Any, view: Any, seat: int) -> str:
    """Return a view in six lines."""
    if view.to_move == TERMINAL:
        winner = int(view.winner)
        turn = "drawn" if winner == NOBODY else f"side {winner} wins"
    elif view.to_move == CHANCE:
        turn = "chance"
    else:
        turn = f"seat {int(view.to_move)} to move"
    trump = SUIT_NAMES[int(view.trump)] if view.trump >= 0 else "-"
    bidder = "-"
    if view.bidder != NOBODY:
        bidder = f"seat {int(view.bidder)} at {LEVEL_NAMES[int(view.high)]}"
    bids = [LEVEL_NAMES[int(level)] if level else "-" for level in view.bids]
    said = [f"{bid} pass" if out else bid for bid, out in zip(bids, view.passed, strict=True)]
    drawn = " ".join("?" if count < 0 else str(int(count)) for count in view.drawn)
    sizes = " ".join(str(int(cards_held(game, view, other))) for other in range(NUM_SEATS))
    place = int(view.num_played) % NUM_SEATS
    in_trick = view.played[int(view.num_played) - place :]
    order = [(int(view.leader) + turn) % NUM_SEATS for turn in range(place)]
    trick = [card_name(int(in_trick[other])) for other in order]
    kept = f" kept {text_of(view.kept)}" if view.phase == DISCARD and view.to_move == seat else ""
    return "\n".join(
        [
            f"hand {int(view.hand_index)} dealer {int(view.dealer)}"
            f" {PHASE_NAMES[int(view.phase)]}: {turn}",
            f"seat {seat} holds {text_of(view.hands[seat])}"
            f" threw {text_of(view.thrown[seat])}{kept}",
            f"bids {', '.join(said)} bidder {bidder} trump {trump} drew {drawn}",
            f"trick {' '.join(trick) or '-'} led by {int(view.leader)}"
            f" tricks {int(view.tricks[0])} {int(view.tricks[1])}",
            f"scores {int(view.scores[0])} {int(view.scores[1])} cards in hand {sizes}",
        ]
    )


# --- positions from documents ---------------------------------------------------------------------


def _mask(cards: Iterable[int]) -> np.uint64:
    return np.uint64(sum(1 << card for card in cards))


class _Deck:
    """Hands out the cards that a document does not name."""

    def __init__(self, named: Iterable[int]) -> None:
        named = list(named)
        for card in named:
            if named.count(card) > 1:
                raise ValueError(f"card {card_name(card)!r}: named twice")
        # Suit by suit within each rank, so that what is filled in is spread over suits and ranks.
        order = sorted(range(NUM_CARDS), key=lambda card: (card * 5) % NUM_RANKS)
        self.left = [card for card in order if card not in named]

    def take(self, count: int) -> np.uint64:
        taken, self.left = self.left[:count], self.left[count:]
        return _mask(taken)


def _new_hand(game: Any, dealer: int) -> Any:
    state = np.zeros(1, dtype=STATE).view(np.recarray)[0]
    state.winner = NOBODY
    start_hand(game, state, 0, dealer)
    return state


def _known(document: Mapping[str, Any], key: str) -> Any:
    if key not in document:
        raise ValueError(f"position without {key!r}")
    return document[key]


def _follow(game: Any, document: Mapping[str, Any]) -> Any:
    """Return seat 0 to play to a card that seat 3 led, or to lead; seat 0 deals, seat 2 has bid."""
    trump = str(_known(document, "trump"))
    if trump not in SUIT_NAMES:
        raise ValueError(f"trump {trump!r}: allowed are {', '.join(SUIT_NAMES)}")
    hand = [parse_card(word) for word in _known(document, "hand")]
    if not 1 <= len(hand) <= HAND_SIZE:
        raise ValueError(f"hand of {len(hand)} cards: allowed are 1 to {HAND_SIZE}")
    led = None if document.get("led") is None else parse_card(document["led"])
    deck = _Deck(hand if led is None else [*hand, led])
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
    return state


def _auction(game: Any, document: Mapping[str, Any]) -> Any:
    """Return the auction after the calls of a document; the dealer is seat 0, or speaks last."""
    calls = [str(word) for word in _known(document, "bids_so_far")]
    state = _new_hand(game, 0)
    if len(calls) >= NUM_SEATS:
        raise ValueError(f"bids_so_far of {len(calls)} calls: allowed are 0 to {NUM_SEATS - 1}")
    dealer = len(calls) == NUM_SEATS - 1
    if document.get("is_dealer", dealer) != dealer:
        raise ValueError(
            f"is_dealer {document['is_dealer']!r}: the dealer speaks fourth, "
            f"here after {len(calls)} calls"
        )
    actions = np.zeros(MAX_ACTIONS, np.int64)
    for word in calls:
        count = int(write_actions(game, state, actions))
        legal = {format_action(game, state, int(code)): int(code) for code in actions[:count]}
        if word not in legal:
            raise ValueError(f"call {word!r}: allowed are {', '.join(legal)}")
        act(game, state, legal[word])
    return state


def state_from_document(game: Any, document: Mapping[str, Any]) -> Any:
    """Return a state with what a document of kind ``follow`` or ``auction`` gives.

    What it leaves open is filled with cards that it does not name; a search sees the hidden part of
    that only by sampling it anew.

    Raises:
        ValueError: a kind, card or call that no position of a game can show.
    """
    kind = document.get("kind", "auction" if "bids_so_far" in document else "follow")
    if kind == "auction":
        return _auction(game, document)
    if kind == "follow":
        return _follow(game, document)
    raise ValueError(f"position of kind {kind!r}: allowed are auction, follow")
