"""The processes of group ``ingest``: replayers of recorded games, and the learner's ingest path.

Room: deploy. Both are the product's own parts. A replayer is a ``RedisWriter`` with a producer of
its own and the outbox of a worker; all of them share one process, since sending costs little. The
other process has what stands before an update in the learner: ``RedisReader``, ``Ingest`` with its
split window, and after every read as many batches as samples per insert allow, up to the inputs of
the network. There is no update: torch is not loaded.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from deploy import components
from deploy.bench.setup import RUN_ID
from deploy.components import Server
from deploy.config import RunConfig
from learner.batches import make_batch
from learner.features import FeatureMaker
from learner.ingest import Ingest

BATCH_ROWS = 1024
LIMIT_S = 240.0
"""A phase that takes longer has failed."""
_READ_WAIT_S = 0.05


class Play(msgspec.Struct, frozen=True, kw_only=True):
    """Order to the replayers: send ``num_games`` in all."""

    phase: str
    num_replayers: int
    num_games: int


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What the replayers did."""

    num_accepted: int
    """Games that the server confirmed to be on disk."""
    num_resent: int
    wall_s: float
    cpu_s: float


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """Order to the learner: ingest until it has ``num_games`` in all."""

    num_games: int


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """What the learner did for one order. Counts are differences of its totals."""

    num_games: int
    num_examples: int
    """Eligible: with a policy target."""
    num_value_examples: int
    num_lost: int
    window_positions: int
    """Eligible training positions held at the end."""
    wall_s: float
    cpu_s: float
    """Of the whole process."""
    read_cpu_s: float
    """Of the reads: received, decoded, checked, kept."""
    sample_cpu_s: list[float]
    """Per batch of BATCH_ROWS searched positions: drawing and gathering."""
    sample_wall_s: list[float]
    feature_cpu_s: float
    """Of all batches: inputs and targets from the gathered rows."""


class Replayers:
    """Sends recorded games as fast as the server takes them, over and over."""

    def __init__(self, config: RunConfig, server: Server, payloads: list[bytes]) -> None:
        self._config, self._server = config, server
        self._payloads = payloads
        self._next = 0

    def __call__(self, order: Play) -> Played:
        """Send the games of ``order`` and wait until all are accepted. Raises TimeoutError."""
        began, cpu = time.perf_counter(), time.process_time()
        writers = [self._writer(order.phase, slot) for slot in range(order.num_replayers)]
        bound = self._config.self_play.outbox_games + self._config.self_play.games
        unsent = [len(range(i, order.num_games, len(writers))) for i in range(len(writers))]
        while any(unsent) or any(writer.num_pending for writer in writers):
            for slot, writer in enumerate(writers):
                while unsent[slot] and writer.num_pending < bound:
                    writer.append(self._payloads[self._next % len(self._payloads)])
                    self._next += 1
                    unsent[slot] -= 1
                writer.poll(0.0)
            if time.perf_counter() - began > LIMIT_S:
                raise TimeoutError(f"{sum(w.num_pending for w in writers)} games not accepted")
        played = Played(
            num_accepted=sum(writer.num_accepted for writer in writers),
            num_resent=sum(getattr(writer, "num_resent", 0) for writer in writers),
            wall_s=time.perf_counter() - began,
            cpu_s=time.process_time() - cpu,
        )
        for writer in writers:
            writer.close()
        return played

    def _writer(self, phase: str, slot: int) -> Any:
        producer = components.producer_name(f"replayer-{phase}", slot, 1)
        return components.redis_writer(self._server, self._config, producer, slot)


class IngestPath:
    """The learner without its network."""

    def __init__(self, config: RunConfig, server: Server) -> None:
        parts, self._config = components.parts_of(config), config.learner
        reader = components.redis_reader(server, config)
        self._ingest = Ingest(config.learner, parts.spec, parts.game, reader, RUN_ID)
        self._features = FeatureMaker(parts.spec, parts.game, parts.encoder)
        self._rng = np.random.default_rng(config.seed)

    def __call__(self, order: Read) -> Ingested:
        """Read and sample in turn until all games are in. Raises TimeoutError."""
        before = msgspec.structs.replace(self._ingest.totals)
        sample_cpu: list[float] = []
        sample_wall: list[float] = []
        read_s = feature_s = 0.0
        began, cpu = time.perf_counter(), time.process_time()
        while self._ingest.totals.games < order.num_games:
            start = time.process_time()
            self._ingest.read(_READ_WAIT_S)
            read_s += time.process_time() - start
            while self._ingest.controller.may_sample(BATCH_ROWS):
                feature_s += self._sample(sample_cpu, sample_wall)
            if time.perf_counter() - began > LIMIT_S:
                raise TimeoutError(f"{self._ingest.totals.games} of {order.num_games} games came")
        totals = self._ingest.totals
        return Ingested(
            num_games=totals.games - before.games,
            num_examples=totals.examples - before.examples,
            num_value_examples=totals.value_examples - before.value_examples,
            num_lost=totals.lost_entries - before.lost_entries,
            window_positions=self._ingest.split.training.num_eligible,
            wall_s=time.perf_counter() - began,
            cpu_s=time.process_time() - cpu,
            read_cpu_s=read_s,
            sample_cpu_s=sample_cpu,
            sample_wall_s=sample_wall,
            feature_cpu_s=feature_s,
        )

    def _sample(self, cpu: list[float], wall: list[float]) -> float:
        """Make one batch; append the times of sampling, return the processor time of the rest."""
        window, config = self._ingest.split.training, self._config
        equity = self._ingest.equity
        started, start = time.perf_counter(), time.thread_time()
        batch = window.gather(window.sample(self._rng, BATCH_ROWS))
        gathered = time.thread_time()
        wall.append(time.perf_counter() - started)
        cpu.append(gathered - start)
        self._ingest.controller.sampled(BATCH_ROWS)
        rows = None if equity is None else equity.probabilities
        make_batch(batch, self._features, config, rows, bootstrap=False)
        return time.thread_time() - gathered


def serve(connection: Connection, role: str, config: bytes, url: str, games: str) -> None:
    """Be the replayers or the learner: answer orders until the connection closes."""
    settings = msgspec.json.decode(config, type=RunConfig)
    server = Server(url, RUN_ID)
    answer: Callable[[Any], Any]
    order_type: Any
    if role == "learner":
        answer, order_type = IngestPath(settings, server), Read
    else:
        payloads = msgspec.msgpack.decode(Path(games).read_bytes(), type=list[bytes])
        answer, order_type = Replayers(settings, server, payloads), Play
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            order = msgspec.msgpack.decode(connection.recv_bytes(), type=order_type)
            connection.send_bytes(msgspec.msgpack.encode(answer(order)))


Result = TypeVar("Result", Played, Ingested)
_numbers = count()


class Child(Generic[Result]):
    """One of the two processes, from the outside."""

    def __init__(
        self, role: str, result: type[Result], config: RunConfig, url: str, games: Path
    ) -> None:
        """Start it."""
        self._role = role
        self._result: type[Result] = result
        context = multiprocessing.get_context("spawn")
        self._connection, there = context.Pipe()
        arguments = (there, role, msgspec.json.encode(config), url, str(games))
        name = f"{role}-{next(_numbers)}"
        self._process = context.Process(target=serve, args=arguments, name=name, daemon=True)
        self._process.start()
        there.close()

    def ask(self, order: Play | Read) -> None:
        """Send an order."""
        self._connection.send_bytes(msgspec.msgpack.encode(order))

    def answer(self) -> Result:
        """Wait for the answer. Raises RuntimeError when there is none."""
        try:
            if not self._connection.poll(2 * LIMIT_S):
                raise RuntimeError(f"no answer from the {self._role} in {2 * LIMIT_S:g} s")
            return msgspec.msgpack.decode(self._connection.recv_bytes(), type=self._result)
        except EOFError:
            raise RuntimeError(f"the process of the {self._role} ended") from None

    def __enter__(self) -> Child[Result]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()
        self._process.join(2.0)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join()
        self._process.close()
