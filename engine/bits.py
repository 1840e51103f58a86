"""Sets of cards as uint64 masks: bit ``i`` is the card with index ``i``.

Room: engine. Every constant that meets a mask is a named uint64: ``mask & 1`` would become int64
in numba, and float64 in numpy with the JIT off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.jit import jit_enabled, kernel

U0 = np.uint64(0)
U1 = np.uint64(1)


@intrinsic
def _ctpop(typing_context: Any, mask: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def _cttz(typing_context: Any, mask: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], cgutils.false_bit)

    return types.uint64(types.uint64), codegen


if jit_enabled():

    @kernel
    def popcount(mask: Any) -> Any:
        """Return the number of cards in ``mask`` as int64."""
        return np.int64(_ctpop(np.uint64(mask)))

    @kernel
    def lowest(mask: Any) -> Any:
        """Return the index of the lowest card of ``mask`` as int64; 64 for the empty set."""
        return np.int64(_cttz(np.uint64(mask)))

else:

    def popcount(mask: Any) -> Any:
        """Return the number of cards in ``mask``."""
        return int(mask).bit_count()

    def lowest(mask: Any) -> Any:
        """Return the index of the lowest card of ``mask``; 64 for the empty set."""
        value = int(mask)
        return (value & -value).bit_length() - 1 if value else 64


@kernel
def bit(index: Any) -> Any:
    """Return the set that holds the one card ``index``."""
    return U1 << np.uint64(index)


@kernel
def contains(mask: Any, index: Any) -> Any:
    """Return whether the card ``index`` is in ``mask``."""
    return (mask >> np.uint64(index)) & U1 != U0


@kernel
def without_lowest(mask: Any) -> Any:
    """Return ``mask`` without its lowest card."""
    return mask & (mask - U1)


@kernel
def fill_cards(mask: Any, out: Any) -> Any:
    """Write the card indices of ``mask`` to ``out`` in ascending order; return their number."""
    count = 0
    while mask != U0:
        out[count] = lowest(mask)
        mask = without_lowest(mask)
        count += 1
    return count
