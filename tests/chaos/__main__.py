"""``python -m tests.chaos [--minutes M] [--seed S] [--folder DIR]``: attack two runs and prove.

Half of the time belongs to a run with a Ray and a server of its own, the other half to one on an
existing cluster of two nodes with an own server. Returns 1 when a proof fails.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.attack import Attack
from tests.chaos.faults import TEN_MINUTES, Fault
from tests.chaos.stages import ClusterStage, LocalStage
from tests.system.running import warm_kernels

STAGES: dict[str, type[LocalStage]] = {"local": LocalStage, "cluster": ClusterStage}


def say(text: str) -> None:
    print(text, flush=True)


def attack(
    name: str, folder: Path, minutes: float, least: int, seed: int
) -> tuple[list[Fault], bool]:
    """Attack one stage; return what was done, and whether every proof holds."""
    rng = random.Random(f"{seed} {name}")
    folder.mkdir(parents=True)
    stage = STAGES[name](folder, rng)
    pace = dataclasses.replace(TEN_MINUTES, minutes=minutes, least_faults=least)
    with stage.opened():
        attack = Attack(stage, pace, rng, say)
        found = attack.run()
    for proof in found:
        say(str(proof))
    return attack.faults, all(proof.holds for proof in found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="chaos", description="Attack runs at random, and prove.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--stage", choices=sorted(STAGES), default=None, help="only this one")
    parser.add_argument("--folder", type=Path, default=None, help="kept; default: removed")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended too
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="chaos-"))
    names = [arguments.stage] if arguments.stage else list(STAGES)
    say(f"seed {arguments.seed}, {arguments.minutes:g} minutes, records in {folder}")
    warm_kernels()
    minutes = arguments.minutes / len(names)
    done: list[Fault] = []
    failed = False
    for name in names:
        faults, holds = attack(name, folder / name, minutes, round(3.0 * minutes), arguments.seed)
        done += faults
        failed |= not holds
    counts = collections.Counter((fault.action, fault.kind) for fault in done)
    for (action, kind), count in sorted(counts.items()):
        say(f"{count:3d} x {action} {kind}")
    say(f"{len(done)} faults, seed {arguments.seed}: {'FAILED' if failed else 'everything holds'}")
    if not failed and arguments.folder is None:
        shutil.rmtree(folder)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
