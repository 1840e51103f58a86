"""Sampled worlds are uniform over every assignment of the unseen cards that fits all hard facts.

Positions are those of real games with few unseen cards; their worlds are listed by an enumerator
that shares no code with the engine. A chi-square test at a fixed seed compares. The same test
refuses a determinizer that draws ranks instead of cards, and one that forgets a fact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from engine import rules
from engine.game import GameSpec, get_spec
from engine.rng import below, make_rng
from engine.rules import CHANCE, TERMINAL
from tests.engine.hidden_worlds import HIDDEN, cuarenta_knowledge
from tests.naive import worlds as naive

LEAST_P_VALUE = 1e-4
"""With a fixed seed a uniform sampler passes once and for ever; a biased one gives far less."""
DRAWS_PER_WORLD = 30
Determinize = Callable[[Any, Any, Any, Any, Any], Any]
RONDA = {"ronda": "4", "ronda_cap": "40"}
CASES = [
    ("kuhn", "standard", {}, "any"),
    ("leduc", "standard", {}, "before the board"),
    ("leduc", "standard", {}, "after the board"),
    ("cuarenta", "report_a_4p", {}, "any"),
    ("cuarenta", "report_b_2p", {}, "any"),
    ("cuarenta", "report_b_2p", RONDA, naive.ABSENT),
    ("cuarenta", "report_b_2p", RONDA, naive.ANNOUNCED),
    ("cuarenta", "report_b_2p", RONDA | {"ronda_reveals_rank": "yes"}, "shown"),
    ("cuarenta", "report_a_4p", RONDA, naive.ABSENT),
    ("cuarenta", "report_a_4p", RONDA, naive.ANNOUNCED),
    ("cuarenta", "report_a_4p", RONDA | {"ronda_reveals_rank": "yes"}, "shown"),
]
LEAST_WORLDS = {"kuhn": 2, "leduc": 3, "cuarenta": 20}


def p_value(spec: GameSpec, game: Any, state: Any, seat: int, determinize: Determinize) -> float:
    """Return the chi-square p-value of draws from ``seat``'s view; 0 for an impossible world."""
    part = HIDDEN[spec.name]
    ways = Counter(part.all_worlds(game, state, seat))
    num_draws = DRAWS_PER_WORLD * ways.total() + 500
    view, world = spec.new_states(2)
    rules.view(game, state, seat, view)
    rng = make_rng(3)
    drawn: Counter[Any] = Counter()
    for _ in range(num_draws):
        determinize(game, view, seat, rng, world)
        drawn[part.world(game, world, seat)] += 1
    if not set(drawn) <= set(ways):
        return 0.0
    expected = [num_draws * count / ways.total() for count in ways.values()]
    return float(stats.chisquare([drawn[world] for world in ways], expected).pvalue)


def binding_facts(game: Any, state: Any, seat: int) -> set[str]:
    """Return the kinds of facts without which more worlds would be possible."""
    knowledge = cuarenta_knowledge(game, state, seat)
    count = sum(1 for _ in naive.all_cuarenta_worlds(knowledge))
    found = set()
    for other, told in knowledge.others.items():
        silent = dict(knowledge.others) | {other: told._replace(told=naive.UNKNOWN)}
        if sum(1 for _ in naive.all_cuarenta_worlds(knowledge._replace(others=silent))) > count:
            found.add(told.told if isinstance(told.told, str) else "shown")
    return found


def is_wanted(game: Any, state: Any, seat: int, wanted: str) -> bool:
    if wanted == "any":
        return True
    if wanted in ("before the board", "after the board"):
        return bool(state.shown) == (wanted == "after the board")
    return wanted in binding_facts(game, state, seat)


def find_position(spec: GameSpec, game: Any, wanted: str) -> tuple[Any, int]:
    """Return the first position, and a seat, with few but enough worlds and a wanted fact."""
    rng = make_rng(1)
    actions = np.zeros(spec.max_actions, np.int64)
    state = spec.new_state()
    for seed in range(2_000):
        rules.deal(game, state, np.uint64(seed))
        while (mover := int(rules.current_seat(game, state))) != TERMINAL:
            if mover == CHANCE:
                rules.deal_next(game, state)
                continue
            if is_small(spec, game, state, mover) and is_wanted(game, state, mover, wanted):
                return state, mover
            count = int(rules.legal_actions(game, state, actions))
            rules.apply(game, state, actions[below(rng, count)])
    raise AssertionError(f"no position of {spec.name} with {wanted}")


def is_small(spec: GameSpec, game: Any, state: Any, seat: int) -> bool:
    """Return whether there are few worlds, but enough for a test."""
    if spec.name == "cuarenta":
        left = 40 - int(state.plies_in_hand)
        num_stock = sum(int(state.stock) >> card & 1 for card in range(40))
        # Two other cards in each of three hands at the end, or two in one hand and ten in stock.
        if (num_stock, left) not in ((0, 8), (0, 7), (10, 14), (10, 13)):
            return False
    count = len(list(HIDDEN[spec.name].all_worlds(game, state, seat)))
    return LEAST_WORLDS[spec.name] <= count <= 200


@pytest.mark.parametrize(("name", "preset", "options", "wanted"), CASES)
def test_worlds_are_uniform(name: str, preset: str, options: dict[str, str], wanted: str) -> None:
    spec = get_spec(name)
    game = spec.make(preset, options)
    state, seat = find_position(spec, game, wanted)
    assert p_value(spec, game, state, seat, rules.determinize) > LEAST_P_VALUE


def test_a_determinizer_that_draws_ranks_instead_of_cards_is_refused() -> None:
    spec = get_spec("leduc")
    game = spec.make()
    state, seat = find_position(spec, game, "before the board")

    def by_rank(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        rules.determinize(game, view, seat, rng, out)
        ranks = [rank for rank in range(3) if rank != view.cards[seat] or rank != out.board]
        out.cards[1 - seat] = ranks[below(rng, len(ranks))]

    assert p_value(spec, game, state, seat, by_rank) < LEAST_P_VALUE


@pytest.mark.parametrize("fact", [naive.ABSENT, naive.ANNOUNCED])
def test_a_determinizer_that_forgets_a_fact_is_refused(fact: str) -> None:
    spec = get_spec("cuarenta")
    game = spec.make("report_a_4p", RONDA)
    state, seat = find_position(spec, game, fact)
    code = (naive.UNKNOWN, naive.ABSENT, naive.ANNOUNCED).index(fact)

    def forgetful(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        less = view.copy()
        for other in range(len(less.ronda)):
            if less.ronda[other] == code:
                less.ronda[other] = 0
        rules.determinize(game, less, seat, rng, out)

    assert p_value(spec, game, state, seat, forgetful) == 0.0


def test_a_biased_determinizer_without_facts_is_refused() -> None:
    spec = get_spec("cuarenta")
    game = spec.make("report_a_4p")
    state, seat = find_position(spec, game, "any")

    def sorted_hands(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        # In one world of eight, of two that are drawn: a small bias towards low cards.
        first = spec.new_state()
        rules.determinize(game, view, seat, rng, first)
        rules.determinize(game, view, seat, rng, out)
        other = (seat + 1) % game.players
        if below(rng, 4) == 0 and first.hands[other] < out.hands[other]:
            out.hands[:] = first.hands

    assert p_value(spec, game, state, seat, sorted_hands) < LEAST_P_VALUE
