"""The gate's state machine on simulated pairs.

* 2,000 simulated gates per split rate agree with the exact figures within four standard errors
* results in any order (short games first, lost games first, backwards) decide as in order
* all-draw, all-win and all-loss runs end; nothing is issued or read after the end
* real games on a real table, through pairs, to a promotion
* lost pairs are issued again; a second score of the same pair changes nothing
* a gate restored from bytes goes on to the same decision; contradictory snapshots are refused
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from engine.game import get_spec
from engine.play import Table
from engine.players import Player, RandomPlayer, RulePlayer
from league import sprt
from league.config import GateConfig
from league.duplicate import PairCollector, game_jobs
from league.gatekeeper import GateError, Gatekeeper, GateSnapshot, sprt_of
from league.messages import GateOutcome

CONFIG = GateConfig()
IN_FLIGHT = 48
SPEC = get_spec("kuhn")
KUHN = SPEC.make()


def new_gate(config: GateConfig = CONFIG) -> Gatekeeper:
    return Gatekeeper(config, candidate=7, champion=3, seed=11)


def pair_scores(rng: np.random.Generator, count: int, p: float, split: float) -> list[float]:
    """Scores of pairs: split with probability ``split``, else won with probability ``p``."""
    decided = rng.random(count) >= split
    won = rng.random(count) < p
    clear = rng.random(count) < 0.5  # 1 or 3/4, 0 or 1/4: the test may not care
    score = np.where(won, np.where(clear, 1.0, 0.75), np.where(clear, 0.0, 0.25))
    scores: NDArray[np.float64] = np.where(decided, score, 0.5)
    return [float(value) for value in scores.tolist()]


def play(gate: Gatekeeper, scores: list[float], order: str = "lost first") -> GateOutcome:
    """Play a gate to its end with many pairs in flight that finish in the given order."""
    keys = {
        "in order": lambda pair: pair,
        "backwards": lambda pair: -pair,
        "lost first": lambda pair: scores[pair],
        "won first": lambda pair: -scores[pair],
        "decided first": lambda pair: -abs(scores[pair] - 0.5),
    }
    while not gate.is_over:
        pairs = [job.pair for job in gate.issue(IN_FLIGHT)]
        assert pairs, "a running gate must hand out pairs"
        for pair in sorted(pairs, key=keys[order]):
            gate.report(pair, scores[pair])
    outcome = gate.outcome()
    assert outcome is not None
    return outcome


@pytest.mark.parametrize(
    ("split", "p"), [(0.2, 0.5), (0.4, 0.6), (0.6, 0.55), (0.8, 0.5), (0.8, 0.6)]
)
def test_2000_simulated_gates_agree_with_the_exact_probabilities(split: float, p: float) -> None:
    num_gates = 2_000
    exact = sprt.characteristics(sprt_of(CONFIG), p, split_share=split)
    rng = np.random.default_rng([int(10 * split), int(100 * p)])
    ends = {sprt.PROMOTED: 0, sprt.REJECTED: 0, sprt.UNDECIDED: 0}
    decided = np.zeros(num_gates)
    for number in range(num_gates):
        outcome = play(new_gate(), pair_scores(rng, CONFIG.max_pairs, p, split))
        ends[outcome.outcome] += 1
        decided[number] = outcome.num_decided
    for name, probability in (
        (sprt.PROMOTED, exact.promoted),
        (sprt.REJECTED, exact.rejected),
        (sprt.UNDECIDED, exact.undecided),
    ):
        error = math.sqrt(probability * (1 - probability) / num_gates)
        assert abs(ends[name] / num_gates - probability) <= 4 * error, name
    standard_error = decided.std(ddof=1) / math.sqrt(num_gates)
    assert abs(decided.mean() - exact.mean_decided) <= 4 * standard_error


@pytest.mark.parametrize("split", [0.0, 0.2, 0.5, 0.8])
def test_candidate_equal_to_champion_is_promoted_at_most_5_percent(split: float) -> None:
    exact = sprt.characteristics(sprt_of(CONFIG), 0.5, split_share=split)
    assert 0.04 < exact.promoted <= 0.05


@pytest.mark.parametrize("order", ["backwards", "lost first", "won first", "decided first"])
def test_order_of_arrival_does_not_change_the_decision(order: str) -> None:
    for seed in range(40):
        scores = pair_scores(np.random.default_rng(seed), CONFIG.max_pairs, 0.55, 0.5)
        assert play(new_gate(), scores, order) == play(new_gate(), scores, "in order")


def test_reading_in_order_of_arrival_would_promote_equals_far_too_often() -> None:
    """The bias that reading in order of issue prevents, so that the test above tests something."""
    test = sprt_of(CONFIG)
    promoted = 0
    for seed in range(200):
        scores = pair_scores(np.random.default_rng(seed), CONFIG.max_pairs, 0.5, 0.5)
        wins = losses = 0
        for first in range(0, len(scores), IN_FLIGHT):
            for score in sorted(scores[first : first + IN_FLIGHT], reverse=True):
                wins, losses = wins + (score > 0.5), losses + (score < 0.5)
                end = sprt.decide(test, wins, losses, first)
                if end:
                    break
            if end:
                break
        promoted += end == sprt.PROMOTED
    assert promoted > 0.25 * 200


@pytest.mark.parametrize(
    ("score", "end", "pairs"),
    [(0.5, "undecided", 3000), (1.0, "promoted", 17), (0, "rejected", 15)],
)
def test_runs_of_one_result_end(score: float, end: str, pairs: int) -> None:
    outcome = play(new_gate(), [score] * CONFIG.max_pairs)
    assert (outcome.outcome, outcome.num_pairs, outcome.score) == (end, pairs, score)
    assert outcome.num_decided == (0 if score == 0.5 else pairs)


def test_maximum_of_decided_pairs_ends_undecided() -> None:
    # 11 wins to 9 losses keep the ratio between its boundaries for ever.
    outcome = play(new_gate(), ([1.0, 0.0] * 9 + [1.0] * 2 + [0.5]) * 150, "in order")
    assert (outcome.outcome, outcome.num_decided, outcome.wins) == ("undecided", 800, 440)
    assert outcome.num_pairs == 800 + 39


def test_never_more_pairs_than_the_maximum_are_issued() -> None:
    gate = new_gate(GateConfig(max_pairs=10))
    assert [job.pair for job in gate.issue(7)] == list(range(7))
    assert [job.pair for job in gate.issue(7)] == [7, 8, 9]
    assert gate.issue(7) == []
    assert gate.num_outstanding == 10
    for pair in range(10):
        gate.report(pair, 0.5)
    outcome = gate.outcome()
    assert outcome is not None
    assert outcome.outcome == "undecided"


def test_what_comes_after_the_decision_is_discarded() -> None:
    gate = new_gate()
    gate.issue(40)
    for pair in range(39, 16, -1):
        gate.report(pair, 0.0)
    assert gate.status().num_pairs == 0
    for pair in range(17):
        gate.report(pair, 1.0)
    before = gate.outcome()
    assert before is not None
    assert (before.outcome, before.num_pairs) == ("promoted", 17)
    assert gate.issue(5) == []
    gate.requeue([20, 30])
    gate.report(20, 0.0)
    assert gate.outcome() == before
    assert gate.issue(5) == []


def test_later_finishers_wait_for_earlier_pairs() -> None:
    gate = new_gate()
    gate.issue(3)
    gate.report(2, 1.0)
    gate.report(1, 0.0)
    assert (gate.status().num_pairs, gate.num_outstanding) == (0, 1)
    gate.report(0, 0.5)
    status = gate.status()
    assert (status.num_pairs, status.num_decided, status.wins) == (3, 2, 1)
    assert status.llr == pytest.approx(math.log(1.2) + math.log(0.8))
    assert (status.candidate, status.champion) == (7, 3)
    assert gate.outcome() is None


def test_lost_pairs_are_issued_again_with_the_same_cards_and_read_once() -> None:
    gate = new_gate()
    first = gate.issue(4)
    gate.report(1, 1.0)
    gate.requeue([2, 0, 1, 2])
    assert gate.num_outstanding == 1
    assert gate.issue(3) == [first[0], first[2], *new_gate().issue(5)[4:]]
    gate.report(0, 0.25)
    gate.report(0, 1.0)  # the lost player was alive after all
    assert gate.status().num_pairs == 2
    assert gate.status().wins == 1


def test_a_lost_pair_that_is_reported_before_it_is_issued_again_is_not_issued_again() -> None:
    gate = new_gate()
    gate.issue(2)
    gate.requeue([0, 1])
    gate.report(0, 1.0)
    assert [job.pair for job in gate.issue(2)] == [1, 2]


def test_reports_that_cannot_be_are_refused() -> None:
    gate = new_gate()
    gate.issue(2)
    for pair, score, text in (
        (2, 1.0, "pair 2: issued are pairs 0 to 1"),
        (-1, 1.0, "pair -1"),
        (0, 0.3, r"scores 0\.3"),
        (0, float("nan"), "scores nan"),
    ):
        with pytest.raises(GateError, match=text):
            gate.report(pair, score)
    with pytest.raises(GateError, match="pair 9"):
        gate.requeue([9])
    with pytest.raises(ValueError, match=r"p0 = 0\.6, p1 = 0\.6"):
        new_gate(GateConfig(p0=0.6))


def play_for_real(players: tuple[Player, Player]) -> GateOutcome:
    """Play Kuhn's games, on a table, until the gate has its outcome."""
    gate, collector = new_gate(), PairCollector(KUHN)
    while not gate.is_over:
        jobs = [job for pair in gate.issue(IN_FLIGHT) for job in game_jobs(KUHN, pair)]
        for result in Table(SPEC, KUHN, players, jobs, num_slots=10).play_all():
            pair = collector.add(result)
            if pair is not None:
                gate.report(pair.pair, pair.score)
    outcome = gate.outcome()
    assert outcome is not None
    return outcome


def test_gate_on_real_games_promotes_the_winner_of_pairs_and_rejects_the_loser() -> None:
    # Games won decide, not antes: in Kuhn whoever bets more often wins more games.
    rule, random = RulePlayer(SPEC, KUHN), RandomPlayer(SPEC, KUHN)
    promoted, rejected = play_for_real((random, rule)), play_for_real((rule, random))
    assert (promoted.outcome, rejected.outcome) == (sprt.PROMOTED, sprt.REJECTED)
    assert promoted.score > 0.5 > rejected.score
    assert play_for_real((random, rule)) == promoted


def through_bytes(gate: Gatekeeper) -> Gatekeeper:
    data = msgspec.json.encode(gate.snapshot())
    return Gatekeeper.restore(msgspec.json.decode(data, type=GateSnapshot))


@pytest.mark.parametrize("seed", range(20))
def test_a_restored_gate_goes_on_to_the_same_decision(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = pair_scores(rng, CONFIG.max_pairs, 0.57, 0.4)
    wanted = play(new_gate(), scores, "in order")
    gate = new_gate()
    seeds: dict[int, int] = {}
    while not gate.is_over:
        jobs = gate.issue(IN_FLIGHT)
        for job in jobs:
            assert seeds.setdefault(job.pair, job.seed) == job.seed
        kept = rng.permutation(len(jobs))[: rng.integers(len(jobs) + 1)]  # the rest die with us
        for number in kept:
            gate.report(jobs[number].pair, scores[jobs[number].pair])
        gate = through_bytes(gate)
        assert gate.num_outstanding == 0
    assert gate.outcome() == wanted
    assert len(set(seeds.values())) == len(seeds)
    assert through_bytes(gate).outcome() == wanted


def test_snapshots_that_contradict_themselves_are_refused() -> None:
    gate = new_gate()
    gate.issue(5)
    gate.report(3, 1.0)
    gate.report(0, 0.0)
    good = gate.snapshot()
    assert Gatekeeper.restore(good).snapshot() == good
    for change in (
        {"num_read": 6},
        {"wins": 2},
        {"losses": -1},
        {"num_issued": 4_000},
        {"waiting": {0: 1.0}},
        {"waiting": {3: 0.9}},
    ):
        with pytest.raises(GateError, match="contradict"):
            Gatekeeper.restore(msgspec.structs.replace(good, **change))
    with pytest.raises(GateError, match="schema 99"):
        Gatekeeper.restore(msgspec.structs.replace(good, schema_version=99))
