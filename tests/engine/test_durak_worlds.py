"""Sampled worlds of Durak: exactly as frequent as an independent enumeration of the deals says.

* What is known of the deal makes worlds likelier or impossible: that the first attacker had the
  lowest trump, that nobody had a trump, that nobody had five cards of a suit - both where shuffles
  are drawn until one fits, and where worlds are drawn by counting.
* Without facts all assignments of the unseen cards are equally likely, the order of the stock too.
* A fact dropped from the draw is noticed (the test has the power that it claims).
* Cards that a seat took, and the card turned up, are where all know them to be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from engine import rules
from engine.game import get_spec
from engine.games import durak_worlds
from engine.games.durak_counting import count_hands, new_places, unseen_cards
from engine.games.durak_deal import clear
from engine.games.durak_rules import known_cards
from engine.games.durak_text import card_of
from engine.rng import below, make_rng
from engine.rules import CHANCE, TERMINAL
from tests.engine.hidden_worlds import DURAK

SPEC = get_spec("durak")
LEAST_P_VALUE = 1e-4
NUM_DRAWS = 4000
LEAST_EXPECTED = 8.0
LOWEST_BEGAN, NOBODY_HAD_TRUMP, NO_FIVE = 1, 2, 4
Ways = Counter[tuple[Any, ...]]
HEARTS = 2


class Small(NamedTuple):
    """A position with few hidden cards, some trumps among them, as seat 0 sees it."""

    facts: int
    first: int
    """First attacker."""
    own_low: int
    """Rank of the lowest trump that seat 0 was dealt, 9 for none."""
    shown: tuple[str, ...] = ("6C", "7C", "8C")
    """What seat 1 has shown: all but the last before it drew a card, the last afterwards."""
    players: int = 2
    tells_much: bool = True
    """Without the facts as many draws would show a difference."""


CASES = {
    "no facts": Small(0, 0, 9),
    "the others were dealt no trump": Small(LOWEST_BEGAN, 0, 8),
    "seat 1 was dealt the six": Small(LOWEST_BEGAN, 1, 1),
    "nobody was dealt a trump": Small(NOBODY_HAD_TRUMP, 1, 9),
    "seat 1 was dealt the seven that it showed, or the six": Small(
        LOWEST_BEGAN, 1, 2, shown=("6C", "7H", "8C"), tells_much=False
    ),
    "no five clubs": Small(NO_FIVE, 1, 9, shown=("6C", "7C", "8C", "9C")),
    "no five clubs, and the six": Small(
        LOWEST_BEGAN | NO_FIVE, 1, 1, shown=("6C", "7C", "8C", "9C")
    ),
    "of three, seat 2 was dealt the lowest": Small(LOWEST_BEGAN, 2, 8, players=3),
    "of three, nobody was dealt a trump": Small(NOBODY_HAD_TRUMP, 2, 9, players=3),
    "of three, the others were dealt no lower one": Small(LOWEST_BEGAN, 0, 2, players=3),
}


def small_position(case: Small) -> tuple[Any, Any, Ways]:
    """Return rules, state (no world of it is special) and all worlds with their weights.

    Six cards are unseen: three trumps, clubs and others. Seat 1 was given seven cards and has shown
    three or four of them; seat 2, if there is one, was given eight and has shown six.
    """
    game = SPEC.make("", {"players": case.players, "redeal": case.facts & NO_FIVE > 0})
    state = SPEC.new_state()
    clear(state)
    hidden = [card_of(name) for name in ("6H", "9H", "10H", "JC", "QC", "KS")]
    own = [card_of(name) for name in ("AH", "AD", "KD")]
    state.trump, state.turned_up = HEARTS, card_of("QH")
    state.facts, state.first_attacker = case.facts, case.first
    state.low_trumps = 0xFFF0 | case.own_low
    state.attacker, state.defender, state.defender_cards = 0, 1, 3
    sizes = [3, 7 - len(case.shown), 2 if case.players == 3 else 0]
    stock = 7 - sum(sizes[1:])
    state.sizes[:3] = sizes
    state.given[:3] = [6, 7, 8 if case.players == 3 else 0]
    for number, name in enumerate(case.shown):
        state.first_shown[card_of(name)] = 64 + 6 + (number == len(case.shown) - 1)
    for name in ("6S", "7S", "8S", "9S", "10S", "JS") if case.players == 3 else ():
        state.first_shown[card_of(name)] = 128 + 7
    places = list(hidden)
    state.hands[0] = mask_of(own)
    for seat in (1, 2):
        state.hands[seat] = mask_of([places.pop() for _ in range(sizes[seat])])
    state.stock_size = stock
    state.stock[:stock] = [card_of("QH"), *places]
    state.seen = np.uint64((1 << 36) - 1) & ~mask_of([*own, *hidden])
    return game, state, DURAK.all_worlds(game, state, 0)  # type: ignore[return-value]


def mask_of(cards: list[int]) -> np.uint64:
    return np.uint64(sum(1 << card for card in cards))


def games(options: dict[str, Any], facts: int) -> Iterator[tuple[Any, Any]]:
    """Yield the first positions of games with these facts."""
    game = SPEC.make("", options)
    state = SPEC.new_state()
    for seed in range(5000):
        rules.deal(game, state, np.uint64(seed))
        if state.facts == facts:
            yield game, state


def positions(game: Any, state: Any, seed: int) -> Iterator[int]:
    """Play a random game on; yield each seat to move."""
    rng = make_rng(seed)
    actions = np.zeros(SPEC.max_actions, np.int64)
    while (seat := int(rules.current_seat(game, state))) != TERMINAL:
        if seat == CHANCE:
            rules.deal_next(game, state)
            continue
        yield seat
        count = int(rules.legal_actions(game, state, actions))
        rules.apply(game, state, actions[below(rng, count)])


def p_value(game: Any, state: Any, seat: int, ways: Ways, how: str) -> float:
    """Return the chi-square p-value of draws from ``seat``'s view; 0 for an impossible world."""
    view, world = SPEC.new_states(2)
    rules.view(game, state, seat, view)
    rng = make_rng(5)
    drawn: Ways = Counter()
    for _ in range(NUM_DRAWS):
        if how == "counting":
            durak_worlds.write_view(view, seat, world)
            places = new_places(game, world, seat)
            unseen = np.uint64(unseen_cards(world, seat))
            count_hands(world, seat, places, unseen, rng, world)
        elif how != "as drawn":
            less = view.copy()
            less.facts = int(how[-1]) if how[-1].isdigit() else 0
            rules.determinize(game, less, seat, rng, world)
        else:
            rules.determinize(game, view, seat, rng, world)
        drawn[DURAK.world(game, world, seat)] += 1
    if not set(drawn) <= set(ways):
        return 0.0
    found, expected = [0.0], [0.0]
    for one, count in ways.items():
        share = NUM_DRAWS * count / ways.total()
        if share < LEAST_EXPECTED:  # rare ones are counted together
            found[0] += drawn[one]
            expected[0] += share
        else:
            found.append(drawn[one])
            expected.append(share)
    first = 0 if expected[0] >= LEAST_EXPECTED else 1
    scale = sum(found[first:]) / sum(expected[first:])
    return float(stats.chisquare(found[first:], [scale * n for n in expected[first:]]).pvalue)


@pytest.mark.parametrize("name", list(CASES))
def test_worlds_are_as_frequent_as_there_are_ways_to_them(name: str) -> None:
    case = CASES[name]
    game, state, ways = small_position(case)
    assert 3 <= len(ways) <= 200
    assert p_value(game, state, 0, ways, "as drawn") > LEAST_P_VALUE
    if case.facts in (LOWEST_BEGAN, NOBODY_HAD_TRUMP):
        assert p_value(game, state, 0, ways, "counting") > LEAST_P_VALUE
    if case.facts and case.tells_much:
        assert p_value(game, state, 0, ways, "without facts") < LEAST_P_VALUE
    if case.facts == LOWEST_BEGAN | NO_FIVE:
        for fact in (LOWEST_BEGAN, NO_FIVE):
            assert p_value(game, state, 0, ways, f"with {fact}") < LEAST_P_VALUE


def test_a_rare_fact_is_met_by_counting() -> None:
    """Nobody was dealt a trump: of the shuffles at the first ply hardly one in a hundred fits."""
    game, state = next(games({"players": 3}, NOBODY_HAD_TRUMP))
    view, world, again = SPEC.new_states(3)
    rules.view(game, state, 0, view)
    rng = make_rng(2)
    seen = set()
    for _ in range(30):
        rules.determinize(game, view, 0, rng, world)
        trumps = 511 << 9 * int(state.trump)
        assert all(int(hand) & trumps == 0 for hand in world.hands)
        rules.view(game, world, 0, again)
        assert again == view
        seen.add(DURAK.world(game, world, 0))
    assert len(seen) == 30


@pytest.mark.parametrize("preset", list(SPEC.presets))
def test_worlds_of_real_games_keep_every_fact(preset: str) -> None:
    game = SPEC.make(preset, {"redeal": True})
    rng = make_rng(8)
    view, world = SPEC.new_states(2)
    state = SPEC.new_state()
    num_known = 0
    for seed in range(2):
        rules.deal(game, state, np.uint64(seed))
        for mover in positions(game, state, seed):
            seat = (mover + seed) % game.players
            rules.view(game, state, seat, view)
            rules.determinize(game, view, seat, rng, world)
            assert DURAK.is_possible(game, state, seat, world)
            num_known += sum(int(known_cards(view, s)).bit_count() for s in range(game.players))
    assert num_known > 0
