"""Snapshots.

* A restored learner goes on bit for bit: weights, moments, samples, versions, totals, window.
* The window is read again without counting again and without a burst of updates.
* What was cut, damaged, or belongs to another learner, seed, game or network is refused by name.
* The next version after a resume names the last one before the snapshot as its parent.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from league.models import METADATA_KEY, ModelMetadata
from learner import checkpoint
from learner.checkpoint import SnapshotError
from learner.config import LearnerConfig, NetworkConfig
from learner.export import open_session
from learner.messages import LearnReply, LearnRequest
from learner.train import Learner
from replay.memory import MemoryReader, MemoryStore
from tests.learner.kuhn_data import config, new_learner, payloads, write

GAMES = list(payloads(2400, seed=33))
SMALL_WINDOW = config(window_positions=1200, td_lambda=0.8)
"""Small enough for games to be evicted before the snapshot."""


def advance(learner: Learner, version: int, *, snapshot: bool = False) -> LearnReply:
    request = LearnRequest(epoch=1, next_version=version, max_updates=13, snapshot=snapshot)
    return learner.step(request)


def start(store: MemoryStore, options: LearnerConfig = SMALL_WINDOW) -> tuple[Learner, LearnReply]:
    """Train past an eviction; return the learner and its reply with a snapshot."""
    write(store, GAMES[:1500])
    learner = new_learner(MemoryReader(store), options)
    advance(learner, 0)
    for version in (1, 1, 2):
        reply = advance(learner, version)
    return learner, advance(learner, 2 if not reply.model else 3, snapshot=True)


def replies_after(learner: Learner, store: MemoryStore, *, add: bool) -> list[LearnReply]:
    replies = []
    for i in range(4):
        if add:
            first = 1500 + 200 * i
            write(store, GAMES[first : first + 200], first_sequence=first + 1)
        replies.append(advance(learner, 10 + i, snapshot=True))
    return replies


def comparable(reply: LearnReply) -> dict[str, Any]:
    """Everything but times and memory."""
    fields = msgspec.structs.asdict(reply)
    for name in ("busy_s", "resident_bytes"):
        del fields[name]
    # NaN is not equal to itself.
    fields["metrics"] = repr(reply.metrics)
    return fields


def test_restored_learner_goes_on_bit_for_bit() -> None:
    store = MemoryStore()
    learner, taken = start(store)
    assert learner._ingest.split.training.num_games < 1300  # some were evicted
    expected = replies_after(learner, store, add=True)
    other_store = MemoryStore()
    other_store.lineage = store.lineage
    write(other_store, GAMES[:1500])
    restored = new_learner(MemoryReader(other_store), SMALL_WINDOW, snapshot=taken.snapshot)
    got = replies_after(restored, other_store, add=True)
    assert any(reply.model for reply in expected)
    assert sum(reply.num_updates for reply in expected) > 20
    for before, after in zip(expected, got, strict=True):
        assert comparable(after) == comparable(before)


def test_stream_may_be_trimmed_below_the_edge_that_came_with_the_snapshot() -> None:
    store = MemoryStore()
    learner, taken = start(store)
    held = [game.sequence for game in learner._ingest.split.training.games]
    assert store.trim(taken.window_edge) > 0
    restored = new_learner(MemoryReader(store), SMALL_WINDOW, snapshot=taken.snapshot)
    assert [game.sequence for game in restored._ingest.split.training.games] == held
    assert restored._ingest.totals.lost_entries == 0


def test_rebuilt_window_is_not_counted_again_and_makes_no_burst() -> None:
    store = MemoryStore()
    learner, taken = start(store)
    while advance(learner, 50).num_updates:  # spend all credit
        learner._progress.version_step = learner._progress.step
    reply = advance(learner, 50, snapshot=True)
    restored = new_learner(MemoryReader(store), SMALL_WINDOW, snapshot=reply.snapshot)
    after = restored.step(LearnRequest(epoch=1, next_version=50))
    assert after.num_updates == 0
    assert after.totals == reply.totals
    assert after.window_positions == reply.window_positions > 0
    assert after.insert_budget == reply.insert_budget
    assert reply.step > taken.step


def test_next_version_names_the_last_one_of_the_snapshot_as_parent() -> None:
    store = MemoryStore()
    learner, taken = start(store)
    last = learner._progress.version
    restored = new_learner(MemoryReader(store), SMALL_WINDOW, snapshot=taken.snapshot, epoch=2)
    model = b""
    while not model:
        model = restored.step(LearnRequest(epoch=2, next_version=40, max_updates=13)).model
    text = open_session(model).get_modelmeta().custom_metadata_map[METADATA_KEY]
    facts = msgspec.json.decode(text, type=ModelMetadata)
    assert (facts.version, facts.parent) == (40, last)


def test_lost_stream_empties_the_window_and_never_deadlocks() -> None:
    store = MemoryStore()
    _, taken = start(store)
    restored = new_learner(MemoryReader(MemoryStore()), SMALL_WINDOW, snapshot=taken.snapshot)
    reply = restored.step(LearnRequest(epoch=1, next_version=40))
    assert (reply.window_positions, reply.num_updates) == (0, 0)
    assert reply.totals.lost_entries > 0
    assert reply.insert_budget > 0


def test_cut_and_damaged_snapshots_are_refused() -> None:
    _, taken = start(MemoryStore())
    data = taken.snapshot

    def refuse(damaged: bytes, words: str) -> None:
        with pytest.raises(SnapshotError, match=words):
            new_learner(MemoryReader(MemoryStore()), SMALL_WINDOW, snapshot=damaged)

    refuse(data[:10], "too few")
    refuse(data[:-1], "cut or damaged")
    refuse(data + b"x", "cut or damaged")
    for place in (100, len(data) // 2, len(data) - 5):
        flipped = bytearray(data)
        flipped[place] ^= 1
        refuse(bytes(flipped), "digest")
    refuse(b"PK\x03\x04" + data[4:], "not a learner snapshot")
    refuse(data[:4] + b"\x63\x00" + data[6:], "schema 99")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run_id": "other"}, "run_id = 'kuhn-run', this learner has 'other'"),
        ({"seed": 6}, "seed = 5"),
        ({"network": NetworkConfig(width=32, num_layers=2, candidate_width=16)}, "network ="),
        ({"learner_config": config(target="return")}, "target = 'win'"),
    ],
)
def test_snapshots_of_another_learner_are_refused(changes: dict[str, Any], words: str) -> None:
    _, taken = start(MemoryStore())
    with pytest.raises(SnapshotError, match=words):
        new_learner(MemoryReader(MemoryStore()), snapshot=taken.snapshot, **changes)


def test_changed_training_options_are_taken_over() -> None:
    store = MemoryStore()
    _, taken = start(store)
    changed = config(window_positions=1200, td_lambda=0.8, learning_rate=1e-4)
    restored = new_learner(MemoryReader(store), changed, snapshot=taken.snapshot)
    assert advance(restored, 40).metrics.learning_rate < 1e-3


def test_generator_goes_on_where_it_was() -> None:
    generator = np.random.default_rng(3)
    generator.integers(0, 10, 7, dtype=np.uint32)  # leaves half a word behind
    restored = checkpoint.restore_generator(checkpoint.generator_state(generator))
    assert np.array_equal(generator.integers(0, 1000, 50), restored.integers(0, 1000, 50))


def test_moments_and_weights_are_exact() -> None:
    store = MemoryStore()
    learner, taken = start(store)
    restored = new_learner(MemoryReader(store), SMALL_WINDOW, snapshot=taken.snapshot)
    moments, again = learner._updater.moments(), restored._updater.moments()
    assert moments.keys() == again.keys()
    assert any(name.endswith("/exp_avg_sq") for name in moments)
    for name, value in moments.items():
        assert torch.equal(value, again[name]), name
    for name, value in learner._updater.network.state_dict().items():
        assert torch.equal(value, restored._updater.network.state_dict()[name]), name
