"""Real runs on a real small disk: below the floor they pause, full they wait, freed they go on.

A server that ends while it is full, and a run that is resumed on it, wait too, and say for what.

The disk is a tmpfs in a mount namespace of its own (tests.system.small_disk), which needs no rights
where user namespaces are allowed.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.waiting import ROOT

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(1100)]
LIMIT_S = 1000.0
WAYS = (("unshare", "--user", "--map-root-user", "--mount"), ("sudo", "-nE", "unshare", "--mount"))


@functools.cache
def namespace() -> tuple[str, ...]:
    """Return the command that mounts may be made under; empty when there is none here."""
    trial = "mount -t tmpfs -o size=1m tmpfs /mnt && test -w /mnt"
    for way in WAYS:
        if shutil.which(way[0]) is None:
            continue
        done = subprocess.run([*way, "sh", "-c", trial], capture_output=True, check=False)
        if done.returncode == 0:
            return way
    return ()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path: the server's socket lies in it."""
    path = Path(tempfile.mkdtemp(prefix="cl-disk-"))
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("scenario", ["inprocess", "ray"])
def test_a_full_disk_pauses_a_run_and_freed_it_goes_on(folder: Path, scenario: str) -> None:
    way = namespace()
    if not way:
        words = "no small disk can be mounted here: allow user namespaces (unshare -rm), or sudo"
        if os.environ.get("CI"):
            pytest.fail(words)
        pytest.skip(words)
    disk, output = folder / "disk", folder / "output"
    disk.mkdir()
    with open(output, "wb") as file:
        child = subprocess.Popen(
            [*way, sys.executable, "-m", "tests.system.small_disk", disk, output, scenario],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            code = child.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)  # it ends what it started
            code = child.wait(60)
    assert code == 0, output.read_text()[-6000:]
