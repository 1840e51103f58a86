"""One optimizer step, and the figures of those steps.

Room: learner. May import: numpy, torch, learner.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from learner.batches import TrainingBatch
from learner.config import LearnerConfig
from learner.device import Device
from learner.losses import losses
from learner.network import CandidateNetwork


def learning_rate(config: LearnerConfig, step: int) -> float:
    """Return the step size of update ``step`` (0 is the first): a cosine down to the final one."""
    progress = min(step / config.decay_steps, 1.0)
    weight = 0.5 * (1.0 + math.cos(math.pi * progress))
    return config.final_learning_rate + weight * (config.learning_rate - config.final_learning_rate)


class UpdateSums:
    """Sums over the updates since the last report; on the device, read once a report."""

    def __init__(self) -> None:
        self.num_updates = 0
        self._lag = 0.0
        self._tensors: dict[str, Tensor] = {}

    def add(self, lag: float, **figures: Tensor) -> None:
        """Add the figures of one update."""
        self.num_updates += 1
        self._lag += lag
        for name, value in figures.items():
            held = self._tensors.get(name)
            self._tensors[name] = value if held is None else held + value

    def means(self) -> dict[str, float]:
        """Return the mean of each figure; empty without an update.

        ``value_r2`` is one figure over the rows of all updates, not a mean of ratios.
        """
        if self.num_updates == 0:
            return {}
        means = {name: float(value) / self.num_updates for name, value in self._tensors.items()}
        error, total = means.pop("squared_error"), means.pop("weight")
        first, second = means.pop("target_sum"), means.pop("target_square_sum")
        spread = second - first**2 / total if total > 0.0 else 0.0
        means["value_r2"] = 1.0 - error / spread if spread > 0.0 else float("nan")
        means["policy_lag"] = self._lag / self.num_updates
        return means


class Updater:
    """The network and its optimizer on one device."""

    def __init__(self, network: CandidateNetwork, device: Device, config: LearnerConfig) -> None:
        device.place(network)
        self.network, self.device, self._config = network, device, config
        decayed = [p for name, p in network.named_parameters() if name.endswith(".weight")]
        plain = [p for name, p in network.named_parameters() if not name.endswith(".weight")]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": config.weight_decay},
                {"params": plain, "weight_decay": 0.0},
            ],
            lr=config.learning_rate,
            fused=device.torch_device.type in ("cpu", "cuda"),
        )

    def update(
        self, batch: TrainingBatch, step: int, newest_version: int, sums: UpdateSums
    ) -> None:
        """Take optimizer step ``step`` on ``batch`` in place and add its figures to ``sums``."""
        config, device = self._config, self.device
        inputs = [device.tensor(array) for array in batch.features]
        targets, weight = device.tensor(batch.targets), device.tensor(batch.value_weight)
        shares, policy_weight = map(device.tensor, (batch.visit_shares, batch.policy_weight))
        with device.autocast():
            logits, values = self.network(*inputs)
        parts = losses(logits, values, shares, inputs[2], targets, weight, policy_weight)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(config, step)
        self.optimizer.zero_grad(set_to_none=True)
        (parts.policy + config.value_weight * parts.value).backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), config.gradient_clip)
        self.optimizer.step()
        with torch.no_grad():
            weighted = targets * weight[:, None]
            sums.add(
                newest_version - batch.mean_version,
                policy_loss=parts.policy.detach(),
                value_loss=parts.value.detach(),
                entropy=parts.entropy,
                gradient_norm=norm,
                squared_error=((values.float() - targets).square() * weight[:, None]).sum(),
                weight=weight.sum() * targets.shape[1],
                target_sum=weighted.sum(),
                target_square_sum=(weighted * targets).sum(),
            )

    def moments(self) -> dict[str, Tensor]:
        """Return the optimizer's tensors on the CPU by parameter and name; empty before a step."""
        tensors: dict[str, Tensor] = {}
        for name, parameter in self.network.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"{name}/{key}"] = value.detach().cpu().clone()
        return tensors

    def restore_moments(self, tensors: dict[str, Tensor]) -> None:
        """Take over what ``moments`` returned."""
        by_parameter: dict[str, dict[str, Tensor]] = {}
        for path, value in tensors.items():
            name, key = path.rsplit("/", 1)
            by_parameter.setdefault(name, {})[key] = value
        for name, parameter in self.network.named_parameters():
            if name in by_parameter:
                self.optimizer.state[parameter] = {
                    key: value.to(self.device.torch_device).clone()
                    for key, value in by_parameter[name].items()
                }
