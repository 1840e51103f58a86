"""Forty-fives' rules from worked positions, and the faults that such programs are known for.

* Position cases: legal cards of a follower, winners of tricks, scores, legal calls.
* Known faults: a red plain five ranked below everything; players who had passed asked again; the
  extra points of a made bid lost; a privileged trump that must not be played; the ace of hearts
  taken for a heart.
* The auction in full, with its switches.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.bits import popcount
from engine.game import get_spec
from engine.games.forty_fives_cards import played_cards, winning_place
from engine.games.forty_fives_score import bid_points, other_points
from engine.games.forty_fives_state import (
    HAND_END,
    LEVEL_NAMES,
    SUIT_NAMES,
    plain_order,
    trump_order,
)
from engine.games.forty_fives_text import card_name, parse_card
from engine.rng import make_rng
from engine.rules import CHANCE
from tests.engine.forty_fives_controls import at_play, do, legal_words

SPEC = get_spec("forty_fives")
GAME = SPEC.make()
CASES = json.loads((Path(__file__).parents[1] / "cases" / "forty_fives.json").read_text())


def cases(kind: str) -> Any:
    found = [case for case in CASES if case["kind"] == kind]
    return pytest.mark.parametrize("case", found, ids=lambda case: case["id"])


def winner(trump: str, trick: list[str]) -> int:
    cards = np.array([parse_card(card) for card in trick], np.int8)
    return int(winning_place(SUIT_NAMES.index(trump), cards, 0, len(cards)))


# --- position cases -------------------------------------------------------------------------------


def test_every_case_is_of_a_kind_that_is_tested() -> None:
    assert len(CASES) == 39
    assert {case["kind"] for case in CASES} == {"follow", "trick", "score", "auction"}


@cases("follow")
def test_follow_case(case: dict[str, Any]) -> None:
    state = SPEC.state_from_document(GAME, case)  # type: ignore[misc]
    assert sorted(legal_words(GAME, state)) == sorted(case["expect"])


@cases("trick")
def test_trick_case(case: dict[str, Any]) -> None:
    assert winner(case["trump"], case["trick"]) == case["expect"]


@cases("score")
def test_score_case(case: dict[str, Any]) -> None:
    game = SPEC.make("", case["rules"])
    level = LEVEL_NAMES.index(str(case["bid"]))
    own = int(bid_points(game, level, case["raw_bidding_side"]))
    other = other_points(
        game,
        case["raw_other_side"],
        case["score_other_side"],
        case["other_side_entered_a_bid"],
        own > 0,
    )
    assert [own, int(other)] == case["expect"]


@cases("auction")
def test_auction_case(case: dict[str, Any]) -> None:
    state = SPEC.state_from_document(GAME, case)  # type: ignore[misc]
    assert sorted(legal_words(GAME, state)) == sorted(str(word) for word in case["expect"])


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"kind": "trick"}, "kind 'trick': allowed are auction, follow"),
        ({"kind": "follow", "hand": ["5S"]}, "position without 'trump'"),
        ({"trump": "S", "hand": ["5S", "1S"]}, "card '1S'"),
        ({"trump": "S", "hand": ["5S", "5S"]}, "named twice"),
        ({"trump": "S", "hand": []}, "hand of 0 cards"),
        ({"trump": "X", "hand": ["5S"]}, "trump 'X': allowed are S, H, D, C"),
        ({"bids_so_far": [25, 20]}, "call '20': allowed are pass, 30for60"),
        ({"bids_so_far": [20, "pass"], "is_dealer": True}, "the dealer speaks fourth"),
        ({"bids_so_far": [20, "pass", "pass", "pass"]}, "bids_so_far of 4 calls"),
    ],
)
def test_a_position_that_cannot_be_is_refused(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SPEC.state_from_document(GAME, document)  # type: ignore[misc]


def test_a_document_becomes_a_state_of_a_whole_deck() -> None:
    for case in CASES:
        if case["kind"] not in ("follow", "auction"):
            continue
        state = SPEC.state_from_document(GAME, case)  # type: ignore[misc]
        masks = [*state.hands, *state.thrown, state.stock]
        masks += [played_cards(state, seat) for seat in range(4)]
        assert sum(int(popcount(mask)) for mask in masks) == 52
        assert sum(int(mask) for mask in masks) == (1 << 52) - 1
        view, world, again = SPEC.new_states(3)
        rules.view(GAME, state, state.to_move, view)
        rules.determinize(GAME, view, state.to_move, make_rng(1), world)
        rules.view(GAME, world, state.to_move, again)
        assert again == view


# --- known faults ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suit", ["H", "D"])
def test_a_red_plain_five_ranks_among_its_suit(suit: str) -> None:
    order = [card_name(card) for card in plain_order(SUIT_NAMES.index(suit))]
    assert order.index(f"6{suit}") + 1 == order.index(f"5{suit}") == order.index(f"4{suit}") - 1
    assert winner("S", [f"4{suit}", f"5{suit}", f"3{suit}", "KC"]) == 1


def test_the_extra_points_of_a_made_bid_count() -> None:
    assert int(bid_points(GAME, LEVEL_NAMES.index("20"), 30)) == 30
    assert int(bid_points(GAME, LEVEL_NAMES.index("20"), 25)) == 25
    assert int(bid_points(GAME, LEVEL_NAMES.index("25"), 30)) == 30


def test_a_privileged_trump_may_be_played_where_another_trump_obliges() -> None:
    hands = ["9S 2C 3C 4C 6C", "5S 10S KD QD 9D", "2D 3D 4D 6D 7D", "2H 3H 4H 6H 7H"]
    state = at_play(GAME, "S", hands)
    do(GAME, state, "9S")
    assert sorted(legal_words(GAME, state)) == ["10S", "5S"]
    do(GAME, state, "5S")


def test_the_ace_of_hearts_is_a_trump_and_no_heart() -> None:
    hands = ["KH 2C 3C 4C 6C", "AH 3D 9D QD KD", "2D QH 4D 6D 7D", "2H 3H 4H 6H 7H"]
    state = at_play(GAME, "S", hands)
    do(GAME, state, "KH")
    assert sorted(legal_words(GAME, state)) == ["3D", "9D", "AH", "KD", "QD"]  # it holds no heart
    do(GAME, state, "AH")
    assert legal_words(GAME, state) == ["QH"]  # the king was led: hearts are owed
    do(GAME, state, "QH", "7H")
    assert int(state.leader) == 1  # the ace wins as a trump
    for trump, suit in enumerate(SUIT_NAMES):
        assert parse_card("AH") in trump_order(trump)
        assert suit == "H" or len(plain_order(trump)) == 13


def test_who_has_passed_is_not_asked_again() -> None:
    game = SPEC.make("", {"auction": "continue"})
    state = SPEC.new_state()
    rules.deal(game, state, np.uint64(1))
    dealer = int(state.dealer)
    do(game, state, "20", "pass", "25", "hold")  # the seat two before the dealer has passed
    assert int(state.to_move) == (dealer + 1) % 4
    assert legal_words(game, state) == ["pass", "30for60"]
    do(game, state, "pass")
    assert int(state.to_move) == (dealer + 3) % 4
    do(game, state, "30for60")
    assert int(state.to_move) == dealer
    assert legal_words(game, state) == ["pass", "hold"]
    do(game, state, "hold")
    assert int(state.to_move) == (dealer + 3) % 4
    assert legal_words(game, state) == ["pass"]
    do(game, state, "pass")
    assert rules.current_seat(game, state) == CHANCE
    assert (int(state.bidder), LEVEL_NAMES[int(state.high)]) == (dealer, "30for60")
    assert [bool(out) for out in state.passed].count(True) == 3


# --- auction --------------------------------------------------------------------------------------


def test_each_seat_speaks_once_and_the_dealer_last() -> None:
    state = SPEC.new_state()
    rules.deal(GAME, state, np.uint64(1))
    spoken = []
    for word in ("pass", "20", "25", "hold"):
        spoken.append(int(state.to_move))
        do(GAME, state, word)
    assert spoken == [(int(state.dealer) + k) % 4 for k in (1, 2, 3, 4)]
    assert rules.current_seat(GAME, state) == CHANCE
    assert (int(state.bidder), LEVEL_NAMES[int(state.high)]) == (spoken[3], "25")


@pytest.mark.parametrize(
    ("options", "calls", "legal"),
    [
        ({"dealer_hold": "no"}, ["20", "pass", "25"], ["pass", "30for60"]),
        ({"hold_30for60": "no"}, ["30for60", "pass", "pass"], ["pass"]),
        ({"hold_30for60": "no"}, ["25", "pass", "pass"], ["pass", "30for60", "hold"]),
        ({"all_pass": "redeal"}, ["pass", "pass", "pass"], ["pass", "20", "25", "30for60"]),
        ({"min_bid": "15"}, ["pass"], ["pass", "15", "20", "25", "30"]),
        ({"min_bid": "15_and_30for60"}, ["30"], ["pass", "30for60"]),
    ],
)
def test_calls_under_the_switches(
    options: dict[str, str], calls: list[str], legal: list[str]
) -> None:
    game = SPEC.make("", options)
    state = SPEC.new_state()
    rules.deal(game, state, np.uint64(1))
    do(game, state, *calls)
    assert legal_words(game, state) == legal


def test_four_passes_pass_the_deal_on() -> None:
    game = SPEC.make("", {"all_pass": "redeal"})
    state = SPEC.new_state()
    rules.deal(game, state, np.uint64(1))
    dealer = int(state.dealer)
    do(game, state, "pass", "pass", "pass", "pass")
    assert (int(state.phase), rules.current_seat(game, state)) == (HAND_END, CHANCE)
    assert list(state.scores) == [0, 0]
    rules.deal_next(game, state)
    assert int(state.dealer) == (dealer + 1) % 4
