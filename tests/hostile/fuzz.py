"""Fuzzes all decoders one after the other: ``make fuzz MINUTES=30``.

    python -m tests.hostile.fuzz [--minutes M] [--corpus FOLDER] [DECODER ...]

The minutes are shared evenly. A finding's input is kept in the corpus folder beside what was found
interesting. Exit code 1 when there was a finding.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from tests.deploy.waiting import ROOT
from tests.hostile.decoders import decoders

MINUTES = 5.0
START_S = 300.0
"""For loading and instrumenting before the first input, on a busy machine."""


def fuzz(name: str, seconds: int, corpus: Path) -> bool:
    """Fuzz one decoder and print what came of it; return whether there was a finding."""
    folder = corpus / name.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.hostile.atheris_decoders", name, str(seconds)]
    done = subprocess.run(
        [*command, str(folder / "inputs")],
        cwd=ROOT,
        env=None,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds + START_S,
    )
    said = done.stdout + done.stderr
    units = re.search(r"number_of_executed_units: (\d+)", said)
    memory = re.search(r"peak_rss_mb: +(\d+)", said)
    facts = f"{units[1] if units else '?'} inputs, at most {memory[1] if memory else '?'} MB"
    print(f"{name}: {facts}, {'a FINDING' if done.returncode else 'no finding'}", flush=True)
    if done.returncode:
        (folder / "finding.txt").write_text(said)
        for crash in [*ROOT.glob("crash-*"), *ROOT.glob("timeout-*"), *ROOT.glob("oom-*")]:
            crash.rename(folder / crash.name)
        print("\n".join(said.splitlines()[-30:]))
        print(f"the input and all that was said are in {folder}", flush=True)
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--corpus", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("names", nargs="*", metavar="DECODER", help="by default all")
    parsed = parser.parse_args()
    names = parsed.names or sorted(decoders())
    if unknown := set(names) - decoders().keys():
        parser.error(f"{', '.join(unknown)}: allowed are {', '.join(sorted(decoders()))}")
    seconds = max(1, round(60 * parsed.minutes / len(names)))
    return int(sum(fuzz(name, seconds, parsed.corpus) for name in names) > 0)


if __name__ == "__main__":
    sys.exit(main())
