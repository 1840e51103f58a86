"""The supervisor, with an owner that only obeys.

Behaviours checked:
* Ctrl-C, a second Ctrl-C and SIGTERM reach the owner as they should, and nothing is left running
* an owner that vanishes is started again; one that refuses is not; a deaf one is killed in time
* owners that fail one after another end the run, unless training got on meanwhile
* the closing table: full after a limit, bounded after Ctrl-C, skipped by a further one, none after
  SIGTERM
* an owner that shows no sign of life is replaced; its log has a bound
* a SIGTERM after two Ctrl-C ends in time too; a signal before the first owner starts nothing
* a live run is refused to a second supervisor; the supervisor's death ends its owner
* Ray's folder goes with the run, also when the owner could not remove it
* on a full disk neither owner nor server is given up, and what to free is said once
* it loads no ray, torch or numba
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploy import patience, ray_session, supervise
from deploy.config import RunConfig
from deploy.rundir import RunDirectory
from deploy.supervise import Supervisor
from tests.deploy.waiting import ROOT, processes_of, started, wait_for

HOST = "tests.deploy.supervisor_host"


def events(folder: Path) -> list[str]:
    path = folder / "events"
    return path.read_text().splitlines() if path.exists() else []


def owner_pids(folder: Path) -> list[int]:
    return [int(line.split()[1]) for line in events(folder) if line.startswith("owner ")]


def wait_for_owner(folder: Path, count: int = 1) -> int:
    wait_for(lambda: len(owner_pids(folder)) >= count, 20, f"owner number {count}")
    return owner_pids(folder)[count - 1]


def assert_nothing_left(folder: Path) -> None:
    wait_for(lambda: not processes_of(folder), 5, f"an end of {processes_of(folder)}")


def test_ctrl_c_saves_and_ends_everything_then_plays_a_bounded_closing_table(
    tmp_path: Path,
) -> None:
    with started(tmp_path, HOST, str(tmp_path)) as supervisor:
        wait_for_owner(tmp_path)
        supervisor.send_signal(signal.SIGINT)
        assert supervisor.wait(20) == 0
    assert events(tmp_path)[1:] == ["stop", "saved", "closing 60.0"]
    assert_nothing_left(tmp_path)


def test_second_ctrl_c_skips_the_drain_not_the_saving(tmp_path: Path) -> None:
    with started(tmp_path, HOST, str(tmp_path), "--owner", "slow") as supervisor:
        wait_for_owner(tmp_path)
        supervisor.send_signal(signal.SIGINT)
        wait_for(lambda: "stop" in events(tmp_path), 10, "the owner stopping")
        supervisor.send_signal(signal.SIGINT)
        assert supervisor.wait(20) == 0
    assert events(tmp_path)[1:] == ["stop", "saved", "closing 60.0"]
    assert_nothing_left(tmp_path)


def test_further_ctrl_c_skips_the_closing_table(tmp_path: Path) -> None:
    with started(tmp_path, HOST, str(tmp_path), "--owner", "slow-closing") as supervisor:
        wait_for_owner(tmp_path)
        supervisor.send_signal(signal.SIGINT)
        wait_for(lambda: "closing 60.0" in events(tmp_path), 10, "the closing table")
        supervisor.send_signal(signal.SIGINT)
        assert supervisor.wait(20) == 0
    assert_nothing_left(tmp_path)


def test_sigterm_saves_without_a_closing_table(tmp_path: Path) -> None:
    with started(tmp_path, HOST, str(tmp_path)) as supervisor:
        wait_for_owner(tmp_path)
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(20) == 0
    assert events(tmp_path)[1:] == ["stop", "saved"]
    assert_nothing_left(tmp_path)


def test_sigterm_ends_a_deaf_owner_within_the_stop_timeout(tmp_path: Path) -> None:
    with started(tmp_path, HOST, str(tmp_path), "--owner", "slow") as supervisor:
        wait_for_owner(tmp_path)
        began = time.monotonic()
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(20) == 1
        assert time.monotonic() - began < 7.0 + 2.0
    assert events(tmp_path)[1:] == ["stop"]
    assert_nothing_left(tmp_path)


def test_owner_that_ends_by_itself_gets_the_full_closing_table(tmp_path: Path) -> None:
    with started(
        tmp_path, HOST, str(tmp_path), "--owner", "finish", "--minutes", "2"
    ) as supervisor:
        assert supervisor.wait(20) == 0
    assert events(tmp_path)[0].endswith("limit 120.0")
    assert events(tmp_path)[1:] == ["closing 0.0"]


def test_killed_owner_is_started_again(tmp_path: Path) -> None:
    with started(tmp_path, HOST, str(tmp_path)) as supervisor:
        first = wait_for_owner(tmp_path)
        os.kill(first, signal.SIGKILL)
        second = wait_for_owner(tmp_path, 2)
        assert second != first
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(20) == 0
    assert_nothing_left(tmp_path)


def test_owner_that_hangs_is_replaced(tmp_path: Path) -> None:
    arguments = (str(tmp_path), "--owner", "show", "--silence-s", "3")
    with started(tmp_path, HOST, *arguments) as supervisor:
        first = wait_for_owner(tmp_path)
        wait_for(lambda: (tmp_path / "status.json").exists(), 10, "a sign of life")
        os.kill(first, signal.SIGSTOP)
        wait_for_owner(tmp_path, 2)
        assert first not in [process.pid for process in processes_of(tmp_path)]
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(20) == 0
    assert_nothing_left(tmp_path)


def test_sigterm_after_two_ctrl_c_has_its_own_limit(tmp_path: Path) -> None:
    with started(tmp_path, HOST, str(tmp_path)) as supervisor:
        os.kill(wait_for_owner(tmp_path), signal.SIGSTOP)
        supervisor.send_signal(signal.SIGINT)
        supervisor.send_signal(signal.SIGINT)
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(20) == 1
    assert_nothing_left(tmp_path)


def test_signal_before_the_first_owner_starts_nothing(tmp_path: Path) -> None:
    class SlowServer:
        """Asked to end while it starts."""

        url = "unix:///nowhere"

        def start(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

        def ensure(self) -> bool:
            raise AssertionError("nothing runs")

        def stop(self) -> None:
            (tmp_path / "server-stopped").touch()

    supervisor = Supervisor(
        RunConfig(), RunDirectory(tmp_path / "run"), resume=False, server=SlowServer()
    )
    assert supervisor.run() == 0
    assert (tmp_path / "server-stopped").exists()
    assert not RunDirectory(tmp_path / "run").is_live()
    assert not (tmp_path / "run" / "logs" / "owner.log").exists()


class BrokenServer:
    """Starts, is lost, and cannot be started again."""

    url = "unix:///nowhere"

    def __init__(self, *, at_start: bool = False) -> None:
        self.at_start = at_start
        self.num_tries = 0

    def start(self) -> None:
        if self.at_start:
            raise RuntimeError("no binary for this machine")

    def ensure(self) -> bool:
        self.num_tries += 1
        raise RuntimeError("its disk is gone")

    def stop(self) -> None:
        return


def test_server_that_cannot_start_ends_the_run_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, directory = BrokenServer(at_start=True), RunDirectory(tmp_path / "run")
    assert Supervisor(RunConfig(), directory, resume=False, server=server).run() == 1
    assert "no binary for this machine" in capsys.readouterr().err

    monkeypatch.setattr(supervise, "SERVER_CHECK_S", 0.0)
    server = BrokenServer()
    owner = [sys.executable, "-c", "import sys; sys.stdin.read(); import time; time.sleep(60)"]
    supervisor = Supervisor(
        RunConfig(), directory, resume=True, server=server, owner_command=lambda *_: [*owner]
    )
    assert supervisor.run() == 1
    assert server.num_tries == supervise.MAX_FAILURES
    assert "its disk is gone" in capsys.readouterr().err
    assert not directory.is_live()


class WaitingServer(BrokenServer):
    """Is lost on a full disk, and starts again once there is room."""

    tries = supervise.MAX_FAILURES + 2

    def ensure(self) -> bool:
        self.num_tries += 1
        if self.num_tries < self.tries / 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.num_tries < self.tries:
            raise RuntimeError("ended at once: its log is empty")
        return True

    def trouble_of(self, folder: Path) -> OSError | None:
        full = self.num_tries < self.tries
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if full else None


def test_a_full_disk_uses_up_no_tries_of_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, directory = WaitingServer(), RunDirectory(tmp_path / "run")
    monkeypatch.setattr(supervise, "SERVER_CHECK_S", 0.0)
    monkeypatch.setattr(supervise, "trouble_of", server.trouble_of)
    told = "import os, sys; words = sys.argv; at = words.index('--control-fd') + 1;"
    told += "sys.exit(0 if b'server-restarted' in os.read(int(words[at]), 100) else 1)"
    supervisor = Supervisor(
        RunConfig(),
        directory,
        resume=False,
        server=server,
        owner_command=lambda *_: [sys.executable, "-c", told],
        closing_command=lambda *_: [sys.executable, "-c", ""],
    )
    assert supervisor.run() == 0
    assert server.num_tries >= server.tries
    said = capsys.readouterr().err
    assert said.count("takes no data (No space left on device): free space on its disk") == 1
    assert "started again" in said


def test_owners_that_fail_on_a_full_disk_are_no_row_of_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    num_looks = [0]

    def trouble_of(folder: Path) -> OSError | None:
        num_looks[0] += 1
        full = num_looks[0] % 3 != 0  # when an owner failed, and the first time after
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if full else None

    monkeypatch.setattr(supervise, "trouble_of", trouble_of)
    monkeypatch.setattr(patience, "trouble_of", trouble_of)
    monkeypatch.setattr(patience, "RETRY_S", 0.0)
    monkeypatch.setattr(supervise, "MAX_DELAY_S", 0.0)
    count = tmp_path / "count"
    fails = f"import sys; n = open({str(count)!r}, 'a+'); n.write('x'); n.seek(0);"
    fails += f"sys.exit(0 if len(n.read()) > {supervise.MAX_FAILURES + 2} else 1)"
    supervisor = Supervisor(
        RunConfig(),
        RunDirectory(tmp_path / "run"),
        resume=False,
        server=StillServer(),
        owner_command=lambda *_: [sys.executable, "-c", fails],
        closing_command=lambda *_: [sys.executable, "-c", ""],
    )
    assert supervisor.run() == 0
    assert "free space on its disk" in capsys.readouterr().err
    assert len(count.read_text()) > supervise.MAX_FAILURES + 2


def test_owner_that_refuses_is_not_started_again(tmp_path: Path) -> None:
    with started(tmp_path, HOST, str(tmp_path), "--owner", "refuse") as supervisor:
        assert supervisor.wait(20) == 1
    assert len(owner_pids(tmp_path)) == 1
    assert "whist" in (tmp_path / "logs" / "owner.log").read_text()


class StillServer(BrokenServer):
    """Runs as long as it is looked at."""

    def ensure(self) -> bool:
        return False


def num_failing_owners(folder: Path, *, trained_by: int = 0) -> int:
    """Run owners that fail at once; return how many were started. One of them trained before."""
    directory, started = RunDirectory(folder), 0

    def command(*_: object) -> list[str]:
        nonlocal started
        started += 1
        if started == trained_by:
            manifest = directory.load()
            manifest.step += 1
            directory.save(manifest)
        return [sys.executable, "-c", "import sys; sys.exit('the disk is made of cheese')"]

    supervisor = Supervisor(
        RunConfig(), directory, resume=False, server=StillServer(), owner_command=command
    )
    assert supervisor.run() == 1
    return started


def test_owners_that_fail_in_a_row_end_the_run_unless_training_gets_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(supervise, "MAX_DELAY_S", 0.01)
    assert num_failing_owners(tmp_path / "stuck") == supervise.MAX_FAILURES
    said = capsys.readouterr().err
    log = tmp_path / "stuck" / "logs" / "owner.log"
    assert f"the owner ended with code 1, see {log}: the disk is made of cheese;" in said
    trained = num_failing_owners(tmp_path / "trained", trained_by=3)
    assert trained == supervise.MAX_FAILURES + 2


def test_the_folder_of_ray_goes_with_the_run_unless_another_copy_lives_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(ray_session, "_LONGEST_FOLDER", 1000)
    monkeypatch.setattr(supervise, "MAX_FAILURES", 1)
    directory = RunDirectory(tmp_path / "run")

    def command(*_: object) -> list[str]:
        folder = ray_session.session_folder(directory.load().run_id)
        script = "import os, sys; os.makedirs(sys.argv[1] + '/logs'); sys.exit(1)"
        return [sys.executable, "-c", script, str(folder)]

    def run(*, resume: bool) -> None:
        supervisor = Supervisor(
            RunConfig(), directory, resume=resume, server=StillServer(), owner_command=command
        )
        assert supervisor.run() == 1

    run(resume=False)
    folder = ray_session.session_folder(directory.load().run_id)
    assert folder.parent == tmp_path
    assert not folder.exists()
    other = subprocess.Popen(
        [sys.executable, "-c", "input()", f"--socket={folder}/raylet"], stdin=subprocess.PIPE
    )
    try:
        run(resume=True)
        assert folder.exists()
    finally:
        other.communicate(b"\n", timeout=20)


def test_second_supervisor_of_a_live_run_is_refused_by_name(tmp_path: Path) -> None:
    with started(tmp_path, HOST, str(tmp_path)) as supervisor:
        wait_for_owner(tmp_path)
        second = subprocess.run(
            [sys.executable, "-m", HOST, str(tmp_path)], cwd=ROOT, capture_output=True, timeout=20
        )
        assert second.returncode != 0
        assert b"is live in another process" in second.stderr
        assert str(tmp_path).encode() in second.stderr
        assert len(owner_pids(tmp_path)) == 1
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(20) == 0


def test_death_of_the_supervisor_ends_the_owner(tmp_path: Path) -> None:
    with started(tmp_path, HOST, str(tmp_path)) as supervisor:
        pid = wait_for_owner(tmp_path)
        supervisor.kill()
        supervisor.wait(5)
        wait_for(lambda: f"orphaned {pid}" in events(tmp_path), 10, "the owner noticing")
        assert_nothing_left(tmp_path)


def test_supervisor_loads_no_heavy_module() -> None:
    code = (
        "import sys, deploy.supervise, replay.embedded;"
        "print([m for m in ('ray', 'torch', 'numba', 'numpy', 'onnxruntime') if m in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=30
    )
    assert found.stdout.strip() == "[]", found.stderr


def test_log_of_the_bundled_server_is_bounded(tmp_path: Path) -> None:
    with started(tmp_path, HOST, str(tmp_path)) as supervisor:
        wait_for_owner(tmp_path)
        log = tmp_path / "server" / "server.log"
        log.parent.mkdir(exist_ok=True)
        log.write_bytes(b"x" * (9 << 20))
        wait_for(lambda: log.stat().st_size == 0, 20, "the cut")
        assert log.with_suffix(".log.1").stat().st_size == 9 << 20
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(20) == 0
