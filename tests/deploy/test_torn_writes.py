"""A power cut at every write of a run leaves old or new, never else, and the run goes on from it.

The owner is real, with its manifest, blobs, evaluations, status and segments; only what actors
answer is made up. The double forgets, tears or reorders what was not synced at the cut.

* Both runtimes: the manifest is one of those that were saved, the last or the one being written;
  whatever it names is whole; whatever was announced before the cut is in it.
* The run resumes: version numbers go on, models are published, a promotion is not lost.
* Evaluations are a beginning of those recorded, with all that were said to be.
* Segments hold everything up to where the manifest says, and go on from there.
* The test notices a blob, a manifest or segments that are not synced in time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from actors.config import SelfPlayConfig
from actors.messages import StepReply
from deploy.config import RunConfig, RuntimeConfig
from deploy.evaluations import read_records
from deploy.files import MemoryFiles, PowerCut
from deploy.local import SegmentStream
from deploy.manifest import Manifest, decode, encode, new_manifest
from deploy.owner import Owner
from deploy.rundir import RunDirectory
from deploy.tracker import GATE, LEARNER, SELFPLAY
from league.config import LeagueConfig
from league.messages import EvaluationResult, GateOutcome, GateReply, GateStatus
from league.models import MemoryModelStore
from learner.messages import IngestedTotals, LearnReply
from replay.config import ReplayConfig
from replay.segments import SegmentStore, SegmentWriter
from tests.deploy.statuses import evaluation

KINDS = ("ray", "inprocess")


def config(kind: str) -> RunConfig:
    return RunConfig(
        self_play=SelfPlayConfig(num_workers=1),
        league=LeagueConfig(pool_size=2),
        replay=ReplayConfig(min_free_disk_gb=0.0),
        runtime=RuntimeConfig(kind=kind),  # type: ignore[arg-type]
    )


@functools.cache
def first_manifest(kind: str) -> bytes:
    return encode(new_manifest(config(kind), ["test"]))


class Run:
    """One invocation of an owner on a disk, and what the world has heard of it."""

    def __init__(self, path: Path, kind: str, files: MemoryFiles) -> None:
        self.kind, self.files = kind, files
        self.directory = RunDirectory(path, files)
        self.saved: list[bytes] = []
        """Every manifest that was to be saved, in order."""
        self.num_durable = 0
        """So many of them were on the disk when ``save`` returned."""
        self.promoted = -1
        """Highest champion that actors were told."""
        self.recorded = 0
        """Evaluations said to be recorded."""
        self.models = MemoryModelStore()
        save = self.directory.save

        def noted(manifest: Manifest) -> None:
            self.saved.append(encode(manifest))
            save(manifest)
            self.num_durable = len(self.saved)

        self.directory.save = noted  # type: ignore[method-assign]

    def create(self) -> None:
        self.directory.prepare()
        self.directory.save(decode(first_manifest(self.kind), "first"))

    def open(self) -> None:
        manifest = self.directory.load()
        folder = self.directory.segments_path
        self.segments = SegmentStore(folder, segment_bytes=400, disk=self.files)
        if self.kind == "inprocess":
            self.segments.truncate(manifest.stream_end or "0-0")
        first = manifest.worker_sequences[0] if manifest.worker_sequences else 1
        self.writer = SegmentWriter(self.segments, "here/0/0", first_sequence=first)
        stream = None if self.kind == "ray" else SegmentStream(self.segments, folder)
        self.owner = Owner(self.directory, manifest, self.models, stream=stream, num_cpus=2)
        self.owner.begin()
        for role in (LEARNER, GATE, SELFPLAY):
            self.owner.start_actor(role, node="here")

    # --- what happens in a run --------------------------------------------------------------------

    def play(self, games: int) -> None:
        request = self.owner.step_request(0)
        assert request is not None
        self.promoted = max(self.promoted, request.league.champion)
        for number in range(self.writer.next_sequence, self.writer.next_sequence + games):
            self.writer.append(b"game %d" % number)
        self.writer.poll(0.0)
        self.owner.on_step(StepReply(epoch=request.epoch, node="here", slot=0, model_version=0))

    def learn(self, *, model: bool = True, snapshot: bool = False) -> None:
        owner = self.owner
        request = owner.learn_request()
        number, end = request.next_version, self.segments.end
        owner.on_learn(
            LearnReply(
                epoch=request.epoch,
                step=10 * number,
                model=b"model %d" % number if model else b"",
                snapshot=b"learner at %d" % number if snapshot else b"",
                totals=IngestedTotals(games=int(end.partition("-")[0])),
                window_edge={"0": f"{max(1, int(end.partition('-')[0]) - 8)}-0"},
            )
        )

    def gate(self, candidate: int, *, outcome: str = "", found: bool = False) -> None:
        request = self.owner.gate_request()
        assert request is not None
        ended = GateOutcome(
            candidate=candidate,
            champion=self.owner.manifest.champion,
            outcome=outcome,
            num_pairs=20,
            num_decided=15,
            wins=12,
            llr=3.0,
            score=0.7,
        )
        record = evaluation(candidate)
        names = EvaluationResult.__struct_fields__
        result = EvaluationResult(**{name: getattr(record, name) for name in names})
        self.owner.on_gate(
            GateReply(
                epoch=request.epoch,
                status=GateStatus(),
                outcomes=[ended] if outcome else [],
                evaluations=[result] if found else [],
            )
        )
        if self.kind == "ray":
            self.recorded += found

    def boundary(self) -> None:
        """What ends a number of turns, or makes a manifest with snapshots over Ray."""
        owner = self.owner
        self.learn(model=False, snapshot=True)
        owner.take_gate_snapshot(b"gate %d" % owner.manifest.newest)
        if self.kind == "inprocess":
            owner.take_worker_snapshots([b"worker at %d" % self.writer.next_sequence])
            self.segments.sync()
            owner.manifest.stream_end = self.segments.end
            owner.manifest.worker_sequences = [self.writer.next_sequence]
            pending = len(owner._unwritten)
            owner.save()
            self.recorded += pending
        else:
            owner.save()
        self.directory.write_status(owner.tracker.refresh())

    def whole(self) -> None:
        """Versions, promotions, evaluations, snapshots, pruning and trimming; then an end."""
        self.create()
        self.open()
        self.learn()
        self.boundary()
        for number in range(1, 8):
            self.learn()
            self.play(3)
            self.gate(number, found=number % 3 == 0)
            if number % 4 == 2:
                self.gate(number, outcome="promoted")
            if number % 3 == 1:
                self.boundary()
        self.play(2)
        self.boundary()
        self.segments.close()


def check_disk(cut: Run, disk: dict[Path, bytes]) -> None:
    """Check what a power cut has left, and that a run goes on from it."""
    after = Run(cut.directory.path, cut.kind, MemoryFiles(disk))
    data = disk.get(after.directory.manifest_path)
    if data is None:
        assert cut.num_durable == 0
        return
    assert data in cut.saved[max(0, cut.num_durable - 1) : cut.num_durable + 1]
    manifest = after.directory.load()
    blobs = [record.blob for record in manifest.models.values()] + manifest.workers
    for blob in (*blobs, manifest.learner, manifest.gate):
        if blob is not None:
            after.directory.get(blob)
    announced = cut.models.versions()
    if cut.kind == "ray":
        assert manifest.next_version > max(announced, default=-1)
        assert set(announced) <= manifest.models.keys() | set(range(manifest.newest - 5))
        assert manifest.champion >= cut.promoted
    versions = [record.version for record in read_records(after.directory)]
    assert versions == [3, 6][: len(versions)]
    assert len(versions) >= cut.recorded
    after.open()
    check_segments(after, manifest)
    assert after.models.versions() == sorted(after.models.versions())
    check_goes_on(after, manifest.next_version)


def check_segments(after: Run, manifest: Manifest) -> None:
    if after.kind == "ray":
        return
    end = int((manifest.stream_end or "0-0").partition("-")[0])
    edge = int(manifest.trim_edge.get("0", "1-0").partition("-")[0])
    entries = list(after.segments.entries(f"{edge - 1}-0"))
    assert [entry.payload for entry in entries] == [b"game %d" % n for n in range(edge, end + 1)]
    assert [entry.sequence for entry in entries] == list(range(edge, end + 1))


def check_goes_on(after: Run, next_version: int) -> None:
    after.learn()
    assert after.owner.manifest.newest == next_version
    assert after.models.get(next_version) == b"model %d" % next_version
    after.play(1)
    after.boundary()
    manifest = after.directory.load()
    assert manifest.newest == next_version
    names = set(after.files.names(after.directory.path / "snapshots"))
    named = {blob.file.partition("/")[2] for blob in (manifest.learner, manifest.gate) if blob}
    named |= {blob.file.partition("/")[2] for blob in manifest.workers}
    assert names == named, "what the manifest does not name is pruned"


def cut_everywhere(path: Path, kind: str, files: Callable[[], MemoryFiles]) -> int:
    """Cut a whole run at every primitive and check what is left; return how many there are."""
    for crash_at in range(2000):
        run = Run(path, kind, files())
        run.files.crash_at = crash_at
        try:
            run.whole()
        except PowerCut:
            disks = run.files.survivors()
            for number, disk in enumerate(disks):
                if disk not in disks[:number]:
                    check_disk(run, disk)
            continue
        return crash_at
    raise AssertionError("the run never finished")


@pytest.mark.parametrize("kind", KINDS)
def test_a_power_cut_at_every_write_leaves_a_run_that_goes_on(tmp_path: Path, kind: str) -> None:
    assert cut_everywhere(tmp_path, kind, MemoryFiles) > 120


class _Careless(MemoryFiles):
    """Does not sync the files whose name ends so."""

    def __init__(self, ending: str) -> None:
        super().__init__()
        self._ending = ending

    def _sync(self, path: Path) -> None:
        if path.name.endswith(self._ending):
            self._count()
            return
        super()._sync(path)


@pytest.mark.parametrize(
    "ending",
    [".onnx.new", ".bin.new", "manifest.json.new", "models", "snapshots", ".seg", ".jsonl"],
)
def test_the_test_notices_what_is_not_synced(tmp_path: Path, ending: str) -> None:
    kind = "inprocess" if ending == ".seg" else "ray"
    with pytest.raises((AssertionError, ValueError)):
        cut_everywhere(tmp_path, kind, lambda: _Careless(ending))
