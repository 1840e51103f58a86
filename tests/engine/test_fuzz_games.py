"""300 random games of every game, every switch drawn at random, are those of its naive twin.

* ``make fuzz`` compares 20,000 (``tests.engine.fuzz_games``).
* Every value of every switch is drawn on the way.
* A rule that differs is found, and told with the number of the game that shows it.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from engine import rules
from engine.game import game_names, get_spec
from tests.engine import fuzz_games
from tests.engine.fuzz_games import TWINS, fuzz, play
from tests.engine.twins import Mismatch

NUM_GAMES = 300


def test_every_game_has_a_twin() -> None:
    assert set(TWINS) == set(game_names())


@pytest.mark.parametrize("name", TWINS)
def test_300_random_games_agree_with_the_twin(name: str) -> None:
    counts = fuzz(name, range(NUM_GAMES))
    assert counts.games == NUM_GAMES
    assert counts.positions > 2 * NUM_GAMES
    assert counts.worlds > NUM_GAMES // 10


@pytest.mark.parametrize("name", TWINS)
def test_every_value_of_every_switch_is_drawn(name: str) -> None:
    drawn: dict[str, set[str]] = {}
    for number in range(NUM_GAMES):
        for switch, value in TWINS[name].options(random.Random(number)).items():
            drawn.setdefault(switch, set()).add(value)
    for switch, option in get_spec(name).options.items():
        if option.values is not None:
            assert drawn[switch] == set(option.values)
        else:
            assert len(drawn[switch]) > 1


def test_a_difference_is_told_with_its_game(monkeypatch: pytest.MonkeyPatch) -> None:
    # The twin is told that all bet one chip more than they do.
    monkeypatch.setattr("tests.naive.leduc.paid", lambda history, stakes: [2, 2])
    with pytest.raises(Mismatch, match=r"^leduc, game 7 of seed 1, \{'ante': "):
        play("leduc", 7, seed=1)


def test_a_world_with_another_view_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = rules.determinize

    def other_cards(game: object, view: object, seat: int, rng: object, out: object) -> None:
        honest(game, view, seat, rng, out)
        out.cards[:] = np.roll(out.cards, 1)  # type: ignore[attr-defined]

    monkeypatch.setattr(rules, "determinize", other_cards)
    monkeypatch.setattr(fuzz_games, "WORLDS", 1.0)
    with pytest.raises(Mismatch, match="view of a drawn world"):
        fuzz("kuhn", range(20))
