"""Ray's head does not grow with the number of calls that actors answer.

By default it remembers each of them, with its events: some kilobytes a call, several calls a
second, for hours.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.ray_session import session_folder
from tests.deploy.waiting import ROOT, nothing_left

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

RUN_ID = "forgetful"
CALLS = 1500
MEGABYTES = 2.0
"""Remembering so many calls takes more than twice as much."""
CALLER = """
import json, os, sys, time
from pathlib import Path
import psutil
from deploy.cluster import actor_options
from deploy.config import RunConfig, RuntimeConfig
from deploy.ray_session import RaySession
from deploy.rundir import RunDirectory

calls = int(sys.argv[2])
config = RunConfig(runtime=RuntimeConfig(num_cpus=1, object_store_mb=100))
with RaySession(config, RunDirectory(Path(sys.argv[1])), "forgetful"):
    import ray

    class Host:
        def step(self, request):
            return request

    options = actor_options("host", is_local=True, threads=1, gpu=False)
    host = ray.remote(Host).options(**options).remote()
    children = psutil.Process().children(recursive=True)
    (head,) = [child for child in children if child.name() == "gcs_server"]

    def memory_after(number):
        for _ in range(number):
            ray.get(host.step.remote(b"a request"))
        time.sleep(2.5)  # events are sent once a second
        return head.memory_info().rss

    print(json.dumps([memory_after(300), memory_after(calls)]))
"""


def test_the_head_does_not_remember_calls(tmp_path: Path) -> None:
    with nothing_left(tmp_path), nothing_left(session_folder(RUN_ID)):
        done = subprocess.run(
            [sys.executable, "-c", CALLER, str(tmp_path), str(CALLS)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    shutil.rmtree(session_folder(RUN_ID), ignore_errors=True)
    assert done.returncode == 0, done.stderr[-3000:]
    before, after = json.loads(done.stdout.splitlines()[-1])
    assert after - before < MEGABYTES * 1e6
