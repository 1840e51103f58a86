"""Behaviours of learner.calibrate:

* ranges are what the inputs of torch's layers have on the same positions
* the recorded differences are those between the two graphs; ruined rounding is seen and not played
* versions carry a calibration from the first positions on, unless it is turned off
* positions are spread over the window, and there are no more of them than asked for
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from engine.evaluation import num_value_heads
from league.models import ModelMetadata
from league.quantize import MAX_DIFFERENCE, quantized, read_calibration
from learner.calibrate import calibrated, calibration_positions
from learner.export import INPUTS, Exporter, open_session
from learner.features import FeatureMaker, Features
from learner.messages import LearnRequest
from learner.network import CandidateNetwork, NetworkShape, build_network
from learner.train import Learner
from replay.memory import MemoryReader, MemoryStore
from tests.league.tiny_models import make_metadata
from tests.learner.kuhn_data import (
    ENCODER,
    GAME,
    NETWORK,
    SPEC,
    config,
    new_learner,
    payloads,
    write,
)

SHAPE = NetworkShape.of(NETWORK, ENCODER.observation_size, ENCODER.action_size, num_value_heads(2))
METADATA: ModelMetadata = make_metadata(network=SHAPE.describe())


def learner_with_games(**changes: Any) -> Learner:
    store = MemoryStore()
    write(store, list(payloads(600, seed=5)))
    learner = new_learner(MemoryReader(store), config(**changes))
    learner.step(LearnRequest(epoch=1, next_version=0))
    return learner


def some_positions(count: int = 300) -> Features:
    learner = learner_with_games()
    learner.step(LearnRequest(epoch=1, next_version=1, max_updates=20))
    window = learner._ingest.split.training
    positions = calibration_positions(window, FeatureMaker(SPEC, GAME, ENCODER), count)
    assert positions is not None
    return positions


def trained_network() -> CandidateNetwork:
    """Return a network whose answers are not all about 0."""
    network = build_network(SHAPE, seed=3)
    with torch.no_grad():
        network.value_out.weight.mul_(50.0)
        network.logit_out.weight.mul_(10.0)
    return network


def test_ranges_are_those_of_the_inputs_of_torchs_layers() -> None:
    network, positions = trained_network(), some_positions()
    seen: dict[str, tuple[float, float]] = {}

    def watch(name: str, module: torch.nn.Module) -> None:
        def hook(_: Any, inputs: Any) -> None:
            seen[name] = (float(inputs[0].min()), float(inputs[0].max()))

        module.register_forward_pre_hook(hook)

    for name, module in network.named_modules():
        if isinstance(module, torch.nn.Linear):
            watch(name, module)
    with torch.no_grad():
        network(*(torch.from_numpy(array) for array in positions))
    calibration = read_calibration(calibrated(Exporter(SHAPE).export(network, METADATA), positions))
    assert calibration is not None
    assert calibration.num_rows == len(positions.observations)
    feeds = {
        "observations": "input",
        "x0_active": "layers.0",
        "x1_active": "layers.1",
        "trunk": "value_hidden",
        "candidates": "candidate_in",
        "candidate_active": "candidate_hidden",
    }
    assert set(calibration.ranges) == set(feeds)
    for tensor, layer in feeds.items():
        np.testing.assert_allclose(calibration.ranges[tensor], seen[layer], rtol=1e-4, atol=1e-5)


def test_recorded_differences_are_those_of_the_two_graphs() -> None:
    positions = some_positions()
    model = calibrated(Exporter(SHAPE).export(trained_network(), METADATA), positions)
    calibration, rounded = read_calibration(model), quantized(model)
    assert calibration is not None
    assert rounded is not None
    feed = dict(zip(INPUTS, positions, strict=True))
    answers = [open_session(m).run(["logits", "values"], feed) for m in (model, rounded)]
    (logits, values), (rounded_logits, rounded_values) = answers
    distances = []
    for row in range(len(values)):
        mine = positions.candidate_row == row
        shares = []
        for part in (logits[mine], rounded_logits[mine]):
            weights = np.exp(part.astype(np.float64))
            shares.append(weights / weights.sum())
        distances.append(np.abs(shares[0] - shares[1]).sum() / 2)
    np.testing.assert_allclose(calibration.policy_difference, np.mean(distances), rtol=1e-6)
    difference = np.abs(values - rounded_values).mean()
    np.testing.assert_allclose(calibration.value_difference, difference, rtol=1e-6)
    assert 0.0 < calibration.policy_difference < MAX_DIFFERENCE
    assert 0.0 < calibration.value_difference < MAX_DIFFERENCE


def test_a_network_that_rounding_ruins_is_seen_and_not_played_in_eight_bits() -> None:
    network, positions = trained_network(), some_positions()
    exporter = Exporter(SHAPE)
    assert quantized(calibrated(exporter.export(network, METADATA), positions)) is not None
    with torch.no_grad():  # a weight that no position uses takes all levels of its column
        unused = int(np.flatnonzero(np.abs(positions.observations).max(axis=0) == 0)[0])
        network.input.weight[:, unused] = 1e4
    model = calibrated(exporter.export(network, METADATA), positions)
    calibration = read_calibration(model)
    assert calibration is not None
    assert not calibration.is_close
    assert quantized(model) is None


def test_versions_carry_a_calibration_from_the_first_positions_on() -> None:
    for count, expected in ((150, 150), (0, None)):
        learner = learner_with_games(calibration_positions=count)
        model = learner.step(LearnRequest(epoch=1, next_version=1)).model
        calibration = read_calibration(model)
        assert (calibration.num_rows if calibration else None) == expected
    untrained = new_learner(MemoryReader(MemoryStore()))
    model = untrained.step(LearnRequest(epoch=1, next_version=0)).model
    assert model
    assert read_calibration(model) is None


def test_positions_are_spread_over_the_window() -> None:
    learner = learner_with_games()
    learner.step(LearnRequest(epoch=1, next_version=1, max_updates=20))
    window, maker = learner._ingest.split.training, FeatureMaker(SPEC, GAME, ENCODER)
    slots = window.all_eligible()
    few = calibration_positions(window, maker, 3)
    ends = window.gather(slots[[0, (len(slots) - 1) // 2, -1]])
    expected = maker.make(ends.views, ends.examples["seat"], ends.examples["num_actions"])
    assert few is not None
    np.testing.assert_array_equal(few.observations, expected.observations)
    every = calibration_positions(window, maker, 10**9)
    assert every is not None
    assert len(every.observations) == len(slots)
