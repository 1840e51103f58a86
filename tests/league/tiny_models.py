"""Small random ONNX models for Kuhn poker, built without torch, as the learner's graph is."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from engine.game import get_spec
from league.models import METADATA_KEY, ModelMetadata
from league.quantize import Calibration, write_calibration

SPEC = get_spec("kuhn")
GAME = SPEC.make()
ENCODER = SPEC.encoders[0]


def make_metadata(**changes: Any) -> ModelMetadata:
    """Return metadata of a Kuhn model, with ``changes``."""
    metadata = ModelMetadata(
        run_id="test",
        version=0,
        parent=-1,
        step=0,
        num_examples=0,
        game=SPEC.name,
        rules=SPEC.describe(GAME),
        encoder=ENCODER.name,
        encoder_version=ENCODER.version,
        observation_size=ENCODER.observation_size,
        action_size=ENCODER.action_size,
        num_values=1,
        target="win",
        network={"width": 16},
    )
    return msgspec.structs.replace(metadata, **changes)


def make_model(
    seed: int,
    *,
    metadata: ModelMetadata | None = None,
    width: int = 16,
    candidate_width: int = 8,
    observation_size: int = ENCODER.observation_size,
    prefer: int | None = None,
) -> bytes:
    """Return ONNX bytes with weights drawn from ``seed``; the same arguments, the same bytes.

    With ``prefer`` the model values everything at 0 and always prefers that action.
    """
    generator = np.random.default_rng(seed)
    nodes: list[Any] = []
    weights: list[Any] = []

    def gemm(source: str, name: str, num_in: int, num_out: int) -> None:
        weight = generator.standard_normal((num_out, num_in), np.float32) / np.sqrt(num_in)
        bias = generator.standard_normal(num_out, np.float32)
        if prefer is not None:
            weight[:], bias[:] = 0.0, 0.0
            if name == "h":
                weight[0, prefer] = 10.0
            if name == "logit_column":
                weight[0, 0] = 1.0
        weights.append(numpy_helper.from_array(weight.astype(np.float32), f"{name}.w"))
        weights.append(numpy_helper.from_array(bias, f"{name}.b"))
        inputs = [source, f"{name}.w", f"{name}.b"]
        nodes.append(helper.make_node("Gemm", inputs, [name], name=name, transB=1))

    def node(kind: str, inputs: list[str], output: str) -> None:
        nodes.append(helper.make_node(kind, inputs, [output]))

    gemm("observations", "x0", observation_size, width)
    node("Relu", ["x0"], "x0_active")
    gemm("x0_active", "change", width, width)
    node("Add", ["x0", "change"], "x1")
    node("Relu", ["x1"], "trunk")
    gemm("trunk", "value_raw", width, 1)
    node("Tanh", ["value_raw"], "values")
    gemm("trunk", "context", width, candidate_width)
    node("Gather", ["context", "candidate_row"], "context_of_candidate")
    gemm("candidates", "h", ENCODER.action_size, candidate_width)
    node("Add", ["h", "context_of_candidate"], "h_sum")
    node("Relu", ["h_sum"], "h_active")
    gemm("h_active", "logit_column", candidate_width, 1)
    weights.append(numpy_helper.from_array(np.array([-1]), "flat"))
    node("Reshape", ["logit_column", "flat"], "logits")
    info, number = helper.make_tensor_value_info, TensorProto.FLOAT
    inputs = [
        info("observations", number, ["R", observation_size]),
        info("candidates", number, ["C", ENCODER.action_size]),
        info("candidate_row", TensorProto.INT64, ["C"]),
    ]
    outputs = [info("logits", number, ["C"]), info("values", number, ["R", 1])]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    entry = model.metadata_props.add()
    entry.key = METADATA_KEY
    entry.value = msgspec.json.encode(metadata or make_metadata()).decode()
    return bytes(model.SerializeToString(deterministic=True))


RANGES = {
    "observations": (-5.0, 5.0),
    "candidates": (-5.0, 5.0),
    "x0_active": (0.0, 8.0),
    "trunk": (0.0, 8.0),
}
"""Of the wide products' inputs for normal features; few numbers lie outside."""


def make_calibration(**changes: Any) -> Calibration:
    """Return the calibration of a tiny model, with ``changes``."""
    calibration = Calibration(
        ranges=RANGES, num_rows=100, policy_difference=0.001, value_difference=0.001
    )
    return msgspec.structs.replace(calibration, **changes)


def make_calibrated(seed: int, **more: Any) -> bytes:
    """Return ``make_model(seed, ...)`` with a calibration, which is played in eight bits."""
    return write_calibration(make_model(seed, **more), make_calibration())
