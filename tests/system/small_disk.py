"""Plays runs on a small disk of their own, which is filled and freed while they live.

``python -m tests.system.small_disk FOLDER OUTPUT SCENARIO``: mounts a tmpfs on FOLDER and plays
SCENARIO there; OUTPUT is the file that standard output goes to, where the runs' plain lines are.
To be started in a mount namespace of its own, so that nothing stays mounted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import redis

from deploy import supervise
from deploy.decisions import RECENT_VERSIONS
from deploy.rundir import RunDirectory
from replay.redis_keys import RunKeys
from tests.deploy.waiting import started, wait_for
from tests.system.running import HOST, LiveRun, live_run, warm_kernels

MEGABYTES = 48
FLOOR_MB = 6
AGAIN_S = 180.0
REFUSED = "the run directory cannot be written (No space left on device)"


class SmallDisk:
    """A tmpfs and the file that fills it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        options = ("-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs")
        subprocess.run(["mount", *options, str(folder)], check=True)
        self._filler = folder / "filler"

    def fill(self, leave_mb: float = 0.0) -> None:
        """Write until only so much is free."""
        with open(self._filler, "ab", buffering=0) as file:
            for block in (1 << 20, 1 << 16, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while self.free() - block >= leave_mb * 2**20:
                        file.write(bytes(block))

    def free(self) -> int:
        """Return the free bytes."""
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def clear(self) -> None:
        """Give everything back."""
        self._filler.unlink()

    def is_full(self) -> bool:
        """Return whether nothing can be written."""
        try:
            (self.folder / "probe").write_bytes(b"1")
        except OSError as error:
            return error.errno == errno.ENOSPC
        finally:
            (self.folder / "probe").unlink(missing_ok=True)
        return False

    def filled_until(self, condition: Callable[[], object], what: str) -> None:
        """Keep the disk full until ``condition``, whatever the run removes meanwhile."""

        def met() -> bool:
            self.fill()
            return bool(condition())

        wait_for(met, AGAIN_S, what)


def over_ray(disk: SmallDisk, output: Path) -> None:
    """The floor first, then a disk that is full: server, owner and workers live on it."""
    warm_kernels()
    began = time.time()
    floor = f"replay.min_free_disk_gb={FLOOR_MB / 1000}"
    with live_run(disk.folder / "run", floor) as (run, supervisor):
        run.wait_started(began)
        run.wait(lambda s: s.newest > 0 and run.directory.load().step > 0, "a snapshot", AGAIN_S)
        owner = run.owner().pid

        disk.fill(leave_mb=FLOOR_MB / 2)
        low = run.wait(lambda s: s.state == "paused", "a pause below the floor", AGAIN_S)
        assert any("disk below 0.006 GB free: workers are paused" in words for words in low.alerts)
        disk.clear()
        goes_on(run, "the floor")

        said = len(output.read_text())
        disk.filled_until(lambda: REFUSED in output.read_text()[said:], "the alert")
        check_full(run, disk)
        assert run.owner().pid == owner
        assert supervisor.poll() is None
        server_cannot_start(run, disk, output)
        assert run.owner().pid == owner
        disk.clear()
        goes_on(run, "the full disk")
        # Plain lines show the newest event of their interval alone; the log has all of them.
        log = run.directory.logs_path / "owner.log"
        wait_for(lambda: "takes data again" in log.read_text(), AGAIN_S, "the end of it")

        supervisor.terminate()
        assert supervisor.wait(60) == 0
        run.assert_nothing_left()
        manifest = run.directory.load()
        assert manifest.owner_starts == 1
        assert manifest.totals.lost_entries == 0
        assert manifest.totals.rejected == {}


def goes_on(run: LiveRun, what: str) -> None:
    before = run.directory.load()
    run.wait(
        lambda s: (
            s.state == "running"
            and not s.alerts
            and s.newest > before.newest
            and run.directory.load().totals.games > before.totals.games
        ),
        f"a run that goes on after {what}",
        AGAIN_S,
    )


def check_full(run: LiveRun, disk: SmallDisk) -> None:
    """With a full disk the server refuses even PING and is read; nothing announced is not saved."""
    keys = RunKeys(run.directory.load().run_id)
    with redis.Redis(unix_socket_path=run.server()["socket"], socket_timeout=10) as client:

        def refuses() -> bool:
            try:
                client.ping()
                # Workers rest by now: a server that has nothing to write does not see the disk.
                client.set(f"{keys.prefix}probe", "1", ex=60)
            except redis.ResponseError as error:
                return "MISCONF" in str(error)
            return False

        disk.filled_until(refuses, "a server that refuses PING")
        assert client.xrange(keys.stream("0"), count=1)
        announced = {int(v) for v in client.zrange(f"{keys.prefix}models", 0, -1)}
    manifest = run.directory.load()
    # The other way round both may differ: a version is saved before the server has it, and an old
    # one forgotten before the server drops it; between the two the server may begin to refuse.
    recent = sorted(manifest.models)[-RECENT_VERSIONS:]
    assert max(announced) <= manifest.newest
    assert all(v < recent[0] for v in announced - manifest.models.keys())
    assert announced & manifest.models.keys()
    for record in manifest.models.values():
        run.directory.get(record.blob)
    assert manifest.learner is not None
    run.directory.get(manifest.learner)


def server_cannot_start(run: LiveRun, disk: SmallDisk, output: Path) -> None:
    """A server that ends on a full disk is tried again for longer than any other fault allows."""
    os.kill(run.server()["pid"], signal.SIGKILL)
    told = f"does not start: {run.directory.server_path} takes no data (No space left on device)"
    disk.filled_until(lambda: told in output.read_text(), "what the server waits for")
    lasts_s = 2 * supervise.MAX_FAILURES * supervise.SERVER_CHECK_S
    until = time.monotonic() + lasts_s
    disk.filled_until(lambda: time.monotonic() > until, "more tries than the limit")
    assert output.read_text().count(told) == 1


def resumed(disk: SmallDisk, folder: Path, output: Path) -> None:
    """A run is resumed on a full disk: the command says what to free, and waits for it."""
    directory = RunDirectory(folder)
    stood = directory.load()
    disk.fill()
    command = ("deploy.cli", "resume", str(folder))
    with started(folder, *command) as supervisor:
        told = f"{folder} takes no data (No space left on device): free space on its disk"
        disk.filled_until(lambda: told in output.read_text(), "what the run waits for")
        assert supervisor.poll() is None
        assert directory.load() == stood
        disk.clear()
        wait_for(lambda: directory.load().step > stood.step + 20, AGAIN_S, "a run that goes on")
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(60) == 0
    disk.fill()
    with started(folder, *command) as supervisor:
        told_before = output.read_text().count(told)
        disk.filled_until(lambda: output.read_text().count(told) > told_before, "the same again")
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(60) == 1
    assert "Traceback" not in output.read_text()
    disk.clear()


def inprocess(disk: SmallDisk, output: Path) -> None:
    """Everything waits with the write that failed, and goes on; so does what is resumed."""
    warm_kernels()
    folder = disk.folder / "run"
    directory = RunDirectory(folder)
    with started(folder, HOST, str(folder), "runtime.kind=inprocess") as supervisor:
        wait_for(lambda: directory.exists() and directory.load().step > 20, AGAIN_S, "a snapshot")
        disk.filled_until(lambda: REFUSED in output.read_text(), "the alert")
        stood = directory.load()
        assert disk.is_full()
        assert supervisor.poll() is None
        disk.clear()
        wait_for(lambda: directory.load().step > stood.step + 20, AGAIN_S, "a run that goes on")
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(60) == 0
    manifest = directory.load()
    assert manifest.owner_starts == 1
    assert manifest.totals.lost_entries == 0
    resumed(disk, folder, output)


SCENARIOS = {"ray": over_ray, "inprocess": inprocess}


def main() -> int:
    folder, output, scenario = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    SCENARIOS[scenario](SmallDisk(folder), output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
