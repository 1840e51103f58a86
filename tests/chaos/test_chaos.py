"""A run with a Ray and a server of its own, attacked for a minute at random.

Behaviours checked (``make chaos`` does it for ten minutes, on a cluster of two nodes too):
* self-play workers, learner, gate, owner, supervisor, server and Ray are killed and stopped, at
  least five times; the run goes on by itself, or is resumed where its supervisor was killed
* everything accepted is ingested once, with its content, and has its place in the sums
* every worker delivers soon again; promotions and totals are those of the manifest; nothing is left
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.chaos.attack import Attack
from tests.chaos.faults import KILL, ONE_MINUTE
from tests.chaos.stages import LocalStage
from tests.system.running import warm_kernels

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(1200)]

SEED = 5


def test_run_that_is_attacked_for_a_minute_loses_nothing(tmp_path: Path) -> None:
    warm_kernels()
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    attack = Attack(LocalStage(tmp_path, rng), ONE_MINUTE, rng, print)
    proofs = attack.run()
    print(*proofs, sep="\n")
    assert [str(proof) for proof in proofs if not proof.holds] == []
    assert attack.unrecovered == []
    assert sum(fault.action == KILL for fault in attack.faults) >= 5
