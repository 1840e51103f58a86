"""The compiled Cuarenta against its naive twin.

* Constructed positions with options of all kinds agree in everything: legal actions, points,
  places of all cards, what each seat knows and saw, ends and outcomes.
* Any one switch set differently in the twin is noticed, so the comparison covers each of them.
* The same holds with the JIT off.

Whole games are compared in test_fuzz_games.py.
"""

from __future__ import annotations

import random

import pytest

from tests.engine.cuarenta_pairs import (
    SPEC,
    compare,
    random_options,
    random_position,
)
from tests.engine.twins import Mismatch
from tests.interpreted import run_interpreted

# Options under which a switch has an effect where the default game gives it none.
CONTEXT: dict[str, dict[str, str]] = {
    "limpia_cap_test": {"caida_plus_limpia": "4"},
    "caida_plus_limpia": {"caida_by": "any"},
    "run_after_sum": {"sum_cards": "2+"},
    "ronda_cap": {"ronda": "2"},
    "ronda_reveals_rank": {"ronda": "4"},
    "both_40": {"end_mid_deal": "no"},
}
SAME_FOR_ALL = {"players", "first_to_play"}
"""The number of seats is the shape of the game; the two words for who plays first mean the same."""


def base_options(name: str) -> dict[str, str]:
    return SPEC.describe(SPEC.make("", CONTEXT.get(name)))


def compare_many(options: dict[str, str], naive_options: dict[str, str]) -> None:
    rng = random.Random(4)
    for _ in range(3000):
        compare(random_position(options, rng, naive_options), rng, max_steps=12)


FLIPS = [
    (name, value)
    for name, option in SPEC.options.items()
    if name not in SAME_FOR_ALL
    for value in (option.values or ["20"])
    if value != base_options(name)[name]
]


def test_random_positions_agree() -> None:
    rng = random.Random(1)
    for _ in range(250):
        compare(random_position(random_options(rng), rng), rng, max_steps=14)


def test_positions_of_the_presets_agree() -> None:
    rng = random.Random(2)
    for preset in SPEC.presets:
        options = SPEC.describe(SPEC.make(preset))
        for _ in range(40):
            compare(random_position(options, rng), rng, max_steps=14)


@pytest.mark.parametrize(("name", "value"), FLIPS)
def test_a_switch_set_differently_in_the_twin_is_noticed(name: str, value: str) -> None:
    options = base_options(name)
    with pytest.raises(Mismatch):
        compare_many(options, options | {name: value})


def test_jit_off_agrees_too() -> None:
    run_interpreted("tests.engine.cuarenta_pairs", "25")
