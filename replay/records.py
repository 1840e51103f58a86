"""Columns of equal length, kept row by row: what belongs to one example lies in one place.

Room: replay. May import: numpy.

A sampled row is somewhere in hundreds of megabytes. With an array for each column every column of
it waits for memory of its own; here a row is a few neighbouring cache lines, copied as whole words.
(Sampling 1,024 of 600,000 positions took four times as long from eight arrays.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LINE_BYTES = 64
_WORD = np.dtype(np.int64)


class Records:
    """A ring of ``num_rows`` rows, allocated at once.

    Args:
        num_rows: rows.
        columns: dtype of each column; ``np.dtype((np.float32, (2,)))`` is a column of pairs.
    """

    def __init__(self, num_rows: int, columns: dict[str, np.dtype[Any]]) -> None:
        self._dtypes = columns
        # Records of other fields are moved as opaque bytes: numpy copies those much faster.
        stored = {name: _opaque(dtype) for name, dtype in columns.items()}
        packed = np.dtype(list(stored.items()), align=True)
        words = -(-packed.itemsize // _WORD.itemsize)
        fields: Any = packed.fields
        self._row = np.dtype(
            {
                "names": list(stored),
                "formats": list(stored.values()),
                "offsets": [fields[name][1] for name in stored],
                "itemsize": words * _WORD.itemsize,
            }
        )
        self._words = _aligned_zeros(num_rows, words)
        self._rows = self._words.view(self._row).reshape(num_rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return int(self._words.nbytes)

    def put(self, first: int, columns: dict[str, NDArray[Any]]) -> None:
        """Write N rows from row ``first`` on, going on at the beginning after the last one.

        ``columns`` has N values of every column, N at most the number of rows.
        """
        values = {name: self._as_stored(name, column) for name, column in columns.items()}
        count = len(next(iter(values.values())))
        until_end = min(count, len(self._rows) - first)
        for name, column in values.items():
            self._rows[name][first : first + until_end] = column[:until_end]
            self._rows[name][: count - until_end] = column[until_end:]

    def clear_from(self, first: int) -> None:
        """Write zeros to the rows from ``first`` to the last."""
        self._words[first:] = 0

    def take(self, indices: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return copies of the rows ``indices`` [B]: every column [B], contiguous."""
        rows = self._words.take(indices, axis=0).view(self._row).reshape(len(indices))
        return {
            name: rows[name].copy().view(dtype) if dtype.names else rows[name].copy()
            for name, dtype in self._dtypes.items()
        }

    def _as_stored(self, name: str, column: NDArray[Any]) -> NDArray[Any]:
        if self._dtypes[name].names is None:
            return column
        return np.ascontiguousarray(column, self._dtypes[name]).view(self._row[name])


def _opaque(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.names is None else np.dtype((np.void, dtype.itemsize))


def _aligned_zeros(num_rows: int, num_words: int) -> NDArray[np.int64]:
    """Return int64[num_rows, num_words] that begins with a cache line."""
    extra = _LINE_BYTES // _WORD.itemsize
    whole = np.zeros(num_rows * num_words + extra, _WORD)
    skip = -whole.ctypes.data % _LINE_BYTES // _WORD.itemsize
    return whole[skip : skip + num_rows * num_words].reshape(num_rows, num_words)
