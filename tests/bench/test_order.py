"""The quick pairs of the order of classical players; ``make order`` has all of them."""

from __future__ import annotations

import pytest

from deploy import report
from league import sprt
from tests.bench import order

QUICK = [
    ("cuarenta", ("level:2", "level:1")),
    ("cuarenta", ("level:3", "level:2")),
    ("cuarenta", ("level:4", "level:3")),
    ("durak", ("level:2", "level:1")),
]


def test_pairs_go_from_the_weakest_to_the_strongest() -> None:
    assert order.pairs("durak") == [
        ("level:2", "level:1"),
        ("level:3", "level:2"),
        ("level:4", "level:3"),
    ]
    assert all(pair in order.pairs(game) for game, pair in QUICK)


@pytest.mark.parametrize(("game", "pair"), QUICK)
def test_the_stronger_player_wins_its_sequential_test(game: str, pair: tuple[str, str]) -> None:
    rules, _ = order.ORDER[game]
    # Another seed than the one of `make order`.
    found = report.match(pair, 800, 7, game=game, rules=rules, sequential=order.TEST)
    assert found.sequential is not None
    assert found.sequential.outcome == sprt.PROMOTED, report.sequential_words(found)
