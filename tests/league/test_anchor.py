"""The anchor's hash: the same player and rules give the same one, others another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import league.anchor
from engine.game import get_spec
from engine.players import RandomPlayer, RulePlayer
from league.anchor import anchor_hash
from tests.league.tiny_models import GAME, SPEC


def test_same_player_and_rules_have_the_same_hash() -> None:
    assert anchor_hash(SPEC, GAME) == anchor_hash(SPEC, GAME)


def test_another_option_has_another_hash() -> None:
    spec = get_spec("leduc")
    name, option = next(iter(spec.options.items()))
    here = spec.make()
    values = option.values or {str(n): n for n in range(option.low, option.high + 1)}
    other = next(word for word in values if word != spec.describe(here)[name])
    assert anchor_hash(spec, here) != anchor_hash(spec, spec.make("", {name: other}))


@pytest.mark.parametrize("kind", [RandomPlayer])
def test_another_rule_player_has_another_hash(
    kind: Callable[[Any, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = anchor_hash(SPEC, GAME)
    monkeypatch.setattr(league.anchor, "RulePlayer", kind)
    assert anchor_hash(SPEC, GAME) != before
    monkeypatch.setattr(league.anchor, "RulePlayer", RulePlayer)
    assert anchor_hash(SPEC, GAME) == before
