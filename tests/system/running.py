"""Looks at a live run from outside: its status, its processes, its server."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import redis

from deploy.processes import ProcessBook, mark
from deploy.ray_session import session_folder
from deploy.rundir import RunDirectory
from deploy.status import RunStatus
from replay.redis_keys import RunKeys
from tests.deploy.waiting import ROOT, nothing_left, processes_of, started, wait_for

HOST = "tests.system.run_host"
START_S = 120.0
"""A start loads Ray and torch on a machine that may be busy with other tests."""


def warm_kernels(game: str = "kuhn") -> None:
    """Compile the kernels of ``game`` once, so that no test waits for that."""
    code = f"from deploy.warm import warm_up; warm_up([{game!r}])"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=900)


@contextlib.contextmanager
def live_run(
    folder: Path, *overrides: str, host: str = HOST
) -> Iterator[tuple[LiveRun, subprocess.Popen[bytes]]]:
    """Start or resume the run in ``folder``; at the end nothing of it is left, Ray's included."""
    try:
        with started(folder, host, str(folder), *overrides) as supervisor:
            yield LiveRun(folder, supervisor), supervisor
    finally:
        directory = RunDirectory(folder)
        if directory.exists():
            session = session_folder(directory.load().run_id)
            with nothing_left(session):
                pass
            shutil.rmtree(session, ignore_errors=True)


class LiveRun:
    """One run directory whose supervisor is (or was) running."""

    def __init__(self, folder: Path, supervisor: subprocess.Popen[bytes]) -> None:
        self.directory = RunDirectory(folder)
        self._supervisor = supervisor

    def status(self) -> RunStatus | None:
        """Return the status of a live owner; None before there is one."""
        return self.directory.read_status()

    def wait(
        self, condition: Callable[[RunStatus], bool], what: str, timeout_s: float = 60.0
    ) -> RunStatus:
        """Wait for a status that meets ``condition``."""

        def met() -> RunStatus | None:
            status = self.status()
            if self._supervisor.poll() is not None:
                raise AssertionError(f"the supervisor ended while waiting for {what}")
            return status if status is not None and condition(status) else None

        try:
            return wait_for(met, timeout_s, what)
        except AssertionError as error:
            log = self.directory.logs_path / "owner.log"
            tail = log.read_text()[-3000:] if log.exists() else "no log"
            raise AssertionError(f"{error}; status {self.status()}; log ends {tail}") from None

    def wait_started(self, after: float) -> RunStatus:
        """Wait until an owner that started after Unix time ``after`` trains."""
        return self.wait(
            lambda s: s.state == "running" and s.started_at > after and s.games_per_s > 0,
            "a running run",
            START_S,
        )

    def owner(self) -> psutil.Process:
        """Return the owner's process."""
        (found,) = ProcessBook(self.directory.processes_path("owner")).read()
        return psutil.Process(found.pid)

    def actors(self, host: str) -> list[psutil.Process]:
        """Return the living processes that run ``host`` (a class of deploy.hosts)."""
        found = []
        for process in self.owner().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if process.cmdline()[:1] and process.cmdline()[0].startswith(f"ray::{host}"):
                    found.append(process)
        return sorted(found, key=lambda process: process.create_time())

    def server(self) -> dict[str, Any]:
        """Return what the bundled server's record says."""
        record: dict[str, Any] = json.loads(
            (self.directory.server_path / "server.json").read_text()
        )
        return record

    def num_entries_added(self) -> int:
        """Return how many entries were ever added to the run's stream."""
        with redis.Redis(unix_socket_path=self.server()["socket"], socket_timeout=5) as client:
            stream = RunKeys(self.directory.load().run_id).stream("0")
            return int(client.xinfo_stream(stream)["entries-added"])

    def assert_nothing_left(self) -> None:
        """Assert that no process of the run is alive, Ray's included, and its folder is gone."""
        folder = session_folder(self.directory.load().run_id)
        wait_for(
            lambda: not processes_of(self.directory.path) and not processes_of(folder),
            10,
            f"the end of {processes_of(self.directory.path)} {processes_of(folder)}",
        )
        assert not folder.exists()
        assert not self.directory.is_live()


def kill(process: psutil.Process) -> None:
    """SIGKILL, beyond doubt this process."""
    assert mark(process.pid) is not None
    os.kill(process.pid, signal.SIGKILL)
