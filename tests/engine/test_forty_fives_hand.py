"""A hand of Forty-fives after the auction: discards, the draw, play, score, and chance.

* Discards go step by step, forced ones are skipped; when their number is seen; the draw.
* Points of a hand; who wins when both sides reach the target, and with ``bid_out``.
* Decks follow from seed and hand alone: the kitty, and a seat's i-th draw, are fixed cards.
* Rows of the equity table; a discard step weighs less than a play.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.bits import popcount
from engine.game import get_spec
from engine.games.forty_fives_score import other_points, raw_points
from engine.games.forty_fives_state import (
    DISCARD,
    DRAW,
    HAND_END,
    LEVEL_NAMES,
    OVER,
    PLAY,
    SUIT_NAMES,
    TRUMPS,
    plain_order,
    trump_order,
)
from engine.games.forty_fives_text import card_name, cards_of
from engine.rng import below, make_rng
from engine.rules import CHANCE, TERMINAL
from tests.engine.forty_fives_controls import at_play, do, legal_words, pass_chance, to_discards

SPEC = get_spec("forty_fives")
GAME = SPEC.make()


# --- kitty, discards, draw ------------------------------------------------------------------------


def test_the_bidder_takes_the_kitty_before_trump_is_named_or_after() -> None:
    for word, held in (("after_kitty", 9), ("before_kitty", 5)):
        game = SPEC.make("", {"trump_named": word})
        state = SPEC.new_state()
        rules.deal(game, state, np.uint64(1))
        do(game, state, "20", "pass", "pass", "pass")
        pass_chance(game, state)
        assert legal_words(game, state) == list(SUIT_NAMES)
        assert popcount(state.hands[state.to_move]) == held
        do(game, state, "S")
        pass_chance(game, state)
        assert popcount(state.hands[state.to_move]) == 9


def test_discards_are_steps_from_the_highest_card_on_and_forced_ones_are_skipped() -> None:
    state = to_discards(GAME)
    bidder = int(state.to_move)
    cards = cards_of(state.hands[bidder])
    order = [card_name(card) for card in trump_order(0)]
    heights = {c: 99 - order.index(c) for c in cards if c in order}
    for suit in range(4):
        for place, card in enumerate(plain_order(suit)):
            heights.setdefault(card_name(card), 50 - 4 * place - suit)
    asked = []
    for _ in range(5):
        asked.append(legal_words(GAME, state)[0].split()[1])
        do(GAME, state, "keep")
    assert asked == sorted(cards, key=lambda card: -heights[card])[:5]
    # Five are kept: the other four are thrown, nobody is asked.
    assert rules.current_seat(GAME, state) == CHANCE
    assert cards_of(state.thrown[bidder]) == [card for card in cards if card not in asked]


def test_nobody_sees_how_many_others_throw_before_all_draw() -> None:
    state = to_discards(GAME)
    bidder = int(state.to_move)
    seen, before = SPEC.new_states(2)
    other = (bidder + 1) % 4
    rules.view(GAME, state, other, before)
    for word in ("throw", "keep", "throw"):
        do(GAME, state, word)
        rules.view(GAME, state, other, seen)
        assert seen == before
    while state.phase == DISCARD:
        do(GAME, state, "throw")
        rules.view(GAME, state, other, seen)
        assert list(seen.drawn) == [-1] * 4
        if state.phase == DISCARD:
            pass_chance(GAME, state)
    assert state.phase == DRAW
    rules.deal_next(GAME, state)
    assert state.phase == PLAY
    assert list(state.drawn) == [4 if seat == bidder else 5 for seat in range(4)]
    assert all(popcount(hand) == 5 for hand in state.hands)


def test_a_card_has_to_be_kept_with_the_switch() -> None:
    game = SPEC.make("", {"min_keep": "1"})
    state = to_discards(game)
    steps = 0
    while state.phase == DISCARD:
        do(game, state, "throw")
        steps += 1
        if state.phase == DISCARD:
            pass_chance(game, state)
    assert steps == 8 + 3 * 4  # about its last card no seat has a choice
    assert all(popcount(hand) == 1 for hand in state.hands)


def test_trumps_may_not_be_thrown_with_the_switch_but_those_above_five() -> None:
    game = SPEC.make("", {"may_throw_trump": "no"})
    rng = make_rng(4)
    actions = np.zeros(SPEC.max_actions, np.int64)
    thrown = 0
    for seed in range(300):
        state = to_discards(game, seed)
        bidder = int(state.bidder)
        held = [int(popcount(hand & TRUMPS[0])) for hand in state.hands]
        while state.phase == DISCARD:
            if rules.current_seat(game, state) == CHANCE:
                rules.deal_next(game, state)
                continue
            count = rules.legal_actions(game, state, actions)
            rules.apply(game, state, actions[below(rng, count)])
        for seat in range(4):
            kept = int(popcount(state.hands[seat] & TRUMPS[0]))
            assert kept == min(held[seat], 5)
            thrown += seat == bidder and held[seat] > 5
    assert thrown > 0


# --- play and score -------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "offset"), [("left_of_bidder", 1), ("bidder", 0)])
def test_who_leads_first(word: str, offset: int) -> None:
    game = SPEC.make("", {"leader": word})
    hands = ["9S 2C 3C 4C 6C", "5S 10S KD QD 9D", "2D 3D 4D 6D 7D", "2H 3H 4H 6H 7H"]
    state = at_play(game, "S", hands)
    assert int(state.to_move) == (int(state.bidder) + offset) % 4


def test_nothing_may_be_held_back_without_the_renege() -> None:
    game = SPEC.make("", {"renege": "off"})
    document = {"trump": "S", "led": "9S", "hand": ["5S", "KD", "3C"]}
    assert legal_words(game, SPEC.state_from_document(game, document)) == ["5S"]  # type: ignore[misc]


def last_trick(game: Any, cards: str, **fields: Any) -> Any:
    """Return a state at the last trick; seat 0 leads, each seat has one card, spades are trump."""
    state = at_play(game, "S", cards.split(), **fields)
    state.num_played = 16
    state.played[:16] = 0
    return state


def test_the_best_trump_of_the_hand_is_worth_five_more() -> None:
    # The bidder (seat 3) has lost three tricks and wins the last with the best trump in play.
    state = last_trick(GAME, "KD 2C 3C JS")
    state.tricks[0], state.tricks[1] = 3, 1
    do(GAME, state, "KD", "2C", "3C", "JS")
    assert [int(raw_points(state, side)) for side in (0, 1)] == [15, 15]
    assert list(state.scores) == [15, -20]
    assert (int(state.contracts[1]), int(state.made[1]), int(state.sets[1])) == (1, 0, 20)


def test_without_a_trump_in_play_there_are_25_points() -> None:
    state = last_trick(GAME, "KD 2D 3D 4D")
    state.tricks[0] = 4
    state.bidder, state.high = 0, LEVEL_NAMES.index("30for60")
    do(GAME, state, "KD", "2D", "3D", "4D")
    assert list(state.scores) == [-30, 0]


@pytest.mark.parametrize(
    ("options", "scores", "over", "winner_side"),
    [
        ({}, (110, 95), True, 0),  # the other side alone
        ({}, (100, 95), False, -1),
        ({}, (115, 115), True, 1),  # both: the bidding side
        ({"both_reach": "higher_total"}, (119, 100), True, 0),
        ({"both_reach": "higher_total"}, (110, 105), True, 1),  # equal totals: the bidding side
        ({"both_reach": "first_listed"}, (115, 115), True, 0),
        ({"bid_out": "yes"}, (115, 95), False, -1),
        ({"bid_out": "yes"}, (130, 115), True, 1),
        ({"target": "125"}, (110, 95), False, -1),
    ],
)
def test_who_wins_with_a_hand(
    options: dict[str, str], scores: tuple[int, int], over: bool, winner_side: int
) -> None:
    """Side 1 makes 20 of 20 (seat 3 has bid), side 0 gets 10 (it has entered a bid)."""
    game = SPEC.make("", options)
    state = last_trick(game, "KD 2C 3C JS")
    state.tricks[0], state.tricks[1] = 2, 2
    state.scores[0], state.scores[1], state.bids[0] = *scores, 1
    do(game, state, "KD", "2C", "3C", "JS")
    assert list(state.scores) == [scores[0] + 10, scores[1] + 20]
    assert (rules.current_seat(game, state) == TERMINAL) == over
    assert int(state.winner) == winner_side
    assert (int(state.phase) == OVER) == over


@pytest.mark.parametrize(
    ("word", "entered", "made", "points"),
    [
        ("entered_a_bid", False, True, 0),
        ("entered_a_bid", True, True, 10),
        ("holds_contract", True, False, 0),
        ("if_bid_fails", True, True, 0),
        ("if_bid_fails", False, False, 10),
        ("off", False, True, 10),
    ],
)
def test_points_of_a_side_past_100(word: str, entered: bool, made: bool, points: int) -> None:
    game = SPEC.make("", {"over100": word})
    assert int(other_points(game, 10, 105, entered, made)) == points
    assert int(other_points(game, 10, 100, entered, made)) == 10


def test_a_game_without_end_goes_to_the_higher_score() -> None:
    for other, outcome in ((-10, [1.0, -1.0]), (5, [0.0, 0.0])):
        state = last_trick(GAME, "KD 2C 3C JS", hand_index=29)
        state.tricks[0], state.tricks[1] = 3, 1
        state.scores[0], state.scores[1] = -10, other + 20  # they become 5 and other
        do(GAME, state, "KD", "2C", "3C", "JS")
        out = np.ones(2)
        rules.returns(GAME, state, out)
        assert rules.current_seat(GAME, state) == TERMINAL
        assert list(out) == outcome


# --- chance ---------------------------------------------------------------------------------------


def drawn_cards(words: list[str], seed: int) -> tuple[int, list[list[int]]]:
    """Return the kitty, and each seat's draws in order, where each seat says one of ``words``."""
    state = SPEC.new_state()
    rules.deal(GAME, state, np.uint64(seed))
    do(GAME, state, "20", "pass", "pass", "pass")
    before = int(state.hands[state.bidder])
    pass_chance(GAME, state)
    kitty = int(state.hands[state.bidder]) & ~before
    do(GAME, state, "S")
    while state.phase == DISCARD:
        if rules.current_seat(GAME, state) == CHANCE:
            rules.deal_next(GAME, state)
        else:
            do(GAME, state, words[int(state.to_move)])
    hands = [int(hand) for hand in state.hands]
    rules.deal_next(GAME, state)
    return kitty, [int(new) & ~old for new, old in zip(state.hands, hands, strict=True)]


def test_the_kitty_and_the_draws_of_a_seat_do_not_depend_on_the_others() -> None:
    kitty, all_draw = drawn_cards(["throw"] * 4, 7)
    for seat in range(4):
        words = ["keep"] * 4
        words[seat] = "throw"
        same, draws = drawn_cards(words, 7)
        assert same == kitty
        assert draws[seat] == all_draw[seat]
        assert all(draws[other] == 0 for other in range(4) if other != seat)


def test_decks_follow_from_seed_and_hand_and_not_from_play() -> None:
    decks = []
    for play_seed in (1, 2):
        rng = make_rng(play_seed)
        actions = np.zeros(SPEC.max_actions, np.int64)
        state = SPEC.new_state()
        rules.deal(GAME, state, np.uint64(77))
        dealt: list[tuple[int, list[int]]] = []
        while rules.current_seat(GAME, state) != TERMINAL and len(dealt) < 3:
            if rules.current_seat(GAME, state) == CHANCE:
                new_hand = state.phase == HAND_END
                rules.deal_next(GAME, state)
                if new_hand:
                    dealt.append((int(state.dealer), [int(hand) for hand in state.hands]))
                continue
            count = rules.legal_actions(GAME, state, actions)
            rules.apply(GAME, state, actions[below(rng, count)])
        decks.append(dealt)
    assert decks[0] == decks[1]
    assert len({tuple(hands) for _, hands in decks[0]}) == 3


def test_every_seat_is_the_first_dealer_equally_often() -> None:
    state = SPEC.new_state()
    counts = np.zeros(4)
    for seed in range(4000):
        rules.deal(GAME, state, np.uint64(seed))
        counts[state.dealer] += 1
    assert np.all(np.abs(counts - 1000) < 4 * np.sqrt(750))


def test_numbers_of_trumps_are_dealt_as_often_as_they_should() -> None:
    state = SPEC.new_state()
    counts = np.zeros((2, 6))
    for seed in range(3000):
        rules.deal(GAME, state, np.uint64(seed))
        for hand in state.hands:
            counts[0, popcount(hand & TRUMPS[SUIT_NAMES.index("S")])] += 1
            counts[1, popcount(hand & TRUMPS[SUIT_NAMES.index("H")])] += 1
    plain = [501942, 1033410, 767676, 255892, 38038, 2002]
    hearts = [575757, 1069263, 712842, 211926, 27885, 1287]
    for found, shares in zip(counts, (plain, hearts), strict=True):
        expected = 12_000 * np.array(shares) / 2_598_960
        assert np.all(np.abs(found - expected) < 4 * np.sqrt(expected))


# --- equity, rewards ------------------------------------------------------------------------------


def test_the_equity_prior_is_symmetric_and_rises_with_the_own_score() -> None:
    for game in SPEC.presets.values():
        prior = SPEC.equity_prior(game).reshape(33, 33, 2)  # type: ignore[misc]
        assert np.allclose(prior[:, :, 0] + prior[:, :, 1].T, 1.0)
        assert np.all(np.diff(prior, axis=0) > 0)
        assert np.all((prior > 0) & (prior < 1))


def test_equity_rows_of_the_two_sides_mirror_each_other() -> None:
    state = last_trick(GAME, "KD 2C 3C JS")
    state.tricks[0], state.tricks[1] = 3, 1
    state.scores[0], state.scores[1] = 40, -300
    do(GAME, state, "KD", "2C", "3C", "JS")  # 15 points each, of 20 bid; seat 0 deals next
    assert list(state.scores) == [55, -320]
    assert rules.equity_index(GAME, state, 0) == (32 * 33 + 0) * 2 + 1
    assert rules.equity_index(GAME, state, 1) == (0 * 33 + 32) * 2
    rules.deal_next(GAME, state)
    assert rules.equity_index(GAME, state, 0) == rules.NO_HAND_END


def test_far_below_zero_the_lead_decides_about_the_row_of_the_equity_table() -> None:
    state = last_trick(GAME, "KD 2C 3C JS")
    state.tricks[0], state.tricks[1] = 3, 1
    do(GAME, state, "KD", "2C", "3C", "JS")
    for own, other, row in ((-100, -60, (0, 8)), (-60, -100, (8, 0)), (-300, -300, (0, 0))):
        state.scores[0], state.scores[1] = own, other
        assert rules.equity_index(GAME, state, 0) == (row[0] * 33 + row[1]) * 2 + 1
        assert rules.equity_index(GAME, state, 1) == (row[1] * 33 + row[0]) * 2


def test_a_discard_step_weighs_less_than_a_play() -> None:
    state = to_discards(GAME)
    view = SPEC.new_state()
    rules.view(GAME, state, state.to_move, view)
    step = float(rules.policy_weight(GAME, view))
    hands = ["9S 2C 3C 4C 6C", "5S 10S KD QD 9D", "2D 3D 4D 6D 7D", "2H 3H 4H 6H 7H"]
    rules.view(GAME, at_play(GAME, "S", hands), 0, view)
    assert float(rules.policy_weight(GAME, view)) == 1.0
    assert 0 < 24 * step < 20 * 1.0 / 2


def test_most_legal_actions() -> None:
    game = SPEC.make("", {"min_bid": "15_and_30for60", "all_pass": "redeal"})
    state = SPEC.new_state()
    rules.deal(game, state, np.uint64(1))
    do(game, state, "pass", "pass", "pass")
    assert len(legal_words(game, state)) == 6
