"""Marks of processes: pid, start time and boot.

Behaviours checked:
* a mark finds its process, and none with another start time or of another machine
* a book that came from another machine, or from another folder, ends nobody; one of an earlier
  version, which does not say where it was written, does
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from deploy.processes import ProcessBook, ProcessMark, find, mark
from replay.launch_server import boot_id, start_token


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    )
    yield child
    child.kill()
    child.communicate()


def marked(child: subprocess.Popen[bytes]) -> ProcessMark:
    found = mark(child.pid)
    assert found is not None
    return found


def test_mark_finds_its_process_alone(child: subprocess.Popen[bytes]) -> None:
    mine = marked(child)
    assert mine.boot == boot_id() != ""
    found = find(mine)
    assert found is not None
    assert found.pid == child.pid
    assert find(msgspec.structs.replace(mine, started=mine.started + 1)) is None
    assert find(msgspec.structs.replace(mine, boot="another-machine")) is None
    assert boot_id() in start_token(child.pid)


def test_book_of_another_machine_ends_nobody(
    child: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    book = ProcessBook(tmp_path / "processes.json")
    book.write([msgspec.structs.replace(marked(child), boot="another-machine")])
    assert book.end_all(0.1) == []
    assert child.poll() is None
    assert book.read() == []


def test_book_of_a_copied_folder_ends_nobody_and_that_of_a_moved_one_does(
    child: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    original, copy, moved = (tmp_path / name for name in ("original", "copy", "moved"))
    original.mkdir()
    ProcessBook(original / "processes.json").write([marked(child)])
    shutil.copytree(original, copy)
    assert ProcessBook(copy / "processes.json").end_all(0.1) == []
    assert child.poll() is None
    original.rename(moved)
    ended = ProcessBook(moved / "processes.json").end_all(5.0)
    assert [gone.pid for gone in ended] == [child.pid]


def test_book_of_an_earlier_version_counts_wherever_it_lies(
    child: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    book, found = ProcessBook(tmp_path / "processes.json"), marked(child)
    text = json.dumps([{"pid": found.pid, "started": found.started, "name": found.name}])
    (tmp_path / "processes.json").write_text(text)
    assert [ended.pid for ended in book.end_all(5.0)] == [child.pid]
    assert child.wait(10) != 0
