"""Each planted leak makes exactly the checks fail that look where it is; without one all pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.interpreted import run_interpreted
from tests.noleak.planted import PLANTED


@pytest.fixture(scope="module")
def outcome() -> Any:
    return json.loads(run_interpreted("tests.noleak.planted"))


@pytest.mark.parametrize("leak", list(PLANTED))
def test_checks_fail_exactly_where_a_leak_is_planted(leak: str, outcome: Any) -> None:
    _, _, expected = PLANTED[leak]
    assert set(outcome[leak]) == expected
