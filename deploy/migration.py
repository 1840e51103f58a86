"""Copies a run of an earlier schema forward: ``cardleague migrate``.

Room: deploy. May import: deploy, replay (segments, rewriting of streams, the bundled server). No
torch, no engine.

A step leads from one schema of a run to the next and says what becomes of each part; the chain of
steps leads to the schema of this program. The source is only read. The copy grows in a hidden
folder beside its target; its manifest comes last, everything is on disk before the folder gets its
name, and the folder's name changes by one ``rename``: whenever it is interrupted there is the whole
copy or nothing that looks like a run.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from deploy.files import Files, FilesError, Lock, LockedError
from deploy.manifest import (
    MANIFEST_SCHEMA,
    MAX_MANIFEST_BYTES,
    BlobRef,
    Manifest,
    Migration,
    ResumeError,
)
from deploy.manifest import decode as decode_manifest
from deploy.presets import is_folder_name
from deploy.rundir import MANIFEST, STAGING_SUFFIX, RunDirectory, is_staging
from league.messages import EVALUATIONS

Document = dict[str, Any]

_COPIED_FOLDERS = ("segments", "server/appendonlydir")
_COPIED_FILES = ("status.json",)


class MigrateError(ValueError):
    """A run that cannot be copied forward, or a target that cannot be used; names it."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """From schema ``source`` to the next one; what is None stays as it is.

    The functions get whole, undamaged parts of schema ``source``; they raise ValueError for what
    they do not understand.
    """

    source: int
    manifest: Callable[[Document], Document] | None = None
    """The whole document; it need not change ``schema_version``."""
    config: Callable[[Document], Document] | None = None
    """The document under ``config``."""
    snapshot: Callable[[str, bytes], bytes] | None = None
    """``(kind, bytes)``, kind being ``learner``, ``gate`` or ``worker``."""
    model: Callable[[bytes], bytes] | None = None
    """A model file."""
    trajectory: Callable[[bytes], bytes] | None = None
    """One game as it lies in a segment or stream (replay.codec)."""
    evaluation: Callable[[Document], Document] | None = None
    """One line of ``evaluations.jsonl``."""


STEPS: dict[int, Step] = {}
"""By source. Schema 1 is the first one: there is nothing before it yet."""


def chain(schema: int, today: int, steps: Mapping[int, Step]) -> list[Step]:
    """Return the steps from ``schema`` to ``today``.

    Raises MigrateError that names the schema when it is today's, a newer one, or one that no step
    starts from.
    """
    if schema == today:
        raise MigrateError(f"schema {schema} is what this program reads: nothing to do")
    if schema > today:
        raise MigrateError(
            f"schema {schema} is of a newer program, this one knows schemas up to {today}: "
            "update cardleague"
        )
    path = range(schema, today)
    if missing := [number for number in path if number not in steps]:
        known = ", ".join(map(str, sorted(steps))) or "none"
        raise MigrateError(f"schema {missing[0]} is unknown; schemas that can be migrated: {known}")
    return [steps[number] for number in path]


def default_target(source: Path) -> Path:
    """Return where the copy of the run in ``source`` goes when nobody says."""
    folder = source.resolve()
    return folder.with_name(f"{folder.name}-schema{MANIFEST_SCHEMA}")


def migrate(
    source: Path,
    target: Path,
    *,
    steps: Mapping[int, Step] | None = None,
    files: Files | None = None,
) -> Manifest:
    """Copy the run in ``source`` to ``target`` in today's schema; return the copy's manifest.

    Main thread only where the bundled server's games have to be rewritten.

    Raises:
        MigrateError: nothing to do, an unknown schema, a live run, a target that cannot be used, or
            a run that its own program could not read either.
    """
    return _Copy(source, target, STEPS if steps is None else steps, files or Files()).make()


class _Copy:
    """One migration."""

    def __init__(self, source: Path, target: Path, steps: Mapping[int, Step], files: Files) -> None:
        self._source, self._target, self._files = source, target.absolute(), files
        self._staging = self._target.with_name(f".{target.name}{STAGING_SUFFIX}")
        self._data = self._read(source / MANIFEST)
        document = self._parse(self._data)
        self._schema: int = document["schema_version"]
        try:
            self._steps = chain(self._schema, MANIFEST_SCHEMA, steps)
        except MigrateError as error:
            raise MigrateError(f"run {str(source)!r}: {error}") from None
        self._document = document

    def make(self) -> Manifest:
        """See ``migrate``."""
        self._check_target()
        with self._source_held():
            manifest = self._convert_manifest()
            self._check_games(manifest)
            with self._staged():
                self._fill(manifest)
                if self._read(self._source / MANIFEST) != self._data:
                    raise MigrateError(f"run {str(self._source)!r} changed while it was copied")
                RunDirectory(self._staging, self._files).save(manifest)
                self._files.move_folder(self._staging, self._target)
        return manifest

    # --- reading ----------------------------------------------------------------------------------

    def _read(self, path: Path) -> bytes:
        try:
            return self._files.read_bounded(path, MAX_MANIFEST_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            raise MigrateError(f"no run at {self._source}: {path.name} is not there") from None
        except FilesError as error:
            raise MigrateError(str(error)) from None

    def _parse(self, data: bytes) -> Document:
        name = str(self._source / MANIFEST)
        try:
            document = msgspec.json.decode(data, type=Document)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise MigrateError(f"{name}: not a manifest ({error})") from None
        if type(document.get("schema_version")) is not int:
            raise MigrateError(f"{name}: no schema_version, so not the manifest of a run")
        return document

    @contextlib.contextmanager
    def _source_held(self) -> Iterator[None]:
        """Hold the source's own lock where it has one, so that nobody starts it meanwhile."""
        held: list[Lock] = []
        locks = (self._source / "run.lock", self._source / "server" / "server.lock")
        try:
            for path in locks:
                if path.exists():
                    with contextlib.suppress(PermissionError):  # nobody can start it from there
                        held.append(self._files.lock(path))
            yield
        except LockedError:
            raise MigrateError(
                f"run {str(self._source)!r} is live in another process: stop it first"
            ) from None
        finally:
            for lock in held:
                lock.release()

    # --- the target -------------------------------------------------------------------------------

    def _check_target(self) -> None:
        target = self._target
        if not is_folder_name(target.name) or is_staging(target):
            raise MigrateError(f"--to {str(target)!r}: {target.name!r} cannot be a run's name")
        if target.exists():
            raise MigrateError(f"--to {str(target)!r} exists already: name a new folder")
        if not target.parent.is_dir():
            raise MigrateError(f"--to {str(target)!r}: {str(target.parent)!r} is no folder")
        if self._source.resolve() in (target.resolve(), *target.resolve().parents):
            raise MigrateError(f"--to {str(target)!r} lies in the run itself, which is not changed")

    @contextlib.contextmanager
    def _staged(self) -> Iterator[None]:
        """Have an empty folder to build in, held against a second migration; removed on errors."""
        self._files.make_folder(self._staging)
        try:
            lock = RunDirectory(self._staging, self._files).lock()
        except LockedError:
            raise MigrateError(f"{str(self._target)!r} is being made by another process") from None
        with lock:
            try:
                self._clear(keep="run.lock")  # of one that was interrupted
                yield
            except BaseException:
                shutil.rmtree(self._staging, ignore_errors=True)
                raise

    def _clear(self, keep: str) -> None:
        for path in self._staging.iterdir():
            if path.name != keep:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    # --- converting -------------------------------------------------------------------------------

    def _convert_manifest(self) -> Manifest:
        """Return the manifest in today's schema; its blobs are still the source's."""
        document = self._document
        for step in self._steps:
            with self._naming(step, MANIFEST):
                if step.manifest is not None:
                    document = step.manifest(document)
                if step.config is not None:
                    document["config"] = step.config(document["config"])
                document["schema_version"] = step.source + 1
        try:
            manifest = decode_manifest(msgspec.json.encode(document), str(self._source / MANIFEST))
        except ResumeError as error:
            raise MigrateError(f"{error} (after migration)") from None
        found = Migration(at=time.time(), source=str(self._source), schema=self._schema)
        manifest.migrations = [*manifest.migrations, found]
        manifest.config = msgspec.structs.replace(manifest.config, name=self._target.name)
        return manifest

    @contextlib.contextmanager
    def _naming(self, step: Step, what: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise MigrateError(
                f"{self._source / what}: from schema {step.source}: {type(error).__name__}: {error}"
            ) from error

    def _check_games(self, manifest: Manifest) -> None:
        url = manifest.config.replay.redis_url
        if url and manifest.config.runtime.kind == "ray" and self._converts("trajectory"):
            raise MigrateError(
                f"run {str(self._source)!r}: its games lie on {url} and cannot be copied to "
                "this program's schema; finish it with the program that made it"
            )

    def _converts(self, part: str) -> bool:
        return any(getattr(step, part) is not None for step in self._steps)

    # --- writing ----------------------------------------------------------------------------------

    def _fill(self, manifest: Manifest) -> None:
        """Write everything but the manifest, durably."""
        directory = RunDirectory(self._staging, self._files)
        directory.prepare()
        for number, record in manifest.models.items():
            blob = self._put_blob(record.blob, "model")
            manifest.models[number] = msgspec.structs.replace(record, blob=blob)
        if manifest.learner is not None:
            manifest.learner = self._put_blob(manifest.learner, "learner")
        if manifest.gate is not None:
            manifest.gate = self._put_blob(manifest.gate, "gate")
        manifest.workers = [self._put_blob(blob, "worker") for blob in manifest.workers]
        self._put_evaluations()
        for name in _COPIED_FILES:
            if (self._source / name).is_file():
                self._files.copy(self._source / name, self._staging / name)
        for folder in _COPIED_FOLDERS:
            self._copy_folder(folder)
        if self._converts("trajectory"):
            self._rewrite_games(manifest)

    def _put_blob(self, blob: BlobRef, kind: str) -> BlobRef:
        """Convert one blob and store it, under a name of its new contents for snapshots."""
        try:
            data = RunDirectory(self._source, self._files).get(blob)
        except ResumeError as error:
            raise MigrateError(str(error)) from None
        for step in self._steps:
            with self._naming(step, blob.file):
                if kind == "model" and step.model is not None:
                    data = step.model(data)
                elif kind != "model" and step.snapshot is not None:
                    data = step.snapshot(kind, data)
        digest = hashlib.sha256(data).hexdigest()
        file = blob.file
        if kind != "model":
            file = f"{file.rpartition('-')[0]}-{digest[:16]}.bin"
        self._files.write_atomic(self._staging / file, data)
        return BlobRef(file=file, hash=digest, size=len(data))

    def _put_evaluations(self) -> None:
        path = self._source / EVALUATIONS
        if not path.is_file():
            return
        *lines, _ = self._files.read(path).split(b"\n")  # what follows the last one is torn
        if self._converts("evaluation"):
            lines = [self._convert_evaluation(line) for line in lines]
        whole = b"".join(line + b"\n" for line in lines)
        self._files.write_atomic(self._staging / EVALUATIONS, whole)

    def _convert_evaluation(self, line: bytes) -> bytes:
        with self._naming(self._steps[0], EVALUATIONS):
            document = msgspec.json.decode(line, type=Document)
        for step in self._steps:
            if step.evaluation is not None:
                with self._naming(step, EVALUATIONS):
                    document = step.evaluation(document)
        return msgspec.json.encode(document)

    def _copy_folder(self, folder: str) -> None:
        source, target = self._source / folder, self._staging / folder
        if not source.is_dir():
            return
        self._files.make_folder(target)
        for name in self._files.names(source):
            if stat.S_ISREG((source / name).lstat().st_mode):
                self._files.copy(source / name, target / name)
        self._files.sync(target)

    def _convert_game(self, payload: bytes) -> bytes:
        for step in self._steps:
            if step.trajectory is not None:
                payload = step.trajectory(payload)
        return payload

    def _rewrite_games(self, manifest: Manifest) -> None:
        """Convert the games of the copy, in whichever store they are."""
        from replay.rewriting import rewrite_segments, rewrite_server

        segments, server = self._staging / "segments", self._staging / "server"
        if segments.is_dir():
            rewrite_segments(segments, self._convert_game, self._files)
        if server.is_dir():
            rewrite_server(server, manifest.run_id, manifest.config.replay, self._convert_game)
            for name in ("server.lock", "server.json", "server.log", "server.sock"):
                self._files.remove(server / name)
            for name in self._files.names(server / "appendonlydir"):
                self._files.sync(server / "appendonlydir" / name)
            self._files.sync(server / "appendonlydir")


__all__ = ["STEPS", "MigrateError", "Step", "chain", "default_target", "migrate"]
