"""The compiled Durak against its naive twin.

* Constructed positions with options of all kinds agree in everything: legal actions, places of all
  cards, what each seat knows, who draws, who is out, outcomes.
* Who attacks first, and what that tells of the hands, is what the twin finds in them.
* Any one switch set differently in the twin is noticed, so the comparison covers each of them.
* The same holds with the JIT off.

Whole games are compared in test_fuzz_games.py.
"""

from __future__ import annotations

import random

import pytest

from tests.engine.durak_pairs import (
    SPEC,
    compare,
    new_game,
    random_options,
    random_position,
)
from tests.engine.twins import Mismatch
from tests.interpreted import run_interpreted

# Options under which a switch has an effect where the default game gives it none.
CONTEXT: dict[str, dict[str, str]] = {
    "throwers": {"players": "4"},
    "transfer_show_trump": {"transfer": "yes"},
    "transfer_first_bout": {"transfer": "yes"},
    "last_loser": {"first_attacker": "after_last_loser", "players": "4"},
}
SHAPE = "players"
"""The number of seats is the shape of the game."""


def base_options(name: str) -> dict[str, str]:
    return SPEC.describe(SPEC.make("", CONTEXT.get(name)))


def compare_many(options: dict[str, str], naive_options: dict[str, str]) -> None:
    rng = random.Random(4)
    for seed in range(600):
        compare(random_position(options, rng, naive_options), rng, max_steps=20)
        compare(new_game(options, seed, naive_options), rng, max_steps=3)


FLIPS = [
    (name, value)
    for name, option in SPEC.options.items()
    if name != SHAPE
    for value in (option.values or ["3"])
    if value != base_options(name)[name]
]


def test_random_positions_agree() -> None:
    rng = random.Random(1)
    for _ in range(200):
        compare(random_position(random_options(rng), rng), rng, max_steps=20)


def test_positions_of_the_presets_agree() -> None:
    rng = random.Random(2)
    for preset in SPEC.presets:
        options = SPEC.describe(SPEC.make(preset))
        for _ in range(30):
            compare(random_position(options, rng), rng, max_steps=20)


def test_first_attackers_of_many_deals_agree() -> None:
    rng = random.Random(4)
    for seed in range(300):
        new_game(random_options(rng), seed)


@pytest.mark.parametrize(("name", "value"), FLIPS)
def test_a_switch_set_differently_in_the_twin_is_noticed(name: str, value: str) -> None:
    options = base_options(name)
    with pytest.raises(Mismatch):
        compare_many(options, options | {name: value})


def test_jit_off_agrees_too() -> None:
    run_interpreted("tests.engine.durak_pairs", "40")
