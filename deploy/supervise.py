"""The supervisor: a small process that holds the run, with two children in sessions of their own.

Room: deploy. Loads no ray, torch or numba. May import replay.embedded (the bundled server).

    supervisor   run.lock, signals, restarts
      server     bundled Valkey; not there in the in-process runtime or with an own server
      owner      deploy.cluster or deploy.local: may vanish at any instruction

A disk that takes no data is waited for, and told in a sentence: neither owner nor server is given
up for it, and a run may be resumed on it.

Ctrl-C reaches the supervisor alone, since the children are in other sessions: the server lives
until the owner has saved. A second Ctrl-C skips the owner's drain; SIGTERM (and SIGHUP) save within
``runtime.stop_timeout_s``. The closing table is a child of its own, after the manifest.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from deploy import control
from deploy.config import RunConfig
from deploy.files import Lock, bound_log
from deploy.manifest import ResumeError, apply_config, new_manifest, stamp
from deploy.patience import NoRoomError, Room, no_room
from deploy.processes import LifeSign, ProcessBook, mark
from deploy.ray_session import remove_session_folder
from deploy.rundir import RunDirectory
from deploy.signals import Signals
from replay.disk import is_disk_trouble, trouble_of

MAX_FAILURES = 6
"""Owners that fail one after another before the supervisor gives up."""
STEADY_S = 120.0
"""An owner that lived so long ends a row of failures; so does one whose training got on."""
MAX_DELAY_S = 20.0
SAVE_LIMIT_S = 120.0
"""After Ctrl-C the owner is given so long to drain and save before it is killed."""
SERVER_CHECK_S = 2.0
SERVER_STOP_S = 5.0
"""Of ``stop_timeout_s``, kept for the server and the last waits."""
OWNER_END_S = 2.0
"""Of what is left, kept for the owner's own end."""
OWNER_SILENCE_S = 180.0
"""An owner that trained and shows no new status for so long hangs: it is replaced."""
OWNER_START_S = 900.0
"""The same before its first status: it may compile, and wait for a server that loads."""
MAX_LOG_BYTES = 8 << 20
"""The logs of owner and server are cut there; one earlier piece of each is kept."""


class Server(Protocol):
    """What the supervisor needs of the bundled server (``replay.embedded.EmbeddedServer``)."""

    @property
    def url(self) -> str: ...

    def start(self) -> None: ...

    def ensure(self) -> bool: ...

    def stop(self) -> None: ...


class SupervisorError(RuntimeError):
    """What keeps a run from going on, in words; the run is as of its manifest."""


OwnerCommand = Callable[[RunDirectory, RunConfig, str], list[str]]
"""``(directory, config, server url) -> command``; options are appended."""


def train(config: RunConfig, run_directory: Path, *, resume: bool, minutes: float | None) -> int:
    """Run until Ctrl-C, SIGTERM or ``minutes`` of training; return the exit code.

    Raises ResumeError for a run that cannot go on and RunLockedError for one that is live; nothing
    was changed then. Main thread only.
    """
    return Supervisor(config, RunDirectory(run_directory), resume=resume, minutes=minutes).run()


class Supervisor:
    """One invocation of ``cardleague train``."""

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        *,
        resume: bool,
        minutes: float | None = None,
        owner_command: OwnerCommand | None = None,
        server: Server | None = None,
        closing_command: Callable[[RunDirectory, float], list[str]] | None = None,
        owner_silence_s: float = OWNER_SILENCE_S,
    ) -> None:
        """Prepare; ``owner_command``, ``server`` and ``closing_command`` replace the real ones."""
        self._config = config
        self._directory = directory
        self._resume = resume
        self._minutes = minutes
        self._owner_command = owner_command or _owner_command
        self._closing_command = closing_command or _closing_command
        self._server = server
        self._owner: subprocess.Popen[bytes] | None = None
        self._control = -1
        self._book = ProcessBook(directory.processes_path("owner"), directory.files)
        self._ray_book = ProcessBook(directory.processes_path("ray"), directory.files)
        self._signals = Signals()
        self._room = Room(directory.path, self._signals, _say)
        self._limit_elapsed_s = 0.0
        self._server_checked = 0.0
        self._server_failures = 0
        self._server_waits = False
        """It could not be started for want of room on the disk, which was told."""
        self._server_url = ""
        self._run_id = ""
        self._life = LifeSign(directory.status_path, owner_silence_s, OWNER_START_S)

    def run(self) -> int:
        """See ``train``."""
        self._check_existence()
        with self._signals.installed():
            try:
                with self._room.patiently(self._take_lock):
                    self._room.patiently(self._open_manifest)
                    return self._live()
            except NoRoomError as error:
                _say(str(error))
                return 1

    def _live(self) -> int:
        """Start everything, watch it, and end it; return the exit code."""
        self._end_leftovers()
        try:
            self._room.patiently(self._start_server)
            code = self._watch_owner()
        except (RuntimeError, OSError) as error:  # the server's
            _say(str(error))
            code = 1
        finally:
            self._kill_owner()
            if self._server is not None:
                self._server.stop()
            if not self._config.runtime.ray_address:
                remove_session_folder(self._run_id)
        self._signals.saved()
        if code == 0 and self._signals.terminated == 0:
            self._closing_table()
        return code

    def _take_lock(self) -> Lock:
        self._directory.prepare()
        return self._directory.lock()

    def _check_existence(self) -> None:
        if self._resume:
            self._directory.load()
        elif self._directory.exists():
            raise ResumeError(f"{self._directory.path} holds a run already: resume it")

    # --- beginning --------------------------------------------------------------------------------

    def _open_manifest(self) -> None:
        self._check_existence()  # again: another start may have been quicker to the lock
        if self._resume:
            manifest = self._directory.load()
            apply_config(manifest, self._config)
            stamp(manifest, sys.argv)
        else:
            manifest = new_manifest(self._config, sys.argv)
        self._directory.save(manifest)
        self._run_id = manifest.run_id
        if self._minutes:
            self._limit_elapsed_s = manifest.elapsed_s + 60.0 * self._minutes

    def _end_leftovers(self) -> None:
        """End what a killed supervisor or owner of this run left behind."""
        patience_s = 0.5 if self._signals.terminated else 5.0
        self._book.end_all(patience_s)
        self._ray_book.end_all(patience_s)

    def _start_server(self) -> None:
        if self._server is None:
            self._server = _bundled_server(self._directory, self._config)
        if self._server is not None:
            try:
                self._server.start()
            except RuntimeError as error:
                if (trouble := trouble_of(self._directory.path)) is not None:
                    raise trouble from error
                raise
            self._server_url = self._server.url

    # --- the owner --------------------------------------------------------------------------------

    def _watch_owner(self) -> int:
        """Keep an owner running until it has ended on purpose; return the exit code."""
        failures = 0
        while not self._signals.stopping:
            began, steps = time.monotonic(), self._stored_steps()
            self._room.patiently(self._start_owner)
            code = self._wait_for_owner()
            if code == 0:
                return 0
            if self._signals.stopping:
                _say(f"while it was to save, {self._ended(code)}; the run is as of its manifest")
                return 1
            if code == control.EXIT_REFUSED:
                _say(f"the owner refused to go on, see {self._log_path}: {self._log_tail()}")
                return 1
            steady = time.monotonic() - began > STEADY_S or self._stored_steps() > steps
            trouble = trouble_of(self._directory.path)
            failures = 0 if trouble is not None else 1 if steady else failures + 1
            if failures >= MAX_FAILURES:
                _say(f"the owner failed {failures} times in a row, see {self._log_path}")
                return 1
            self._end_leftovers()
            if trouble is not None:
                self._room.wait(trouble)
            delay_s = min(MAX_DELAY_S, 2.0 ** max(0, failures - 1))
            _say(f"{self._ended(code)}; starting again in {delay_s:.0f} s")
            self._signals.wait(delay_s)
            if self._signals.stopping:
                return 1
        return 0  # asked to end before anything was started

    def _stored_steps(self) -> int:
        """Return the optimizer steps of the manifest: what a killed owner leaves to the next."""
        return self._directory.load().step

    def _start_owner(self) -> None:
        read, write = os.pipe()
        command = self._owner_command(self._directory, self._config, self._server_url)
        command += ["--control-fd", str(read), "--limit-elapsed-s", str(self._limit_elapsed_s)]
        try:
            with open(self._log_path, "ab") as log:
                self._owner = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=(read,),
                )
        finally:
            os.close(read)
        self._control = write
        self._life.begin()
        started = mark(self._owner.pid)
        self._book.write([] if started is None else [started])

    def _wait_for_owner(self) -> int:
        """Wait until the owner ends; pass on what signals ask for, and look after the server."""
        assert self._owner is not None
        told: set[str] = set()
        kill_at = float("inf")
        while True:
            code = self._owner.poll()
            if code is not None:
                self._drop_control()
                return code
            for wish in self._signals.wishes():
                if wish not in told:
                    told.add(wish)
                    kill_at = min(kill_at, time.monotonic() + self._ask_to_save(wish))
            if time.monotonic() > kill_at:
                _say("the owner did not save in time: ended, the run is as of its manifest")
                self._kill_owner()
                return -signal.SIGKILL
            if self._life.is_silent():
                _say("the owner shows no sign of life: ended")
                self._kill_owner()
                return -signal.SIGKILL
            self._look_after_server()
            bound_log(self._log_path, MAX_LOG_BYTES)
            bound_log(self._directory.server_log_path, MAX_LOG_BYTES)
            self._signals.wait(0.25 if told else 0.5)

    def _ask_to_save(self, wish: str) -> float:
        """Tell the owner; return how long it may take before it is killed."""
        if wish != control.WITHIN:
            self._tell(wish)
            return SAVE_LIMIT_S
        limit_s = max(1.0, self._config.runtime.stop_timeout_s - SERVER_STOP_S)
        self._tell(f"{control.WITHIN} {max(0.0, limit_s - OWNER_END_S)}")
        return limit_s

    def _tell(self, line: str) -> None:
        try:
            os.write(self._control, f"{line}\n".encode())
        except (BrokenPipeError, OSError):
            return  # it is ending; its exit code comes next

    def _drop_control(self) -> None:
        if self._control >= 0:
            os.close(self._control)
            self._control = -1

    def _kill_owner(self) -> None:
        """End the owner and what it started; for one that has ended this only cleans up."""
        if self._owner is not None and self._owner.poll() is None:
            self._owner.kill()
            self._owner.wait()
        self._drop_control()
        self._end_leftovers()

    # --- the server -------------------------------------------------------------------------------

    def _look_after_server(self) -> None:
        """Start the server again if it is gone or silent; the owner too if its address moved."""
        now = time.monotonic()
        if self._server is None or now - self._server_checked < SERVER_CHECK_S:
            return
        self._server_checked = now
        try:
            replaced = self._server.ensure()
        except (RuntimeError, OSError) as error:  # replay's StoreError, or the disk's
            self._note_server_failure(error)
            return
        self._server_failures, self._server_waits = 0, False
        if replaced:
            _say("the bundled server was gone: started again")
            self._tell(control.SERVER_RESTARTED)
            if self._server.url != self._server_url and self._owner is not None:
                self._server_url = self._server.url
                self._owner.kill()

    def _note_server_failure(self, error: Exception) -> None:
        """Count a start of the server that failed; raise SupervisorError for the last one.

        While the disk takes no data none counts: it is told once, and tried again and again.
        """
        trouble = trouble_of(self._directory.path)
        if trouble is None and isinstance(error, OSError):
            if not is_disk_trouble(error):
                raise SupervisorError(f"the bundled server does not start: {error}") from error
            trouble = error
        if trouble is not None:
            if not self._server_waits:
                words = no_room(self._directory.server_path, trouble)
                _say(f"the bundled server does not start: {words}")
            self._server_waits = True
            return
        self._server_failures += 1
        _say(f"the bundled server does not start: {error}")
        if self._server_failures >= MAX_FAILURES:
            raise SupervisorError("the bundled server failed too often") from error

    # --- the closing table ------------------------------------------------------------------------

    def _closing_table(self) -> None:
        """Measure the champion in a child; Ctrl-C and SIGTERM end that."""
        limit_s = self._config.report.interrupted_s if self._signals.interrupts else 0.0
        if self._signals.interrupts and limit_s == 0:
            return
        child = subprocess.Popen(
            self._closing_command(self._directory, limit_s),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        while child.poll() is None:
            if self._signals.interrupted_again():
                child.terminate()
                try:
                    child.wait(SERVER_STOP_S)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
                _say("the closing table was skipped")
                return
            self._signals.wait(0.25)
        if child.returncode != 0:
            _say(f"the closing table failed with code {child.returncode}")

    @property
    def _log_path(self) -> Path:
        return self._directory.logs_path / "owner.log"

    def _ended(self, code: int) -> str:
        """Return how the owner ended; one that was not killed has said why in its log."""
        if code < 0:
            return f"the owner was ended by signal {-code}"
        return f"the owner ended with code {code}, see {self._log_path}: {self._log_tail()}"

    def _log_tail(self) -> str:
        lines = self._log_path.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "its log is empty"


def _bundled_server(directory: RunDirectory, config: RunConfig) -> Server | None:
    """Return the bundled server, not started; None where the run does not use it."""
    if config.runtime.kind == "inprocess" or config.replay.redis_url:
        return None
    from replay.embedded import EmbeddedServer

    return EmbeddedServer(
        directory.server_path,
        maxmemory_mb=config.replay.maxmemory_mb,
        silence_s=config.replay.server_silence_s,
        stop_timeout_s=SERVER_STOP_S * 0.8,
    )


def _owner_command(directory: RunDirectory, config: RunConfig, server_url: str) -> list[str]:
    module = "deploy.local" if config.runtime.kind == "inprocess" else "deploy.cluster"
    command = [sys.executable, "-m", module, str(directory.path)]
    return [*command, "--server-url", server_url] if server_url else command


def _closing_command(directory: RunDirectory, limit_s: float) -> list[str]:
    command = [sys.executable, "-m", "deploy.closing", str(directory.path)]
    return [*command, "--limit-s", str(limit_s)]


def _say(message: str) -> None:
    sys.stderr.write(f"cardleague: {message}\n")
