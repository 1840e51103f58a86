"""Records: rows come back as they were put, wherever the ring's end lies."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replay.records import Records

PAIR = np.dtype([("small", np.uint8), ("large", np.float64)])  # 9 bytes: no whole word
COLUMNS: dict[str, np.dtype[Any]] = {
    "flag": np.dtype(np.uint8),
    "pair": PAIR,
    "scores": np.dtype((np.float32, (3,))),
    "number": np.dtype(np.int64),
}


def rows(count: int, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    pairs = np.zeros(count, PAIR)
    pairs["small"], pairs["large"] = rng.integers(0, 256, count), rng.random(count)
    return {
        "flag": rng.integers(0, 256, count, np.uint8),
        "pair": pairs,
        "scores": rng.random((count, 3)),  # float64: rounded to what the column holds
        "number": rng.integers(-(2**60), 2**60, count),
    }


@given(st.lists(st.integers(0, 7), max_size=12), st.integers(0, 6))
def test_rows_are_what_was_put_last_at_their_place(sizes: list[int], first: int) -> None:
    records = Records(7, COLUMNS)
    twin: list[tuple[bytes, ...]] = [
        tuple(bytes(dtype.itemsize) for dtype in COLUMNS.values()) for _ in range(7)
    ]
    for seed, count in enumerate(sizes):
        columns = rows(count, seed)
        records.put(first, columns)
        for i in range(count):
            twin[(first + i) % 7] = tuple(
                columns[name][i].astype(dtype.base).tobytes() for name, dtype in COLUMNS.items()
            )
        first = (first + count) % 7
    indices = np.array([3, 0, 6, 3, 1, 2, 4, 5])
    taken = records.take(indices)
    for name, dtype in COLUMNS.items():
        assert taken[name].dtype == dtype.base
        assert taken[name].flags.c_contiguous
        assert taken[name].flags.owndata or taken[name].base.flags.owndata
    for place, index in enumerate(indices):
        assert tuple(taken[name][place].tobytes() for name in COLUMNS) == twin[index]


def test_taken_rows_are_copies() -> None:
    records = Records(4, COLUMNS)
    before = records.take(np.arange(4))
    before["number"][:] = 1
    records.put(0, rows(4, 5))
    assert (before["number"] == 1).all()
    assert not (records.take(np.arange(4))["number"] == 1).any()


def test_rows_have_no_more_than_a_words_padding_and_begin_with_a_cache_line() -> None:
    records = Records(1000, {"view": np.dtype((np.void, 152)), "mark": np.dtype(np.int64)})
    assert records.nbytes == 160_000
    assert records._words.ctypes.data % 64 == 0
