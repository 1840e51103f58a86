"""One connection to a Redis or Valkey server, without retries; errors of this room's own.

Room: replay. The one importer of redis in this room.

A client library that sends a write again after a broken connection makes two entries of one. So
nothing here repeats anything: a connection that fails is dropped, and whoever holds the data
decides what to send again.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, AuthorizationError, RedisError, ResponseError
from redis.retry import Retry

from replay.config import ReplayConfig

CONNECT_LIMIT_S = 5.0
"""``connect`` has answered or raised within this time."""

Command = tuple[Any, ...]


class StoreError(RuntimeError):
    """Something between this program and its server; names the address without its password."""


class StoreUnreachable(StoreError):
    """No connection, or no answer in time. Waiting may help."""


class StoreRefused(StoreError):
    """The server answers and cannot be used like this. Waiting does not help."""


class ReplyError(StoreError):
    """The server's error reply to one command (out of memory, wrong type …)."""


def redacted(url: str) -> str:
    """Return ``url`` without its password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}:***@{host}"))


def _options(password: str, connect_s: float, socket_s: float) -> dict[str, Any]:
    options: dict[str, Any] = {
        "socket_timeout": socket_s,
        "socket_connect_timeout": connect_s,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_error": [],
        "protocol": 2,
        "health_check_interval": 0,
    }
    return options | ({"password": password} if password else {})


def make_client(url: str, password: str = "", config: ReplayConfig | None = None) -> Any:
    """Return a ``redis.Redis`` that makes no retries; nothing is connected yet.

    Raises StoreRefused for an address that is none.
    """
    config = config or ReplayConfig()
    options = _options(password, config.connect_timeout_s, config.socket_timeout_s)
    try:
        return redis.Redis.from_url(url, **options)
    except ValueError as error:
        raise StoreRefused(f"Redis address {redacted(url)!r}: {error}") from error


def connect(url: str, password: str = "", config: ReplayConfig | None = None) -> Any:
    """Return a client whose server has answered, or raise within ``CONNECT_LIMIT_S``.

    Looking up a host name knows no time limit of its own, hence the thread.

    Raises:
        StoreUnreachable: no answer in time, or the server is still loading.
        StoreRefused: the address or the password is wrong.
    """
    client = make_client(url, password, config)
    outcome: list[StoreError | None] = []

    def ask() -> None:
        try:
            call(client, "PING")
        except StoreError as error:
            outcome.append(None if is_full(error) else error)
        else:
            outcome.append(None)

    thread = threading.Thread(target=ask, name="redis-connect", daemon=True)
    thread.start()
    thread.join(CONNECT_LIMIT_S)
    if not outcome:
        raise StoreUnreachable(f"no answer from {redacted(url)} within {CONNECT_LIMIT_S:g} s")
    if outcome[0] is not None:
        raise type(outcome[0])(f"{redacted(url)}: {outcome[0]}") from outcome[0]
    return client


def is_full(error: StoreError) -> bool:
    """Return whether a server refuses writes (with a full disk PING too) until there is room."""
    text = str(error)
    return isinstance(error, ReplyError) and ("MISCONF" in text or "maxmemory" in text)


def call(client: Any, *command: Any) -> Any:
    """Return the server's reply to one command of a ``redis.Redis``. Raises StoreError."""
    try:
        return client.execute_command(*command)
    except (RedisError, OSError) as error:
        raise _translated(error) from error


def answers(url: str, password: str = "", timeout_s: float = 1.0) -> bool:
    """Return whether a server answers PING with anything at all, be it an error."""
    client = redis.Redis.from_url(url, **_options(password, timeout_s, timeout_s))
    try:
        call(client, "PING")
    except StoreUnreachable as error:
        return isinstance(error.__cause__, redis.exceptions.BusyLoadingError)
    except StoreError:
        return True
    finally:
        client.close()
    return True


def _translated(error: Exception) -> StoreError:
    if isinstance(error, AuthenticationError | AuthorizationError):
        return StoreRefused(str(error))
    if isinstance(error, ResponseError):
        return ReplyError(str(error))
    return StoreUnreachable(str(error) or type(error).__name__)


class Link:
    """One connection, used by one thread: commands go out in batches, replies come in order."""

    def __init__(self, url: str, password: str, config: ReplayConfig) -> None:
        options = _options(password, config.connect_timeout_s, config.socket_timeout_s)
        self._address = redacted(url)
        try:
            self._connection = redis.ConnectionPool.from_url(url, **options).make_connection()
        except ValueError as error:
            raise StoreRefused(f"Redis address {self._address!r}: {error}") from error
        try:
            self._connection.connect()
        except (RedisError, OSError) as error:
            raise self._failed(error) from error

    def send(self, commands: Sequence[Command]) -> None:
        """Send ``commands`` at once. Raises StoreError."""
        self._check_open()
        try:
            packed = self._connection.pack_commands(commands)
            self._connection.send_packed_command(packed, check_health=False)
        except (RedisError, OSError) as error:
            raise self._failed(error) from error

    def readable(self, timeout_s: float) -> bool:
        """Return whether a reply has begun to arrive within ``timeout_s``. Raises StoreError."""
        self._check_open()
        try:
            return bool(self._connection.can_read(timeout_s))
        except (RedisError, OSError) as error:
            raise self._failed(error) from error

    def read(self) -> Any:
        """Return the next reply; an error reply is returned as ReplyError, not raised."""
        self._check_open()
        try:
            return self._connection.read_response()
        except ResponseError as error:
            return ReplyError(str(error))
        except (RedisError, OSError) as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self._connection.disconnect()

    def _check_open(self) -> None:
        # The library would connect again by itself and the order of replies would be lost.
        if not self._connection.is_connected:
            raise StoreUnreachable(f"{self._address}: the connection is closed")

    def _failed(self, error: Exception) -> StoreError:
        self._connection.disconnect()
        translated = _translated(error)
        return type(translated)(f"{self._address}: {translated}")
