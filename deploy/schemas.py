"""Schema numbers of everything that a run stores, in one place.

Room: deploy. Standard library only: the supervisor and ``status`` load this module, so the numbers
of rooms that load torch or numba are written again here; a test compares them.

The manifest's number is the run's: it rises whenever any of the others does. A schema rises when
the files of the program before could not be read, or would be misread: a field that is renamed,
removed or means something else. A field that is added with a default raises nothing. Each rise
comes with a step in ``deploy.migration``.
"""

from __future__ import annotations

from typing import Final

SCHEMAS: Final[dict[str, int]] = {
    "manifest": 1,
    "config": 1,
    "trajectory": 1,
    "learner": 1,
    "gate": 1,
    "worker": 1,
    "model": 1,
}
"""``learner``, ``gate`` and ``worker`` are snapshots, ``model`` is the metadata of a model."""
