"""Manifest and run directory.

Behaviours checked:
* a manifest survives encoding; every fault of a resume is named
* a resume may not change game, network or seed; other changes are applied and recorded
* a manifest update with its blobs, cut at every instant, leaves old or new, and all that it names
* pruning removes exactly what the durable manifest does not name
"""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.config import GameConfig, RunConfig
from deploy.files import Files, MemoryFiles, PowerCut
from deploy.manifest import (
    Manifest,
    ResumeError,
    apply_config,
    decode,
    encode,
    new_manifest,
)
from deploy.rundir import RunDirectory, RunLockedError
from league.messages import GateOutcome, PairRecord
from learner.config import LearnerConfig


def some_manifest() -> Manifest:
    return new_manifest(RunConfig(name="test", seed=5), ["cardleague", "train", "smoke"])


def test_manifest_survives_encoding() -> None:
    manifest = some_manifest()
    manifest.records = {3: PairRecord(wins=1.5, games=4)}
    manifest.pool = (0, 3)
    manifest.gates.outcomes.append(
        GateOutcome(
            candidate=3,
            champion=0,
            outcome="promoted",
            num_pairs=9,
            num_decided=8,
            wins=8,
            llr=3.0,
            score=0.9,
        )
    )
    assert decode(encode(manifest), "here") == manifest


def test_manifest_records_program_and_machine() -> None:
    manifest = some_manifest()
    assert manifest.command_lines == [["cardleague", "train", "smoke"]]
    assert {"python", "numpy", "numba"} <= manifest.dependencies.keys()
    assert int(manifest.hardware["cpus"]) >= 1
    assert manifest.config.seed == manifest.seed == 5


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"{", "not a manifest"),
        (b"[]", "not a manifest"),
        (b'{"schema_version": 99}', "manifest schema 99, this program reads 1"),
        (b'{"schema_version": 1}', "missing required field"),
    ],
)
def test_damaged_manifest_is_refused_by_name(data: bytes, named: str) -> None:
    with pytest.raises(ResumeError, match=named) as caught:
        decode(data, "runs/x/manifest.json")
    assert "runs/x/manifest.json" in str(caught.value)


@pytest.mark.parametrize(
    "changed",
    [
        RunConfig(name="test", seed=6),
        RunConfig(name="test", seed=5, game=GameConfig(name="kuhn")),
        RunConfig(name="test", seed=5, game=GameConfig(options={"players": "2"})),
    ],
)
def test_resume_with_another_game_or_seed_is_refused_by_name(changed: RunConfig) -> None:
    manifest = some_manifest()
    before = encode(manifest)
    with pytest.raises(ResumeError, match="may not change game, network, seed"):
        apply_config(manifest, changed)
    assert encode(manifest) == before


def test_other_changes_are_applied_and_recorded() -> None:
    manifest = some_manifest()
    config = RunConfig(name="test", seed=5, learner=LearnerConfig(learning_rate=0.5))
    changes = apply_config(manifest, config)
    assert changes == {"learner.learning_rate": ("0.001", "0.5")}
    assert manifest.config == config
    assert [change.changes for change in manifest.config_changes] == [changes]
    assert apply_config(manifest, config) == {}
    assert len(manifest.config_changes) == 1


def test_missing_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResumeError, match=r"no run at .*nowhere"):
        RunDirectory(tmp_path / "nowhere").load()


def test_truncated_changed_and_missing_snapshots_are_named(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    directory.prepare()
    blob = directory.put_snapshot("learner", b"x" * 1000)
    path = tmp_path / "run" / blob.file
    assert directory.get(blob) == b"x" * 1000
    path.write_bytes(b"x" * 10)
    with pytest.raises(ResumeError, match=r"learner-.* truncated: 10 bytes of 1000"):
        directory.get(blob)
    path.write_bytes(b"y" * 1000)
    with pytest.raises(ResumeError, match="has hash"):
        directory.get(blob)
    path.unlink()
    with pytest.raises(ResumeError, match="is missing"):
        directory.get(blob)


def test_live_run_is_refused_by_name(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    directory.prepare()
    with directory.lock():
        assert directory.is_live()
        with pytest.raises(RunLockedError, match="is live in another process"):
            RunDirectory(tmp_path / "run").lock()
    assert not directory.is_live()


RUN = Path("/runs/r")


def update(directory: RunDirectory, manifest: Manifest) -> None:
    """What a new version and a snapshot do: blobs, manifest, pruning."""
    manifest.models = {1: directory.put_model(1, b"model one", 100)}
    manifest.learner = directory.put_snapshot("learner", b"second snapshot")
    manifest.newest, manifest.next_version = 1, 2
    directory.save(manifest)
    directory.prune(manifest)


def before_update() -> dict[Path, bytes]:
    files = MemoryFiles()
    directory, manifest = RunDirectory(RUN, files), some_manifest()
    manifest.models = {0: directory.put_model(0, b"model zero", 0)}
    manifest.learner = directory.put_snapshot("learner", b"first snapshot")
    manifest.newest, manifest.next_version = 0, 1
    directory.save(manifest)
    return files.survivors()[0]


def test_update_cut_at_every_instant_leaves_old_or_new_with_all_it_names() -> None:
    start = before_update()
    seen: list[int] = []
    for crash_at in range(100):
        files = MemoryFiles(start)
        directory = RunDirectory(RUN, files)
        manifest = directory.load()
        files.crash_at = crash_at
        try:
            update(directory, manifest)
        except PowerCut:
            pass
        else:
            break
        for disk in files.survivors():
            found = RunDirectory(RUN, MemoryFiles(disk))
            after = found.load()
            seen.append(after.newest)
            assert after.learner is not None
            expected = b"first snapshot" if after.newest == 0 else b"second snapshot"
            assert found.get(after.learner) == expected
            assert found.model(after, after.newest) == (b"model zero", b"model one")[after.newest]
    else:
        raise AssertionError("the update never finished")
    assert set(seen) == {0, 1}
    assert crash_at > 12


def test_pruning_removes_what_is_not_named(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run", Files())
    directory.prepare()
    manifest = some_manifest()
    manifest.models = {n: directory.put_model(n, b"%d" % n, n) for n in (0, 1)}
    directory.put_model(2, b"2", 2)
    manifest.learner = directory.put_snapshot("learner", b"new")
    directory.put_snapshot("learner", b"old")
    manifest.gate = directory.put_snapshot("gate", b"gate")
    stray = tmp_path / "run" / "models" / "notes.txt"
    stray.write_text("a user's own file stays")
    directory.save(manifest)
    directory.prune(manifest)
    models = directory.files.names(tmp_path / "run" / "models")
    assert models == ["notes.txt", "v000000.onnx", "v000001.onnx"]
    assert len(directory.files.names(tmp_path / "run" / "snapshots")) == 2
    with pytest.raises(ResumeError, match=r"version 2 .* kept are \[0, 1\]"):
        directory.model(manifest, 2)
