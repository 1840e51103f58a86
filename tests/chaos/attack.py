"""Attacks one run at random, keeps it going as its users would, and proves what came of it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import msgspec
import psutil

from deploy.manifest import Manifest
from deploy.processes import find, mark
from deploy.ray_session import session_folder
from deploy.status import RunStatus
from tests.chaos import proofs
from tests.chaos.faults import CUTS, KILL, STOP, SUPERVISOR, Card, Deck, Fault, Pace
from tests.chaos.proxy import OPEN
from tests.chaos.records import Log, Said
from tests.chaos.stages import LocalStage, send
from tests.deploy.waiting import ROOT, processes_of

POLL_S = 0.2
CLOCK_S = 0.02
"""The time of a file may be so much older than the moment in which it was written."""
START_S = 240.0
STOP_S = 240.0
RECOVERY_S = 300.0
"""An attack goes on after that long, whatever the proofs say of it later."""
DRAIN_S = 120.0
NUM_WORKERS = 2
ALL_PAUSED = "replay.min_free_disk_gb=1000000000"
"""No disk has so much: workers deliver what they have and play nothing."""


class Attack:
    """One run on one stage. ``say`` gets every event in words."""

    def __init__(
        self, stage: LocalStage, pace: Pace, rng: random.Random, say: Callable[[str], None]
    ) -> None:
        self._stage, self._pace, self._rng, self._say = stage, pace, rng, say
        self._deck = Deck(stage.cards, rng)
        self._log = Log(stage.logs.folder / "events.jsonl")
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._may_end = False
        self._healing: list[tuple[float, Callable[[], object]]] = []
        self._manifest_read_at = 0.0
        self._began = time.time()
        self.faults: list[Fault] = []
        self.disturbances: list[proofs.Disturbance] = []
        self.samples: list[proofs.Sample] = []
        self.left: list[str] = []
        self.unrecovered: list[str] = []

    # --- the run ----------------------------------------------------------------------------------

    def run(self) -> list[proofs.Proof]:
        """Start, attack, let it come to rest, and prove."""
        try:
            self._start()
            self._wait(self._is_well(time.time()), START_S, "the first games")
            self._attack()
            self._finish()
        finally:
            self._clean()
        return self._prove()

    def _start(self, *overrides: str) -> None:
        stage = self._stage
        command = [sys.executable, "-m", "tests.chaos.host", str(stage.directory.path)]
        command += [f"runtime.step_limit_s={self._pace.step_limit_s}"]
        with open(stage.folder / "supervisor.log", "ab") as log:
            self._supervisor = subprocess.Popen(
                [*command, *stage.overrides, *overrides],
                cwd=ROOT,
                env=stage.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._may_end = False

    def _look_after(self) -> None:
        """Do what users do: start again what they saw end, and look."""
        now = time.time()
        for due, heal in [item for item in self._healing if item[0] <= now]:
            self._healing.remove((due, heal))
            heal()
        self._stage.mend()
        assert self._supervisor is not None
        code = self._supervisor.poll()
        if code is not None:
            assert self._may_end, f"the run ended by itself with code {code}: {self._tail()}"
            self._start()
        self._sample()

    def _sample(self) -> None:
        """Read manifest and status; keep their totals."""
        directory = self._stage.directory
        if not directory.exists():
            return
        changed = directory.manifest_path.stat().st_mtime
        if changed != self._manifest_read_at:
            manifest = directory.load()
            if directory.manifest_path.stat().st_mtime == changed:  # it was this one
                self._manifest_read_at = changed
                totals = _manifest_totals(manifest)
                self.samples.append(proofs.Sample("manifest", changed + CLOCK_S, totals))
        status = directory.read_status()
        last = self.samples[-1] if self.samples else None
        if status is not None and (last is None or last.at < status.updated_at):
            self.samples.append(proofs.Sample("status", status.updated_at, _status_totals(status)))

    def _wait(self, condition: Callable[[], bool], limit_s: float, what: str) -> bool:
        """Look after the run until ``condition``; return False, having said so, if that is late."""
        deadline = time.time() + limit_s
        while not condition():
            if time.time() > deadline:
                self._say(f"not within {limit_s:g} s: {what}; {self._tail()}")
                self.unrecovered.append(what)
                return False
            self._look_after()
            time.sleep(POLL_S)
        return True

    def _is_well(self, since: float) -> Callable[[], bool]:
        """Return whether all workers delivered, and owner and learner worked, after ``since``."""
        before = self._stage.directory.read_status() if self._stage.directory.exists() else None
        step = before.step if before is not None else 0
        logs = self._stage.logs

        def is_well() -> bool:
            if any(logs.last_accepted_at(slot) <= since for slot in range(NUM_WORKERS)):
                return False
            status = self._stage.directory.read_status()
            return (
                status is not None
                and status.state == "running"
                and status.updated_at > since
                and status.step > min(step, self._steps_of_manifest())
                and all(worker.alive for worker in status.workers)
            )

        return is_well

    def _steps_of_manifest(self) -> int:
        return int(self.samples[-1].totals.get("step", 0)) if self.samples else 0

    # --- the attack -------------------------------------------------------------------------------

    def _attack(self) -> None:
        pace, began, number = self._pace, time.time(), 0
        self._say(f"attacking for {pace.minutes:g} min: {self._stage.name}")
        while True:
            minutes = (time.time() - began) / 60
            enough = len(self.faults) >= pace.least_faults and minutes >= pace.minutes
            if enough or minutes >= 2 * pace.minutes:
                return
            number += 1
            self._round(number)

    def _round(self, number: int) -> None:
        """Do a few things nearly at once, wait until they are over, then until the run is well."""
        first = len(self.faults)
        for card in self._deck.deal(self._rng.randint(1, self._pace.most_at_once)):
            self._inject(number, card)
            pause = time.time() + self._rng.uniform(0.0, 2.0)
            self._wait(lambda pause=pause: time.time() >= pause, 60.0, "a pause")  # type: ignore[misc]
        faults = self.faults[first:]
        over = max((fault.until for fault in faults), default=0.0)
        self._wait(lambda: time.time() > over and not self._healing, 200.0, "the end of the faults")
        limit_s = self._pace.step_limit_s
        ended = max((fault.disturbs_until(limit_s) for fault in faults), default=0.0)
        if ended:
            slots = tuple(range(NUM_WORKERS))
            what = ", ".join(f"{fault.action} {fault.kind}" for fault in faults)
            self.disturbances.append(proofs.Disturbance(f"round {number} ({what})", ended, slots))
        if self._wait(self._is_well(over), RECOVERY_S, f"recovery from round {number}"):
            self._say(f"round {number}: well {time.time() - over:.1f} s after its last fault")

    def _inject(self, number: int, card: Card) -> None:
        """Do what ``card`` says, if there is such a process now."""
        kind, action = card
        if action in CUTS:
            until = self._hold(self._pace.cut_s, lambda: self._stage.cut(kind, OPEN))
            self._stage.cut(kind, action)
            self._note(number, card, "its connections", until)
            return
        supervisor = self._supervisor
        assert supervisor is not None
        marked = mark(supervisor.pid) if kind == SUPERVISOR else self._stage.process(kind)
        if marked is None or not send(marked, signal.SIGKILL if action == KILL else signal.SIGSTOP):
            self._say(f"round {number}: no {kind} to {action}")
            self._deck.take_back(card)
            return
        if action == STOP:
            until = self._hold(self._pace.stop_s, lambda: send(marked, signal.SIGCONT))
        else:
            self._may_end = self._may_end or kind == SUPERVISOR
            until = self._stage.killed(kind)
        self._note(number, card, f"pid {marked.pid}", until)

    def _hold(self, seconds: tuple[float, float], heal: Callable[[], object]) -> float:
        """Have ``heal`` called after a random time; return when."""
        until = time.time() + self._rng.uniform(*seconds)
        self._healing.append((until, heal))
        return until

    def _note(self, number: int, card: Card, target: str, until: float) -> None:
        now = time.time()
        fault = Fault(len(self.faults) + 1, number, card.kind, card.action, target, now, until)
        self.faults.append(fault)
        self._log.write(fault)
        lasts = f" for {until - now:.1f} s" if until > now + 0.1 else ""
        at = now - self._began
        self._say(f"{at:7.1f} s  {fault.number:3d}  {card.action} {card.kind} ({target}){lasts}")

    # --- the end ----------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Stop as Ctrl-C does; have what is still in the stream ingested, nothing being played."""
        self._wait(lambda: not self._healing, 100.0, "the end of the last faults")
        self._stop()
        if self._missing():
            self._say("resuming with paused workers, to ingest what is left in the stream")
            since = time.time()
            self._start(ALL_PAUSED)
            self._wait(lambda: self._has_drained(since), START_S, "the rest of the stream")
            self._stop()
        self._sample()

    def _has_drained(self, since: float) -> bool:
        """Return whether an owner that started after ``since`` has stored all that was accepted."""
        status = self._stage.directory.read_status()
        is_paused = status is not None and status.started_at > since and status.state == "paused"
        return is_paused and not self._missing()

    def _stop(self) -> None:
        supervisor = self._supervisor
        assert supervisor is not None
        supervisor.send_signal(signal.SIGINT)
        try:
            code = supervisor.wait(STOP_S)
        except subprocess.TimeoutExpired:
            code = None
        if code != 0:
            self.left.append(f"the supervisor ended with {code}: {self._tail()}")
        self._see_what_is_left()

    def _see_what_is_left(self) -> None:
        """Note processes and folders of the run that are still there after a while."""
        folder = session_folder(self._stage.directory.load().run_id)
        deadline = time.time() + 30.0
        left = self._processes()
        while (left or folder.exists()) and time.time() < deadline:
            time.sleep(POLL_S)
            left = self._processes()
        self.left += [f"{process.pid} {' '.join(process.cmdline())[:120]}" for process in left]
        self.left += [str(folder)] if folder.exists() else []

    def _processes(self) -> list[psutil.Process]:
        """Return what lives of the run: what names its folders, and every actor ever started."""
        directory = self._stage.directory
        named = processes_of(directory.path) + processes_of(session_folder(directory.load().run_id))
        actors = [find(start.process) for start in self._stage.logs.starts()]
        return list({process.pid: process for process in [*named, *filter(None, actors)]}.values())

    def _clean(self) -> None:
        """Whatever happened: end what is left."""
        for _, heal in self._healing:
            heal()
        if self._supervisor is not None and self._supervisor.poll() is None:
            self._supervisor.kill()
            self._supervisor.wait()
        if self._stage.directory.exists():
            for process in self._processes():
                if process.pid != os.getpid():
                    process.kill()
            shutil.rmtree(session_folder(self._stage.directory.load().run_id), ignore_errors=True)

    def _tail(self) -> str:
        logs = [
            self._stage.folder / "supervisor.log",
            self._stage.directory.logs_path / "owner.log",
        ]
        tails = [log.read_text(errors="replace")[-1500:] for log in logs if log.exists()]
        return " | ".join(tails)

    # --- the proofs -------------------------------------------------------------------------------

    def _line(self) -> proofs.Line:
        manifest = self._stage.directory.load()
        snapshot = manifest.learner.hash if manifest.learner is not None else ""
        return proofs.final_line(self._stage.logs.ingested(), snapshot)

    def _missing(self) -> bool:
        accepted = [entry for slot in self._stage.logs.accepted().values() for entry in slot]
        return bool(proofs.missing(accepted, self._line()))

    def _prove(self) -> list[proofs.Proof]:
        manifest, line, logs = self._stage.directory.load(), self._line(), self._stage.logs
        by_slot = logs.accepted()
        times = {slot: sorted(entry.at for entry in found) for slot, found in by_slot.items()}
        words = logs.owner()
        refused = [w for w in words if isinstance(w, Said) and "refused" in w.text]
        load = os.getloadavg()[2]
        self._say(f"{len(refused)} replies of replaced actors were refused")
        self._say(f"load average {load:.1f} on {os.cpu_count()} CPUs")
        return [
            proofs.prove_exactly_once(line),
            proofs.prove_accepted([entry for found in by_slot.values() for entry in found], line),
            proofs.prove_sums(manifest.totals, line),
            proofs.prove_deliveries(self.disturbances, times, self._pace.bound_s),
            proofs.prove_promotions(words, _promotions(manifest)),
            proofs.prove_totals_never_fall(self.samples),
            proofs.prove_nothing_left(self.left),
        ]


def _promotions(manifest: Manifest) -> proofs.Promotions:
    versions = frozenset(v for v, record in manifest.models.items() if record.promoted)
    return proofs.Promotions(versions, manifest.champion, manifest.gates.promoted)


def _numbers(totals: msgspec.Struct) -> dict[str, float]:
    """Return the sums among the totals (what is in the window now rises and falls)."""
    return {
        name: value
        for name, value in msgspec.structs.asdict(totals).items()
        if isinstance(value, int) and name != "window_games"
    }


def _manifest_totals(manifest: Manifest) -> dict[str, float]:
    gates = manifest.gates
    return _numbers(manifest.totals) | {
        "step": manifest.step,
        "epoch": manifest.epoch,
        "newest": manifest.newest,
        "champion": manifest.champion,
        "elapsed_s": manifest.elapsed_s,
        "promoted": gates.promoted,
        "rejected gates": gates.rejected,
        "undecided": gates.undecided,
        "gate_games": gates.games,
        "rating_games": manifest.rating_games,
        "evaluation_games": manifest.evaluation_games,
        "worker_restarts": manifest.worker_restarts,
        "server_restarts": manifest.server_restarts,
    }


def _status_totals(status: RunStatus) -> dict[str, float]:
    return _numbers(status.totals) | {
        "step": status.step,
        "epoch": status.epoch,
        "newest": status.newest,
        "champion": status.champion,
        "elapsed_s": status.elapsed_s,
        "promoted": status.num_promoted,
        "rejected gates": status.num_rejected,
        "undecided": status.num_undecided,
        "gate_games": status.gate_games,
        "rating_games": status.rating_games,
        "evaluation_games": status.evaluation_games,
        "worker_restarts": status.worker_restarts,
        "server_restarts": status.server_restarts,
    }
