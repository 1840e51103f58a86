"""Behaviours of the bundled server: one per directory, whatever is killed, and never adopted."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from replay.embedded import EmbeddedServer, ServerError, find_binary, read_record
from replay.launch_server import boot_id, start_token
from replay.redis_link import StoreRefused, StoreUnreachable, call, connect, make_client

pytestmark = pytest.mark.system


def until(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    """Wait for ``condition``; fail after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        pause.wait(0.01)


def servers_on(directory: Path) -> list[int]:
    """Return the pids of all server processes that work in ``directory`` (children not)."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if Path(os.readlink(entry / "exe")).name != "valkey-server":
                continue
            if Path(os.readlink(entry / "cwd")) == directory.resolve():
                found.append(int(entry.name))
    return found


def is_locked(directory: Path) -> bool:
    with open(directory / "server.lock", "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "server"
    path.mkdir()
    yield path
    for pid in servers_on(path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not servers_on(path))
    EmbeddedServer(path).stop()  # the socket's folder of a server that was killed


@pytest.fixture
def server(directory: Path) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(directory, maxmemory_mb=64)
    server.start()
    yield server
    server.stop()


def ask(server: EmbeddedServer, *command: object) -> Any:
    client = connect(server.url, server.password)
    try:
        return call(client, *command)
    finally:
        client.close()


def test_started_server_is_durable_private_and_in_the_directory(
    server: EmbeddedServer, directory: Path
) -> None:
    assert servers_on(directory) == [server.pid]
    assert server.alive()
    socket = Path(server.url.removeprefix("unix://"))  # near by unless the path is too long
    assert socket.stat().st_mode & 0o777 == 0o700
    flat = [value.decode() for value in ask(server, "CONFIG", "GET", "*")]
    config = dict(zip(flat[::2], flat[1::2], strict=True))
    expected = {
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "port": "0",
        "maxmemory-policy": "noeviction",
    }
    assert {name: config[name] for name in expected} == expected
    assert list((directory / "appendonlydir").iterdir())
    record = read_record(server.record_path)
    assert record["pid"] == server.pid
    assert record["start"] == start_token(server.pid)


def test_server_runs_in_a_session_of_its_own(server: EmbeddedServer) -> None:
    assert os.getsid(server.pid) == server.pid != os.getsid(0)


def test_stop_ends_the_process_frees_the_lock_and_keeps_the_data(directory: Path) -> None:
    server = EmbeddedServer(directory, maxmemory_mb=64)
    server.start()
    assert is_locked(directory)
    ask(server, "SET", "key", "kept")
    server.stop()
    server.stop()
    assert not is_locked(directory)
    assert not servers_on(directory)
    assert not server.alive()
    assert not server.record_path.exists()
    server.start()
    assert ask(server, "GET", "key") == b"kept"
    server.stop()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="about the allocator of glibc")
def test_memory_of_trimmed_games_is_given_back(server: EmbeddedServer) -> None:
    """What lies on top of what is stored does not depend on what was stored before."""
    rng = random.Random(0)
    client = connect(server.url, server.password)

    def on_top() -> int:
        memory = call(client, "INFO", "memory")
        return int(memory["used_memory_rss"]) - int(memory["used_memory"])

    before = on_top()
    for number in range(1, 8001):
        game = rng.randbytes(rng.randint(2000, 8000))
        call(client, "XADD", "games", f"{number}-0", "d", game)
    assert int(call(client, "INFO", "memory")["used_memory"]) > 40_000_000
    call(client, "XTRIM", "games", "MINID", "=", "7501-0")
    assert call(client, "XLEN", "games") == 500
    until(lambda: on_top() < before + 6_000_000)
    client.close()


def test_long_directory_gets_a_short_socket_that_goes_with_the_server(tmp_path: Path) -> None:
    directory = tmp_path / ("long" * 30)
    server = EmbeddedServer(directory, maxmemory_mb=64)
    server.start()
    socket = Path(server.url.removeprefix("unix://"))
    assert len(str(socket)) < 100
    assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert ask(server, "PING") is True
    # Clients find the next server where the killed one was.
    os.kill(server.pid, signal.SIGKILL)
    until(lambda: not server.alive())
    assert server.ensure()
    assert server.url == f"unix://{socket}"
    EmbeddedServer(directory, maxmemory_mb=64).stop()  # has no server, takes nobody else's socket
    assert ask(server, "PING") is True
    # So does a supervisor that was killed with its server: nothing is left by the first.
    os.kill(server.pid, signal.SIGKILL)
    until(lambda: not server.alive())
    successor = EmbeddedServer(directory, maxmemory_mb=64)
    successor.start()
    assert successor.url == f"unix://{socket}"
    successor.stop()
    assert not socket.parent.exists()


def test_socket_is_not_put_into_a_folder_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    server = EmbeddedServer(tmp_path / ("long" * 30), maxmemory_mb=64)
    with pytest.raises(ServerError, match="set TMPDIR"):
        server.start()
    monkeypatch.undo()
    server.stop()


def test_directory_with_blanks_and_quotes_works(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / 'a "b" \\ ñ', maxmemory_mb=64)
    server.start()
    assert ask(server, "PING") is True
    server.stop()


def test_killed_server_is_replaced_and_keeps_what_was_confirmed(server: EmbeddedServer) -> None:
    client = make_client(server.url)
    with client.client() as single:
        call(single, "SET", "key", "kept")
        assert call(single, "WAITAOF", 1, 0, 5000)[0] == 1
    client.close()
    first = server.pid
    os.kill(first, signal.SIGKILL)
    until(lambda: not server.alive())
    assert server.ensure()
    assert server.pid != first
    assert ask(server, "GET", "key") == b"kept"
    assert not server.ensure()


def test_orphan_is_ended_and_not_adopted(directory: Path) -> None:
    orphan = EmbeddedServer(directory, maxmemory_mb=64)
    orphan.start()
    ask(orphan, "SET", "key", "kept")
    successor = EmbeddedServer(directory, maxmemory_mb=64)
    successor.start()
    assert servers_on(directory) == [successor.pid] != [orphan.pid]
    assert ask(successor, "GET", "key") == b"kept"
    successor.stop()
    orphan.stop()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_process_that_has_a_recorded_pid_is_left_alone(
    directory: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    """The lock is held, but the pid on record is somebody else's by now, or on another machine."""
    monkeypatch.setattr("replay.embedded._ORPHAN_S", 0.2)
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        start = start_token(bystander.pid).replace(boot_id(), "another-machine")
        start = start if elsewhere else "1"
        record = f'{{"pid": {bystander.pid}, "start": "{start}", "socket": ""}}'
        (directory / "server.json").write_text(record)
        with open(directory / "server.lock", "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with pytest.raises(ServerError, match="does not end"):
                EmbeddedServer(directory, maxmemory_mb=64).start()
        assert bystander.poll() is None
    finally:
        bystander.communicate(b"\n")


def test_error_replies_are_signs_of_life(server: EmbeddedServer) -> None:
    with connect(server.url) as client:
        call(client, "CONFIG", "SET", "requirepass", "secret")
        with pytest.raises(StoreRefused):
            ask(server, "PING")
        assert server.alive()


def test_server_that_is_loading_counts_as_alive(directory: Path) -> None:
    writer = EmbeddedServer(directory, maxmemory_mb=64)
    writer.start()
    with connect(writer.url) as client:
        call(client, "EVAL", "for i = 1, 3000 do redis.call('SET', 'k' .. i, i) end", 0)
        call(client, "BGREWRITEAOF")
        until(lambda: call(client, "INFO", "persistence")["aof_rewrite_in_progress"] == 0)
    writer.stop()
    slow = {"key-load-delay": "1000", "loading-process-events-interval-bytes": "1024"}
    server = EmbeddedServer(directory, maxmemory_mb=64, options=slow, silence_s=0.0)
    server.start()
    with pytest.raises(StoreUnreachable, match="loading"):
        connect(server.url)
    assert server.alive()
    assert not server.ensure()
    server.stop()
    assert not servers_on(directory)


def test_silent_server_is_alive_until_its_time_is_up(directory: Path) -> None:
    server = EmbeddedServer(directory, maxmemory_mb=64, silence_s=1.5, stop_timeout_s=0.3)
    server.start()
    os.kill(server.pid, signal.SIGSTOP)
    assert server.alive()
    until(lambda: not server.alive())
    stopped = server.pid
    assert server.ensure()
    assert servers_on(directory) == [server.pid] != [stopped]
    server.stop()


def test_tcp_needs_a_password_which_no_process_list_or_file_shows(directory: Path) -> None:
    with pytest.raises(ServerError, match="only with a password"):
        EmbeddedServer(directory, port=7777)
    server = EmbeddedServer(directory, maxmemory_mb=64, password='s3cret "x" ñ')
    server.start()
    assert ask(server, "PING") is True
    with pytest.raises(StoreRefused):
        connect(server.url, "wrong")
    with pytest.raises(StoreRefused, match="no password was given"):
        connect(server.url)
    assert b"s3cret" not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
    assert b"s3cret" not in Path(f"/proc/{server.pid}/environ").read_bytes()
    for path in directory.rglob("*"):
        if path.is_file():
            assert b"s3cret" not in path.read_bytes()
    server.stop()


def test_server_that_cannot_start_says_why(directory: Path) -> None:
    server = EmbeddedServer(directory, options={"no-such-option": "1"})
    with pytest.raises(ServerError, match="no-such-option"):
        server.start()
    assert not servers_on(directory)
    assert not is_locked(directory)
    assert find_binary().is_file()


def test_second_start_of_the_same_server_is_refused(server: EmbeddedServer) -> None:
    pid = server.pid
    with pytest.raises(ServerError, match="already"):
        server.start()
    assert servers_on(server.directory) == [pid]


def test_start_from_another_thread_is_refused(directory: Path) -> None:
    errors: list[Exception] = []

    def start() -> None:
        try:
            EmbeddedServer(directory).start()
        except ServerError as error:
            errors.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in str(errors[0])


PARENT = """
import fcntl, sys, time
from pathlib import Path
from replay.embedded import EmbeddedServer
from replay.redis_link import StoreUnreachable, call, connect
directory, number = Path(sys.argv[1]), sys.argv[2]
run_lock = open(directory / "run.lock", "a")
fcntl.flock(run_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
server = EmbeddedServer(directory, maxmemory_mb=64)
print("starting", flush=True)
server.start()
client = None
while client is None:
    try:
        client = connect(server.url)
    except StoreUnreachable as error:  # it answers while it loads
        assert "loading" in str(error), error
        time.sleep(0.01)
with client.client() as single:
    call(single, "RPUSH", "kept", number)
    assert call(single, "WAITAOF", 1, 0, 5000)[0] == 1
print("confirmed", flush=True)
sys.stdin.read()
"""


def test_twenty_killed_parents_never_leave_two_servers_on_one_file(directory: Path) -> None:
    """Killed at any moment: while it starts the server, while that loads, and while it works."""
    rng = random.Random(5)
    confirmed: list[str] = []
    seen: list[int] = []
    watching = threading.Event()

    def watch() -> None:
        while not watching.wait(0.002):
            seen.append(len(servers_on(directory)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for number in range(20):
            parent = subprocess.Popen(
                [sys.executable, "-c", PARENT, str(directory), str(number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert parent.stdout is not None
            assert parent.stdin is not None
            assert parent.stdout.readline() == "starting\n"
            if number % 4 == 0:
                assert parent.stdout.readline() == "confirmed\n"
                # Too busy to die: the next parent finds it alive, whatever signals it was sent.
                (slow,) = servers_on(directory)
                os.kill(slow, signal.SIGSTOP)
            else:
                threading.Event().wait(rng.uniform(0.0, 0.3) + 0.3 * (number % 4 == 1))
            if number % 4 == 1:
                os.kill(slow, signal.SIGCONT)
            parent.kill()
            parent.wait()
            confirmed += [str(number)] * (number % 4 == 0 or "confirmed" in parent.stdout.read())
            parent.stdout.close()
            parent.stdin.close()
    finally:
        watching.set()
        watcher.join()
    assert max(seen) == 1
    # The death signal reaches the last one, without anybody's help.
    until(lambda: not servers_on(directory))
    until(lambda: not is_locked(directory))
    server = EmbeddedServer(directory, maxmemory_mb=64)
    server.start()
    kept = [value.decode() for value in ask(server, "LRANGE", "kept", 0, -1)]
    server.stop()
    assert set(confirmed) <= set(kept)
    assert len(kept) == len(set(kept))
