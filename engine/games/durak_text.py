"""Durak in words: cards, actions, views, and positions from documents.

Room: engine. Python only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.documents import shown
from engine.games.durak_rules import discarded, known_cards, write_actions
from engine.games.durak_state import (
    DEFEND,
    MAX_ACTIONS,
    MULTI,
    NOBODY,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SUITS,
    OVER,
    PASS,
    RANK_NAMES,
    SHOW,
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
        f"card {shown(name)}: allowed are a rank of {' '.join(RANK_NAMES)} and a suit of "
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


VERBS = ("attack", "defend", "cover", "beat", "throw", "play", "with", "in")
"""What somebody may write before a card that is played, whatever for."""


def spellings(game: Any, view: Any, text: str) -> list[str]:
    """Return what ``text`` may mean: ``attack 7S``, ``transfer 7S``, several cards in any order."""
    verb, _, rest = text.replace(":", " ").partition(" ")
    if verb in ("transfer", "pass", "show") and rest:
        return [f"{'show' if verb == 'show' else 'transfer'}:{rest.removeprefix('on ')}"]
    if text in ("done", "beaten", "enough"):
        return ["pass"]
    found = [word for word in text.replace("+", " ").replace(",", " ").split() if word not in VERBS]
    try:
        cards = sorted(card_of(word) for word in found)
    except ValueError:
        return []
    return ["+".join(card_name(card) for card in cards)] if cards else []


def parse_action(game: Any, record: Any, text: str) -> int:
    """Return the legal action that ``text`` stands for, in a state or the mover's view.

    Raises ValueError, which lists the legal actions.
    """
    actions = np.zeros(MAX_ACTIONS, np.int64)
    count = int(write_actions(game, record, actions)) if record.to_move >= 0 else 0
    legal = {format_action(game, record, int(code)): int(code) for code in actions[:count]}
    found = {name.lower(): code for name, code in legal.items()}.get(text.strip().lower())
    if found is None:
        raise ValueError(f"move {shown(text)}: allowed are {', '.join(legal) or 'none'}")
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


def format_table(game: Any, view: Any, seat: int) -> str:
    """Return a view as somebody who plays ``seat`` reads it."""

    def name(other: int) -> str:
        return "you" if other == seat else f"seat {other}"

    def verb(other: int, word: str) -> str:
        return f"You {word}" if other == seat else f"Seat {other} {word}s"

    attacker, defender = int(view.attacker), int(view.defender)
    others = []
    for step in range(1, game.players):
        other = (seat + step) % game.players
        known = text_of(known_cards(view, other))
        holds = "is out" if view.finished[other] else f"{int(view.sizes[other])} cards"
        others.append(f"seat {other}: {holds}" + (f" (with {known})" if known != "-" else ""))
    attacks = [card_name(int(card)) for card in view.attacks[: view.num_attacks]]
    covered, uncovered = attacks[: view.num_covers], attacks[view.num_covers :]
    table = f"{' '.join(covered)} beaten by {text_of(view.covers)}" if covered else ""
    if uncovered:
        table += f"{', then ' if covered else ''}{' '.join(uncovered)} not beaten"
    doing = f"{verb(attacker, 'attack')} {name(defender)}"
    if view.phase == OVER:
        loser = int(view.durak)
        doing = "Nobody lost" if loser == NOBODY else f"{name(loser).capitalize()} lost"
    if view.phase == TAKING:
        doing = f"{verb(defender, 'take')} what {name(attacker)} began"
    trump = SUIT_NAMES[int(view.trump)]
    stock = f"{int(view.stock_size)} cards to be drawn, the last of them"
    stock = f"{stock} {card_name(int(view.turned_up))}" if view.stock_size else "no cards to draw"
    return "\n".join(
        [
            f"You are seat {seat}. Bout {int(view.bouts) + 1}. {doing}.",
            f"Trump: {trump}; {stock}. Discarded: {text_of(discarded(view))}",
            f"Others: {'; '.join(others)}",
            f"Table: {table or 'empty'}",
            f"Your cards: {text_of(view.hands[seat])}",
        ]
    )
