"""Devices.

* Everything that meets the network goes through ``Device.tensor``: on a device without data, where
  any operation with a tensor of another device is an error, a whole update and a measurement run
  until the first number is asked for.
* ``auto`` falls back to the CPU; threads are set.

bf16 and pinned copies need a GPU and are not tested here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from learner.batches import draw, make_batch
from learner.device import Device
from learner.evaluate import evaluate
from learner.features import FeatureMaker
from learner.network import NetworkShape, build_network
from learner.update import Updater, UpdateSums
from replay.window import Window
from tests.learner.kuhn_data import ENCODER, GAME, NETWORK, SPEC, config, play


class OtherDevice(Device):
    """Torch's device without data, in the place of a GPU."""

    def __init__(self) -> None:
        super().__init__("cpu", 1)
        self.torch_device = torch.device("meta")

    def tensor(self, array: NDArray[Any]) -> torch.Tensor:
        return super().tensor(array).to(self.torch_device)


def filled_window() -> Window:
    window = Window(SPEC, GAME, capacity=500)
    generator = np.random.default_rng(3)
    for _ in range(100):
        window.add(play(generator), "1-0")
    return window


def updater() -> Updater:
    shape = NetworkShape.of(NETWORK, ENCODER.observation_size, ENCODER.action_size, 1)
    return Updater(build_network(shape, seed=1), OtherDevice(), config())


def test_update_never_mixes_devices() -> None:
    window, features, options = filled_window(), FeatureMaker(SPEC, GAME, ENCODER), config()
    slots = draw(window, np.random.default_rng(0), options)
    batch = make_batch(window.gather(slots), features, options, None, bootstrap=False)
    updated, sums = updater(), UpdateSums()
    updated.update(batch, 0, 0, sums)
    assert sums.num_updates == 1
    assert all(p.device.type == "meta" for p in updated.network.parameters())
    assert all(p in updated.optimizer.state for p in updated.network.parameters())


def test_measurement_never_mixes_devices() -> None:
    updated = updater()
    features = FeatureMaker(SPEC, GAME, ENCODER)
    with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
        evaluate(filled_window(), updated.network, features, updated.device, config(), None)


def test_the_device_without_data_does_notice_a_mixture() -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        updater().network(torch.zeros(2, 12), torch.zeros(1, 2), torch.zeros(1).long())


def test_auto_is_the_cpu_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    device = Device("auto", threads=1)
    assert (device.name, device.is_cuda, torch.get_num_threads()) == ("cpu", False, 1)
