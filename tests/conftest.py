"""What all tests share: property tests without a clock, and no options from the outside."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from numba.core import config as numba_config

from engine import jit

# Kernels compile on first use: a deadline for one example would measure that. The same examples in
# every run: a failure can be repeated.
settings.register_profile(
    "cardleague", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("cardleague")


def _keep_kernels_apart() -> None:
    """Give this process a kernel cache of its own, a copy of the users' one.

    numba's index of a kernel pickles the types it was compiled for. Games that only tests define
    would enter it, and a program that cannot import ``tests`` could not read it any more. Must run
    before the first kernel is declared; processes that tests start use the users' cache.
    """
    users = jit.cache_root() / jit.cache_key()
    own = jit.cache_root() / "tests" / jit.cache_key()
    if users.is_dir() and not own.exists():
        copy = own.with_name(f"{own.name}.{os.getpid()}")
        shutil.copytree(users, copy)
        with contextlib.suppress(OSError):  # another worker of the same run was first
            Path(copy).rename(own)
        shutil.rmtree(copy, ignore_errors=True)
    numba_config.CACHE_DIR = str(own)


_keep_kernels_apart()

KEPT_VARIABLES = ("CARDLEAGUE_CACHE_DIR",)


@pytest.fixture(autouse=True)
def _no_options_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own CARDLEAGUE_* variables must not change what is tested."""
    for name in list(os.environ):
        if name.startswith("CARDLEAGUE_") and name not in KEPT_VARIABLES:
            monkeypatch.delenv(name)
