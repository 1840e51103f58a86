"""What the owner does with its server: check it, hold the run's lease, trim, measure.

Room: replay. May import: replay. Every function takes the client of ``redis_link.connect``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from replay.marks import START, cursor_key
from replay.redis_keys import RunKeys
from replay.redis_link import ReplyError, StoreError, StoreRefused, call, is_full

MIN_VERSION = (7, 2)
STREAM_SHARE = 0.6
"""Share of the server's memory that trajectories may fill; models need room too."""
_CHECK_CONFIRMATION_MS = 2000


class LeaseHeld(StoreError):
    """Another owner holds the run on this server; names it."""


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
    info = {str(key): value for key, value in call(client, "INFO").items()}
    name = str(info.get("server_name", "redis"))
    version = str(info.get(f"{name}_version", info.get("redis_version", "0")))
    # Valkey states the Redis version that it is compatible with beside its own.
    compatible = _numbers(str(info.get("redis_version", "0")))
    if compatible < MIN_VERSION:
        raise StoreRefused(f"{name} {version}: needed is Redis 7.2, Valkey 7.2 or newer")
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy.startswith("allkeys"):
        raise StoreRefused(
            f"maxmemory-policy {policy} throws streams away: allowed are noeviction and volatile-*"
        )
    reason = _cannot_confirm(client, info)
    maxmemory = int(info.get("maxmemory", 0))
    if not reason:
        return ServerFacts(name, version, maxmemory)
    if not accept_volatile:
        raise StoreRefused(
            f"{name} {version} cannot confirm that a write is on disk ({reason}): switch its "
            f"append-only file on, or accept the loss with --accept-volatile-redis"
        )
    can_lose = f"everything since its last save is lost when {name} stops: {reason}"
    return ServerFacts(name, version, maxmemory, can_lose)


def _cannot_confirm(client: Any, info: Mapping[str, Any]) -> str:
    """Return why WAITAOF is of no use here; empty when it works."""
    if not int(info.get("aof_enabled", 0)):
        return "appendonly is off"
    # One connection for both: WAITAOF speaks of the writes of its own connection.
    with client.client() as single:
        try:
            call(single, "SET", "cardleague:check", "1", "EX", 60)
            confirmed = call(single, "WAITAOF", 1, 0, _CHECK_CONFIRMATION_MS)
        except ReplyError as error:
            # A full disk or a full memory refuses every write for now; reading and trimming work,
            # and it will confirm again.
            return "" if is_full(error) else str(error)
    if int(confirmed[0]) < 1:
        return f"no confirmation from its disk within {_CHECK_CONFIRMATION_MS} ms"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


# --- lease ----------------------------------------------------------------------------------------

_HOLD = """
local holder = redis.call('HGET', KEYS[1], 'holder')
local epoch = tonumber(redis.call('HGET', KEYS[1], 'epoch') or '-1')
if holder and (holder ~= ARGV[1] or epoch > tonumber(ARGV[2])) then
  return {holder, epoch}
end
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'epoch', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {}
"""

_RELEASE = """
if redis.call('HGET', KEYS[1], 'holder') == ARGV[1]
   and redis.call('HGET', KEYS[1], 'epoch') == ARGV[2] then
  return redis.call('DEL', KEYS[1])
end
return 0
"""


def hold_lease(client: Any, keys: RunKeys, holder: str, epoch: int, lease_s: float) -> None:
    """Take or renew the lease of the run for ``lease_s``; called again well before it ends.

    ``holder`` names the run directory (it stays the same over restarts), ``epoch`` rises with
    every start of an owner: a newer epoch of the same holder takes over at once.

    Raises:
        LeaseHeld: another run directory, or a newer owner of this one, holds it.
    """
    arguments = (holder, epoch, max(1, round(1000 * lease_s)))
    held = call(client, "EVAL", _HOLD, 1, keys.lease, *arguments)
    if held:
        raise LeaseHeld(
            f"run {keys.run_id} on this server is held by {held[0].decode()!r} in epoch "
            f"{held[1]}; this is {holder!r} in epoch {epoch}"
        )


def release_lease(client: Any, keys: RunKeys, holder: str, epoch: int) -> bool:
    """Give the lease back; return whether it was still ours."""
    return bool(call(client, "EVAL", _RELEASE, 1, keys.lease, holder, epoch))


# --- streams --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamStats:
    """Size of a run's streams."""

    num_entries: int
    num_bytes: int
    """The server's estimate, from samples."""
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


def stream_stats(client: Any, keys: RunKeys, shards: Iterable[str], maxmemory: int) -> StreamStats:
    """Measure the streams of a run. ``maxmemory`` is the server's, from ``ServerFacts``."""
    num_entries = num_bytes = 0
    for shard in shards:
        num_entries += int(call(client, "XLEN", keys.stream(shard)))
        num_bytes += int(call(client, "MEMORY", "USAGE", keys.stream(shard)) or 0)
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
