"""Every version as ONNX bytes, checked against torch before anybody may see it.

Room: learner. May import: onnx, onnxruntime, torch, league.models (metadata).

The graph is built once per shape with ``onnx.helper`` and filled with weights at every version; a
tracing export would take longer than the training between two versions. Names of initialisers are
the names of the torch parameters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

from league.models import METADATA_KEY, ModelMetadata
from learner.network import CandidateNetwork, NetworkShape

OPSET = 17
IR_VERSION = 8
CHECK_BATCHES = (1, 3, 64, 257)
CHECK_TOLERANCE = 2e-4
"""Largest difference of a logit or value, relative to 1 + its size (float32, other summation)."""
MAX_CHECK_CANDIDATES = 12

INPUTS = ("observations", "candidates", "candidate_row")
OUTPUTS = ("logits", "values")


class ExportError(RuntimeError):
    """The exported graph does not answer as the network does; the version must not be announced."""


class Exporter:
    """Turns a network into ONNX bytes. One per learner; the graph of its shape is kept.

    The graph that is kept has no weights, and a copy of it is filled and thrown away: a protobuf
    message frees nothing before its own end, so that every version would stay in memory for good.
    """

    def __init__(self, shape: NetworkShape) -> None:
        self._shape = shape
        self._graph = _build_graph(shape)

    def export(self, network: CandidateNetwork, metadata: ModelMetadata) -> bytes:
        """Return the bytes of ``network`` with ``metadata`` inside. Does not check them."""
        if network.shape != self._shape:
            raise ValueError(f"network of {network.shape}: this exporter is for {self._shape}")
        model = ModelProto()
        model.CopyFrom(self._graph)
        initializers = {tensor.name: tensor for tensor in model.graph.initializer}
        for name, parameter in network.named_parameters():
            values = parameter.detach().to("cpu", torch.float32).numpy()
            initializers[name].raw_data = np.ascontiguousarray(values).tobytes()
        entry = model.metadata_props.add()
        entry.key = METADATA_KEY
        entry.value = msgspec.json.encode(metadata).decode()
        return bytes(model.SerializeToString())


def _build_graph(shape: NetworkShape) -> Any:
    """Return a ModelProto with empty weights; dynamic R and C."""
    nodes: list[Any] = []

    def gemm(source: str, target: str, layer: str, *, bias: bool = True) -> None:
        inputs = [source, f"{layer}.weight", *([f"{layer}.bias"] if bias else [])]
        nodes.append(helper.make_node("Gemm", inputs, [target], name=layer, transB=1))

    def node(kind: str, inputs: list[str], target: str) -> None:
        nodes.append(helper.make_node(kind, inputs, [target], name=target))

    gemm("observations", "x0", "input")
    for i in range(shape.num_layers):
        node("Relu", [f"x{i}"], f"x{i}_active")
        gemm(f"x{i}_active", f"x{i}_change", f"layers.{i}")
        node("Add", [f"x{i}", f"x{i}_change"], f"x{i + 1}")
    node("Relu", [f"x{shape.num_layers}"], "trunk")
    gemm("trunk", "value_h", "value_hidden")
    node("Relu", ["value_h"], "value_h_active")
    gemm("value_h_active", "value_raw", "value_out")
    node("Tanh", ["value_raw"], "values")
    gemm("trunk", "context", "candidate_context", bias=False)
    node("Gather", ["context", "candidate_row"], "context_of_candidate")
    gemm("candidates", "candidate_h", "candidate_in")
    node("Add", ["candidate_h", "context_of_candidate"], "candidate_sum")
    node("Relu", ["candidate_sum"], "candidate_active")
    gemm("candidate_active", "candidate_h2", "candidate_hidden")
    node("Relu", ["candidate_h2"], "candidate_h2_active")
    gemm("candidate_h2_active", "logit_column", "logit_out")
    node("Reshape", ["logit_column", "flat"], "logits")
    graph = helper.make_graph(nodes, "cardleague", _inputs(shape), _outputs(shape))
    graph.initializer.append(helper.make_tensor("flat", TensorProto.INT64, [1], [-1]))
    for name, dims in _parameter_shapes(shape).items():
        graph.initializer.add(name=name, data_type=TensorProto.FLOAT, dims=dims)
    opset = [helper.make_opsetid("", OPSET)]
    return helper.make_model(
        graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="cardleague"
    )


def _inputs(shape: NetworkShape) -> list[Any]:
    value_info, number = helper.make_tensor_value_info, TensorProto.FLOAT
    return [
        value_info("observations", number, ["R", shape.observation_size]),
        value_info("candidates", number, ["C", shape.action_size]),
        value_info("candidate_row", TensorProto.INT64, ["C"]),
    ]


def _outputs(shape: NetworkShape) -> list[Any]:
    value_info, number = helper.make_tensor_value_info, TensorProto.FLOAT
    return [
        value_info("logits", number, ["C"]),
        value_info("values", number, ["R", shape.num_values]),
    ]


def _parameter_shapes(shape: NetworkShape) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        network = CandidateNetwork(shape)
    return {name: tuple(parameter.shape) for name, parameter in network.named_parameters()}


def open_session(model: bytes) -> onnxruntime.InferenceSession:
    """Return a session on one CPU thread, as the play side uses it."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class CheckInputs(NamedTuple):
    """A random ragged batch; rows may have no candidates."""

    observations: NDArray[np.float32]
    candidates: NDArray[np.float32]
    candidate_row: NDArray[np.int64]


def check_inputs(shape: NetworkShape, num_rows: int, seed: int) -> CheckInputs:
    """Return random features for ``num_rows`` rows with 0 to MAX_CHECK_CANDIDATES candidates.

    The first row has none when there are several, and a single row has some.
    """
    generator = np.random.default_rng((seed, num_rows))
    counts = generator.integers(0, MAX_CHECK_CANDIDATES + 1, num_rows)
    counts[0] = 0 if num_rows > 1 else MAX_CHECK_CANDIDATES
    rows = np.repeat(np.arange(num_rows, dtype=np.int64), counts)
    return CheckInputs(
        generator.standard_normal((num_rows, shape.observation_size), np.float32),
        generator.standard_normal((len(rows), shape.action_size), np.float32),
        rows,
    )


def check_export(model: bytes, network: CandidateNetwork) -> float:
    """Compare ``model`` under ONNX Runtime with ``network`` at all CHECK_BATCHES.

    The network may be on any device; a copy on the CPU in float32 answers. Returns the largest
    difference, relative to 1 + size. Raises ExportError above CHECK_TOLERANCE, or for NaN.
    """
    reference = CandidateNetwork(network.shape)
    weights = {name: value.detach().cpu() for name, value in network.state_dict().items()}
    reference.load_state_dict(weights)
    session = open_session(model)
    worst = 0.0
    for num_rows in CHECK_BATCHES:
        inputs = check_inputs(network.shape, num_rows, seed=num_rows)
        with torch.no_grad():
            expected = reference(*(torch.from_numpy(array) for array in inputs))
        outputs = session.run(list(OUTPUTS), dict(zip(INPUTS, inputs, strict=True)))
        for name, got, tensor in zip(OUTPUTS, outputs, expected, strict=True):
            difference = _difference(got, tensor.numpy())
            if not difference <= CHECK_TOLERANCE:
                raise ExportError(
                    f"{name} at batch {num_rows} differ by {difference} between ONNX Runtime and "
                    f"torch; allowed is {CHECK_TOLERANCE}"
                )
            worst = max(worst, difference)
    return worst


def _difference(got: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    if got.shape != expected.shape:
        return float("inf")
    if got.size == 0:
        return 0.0
    return float(np.max(np.abs(got - expected) / (1.0 + np.abs(expected))))


def export_checked(exporter: Exporter, network: CandidateNetwork, metadata: ModelMetadata) -> bytes:
    """Return ONNX bytes that have been checked against ``network``. Raises ExportError."""
    model = exporter.export(network, metadata)
    check_export(model, network)
    return model


__all__ = [
    "CheckInputs",
    "ExportError",
    "Exporter",
    "check_export",
    "check_inputs",
    "export_checked",
    "open_session",
]
