"""Coverage-guided fuzzing of one decoder with atheris (libFuzzer).

    python -m tests.hostile.atheris_decoders DECODER SECONDS [CORPUS]

The corpus starts with the valid samples, changed ones and the bombs; libFuzzer mutates, and half of
the time ``mutations`` does, on the parts before they are joined. Memory and the time of an input
are bounded by libFuzzer (``-rss_limit_mb``, ``-timeout``). Prints how many inputs were tried; a
finding ends it with a traceback and the input in a file, exit code not 0.
"""

from __future__ import annotations

import contextlib
import random
import sys
import tempfile
from pathlib import Path

import atheris

# Modules with kernels, before anything is instrumented: numba could not compile them then.
import actors.lockstep  # noqa: F401
import learner.features  # noqa: F401

INSTRUMENTED = (
    "actors",
    "deploy.evaluations",
    "deploy.manifest",
    "deploy.migration",
    "deploy.presets",
    "deploy.processes",
    "deploy.rundir",
    "league.evaluator",
    "league.graph",
    "league.quantize",
    "learner.checkpoint",
    "replay.codec",
    "replay.embedded",
    "replay.segments",
    "numpy.lib._format_impl",
    "tomllib",
    "zipfile",
)

with atheris.instrument_imports(include=list(INSTRUMENTED)):
    from tests.hostile.decoders import decoders

from tests.hostile.mutations import mutated  # noqa: E402 - not instrumented

SEPARATOR = b"\0<part>\0"
"""Between the parts of an input; the harness joins them with the lengths and digests they need."""


def main() -> None:
    name, seconds, *corpus = sys.argv[1:]
    decoder = decoders()[name]
    num_parts = len(decoder.samples[0])
    with contextlib.suppress(*decoder.errors):  # what it loads and compiles no input takes
        decoder.read(decoder.join(decoder.samples[0]))

    def one_input(data: bytes) -> None:
        parts = data.split(SEPARATOR)
        whole = decoder.join(parts) if len(parts) == num_parts and num_parts > 1 else data
        try:
            decoder.read(whole)
        except decoder.errors:
            return

    def custom(data: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return bytes(atheris.Mutate(data, max_size))
        parts = data.split(SEPARATOR)
        number = rng.randrange(len(parts))
        parts[number] = mutated(parts[number], rng)
        return SEPARATOR.join(parts)[:max_size]

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(corpus[0]) if corpus else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for number, sample in enumerate(decoder.samples):
            (folder / f"sample-{number}").write_bytes(SEPARATOR.join(sample))
            (folder / f"whole-{number}").write_bytes(decoder.join(sample))
        options = ["-max_len=200000", "-rss_limit_mb=3000", "-timeout=20", "-len_control=0"]
        options += [f"-max_total_time={seconds}", "-print_final_stats=1", "-verbosity=0"]
        arguments = [sys.argv[0], *options, str(folder)]
        atheris.Setup(arguments, one_input, custom_mutator=custom)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
