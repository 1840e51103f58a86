"""Which model version lies in which slot of a worker's evaluator and search.

Room: actors. May import: engine, league.
"""

from __future__ import annotations

import numpy as np

from engine.search.ismcts import Search
from league.evaluator import OnnxEvaluator
from league.models import ModelStore

NEWEST_SLOTS = 2
"""The first slots, between which the newest version alternates; the others are the pool's."""


class ModelSlots:
    """Which model version lies in which evaluator slot; slots in use are never overwritten."""

    def __init__(self, evaluator: OnnxEvaluator, search: Search, models: ModelStore, count: int):
        self._evaluator = evaluator
        self._search = search
        self._models = models
        self.versions: list[int] = [-1] * count

    def load(self, slot: int, version: int) -> None:
        """Put ``version`` into ``slot``."""
        metadata = self._evaluator.set_model(slot, self._models.get(version))
        equity = np.asarray(metadata.equity, np.float64) if metadata.target == "equity" else None
        self._search.set_equity(slot, equity)
        self.versions[slot] = version

    def find(self, version: int, in_use: set[int], wanted: set[int]) -> int:
        """Return the slot of a pool ``version``, loading it if a slot is free; -1 if none is."""
        pool = range(NEWEST_SLOTS, len(self.versions))
        for slot in pool:
            if self.versions[slot] == version:
                return slot
        for slot in pool:
            if slot not in in_use and self.versions[slot] not in wanted:
                self.load(slot, version)
                return slot
        return -1
