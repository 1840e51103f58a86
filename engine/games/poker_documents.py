"""Kuhn and Leduc poker: positions from documents.

Room: engine. Python only. A document of kind ``line`` gives the card of the seat to move as
``hand``, the ``moves`` so far, and in Leduc poker the ``board`` once it is turned up. Both games
are small enough to try every first deal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine import rules
from engine.documents import Fields, PositionError, shown
from engine.game import GameSpec
from engine.notation import legal_moves
from engine.rng import Rng, uniform
from engine.rules import CHANCE, TERMINAL

RANK_NAMES = ("J", "Q", "K")
MOST_MOVES = 12

Reader = Callable[[Any, Mapping[str, Any], Rng | None], Any]


def reader(spec_of: Callable[[], GameSpec], *, has_board: bool) -> Reader:
    """Return ``GameSpec.state_from_document`` of a game whose first deals can be counted.

    Args:
        spec_of: Returns the spec, which is made after this call.
        has_board: Whether a card is turned up, so that states have ``board`` and ``shown``.
    """

    def read(game: Any, document: Mapping[str, Any], rng: Rng | None = None) -> Any:
        fields = Fields(document, "line", ("hand",), ("moves", *(["board"] if has_board else [])))
        hand = RANK_NAMES.index(fields.word("hand", RANK_NAMES))
        board = RANK_NAMES.index(fields.word("board", RANK_NAMES)) if "board" in fields else None
        found = []
        for probability, state in _deals(spec_of(), game, fields):
            seat = int(rules.current_seat(game, state))
            shows = has_board and bool(state.shown)
            if shows != (board is not None):
                allowed = "a card, since it is turned up" if shows else "null before it is shown"
                raise PositionError(f"board {shown(fields.get('board'))}: allowed is {allowed}")
            if state.cards[max(seat, 0)] == hand and board in (None, shows and int(state.board)):
                found.append((probability, state))
        if not found:
            raise PositionError(f"hand {shown(fields.get('hand'))}: the board leaves none of it")
        return _drawn(found, rng)

    return read


def _deals(spec: GameSpec, game: Any, fields: Fields) -> list[tuple[float, Any]]:
    """Return every first deal with its probability, after the moves of a document."""
    assert spec.initial_states is not None
    moves = fields.words("moves", 0, MOST_MOVES, "moves")
    deals = spec.initial_states(game)
    for _, state in deals:
        for move in moves:
            legal = legal_moves(spec, game, state)
            if move not in legal:
                raise PositionError(f"move {shown(move)}: allowed are {', '.join(legal) or 'none'}")
            rules.apply(game, state, legal[move])
            while int(rules.current_seat(game, state)) == CHANCE:
                rules.deal_next(game, state)
    if all(int(rules.current_seat(game, state)) == TERMINAL for _, state in deals):
        return deals
    return [deal for deal in deals if int(rules.current_seat(game, deal[1])) >= 0]


def _drawn(deals: list[tuple[float, Any]], rng: Rng | None) -> Any:
    """Return the first deal, or one drawn by its probability."""
    if rng is None:
        return deals[0][1]
    left = uniform(rng) * sum(probability for probability, _ in deals)
    for probability, state in deals:
        left -= probability
        if left < 0:
            return state
    return deals[-1][1]
