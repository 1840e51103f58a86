"""``evaluations.jsonl`` of a run: measured strength, one record a line, each once.

Room: deploy. May import: deploy.rundir, league.messages, msgspec. Light: the owner loads it.

A crash may leave a part of the last line: it is passed over when the file is read, and cut off by
the next writer. A block that a restored arena plays again finds its record there: it counts once.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from deploy.manifest import Manifest, ResumeError
from deploy.rundir import RunDirectory
from league.messages import EvaluationRecord, EvaluationResult

Key: TypeAlias = tuple[str, int, str, int, int, int]


def key_of(record: EvaluationRecord) -> Key:
    """Return what tells one record from another."""
    return (
        record.kind,
        record.version,
        record.opponent,
        record.simulations,
        record.seed,
        record.games,
    )


def read_records(directory: RunDirectory) -> list[EvaluationRecord]:
    """Return all records, oldest first; none of a run that has none.

    Raises ResumeError that names file and line for anything but a torn last line.
    """
    return _read(directory)[0]


def _read(directory: RunDirectory) -> tuple[list[EvaluationRecord], bytes, bool]:
    """Return the records, their whole lines, and whether a torn line follows those."""
    path = directory.evaluations_path
    try:
        data = directory.files.read(path)
    except FileNotFoundError:
        return [], b"", False
    lines = data.split(b"\n")
    torn = lines.pop() != b""
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(msgspec.json.decode(line, type=EvaluationRecord))
        except (msgspec.MsgspecError, RecursionError) as error:
            if number < len(lines):
                raise ResumeError(f"{path}, line {number}: not an evaluation ({error})") from None
            torn = True
            lines = lines[:-1]
    return records, b"".join(line + b"\n" for line in lines), torn


class EvaluationLog:
    """The writer; one process of a run at a time."""

    def __init__(self, directory: RunDirectory) -> None:
        """Read the file and cut off a torn last line. Raises ResumeError."""
        self._directory = directory
        self.records, whole, torn = _read(directory)
        if torn:
            directory.files.write_atomic(directory.evaluations_path, whole)
        self._keys = {key_of(record) for record in self.records}

    def add(self, record: EvaluationRecord) -> bool:
        """Append ``record``, durable on return; return False for one that is there already."""
        if key_of(record) in self._keys:
            return False
        line = msgspec.json.encode(record) + b"\n"
        self._directory.files.append(self._directory.evaluations_path, line)
        self._keys.add(key_of(record))
        self.records.append(record)
        return True


def record_of(
    manifest: Manifest, found: EvaluationResult, *, is_closing: bool = False
) -> EvaluationRecord:
    """Return ``found`` with where its version stood in the run."""
    model = manifest.models.get(found.version)
    about: dict[str, Any] = {
        "kind": "closing" if is_closing else "scheduled",
        "generated_games": model.games if model else -1,
        "examples": model.examples if model else -1,
        "step": model.step if model else -1,
        "elapsed_s": model.elapsed_s if model else -1.0,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return EvaluationRecord(**msgspec.structs.asdict(found), **about)
