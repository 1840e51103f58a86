"""Each planted leak makes exactly the checks fail that look where it is; without one all pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.noleak.planted import PLANTED

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def outcome() -> Any:
    # splitmix64 wraps around; as numpy scalars, with the JIT off, its products warn of that.
    warnings = ["-W", "error", "-W", "ignore:overflow encountered:RuntimeWarning"]
    result = subprocess.run(
        [sys.executable, *warnings, "-m", "tests.noleak.planted"],
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout)


@pytest.mark.parametrize("leak", list(PLANTED))
def test_checks_fail_exactly_where_a_leak_is_planted(leak: str, outcome: Any) -> None:
    _, _, expected = PLANTED[leak]
    assert set(outcome[leak]) == expected
