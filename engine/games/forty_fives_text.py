"""Forty-fives in words: cards, actions, views, and positions from documents.

Room: engine. Python only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.documents import shown
from engine.games.forty_fives_rules import card_to_decide
from engine.games.forty_fives_state import (
    DISCARD,
    HOLD,
    KEEP,
    LEVEL_NAMES,
    NAME_TRUMP,
    NOBODY,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SEATS,
    PLAY,
    PLAY_CARD,
    RANK_NAMES,
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
    text = str(word).strip().upper()
    if text[:-1] not in RANK_NAMES or text[-1:] not in SUIT_NAMES:
        ranks, suits = " ".join(RANK_NAMES), " ".join(SUIT_NAMES)
        raise ValueError(f"card {shown(word)}: allowed are a rank of {ranks} and a suit of {suits}")
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


SUIT_WORDS = {"spades": "S", "hearts": "H", "diamonds": "D", "clubs": "C"}


def spellings(game: Any, view: Any, text: str) -> list[str]:
    """Return what ``text`` may mean: ``bid 20``, ``30 for 60``, ``spades``, ``play 5S``."""
    if "".join(text.split()).removeprefix("bid") == "30for60":
        return ["30for60"]
    verb, _, rest = text.partition(" ")
    if rest and verb in ("bid", "play", "lead", "trump"):
        text = rest
    return [text, SUIT_WORDS.get(text, text)]


def format_table(game: Any, view: Any, seat: int) -> str:
    """Return a view as somebody who plays ``seat`` reads it."""

    def name(other: int) -> str:
        return "you" if other == seat else f"seat {other}"

    side, phase = seat % 2, int(view.phase)
    lines = [
        f"You are seat {seat}, seat {(seat + 2) % NUM_SEATS} is your partner. "
        f"Hand {int(view.hand_index) + 1}, dealer is {name(int(view.dealer))}. "
        f"Points: you {int(view.scores[side])}, they {int(view.scores[1 - side])}."
    ]
    calls = []
    for turn in range(1, NUM_SEATS + 1):
        other = (int(view.dealer) + turn) % NUM_SEATS
        level = LEVEL_NAMES[int(view.bids[other])] if view.bids[other] else ""
        said = [word for word in (level, "pass" if view.passed[other] else "") if word]
        calls.append(f"{name(other)} {', '.join(said) or '-'}")
    lines.append(f"Calls: {'; '.join(calls)}")
    if view.bidder != NOBODY and view.trump >= 0:
        lines.append(
            f"{name(int(view.bidder)).capitalize()} plays for {LEVEL_NAMES[int(view.high)]}, "
            f"trump is {SUIT_NAMES[int(view.trump)]}."
        )
    if phase == PLAY:
        lines += _tricks(view, name, side)
    if view.thrown[seat]:
        lines.append(f"You threw: {text_of(view.thrown[seat])}")
    if phase == DISCARD and view.to_move == seat:
        lines.append(f"You keep so far: {text_of(view.kept)}")
    lines.append(f"Your cards: {text_of(view.hands[seat])}")
    return "\n".join(lines)


def _tricks(view: Any, name: Callable[[int], str], side: int) -> list[str]:
    """Return what everybody drew and the tricks so far, the present one last."""
    drawn = "; ".join(f"{name(other)} {int(view.drawn[other])}" for other in range(NUM_SEATS))
    lines = [
        f"Drawn: {drawn}",
        f"Tricks: you {int(view.tricks[side])}, they {int(view.tricks[1 - side])}",
    ]
    number = int(view.num_played)
    for first in range(0, number, NUM_SEATS):
        cards = [int(card) for card in view.played[first : first + NUM_SEATS]]
        present = number - first < NUM_SEATS
        played = [
            f"{name(other)} {card_name(card)}" for other, card in enumerate(cards) if card >= 0
        ]
        led = f", led by {name(int(view.leader))}" if present else ""
        lines.append(f"Trick {first // NUM_SEATS + 1}{led}: {'; '.join(played)}")
    return lines


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
