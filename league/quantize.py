"""Eight-bit play: the graph that one CPU thread runs in place of a model's float32 graph.

Room: league. May import: league.models; onnx on first use.

A model file holds float32 weights. Beside its metadata it may hold a calibration: the range that
the input of every wide matrix product had on real positions, and how far the eight-bit answers are
from the float32 ones there. From both the play side makes its own graph when it loads the model;
the file stays what it is, for GPUs and for other programs.

With x ≈ (q − zero) · scale, q in 0..255, and W ≈ level · scale of its output, level in −63..63, a
product is a sum of small integers, which is exact in int32, and is scaled back to float32 with one
multiplication an output (Jacob et al. 2018, "Quantization and Training of Neural Networks for
Efficient Integer-Arithmetic-Only Inference", §2.2 and §2.4). Scales are constants of the file, so
rows stay independent of their batch. Residual sums and the narrow last products stay float32.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from league.graph import parse
from league.models import ModelError

CALIBRATION_KEY = "cardleague.calibration"
MAX_DIFFERENCE = 0.02
"""Mean difference of policies or values from which a model is played in float32."""
MIN_OUTPUTS = 8
"""Narrower products cost less than rounding their inputs."""
INPUT_LEVELS = 255
WEIGHT_LEVELS = 63
"""Seven bits: processors without VNNI add pairs of products in 16 bits, and 2 · 255 · 63 fits."""
WHOLE_STEPS_FROM = 16
"""From so many steps per unit on, 1 is made a whole number of steps: features are mostly 0 or 1."""
LARGEST_INPUT = 1e9
"""No network on features near 1 comes near it; steps of larger ranges would not be numbers."""
LARGEST_BIAS = 2**24
"""In steps of the int32 sum; an output with tiny weights takes a coarser scale."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the play side needs beside the weights, and what it costs."""

    ranges: dict[str, tuple[float, float]]
    """Least and largest value by tensor that feeds a wide product."""
    num_rows: int
    """Positions that it was measured on."""
    policy_difference: float
    """Mean over rows of half the sum of absolute differences of the probabilities."""
    value_difference: float
    """Mean absolute difference of the values."""

    @property
    def is_close(self) -> bool:
        """Return whether eight bits answer as float32 does, for a player's purposes."""
        return max(self.policy_difference, self.value_difference) <= MAX_DIFFERENCE


def write_calibration(model: bytes, calibration: Calibration) -> bytes:
    """Return ``model`` with ``calibration`` inside, in place of one that it may have had."""
    proto = parse(model)
    kept = [entry for entry in proto.metadata_props if entry.key != CALIBRATION_KEY]
    others = [(entry.key, entry.value) for entry in kept]
    del proto.metadata_props[:]
    for key, value in [*others, (CALIBRATION_KEY, msgspec.json.encode(calibration).decode())]:
        entry = proto.metadata_props.add()
        entry.key, entry.value = key, value
    return bytes(proto.SerializeToString())


def read_calibration(model: bytes) -> Calibration | None:
    """Return the calibration inside ``model``; None without. Raises ModelError if it is damaged."""
    return _calibration(parse(model))


def wide_inputs(model: bytes) -> list[str]:
    """Return the tensors that feed wide products, each once, in the order of the graph."""
    graph = parse(model).graph
    sizes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    return list(dict.fromkeys(node.input[0] for node in graph.node if _is_wide(node, sizes)))


def quantized(model: bytes) -> bytes | None:
    """Return ``model`` with its wide products in eight bits; None where it has to stay float32.

    That is a model without a calibration, or with one that says that it would answer differently.
    Raises ModelError for a damaged calibration or one of another graph.
    """
    proto = parse(model)
    calibration = _calibration(proto)
    if calibration is None or not calibration.is_close:
        return None
    _Rewriting(proto.graph, calibration).run()
    from onnx import helper

    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return bytes(proto.SerializeToString())


class _Rewriting:
    """Changes one graph in place: Gemm -> QuantizeLinear (once an input), QGemm."""

    def __init__(self, graph: Any, calibration: Calibration) -> None:
        from onnx import numpy_helper

        self._graph, self._ranges = graph, calibration.ranges
        self._weights: dict[str, NDArray[Any]] = {
            tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer
        }
        self._rectified = {
            node.output[0]: node.input[0] for node in graph.node if node.op_type == "Relu"
        }
        self._inputs: dict[str, tuple[np.float32, np.uint8]] = {}
        self._nodes: list[Any] = []

    def run(self) -> None:
        sizes = {name: array.shape for name, array in self._weights.items()}
        for node in self._graph.node:
            if _is_wide(node, sizes):
                self._add_product(node)
            else:
                self._nodes.append(node)
        used = {name for node in self._nodes for name in node.input}
        used |= {output.name for output in self._graph.output}
        nodes = [node for node in self._nodes if node.output[0] in used]  # ReLUs that are gone
        used = {name for node in nodes for name in node.input}
        tensors = [self._tensor(name) for name in self._weights if name in used]
        del self._graph.node[:], self._graph.initializer[:]
        self._graph.node.extend(nodes)
        self._graph.initializer.extend(tensors)

    def _tensor(self, name: str) -> Any:
        from onnx import numpy_helper

        return numpy_helper.from_array(self._weights[name], name)

    def _add_node(self, kind: str, inputs: list[str], target: str, **more: Any) -> None:
        from onnx import helper

        self._nodes.append(helper.make_node(kind, inputs, [target], name=target, **more))

    def _add_product(self, node: Any) -> None:
        source, weight = node.input[0], self._weights[node.input[1]]
        scale, _ = self._add_input(source)
        bias = self._weights[node.input[2]] if len(node.input) > 2 else np.zeros(len(weight))
        levels, scales, steps = _round_weights(weight, bias, scale)
        zeros = np.zeros(len(weight), np.int8)
        name = node.output[0]
        inputs = [f"{source}.{part}" for part in ("rounded", "scale", "zero")]
        for part, array in (
            ("levels", levels),
            ("scales", scales),
            ("zeros", zeros),
            ("bias", steps),
        ):
            self._weights[f"{name}.{part}"] = array
            inputs.append(f"{name}.{part}")
        self._add_node("QGemm", inputs, name, domain="com.microsoft", transA=0, transB=0, alpha=1.0)

    def _add_input(self, source: str) -> tuple[np.float32, np.uint8]:
        """Round ``source`` to eight bits, unless that was done, and return its scale and zero."""
        if source in self._inputs:
            return self._inputs[source]
        if source not in self._ranges:
            raise ModelError(f"the calibration has no range of {source!r}: {sorted(self._ranges)}")
        scale, zero = _scale_and_zero(*self._ranges[source])
        self._weights |= {f"{source}.scale": np.array(scale), f"{source}.zero": np.array(zero)}
        # Rounding to 0 and more is a ReLU by itself.
        plain = self._rectified.get(source, source) if zero == 0 else source
        inputs = [plain, f"{source}.scale", f"{source}.zero"]
        self._add_node("QuantizeLinear", inputs, f"{source}.rounded")
        self._inputs[source] = scale, zero
        return scale, zero


def _scale_and_zero(low: float, high: float) -> tuple[np.float32, np.uint8]:
    """Return the step, and the level that stands for 0, of numbers from ``low`` to ``high``."""
    low, high = min(low, 0.0), max(high, 0.0)
    steps = INPUT_LEVELS / max(high - low, 1e-6)
    if steps >= WHOLE_STEPS_FROM:
        steps = np.floor(steps)
    return np.float32(1.0 / steps), np.uint8(min(round(-low * steps), INPUT_LEVELS))


def _round_weights(
    weight: NDArray[np.float32], bias: NDArray[Any], scale: np.float32
) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.int32]]:
    """Return levels [in, out], their scales [out] and the bias [out] in steps of the int32 sum.

    Args:
        weight: [out, in].
        bias: [out].
        scale: Step of the product's input.
    """
    largest = np.abs(weight).max(axis=1) / WEIGHT_LEVELS
    scales = np.maximum(largest, np.abs(bias) / (scale * LARGEST_BIAS))
    scales = np.maximum(scales, 1e-12).astype(np.float32)  # outputs without weights and bias
    levels = np.rint(weight / scales[:, None]).clip(-WEIGHT_LEVELS, WEIGHT_LEVELS)
    steps = np.rint(bias / (scale * scales)).astype(np.int32)
    return np.ascontiguousarray(levels.T.astype(np.int8)), scales, steps


def _is_wide(node: Any, sizes: dict[str, tuple[int, ...]]) -> bool:
    """Return whether ``node`` is a product with constant weights [out, in] of many outputs."""
    if node.op_type != "Gemm" or not all(name in sizes for name in node.input[1:]):
        return False
    attributes = {attribute.name: attribute for attribute in node.attribute}
    is_plain = set(attributes) == {"transB"} and attributes["transB"].i == 1
    return is_plain and sizes[node.input[1]][0] >= MIN_OUTPUTS


def _calibration(proto: Any) -> Calibration | None:
    for entry in proto.metadata_props:
        if entry.key == CALIBRATION_KEY:
            try:
                found = msgspec.json.decode(entry.value, type=Calibration)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise ModelError(f"damaged {CALIBRATION_KEY!r} metadata: {error}") from error
            for name, (low, high) in found.ranges.items():
                if not -LARGEST_INPUT <= low <= high <= LARGEST_INPUT:
                    raise ModelError(
                        f"the calibration has a range {low} to {high} of {name[:80]!r}"
                    )
            return found
    return None
