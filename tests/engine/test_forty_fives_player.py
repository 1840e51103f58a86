"""The rule player of Forty-fives: each of its priorities on a position that shows it.

Against itself it makes 55 to 85 of 100 contracts, and it beats a random player.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.game import get_spec
from engine.games.forty_fives_state import LEVEL_NAMES, SUIT_NAMES
from engine.games.forty_fives_text import format_action
from engine.play import GameJob, Table
from engine.players import RandomPlayer, RulePlayer
from engine.rng import make_rng
from tests.engine.forty_fives_controls import (
    at_play,
    do,
    mask_of,
    pass_chance,
    play_rule_games,
)

SPEC = get_spec("forty_fives")
GAME = SPEC.make()


def choice(state: Any) -> str:
    """Return the action of the seat to move, in words."""
    view = SPEC.new_state()
    seat = int(state.to_move)
    rules.view(GAME, state, seat, view)
    return format_action(GAME, view, int(rules.rule_action(GAME, view, seat, make_rng(1))))


def at_auction(hand: str, *calls: str, scores: tuple[int, int] = (0, 0)) -> Any:
    """Return the auction after ``calls``; the seat to move holds ``hand``. Seat 3 deals."""
    state = SPEC.new_state()
    seed = 0
    while True:
        rules.deal(GAME, state, np.uint64(seed))
        seed += 1
        if state.dealer == 3:
            break
    do(GAME, state, *calls)
    state.hands[state.to_move] = mask_of(hand.split())
    state.scores[0], state.scores[1] = scores
    return state


@pytest.mark.parametrize(
    ("hand", "calls", "chosen"),
    [
        ("3D 4D 7C 9S 10H", (), "pass"),
        ("JS AH 9D 4D 3C", (), "20"),  # ten and nine tenths of a trick: 20
        ("5S AH KD 4D 3C", (), "25"),
        ("5S JS AH AS 3C", (), "30for60"),
        ("5S AH KD 4D 3C", ("20",), "25"),
        ("JS AH 9D 4D 3C", ("25",), "pass"),
        ("5S AH KD 4D 3C", ("20", "pass"), "pass"),  # partner's bid stands
        ("5S JS AH AS 3C", ("20", "pass"), "30for60"),
        ("JS AH 9D 4D 3C", ("20", "pass", "pass"), "hold"),
        ("JS AH 9D 4D 3C", ("pass", "20", "pass"), "pass"),  # dealer: partner's bid stands
        ("3D 4D 7C 9S 10H", ("20", "pass", "pass"), "pass"),
        ("3D 4D 7C 9S 10H", ("pass", "pass", "pass"), "20"),  # it has to bid
        ("5S AH KD 4D 3C", ("pass", "pass", "pass"), "20"),  # the least that wins
        ("5S JS AH AS 3C", ("pass", "pass", "pass"), "30for60"),
    ],
)
def test_calls(hand: str, calls: tuple[str, ...], chosen: str) -> None:
    assert choice(at_auction(hand, *calls)) == chosen


def test_a_side_past_100_bids_sooner() -> None:
    hand = "JS 9D 4D 3C 7C"
    assert choice(at_auction(hand)) == "pass"
    assert choice(at_auction(hand, scores=(105, 0))) == "20"
    assert choice(at_auction(hand, scores=(0, 105))) == "pass"


def test_trump_is_the_best_suit_and_the_discards_keep_trumps() -> None:
    state = at_auction("JC AC 5D KH 9S", "pass")
    do(GAME, state, "20", "pass", "pass")
    bidder = int(state.bidder)
    pass_chance(GAME, state)
    state.hands[bidder] = mask_of(["JC", "AC", "3D", "KH", "9S", "2D", "AH", "KD", "2H"])
    assert choice(state) == "C"
    do(GAME, state, "C")
    chosen = []
    while True:
        pass_chance(GAME, state)
        if state.to_move == bidder:
            break
        do(GAME, state, "throw")
    while state.to_move == bidder:
        chosen.append(choice(state))
        do(GAME, state, chosen[-1])
    assert chosen[:3] == ["keep JC", "keep AH", "keep AC"]
    assert {word.split()[0] for word in chosen[3:]} == {"throw"}


FILL = ["2C 3C 4C 6C 7C", "2D 3D 4D 6D 7D", "2H 3H 4H 6H 7H"]


@pytest.mark.parametrize(
    ("trump", "bidder", "hand", "chosen"),
    [
        ("S", 0, "5S AS KD 9H 8C", "5S"),  # draw trumps: the bidder, with the best
        ("S", 0, "JS AS KD 9H 8C", "KD"),  # the five is out: cash the king
        ("S", 3, "5S AS KD 9H 8C", "KD"),  # a defender cashes first
        ("S", 3, "5S AS QD 9H 8C", "8C"),  # nothing to cash: low (clubs count the other way)
        ("S", 3, "5S AS KS QS 2S", "5S"),  # trumps alone: the best one
        ("S", 3, "AS KS QS 2S 3S", "3S"),  # trumps alone, none is the best: the lowest
    ],
)
def test_leads(trump: str, bidder: int, hand: str, chosen: str) -> None:
    others = ["9C 10C JC 6C 7C", "2D 3D 4D 6D 7D", "2H 3H 4H 6H 7H"]
    state = at_play(GAME, trump, [hand, *others])
    state.bidder = bidder
    rest = int(state.stock)
    for seat in range(4):  # nobody has thrown anything: all the rest is unseen
        rest |= int(state.thrown[seat])
        state.thrown[seat] = 0
    state.stock = np.uint64(rest)
    assert choice(state) == chosen


@pytest.mark.parametrize(
    ("hand", "played", "chosen"),
    [
        # Seat 1 is second, 2 third, 3 last; spades are trump.
        ("KH 3S 2S 9D 3D", "QH", "KH"),  # second: the cheapest winner
        ("2S 3S 9D 3D 4D", "QH", "3S"),  # void: the lowest trump ruffs
        ("5S JS 9D 3D 8D", "QH", "3D"),  # 5 and J are saved while partner is to play
        ("5S JS 9D 3D 8D", "KH 2S", "JS"),  # third: not saved from a trump
        ("KH 3S 9D 3D 4D", "AH 9C", "3S"),  # partner's ace of hearts: a trump is owed, the lowest
        ("2H 3S 9D 3D 4D", "KH 9H", "2H"),  # partner's king stands: the lowest card
        ("2H 3S 9D 3D 4D", "KH QH 4H", "3S"),  # last: the cheapest card that wins
        ("2H 3S AS 3D 4D", "QH 4S 4H", "2H"),  # last, partner has ruffed: throw off
        ("KS 3S AS 3D 4D", "QH 3H 4S", "3S"),  # last: a lower trump before a higher
        ("2H 6H 9D 3D 4D", "KH QH 4H", "2H"),  # it cannot win: the lowest card
    ],
)
def test_follows(hand: str, played: str, chosen: str) -> None:
    cards = played.split()
    hands = ["", "", "", ""]
    for seat, card in enumerate(cards):
        hands[seat] = card
    hands[len(cards)] = hand
    state = at_play(GAME, "S", hands)
    do(GAME, state, *cards)
    assert choice(state) == chosen


def test_against_itself_it_makes_55_to_85_of_100_contracts() -> None:
    num_games = 2000
    hands, statistics = play_rule_games(GAME, num_games=num_games)
    _, contracts, made, _ = statistics
    rate = made / contracts
    # Four standard errors. Contracts of one game are few and hardly depend on one another.
    margin = 4 * (rate * (1 - rate) / (contracts * num_games)) ** 0.5
    assert rate - margin > 0.55
    assert rate + margin < 0.85
    assert contracts == pytest.approx(hands)
    assert 7 < hands < 12


def test_it_beats_a_random_player() -> None:
    players = [RulePlayer(SPEC, GAME), RandomPlayer(SPEC, GAME)]
    jobs = [GameJob(i, 0, i, (0, 1, 0, 1)) for i in range(40)]
    results = Table(SPEC, GAME, players, jobs, num_slots=40).play_all()
    assert sum(result.returns[0] > 0 for result in results) > 36


def test_levels_and_suits_are_those_of_the_text() -> None:
    assert LEVEL_NAMES[5] == "30for60"
    assert SUIT_NAMES == ("S", "H", "D", "C")
