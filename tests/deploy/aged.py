"""A schema that never was: what a run looked like before schema 1, and the step that leads there.

``age`` turns a run of schema 1 into one of "schema 0", in which fields of every part have other
names; ``STEP`` undoes that, as a real step will do after a real change. In schema 0

    manifest     champion -> best, totals -> sums            config   learner.batch_size -> batch
    learner      progress.step -> steps                      gate     last_candidate -> latest
    worker       seed -> root (in its MessagePack part)      model    parent -> mother
    trajectory   num_plies -> plies                          evaluation  games -> count
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx

from actors.arrays import pack_arrays, unpack_arrays
from deploy.config import RunConfig
from deploy.migration import Step
from league.models import METADATA_KEY
from learner import checkpoint
from replay import codec
from replay.config import ReplayConfig
from replay.rewriting import rewrite_segments, rewrite_server
from replay.trajectory import TrajectoryError

Document = dict[str, Any]


def renamed(document: Document, old: str, new: str) -> Document:
    """Return ``document`` with one key renamed, in its place."""
    if old not in document:
        raise ValueError(f"no {old!r} in {sorted(document)}")
    return {new if key == old else key: value for key, value in document.items()}


def _manifest(document: Document, *, back: bool) -> Document:
    for now, then in (("champion", "best"), ("totals", "sums")):
        document = renamed(document, *((now, then) if back else (then, now)))
    return document


def _config(document: Document, *, back: bool) -> Document:
    names = ("batch_size", "batch") if back else ("batch", "batch_size")
    number = 0 if back else 1
    return document | {
        "learner": renamed(document["learner"], *names),
        "schema_version": number,
    }


def _learner(data: bytes, *, back: bool) -> bytes:
    prefix = checkpoint._PREFIX
    magic, schema, reserved, text_bytes, block_bytes, _ = prefix.unpack_from(data)
    assert schema == (1 if back else 0)
    facts = msgspec.json.decode(data[prefix.size : prefix.size + text_bytes])
    block = data[prefix.size + text_bytes :]
    names = ("step", "steps") if back else ("steps", "step")
    facts["progress"] = renamed(facts["progress"], *names)
    text = msgspec.json.encode(facts)
    digest = checkpoint._digest(text, block)
    head = prefix.pack(magic, 0 if back else 1, reserved, len(text), block_bytes, digest)
    return head + text + block


def _gate(data: bytes, *, back: bool) -> bytes:
    document = msgspec.json.decode(data)
    names = ("last_candidate", "latest") if back else ("latest", "last_candidate")
    number = 0 if back else 1
    return msgspec.json.encode(renamed(document, *names) | {"schema_version": number})


def _worker(data: bytes, *, back: bool) -> bytes:
    arrays = unpack_arrays(data)
    meta = msgspec.msgpack.decode(arrays["meta"].tobytes())
    meta = renamed(meta, *(("seed", "root") if back else ("root", "seed")))
    arrays["meta"] = np.frombuffer(msgspec.msgpack.encode(meta), np.uint8)
    return pack_arrays(arrays)


_SNAPSHOTS: dict[str, Callable[..., bytes]] = {
    "learner": _learner,
    "gate": _gate,
    "worker": _worker,
}


def _model(data: bytes, *, back: bool) -> bytes:
    proto = onnx.ModelProto.FromString(data)
    for entry in proto.metadata_props:
        if entry.key == METADATA_KEY:
            document = msgspec.json.decode(entry.value)
            document = renamed(document, *(("parent", "mother") if back else ("mother", "parent")))
            document["schema_version"] = 0 if back else 1
            entry.value = msgspec.json.encode(document).decode()
    return bytes(proto.SerializeToString())


def _trajectory(payload: bytes, *, back: bool) -> bytes:
    start = codec._PREFIX_BYTES
    magic, schema, reserved, header_bytes, frame_bytes = codec._PREFIX.unpack_from(payload)
    if magic != codec.MAGIC or schema != (1 if back else 0):
        raise TrajectoryError(f"schema {schema} of {magic!r}", "schema")
    envelope = msgspec.msgpack.decode(payload[start : start + header_bytes])
    frame = payload[start + header_bytes :]
    names = ("num_plies", "plies") if back else ("plies", "num_plies")
    number = 0 if back else 1
    envelope["header"] = renamed(envelope["header"], *names) | {"schema_version": number}
    encoded = msgspec.msgpack.encode(envelope)
    prefix = codec._PREFIX.pack(magic, number, reserved, len(encoded), frame_bytes)
    return prefix + codec._digest(prefix, encoded, frame) + encoded + frame


def _evaluation(document: Document, *, back: bool) -> Document:
    return renamed(document, *(("games", "count") if back else ("count", "games")))


STEP = Step(
    source=0,
    manifest=lambda document: _manifest(document, back=False),
    config=lambda document: _config(document, back=False),
    snapshot=lambda kind, data: _SNAPSHOTS[kind](data, back=False),
    model=lambda data: _model(data, back=False),
    trajectory=lambda payload: _trajectory(payload, back=False),
    evaluation=lambda document: _evaluation(document, back=False),
)


def age(run: Path) -> None:
    """Turn the run in ``run``, of schema 1, into one of schema 0, in place."""
    path = run / "manifest.json"
    document = msgspec.json.decode(path.read_bytes())
    for record in document["models"].values():
        record["blob"] = _replace(run, record["blob"], lambda data: _model(data, back=True))
    for kind in ("learner", "gate"):
        convert = _SNAPSHOTS[kind]
        document[kind] = _replace(run, document[kind], lambda d, c=convert: c(d, back=True))
    document["workers"] = [
        _replace(run, blob, lambda data: _worker(data, back=True)) for blob in document["workers"]
    ]
    replay = msgspec.convert(document["config"], RunConfig).replay
    document["config"] = _config(document["config"], back=True)
    document = _manifest(document, back=True) | {"schema_version": 0}
    path.write_bytes(msgspec.json.encode(document))
    lines = (run / "evaluations.jsonl").read_bytes().splitlines()
    aged = [_evaluation(msgspec.json.decode(line), back=True) for line in lines]
    data = b"".join(msgspec.json.encode(record) + b"\n" for record in aged)
    (run / "evaluations.jsonl").write_bytes(data)
    _age_games(run, document["run_id"], replay)


def _age_games(run: Path, run_id: str, replay: ReplayConfig) -> None:
    def convert(payload: bytes) -> bytes:
        return _trajectory(payload, back=True)

    if (run / "segments").is_dir():
        assert rewrite_segments(run / "segments", convert) > 0
    if (run / "server").is_dir():
        assert rewrite_server(run / "server", run_id, replay, convert) > 0
        for name in ("server.lock", "server.log", "server.json"):
            (run / "server" / name).unlink(missing_ok=True)


def _replace(run: Path, blob: Document, convert: Callable[[bytes], bytes]) -> Document:
    data = convert((run / blob["file"]).read_bytes())
    (run / blob["file"]).write_bytes(data)
    return {"file": blob["file"], "hash": hashlib.sha256(data).hexdigest(), "size": len(data)}
