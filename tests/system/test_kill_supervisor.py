"""The supervisor killed with SIGKILL, over and over, with the real bundled server.

Behaviours checked:
* never are two servers alive on one run's files
* every entry whose append the server confirmed on disk is there after 20 kills
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import psutil
import pytest
import redis

from replay.embedded import EmbeddedServer
from tests.deploy.waiting import nothing_left, processes_of, spawn, wait_for

NUM_KILLS = 20
pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(200)]


def servers(folder: Path) -> list[psutil.Process]:
    """Return the living servers whose data lie in ``folder``."""
    found = []
    for process in processes_of(folder):
        with contextlib.suppress(psutil.Error):  # it may end while it is looked at
            if "valkey" in process.name() and process.cwd() == str(folder):
                found.append(process)
    return found


def connect(folder: Path, other_than: int) -> redis.Redis | None:
    """Return a client of a server that answers and has another pid than the one before."""
    try:
        record = json.loads((folder / "server.json").read_text())
        client = redis.Redis(unix_socket_path=record["socket"], socket_timeout=5)
        answered = client.info("server")["process_id"]
    except (OSError, ValueError, KeyError, redis.RedisError):
        return None
    return client if answered != other_than else None


def append_confirmed(client: redis.Redis, number: int) -> None:
    """Append one entry and wait until it is on disk."""
    client.rpush("entries", number)
    local, _ = client.execute_command("WAITAOF", 1, 0, 5000)
    assert local == 1


def test_server_is_never_doubled_and_loses_nothing_over_20_kills(tmp_path: Path) -> None:
    data = tmp_path / "server"
    pids: list[int] = [0]
    most_alive = 0

    def ready() -> redis.Redis | None:
        nonlocal most_alive
        most_alive = max(most_alive, len(servers(data)))
        return connect(data, pids[-1])

    with nothing_left(tmp_path):
        for number in range(NUM_KILLS + 1):
            child = spawn("tests.deploy.supervisor_host", str(tmp_path), "--server")
            try:
                client = wait_for(ready, 30, f"the bundled server of start {number}")
                pids.append(client.info("server")["process_id"])
                append_confirmed(client, number)
                entries = [int(entry) for entry in client.lrange("entries", 0, -1)]
                client.close()
                most_alive = max(most_alive, len(servers(data)))
            finally:
                child.kill()
                child.wait(10)
    EmbeddedServer(data).stop()  # the folder of the killed servers' socket
    assert entries == list(range(NUM_KILLS + 1))
    assert most_alive == 1
    assert len(set(pids)) == NUM_KILLS + 2
