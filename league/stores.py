"""Models as files of a run directory, and which versions a bounded store keeps.

Room: league. May import: league.models and the standard library.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from league.models import ModelError, ModelStore

_FILE_NAME = re.compile(r"v(\d{6,})\.onnx")


class ModelsUnreachable(RuntimeError):
    """The store does not answer at the moment; whoever holds a model plays on and asks later."""


def model_file_name(version: int) -> str:
    """Return ``v000012.onnx`` for version 12."""
    if version < 0:
        raise ValueError(f"model version {version}: at least 0")
    return f"v{version:06d}.onnx"


class FileModelStore:
    """A ModelStore in one directory; one process writes, any number read.

    A file appears under its name only when all of its bytes are on disk.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        """Use ``directory``; it is created on the first ``put``."""
        self.directory = Path(directory)

    def path(self, version: int) -> Path:
        """Return where ``version`` lies, whether it is there or not."""
        return self.directory / model_file_name(version)

    def put(self, version: int, model: bytes) -> None:
        """See ModelStore. On return the bytes and the name are on disk."""
        path = self.path(version)
        if path.exists():
            if path.read_bytes() != model:
                raise ModelError(f"model version {version} is already stored with other bytes")
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        with temporary.open("wb") as file:
            file.write(model)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        _sync_directory(self.directory)

    def get(self, version: int) -> bytes:
        """See ModelStore."""
        try:
            return self.path(version).read_bytes()
        except FileNotFoundError as error:
            raise ModelError(
                f"model version {version} in {self.directory}: stored are "
                f"{_in_words(self.versions())}"
            ) from error

    def versions(self) -> list[int]:
        """See ModelStore."""
        if not self.directory.is_dir():
            return []
        matches = (_FILE_NAME.fullmatch(name) for name in os.listdir(self.directory))
        return sorted(int(match[1]) for match in matches if match)

    def delete(self, version: int) -> None:
        """See ModelStore."""
        self.path(version).unlink(missing_ok=True)


def prune(store: ModelStore, keep: Iterable[int], max_versions: int) -> list[int]:
    """Delete the oldest versions outside ``keep`` until ``max_versions`` are left.

    Only the owner of a store calls it. ``keep`` (pool, champion, newest) survives even beyond the
    bound. Returns the deleted versions, ascending.
    """
    if max_versions < 1:
        raise ValueError(f"max_versions = {max_versions}: at least 1")
    stored, kept = store.versions(), set(keep)
    surplus = max(0, len(stored) - max_versions)
    deleted = [version for version in stored if version not in kept][:surplus]
    for version in deleted:
        store.delete(version)
    return deleted


def _in_words(versions: list[int]) -> str:
    if len(versions) > 8:
        return f"{versions[0]} to {versions[-1]} ({len(versions)} versions)"
    return ", ".join(map(str, versions)) or "none"


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
