"""The learner as a whole, on games of Kuhn poker through an in-memory stream.

* Version 0 is the untrained network and comes before anything else; versions have parents.
* It learns: held-out losses fall towards the teacher's entropy.
* Totals are exact; samples per insert bounds training; without data nothing is trained.
* Held-out games never reach a batch; games of another run are passed over.
* Same seed and same entries, same bytes; another seed, others.
* Bounds: updates a call, epoch, version numbers, window; a budget of time ends the call.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from league.models import METADATA_KEY, ModelMetadata
from learner.batches import draw, newest_share
from learner.config import LearnerConfig
from learner.export import INPUTS, open_session
from learner.ingest import ENTRIES_PER_READ
from learner.messages import LearnReply, LearnRequest
from learner.pacing import Clock
from learner.train import Learner
from learner.update import learning_rate
from replay.codec import decode, encode
from replay.memory import MemoryReader, MemoryStore
from replay.split import is_held_out
from replay.trajectory import POLICY, Trajectory
from replay.window import Window
from tests.learner.kuhn_data import RUN, SPEC, config, new_learner, payloads, play, write

GAMES = list(payloads(1000, seed=21))


def filled_store(games: list[bytes] | None = None) -> MemoryStore:
    store = MemoryStore()
    write(store, GAMES if games is None else games)
    return store


def run(learner: Learner, num_versions: int, *, first: int = 0) -> list[LearnReply]:
    replies = []
    for version in range(first, first + num_versions):
        reply = learner.step(LearnRequest(epoch=1, next_version=version, max_updates=1000))
        assert reply.model
        replies.append(reply)
    return replies


def metadata(model: bytes) -> ModelMetadata:
    text = open_session(model).get_modelmeta().custom_metadata_map[METADATA_KEY]
    return msgspec.json.decode(text, type=ModelMetadata)


def test_first_call_exports_the_untrained_network_before_anything_else() -> None:
    learner = new_learner(MemoryReader(filled_store()))
    (reply,) = run(learner, 1)
    assert (reply.num_updates, reply.step, reply.totals.games) == (0, 0, 0)
    facts = metadata(reply.model)
    assert (facts.version, facts.parent, facts.step, facts.target) == (0, -1, 0, "win")
    inputs = (np.ones((2, 12), np.float32), np.zeros((0, 2), np.float32), np.zeros(0, np.int64))
    values = open_session(reply.model).run(["values"], dict(zip(INPUTS, inputs, strict=True)))[0]
    assert np.max(np.abs(values)) < 0.1


def test_versions_name_their_parents_and_carry_what_they_are_for() -> None:
    replies = run(new_learner(MemoryReader(filled_store())), 3)
    facts = [metadata(reply.model) for reply in replies]
    assert [(f.version, f.parent, f.step) for f in facts] == [(0, -1, 0), (1, 0, 20), (2, 1, 40)]
    assert facts[2].run_id == RUN
    assert facts[2].rules == {"ante": "1"}
    assert facts[2].num_examples == replies[2].totals.examples > 0


def test_it_learns() -> None:
    replies = run(new_learner(MemoryReader(filled_store()), config(samples_per_insert=12.0)), 12)
    first, last = replies[1].metrics, replies[-1].metrics
    assert last.held_out_policy_loss < first.held_out_policy_loss - 0.1
    assert last.held_out_value_loss < first.held_out_value_loss
    assert last.held_out_policy_loss < last.entropy + 0.05
    assert last.held_out_value_r2 > 0.4
    assert last.value_trusted


def test_totals_are_exact() -> None:
    reply = run(new_learner(MemoryReader(filled_store())), 2)[1]
    games = [decode(payload, SPEC) for payload in GAMES]
    assert reply.totals.games == len(games)
    assert reply.totals.plies == sum(game.header.num_plies for game in games)
    assert reply.totals.simulations == sum(game.header.num_simulations for game in games)
    eligible = sum(game.num_eligible() for game in games)
    assert reply.totals.examples == eligible
    assert reply.totals.value_examples == sum(len(game.examples) for game in games) - eligible
    held_out = [is_held_out("worker-0", i + 1, 0.1) for i in range(len(games))]
    assert reply.totals.held_out_games == sum(held_out) > 0
    telling = [game.num_eligible() > 0 for game in games]  # the others have nothing to measure
    measured = sum(held and tells for held, tells in zip(held_out, telling, strict=True))
    assert reply.metrics.held_out_games == measured < sum(held_out)
    assert reply.metrics.reward_shares == {"win": 1.0}


def test_a_drain_ingests_all_that_is_there_and_trains_nothing() -> None:
    learner = new_learner(MemoryReader(filled_store()))
    run(learner, 1)
    assert len(GAMES) > ENTRIES_PER_READ
    reply = learner.step(LearnRequest(epoch=1, next_version=1, drain=True, snapshot=True))
    assert (reply.num_updates, reply.step, reply.totals.games) == (0, 0, len(GAMES))
    assert reply.snapshot
    again = learner.step(LearnRequest(epoch=1, next_version=1, max_updates=3))
    assert again.num_updates == 3
    assert again.totals.games == len(GAMES)


def test_samples_per_insert_bounds_training() -> None:
    learner = new_learner(MemoryReader(filled_store()), config(updates_per_version=1000))
    run(learner, 1)
    reply = learner.step(LearnRequest(epoch=1, next_version=1))
    inserted = reply.window_positions
    # Credit of 4 samples a position; a batch takes 64 of it, and less than one batch is left.
    assert reply.num_updates == inserted * 4 // 64
    assert learner.step(LearnRequest(epoch=1, next_version=1)).num_updates == 0
    assert reply.insert_budget > 0


def test_nothing_is_trained_below_the_smallest_window() -> None:
    learner = new_learner(MemoryReader(filled_store(GAMES[:50])))
    run(learner, 1)
    reply = learner.step(LearnRequest(epoch=1, next_version=1))
    assert (reply.num_updates, reply.totals.games) == (0, 50)
    assert reply.insert_budget >= 400 - reply.window_positions
    assert np.isnan(reply.metrics.policy_loss)


def test_held_out_games_never_reach_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each game carries its own number where the version of its model stands."""
    numbered = [encode(play(np.random.default_rng(i), version=i + 1)) for i in range(600)]
    learner = new_learner(
        MemoryReader(filled_store(numbered)), config(held_out_share=0.3, samples_per_insert=10)
    )
    trained: set[int] = set()

    def spy(window: Window, rng: Any, options: LearnerConfig, newest: float) -> Any:
        slots = draw(window, rng, options, newest)
        trained.update(window.gather(slots).examples["model_version"].tolist())
        return slots

    monkeypatch.setattr("learner.train.draw", spy)
    run(learner, 3)
    held_out = {i + 1 for i in range(600) if is_held_out("worker-0", i + 1, 0.3)}
    assert len(trained) > 300
    assert len(held_out) > 100
    assert not trained & held_out


def test_updates_sample_the_newest_part_of_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    options = config(sampled_positions=100)
    learner = new_learner(MemoryReader(filled_store()), options)
    shares: list[float] = []

    def spy(window: Window, rng: Any, options: LearnerConfig, newest: float) -> Any:
        # Nothing was evicted yet: what the window holds is what was inserted.
        assert newest == newest_share(window.num_eligible, window.num_eligible, options)
        shares.append(newest)
        return draw(window, rng, options, newest)

    monkeypatch.setattr("learner.train.draw", spy)
    run(learner, 2)
    assert len(shares) == 20
    assert max(shares) < 1.0


def test_games_of_another_run_are_passed_over_and_told() -> None:
    game = decode(GAMES[0], SPEC)
    foreign = msgspec.structs.replace(game.header, run_id="other")
    payload = encode(Trajectory(foreign, game.examples, game.views, game.visits))
    learner = new_learner(MemoryReader(filled_store([payload, *GAMES[:20]])))
    run(learner, 1)
    reply = learner.step(LearnRequest(epoch=1, next_version=1))
    assert (reply.totals.rejected, reply.totals.games) == ({"run": 1}, 20)
    (note,) = reply.notes
    assert "'other', this is run 'kuhn-run'" in note
    assert learner.step(LearnRequest(epoch=1, next_version=1)).notes == ()


def test_same_seed_same_versions() -> None:
    models = [
        run(new_learner(MemoryReader(filled_store()), seed=seed), 3)[2].model for seed in (5, 5, 6)
    ]
    assert models[0] == models[1]
    assert models[0] != models[2]


def test_max_updates_bounds_a_call() -> None:
    learner = new_learner(MemoryReader(filled_store()))
    run(learner, 1)
    reply = learner.step(LearnRequest(epoch=1, next_version=1, max_updates=3))
    assert (reply.num_updates, reply.step, reply.model) == (3, 3, b"")


def test_requests_of_another_epoch_and_used_version_numbers_are_refused() -> None:
    learner = new_learner(MemoryReader(filled_store()))
    run(learner, 2)
    with pytest.raises(ValueError, match="request of epoch 2: this learner has 1"):
        learner.step(LearnRequest(epoch=2, next_version=2))
    with pytest.raises(ValueError, match="next_version = 1: allowed are 2 and more"):
        learner.step(LearnRequest(epoch=1, next_version=1))


def test_window_below_its_minimum_is_refused_by_name() -> None:
    options = config(window_positions=1000, min_window_positions=2000)
    with pytest.raises(ValueError, match="window_positions = 1000: allowed are 2000"):
        new_learner(MemoryReader(MemoryStore()), options)


def test_cuda_without_a_gpu_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ValueError, match="allowed here are auto, cpu"):
        new_learner(MemoryReader(MemoryStore()), config(device="cuda"))


def test_budget_of_time_ends_a_call_that_has_nothing_to_do() -> None:
    learner = new_learner(MemoryReader(MemoryStore()))
    run(learner, 1)
    reply = learner.step(LearnRequest(epoch=1, next_version=1, budget_s=0.05))
    assert reply.num_updates == 0
    assert reply.busy_s < 0.05


def test_clock_counts_work_and_rests_its_share() -> None:
    clock = Clock(LearnRequest(epoch=1, budget_s=60.0, share=0.5))
    with clock:
        sum(range(200_000))
    worked = clock.busy_s
    before = clock.remaining_s
    clock.rest()
    assert before - clock.remaining_s >= 0.95 * worked
    assert not clock.is_over
    assert not Clock(LearnRequest(epoch=1)).is_over


def test_step_size_falls_by_a_cosine() -> None:
    options = LearnerConfig(learning_rate=1e-3, final_learning_rate=1e-4, decay_steps=100)
    assert learning_rate(options, 0) == pytest.approx(1e-3)
    assert learning_rate(options, 50) == pytest.approx(5.5e-4)
    assert learning_rate(options, 100) == learning_rate(options, 10_000) == pytest.approx(1e-4)


def test_policy_rows_alone_count_as_samples() -> None:
    learner = new_learner(MemoryReader(filled_store()), config(value_only_share=1.0))
    run(learner, 2)
    assert learner._ingest.controller.state.num_sampled == 20 * 64
    window = learner._ingest.split.training
    flags = window.gather(window.sample(np.random.default_rng(0), 100)).examples["flags"]
    assert np.all(flags & POLICY)
