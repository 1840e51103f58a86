"""The manifest: what a run is and where it stands, in one file that is replaced atomically.

Room: deploy. May import: the rooms' config and message modules, msgspec. No engine, ray, torch,
redis: the supervisor and ``status`` load this module.

Whatever the manifest names is durable before the manifest is; whatever it does not name does not
exist. A version is in it before anybody hears of it, and ``next_version`` only rises, so a number
is never used twice. ``deploy.rundir`` stores it and the blobs that it names.
"""

from __future__ import annotations

import re
import shlex
import time
import uuid
from pathlib import Path
from typing import Any

import msgspec

from deploy.config import IDENTITY_KEYS, RunConfig
from deploy.provenance import Invocation, invocation
from deploy.schemas import SCHEMAS
from league.messages import GateOutcome, PairRecord
from learner.messages import IngestedTotals

MANIFEST_SCHEMA = SCHEMAS["manifest"]
MAX_MANIFEST_BYTES = 64 << 20
"""No run's manifest comes near it; a larger file is not even read."""
MAX_INVOCATIONS = 30
MAX_COMMAND_LINES = 100
MAX_CHANGES = 200
MAX_OUTCOMES = 50


_BLOB_FILE = re.compile(r"(models|snapshots)/[A-Za-z0-9_-]+\.[a-z]+")


class ResumeError(ValueError):
    """A run that cannot be resumed; names the value, and what is allowed."""


class BlobRef(msgspec.Struct, frozen=True, kw_only=True):
    """A file in the run directory and what it must hold."""

    file: str
    """Path relative to the run directory."""
    hash: str
    """Hex SHA-256."""
    size: int


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One announced version."""

    blob: BlobRef
    step: int
    promoted: bool = False
    """Was champion once: one of the newest ``runtime.kept_champions`` of these is kept."""
    games: int = -1
    """Self-play games ingested when it was announced; -1 where that is not known."""
    examples: int = -1
    """Eligible examples ingested then."""
    elapsed_s: float = -1.0
    """Training time of the run then."""


class ConfigChange(msgspec.Struct, frozen=True, kw_only=True):
    """Options that a resume changed."""

    at: float
    """Unix time."""
    epoch: int
    changes: dict[str, tuple[str, str]]
    """``section.key`` -> (before, after), as JSON."""


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """A run of an earlier schema was copied to this one."""

    at: float
    """Unix time."""
    source: str
    """Folder of the run that was copied."""
    schema: int
    """Its schema."""


class GateTotals(msgspec.Struct, kw_only=True):
    """Gates over the whole run."""

    promoted: int = 0
    rejected: int = 0
    undecided: int = 0
    games: int = 0
    outcomes: list[GateOutcome] = []
    """The last ones, oldest first."""


class Manifest(msgspec.Struct, kw_only=True):
    """Everything that a resume needs beside the blobs it names."""

    schema_version: int = MANIFEST_SCHEMA
    run_id: str
    created_at: float
    schemas: dict[str, int] = {}
    """Schema of every part (deploy.schemas) that the program of the last invocation wrote."""
    git_commit: str = ""
    """This and the next three: of the last invocation."""
    git_dirty: bool = False
    dependencies: dict[str, str] = {}
    hardware: dict[str, str] = {}
    command_lines: list[list[str]] = []
    """Of all invocations, bounded."""
    invocations: list[Invocation] = []
    """The last ones with all that is known of them, oldest first."""
    migrations: list[Migration] = []
    seed: int
    config: RunConfig
    config_changes: list[ConfigChange] = []
    engine_hash: str = ""
    """Engine that played last; another one may go on (recorded), a worker must match the owner."""
    epoch: int = 0
    """Last epoch given to any actor."""
    next_version: int = 0
    newest: int = -1
    champion: int = -1
    pool: tuple[int, ...] = ()
    records: dict[int, PairRecord] = {}
    models: dict[int, ModelRecord] = {}
    learner: BlobRef | None = None
    gate: BlobRef | None = None
    workers: list[BlobRef] = []
    """In-process runtime: one per self-play slot."""
    worker_sequences: list[int] = []
    """In-process runtime: number of the next trajectory, per self-play slot."""
    stream_end: str = ""
    """In-process runtime: last entry of the segments at the snapshot; later ones are cut off."""
    lineage: str = ""
    """Random id of the trajectory stream, once the learner has met it."""
    trim_edge: dict[str, str] = {}
    """Per shard: the oldest entry that the learner's snapshot needs."""
    insert_budget: int = -1
    """The learner's last word to the workers at the snapshot (in-process runtime)."""
    step: int = 0
    """Optimizer steps at the snapshot."""
    totals: IngestedTotals = msgspec.field(default_factory=IngestedTotals)
    gates: GateTotals = msgspec.field(default_factory=GateTotals)
    rating_games: int = 0
    evaluation_games: int = 0
    elapsed_s: float = 0.0
    """Training time over all invocations."""
    worker_restarts: int = 0
    server_restarts: int = 0
    owner_starts: int = 0


def encode(manifest: Manifest) -> bytes:
    """Return the manifest as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def decode(data: bytes, source: str) -> Manifest:
    """Return the manifest in ``data``. Raises ResumeError that names ``source`` and the fault."""
    schema = _schema_of(data, source)
    if schema < MANIFEST_SCHEMA:
        raise ResumeError(
            f"{source}: manifest schema {schema}, this program reads {MANIFEST_SCHEMA}: copy the "
            f"run forward with cardleague migrate {shlex.quote(str(Path(source).parent))}"
        )
    if schema > MANIFEST_SCHEMA:
        raise ResumeError(
            f"{source}: manifest schema {schema}, this program reads {MANIFEST_SCHEMA}: a newer "
            "program made the run, update cardleague"
        )
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
        msgspec.msgpack.encode(manifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ResumeError(f"{source}: {error}") from None
    except OverflowError as error:  # whole numbers that no array and no server takes
        raise ResumeError(f"{source}: a number beyond 64 bits ({error})") from None
    _check(manifest, source)
    return manifest


def _schema_of(data: bytes, source: str) -> int:
    try:
        document: Any = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ResumeError(f"{source}: not a manifest ({error})") from None
    schema = document.get("schema_version") if isinstance(document, dict) else None
    if type(schema) is not int:
        raise ResumeError(f"{source}: not a manifest (no schema_version)")
    return schema


def _check(manifest: Manifest, source: str) -> None:
    """Raise ResumeError for what no program has written: files elsewhere, another config schema."""
    if manifest.config.schema_version != SCHEMAS["config"]:
        raise ResumeError(
            f"{source}: config schema {manifest.config.schema_version}, this program reads "
            f"{SCHEMAS['config']}"
        )
    for blob in blobs_of(manifest):
        if not _BLOB_FILE.fullmatch(blob.file) or blob.size < 0:
            raise ResumeError(
                f"{source}: names the file {blob.file!r} of {blob.size} bytes; allowed are files "
                "in models/ and snapshots/"
            )


def blobs_of(manifest: Manifest) -> list[BlobRef]:
    """Return all files that ``manifest`` names."""
    blobs = [record.blob for record in manifest.models.values()]
    blobs += [blob for blob in (manifest.learner, manifest.gate) if blob is not None]
    return blobs + manifest.workers


def new_manifest(config: RunConfig, command_line: list[str]) -> Manifest:
    """Return the manifest of a run that begins now."""
    manifest = Manifest(
        run_id=uuid.uuid4().hex[:12], created_at=time.time(), seed=config.seed, config=config
    )
    stamp(manifest, command_line)
    return manifest


def stamp(manifest: Manifest, command_line: list[str]) -> None:
    """Record program, machine and command line of this invocation in place."""
    found = invocation(command_line)
    manifest.schemas = dict(found.schemas)
    manifest.git_commit, manifest.git_dirty = found.git_commit, found.git_dirty
    manifest.dependencies, manifest.hardware = found.dependencies, found.hardware
    manifest.command_lines = [*manifest.command_lines, command_line][-MAX_COMMAND_LINES:]
    manifest.invocations = [*manifest.invocations, found][-MAX_INVOCATIONS:]


def record_engine(manifest: Manifest, engine_hash: str) -> None:
    """Record in place the rules that this invocation plays by: its owner has loaded them."""
    manifest.engine_hash = engine_hash
    if manifest.invocations:
        last = msgspec.structs.replace(manifest.invocations[-1], engine_hash=engine_hash)
        manifest.invocations = [*manifest.invocations[:-1], last]


def kept_champions(manifest: Manifest, spare: int) -> set[int]:
    """Return the promoted versions whose files stay (``runtime.kept_champions``).

    Never fewer than may be played: the pool, and ``spare`` more for games that began before the
    last promotions.
    """
    config = manifest.config
    promoted = [number for number in sorted(manifest.models) if manifest.models[number].promoted]
    limit = config.runtime.kept_champions
    kept = max(limit, config.league.pool_size + spare) if limit else 0
    return {*promoted[-kept:], *manifest.pool, manifest.champion}


def apply_config(manifest: Manifest, config: RunConfig) -> dict[str, tuple[str, str]]:
    """Take over ``config`` in place for a resume and return what changed.

    Raises ResumeError when it would change what the run is (game, network, seed).
    """
    before, after = _flatten(manifest.config), _flatten(config)
    changes = {
        key: (before.get(key, "absent"), after.get(key, "absent"))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    }
    for key, (old, new) in changes.items():
        if key.split(".")[0] in IDENTITY_KEYS:
            raise ResumeError(
                f"{key} is {new} here, but the run was made with {old}: "
                f"a resume may not change {', '.join(IDENTITY_KEYS)}"
            )
    if changes:
        change = ConfigChange(at=time.time(), epoch=manifest.epoch, changes=changes)
        manifest.config_changes = [*manifest.config_changes, change][-MAX_CHANGES:]
        manifest.config = config
    return changes


def _flatten(config: RunConfig) -> dict[str, str]:
    flat: dict[str, str] = {}
    for section, value in msgspec.to_builtins(config).items():
        if isinstance(value, dict):
            for key, leaf in value.items():
                flat[f"{section}.{key}"] = msgspec.json.encode(leaf).decode()
        else:
            flat[section] = msgspec.json.encode(value).decode()
    return flat
