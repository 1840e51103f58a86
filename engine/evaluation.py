"""The Evaluator protocol: how a search asks for values and policies, a batch at a time.

Room: engine. The batch is ragged: the candidates of all rows are concatenated and carry the index
of their row, so nothing is padded. Rows are independent: what a row is answered must not depend on
the other rows of its batch.

Dimensions: R rows, C candidates of all rows, F observation features, A action features,
V value heads (1 for two-sided games; the number of sides otherwise).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.game import Encoder, GameSpec


class EvalBatch(NamedTuple):
    """Preallocated buffers; kernels fill the inputs, the evaluator the two outputs.

    A row with no candidates asks for a value alone. Rows beyond ``num_rows`` are stale.
    """

    observations: NDArray[np.float32]
    """[R, F] features of the observing seat's view."""
    candidates: NDArray[np.float32]
    """[C, A] features of the legal actions, in canonical order within a row."""
    candidate_row: NDArray[np.int64]
    """[C] row that the candidate belongs to, ascending."""
    offsets: NDArray[np.int64]
    """[R + 1] candidates of row r are offsets[r] : offsets[r + 1]."""
    model: NDArray[np.int32]
    """[R] which of the evaluator's models answers the row."""
    seats: NDArray[np.int64]
    """[R] the observing seat."""
    worlds: Any
    """[R] records: the sampled world (a determinization, never a true state); where no value is
    wanted it may be the seat's view."""
    seeds: NDArray[np.uint64]
    """[R] random bits of the row, drawn from its own tree's generator: an evaluator that plays out
    takes its randomness from here, so that its answers stay independent of the other rows."""
    wants_value: NDArray[np.uint8]
    """[R] 0 where the row's value will not be read: it may be anything but NaN. One forward pass
    gives both; an evaluator that plays out has nothing to do there."""
    logits: NDArray[np.float32]
    """[C] out: unnormalised log-probabilities; the caller normalises them within each row."""
    values: NDArray[np.float32]
    """[R, V] out: expected outcome in [-1, 1] for the observing seat's side.

    With V > 1, column k is the value of side ``(own side + k) mod num_sides``.
    """


class Evaluator(Protocol):
    """Answers batches. Implementations: constant, hashing, playouts, ONNX models, torch models."""

    def evaluate(self, batch: EvalBatch, num_rows: int, num_candidates: int) -> None:
        """Fill ``logits[:num_candidates]`` and ``values[:num_rows]``."""
        ...


def num_value_heads(num_sides: int) -> int:
    """Return V for a game with ``num_sides`` sides."""
    return 1 if num_sides == 2 else num_sides


def new_batch(spec: GameSpec, encoder: Encoder, num_sides: int, num_rows: int) -> EvalBatch:
    """Return buffers for ``num_rows`` rows with up to ``spec.max_actions`` candidates each."""
    num_candidates = num_rows * spec.max_actions
    return EvalBatch(
        observations=np.zeros((num_rows, encoder.observation_size), np.float32),
        candidates=np.zeros((num_candidates, encoder.action_size), np.float32),
        candidate_row=np.zeros(num_candidates, np.int64),
        offsets=np.zeros(num_rows + 1, np.int64),
        model=np.zeros(num_rows, np.int32),
        seats=np.zeros(num_rows, np.int64),
        worlds=spec.new_states(num_rows),
        seeds=np.zeros(num_rows, np.uint64),
        wants_value=np.ones(num_rows, np.uint8),
        logits=np.zeros(num_candidates, np.float32),
        values=np.zeros((num_rows, num_value_heads(num_sides)), np.float32),
    )
