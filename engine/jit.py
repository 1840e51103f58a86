"""The one importer of ``njit``: the ``@kernel`` decorator, and where machine code is cached.

Room: engine. May import: numba, engine.plugins and the standard library.

numba's disk cache notices an edit of the file that holds a kernel, not of the files that the
kernel calls into. A search compiled against a game's old rules would then be served for ever. The
cache therefore lives in a folder named by a hash of everything that machine code depends on: all
engine sources and those of other packages' games, the versions of numba and llvmlite, the
processor, and every ``NUMBA_*`` variable.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
from numba import njit
from numba.core import config as numba_config

from engine import plugins

ENGINE_ROOT = Path(__file__).resolve().parent

# Chosen by measurement: no fastmath (bitwise reproducibility), no reference to the Python
# interpreter, numpy error model (a division by zero does not branch to an exception).
KERNEL_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

INLINED_OPTIONS: dict[str, Any] = {
    **KERNEL_OPTIONS,
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


@functools.cache
def engine_hash() -> str:
    """Hex digest of the sources of engine and games: equal on nodes that play by the same code."""
    digest = hashlib.sha256()
    for path in sorted(ENGINE_ROOT.rglob("*.py")):
        digest.update(str(path.relative_to(ENGINE_ROOT)).encode())
        digest.update(path.read_bytes())
    for name, path in plugins.sources():
        digest.update(name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_key() -> str:
    """Hex digest of everything that compiled machine code depends on."""
    flags = sorted(
        (name, value)
        for name, value in os.environ.items()
        if name.startswith("NUMBA_") and name != "NUMBA_CACHE_DIR"
    )
    processor = numba_config.CPU_NAME or _host_cpu_name()
    parts = (
        engine_hash(),
        numba.__version__,
        llvmlite.__version__,
        platform.python_version(),
        platform.machine(),
        processor,
        repr(flags),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _host_cpu_name() -> str:
    from llvmlite import binding

    return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"


def cache_root() -> Path:
    """Folder under which all kernel caches lie; ``CARDLEAGUE_CACHE_DIR`` overrides it."""
    explicit = os.environ.get("CARDLEAGUE_CACHE_DIR")
    if explicit:
        return Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "cardleague" / "kernels"


def jit_enabled() -> bool:
    """False when ``NUMBA_DISABLE_JIT=1``: kernels are then plain Python functions."""
    return not numba_config.DISABLE_JIT


numba_config.CACHE_DIR = str(cache_root() / cache_key())


F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile ``function`` on first call, cache the machine code on disk, release the GIL."""
    compiled: F = njit(cache=True, **KERNEL_OPTIONS)(function)
    return compiled


def inlined(function: F) -> F:
    """Compile ``function`` and inline it into every compiled caller; only kernels may call it.

    For helpers that are handed large tuples of arrays: a call would copy and count every one, and
    the wrappers for callers in Python would cost more to compile than the function.
    """
    compiled: F = njit(cache=True, **INLINED_OPTIONS)(function)
    return compiled
