"""Replaces the payloads of stored games, entry by entry, when a run is migrated.

Room: replay. May import: replay.

Numbers, ids, producers and order stay what they are, so cursors and marks of a snapshot mean the
same entries afterwards. Nobody else may use the store meanwhile. An entry that cannot be converted
stays as it is: the learner rejects it by name, as it would have done before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from replay.config import ReplayConfig
from replay.disk import Disk
from replay.embedded import EmbeddedServer
from replay.redis_keys import PAYLOAD, RunKeys
from replay.redis_link import StoreError, call, make_client
from replay.segments import SegmentStore
from replay.trajectory import TrajectoryError

Convert = Callable[[bytes], bytes]
"""Payload -> payload. Raises TrajectoryError for one that it does not understand."""

_BATCH = 64
_CONFIRM_MS = 60_000


def rewrite_segments(folder: Path, convert: Convert, disk: Disk | None = None) -> int:
    """Convert all entries of a folder of segments in place; return their number.

    A torn tail is cut off, as on every opening of the store. Raises SegmentError for damage.
    """
    store = SegmentStore(folder, disk=disk)
    try:
        return store.rewrite(lambda payload: _converted(payload, convert))
    finally:
        store.close()


def rewrite_server(folder: Path, run_id: str, config: ReplayConfig, convert: Convert) -> int:
    """Convert all games in the files of a bundled server in place; return their number.

    Starts a server on them and ends it. Copies of models are removed: the owner publishes those of
    the run directory. Main thread only. Raises StoreError.
    """
    server = EmbeddedServer(folder, maxmemory_mb=0)
    server.start()
    try:
        client = make_client(server.url, config=config)
        _wait_loaded(server, client)
        keys = RunKeys(run_id)
        shards = range(config.shards)
        count = sum(rewrite_stream(client, keys.stream(str(s)), convert) for s in shards)
        for key in call(client, "KEYS", _literal(f"{keys.prefix}model") + "*"):
            call(client, "DEL", key)
        confirmed = call(client, "WAITAOF", 1, 0, _CONFIRM_MS)
        if int(confirmed[0]) < 1:
            raise StoreError(f"the server on {folder} did not confirm that its file is on disk")
        client.close()
    finally:
        server.stop()
    return count


def _wait_loaded(server: EmbeddedServer, client: Any) -> None:
    """Wait until the server has read its file."""
    while server.alive():
        info = {str(key): value for key, value in call(client, "INFO", "persistence").items()}
        if not int(info.get("loading", 0)):
            return
        time.sleep(0.1)
    raise StoreError("the bundled server ended while it read its file")


def rewrite_stream(client: Any, key: str, convert: Convert) -> int:
    """Convert the entries of one stream; return their number. An absent stream has none."""
    if not call(client, "EXISTS", key):
        return 0
    facts = _stream_facts(client, key)
    fresh = f"{key}:rewritten"
    call(client, "DEL", fresh)
    count = 0
    while rows := call(client, "XRANGE", key, "-", "+", "COUNT", _BATCH):
        for cursor, fields in rows:
            flat = [part for pair in _pairs(fields, convert) for part in pair]
            call(client, "XADD", fresh, cursor, *flat)
        call(client, "XDEL", key, *(cursor for cursor, _ in rows))
        count += len(rows)
    if count:
        more = ("ENTRIESADDED", facts["added"], "MAXDELETEDID", facts["deleted"])
        call(client, "XSETID", fresh, facts["last"], *more)
        call(client, "RENAME", fresh, key)
    return count


def _stream_facts(client: Any, key: str) -> dict[str, Any]:
    reply = call(client, "XINFO", "STREAM", key)
    facts = dict(zip(reply[::2], reply[1::2], strict=True))
    return {
        "last": facts[b"last-generated-id"],
        "added": facts[b"entries-added"],
        "deleted": facts[b"max-deleted-entry-id"],
    }


def _pairs(fields: Any, convert: Convert) -> list[tuple[bytes, bytes]]:
    return [
        (name, _converted(value, convert) if name == PAYLOAD else value)
        for name, value in fields.items()
    ]


def _converted(payload: bytes, convert: Convert) -> bytes:
    try:
        return convert(payload)
    except TrajectoryError:
        return payload


def _literal(text: str) -> str:
    """Return a pattern of KEYS that matches ``text`` alone."""
    return "".join(f"\\{c}" if c in "*?[]\\^-" else c for c in text)
