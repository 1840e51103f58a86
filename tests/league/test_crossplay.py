"""Cross-play: every pair of players as partners, on the same cards.

* planted signallers with codes of their own: each with its like wins, mixed they lose; the gap's
  interval excludes 0, and the rates are the exact ones; the same players without the signal show
  nothing
* every cell meets the same deals and the same randomness, holds every side, in both orders
* the report does not depend on slots; another seed gives other deals
* gaps and losses by hand; strengths that add up give exactly no gap, and no loss on any scale; a
  strong and a weak player show a gap and no convention
* bootstrap intervals cover the truth as often as they say, and few deals allow no verdict
* games without partnerships, wrong numbers of games and repeated names are refused by name
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest

from engine.game import get_spec
from engine.players import RandomPlayer
from league import crossplay
from league.crossplay import Cell, CrossplayReport, Estimate
from league.duplicate import OddGamesError
from tests.league.whisper_game import SPEC, Whisperer

GAME = SPEC.make()
SIDES = [(0, 2), (1, 3)]


def play(players: list[Any], num_games: int, seed: int, **options: Any) -> CrossplayReport:
    names = [f"player {number}" for number in range(len(players))]
    against = RandomPlayer(SPEC, GAME)
    return crossplay.play_crossplay(
        SPEC, GAME, players, against, num_games, seed, names=names, against_name="random", **options
    )


# --- planted conventions --------------------------------------------------------------------------


def test_planted_signallers_show_a_private_convention() -> None:
    report = play([Whisperer(0), Whisperer(1)], 800, 1)
    assert report.gap.low > 0.0
    assert report.verdict == crossplay.CONVENTION
    # Partners are right twice or never; the random side is right 0, 1 or 2 times of two.
    margin = 4 * 0.25 / report.num_deals**0.5
    expected = {("player 0", "player 1"): 1 / 8}
    for cell in report.cells:
        rate = expected.get((cell.first, cell.second), 7 / 8)
        assert cell.win_rate == pytest.approx(rate, abs=margin)
        assert cell.win_rate_low < rate < cell.win_rate_high
    assert report.gap.mean == pytest.approx(report.self_play - report.cross_play)
    assert report.gap.low < 3 / 4 < report.gap.high


def test_the_same_players_without_the_signal_show_none() -> None:
    quiet = [Whisperer(0, signals=False), Whisperer(1, signals=False)]
    report = play(quiet, 800, 1)
    assert report.gap.low < 0.0 < report.gap.high
    assert report.verdict == crossplay.NONE_SHOWN
    for cell in report.cells:
        assert cell.win_rate_low < 1 / 2 < cell.win_rate_high


def test_among_three_the_pairs_say_who_shares_the_code() -> None:
    report = play([Whisperer(0), Whisperer(1), Whisperer(0)], 400, 2)
    gaps = {(pair.first, pair.second): pair for pair in report.pair_gaps}
    assert gaps["player 0", "player 1"].gap.low > 0.5
    assert gaps["player 1", "player 2"].gap.low > 0.5
    same = gaps["player 0", "player 2"].gap  # they share all randomness too
    assert (same.low, same.mean, same.high) == (0.0, 0.0, 0.0)
    assert report.gap.mean == pytest.approx(np.mean([p.gap.mean for p in report.pair_gaps]))
    assert report.verdict == crossplay.CONVENTION


# --- games ----------------------------------------------------------------------------------------


def test_every_cell_holds_every_side_in_both_orders_on_the_same_deals() -> None:
    jobs = list(crossplay.crossplay_jobs(SIDES, 2, seed=7, deals=3))
    by_cell: dict[Cell, list[Any]] = {cell: [] for cell in crossplay.matrix_cells(2)}
    for job in jobs:
        first, second = sorted(player for player in job.seat_players if player != 2)
        by_cell[Cell(first, second)].append(job)
    deals = {(job.pair, job.seed) for job in jobs}
    assert len(deals) == 3
    for cell, played in by_cell.items():
        assert {(job.pair, job.seed) for job in played} == deals
        assert Counter((job.pair, job.replay) for job in played) == Counter(
            (deal, replay) for deal in range(3) for replay in range(4)
        ), cell
    mixed = {(job.replay, job.seat_players) for job in by_cell[Cell(0, 1)]}
    assert mixed == {(0, (0, 2, 1, 2)), (1, (1, 2, 0, 2)), (2, (2, 0, 2, 1)), (3, (2, 1, 2, 0))}
    alone = {(job.replay, job.seat_players) for job in by_cell[Cell(1, 1)]}
    assert alone == {(0, (1, 2, 1, 2)), (1, (1, 2, 1, 2)), (2, (2, 1, 2, 1)), (3, (2, 1, 2, 1))}


def test_same_seed_same_report_whatever_the_slots_and_another_seed_another() -> None:
    players = [Whisperer(0), Whisperer(1, signals=False)]
    told: list[tuple[int, int]] = []
    narrow = play(players, 80, 5, slots=3, progress=lambda *counts: told.append(counts))
    assert narrow == play(players, 80, 5, slots=500)
    assert told[-1] == (240, 240)
    assert narrow.num_games == sum(cell.num_games for cell in narrow.cells) == 240
    assert [cell.num_games for cell in narrow.cells] == [80, 80, 80]
    assert narrow.num_deals == 20
    other = play(players, 80, 6)
    assert [cell.win_rate for cell in other.cells] != [cell.win_rate for cell in narrow.cells]


def test_players_do_not_meet_their_own_kind_on_other_sides() -> None:
    """A player that is also the fixed one is told apart by its index."""
    alone = Whisperer(0)
    report = crossplay.play_crossplay(
        SPEC, GAME, [alone, Whisperer(1)], alone, 80, 3, names=("a", "b"), against_name="a"
    )
    rates = {(cell.first, cell.second): cell.win_rate for cell in report.cells}
    assert rates == {("a", "a"): 0.5, ("a", "b"): 0.0, ("b", "b"): 0.5}


def test_report_survives_json() -> None:
    report = play([Whisperer(0), Whisperer(1)], 8, 5)
    data = msgspec.json.encode(report)
    assert msgspec.json.decode(data, type=CrossplayReport) == report


# --- statistics -----------------------------------------------------------------------------------


def test_gaps_and_losses_by_hand() -> None:
    # Cells 00, 01, 02, 11, 12, 22.
    scores = np.tile([0.9, 0.5, 0.4, 0.7, 0.6, 0.8], (30, 1))
    report = crossplay.build_report(SPEC, GAME, scores, ("a", "b", "c"), "r", seed=0)
    found = {(p.first, p.second): (p.gap.mean, p.loss.mean) for p in report.pair_gaps}
    expected = {("a", "b"): (0.3, 0.2), ("a", "c"): (0.45, 0.4), ("b", "c"): (0.15, 0.1)}
    assert found == {pair: pytest.approx(figures) for pair, figures in expected.items()}
    assert (report.self_play, report.cross_play) == (pytest.approx(0.8), pytest.approx(0.5))
    assert report.gap.mean == pytest.approx(0.3)
    assert report.loss.mean == pytest.approx(0.7 / 3)


def test_strengths_that_add_up_give_no_gap_and_on_no_scale_a_loss() -> None:
    strengths = np.random.default_rng(0).uniform(-1, 1, (40, 4))
    rates = np.stack(
        [strengths[:, a] + strengths[:, b] for a, b in crossplay.matrix_cells(4)], axis=1
    )
    assert np.allclose(crossplay.pair_gaps(rates), 0.0)
    for scale in (np.tanh, np.exp, lambda rate: rate**3):
        assert np.all(crossplay.pair_losses(scale(rates)) <= 0.0)
    assert np.abs(crossplay.pair_gaps(np.exp(rates))).max() > 0.1


def test_a_strong_and_a_weak_player_show_a_gap_but_no_convention() -> None:
    generator = np.random.default_rng(5)
    scores = (generator.random((400, 3)) < [0.56, 0.04, 0.01]).astype(float)
    report = crossplay.build_report(SPEC, GAME, scores, ("strong", "weak"), "r", seed=0)
    assert report.gap.low > 0.1
    assert report.loss.mean < 0.0
    assert report.verdict == crossplay.STRENGTH


def test_bootstrap_intervals_cover_the_truth_as_often_as_they_say() -> None:
    generator = np.random.default_rng(3)
    trials, deals, truth = 400, 25, 0.3
    values = (generator.random((deals, trials)) < truth).astype(float)
    drawn = crossplay.resample(values, 1)
    found = [crossplay.estimate(values[:, i].mean(), drawn[:, i], deals) for i in range(trials)]
    inside = sum(estimate.low <= truth <= estimate.high for estimate in found)
    assert inside / trials > 0.95 - 4 * (0.95 * 0.05 / trials) ** 0.5
    assert inside / trials < 1.0


def test_bootstrap_of_a_seed_is_reproducible_and_narrows_with_deals() -> None:
    values = np.random.default_rng(4).normal(0.1, 0.3, (400, 1))
    drawn = crossplay.resample(values, 1)
    assert np.array_equal(drawn, crossplay.resample(values, 1))
    assert not np.array_equal(drawn, crossplay.resample(values, 2))
    narrow = crossplay.estimate(values.mean(), drawn[:, 0], 400)
    wide = crossplay.estimate(values.mean(), crossplay.resample(values[:25], 1)[:, 0], 25)
    error = float(values.std(ddof=1)) / 20
    assert narrow.high - narrow.low == pytest.approx(2 * 1.97 * error, rel=0.1)
    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)


def test_verdict_in_words() -> None:
    def at(low: float) -> Estimate:
        return Estimate(mean=low + 0.1, low=low, high=low + 0.2)

    assert crossplay.verdict(at(0.01), at(0.01), 20) == crossplay.CONVENTION
    assert crossplay.verdict(at(0.01), at(0.0), 20) == crossplay.STRENGTH
    assert crossplay.verdict(at(0.0), at(0.01), 20) == crossplay.NONE_SHOWN
    assert "too few deals" in crossplay.verdict(at(0.5), at(0.5), 19)
    single = play([Whisperer(0), Whisperer(1)], 4, 1)
    assert (single.gap.low, single.gap.high) == (-1.0, 1.0)
    assert single.verdict == "too few deals for a verdict: 1, needed are 20"


# --- refusals -------------------------------------------------------------------------------------


def test_games_without_partnerships_are_refused_by_name() -> None:
    kuhn = get_spec("kuhn")
    with pytest.raises(crossplay.NoPartnersError, match=r"'kuhn' .* have 1, 1 seats"):
        crossplay.partnerships(kuhn, kuhn.make())
    cuarenta = get_spec("cuarenta")
    with pytest.raises(crossplay.NoPartnersError, match="'cuarenta'"):
        crossplay.partnerships(cuarenta, cuarenta.make("report_b_2p"))
    assert crossplay.partnerships(cuarenta, cuarenta.make("report_a_4p")) == SIDES


def test_wrong_games_and_names_are_refused() -> None:
    for games in (0, 2, 6):
        with pytest.raises(OddGamesError, match=f"{games} games: needed is a multiple of 4"):
            play([Whisperer(0), Whisperer(1)], games, 1)
    with pytest.raises(ValueError, match="1 players: cross-play needs two or more"):
        play([Whisperer(0)], 4, 1)
    with pytest.raises(ValueError, match="'a' is named twice"):
        crossplay.check_names(["a", "b", "a"])
