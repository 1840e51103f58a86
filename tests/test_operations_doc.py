"""Every command of ``docs/operations.md`` is run, in its order, with four machines on this one.

Behaviours checked:
* every block says where it runs; what needs real machines is listed here, so that a command which
  nothing runs fails
* a program that the text names beside the blocks stands in one of them
* three machines are set up, a run trains over TLS on both nodes, is looked at, copied, stopped, and
  goes on elsewhere with a token, a user and a password that shows nowhere

A machine is a home of its own; all of them are reached by the name ``localhost``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deploy.rundir import RunDirectory
from engine.jit import cache_root
from tests.deploy.waiting import ROOT, files_with, nothing_left, wait_for
from tests.system.running import warm_kernels
from tests.system.tls import free_port

MANUAL = ROOT / "docs" / "operations.md"
MACHINES = ("redis", "head", "worker", "other")
ON_REAL_MACHINES = (
    "python -m pip wheel --no-deps -w dist .",
    "python -m pip install 'dist/cardleague-0.1.0-py3-none-any.whl[learner]'",
    "scp ca.crt NODE:$CA_FILE",
    "scp redis-password HEAD:",
    "scp .ray/auth_token NODE:.ray/",
    "ray stop",
    "scp $NAME.tar redis-password OTHER:",
    "scp .ray/auth_token OTHER:.ray/",
)
"""Commands that are not run: the test copies files itself, and ``ray stop`` would end any Ray."""
TESTED_ELSEWHERE = ("cardleague migrate",)
"""Of the text; tests/deploy/test_migrate.py."""
PROGRAMS = ("cardleague", "ray", "valkey-server", "openssl", "curl", "tar", "cp", "kill", "scp")
NO_COMMANDS = ("text", "ini")
LOOKS = "curl"
"""In the block that looks at the new run; the next ones copy and stop it."""
BLOCK_LIMIT_S = 400.0
NAME = "kuhn"
QUICK = {
    "RUNTIME__KIND": "ray",
    "RUNTIME__SNAPSHOT_S": "2",
    "RUNTIME__STEP_S": "0.3",
    "REPLAY__MIN_FREE_DISK_GB": "0",
    "REPORT__INTERRUPTED_S": "0",
}


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the word behind it, and the lines."""

    language: str
    place: str
    text: str
    line: int


def blocks() -> list[Block]:
    """Return the manual's blocks in their order."""
    found = []
    manual = MANUAL.read_text()
    for match in re.finditer(r"^```(.*?)\n(.*?)^```$", manual, re.DOTALL | re.MULTILINE):
        language, _, place = match[1].partition(" ")
        line = manual.count("\n", 0, match.start()) + 1
        found.append(Block(language, place, match[2], line))
    return found


def commands(text: str) -> list[str]:
    """Return the lines of a block with continued ones joined."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def test_every_block_is_run_or_listed_here_as_one_that_needs_real_machines() -> None:
    listed = []
    for block in blocks():
        where = f"docs/operations.md, line {block.line}"
        if block.language == "console":
            listed += commands(block.text)
        elif block.language == "bash":
            assert block.place in (*MACHINES, "all"), f"{where}: no machine {block.place!r}"
        else:
            assert block.language in NO_COMMANDS, f"{where}: language {block.language!r}"
    assert listed == list(ON_REAL_MACHINES)


def test_programs_that_the_text_names_stand_in_a_block() -> None:
    manual = re.sub(r"^```.*?^```$", "", MANUAL.read_text(), flags=re.DOTALL | re.MULTILINE)
    run = " ".join(block.text for block in blocks())
    for span in re.findall(r"`([^`\n]+)`", manual):
        if span.split()[0] in PROGRAMS and span != "cardleague":
            start = " ".join(span.split()[:2])
            assert start in run or start in TESTED_ELSEWHERE, f"`{span}` is in no block"


@dataclass
class Machines:
    """Four homes, and the environment that each machine's blocks leave behind."""

    folder: Path
    ray_folder: Path
    ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))

    def prepare(self) -> None:
        """Make the homes, with a password's file that scripts may use, and the program's names."""
        programs = self.folder / "bin"
        programs.mkdir()
        python = f"exec {sys.executable}"
        for name, command in (
            ("valkey-server", f"{python} -m tests.system.tls_server"),
            ("cardleague", f"{python} -m deploy.cli"),
        ):
            (programs / name).write_text(f'#!/bin/sh\n{command} "$@"\n')
            (programs / name).chmod(0o755)
        for machine in MACHINES:
            (self.folder / machine).mkdir()
            self._state(machine).write_text("")

    def _state(self, machine: str) -> Path:
        return self.folder / f"{machine}.env"

    def _environment(self, machine: str) -> dict[str, str]:
        path = f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        foreign = ("CARDLEAGUE_", "RAY_", "REDIS_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        return {
            **kept,
            "HOME": str(self.folder / machine),
            "PATH": path,
            "PYTHONPATH": str(ROOT),
            "CARDLEAGUE_CACHE_DIR": str(cache_root()),
            "RAY_TMPDIR": str(self.ray_folder),
            "NAME": NAME,
            "PRESET": "kuhn-smoke",
            "WORKERS": "2",
            "REDIS_HOST": "localhost",
            "REDIS_PORT": str(self.ports[0]),
            "REDIS_MEMORY": "64mb",
            "HEAD_HOST": "127.0.0.1",
            "RAY_PORT": str(self.ports[1]),
            "CPUS": "3",
            "CA_FILE": str(self.folder / "ca.crt"),
            **{f"CARDLEAGUE_{key}": value for key, value in QUICK.items()},
        }

    def run(self, machine: str, block: Block) -> str:
        """Run a block in the home of ``machine``; return what it printed."""
        state = self._state(machine)
        script = f". {state}\nset -euo pipefail\n{block.text}\nexport -p > {state}\n"
        output = self.folder / f"{machine}-{block.line}.out"
        with open(output, "wb") as out:  # a file: what goes on in the background keeps a pipe open
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=self.folder / machine,
                env=self._environment(machine),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=BLOCK_LIMIT_S,
                check=False,
            )
        text = output.read_text(errors="replace")
        log = self.folder / "head" / "train.log"
        said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
        assert done.returncode == 0, f"line {block.line} on {machine}: {text[-3000:]}\n{said}"
        return text

    def copy(self, command: str) -> None:
        """Do what the manual's ``scp`` line says."""
        home = {machine: self.folder / machine for machine in MACHINES}
        nodes = [home["worker"], home["other"]]
        match command:
            case "scp ca.crt NODE:$CA_FILE":
                shutil.copy(home["redis"] / "ca.crt", self.folder / "ca.crt")
            case "scp redis-password HEAD:":
                shutil.copy(home["redis"] / "redis-password", home["head"])
            case "scp .ray/auth_token NODE:.ray/":
                for node in nodes:
                    (node / ".ray").mkdir(exist_ok=True)
                    shutil.copy(home["head"] / ".ray" / "auth_token", node / ".ray")
            case "scp $NAME.tar redis-password OTHER:":
                for name in (f"{NAME}.tar", "redis-password"):
                    shutil.copy(home["head"] / name, home["other"])


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    ray_folder = Path("/tmp") / f"cl-doc-{os.getpid()}"
    ray_folder.mkdir()
    machines = Machines(tmp_path, ray_folder)
    machines.prepare()
    with nothing_left(ray_folder), nothing_left(tmp_path):
        yield machines
    shutil.rmtree(ray_folder, ignore_errors=True)


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_commands_of_the_manual_run_in_their_order(machines: Machines) -> None:
    warm_kernels()
    first = RunDirectory(machines.folder / "head" / "runs" / NAME)
    second = RunDirectory(machines.folder / "other" / "runs" / NAME)
    said = ""
    for block in blocks():
        if block.language == "console":
            for command in commands(block.text):
                machines.copy(command)
        elif block.language == "bash":
            for machine in MACHINES if block.place == "all" else (block.place,):
                said += machines.run(machine, block)
            if LOOKS in block.text:
                # A run is "running" once its learner answers; workers may still be loading.
                wait_for(lambda: first.load().totals.games > 0, 200, "a snapshot with games")
    before = first.load()
    assert not first.is_live()
    assert second.is_live()
    wait_for(lambda: second.load().step > before.step, 200, "training on the other machine")
    assert second.load().run_id == before.run_id
    assert before.totals.games > 0
    # How many games there are when the manual asks is a matter of the machine.
    assert re.search(r"^cardleague_games_total \d", said, re.MULTILINE)
    _stop(machines, second)
    assert "lost" not in (second.logs_path / "owner.log").read_text()
    password = (machines.folder / "redis" / "redis-password").read_text().strip()
    found = [*files_with(password, machines.folder), *files_with(password, machines.ray_folder)]
    assert {path.name for path in found} == {"redis-password"}


def _stop(machines: Machines, directory: RunDirectory) -> None:
    pid = int((machines.folder / "other" / "train.pid").read_text())
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 15)
    wait_for(lambda: not directory.is_live(), 90, "the end of the run")
