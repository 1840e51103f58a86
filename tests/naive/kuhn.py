"""Kuhn poker as one would explain it, and its exact values by trying every pure strategy.

The obvious twin of ``engine.games.kuhn`` and ``engine.exact``; it imports nothing of ``engine``.
A position is ``(cards, history)``: ``cards`` two different letters of "JQK", one per seat, and
``history`` a string of "p" (pass, fold) and "b" (bet, call).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

CARDS = "JQK"
FINISHED = {"pp", "pbp", "pbb", "bp", "bb"}
Strategy = Callable[[str, str], float]
"""``(own card, history) -> probability of "b"`` for whoever is to move."""


def deals() -> list[str]:
    """Every deal; all are equally likely."""
    return [first + second for first in CARDS for second in CARDS if first != second]


def is_over(history: str) -> bool:
    """Whether nobody is to move any more."""
    return history in FINISHED


def to_move(history: str) -> int:
    """The seat to move: seat 0 first, then in turn."""
    return len(history) % 2


def payoff(cards: str, history: str) -> int:
    """What seat 0 gains, in antes."""
    higher = 1 if CARDS.index(cards[0]) > CARDS.index(cards[1]) else -1
    if history == "pp":
        return higher
    if history in ("bb", "pbb"):
        return 2 * higher
    return {"bp": 1, "pbp": -1}[history]  # folded: seat 1 after "b", seat 0 after "pb"


def positions() -> Iterator[tuple[str, str]]:
    """Every position of the game."""
    for cards in deals():
        for history in ("", "p", "b", "pb", *sorted(FINISHED)):
            yield cards, history


def seen_by(cards: str, history: str, seat: int) -> tuple[str, str]:
    """What a seat knows: its own card and all that was said."""
    return cards[seat], history


def value(cards: str, history: str, seat_0: Strategy, seat_1: Strategy) -> float:
    """Expected gain of seat 0 from a position on."""
    if is_over(history):
        return payoff(cards, history)
    seat = to_move(history)
    bet = (seat_0, seat_1)[seat](cards[seat], history)
    return bet * value(cards, history + "b", seat_0, seat_1) + (1 - bet) * value(
        cards, history + "p", seat_0, seat_1
    )


def game_value(seat_0: Strategy, seat_1: Strategy) -> float:
    """Expected gain of seat 0 over all deals."""
    return sum(value(cards, "", seat_0, seat_1) for cards in deals()) / len(deals())


def _look_up(table: dict[tuple[str, str], float], card: str, history: str) -> float:
    return table[card, history]


def pure_strategies(seat: int) -> Iterator[Strategy]:
    """All 64 deterministic strategies of a seat."""
    histories = ("", "pb") if seat == 0 else ("p", "b")
    known = [(card, history) for card in CARDS for history in histories]
    for choice in itertools.product((0.0, 1.0), repeat=len(known)):
        table = dict(zip(known, choice, strict=True))
        yield functools.partial(_look_up, table)


def best_response_value(seat: int, other: Strategy) -> float:
    """The most that ``seat`` can gain against ``other``."""
    if seat == 0:
        return max(game_value(mine, other) for mine in pure_strategies(0))
    return max(-game_value(other, mine) for mine in pure_strategies(1))


def exploitability(strategy: Strategy) -> float:
    """Mean over both seats of what the best of all pure strategies gains against ``strategy``."""
    return (best_response_value(0, strategy) + best_response_value(1, strategy)) / 2


def equilibrium(alpha: float) -> Strategy:
    """Kuhn's family of equilibria, ``alpha`` in [0, 1/3] (the share of bluffs with the jack)."""
    bets = {
        ("J", ""): alpha,
        ("Q", ""): 0.0,
        ("K", ""): 3 * alpha,
        ("J", "pb"): 0.0,
        ("Q", "pb"): alpha + 1 / 3,
        ("K", "pb"): 1.0,
        ("J", "p"): 1 / 3,
        ("Q", "p"): 0.0,
        ("K", "p"): 1.0,
        ("J", "b"): 0.0,
        ("Q", "b"): 1 / 3,
        ("K", "b"): 1.0,
    }
    return lambda card, history: bets[card, history]
