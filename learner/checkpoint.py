"""The learner's snapshot as bytes.

Room: learner. May import: msgspec, safetensors, torch, learner.

A fixed prefix (magic, schema, lengths, digest), then JSON with everything that is not a tensor,
then one safetensors block with weights and the optimizer's moments. No pickle: a snapshot may come
from anywhere. The digest covers both parts, so what was cut or damaged is refused whole. The window
is not in it: it is read again from the stream, from the edge that the reader's state names.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any, NamedTuple

import msgspec
import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from learner.ingest import IngestState
from learner.messages import LearnMetrics
from replay.marks import cursor_key

MAGIC = b"CLLS"
SCHEMA = 1
_PREFIX = struct.Struct("<4sHHQQ16s")  # magic, schema, reserved, JSON bytes, tensor bytes, digest
WEIGHTS = "weights/"
MOMENTS = "moments/"


class SnapshotError(ValueError):
    """Bytes that are not a snapshot of this learner; names what differs."""


class Identity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a snapshot belongs to; a learner of another identity refuses it by name."""

    run_id: str
    seed: int
    game: str
    rules: dict[str, str]
    encoder: str
    encoder_version: int
    observation_size: int
    action_size: int
    num_values: int
    network: dict[str, int]
    target: str


class Progress(msgspec.Struct, kw_only=True):
    """Everything of the learner that is neither a tensor nor ingestion."""

    step: int = 0
    version: int = -1
    """Last exported version; the parent of the next one. -1 before the first."""
    version_step: int = 0
    """Step at which it was exported."""
    value_trusted: bool = False
    ever_trusted: bool = False
    """The value head was trusted at some measurement."""
    leaves_by_playout: bool = False
    """Versions tell the search to value leaves by playouts."""
    figures: dict[str, float] = {}
    """Latest metrics by name; what is not known yet is absent (JSON has no NaN)."""
    root_value_bias: dict[str, float] = {}


class SnapshotFacts(msgspec.Struct, kw_only=True):
    """The JSON part."""

    identity: Identity
    progress: Progress
    ingest: IngestState
    generator: dict[str, str]
    """State of numpy's PCG64 that samples (128-bit numbers as text)."""


class Snapshot(NamedTuple):
    """A decoded snapshot."""

    facts: SnapshotFacts
    weights: dict[str, Tensor]
    moments: dict[str, Tensor]


def encode(snapshot: Snapshot) -> bytes:
    """Return the bytes of ``snapshot``."""
    text = msgspec.json.encode(snapshot.facts)
    tensors = {WEIGHTS + name: value.contiguous() for name, value in snapshot.weights.items()}
    tensors |= {MOMENTS + name: value.contiguous() for name, value in snapshot.moments.items()}
    block = safetensors.torch.save(tensors)
    prefix = _PREFIX.pack(MAGIC, SCHEMA, 0, len(text), len(block), _digest(text, block))
    return b"".join((prefix, text, block))


def decode(data: bytes, identity: Identity) -> Snapshot:
    """Return the snapshot in ``data``.

    Raises SnapshotError when it is cut, damaged, of another schema, or of another learner.
    """
    text, block = _split(data)
    try:
        facts = msgspec.json.decode(text, type=SnapshotFacts)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SnapshotError(f"snapshot is not of schema {SCHEMA}: {error}") from error
    _check_identity(facts.identity, identity)
    _check_facts(facts)
    tensors = _tensors(block)
    return Snapshot(
        facts=facts,
        weights={k.removeprefix(WEIGHTS): v for k, v in tensors.items() if k.startswith(WEIGHTS)},
        moments={k.removeprefix(MOMENTS): v for k, v in tensors.items() if k.startswith(MOMENTS)},
    )


def _split(data: bytes) -> tuple[bytes, bytes]:
    if len(data) < _PREFIX.size:
        raise SnapshotError(f"{len(data)} bytes are too few for a snapshot: cut off")
    magic, schema, _, text_bytes, block_bytes, digest = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise SnapshotError(f"not a learner snapshot: starts with {magic!r}, expected {MAGIC!r}")
    if schema != SCHEMA:
        raise SnapshotError(f"snapshot schema {schema}: this program reads {SCHEMA}")
    expected = _PREFIX.size + text_bytes + block_bytes
    if len(data) != expected:
        raise SnapshotError(f"snapshot of {expected} bytes has {len(data)}: cut or damaged")
    text = data[_PREFIX.size : _PREFIX.size + text_bytes]
    block = data[_PREFIX.size + text_bytes :]
    if digest != _digest(text, block):
        raise SnapshotError("snapshot is damaged: its digest does not match")
    return text, block


def _tensors(block: bytes) -> dict[str, Tensor]:
    """Return the tensors of a safetensors block; their bytes are all in the block."""
    try:
        tensors = safetensors.torch.load(block)
    except (SafetensorError, ValueError, KeyError, RuntimeError, TypeError, OverflowError) as error:
        raise SnapshotError(f"tensors of the snapshot: {error}") from error
    for name, tensor in tensors.items():
        if (
            not tensor.numel()
            or tensor.dtype != torch.float32
            or not bool(torch.isfinite(tensor).all())
        ):
            raise SnapshotError(
                f"tensor {name[:80]!r} of the snapshot: allowed are some finite float32 numbers"
            )
    return tensors


def _check_facts(facts: SnapshotFacts) -> None:
    """Raise SnapshotError for numbers that no learner has written, or could not go on from."""
    try:
        restore_generator(facts.generator)
        for cursors in (facts.ingest.reader.cursors, facts.ingest.reader.window_edge):
            for cursor in cursors.values():
                cursor_key(cursor)
        msgspec.msgpack.encode(facts)  # OverflowError for numbers beyond 64 bits
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise SnapshotError(f"snapshot: {type(error).__name__}: {error}") from error
    progress = facts.progress
    if not (progress.step >= progress.version_step >= 0 and progress.version >= -1):
        raise SnapshotError(
            f"snapshot at step {progress.step}, version {progress.version} of step "
            f"{progress.version_step}: these contradict one another"
        )
    unknown = progress.figures.keys() - set(LearnMetrics.__struct_fields__)
    if unknown:
        raise SnapshotError(f"snapshot has the figures {sorted(unknown)[:5]}")


def _digest(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _check_identity(there: Identity, here: Identity) -> None:
    for name in Identity.__struct_fields__:
        if getattr(there, name) != getattr(here, name):
            raise SnapshotError(
                f"snapshot has {name} = {getattr(there, name)!r}, this learner has "
                f"{getattr(here, name)!r}"
            )


def generator_state(generator: np.random.Generator) -> dict[str, str]:
    """Return the state of a PCG64 generator as text."""
    state: dict[str, Any] = dict(generator.bit_generator.state)
    inner = state["state"]
    return {
        "kind": str(state["bit_generator"]),
        "state": str(inner["state"]),
        "inc": str(inner["inc"]),
        "has_uint32": str(state["has_uint32"]),
        "uinteger": str(state["uinteger"]),
    }


def restore_generator(text: dict[str, str]) -> np.random.Generator:
    """Return a generator that goes on where ``generator_state`` found it."""
    generator = np.random.Generator(np.random.PCG64())
    generator.bit_generator.state = {
        "bit_generator": text["kind"],
        "state": {"state": int(text["state"]), "inc": int(text["inc"])},
        "has_uint32": int(text["has_uint32"]),
        "uinteger": int(text["uinteger"]),
    }
    return generator
