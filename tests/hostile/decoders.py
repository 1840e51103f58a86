"""Everything that reads bytes somebody else may have written, with valid samples and its errors.

A decoder's sample is a list of parts; ``join`` makes the whole of them, with whatever lengths and
digests it needs, so that a changed part is read and not only found to be damaged.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import onnx

from actors import arena
from actors.messages import StepRequest
from actors.selfplay import SelfPlayWorker
from deploy import components
from deploy.evaluations import read_records
from deploy.files import MemoryFiles
from deploy.manifest import ResumeError, decode, encode, stamp
from deploy.migration import MigrateError, migrate
from deploy.presets import PRESET_FOLDER, ConfigError, load
from deploy.processes import ProcessBook, ProcessMark, find
from deploy.provenance import in_words
from deploy.rundir import RunDirectory
from league.blocks import PairBlock
from league.evaluator import OnnxEvaluator, read_metadata
from league.gatekeeper import Gatekeeper
from league.messages import LeagueState
from league.models import METADATA_KEY, MemoryModelStore, ModelError
from league.quantize import CALIBRATION_KEY
from learner import checkpoint
from replay import codec, embedded, segments
from replay.memory import MemoryStore, MemoryWriter
from replay.segments import SegmentError, SegmentStore
from replay.trajectory import TrajectoryError
from tests.fixtures.make import unpack
from tests.league import tiny_models
from tests.replay.games import kuhn, make_trajectory

RUN = Path("/run")


@dataclass(frozen=True)
class Decoder:
    """One reader of bytes. ``read`` may raise ``errors`` and nothing else."""

    read: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    samples: list[list[bytes]]
    join: Callable[[list[bytes]], bytes] = field(default=b"".join)


@cache
def fixture() -> dict[str, bytes]:
    """Return the files of the run of schema 1, by kind."""
    with tempfile.TemporaryDirectory() as folder:
        run = unpack(1, "inprocess", Path(folder))
        files = {"manifest": run / "manifest.json", "status": run / "status.json"}
        files["evaluations"] = run / "evaluations.jsonl"
        files |= {k: next(run.glob(f"snapshots/{k}-*")) for k in ("learner", "gate", "worker")}
        files["segment"] = next(run.glob("segments/*.seg"))
        files["model"] = max(run.glob("models/*.onnx"))
        return {kind: path.read_bytes() for kind, path in files.items()}


# --- games ----------------------------------------------------------------------------------------


def join_trajectory(parts: list[bytes]) -> bytes:
    """Return a payload of envelope and frame, sealed."""
    envelope, frame = parts
    prefix = codec._PREFIX.pack(codec.MAGIC, codec.SCHEMA_VERSION, 0, len(envelope), len(frame))
    return b"".join((prefix, codec._digest(prefix, envelope, frame), envelope, frame))


def split_trajectory(payload: bytes) -> list[bytes]:
    """Undo ``join_trajectory``."""
    start = codec._PREFIX_BYTES
    header_bytes = codec._PREFIX.unpack_from(payload)[3]
    return [payload[start : start + header_bytes], payload[start + header_bytes :]]


def join_segment(parts: list[bytes]) -> bytes:
    """Return a segment of records, sealed."""
    return b"".join(segments._FRAME.pack(len(p), segments._digest(p)) + p for p in parts)


def read_segment(data: bytes) -> object:
    """Read all entries of one segment."""
    folder = Path("/segments")
    disk = MemoryFiles({folder / "000000000001.seg": data, folder / "lineage": b"x"})
    store = SegmentStore(folder, disk=disk)
    return [codec.decode_header(entry.payload) for entry in store.entries("0-0")]


# --- models ---------------------------------------------------------------------------------------


def split_model(model: bytes) -> list[bytes]:
    """Return the graph without its metadata, and the texts of the metadata."""
    proto = onnx.ModelProto.FromString(model)
    texts = {entry.key: entry.value.encode() for entry in proto.metadata_props}
    del proto.metadata_props[:]
    return [proto.SerializeToString(), *(texts[k] for k in (METADATA_KEY, CALIBRATION_KEY))]


def join_model(parts: list[bytes]) -> bytes:
    """Return a model: messages of protobuf are merged by writing one behind the other."""
    more = onnx.ModelProto()
    for key, text in zip((METADATA_KEY, CALIBRATION_KEY), parts[1:], strict=True):
        entry = more.metadata_props.add()
        entry.key, entry.value = key, text.decode(errors="replace")
    return parts[0] + bytes(more.SerializeToString())


@cache
def evaluator() -> OnnxEvaluator:
    """Return an evaluator for models of Kuhn poker."""
    return OnnxEvaluator(tiny_models.SPEC, tiny_models.GAME, tiny_models.ENCODER)


def read_model(data: bytes) -> object:
    """Load a model as a player does."""
    evaluator().clear(0)
    return evaluator().set_model(0, data)


# --- snapshots ------------------------------------------------------------------------------------


def split_learner(data: bytes) -> list[bytes]:
    """Return the JSON part and the tensors of a learner's snapshot."""
    prefix = checkpoint._PREFIX
    text_bytes = prefix.unpack_from(data)[3]
    return [data[prefix.size : prefix.size + text_bytes], data[prefix.size + text_bytes :]]


def join_learner(parts: list[bytes]) -> bytes:
    """Undo ``split_learner``, sealed."""
    text, block = parts
    digest = checkpoint._digest(text, block)
    sizes = (len(text), len(block))
    head = checkpoint._PREFIX.pack(checkpoint.MAGIC, checkpoint.SCHEMA, 0, *sizes, digest)
    return head + text + block


@cache
def identity() -> checkpoint.Identity:
    """Return whose snapshot the fixture's is."""
    text = split_learner(fixture()["learner"])[0]
    return msgspec.json.decode(text, type=checkpoint.SnapshotFacts).identity


def read_gate(data: bytes) -> object:
    """Read a gate's snapshot, and go on from what is in it."""
    found = arena._decode_snapshot(data)
    blocks = [part.block for part in (found.ratings, found.evaluations) if part is not None]
    return [
        Gatekeeper.restore(found.gate) if found.gate else None,
        *(PairBlock.restore(block) for block in blocks if block is not None),
    ]


@cache
def worker() -> tuple[SelfPlayWorker, int]:
    """Return the worker of the run that the fixture's snapshot is of, and the newest version."""
    with tempfile.TemporaryDirectory() as folder:
        directory = RunDirectory(unpack(1, "inprocess", Path(folder)))
        manifest, models = directory.load(), MemoryModelStore()
        for version in manifest.models:
            models.put(version, directory.model(manifest, version))
    writer = MemoryWriter(MemoryStore(), "worker", max_pending=1 << 20)
    built = components.build_worker(
        manifest.config, models, writer, manifest.run_id, node="here", slot=0, epoch=1
    )
    return built, manifest.newest


def read_worker(data: bytes) -> object:
    """Restore a worker and let it play on for a moment."""
    player, newest = worker()
    player.restore(data)
    league = LeagueState(newest=newest, champion=0, pool=())
    request = StepRequest(epoch=1, league=league, max_evaluations=4, insert_budget=-1)
    return player.step(request)


def split_worker(data: bytes) -> list[bytes]:
    """Return the members of a worker's snapshot, each with its name and a zero before it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [n.encode() + b"\0" + archive.read(n) for n in archive.namelist()]


def join_worker(parts: list[bytes]) -> bytes:
    """Undo ``split_worker``, with fresh checksums."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number, part in enumerate(parts):
            name, _, member = part.partition(b"\0")
            text = name.decode(errors="replace") or str(number)
            if text not in archive.namelist():
                archive.writestr(zipfile.ZipInfo(text), member)
    return buffer.getvalue()


# --- run directory --------------------------------------------------------------------------------


def directory_with(name: str, data: bytes) -> RunDirectory:
    """Return a run directory with one file."""
    return RunDirectory(RUN, MemoryFiles({RUN / name: data}))


def read_manifest(data: bytes) -> object:
    """Read a manifest, say where it comes from, and save it again."""
    manifest = decode(data, "run/manifest.json")
    stamp(manifest, ["again"])
    return [in_words(found) for found in manifest.invocations], encode(manifest)


def read_processes(data: bytes) -> object:
    """Read a book of processes and look for each."""
    book = ProcessBook(RUN / "processes-ray.json", MemoryFiles({RUN / "processes-ray.json": data}))
    return [find(marked) for marked in book.read()]


@cache
def _scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="hostile-"))


def read_server_record(data: bytes) -> object:
    """Read ``server.json`` and look for the process that it names; nothing may be signalled."""
    path = _scratch() / "server.json"
    path.write_bytes(data)
    record = embedded.read_record(path)
    pid = record.get("pid")
    return embedded.start_token(pid) if isinstance(pid, int) and 1 < pid < 1 << 31 else None


def read_config(data: bytes) -> object:
    """Load a configuration file."""
    path = _scratch() / "mine.toml"
    path.write_bytes(data)
    return load(str(path), environment={})


def read_migrated(data: bytes) -> object:
    """Ask for a migration of a run with this manifest."""
    run = _scratch() / "old"
    run.mkdir(exist_ok=True)
    (run / "manifest.json").write_bytes(data)
    return migrate(run, _scratch() / "copy")


@cache
def decoders() -> dict[str, Decoder]:
    """Return all decoders by name."""
    files = fixture()
    payload = codec.encode(make_trajectory(7, num_hands=3))
    entries = [
        msgspec.msgpack.encode(("local/0/0", n, codec.encode(make_trajectory(n)))) for n in (1, 2)
    ]
    model = tiny_models.make_calibrated(3)
    marks = [ProcessMark(pid=2**30, started=7.5, name="x")]
    manifest = decode(files["manifest"], "x")
    stamp(manifest, ["cardleague", "train"])
    presets = [path.read_bytes() for path in sorted(PRESET_FOLDER.glob("*.toml"))]
    model_parts = [split_model(model)]
    return {
        "trajectory": Decoder(
            lambda data: codec.decode(data, kuhn()[0]),
            (TrajectoryError,),
            [split_trajectory(payload)],
            join_trajectory,
        ),
        "segment": Decoder(read_segment, (SegmentError, TrajectoryError), [entries], join_segment),
        "model": Decoder(read_model, (ModelError,), model_parts, join_model),
        "metadata": Decoder(read_metadata, (ModelError,), model_parts, join_model),
        "learner": Decoder(
            lambda data: checkpoint.decode(data, identity()),
            (checkpoint.SnapshotError,),
            [split_learner(files["learner"])],
            join_learner,
        ),
        "gate": Decoder(read_gate, (ValueError,), [[files["gate"]]]),
        "worker": Decoder(read_worker, (ValueError,), [split_worker(files["worker"])], join_worker),
        "manifest": Decoder(
            read_manifest, (ResumeError,), [[files["manifest"]], [encode(manifest)]]
        ),
        "migrated manifest": Decoder(read_migrated, (MigrateError,), [[files["manifest"]]]),
        "status": Decoder(
            lambda data: directory_with("status.json", data).read_status(),
            (),
            [[files["status"]]],
        ),
        "evaluations": Decoder(
            lambda data: read_records(directory_with("evaluations.jsonl", data)),
            (ResumeError,),
            [[files["evaluations"]]],
        ),
        "processes": Decoder(read_processes, (), [[msgspec.json.encode(marks)]]),
        "server record": Decoder(
            read_server_record, (), [[b'{"pid": 999999999, "start": "1", "socket": "/x"}']]
        ),
        "config": Decoder(read_config, (ConfigError,), [[data] for data in presets]),
    }


def payload_of(anything: Any) -> bytes:
    """Return JSON."""
    return bytes(msgspec.json.encode(anything))
