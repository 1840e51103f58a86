"""Arrays <-> bytes for snapshots, without pickle.

Room: actors. numpy only.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np


def pack_arrays(arrays: Mapping[str, Any]) -> bytes:
    """Return ``arrays`` (any dtypes but object) as bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: np.asarray(a) for name, a in arrays.items()})
    return buffer.getvalue()


def unpack_arrays(data: bytes) -> dict[str, Any]:
    """Return what ``pack_arrays`` packed. Raises ValueError for other or damaged bytes."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, KeyError, EOFError) as error:
        raise ValueError(f"not a snapshot of arrays: {error}") from error


def copy_into(target: Any, source: Any) -> None:
    """Copy ``source`` into the array ``target`` of the same shape, field by field for records.

    Raises ValueError when shapes or dtypes differ.
    """
    plain = target.view(np.ndarray) if isinstance(target, np.recarray) else target
    same_type = np.dtype(source.dtype.descr) == np.dtype(plain.dtype.descr)
    if source.shape != plain.shape or not same_type:
        raise ValueError(
            f"array of {source.dtype} {source.shape}, expected {plain.dtype} {plain.shape}"
        )
    plain[...] = source
