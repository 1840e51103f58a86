"""Workers' snapshots with other numbers in them, restored and played on, interpreted.

``NUMBA_DISABLE_JIT=1 python -m tests.actors.edited_snapshots GAME SEED EDITS``: an edited snapshot
is refused by a ValueError that says something, or the worker goes on; an index out of bounds, which
compiled code would not notice, is an error here. Prints how many were refused, by name.
"""

from __future__ import annotations

import collections
import random
import re
import sys
from typing import Any

import msgspec
import numpy as np

from actors.arrays import pack_arrays, unpack_arrays
from actors.selfplay import SelfPlayWorker
from engine.jit import jit_enabled
from engine.search.ismcts import search_options
from tests.actors.test_selfplay import ListWriter, make_worker, step

SIZES: dict[str, dict[str, Any]] = {
    "kuhn": {"games": 4, "full_simulations": 8, "fast_simulations": 3},
    "leduc": {"games": 4, "full_simulations": 8, "fast_simulations": 3},
    "cuarenta": {"games": 2, "full_simulations": 5, "fast_simulations": 2},
}
VALUES = (0, 1, -1, 2, 3, 7, 40, 127, 255, 2**15, 2**31 - 1, -(2**31), 2**40)


class Editor:
    """Snapshots of one game and their edits."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.random = random.Random(seed)
        worker = self.worker()
        self.snapshots: list[bytes] = []
        for _ in range(6):
            step(worker, self.random.randint(3, 30))
            self.snapshots.append(worker.snapshot())

    def worker(self) -> SelfPlayWorker:
        from actors.config import SearchConfig

        # Others choose by their policy: descents are in flight when the snapshot is taken.
        search = SearchConfig(opponents="policy")
        assert search_options(**msgspec.structs.asdict(search))
        return make_worker(self.name, ListWriter(), search=search, **SIZES[self.name])

    def edited(self) -> tuple[bytes, str]:
        """Return a snapshot with one or two arrays changed, and their names."""
        arrays = unpack_arrays(self.random.choice(self.snapshots))
        names = [n for n in arrays if arrays[n].size and not n.startswith("search.equity")]
        chosen = self.random.sample(names, self.random.choice((1, 1, 2)))
        for name in chosen:
            if name == "meta":
                arrays[name] = self._edit_meta(arrays[name])
            else:
                self._edit(arrays[name])
        return pack_arrays(arrays), ", ".join(chosen)

    def _edit(self, array: Any) -> None:
        flat = array.reshape(-1)
        # Rows in front are those in use.
        for _ in range(self.random.choice((1, 1, 3))):
            row = min(int(self.random.expovariate(0.2)), len(flat) - 1)
            if self.random.random() < 0.3:
                row = self.random.randrange(len(flat))
            if flat.dtype.names:
                field = flat[self.random.choice(flat.dtype.names)]
                entries = np.array(field[row]).reshape(-1)
                self._put(entries)
                field[row] = entries.reshape(field[row].shape)
            else:
                self._put(flat[row : row + 1])

    def _put(self, entries: Any) -> None:
        place = self.random.randrange(len(entries))
        if entries.dtype.kind not in "iu":
            entries[place] = self.random.choice((0.0, 1.0, -1.0))
            return
        old, info = int(entries[place]), np.iinfo(entries.dtype)
        value = self.random.choice((*VALUES, old + 1, old - 1, old ^ 1 << self.random.randrange(8)))
        entries[place] = (value - info.min) % (info.max - info.min + 1) + info.min

    def _edit_meta(self, data: Any) -> Any:
        meta = msgspec.msgpack.decode(data.tobytes())
        key = self.random.choice(list(meta))
        value = meta[key]
        if isinstance(value, list) and value:
            value[self.random.randrange(len(value))] = self.random.choice((*VALUES, None))
        else:
            meta[key] = self.random.choice(VALUES)
        return np.frombuffer(msgspec.msgpack.encode(meta), np.uint8)

    def run(self, count: int) -> str:
        """Try ``count`` edits; return what came of them, in words."""
        refused: collections.Counter[str] = collections.Counter()
        for _ in range(count):
            snapshot, names = self.edited()
            worker = self.worker()
            try:
                worker.restore(snapshot)
            except ValueError as error:
                words = re.sub(r"[^a-zA-Z ]+", " ", str(error)).strip()
                refused[words[:60]] += 1
                continue
            try:
                step(worker, 12)
            except Exception as error:
                raise AssertionError(f"edited were {names}") from error
        assert "" not in refused
        said = "\n".join(f"  {times} {words}" for words, times in refused.most_common())
        return f"{refused.total()} of {count} refused\n{said}"


def main() -> int:
    assert not jit_enabled()
    name, seed, edits = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with np.errstate(over="ignore"):
        print(f"{name}: {Editor(name, seed).run(edits)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
