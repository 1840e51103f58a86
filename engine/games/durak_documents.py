"""Durak: positions from documents.

Room: engine. Python only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.documents import Fields, PositionError, is_number, shown, words
from engine.games.durak_counting import unseen_cards
from engine.games.durak_deal import clear
from engine.games.durak_play import finish, play, refill
from engine.games.durak_rules import next_active
from engine.games.durak_state import (
    MAX_STOCK,
    NUM_CARDS,
    NUM_RANKS,
    STATE,
    SUIT_NAMES,
)
from engine.games.durak_text import card_name, card_of, parse_action
from engine.rng import Rng, shuffle
from engine.rules import CHANCE

OPTIONAL_KEYS = ("talon", "turned_up", "discard", "discard_count", "attacker", "moves")
MOST_MOVES = 1000


class _Deck:
    """Hands out each card once."""

    def __init__(self, rng: Rng | None) -> None:
        order = np.arange(NUM_CARDS)
        if rng is not None:
            shuffle(rng, order, NUM_CARDS)
        self.left = [int(card) for card in order]

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

    def take_trump(self, suit: int, played: Sequence[int]) -> list[int]:
        """Take a trump to be turned up, none of those that are ``played``."""
        for card in self.left:
            if card // NUM_RANKS == suit and card not in played:
                self.left.remove(card)
                return [card]
        raise ValueError(f"trump {SUIT_NAMES[suit]!r}: none is left to be turned up")


class _Cards(NamedTuple):
    """Where the cards of a document lie before its moves."""

    hands: list[list[int]]
    stock: list[int]
    """In the order in which it is drawn; the last one is turned up."""
    discard: list[int]
    """Those that the document names."""
    spare: list[int]
    """Those of which it says nothing; they are on the discard pile too."""
    free: frozenset[int]
    """Cards that the document names nowhere: where they lie was chosen here."""

    def exchanged(self, first: int, second: int) -> _Cards:
        """Return the cards with these two in each other's place."""
        other = {first: second, second: first}
        return self._in_place_of(lambda card: other.get(card, card))

    def dealt_anew(self, hidden: Sequence[int], rng: Rng) -> _Cards:
        """Return the cards with ``hidden``, all of them, dealt anew; advances ``rng``.

        Which of them lay where before makes no difference, only how many did.
        """
        cards = np.array(sorted(hidden), np.int64)
        shuffle(rng, cards, len(cards))
        left = iter(cards.tolist())
        return self._in_place_of(lambda card: next(left) if card in hidden else card)

    def _in_place_of(self, other: Callable[[int], int]) -> _Cards:
        """Return the cards with ``other(card)`` for each, asked hand by hand, then the rest."""
        *hands, stock, discard, spare = (
            [other(card) for card in group]
            for group in (*self.hands, self.stock, self.discard, self.spare)
        )
        return _Cards(hands, stock, discard, spare, self.free)


def _mask(cards: Iterable[int]) -> np.uint64:
    return np.uint64(sum(1 << card for card in cards))


def _cards_in(move: str) -> list[int]:
    """Return the cards that a move names."""
    found = []
    for word in move.replace(":", " ").replace("+", " ").split():
        try:
            found.append(card_of(word))
        except ValueError:
            continue
    return found


def _moves(fields: Fields) -> list[str]:
    return fields.words("moves", 0, MOST_MOVES, "moves")


def _group(key: str, value: Any, high: int) -> list[str] | int:
    """Return a list of cards, or a number of unknown ones."""
    if not is_number(value):
        return words(key, value, 0, high)
    if not 0 <= value <= high:
        raise ValueError(f"{key} {shown(value)}: allowed are 0 to {high} cards")
    return int(value)


def _cards(game: Any, fields: Fields, suit: int, rng: Rng | None) -> _Cards:
    """Return the cards of a document; those that it does not name are filled in."""
    given = fields.get("hands")
    if not isinstance(given, list | tuple):
        raise PositionError(f"hands {shown(given)}: allowed is a list of hands")
    if len(given) != game.players:
        raise ValueError(
            f"{len(given)} hands: {game.players} are needed (rule option players = {game.players})"
        )
    groups = [_group(f"hand of seat {seat}", hand, NUM_CARDS) for seat, hand in enumerate(given)]
    talon = _group("talon", fields.get("talon") if "talon" in fields else 0, MAX_STOCK)
    deck = _Deck(rng)
    hands = [deck.take([] if isinstance(group, int) else group) for group in groups]
    stock = deck.take([] if isinstance(talon, int) else talon)
    discard = deck.take(fields.words("discard", 0, NUM_CARDS))
    turned_up = deck.take([fields.get("turned_up")]) if "turned_up" in fields else []
    if turned_up and (stock or not talon):
        raise ValueError("turned_up: allowed beside a talon that is a number of cards, from 1 on")
    if isinstance(talon, int) and talon:
        played = [card for move in _moves(fields) for card in _cards_in(move)]
        turned_up = turned_up or deck.take_trump(suit, played)
    free = frozenset(deck.left)
    if isinstance(talon, int) and talon:
        stock = [*deck.take_any(talon - 1), *turned_up]
    for cards, group in zip(hands, groups, strict=True):
        cards += deck.take_any(group) if isinstance(group, int) else []
    if stock and stock[-1] // NUM_RANKS != suit:
        raise ValueError(f"talon ends with {card_name(stock[-1])}: its last card is a trump")
    return _Cards(hands, stock, discard, deck.left, free)


def _begin(game: Any, fields: Fields, suit: int, cards: _Cards) -> Any:
    """Return the state before the moves of a document."""
    stock = cards.stock
    state = np.zeros(1, dtype=STATE).view(np.recarray)[0]
    clear(state)
    state.trump = suit
    state.turned_up = stock[-1] if stock else suit * NUM_RANKS
    state.stock_size = len(stock)
    state.stock[: len(stock)] = stock[::-1]
    for seat, hand in enumerate(cards.hands):
        state.hands[seat] = _mask(hand)
        state.sizes[seat] = state.given[seat] = len(hand)
        state.finished[seat] = 0 if hand or stock else 1
    discard = [*cards.discard, *cards.spare]
    state.seen = _mask([*discard, *stock[-1:]])
    state.bouts = 1
    state.beaten = 1 if fields.number("discard_count", 0, NUM_CARDS, len(discard)) else 0
    attacker = fields.number("attacker", 0, game.players - 1, 0)
    if state.sizes[attacker] == 0:
        raise ValueError(f"attacker {attacker}: the seat has no cards")
    state.attacker = state.first_attacker = state.to_move = attacker
    state.defender = next_active(game, state, attacker)
    state.defender_cards = state.sizes[state.defender]
    if state.defender == attacker or state.defender_cards == 0:
        finish(state, attacker)
    return state


def _line(game: Any, fields: Fields, suit: int, cards: _Cards) -> tuple[Any, _Cards]:
    """Return the state after the moves of a document, and where the cards lay before them.

    A card that is played from a hand of unknown cards was in it: it changes places with one that
    was put there, and the line begins anew.
    """
    moves = _moves(fields)
    played = {card for move in moves for card in _cards_in(move)}
    state = _begin(game, fields, suit, cards)
    index = 0
    while index < len(moves):
        held = int(state.hands[state.to_move]) if state.to_move >= 0 else 0
        needed = [card for card in _cards_in(moves[index]) if not held >> card & 1]
        loose = [card for card in sorted(cards.free - played) if held >> card & 1]
        if needed and needed[0] in cards.free and loose:
            cards = cards.exchanged(needed[0], loose[0])
            state = _begin(game, fields, suit, cards)
            index = 0
            continue
        play(game, state, parse_action(game, state, moves[index]))
        while state.to_move == CHANCE:
            refill(game, state)
        index += 1
    return state, cards


def state_from_document(game: Any, document: Mapping[str, Any], rng: Rng | None = None) -> Any:
    """Return the state of a document: hands and stock before a bout, and the moves from there.

    A hand, or the stock, may be a number of cards instead of a list: cards that the document does
    not name are filled in. All other cards are on the discard pile, those that ``discard`` names
    and the rest; ``discard_count`` of 0 says that no bout was beaten yet. Nothing is known of how
    the cards were dealt.

    With ``rng`` the cards that the seat to move does not know are drawn anew, together with those
    of which the document says nothing: the rest of the discard pile would tell what others hold.

    Raises:
        ValueError: keys, cards or moves that the rules do not allow.
    """
    fields = Fields(document, "line", ("trump", "hands"), OPTIONAL_KEYS)
    suit = SUIT_NAMES.index(fields.word("trump", SUIT_NAMES))
    state, cards = _line(game, fields, suit, _cards(game, fields, suit, rng))
    seat = int(state.to_move)
    if rng is None or seat < 0:
        return state
    unseen = int(unseen_cards(state, seat))
    hidden = [card for card in range(NUM_CARDS) if unseen >> card & 1 or card in cards.spare]
    return _line(game, fields, suit, cards.dealt_anew(hidden, rng))[0]
