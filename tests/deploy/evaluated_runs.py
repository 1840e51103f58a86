"""Runs with evaluations, written as their owner would, for the tests of ``compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from deploy.manifest import ConfigChange, new_manifest
from deploy.presets import load
from deploy.rundir import RunDirectory
from league.messages import EVALUATIONS, EvaluationRecord

FIRST_EXAMPLES = 1_000


def record(number: int, **changes: Any) -> EvaluationRecord:
    """The ``number``-th evaluation (from 1) of a run that gets stronger."""
    rate = min(0.95, 0.4 + 0.05 * number)
    found = EvaluationRecord(
        kind="scheduled",
        version=10 * number,
        is_champion=number % 2 == 0,
        opponent="rules",
        simulations=0,
        games=400,
        wins=int(400 * rate),
        draws=0,
        losses=400 - int(400 * rate),
        win_rate=rate,
        win_rate_low=rate - 0.04,
        win_rate_high=rate + 0.03,
        own={"score": rate, "return": 3.0 * number, "caidas": 1.5 + 0.1 * number},
        other={"score": 1 - rate, "return": -3.0 * number, "caidas": 1.25},
        generated_games=100 * number,
        examples=FIRST_EXAMPLES * number,
        step=50 * number,
        elapsed_s=1_800.0 * number,
        seed=number,
        time="2026-01-01T00:00:00Z",
    )
    return msgspec.structs.replace(found, **changes)


def make_run(
    folder: Path,
    records: list[EvaluationRecord] | None,
    *overrides: str,
    preset: str = "smoke",
    changed: tuple[str, ...] = (),
) -> Path:
    """Save a run in ``folder``; None writes no file of evaluations."""
    directory = RunDirectory(folder)
    directory.prepare()
    config = load(preset, overrides=[f"name={folder.name}", *overrides], environment={})
    manifest = new_manifest(config, ["cardleague"])
    if changed:
        changes = dict.fromkeys(changed, ("1", "2"))
        manifest.config_changes.append(ConfigChange(at=0.0, epoch=1, changes=changes))
    directory.save(manifest)
    if records is not None:
        lines = b"".join(msgspec.json.encode(line) + b"\n" for line in records)
        (folder / EVALUATIONS).write_bytes(lines)
    return folder
