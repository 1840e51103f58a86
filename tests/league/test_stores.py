"""Behaviours of the model stores in memory and in files: the same suite for both, and crashes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from league.models import MemoryModelStore, ModelError, ModelStore
from league.stores import FileModelStore, model_file_name, prune


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ModelStore:
    return MemoryModelStore() if request.param == "memory" else FileModelStore(tmp_path / "models")


def test_versions_come_back_ascending_with_their_bytes(store: ModelStore) -> None:
    assert store.versions() == []
    for version in (10, 2, 1_234_567):
        store.put(version, b"model %d" % version)
    assert store.versions() == [2, 10, 1_234_567]
    assert store.get(10) == b"model 10"


def test_same_bytes_again_are_allowed_and_others_refused(store: ModelStore) -> None:
    store.put(3, b"one")
    store.put(3, b"one")
    with pytest.raises(ModelError, match="version 3 is already stored with other bytes"):
        store.put(3, b"two")
    assert store.get(3) == b"one"


def test_a_missing_version_is_named_with_those_that_are_there(store: ModelStore) -> None:
    store.put(1, b"one")
    store.put(4, b"four")
    with pytest.raises(ModelError, match=r"version 2.*1, 4"):
        store.get(2)


def test_deleting_forgets_one_version_and_ignores_missing_ones(store: ModelStore) -> None:
    store.put(1, b"one")
    store.put(2, b"two")
    store.delete(1)
    store.delete(1)
    assert store.versions() == [2]


def test_prune_deletes_the_oldest_outside_the_kept(store: ModelStore) -> None:
    for version in range(8):
        store.put(version, b"%d" % version)
    assert prune(store, keep=[0, 2, 7], max_versions=5) == [1, 3, 4]
    assert store.versions() == [0, 2, 5, 6, 7]
    assert prune(store, keep=[0, 2, 7], max_versions=5) == []
    assert prune(store, keep=[0, 2, 7], max_versions=1) == [5, 6]
    assert store.versions() == [0, 2, 7]
    with pytest.raises(ValueError, match="max_versions = 0"):
        prune(store, keep=[], max_versions=0)


def test_file_names_sort_and_negative_versions_are_refused(tmp_path: Path) -> None:
    assert model_file_name(12) == "v000012.onnx"
    with pytest.raises(ValueError, match="version -1"):
        FileModelStore(tmp_path).put(-1, b"")


def test_other_files_of_the_directory_are_no_versions(tmp_path: Path) -> None:
    store = FileModelStore(tmp_path)
    store.put(1, b"one")
    for name in (".v000002.onnx.tmp", "v000003.onnx.bak", "v3.onnx", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    assert store.versions() == [1]


@pytest.mark.parametrize("crash_at", ["fsync", "rename"])
def test_a_crash_while_writing_leaves_no_version_and_the_next_put_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash_at: str
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    store = FileModelStore(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(*((os, "fsync", crash) if crash_at == "fsync" else (Path, "rename", crash)))
        with pytest.raises(KeyboardInterrupt):
            store.put(5, b"five")
    assert store.versions() == []
    store.put(5, b"five")
    assert store.get(5) == b"five"
    assert os.listdir(tmp_path) == ["v000005.onnx"]


def test_bytes_are_synced_before_the_name_appears_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def traced_fsync(descriptor: int) -> None:
        events.append("sync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync")
        fsync(descriptor)

    def traced_rename(self: Path, target: Path) -> Path:
        events.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", traced_fsync)
    monkeypatch.setattr(Path, "rename", traced_rename)
    FileModelStore(tmp_path).put(1, b"one")
    assert events == ["sync", "rename", "sync folder"]
