"""Sampled worlds of Cuarenta: uniform over exactly the states that agree with a seat's knowledge.

* Without announcements every assignment of the unseen cards is equally likely.
* With three and four of a rank announced, or not, the draws are uniform over an independent list
  of all assignments that fit - by rejection and by counting alike.
* A fact dropped from the draw is noticed (the test has the power that it claims).
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats

from engine import rules
from engine.game import get_spec
from engine.games.cuarenta_counting import count_hands
from engine.games.cuarenta_worlds import write_view
from engine.rng import make_rng
from engine.rules import TERMINAL

SPEC = get_spec("cuarenta")
ANNOUNCING = {"ronda": "2", "four_of_a_kind": "wins"}
UNKNOWN, ABSENT, ANNOUNCED, FIRST_RANK = 0, 1, 2, 3
Hands = tuple[frozenset[int], ...]


def small_view(game: Any, ronda: dict[int, int]) -> Any:
    """Return the view of seat 0 late in a hand: two cards in each other hand, stock empty.

    Seats 1 and 3 played two and three cards of rank 9 and 5, so that three and four of a rank are
    near. Unseen are rank 9 once, 5 once, 6 twice, 7 once and 8 once.
    """
    played = {1: [36, 37, 0], 2: [1, 4, 5], 3: [20, 21, 22]}
    unseen = [38, 23, 24, 25, 28, 32]
    view = SPEC.new_state()
    for seat, cards in played.items():
        view.played[seat] = np.uint64(sum(1 << card for card in cards))
        view.ronda[seat] = ronda.get(seat, UNKNOWN)
    own = [39, 33]
    view.hands[0] = np.uint64(sum(1 << card for card in own))
    view.played[0] = np.uint64(1 << 2 | 1 << 3 | 1 << 6)
    rest = [card for card in range(40) if card not in own and card not in unseen]
    view.piles[0] = np.uint64(sum(1 << card for card in rest))
    view.plies_in_hand, view.dealer, view.to_move = 32, 3, 0
    view.winner = view.ref = view.last_capturer = -1
    return view


def hands_of(state: Any, seats: tuple[int, ...]) -> Hands:
    return tuple(
        frozenset(card for card in range(40) if int(state.hands[seat]) >> card & 1)
        for seat in seats
    )


def facts_hold(view: Any, hands: dict[int, frozenset[int]], announcing: bool) -> bool:
    """Return whether hands agree with the announcements; written without the engine's help."""
    for seat, hand in hands.items():
        played = {card for card in range(40) if int(view.played[seat]) >> card & 1}
        counts = Counter(card // 4 for card in hand | played)
        code = int(view.ronda[seat])
        if announcing and 4 in counts.values():
            return False
        if code == ABSENT and 3 in counts.values():
            return False
        if code == ANNOUNCED and 3 not in counts.values():
            return False
        if code >= FIRST_RANK and counts[code - FIRST_RANK] != 3:
            return False
    return True


def all_worlds(view: Any, announcing: bool) -> list[Hands]:
    """Return every assignment of the six unseen cards to the hands of seats 1, 2 and 3."""
    unseen = frozenset({38, 23, 24, 25, 28, 32})
    worlds = []
    for first in itertools.combinations(sorted(unseen), 2):
        for second in itertools.combinations(sorted(unseen - set(first)), 2):
            third = unseen - set(first) - set(second)
            hands = {1: frozenset(first), 2: frozenset(second), 3: third}
            if facts_hold(view, hands, announcing):
                worlds.append(tuple(hands.values()))
    return worlds


CASES: list[tuple[dict[str, str], dict[int, int]]] = [
    ({}, {}),
    (ANNOUNCING, {1: ABSENT, 2: ABSENT, 3: UNKNOWN}),
    (ANNOUNCING, {1: ABSENT, 2: UNKNOWN, 3: ANNOUNCED}),
    (ANNOUNCING, {1: ANNOUNCED, 2: ABSENT, 3: ANNOUNCED}),
    (ANNOUNCING | {"ronda_reveals_rank": "yes"}, {1: FIRST_RANK + 9, 2: ABSENT, 3: FIRST_RANK + 5}),
]


def draw(game: Any, view: Any, count: int, by_counting: bool) -> Counter[Hands]:
    rng = make_rng(11)
    world = SPEC.new_state()
    drawn: Counter[Hands] = Counter()
    for _ in range(count):
        if by_counting:
            write_view(view, 0, world)
            assert count_hands(game, world, 0, rng, world)
        else:
            rules.determinize(game, view, 0, rng, world)
        drawn[hands_of(world, (1, 2, 3))] += 1
    return drawn


@pytest.mark.parametrize("by_counting", [False, True], ids=["rejection", "counting"])
@pytest.mark.parametrize(("options", "ronda"), CASES)
def test_worlds_are_uniform_over_all_that_fit(
    options: dict[str, str], ronda: dict[int, int], by_counting: bool
) -> None:
    game = SPEC.make("", options)
    view = small_view(game, ronda)
    worlds = all_worlds(view, bool(options))
    drawn = draw(game, view, 20 * len(worlds) + 1000, by_counting)
    assert set(drawn) <= set(worlds)
    if len(worlds) > 1:
        p_value = stats.chisquare([drawn[world] for world in worlds]).pvalue
        assert p_value > 1e-4


def test_a_dropped_fact_is_noticed() -> None:
    game = SPEC.make("", ANNOUNCING)
    view = small_view(game, {1: ABSENT, 2: ABSENT, 3: UNKNOWN})
    worlds = all_worlds(view, True)
    drawn = draw(SPEC.make(), view, 2000, False)  # options without four of a rank
    assert not set(drawn) <= set(worlds)


def test_a_rare_announcement_is_met_by_counting() -> None:
    """Three seats announced, nothing was played: one shuffle in some 20,000 fits."""
    game = SPEC.make("report_a_4p", ANNOUNCING)
    view = SPEC.new_state()
    view.hands[0] = np.uint64(1 | 1 << 4 | 1 << 8 | 1 << 12 | 1 << 16)
    for seat in (1, 2, 3):
        view.ronda[seat] = ANNOUNCED
    view.ronda[0] = ABSENT
    view.dealer, view.to_move, view.winner, view.ref, view.last_capturer = 3, 0, -1, -1, -1
    rng = make_rng(2)
    world, again = SPEC.new_states(2)
    seen: Counter[Hands] = Counter()
    for _ in range(60):
        rules.determinize(game, view, 0, rng, world)
        hands = dict(zip((1, 2, 3), hands_of(world, (1, 2, 3)), strict=True))
        assert facts_hold(view, hands, True)
        rules.view(game, world, 0, again)
        assert again == view
        seen[hands_of(world, (1, 2, 3))] += 1
    assert len(seen) == 60


@pytest.mark.parametrize("preset", list(SPEC.presets))
def test_worlds_of_real_games_keep_every_fact(preset: str) -> None:
    game = SPEC.make(preset)
    rng = make_rng(8)
    state, view, world, again = SPEC.new_states(4)
    for seed in range(2):
        rules.deal(game, state, np.uint64(seed))
        while (mover := rules.current_seat(game, state)) != TERMINAL:
            for seat in range(game.players):
                rules.view(game, state, seat, view)
                rules.determinize(game, view, seat, rng, world)
                rules.view(game, world, seat, again)
                assert again == view
                others = tuple(other for other in range(game.players) if other != seat)
                hands = dict(zip(others, hands_of(world, others), strict=True))
                assert facts_hold(view, hands, bool(game.four_of_a_kind))
            if mover < 0:
                rules.deal_next(game, state)
            else:
                rules.apply(game, state, rules.rule_action(game, state, mover, rng))
