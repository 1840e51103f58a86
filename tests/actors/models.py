"""Small untrained models for tests of the rooms that play."""

from __future__ import annotations

from typing import Any

import torch

from engine import rules
from engine.evaluation import num_value_heads
from engine.game import get_spec
from league.models import ModelMetadata
from learner.config import NetworkConfig
from learner.export import Exporter
from learner.network import NetworkShape, build_network


def untrained_model(
    name: str,
    *,
    version: int,
    rules_preset: str = "",
    encoder_name: str = "",
    value_bias: float = 0.0,
    **facts: Any,
) -> bytes:
    """Return ONNX bytes of a small network for game ``name``, seeded by ``version``.

    ``value_bias`` is added to its value head, before the tanh; ``facts`` are other metadata.
    """
    spec = get_spec(name)
    game = spec.make(rules_preset)
    encoder = spec.encoder(encoder_name or spec.encoders[0].name)
    num_values = num_value_heads(int(rules.num_sides(game)))
    config = NetworkConfig(width=16, num_layers=1, candidate_width=16)
    shape = NetworkShape.of(config, encoder.observation_size, encoder.action_size, num_values)
    metadata = ModelMetadata(
        run_id="test",
        version=version,
        parent=version - 1,
        step=0,
        num_examples=0,
        game=spec.name,
        rules=spec.describe(game),
        encoder=encoder.name,
        encoder_version=encoder.version,
        observation_size=encoder.observation_size,
        action_size=encoder.action_size,
        num_values=num_values,
        target="win",
        network=shape.describe(),
        **facts,
    )
    network = build_network(shape, seed=version)
    with torch.no_grad():
        network.value_out.bias.add_(value_bias)
    return Exporter(shape).export(network, metadata)
