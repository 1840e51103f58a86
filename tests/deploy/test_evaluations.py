"""``evaluations.jsonl``: every record once, whatever is killed when.

* what was added is there for the next reader; the same block again is refused
* a torn last line is passed over by readers and cut off by the next writer
* cut at every instant of an append, the file holds old records or old and new, and can be written
* anything else that is no record is refused by file and line
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from deploy.evaluations import EvaluationLog, read_records, record_of
from deploy.files import MemoryFiles, PowerCut
from deploy.manifest import BlobRef, ModelRecord, ResumeError, new_manifest
from deploy.presets import load
from deploy.rundir import RunDirectory
from league.messages import EvaluationResult
from tests.deploy.statuses import evaluation

FOLDER = Path("/run")


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def test_records_are_there_for_the_next_reader_each_once(directory: RunDirectory) -> None:
    assert read_records(directory) == []
    log = EvaluationLog(directory)
    first, second = evaluation(1), evaluation(2)
    assert log.add(first)
    assert log.add(second)
    assert not log.add(msgspec.structs.replace(first, time="later"))
    again = EvaluationLog(directory)
    assert again.records == read_records(directory) == [first, second]
    assert not again.add(second)
    others = [
        msgspec.structs.replace(first, simulations=128),
        msgspec.structs.replace(first, opponent="ismcts:2000"),
        msgspec.structs.replace(first, kind="closing"),
        msgspec.structs.replace(first, kind="closing", games=2000),
        msgspec.structs.replace(first, seed=18),
    ]
    assert all(again.add(record) for record in others)
    assert len(directory.evaluations_path.read_bytes().splitlines()) == 7


@pytest.mark.parametrize("tail", [b'{"kind":"sched', b"\x00\x00\x00", b'{"kind":"sched\n'])
def test_torn_last_line_is_passed_over_and_cut(directory: RunDirectory, tail: bytes) -> None:
    EvaluationLog(directory).add(evaluation(1))
    whole = directory.evaluations_path.read_bytes()
    directory.evaluations_path.write_bytes(whole + tail)
    assert read_records(directory) == [evaluation(1)]
    assert directory.evaluations_path.read_bytes() == whole + tail, "a reader changes nothing"
    log = EvaluationLog(directory)
    assert directory.evaluations_path.read_bytes() == whole
    log.add(evaluation(2))
    assert read_records(directory) == [evaluation(1), evaluation(2)]


def test_append_cut_at_every_instant_leaves_a_file_that_goes_on() -> None:
    files = MemoryFiles()
    EvaluationLog(RunDirectory(FOLDER, files)).add(evaluation(1))
    before = files.survivors()[0]
    seen = set()
    for crash_at in range(20):
        files = MemoryFiles(before)
        log = EvaluationLog(RunDirectory(FOLDER, files))
        files.crash_at = crash_at
        try:
            log.add(evaluation(2))
        except PowerCut:
            disks = files.survivors()
        else:
            assert all(len(disk) == 1 for disk in files.survivors())
            break
        for disk in disks:
            after = RunDirectory(FOLDER, MemoryFiles(disk))
            found = EvaluationLog(after)
            seen.add(len(found.records))
            found.add(evaluation(2))
            found.add(evaluation(3))
            assert read_records(after) == [evaluation(1), evaluation(2), evaluation(3)]
    assert seen == {1, 2}


def test_anything_else_that_is_no_record_is_refused_by_line(directory: RunDirectory) -> None:
    log = EvaluationLog(directory)
    log.add(evaluation(1))
    with directory.evaluations_path.open("ab") as file:
        file.write(b"hello\n")
    log.add(evaluation(2))
    with pytest.raises(ResumeError, match=r"evaluations\.jsonl, line 2: not an evaluation"):
        read_records(directory)


def test_a_record_says_where_its_version_stood() -> None:
    manifest = new_manifest(load("kuhn-smoke", environment={}), ["test"])
    blob = BlobRef(file="models/v000009.onnx", hash="", size=0)
    manifest.models[9] = ModelRecord(blob=blob, step=70, games=5, examples=60, elapsed_s=8.5)
    fields = msgspec.structs.asdict(evaluation(9))
    result = EvaluationResult(**{name: fields[name] for name in EvaluationResult.__struct_fields__})
    record = record_of(manifest, result)
    assert (record.kind, record.win_rate, record.own) == ("scheduled", 0.685, result.own)
    stood = (record.step, record.generated_games, record.examples, record.elapsed_s)
    assert stood == (70, 5, 60, 8.5)
    assert record.time.endswith("+00:00")
    unknown = record_of(manifest, msgspec.structs.replace(result, version=3), is_closing=True)
    assert (unknown.kind, unknown.step, unknown.elapsed_s) == ("closing", -1, -1.0)
