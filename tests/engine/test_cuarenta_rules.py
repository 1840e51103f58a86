"""Cuarenta's rules from worked positions and from facts that hold in every game.

* Position cases: every legal action by rank, and its points.
* Counts of piles, for every preset and whoever deals next; leftovers belong to nobody.
* Three and four of a rank when dealt; the caps at 30 and 38.
* The just-placed card is taken before its equals; decks follow from seed and hand alone.
* Most legal actions: 21 under report A, 16 under report B, and never more than the spec says.
* Rule players: plies, caidas, limpias and points of a game as measured elsewhere.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.bits import popcount
from engine.game import get_spec
from engine.games.cuarenta_deal import has_four, threes
from engine.games.cuarenta_rules import (
    action_rank,
    count_points,
    taken_cards,
    write_actions,
)
from engine.games.cuarenta_state import BASE_SHIFT, PLACE, RANK_SHIFT
from engine.games.cuarenta_text import base_name, ranks_of
from engine.rng import below, make_rng
from engine.rules import CHANCE, TERMINAL
from tests.engine.cuarenta_controls import play_rule_games

SPEC = get_spec("cuarenta")
CASES = json.loads((Path(__file__).parents[1] / "cases" / "cuarenta.json").read_text())
PLY_CASES = [case for case in CASES if case["kind"] == "ply"]
COUNT_CASES = [case for case in CASES if case["kind"] == "count"]


def game_of(document: dict[str, Any]) -> Any:
    options = dict(document["rules"])
    return SPEC.make(options.pop("preset"), options)


def legal_codes(game: Any, state: Any) -> list[int]:
    actions = np.zeros(SPEC.max_actions, np.int64)
    return [int(code) for code in actions[: rules.legal_actions(game, state, actions)]]


def outcome(game: Any, document: dict[str, Any], code: int) -> dict[str, Any]:
    """Return an action as the documents write it."""
    state = SPEC.state_from_document(game, document)  # type: ignore[misc]
    side = int(state.to_move) & 1
    taken = ranks_of(taken_cards(game, state.table, state.ref, code))
    before = int(state.scores[side]) - int(state.carton[side])
    rules.apply(game, state, code)
    return {
        "play": "A234567JQK"[int(action_rank(code))],
        "take": sorted(taken),
        "base": base_name(code),
        "points": int(state.scores[side]) - int(state.carton[side]) - before,
    }


@pytest.mark.parametrize("case", PLY_CASES, ids=lambda case: case["id"])
def test_position_case(case: dict[str, Any]) -> None:
    game = game_of(case)
    state = SPEC.state_from_document(game, case)  # type: ignore[misc]
    found = [outcome(game, case, code) for code in legal_codes(game, state)]
    wanted = [{**action, "take": sorted(action["take"])} for action in case["expect"]]

    def key(action: dict[str, Any]) -> str:
        return json.dumps(action, sort_keys=True)

    assert sorted(found, key=key) == sorted(wanted, key=key)


@pytest.mark.parametrize("case", COUNT_CASES, ids=lambda case: case["id"])
def test_count_case(case: dict[str, Any]) -> None:
    piles, next_side = case["piles"], case["next_dealer_side"]
    for preset, points in case["expect"].items():
        game = SPEC.make(preset)
        found = [
            int(count_points(game, piles[side], piles[1 - side], int(side == next_side)))
            for side in (0, 1)
        ]
        assert found == points, preset


def last_ply(game: Any, piles: tuple[int, int], dealer: int, scores: tuple[int, int]) -> Any:
    """Return the state after the last card of a hand was placed and the piles were counted."""
    state = SPEC.new_state()
    cards = list(range(40))
    for side in (0, 1):
        state.piles[side] = np.uint64(sum(1 << cards.pop(0) for _ in range(piles[side])))
        state.scores[side] = scores[side]
    card = cards.pop()
    state.table = np.uint64(sum(1 << card for card in cards))
    state.hands[dealer] = np.uint64(1 << card)
    state.plies_in_hand, state.dealer, state.to_move = 39, dealer, dealer
    state.winner = state.ref = state.last_capturer = -1
    rules.apply(game, state, (card // 4) << RANK_SHIFT | PLACE << BASE_SHIFT)
    return state


def test_cards_left_on_the_table_count_for_nobody() -> None:
    state = last_ply(SPEC.make(), (21, 17), 3, (0, 0))
    assert popcount(state.table) == 2
    assert list(state.scores) == [8, 0]
    assert rules.current_seat(SPEC.make(), state) == CHANCE


def test_cards_left_on_the_table_go_to_the_last_capturer_with_the_switch() -> None:
    game = SPEC.make("", {"leftover": "last_capturer"})
    state = last_ply(game, (18, 18), 3, (0, 0))
    assert list(state.scores) == [0, 0]  # nobody captured in this hand
    state = SPEC.new_state()
    state.piles[0], state.table = np.uint64((1 << 18) - 1), np.uint64(0xF << 20)
    state.hands[0] = np.uint64(1 << 39)
    state.plies_in_hand, state.ref = 39, -1
    state.last_capturer = 1
    rules.apply(game, state, 9 << RANK_SHIFT | PLACE << BASE_SHIFT)
    assert popcount(state.piles[1]) == 5
    assert state.table == 0


def test_the_count_that_reaches_the_target_ends_the_game() -> None:
    game = SPEC.make()
    state = last_ply(game, (24, 12), 0, (30, 38))
    assert rules.current_seat(game, state) == TERMINAL
    assert (int(state.winner), list(state.scores)) == (0, [40, 38])


def test_a_side_over_the_cut_off_gets_no_carton() -> None:
    game = SPEC.make("", {"carton_cutoff": "30"})
    assert list(last_ply(game, (24, 12), 0, (30, 0)).scores) == [30, 0]
    assert list(last_ply(game, (24, 12), 0, (28, 0)).scores) == [38, 0]


def before_deal(game: Any, stock: list[int], scores: tuple[int, int]) -> Any:
    """Return the state before the last deal of a hand of two players, ``stock`` to be dealt."""
    state = SPEC.new_state()
    state.stock = np.uint64(sum(1 << card for card in stock))
    rest = [card for card in range(40) if card not in stock]
    state.piles[0] = np.uint64(sum(1 << card for card in rest[:15]))
    state.piles[1] = np.uint64(sum(1 << card for card in rest[15:]))
    state.plies_in_hand, state.to_move, state.winner, state.ref = 30, CHANCE, -1, -1
    state.scores[0], state.scores[1] = scores
    return state


def deal_until(game: Any, stock: list[int], scores: tuple[int, int], wanted: Any) -> Any:
    """Return the first deal, over seeds, that satisfies ``wanted``."""
    for seed in range(10_000):
        state = before_deal(game, stock, scores)
        state.seed = np.uint64(seed)
        rules.deal_next(game, state)
        if wanted(state):
            return state
    raise AssertionError("no such deal")


THREE_FIVES = [16, 17, 18, 36, 4, 1, 6, 10, 20, 24]  # 5 5 5 K 2 and five singles


@pytest.mark.parametrize(("score", "after"), [(28, 30), (30, 30)])
def test_three_of_a_rank_pay_below_thirty(score: int, after: int) -> None:
    game = SPEC.make("report_b_2p")
    state = deal_until(
        game, THREE_FIVES, (score, 0), lambda state: int(threes(state.hands[0])) != 0
    )
    assert list(state.scores) == [after, 0]
    announced = [int(code) for code in state.ronda[:2]]
    assert announced == ([2, 1] if score < 30 else [0, 1])


def test_four_of_a_rank_win_at_once() -> None:
    game = SPEC.make("report_b_2p")
    state = deal_until(
        game, [36, 37, 38, 39, 8, 1, 6, 12, 20, 24], (0, 10), lambda s: bool(has_four(s.hands[1]))
    )
    assert rules.current_seat(game, state) == TERMINAL
    assert (int(state.winner), list(state.scores)) == (1, [0, 40])


def test_four_of_a_rank_on_both_sides_draw() -> None:
    game = SPEC.make("report_b_2p")
    state = deal_until(
        game,
        [36, 37, 38, 39, 8, 0, 1, 2, 3, 24],
        (0, 10),
        lambda s: bool(has_four(s.hands[0])) and bool(has_four(s.hands[1])),
    )
    assert rules.current_seat(game, state) == TERMINAL
    out = np.ones(2)
    rules.returns(game, state, out)
    assert list(out) == [0.0, 0.0]
    assert list(state.scores) == [0, 10]


def test_the_just_placed_card_is_taken_before_its_equals_else_the_lowest_suit() -> None:
    game = SPEC.make()
    document = {"table": ["3", "3"], "just_placed_index": 1, "hand": ["3"], "score": 0}
    state = SPEC.state_from_document(game, document)  # type: ignore[misc]
    match = legal_codes(game, state)[0]
    assert int(taken_cards(game, state.table, state.ref, match)) == 1 << int(state.ref)
    assert int(taken_cards(game, state.table, -1, match)) == int(state.table) & -int(state.table)


def test_decks_follow_from_seed_and_hand_and_not_from_play() -> None:
    game = SPEC.make()
    decks = []
    for play_seed in (1, 2):
        rng = make_rng(play_seed)
        state = SPEC.new_state()
        rules.deal(game, state, np.uint64(77))
        dealt: list[tuple[int, list[int]]] = []
        while rules.current_seat(game, state) != TERMINAL and len(dealt) < 3:
            if rules.current_seat(game, state) == CHANCE:
                rules.deal_next(game, state)
                dealt.append((int(state.dealer), [int(hand) for hand in state.hands]))
                continue
            codes = legal_codes(game, state)
            rules.apply(game, state, codes[below(rng, len(codes))])
        decks.append(dealt)
    assert decks[0] == decks[1]
    assert len({tuple(hands) for _, hands in decks[0]}) == 3


def test_every_seat_is_the_first_dealer_equally_often() -> None:
    for preset in ("report_a_4p", "report_b_2p"):
        game = SPEC.make(preset)
        state = SPEC.new_state()
        counts = np.zeros(game.players)
        for seed in range(4000):
            rules.deal(game, state, np.uint64(seed))
            counts[state.dealer] += 1
        expected = 4000 / game.players
        deviation = np.sqrt(expected * (1 - 1 / game.players))
        assert np.all(np.abs(counts - expected) < 4 * deviation)


def test_three_and_four_of_a_rank_are_dealt_as_often_as_they_should() -> None:
    game = SPEC.make()
    state = SPEC.new_state()
    hands = [0, 0]
    for seed in range(5000):
        rules.deal(game, state, np.uint64(seed))
        hands[0] += sum(int(threes(state.hands[seat])) != 0 for seat in range(4))
        hands[1] += sum(bool(has_four(state.hands[seat])) for seat in range(4))
    for found, share in zip(hands, (0.038297, 0.0005471), strict=True):
        expected = 20_000 * share
        assert abs(found - expected) < 4 * np.sqrt(expected)


def most_actions(game: Any, copies: int) -> int:
    """Return the most legal actions over all hands of five ranks on a table of all other cards."""
    actions = np.zeros(SPEC.max_actions, np.int64)
    most = 0
    for held in itertools.combinations(range(10), 5):
        hand = sum(8 << 4 * rank for rank in held)
        table = sum(((1 << copies) - 1) << 4 * rank for rank in range(10)) & ~hand
        most = max(most, int(write_actions(game, np.uint64(hand), np.uint64(table), actions)))
    return most


def test_most_legal_actions() -> None:
    assert most_actions(SPEC.make(), 4) == 21
    assert most_actions(SPEC.make("report_b_2p"), 1) == 16
    freest = SPEC.make("", {"run": "optional", "sum_cards": "2+"})
    assert most_actions(freest, 4) <= SPEC.max_actions


def test_with_must_capture_no_two_cards_on_the_table_are_equal() -> None:
    game = SPEC.make("report_b_2p")
    rng = make_rng(9)
    state = SPEC.new_state()
    for seed in range(5):
        rules.deal(game, state, np.uint64(seed))
        while (seat := rules.current_seat(game, state)) != TERMINAL:
            if seat == CHANCE:
                rules.deal_next(game, state)
                continue
            codes = legal_codes(game, state)
            rules.apply(game, state, codes[below(rng, len(codes))])
            table = ranks_of(state.table)
            assert len(table) == len(set(table))


def test_rule_players_play_games_like_those_measured_elsewhere() -> None:
    plies, statistics = play_rule_games(SPEC.make(), num_games=3000, seed=1)
    score, caidas, limpias, *_ = statistics
    assert plies == pytest.approx(116.4, abs=1.5)
    assert caidas == pytest.approx(15.9, abs=0.3)
    assert limpias == pytest.approx(7.1, abs=0.3)
    assert score == pytest.approx(65.9, abs=0.7)


def test_the_equity_prior_is_symmetric_and_rises_with_the_own_score() -> None:
    for game in SPEC.presets.values():
        prior = SPEC.equity_prior(game).reshape(20, 20, 2)  # type: ignore[misc]
        assert np.allclose(prior[:, :, 0] + prior[:, :, 1].T, 1.0)
        assert np.all(np.diff(prior, axis=0) > 0)
        assert np.all((prior > 0) & (prior < 1))


def test_equity_rows_of_the_two_sides_mirror_each_other() -> None:
    game = SPEC.make()
    state = last_ply(game, (24, 12), 0, (4, 12))  # seat 1 deals next
    assert rules.equity_index(game, state, 0) == (7 * 20 + 6) * 2
    assert rules.equity_index(game, state, 1) == (6 * 20 + 7) * 2 + 1
    rules.deal_next(game, state)
    assert rules.equity_index(game, state, 0) == rules.NO_HAND_END


def test_scores_are_made_of_the_reward_terms_and_the_winner_has_the_bonus() -> None:
    game = SPEC.make()
    state = SPEC.new_state()
    rng = make_rng(4)
    for seed in range(5):
        rules.deal(game, state, np.uint64(seed))
        while (seat := rules.current_seat(game, state)) != TERMINAL:
            if seat == CHANCE:
                rules.deal_next(game, state)
            else:
                rules.apply(game, state, rules.rule_action(game, state, seat, rng))
        terms = np.zeros((2, 5))
        rules.reward_terms(game, state, terms)
        figures = np.zeros((2, 5))
        rules.statistics(game, state, figures)
        assert np.array_equal(terms[:, 1:4].sum(axis=1), figures[:, 0])
        assert list(terms[:, 0]) == list(figures[:, 3])
        assert terms[state.winner, 4] == 20.0
        assert terms[1 - state.winner, 4] == 0.0


def rule_choices(document: dict[str, Any], draws: int) -> dict[str, int]:
    """Return how often the rule player chose each action."""
    game = SPEC.make()
    state = SPEC.state_from_document(game, document)  # type: ignore[misc]
    rng = make_rng(5)
    counts: dict[str, int] = {}
    for _ in range(draws):
        text = SPEC.format_action(game, state, int(rules.rule_action(game, state, 0, rng)))
        counts[text] = counts.get(text, 0) + 1
    return counts


@pytest.mark.parametrize(
    ("document", "choice"),
    [
        # A caida before a capture of more cards, and before a limpia.
        ({"table": ["4", "2", "5", "6"], "just_placed_index": 0, "hand": ["4", "5"], "score": 0},
         "4 takes 4 5 6"),
        ({"table": ["2", "3"], "just_placed_index": 0, "hand": ["2", "5"], "score": 0},
         "2 takes 2 3"),
        # A limpia before the capture of more cards.
        ({"table": ["A", "2"], "just_placed_index": None, "hand": ["3", "A"], "score": 0},
         None),
        # The most cards.
        ({"table": ["5", "6", "7", "Q"], "just_placed_index": None, "hand": ["Q", "5"],
          "score": 0}, "5 takes 5 6 7"),
        # A limpia that pays nothing has no priority over more cards.
        ({"table": ["K", "A", "2"], "just_placed_index": 0, "hand": ["K", "3"], "score": 38},
         "K takes K"),
    ],
)  # fmt: skip
def test_the_rule_player_takes_caida_then_limpia_then_most_cards(
    document: dict[str, Any], choice: str | None
) -> None:
    choices = rule_choices(document, 20)
    if choice is None:  # both clear the table: either will do
        assert set(choices) <= {"3 takes A 2", "A takes A 2"}
    else:
        assert set(choices) == {choice}


def test_the_rule_player_places_cards_and_not_ranks_with_equal_chance() -> None:
    document = {"table": [], "just_placed_index": None, "hand": ["5", "5", "J"], "score": 0}
    choices = rule_choices(document, 3000)
    assert choices["5"] == pytest.approx(2000, abs=4 * np.sqrt(3000 * 2 / 9))
    assert choices["5"] + choices["J"] == 3000


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"table": [], "hand": [], "score": 0}, "hand of 0 cards"),
        ({"table": ["10"], "hand": ["A"], "score": 0}, "rank '10'"),
        ({"table": ["A"] * 5, "hand": ["2"], "score": 0}, "more than 4"),
        ({"table": ["A"], "hand": ["2"], "just_placed_index": 1}, "just_placed_index 1"),
        ({"table": ["A"], "hand": ["2"], "score": 40}, "score 40: allowed are 0 to 39"),
        ({"piles": [20, 20]}, "position without 'hand'"),
    ],
)
def test_a_position_that_cannot_be_is_refused(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SPEC.state_from_document(SPEC.make(), document)  # type: ignore[misc]
