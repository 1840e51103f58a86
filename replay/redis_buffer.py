"""Trajectories over Redis streams: the writer with its outbox.

Room: replay. May import: replay (the reader is in replay.redis_reader).

A batch is one transaction, XADD after XADD, and then ``WAITAOF 1 0`` on the same connection: once
that answers 1 the batch is in the append-only file on disk, and only then are its trajectories
accepted. Replies are awaited without blocking, so that a worker plays on while the disk works.

* All or nothing: were one entry of a batch refused and the next one taken, the later would set the
  reader's mark and the earlier one, sent again, would be dropped as a repeat. The transaction is
  opened in a round trip of its own, because a server that refuses MULTI (while it loads, say) might
  take the XADDs behind it.
* No confirmation in time: confirmation is asked for again, nothing is sent again.
* Connection lost: everything unconfirmed is sent again, in order; marks drop what is repeated.
"""

from __future__ import annotations

import enum
import itertools
import random
import threading
import time
from collections import deque

from replay.buffer import OutboxFull
from replay.config import ReplayConfig
from replay.redis_keys import PAYLOAD, PRODUCER, SEQUENCE, RunKeys
from replay.redis_link import Command, Link, ReplyError, StoreUnreachable

_FIRST_DELAY_S, _LAST_DELAY_S = 0.05, 2.0
_PROMPT_S = 0.02
"""A server in good health has answered all but WAITAOF by then; worth waiting for in every poll."""


class Backoff:
    """When the next attempt is due: at once, then after delays that double up to a bound.

    Each delay is drawn from the upper half of what it may be: hundreds of workers that lost one
    server must not knock at the next one in step.
    """

    def __init__(self) -> None:
        self._delay_s, self._due = _FIRST_DELAY_S, 0.0
        self._random = random.Random()

    def failed(self) -> None:
        """Put the next attempt off."""
        self._due = time.monotonic() + self._delay_s * self._random.uniform(0.5, 1.0)
        self._delay_s = min(2 * self._delay_s, _LAST_DELAY_S)

    def succeeded(self) -> None:
        """Start over with the shortest delay."""
        self._delay_s, self._due = _FIRST_DELAY_S, 0.0

    def wait_s(self) -> float:
        """Return the seconds until the next attempt is due; 0 when it is."""
        return max(0.0, self._due - time.monotonic())


class _Stage(enum.Enum):
    IDLE = 0
    OPENING = 1
    """MULTI was sent."""
    WRITING = 2
    """The batch was sent, with WAITAOF behind it."""
    CONFIRMING = 3
    """The batch is in the stream; WAITAOF has not answered."""


class RedisWriter:
    """TrajectoryWriter over one shard of a run.

    Args:
        url: address of the server.
        run_id: part of every key.
        producer: incarnation of the worker; unique for every start of a process.
        shard: the one shard that this producer writes to.
        config: time limits, batch size, and whether a server that cannot confirm will do.
        password: kept out of ``url`` so that the address can be shown.
        max_pending: bound of the outbox.
        first_sequence: number of the first trajectory.
    """

    def __init__(
        self,
        url: str,
        run_id: str,
        producer: str,
        *,
        shard: str = "0",
        config: ReplayConfig | None = None,
        password: str = "",
        max_pending: int = 512,
        first_sequence: int = 1,
    ) -> None:
        self._config = config or ReplayConfig()
        self._url, self._password, self._producer = url, password, producer.encode()
        self._stream = RunKeys(run_id).stream(shard)
        self._max_pending, self._sequence = max_pending, first_sequence - 1
        self._outbox: deque[tuple[int, bytes]] = deque()
        self._link: Link | None = None
        self._backoff = Backoff()
        self._pause = threading.Event()
        self._stage, self._reply_due = _Stage.IDLE, 0.0
        self._num_written = 0  # from the left of the outbox: in the stream, not confirmed
        self._num_in_batch = 0
        self._num_accepted = 0
        self.num_resent = 0
        """Trajectories that were sent once more because a connection was lost."""
        self.last_error = ""
        """The latest failure in words; empty while all is well."""

    def append(self, payload: bytes) -> None:
        """See TrajectoryWriter."""
        if len(self._outbox) >= self._max_pending:
            reason = self.last_error or "no confirmation yet"
            raise OutboxFull(f"{len(self._outbox)} trajectories wait for acceptance: {reason}")
        self._sequence += 1
        self._outbox.append((self._sequence, payload))

    def poll(self, timeout_s: float) -> int:
        """See TrajectoryWriter. Raises StoreRefused when the server wants no such client."""
        deadline = time.monotonic() + timeout_s
        while self._outbox:
            remaining = max(0.0, deadline - time.monotonic())
            before = self._num_accepted
            try:
                progressed = self._advance(remaining)
            except StoreUnreachable as error:
                self._drop_link(str(error))
                progressed = False
            accepted = self._num_accepted - before
            if accepted or (time.monotonic() >= deadline and not progressed):
                return accepted
        return 0

    @property
    def num_pending(self) -> int:
        """See TrajectoryWriter."""
        return len(self._outbox)

    @property
    def num_accepted(self) -> int:
        """See TrajectoryWriter."""
        return self._num_accepted

    def close(self) -> None:
        """See TrajectoryWriter."""
        if self._link is not None:
            self._link.close()
            self._link = None

    # --- one step ---------------------------------------------------------------------------------

    def _advance(self, timeout_s: float) -> bool:
        """Do what the stage asks for, waiting up to ``timeout_s``; return whether it moved on."""
        if self._stage is _Stage.IDLE and self._backoff.wait_s() > 0:
            self._pause.wait(min(timeout_s, self._backoff.wait_s()))
            return False
        if self._link is None:
            self._link = Link(self._url, self._password, self._config)
        if self._stage is _Stage.IDLE:
            self._begin(self._link)
        prompt = self._stage is not _Stage.CONFIRMING
        if not self._link.readable(max(timeout_s, _PROMPT_S) if prompt else timeout_s):
            if time.monotonic() > self._reply_due:
                raise StoreUnreachable("the server accepted a command and does not answer")
            return False
        if self._stage is _Stage.OPENING:
            return self._write(self._link)
        if self._stage is _Stage.WRITING:
            return self._read_write_replies(self._link)
        return self._read_confirmation(self._link)

    def _begin(self, link: Link) -> None:
        """Open a transaction for what is queued, or ask again for confirmation of what is not."""
        if len(self._outbox) > self._num_written:
            link.send([("MULTI",)])
            self._enter(_Stage.OPENING)
        else:
            link.send([self._confirmation()])
            self._enter(_Stage.CONFIRMING)

    def _write(self, link: Link) -> bool:
        opened = link.read()
        if isinstance(opened, ReplyError):
            return self._refused(opened, _Stage.IDLE)
        commands: list[Command] = []
        num_bytes, limit = 0, self._config.max_batch_mb << 20
        for sequence, payload in itertools.islice(self._outbox, self._num_written, None):
            num_bytes += len(payload)
            if commands and num_bytes > limit:
                break
            fields = (PRODUCER, self._producer, SEQUENCE, sequence, PAYLOAD, payload)
            commands.append(("XADD", self._stream, "*", *fields))
        self._num_in_batch = len(commands)
        commands += [("EXEC",), self._confirmation()]
        link.send(commands)
        self._enter(_Stage.WRITING)
        return True

    def _read_write_replies(self, link: Link) -> bool:
        # QUEUED for each entry, or the error for which EXEC is then discarded without a reason.
        queued = [link.read() for _ in range(self._num_in_batch)]
        executed = link.read()
        if isinstance(executed, ReplyError):
            reasons = (reply for reply in queued if isinstance(reply, ReplyError))
            return self._refused(next(reasons, executed), _Stage.CONFIRMING)
        self._num_written += self._num_in_batch
        self._enter(_Stage.CONFIRMING)
        return True

    def _read_confirmation(self, link: Link) -> bool:
        confirmed = link.read()
        self._enter(_Stage.IDLE)
        refused = isinstance(confirmed, ReplyError)
        if not refused and int(confirmed[0]) >= 1:
            self._accept()
            return True
        if self._config.accept_volatile:  # such a server is used as well as it goes
            self._accept()
            return True
        if refused:
            return self._refused(confirmed, _Stage.IDLE)
        self.last_error = f"no confirmation from the disk in {self._config.waitaof_timeout_s} s"
        return False

    def _accept(self) -> None:
        for _ in range(self._num_written):
            self._outbox.popleft()
        if self._num_written:
            self.last_error = ""
            self._backoff.succeeded()
        self._num_accepted += self._num_written
        self._num_written = 0

    # --- helpers ----------------------------------------------------------------------------------

    def _confirmation(self) -> Command:
        return ("WAITAOF", 1, 0, max(1, round(1000 * self._config.waitaof_timeout_s)))

    def _enter(self, stage: _Stage) -> None:
        self._stage = stage
        self._reply_due = time.monotonic() + self._config.socket_timeout_s
        if stage in (_Stage.WRITING, _Stage.CONFIRMING):
            self._reply_due += self._config.waitaof_timeout_s

    def _refused(self, error: ReplyError, following: _Stage) -> bool:
        """Nothing was taken (memory or disk full, loading): try again a little later."""
        self._enter(following)
        self.last_error = str(error)
        self._backoff.failed()
        return False

    def _drop_link(self, reason: str) -> None:
        self.close()
        in_doubt = self._num_in_batch if self._stage is _Stage.WRITING else 0
        self.num_resent += self._num_written + in_doubt
        self._num_written, self._stage = 0, _Stage.IDLE
        self.last_error = reason
        self._backoff.failed()
