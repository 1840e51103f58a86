"""What a live run occupies, by role: memory, files, threads of its processes; folders; server."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil

from deploy.processes import ProcessBook
from deploy.ray_session import session_folder
from deploy.rundir import RunDirectory
from replay.embedded import read_record
from replay.redis_admin import StreamStats, maxmemory, stream_stats
from replay.redis_keys import RunKeys
from tests.deploy.waiting import files_below

_HOST = re.compile(r"^ray::(\w+)")
_HOSTS = {"SelfPlayHost": "worker", "LearnerHost": "learner", "GateHost": "gate"}
MEMORY, PROPORTIONAL, FILES, THREADS = "rss", "pss", "files", "threads"
STREAMS, BUDGET = "bytes of the streams", "budget of the streams"
KEPT = "games in the streams, for each in the window"
FOLDERS = ("server", "models", "snapshots", "logs")


def role_of(name: str, command: Iterable[str], *, pid: int, known: dict[int, str]) -> str:
    """Return what a process of the run is; ``known`` are those that files of the run name."""
    if pid in known:
        return known[pid]
    words = [word for word in command if word]
    host = _HOST.match(words[0]) if words else None
    if host:
        return _HOSTS.get(host[1], f"ray {host[1]}")
    for word in words[1:]:
        if word.endswith(".py") and "/ray/" in word:
            return f"ray {Path(word).stem}"
    return f"ray {name}" if name in ("raylet", "gcs_server") else name


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files below ``folder`` (files come and go meanwhile)."""
    total = 0
    for path in files_below(folder):
        with contextlib.suppress(OSError):
            total += path.lstat().st_size
    return total


class Watcher:
    """Samples one live run from outside."""

    def __init__(self, folder: Path, supervisor: int) -> None:
        self._directory = RunDirectory(folder)
        self._supervisor = supervisor
        self._names: dict[tuple[int, float], str] = {}
        self._connected: Any = None

    def sample(self) -> dict[str, float]:
        """Return values by ``what of whom``; a process that comes or goes meanwhile is absent."""
        values: dict[str, float] = {}
        for process in self._processes():
            with contextlib.suppress(psutil.Error, OSError):
                name = self._name(process)
                with process.oneshot():
                    values[f"{MEMORY} {name}"] = process.memory_info().rss
                    values[f"{FILES} {name}"] = process.num_fds()
                    values[f"{THREADS} {name}"] = process.num_threads()
                values[f"{PROPORTIONAL} {name}"] = _proportional(process.pid)
        folder = self._directory.path
        values["bytes of the run"] = folder_bytes(folder)
        values |= {f"bytes of {name}": folder_bytes(folder / name) for name in FOLDERS}
        values["bytes of Ray's folder"] = folder_bytes(self._session())
        values["server memory"] = float(self._client.info("memory")["used_memory"])
        streams = self._streams()
        values[STREAMS], values[BUDGET] = streams.num_bytes, streams.budget_bytes
        status = self._directory.read_status()
        if status is not None and status.totals.window_games:
            values[KEPT] = streams.num_entries / status.totals.window_games
        return values

    def _session(self) -> Path:
        return session_folder(self._directory.load().run_id)

    def _processes(self) -> list[psutil.Process]:
        root = psutil.Process(self._supervisor)
        found = [root, *root.children(recursive=True)]
        alive = []
        for process in found:
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE:
                    alive.append(process)
        return alive

    def _name(self, process: psutil.Process) -> str:
        """Return role and number; the number stays with the process, so that no two are mixed."""
        key = (process.pid, process.create_time())
        if key not in self._names:
            role = role_of(process.name(), process.cmdline(), pid=process.pid, known=self._known())
            number = 1 + sum(other.rpartition(" ")[0] == role for other in self._names.values())
            self._names[key] = f"{role} {number}"
        return self._names[key]

    def _known(self) -> dict[int, str]:
        known = {self._supervisor: "supervisor"}
        for found in ProcessBook(self._directory.processes_path("owner")).read():
            known[found.pid] = "owner"
        server = read_record(self._directory.server_path / "server.json")
        return known | ({server["pid"]: "server"} if "pid" in server else {})

    def _streams(self) -> StreamStats:
        keys = RunKeys(self._directory.load().run_id)
        return stream_stats(self._client, keys, ["0"], maxmemory(self._client))

    @property
    def _client(self) -> Any:
        import redis

        if self._connected is None:
            record = read_record(self._directory.server_path / "server.json")
            self._connected = redis.Redis(unix_socket_path=record["socket"], socket_timeout=30)
        return self._connected


def _proportional(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return 1024.0 * int(line.split()[1])
    return 0.0
