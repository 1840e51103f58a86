"""A match that a sequential test ends.

* the stronger player is found, exactly at the boundary of the test; equals and mirrored players not
* only pairs up to the decision count, whatever was played side by side
* a match that reaches its maximum is undecided; settings and games that cannot be are refused
"""

from __future__ import annotations

import msgspec
import pytest

from engine.game import get_spec
from engine.players import RulePlayer
from league import sprt
from league.config import GateConfig
from league.match import MatchReport
from league.sequential import SequentialError, parse_test, play_sequential
from tests.league.test_match import Cautious, Generous

SPEC = get_spec("kuhn")
GAME = SPEC.make()
STRONG, WEAK = Generous(), Cautious()
"""Bluffs win games, though fewer antes; both are deterministic."""
TEST = parse_test("p1=0.6,alpha=0.01", 2000)


def play(first: object, second: object, test: GateConfig = TEST, slots: int = 16) -> MatchReport:
    return play_sequential(SPEC, GAME, (first, second), test, 3, names=("A", "B"), slots=slots)  # type: ignore[arg-type]


def test_settings_not_written_are_the_gates() -> None:
    default = GateConfig()
    assert (TEST.p0, TEST.p1, TEST.alpha, TEST.beta) == (0.5, 0.6, 0.01, default.beta)
    assert TEST.max_decided == TEST.max_pairs == 2000


def test_the_stronger_player_is_found_at_the_boundary() -> None:
    report = play(STRONG, WEAK)
    found = report.sequential
    assert found is not None
    assert found.outcome == sprt.PROMOTED
    assert found.verdict == "A is stronger"
    test = sprt.Sprt(0.5, 0.6, 0.01, TEST.beta)
    losses = found.num_decided - found.wins
    assert found.llr == sprt.llr(test, found.wins, losses) >= sprt.bounds(test).upper
    assert sprt.llr(test, found.wins - 1, losses) < sprt.bounds(test).upper  # not one pair more
    assert report.num_games == 2 * report.num_pairs == report.num_requested
    assert found.num_decided <= report.num_pairs
    assert report.win_rate > 0.5


def test_the_weaker_player_is_refused() -> None:
    found = play(WEAK, STRONG).sequential
    assert found is not None
    assert (found.outcome, found.verdict) == (sprt.REJECTED, "A is not that much stronger")


def test_the_result_does_not_depend_on_the_slots() -> None:
    def without_time(report: MatchReport) -> MatchReport:
        return msgspec.structs.replace(report, seconds_per_game=0.0)

    assert without_time(play(STRONG, WEAK, slots=3)) == without_time(play(STRONG, WEAK, slots=64))


def test_a_match_that_decides_nothing_ends_at_its_maximum() -> None:
    report = play(STRONG, STRONG, parse_test("p1=0.6", 40))  # all are split
    found = report.sequential
    assert found is not None
    assert (found.outcome, found.num_decided, report.num_pairs) == (sprt.UNDECIDED, 0, 40)
    assert found.verdict == "undecided"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p2=0.6", "'p2=0.6': allowed are numbers for p0, p1, alpha, beta"),
        ("p1", "'p1': allowed are numbers"),
        ("p1=high", "'p1=high': allowed are numbers"),
        ("p1=0.5", "p0 = 0.5, p1 = 0.5: needed is 0 < p0 < p1 < 1"),
        ("p1=nan", "needed is 0 < p0 < p1 < 1"),
        ("alpha=0", "allowed is 0 < alpha < 0.5"),
    ],
)
def test_a_test_that_cannot_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(SequentialError, match=message):
        parse_test(text, 10)


def test_games_of_more_than_two_sides_are_refused() -> None:
    durak = get_spec("durak")
    game = durak.make("", {"players": "3"})
    players = (RulePlayer(durak, game), RulePlayer(durak, game))
    with pytest.raises(SequentialError, match="3 sides: the sequential test is for games of two"):
        play_sequential(durak, game, players, TEST, 1)
