"""Runs with an own server as a user starts them: TLS, a user of least rights, a password; resumed
elsewhere after the machine of owner and Ray was lost.

Behaviours checked:
* ``smoke`` trains through TLS with the manual's user, which was never denied anything
* the password is in no log, option, manifest, metric, status, model, command line or file of Ray
* workers and owner keep a known number of connections
* after the machine is lost the run goes on from its directory alone, at another path: the dead
  owner's lease is waited for, counters continue, nothing accepted is lost
* a server of version 7.0, without confirmations, is used with --accept-volatile-redis alone
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from deploy.ray_session import session_folder
from deploy.rundir import RunDirectory
from deploy.status import RunStatus
from replay.config import ReplayConfig
from replay.embedded import EmbeddedServer
from replay.lease import read_lease
from replay.redis_keys import RunKeys
from replay.redis_link import StoreError, call, connect
from tests.deploy.waiting import ROOT, files_with, nothing_left, processes_of, wait_for
from tests.system.running import warm_kernels
from tests.system.tls import (
    USER,
    Certificates,
    access_rule,
    free_port,
    make_certificates,
    tls_before,
)

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(1600)]

START_S = 400.0
QUICK = (
    "runtime.snapshot_s=2",
    "runtime.step_s=0.3",
    "runtime.num_cpus=2",
    "replay.min_free_disk_gb=0",
    "replay.lease_s=8",
    "report.num_games=2",
    "report.simulations=0",
    "report.interrupted_s=0",
)
SMALL = (
    "self_play.games=32",
    "learner.min_window_positions=512",
    "learner.updates_per_version=20",
)
PROGRAM = [sys.executable, "-c", "import sys; from deploy.cli import main; sys.exit(main())"]


class Run:
    """``cardleague`` in a folder, and what can be seen of it from outside."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.directory = RunDirectory(folder / "runs" / name)

    def start(self, *arguments: str, password: str) -> subprocess.Popen[str]:
        self.folder.mkdir(exist_ok=True)
        environ = os.environ | {"PYTHONPATH": str(ROOT), "CARDLEAGUE_REDIS_PASSWORD": password}
        with (
            open(self.folder / "stdout", "ab") as stdout,
            open(self.folder / "stderr", "ab") as stderr,
        ):
            return subprocess.Popen(
                [*PROGRAM, *arguments],
                cwd=self.folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )

    def said(self) -> str:
        """Return what the program printed, on both streams."""
        return "".join((self.folder / name).read_text() for name in ("stdout", "stderr"))

    def status(self, after: float) -> RunStatus | None:
        status = self.directory.read_status() if self.directory.exists() else None
        return status if status is not None and status.started_at > after else None

    def session(self) -> Path:
        return session_folder(self.directory.load().run_id)

    def processes(self) -> list[psutil.Process]:
        return [*processes_of(self.directory.path), *processes_of(self.session())]


@contextlib.contextmanager
def running(run: Run, *arguments: str, password: str) -> Iterator[subprocess.Popen[str]]:
    """Start the program; at the end nothing of it is left."""
    child = run.start(*arguments, password=password)
    try:
        with nothing_left(run.folder):
            yield child
    finally:
        child.kill()
        child.wait()
        if run.directory.exists():
            session = run.session()
            with nothing_left(session):
                pass
            shutil.rmtree(session, ignore_errors=True)


def wait_trained(run: Run, child: subprocess.Popen[str], began: float, step: int = 0) -> RunStatus:
    """Wait until the run plays, trains past ``step`` and has saved that."""

    def met() -> RunStatus | None:
        assert child.poll() is None, run.said()[-3000:]
        status = run.status(began)
        if status is None or not (status.games_per_s > 0 and status.step > step):
            return None
        return status if run.directory.load().step > step else None

    return wait_for(met, START_S, f"training past step {step}: {run.directory.path}")


def stop(run: Run, child: subprocess.Popen[str]) -> None:
    child.send_signal(signal.SIGTERM)
    assert child.wait(90) == 0, run.said()[-3000:]


def command_lines_with(secret: str) -> list[str]:
    """Return the command lines of this machine that hold ``secret``."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in lines if secret in line]


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path / "certificates")


def test_smoke_over_tls_shows_no_password_and_goes_on_elsewhere(
    tmp_path: Path, certificates: Certificates
) -> None:
    warm_kernels("cuarenta")
    password, port = secrets.token_hex(16), free_port()
    server = EmbeddedServer(
        tmp_path / "server",
        password=secrets.token_hex(16),
        port=port,
        options={"user": access_rule(password)},
    )
    server.start()
    admin = connect(server.url, server.password)
    first, second = Run(tmp_path / "first", "smoke"), Run(tmp_path / "second", "smoke")
    settings = [f"replay.tls_ca_file={certificates.authority}", *QUICK, *SMALL]
    try:
        with tls_before(port, certificates.server_context()) as proxy:
            url = f"rediss://{USER}@localhost:{proxy.port}/0"
            command = ("train", "smoke", "--redis-url", url, "--set", *settings)
            began = time.time()
            with running(first, *command, password=password) as child:
                status = wait_trained(first, child, began)
                with urllib.request.urlopen(status.metrics_url, timeout=20) as answer:
                    assert password not in answer.read().decode()
                assert command_lines_with(password) == []
                assert proxy.num_open >= 4
                assert proxy.most_open <= 2 * 1 + 7  # two a worker, the owner's in and between use
                keys = RunKeys(first.directory.load().run_id)
                assert read_lease(admin, keys) is not None
                # Before the end: an owner that is killed last may have begun to tidy up.
                assert files_with(password, first.session()) == []
                lose_the_machine(first, child)
            before = first.directory.load()
            assert before.step > 0
            shutil.copytree(first.directory.path, second.directory.path)
            began = time.time()
            call(admin, "PEXPIRE", keys.lease, 600_000)  # however slow this machine is
            with running(second, "resume", "smoke", password=password) as child:
                held = f"held by '{os.uname().nodename}:{first.directory.path}'; unless"
                wait_for(lambda: held in second.said(), START_S, held)
                assert call(admin, "PEXPIRE", keys.lease, 1000)
                after = wait_trained(second, child, began, before.step)
                assert after.totals.games > before.totals.games
                assert after.totals.lost_entries == 0
                stop(second, child)
        assert read_lease(admin, keys) is None
        denied = call(admin, "ACL", "LOG")
        assert not denied, denied
        for place in (first.folder, second.folder, server.directory):
            assert files_with(password, place) == []
    finally:
        admin.close()
        server.stop()


def lose_the_machine(run: Run, child: subprocess.Popen[str]) -> None:
    """Kill everything of the run at once."""
    for process in [psutil.Process(child.pid), *run.processes()]:
        with contextlib.suppress(psutil.Error):
            process.kill()
    child.wait()
    wait_for(lambda: not run.processes(), 30, f"the end of {run.processes()}")


def _redis_server() -> str:
    """Return the path of ``redis-server``; without one the test says how to install it."""
    found = shutil.which("redis-server")
    if found is None:
        words = "redis-server is missing: apt-get install redis-server (it need not run)"
        if os.environ.get("CI"):
            pytest.fail(words)
        pytest.skip(words)
    return found


@contextlib.contextmanager
def native(folder: Path, certificates: Certificates, password: str) -> Iterator[str]:
    """A ``redis-server`` with TLS, append-only file and the manual's user; yields its address."""
    folder.mkdir()
    port, rule = free_port(), access_rule(password)
    for unknown in ("+waitaof", "+client|setinfo"):
        assert unknown in rule
        rule = rule.replace(unknown, "")
    (folder / "redis.conf").write_text(
        f"port 0\ntls-port {port}\nbind 127.0.0.1\nappendonly yes\nsave ''\n"
        f"tls-cert-file {certificates.server}\ntls-key-file {certificates.server_key}\n"
        f"tls-ca-cert-file {certificates.authority}\ntls-auth-clients no\n"
        f"user default off\nuser {rule}\n"
    )
    with open(folder / "log", "wb") as log:
        child = subprocess.Popen(
            [_redis_server(), str(folder / "redis.conf")], cwd=folder, stdout=log
        )
    try:
        yield f"rediss://{USER}@localhost:{port}/0"
    finally:
        child.terminate()
        child.wait(20)


def test_server_of_version_7_0_is_used_only_with_the_loss_accepted(
    tmp_path: Path, certificates: Certificates
) -> None:
    warm_kernels()
    password = secrets.token_hex(16)
    run = Run(tmp_path / "run", "kuhn-smoke")
    config = ReplayConfig(tls_ca_file=str(certificates.authority))
    with native(tmp_path / "server", certificates, password) as url:

        def version() -> str | None:
            with contextlib.suppress(StoreError):
                client = connect(url, password, config)
                info = call(client, "INFO", "server")
                client.close()
                return str(info["redis_version"])
            return None

        if not wait_for(version, 30, "redis-server").startswith("7.0."):
            pytest.skip("redis-server is not of version 7.0")
        settings = (f"replay.tls_ca_file={certificates.authority}", *QUICK)
        command = ("train", "kuhn-smoke", "--runtime", "ray", "--redis-url", url)
        with running(run, *command, "--set", *settings, password=password) as child:
            assert child.wait(120) == 2
        assert "--accept-volatile-redis" in run.said()
        assert not run.directory.exists()
        began = time.time()
        command = (*command, "--accept-volatile-redis", "--set", *settings)
        with running(run, *command, password=password) as child:
            wait_trained(run, child, began)
            stop(run, child)
        log = (run.directory.logs_path / "owner.log").read_text()
        assert "the last seconds may be lost in a crash of redis 7.0" in log
        assert json.loads(run.directory.manifest_path.read_text())["totals"]["games"] > 0
        assert files_with(password, run.folder) == []
