"""Kuhn poker of the engine against the obvious twin, position by position.

* to move, over or not, legal actions, outcome and views agree at every position
* two deals share a view exactly if the seat cannot tell them apart
* a determinization keeps the view and reaches exactly the possible cards
* every deal of the seeded shuffler is one of the six, about equally often
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.game import get_spec
from engine.rng import make_rng
from tests.naive import kuhn as naive

SPEC = get_spec("kuhn")
CODES = {"p": 0, "b": 1}
POSITIONS = list(naive.positions())


def state_of(game: Any, cards: str, history: str) -> Any:
    """Reach a naive position by dealing and playing in the engine."""
    assert SPEC.initial_states is not None
    for _, state in SPEC.initial_states(game):
        if [naive.CARDS[card] for card in state.cards] == list(cards):
            for move in history:
                rules.apply(game, state, CODES[move])
            return state
    raise AssertionError(f"no first deal {cards}")


def view_of(game: Any, state: Any, seat: int) -> Any:
    out = SPEC.new_state()
    rules.view(game, state, seat, out)
    return out


@pytest.mark.parametrize(("cards", "history"), POSITIONS)
@pytest.mark.parametrize("ante", [1, 3])
def test_every_position_agrees_with_the_naive_game(cards: str, history: str, ante: int) -> None:
    game = SPEC.make(overrides={"ante": ante})
    state = state_of(game, cards, history)
    if naive.is_over(history):
        assert rules.current_seat(game, state) == rules.TERMINAL
        outcome = np.zeros(2)
        rules.returns(game, state, outcome)
        assert outcome.tolist() == [
            ante * naive.payoff(cards, history),
            -ante * naive.payoff(cards, history),
        ]
        terms = np.full((2, 1), np.nan)
        rules.reward_terms(game, state, terms)
        assert terms[:, 0].tolist() == outcome.tolist()
    else:
        assert rules.current_seat(game, state) == naive.to_move(history)
        actions = np.full(SPEC.max_actions, -1, np.int64)
        assert rules.legal_actions(game, state, actions) == 2
        assert actions.tolist() == [CODES["p"], CODES["b"]]
    figures = np.full((2, 1), np.nan)
    rules.statistics(game, state, figures)
    assert figures[:, 0].tolist() == [history[seat::2].count("b") for seat in range(2)]


@pytest.mark.parametrize("seat", [0, 1])
def test_views_are_equal_exactly_when_the_seat_cannot_tell_positions_apart(seat: int) -> None:
    game = SPEC.make()
    by_view: dict[bytes, set[tuple[str, str]]] = {}
    for cards, history in POSITIONS:
        seen = view_of(game, state_of(game, cards, history), seat).tobytes()
        by_view.setdefault(seen, set()).add(naive.seen_by(cards, history, seat))
    assert all(len(known) == 1 for known in by_view.values())
    assert len(by_view) == len({naive.seen_by(*position, seat) for position in POSITIONS})


@pytest.mark.parametrize("seat", [0, 1])
def test_determinizations_keep_the_view_and_reach_exactly_the_possible_cards(seat: int) -> None:
    game = SPEC.make()
    rng = make_rng(7)
    world = SPEC.new_state()
    for cards, history in POSITIONS:
        seen = view_of(game, state_of(game, cards, history), seat)
        assert view_of(game, seen, seat).tobytes() == seen.tobytes()
        drawn = set()
        for _ in range(40):
            rules.determinize(game, seen, seat, rng, world)
            assert view_of(game, world, seat).tobytes() == seen.tobytes()
            drawn.add("".join(naive.CARDS[card] for card in world.cards))
        assert drawn == {deal for deal in naive.deals() if deal[seat] == cards[seat]}


def test_seeded_deals_are_the_six_deals_equally_often() -> None:
    game = SPEC.make()
    state = SPEC.new_state()
    counts: Counter[str] = Counter()
    num_deals = 6_000
    for seed in range(num_deals):
        rules.deal(game, state, np.uint64(seed))
        counts["".join(naive.CARDS[card] for card in state.cards)] += 1
    assert set(counts) == set(naive.deals())
    margin = 4 * (num_deals * (1 / 6) * (5 / 6)) ** 0.5
    assert all(abs(count - num_deals / 6) <= margin for count in counts.values())
