"""A learner that was stopped and wakes beside its successor, out of reach for whoever replaced it.

Behaviours checked:
* the replacement works while the old one stands still
* what the old one answers when it goes on is refused by its epoch: no version, no snapshot of it
* it is ended, now that it is within reach; the run goes on, every entry ingested once
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from deploy.processes import find, mark
from deploy.status import RunStatus
from tests.chaos.host import OWNER_VARIABLE
from tests.chaos.proofs import final_line, prove_exactly_once
from tests.chaos.records import FOLDER_VARIABLE, Logs, Said, Snapshot
from tests.deploy.waiting import wait_for
from tests.system.running import live_run, warm_kernels

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(400)]
AGAIN_S = 120.0


def learner_epoch(status: RunStatus) -> int:
    return next(worker.epoch for worker in status.workers if worker.role == "learner")


def test_learner_that_wakes_beside_its_successor_is_refused_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm_kernels()
    logs = Logs(tmp_path / "records")
    monkeypatch.setenv(FOLDER_VARIABLE, str(logs.folder))
    monkeypatch.setenv(OWNER_VARIABLE, "tests.system.cut_off_owner")
    options = ("self_play.num_workers=1", "runtime.owner_silence_s=400")
    began = time.time()
    with live_run(tmp_path / "run", *options, host="tests.chaos.host") as (run, supervisor):
        run.wait_started(began)
        run.wait(lambda s: run.directory.load().step > 0 and s.newest > 0, "a snapshot", AGAIN_S)
        old = mark(run.actors("RecordedLearnerHost")[0].pid)
        assert old is not None
        os.kill(old.pid, signal.SIGSTOP)
        before = run.wait(lambda _: True, "a status")
        stored = run.directory.load()

        after = run.wait(lambda s: learner_epoch(s) > learner_epoch(before), "a successor", AGAIN_S)
        run.wait(
            lambda s: s.newest > after.newest and run.directory.load().step > stored.step,
            "a version and a snapshot of the successor",
            AGAIN_S,
        )
        assert find(old) is not None

        os.kill(old.pid, signal.SIGCONT)
        refused = f"learner 0: reply of epoch {learner_epoch(before)} refused, it was replaced"
        wait_for(
            lambda: any(isinstance(said, Said) and said.text == refused for said in logs.owner()),
            AGAIN_S,
            "the refusal of what the old learner answered",
        )
        wait_for(lambda: find(old) is None, 30.0, "the end of the old learner")
        alone = run.wait(lambda _: True, "a status")
        run.wait(lambda s: s.newest > alone.newest, "versions of the successor alone", AGAIN_S)
        supervisor.terminate()
        assert supervisor.wait(60) == 0
        run.assert_nothing_left()

    manifest, records = run.directory.load(), logs.ingested()
    assert manifest.learner is not None
    line = final_line(records, manifest.learner.hash)
    assert prove_exactly_once(line).holds
    assert manifest.totals.entries == len(line.entries)
    others = [record for record in records[learner_epoch(before)] if isinstance(record, Snapshot)]
    assert manifest.learner.hash not in {record.snapshot for record in others}
