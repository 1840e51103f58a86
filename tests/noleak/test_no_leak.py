"""Nothing that a seat cannot know reaches it: every registered game and preset, every check.

What is compared, and how it is redrawn, is told in ``tests.noleak.checks``. Features are compared
for every encoder there; searches and self-play run on the first one, and here on the others too.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.game import game_names, get_spec
from tests.engine.hidden_worlds import HIDDEN
from tests.noleak.checks import CHECKS
from tests.noleak.subject import Subject
from tests.playthroughs.generate import all_presets


@pytest.mark.parametrize("check", list(CHECKS))
@pytest.mark.parametrize(("name", "preset"), all_presets())
def test_nothing_leaks(name: str, preset: str, check: str) -> None:
    spec = get_spec(name)
    CHECKS[check](Subject.of(spec, spec.make(preset)))


OTHER_ENCODERS = [
    (name, encoder.name) for name in game_names() for encoder in get_spec(name).encoders[1:]
]


@pytest.mark.parametrize("check", ["searches", "examples"])
@pytest.mark.parametrize(("name", "encoder"), OTHER_ENCODERS)
def test_nothing_leaks_with_another_encoder(name: str, encoder: str, check: str) -> None:
    spec = get_spec(name)
    CHECKS[check](replace(Subject.of(spec, spec.make()), encoder_name=encoder))


def test_every_game_has_an_enumerator_of_its_hidden_cards() -> None:
    assert set(HIDDEN) == set(game_names())
