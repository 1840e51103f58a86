"""A run whose machine was lost goes on from a copy of its directory, with and without the server's.

(With a given Redis: tests/system/test_own_server_run.py and tests/test_operations_doc.py.)

Behaviours checked:
* with the bundled server's files nothing is lost, and no process is touched that has the pid and
  the start time of one that the copy speaks of, from another machine
* a second copy beside a live one is refused, which names where it is live and goes on
* without them the run says how many accepted games are gone, and goes on
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from deploy.manifest import Manifest
from deploy.processes import ProcessBook, find, mark
from deploy.ray_session import session_folder
from deploy.rundir import RunDirectory
from deploy.status import RunStatus
from replay.launch_server import boot_id, start_token
from tests.deploy.waiting import ROOT, processes_of, wait_for
from tests.system.running import HOST, live_run, warm_kernels

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]

GENEROUS_S = 200.0
ONE_WORKER = "self_play.num_workers=1"
ELSEWHERE = "another-machine"


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run of which every process was killed at once."""
    warm_kernels()
    folder = tmp_path_factory.mktemp("machine") / "run"
    directory = RunDirectory(folder)
    with live_run(folder, ONE_WORKER) as (run, supervisor):
        run.wait(
            lambda s: s.step > 20 and s.window_positions > 300 and directory.load().step > 0,
            "some training and a snapshot of it",
            GENEROUS_S,
        )
        session = session_folder(directory.load().run_id)
        for process in (psutil.Process(supervisor.pid), *processes_of(folder)):
            with contextlib.suppress(psutil.Error):
                process.kill()
        for process in processes_of(session):
            with contextlib.suppress(psutil.Error):
                process.kill()
        supervisor.wait()
        wait_for(lambda: not processes_of(folder), 30, "the end of every process")
    return folder


@pytest.fixture
def innocent() -> Iterator[psutil.Process]:
    """A process of this machine that no run has anything to do with."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    )
    yield psutil.Process(child.pid)
    child.kill()
    child.communicate()


def goes_on(
    folder: Path, before: Manifest, meanwhile: Callable[[], None] = lambda: None
) -> RunStatus:
    """Resume the copy in ``folder`` until it has trained and saved; stop it; return its status."""
    began = time.time()
    directory = RunDirectory(folder)
    with live_run(folder, ONE_WORKER) as (run, supervisor):
        status = run.wait(
            lambda s: (
                s.started_at > began
                and s.step > before.step + 5
                and s.totals.games > before.totals.games
                and directory.load().step > before.step
            ),
            "training that goes on",
            GENEROUS_S,
        )
        meanwhile()
        step = directory.load().step
        run.wait(lambda s: s.step > step, "training", GENEROUS_S)
        supervisor.terminate()
        assert supervisor.wait(90) == 0
        run.assert_nothing_left()
    after = directory.load()
    assert after.run_id == before.run_id
    assert after.next_version >= before.next_version
    return status


def test_with_the_servers_files_nothing_is_lost_and_no_stranger_is_ended(
    lost: Path, tmp_path: Path, innocent: psutil.Process
) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(lost, copy, ignore=shutil.ignore_patterns("*.sock"))
    plant(copy, innocent.pid)
    before = RunDirectory(copy).load()
    status = goes_on(copy, before, lambda: refuse_beside(copy, tmp_path / "beside"))
    assert status.totals.lost_entries == 0
    assert status.window_positions > 250
    assert innocent.is_running()


def refuse_beside(live: Path, copy: Path) -> None:
    """Start a copy of a live run's directory on the same machine, with a server of its own."""
    shutil.copytree(live, copy, ignore=shutil.ignore_patterns("*.sock"))
    refused = subprocess.run(
        [sys.executable, "-m", HOST, str(copy), ONE_WORKER],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=GENEROUS_S,
    )
    assert refused.returncode == 1, refused.stderr
    assert f"live on this machine from {live}" in refused.stderr


def plant(copy: Path, pid: int) -> None:
    """Write ``pid`` with its start time into the copy's books, as of another machine."""
    marked = mark(pid)
    assert marked is not None
    assert find(marked) is not None
    for group in ("owner", "ray"):
        book = ProcessBook(RunDirectory(copy).processes_path(group))
        text = json.dumps(
            [{"pid": pid, "started": marked.started, "name": "raylet", "boot": ELSEWHERE}]
        )
        RunDirectory(copy).processes_path(group).write_text(text)
        assert [found.pid for found in book.read()] == [pid]
    token = start_token(pid)
    assert boot_id() in token
    record = {"pid": pid, "start": token.replace(boot_id(), ELSEWHERE), "socket": os.devnull}
    (copy / "server" / "server.json").write_text(json.dumps(record))


def test_without_the_servers_files_the_loss_is_told_and_the_run_goes_on(
    lost: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(lost, copy, ignore=shutil.ignore_patterns("server"))
    status = goes_on(copy, RunDirectory(copy).load())
    gone = status.totals.lost_entries
    assert gone > 10
    assert f"{gone} accepted trajectories were lost" in status.alerts
    assert f"are gone, {gone} in all" in (copy / "logs" / "owner.log").read_text()
