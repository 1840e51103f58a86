"""Behaviours of league.evaluator:

* rows are answered bit for bit alike alone, in random sub-batches, among rows of other models,
  in float32 and in eight bits
* contiguous and scattered rows of several models; rows and candidates beyond the counts untouched
* rows without candidates get a value
* foreign, truncated and mismatched models are refused by name, and the slot keeps its model
* a model that says so has its rows valued by playouts, and nothing else changes
* slots: bounds, clearing, sharing of a session
* calibrated models run in eight bits and answer nearly as in float32, which can be asked for
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from engine import rules
from engine.evaluation import EvalBatch, new_batch
from engine.search.rollout import RolloutEvaluator
from league.evaluator import MIN_ROWS, OnnxEvaluator, read_metadata
from league.models import ModelError
from league.quantize import write_calibration
from tests.league.tiny_models import (
    ENCODER,
    GAME,
    SPEC,
    make_calibrated,
    make_calibration,
    make_metadata,
    make_model,
)

NUM_ROWS = 97


def random_batch(seed: int, num_rows: int = NUM_ROWS, num_models: int = 1) -> tuple[EvalBatch, int]:
    """Return a batch of random features with 0 to max_actions candidates a row, and C."""
    generator = np.random.default_rng(seed)
    batch = new_batch(SPEC, ENCODER, 2, num_rows)
    counts = generator.integers(0, SPEC.max_actions + 1, num_rows)
    counts[0] = SPEC.max_actions
    batch.offsets[1:] = np.cumsum(counts)
    num_candidates = int(counts.sum())
    batch.candidate_row[:num_candidates] = np.repeat(np.arange(num_rows), counts)
    batch.observations[:] = generator.standard_normal(batch.observations.shape)
    batch.candidates[:] = generator.standard_normal(batch.candidates.shape)
    batch.model[:] = generator.integers(0, num_models, num_rows)
    return batch, num_candidates


def sub_batch(batch: EvalBatch, rows: np.ndarray) -> tuple[EvalBatch, np.ndarray]:
    """Return a batch of ``rows`` alone, and the indices of their candidates in ``batch``."""
    sub = new_batch(SPEC, ENCODER, 2, len(rows))
    spans = [np.arange(batch.offsets[row], batch.offsets[row + 1]) for row in rows]
    candidates = np.concatenate(spans)
    counts = [len(span) for span in spans]
    sub.offsets[1:] = np.cumsum(counts)
    sub.candidate_row[: len(candidates)] = np.repeat(np.arange(len(rows)), counts)
    sub.observations[:] = batch.observations[rows]
    sub.candidates[: len(candidates)] = batch.candidates[candidates]
    sub.model[:] = batch.model[rows]
    return sub, candidates


def evaluator_with(*models: bytes) -> OnnxEvaluator:
    evaluator = OnnxEvaluator(SPEC, GAME, ENCODER, num_slots=max(1, len(models)))
    for slot, model in enumerate(models):
        evaluator.set_model(slot, model)
    return evaluator


@pytest.mark.parametrize("make", [make_model, make_calibrated], ids=["float32", "eight bits"])
@pytest.mark.parametrize("num_models", [1, 3])
def test_rows_are_bitwise_independent_of_their_batch(
    num_models: int, make: Callable[..., bytes]
) -> None:
    evaluator = evaluator_with(*(make(seed=seed) for seed in range(num_models)))
    assert evaluator.in_eight_bits(0) == (make is make_calibrated)
    batch, num_candidates = random_batch(1, num_models=num_models)
    evaluator.evaluate(batch, NUM_ROWS, num_candidates)
    assert len(np.unique(batch.values)) > NUM_ROWS // 2
    generator = np.random.default_rng(2)
    sizes = [*range(1, 20), *generator.integers(1, NUM_ROWS, 60)]
    for size in sizes:
        rows = generator.permutation(NUM_ROWS)[:size]
        sub, candidates = sub_batch(batch, rows)
        evaluator.evaluate(sub, len(rows), len(candidates))
        np.testing.assert_array_equal(sub.values, batch.values[rows])
        np.testing.assert_array_equal(sub.logits[: len(candidates)], batch.logits[candidates])


@pytest.mark.parametrize("scattered", [False, True], ids=["contiguous", "scattered"])
def test_rows_of_a_model_that_asks_for_it_are_valued_by_playouts(scattered: bool) -> None:
    playing_out = make_metadata(leaf_value="playout")
    batch, num_candidates = random_batch(5)
    batch.seats[:] = np.arange(NUM_ROWS) % 2
    batch.seeds[:] = np.arange(NUM_ROWS) * 977 + 1
    for row in range(NUM_ROWS):
        rules.deal(GAME, batch.worlds[row], np.uint64(row))
    batch.model[:] = np.arange(NUM_ROWS) % 2 if scattered else np.arange(NUM_ROWS) // 50
    evaluator_with(make_model(1), make_model(2)).evaluate(batch, NUM_ROWS, num_candidates)
    by_network, logits = batch.values.copy(), batch.logits.copy()
    RolloutEvaluator(SPEC, GAME).evaluate(batch, NUM_ROWS, num_candidates)
    by_playout = batch.values.copy()
    assert set(np.unique(by_playout)) == {-2.0, -1.0, 1.0, 2.0}  # chips
    mixed = evaluator_with(make_model(1), make_model(2, metadata=playing_out))
    mixed.evaluate(batch, NUM_ROWS, num_candidates)
    np.testing.assert_array_equal(batch.logits, logits)
    second = batch.model == 1
    np.testing.assert_array_equal(batch.values[~second], by_network[~second])
    np.testing.assert_array_equal(batch.values[second], by_playout[second])


@pytest.mark.parametrize("make", [make_model, make_calibrated], ids=["float32", "eight bits"])
def test_single_rows_of_a_wide_network_equal_their_batch(make: Callable[..., bytes]) -> None:
    evaluator = evaluator_with(make(seed=1, width=192, candidate_width=96))
    batch, num_candidates = random_batch(3)
    evaluator.evaluate(batch, NUM_ROWS, num_candidates)
    for row in range(NUM_ROWS):
        sub, candidates = sub_batch(batch, np.array([row]))
        evaluator.evaluate(sub, 1, len(candidates))
        np.testing.assert_array_equal(sub.values[0], batch.values[row])
        np.testing.assert_array_equal(sub.logits[: len(candidates)], batch.logits[candidates])


@pytest.mark.parametrize(
    "layout",
    [
        lambda rows: rows // 40,
        lambda rows: rows % 3,
        lambda rows: (rows == 50).astype(int),
        lambda rows: 2 * (rows > 95),
    ],
    ids=["contiguous", "interleaved", "one row alone", "last row alone"],
)
def test_each_row_is_answered_by_its_own_model(layout: Callable[..., np.ndarray]) -> None:
    models = [make_model(seed=seed) for seed in range(3)]
    batch, num_candidates = random_batch(4)
    model_of_row = layout(np.arange(NUM_ROWS)).astype(np.int32)
    expected = []
    for model in models:
        evaluator_with(model).evaluate(batch, NUM_ROWS, num_candidates)
        expected.append((batch.logits.copy(), batch.values.copy()))
    assert not np.array_equal(expected[0][1], expected[1][1])
    batch.model[:] = model_of_row
    evaluator_with(*models).evaluate(batch, NUM_ROWS, num_candidates)
    for row in range(NUM_ROWS):
        logits, values = expected[model_of_row[row]]
        span = slice(batch.offsets[row], batch.offsets[row + 1])
        np.testing.assert_array_equal(batch.values[row], values[row])
        np.testing.assert_array_equal(batch.logits[span], logits[span])


def test_stale_rows_and_candidates_are_neither_read_nor_written() -> None:
    evaluator = evaluator_with(make_model(seed=1))
    batch, _ = random_batch(5)
    num_rows = 10
    num_candidates = int(batch.offsets[num_rows])
    batch.observations[num_rows:] = np.nan
    batch.candidates[num_candidates:] = np.nan
    batch.candidate_row[num_candidates:] = 10**9
    batch.model[num_rows:] = 99
    batch.values[:] = 7.0
    batch.logits[:] = 7.0
    evaluator.evaluate(batch, num_rows, num_candidates)
    assert np.isfinite(batch.values).all()
    assert (batch.values[num_rows:] == 7.0).all()
    assert (batch.values[:num_rows] != 7.0).all()
    assert (batch.logits[num_candidates:] == 7.0).all()
    assert (batch.logits[:num_candidates] != 7.0).all()


@pytest.mark.parametrize("num_rows", [1, MIN_ROWS, 5])
def test_rows_without_candidates_get_the_value_they_have_with_candidates(num_rows: int) -> None:
    evaluator = evaluator_with(make_model(seed=1))
    batch, num_candidates = random_batch(6)
    evaluator.evaluate(batch, NUM_ROWS, num_candidates)
    expected = batch.values[:num_rows].copy()
    batch.offsets[:] = 0
    batch.values[:] = 0.0
    evaluator.evaluate(batch, num_rows, 0)
    np.testing.assert_array_equal(batch.values[:num_rows], expected)


def test_an_empty_batch_is_left_alone() -> None:
    batch, _ = random_batch(7)
    batch.values[:] = 7.0
    evaluator_with().evaluate(batch, 0, 0)
    assert (batch.values == 7.0).all()


def test_a_row_of_an_empty_slot_is_refused_by_name() -> None:
    evaluator = OnnxEvaluator(SPEC, GAME, ENCODER, num_slots=3)
    evaluator.set_model(1, make_model(seed=1))
    batch, num_candidates = random_batch(8)
    batch.model[:] = 2
    with pytest.raises(ModelError, match=r"slot 2: filled slots are \[1\]"):
        evaluator.evaluate(batch, NUM_ROWS, num_candidates)
    batch.model[:] = 1
    evaluator.clear(1)
    with pytest.raises(ModelError, match=r"slot 1: filled slots are \[\]"):
        evaluator.evaluate(batch, NUM_ROWS, num_candidates)


def test_slots_have_bounds_and_share_a_session_for_the_same_bytes() -> None:
    evaluator = OnnxEvaluator(SPEC, GAME, ENCODER, num_slots=2)
    for slot in (-1, 2):
        with pytest.raises(ValueError, match=f"slot {slot}: allowed are 0 to 1"):
            evaluator.set_model(slot, make_model(seed=1))
    with pytest.raises(ValueError, match="num_slots = 0"):
        OnnxEvaluator(SPEC, GAME, ENCODER, num_slots=0)
    evaluator.set_model(0, make_model(seed=1))
    evaluator.set_model(1, make_model(seed=1))
    assert evaluator._slots[0] is evaluator._slots[1]
    evaluator.clear(0)
    assert evaluator.metadata(0) is None
    assert evaluator.metadata(1) == make_metadata()


def test_metadata_is_read_back_from_bytes_and_from_a_file(tmp_path: Path) -> None:
    metadata = make_metadata(version=12)
    model = make_model(seed=1, metadata=metadata)
    assert read_metadata(model) == metadata
    path = tmp_path / "model.onnx"
    path.write_bytes(model)
    assert read_metadata(path) == metadata


def foreign_graph() -> bytes:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "foreign",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def test_foreign_and_damaged_files_are_refused_by_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="12 bytes that are not an ONNX model"):
        read_metadata(b"hello, world")
    with pytest.raises(ModelError, match="0 bytes that are not an ONNX model"):
        read_metadata(b"")
    model = make_model(seed=1)
    for size in (1, len(model) // 2, len(model) - 1):
        with pytest.raises(ModelError):
            evaluator_with(model[:size])
    with pytest.raises(ModelError, match="an ONNX graph without 'cardleague' metadata"):
        read_metadata(foreign_graph())
    with pytest.raises(ModelError, match=r"nowhere\.onnx: No such file"):
        read_metadata(tmp_path / "nowhere.onnx")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"game": "durak"}, "for game 'durak', not 'kuhn'"),
        ({"rules": {"ante": "2"}}, "rule option ante is '2' there, '1' here"),
        ({"encoder_version": 99}, "encoder cards v99"),
        ({"observation_size": 3}, "observation_size is 3 there"),
        ({"num_values": 4}, "num_values is 4 there, 1 here"),
        ({"schema_version": 7}, "model schema 7"),
    ],
)
def test_a_model_for_something_else_is_refused_and_the_slot_keeps_its_model(
    change: dict[str, object], message: str
) -> None:
    evaluator = evaluator_with(make_model(seed=1))
    message = message.replace("cards", ENCODER.name)
    other = make_model(seed=2, metadata=make_metadata(**change))
    with pytest.raises(ModelError, match=message):
        evaluator.set_model(0, other)
    assert evaluator.metadata(0) == make_metadata()


def test_a_graph_that_is_not_what_its_metadata_says_is_refused() -> None:
    narrow = make_model(seed=1, observation_size=ENCODER.observation_size - 1)
    with pytest.raises(ModelError, match="its metadata says"):
        evaluator_with(narrow)


def test_calibrated_models_run_in_eight_bits_unless_float32_is_asked_for() -> None:
    model = make_calibrated(1, width=192, candidate_width=96)
    batch, num_candidates = random_batch(9)
    answers = []
    for precision in ("float32", "auto"):
        evaluator = OnnxEvaluator(SPEC, GAME, ENCODER, precision=precision)  # type: ignore[arg-type]
        assert not evaluator.in_eight_bits(0)
        evaluator.set_model(0, model)
        assert evaluator.in_eight_bits(0) == (precision == "auto")
        evaluator.evaluate(batch, NUM_ROWS, num_candidates)
        answers.append(np.concatenate([batch.logits[:num_candidates], batch.values.ravel()]))
    gaps = np.abs(answers[0] - answers[1])
    assert 0.0 < gaps.mean() < 0.03 * answers[0].std()
    evaluator_with(make_model(1, width=192, candidate_width=96)).evaluate(
        batch, NUM_ROWS, num_candidates
    )
    np.testing.assert_array_equal(answers[0][:num_candidates], batch.logits[:num_candidates])
    with pytest.raises(ValueError, match="precision 'int4': allowed are auto, float32"):
        OnnxEvaluator(SPEC, GAME, ENCODER, precision="int4")  # type: ignore[arg-type]


def test_a_model_with_anothers_calibration_is_refused_and_the_slot_keeps_its_model() -> None:
    evaluator = evaluator_with(make_model(seed=1))
    ranges = {"observations": (0.0, 1.0)}
    other = write_calibration(make_model(seed=2), make_calibration(ranges=ranges))
    with pytest.raises(ModelError, match="no range of 'x0_active'"):
        evaluator.set_model(0, other)
    assert evaluator.metadata(0) == make_metadata()
    assert not evaluator.in_eight_bits(0)


def test_devices_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="device 'tpu': allowed are cpu, cuda, auto"):
        OnnxEvaluator(SPEC, GAME, ENCODER, device="tpu")  # type: ignore[arg-type]
    OnnxEvaluator(SPEC, GAME, ENCODER, device="auto").set_model(0, make_model(seed=1))
