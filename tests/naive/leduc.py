"""Leduc poker as one would explain it, on strings.

The obvious twin of ``engine.games.leduc``; it imports nothing of ``engine``. A position is
``(cards, history)``: ``cards`` three letters of "JQK" (hand of seat 0, hand of seat 1, the card
that is turned up), and ``history`` the moves "f", "c" (also a check), "r" of the first round and,
after a "/", of the second.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

CARDS = "JQK"


class Stakes(NamedTuple):
    """What is bet, in chips."""

    ante: int = 1
    raises: tuple[int, int] = (2, 4)
    """By round."""
    raises_of_a_round: int = 2


STANDARD = Stakes()


def deals() -> Counter[str]:
    """Every deal by rank, with the number of ways to draw it from two cards of each rank."""
    return Counter("".join(cards) for cards in itertools.permutations(CARDS * 2, 3))


def round_is_over(moves: str) -> bool:
    """Whether a round of betting has ended: a fold, or a call that is not the opening check."""
    return moves.endswith("f") or (len(moves) >= 2 and moves.endswith("c"))


def is_over(history: str) -> bool:
    """Whether nobody is to move any more."""
    rounds = history.split("/")
    return history.endswith("f") or (len(rounds) == 2 and round_is_over(rounds[1]))


def awaits_card(history: str) -> bool:
    """Whether the first round is over and the card not yet turned up."""
    return "/" not in history and round_is_over(history) and not is_over(history)


def to_move(history: str) -> int:
    """The seat to move: seat 0 opens each round, then in turn."""
    return len(history.split("/")[-1]) % 2


def paid(history: str, stakes: Stakes = STANDARD) -> list[int]:
    """Chips in the pot by seat."""
    pot = [stakes.ante, stakes.ante]
    for chips, moves in zip(stakes.raises, history.split("/"), strict=False):
        for ply, move in enumerate(moves):
            if move != "f":
                pot[ply % 2] = max(pot) + (chips if move == "r" else 0)
    return pot


def legal(history: str, stakes: Stakes = STANDARD) -> str:
    """The moves that the seat to move may make, in the order f, c, r."""
    pot = paid(history, stakes)
    fold = "f" if pot[0] != pot[1] else ""
    raises = "r" if history.split("/")[-1].count("r") < stakes.raises_of_a_round else ""
    return fold + "c" + raises


def payoff(cards: str, history: str, stakes: Stakes = STANDARD) -> int:
    """What seat 0 gains, in chips."""
    pot = paid(history, stakes)
    if history.endswith("f"):
        folded = (len(history.split("/")[-1]) - 1) % 2
        return pot[1] if folded == 1 else -pot[0]
    first, second, board = tuple(cards)
    if first == second:
        return 0
    strength = [CARDS.index(card) + 10 * (card == board) for card in (first, second)]
    return pot[1] if strength[0] > strength[1] else -pot[0]


def histories() -> Iterator[str]:
    """Every history, also finished ones and those that await the card."""
    todo = [""]
    while todo:
        history = todo.pop()
        yield history
        if is_over(history):
            continue
        if awaits_card(history):
            todo.append(history + "/")
        else:
            todo.extend(history + move for move in legal(history))


def seen_by(cards: str, history: str, seat: int) -> tuple[str, str, str]:
    """What a seat knows: its own card, the card if it is turned up, and all that was done."""
    return cards[seat], cards[2] if "/" in history else "?", history


def uniform_value(cards: str, history: str) -> float:
    """Expected gain of seat 0 from a position on when all moves are equally likely."""
    if is_over(history):
        return payoff(cards, history)
    if awaits_card(history):
        return uniform_value(cards, history + "/")
    moves = legal(history)
    return sum(uniform_value(cards, history + move) for move in moves) / len(moves)
