"""One connection to a Redis or Valkey server, without retries; errors of this room's own.

Room: replay. The one importer of redis in this room.

A client library that sends a write again after a broken connection makes two entries of one. So
nothing here repeats anything: a connection that fails is dropped, and whoever holds the data
decides what to send again.
"""

from __future__ import annotations

import platform
import ssl
import threading
from collections.abc import Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    RedisError,
    ResponseError,
)
from redis.retry import Retry

from replay.address import QUERY_OPTIONS, is_tls, redacted, unknown_option
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


class NotPermitted(ReplyError):
    """The server's access rules do not allow this user this command or key."""


_REFUSED_TLS = ("CERTIFICATE", "UNKNOWN_CA", "WRONG_VERSION_NUMBER", "UNSUPPORTED_PROTOCOL")
"""Reasons of the TLS library that do not heal by waiting."""


def _options(
    url: str, password: str, config: ReplayConfig, limit_s: float | None = None
) -> dict[str, Any]:
    options: dict[str, Any] = {
        "socket_timeout": limit_s or config.socket_timeout_s,
        "socket_connect_timeout": limit_s or config.connect_timeout_s,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_error": [],
        "protocol": 2,
        "health_check_interval": 0,
    }
    if is_tls(url):
        options |= {
            "ssl_cert_reqs": "required",
            "ssl_check_hostname": not config.tls_insecure_skip_host_name,
            "ssl_ca_certs": config.tls_ca_file or None,
            "ssl_certfile": config.tls_cert_file or None,
            "ssl_keyfile": config.tls_key_file or None,
            "ssl_password": "",  # for a key that is encrypted the library would ask the terminal
            "ssl_min_version": ssl.TLSVersion.TLSv1_2,
        }
    return options | ({"password": password} if password else {})


def _check_address(url: str) -> None:
    if option := unknown_option(url):
        raise StoreRefused(
            f"Redis address {redacted(url)!r}: option {option!r}, allowed is "
            f"{', '.join(QUERY_OPTIONS)}"
        )


def check_tls_files(url: str, config: ReplayConfig) -> None:
    """Raise StoreRefused that names this machine unless the files for TLS can be used here."""
    if not is_tls(url):
        return
    names = {
        "replay.tls_ca_file": config.tls_ca_file,
        "replay.tls_cert_file": config.tls_cert_file,
        "replay.tls_key_file": config.tls_key_file,
    }
    for key, path in names.items():
        try:
            if path:
                with open(path, "rb"):
                    pass
        except OSError as error:
            raise StoreRefused(
                f"{key} = {path!r}: {error.strerror} on {platform.node()}; every node needs the "
                "file at this path"
            ) from error
    try:
        context = ssl.create_default_context(cafile=config.tls_ca_file or None)
        if config.tls_cert_file:
            context.load_cert_chain(config.tls_cert_file, config.tls_key_file or None, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        given = ", ".join(f"{key} = {path!r}" for key, path in names.items() if path)
        raise StoreRefused(f"{given} on {platform.node()}: {error}; needed is PEM") from error


def make_client(url: str, password: str = "", config: ReplayConfig | None = None) -> Any:
    """Return a ``redis.Redis`` that makes no retries; nothing is connected yet.

    Raises StoreRefused for an address that is none.
    """
    _check_address(url)
    try:
        return redis.Redis.from_url(url, **_options(url, password, config or ReplayConfig()))
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
        words = f"{redacted(url)}: {outcome[0]}"
        words += _hint(words, url, password, config or ReplayConfig())
        raise type(outcome[0])(words) from outcome[0]
    return client


def _hint(words: str, url: str, password: str, config: ReplayConfig) -> str:
    """Return what may be behind a refusal whose own words do not say it."""
    hangs_up = "closed by server" in words or "reset by peer" in words
    if hangs_up and not is_tls(url):
        return " Perhaps it speaks TLS alone: rediss://"
    if "closed by server" in words and not config.tls_cert_file:
        return " Perhaps it asks for a certificate: replay.tls_cert_file"
    if not password and ("uthentication required" in words or "username-password" in words):
        return " (no password was given)"
    return ""


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


def answers(
    url: str, password: str = "", timeout_s: float = 1.0, config: ReplayConfig | None = None
) -> bool:
    """Return whether a server answers PING with anything at all, be it an error."""
    options = _options(url, password, config or ReplayConfig(), timeout_s)
    client = redis.Redis.from_url(url, **options)
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
    if isinstance(error, NoPermissionError):
        return NotPermitted(str(error))
    if isinstance(error, ResponseError):
        return ReplyError(str(error))
    if (reason := _refused_tls(error)) is not None:
        return StoreRefused(reason)
    return StoreUnreachable(str(error) or type(error).__name__)


def _refused_tls(error: BaseException | None) -> str | None:
    """Return why TLS will not work by waiting either; None where that is not the fault."""
    for _ in range(8):  # the library wraps errors a few times
        if isinstance(error, ssl.SSLError):
            words = getattr(error, "verify_message", "") or str(error.reason or error)
            if any(part in str(error).upper() for part in _REFUSED_TLS):
                return f"TLS: {words}"
            return None
        if error is None:
            return None
        error = error.__cause__ or error.__context__
    return None


class Link:
    """One connection, used by one thread: commands go out in batches, replies come in order."""

    def __init__(self, url: str, password: str, config: ReplayConfig) -> None:
        _check_address(url)
        options = _options(url, password, config)
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
            return _translated(error)
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
