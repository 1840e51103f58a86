"""The network: a residual trunk over a view, a value head, and a tower that scores candidates.

Room: learner (the only room with torch). May import: torch, learner.config.

Nothing is padded: the candidates of all rows are concatenated and carry the index of their row.
Dimensions: R rows, C candidates of all rows, F observation features, A action features,
W trunk width, H candidate width, V value heads.

    trunk      x = input(observations); x = x + layer(relu(x)), num_layers times; x = relu(x)
    value      tanh(value_out(relu(value_hidden(x))))                                        [R, V]
    candidate  h = relu(candidate_in(candidates) + candidate_context(x)[candidate_row])      [C, H]
               logit_out(relu(candidate_hidden(h)))                                          [C]

ReLU, one matrix a layer and no LayerNorm: the play side runs this on one CPU thread, where a GELU
or a normalisation costs as much as a matrix product of this width. The pre-activation form keeps
the sum free in sign, so that a layer may take away as well as add.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from learner.config import NetworkConfig

VALUE_INIT_SCALE = 0.01
"""An untrained value is about 0: it neither helps nor misleads a search."""
LOGIT_INIT_SCALE = 0.1
"""An untrained policy is near uniform."""


class NetworkShape(NamedTuple):
    """All sizes of a network."""

    observation_size: int
    action_size: int
    num_values: int
    width: int
    num_layers: int
    candidate_width: int

    @classmethod
    def of(
        cls, config: NetworkConfig, observation_size: int, action_size: int, num_values: int
    ) -> NetworkShape:
        """Return the shape that ``config`` gives for these features."""
        return cls(
            observation_size=observation_size,
            action_size=action_size,
            num_values=num_values,
            width=config.width,
            num_layers=config.num_layers,
            candidate_width=config.candidate_width,
        )

    def describe(self) -> dict[str, int]:
        """Return the sizes that the features do not give (``ModelMetadata.network``)."""
        return {
            "width": self.width,
            "num_layers": self.num_layers,
            "candidate_width": self.candidate_width,
        }


class CandidateNetwork(nn.Module):
    """Scores each candidate of each row and values each row."""

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        self.shape = shape
        width, hidden = shape.width, shape.candidate_width
        self.input = nn.Linear(shape.observation_size, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(shape.num_layers))
        self.value_hidden = nn.Linear(width, hidden)
        self.value_out = nn.Linear(hidden, shape.num_values)
        self.candidate_in = nn.Linear(shape.action_size, hidden)
        # The bias of the sum lies in candidate_in; a second one would be redundant.
        self.candidate_context = nn.Linear(width, hidden, bias=False)
        self.candidate_hidden = nn.Linear(hidden, hidden)
        self.logit_out = nn.Linear(hidden, 1)

    def forward(
        self, observations: Tensor, candidates: Tensor, candidate_row: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return logits and values.

        Args:
            observations: float32[R, F].
            candidates: float32[C, A].
            candidate_row: int64[C], row of each candidate, ascending.

        Returns:
            logits [C], unnormalised; values [R, V] in [-1, 1] for the observing seat's side
            (column k: the side k places after it).
        """
        x = self.input(observations)
        for layer in self.layers:
            x = x + layer(torch.relu(x))
        x = torch.relu(x)
        values = torch.tanh(self.value_out(torch.relu(self.value_hidden(x))))
        context = self.candidate_context(x).index_select(0, candidate_row)
        h = torch.relu(self.candidate_in(candidates) + context)
        logits = self.logit_out(torch.relu(self.candidate_hidden(h)))
        return logits.squeeze(1), values


def build_network(shape: NetworkShape, seed: int) -> CandidateNetwork:
    """Return a network on the CPU whose weights follow from ``seed`` alone.

    The global generator of torch is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = CandidateNetwork(shape)
        for module in network.modules():
            if isinstance(module, nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        with torch.no_grad():
            # The variance of a residual sum would grow with its depth.
            for layer in network.layers:
                assert isinstance(layer, nn.Linear)
                layer.weight.mul_((2 * shape.num_layers) ** -0.5)
            network.value_out.weight.mul_(VALUE_INIT_SCALE)
            network.logit_out.weight.mul_(LOGIT_INIT_SCALE)
    return network


def num_parameters(network: nn.Module) -> int:
    """Return the number of weights."""
    return sum(parameter.numel() for parameter in network.parameters())
