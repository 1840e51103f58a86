"""Gates between equal players, a few of them: real games, real searches, enough decided pairs."""

from __future__ import annotations

import onnx
import pytest

from engine.search.ismcts import Search
from league import sprt
from league.config import GateConfig
from league.messages import GateOutcome
from tests.bench import equal_gates
from tests.bench.equal_gates import LEAST_DECIDED_SHARE, describe, play_gates, summarise

SIMULATIONS = 16
NUM_GATES = 3
MOST_PAIRS = 40


def test_models_differ_in_nothing_but_their_version() -> None:
    subject = equal_gates.make_subject(0)
    first, second = (
        onnx.ModelProto.FromString(equal_gates.model_of(subject, version)) for version in (0, 7)
    )
    assert first != second
    for model in (first, second):
        del model.metadata_props[:]
    assert first.SerializeToString() == second.SerializeToString()


def test_equal_players_decide_pairs_in_real_searched_games(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[Search] = []
    begin = Search.begin

    def counted(self: Search, *arguments: object) -> None:
        if self not in searches:
            searches.append(self)
        begin(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Search, "begin", counted)
    config = GateConfig(simulations=SIMULATIONS, games=2 * MOST_PAIRS, max_pairs=MOST_PAIRS)
    outcomes = list(play_gates(config, NUM_GATES, seed=1))
    assert [(o.candidate, o.champion) for o in outcomes] == [(1, 0), (2, 0), (3, 0)]
    assert len(searches) == 2 * NUM_GATES  # candidate and champion of each gate
    # A game to ten points has some twenty plies at the least; forced ones are not searched.
    assert all(s.num_simulations > SIMULATIONS * MOST_PAIRS * 5 for s in searches)
    assert all(s.num_rows_evaluated > s.num_simulations / 2 for s in searches)
    summary = summarise(outcomes, config)
    assert summary.num_pairs <= NUM_GATES * MOST_PAIRS
    assert summary.decided_share >= LEAST_DECIDED_SHARE
    assert 0.25 < summary.num_won / summary.num_decided < 0.75


def outcome(end: str, wins: int = 80, decided: int = 150, pairs: int = 400) -> GateOutcome:
    return GateOutcome(
        candidate=1,
        champion=0,
        outcome=end,
        num_pairs=pairs,
        num_decided=decided,
        wins=wins,
        llr=0.0,
        score=0.5,
    )


@pytest.mark.parametrize(("promoted", "within"), [(0, False), (1, True), (9, True), (40, False)])
def test_the_bound_is_that_of_the_exact_test(promoted: int, within: bool) -> None:
    outcomes = [outcome(sprt.PROMOTED)] * promoted
    outcomes += [outcome(sprt.REJECTED)] * (200 - promoted)
    summary = summarise(outcomes, GateConfig())
    assert summary.promoted_share == pytest.approx(0.0462, abs=0.0005)
    assert summary.decided_share == pytest.approx(150 / 400)
    assert summary.within_bound is within
    assert ("NO" in describe(summary)) is not within
