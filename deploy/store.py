"""The owner's side of the run's server: checked once, then lease, trimming and measuring.

Room: deploy. May import: replay (lease, redis_admin, redis_link), league (redis_models).
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

import redis

from deploy.components import Server, redis_models
from deploy.config import RunConfig
from deploy.credentials import own_server_url, read_password
from deploy.rundir import RunDirectory
from league.models import ModelStore
from league.stores import ModelsUnreachable
from replay import lease, redis_admin
from replay.redis_keys import RunKeys
from replay.redis_link import (
    ReplyError,
    StoreError,
    StoreRefused,
    StoreUnreachable,
    answers,
    connect,
)

LOADING_LIMIT_S = 600.0
"""A server with a long append-only file may load for minutes before it answers."""

ASK_AGAIN_S = 5.0
"""A server that gave no sign is not asked anything for so long."""

UNREACHABLE: tuple[type[Exception], ...] = (ModelsUnreachable, StoreUnreachable)
"""What an actor fails with that does not reach the server."""

AWAY: tuple[type[Exception], ...] = (*UNREACHABLE, ReplyError, redis.RedisError)
"""Errors by which store and stream say that they are away for a while.

Error replies are among them: a server whose disk or memory is full refuses writes until it is not.
"""


class Prompt:
    """Asks a server for a sign before a call that could wait long.

    A server that hangs would otherwise take the owner with it for the time limit of every call: it
    could not collect replies, and not save in time.
    """

    def __init__(
        self, answers_now: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._answers_now = answers_now
        self._clock = clock
        self._silent_until = float("-inf")

    def check(self) -> None:
        """Raise StoreUnreachable when the server gives no sign now, or gave none lately."""
        if self._clock() >= self._silent_until and self._answers_now():
            return
        if self._clock() >= self._silent_until:
            self._silent_until = self._clock() + ASK_AGAIN_S
        raise StoreUnreachable("the server gives no sign of life")


class PromptModels:
    """A ModelStore that fails at once while its server hangs."""

    def __init__(self, store: ModelStore, prompt: Prompt) -> None:
        self._store, self._prompt = store, prompt

    def put(self, version: int, model: bytes) -> None:
        """See ModelStore. Raises StoreUnreachable too."""
        self._prompt.check()
        self._store.put(version, model)

    def get(self, version: int) -> bytes:
        """See ModelStore. Raises StoreUnreachable too."""
        self._prompt.check()
        return self._store.get(version)

    def versions(self) -> list[int]:
        """See ModelStore. Raises StoreUnreachable too."""
        self._prompt.check()
        return self._store.versions()

    def delete(self, version: int) -> None:
        """See ModelStore. Raises StoreUnreachable too."""
        self._prompt.check()
        self._store.delete(version)


def own_server(config: RunConfig, run_id: str) -> Server:
    """Return ``replay.redis_url`` as the environment completes it. Raises StoreRefused."""
    try:
        return Server(own_server_url(config), run_id, read_password())
    except ValueError as error:
        raise StoreRefused(str(error)) from error


def holder_of(directory: RunDirectory) -> str:
    """Return the name under which a run directory holds its lease."""
    return f"{platform.node()}:{directory.path.resolve()}"


class RunStore:
    """The server of one run, as the owner uses it (a TrajectoryStream)."""

    def __init__(
        self,
        directory: RunDirectory,
        config: RunConfig,
        run_id: str,
        bundled_url: str,
        waiting: Callable[[str], bool],
    ) -> None:
        """Connect to the bundled server's address, or to ``replay.redis_url`` without one.

        ``waiting`` is told why it takes long and returns False to give up.

        Raises:
            StoreError: no server, or one that cannot be used; says how to change that.
        """
        self.is_bundled = bool(bundled_url)
        bundled = Server(bundled_url, run_id)
        self.server = bundled if self.is_bundled else own_server(config, run_id)
        self._config = config
        self._keys = RunKeys(run_id)
        shards = [str(shard) for shard in range(config.replay.shards)]
        self._meter = redis_admin.StreamMeter(self._keys, shards)
        self._holder = holder_of(directory)
        self._waiting = waiting
        self._client = self._connect(waiting)
        self._prompt = Prompt(
            lambda: answers(self.server.url, self.server.password, config=config.replay)
        )
        self.facts = redis_admin.check_server(
            self._client, accept_volatile=config.replay.accept_volatile
        )
        self.full = ""
        """Why workers have to pause for the streams' size; empty while they need not."""

    def _connect(self, waiting: Callable[[str], bool]) -> object:
        deadline = time.monotonic() + LOADING_LIMIT_S
        while True:
            try:
                return connect(self.server.url, self.server.password, self._config.replay)
            except StoreUnreachable as error:
                if time.monotonic() > deadline or not waiting(f"waiting for the server: {error}"):
                    raise
                time.sleep(0.5)

    def models(self) -> ModelStore:
        """Return the models on this server."""
        return PromptModels(redis_models(self.server, self._config), self._prompt)

    def take_lease(self, epoch: int) -> None:
        """Take the lease of an own server; wait for that of an owner that may have died elsewhere.

        Raises LeaseHeld when that owner is live.
        """
        if not self.is_bundled:
            lease.wait_for_lease(self._client, self._keys, self._holder, self._waiting)
            self.hold_lease(epoch)

    def hold_lease(self, epoch: int) -> None:
        """Take or renew the lease of an own server. Raises LeaseHeld when another owner has it."""
        if not self.is_bundled:
            self._prompt.check()
            lease_s = self._config.replay.lease_s
            lease.hold_lease(self._client, self._keys, self._holder, epoch, lease_s)

    def release_lease(self, epoch: int) -> None:
        """Give the lease back; a server that is away forgets it by itself."""
        if not self.is_bundled:
            try:
                self._prompt.check()
                lease.release_lease(self._client, self._keys, self._holder, epoch)
            except StoreError:
                return

    def trim(self, edges: dict[str, str]) -> None:
        """See TrajectoryStream."""
        self._prompt.check()
        redis_admin.trim(self._client, self._keys, edges)

    def size(self) -> tuple[int, int]:
        """See TrajectoryStream. Sets ``full`` too."""
        self._prompt.check()
        # Read anew each time: whoever follows the advice below may do so while the run goes on.
        maxmemory = redis_admin.maxmemory(self._client)
        stats = self._meter.measure(self._client, maxmemory)
        self.full = stats.explain(self._config.learner.window_positions) if stats.full else ""
        return stats.num_entries, stats.num_bytes
