"""Durak in words: cards, actions, views, and positions from documents.

Room: engine. Python only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from engine.games.durak_deal import clear
from engine.games.durak_play import finish, play, refill
from engine.games.durak_rules import discarded, known_cards, next_active, write_actions
from engine.games.durak_state import (
    DEFEND,
    MAX_ACTIONS,
    MAX_STOCK,
    MULTI,
    NOBODY,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SUITS,
    PASS,
    RANK_NAMES,
    SHOW,
    STATE,
    SUIT_NAMES,
    SUIT_SETS,
    SWAP,
    TAKING,
    TRANSFER,
)
from engine.rules import CHANCE, TERMINAL

OPEN_PHASES = (DEFEND, TAKING)
PHASE_NAMES = ("attack", "defend", "throw in", "taking", "beaten", "taken", "over")


def card_name(card: int) -> str:
    """Return a card as ``7S``."""
    return RANK_NAMES[card % NUM_RANKS] + SUIT_NAMES[card // NUM_RANKS]


def card_of(name: object) -> int:
    """Return the card called ``name``. Raises ValueError."""
    text = str(name).strip().upper()
    if text[:-1] in RANK_NAMES and text[-1:] in SUIT_NAMES:
        return SUIT_NAMES.index(text[-1]) * NUM_RANKS + RANK_NAMES.index(text[:-1])
    raise ValueError(
        f"card {name!r}: allowed are a rank of {' '.join(RANK_NAMES)} and a suit of "
        f"{' '.join(SUIT_NAMES)}, as 10S"
    )


def cards_of(mask: int) -> list[str]:
    """Return the cards of ``mask``, suit by suit."""
    return [card_name(card) for card in range(NUM_CARDS) if int(mask) >> card & 1]


def text_of(mask: int) -> str:
    """Return the cards of ``mask`` as text, ``-`` for the empty set."""
    return " ".join(cards_of(mask)) or "-"


def format_action(game: Any, view: Any, action: int) -> str:
    """Return an action as text."""
    if action < PASS:
        return card_name(action)
    if action == PASS:
        return "take" if view.phase == DEFEND else "pass"
    if action < SHOW:
        return f"transfer:{card_name(action - TRANSFER)}"
    if action < SWAP:
        return f"show:{card_name(action - SHOW)}"
    if action == SWAP:
        return "swap"
    rank, suits = divmod(action - MULTI, SUIT_SETS)
    names = (card_name(suit * NUM_RANKS + rank) for suit in range(NUM_SUITS) if suits >> suit & 1)
    return "+".join(names)


def parse_action(game: Any, record: Any, text: str) -> int:
    """Return the legal action that ``text`` stands for, in a state or the mover's view.

    Raises ValueError, which lists the legal actions.
    """
    actions = np.zeros(MAX_ACTIONS, np.int64)
    count = int(write_actions(game, record, actions)) if record.to_move >= 0 else 0
    legal = {format_action(game, record, int(code)): int(code) for code in actions[:count]}
    found = {name.lower(): code for name, code in legal.items()}.get(text.strip().lower())
    if found is None:
        raise ValueError(f"move {text!r}: allowed are {', '.join(legal) or 'none'}")
    return found


def _turn(view: Any) -> str:
    if view.to_move == TERMINAL:
        loser = int(view.durak)
        return "over, drawn" if loser == NOBODY else f"over, seat {loser} is the durak"
    if view.to_move == CHANCE:
        return "before a draw"
    return f"seat {int(view.to_move)} to move"


def format_view(game: Any, view: Any, seat: int) -> str:
    """Return a view in five lines."""
    seats = range(game.players)
    attacks = [card_name(int(card)) for card in view.attacks[: view.num_attacks]]
    table = " ".join(attacks[: view.num_covers]) or "-"
    table += f" covered by {text_of(view.covers)}" if view.num_covers else ""
    table += f" open {' '.join(attacks[view.num_covers :])}" if view.phase in OPEN_PHASES else ""
    passed = [str(other) for other in seats if int(view.passed) >> other & 1]
    known = [f" {text_of(known_cards(view, other))}" for other in seats if other != seat]
    turned_up = card_name(int(view.turned_up))
    lines = [
        f"ply {int(view.plies)} bout {int(view.bouts)} {PHASE_NAMES[view.phase]}: {_turn(view)}",
        f"seat {seat} holds {text_of(view.hands[seat])}",
        f"seat {int(view.attacker)} attacks {int(view.defender)} table {table}"
        + (f" passed {' '.join(passed)}" if passed else ""),
        f"cards in hand {' '.join(str(int(view.sizes[other])) for other in seats)}"
        f" stock {int(view.stock_size)} trump {turned_up}"
        f" discard {int(discarded(view)).bit_count()}",
        "known of the others" + ",".join(known),
    ]
    return "\n".join(lines)


# --- positions ------------------------------------------------------------------------------------


class _Deck:
    """Hands out each card once."""

    def __init__(self) -> None:
        self.left = list(range(NUM_CARDS))

    def take(self, names: Iterable[object]) -> list[int]:
        cards = [card_of(name) for name in names]
        for card in cards:
            if card not in self.left:
                raise ValueError(f"card {card_name(card)!r}: it is in two places")
            self.left.remove(card)
        return cards

    def take_any(self, count: int) -> list[int]:
        if count > len(self.left):
            raise ValueError(f"{count} cards that are not named: {len(self.left)} are left")
        return [self.left.pop() for _ in range(count)]


def _mask(cards: Iterable[int]) -> np.uint64:
    return np.uint64(sum(1 << card for card in cards))


def _suit(document: Mapping[str, Any]) -> int:
    trump = document.get("trump")
    if trump not in SUIT_NAMES:
        raise ValueError(f"trump {trump!r}: allowed are {', '.join(SUIT_NAMES)}")
    return SUIT_NAMES.index(str(trump))


def _groups(game: Any, document: Mapping[str, Any]) -> list[Any]:
    """Return the hands and, last, the stock: lists of cards, or numbers of unknown ones."""
    for key in ("trump", "hands"):
        if key not in document:
            raise ValueError(f"position without {key!r}: it needs 'trump' and 'hands'")
    hands = list(document["hands"])
    if len(hands) != game.players:
        raise ValueError(f"{len(hands)} hands: {game.players} are needed")
    return [*hands, document.get("talon", [])]


def state_from_document(game: Any, document: Mapping[str, Any]) -> Any:
    """Return the state of a document: hands and stock before a bout, and the moves from there.

    A hand, or the stock, may be a number of cards instead of a list: cards that the document does
    not name are filled in, and a search sees them only by sampling them anew. All other cards are
    on the discard pile; ``discard_count`` of 0 says that no bout was beaten yet. Nothing is known
    of how the cards were dealt.

    Raises:
        ValueError: cards or moves that the rules do not allow.
    """
    groups = _groups(game, document)
    suit = _suit(document)
    deck = _Deck()
    found = [deck.take([] if isinstance(group, int) else group) for group in groups]
    for cards, group in zip(found, groups, strict=True):
        if isinstance(group, int):
            cards += deck.take_any(group)
    *hands, stock = found
    if len(stock) > MAX_STOCK:
        raise ValueError(f"talon of {len(stock)} cards: allowed are 0 to {MAX_STOCK}")
    if stock and stock[-1] // NUM_RANKS != suit:
        raise ValueError(f"talon ends with {card_name(stock[-1])}: its last card is a trump")
    state = np.zeros(1, dtype=STATE).view(np.recarray)[0]
    clear(state)
    state.trump = suit
    state.turned_up = stock[-1] if stock else suit * NUM_RANKS
    state.stock_size = len(stock)
    state.stock[: len(stock)] = stock[::-1]
    for seat, cards in enumerate(hands):
        state.hands[seat] = _mask(cards)
        state.sizes[seat] = state.given[seat] = len(cards)
        state.finished[seat] = 0 if cards or stock else 1
    state.seen = _mask([*deck.left, *stock[-1:]])
    state.bouts = 1
    state.beaten = 1 if document.get("discard_count", len(deck.left)) else 0
    _seat(game, state, document)
    for move in document.get("moves", ()):
        play(game, state, parse_action(game, state, str(move)))
        while state.to_move == CHANCE:
            refill(game, state)
    return state


def _seat(game: Any, state: Any, document: Mapping[str, Any]) -> None:
    """Give out the roles of a new bout."""
    attacker = document.get("attacker", 0)
    if not isinstance(attacker, int) or not 0 <= attacker < game.players:
        raise ValueError(f"attacker {attacker!r}: allowed are 0 to {game.players - 1}")
    if state.sizes[attacker] == 0:
        raise ValueError(f"attacker {attacker}: the seat has no cards")
    state.attacker = state.first_attacker = state.to_move = attacker
    state.defender = next_active(game, state, attacker)
    state.defender_cards = state.sizes[state.defender]
    if state.defender == attacker or state.defender_cards == 0:
        finish(state, attacker)
