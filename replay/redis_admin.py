"""What the owner does with its server: check it, trim, measure. The lease: replay.lease.

Room: replay. May import: replay. Every function takes the client of ``redis_link.connect``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replay.marks import START, cursor_key
from replay.redis_keys import RunKeys
from replay.redis_link import NotPermitted, ReplyError, StoreRefused, call, is_full

MIN_VERSION = (7, 2)
MIN_VOLATILE_VERSION = (7, 0)
"""Allowed where the loss is accepted: without WAITAOF, tested with Debian's 7.0."""
STREAM_SHARE = 0.6
"""Share of the server's memory that trajectories may fill; models need room too."""
_CHECK_CONFIRMATION_MS = 2000
_LOOK_SPACING = 100
"""Times the duration of a look at all of a stream that pass before the next one."""


@dataclass(frozen=True)
class ServerFacts:
    """What ``check_server`` found."""

    name: str
    version: str
    maxmemory: int
    """Bytes; 0 is no limit."""
    can_lose: str = ""
    """What a crash of this server may lose, in words; empty: nothing that was accepted."""


def check_server(client: Any, *, accept_volatile: bool = False) -> ServerFacts:
    """Return facts of the server, having made sure that accepted means on disk.

    With ``accept_volatile`` a server that cannot confirm is taken, and ``can_lose`` says what that
    means. Takes at most about two seconds.

    Raises:
        StoreRefused: too old, evicting, or unable to confirm; says how to change that.
    """
    try:
        info = {str(key): value for key, value in call(client, "INFO").items()}
    except NotPermitted:
        check_permissions(client)  # names everything that is missing
        raise
    name = str(info.get("server_name", "redis"))
    version = str(info.get(f"{name}_version", info.get("redis_version", "0")))
    # Valkey states the Redis version that it is compatible with beside its own.
    compatible = _numbers(str(info.get("redis_version", "0")))
    if compatible < (MIN_VOLATILE_VERSION if accept_volatile else MIN_VERSION):
        raise StoreRefused(
            f"{name} {version}: needed is Redis 7.2, Valkey 7.2 or newer; 7.0 and "
            "--accept-volatile-redis where losing games in a crash of the server is accepted"
        )
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy.startswith("allkeys"):
        raise StoreRefused(
            f"maxmemory-policy {policy} throws streams away: allowed are noeviction and volatile-*"
        )
    check_permissions(client)
    reason = _cannot_confirm(client, info)
    limit = int(info.get("maxmemory", 0))
    if not reason:
        return ServerFacts(name, version, limit)
    if not accept_volatile:
        raise StoreRefused(
            f"{name} {version} cannot confirm that a write is on disk ({reason}): switch its "
            f"append-only file on, or accept the loss with --accept-volatile-redis"
        )
    what = "the last seconds" if int(info.get("aof_enabled", 0)) else "everything since its save"
    return ServerFacts(
        name, version, limit, f"{what} may be lost in a crash of {name} {version}: {reason}"
    )


def check_permissions(client: Any) -> None:
    """Raise StoreRefused that names every command which the client's user may not use.

    They are tried on keys of their own, which do not exist: nothing is made or changed.
    """
    key, number = "cardleague:check:permissions", "cardleague:check:number"
    tries: tuple[tuple[Any, ...], ...] = (
        ("GET", number),
        ("SET", number, 1, "XX", "EX", 1),
        ("DEL", number),
        ("PEXPIRE", number, 1),
        ("HGET", key, "f"),
        ("HMGET", key, "f"),
        ("HSET", number, "f", 1),
        ("ZADD", key, "XX", 1, "m"),
        ("ZRANGE", key, 0, -1),
        ("ZREM", key, "m"),
        ("XADD", key, "NOMKSTREAM", "*", "f", "v"),
        ("XLEN", key),
        ("XRANGE", key, "-", "+", "COUNT", 1),
        ("XREVRANGE", key, "+", "-", "COUNT", 1),
        ("XREAD", "COUNT", 1, "STREAMS", key, "0"),
        ("XTRIM", key, "MINID", "=", "1"),
        ("XINFO", "STREAM", key),
        ("MEMORY", "USAGE", key),
        ("EVAL", "return redis.call('PTTL', KEYS[1])", 1, key),
        ("INFO",),
        ("WATCH", key),
        ("UNWATCH",),
        ("MULTI",),
        ("EXEC",),
    )
    denied = []
    with client.client() as single:
        for command in tries:
            try:
                call(single, *command)
            except NotPermitted as error:
                denied.append(f"{command[0]} ({error})")
            except ReplyError:
                continue  # no such key, full, loading: nothing about permissions
    if denied:
        raise StoreRefused(
            f"the server's access rules forbid this user {'; '.join(denied)}: the rule that it "
            "needs stands in docs/operations.md"
        )


def _cannot_confirm(client: Any, info: Mapping[str, Any]) -> str:
    """Return why WAITAOF is of no use here; empty when it works."""
    if not int(info.get("aof_enabled", 0)):
        return "appendonly is off"
    # One connection for both: WAITAOF speaks of the writes of its own connection.
    with client.client() as single:
        try:
            call(single, "SET", "cardleague:check", "1", "EX", 60)
            confirmed = call(single, "WAITAOF", 1, 0, _CHECK_CONFIRMATION_MS)
        except NotPermitted as error:
            raise StoreRefused(f"the server's access rules forbid this user: {error}") from error
        except ReplyError as error:
            # A full disk or a full memory refuses every write for now; reading and trimming work,
            # and it will confirm again.
            return "" if is_full(error) else str(error)
    if int(confirmed[0]) < 1:
        return f"no confirmation from its disk within {_CHECK_CONFIRMATION_MS} ms"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


# --- streams --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamStats:
    """Size of a run's streams."""

    num_entries: int
    num_bytes: int
    """Of memory on the server."""
    budget_bytes: int
    """What they may fill; 0 is no limit."""

    @property
    def full(self) -> bool:
        """Whether workers have to pause until the streams are trimmed."""
        return 0 < self.budget_bytes <= self.num_bytes

    def explain(self, window_positions: int) -> str:
        """Return what to change when trimming does not help."""
        return (
            f"the streams fill {self.num_bytes >> 20} MB of {self.budget_bytes >> 20} MB: a window "
            f"of {window_positions} positions needs more; raise replay.maxmemory_mb (or the "
            f"server's maxmemory) or lower learner.window_positions"
        )


def maxmemory(client: Any) -> int:
    """Return the server's memory limit in bytes; 0 is no limit."""
    return int(call(client, "INFO", "memory").get("maxmemory", 0))


def stream_stats(client: Any, keys: RunKeys, shards: Iterable[str], maxmemory: int) -> StreamStats:
    """Measure the streams of a run, every node of them. ``maxmemory`` is the server's now."""
    num_entries = num_bytes = 0
    for shard in shards:
        num_entries += int(call(client, "XLEN", keys.stream(shard)))
        num_bytes += _exact_bytes(client, keys.stream(shard))
    return StreamStats(num_entries, num_bytes, int(STREAM_SHARE * maxmemory))


def _exact_bytes(client: Any, key: str) -> int:
    # Samples are taken from the oldest entries alone (five, unless asked otherwise). Games of one
    # run may grow or shrink, and the estimate was off by a third when they did.
    return int(call(client, "MEMORY", "USAGE", key, "SAMPLES", 0) or 0)


class StreamMeter:
    """Measures the streams of a run again and again, at little cost to their server.

    To look at every node takes a large server tenths of a second, in which it serves nobody. Such
    looks are spaced so that they take a hundredth of its time; between them entries that came or
    went are taken for as large as the mean.
    """

    def __init__(
        self,
        keys: RunKeys,
        shards: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys, self._shards, self._clock = keys, shards, clock
        self._exact: dict[str, tuple[int, int]] = {}
        """Per shard: entries and bytes at the last look."""
        self._due = float("-inf")

    def measure(self, client: Any, maxmemory: int) -> StreamStats:
        """Return the size of the streams now. Raises StoreError."""
        began = self._clock()
        look = began >= self._due
        num_entries = num_bytes = 0
        for shard in self._shards:
            key = self._keys.stream(shard)
            entries = int(call(client, "XLEN", key))
            if look or shard not in self._exact:
                self._exact[shard] = (entries, _exact_bytes(client, key))
            counted, known = self._exact[shard]
            num_entries += entries
            num_bytes += known + (entries - counted) * known // max(1, counted)
        if look:
            self._due = self._clock() + _LOOK_SPACING * (self._clock() - began)
        return StreamStats(num_entries, num_bytes, int(STREAM_SHARE * maxmemory))


def trim(client: Any, keys: RunKeys, edges: Mapping[str, str]) -> int:
    """Remove the entries below the edge of each shard; return their number.

    The owner calls this with the edges of the *oldest* manifest that it may still resume from, and
    only when that manifest is durable.
    """
    removed = 0
    for shard, edge in edges.items():
        if cursor_key(edge) > cursor_key(START):
            removed += int(call(client, "XTRIM", keys.stream(shard), "MINID", "=", edge))
    return removed
