"""What Ray runs: thin hosts of the plain classes, one short call at a time.

Room: deploy. Knows no Ray itself. Each host builds its component in the constructor, answers
``ready`` once, and then ``step`` again and again. A host whose owner has not called for
``runtime.owner_silence_s`` ends its process: a worker on a lost node must not play for ever.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from typing import TYPE_CHECKING

import msgspec

from deploy import components
from deploy.components import PatientModelStore, Server
from deploy.config import RunConfig
from deploy.processes import ProcessMark, mark

if TYPE_CHECKING:
    from actors.messages import StepReply, StepRequest
    from league.messages import GateReply, GateRequest
    from learner.messages import LearnReply, LearnRequest

EXIT_SILENCE = 4
"""Exit code of a process whose owner went silent."""


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Where a host runs and with which code."""

    node: str
    process: ProcessMark | None
    engine_hash: str


class Watchdog:
    """Ends the process when nobody has called for ``limit_s``."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._called_at = time.monotonic()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def called(self) -> None:
        """Note a call of the owner."""
        self._called_at = time.monotonic()

    def _watch(self) -> None:
        while True:
            left_s = self._called_at + self._limit_s - time.monotonic()
            if left_s <= 0:
                os._exit(EXIT_SILENCE)
            time.sleep(min(left_s, 5.0))


class Host:
    """Common part: facts and watchdog. The component is built before the watchdog starts."""

    def __init__(self, config: RunConfig) -> None:
        self._watchdog = Watchdog(config.runtime.owner_silence_s)

    def ready(self) -> HostFacts:
        """Return the facts; answers only once the constructor is through."""
        from engine.jit import engine_hash

        self._watchdog.called()
        return HostFacts(node=platform.node(), process=mark(os.getpid()), engine_hash=engine_hash())


class SelfPlayHost(Host):
    """Hosts a SelfPlayWorker."""

    def __init__(self, config: RunConfig, server: Server, slot: int, epoch: int) -> None:
        node = platform.node()
        producer = components.producer_name(node, slot, epoch)
        self._worker = components.build_worker(
            config,
            PatientModelStore(components.redis_models(server, config)),
            components.redis_writer(server, config, producer, slot),
            server.run_id,
            node=node,
            slot=slot,
            epoch=epoch,
        )
        super().__init__(config)

    def step(self, request: StepRequest) -> StepReply:
        """See SelfPlayWorker."""
        self._watchdog.called()
        return self._worker.step(request)


class GateHost(Host):
    """Hosts a GateWorker."""

    def __init__(
        self, config: RunConfig, server: Server, epoch: int, snapshot: bytes | None
    ) -> None:
        self._worker = components.build_gate(
            config,
            components.redis_models(server, config),
            server.run_id,
            epoch=epoch,
            snapshot=snapshot,
        )
        super().__init__(config)

    def step(self, request: GateRequest) -> GateReply:
        """See GateWorker."""
        self._watchdog.called()
        return self._worker.step(request)

    def snapshot(self) -> bytes:
        """See GateWorker."""
        self._watchdog.called()
        return self._worker.snapshot()


class LearnerHost(Host):
    """Hosts the Learner: the one process of a run that loads torch."""

    def __init__(
        self, config: RunConfig, server: Server, epoch: int, snapshot: bytes | None
    ) -> None:
        self._learner = components.build_learner(
            config,
            components.redis_reader(server, config),
            server.run_id,
            epoch=epoch,
            snapshot=snapshot,
        )
        super().__init__(config)

    def step(self, request: LearnRequest) -> LearnReply:
        """See Learner."""
        self._watchdog.called()
        return self._learner.step(request)


def environment(threads: int, *, gpu: bool, gives_back: bool = False) -> dict[str, str]:
    """Return the environment variables of an actor's process: threads, and no GPU but its own.

    Ray does not hide GPUs from actors that asked for none; a worker that grabs memory there
    would take it from the learner.

    With ``gives_back`` every block of 128 kB or more is mapped, and unmapped when it is freed.
    glibc begins with that threshold too, but raises it up to 32 MB with what is freed, and blocks
    below it leave holes in the heap that the next one, of another size, does not fit. That is for
    an actor that allocates large blocks seldom: a learner, which does so in every step, would fault
    their pages in anew each time.
    """
    # No NUMBA_* variable: they are part of the key of the kernel cache, and no kernel has threads.
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    variables = dict.fromkeys(names, str(threads))
    if not gpu:
        variables["CUDA_VISIBLE_DEVICES"] = ""
    if gives_back:
        variables["MALLOC_MMAP_THRESHOLD_"] = str(1 << 17)
    return variables
