"""Programs of the tests that run with the JIT off, in a process of their own.

Python checks every index then, and numpy tells of what compiled code does without a word.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.deploy.waiting import ROOT

# splitmix64 wraps around; as numpy scalars, with the JIT off, its products warn of that.
_WARNINGS = ("-W", "error", "-W", "ignore:overflow encountered:RuntimeWarning")


def run_interpreted(module: str, *arguments: str, timeout_s: float = 280.0) -> str:
    """Run ``python -m module arguments`` with the JIT off and return what it prints.

    Any other warning is an error. Raises AssertionError with the end of what it says when it fails.
    """
    done = subprocess.run(
        [sys.executable, *_WARNINGS, "-m", module, *arguments],
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
