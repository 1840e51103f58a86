"""Arrays <-> bytes for snapshots, without pickle.

Room: actors. numpy and the standard library only.

The form is numpy's ``npz``: a zip of ``npy`` files. A zip can hold far more than its own size, an
``npy`` header can ask for any amount of memory, and Python's reader of those headers evaluates
literals; so what is read here has to be stored, not compressed, and every array has to have exactly
the bytes that its header says.
"""

from __future__ import annotations

import io
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

MAX_ARRAYS = 1000
_MAX_HEADER_BYTES = 1 << 15
_DAMAGED = (
    OSError,
    KeyError,
    EOFError,
    ValueError,
    TypeError,
    OverflowError,
    MemoryError,
    RecursionError,
    SyntaxError,
    NotImplementedError,
    RuntimeError,
    tokenize.TokenError,
    Warning,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)
"""What zipfile and numpy raise for bytes that nobody packed."""


def pack_arrays(arrays: Mapping[str, Any]) -> bytes:
    """Return ``arrays`` (any dtypes but object) as bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: np.asarray(a) for name, a in arrays.items()})
    return buffer.getvalue()


def unpack_arrays(data: bytes) -> dict[str, Any]:
    """Return what ``pack_arrays`` packed, as arrays of their own memory.

    Takes little more memory than ``data``. Raises ValueError for other or damaged bytes.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            _check_members(members, len(data))
            return {
                member.filename.removesuffix(".npy"): _array(archive.read(member))
                for member in members
            }
    except _DAMAGED as error:
        raise ValueError(f"not a snapshot of arrays: {error}") from None


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    if len(members) > MAX_ARRAYS or len({member.filename for member in members}) != len(members):
        raise ValueError(f"{len(members)} members; allowed are {MAX_ARRAYS}, each once")
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("compressed members: allowed are stored ones")
    if sum(member.file_size for member in members) > size:
        raise ValueError("members are larger than the whole")


def _array(member: bytes) -> Any:
    """Return the array of one ``npy`` file, whose bytes must be exactly those of its header."""
    file = io.BytesIO(member)
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"npy version {version}")
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of headers that only old versions of Python wrote
        shape, is_fortran, dtype = read(file, max_header_size=_MAX_HEADER_BYTES)
    offset = file.tell()
    if dtype.hasobject or dtype.itemsize == 0 or (is_fortran and len(shape) > 1):
        raise ValueError(f"an array of {str(dtype)[:80]}")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(member) - offset:
        raise ValueError(f"an array of shape {shape} in {len(member) - offset} bytes")
    return np.frombuffer(member, dtype, offset=offset).reshape(shape).copy()


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
