"""Model versions: metadata, bytes, and where they are kept.

Room: league. A model is ONNX bytes; its metadata travels inside the ONNX file (``metadata_props``,
key ``cardleague``, JSON), so a file alone says which game, rules and encoder it is for.

The graph's interface (built by learner.export, run by league.evaluator):
    inputs   observations float32[R, F], candidates float32[C, A], candidate_row int64[C]
    outputs  logits float32[C], values float32[R, V]    (see engine.evaluation)
"""

from __future__ import annotations

import hashlib
from typing import Literal, Protocol

import msgspec

METADATA_KEY = "cardleague"
METADATA_SCHEMA = 1

LeafValue = Literal["network", "playout"]
"""What values a leaf of a search: the value head, or one playout from the sampled world."""


class ModelMetadata(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model is for. A mismatch is refused by name (``check_compatible``)."""

    schema_version: int = METADATA_SCHEMA
    run_id: str
    version: int
    parent: int
    """Version this one was trained from; -1 for the first."""
    step: int
    """Optimizer steps taken."""
    num_examples: int
    """Eligible examples ingested when it was made."""
    game: str
    rules: dict[str, str]
    encoder: str
    encoder_version: int
    observation_size: int
    action_size: int
    num_values: int
    """V of engine.evaluation."""
    target: str
    """``win``, ``return`` or ``equity``: what the value head predicts."""
    network: dict[str, int]
    """Shape: hidden width, number of layers, candidate width."""
    equity: tuple[float, ...] = ()
    """Match-equity table, probability that the row's side wins; empty without hands."""
    value_trusted: bool = False
    """Held-out R² on the outcome has passed its bound (learning.md, value and reward)."""
    leaf_value: LeafValue = "network"
    """``playout``: the value head was trusted once and has become worse than no head at all."""


class ModelError(ValueError):
    """A model that is missing, damaged, or made for another game; names what differs."""


def check_compatible(
    metadata: ModelMetadata, *, game: str, rules: dict[str, str], encoder: tuple[str, int]
) -> None:
    """Raise ModelError unless the model was made for this game, these rules and this encoder."""
    if metadata.schema_version != METADATA_SCHEMA:
        raise ModelError(
            f"model schema {metadata.schema_version}: this program reads {METADATA_SCHEMA}"
        )
    if metadata.game != game:
        raise ModelError(f"model {metadata.version} is for game {metadata.game!r}, not {game!r}")
    for name in sorted(metadata.rules.keys() | rules.keys()):
        there, here = metadata.rules.get(name), rules.get(name)
        if there != here:
            raise ModelError(
                f"model {metadata.version}: rule option {name} is {there!r} there, {here!r} here"
            )
    if (metadata.encoder, metadata.encoder_version) != encoder:
        raise ModelError(
            f"model {metadata.version}: encoder {metadata.encoder} v{metadata.encoder_version}, "
            f"this program has {encoder[0]} v{encoder[1]}"
        )


def content_hash(model: bytes) -> str:
    """Return the hex SHA-256 of a model's bytes."""
    return hashlib.sha256(model).hexdigest()


class ModelStore(Protocol):
    """Bytes of model versions by number. A number is written once and never changed."""

    def put(self, version: int, model: bytes) -> None:
        """Store ``model``. The same bytes again are allowed, other bytes raise ModelError."""
        ...

    def get(self, version: int) -> bytes:
        """Return the bytes. Raises ModelError when the version is not there."""
        ...

    def versions(self) -> list[int]:
        """Return the stored versions, ascending."""
        ...

    def delete(self, version: int) -> None:
        """Forget a version; missing ones are ignored."""
        ...


class MemoryModelStore:
    """A ModelStore in this process."""

    def __init__(self) -> None:
        self._models: dict[int, bytes] = {}

    def put(self, version: int, model: bytes) -> None:
        """See ModelStore."""
        if self._models.get(version, model) != model:
            raise ModelError(f"model version {version} is already stored with other bytes")
        self._models[version] = bytes(model)

    def get(self, version: int) -> bytes:
        """See ModelStore."""
        if version not in self._models:
            raise ModelError(f"model version {version}: stored are {self.versions()}")
        return self._models[version]

    def versions(self) -> list[int]:
        """See ModelStore."""
        return sorted(self._models)

    def delete(self, version: int) -> None:
        """See ModelStore."""
        self._models.pop(version, None)
