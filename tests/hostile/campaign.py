"""Feeds changed bytes to all decoders, in a process whose memory and time are bounded.

    python -m tests.hostile.campaign EXAMPLES [DECODER ...]

A decoder may raise its documented errors and nothing else. Memory beyond what was there before is
bounded by RLIMIT_AS, time by a timer of CPU time for each input. A finding is printed with decoder
and seed, and the exit code is 1; a crash or a hang is the parent's to see.
"""

from __future__ import annotations

import faulthandler
import resource
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType

from tests.hostile.decoders import Decoder, decoders
from tests.hostile.mutations import mutated, mutated_sample

MEMORY_BYTES = 768 << 20
"""What any input may take beyond what the process held: all bounds together are far below."""
CPU_S = 10.0
"""For one input."""


class TooSlow(BaseException):
    """An input took longer than CPU_S."""


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def limit_memory() -> None:
    """Allow this process MEMORY_BYTES beyond the address space that it has now."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY_BYTES, now + MEMORY_BYTES))


def attempt(decoder: Decoder, data: bytes) -> bool:
    """Let ``decoder`` read ``data`` within its time; return whether it was accepted."""
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S)
    try:
        decoder.read(data)
        return True
    except decoder.errors:
        return False
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def changed(decoder: Decoder, seed: int) -> bytes:
    """Return input ``seed``: parts changed and joined, or, every fourth, the whole changed."""
    import random

    if seed % 4:
        return decoder.join(mutated_sample(decoder.samples, seed))
    rng = random.Random(seed)
    return mutated(decoder.join(rng.choice(decoder.samples)), rng)


def run(name: str, decoder: Decoder, seeds: range) -> int:
    """Try all ``seeds`` and print what was found; return the number of findings."""
    findings = accepted = 0
    for seed in seeds:
        data = changed(decoder, seed)
        try:
            accepted += attempt(decoder, data)
        except (Exception, TooSlow) as error:  # noqa: BLE001 - whatever it is, it is a finding
            findings += 1
            print(f"FINDING {name} seed {seed}: {type(error).__name__}: {str(error)[:200]}")
            if findings <= 3:
                traceback.print_exc(limit=-6)
    print(f"{name}: {len(seeds)} inputs, {accepted} accepted, {findings} findings", flush=True)
    return findings


def main() -> int:
    faulthandler.enable()
    signal.signal(signal.SIGVTALRM, _too_slow)
    examples, *names = sys.argv[1:]
    known = decoders()
    for name, decoder in known.items():  # libraries load, kernels compile
        for sample in decoder.samples:
            try:
                decoder.read(decoder.join(sample))
            except decoder.errors as error:
                if name != "migrated manifest":  # the one that has nothing to do
                    raise AssertionError(f"{name}: the sample is refused: {error}") from error
    limit_memory()
    chosen = names or list(known)
    return int(sum(run(name, known[name], range(int(examples))) for name in chosen) > 0)


if __name__ == "__main__":
    sys.exit(main())
