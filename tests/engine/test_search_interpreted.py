"""The search without compiled code finds what the compiled one finds, to the last bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.jit import jit_enabled
from engine.search.ismcts import Search, search_options
from engine.search.rollout import HashingEvaluator, RolloutEvaluator
from tests.engine.searching import (
    begin,
    cuarenta_positions,
    kuhn_positions,
    read,
    relay_positions,
)

ROOT = Path(__file__).resolve().parents[2]
MODES = ({}, {"opponents": "policy", "leaf_value": "root_seat"})


def findings() -> list[Any]:
    """Search in several ways, with hashes and playouts, with noise, and list what is found."""
    found: list[Any] = []
    for positions, budget in (
        (kuhn_positions(), 24),
        (relay_positions(6), 24),
        (cuarenta_positions(2), 8),
    ):
        for words in MODES:
            for evaluator in (
                HashingEvaluator(),
                RolloutEvaluator(positions.spec, positions.game),
            ):
                for descents in (1, 3):
                    search = Search(
                        positions.spec,
                        positions.game,
                        positions.spec.encoders[0],
                        search_options(**words),  # type: ignore[arg-type]
                        num_trees=len(positions),
                        max_simulations=budget,
                        descents=descents,
                        check_views=True,
                    )
                    begin(search, positions, budget, noise=0.25)
                    search.run(evaluator)
                    result = read(search, np.arange(len(positions)))
                    found.append([result.visits.tolist(), result.values.tolist()])
    return found


@pytest.mark.skipif(not jit_enabled(), reason="compares with compiled code")
def test_interpreted_search_agrees_with_the_compiled_one_bit_for_bit() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}
    program = (
        "import json, warnings\n"
        # The one warning of this run: splitmix64 overflows uint64 scalars on purpose.
        "warnings.filterwarnings('ignore', 'overflow encountered', RuntimeWarning)\n"
        "from tests.engine.test_search_interpreted import findings\n"
        "print(json.dumps(findings()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(json.dumps(findings()))
