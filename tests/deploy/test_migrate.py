"""Copying a run forward, on the run of schema 1 that is checked in.

Behaviours checked:
* today's program goes on with the run of schema 1 in both runtimes, and trains on
* added fields do not raise a schema: a run that lacks them, or has more of them, is read
* a planted schema 0, in which a field of every part has another name, is copied to schema 1: every
  part byte for byte what it was, games in segments and in the bundled server included; the copy
  goes on exactly as the run would have
* the source is not touched
* killed at any file operation it leaves the whole copy or nothing that looks like a run
* a live run, today's, newer and unknown schemas, targets that exist, damage: refused by name
* what is told to resume an older run is told to migrate it
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deploy import cli, migration, schemas
from deploy.commands.runs import find_run
from deploy.evaluations import read_records
from deploy.files import Files
from deploy.local import LocalRuntime
from deploy.manifest import Manifest, ResumeError, blobs_of, decode
from deploy.migration import MigrateError, Step, chain, migrate
from deploy.rundir import RunDirectory
from replay.embedded import EmbeddedServer
from replay.redis_keys import RunKeys
from replay.redis_link import call, make_client
from replay.segments import SegmentStore
from tests.deploy.aged import STEP, age
from tests.deploy.waiting import ROOT
from tests.fixtures.make import unpack

STEPS = {0: STEP}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory; returns its folder of runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


def tree(folder: Path) -> dict[str, tuple[int, str]]:
    """Return time of change and contents of all files."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


def turns(run: Path, count: int) -> tuple[Manifest, list[bytes]]:
    """Go on with an in-process run; return its manifest and all its games."""
    directory = RunDirectory(run)
    runtime = LocalRuntime(directory, directory.load())
    for number in range(count):
        runtime.turn(boundary=number == count - 1)
    runtime.close()
    store = SegmentStore(directory.segments_path)
    games = [entry.payload for entry in store.entries("0-0")]
    store.close()
    return directory.load(), games


# --- the run of schema 1 --------------------------------------------------------------------------


def test_today_goes_on_with_the_run_of_schema_1(tmp_path: Path) -> None:
    run = unpack(1, "inprocess", tmp_path)
    before = RunDirectory(run).load()
    assert before.totals.games > 100
    assert before.newest >= 1
    after, games = turns(run, 60)
    assert after.totals.games == len(games) > before.totals.games
    assert after.step > before.step + 4
    assert after.newest > before.newest
    assert read_records(RunDirectory(run))[:1] != []


def test_a_schema_is_not_raised_by_fields_that_are_added() -> None:
    """The policy: what is added has a default, and what this program does not know it passes over.

    A field without a default, a removed option or a renamed field fails here: raise the schema in
    ``deploy.schemas``, make a fixture of the old one first, and add a step.
    """
    assert schemas.SCHEMAS["manifest"] == 1, "make tests/fixtures/run-schema-2 and a step"
    data = _fixture_manifest()
    document = msgspec.json.decode(data)
    assert "invocations" not in document  # written before that field was added
    assert "rejected" not in document["totals"]
    manifest = decode(data, "fixture/manifest.json")
    assert manifest.invocations == []
    assert manifest.totals.rejected == {}
    document["added_later"] = {"by": "a newer program"}
    document["totals"]["added_later"] = 3
    assert decode(msgspec.json.encode(document), "newer/manifest.json") == manifest


def _fixture_manifest() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return (unpack(1, "inprocess", Path(folder)) / "manifest.json").read_bytes()


def test_schemas_are_those_of_the_rooms() -> None:
    from actors import arena, selfplay
    from deploy import config, manifest
    from league import models
    from learner import checkpoint
    from replay import trajectory

    assert schemas.SCHEMAS == {
        "manifest": manifest.MANIFEST_SCHEMA,
        "config": config.CONFIG_SCHEMA,
        "trajectory": trajectory.SCHEMA_VERSION,
        "learner": checkpoint.SCHEMA,
        "gate": arena.SNAPSHOT_SCHEMA,
        "worker": selfplay.SNAPSHOT_SCHEMA,
        "model": models.METADATA_SCHEMA,
    }


# --- a planted older schema -----------------------------------------------------------------------


def test_migrated_run_is_what_it_was_and_goes_on_exactly(tmp_path: Path) -> None:
    kept, run = unpack(1, "inprocess", tmp_path / "kept"), unpack(1, "inprocess", tmp_path)
    age(run)
    before = tree(run)
    with pytest.raises(ResumeError, match=r"schema 0, this program reads 1.*cardleague migrate"):
        RunDirectory(run).load()
    copy = tmp_path / "copy"
    manifest = migrate(run, copy, steps=STEPS)
    assert tree(run) == before
    assert manifest.config.name == "copy"
    assert [(m.schema, m.source) for m in manifest.migrations] == [(0, str(run))]
    was = RunDirectory(kept).load()
    assert manifest == RunDirectory(copy).load()
    assert blobs_of(manifest) == blobs_of(was)  # all hashes: every blob is, byte for byte, the same
    RunDirectory(copy).check_named(manifest)
    assert read_records(RunDirectory(copy)) == read_records(RunDirectory(kept))
    assert sorted(p.name for p in copy.iterdir()) == sorted(
        [*(p.name for p in kept.iterdir()), "logs", "run.lock"]
    )
    (_, games), (_, others) = turns(copy, 12), turns(kept, 12)
    assert games == others
    assert len(games) > was.totals.games


def test_games_in_the_bundled_server_are_migrated(tmp_path: Path) -> None:
    run = unpack(1, "ray", tmp_path)
    run_id = RunDirectory(run).load().run_id
    was = stream_of(run, run_id)
    assert len(was["entries"]) > 20
    age(run)
    aged = stream_of(run, run_id)
    before = tree(run)
    manifest = migrate(run, tmp_path / "copy", steps=STEPS)
    assert tree(run) == before
    now = stream_of(tmp_path / "copy", run_id)
    assert now == was
    assert aged["entries"] != was["entries"]
    assert [cursor for cursor, _ in aged["entries"]] == [cursor for cursor, _ in was["entries"]]
    assert manifest.newest >= 0
    assert not (tmp_path / "copy" / "server" / "server.lock").exists()


def stream_of(run: Path, run_id: str) -> dict[str, Any]:
    """Return entries and books of the run's stream, read by a server on a copy of its files."""
    folder = run.parent / "looked-at"
    shutil.copytree(run / "server", folder)
    server = EmbeddedServer(folder)
    server.start()
    try:
        client, key = make_client(server.url), RunKeys(run_id).stream("0")
        reply = call(client, "XINFO", "STREAM", key)
        books = (b"length", b"last-generated-id", b"entries-added", b"max-deleted-entry-id")
        facts = dict(zip(reply[::2], reply[1::2], strict=True))
        found: dict[str, Any] = {name.decode(): facts[name] for name in books}
        found["entries"] = call(client, "XRANGE", key, "-", "+")
        client.close()
    finally:
        server.stop()
        shutil.rmtree(folder)
    return found


def test_killed_at_any_operation_it_leaves_a_whole_copy_or_nothing(runs: Path) -> None:
    age(unpack(1, "inprocess", runs))
    done = subprocess.run(
        [sys.executable, "-m", "tests.deploy.migrate_killed", "runs/inprocess", "runs/copy"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30
    assert RunDirectory(runs / "copy").load().migrations


def test_what_an_interrupted_one_left_is_cleared_away(runs: Path) -> None:
    run = unpack(1, "inprocess", runs)
    age(run)
    left = runs / ".copy.migrating"
    (left / "models").mkdir(parents=True)
    (left / "models" / "v000099.onnx").write_bytes(b"half")
    (left / "manifest.json").write_bytes((run / "manifest.json").read_bytes())
    with pytest.raises(Exception, match=r"there are: inprocess$"):
        find_run("copy")
    migrate(run, runs / "copy", steps=STEPS)
    assert not left.exists()
    assert not (runs / "copy" / "models" / "v000099.onnx").exists()


# --- what is refused ------------------------------------------------------------------------------


def test_chain_names_what_is_newer_unknown_or_today() -> None:
    steps = {2: Step(source=2), 3: Step(source=3)}
    assert [step.source for step in chain(2, 4, steps)] == [2, 3]
    for schema, named in (
        (4, "schema 4 is what this program reads: nothing to do"),
        (9, "schema 9 is of a newer program, this one knows schemas up to 4"),
        (1, "schema 1 is unknown; schemas that can be migrated: 2, 3"),
        (-1, "schema -1 is unknown"),
    ):
        with pytest.raises(MigrateError, match=re.escape(named)):
            chain(schema, 4, steps)


def refused(run: Path, target: Path, named: str) -> None:
    """Assert that the copy is refused by name, nothing was made, and the run is as it was."""
    before, beside = tree(run), sorted(os.listdir(run.parent))
    with pytest.raises(MigrateError, match=named):
        migrate(run, target, steps=STEPS)
    assert tree(run) == before
    assert sorted(os.listdir(run.parent)) == beside


def test_a_live_run_is_refused(runs: Path) -> None:
    run = unpack(1, "inprocess", runs)
    age(run)
    (run / "run.lock").touch()
    with Files().lock(run / "run.lock"):
        refused(run, runs / "copy", "is live in another process")
    (run / "server").mkdir()
    (run / "server" / "server.lock").touch()
    with Files().lock(run / "server" / "server.lock"):
        refused(run, runs / "copy", "is live in another process")


def test_targets_that_cannot_be_used_are_refused(runs: Path) -> None:
    run = unpack(1, "inprocess", runs)
    age(run)
    (runs / "there").mkdir()
    refused(run, runs / "there", "exists already")
    refused(run, run, "exists already")
    refused(run, run / "inside", "lies in the run itself")
    refused(run, runs / "no" / "where", "is no folder")
    refused(run, runs / "a@b", "cannot be a run's name")
    refused(run, runs / ".x.migrating", "cannot be a run's name")


def test_damage_is_refused_by_name(runs: Path) -> None:
    run = unpack(1, "inprocess", runs)
    age(run)
    model = next((run / "models").iterdir())
    whole = model.read_bytes()
    model.write_bytes(whole[:-1])
    refused(run, runs / "copy", rf"{model.name} is truncated")
    model.write_bytes(whole)
    document = msgspec.json.decode((run / "manifest.json").read_bytes())
    for key, value, named in (
        ("best", "x", "Expected `int`, got `str`"),
        ("schema_version", "0", "no schema_version"),
        ("learner", {"file": "../secret", "hash": "", "size": 1}, "names the file '../secret'"),
        ("sums", None, "totals"),
    ):
        changed = msgspec.json.encode(document | {key: value})
        (run / "manifest.json").write_bytes(changed)
        refused(run, runs / "copy", named)
    del document["best"]
    (run / "manifest.json").write_bytes(msgspec.json.encode(document))
    refused(run, runs / "copy", r"from schema 0: ValueError: no 'best'")


def test_games_on_a_server_of_its_own_are_not_left_behind_in_silence(runs: Path) -> None:
    run = unpack(1, "ray", runs)
    path = run / "manifest.json"
    document = msgspec.json.decode(path.read_bytes())
    document["config"]["replay"]["redis_url"] = "redis://far:6379/0"
    path.write_bytes(msgspec.json.encode(document))
    age_without_server = run / "server"
    shutil.rmtree(age_without_server)
    age(run)
    refused(run, runs / "copy", r"games lie on redis://far:6379/0")


def test_command_says_what_it_did_and_what_it_refuses(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = unpack(1, "inprocess", runs)
    assert cli.main(["migrate", "inprocess"]) == 2
    assert "schema 1 is what this program reads: nothing to do" in capsys.readouterr().err
    age(run)
    assert cli.main(["migrate", "inprocess"]) == 2
    assert "schema 0 is unknown; schemas that can be migrated: none" in capsys.readouterr().err
    for command in ("resume", "status"):
        assert cli.main([command, "inprocess"]) == 2
        assert "cardleague migrate runs/inprocess" in capsys.readouterr().err
    monkeypatch.setitem(migration.STEPS, 0, STEP)
    assert cli.main(["migrate", "inprocess"]) == 0
    said = capsys.readouterr().out
    assert "from schema 0 to 1" in said
    assert "cardleague resume" in said
    assert (runs / "inprocess-schema1" / "manifest.json").exists()
    assert cli.main(["status", "inprocess-schema1"]) == 0
    capsys.readouterr()
    assert cli.main(["migrate", "nowhere"]) == 2
    assert "'nowhere' does not exist" in capsys.readouterr().err
