"""Where the network lives: the one place that knows of devices.

Room: learner. May import: torch.

Everything that meets the network goes through ``Device.tensor``, so that a network on a GPU never
meets a tensor on the CPU.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class Device:
    """A CPU (float32) or a GPU (bf16 autocast, pinned copies that do not block)."""

    def __init__(self, name: str, threads: int) -> None:
        """Take device ``name``: ``cpu``, ``cuda`` or ``auto`` (a GPU when there is one).

        Sets the number of threads of torch in this process. Raises ValueError for ``cuda``
        without a GPU.
        """
        available = torch.cuda.is_available()
        if name == "cuda" and not available:
            raise ValueError("device = cuda: torch finds no GPU; allowed here are auto, cpu")
        self.is_cuda = name == "cuda" or (name == "auto" and available)
        self.torch_device = torch.device("cuda" if self.is_cuda else "cpu")
        torch.set_num_threads(threads)

    @property
    def name(self) -> str:
        """Return ``cpu``, or the name of the GPU."""
        return torch.cuda.get_device_name() if self.is_cuda else "cpu"

    def place(self, network: nn.Module) -> None:
        """Move ``network`` to this device in place."""
        network.to(self.torch_device)

    def tensor(self, array: NDArray[Any]) -> Tensor:
        """Return ``array`` on this device; on a CPU it may share the array's memory."""
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        if not self.is_cuda:
            return tensor
        return tensor.pin_memory().to(self.torch_device, non_blocking=True)

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context in which the forward pass runs: bf16 on a GPU, nothing on a CPU."""
        if self.is_cuda:
            return torch.autocast("cuda", dtype=torch.bfloat16)
        return contextlib.nullcontext()
