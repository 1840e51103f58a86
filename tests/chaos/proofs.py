"""What must be true of a run that was attacked, proved from records that lie outside its server.

Pure functions over logs. Every one returns a Proof with the faults that it found, in words.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from learner.messages import IngestedTotals
from tests.chaos.records import (
    Accepted,
    Champion,
    Ingested,
    LearnerRecord,
    OwnerRecord,
    Restored,
    Said,
    Snapshot,
)

MAX_SHOWN = 5
PROMOTED = re.compile(r"^version (\d+) promoted ")


@dataclass(frozen=True)
class Proof:
    """One claim, on how much it rests, and what speaks against it."""

    claim: str
    rests_on: str
    faults: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the claim."""
        return not self.faults

    def __str__(self) -> str:
        head = f"{'holds ' if self.holds else 'FAILS '} {self.claim} ({self.rests_on})"
        shown = self.faults[:MAX_SHOWN]
        more = len(self.faults) - len(shown)
        return "\n".join([head, *(f"    {fault}" for fault in shown)]) + (
            f"\n    and {more} more" if more else ""
        )


# --- the line of snapshots ------------------------------------------------------------------------


class LineError(ValueError):
    """A snapshot that no record leads to."""


@dataclass(frozen=True)
class Line:
    """What the learner's final state has ingested, in order, over all its starts."""

    entries: list[Ingested]
    marks: dict[str, int]


def final_line(ingested: Mapping[int, Sequence[LearnerRecord]], snapshot: str) -> Line:
    """Return the line that leads to ``snapshot`` (its hash).

    A start of the learner goes on from a snapshot; what earlier starts read after that one is no
    part of the line, and is read again. Raises LineError when a snapshot of the line is not there.
    """
    parts: list[list[Ingested]] = []
    marks: dict[str, int] | None = None
    wanted = snapshot
    while wanted:
        records, at = _find(ingested, wanted)
        taken = records[at]
        assert isinstance(taken, Snapshot)
        marks = taken.marks if marks is None else marks
        parts.append([record for record in records[:at] if isinstance(record, Ingested)])
        first = records[0]
        if not isinstance(first, Restored):
            raise LineError(f"the learner that made {wanted[:12]} does not say where it began")
        wanted = first.snapshot
    return Line([entry for part in reversed(parts) for entry in part], marks or {})


def _find(
    ingested: Mapping[int, Sequence[LearnerRecord]], snapshot: str
) -> tuple[Sequence[LearnerRecord], int]:
    """Return the records of the first start that made ``snapshot``, and where in them it stands."""
    for epoch in sorted(ingested):
        for at, record in enumerate(ingested[epoch]):
            if isinstance(record, Snapshot) and record.snapshot == snapshot:
                return ingested[epoch], at
    raise LineError(f"no learner made snapshot {snapshot[:12]}")


# --- accepted and ingested ------------------------------------------------------------------------


def prove_exactly_once(line: Line) -> Proof:
    """Every producer's entries were ingested once, in order, without gap up to its mark."""
    faults = []
    marks: dict[str, int] = {}
    for entry in line.entries:
        expected = marks.get(entry.producer, 0) + 1
        if entry.sequence < expected:
            faults.append(f"{entry.producer}: {entry.sequence} was ingested again")
        elif entry.sequence > expected:
            faults.append(f"{entry.producer}: gap from {expected} to {entry.sequence - 1}")
        marks[entry.producer] = max(entry.sequence, expected - 1)
    for producer in sorted(marks.keys() | line.marks.keys()):
        reached, mark = marks.get(producer, 0), line.marks.get(producer, 0)
        if reached != mark:
            faults.append(f"{producer}: ingested up to {reached}, its mark is {mark}")
    return Proof(
        "of every producer, all numbers up to its mark were ingested, each once",
        f"{len(line.entries)} entries of {len(marks)} producers",
        faults,
    )


def missing(accepted: Iterable[Accepted], line: Line) -> list[Accepted]:
    """Return what was accepted and is not in ``line``."""
    known = {(entry.producer, entry.sequence) for entry in line.entries}
    return [entry for entry in accepted if (entry.producer, entry.sequence) not in known]


def prove_accepted(accepted: Sequence[Accepted], line: Line) -> Proof:
    """Everything accepted was ingested with the same content; no number was accepted twice."""
    lost = missing(accepted, line)
    faults = [f"{e.producer}: {e.sequence} was accepted and never ingested" for e in lost]
    contents = {(entry.producer, entry.sequence): entry.digest for entry in line.entries}
    seen: set[tuple[str, int]] = set()
    for entry in accepted:
        key = entry.producer, entry.sequence
        if contents.get(key, entry.digest) != entry.digest:
            faults.append(f"{entry.producer}: {entry.sequence} was ingested with other content")
        if key in seen:
            faults.append(f"{entry.producer}: {entry.sequence} was accepted twice")
        seen.add(key)
    return Proof(
        "what was accepted was ingested, with the same content",
        f"{len(accepted)} accepted, {len(line.entries)} ingested",
        faults,
    )


def prove_sums(totals: IngestedTotals, line: Line) -> Proof:
    """Every ingested entry is in the window, evicted, held out or rejected with a reason."""
    faults = []
    rejected = sum(totals.rejected.values())
    kept = totals.window_games + totals.evicted_games + totals.held_out_games
    if totals.entries != len(line.entries):
        faults.append(f"{totals.entries} entries are counted, {len(line.entries)} were ingested")
    if totals.entries != kept + rejected:
        faults.append(f"{totals.entries} entries, but {kept} games and {rejected} rejected")
    if totals.games != kept:
        faults.append(f"{totals.games} games are counted, {kept} have a place")
    if totals.lost_entries:
        faults.append(f"{totals.lost_entries} accepted entries count as lost")
    return Proof(
        "ingested = in window + evicted + held out + rejected, and nothing is lost",
        f"{totals.entries} = {totals.window_games} + {totals.evicted_games} + "
        f"{totals.held_out_games} + {rejected}",
        faults,
    )


# --- deliveries -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Disturbance:
    """The last moment (Unix time) at which something kept ``slots`` from playing."""

    name: str
    ended: float
    slots: tuple[int, ...]


def prove_deliveries(
    disturbances: Sequence[Disturbance], accepted_at: Mapping[int, Sequence[float]], bound_s: float
) -> Proof:
    """Every worker has a game accepted within ``bound_s`` after each disturbance.

    ``accepted_at`` are ascending Unix times per slot.
    """
    faults, waits = [], []
    for disturbance in disturbances:
        for slot in disturbance.slots:
            times = accepted_at.get(slot, ())
            at = bisect.bisect_right(times, disturbance.ended)
            if at == len(times):
                faults.append(f"worker {slot} delivered nothing after {disturbance.name}")
                continue
            waits.append(times[at] - disturbance.ended)
            if waits[-1] > bound_s:
                faults.append(f"worker {slot} took {waits[-1]:.1f} s after {disturbance.name}")
    longest = max(waits, default=0.0)
    return Proof(
        f"every worker delivers within {bound_s:g} s of what disturbed it",
        f"{len(waits)} returns, the longest {longest:.1f} s, "
        f"the median {sorted(waits)[len(waits) // 2] if waits else 0.0:.1f} s",
        faults,
    )


# --- promotions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Promotions:
    """What a manifest says: versions that were champion, and how many gates promoted one."""

    versions: frozenset[int]
    champion: int
    num_promoted: int


def prove_promotions(records: Sequence[OwnerRecord], manifest: Promotions) -> Proof:
    """What was announced is what the manifest says, each once, and champions only rise."""
    faults = []
    matches = [PROMOTED.match(record.text) for record in records if isinstance(record, Said)]
    said = [int(match[1]) for match in matches if match]
    champions = [record.version for record in records if isinstance(record, Champion)]
    for version in sorted({version for version in said if said.count(version) > 1}):
        faults.append(f"version {version} was promoted {said.count(version)} times")
    for before, after in itertools.pairwise(champions):
        if after < before:
            faults.append(f"champion {after} was announced after {before}")
    announced = {version for version in {*said, *champions} if version >= 0}
    for version in sorted(announced - manifest.versions):
        faults.append(f"version {version} was announced as champion, the manifest knows no such")
    for version in sorted(manifest.versions - announced):
        faults.append(f"version {version} was champion by the manifest and never announced")
    # The first version becomes champion without a gate.
    if manifest.num_promoted != max(0, len(manifest.versions) - 1):
        faults.append(
            f"{manifest.num_promoted} promotions are counted, {len(manifest.versions)} champions "
            "are named, the first of them without a gate"
        )
    if manifest.versions and manifest.champion != max(manifest.versions):
        faults.append(f"champion {manifest.champion} is not the last one promoted")
    return Proof(
        "promotions announced are those of the manifest, each once",
        f"{manifest.num_promoted} promotions, {len(champions)} announcements",
        faults,
    )


# --- totals ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Totals by name that a source (``manifest`` or ``status``) stated at a Unix time."""

    source: str
    at: float
    totals: dict[str, float]


def prove_totals_never_fall(samples: Sequence[Sample]) -> Proof:
    """No statement is below the last manifest that was written before it."""
    faults = []
    last: dict[str, float] = {}
    for sample in sorted(samples, key=lambda s: s.at):
        for name, value in sample.totals.items():
            if value < last.get(name, value):
                faults.append(
                    f"{sample.source} at {sample.at:.3f}: {name} {value:g}, the manifest before "
                    f"it said {last[name]:g}"
                )
        if sample.source == "manifest":
            last.update(sample.totals)
    manifests = sum(sample.source == "manifest" for sample in samples)
    return Proof(
        "no total is below the last manifest's",
        f"{manifests} manifests, {len(samples) - manifests} statements of a live owner",
        faults,
    )


def prove_nothing_left(left: Sequence[str]) -> Proof:
    """Nothing of the run is there any more; ``left`` names what is."""
    return Proof("no process and no folder of the run is left", f"{len(left)} found", list(left))
