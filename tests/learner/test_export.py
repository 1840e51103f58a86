"""Export to ONNX.

* The exported graph answers as torch does at every checked batch; rows may have no candidates.
* A corrupted weight, a forgotten refill and NaN are noticed before a version is announced.
* Row and candidate numbers are dynamic; the metadata travels inside the bytes.
* Bytes of one version stay what they were when the next one is exported, and none stays in memory.
"""

from __future__ import annotations

import msgspec
import numpy as np
import onnx
import psutil
import pytest
import torch
from onnx import numpy_helper

from league.models import METADATA_KEY, ModelMetadata
from learner.config import NetworkConfig
from learner.export import (
    CHECK_BATCHES,
    INPUTS,
    Exporter,
    ExportError,
    check_export,
    check_inputs,
    export_checked,
    open_session,
)
from learner.network import NetworkShape, build_network


def shape(num_values: int = 1) -> NetworkShape:
    config = NetworkConfig(width=24, num_layers=2, candidate_width=16)
    return NetworkShape.of(config, observation_size=11, action_size=5, num_values=num_values)


def metadata(version: int = 3) -> ModelMetadata:
    return ModelMetadata(
        run_id="run",
        version=version,
        parent=version - 1,
        step=100,
        num_examples=5000,
        game="kuhn",
        rules={"ante": "1"},
        encoder="cards",
        encoder_version=1,
        observation_size=11,
        action_size=5,
        num_values=1,
        target="equity",
        network=shape().describe(),
        equity=(0.25, 0.75),
    )


@pytest.mark.parametrize("num_values", [1, 3])
def test_exported_graph_answers_as_torch_does(num_values: int) -> None:
    network = build_network(shape(num_values), seed=1)
    model = export_checked(Exporter(shape(num_values)), network, metadata())
    onnx.checker.check_model(onnx.load_from_string(model), full_check=True)
    assert check_export(model, network) < 1e-5


def test_checked_batches_hold_rows_without_candidates() -> None:
    assert CHECK_BATCHES == (1, 3, 64, 257)
    for num_rows in CHECK_BATCHES[1:]:
        inputs = check_inputs(shape(), num_rows, seed=num_rows)
        assert len(set(inputs.candidate_row.tolist())) < num_rows


@pytest.mark.parametrize("name", ["input.weight", "layers.1.bias", "logit_out.weight"])
def test_corrupted_weight_is_noticed(name: str) -> None:
    network = build_network(shape(), seed=1)
    model = onnx.load_from_string(Exporter(shape()).export(network, metadata()))
    tensor = next(tensor for tensor in model.graph.initializer if tensor.name == name)
    values = numpy_helper.to_array(tensor).copy()
    values.flat[values.size // 2] += 0.5
    tensor.CopyFrom(numpy_helper.from_array(values, name))
    with pytest.raises(ExportError, match="differ by"):
        check_export(model.SerializeToString(), network)


def test_bytes_of_older_weights_are_noticed_and_stay_as_they_were() -> None:
    network = build_network(shape(), seed=1)
    exporter = Exporter(shape())
    first = exporter.export(network, metadata(0))
    kept = bytes(first)
    with torch.no_grad():
        network.value_out.weight.add_(0.1)
    with pytest.raises(ExportError, match="values at batch"):
        check_export(first, network)
    second = export_checked(exporter, network, metadata(1))
    assert first == kept
    assert second != first


def test_not_a_number_is_noticed() -> None:
    network = build_network(shape(), seed=1)
    with torch.no_grad():
        network.input.weight[0, 0] = float("nan")
    with pytest.raises(ExportError, match="nan"):
        export_checked(Exporter(shape()), network, metadata())


def test_metadata_travels_inside_and_no_candidates_at_all_is_allowed() -> None:
    network = build_network(shape(), seed=1)
    model = export_checked(Exporter(shape()), network, metadata())
    session = open_session(model)
    text = session.get_modelmeta().custom_metadata_map[METADATA_KEY]
    assert msgspec.json.decode(text, type=ModelMetadata) == metadata()
    inputs = (np.ones((4, 11), np.float32), np.zeros((0, 5), np.float32), np.zeros(0, np.int64))
    logits, values = session.run(None, dict(zip(INPUTS, inputs, strict=True)))
    assert logits.shape == (0,)
    assert values.shape == (4, 1)


def test_network_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="this exporter is for"):
        Exporter(shape()).export(build_network(shape(3), seed=1), metadata())


def test_exported_versions_do_not_stay_in_memory() -> None:
    config = NetworkConfig(width=256, num_layers=4, candidate_width=64)
    large = NetworkShape.of(config, observation_size=300, action_size=20, num_values=1)
    exporter, network = Exporter(large), build_network(large, seed=1)
    size = len(exporter.export(network, metadata()))
    resident = psutil.Process().memory_info
    for _ in range(5):
        exporter.export(network, metadata())
    before = resident().rss
    for _ in range(60):
        exporter.export(network, metadata())
    assert resident().rss - before < 15 * size
