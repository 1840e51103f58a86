"""Behaviours of league.quantize:

* wide products become integers; narrow ones, sums and the interface stay; nothing unused is left
* 0 and 1 are exact among features; numbers outside of their range are clipped to it
* rounded weights are within half a step, and pairs of products fit 16 bits
* outputs without weights keep their bias; a bias far larger than the weights does not overflow
* the calibration travels in the file, is replaced, and is refused by name when damaged
* a model without calibration, or with one that is not close, stays float32
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from league.evaluator import open_session, read_metadata
from league.models import ModelError
from league.quantize import (
    CALIBRATION_KEY,
    INPUT_LEVELS,
    LARGEST_BIAS,
    MAX_DIFFERENCE,
    WEIGHT_LEVELS,
    _round_weights,
    _scale_and_zero,
    quantized,
    read_calibration,
    wide_inputs,
    write_calibration,
)
from tests.league.tiny_models import (
    ENCODER,
    RANGES,
    make_calibrated,
    make_calibration,
    make_metadata,
    make_model,
)


def rounded_graph(model: bytes) -> onnx.GraphProto:
    rounded = quantized(model)
    assert rounded is not None
    proto = onnx.load_from_string(rounded)
    onnx.checker.check_model(proto)
    return proto.graph


def test_wide_products_become_integers_and_the_rest_stays() -> None:
    graph = rounded_graph(make_calibrated(1))
    kinds = Counter(node.op_type for node in graph.node)
    # trunk feeds two products and is rounded once; value_raw and logit_column have one output.
    assert kinds["QGemm"] == 4
    assert kinds["QuantizeLinear"] == 4
    assert kinds["Gemm"] == 2
    assert kinds["Relu"] == 2  # those that feed a narrow product; x0_active is part of rounding
    plain = onnx.load_from_string(make_model(1)).graph
    assert kinds["Add"] == Counter(node.op_type for node in plain.node)["Add"]
    assert [x.name for x in graph.input] == [x.name for x in plain.input]
    assert [x.name for x in graph.output] == [x.name for x in plain.output]
    used = {name for node in graph.node for name in node.input}
    assert {tensor.name for tensor in graph.initializer} <= used
    made = {node.output[0] for node in graph.node} - {x.name for x in graph.output}
    assert made <= used


def test_the_file_keeps_its_weights_and_metadata() -> None:
    metadata = make_metadata(version=5)
    model, plain = make_calibrated(1, metadata=metadata), make_model(1, metadata=metadata)
    weights = [onnx.load_from_string(m).graph.initializer for m in (model, plain)]
    assert list(weights[0]) == list(weights[1])
    assert read_metadata(model) == metadata
    assert read_metadata(quantized(model) or b"") == metadata


def test_wide_inputs_are_named_once_in_the_order_of_the_graph() -> None:
    assert wide_inputs(make_model(1)) == ["observations", "x0_active", "trunk", "candidates"]


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.65, 1.0), (0.0, 1.7), (-5.0, 5.0)])
def test_zero_and_one_are_exact_and_the_range_is_covered(low: float, high: float) -> None:
    scale, zero = _scale_and_zero(low, high)
    numbers = np.array([0.0, 1.0, low, high], np.float32)
    levels = np.clip(np.rint(numbers / scale) + zero, 0, INPUT_LEVELS)
    back = (levels - zero) * scale
    np.testing.assert_allclose(back[:2], [0.0, 1.0], atol=1e-6)
    np.testing.assert_allclose(back[2:], numbers[2:], atol=float(scale))


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.0), (0.0, 1e-9), (3.0, 900.0), (-2e6, 7e5)])
def test_odd_ranges_have_a_scale(low: float, high: float) -> None:
    scale, zero = _scale_and_zero(low, high)
    assert np.isfinite(scale)
    assert scale > 0
    assert float(scale) * (INPUT_LEVELS - int(zero) + 0.51) >= high
    assert float(scale) * (int(zero) + 0.51) >= -low


def test_numbers_outside_of_their_range_are_clipped() -> None:
    rounded = quantized(make_calibrated(1))
    session = open_session(rounded or b"")
    candidates, row = np.zeros((2, ENCODER.action_size), np.float32), np.array([0, 1])

    def values(size: float) -> np.ndarray:
        observations = np.full((2, ENCODER.observation_size), size, np.float32)
        feed = dict(
            zip(
                ("observations", "candidates", "candidate_row"),
                (observations, candidates, row),
                strict=True,
            )
        )
        return np.asarray(session.run(["values"], feed)[0])

    low, high = RANGES["observations"]
    np.testing.assert_array_equal(values(1e6), values(2 * high))
    np.testing.assert_array_equal(values(-1e6), values(2 * low))
    assert not np.array_equal(values(high), values(low))


def test_weights_are_within_half_a_step_and_pairs_fit_16_bits() -> None:
    generator = np.random.default_rng(3)
    weight = generator.standard_normal((20, 30)).astype(np.float32)
    bias = generator.standard_normal(20).astype(np.float32)
    levels, scales, steps = _round_weights(weight, bias, np.float32(0.02))
    assert (levels.shape, levels.dtype, steps.dtype) == ((30, 20), np.int8, np.int32)
    assert np.abs(levels).max() == WEIGHT_LEVELS
    assert 2 * INPUT_LEVELS * WEIGHT_LEVELS < 2**15
    assert (np.abs(levels.T * scales[:, None] - weight) <= scales[:, None] * 0.501).all()
    np.testing.assert_allclose(steps * 0.02 * scales, bias, atol=0.02 * scales.max())


def test_bias_survives_outputs_with_tiny_weights_or_none() -> None:
    weight = np.zeros((4, 6), np.float32)
    weight[1], weight[2] = 1e-20, 1.0
    bias = np.array([3.0, 3.0, -7.0, 0.0], np.float32)
    levels, scales, steps = _round_weights(weight, bias, np.float32(0.01))
    np.testing.assert_allclose(steps * np.float32(0.01) * scales, bias, rtol=1e-6, atol=1e-4)
    assert np.abs(steps).max() <= LARGEST_BIAS
    assert not levels[:, [0, 1, 3]].any()
    assert (levels[:, 2] == WEIGHT_LEVELS).all()


def test_calibration_travels_in_the_file_and_is_replaced() -> None:
    first, second = make_calibration(num_rows=7), make_calibration(num_rows=9)
    model = write_calibration(make_model(1), first)
    assert read_calibration(make_model(1)) is None
    assert read_calibration(model) == first
    model = write_calibration(model, second)
    assert read_calibration(model) == second
    keys = [entry.key for entry in onnx.load_from_string(model).metadata_props]
    assert keys.count(CALIBRATION_KEY) == 1


@pytest.mark.parametrize("text", ["", "{}", '{"ranges": 3}', "[1, 2"])
def test_a_damaged_calibration_is_refused_by_name(text: str) -> None:
    proto = onnx.load_from_string(make_calibrated(1))
    (entry,) = [entry for entry in proto.metadata_props if entry.key == CALIBRATION_KEY]
    entry.value = text
    for read in (read_calibration, quantized):
        with pytest.raises(ModelError, match=r"damaged 'cardleague\.calibration' metadata"):
            read(proto.SerializeToString())


@pytest.mark.parametrize("name", ["policy_difference", "value_difference"])
def test_only_close_models_are_rounded(name: str) -> None:
    model = make_model(1)
    assert quantized(model) is None
    for difference, rounds in ((MAX_DIFFERENCE, True), (MAX_DIFFERENCE * 1.01, False)):
        marked = write_calibration(model, make_calibration(**{name: difference}))
        assert (quantized(marked) is not None) == rounds


def test_scales_in_the_graph_are_those_of_the_ranges() -> None:
    graph = rounded_graph(make_calibrated(1))
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for name, (low, high) in RANGES.items():
        scale, zero = _scale_and_zero(low, high)
        assert (tensors[f"{name}.scale"], tensors[f"{name}.zero"]) == (scale, zero)
