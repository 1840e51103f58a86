"""How Ray is told to authenticate, where its sockets lie, and actors that end by themselves.

Behaviours checked (no Ray is started here):
* a local Ray gets a token file of its own, mode 0600, kept over resumes
* an existing cluster without a token is refused unless it may be open
* the folder for sockets is short and the run's own
* warming up: a node that cannot play is named, one that goes away meanwhile is passed over
* Ray's log files are bounded
* a host that nobody calls ends its process; environment of actors
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.config import RunConfig, RuntimeConfig
from deploy.hosts import EXIT_SILENCE, environment
from deploy.ray_session import Compiling, RaySessionError, session_folder, set_authentication
from deploy.rundir import RunDirectory
from tests.deploy.waiting import ROOT

CLUSTER = "10.0.0.5:6379"


def config(*, address: str = "", allow_open: bool = False) -> RunConfig:
    return RunConfig(runtime=RuntimeConfig(ray_address=address, allow_open_ray=allow_open))


def test_local_ray_gets_a_token_that_only_its_owner_reads(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    environ = {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": "of another cluster"}
    set_authentication(config(), directory, environ)
    path = Path(environ["RAY_AUTH_TOKEN_PATH"])
    assert environ == {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(path)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = path.read_text()
    assert len(token) == 64
    set_authentication(config(), directory, environ)
    assert path.read_text() == token
    other = RunDirectory(tmp_path / "other")
    other.path.mkdir()
    set_authentication(config(), other, environ)
    assert other.token_path.read_text() != token


def test_existing_cluster_without_a_token_is_refused_by_name(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    with pytest.raises(RaySessionError, match=r"10\.0\.0\.5:6379.*--allow-open-ray"):
        set_authentication(config(address=CLUSTER), RunDirectory(tmp_path), environ)
    assert environ == {}


@pytest.mark.parametrize("name", ["RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"])
def test_token_of_an_existing_cluster_is_used(tmp_path: Path, name: str) -> None:
    environ = {name: "given"}
    set_authentication(config(address=CLUSTER), RunDirectory(tmp_path), environ)
    assert environ == {name: "given", "RAY_AUTH_MODE": "token"}
    assert not RunDirectory(tmp_path).token_path.exists()


def test_open_cluster_is_used_when_that_is_allowed(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    set_authentication(config(address=CLUSTER, allow_open=True), RunDirectory(tmp_path), environ)
    assert environ == {"RAY_AUTH_MODE": "disabled"}


def test_folder_for_sockets_is_short_wherever_temporary_files_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/var/folders/" + "x" * 60)
    folder = session_folder("0123456789ab")
    assert len(str(folder)) <= 30
    assert folder != session_folder("0123456789ac")


def test_ray_bounds_its_log_files_unless_somebody_said_otherwise(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from deploy.config import RunConfig;"
        "from deploy.ray_session import RaySession; from deploy.rundir import RunDirectory;"
        "RaySession(RunConfig(), RunDirectory(Path(sys.argv[1])), 'run');"
        "print(os.environ['RAY_ROTATION_MAX_BYTES'], os.environ['RAY_ROTATION_BACKUP_COUNT'])"
    )
    for given, expected in (
        ({}, "4194304 1\n"),
        ({"RAY_ROTATION_BACKUP_COUNT": "3"}, "4194304 3\n"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=ROOT,
            env={**os.environ, **given},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout == expected, done.stderr


def test_only_the_learner_may_see_a_gpu() -> None:
    assert environment(1, gpu=False)["CUDA_VISIBLE_DEVICES"] == ""
    assert "CUDA_VISIBLE_DEVICES" not in environment(4, gpu=True)
    assert environment(4, gpu=True)["OMP_NUM_THREADS"] == "4"
    assert not any(name.startswith("NUMBA") for name in environment(1, gpu=False))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="about the allocator of glibc")
def test_process_that_gives_back_keeps_no_holes() -> None:
    code = (
        "import numpy as np, psutil;"
        "resident = lambda: psutil.Process().memory_info().rss;"
        "trees = np.ones(30 << 20, np.uint8); del trees;"  # raises a threshold that is not fixed
        "before = resident();"
        "table = [(np.ones(4 << 20, np.uint8), bytes(2000)) for _ in range(25)];"
        "kept = [small for _, small in table]; del table;"
        "print(resident() - before)"
    )
    kept = []
    for gives_back in (False, True):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **environment(1, gpu=False, gives_back=gives_back)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        kept.append(int(done.stdout))
    assert kept[0] > 20e6
    assert kept[1] < 5e6


def test_process_whose_owner_is_silent_ends_by_itself() -> None:
    code = (
        "import time; from deploy.hosts import Watchdog;"
        "dog = Watchdog(0.4); time.sleep(0.2); dog.called(); time.sleep(0.3);"
        "print('alive after 0.5 s', flush=True); time.sleep(30)"
    )
    child = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=25,
        env={**os.environ},
    )
    assert child.returncode == EXIT_SILENCE
    assert child.stdout == "alive after 0.5 s\n"


WARM_UP = """
import sys
from pathlib import Path

import ray
import ray.dag  # declares actors, before there are none
import ray.util.scheduling_strategies
from ray.exceptions import NodeDiedError, RayTaskError

from deploy.config import RunConfig
from deploy.ray_session import RaySession

failures = {
    "gone": NodeDiedError("its raylet has died"),
    "broken": RayTaskError("warm_up", "no compiler here", ValueError("no compiler here")),
    "fine": None,
}
class Task:
    def options(self, scheduling_strategy, **_):
        self.node = names[scheduling_strategy.node_id]
        return self
    def remote(self, _):
        return self.node
def get(node):
    if failures[node] is not None:
        raise failures[node]
names = {f"{number:056x}": name for number, name in enumerate(sys.argv[1:])}
ray.remote = lambda _: Task()
ray.get = get
ray.wait = lambda waiting, timeout: (waiting[:1], waiting[1:])
ray.nodes = lambda: [
    {"Alive": True, "NodeID": node, "NodeManagerHostname": name} for node, name in names.items()
]
session = object.__new__(RaySession)
session.is_local = False
session.warm_up("kuhn", lambda: False, lambda nodes: print(*nodes))
"""


def test_node_that_goes_away_while_it_warms_up_does_not_end_the_run() -> None:
    def warm_up(*nodes: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WARM_UP, *nodes]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    gone = warm_up("gone", "fine")
    assert gone.returncode == 0, gone.stderr
    assert gone.stdout == "fine\n\n"  # who is waited for, after each answer
    broken = warm_up("fine", "broken")
    assert broken.returncode == 1
    assert "RaySessionError: node broken cannot play kuhn" in broken.stderr


def test_a_run_that_waits_for_nodes_that_compile_says_so_once_and_shows_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("deploy.ray_session.COMPILING_AFTER_S", 0.0)
    said: list[str] = []
    shown: list[int] = []
    compiling = Compiling("kuhn", said.append, lambda: shown.append(len(said)))
    compiling.waiting_for(["far", "near"])
    compiling.waiting_for(["far"])
    compiling.waiting_for([])
    assert said == ["compiling the kernels of kuhn (once) on far, near"]
    assert shown == [1, 1, 1]

    monkeypatch.setattr("deploy.ray_session.COMPILING_AFTER_S", 1000.0)
    Compiling("kuhn", said.append, lambda: shown.append(0)).waiting_for(["warm"])
    assert len(said) == 1
