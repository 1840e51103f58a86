"""An existing Ray cluster of two nodes and an own server.

Behaviours checked:
* Ray asks for the token: a client without it gets in nowhere
* the bundled server is refused on more than one node, naming what to give instead
* two runs at once on one cluster and one server: each plays on both nodes, with keys, actors and
  lease of its own
* a copy of a run's directory is refused by name while that run is live, and changes nothing of it
* a run that ends leaves neither an actor nor the lease behind; the cluster goes on
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from replay.embedded import EmbeddedServer
from replay.redis_keys import RunKeys
from tests.deploy.waiting import ROOT, nothing_left
from tests.system.running import HOST, live_run, warm_kernels

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]

GENEROUS_S = 400.0

CLUSTER = """
import sys
from ray.cluster_utils import Cluster

node = {"num_cpus": 4, "object_store_memory": 100 << 20}
cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
cluster.add_node(**node)
cluster.wait_for_nodes()
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@contextlib.contextmanager
def cluster(folder: Path, token: Path) -> Iterator[str]:
    """A cluster of two nodes on this machine that asks for ``token``; yields its address."""
    environ = {
        **os.environ,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_TMPDIR": str(folder),
    }
    (folder / "ray").mkdir(parents=True)
    with nothing_left(folder):
        child = subprocess.Popen(
            [sys.executable, "-c", CLUSTER],
            cwd=ROOT,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            address = child.stdout.readline().strip()
            assert address, "the cluster did not start"
            yield address
        finally:
            child.stdin.close()
            child.stdout.close()
            child.wait(60)
            shutil.rmtree(folder)


def asked(address: str, code: str, token: Path | None) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a driver of the cluster."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("RAY_AUTH")}
    environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)} if token else {}
    script = f"import ray, json; ray.init({address!r}, logging_level='ERROR'); {code}"
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )


LIVING_ACTORS = (
    "from ray.util import list_named_actors;"
    "print(json.dumps(list_named_actors(all_namespaces=True)))"
)


def test_run_on_an_existing_cluster_with_an_own_server(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm_kernels()
    token = tmp_path / "token"
    token.write_text("ab" * 32)
    session = Path("/tmp") / f"cl-test-{os.getpid()}"
    server = EmbeddedServer(tmp_path / "own-server")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    try:
        with cluster(session, token) as address:
            assert asked(address, "print(1)", None).returncode != 0

            refused = subprocess.run(
                [
                    *(sys.executable, "-m", HOST, str(tmp_path / "bundled")),
                    f"runtime.ray_address={address}",
                ],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert refused.returncode == 1
            assert "--redis-url" in refused.stderr

            server.start()
            run_two(tmp_path, address, server, token)
    finally:
        server.stop()


def run_two(folder: Path, address: str, server: EmbeddedServer, token: Path) -> None:
    """Play two runs on the cluster for a while, stop them, and look at what is left."""
    overrides = (
        f"runtime.ray_address={address}",
        f"replay.redis_url={server.url}",
        "self_play.num_workers=1",
        "self_play.share=0.1",
        "runtime.step_limit_s=60",
    )
    with (
        redis.Redis.from_url(server.url) as client,
        live_run(folder / "one", *overrides) as (one, first),
    ):
        one.wait(lambda s: s.step > 0 and s.newest > 0, "some training", GENEROUS_S)
        keys = RunKeys(one.directory.load().run_id)
        assert len(nodes_of_actors(address, token)) == 2
        refuse_a_copy(one.directory.path, folder / "copy", *overrides)
        assert one.directory.load().owner_starts == 1
        with live_run(folder / "two", *overrides) as (two, second):
            two.wait(lambda s: s.step > 0 and s.newest > 0, "training beside it", GENEROUS_S)
            status = one.status()
            assert status is not None
            one.wait(lambda s: s.step > status.step, "training of the first run", GENEROUS_S)
            others = RunKeys(two.directory.load().run_id)
            assert client.exists(keys.lease, others.lease) == 2
            held = [client.hget(each.lease, "holder") for each in (keys, others)]
            assert [Path(holder.decode().partition(":")[2]) for holder in held if holder] == [
                folder / "one",
                folder / "two",
            ]
            prefixes = (keys.prefix.encode(), others.prefix.encode(), b"cardleague:check")
            assert [key for key in client.scan_iter() if not key.startswith(prefixes)] == []
            num_clients = len(client.client_list())
            # Of each run: two for the worker; owner, learner and gate. And this test's own.
            assert num_clients <= 2 * (2 + 7) + 1
            for supervisor in (first, second):
                supervisor.terminate()
            assert [first.wait(90), second.wait(90)] == [0, 0]
        assert not client.exists(keys.lease, others.lease)
        assert one.directory.load().step > 0
        found = asked(address, LIVING_ACTORS, token)
        assert json.loads(found.stdout.splitlines()[-1]) == [], found.stderr


def refuse_a_copy(run: Path, copy: Path, *overrides: str) -> None:
    """Start a copy of a live run's directory: it is refused before it touches the server."""
    shutil.copytree(run, copy)
    refused = subprocess.run(
        [sys.executable, "-m", HOST, str(copy), *overrides],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert refused.returncode == 1, refused.stderr
    assert f":{run}', which is live: stop it there" in refused.stderr


def nodes_of_actors(address: str, token: Path) -> set[str]:
    """Return the ids of the nodes on which the run's actors live."""
    code = (
        "from ray._private.state import actors;"
        "print(json.dumps([a['Address']['NodeID'] for a in actors().values()"
        " if a['State'] == 'ALIVE']))"
    )
    found = asked(address, code, token)
    answer: Any = json.loads(found.stdout.splitlines()[-1])
    return set(answer)
