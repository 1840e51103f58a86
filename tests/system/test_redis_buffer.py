"""Behaviours of the Redis streams on a real server.

* accepted once, ingested once: the disk confirms late, a write is sent again, the server is killed
* the writer: bounded outbox, order, all or nothing, back after refusals, never blocked for ever
* the reader: resumes, notices a flush and an old backup, rebuilds, trims
* the owner: server check, lease, budget, two runs on one server
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from replay.buffer import OutboxFull, ReaderState, TrajectoryReader
from replay.codec import encode
from replay.config import ReplayConfig
from replay.embedded import EmbeddedServer
from replay.lease import LeaseHeld, hold_lease, read_lease, release_lease, wait_for_lease
from replay.marks import cursor_key
from replay.redis_admin import StreamMeter, check_server, stream_stats, trim
from replay.redis_buffer import Backoff, RedisWriter
from replay.redis_keys import PAYLOAD, PRODUCER, SEQUENCE, RunKeys
from replay.redis_link import (
    StoreRefused,
    StoreUnreachable,
    call,
    connect,
    make_client,
    redacted,
)
from replay.redis_reader import RedisReader
from tests.replay.games import make_trajectory
from tests.replay.test_streams import assert_same_windows, ingest_all, new_split, rebuilt_from

pytestmark = pytest.mark.system

QUICK = ReplayConfig(waitaof_timeout_s=0.2, socket_timeout_s=2.0)
RUN = RunKeys("run")


def until(condition: Callable[[], object], timeout_s: float = 20.0) -> None:
    """Wait for ``condition``; fail after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        pause.wait(0.01)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(tmp_path_factory.mktemp("server"), maxmemory_mb=64)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def client(shared: EmbeddedServer) -> Iterator[Any]:
    client = connect(shared.url)
    yield client
    call(client, "CONFIG", "SET", "appendfsync", "everysec")
    call(client, "CONFIG", "SET", "maxmemory", "64mb")
    call(client, "FLUSHALL")
    client.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server that the test may kill."""
    server = EmbeddedServer(tmp_path / "server", maxmemory_mb=64)
    server.start()
    yield server
    server.stop()


class Ends:
    """Makes writers and readers of one run and closes them all."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server
        self._made: list[RedisWriter | RedisReader] = []

    def writer(self, producer: str = "w", run: str = "run", **options: Any) -> RedisWriter:
        options = {"config": QUICK, **options}
        writer = RedisWriter(self.server.url, run, producer, **options)
        self._made.append(writer)
        return writer

    def reader(self, state: ReaderState | None = None, run: str = "run") -> RedisReader:
        reader = RedisReader(self.server.url, run, state=state, config=QUICK)
        self._made.append(reader)
        return reader

    def close(self) -> None:
        for made in self._made:
            made.close()


@pytest.fixture
def ends(shared: EmbeddedServer, client: Any) -> Iterator[Ends]:
    made = Ends(shared)
    yield made
    made.close()


@pytest.fixture
def own_ends(own: EmbeddedServer) -> Iterator[Ends]:
    made = Ends(own)
    yield made
    made.close()


def queue(writer: RedisWriter, first: int, last: int) -> None:
    for number in range(first, last + 1):
        writer.append(b"payload %d" % number)


def write(writer: RedisWriter, first: int, last: int) -> None:
    """Queue and see to it that everything is accepted."""
    queue(writer, first, last)
    drain(writer)


def drain(writer: RedisWriter, timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while writer.num_pending:
        assert time.monotonic() < deadline, writer.last_error
        writer.poll(0.5)


def read_all(reader: TrajectoryReader) -> list[int]:
    numbers: list[int] = []
    while entries := reader.read(7, 0.0):
        numbers += [int(entry.payload.split()[1]) for entry in entries]
    return numbers


def read_until(reader: TrajectoryReader, last: int) -> list[int]:
    """Read on over a lost connection until the entry ``last``."""
    numbers: list[int] = []

    def read_last() -> bool:
        numbers.extend(read_all(reader))
        return bool(numbers) and numbers[-1] == last

    until(read_last)
    return numbers


def copied(state: ReaderState) -> ReaderState:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=ReaderState)


# --- accepted once, ingested once -----------------------------------------------------------------


def test_accepted_entries_arrive_once_in_order(ends: Ends, client: Any) -> None:
    writer, reader = ends.writer(), ends.reader()
    write(writer, 1, 30)
    assert writer.num_accepted == 30
    assert read_all(reader) == list(range(1, 31))
    write(writer, 31, 33)
    assert read_all(reader) == [31, 32, 33]
    assert reader.state.num_lost == writer.num_resent == 0
    assert reader.lag_s() == 0.0
    assert call(client, "XLEN", RUN.stream("0")) == 33


def test_late_confirmation_accepts_late_and_sends_nothing_again(ends: Ends, client: Any) -> None:
    call(client, "CONFIG", "SET", "appendfsync", "no")
    writer, reader = ends.writer(), ends.reader()
    queue(writer, 1, 5)
    until(lambda: writer.poll(0.1) == 0 and "no confirmation" in writer.last_error)
    # They can be read and are not accepted; confirmation is asked for more than once.
    assert read_all(reader) == [1, 2, 3, 4, 5]
    queue(writer, 6, 8)
    until(lambda: writer.poll(0.1) == 0 and call(client, "XLEN", RUN.stream("0")) == 8)
    assert (writer.num_pending, writer.num_accepted) == (8, 0)
    call(client, "CONFIG", "SET", "appendfsync", "everysec")
    drain(writer)
    assert writer.num_accepted == 8
    assert call(client, "XLEN", RUN.stream("0")) == 8
    assert read_all(reader) == [6, 7, 8]
    assert writer.num_resent == reader.state.num_lost == 0


def test_a_write_sent_again_is_ingested_once(ends: Ends, client: Any) -> None:
    call(client, "CONFIG", "SET", "appendfsync", "no")
    writer, reader = ends.writer(), ends.reader()
    queue(writer, 1, 4)
    until(lambda: writer.poll(0.05) == 0 and call(client, "XLEN", RUN.stream("0")) == 4)
    call(client, "CLIENT", "KILL", "TYPE", "normal")
    call(client, "CONFIG", "SET", "appendfsync", "everysec")
    queue(writer, 5, 6)
    drain(writer)
    assert writer.num_resent == 4
    assert call(client, "XLEN", RUN.stream("0")) == 10
    assert read_all(reader) == [1, 2, 3, 4, 5, 6]
    assert reader.state.num_lost == 0


def test_killed_server_loses_no_accepted_entry(own_ends: Ends) -> None:
    """Killed five times in mid-write; what is accepted is there, and everything arrives once."""
    server = own_ends.server
    writer, reader = own_ends.writer(max_pending=10_000), own_ends.reader()
    read: list[int] = []
    number = 0
    for life in range(5):
        goal = writer.num_accepted + 20
        while writer.num_accepted < goal:
            number += 1
            writer.append(b"payload %d" % number)
            writer.poll(0.002)
        if life % 2:  # in every other life the reader sees them only after the restart
            read += read_all(reader)
        accepted = writer.num_accepted
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: not server.alive())
        assert server.ensure()
        check = own_ends.reader()
        assert read_all(check) == list(
            range(1, len(check.state.marks) and check.state.marks["w"] + 1)
        )
        assert check.state.marks["w"] >= accepted
    drain(writer)

    def read_all_of_them() -> bool:
        read.extend(read_all(reader))
        return len(read) >= number

    until(read_all_of_them)
    assert read == list(range(1, number + 1))
    assert writer.num_accepted == number
    assert reader.state.num_lost == 0


# --- writer ---------------------------------------------------------------------------------------


def test_outbox_is_bounded_while_the_server_is_away_and_nothing_blocks(tmp_path: Path) -> None:
    writer = RedisWriter(f"unix://{tmp_path}/nobody", "run", "w", config=QUICK, max_pending=3)
    queue(writer, 1, 3)
    with pytest.raises(OutboxFull, match="3 trajectories wait"):
        writer.append(b"payload 4")
    start = time.monotonic()
    assert writer.poll(0.3) == 0
    assert 0.25 < time.monotonic() - start < 3.0
    assert "nobody" in writer.last_error
    assert writer.num_pending == 3
    writer.close()


def test_server_that_accepts_and_never_answers_does_not_block_for_ever(tmp_path: Path) -> None:
    path = str(tmp_path / "deaf")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        config = ReplayConfig(socket_timeout_s=1.0, waitaof_timeout_s=0.2)
        writer = RedisWriter(f"unix://{path}", "run", "w", config=config)
        reader = RedisReader(f"unix://{path}", "run", config=config)
        queue(writer, 1, 2)
        start = time.monotonic()
        writer.poll(1.5)
        assert reader.read(5, 1.0) == []
        assert time.monotonic() - start < 8.0
        assert writer.num_pending == 2
        assert writer.last_error
        assert reader.last_error
        writer.close()
        reader.close()


def test_full_server_takes_all_or_nothing_and_later_the_rest(ends: Ends, client: Any) -> None:
    writer, reader = ends.writer(), ends.reader()
    write(writer, 1, 2)
    assert read_all(reader) == [1, 2]
    call(client, "CONFIG", "SET", "maxmemory", "1mb")
    queue(writer, 3, 9)
    until(lambda: writer.poll(0.05) == 0 and writer.last_error)
    assert "maxmemory" in writer.last_error
    assert call(client, "XLEN", RUN.stream("0")) == 2
    # At its limit the server still trims and is read.
    assert trim(client, RUN, {"0": reader.state.cursors["0"]}) == 1
    assert reader.read(5, 0.0) == []
    call(client, "CONFIG", "SET", "maxmemory", "64mb")
    drain(writer)
    assert read_all(reader) == list(range(3, 10))
    assert reader.state.num_lost == 0


def test_large_outbox_goes_out_in_bounded_transactions(ends: Ends, client: Any) -> None:
    config = msgspec.structs.replace(QUICK, max_batch_mb=1)
    writer, reader = ends.writer(config=config), ends.reader()
    for number in range(1, 31):
        writer.append(b"payload %d " % number + bytes(200_000))
    writer.append(b"payload 31 " + bytes(3_000_000))  # larger than a batch: goes alone
    drain(writer)
    assert read_all(reader) == list(range(1, 32))


def test_polling_without_waiting_gets_there_too(ends: Ends) -> None:
    writer, reader = ends.writer(), ends.reader()
    queue(writer, 1, 10)
    until(lambda: writer.poll(0.0) and not writer.num_pending)
    assert read_all(reader) == list(range(1, 11))


@pytest.mark.parametrize("option", ["appendfsync", "appendonly"])
def test_volatile_mode_takes_a_server_that_cannot_confirm(
    ends: Ends, client: Any, option: str
) -> None:
    call(client, "CONFIG", "SET", option, "no")
    try:
        strict, reader = ends.writer("strict"), ends.reader()
        queue(strict, 1, 1)
        until(lambda: strict.poll(0.05) == 0 and strict.last_error)
        assert strict.num_pending == 1
        config = msgspec.structs.replace(QUICK, accept_volatile=True)
        writer = ends.writer(config=config)
        write(writer, 1, 5)
        assert writer.num_accepted == 5
        entries = reader.read(10, 0.0)
        assert [e.sequence for e in entries if e.producer == "w"] == [1, 2, 3, 4, 5]
    finally:
        call(client, "CONFIG", "SET", "appendonly", "yes")
        until(lambda: call(client, "INFO", "persistence")["aof_rewrite_in_progress"] == 0)


def test_wrong_password_is_an_error_and_not_a_retry(ends: Ends, client: Any) -> None:
    call(client, "CONFIG", "SET", "requirepass", "secret")
    try:
        writer, reader = ends.writer(password="wrong"), ends.reader()
        queue(writer, 1, 1)
        with pytest.raises(StoreRefused):
            writer.poll(1.0)
        with pytest.raises(StoreRefused):
            reader.read(1, 1.0)
    finally:
        call(client, "CONFIG", "SET", "requirepass", "")


# --- reader ---------------------------------------------------------------------------------------


def test_reader_resumes_from_every_cursor(ends: Ends) -> None:
    writer, reader = ends.writer(), ends.reader()
    write(writer, 1, 12)
    states = [copied(reader.state)]
    while reader.read(4, 0.0):
        states.append(copied(reader.state))
    assert len(states) == 4
    for index, state in enumerate(states):
        assert read_all(ends.reader(state)) == list(range(4 * index + 1, 13))


def test_waiting_reader_is_woken_by_an_entry(ends: Ends, client: Any) -> None:
    writer, reader = ends.writer(), ends.reader()
    timer = threading.Thread(target=lambda: write(writer, 1, 1))
    start = time.monotonic()
    timer.start()
    entries = reader.read(5, 10.0)
    assert [entry.sequence for entry in entries] == [1]
    assert time.monotonic() - start < 5.0
    timer.join()
    start = time.monotonic()
    # Longer than the socket's time limit of 2 s: silence must not look like a dead server.
    connections = call(client, "INFO", "stats")["total_connections_received"]
    assert reader.read(5, 2.5) == []
    assert time.monotonic() - start >= 2.5
    assert reader.last_error == ""
    assert call(client, "INFO", "stats")["total_connections_received"] == connections


def test_flush_is_noticed_and_its_losses_counted(ends: Ends, client: Any) -> None:
    writer, reader = ends.writer(), ends.reader()
    write(writer, 1, 4)
    assert read_all(reader) == [1, 2, 3, 4]
    lineage = reader.state.lineage
    write(writer, 5, 7)
    call(client, "FLUSHALL")
    write(writer, 8, 9)
    until(lambda: reader.state.marks["w"] == 9 or read_all(reader))
    assert reader.state.num_lost == 3
    until(lambda: reader.read(5, 0.0) == [] and reader.state.lineage != lineage)
    write(writer, 10, 10)
    assert read_all(reader) == [10]
    assert reader.state.num_lost == 3


def test_old_backup_is_read_from_the_start_and_repeats_are_dropped(own_ends: Ends) -> None:
    server = own_ends.server
    writer, reader = own_ends.writer(), own_ends.reader()
    write(writer, 1, 5)
    assert read_all(reader) == [1, 2, 3, 4, 5]
    data = server.directory / "appendonlydir"
    server.stop()
    shutil.copytree(data, server.directory / "backup")
    server.start()
    write(writer, 6, 9)
    assert read_until(reader, 9) == [6, 7, 8, 9]
    saved = copied(reader.state)
    server.stop()
    shutil.rmtree(data)
    shutil.copytree(server.directory / "backup", data)
    server.start()
    # A clock that was set back gives new entries ids below the cursor: they must not be missed.
    with connect(server.url) as client:
        end = call(client, "XREVRANGE", RUN.stream("0"), "+", "-", "COUNT", 1)[0][0].decode()
        low = f"{cursor_key(end)[0]}-{cursor_key(end)[1] + 1}"
        assert cursor_key(low) < cursor_key(saved.cursors["0"])
        fields = (PRODUCER, b"other", SEQUENCE, 1, PAYLOAD, b"payload 100")
        call(client, "XADD", RUN.stream("0"), low, *fields)
    resumed = own_ends.reader(saved)
    assert read_all(resumed) == [100]
    write(writer, 10, 11)
    assert read_all(resumed) == [10, 11]
    assert resumed.state.lineage == reader.state.lineage


def test_window_is_rebuilt_bit_for_bit_and_trimming_keeps_it(ends: Ends, client: Any) -> None:
    writer, reader, split = ends.writer(), ends.reader(), new_split()
    for seed in range(80):
        writer.append(encode(make_trajectory(seed, num_eligible=seed % 5, num_values=seed % 3)))
    drain(writer)
    ingest_all(reader, split)
    split.describe(reader.state)
    saved = copied(reader.state)
    assert_same_windows(split, rebuilt_from(ends.reader(copied(saved))))
    removed = trim(client, RUN, saved.window_edge)
    assert removed == 80 - saved.window_entries["0"] > 0
    resumed = ends.reader(copied(saved))
    assert_same_windows(split, rebuilt_from(resumed))
    assert resumed.state == saved
    call(client, "FLUSHALL")
    resumed = ends.reader(copied(saved))
    assert list(resumed.rebuild()) == []
    assert resumed.state.num_lost == saved.window_entries["0"]


def test_state_that_takes_the_place_of_another_is_compared_too(ends: Ends, client: Any) -> None:
    writer, reader = ends.writer(), ends.reader()
    write(writer, 1, 3)
    assert read_all(reader) == [1, 2, 3]
    saved = copied(reader.state)
    call(client, "FLUSHALL")
    other = ends.reader()
    assert other.read(1, 0.0) == []
    other.state = saved
    assert list(other.rebuild()) == []
    assert other.state.cursors == {"0": "0-0"}


def test_two_runs_on_one_server_do_not_meet(ends: Ends, client: Any) -> None:
    one, other = ends.writer(run="one"), ends.writer(run="other")
    write(one, 1, 3)
    write(other, 11, 12)
    assert read_all(ends.reader(run="one")) == [1, 2, 3]
    assert read_all(ends.reader(run="other")) == [11, 12]
    assert trim(client, RunKeys("one"), {"0": f"{2**50}-0"}) == 3
    assert stream_stats(client, RunKeys("other"), ("0",), 0).num_entries == 2
    for name in ("", "a:b", "a{b}", "a b"):
        with pytest.raises(ValueError, match="run id"):
            RunKeys(name)


def test_shards_are_read_together_and_marked_apart(ends: Ends) -> None:
    for shard in ("0", "1"):
        write(ends.writer(f"w{shard}", shard=shard), 1, 6)
    reader = RedisReader(ends.server.url, "run", shards=("0", "1"), config=QUICK)
    entries = []
    while fresh := reader.read(4, 0.0):
        assert len(fresh) <= 4
        entries += fresh
    for shard in ("0", "1"):
        assert [e.sequence for e in entries if e.shard == shard] == [1, 2, 3, 4, 5, 6]
    assert set(reader.state.cursors) == {"0", "1"}
    reader.close()


def test_stray_entries_are_told_once_and_what_follows_is_read(ends: Ends, client: Any) -> None:
    writer, reader = ends.writer(), ends.reader()
    write(writer, 1, 2)
    stray = [
        ("some", "thing"),
        (PRODUCER, "w", SEQUENCE, "many", PAYLOAD, b""),
        (PRODUCER, "w", SEQUENCE, 10**40, PAYLOAD, b""),
        (PRODUCER, b"\xff", SEQUENCE, 3, PAYLOAD, b""),
        (PRODUCER, "w", SEQUENCE, 3),
    ]
    cursors = [call(client, "XADD", RUN.stream("0"), "*", *row).decode() for row in stray]
    write(writer, 3, 4)
    entries = reader.read(20, 0.0)
    assert [e.sequence for e in entries if not e.fault] == [1, 2, 3, 4]
    assert [e.cursor for e in entries if e.fault] == cursors
    assert "'some'" in next(e.fault for e in entries if e.fault)
    assert reader.state.marks == {"w": 4}
    # Read again from the start, as after an old backup: neither games nor strays count again.
    again = ReaderState(marks={"w": 4}, strays={"0": cursors[-1]})
    assert ends.reader(again).read(20, 0.0) == []
    assert reader.state.num_lost == again.num_lost == 0


# --- owner ----------------------------------------------------------------------------------------


def test_bundled_server_passes_the_check(client: Any) -> None:
    facts = check_server(client)
    assert facts.name == "valkey"
    assert facts.can_lose == ""
    assert facts.maxmemory == 64 << 20


def test_server_that_cannot_confirm_is_refused_unless_the_loss_is_accepted(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replay.redis_admin._CHECK_CONFIRMATION_MS", 100)
    call(client, "CONFIG", "SET", "appendfsync", "no")
    with pytest.raises(StoreRefused, match="--accept-volatile-redis"):
        check_server(client)
    assert "no confirmation" in check_server(client, accept_volatile=True).can_lose
    call(client, "CONFIG", "SET", "appendonly", "no")
    try:
        with pytest.raises(StoreRefused, match="appendonly is off"):
            check_server(client)
        assert "appendonly is off" in check_server(client, accept_volatile=True).can_lose
    finally:
        call(client, "CONFIG", "SET", "appendonly", "yes")
        until(lambda: call(client, "INFO", "persistence")["aof_rewrite_in_progress"] == 0)


def test_server_that_throws_keys_away_is_refused_by_its_policy(client: Any) -> None:
    call(client, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(StoreRefused, match="allkeys-lru"):
            check_server(client, accept_volatile=True)
    finally:
        call(client, "CONFIG", "SET", "maxmemory-policy", "noeviction")


def test_old_server_is_refused_by_its_version() -> None:
    class Old:
        def __init__(self, version: str) -> None:
            self.version = version

        def execute_command(self, *command: object) -> dict[str, str]:
            return {"redis_version": self.version, "aof_enabled": "1"}

    with pytest.raises(StoreRefused, match=r"redis 7\.0\.15: needed is .*--accept-volatile-redis"):
        check_server(Old("7.0.15"))
    with pytest.raises(StoreRefused, match=r"redis 6\.2\.14: needed is"):
        check_server(Old("6.2.14"), accept_volatile=True)


def test_lease_belongs_to_one_holder_and_its_newest_epoch(client: Any) -> None:
    hold_lease(client, RUN, "here", 3, 30.0)
    hold_lease(client, RUN, "here", 3, 30.0)
    with pytest.raises(LeaseHeld, match=r"'here' in epoch 3; this is 'there' in epoch 9"):
        hold_lease(client, RUN, "there", 9, 30.0)
    hold_lease(client, RUN, "here", 4, 30.0)
    with pytest.raises(LeaseHeld, match="epoch 4"):
        hold_lease(client, RUN, "here", 3, 30.0)
    assert not release_lease(client, RUN, "here", 3)
    assert release_lease(client, RUN, "here", 4)
    hold_lease(client, RUN, "there", 1, 0.05)
    until(lambda: call(client, "EXISTS", RUN.lease) == 0)
    hold_lease(client, RUN, "here", 5, 30.0)


def test_lease_of_a_dead_owner_is_waited_for_and_that_of_a_live_one_is_not(client: Any) -> None:
    told: list[str] = []

    def waiting(reason: str) -> bool:
        told.append(reason)
        return True

    wait_for_lease(client, RUN, "there", waiting)
    hold_lease(client, RUN, "here", 3, 1.0)
    wait_for_lease(client, RUN, "here", waiting)
    assert told == []
    began = time.monotonic()
    wait_for_lease(client, RUN, "there", waiting)
    assert 0.5 < time.monotonic() - began < 10
    held = f"run {RUN.run_id} on this server is held by 'here'"
    assert told[0] == f"{held}; unless it is live that ends in 1 s"
    assert set(told[1:]) == {""}

    def renewing(reason: str) -> bool:
        hold_lease(client, RUN, "here", 3, 30.0)
        return True

    hold_lease(client, RUN, "here", 3, 5.0)
    with pytest.raises(LeaseHeld, match="'here', which is live: stop it there; this is 'there'"):
        wait_for_lease(client, RUN, "there", renewing)
    with pytest.raises(LeaseHeld):
        wait_for_lease(client, RUN, "there", lambda reason: False)
    lease = read_lease(client, RUN)
    assert lease is not None
    assert (lease.holder, lease.epoch) == ("here", 3)
    assert 20 < lease.left_s <= 30


def test_budget_is_sixty_percent_of_the_memory(ends: Ends, client: Any) -> None:
    writer = ends.writer()
    for _ in range(40):
        writer.append(b"payload" + bytes(100_000))
    drain(writer)
    stats = stream_stats(client, RUN, ("0",), 64 << 20)
    assert stats.num_entries == 40
    assert stats.budget_bytes == int(0.6 * (64 << 20))
    assert 4_000_000 < stats.num_bytes < 8_000_000
    assert not stats.full
    assert stream_stats(client, RUN, ("0",), 5 << 20).full
    assert not stream_stats(client, RUN, ("0",), 0).full
    assert "replay.maxmemory_mb" in stats.explain(600_000)


def test_the_size_of_uneven_entries_is_no_guess(ends: Ends, client: Any) -> None:
    """Short games at first and long ones later, as when players improve."""

    def used() -> int:
        return int(call(client, "INFO", "memory")["used_memory"])

    writer = ends.writer()
    before = used()
    for number in range(600):
        writer.append(b"payload" + os.urandom(200 if number < 500 else 60_000))
        if number % 50 == 49:
            drain(writer)
    grown = used() - before
    stats = stream_stats(client, RUN, ("0",), 64 << 20)
    assert stats.num_bytes == pytest.approx(grown, rel=0.25)
    assert stats.num_bytes > 100 * 60_000
    meter = StreamMeter(RUN, ("0",))
    assert meter.measure(client, 64 << 20).num_bytes == stats.num_bytes
    # What the server guesses from a few of the oldest is far off: the budget would be overrun.
    assert int(call(client, "MEMORY", "USAGE", RUN.stream("0"))) < 0.5 * stats.num_bytes


def test_hundreds_of_writers_that_lost_one_server_come_back_spread_out() -> None:
    waits = []
    for _ in range(300):
        backoff = Backoff()
        for _ in range(12):
            backoff.failed()
        waits.append(backoff.wait_s())
        backoff.succeeded()
        assert backoff.wait_s() == 0.0
    assert min(waits) > 0.9
    assert max(waits) <= 2.0
    busiest = max(sum(t <= wait < t + 0.1 for wait in waits) for t in waits)
    assert busiest < 100  # of 300; in step it would be all of them


def test_connecting_answers_or_fails_clearly_within_five_seconds(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(StoreUnreachable, match=r"127\.0\.0\.1"):
        connect("redis://:secret@127.0.0.1:1/0")
    with pytest.raises(StoreRefused, match="gopher"):
        connect("gopher://nowhere")
    assert time.monotonic() - start < 5.0
    path = str(tmp_path / "deaf")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        start = time.monotonic()
        with pytest.raises(StoreUnreachable, match="deaf"):
            connect(f"unix://{path}", config=ReplayConfig(socket_timeout_s=60.0))
        assert time.monotonic() - start < 6.0


def test_passwords_are_not_shown() -> None:
    assert redacted("redis://user:secret@host:6379/0") == "redis://user:***@host:6379/0"
    assert redacted("redis://host:6379/0") == "redis://host:6379/0"
    with pytest.raises(StoreUnreachable) as caught:
        connect("redis://:secret@127.0.0.1:1/0")
    assert "secret" not in str(caught.value)


class Cutter:
    """Answers everything with OK but XADD: those it counts, and cuts the connection."""

    def __init__(self, path: str) -> None:
        self.num_writes = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            peer, _ = self._listener.accept()
            with peer:
                while data := peer.recv(1 << 16):
                    if b"STOP" in data:
                        return
                    if b"XADD" in data:
                        self.num_writes += 1
                        break
                    peer.sendall(b"+OK\r\n" * max(1, data.count(b"*")))

    def close(self, path: str) -> None:
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(path)
            last.sendall(b"STOP")
            self._thread.join()
        self._listener.close()


def test_a_cut_connection_is_an_error_and_not_a_silent_second_write(tmp_path: Path) -> None:
    path = str(tmp_path / "cutter")
    cutter = Cutter(path)
    try:
        client = make_client(f"unix://{path}", config=QUICK)
        with pytest.raises(StoreUnreachable):
            call(client, "XADD", "stream", "*", "field", "value")
        client.close()
        assert cutter.num_writes == 1
        writer = RedisWriter(f"unix://{path}", "run", "w", config=QUICK)
        queue(writer, 1, 1)
        until(lambda: writer.poll(0.01) == 0 and cutter.num_writes == 2)
        # The outbox is what sends again, and it knows that it does.
        until(lambda: writer.poll(0.01) == 0 and writer.num_resent >= 2)
        assert writer.num_pending == 1
        writer.close()
    finally:
        cutter.close(path)
