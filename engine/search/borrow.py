"""Borrowed arrays: kernels that call kernels without counting references.

Room: engine. May import: numba and ``engine.jit``.

numba counts references of every array of a tuple at every call and return, with atomic
instructions. In a search that costs more than the search itself. An outermost kernel therefore
borrows the arrays that its caller holds: the copies know of no owner, so that nothing is counted.
A borrowed array must not outlive the call; nothing here returns or stores one.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.jit import jit_enabled


@intrinsic
def _borrow(typing_context: Any, arrays: Any) -> Any:
    """Return the tuple ``arrays`` with every array in it stripped of its owner."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        result = args[0]
        for index, element in enumerate(kind):
            if isinstance(element, types.Array):
                value = builder.extract_value(args[0], index)
                array = context.make_array(element)(context, builder, value)
                array.meminfo = cgutils.get_null_value(array.meminfo.type)
                array.parent = cgutils.get_null_value(array.parent.type)
                result = builder.insert_value(result, array._getvalue(), index)
        return result

    return arrays(arrays), codegen


if jit_enabled():
    borrow = _borrow
else:

    def borrow(arrays: Any) -> Any:
        """Return ``arrays``: without compiled code there is nothing to count."""
        return arrays
