"""Durak's rules from worked positions and from facts that hold in every game.

* Position cases: legal actions, the turn, roles, hands, who is out, how the game ended.
* What is beaten by what; the card turned up is drawn last; every card is in one place.
* A transfer takes the card out of the hand; a seat without cards is not out while there is a stock;
  hands are refilled in the order of the old roles; a game in which all go out is drawn; where no
  hand has a trump every seat may be the first attacker.
* A game without plies left is drawn; documents with impossible cards or moves are refused.
* Random and greedy games: plies and drawn games as measured elsewhere.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.game import get_spec
from engine.games.durak_rules import cards_beating, discarded, known_cards
from engine.games.durak_state import ALL_CARDS
from engine.games.durak_text import card_name, card_of, cards_of, parse_action
from engine.play import GameJob, Table
from engine.players import RandomPlayer, RulePlayer
from engine.rng import below, make_rng
from engine.rules import CHANCE, TERMINAL

SPEC = get_spec("durak")
GAME = SPEC.make()
CASES = json.loads((Path(__file__).parents[1] / "cases" / "durak.json").read_text())


def position(document: dict[str, Any]) -> tuple[Any, Any]:
    """Return the rules and the state of a document."""
    game = SPEC.make("", document.get("rules", {}))
    return game, SPEC.state_from_document(game, document)  # type: ignore[misc]


def line(hands: list[list[str]], moves: list[str], **more: Any) -> tuple[Any, Any]:
    """Return the rules and the state after ``moves``; hearts are trumps."""
    rules_of_line = {"players": len(hands), **more.pop("rules", {})}
    document = {"trump": "H", "hands": hands, "moves": moves, "rules": rules_of_line, **more}
    return position(document)


def legal(game: Any, state: Any) -> list[str]:
    actions = np.zeros(SPEC.max_actions, np.int64)
    count = int(rules.legal_actions(game, state, actions))
    return [SPEC.format_action(game, state, int(code)) for code in actions[:count]]


def facts_of(game: Any, state: Any) -> dict[str, Any]:
    """Return a state as the documents write it."""
    size = int(state.stock_size)
    over = rules.current_seat(game, state) == TERMINAL
    return {
        "legal": None if over else sorted(legal(game, state)),
        "turn": int(state.to_move),
        "attacker": int(state.attacker),
        "defender": int(state.defender),
        "talon": [card_name(int(card)) for card in state.stock[:size][::-1]],
        "attacks": [card_name(int(card)) for card in state.attacks[: state.num_attacks]],
        "out": [seat for seat in range(game.players) if state.finished[seat]],
        "over": over,
        "durak": int(state.durak),
        "result": "draw" if over and state.durak < 0 else None,
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_position_case(case: dict[str, Any]) -> None:
    game, state = position(case)
    found = facts_of(game, state)
    assert case["expect"]
    for key, wanted in case["expect"].items():
        if key == "hands":
            for seat, cards in wanted.items():
                assert sorted(cards_of(state.hands[int(seat)])) == sorted(cards)
        else:
            assert found[key] == (sorted(wanted) if key == "legal" else wanted), key


@pytest.mark.parametrize(
    ("card", "other", "beats"),
    [
        ("7S", "6S", True),
        ("6H", "AS", True),
        ("7D", "6S", False),
        ("9H", "10H", False),
        ("AS", "6H", False),
        ("6S", "6D", False),
    ],
)
def test_what_beats_what(card: str, other: str, beats: bool) -> None:
    trump = 2  # hearts
    assert (card in cards_of(cards_beating(card_of(other), trump))) == beats


def test_every_card_beats_what_the_rules_say() -> None:
    for trump in range(4):
        for card in range(36):
            found = int(cards_beating(card, trump))
            for other in range(36):
                same = card // 9 == other // 9
                wanted = other > card if same else other // 9 == trump
                assert (found >> other & 1 == 1) == wanted


# --- faults that such games have had --------------------------------------------------------------


def test_a_transfer_takes_the_card_out_of_the_hand() -> None:
    hands = [["7S", "KS"], ["7D", "KC"], ["9C", "9D", "QC"]]
    _, state = line(hands, ["7S", "transfer:7D"], rules={"transfer": True})
    assert cards_of(state.hands[1]) == ["KC"]
    assert state.sizes[1] == 1


def test_a_seat_without_cards_is_not_out_while_the_stock_has_cards() -> None:
    hands = [["7S"], ["8S", "KD"], ["9C", "9D", "6C", "6S", "10C", "JC"]]
    game, state = line(hands, ["7S", "8S"], talon=["6D", "7C", "8C", "8D", "QS", "KC", "9H"])
    assert cards_of(state.hands[0]) == []
    assert not state.finished.any()
    assert state.to_move == 2  # who has no cards is skipped
    rules.apply(game, state, parse_action(game, state, "pass"))
    assert rules.current_seat(game, state) == CHANCE
    assert not state.finished.any()
    rules.deal_next(game, state)
    assert not state.finished.any()
    assert state.sizes[0] == 6


def test_hands_are_refilled_in_the_order_of_the_roles_that_were() -> None:
    # Seat 1 attacks seat 2 and is beaten; with the new roles, or by seats, others would draw first.
    hands = [["9C", "9D"], ["7S", "KS", "KD", "QD", "JD"], ["8S", "6D", "JC"]]
    talon = ["6C", "7C", "AC", "AD", "AS", "9H"]
    _, state = line(hands, ["7S", "8S", "pass", "pass"], talon=talon, attacker=1)
    assert {"6C", "7C"} <= set(cards_of(state.hands[1]))
    assert {"AC", "AD", "AS", "9H"} <= set(cards_of(state.hands[0]))
    assert cards_of(state.hands[2]) == ["JC", "6D"]
    assert (state.attacker, state.defender) == (2, 0)


def test_after_a_transfer_the_last_attacker_draws_first() -> None:
    hands = [["7S", "KS"], ["7D", "KC"], ["9C", "9D", "QC"]]
    talon = ["6C", "8C", "AC", "AD", "9H"]
    moves = ["7S", "transfer:7D", "take", "pass", "pass"]
    _, state = line(hands, moves, talon=talon, rules={"transfer": True})
    assert cards_of(state.hands[1]) == ["6C", "8C", "KC", "AC", "AD", "9H"]
    assert cards_of(state.hands[0]) == ["KS"]


@pytest.mark.parametrize(("rule", "durak"), [("draw", -1), ("attacker_wins", 1)])
def test_when_all_go_out_in_one_bout(rule: str, durak: int) -> None:
    game, state = line([["7S"], ["8S"]], ["7S", "8S"], rules={"draw": rule})
    assert rules.current_seat(game, state) == TERMINAL
    assert state.durak == durak
    out = np.full(2, 9.0)
    rules.returns(game, state, out)
    assert list(out) == ([0.0, 0.0] if durak < 0 else [1.0, -1.0])


@pytest.mark.parametrize("players", [2, 3])
def test_without_a_trump_in_any_hand_every_seat_may_attack_first(players: int) -> None:
    game = SPEC.make("", {"players": players})
    state = SPEC.new_state()
    attackers: Counter[int] = Counter()
    seed = 0
    while attackers.total() < 60:
        rules.deal(game, state, np.uint64(seed))
        seed += 1
        hands = sum(int(hand) for hand in state.hands)
        if hands >> (9 * int(state.trump)) & 511 == 0:
            attackers[int(state.attacker)] += 1
    assert set(attackers) == set(range(players))
    expected = 60 / players
    assert max(abs(count - expected) for count in attackers.values()) < 4 * expected**0.5
    share = {2: 0.02083, 3: 0.00103}[players]
    assert abs(60 / seed - share) < 4 * share / 60**0.5


# --- games ----------------------------------------------------------------------------------------


def places(state: Any) -> list[int]:
    """Return every card as often as it lies somewhere."""
    masks = [*state.hands, discarded(state), state.covers]
    cards = [card for mask in masks for card in range(36) if int(mask) >> card & 1]
    cards += [int(card) for card in (*state.attacks, *state.stock) if card >= 0]
    return sorted(cards)


@pytest.mark.parametrize("preset", list(SPEC.presets))
def test_every_card_is_in_one_place_and_the_card_turned_up_is_drawn_last(preset: str) -> None:
    game = SPEC.make(preset)
    state = SPEC.new_state()
    actions = np.zeros(SPEC.max_actions, np.int64)
    rng = make_rng(9)
    for seed in range(6):
        rules.deal(game, state, np.uint64(seed))
        turned_up = int(state.turned_up)
        assert int(state.stock_size) == 36 - 6 * game.players
        while (seat := rules.current_seat(game, state)) != TERMINAL:
            assert places(state) == list(range(36))
            if state.stock_size > 0:
                assert state.stock[0] == turned_up
            assert [int(hand).bit_count() for hand in state.hands] == list(state.sizes)
            if seat == CHANCE:
                rules.deal_next(game, state)
                continue
            count = rules.legal_actions(game, state, actions)
            rules.apply(game, state, actions[below(rng, count)])
        assert state.stock_size == 0 or state.plies == game.max_plies


def test_a_game_without_plies_left_is_drawn() -> None:
    game = SPEC.make("", {"max_plies": 3})
    state = SPEC.new_state()
    rules.deal(game, state, np.uint64(1))
    for _ in range(3):
        assert rules.current_seat(game, state) >= 0
        rules.apply(game, state, parse_action(game, state, legal(game, state)[0]))
        while rules.current_seat(game, state) == CHANCE:
            rules.deal_next(game, state)
    assert rules.current_seat(game, state) == TERMINAL
    out = np.ones(2)
    rules.returns(game, state, out)
    assert list(out) == [0.0, 0.0]


def test_the_turned_up_trump_is_exchanged_for_the_six() -> None:
    hands = [["6H", "7S"], ["8S", "9S"]]
    game, state = line(hands, ["swap"], talon=["6C", "AH"], rules={"swap_trump_six": True})
    assert cards_of(state.hands[0]) == ["AH", "7S"]
    assert cards_of(known_cards(state, 0)) == ["AH"]
    assert card_name(int(state.stock[0])) == card_name(int(state.turned_up)) == "6H"
    assert legal(game, state) == ["AH", "7S"]


def test_several_cards_of_a_rank_may_begin_a_bout() -> None:
    hands = [["7S", "7D", "7C", "KS"], ["8S", "9S"]]
    options = {"multi_card_attack": True}
    game, state = line(hands, [], rules=options)
    sets = {"7C+7D", "7C+7S", "7D+7S"}  # three are more than the defender holds
    assert set(legal(game, state)) == {*hands[0], *sets}
    game, state = line(hands, ["7D+7S"], rules=options)
    assert facts_of(game, state)["attacks"] == ["7D", "7S"]
    assert legal(game, state) == ["take"]  # no diamond, and the oldest attack comes first


def test_who_throws_in() -> None:
    hands = [["7S", "KS"], ["8S", "6D", "9S"], ["9C", "9D"], ["JC", "8D"]]
    asked = {}
    for throwers in ("all", "neighbours", "attacker"):
        game, state = line(hands, ["7S", "8S"], rules={"throwers": throwers})
        seats = []
        while state.num_attacks:
            seats.append(int(state.to_move))
            rules.apply(game, state, parse_action(game, state, "pass"))
        asked[throwers] = seats
    assert asked == {"all": [0, 2, 3], "neighbours": [0, 2], "attacker": [0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hands": [["7S"], ["7S"]]}, "7S.*two places"),
        ({"hands": [["7S"]]}, "1 hands: 2 are needed"),
        ({"hands": [["1S"], ["7S"]]}, "card '1S'"),
        ({"trump": "X"}, "trump 'X': allowed are C, D, H, S"),
        ({"talon": ["6S"]}, "its last card is a trump"),
        ({"moves": ["9S"]}, "move '9S': allowed are 6C, 7S"),
        ({"attacker": 5}, "attacker 5: allowed are 0 to 1"),
        ({"hands": [[], ["7S"]]}, "attacker 0: the seat has no cards"),
    ],
)
def test_a_document_that_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    document = {"trump": "H", "hands": [["7S", "6C"], ["8S"]], "talon": [], "moves": []}
    with pytest.raises(ValueError, match=message):
        position(document | change)


def test_hands_of_unknown_cards_are_filled_from_those_that_are_not_named() -> None:
    game, state = position({"trump": "H", "hands": [["7S", "6C"], 6], "talon": 0, "attacker": 0})
    assert state.sizes[1] == 6
    assert places(state) == list(range(36))
    assert int(state.hands[0] | state.hands[1] | discarded(state)) == int(ALL_CARDS)
    assert legal(game, state) == ["6C", "7S"]


def play_games(player: Any, num_games: int) -> tuple[float, float, int]:
    """Return mean plies, the share of drawn games and the plies of the longest."""
    jobs = [GameJob(i, 0, i, (0, 0)) for i in range(num_games)]
    results = Table(SPEC, GAME, [player(SPEC, GAME)], jobs, num_slots=256).play_all()
    plies = np.array([result.plies for result in results])
    drawn = np.mean([result.returns[0] == 0.0 for result in results])
    return float(plies.mean()), float(drawn), int(plies.max())


def test_random_games_are_as_long_as_measured_elsewhere() -> None:
    plies, drawn, longest = play_games(RandomPlayer, 2000)
    assert abs(plies - 108) < 4
    assert longest < 300
    assert drawn < 0.01


def test_greedy_games_are_drawn_as_often_as_measured_elsewhere() -> None:
    plies, drawn, _ = play_games(RulePlayer, 2000)
    assert abs(plies - 52) < 3
    assert abs(drawn - 0.20) < 4 * (0.2 * 0.8 / 2000) ** 0.5
