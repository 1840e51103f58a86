"""Blocks of pairs: counted as a whole, whatever order pairs end in and how often they are begun."""

from __future__ import annotations

import numpy as np
import pytest

from engine.play import GameResult, Table
from engine.players import Player, RandomPlayer, RulePlayer
from league.blocks import PairBlock, evaluation_of, figure_names, figures_of, tally_of
from league.duplicate import PairCollector, game_jobs
from league.match import build_report, pairs_of
from tests.league.tiny_models import GAME, SPEC


def play(block: PairBlock) -> list[GameResult]:
    """Play what ``block`` hands out: the rule player against a random one."""
    players: list[Player] = [RulePlayer(SPEC, GAME), RandomPlayer(SPEC, GAME)]
    jobs = [job for pair in block.issue(1000) for job in game_jobs(GAME, pair)]
    return Table(SPEC, GAME, players, jobs, num_slots=len(jobs)).play_all()


def report(block: PairBlock, results: list[GameResult]) -> None:
    collector = PairCollector(GAME)
    for result in results:
        pair = collector.add(result)
        if pair is not None:
            block.report(pair.pair, figures_of(pair))


def test_a_finished_block_says_what_a_match_report_says() -> None:
    block = PairBlock(seed=5, first=0, count=40)
    results = play(block)
    report(block, results)
    assert block.is_over
    expected = build_report(SPEC, GAME, ("a", "b"), pairs_of(GAME, results), seed=5)
    found = evaluation_of(
        SPEC, block, version=3, is_champion=True, opponent="random", simulations=0
    )
    assert (found.games, found.wins, found.draws, found.losses) == (
        80,
        expected.wins,
        expected.draws,
        expected.losses,
    )
    assert (found.win_rate, found.win_rate_low, found.win_rate_high) == (
        expected.win_rate,
        expected.win_rate_low,
        expected.win_rate_high,
    )
    for side, player in ((found.own, expected.players[0]), (found.other, expected.players[1])):
        assert tuple(side) == figure_names(SPEC)
        assert side["return"] == pytest.approx(player.shaped_return)
        assert side["plies"] == pytest.approx(player.plies)
        for name, value in player.statistics.items():
            assert side[name] == pytest.approx(value)
    assert found.own["return"] == -found.other["return"] != 0
    tally = tally_of(-1, 3, block)
    assert sum(tally.scores) == 40
    assert np.dot(tally.scores, [0, 0.25, 0.5, 0.75, 1]) / 40 == pytest.approx(found.win_rate)
    assert (tally.wins, tally.draws, tally.losses) == (found.wins, found.draws, found.losses)


def test_interrupted_block_plays_the_rest_and_says_the_same() -> None:
    whole, parts = PairBlock(seed=5, first=8, count=12), PairBlock(seed=5, first=8, count=12)
    report(whole, play(whole))
    results = play(parts)
    report(parts, results[: len(results) // 2])
    assert not parts.is_over
    restored = PairBlock.restore(parts.snapshot())
    missing = [job.pair for job in restored.issue(100)]
    assert missing == [n for n in range(8, 20) if n not in parts.snapshot().finished]
    restored = PairBlock.restore(parts.snapshot())
    report(restored, play(restored))
    assert restored.is_over
    assert restored.figures() == whole.figures()
    assert tally_of(0, 1, restored) == tally_of(0, 1, whole)


def test_pairs_of_another_block_are_refused() -> None:
    block = PairBlock(seed=5, first=8, count=2)
    results = play(PairBlock(seed=5, first=3, count=1))
    with pytest.raises(ValueError, match="pair 3: this block has 8 to 9"):
        report(block, results)
