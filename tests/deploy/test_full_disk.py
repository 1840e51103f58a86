"""A disk that takes no data for a while.

* A write that fails leaves nothing of itself behind, neither a part of a line nor a temporary file.
* Over Ray: nothing is announced that is not durable, workers pause, an alert says why, and what
  waited is done in order once there is room.
* In-process: writes wait and are reported; after a wish to stop they give up.
* The supervisor waits for room, says what to free, and ends when it is asked to.
* Segments keep in memory what they cannot write, and go on where they stopped.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy import patience
from deploy.evaluations import read_records
from deploy.files import Files
from deploy.manifest import new_manifest
from deploy.patience import NoRoomError, Patience, PatientFiles, Room, Steps
from deploy.rundir import RunDirectory
from deploy.tracker import GATE, SELFPLAY
from replay.disk import trouble_of
from replay.segments import SegmentStore, SegmentWriter
from tests.deploy.test_owner import (
    CONFIG,
    Clock,
    WatchedStore,
    World,
    end_gate,
    evaluated,
    learn,
    make_owner,
    measure,
)


class SmallDisk(Files):
    """Files on a disk that is full when a test says so."""

    def __init__(self) -> None:
        self.full = False

    def _write(self, path: Path, data: bytes) -> None:
        self._refuse()
        super()._write(path, data)

    def _append(self, path: Path, data: bytes) -> None:
        self._refuse()
        super()._append(path, data)

    def _refuse(self) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def half_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes ten bytes of every write and then no more."""
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if len(data) <= 10:
            return real(descriptor, data)
        if len(data) == 100:
            return real(descriptor, data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("replay.disk.os.write", write)


@pytest.mark.usefixtures("half_written")
def test_a_write_that_fails_leaves_nothing_of_itself_behind(tmp_path: Path) -> None:
    files, path = Files(), tmp_path / "file"
    files.append(path, b"0123456789")
    writes: list[Callable[[Path, bytes], None]] = [
        files.append,
        files.extend,
        files.write_atomic,
        files.replace,
    ]
    for write in writes:
        with pytest.raises(OSError, match="No space"):
            write(path, bytes(100))
        assert path.read_bytes() == b"0123456789"
        assert files.names(tmp_path) == ["file"]


# --- over Ray -------------------------------------------------------------------------------------


@pytest.fixture
def disk() -> SmallDisk:
    return SmallDisk()


@pytest.fixture
def world(tmp_path: Path, disk: SmallDisk) -> World:
    directory = RunDirectory(tmp_path / "run", disk)
    directory.prepare()
    directory.save(new_manifest(CONFIG, ["test"]))
    world = make_owner(directory, WatchedStore(directory), Clock())
    learn(world, b"zero")
    learn(world, b"one", snapshot=b"at one")
    return world


def is_paused(world: World) -> bool:
    request = world.owner.step_request(0)
    assert request is not None
    return request.paused


def test_nothing_is_announced_that_is_not_durable_and_all_is_done_later(
    world: World, disk: SmallDisk
) -> None:
    owner, before = world.owner, world.directory.load()
    disk.full = True
    assert learn(world, b"two", snapshot=b"at two", step=9)
    end_gate(world, 1, 0)
    assert measure(world, evaluated(1))
    owner.take_gate_snapshot(b"gate")
    assert not owner.publish()
    assert world.directory.load() == before
    assert (owner.league().newest, owner.league().champion) == (1, 0)
    assert world.store.versions() == [0, 1]
    assert is_paused(world)
    (alert,) = owner.tracker.refresh().alerts
    assert "No space left on device" in alert
    assert "workers are paused" in alert
    with pytest.raises(OSError, match="No space"):
        owner.start_actor(SELFPLAY, 0)

    disk.full = False
    assert not owner.settle(), "it is tried again once a second"
    world.clock.now += patience.RETRY_S
    assert owner.settle()
    manifest = world.directory.load()
    assert (manifest.newest, manifest.champion, manifest.step) == (2, 1, 9)
    assert manifest.learner is not None
    assert manifest.gate is not None
    assert world.directory.get(manifest.learner) == b"at two"
    assert (owner.league().newest, owner.league().champion) == (2, 1)
    assert world.store.get(2) == b"two"
    assert len(read_records(world.directory)) == 1
    assert not is_paused(world)
    assert owner.tracker.refresh().alerts == []
    log = owner.tracker.take_log()
    order = [next(i for i, line in enumerate(log) if word in line) for word in ("cannot", "again")]
    assert order == sorted(order)
    epoch = owner.start_actor(SELFPLAY, 0)
    assert world.directory.load().epoch == epoch
    assert world.directory.load().worker_restarts == 1


def test_a_start_that_cannot_be_recorded_pauses_the_run_until_it_can(
    world: World, disk: SmallDisk
) -> None:
    disk.full = True
    with pytest.raises(OSError, match="No space"):
        world.owner.start_actor(GATE, 0)
    assert is_paused(world)
    disk.full = False
    world.clock.now += patience.RETRY_S
    assert world.owner.settle()
    assert not is_paused(world)
    assert world.owner.manifest.worker_restarts == 0


def test_other_errors_are_not_waited_for() -> None:
    steps, done = Steps(), []
    steps.add(lambda: done.append(1), lambda: os.stat("/none/file"), lambda: done.append(2))
    with pytest.raises(FileNotFoundError):
        steps.run()
    assert done == [1]


# --- the supervisor -------------------------------------------------------------------------------


class Waits:
    """Signals that nobody sends, or that come with the third wait."""

    def __init__(self, stops_at: int = 10**9) -> None:
        self.num_waits, self._stops_at = 0, stops_at

    @property
    def stopping(self) -> bool:
        return self.num_waits >= self._stops_at

    def wait(self, timeout_s: float) -> None:
        self.num_waits += 1


def full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_needs_room_is_done_again_once_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, said, tries = Waits(), list[str](), [0]
    monkeypatch.setattr(
        patience, "trouble_of", lambda folder: full() if waits.num_waits < 5 else None
    )

    def operation() -> int:
        tries[0] += 1
        if waits.num_waits < 5:
            raise full()
        return 7

    room = Room(tmp_path, waits, said.append)
    assert room.patiently(operation) == 7
    assert (tries[0], waits.num_waits) == (2, 5)
    assert said == [
        f"{tmp_path} takes no data (No space left on device): free space on its disk; the run goes "
        "on by itself once there is room"
    ]
    with pytest.raises(PermissionError):
        room.patiently(lambda: (_ for _ in ()).throw(PermissionError(errno.EACCES, "no")))


def test_waiting_for_room_ends_with_the_wish_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "trouble_of", lambda folder: full())
    with pytest.raises(NoRoomError, match=r"as of its manifest.*free space on its disk"):
        Room(tmp_path, Waits(stops_at=3), lambda words: None).wait(full())


def test_trouble_of_a_disk_is_found_by_trying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trouble_of(tmp_path / "not" / "there") is None
    assert list(tmp_path.iterdir()) == []

    def refuse(descriptor: int) -> None:
        raise full()

    monkeypatch.setattr("replay.disk.os.fsync", refuse)
    found = trouble_of(tmp_path)
    assert found is not None
    assert found.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


# --- in-process -----------------------------------------------------------------------------------


def test_writes_wait_for_room_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "RETRY_S", 0.001)
    stopping, said = threading.Event(), list[str]()
    waiting = Patience(stopping)
    files = PatientFiles(waiting)
    real, left = Files._write, [3]

    def write(self: Files, path: Path, data: bytes) -> None:
        if left[0]:
            left[0] -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(self, path, data)

    monkeypatch.setattr(Files, "_write", write)
    waiting.report = said.append
    files.write_atomic(tmp_path / "file", b"data")
    assert (tmp_path / "file").read_bytes() == b"data"
    assert len(said) == 4
    assert all("No space" in words for words in said[:3])
    assert said[3] == ""
    left[0] = 1
    with pytest.raises(OSError, match="No space"):
        files.replace(tmp_path / "status", b"data")  # a screen does not wait
    left[0] = 10**9
    stopping.set()
    monkeypatch.setattr(patience, "LAST_TRIES_S", 0.05)
    with pytest.raises(OSError, match="No space"):
        files.write_atomic(tmp_path / "file", b"newer")
    assert (tmp_path / "file").read_bytes() == b"data"


def test_segments_keep_what_cannot_be_written_and_go_on(tmp_path: Path) -> None:
    disk = SmallDisk()
    store = SegmentStore(tmp_path / "segments", segment_bytes=200, disk=disk)
    writer = SegmentWriter(store, "w")
    for number in range(1, 31):
        disk.full = number % 5 in (2, 3)
        writer.append(b"payload %d" % number)
        if disk.full:
            with pytest.raises(OSError, match="No space"):
                writer.poll(0.0)
        else:
            writer.poll(0.0)
    assert (writer.num_pending, writer.num_accepted) == (0, 30)
    again = SegmentStore(tmp_path / "segments")
    assert [e.payload for e in again.entries("0-0")] == [b"payload %d" % n for n in range(1, 31)]
    assert [e.sequence for e in again.entries("0-0")] == list(range(1, 31))
    assert len(disk.names(tmp_path / "segments")) > 4
