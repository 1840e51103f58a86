"""Where a run is attacked: what it runs on, and how each kind of process is found there."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from deploy.processes import ProcessBook, ProcessMark, find, mark
from deploy.rundir import RunDirectory
from deploy.tracker import GATE as GATE_ROLE
from deploy.tracker import LEARNER as LEARNER_ROLE
from deploy.tracker import SELFPLAY
from replay.embedded import EmbeddedServer, read_record
from tests.chaos.faults import (
    CLUSTER_CARDS,
    GATE,
    GCS,
    HEAD_RAYLET,
    LEARNER,
    LOCAL_CARDS,
    OWNER,
    SECOND_RAYLET,
    SERVER,
    WORKER,
    Card,
)
from tests.chaos.hosts import PORTS
from tests.chaos.proxy import Proxy
from tests.chaos.records import FOLDER_VARIABLE, Logs
from tests.deploy.waiting import ROOT, nothing_left

_ROLES = {WORKER: SELFPLAY, LEARNER: LEARNER_ROLE, GATE: GATE_ROLE}
_RAY_NAMES = {GCS: "gcs_server", HEAD_RAYLET: "raylet"}
_SERVER_AWAY_S = (1.0, 15.0)
_NODE_AWAY_S = (5.0, 20.0)


class LocalStage:
    """A Ray and a bundled server of the run's own: the supervisor mends everything."""

    name = "own Ray, bundled server"
    cards: list[Card] = LOCAL_CARDS
    overrides: tuple[str, ...] = ()

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        self.directory = RunDirectory(folder / "run")
        self.logs = Logs(folder / "records")

    def environment(self) -> dict[str, str]:
        """Return what the processes of the run need to know."""
        return {**os.environ, FOLDER_VARIABLE: str(self.logs.folder), "PYTHONPATH": str(ROOT)}

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """What the run runs on is there meanwhile."""
        yield

    def process(self, kind: str) -> ProcessMark | None:
        """Return a living process of ``kind`` (not the supervisor); None when there is none."""
        if kind in _ROLES:
            return self._actor(_ROLES[kind])
        if kind == SERVER:
            return self._server()
        book = ProcessBook(self.directory.processes_path("owner" if kind == OWNER else "ray"))
        found = [m for m in book.read() if kind == OWNER or m.name == _RAY_NAMES.get(kind)]
        return next((marked for marked in found if find(marked) is not None), None)

    def _actor(self, role: str) -> ProcessMark | None:
        """Return the last start of a random slot, if it lives."""
        latest = {start.slot: start.process for start in self.logs.starts() if start.role == role}
        alive = [marked for _, marked in sorted(latest.items()) if find(marked) is not None]
        return self.rng.choice(alive) if alive else None

    def _server(self) -> ProcessMark | None:
        pid = read_record(self.directory.server_path / "server.json").get("pid")
        return mark(pid) if isinstance(pid, int) else None

    def cut(self, kind: str, how: str) -> None:
        """Cut off ``kind``, or let it in again. Raises ValueError: no proxy here."""
        raise ValueError(f"{kind} cannot be cut off here: {how}")

    def killed(self, kind: str) -> float:
        """Hear that ``kind`` was killed; return when (Unix time) the stage will have mended it."""
        return time.time()

    def mend(self) -> None:
        """Do what nobody in the run is there to do, if it is due. Main thread."""


class ClusterStage(LocalStage):
    """An existing cluster of two nodes and an own server that clients reach through a proxy."""

    name = "cluster of two nodes, own server behind a proxy"
    cards = CLUSTER_CARDS

    def __init__(self, folder: Path, rng: random.Random) -> None:
        super().__init__(folder, rng)
        self._own = EmbeddedServer(folder / "own-server")
        self._session = Path(tempfile.gettempdir()) / f"cl-chaos-{os.getpid()}"
        self._token = folder / "token"
        self._server_due = self._node_due = 0.0
        self._is_node_coming = False
        self._second = ProcessMark(pid=0, started=0.0)

    def environment(self) -> dict[str, str]:
        """See LocalStage."""
        return {
            **super().environment(),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self._token),
            "RAY_USAGE_STATS_ENABLED": "0",
        }

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """See LocalStage."""
        self._token.write_text("ab" * 32)
        self._own.start()
        try:
            socket = Path(self._own.url.removeprefix("unix://"))
            with Proxy(socket, (WORKER, LEARNER, GATE, OWNER)) as self._proxy, self._cluster():
                ports = self._proxy.ports
                by_role = {role: ports[kind] for kind, role in _ROLES.items()}
                (self.logs.folder / PORTS).write_text(json.dumps(by_role))
                self.overrides = (
                    f"runtime.ray_address={self._address}",
                    f"replay.redis_url=redis://127.0.0.1:{ports[OWNER]}",
                )
                yield
        finally:
            self._own.stop()

    @contextlib.contextmanager
    def _cluster(self) -> Iterator[None]:
        (self._session / "ray").mkdir(parents=True)
        with nothing_left(self._session):
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.nodes"],
                cwd=ROOT,
                env={**self.environment(), "RAY_TMPDIR": str(self._session)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert child.stdin is not None
            assert child.stdout is not None
            self._told, self._tells = child.stdin, child.stdout
            try:
                self._address = child.stdout.readline().strip()
                assert self._address, "the cluster did not start"
                self._see_second()
                yield
            finally:
                child.stdin.close()
                child.stdout.close()
                child.wait(90)
                shutil.rmtree(self._session, ignore_errors=True)

    def _see_second(self) -> None:
        marked = mark(int(self._tells.readline()))
        assert marked is not None
        self._second = marked

    def process(self, kind: str) -> ProcessMark | None:
        """See LocalStage."""
        if kind == SECOND_RAYLET:
            return self._second if find(self._second) is not None else None
        return super().process(kind)

    def _server(self) -> ProcessMark | None:
        return mark(self._own.pid)

    def cut(self, kind: str, how: str) -> None:
        """See LocalStage."""
        self._proxy.set(kind, how)

    def killed(self, kind: str) -> float:
        """See LocalStage."""
        if kind == SERVER:
            self._server_due = time.time() + self.rng.uniform(*_SERVER_AWAY_S)
            return self._server_due
        if kind == SECOND_RAYLET:
            self._node_due = time.time() + self.rng.uniform(*_NODE_AWAY_S)
            return self._node_due
        return time.time()

    def mend(self) -> None:
        """See LocalStage."""
        if 0 < self._server_due <= time.time():
            self._server_due = 0.0
            self._own.ensure()
        if 0 < self._node_due <= time.time():
            self._node_due = 0.0
            self._told.write("again\n")
            self._told.flush()
            self._is_node_coming = True
        if self._is_node_coming and select.select([self._tells], [], [], 0)[0]:
            self._is_node_coming = False
            self._see_second()


def send(marked: ProcessMark, number: signal.Signals) -> bool:
    """Send a signal to this process and no other; return whether it is there."""
    process = find(marked)
    if process is None:
        return False
    process.send_signal(number)
    return True
