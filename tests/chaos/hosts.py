"""The hosts of the actors, with a record of what was accepted and of what was ingested.

Everything else is the real thing. ``ports.json`` in the folder of records names the port of the
proxy through which each kind of process reaches its server; without it they go the real way.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from deploy import components, hosts
from deploy.components import Server
from deploy.config import RunConfig
from deploy.tracker import GATE, LEARNER, SELFPLAY
from replay.buffer import Entry, ReaderState, TrajectoryReader, TrajectoryWriter
from tests.chaos.records import Accepted, Ingested, Log, Logs, Restored, Snapshot, digest_of

if TYPE_CHECKING:
    from league.messages import GateReply, GateRequest
    from learner.messages import LearnReply, LearnRequest

PORTS = "ports.json"


class RecordingWriter:
    """A TrajectoryWriter that records what was accepted, the moment it is known."""

    def __init__(self, writer: TrajectoryWriter, producer: str, log: Log) -> None:
        self._writer, self._producer, self._log = writer, producer, log
        self._waiting: deque[tuple[int, str]] = deque()
        self._sequence = self._num_recorded = 0

    def append(self, payload: bytes) -> None:
        """See TrajectoryWriter."""
        self._writer.append(payload)
        self._sequence += 1
        self._waiting.append((self._sequence, digest_of(payload)))

    def poll(self, timeout_s: float) -> int:
        """See TrajectoryWriter."""
        try:
            return self._writer.poll(timeout_s)
        finally:
            self._record()

    def _record(self) -> None:
        count = self._writer.num_accepted - self._num_recorded
        self._num_recorded += count
        now = time.time()
        taken = [self._waiting.popleft() for _ in range(count)]
        if taken:
            self._log.write(
                *(Accepted(self._producer, number, digest, now) for number, digest in taken)
            )

    @property
    def num_pending(self) -> int:
        """See TrajectoryWriter."""
        return self._writer.num_pending

    @property
    def num_accepted(self) -> int:
        """See TrajectoryWriter."""
        return self._writer.num_accepted

    def close(self) -> None:
        """See TrajectoryWriter."""
        self._writer.close()


class RecordingReader:
    """A TrajectoryReader that records what it hands out."""

    def __init__(self, reader: TrajectoryReader, log: Log) -> None:
        self._reader, self._log = reader, log

    @property
    def state(self) -> ReaderState:
        """See TrajectoryReader."""
        return self._reader.state

    @state.setter
    def state(self, state: ReaderState) -> None:
        self._reader.state = state

    def read(self, max_entries: int, timeout_s: float) -> list[Entry]:
        """See TrajectoryReader."""
        entries = self._reader.read(max_entries, timeout_s)
        if entries:
            self._log.write(
                *(Ingested(e.producer, e.sequence, digest_of(e.payload)) for e in entries)
            )
        return entries

    def rebuild(self) -> Iterator[Entry]:
        """See TrajectoryReader."""
        return self._reader.rebuild()

    def close(self) -> None:
        """See TrajectoryReader."""
        self._reader.close()


def through_proxy(server: Server, logs: Logs, kind: str) -> Server:
    """Return ``server`` as processes of ``kind`` reach it."""
    path = logs.folder / PORTS
    if not path.exists():
        return server
    port = json.loads(path.read_text())[kind]
    return dataclasses.replace(server, url=f"redis://127.0.0.1:{port}")


class RecordedSelfPlayHost(hosts.SelfPlayHost):
    """Hosts a SelfPlayWorker."""

    def __init__(self, config: RunConfig, server: Server, slot: int, epoch: int) -> None:
        logs = Logs.of_environment()
        logs.note_start(SELFPLAY, slot, epoch)
        make = components.redis_writer

        def recording(server: Server, config: RunConfig, producer: str, slot: int) -> object:
            log = logs.accepted_log(slot, epoch)
            return RecordingWriter(make(server, config, producer, slot), producer, log)

        components.redis_writer = recording  # type: ignore[assignment]
        super().__init__(config, through_proxy(server, logs, SELFPLAY), slot, epoch)


class RecordedGateHost(hosts.GateHost):
    """Hosts a GateWorker whose undecided gates promote: there has to be something to announce."""

    def __init__(
        self, config: RunConfig, server: Server, epoch: int, snapshot: bytes | None
    ) -> None:
        logs = Logs.of_environment()
        logs.note_start(GATE, 0, epoch)
        super().__init__(config, through_proxy(server, logs, GATE), epoch, snapshot)

    def step(self, request: GateRequest) -> GateReply:
        """See GateWorker."""
        reply = super().step(request)
        for number, found in enumerate(reply.outcomes):
            if found.outcome == "undecided":
                reply.outcomes[number] = msgspec.structs.replace(found, outcome="promoted")
        return reply


class RecordedLearnerHost(hosts.LearnerHost):
    """Hosts the Learner."""

    def __init__(
        self, config: RunConfig, server: Server, epoch: int, snapshot: bytes | None
    ) -> None:
        logs = Logs.of_environment()
        logs.note_start(LEARNER, 0, epoch)
        self._log = logs.ingested_log(epoch)
        self._log.write(Restored("" if snapshot is None else digest_of(snapshot)))
        make = components.redis_reader

        def recording(server: Server, config: RunConfig) -> RecordingReader:
            self._reader = RecordingReader(make(server, config), self._log)
            return self._reader

        components.redis_reader = recording
        super().__init__(config, through_proxy(server, logs, LEARNER), epoch, snapshot)

    def step(self, request: LearnRequest) -> LearnReply:
        """See Learner."""
        reply = super().step(request)
        if reply.snapshot:
            self._log.write(Snapshot(digest_of(reply.snapshot), dict(self._reader.state.marks)))
        return reply
