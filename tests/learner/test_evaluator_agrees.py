"""An exported version, as the play side runs it, answers as the network that was trained.

* Through the league's evaluator, on real held-out positions, not on random numbers: in float32 to
  rounding, in eight bits nearly.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch

from engine.evaluation import new_batch
from league.evaluator import OnnxEvaluator, Precision, read_metadata
from learner.features import FeatureMaker
from learner.messages import LearnRequest
from replay.memory import MemoryReader, MemoryStore
from tests.learner.kuhn_data import ENCODER, GAME, SPEC, new_learner, payloads, write


@pytest.mark.parametrize("precision", get_args(Precision))
def test_evaluator_of_the_play_side_answers_as_the_trained_network(precision: Precision) -> None:
    store = MemoryStore()
    write(store, list(payloads(800, seed=1)))
    learner = new_learner(MemoryReader(store))
    learner.step(LearnRequest(epoch=1, next_version=0))
    model = learner.step(LearnRequest(epoch=1, next_version=1)).model
    assert read_metadata(model).version == 1

    window = learner._ingest.split.held_out
    examples = window.gather(window.all_eligible()[:20])
    made = FeatureMaker(SPEC, GAME, ENCODER).make(
        examples.views, examples.examples["seat"], examples.examples["num_actions"]
    )
    num_rows, num_candidates = len(made.observations), len(made.candidates)
    batch = new_batch(SPEC, ENCODER, 2, num_rows)
    batch.observations[:] = made.observations
    batch.candidates[:num_candidates] = made.candidates
    batch.candidate_row[:num_candidates] = made.candidate_row
    batch.offsets[1:] = np.cumsum(np.bincount(made.candidate_row, minlength=num_rows))
    evaluator = OnnxEvaluator(SPEC, GAME, ENCODER, precision=precision)
    evaluator.set_model(0, model)
    evaluator.evaluate(batch, num_rows, num_candidates)

    with torch.no_grad():
        logits, values = learner._updater.network(*(torch.from_numpy(array) for array in made))
    assert evaluator.in_eight_bits(0) == (precision == "auto")
    tolerance = 1e-5 if precision == "float32" else 0.05
    np.testing.assert_allclose(batch.logits[:num_candidates], logits.numpy(), atol=tolerance)
    np.testing.assert_allclose(batch.values, values.numpy(), atol=tolerance)
    assert float(values.std()) > 0.05  # trained: the rows differ
