"""Moves as people write and see them, for every game: with its notation, or by number.

Room: engine. Python only. A game's own part are ``format_action`` and ``spellings`` of its
``GameSpec``; a game that has neither is played by the numbers of the legal actions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine import rules
from engine.documents import shown
from engine.game import GameSpec, format_code

UNSEEN = "moves unseen"
"""What a seat is told of an action that it sees no more of."""
_SUITS = str.maketrans(
    {"\u2660": "S", "\u2664": "S", "\u2665": "H", "\u2661": "H"}
    | {"\u2666": "D", "\u2662": "D", "\u2663": "C", "\u2667": "C", "\ufe0f": None}
)


class MoveError(ValueError):
    """Text that is no legal move; names it and the legal ones."""


def legal_codes(spec: GameSpec, game: Any, record: Any) -> list[int]:
    """Return the legal actions of the seat to move, in canonical order; none of a finished game.

    ``record`` is a state, or the view of the seat to move.
    """
    if int(rules.current_seat(game, record)) < 0:
        return []
    actions = np.zeros(spec.max_actions, np.int64)
    return [int(code) for code in actions[: int(rules.legal_actions(game, record, actions))]]


def legal_moves(spec: GameSpec, game: Any, record: Any) -> dict[str, int]:
    """Return the legal actions by their texts, in canonical order."""
    moves: dict[str, int] = {}
    for code in legal_codes(spec, game, record):
        text = spec.format_action(game, record, code)
        # A notation that tells two actions not apart must not make one of them unplayable.
        moves[text if text not in moves else f"{text} ({code})"] = code
    return moves


def listed(spec: GameSpec, moves: dict[str, int]) -> str:
    """Return the legal moves in one line, with their numbers where a game has no notation."""
    if spec.format_action is format_code:
        return "; ".join(f"{number} {text}" for number, text in enumerate(moves, 1))
    return "; ".join(moves) or "none"


def normalized(text: str) -> str:
    """Return ``text`` in lower case, with single spaces and letters for the signs of suits."""
    return " ".join(text.translate(_SUITS).casefold().split())


def parse_move(spec: GameSpec, game: Any, view: Any, text: str) -> int:
    """Return the legal action that ``text`` stands for in the view of the seat to move.

    A move is written as ``format_action`` writes it, or as the game's ``spellings`` allow, upper or
    lower case; the first words are enough where they belong to one move alone. ``#2`` is the second
    legal move, and so is ``2`` in a game without a notation.

    Raises:
        MoveError: None of the legal moves, or more than one; lists them.
    """
    moves = legal_moves(spec, game, view)
    wanted = normalized(text)
    places = {f"#{number}": code for number, code in enumerate(moves.values(), 1)}
    if spec.format_action is format_code:
        places |= {place[1:]: code for place, code in places.items()}
    by_text = {normalized(name): code for name, code in moves.items()} | places
    spelled = [] if spec.spellings is None else spec.spellings(game, view, wanted)
    for candidate in (wanted, *map(normalized, spelled)):
        if candidate in by_text:
            return by_text[candidate]
    begun = {name for name in moves if wanted and normalized(name).startswith(f"{wanted} ")}
    if len(begun) == 1:
        return moves[begun.pop()]
    if begun:
        meant = "; ".join(name for name in moves if name in begun)
        raise MoveError(f"move {shown(text)} is not clear: it may be {meant}")
    raise MoveError(f"move {shown(text)}: allowed are {listed(spec, moves)}")


def seen_move(spec: GameSpec, game: Any, state: Any, action: int, seat: int) -> str:
    """Return what ``seat`` sees of ``action``, played in ``state`` (the one before it).

    The action is shown only where ``observe_action`` tells it apart: its key is the code itself and
    no other legal action has it. It is then written with the view of ``seat``, so that the text
    follows from what that seat knows.
    """
    key = int(rules.observe_action(game, state, action, seat))
    same = [
        code
        for code in legal_codes(spec, game, state)
        if code != action and int(rules.observe_action(game, state, code, seat)) == key
    ]
    if key != action or same:
        return UNSEEN
    view = spec.new_state()
    rules.view(game, state, seat, view)
    return spec.format_action(game, view, action)


def table_text(spec: GameSpec, game: Any, view: Any, seat: int) -> str:
    """Return the view of ``seat`` for somebody who plays it."""
    return (spec.format_table or spec.format_view)(game, view, seat)
