"""The Ray of a run: started on this machine, or an existing cluster; ended without leftovers.

Room: deploy. The one place beside deploy.cluster that imports ray, inside the functions.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import psutil

from deploy.config import RunConfig
from deploy.processes import ProcessBook, ProcessMark, descendants, end, find
from deploy.rundir import RunDirectory

AUTH_MODE = "RAY_AUTH_MODE"
TOKEN_PATH = "RAY_AUTH_TOKEN_PATH"
TOKEN = "RAY_AUTH_TOKEN"
_VITAL_PROCESSES = ("raylet", "gcs_server")
LOG_BOUNDS = {"RAY_ROTATION_MAX_BYTES": str(4 << 20), "RAY_ROTATION_BACKUP_COUNT": "1"}
"""Each of Ray's log files begins again at so many bytes; by itself it does so at 512 MB."""
COMPILING_AFTER_S = 10.0
"""A node that has compiled before answers earlier, for it only loads."""
OWNER_MODULE = "deploy.cluster"
"""In the command line of every owner, before its run directory."""
_LONGEST_FOLDER = 30
"""Ray adds about 70 characters for its sockets; the kernel takes 107 in all."""


class RaySessionError(ValueError):
    """A cluster that is not used like this; says what to change."""


def set_authentication(
    config: RunConfig, directory: RunDirectory, environment: MutableMapping[str, str]
) -> None:
    """Set Ray's token in ``environment``, in place, before ray is imported.

    A local Ray gets a token of its own, in a file of mode 0600: its ports are open to everybody who
    reaches this machine. Raises RaySessionError for an existing cluster without a token, unless
    ``runtime.allow_open_ray``.
    """
    if not config.runtime.ray_address:
        path = directory.token_path
        if not path.exists():
            directory.files.write_secret(path, secrets.token_hex(32).encode())
        environment.pop(TOKEN, None)
        environment[AUTH_MODE] = "token"
        environment[TOKEN_PATH] = str(path.resolve())
        return
    environment[AUTH_MODE] = "token" if check_token(config, environment) else "disabled"


def check_token(config: RunConfig, environment: Mapping[str, str]) -> bool:
    """Return whether there is a token for the existing cluster; False where an open one is allowed.

    Raises RaySessionError where neither is.
    """
    if environment.get(TOKEN) or environment.get(TOKEN_PATH):
        return True
    if not config.runtime.allow_open_ray:
        raise RaySessionError(
            f"runtime.ray_address = {config.runtime.ray_address!r} without a token: set "
            f"{TOKEN_PATH} to the cluster's token file, or accept an open cluster with "
            "--allow-open-ray"
        )
    return False


def session_folder(run_id: str) -> Path:
    """Return the run's own folder for Ray's sockets and logs: short, the same at every start."""
    name = f"cl-{run_id}"
    folder = Path(tempfile.gettempdir()) / name
    return folder if len(str(folder)) <= _LONGEST_FOLDER else Path("/tmp") / name


def _check_free(folder: Path) -> None:
    """Raise RaySessionError when a live owner uses ``folder``: that of another copy of the run.

    Ray that a killed owner left behind has no owner above it any more.
    """
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.name() not in _VITAL_PROCESSES or str(folder) not in " ".join(
                process.cmdline()
            ):
                continue
            parent = process.parent()
            words = parent.cmdline() if parent is not None else []
            if OWNER_MODULE in words and parent is not None and parent.pid != os.getpid():
                where = words[words.index(OWNER_MODULE) + 1]
                raise RaySessionError(
                    f"this run is live on this machine from {where}: stop it there, or copy it "
                    "to another machine"
                )


def remove_session_folder(run_id: str) -> None:
    """Remove what an owner that could not do it itself left in its folder.

    Not while a process uses it: another copy of the run may be live on this machine.
    """
    folder = session_folder(run_id)
    if not folder.exists():
        return
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(folder) in " ".join(process.cmdline()):
                return
    shutil.rmtree(folder, ignore_errors=True)


class RayLostError(RuntimeError):
    """The Ray under this process is gone: the owner ends and is started again with a fresh one."""


class RaySession:
    """A connection to Ray; a context manager on the main thread.

    Ray ties the life of its local processes to the thread that calls ``ray.init``.
    """

    def __init__(self, config: RunConfig, directory: RunDirectory, run_id: str) -> None:
        self._config = config
        self._run_id = run_id
        self._folder = session_folder(run_id)
        self._book = ProcessBook(directory.processes_path("ray"), directory.files)
        self._vital: list[ProcessMark] = []
        self.is_local = not config.runtime.ray_address
        if "ray" in sys.modules:
            raise RuntimeError("ray was loaded before it was told how to authenticate")
        set_authentication(config, directory, os.environ)
        for name, value in LOG_BOUNDS.items():
            os.environ.setdefault(name, value)
        # No reports to anybody; no metrics agent; no idle workers that nobody asked for.
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ["RAY_enable_metrics_collection"] = "0"  # noqa: SIM112 - Ray reads it so
        os.environ["RAY_prestart_worker_first_driver"] = "0"  # noqa: SIM112

    def __enter__(self) -> RaySession:
        import ray

        arguments: dict[str, Any] = {
            "namespace": f"cardleague-{self._run_id}",
            "log_to_driver": False,
            "logging_level": "WARNING",
        }
        if self.is_local:
            _check_free(self._folder)
            shutil.rmtree(self._folder, ignore_errors=True)
            arguments |= {
                "address": "local",  # never a cluster that happens to run on this machine
                "num_cpus": self._config.runtime.num_cpus or None,
                "object_store_memory": self._config.runtime.object_store_mb << 20,
                "include_dashboard": False,
                "_temp_dir": str(self._folder),
            }
        else:
            arguments["address"] = self._config.runtime.ray_address
        try:
            ray.init(**arguments)
        except ConnectionError as error:
            raise ConnectionError(
                f"{error}: is the token the cluster's, and its Ray of version {ray.__version__}?"
            ) from error
        if self.is_local:
            started = descendants(os.getpid())
            self._vital = [found for found in started if found.name in _VITAL_PROCESSES]
        self.record()
        return self

    def __exit__(self, *_: object) -> None:
        import ray

        started = descendants(os.getpid()) if self.is_local else []
        ray.shutdown()
        self._end(started)

    def record(self) -> None:
        """Note the processes of a local Ray, so that the next start can end what stays behind."""
        if self.is_local:
            self._book.write(descendants(os.getpid()))

    def check(self) -> None:
        """Raise RayLostError when a process is gone without which a local Ray is none.

        A driver does not notice by itself that its raylet was killed: its calls wait for ever.
        """
        for vital in self._vital:
            if find(vital) is None:
                raise RayLostError(f"Ray's {vital.name} has died")

    def abandon(self) -> None:
        """End a local Ray at once, from any thread; this process is about to end too."""
        if self.is_local:
            self._end(descendants(os.getpid()))

    def _end(self, started: list[Any]) -> None:
        if self.is_local:
            end(started, 0.0, gently=False)
            self._book.write([])
            shutil.rmtree(self._folder, ignore_errors=True)

    def num_nodes(self) -> int:
        """Return the number of living nodes."""
        import ray

        return sum(1 for node in ray.nodes() if node["Alive"])

    def warm_up(
        self, game: str, stopping: Callable[[], bool], waiting_for: Callable[[list[str]], None]
    ) -> None:
        """Compile the kernels of ``game`` once on every node of a cluster, before actors start.

        Several cold workers of a node would all compile the same. On this machine the command did
        that before. A node that goes away meanwhile is none of the run's any more. ``waiting_for``
        is told twice a second which nodes have not answered yet: that may take minutes.

        Raises RaySessionError that names a node on which it cannot be done.
        """
        import ray
        from ray.exceptions import RayError, RayTaskError
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from deploy.warm import warm_up

        if self.is_local:
            return
        task = ray.remote(warm_up)
        names = {}
        for node in ray.nodes():
            if node["Alive"]:
                place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                options = {"num_cpus": 0, "max_retries": 0, "scheduling_strategy": place}
                reference = task.options(**options).remote([game])
                names[reference] = node["NodeManagerHostname"]
        waiting = list(names)
        while waiting and not stopping():
            done, waiting = ray.wait(waiting, timeout=0.5)
            for reference in done:
                try:
                    ray.get(reference)
                except RayTaskError as error:
                    raise RaySessionError(
                        f"node {names[reference]} cannot play {game}: {error}"
                    ) from None
                except RayError:
                    continue
            waiting_for(sorted({names[reference] for reference in waiting}))

    def has_gpu(self) -> bool:
        """Return whether the cluster has a GPU for the learner."""
        import ray

        return float(ray.cluster_resources().get("GPU", 0)) >= 1


class Compiling:
    """Shows that the run waits for nodes; a warm one answers within ``COMPILING_AFTER_S``."""

    def __init__(self, game: str, say: Callable[[str], None], show: Callable[[], None]) -> None:
        self._game, self._say, self._show = game, say, show
        self._tell_at = time.monotonic() + COMPILING_AFTER_S

    def waiting_for(self, nodes: list[str]) -> None:
        """Show it again; tell once, and which nodes they are."""
        if nodes and time.monotonic() >= self._tell_at:
            self._say(f"compiling the kernels of {self._game} (once) on {', '.join(nodes)}")
            self._tell_at = float("inf")
        self._show()
