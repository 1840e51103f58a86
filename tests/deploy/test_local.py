"""The in-process runtime, on Kuhn and on short Cuarenta.

Behaviours checked:
* a run learns, exports versions, gates them, and says so in its manifest and status
* the same seed twice gives the same games, another seed others
* interrupted and resumed equals uninterrupted, bit for bit: after a stop at a boundary and after a
  crash between two boundaries
* what may not change over a resume is refused by name
* a run can take another of the game's encoders; models of the two are told apart by name
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from actors.config import SelfPlayConfig
from deploy import presets
from deploy.config import RunConfig
from deploy.evaluations import read_records
from deploy.local import LocalRuntime
from deploy.manifest import Manifest, ResumeError, new_manifest
from deploy.rundir import RunDirectory
from engine.game import get_spec
from league.evaluator import OnnxEvaluator, read_metadata
from league.messages import EvaluationRecord
from league.models import ModelError
from replay.segments import SegmentStore
from tests.actors.models import untrained_model


def kuhn_config(*overrides: str) -> RunConfig:
    return presets.load("kuhn-smoke", overrides=["runtime.kind=inprocess", *overrides])


def cuarenta_config(*overrides: str) -> RunConfig:
    return presets.load(
        "smoke",
        overrides=[
            "runtime.kind=inprocess",
            "game.options.target=10",
            "self_play.games=8",
            "self_play.full_simulations=8",
            "self_play.fast_simulations=2",
            "network.width=16",
            "network.num_layers=1",
            "network.candidate_width=8",
            "learner.min_window_positions=100",
            "learner.batch_size=32",
            "learner.updates_per_version=4",
            "learner.held_out_every=4",
            "gate.simulations=2",
            "gate.games=8",
            "gate.max_pairs=8",
            "runtime.inprocess_evaluations=60",
            "runtime.inprocess_updates=4",
            "runtime.inprocess_gate_pairs=2",
            *overrides,
        ],
    )


def new_run(folder: Path, config: RunConfig) -> RunDirectory:
    directory = RunDirectory(folder)
    directory.prepare()
    manifest = new_manifest(config, ["test"])
    manifest.run_id = "fixed"
    directory.save(manifest)
    directory.segments_path.mkdir()
    (directory.segments_path / "lineage").write_text("fixed")  # drawn at random otherwise
    return directory


def opened(directory: RunDirectory) -> LocalRuntime:
    return LocalRuntime(directory, directory.load())


def take_turns(runtime: LocalRuntime, count: int) -> None:
    for _ in range(count - 1):
        runtime.turn()
    runtime.turn(boundary=True)


def games(directory: RunDirectory) -> list[bytes]:
    store = SegmentStore(directory.segments_path)
    payloads = [entry.payload for entry in store.entries("0-0")]
    store.close()
    return payloads


def everything(directory: RunDirectory) -> tuple[list[bytes], Manifest]:
    """Return all games and the manifest without what may differ: clocks and invocations."""
    manifest = directory.load()
    manifest.created_at = manifest.elapsed_s = 0.0
    manifest.owner_starts = 0
    manifest.git_commit, manifest.git_dirty = "", False
    manifest.invocations = []
    return games(directory), manifest


def test_kuhn_run_learns_exports_and_gates(tmp_path: Path) -> None:
    directory = new_run(tmp_path / "run", kuhn_config("gate.max_pairs=24"))
    runtime = opened(directory)
    take_turns(runtime, 40)
    status = runtime.owner.tracker.refresh()
    runtime.close()
    manifest = directory.load()
    assert manifest.newest == manifest.next_version - 1 >= 3
    assert manifest.champion >= 0
    assert manifest.step > 30
    assert manifest.totals.games == len(games(directory)) > 100
    assert sum((manifest.gates.promoted, manifest.gates.rejected, manifest.gates.undecided)) > 0
    assert manifest.gates.games > 0
    assert status.totals.games == manifest.totals.games
    assert {worker.role for worker in status.workers} == {"selfplay", "gate", "learner"}
    for version, record in manifest.models.items():
        model = directory.model(manifest, version)
        assert hashlib.sha256(model).hexdigest() == record.blob.hash


def test_same_seed_gives_the_same_games_another_seed_others(tmp_path: Path) -> None:
    runs = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        directory = new_run(tmp_path / name, kuhn_config(f"seed={seed}"))
        runtime = opened(directory)
        take_turns(runtime, 12)
        runtime.close()
        runs.append(everything(directory))
    assert runs[0] == runs[1]
    assert len(runs[0][0]) > 50
    assert runs[0][0] != runs[2][0]


def check_resumed_equals_uninterrupted(tmp_path: Path, config: RunConfig, turns: int) -> None:
    whole = new_run(tmp_path / "whole", config)
    runtime = opened(whole)
    take_turns(runtime, 2 * turns)
    runtime.close()

    parts = new_run(tmp_path / "parts", config)
    runtime = opened(parts)
    take_turns(runtime, turns)
    # Killed a little later: what came after the boundary is played again.
    runtime.turn()
    runtime.turn()
    runtime.close()
    runtime = opened(parts)
    take_turns(runtime, turns)
    runtime.close()

    expected_games, expected = everything(whole)
    found_games, found = everything(parts)
    assert found_games == expected_games
    assert records(parts) == records(whole)
    assert found == expected
    assert found.step > 0
    assert found.newest > 0


def records(directory: RunDirectory) -> list[EvaluationRecord]:
    return [msgspec.structs.replace(record, time="") for record in read_records(directory)]


def test_resumed_kuhn_equals_uninterrupted(tmp_path: Path) -> None:
    often = kuhn_config("evaluation.every_versions=1", "gate.max_pairs=16")
    check_resumed_equals_uninterrupted(tmp_path, often, 32)
    found = records(RunDirectory(tmp_path / "parts"))
    keys = [(record.version, record.simulations) for record in found]
    assert len(keys) == len(set(keys)) >= 2


@pytest.mark.slow
def test_resumed_cuarenta_equals_uninterrupted(tmp_path: Path) -> None:
    check_resumed_equals_uninterrupted(tmp_path, cuarenta_config(), 10)


def test_stop_is_taken_at_the_next_boundary_and_saved(tmp_path: Path) -> None:
    directory = new_run(tmp_path / "run", kuhn_config())
    runtime = opened(directory)
    shown: list[int] = []
    runtime.run(lambda: len(shown) >= 3, 0.0, lambda: shown.append(0))
    runtime.close()
    assert len(shown) == 4
    manifest = directory.load()
    assert manifest.learner is not None
    assert manifest.elapsed_s > 0
    assert len(manifest.workers) == 1


def test_limit_of_training_time_ends_the_run(tmp_path: Path) -> None:
    directory = new_run(tmp_path / "run", kuhn_config())
    runtime = opened(directory)
    shown: list[int] = []
    runtime.run(lambda: len(shown) > 1000, 1e-9, lambda: shown.append(0))
    runtime.close()
    assert len(shown) == 1


def test_resume_with_another_number_of_workers_is_refused(tmp_path: Path) -> None:
    directory = new_run(tmp_path / "run", kuhn_config())
    runtime = opened(directory)
    take_turns(runtime, 2)
    runtime.close()
    manifest = directory.load()
    manifest.config = msgspec.structs.replace(
        manifest.config, self_play=SelfPlayConfig(num_workers=3, games=32)
    )
    with pytest.raises(ResumeError, match="num_workers is 3, the snapshot has 1"):
        LocalRuntime(directory, manifest)


def test_truncated_snapshot_is_refused_by_name(tmp_path: Path) -> None:
    directory = new_run(tmp_path / "run", kuhn_config())
    runtime = opened(directory)
    take_turns(runtime, 2)
    runtime.close()
    manifest = directory.load()
    assert manifest.learner is not None
    path = directory.path / manifest.learner.file
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ResumeError, match="truncated: 100 bytes"):
        opened(directory)


def test_a_run_with_another_encoder_learns_gates_and_refuses_models_of_the_first(
    tmp_path: Path,
) -> None:
    directory = new_run(tmp_path / "run", cuarenta_config("game.encoder=bits"))
    runtime = opened(directory)
    take_turns(runtime, 16)
    runtime.close()
    manifest = directory.load()
    assert manifest.step > 0
    assert manifest.gates.games > 0
    model = directory.model(manifest, manifest.newest)
    facts = read_metadata(model)
    assert manifest.newest > 0
    assert (facts.encoder, facts.observation_size, facts.action_size) == ("bits", 208, 84)
    spec = get_spec("cuarenta")
    game = spec.make("report_a_4p", {"target": "10"})
    OnnxEvaluator(spec, game, spec.encoder("bits")).set_model(0, model)
    with pytest.raises(ModelError, match=r"encoder bits v\d+, this program has ranks"):
        OnnxEvaluator(spec, game, spec.encoder("ranks")).set_model(0, model)
    other = untrained_model("cuarenta", version=0)
    with pytest.raises(ModelError, match=r"encoder ranks v\d+, this program has bits"):
        OnnxEvaluator(spec, spec.make(), spec.encoder("bits")).set_model(0, other)
