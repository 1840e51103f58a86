"""The run directory: where the files of a run lie, and in which order they are written.

Room: deploy. No engine, ray, torch, redis. Layout:

    manifest.json      what the run is and where it stands (deploy.manifest)
    models/            v000012.onnx
    snapshots/         learner, gate, and in the in-process runtime one per worker
    server/            the bundled server's data
    segments/          trajectories of the in-process runtime
    logs/              owner.log
    status.json        deploy.status, replaced by the owner
    evaluations.jsonl  measured strength, a line a block; only ever appended to
    run.lock           held while the run is live
    ray-token          mode 0600
    processes-*.json   pids and start times, so that leftovers can be ended

Order of every change: blobs first, then the manifest, then the announcement, then pruning.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec

from deploy.files import Files, FilesError, Lock, LockedError
from deploy.manifest import (
    MAX_MANIFEST_BYTES,
    BlobRef,
    Manifest,
    ModelRecord,
    ResumeError,
    blobs_of,
    decode,
    encode,
)
from deploy.status import RunStatus
from league.messages import EVALUATIONS

MANIFEST = "manifest.json"
STAGING_SUFFIX = ".migrating"
MAX_STATUS_BYTES = 64 << 20
_SNAPSHOT = re.compile(r"^[a-z0-9-]+-[0-9a-f]{16}\.bin$")
_MODEL = re.compile(r"^v\d{6,}\.onnx$")


def is_staging(path: Path) -> bool:
    """Return whether a folder is a copy that deploy.migration has not finished: not a run yet."""
    return path.name.startswith(".") and path.name.endswith(STAGING_SUFFIX)


class RunLockedError(LockedError):
    """The run is live in another process."""


class RunDirectory:
    """Paths and durable operations of one run."""

    def __init__(self, path: Path, files: Files | None = None) -> None:
        self.path = path
        self.files = files or Files()

    # --- paths ------------------------------------------------------------------------------------

    @property
    def manifest_path(self) -> Path:
        """The one file that decides."""
        return self.path / MANIFEST

    @property
    def status_path(self) -> Path:
        """What ``status`` reads."""
        return self.path / "status.json"

    @property
    def evaluations_path(self) -> Path:
        """Measured strength, a line a block (deploy.evaluations)."""
        return self.path / EVALUATIONS

    @property
    def server_path(self) -> Path:
        """Data folder of the bundled server."""
        return self.path / "server"

    @property
    def server_log_path(self) -> Path:
        """What the bundled server says; its writer is ``replay.embedded``."""
        return self.server_path / "server.log"

    @property
    def segments_path(self) -> Path:
        """Trajectory segments of the in-process runtime."""
        return self.path / "segments"

    @property
    def logs_path(self) -> Path:
        """Log files."""
        return self.path / "logs"

    @property
    def token_path(self) -> Path:
        """Ray's token."""
        return self.path / "ray-token"

    def processes_path(self, group: str) -> Path:
        """Pids and start times of what was started (``owner`` or ``ray``; one writer each)."""
        return self.path / f"processes-{group}.json"

    # --- life -------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Return whether there is a run here."""
        return self.manifest_path.exists() and not is_staging(self.path)

    def prepare(self) -> None:
        """Create the folders that are missing."""
        for folder in (self.path, self.path / "models", self.path / "snapshots", self.logs_path):
            self.files.make_folder(folder)

    def lock(self) -> Lock:
        """Take ``run.lock``. Raises RunLockedError that names the run when it is live."""
        try:
            return self.files.lock(self.path / "run.lock")
        except LockedError:
            raise RunLockedError(
                f"run {self.path} is live in another process: stop that one, or take another --name"
            ) from None

    def is_live(self) -> bool:
        """Return whether a supervisor holds the run."""
        return self.files.is_locked(self.path / "run.lock")

    # --- manifest ---------------------------------------------------------------------------------

    def load(self) -> Manifest:
        """Return the manifest. Raises ResumeError that names the path or what is wrong with it."""
        try:
            data = self.files.read_bounded(self.manifest_path, MAX_MANIFEST_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            raise ResumeError(f"no run at {self.path}: {MANIFEST} is not there") from None
        except FilesError as error:
            raise ResumeError(str(error)) from None
        return decode(data, str(self.manifest_path))

    def save(self, manifest: Manifest) -> None:
        """Make ``manifest`` the truth; on return it is durable."""
        self.files.write_atomic(self.manifest_path, encode(manifest))

    # --- blobs ------------------------------------------------------------------------------------

    def put_model(self, version: int, model: bytes, step: int) -> ModelRecord:
        """Store a version's bytes durably; the manifest must name it next."""
        blob = self._put(f"models/v{version:06d}.onnx", model)
        return ModelRecord(blob=blob, step=step)

    def put_snapshot(self, name: str, data: bytes) -> BlobRef:
        """Store a snapshot durably under a name of its own, beside the one that is in force."""
        digest = hashlib.sha256(data).hexdigest()
        return self._put(f"snapshots/{name}-{digest[:16]}.bin", data)

    def get(self, blob: BlobRef) -> bytes:
        """Return a blob's bytes. Raises ResumeError when it is missing, truncated or changed."""
        path = self.path / blob.file
        try:
            data = self.files.read_bounded(path, blob.size)
        except FileNotFoundError:
            raise ResumeError(f"{path} is missing; the manifest names it") from None
        except FilesError as error:
            raise ResumeError(f"{error}; the manifest names it") from None
        if len(data) != blob.size:
            raise ResumeError(f"{path} is truncated: {len(data)} bytes of {blob.size}")
        digest = hashlib.sha256(data).hexdigest()
        if digest != blob.hash:
            raise ResumeError(f"{path} has hash {digest[:16]}, the manifest says {blob.hash[:16]}")
        return data

    def check_named(self, manifest: Manifest) -> None:
        """Raise ResumeError for a file that ``manifest`` names and that is not there in full."""
        for blob in blobs_of(manifest):
            path = self.path / blob.file
            if not path.is_file():
                raise ResumeError(f"{path} is missing; the manifest names it")
            size = path.stat().st_size
            if size != blob.size:
                raise ResumeError(f"{path} has {size} bytes of {blob.size}")

    def model(self, manifest: Manifest, version: int) -> bytes:
        """Return the bytes of an announced version. Raises ResumeError."""
        record = manifest.models.get(version)
        if record is None:
            raise ResumeError(
                f"version {version} of {self.path}: kept are {sorted(manifest.models)}"
            )
        return self.get(record.blob)

    def _put(self, file: str, data: bytes) -> BlobRef:
        self.files.write_atomic(self.path / file, data)
        return BlobRef(file=file, hash=hashlib.sha256(data).hexdigest(), size=len(data))

    def prune(self, manifest: Manifest) -> None:
        """Remove models and snapshots that the durable ``manifest`` does not name."""
        named = {blob.file for blob in blobs_of(manifest)}
        for folder, pattern in (("models", _MODEL), ("snapshots", _SNAPSHOT)):
            for name in self.files.names(self.path / folder):
                stale = pattern.match(name) or name.endswith(".new")
                if stale and f"{folder}/{name}" not in named:
                    self.files.remove(self.path / folder / name)

    # --- status -----------------------------------------------------------------------------------

    def write_status(self, status: RunStatus) -> None:
        """Replace ``status.json`` for readers; it need not survive a crash."""
        self.files.replace(self.status_path, msgspec.json.encode(status))

    def read_status(self) -> RunStatus | None:
        """Return what the owner said last; None before it said anything."""
        try:
            data = self.files.read_bounded(self.status_path, MAX_STATUS_BYTES)
            document = msgspec.json.decode(data)
            return msgspec.convert(_without_nulls(document), RunStatus)
        except (FileNotFoundError, FilesError, msgspec.MsgspecError, RecursionError):
            return None


def _without_nulls(value: Any) -> Any:
    """Return ``value`` without nulls: JSON has no NaN, a figure not known yet is null there."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
