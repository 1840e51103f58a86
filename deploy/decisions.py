"""What a decision changes in the manifest, in memory: versions, champions, gates.

Room: deploy. May import: deploy.manifest, league. Pure: what is durable when is the owner's.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from deploy.manifest import MAX_OUTCOMES, Manifest, ModelRecord, kept_champions
from league.messages import GateOutcome
from league.records import records_of_pool

RECENT_VERSIONS = 6
"""Versions kept beside pool, champion and gate, for actors that are a little behind."""


def add_version(manifest: Manifest, record: ModelRecord, pool_size: int) -> None:
    """Take in the version ``next_version``; the first one is champion at once."""
    version = manifest.next_version
    manifest.models[version] = record
    manifest.next_version = version + 1
    manifest.newest = version
    if manifest.champion < 0:
        crown(manifest, version, pool_size)


def crown(manifest: Manifest, version: int, pool_size: int) -> None:
    """Make ``version`` champion; the pool holds the last champions, this one included."""
    record = manifest.models[version]
    manifest.models[version] = msgspec.structs.replace(record, promoted=True)
    manifest.champion = version
    manifest.pool = (*manifest.pool, version)[-pool_size:]
    manifest.records = records_of_pool(manifest.records, manifest.pool)


def forget_models(manifest: Manifest, needed: Iterable[int]) -> None:
    """Take out versions that are neither recent nor ``needed`` nor among the kept champions."""
    keep = {*sorted(manifest.models)[-RECENT_VERSIONS:], *needed}
    keep |= kept_champions(manifest, spare=RECENT_VERSIONS)
    manifest.models = {n: record for n, record in manifest.models.items() if n in keep}


def end_gate(manifest: Manifest, outcome: GateOutcome, pool_size: int) -> bool:
    """Count how a gate ended; return False for one that was counted before.

    A gate that was restored to before its last outcome plays it again.
    """
    gates = manifest.gates
    if outcome.champion != manifest.champion or (
        gates.outcomes and outcome.candidate <= gates.outcomes[-1].candidate
    ):
        return False
    setattr(gates, outcome.outcome, getattr(gates, outcome.outcome) + 1)
    gates.outcomes = [*gates.outcomes, outcome][-MAX_OUTCOMES:]
    if outcome.outcome == "promoted":
        crown(manifest, outcome.candidate, pool_size)
    return True
