"""Which program made a run, where and how.

Behaviours checked:
* an invocation holds commit, version, hash of the sources, schemas, dependencies, machine, command
* a commit is called dirty exactly when a tracked file differs; what is no checkout has none
* the sources' hash changes with a byte of any source
* a manifest keeps the last invocations, the engine's hash on the last one
* ``status`` shows the last start; what a hostile manifest says cannot move the cursor
* ``status`` of a damaged run is one line that names the damage, exit code 2
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from deploy import cli, provenance
from deploy.config import RunConfig
from deploy.manifest import MAX_INVOCATIONS, decode, encode, new_manifest, record_engine, stamp
from deploy.provenance import Invocation, git_state, in_words, invocation, time_in_words
from deploy.schemas import SCHEMAS
from tests.fixtures.make import unpack


def test_an_invocation_names_program_and_machine() -> None:
    found = invocation(["cardleague", "train", "a b"])
    assert found.command == ["cardleague", "train", "a b"]
    assert len(found.sources) == 16
    assert found.schemas == SCHEMAS
    assert {"python", "numpy", "numba", "onnxruntime"} <= found.dependencies.keys()
    assert int(found.hardware["cpus"]) >= 1
    words = "\n".join(in_words(found))
    for part in (
        "'a b'",
        found.sources,
        found.hardware["node"],
        "numpy " + found.dependencies["numpy"],
    ):
        assert part in words


def test_a_checkout_is_dirty_when_a_tracked_file_differs(tmp_path: Path) -> None:
    assert git_state(tmp_path) == ("", False)

    def git(*arguments: str) -> None:
        names = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(tmp_path), *names, *arguments], check=True)

    git("init", "-q")
    (tmp_path / "one.py").write_text("1")
    git("add", "one.py")
    git("commit", "-q", "-m", "one")
    (tmp_path / "untracked").write_text("")
    commit, dirty = git_state(tmp_path)
    assert len(commit) == 40
    assert not dirty
    (tmp_path / "one.py").write_text("2")
    assert git_state(tmp_path) == (commit, True)


def test_sources_have_another_hash_when_a_byte_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hashed() -> str:
        provenance.source_hash.cache_clear()
        return provenance.source_hash()

    here = hashed()
    for room in provenance.ROOMS:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(provenance.ROOT / room, tmp_path / room, ignore=ignore)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    assert hashed() == here
    with open(tmp_path / "replay" / "marks.py", "a") as file:
        file.write(" ")
    assert hashed() != here
    provenance.source_hash.cache_clear()


def test_a_manifest_keeps_the_last_invocations() -> None:
    manifest = new_manifest(RunConfig(), ["first"])
    record_engine(manifest, "one")
    for number in range(MAX_INVOCATIONS):
        stamp(manifest, ["again", str(number)])
    record_engine(manifest, "two")
    assert len(manifest.invocations) == MAX_INVOCATIONS
    assert manifest.invocations[-1].command == ["again", str(MAX_INVOCATIONS - 1)]
    assert [found.engine_hash for found in manifest.invocations] == [
        *[""] * (MAX_INVOCATIONS - 1),
        "two",
    ]
    assert manifest.engine_hash == "two"
    assert manifest.schemas == SCHEMAS
    assert len(manifest.command_lines) == MAX_INVOCATIONS + 1
    assert len(encode(manifest)) < 100_000
    assert decode(encode(manifest), "here") == manifest


def test_words_of_a_hostile_manifest_are_harmless() -> None:
    found = Invocation(
        at=1e300,
        command=["\x1b[2J" * 1000],
        hardware={"node": "\x1b]0;x\x07", "memory_bytes": "²", "cpus": "\n"},
    )
    assert time_in_words(found.at) == time_in_words(float("nan")) == "?"
    for line in in_words(found):
        assert line.isprintable()
        assert len(line) <= 1000


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    return unpack(1, "inprocess", tmp_path / "runs")


def test_status_shows_the_last_start(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / "manifest.json"
    manifest = decode(path.read_bytes(), "here")
    stamp(manifest, ["cardleague", "resume", "x"])
    path.write_bytes(encode(manifest))
    assert cli.main(["status", "inprocess"]) == 0
    said = capsys.readouterr().out
    assert "command   cardleague resume x" in said
    assert f"sources {provenance.source_hash()}" in said
    assert cli.main(["status", "inprocess", "--json"]) == 0
    document = msgspec.json.decode(capsys.readouterr().out)
    assert document["invocations"][-1]["command"] == ["cardleague", "resume", "x"]
    assert document["seed"] == 5


@pytest.mark.parametrize("json", [False, True])
@pytest.mark.parametrize(
    "damage", ["truncated", "empty", "no model", "no snapshot", "cut", "status"]
)
def test_status_of_a_damaged_run_is_one_clear_line(
    run: Path, capsys: pytest.CaptureFixture[str], damage: str, json: bool
) -> None:
    manifest = run / "manifest.json"
    data = manifest.read_bytes()
    model, snapshot = next((run / "models").iterdir()), next((run / "snapshots").glob("learner-*"))
    named = manifest.name
    if damage == "truncated":
        manifest.write_bytes(data[: len(data) // 2])
    elif damage == "empty":
        manifest.write_bytes(b"")
    elif damage == "no model":
        model.unlink()
        named = f"{model.name} is missing"
    elif damage == "no snapshot":
        snapshot.unlink()
        named = f"{snapshot.name} is missing"
    elif damage == "cut":
        snapshot.write_bytes(snapshot.read_bytes()[:-1])
        named = snapshot.name
    else:
        (run / "status.json").write_bytes(b"[" * 100_000)
        named = "has no status"
    assert cli.main(["status", "inprocess", *(["--json"] if json else [])]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert named in printed.err
    assert printed.err.count("\n") == 1
