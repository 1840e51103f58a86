"""Exactly once: cursors, marks and losses. Shared by every reader; knows no store.

Room: replay. May import: replay.buffer.

Delivery is at least once (a writer sends again what was not confirmed), so an entry may stand in
a stream twice, always in the order of its producer. An entry at or below its producer's mark was
ingested; a number above the mark plus one means that accepted entries between them are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replay.buffer import Entry, ReaderState

START = "0-0"
"""Cursor before the first entry."""
_NEVER = 1 << 63
"""Above every sequence number."""


def cursor_key(cursor: str) -> tuple[int, int]:
    """Return the order of a cursor ``number-number``. Raises ValueError for other text."""
    high, dash, low = cursor.partition("-")
    if not (dash and high.isdigit() and low.isdigit()):
        raise ValueError(f"cursor {cursor!r}: allowed is the form 12-0")
    return int(high), int(low)


def ingest(state: ReaderState, shard: str, entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries that are new; advance cursor, marks and losses of ``state`` in place."""
    fresh: list[Entry] = []
    for entry in entries:
        state.cursors[shard] = entry.cursor
        if entry.fault:
            if cursor_key(entry.cursor) > cursor_key(state.strays.get(shard, START)):
                state.strays[shard] = entry.cursor
                fresh.append(entry)
            continue
        mark = state.marks.get(entry.producer, 0)
        if entry.sequence <= mark:
            continue
        state.num_lost += entry.sequence - mark - 1
        state.marks[entry.producer] = entry.sequence
        fresh.append(entry)
    return fresh


def rebuild_shard(
    state: ReaderState, shard: str, entries: Iterable[Entry], expected: int
) -> Iterator[Entry]:
    """Yield those of ``entries`` that were in the window; then add the missing to ``num_lost``.

    Args:
        state: names marks (nothing above was ingested), bases (what lies below was ingested before
            the edge, and stands behind it as a repeat) and floors (nothing below was held).
        shard: the shard that ``entries`` come from.
        entries: what the store still has, from the window's edge to the cursor.
        expected: entries that were ingested in that range.
    """
    seen: dict[str, int] = {}
    found = 0
    for entry in entries:
        if entry.fault:
            continue
        lowest = state.floors.get(entry.producer)
        if entry.sequence > state.marks.get(entry.producer, 0):
            continue
        if entry.sequence <= seen.get(entry.producer, 0):
            continue
        if state.bases is not None and entry.sequence < state.bases.get(entry.producer, _NEVER):
            continue
        seen[entry.producer] = entry.sequence
        found += 1
        if lowest is not None and entry.sequence >= lowest:
            yield entry
    state.num_lost += max(0, expected - found)
