"""What all tests share: property tests without a clock, and no options from the outside."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Kernels compile on first use: a deadline for one example would measure that. The same examples in
# every run: a failure can be repeated.
settings.register_profile(
    "cardleague", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("cardleague")

KEPT_VARIABLES = ("CARDLEAGUE_CACHE_DIR",)


@pytest.fixture(autouse=True)
def _no_options_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own CARDLEAGUE_* variables must not change what is tested."""
    for name in list(os.environ):
        if name.startswith("CARDLEAGUE_") and name not in KEPT_VARIABLES:
            monkeypatch.delenv(name)
