"""Hostile bytes: whatever is read, the documented error and nothing else.

Behaviours checked, for trajectories, segments, models and their metadata, snapshots of learner,
gate and worker, manifests, migrations, status, evaluations, process books, the server's record and
configurations:
* changed samples and noise are read, or refused by the decoder's own error
* the same in a process with bounded memory and time
* small inputs that ask for much (bombs, depth, huge numbers and shapes), that name other files, or
  that hold what no program of ours writes: refused, each within two seconds
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.deploy.waiting import ROOT
from tests.hostile.campaign import changed
from tests.hostile.decoders import decoders

NAMES = sorted(decoders())
LIMIT_S = 800.0
"""For some seconds of CPU time: other tests may have the machine."""


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_read(name: str) -> None:
    decoder = decoders()[name]
    for sample in decoder.samples:
        if name == "migrated manifest":
            with pytest.raises(decoder.errors, match="nothing to do"):
                decoder.read(decoder.join(sample))
        else:
            decoder.read(decoder.join(sample))


def read(name: str, data: bytes) -> None:
    """Let a decoder read ``data``; anything but a documented error that says something fails."""
    errors = decoders()[name].errors
    said = "nothing was refused"
    try:
        decoders()[name].read(data)
    except errors as error:
        said = str(error)
    assert said.strip()


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_changed_samples_raise_the_documented_error_or_nothing(name: str, seed: int) -> None:
    read(name, changed(decoders()[name], seed))


@pytest.mark.parametrize("name", NAMES)
@given(noise=st.binary(max_size=200))
@settings(max_examples=25)
def test_noise_raises_the_documented_error_or_nothing(name: str, noise: bytes) -> None:
    decoder = decoders()[name]
    read(name, noise)
    read(name, decoder.join([noise] * len(decoder.samples[0])))


def bounded(module: str, *arguments: str) -> str:
    """Run a module of this folder, which bounds its own memory; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.hostile.{module}", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.timeout(900)
def test_changed_samples_take_bounded_memory_and_time() -> None:
    said = bounded("campaign", "200")
    assert said.count(" 0 findings") == len(NAMES)


@pytest.mark.timeout(900)
def test_bombs_are_refused_within_bounded_memory_and_time() -> None:
    said = bounded("bombs")
    assert said.count(": refused\n") > 100
