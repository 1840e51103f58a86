"""Random numbers: splitmix64, a counter generator that splits by hashing.

Room: engine. A generator is a ``uint64[1]`` array that is advanced in place, so that kernels and
Python share it, rows of a batch own one each, and a snapshot is a copy of the array. A stream is
split by ``mix``: ``mix(seed, hand)`` is the seed of an independent stream.

Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (OOPSLA 2014), figure 17.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.jit import kernel

GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11, _S32 = (np.uint64(n) for n in (30, 27, 31, 11, 32))
_LOW_32 = np.uint64(0xFFFFFFFF)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53

Rng = NDArray[np.uint64]


def make_rng(*parts: int) -> Rng:
    """Return a new generator, a ``uint64[1]`` array, seeded by the hash of ``parts``."""
    seed = np.uint64(0)
    for part in parts:
        # A compiled kernel returns Python ints, and takes those above 2**63 only as np.uint64.
        seed = np.uint64(mix(seed, np.uint64(part & 0xFFFFFFFFFFFFFFFF)))
    return np.array([seed], dtype=np.uint64)


@kernel
def finalize(z: Any) -> Any:
    """Hash one uint64 to another (the output function of splitmix64)."""
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@kernel
def mix(seed: Any, index: Any) -> Any:
    """Return the uint64 seed of sub-stream ``index`` of ``seed``."""
    return finalize(finalize(np.uint64(seed) + GOLDEN_GAMMA) ^ (np.uint64(index) * GOLDEN_GAMMA))


@kernel
def next_u64(rng: Any) -> Any:
    """Advance ``rng`` (``uint64[1]``) in place and return 64 random bits."""
    rng[0] += GOLDEN_GAMMA
    return finalize(rng[0])


@kernel
def below(rng: Any, bound: Any) -> Any:
    """Advance ``rng`` in place and return an int64 in ``[0, bound)``, ``bound`` < 2**32.

    Multiply-shift on 32 bits; its bias is below ``bound / 2**32`` and no test here can see it.
    """
    return np.int64(((next_u64(rng) >> _S32) * np.uint64(bound)) >> _S32)


@kernel
def uniform(rng: Any) -> Any:
    """Advance ``rng`` in place and return a float64 in ``[0, 1)`` with 53 random bits."""
    return np.float64(next_u64(rng) >> _S11) * _TO_UNIT


@kernel
def shuffle(rng: Any, items: Any, count: Any) -> None:
    """Shuffle ``items[:count]`` in place, advancing ``rng`` in place (Fisher-Yates)."""
    for i in range(count - 1, 0, -1):
        j = below(rng, i + 1)
        items[i], items[j] = items[j], items[i]
