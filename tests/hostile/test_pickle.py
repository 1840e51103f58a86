"""A pickle is never unpickled, wherever it is put; and nothing in the program could.

Behaviours checked:
* a pickle that makes a file when it is unpickled: refused by the documented error, and the file is
  never made, in a trajectory, a model on the server, a model file, snapshots of learner, gate and
  worker (as arrays of objects too), the manifest, and every other decoder
* the product's sources name no pickle, marshal, shelve, dill, joblib, eval, exec, torch.load,
  torch.jit.load or np.load

Two users of pickle remain, and neither reads what others wrote: numba keeps its own index of
machine code in a folder of its user, and Ray passes messages between processes that have shown its
token.
"""

from __future__ import annotations

import ast
import contextlib
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from actors.arrays import unpack_arrays
from deploy.manifest import ResumeError
from deploy.rundir import RunDirectory
from engine.game import get_spec
from league.evaluator import OnnxEvaluator, read_metadata
from league.models import ModelError
from league.redis_models import RedisModelStore
from learner.config import LearnerConfig
from learner.ingest import Ingest
from replay.config import ReplayConfig
from replay.embedded import EmbeddedServer
from replay.redis_keys import PAYLOAD, PRODUCER, SEQUENCE, RunKeys
from replay.redis_link import call, make_client
from replay.redis_reader import RedisReader
from tests.deploy.waiting import ROOT
from tests.fixtures.make import unpack
from tests.hostile.decoders import decoders
from tests.league import tiny_models

ROOMS = ("engine", "replay", "learner", "league", "actors", "deploy")


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return open, (str(self._marker), "w")


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "unpickled"


@pytest.fixture
def trap(marker: Path) -> bytes:
    """A pickle that works: unpickling makes the marker, which is then removed again."""
    data = pickle.dumps(Trap(marker))
    pickle.loads(data).close()
    assert marker.exists()
    marker.unlink()
    return data


@pytest.mark.parametrize("name", sorted(decoders()))
def test_no_decoder_unpickles(name: str, trap: bytes, marker: Path) -> None:
    decoder = decoders()[name]
    sample = decoder.samples[0]
    for i in range(len(sample)):
        part = trap.replace(b"\n", b"") + b"\n" + sample[i] if name == "evaluations" else trap
        data = decoder.join([*sample[:i], part, *sample[i + 1 :]])
        reads_all = decoder.errors and name != "metadata"  # which reads one part of three
        expected = pytest.raises if reads_all else contextlib.suppress
        with expected(*([decoder.errors] if reads_all else decoder.errors)):
            decoder.read(data)
    with contextlib.suppress(*decoder.errors):  # where a torn tail is cut off, it is that
        decoder.read(trap)
    assert not marker.exists()


def test_arrays_of_objects_are_not_unpickled(trap: bytes, marker: Path) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, meta=np.array([Trap(marker)], dtype=object))
    with pytest.raises(ValueError, match="not a snapshot of arrays"):
        unpack_arrays(buffer.getvalue())
    torch_like = io.BytesIO()
    with zipfile.ZipFile(torch_like, "w") as archive:
        archive.writestr("archive/data.pkl", trap)
        archive.writestr("archive/version", b"3\n")
    with pytest.raises(ValueError, match="not a snapshot of arrays"):
        unpack_arrays(torch_like.getvalue())
    assert not marker.exists()


def test_pickles_on_the_server_are_refused(tmp_path: Path, trap: bytes, marker: Path) -> None:
    server = EmbeddedServer(tmp_path / "server")
    server.start()
    try:
        client, keys = make_client(server.url), RunKeys("test")
        fields = (PRODUCER, b"a/0/1", SEQUENCE, b"1", PAYLOAD, trap)
        call(client, "XADD", keys.stream("0"), "*", *fields)
        spec = get_spec("kuhn")
        reader = RedisReader(server.url, "test", config=ReplayConfig())
        ingest = Ingest(LearnerConfig(target="win"), spec, spec.make(), reader, "test")
        assert ingest.read(5.0) == 1
        assert ingest.totals.games == 0
        assert ingest.totals.rejected == {"damaged": 1}
        reader.close()
        store = RedisModelStore(client, "test")
        store.put(3, trap)  # with its own digest, as somebody would who can write there
        evaluator = OnnxEvaluator(spec, spec.make(), spec.encoders[0])
        with pytest.raises(ModelError, match="not an ONNX model"):
            evaluator.set_model(0, store.get(3))
        client.close()
    finally:
        server.stop()
    assert not marker.exists()


def test_pickles_in_files_are_refused(tmp_path: Path, trap: bytes, marker: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(trap)
    with pytest.raises(ModelError, match="not an ONNX model"):
        read_metadata(path)
    path.write_bytes(tiny_models.make_model(1) + trap)
    evaluator = OnnxEvaluator(tiny_models.SPEC, tiny_models.GAME, tiny_models.ENCODER)
    with pytest.raises(ModelError):
        evaluator.set_model(0, path.read_bytes())
    run = unpack(1, "inprocess", tmp_path)
    (run / "manifest.json").write_bytes(trap)
    with pytest.raises(ResumeError, match="not a manifest"):
        RunDirectory(run).load()
    assert not marker.exists()


# --- nothing in the program could -----------------------------------------------------------------

FORBIDDEN_MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve"}
FORBIDDEN_MODULES |= {"marshal", "jsonpickle", "pickletools", "yaml"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_ATTRIBUTES = {
    ("torch", "load"),
    ("jit", "load"),
    ("np", "load"),
    ("numpy", "load"),
    ("np", "fromfile"),
    ("onnx", "load"),
    ("onnx", "load_model"),
}


def found_in(source: str) -> list[str]:
    """Return what of the forbidden a source uses."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [a.name for a in names if a.name.split(".")[0] in FORBIDDEN_MODULES]
            case ast.ImportFrom(module=str(module), names=names):
                if module.split(".")[0] in FORBIDDEN_MODULES:
                    found.append(module)
                if module in ("torch", "numpy", "onnx"):
                    found += [f"{module}.{a.name}" for a in names if a.name.startswith("load")]
            case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_CALLS:
                found.append(name)
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                if (owner, name) in FORBIDDEN_ATTRIBUTES:
                    found.append(f"{owner}.{name}")
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id="safetensors"), attr="torch"), attr="load"
            ):
                pass  # tensors and JSON, nothing else (test_decoders has its hostile ones)
            case ast.Attribute(value=ast.Attribute(attr=owner), attr=name):
                if (owner, name) in FORBIDDEN_ATTRIBUTES:
                    found.append(f"….{owner}.{name}")
            case ast.keyword(arg="allow_pickle", value=ast.Constant(value=True)):
                found.append("allow_pickle=True")
            case _:
                pass
    return found


def test_the_search_finds_what_it_looks_for() -> None:
    for source in (
        "import pickle",
        "from pickle import loads",
        "import torch\ntorch.load('x')",
        "from torch import load",
        "torch.jit.load('x')",
        "np.load('x', allow_pickle=True)",
        "x = np.load",
        "eval('1')",
        "import marshal as m",
    ):
        assert found_in(source), source
    assert not found_in("np.savez(b, allow_pickle=False)\nmodel.load('x')\nself.eval()")


def test_no_source_can_unpickle() -> None:
    sources = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    assert len(sources) > 100
    found = {str(path.relative_to(ROOT)): found_in(path.read_text()) for path in sources}
    assert {path: what for path, what in found.items() if what} == {}
