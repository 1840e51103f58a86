"""Records of self-play against the pool: what counts, and for whom it is kept."""

from __future__ import annotations

import pytest

from league.messages import PairRecord
from league.records import apply_result, posterior_mean, records_of_pool


def test_posterior_mean_is_one_half_without_games() -> None:
    assert posterior_mean(None) == posterior_mean(PairRecord()) == 0.5
    assert posterior_mean(PairRecord(wins=2.5, games=4)) == pytest.approx(3.5 / 6)


def test_records_count_wins_draws_and_losses() -> None:
    records: dict[int, PairRecord] = {}
    for score in (1.0, 0.5, 0.0, 1.0):
        apply_result(records, 4, score)
    apply_result(records, 9, 0.0)
    assert records == {4: PairRecord(wins=2.5, games=4), 9: PairRecord(wins=0.0, games=1)}
    assert records_of_pool(records, (9, 12)) == {9: PairRecord(wins=0.0, games=1)}
    with pytest.raises(ValueError, match=r"score 0\.7: allowed are"):
        apply_result(records, 4, 0.7)
