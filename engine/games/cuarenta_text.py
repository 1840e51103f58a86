"""Cuarenta in words: cards, actions, views, and positions from documents.

Room: engine. Python only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from engine.documents import Fields, shown
from engine.games.cuarenta_encoder import cards_in_hand, stock_size
from engine.games.cuarenta_rules import action_base, action_rank, taken_cards
from engine.games.cuarenta_state import (
    CARDS_PER_DEAL,
    MATCH,
    MAX_SEATS,
    NO_CARD,
    NOBODY,
    NUM_CARDS,
    NUM_SUITS,
    PLACE,
    RANK_NAMES,
    RONDA_ANNOUNCED,
    RONDA_RANK,
    STATE,
)
from engine.rng import Rng, shuffle
from engine.rules import CHANCE, TERMINAL


def ranks_of(mask: int) -> list[str]:
    """Return the names of the ranks of ``mask``, ascending, one per card."""
    return [RANK_NAMES[card // NUM_SUITS] for card in range(NUM_CARDS) if int(mask) >> card & 1]


def text_of(mask: int) -> str:
    """Return the ranks of ``mask`` as text, ``-`` for the empty set."""
    return " ".join(ranks_of(mask)) or "-"


def base_name(action: int) -> str:
    """Return ``match``, ``sum`` or ``place``."""
    base = int(action_base(action))
    return {MATCH: "match", PLACE: "place"}.get(base, "sum")


def format_action(game: Any, view: Any, action: int) -> str:
    """Return an action as the rank alone, which is placed, or as ``5 takes 5 6 7``."""
    rank = RANK_NAMES[int(action_rank(action))]
    if base_name(action) == "place":
        return rank
    return f"{rank} takes {text_of(taken_cards(game, view.table, view.ref, action))}"


def spellings(game: Any, view: Any, text: str) -> list[str]:
    """Return what ``text`` may mean: taken cards in any order, with commas, ``place 5``."""
    order = {name.lower(): index for index, name in enumerate(RANK_NAMES)}
    found = text.replace(",", " ").replace("+", " ").split()
    ranks = [word for word in found if word in order]
    verbs = {word for word in found if word not in order}
    if len(ranks) == 1 and verbs <= {"place", "placed", "put"}:
        return ranks
    if len(ranks) < 2 or not verbs <= {"take", "takes", "with", "and"}:
        return []
    played, *taken = ranks
    taken.sort(key=order.__getitem__)
    return [f"{played} takes {' '.join(taken)}"]


def format_table(game: Any, view: Any, seat: int) -> str:
    """Return a view as somebody who plays ``seat`` reads it."""
    side = seat % 2
    others = [seat + step for step in range(1, game.players)]
    cards = ", ".join(
        f"seat {other % game.players} {int(cards_in_hand(view, other % game.players))}"
        for other in others
    )
    table = [
        f"{RANK_NAMES[card // NUM_SUITS]}{'*' if card == view.ref else ''}"
        for card in range(NUM_CARDS)
        if int(view.table) >> card & 1
    ]
    deals = NUM_CARDS // (CARDS_PER_DEAL * game.players)
    dealt = min(int(view.plies_in_hand) // (CARDS_PER_DEAL * game.players) + 1, deals)
    partner = f", seat {(seat + 2) % 4} is your partner" if game.players == 4 else ""
    own, other = (f"{text_of(view.piles[k])}" for k in (side, 1 - side))
    announced = _announced(view)
    placed = "   (* just placed)" if view.ref != NO_CARD else ""
    return "\n".join(
        [
            f"You are seat {seat}{partner}. Hand {int(view.hand_index) + 1}, deal {dealt} of "
            f"{deals}, dealer is seat {int(view.dealer)}.",
            f"Points: you {int(view.scores[side])}, they {int(view.scores[1 - side])}.",
            f"Your pile ({int(view.piles[side]).bit_count()}): {own}",
            f"Their pile ({int(view.piles[1 - side]).bit_count()}): {other}",
            f"Cards in hand: {cards}; to be dealt: {int(stock_size(game, view))}.{announced}",
            f"Table: {' '.join(table) or 'empty'}{placed}",
            f"Your cards: {text_of(view.hands[seat])}",
        ]
    )


def format_view(game: Any, view: Any, seat: int) -> str:
    """Return a view in five lines."""
    ref = "-" if view.ref == NO_CARD else RANK_NAMES[int(view.ref) // NUM_SUITS]
    if view.to_move == TERMINAL:
        winner = int(view.winner)
        turn = "over, drawn" if winner == NOBODY else f"over, side {winner} wins"
    elif view.to_move == CHANCE:
        turn = "before a new hand" if view.plies_in_hand == NUM_CARDS else "before a deal"
    else:
        turn = f"seat {int(view.to_move)} to move"
    sizes = " ".join(str(int(cards_in_hand(view, other))) for other in range(game.players))
    lines = [
        f"hand {int(view.hand_index)} ply {int(view.plies_in_hand)}"
        f" dealer {int(view.dealer)}: {turn}",
        f"seat {seat} holds {text_of(view.hands[seat])}",
        f"table {text_of(view.table)} last placed {ref}",
        f"scores {int(view.scores[0])} {int(view.scores[1])}"
        f" piles {text_of(view.piles[0])} | {text_of(view.piles[1])}",
        f"cards in hand {sizes} stock {int(stock_size(game, view))}" + _announced(view),
    ]
    return "\n".join(lines)


def _announced(view: Any) -> str:
    words = []
    for seat in range(MAX_SEATS):
        code = int(view.ronda[seat])
        if code >= RONDA_ANNOUNCED:
            rank = f" of {RANK_NAMES[code - RONDA_RANK]}" if code >= RONDA_RANK else ""
            words.append(f" ronda{rank} by seat {seat}")
    return ",".join(words)


class _Deck:
    """Hands out cards of a full deck by rank, the lowest suit first."""

    def __init__(self, rng: Rng | None) -> None:
        self.left = list(range(NUM_CARDS))
        self._rng = rng

    def take(self, rank_name: object) -> int:
        if rank_name not in RANK_NAMES:
            raise ValueError(f"rank {shown(rank_name)}: allowed are {', '.join(RANK_NAMES)}")
        rank = RANK_NAMES.index(str(rank_name))
        for card in self.left:
            if card // NUM_SUITS == rank:
                self.left.remove(card)
                return card
        raise ValueError(f"rank {rank_name!r}: more than {NUM_SUITS} cards of it")

    def take_any(self, count: int) -> np.uint64:
        # Suit by suit, so that what is filled in is spread over the ranks.
        order = np.array(sorted(self.left, key=lambda card: (card % NUM_SUITS, card)), np.int64)
        if self._rng is not None:
            shuffle(self._rng, order, len(order))
        chosen = [int(card) for card in order[len(order) - count :]]
        self.left = [card for card in self.left if card not in chosen]
        return _mask(chosen)


def _mask(cards: Iterable[int]) -> np.uint64:
    return np.uint64(sum(1 << card for card in cards))


def state_from_document(game: Any, document: Mapping[str, Any], rng: Rng | None = None) -> Any:
    """Return a state with the table, the hand of the seat to move and the scores of a document.

    Seat 0 is to move and deals, so that every other seat has played before it in the same deal.
    What the document leaves open (the other hands, the piles, the stock) is filled with cards that
    it does not name, drawn from ``rng`` where there is one, which is advanced.

    Raises:
        ValueError: keys or cards that no position of a game can show.
    """
    fields = Fields(
        document, "ply", ("hand", "table"), ("just_placed_index", "score", "other_score")
    )
    hand = fields.words("hand", 1, CARDS_PER_DEAL)
    table = fields.words("table", 0, NUM_CARDS - 1)
    placed = fields.index("just_placed_index", len(table))
    deck = _Deck(rng)
    own = [deck.take(rank) for rank in hand]
    on_table = [deck.take(rank) for rank in table]
    state = np.zeros(1, dtype=STATE).view(np.recarray)[0]
    per_deal = CARDS_PER_DEAL * game.players
    plies = (CARDS_PER_DEAL - len(hand)) * game.players + game.players - 1
    while plies < len(table):
        plies += per_deal
    if plies >= NUM_CARDS:
        raise ValueError(f"table of {len(table)} cards with {len(hand)} in hand: no such position")
    state.hands[0] = _mask(own)
    state.table = _mask(on_table)
    in_piles = plies - len(table)
    state.piles[0] = deck.take_any(in_piles // 2)
    state.piles[1] = deck.take_any(in_piles - in_piles // 2)
    for seat in range(1, game.players):
        state.hands[seat] = deck.take_any(len(hand) - 1)
    state.stock = _mask(deck.left)
    _fill_played(game, state, len(hand))
    for side, key in enumerate(("score", "other_score")):
        highest = game.target - 1 if game.end_mid_deal else 1000
        state.scores[side] = fields.number(key, 0, highest, 0)
    state.plies_in_hand = plies
    state.winner = state.last_capturer = NOBODY
    state.ref = NO_CARD if placed is None else on_table[placed]
    state.ref_seat = 0 if placed is None else game.players - 1
    return state


def _fill_played(game: Any, state: Any, hand_size: int) -> None:
    """Attribute cards of table and piles to the seats, as many as each has played of its five."""
    out = int(state.table) | int(state.piles[0]) | int(state.piles[1])
    cards = [card for card in range(NUM_CARDS) if out >> card & 1]
    for seat in range(game.players):
        count = CARDS_PER_DEAL - hand_size + (1 if seat else 0)
        state.played[seat] = _mask(cards[:count])
        del cards[:count]
