"""The compiled Forty-fives against its naive twin.

* Constructed positions with options of all kinds agree in everything: legal actions, places of all
  cards, what each seat knows and saw, scores, ends and outcomes.
* Any one switch set differently in the twin is noticed, so the comparison covers each of them.
* The same holds with the JIT off.

Whole games are compared in test_fuzz_games.py.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.engine.forty_fives_pairs import (
    SPEC,
    compare,
    random_options,
    random_position,
)
from tests.engine.twins import Mismatch
from tests.interpreted import run_interpreted

# Options under which a switch has an effect where the default game gives it little or none.
CONTEXT: dict[str, dict[str, str]] = {"min_keep": {"may_throw_trump": "no"}}
# Where to look for a switch that has an effect in few positions.
PLACES: dict[str, dict[str, Any]] = {"all_pass": {"start": "auction"}}
SAME_FOR_ALL = {"no_trump_in_play"}
"""It has one value."""


def base_options(name: str) -> dict[str, str]:
    return SPEC.describe(SPEC.make("", CONTEXT.get(name)))


def compare_many(
    options: dict[str, str], naive_options: dict[str, str], place: dict[str, Any]
) -> None:
    rng = random.Random(4)
    for _ in range(1500):
        pair = random_position(options, rng, naive_options, **place)
        compare(pair, rng, max_steps=5 if place.get("start") == "auction" else 60)


FLIPS = [
    (name, value)
    for name, option in SPEC.options.items()
    if name not in SAME_FOR_ALL
    for value in (option.values or [])
    if value != base_options(name)[name]
]


def test_random_positions_agree() -> None:
    rng = random.Random(1)
    for _ in range(60):
        compare(random_position(random_options(rng), rng), rng, max_steps=60)


def test_positions_of_the_presets_agree() -> None:
    rng = random.Random(2)
    for preset in SPEC.presets:
        options = SPEC.describe(SPEC.make(preset))
        for _ in range(15):
            compare(random_position(options, rng), rng, max_steps=60)


@pytest.mark.parametrize(("name", "value"), FLIPS)
def test_a_switch_set_differently_in_the_twin_is_noticed(name: str, value: str) -> None:
    with pytest.raises(Mismatch):
        compare_many(base_options(name), base_options(name) | {name: value}, PLACES.get(name, {}))


def test_jit_off_agrees_too() -> None:
    run_interpreted("tests.engine.forty_fives_pairs", "9")
