"""Trajectory <-> bytes.

Room: replay. May import: numpy, msgspec, zstandard, replay.trajectory, engine (game, layout).

Layout, little-endian: a fixed prefix (magic, schema version, lengths, digest), the facts of the
game as MessagePack, and one Zstandard frame with the three arrays. The digest covers every other
byte, so a payload that was cut or damaged anywhere is refused, never half read. Magic and schema
version stand first for ever: a later schema is named instead of being called damage. A digest is no
proof of who wrote the bytes: every number of a view that compiled code may use as an index is held
against what the game declares (``engine.layout``).

Views are stored column by column (all first bytes, then all second bytes …): successive views of a
game hardly differ, and long runs of equal bytes are what the compressor is good at.
"""

from __future__ import annotations

import functools
import hashlib
import struct
from typing import Annotated, Any

import msgspec
import numpy as np
import zstandard
from msgspec import Meta
from numpy.typing import NDArray

from engine import rules
from engine.game import GameSpec, UnknownGameError
from engine.layout import Layout
from replay.trajectory import (
    EXAMPLE,
    SCHEMA_VERSION,
    Header,
    Trajectory,
    TrajectoryError,
    validate,
)

MAGIC = b"CLTJ"
_PREFIX = struct.Struct("<4sHHII")  # magic, schema version, reserved, header bytes, frame bytes
_DIGEST_BYTES = 8
_PREFIX_BYTES = _PREFIX.size + _DIGEST_BYTES
_COMPRESSION_LEVEL = 3
_MAX_EXAMPLES = 1 << 16
"""In one game: seats times plies of the longest one are a few thousand."""
_MAX_BODY_BYTES = 1 << 26


class _Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    header: Header
    record: str
    """Fingerprint of the state record's layout."""
    num_examples: Annotated[int, Meta(ge=0, le=_MAX_EXAMPLES)]
    num_visits: Annotated[int, Meta(ge=0, le=_MAX_EXAMPLES * 256)]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Envelope)


@functools.lru_cache(maxsize=64)
def record_fingerprint(dtype: np.dtype[Any]) -> str:
    """Return a hex digest of names, types, shapes and offsets of a state record."""
    fields: Any = dtype.fields or {}
    layout = [(name, str(field[0]), field[1]) for name, field in fields.items()]
    return hashlib.blake2b(repr((dtype.itemsize, layout)).encode(), digest_size=8).hexdigest()


def encode(trajectory: Trajectory) -> bytes:
    """Return the bytes of ``trajectory``. Raises TrajectoryError when its arrays disagree."""
    validate(trajectory)
    views = np.ascontiguousarray(trajectory.views)
    body = b"".join(
        (
            _to_columns(np.ascontiguousarray(trajectory.examples)),
            _to_columns(views),
            np.ascontiguousarray(trajectory.visits, dtype="<u2").tobytes(),
        )
    )
    envelope = _ENCODER.encode(
        _Envelope(
            header=trajectory.header,
            record=record_fingerprint(np.dtype(views.dtype)),
            num_examples=len(trajectory.examples),
            num_visits=len(trajectory.visits),
        )
    )
    frame = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL).compress(body)
    prefix = _PREFIX.pack(MAGIC, trajectory.header.schema_version, 0, len(envelope), len(frame))
    return b"".join((prefix, _digest(prefix, envelope, frame), envelope, frame))


def decode(payload: bytes, spec: GameSpec) -> Trajectory:
    """Return the trajectory in ``payload``; its arrays share no memory with it.

    Raises:
        TrajectoryError: ``payload`` is of another schema, game or state record, cut or damaged, or
            its views are none of its game and rules.
    """
    envelope, frame = _open(payload)
    header = envelope.header
    if header.game != spec.name:
        raise TrajectoryError(
            f"a trajectory of game {header.game!r}, expected {spec.name!r}", "game"
        )
    expected = record_fingerprint(spec.state_dtype)
    if envelope.record != expected:
        raise TrajectoryError(
            f"a trajectory with state record {envelope.record} of {spec.name} (written by engine "
            f"{header.engine_hash}), this program has {expected}",
            "record",
        )
    examples_bytes = envelope.num_examples * EXAMPLE.itemsize
    views_bytes = envelope.num_examples * spec.state_dtype.itemsize
    body = _decompress(frame, examples_bytes + views_bytes + 2 * envelope.num_visits)
    views_end = examples_bytes + views_bytes
    trajectory = Trajectory(
        header=header,
        examples=_from_columns(body[:examples_bytes], EXAMPLE),
        views=_from_columns(body[examples_bytes:views_end], spec.state_dtype).view(np.recarray),
        visits=np.frombuffer(body[views_end:], dtype="<u2").astype(np.uint16),
    )
    validate(trajectory)
    _check_views(trajectory, spec)
    return trajectory


def _check_views(trajectory: Trajectory, spec: GameSpec) -> None:
    """Raise TrajectoryError for views that no seat can have under the trajectory's own rules."""
    header, seats = trajectory.header, trajectory.examples["seat"]
    try:
        layout, num_seats = _layout(spec, tuple(header.rules.items()))
    except UnknownGameError as error:
        raise TrajectoryError(str(error), "rules") from None
    if len(seats) and int(seats.max()) >= num_seats:
        raise TrajectoryError(f"an example of seat {int(seats.max())}: there are {num_seats}")
    if fault := layout.fault_of_views(trajectory.views, seats):
        raise TrajectoryError(f"a view that no seat of {spec.name} can have: {fault}", "view")


_LAYOUTS: dict[tuple[type, tuple[tuple[str, str], ...]], tuple[Layout, int]] = {}
_MOST_LAYOUTS = 16


def _layout(spec: GameSpec, words: tuple[tuple[str, str], ...]) -> tuple[Layout, int]:
    """Return layout and number of seats under rules in words. Raises UnknownGameError."""
    key = (spec.game_type, words)
    if key not in _LAYOUTS:
        game = spec.make("", dict(words))
        while len(_LAYOUTS) >= _MOST_LAYOUTS:
            del _LAYOUTS[next(iter(_LAYOUTS))]
        _LAYOUTS[key] = (spec.layout(game), int(rules.num_seats(game)))
    return _LAYOUTS[key]


def decode_header(payload: bytes) -> Header:
    """Return the facts of the game alone, without unpacking arrays. Raises TrajectoryError."""
    return _open(payload)[0].header


def _open(payload: bytes) -> tuple[_Envelope, bytes]:
    """Check prefix, schema, lengths and digest; return the envelope and the compressed frame."""
    if len(payload) < _PREFIX_BYTES:
        raise TrajectoryError(
            f"{len(payload)} bytes are too few for a trajectory: cut off", "damaged"
        )
    prefix = payload[: _PREFIX.size]
    magic, schema, reserved, header_bytes, frame_bytes = _PREFIX.unpack(prefix)
    if magic != MAGIC:
        raise TrajectoryError(
            f"not a trajectory: starts with {magic!r}, expected {MAGIC!r}", "damaged"
        )
    if schema != SCHEMA_VERSION:
        raise TrajectoryError(
            f"trajectory schema {schema}, this program reads {SCHEMA_VERSION}", "schema"
        )
    total = _PREFIX_BYTES + header_bytes + frame_bytes
    if len(payload) != total:
        raise TrajectoryError(
            f"trajectory of {total} bytes has {len(payload)}: cut or damaged", "damaged"
        )
    encoded = payload[_PREFIX_BYTES : _PREFIX_BYTES + header_bytes]
    frame = payload[_PREFIX_BYTES + header_bytes :]
    if reserved or payload[_PREFIX.size : _PREFIX_BYTES] != _digest(prefix, encoded, frame):
        raise TrajectoryError("trajectory is damaged: its digest does not match", "damaged")
    try:
        envelope = _DECODER.decode(encoded)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise TrajectoryError(
            f"trajectory header is not of schema {schema}: {error}", "schema"
        ) from error
    if envelope.header.schema_version != schema:
        raise TrajectoryError(
            f"trajectory header says schema {envelope.header.schema_version}, its prefix {schema}",
            "schema",
        )
    return envelope, frame


def _digest(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _decompress(frame: bytes, expected_bytes: int) -> bytes:
    """Unpack ``frame``; the size is checked first, so that no frame can ask for all memory."""
    try:
        size = zstandard.frame_content_size(frame)
        if size != expected_bytes or not 0 <= size <= _MAX_BODY_BYTES:
            raise TrajectoryError(
                f"trajectory arrays of {size} bytes, expected {expected_bytes}", "damaged"
            )
        return zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise TrajectoryError(f"trajectory arrays do not unpack: {error}", "damaged") from error


def _to_columns(records: NDArray[Any]) -> bytes:
    """Return the bytes of ``records`` [N], transposed: byte 0 of all records first."""
    raw = np.frombuffer(records.tobytes(), dtype=np.uint8)
    return raw.reshape(len(records), records.dtype.itemsize).T.tobytes()


def _from_columns(raw: bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Undo ``_to_columns``; the result owns its memory."""
    columns = np.frombuffer(raw, dtype=np.uint8).reshape(dtype.itemsize, -1)
    return np.ascontiguousarray(columns.T).reshape(-1).view(dtype)
