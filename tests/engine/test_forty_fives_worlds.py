"""Sampled worlds of Forty-fives: the replay of what the others were dealt, threw and drew.

* On decks of six or seven unseen cards the frequencies of all hands and discards are those of an
  independent list of every assignment, weighted by how it can have come about: without facts, with
  suits and trumps that a seat has shown that it lacks (and those it may have held back), with the
  number of cards drawn, for a bidder that threw four more, and under the switches on discards.
* A fact dropped from the draw, and a draw without the replay, are noticed.
* Seats that have discarded and not drawn have mostly kept their trumps.
* A bidder knows the kitty and its discards; for the others the kitty is among what is unseen.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats

from engine import rules
from engine.bits import popcount
from engine.game import get_spec
from engine.games.forty_fives_cards import merge_lacks, shown_lacking
from engine.games.forty_fives_counting import FLOOR, count_hands
from engine.games.forty_fives_state import DISCARD, DRAW, SUIT_NAMES, TRUMPS
from engine.games.forty_fives_text import parse_card
from engine.rng import make_rng
from engine.rules import CHANCE
from tests.engine.forty_fives_controls import do, mask_of, pass_chance, to_discards
from tests.naive.forty_fives import DECK, legal_cards, trumps_of
from tests.naive.worlds import (
    DiscardModel,
    FortyFivesKnowledge,
    FortyFivesSeat,
    Holdings,
    all_forty_fives_worlds,
)

SPEC = get_spec("forty_fives")
LEAST_P_VALUE = 1e-4
PLAYED = {1: "AS QS 2S KD", 2: "KS 3S 7S 4C", 3: "5S 8S 9S 7C"}
"""Spades are trump."""


class Small:
    """A view of seat 0 late in a hand with few unseen cards, and what an enumerator needs."""

    def __init__(
        self,
        unseen: str,
        drawn: dict[int, int],
        options: dict[str, str],
        *,
        lacks: dict[int, list[tuple[str, str]]] | None = None,
        bidder: int = 0,
        played: dict[int, str] = PLAYED,
    ) -> None:
        self.game = SPEC.make("", options)
        self.unseen = mask_of(unseen.split())
        view = SPEC.new_state()
        view.played[:] = -1
        view.trump, view.bidder, view.drawn[0] = SUIT_NAMES.index("S"), bidder, 0
        others = {}
        for seat in (1, 2, 3):
            cards = frozenset(parse_card(card) for card in played[seat].split())
            refused = (lacks or {}).get(seat, [])
            view.played[seat : 4 * len(cards) : 4] = [parse_card(c) for c in played[seat].split()]
            for led, card in refused:
                led, card = parse_card(led), parse_card(card)
                shown = shown_lacking(self.game, view.trump, led, card)
                view.lacks[seat] = merge_lacks(int(view.lacks[seat]), shown)
            view.drawn[seat] = drawn[seat]
            others[seat] = FortyFivesSeat(
                num_cards=5 - len(cards),
                num_thrown=drawn[seat] + (self.game.kitty if seat == bidder else 0),
                lacks=frozenset(other for pair in refused for other in lacking(*pair)),
                played=cards,
            )
        self.view, self.drawn = view, drawn
        cards = frozenset(parse_card(card) for card in unseen.split())
        self.knowledge = FortyFivesKnowledge(cards, others)
        self.model = DiscardModel(
            tuple(parse_card(card) for card in trumps_of("S")),
            FLOOR,
            self.game.min_keep,
            bool(self.game.may_throw_trump),
        )

    def weights(self) -> dict[Holdings, float]:
        """Return the weight of every possible world that has one."""
        found = {}
        for world in all_forty_fives_worlds(self.knowledge):
            weight = 1.0
            for seat, (hand, thrown) in zip((1, 2, 3), world, strict=True):
                final = hand | self.knowledge.others[seat].played
                weight *= self.model.weight(final, thrown, 5 - self.drawn[seat])
            if weight > 0:
                found[world] = weight
        return found

    def draw(self, count: int, view: Any = None) -> Counter[Holdings]:
        """Draw worlds from ``view``, by default the honest one."""
        rng = make_rng(3)
        world = SPEC.new_state()
        drawn: Counter[Holdings] = Counter()
        while drawn.total() < count:
            world = self.view.copy() if view is None else view.copy()
            if count_hands(self.game, world, 0, self.unseen, rng, world):
                drawn[holdings_of(world)] += 1
        return drawn

    def p_value(self, view: Any = None) -> float:
        """Return the chi-square p-value of draws; 0 for an impossible world."""
        weights = self.weights()
        total = sum(weights.values())
        count = 15 * len(weights)
        drawn = self.draw(count, view)
        if not set(drawn) <= set(weights):
            return 0.0
        observed, expected, rare = [], [], [0.0, 0.0]
        for world, weight in weights.items():
            wanted = count * weight / total
            if wanted < 5:
                rare = [rare[0] + drawn[world], rare[1] + wanted]
            else:
                observed.append(float(drawn[world]))
                expected.append(wanted)
        if rare[1] > 0:
            observed.append(rare[0])
            expected.append(rare[1])
        return float(stats.chisquare(observed, expected, sum_check=False).pvalue)


def holdings_of(state: Any) -> Holdings:
    def cards(mask: Any) -> frozenset[int]:
        return frozenset(card for card in range(52) if int(mask) >> card & 1)

    return tuple((cards(state.hands[seat]), cards(state.thrown[seat])) for seat in (1, 2, 3))


def lacking(led: str, card: str) -> set[int]:
    """Return the cards that a seat which played ``card`` to ``led`` cannot hold."""
    return {parse_card(c) for c in DECK if card not in legal_cards([card, c], led, "S")}


KITTY = {"kitty": "0"}
CASES = {
    "no trump is unseen": Small("KH 2H 9D 2D 9C 2C", {1: 0, 2: 1, 3: 1}, KITTY),
    "trumps and numbers drawn": Small("JS 4S KH 2H 9D 2C", {1: 1, 2: 1, 3: 1}, KITTY),
    "a void suit": Small(
        "JS 4S KH 2H 9D 2C", {1: 1, 2: 1, 3: 1}, KITTY, lacks={1: [("3H", "9D")]}
    ),
    "two void suits": Small(
        "JS 4S KH 2H 9D 2C",
        {1: 1, 2: 0, 3: 1},
        KITTY,
        lacks={1: [("3H", "9D")], 2: [("3H", "2D"), ("3D", "2C")]},
    ),
    "trumps held back from a low one": Small(
        "5S JS AH 4S 9D 2C", {1: 2, 2: 0, 3: 1}, KITTY, lacks={1: [("2S", "9D")]},
        played=PLAYED | {3: "6S 8S 9S 7C"},
    ),
    "trumps held back from the jack": Small(
        "5S AH 4S 10S 9D 2C", {1: 1, 2: 1, 3: 0}, KITTY, lacks={3: [("JS", "9D")]},
        played=PLAYED | {3: "6S 8S 9S 7C"},
    ),
    "a bidder that threw the kitty": Small(
        "JS 4S 6S KH 2H 9D 2C", {1: 0, 2: 1, 3: 0}, {"kitty": "3"}, bidder=3,
        played=PLAYED | {3: "5S 8S 9S 10S"},
    ),
    "trumps may not be thrown": Small(
        "JS 4S KH 2H 9D 2C", {1: 1, 2: 1, 3: 1}, KITTY | {"may_throw_trump": "no"}
    ),
    "a card had to be kept": Small(
        "JS 4S KH 2H", {1: 1, 2: 0, 3: 0}, KITTY | {"min_keep": "1"},
    ),
    "one card was kept of five": Small(
        "JS 4S KH 2H 9D 9C 2C", {1: 4, 2: 0, 3: 0}, KITTY | {"min_keep": "1"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CASES))
def test_worlds_are_as_frequent_as_their_weight(name: str) -> None:
    assert len(CASES[name].weights()) > 10
    assert CASES[name].p_value() > LEAST_P_VALUE


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if any(case.view.lacks)])
def test_a_dropped_fact_is_noticed(name: str) -> None:
    forgetful = CASES[name].view.copy()
    forgetful.lacks[:] = 0
    assert CASES[name].p_value(forgetful) == 0.0


def test_a_number_drawn_that_is_not_replayed_is_noticed() -> None:
    case = CASES["trumps and numbers drawn"]
    equal = Small("JS 4S KH 2H 9D 2C", {1: 1, 2: 1, 3: 1}, KITTY)
    equal.model = equal.model._replace(floor=0.999)
    assert case.p_value() > LEAST_P_VALUE > equal.p_value()


def test_seats_that_have_discarded_have_mostly_kept_their_trumps() -> None:
    game = SPEC.make()
    state = to_discards(game, 3)
    while state.phase == DISCARD:
        if rules.current_seat(game, state) == CHANCE:
            rules.deal_next(game, state)
        else:
            do(game, state, "keep")
    assert state.phase == DRAW
    view, world = SPEC.new_states(2)
    seat = int(state.dealer)
    rules.view(game, state, seat, view)
    rng = make_rng(2)
    by_rule = count = 0
    for _ in range(600):
        rules.determinize(game, view, seat, rng, world)
        for other in range(4):
            if other not in (seat, int(state.bidder)):
                count += 1
                kept, thrown = world.hands[other], world.thrown[other]
                assert popcount(kept | thrown) == 5
                by_rule += kept & ~TRUMPS[0] == 0 and thrown & TRUMPS[0] == 0
    share = 1 - FLOOR + FLOOR / 32
    assert abs(by_rule / count - share) < 4 * np.sqrt(share * (1 - share) / count)


def test_a_seat_that_is_asked_has_a_choice() -> None:
    game = SPEC.make("", {"may_throw_trump": "no"})
    state = to_discards(game, 3)
    do(game, state, "throw")
    view, world = SPEC.new_states(2)
    other = (int(state.to_move) + 1) % 4
    rules.view(game, state, other, view)
    rng = make_rng(2)
    for _ in range(500):
        rules.determinize(game, view, other, rng, world)
        assert rules.current_seat(game, world) == rules.current_seat(game, state)
        assert popcount(world.hands[state.to_move] & TRUMPS[0]) != 5


def test_the_kitty_is_known_to_the_bidder_alone() -> None:
    game = SPEC.make()
    state = SPEC.new_state()
    rules.deal(game, state, np.uint64(3))
    do(game, state, "20", "pass", "pass", "pass")
    before = int(state.hands[state.bidder])
    pass_chance(game, state)
    bidder = int(state.bidder)
    kitty = int(state.hands[bidder]) & ~before
    view, world = SPEC.new_states(2)
    rng = make_rng(2)
    rules.view(game, state, bidder, view)
    assert int(view.hands[bidder]) & kitty == kitty
    found = 0
    for seat in range(4):
        rules.view(game, state, seat, view)
        for _ in range(50):
            rules.determinize(game, view, seat, rng, world)
            if seat == bidder:
                assert int(world.hands[bidder]) == int(state.hands[bidder])
            else:
                assert popcount(world.hands[bidder]) == 9
                found += int(world.hands[bidder]) & kitty != kitty
    assert found > 100


def test_own_discards_are_nowhere_else() -> None:
    game = SPEC.make()
    state = to_discards(game, 3)
    bidder = int(state.bidder)
    do(game, state, "throw", "throw", "throw")
    thrown = int(state.thrown[bidder])
    assert popcount(np.uint64(thrown)) == 3
    view, world = SPEC.new_states(2)
    rng = make_rng(2)
    rules.view(game, state, bidder, view)
    for _ in range(50):
        rules.determinize(game, view, bidder, rng, world)
        elsewhere = int(world.stock) | sum(int(world.hands[o]) for o in range(4) if o != bidder)
        assert elsewhere & thrown == 0
        assert int(world.thrown[bidder]) == thrown
