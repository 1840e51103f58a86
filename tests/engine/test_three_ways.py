"""Compiled code and the JIT off agree bit for bit in all that the engine computes.

With the naive twins of the games, which the compiled rules are compared with elsewhere, that makes
three ways to one result. Each digest is shown to depend on what it digests.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.jit import jit_enabled
from tests.engine.three_ways import PARTS, digest_of
from tests.interpreted import run_interpreted

COMPARED = [part for part in PARTS if part != "kuhn_search"]  # it is a part of "search"


@pytest.fixture(scope="module")
def without_jit() -> Any:
    return json.loads(run_interpreted("tests.engine.three_ways", *COMPARED))


@pytest.mark.parametrize("part", COMPARED)
def test_compiled_and_jit_off_agree(part: str, without_jit: Any) -> None:
    assert jit_enabled()
    assert without_jit["compiled"] == 0
    assert digest_of(part) == without_jit[part]


@pytest.mark.parametrize("part", COMPARED)
def test_a_digest_shows_a_difference(part: str) -> None:
    assert digest_of(part, seed=1) == digest_of(part, seed=1)
    assert digest_of(part, seed=1) != digest_of(part, seed=2)
