"""Ranges of a version's inner numbers on real positions, so that it can be played in eight bits.

Room: learner. May import: numpy, onnx, onnxruntime, replay, league (quantize), learner.

The float32 graph answers the positions, with the input of every wide product as a further output;
then the eight-bit graph answers them, and the difference goes into the file beside the ranges.
Positions are spread evenly over the window: no random numbers, so that a resumed run exports the
same bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from league.quantize import Calibration, quantized, wide_inputs, write_calibration
from learner.export import INPUTS, OUTPUTS, open_session
from learner.features import FeatureMaker, Features
from replay.window import Window


def calibration_positions(window: Window, features: FeatureMaker, count: int) -> Features | None:
    """Return the features of up to ``count`` eligible positions; None for an empty window."""
    slots = window.all_eligible()
    if len(slots) == 0 or count == 0:
        return None
    if len(slots) > count:
        slots = slots[np.linspace(0, len(slots) - 1, count).astype(np.int64)]
    examples = window.gather(slots)
    return features.make(
        examples.views, examples.examples["seat"], examples.examples["num_actions"]
    )


def calibrated(model: bytes, positions: Features) -> bytes:
    """Return the ONNX bytes ``model`` with its calibration on ``positions`` inside.

    ``positions`` need at least one row with candidates.
    """
    ranges = _ranges(model, positions)
    trial = Calibration(
        ranges=ranges,
        num_rows=len(positions.observations),
        policy_difference=0.0,
        value_difference=0.0,
    )
    rounded = quantized(write_calibration(model, trial))
    assert rounded is not None  # differences of 0 are close
    logits, values = _answers(model, positions)
    rounded_logits, rounded_values = _answers(rounded, positions)
    row = positions.candidate_row
    gaps = np.abs(_softmax(logits, row) - _softmax(rounded_logits, row))
    measured = Calibration(
        ranges=ranges,
        num_rows=len(positions.observations),
        policy_difference=float(gaps.sum() / 2.0 / len(np.unique(row))),
        value_difference=float(np.abs(values - rounded_values).mean()),
    )
    return write_calibration(model, measured)


def _feed(positions: Features) -> dict[str, NDArray[Any]]:
    return dict(zip(INPUTS, positions, strict=True))


def _answers(model: bytes, positions: Features) -> tuple[NDArray[Any], NDArray[Any]]:
    logits, values = open_session(model).run(list(OUTPUTS), _feed(positions))
    return logits, values


def _ranges(model: bytes, positions: Features) -> dict[str, tuple[float, float]]:
    """Return the least and the largest value of every tensor that feeds a wide product."""
    names, arrays = wide_inputs(model), _feed(positions)
    inner = [name for name in names if name not in arrays]
    proto = onnx.ModelProto.FromString(model)
    for name in inner:
        proto.graph.output.add(name=name)
    answers = open_session(proto.SerializeToString()).run(inner, arrays)
    arrays |= dict(zip(inner, answers, strict=True))
    return {name: (float(arrays[name].min()), float(arrays[name].max())) for name in names}


def _softmax(logits: NDArray[np.float32], row: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the probabilities [C] of the candidates within their rows."""
    largest = np.full(int(row[-1]) + 1, -np.inf)
    np.maximum.at(largest, row, logits.astype(np.float64))
    weights = np.exp(logits - largest[row])
    return np.asarray(weights / np.bincount(row, weights=weights)[row])
