"""What the graph of a model may be made of, checked before ONNX Runtime sees a byte of it.

Room: league. May import: league.models, numpy; onnx on first use.

A model file may come from anywhere. ONNX can name files outside it, run loops, call operators of
other libraries and ask for any amount of memory while constants are folded. A network of this
program needs six kinds of nodes, and every array that a node makes is as large as its rows times a
dimension of a weight that is really in the file. So nothing else is let through:

    Gemm(activations, weight [, bias])   Relu   Tanh   Add(activations, activations)
    Gather(activations, candidate_row)   Reshape(activations, [-1])

Weights are float32, whole, finite, and inside the file.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.models import ModelError

MAX_MODEL_BYTES = 256 << 20
MAX_NODES = 1024
MAX_TENSORS = 1024
INPUTS = {"observations": 2, "candidates": 2, "candidate_row": 1}
"""Name -> number of dimensions."""
OUTPUTS = {"logits": 1, "values": 2}
_ARITY = {
    "Gemm": (2, 3),
    "Relu": (1, 1),
    "Tanh": (1, 1),
    "Add": (2, 2),
    "Gather": (2, 2),
    "Reshape": (2, 2),
}
"""Operator -> least and most inputs."""


def parse(data: bytes, name: str = "model") -> Any:
    """Return the ``onnx.ModelProto`` in ``data``. Raises ModelError for other bytes."""
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    if len(data) > MAX_MODEL_BYTES:
        raise ModelError(f"{name}: {len(data)} bytes, allowed are {MAX_MODEL_BYTES}")
    try:
        proto = onnx.ModelProto.FromString(data)
    except (DecodeError, RecursionError) as error:
        raise ModelError(f"{name}: {len(data)} bytes that are not an ONNX model") from error
    if not proto.HasField("graph"):
        raise ModelError(f"{name}: {len(data)} bytes that are not an ONNX model (no graph)")
    return proto


def check_graph(proto: Any) -> None:
    """Raise ModelError that names the first thing in ``proto`` that no model of ours has."""
    graph = proto.graph
    if proto.functions or proto.training_info:
        raise ModelError("the model has functions or training parts: allowed is a plain graph")
    domains = {entry.domain for entry in proto.opset_import}
    if domains != {""}:
        raise ModelError(f"operators of {sorted(domains)}: allowed are those of ONNX itself")
    if graph.sparse_initializer or graph.quantization_annotation:
        raise ModelError("the graph has sparse or annotated tensors: allowed are plain ones")
    if len(graph.node) > MAX_NODES or len(graph.initializer) > MAX_TENSORS:
        raise ModelError(
            f"{len(graph.node)} nodes, {len(graph.initializer)} tensors: allowed are {MAX_NODES} "
            f"and {MAX_TENSORS}"
        )
    _check_interface(graph)
    weights = {tensor.name: _weight(tensor) for tensor in graph.initializer}
    if len(weights) != len(graph.initializer) or weights.keys() & INPUTS.keys():
        raise ModelError("two tensors of the graph have the same name")
    known = set(INPUTS)
    for node in graph.node:
        _check_node(node, weights, known)
        known.add(node.output[0])
    if missing := OUTPUTS.keys() - known:
        raise ModelError(f"nothing in the graph makes {sorted(missing)}")


def _check_interface(graph: Any) -> None:
    for what, values, expected in (
        ("input", graph.input, INPUTS),
        ("output", graph.output, OUTPUTS),
    ):
        found = {value.name: len(value.type.tensor_type.shape.dim) for value in values}
        if found != expected or len(values) != len(expected):
            raise ModelError(f"the graph's {what}s are {_short(found)}, expected {expected}")


def _weight(tensor: Any) -> NDArray[Any]:
    """Return the array of an initialiser, all of whose bytes are in the file."""
    from onnx import TensorProto

    name = _short(tensor.name)
    dtypes: dict[int, np.dtype[Any]] = {
        TensorProto.FLOAT: np.dtype("<f4"),
        TensorProto.INT64: np.dtype("<i8"),
    }
    if tensor.external_data or tensor.data_location == TensorProto.EXTERNAL:
        raise ModelError(f"tensor {name} lies in another file: allowed is the model's own file")
    if tensor.data_type not in dtypes or not 1 <= len(tensor.dims) <= 2:
        raise ModelError(f"tensor {name} has type {tensor.data_type} and {len(tensor.dims)} axes")
    shape, dtype = tuple(tensor.dims), dtypes[tensor.data_type]
    values = tensor.raw_data
    if not values and tensor.data_type == TensorProto.INT64:
        values = np.array(tensor.int64_data, "<i8").tobytes()
    if min(shape) < 1 or math.prod(shape) * dtype.itemsize != len(values):
        raise ModelError(f"tensor {name} of shape {shape} has {len(values)} bytes")
    if tensor.float_data or tensor.int32_data or tensor.string_data or tensor.HasField("segment"):
        raise ModelError(f"tensor {name} has its values in several places")
    array = np.frombuffer(values, dtype).reshape(shape)
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise ModelError(f"tensor {name} holds numbers that are not finite")
    return array


def _check_node(node: Any, weights: dict[str, NDArray[Any]], known: set[str]) -> None:
    kind, name = node.op_type, _short(node.name or node.op_type)
    least, most = _ARITY.get(kind, (0, -1))
    if node.domain or most < 0:
        raise ModelError(
            f"node {name} is {_short(node.domain)}:{_short(kind)}: allowed are {_names()}"
        )
    inputs = list(node.input)
    if not least <= len(inputs) <= most or len(node.output) != 1:
        raise ModelError(f"node {name} has {len(inputs)} inputs and {len(node.output)} outputs")
    if node.output[0] in known or node.output[0] in weights or not node.output[0]:
        raise ModelError(f"node {name} makes {_short(node.output[0])} a second time")
    activations = inputs if kind == "Add" else inputs[:1]
    if not known.issuperset(activations) or "candidate_row" in activations:
        raise ModelError(f"node {name} reads {_short(activations)}, which no node before it makes")
    attributes = {attribute.name: attribute for attribute in node.attribute}
    is_plain = not attributes
    if kind == "Gemm":
        transposed = attributes.get("transB")
        is_plain = set(attributes) == {"transB"} and transposed is not None and transposed.i == 1
        _check_product(name, inputs, weights)
    elif kind == "Gather" and inputs[1] != "candidate_row":
        raise ModelError(f"node {name} gathers by {_short(inputs[1])}: allowed is candidate_row")
    elif kind == "Reshape" and not _is_flat(weights.get(inputs[1])):
        raise ModelError(f"node {name} reshapes to {_short(inputs[1])}: allowed is [-1]")
    if not is_plain or len(attributes) != len(node.attribute):
        raise ModelError(f"node {name} has the attributes {_short(sorted(attributes))}")


def _check_product(name: str, inputs: list[str], weights: dict[str, NDArray[Any]]) -> None:
    weight, bias = weights.get(inputs[1]), weights.get(inputs[2]) if len(inputs) > 2 else None
    if weight is None or weight.ndim != 2 or weight.dtype.kind != "f":
        raise ModelError(
            f"node {name} multiplies by {_short(inputs[1])}: allowed is a weight matrix"
        )
    if len(inputs) > 2 and (bias is None or bias.shape != (len(weight),) or bias.dtype.kind != "f"):
        raise ModelError(f"node {name} adds {_short(inputs[2])}: allowed is a bias of its outputs")


def _is_flat(shape: NDArray[Any] | None) -> bool:
    return shape is not None and shape.dtype.kind == "i" and shape.tolist() == [-1]


def _names() -> str:
    return ", ".join(_ARITY)


def _short(what: Any) -> str:
    return repr(what)[:80]
