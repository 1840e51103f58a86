"""Changes to valid bytes that know what they change: bytes, lengths, JSON and MessagePack trees."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

INTERESTING = (0, 1, -1, 2, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63)
HUGE_LENGTHS = (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\xff" * 8, b"\x00\x00\x00\x80")
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**31,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
    1e308,
    -0.0,
    5e-324,
    "",
    "../../etc/passwd",
    "\u0000",
    "\U0001f3b4" * 50,
    "9" * 5000,
    [],
    {},
    [[]] * 50,
    {"a": {"b": []}},
)
RAW_JSON = (
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"9" * 400,
    b"9" * 6000,
    b'"\xff\xfe"',
    b'"\\ud800"',
    b"[" * 3000,
    b'{"a":' * 3000,
    b"{" * 10,
    b"-",
    b"0x10",
)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return ``data`` with one to four changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        trees = [change for change in (_json, _msgpack) if rng.random() < 0.5]
        for change in trees:
            found = change(data, rng)
            if found is not None:
                data = found
                break
        else:
            data = rng.choice(_BYTES)(data, rng)
    return data


def _place(data: bytes, rng: random.Random) -> int:
    # Half of the changes near the beginning, where headers are.
    end = len(data) if rng.random() < 0.5 else min(len(data), 64)
    return rng.randrange(end + 1)


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data or b"\0")
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: _place(data, rng)]


def _remove(data: bytes, rng: random.Random) -> bytes:
    start = _place(data, rng)
    return data[:start] + data[start + rng.randrange(1, 40) :]


def _splice(data: bytes, rng: random.Random) -> bytes:
    start, at = _place(data, rng), _place(data, rng)
    piece = data[start : start + rng.randrange(1, 200)] * rng.choice((1, 1, 3))
    return data[:at] + piece + data[at + (len(piece) if rng.random() < 0.5 else 0) :]


def _number(data: bytes, rng: random.Random) -> bytes:
    size, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
    value = rng.choice(INTERESTING) % (1 << 8 * size)
    at = _place(data, rng)
    return data[:at] + value.to_bytes(size, order) + data[at + size :]  # type: ignore[arg-type]


def _length(data: bytes, rng: random.Random) -> bytes:
    at, piece = _place(data, rng), rng.choice(HUGE_LENGTHS)
    return data[:at] + piece + data[at + len(piece) :]


def _noise(data: bytes, rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + rng.randbytes(rng.randrange(1, 20)) + data[at:]


_BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip,
    _cut,
    _remove,
    _splice,
    _number,
    _length,
    _noise,
)


def _json(data: bytes, rng: random.Random) -> bytes | None:
    """Change one value of a JSON document; None for other bytes."""
    try:
        tree = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if not isinstance(tree, (dict, list)) or not tree:
        return None
    if rng.random() < 0.3:  # what no encoder writes
        mark = f"?{rng.random()}?"
        _change(tree, rng, mark)
        text = bytes(msgspec.json.encode(tree))
        return text.replace(msgspec.json.encode(mark), rng.choice(RAW_JSON))
    _change(tree, rng, rng.choice(VALUES))
    text = bytes(msgspec.json.encode(tree))
    if rng.random() < 0.1 and text[:1] == b"{":  # keys twice
        return text[:-1] + b"," + text[1:]
    return text


def _msgpack(data: bytes, rng: random.Random) -> bytes | None:
    try:
        tree = msgspec.msgpack.decode(data)
        if not isinstance(tree, (dict, list)) or not tree:
            return None
        _change(tree, rng, rng.choice((*VALUES, float("nan"), float("inf"), b"\xff" * 10)))
        return bytes(msgspec.msgpack.encode(tree))
    except (msgspec.MsgspecError, RecursionError, TypeError, OverflowError):
        return None


def _change(tree: Any, rng: random.Random, value: Any) -> None:
    """Put ``value`` somewhere into ``tree`` in place, or remove or rename what is there."""
    while True:
        key = rng.choice(list(tree)) if isinstance(tree, dict) else rng.randrange(len(tree))
        below = tree[key]
        if isinstance(below, (dict, list)) and below and rng.random() < 0.8:
            tree = below
            continue
        break
    if isinstance(tree, dict) and isinstance(value, str) is False and rng.random() < 0.15:
        del tree[key]
    elif isinstance(below, int) and not isinstance(value, str) and rng.random() < 0.3:
        tree[key] = below + rng.choice((-1, 1, 1000, -1000, 10**6))
    else:
        tree[key] = value


def mutated_sample(samples: list[list[bytes]], seed: int) -> list[bytes]:
    """Return a changed sample: a part changed, dropped, or taken from another one."""
    rng = random.Random(seed)
    parts = list(rng.choice(samples))
    number = rng.randrange(len(parts))
    parts[number] = mutated(parts[number], rng)
    return parts
