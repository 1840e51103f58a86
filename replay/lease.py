"""The lease of a run: one owner at a time on a server, wherever its run directory lies.

Room: replay. May import: replay. Every function takes the client of ``redis_link.connect``.

A lease ends by itself when its owner has not renewed it for ``lease_s``. So an owner that starts on
another machine waits for that long and no longer; one that finds the lease renewed meanwhile knows
that the other one lives.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from replay.redis_keys import RunKeys
from replay.redis_link import StoreError, call

_POLL_S = 0.25
_CLEARLY_LATER_S = 0.5
"""A lease that ends so much later than it was to is renewed, whatever the network adds."""


class LeaseHeld(StoreError):
    """Another owner holds the run on this server; names it."""


@dataclass(frozen=True)
class Lease:
    """Who holds a run."""

    holder: str
    """Host and run directory."""
    epoch: int
    left_s: float
    """It ends then unless it is renewed."""


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

_READ = """
local found = redis.call('HMGET', KEYS[1], 'holder', 'epoch')
return {found[1], found[2], redis.call('PTTL', KEYS[1])}
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


def read_lease(client: Any, keys: RunKeys) -> Lease | None:
    """Return the lease of a run; None where nobody holds it."""
    holder, epoch, left_ms = call(client, "EVAL", _READ, 1, keys.lease)
    if holder is None:
        return None
    return Lease(holder.decode(), int(epoch), max(0.0, int(left_ms) / 1000.0))


def wait_for_lease(client: Any, keys: RunKeys, holder: str, waiting: Callable[[str], bool]) -> None:
    """Return once ``holder`` may take the lease: at once, or when another's has run out.

    ``waiting`` is told why and for how long, once; later it is asked with an empty text. It returns
    False to give up.

    Raises:
        LeaseHeld: the other holder renews it, so it is live; or ``waiting`` gave up.
    """
    ends_at, told = float("inf"), ""
    while True:
        lease = read_lease(client, keys)
        if lease is None or lease.holder == holder:
            return
        now = time.monotonic()
        held = f"run {keys.run_id} on this server is held by {lease.holder!r}"
        if now + lease.left_s > ends_at + _CLEARLY_LATER_S:
            raise LeaseHeld(f"{held}, which is live: stop it there; this is {holder!r}")
        ends_at = min(ends_at, now + lease.left_s)
        reason = "" if told else f"{held}; unless it is live that ends in {lease.left_s:.0f} s"
        told = told or reason
        if not waiting(reason):
            raise LeaseHeld(f"{held}; this is {holder!r}")
        time.sleep(_POLL_S)
