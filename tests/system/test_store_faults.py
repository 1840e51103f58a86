"""What a server does to a live run: one run on Kuhn over real Ray goes through all of it.

Behaviours checked, in this order:
* a second ``cardleague resume`` of a live run is refused by name (of two at once, one goes on)
* a model that vanishes from the server is published again
* a disk that confirms nothing: nothing is accepted, outboxes are bounded, nothing is lost later
* memory: workers pause at 60 %, models are still published, the alert says what to change, and who
  does that sees the run go on; what was old is trimmed
* an older copy of the server's files: marks drop the repeats, the run goes on
* FLUSHALL: what is gone is said, models are published again, the run goes on
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from deploy.rundir import RunDirectory
from deploy.status import RunStatus
from replay.redis_keys import RunKeys
from tests.deploy.waiting import ROOT, nothing_left, wait_for
from tests.system.running import LiveRun, live_run, warm_kernels

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]
AGAIN_S = 180.0
OUTBOX = 40
OPTIONS = (
    "self_play.num_workers=1",
    f"self_play.outbox_games={OUTBOX}",
    "learner.held_out_share=0",
    "learner.window_positions=2500",
    "learner.min_window_positions=200",
    "replay.waitaof_timeout_s=0.5",
)
GAMES_AT_ONCE = 32
"""Of the preset: so many more may end while a worker is told to pause."""


class Faults:
    """The live run and its server."""

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        self.keys = RunKeys(run.directory.load().run_id)
        self.stream = self.keys.stream("0")

    @property
    def client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=self.run.server()["socket"], socket_timeout=10)

    def set(self, name: str, value: str) -> None:
        with self.client as client:
            client.config_set(name, value)

    def status(self) -> RunStatus:
        return self.run.wait(lambda _: True, "a status")

    def log(self) -> str:
        return (self.run.directory.logs_path / "owner.log").read_text()

    def wait_for_log(self, words: str) -> None:
        wait_for(lambda: words in self.log(), AGAIN_S, f"{words!r} in the owner's log")

    def goes_on(self, what: str) -> RunStatus:
        """Wait until games, versions and snapshots go on, unpaused; return the status then."""
        before, stored = self.status(), self.run.directory.load()
        after = self.run.wait(
            lambda s: (
                s.state == "running"
                and s.totals.games > before.totals.games + 100
                and s.newest > before.newest
                and self.run.directory.load().step > stored.step
            ),
            f"a run that goes on after {what}",
            AGAIN_S,
        )
        totals = after.totals
        assert totals.entries == totals.games + sum(totals.rejected.values())
        assert totals.games == totals.window_games + totals.evicted_games + totals.held_out_games
        return after


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    warm_kernels()
    folder, began = tmp_path_factory.mktemp("faults") / "run", time.time()
    with live_run(folder, *OPTIONS) as (run, supervisor):
        run.wait_started(began)
        run.wait(lambda s: s.newest > 0 and run.directory.load().step > 0, "a snapshot", AGAIN_S)
        yield Faults(run)
        status = run.wait(lambda _: True, "a status")
        assert run.directory.load().owner_starts == 1, "no fault has ended the owner"
        assert supervisor.poll() is None
        supervisor.terminate()
        assert supervisor.wait(60) == 0
        assert run.directory.load().totals.games >= status.totals.games
        run.assert_nothing_left()


def resume(folder: Path, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "deploy.cli", "resume", str(folder)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def assert_refused(code: int, error: str, folder: Path) -> None:
    assert code == 2
    (line,) = error.strip().splitlines()
    assert str(folder) in line
    assert "live" in line


def test_second_resume_of_a_live_run_is_refused_by_name(live: Faults) -> None:
    folder = live.run.directory.path
    before = live.run.directory.load().owner_starts
    second = resume(folder)
    _, error = second.communicate(timeout=AGAIN_S)
    assert_refused(second.returncode, error, folder)
    assert live.run.directory.load().owner_starts == before


def test_of_two_resumes_at_once_one_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "tests.system.run_host", str(folder)]
    local = ("runtime.kind=inprocess", "report.num_games=2")
    with nothing_left(tmp_path):
        first = subprocess.Popen([*command, *local], cwd=ROOT, start_new_session=True)
        wait_for(lambda: (folder / "status.json").exists(), AGAIN_S, "a first status")
        first.send_signal(signal.SIGINT)
        assert first.wait(AGAIN_S) == 0
        both = [resume(folder, start_new_session=True) for _ in range(2)]
        wait_for(lambda: any(p.poll() is not None for p in both), AGAIN_S, "a refusal")
        (refused,) = [process for process in both if process.poll() is not None]
        (other,) = [process for process in both if process is not refused]
        assert_refused(refused.wait(), refused.communicate()[1], folder)
        directory = RunDirectory(folder)
        wait_for(lambda: directory.load().owner_starts == 2, AGAIN_S, "the other one's owner")
        other.send_signal(signal.SIGINT)
        _, error = other.communicate(timeout=AGAIN_S)
        assert other.returncode == 0, error


def test_vanished_model_is_published_again(live: Faults) -> None:
    status = live.status()
    with live.client as client:
        key = next(k for k in client.scan_iter("*") if k.endswith(b":%d" % status.champion))
        assert client.delete(key) == 1
        wait_for(lambda: client.exists(key), AGAIN_S, "the model")
    live.goes_on("a vanished model")


def test_nothing_is_accepted_while_the_disk_confirms_nothing_and_nothing_is_lost(
    live: Faults,
) -> None:
    live.set("appendfsync", "no")
    # Full, and told to pause: it stays within its bound.
    full = live.run.wait(
        lambda s: s.workers[0].outbox >= OUTBOX, "an outbox that fills up", AGAIN_S
    )
    assert full.workers[0].outbox <= OUTBOX + GAMES_AT_ONCE
    held = live.run.wait(
        lambda s: s.updated_at > full.updated_at + 3 and s.games_per_s == 0, "a pause", AGAIN_S
    )
    assert OUTBOX <= held.workers[0].outbox <= OUTBOX + GAMES_AT_ONCE
    live.set("appendfsync", "everysec")
    live.run.wait(lambda s: s.workers[0].outbox < OUTBOX, "accepted games", AGAIN_S)
    after = live.goes_on("a slow disk")
    assert after.totals.lost_entries == 0


def add_ballast(client: redis.Redis, stream: str, megabytes: int) -> None:
    """Fill the stream with entries that are no trajectories, of the size of the stream's nodes.

    (The server estimates a stream's memory from its first nodes.)
    """
    with client.pipeline(transaction=False) as pipe:
        for _ in range(megabytes << 20 >> 12):
            pipe.xadd(stream, {"ballast": os.urandom(3900)})
        pipe.execute()


def test_workers_pause_at_60_percent_of_memory_and_the_advice_helps(live: Faults) -> None:
    before = live.status()
    with live.client as client:
        live.set("maxmemory", "18mb")
        add_ballast(client, live.stream, 12)
        full = live.run.wait(
            lambda s: s.state == "paused" and bool(s.alerts), "a pause for memory", AGAIN_S
        )
        alert = next(words for words in full.alerts if "the streams fill" in words)
        assert "raise replay.maxmemory_mb" in alert
        assert "lower learner.window_positions" in alert
        # There is room for models: one that vanishes is published again.
        key = next(k for k in client.scan_iter("*") if k.endswith(b":%d" % full.champion))
        client.delete(key)
        wait_for(lambda: client.exists(key), AGAIN_S, "a model beside full streams")
        # Now there is no room at all, whatever the server counts beside its streams.
        live.set("maxmemory", "1mb")
        try:
            with pytest.raises(redis.exceptions.OutOfMemoryError):
                client.set("cardleague:test", "x")
            paused = live.status()
            later = live.run.wait(lambda s: s.updated_at > paused.updated_at + 3, "a status")
            assert later.state == "paused"
        finally:  # the run goes on for the tests below
            live.set("maxmemory", "64mb")
        after = live.goes_on("full memory")
        assert after.totals.rejected["stray"] - before.totals.rejected.get("stray", 0) == 12 << 8
        wait_for(
            lambda: (client.memory_usage(live.stream) or 0) < 4 << 20,
            AGAIN_S,
            "the trimming of what lies below the window",
        )
    assert after.totals.lost_entries == before.totals.lost_entries


def test_older_copy_of_the_servers_files_is_read_and_nothing_counts_twice(live: Faults) -> None:
    data, copy = live.run.directory.server_path, live.run.directory.path.parent / "copy"
    folder = next(path for path in data.iterdir() if path.is_dir())
    before = live.status()
    shutil.copytree(folder, copy)
    live.goes_on("a copy")
    supervisor = live.run.owner().parent()
    assert supervisor is not None
    # What a worker sends again would have the stream end behind the cursor as if nothing was lost.
    for worker in live.run.actors("SelfPlayHost"):
        worker.suspend()  # it is replaced
    supervisor.suspend()  # or it would start the server before its files are the old ones
    try:
        pid = live.run.server()["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not Path(f"/proc/{pid}/cmdline").read_bytes(), 20, "the server's end")
        shutil.rmtree(folder)
        shutil.copytree(copy, folder)
    finally:
        supervisor.resume()
    live.wait_for_log("it is read again from its start")
    after = live.goes_on("an older copy")
    assert after.totals.games > before.totals.games
    assert after.server_restarts == before.server_restarts + 1
    with live.client as client:
        there = set(client.scan_iter("*"))
        assert any(key.endswith(b":%d" % after.champion) for key in there)


def test_flushed_server_gets_its_models_again_and_the_run_goes_on(live: Faults) -> None:
    before = live.status()
    with live.client as client:
        client.flushall()
        live.wait_for_log("the streams were lost and begin anew")
        after = live.goes_on("FLUSHALL")
        assert any(k.endswith(b":%d" % after.champion) for k in client.scan_iter("*"))
    lost = after.totals.lost_entries - before.totals.lost_entries
    assert lost == 0 or f"{lost} accepted trajectories are gone" in live.log()
    assert bool(after.totals.lost_entries) == any("were lost" in alert for alert in after.alerts)
