"""Small inputs that ask for much, or for something else: each has to be refused, cheaply.

    python -m tests.hostile.bombs

runs in a process whose memory is bounded as in ``campaign``, and prints what was refused and how.
"""

from __future__ import annotations

import io
import json
import signal
import struct
import sys
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import onnx
import zstandard
from onnx import TensorProto, helper

from tests.hostile.campaign import _too_slow, attempt, limit_memory
from tests.hostile.decoders import (
    decoders,
    fixture,
    join_learner,
    join_model,
    join_segment,
    join_trajectory,
    split_learner,
    split_model,
)
from tests.league import tiny_models

SLOWEST_S = 2.0
"""CPU time of one input."""
DEEP = 200_000


def trajectories() -> Iterator[tuple[str, bytes]]:
    """Yield payloads with valid digests."""
    decoder = decoders()["trajectory"]
    envelope, frame = decoder.samples[0]
    facts = msgspec.msgpack.decode(envelope)

    def forged(body: bytes, **changes: Any) -> bytes:
        return join_trajectory([msgspec.msgpack.encode(facts | changes), body])

    zeros = zstandard.ZstdCompressor(level=19).compress(bytes(256 << 20))
    yield "zstd bomb of 256 MB", forged(zeros)
    examples = (256 << 20) // 28
    yield "zstd bomb that the envelope announces", forged(zeros, num_examples=examples)
    yield "frame whose size lies", forged(b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 60))
    yield (
        "frame without a size",
        forged(zstandard.ZstdCompressor(write_content_size=False).compress(b"x")),
    )
    yield "negative examples", forged(frame, num_examples=-5, num_visits=1000)
    yield "2**63 visits", forged(frame, num_visits=2**63)
    yield "deep envelope", join_trajectory([b"\x81\xa1z" + b"\x91" * DEEP, frame])
    yield "list of 2**32", join_trajectory([b"\xdd\xff\xff\xff\xff", frame])
    yield "frame twice", forged(frame + frame)


def segment_files() -> Iterator[tuple[str, bytes]]:
    """Yield segments."""
    record = decoders()["segment"].samples[0][0]
    yield "deep record", join_segment([b"\x93" + b"\x91" * DEEP, record])
    yield "record that is no entry", join_segment([msgspec.msgpack.encode([1, 2]), record])


def models() -> Iterator[tuple[str, bytes]]:
    """Yield model files with the metadata of a real one."""
    parts = split_model(tiny_models.make_calibrated(3))

    def changed(change: Any) -> bytes:
        proto = onnx.ModelProto.FromString(parts[0])
        change(proto)
        return join_model([bytes(proto.SerializeToString()), *parts[1:]])

    def outside(path: str) -> Any:
        def change(proto: Any) -> None:
            tensor = proto.graph.initializer[0]
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", path), ("offset", "0"), ("length", "4")):
                entry = tensor.external_data.add()
                entry.key, entry.value = key, value

        return change

    def node(kind: str, domain: str = "", **attributes: Any) -> Any:
        def change(proto: Any) -> None:
            made = helper.make_node(kind, ["observations"], ["extra"], domain=domain, **attributes)
            proto.graph.node.insert(0, made)
            if domain:
                proto.opset_import.append(helper.make_opsetid(domain, 1))

        return change

    def shape(*dims: int) -> Any:
        def change(proto: Any) -> None:
            del proto.graph.initializer[0].dims[:]
            proto.graph.initializer[0].dims.extend(dims)

        return change

    def constant(proto: Any) -> None:
        proto.graph.initializer.append(helper.make_tensor("big", TensorProto.INT64, [1], [1 << 40]))
        proto.graph.node.insert(0, helper.make_node("ConstantOfShape", ["big"], ["extra"]))

    def loop(proto: Any) -> None:
        body = helper.make_graph([], "body", [], [])
        proto.graph.node.insert(0, helper.make_node("Loop", ["", ""], ["extra"], body=body))

    def not_finite(proto: Any) -> None:
        tensor = proto.graph.initializer[0]
        tensor.raw_data = np.full(len(tensor.raw_data) // 4, np.nan, "<f4").tobytes()

    for path in ("../../etc/passwd", "/etc/passwd", "weights.bin", "/dev/zero"):
        yield f"external data {path}", changed(outside(path))
    yield (
        "external data named, bytes here",
        changed(
            lambda p: p.graph.initializer[0].external_data.add(key="location", value="/etc/passwd")
        ),
    )
    yield "unknown operator", changed(node("Explode"))
    yield "custom domain", changed(node("Gemm", "evil.example"))
    yield "contrib domain", changed(node("Gelu", "com.microsoft"))
    yield (
        "domain imported only",
        changed(lambda p: p.opset_import.append(helper.make_opsetid("evil.example", 1))),
    )
    yield "loop", changed(loop)
    yield "constant of 2**40", changed(constant)
    for dims in ((1 << 40, 1 << 40), (-1, 4), (0, 1 << 60), (1 << 31,), (1,) * 3):
        yield f"weights of shape {dims}", changed(shape(*dims))
    yield "weights that are not numbers", changed(not_finite)
    yield "function", changed(lambda p: p.functions.add(name="f", domain="x"))
    yield (
        "100,000 nodes",
        changed(lambda p: p.graph.node.extend([onnx.NodeProto(op_type="Relu")] * 100_000)),
    )
    yield "cycle", changed(lambda p: p.graph.node.append(helper.make_node("Relu", ["y"], ["y"])))
    for text in (b"[" * DEEP, b'{"game":' * DEEP, b"NaN", b'{"schema_version":1e400}'):
        yield f"metadata {text[:8]!r}…", join_model([parts[0], text, parts[2]])
    ranges = msgspec.json.decode(parts[2])
    for pair in ([-1e308, 1e308], [1, -1], [0, 1e30]):
        wild = ranges | {"ranges": dict.fromkeys(ranges["ranges"], pair)}
        yield f"calibration {pair}", join_model([*parts[:2], msgspec.json.encode(wild)])
    metadata = msgspec.json.decode(parts[1])
    for change in ({"equity": [0.5] * 9}, {"observation_size": 2**40}, {"num_values": -1}):
        text = msgspec.json.encode(metadata | change)
        yield f"metadata {change}"[:40], join_model([parts[0], text, parts[2]])


def learners() -> Iterator[tuple[str, bytes]]:
    """Yield learner snapshots with valid digests."""
    text, block = split_learner(fixture()["learner"])
    facts = json.loads(text)

    def with_tensors(header: Any, body: bytes = b"") -> bytes:
        encoded = json.dumps(header).encode()
        return join_learner([text, struct.pack("<Q", len(encoded)) + encoded + body])

    yield "tensor header of 2**60", join_learner([text, struct.pack("<Q", 1 << 60) + block[8:]])
    whole = {"dtype": "F32", "data_offsets": [0, 8]}
    yield "absurd tensor", with_tensors({"weights/x": whole | {"shape": [1 << 40, 1 << 40]}})
    yield (
        "empty absurd tensor",
        with_tensors(
            {"weights/x": {"dtype": "F32", "shape": [0, 1 << 62], "data_offsets": [0, 0]}}
        ),
    )
    yield (
        "tensors of ints",
        with_tensors({"weights/x": whole | {"dtype": "I64", "shape": [1]}}, bytes(8)),
    )
    yield "tensors of NaN", with_tensors({"weights/x": whole | {"shape": [2]}}, b"\xff" * 8)
    yield "deep tensors", join_learner([text, struct.pack("<Q", DEEP) + b"[" * DEEP])
    yield "deep facts", join_learner([b"[" * DEEP, block])
    for change in (
        {"generator": {"kind": "PCG64"}},
        {"generator": facts["generator"] | {"state": "-1"}},
        {"generator": facts["generator"] | {"kind": "MT19937"}},
        {"progress": facts["progress"] | {"step": -1}},
        {"progress": facts["progress"] | {"step": 10**30}},
        {"progress": facts["progress"] | {"figures": {"evil": 1.0}}},
        {"ingest": facts["ingest"] | {"reader": {"cursors": {"0": "x"}}}},
    ):
        yield f"facts {change}"[:60], join_learner([json.dumps(facts | change).encode(), block])


def gates() -> Iterator[tuple[str, bytes]]:
    """Yield gate snapshots."""
    document = json.loads(fixture()["gate"])
    block = {"seed": 1, "first": 0, "count": 10**15, "finished": {}}
    ratings = {"table": {}, "contender": -1, "players": [0, 1], "block": block}
    yield "block of 10**15 pairs", json.dumps(document | {"ratings": ratings}).encode()
    gate = {
        "config": {"max_pairs": 10**15, "max_decided": 10**15},
        "candidate": 1,
        "champion": 0,
        "seed": 1,
        "num_issued": 10**14,
        "num_read": 0,
        "wins": 0,
        "losses": 0,
        "score_sum": 0.0,
        "waiting": {},
    }
    yield "gate of 10**14 pairs", json.dumps(document | {"gate": gate}).encode()
    yield "deep gate", b"[" * DEEP


def workers() -> Iterator[tuple[str, bytes]]:
    """Yield worker snapshots."""

    def archive(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as packed:
            for name, data in members.items():
                packed.writestr(name, data)
        return buffer.getvalue()

    def npy(header: str, body: bytes = b"") -> bytes:
        text = header.encode() + b"\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body

    yield "zip bomb", archive({"meta.npy": bytes(512 << 20)}, zipfile.ZIP_DEFLATED)
    for shape in ("(1099511627776,)", "(-1,)", "(0, 4611686018427387904)", "(1e3,)", "(True,)"):
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
        yield f"npy of shape {shape}", archive({"meta.npy": npy(header)})
    yield (
        "npy of objects",
        archive(
            {
                "meta.npy": npy(
                    "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"cos\nsystem\n"
                )
            }
        ),
    )
    old = "{'descr': '|a8', 'fortran_order': False, 'shape': (1,), }"
    yield "npy of a kind that numpy warns of", archive({"meta.npy": npy(old, bytes(8))})
    yield "npy header that is a program", archive({"meta.npy": npy("__import__('os').abort()")})
    yield "npy deep", archive({"meta.npy": npy("(" * 20_000)})
    yield (
        "deep meta",
        archive(
            {
                "meta.npy": npy(
                    f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({DEEP},), }}",
                    b"\x91" * DEEP,
                )
            }
        ),
    )
    yield "5,000 members", archive({f"{n}.npy": b"" for n in range(5000)})


def texts() -> Iterator[tuple[str, str, bytes]]:
    """Yield (decoder, name, data) of files in a run directory and of configurations."""
    for name in ("manifest", "migrated manifest", "evaluations"):
        line = b"\n{}\n" if name == "evaluations" else b""
        for data in (b"[" * DEEP, b'{"a":' * DEEP, b"\xff\xfe", b'{"schema_version":NaN}'):
            yield name, f"{data[:12]!r}…", data + line
    document = json.loads(fixture()["manifest"])
    blob = {"file": "models/../../x", "hash": "", "size": 1}
    for change in (
        {"schema_version": 2},
        {"schema_version": True},
        {"schema_version": 10**50},
        {"learner": blob},
        {"learner": blob | {"file": "/etc/passwd"}},
        {"learner": blob | {"file": "models/x.onnx", "size": -1}},
        {"epoch": 10**50},
        {"config": document["config"] | {"schema_version": 2}},
        {"config": document["config"] | {"evil": 1}},
    ):
        yield "manifest", f"{change}"[:50], json.dumps(document | change).encode()
    for text in (
        "a = " + "[" * DEEP,
        "a = " + "{a=" * DEEP,
        "a." * DEEP + "a = 1",
        "a." * 30_000 + "a = 1",
        "seed = " + "9" * 5000,
        "seed = 0x" + "f" * 20_000,
        "[learner]\nlearning_rate = nan",
        "[learner]\nlearning_rate = 1" + "0" * 400,
        "[learner]\nbatch_size = " + "1" * 400,
        "name = '" + "x" * 100_000 + "'",
        "seed = 1\nseed = 2",
        "'game.name' = 1979-05-27",
    ):
        yield "config", repr(text[:40]), text.encode()
    yield "config", "not UTF-8", b"name = '\xff'"
    yield "config", "2 MB", b"# " + bytes([65]) * (2 << 20)


def all_bombs() -> list[tuple[str, str, bytes]]:
    """Return (decoder, name, data) of everything that has to be refused."""
    kinds = {
        "trajectory": trajectories(),
        "segment": segment_files(),
        "model": models(),
        "learner": learners(),
        "gate": gates(),
        "worker": workers(),
    }
    found = [(kind, name, data) for kind, group in kinds.items() for name, data in group]
    return found + list(texts())


def main() -> int:
    signal.signal(signal.SIGVTALRM, _too_slow)
    bombs, known = all_bombs(), decoders()
    for decoder in known.values():  # what it loads is not what the inputs take
        attempt(decoder, decoder.join(decoder.samples[0]))
    limit_memory()
    bad = 0
    for kind, name, data in bombs:
        began = time.process_time()
        try:
            outcome = "ACCEPTED" if attempt(known[kind], data) else "refused"
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is a finding
            outcome = f"FINDING {type(error).__name__}: {str(error)[:200]}"
        spent = time.process_time() - began
        if spent > SLOWEST_S:
            outcome += f" SLOW {spent:.1f} s"
        bad += outcome != "refused"
        print(f"{kind}: {name}: {outcome}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
