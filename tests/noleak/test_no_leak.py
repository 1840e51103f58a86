"""Nothing that a seat cannot know reaches it: every registered game and preset, every check.

What is compared, and how it is redrawn, is told in ``tests.noleak.checks``.
"""

from __future__ import annotations

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


def test_every_game_has_an_enumerator_of_its_hidden_cards() -> None:
    assert set(HIDDEN) == set(game_names())
