"""The actors of a run over Ray: started, called one short call at a time, replaced.

Room: deploy. Knows Ray and no decisions: what is asked and what replies mean is the owner's.

No long-running method: Ray restarts an actor by its constructor alone, and the reference to a
``run()`` would be lost with it. So every actor has exactly one short call in flight.

ray is imported inside the functions: it reads how to authenticate when it is loaded, and
deploy.ray_session has to decide that first.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from deploy.processes import ProcessMark, end
from deploy.ray_session import RayLostError

START_LIMIT_S = 300.0
"""A constructor may compile, load torch and rebuild a window."""
FIRST_STEP_LIMIT_S = 120.0
"""A first step loads machine code and models, and compiles what no warm-up has met."""
MAX_FAILED_STARTS = 5
"""Starts of one actor that never answered a step, one after another and through no fault of its
server, before the owner gives up."""
_MAX_DELAY_S = 20.0
_LONGEST_REASON = 300
_ROUND_S = 2.0
"""From one look at replies to the next; what is beyond was a pause of the owner's own."""
_MAX_LATE = 64
"""Calls of replaced actors whose replies are still listened for."""
_QUICK_S = 0.1
_PAUSE_S = 0.2
"""An actor that answers at once has nothing to do: it is not asked again for so long."""


class CrewError(RuntimeError):
    """An actor that cannot be started; says what it said."""


@dataclass
class Member:
    """One actor and its call in flight."""

    role: str
    slot: int
    epoch: int = -1
    handle: Any = None
    reference: Any = None
    method: str = ""
    sent_at: float = 0.0
    due_at: float = 0.0
    """Not called, or not started, before this time."""
    started_at: float = 0.0
    failed_starts: int = 0
    blamed: int = 0
    """Those of the failed starts, the last ones in a row, for which there was no excuse."""
    is_ready: bool = False
    has_stepped: bool = False
    process: ProcessMark | None = None
    """Where it runs, if that is this machine."""

    @property
    def idle(self) -> bool:
        """Whether it may be called now."""
        return (
            self.handle is not None and self.reference is None and time.monotonic() >= self.due_at
        )


Start = Callable[[Member], tuple[Any, int]]
"""``member -> (handle, epoch)``: starts the actor."""
Lost = Callable[[Member, str], None]
Excused = Callable[[Member, str], bool]
"""``(member, reason) -> whether its failure says nothing about it``: its server was away."""


class Crew:
    """All actors. ``start`` makes one; ``lost`` hears of every one that is gone."""

    def __init__(
        self,
        roles: list[tuple[str, int]],
        start: Start,
        lost: Lost,
        excused: Excused,
        step_limit_s: float,
    ) -> None:
        self.members = [Member(role, slot) for role, slot in roles]
        self._start = start
        self._lost = lost
        self._excused = excused
        self._step_limit_s = step_limit_s
        self._late: dict[Any, Member] = {}
        self._looked_at = time.monotonic()

    def start_missing(self) -> None:
        """Start every actor that is not there and due. Its first call is ``ready``."""
        for member in self.members:
            if member.handle is None and time.monotonic() >= member.due_at:
                member.is_ready = False
                member.started_at = time.monotonic()
                member.handle, member.epoch = self._start(member)
                self.call(member, "ready")

    def call(self, member: Member, method: str, *arguments: Any) -> None:
        """Send one call; the member must be idle."""
        member.method = method
        member.sent_at = time.monotonic()
        member.reference = getattr(member.handle, method).remote(*arguments)

    def wait(self, timeout_s: float) -> list[tuple[Member, str, Any]]:
        """Return the calls that were answered by now as (member, method, reply).

        Waits up to ``timeout_s`` for the first one. Actors that failed or did not answer in time
        are ended, and told to ``lost``.
        """
        import ray

        by_reference = {m.reference: m for m in self.members if m.reference is not None}
        answered: list[tuple[Member, str, Any]] = []
        if by_reference:
            references = list(by_reference)
            done, _ = ray.wait(references, num_returns=1, timeout=timeout_s)
            if done and len(references) > 1:
                done, _ = ray.wait(references, num_returns=len(references), timeout=0)
            for reference in done:
                self._collect(by_reference[reference], answered)
        else:
            time.sleep(timeout_s)
        self._forgive_own_pause()
        self._check_limits()
        return answered

    def _forgive_own_pause(self) -> None:
        """Give actors back the time in which this process was stopped, or waited for something.

        Their replies may have come long ago, but Ray sees them only little by little.
        """
        now = time.monotonic()
        paused_s = now - self._looked_at - _ROUND_S
        self._looked_at = now
        if paused_s > 0:
            for member in self.members:
                member.sent_at = min(member.sent_at + paused_s, now)

    def late_replies(self) -> list[tuple[Member, Any]]:
        """Return what steps of replaced actors were answered with by now; nobody waits for it.

        An actor that hung, or that lost the network, may wake beside its successor: now that it
        can be reached it is ended once more. The members are as they were when they were replaced,
        their epoch above all.
        """
        import ray
        from ray.exceptions import GetTimeoutError, RayError

        if not self._late:
            return []
        done, _ = ray.wait(list(self._late), num_returns=len(self._late), timeout=0)
        found: list[tuple[Member, Any]] = []
        for reference in done:
            member = self._late.pop(reference)
            member.reference = None
            with contextlib.suppress(RayError, GetTimeoutError):
                found.append((member, ray.get(reference, timeout=10)))
                self._kill(member)
        return found

    def _collect(self, member: Member, answered: list[tuple[Member, str, Any]]) -> None:
        import ray
        from ray.exceptions import GetTimeoutError, RayError

        reference, member.reference = member.reference, None
        try:
            reply = ray.get(reference, timeout=10)
        except (RayError, GetTimeoutError) as error:
            if "its owner has died" in str(error):  # the owner is this process: Ray has lost it
                raise RayLostError(_in_words(error)) from None
            self.replace(member, _in_words(error))
            return
        now = time.monotonic()
        if member.method == "ready":
            member.is_ready = True
        elif member.method == "step":
            member.failed_starts = member.blamed = 0
            member.has_stepped = True
            if now - member.sent_at < _QUICK_S:
                member.due_at = now + _PAUSE_S
        answered.append((member, member.method, reply))

    def _check_limits(self) -> None:
        now = time.monotonic()
        for member in self.members:
            if member.reference is not None:
                limit_s = self._limit_s(member)
                if now - member.sent_at > limit_s:
                    self.replace(member, f"no reply to {member.method} for {limit_s:g} s")

    def _limit_s(self, member: Member) -> float:
        if member.method == "ready":
            return START_LIMIT_S
        if not member.has_stepped:
            return max(FIRST_STEP_LIMIT_S, self._step_limit_s)
        return self._step_limit_s

    def replace(self, member: Member, reason: str) -> None:
        """End an actor; ``start_missing`` makes the next one, at once or, if starts fail, later.

        Raises CrewError when its starts have failed too often. A server that is away may be so for
        hours: what fails for that is tried again and again.
        """
        if member.reference is not None and member.method == "step":
            self._late[member.reference] = replace(member)
            if len(self._late) > _MAX_LATE:
                self._late.pop(next(iter(self._late)))
        self._kill(member)
        member.is_ready = member.has_stepped = False
        member.failed_starts += 1
        if member.failed_starts > 1:
            member.due_at = time.monotonic() + min(_MAX_DELAY_S, 2.0 ** (member.failed_starts - 2))
        self._lost(member, reason)
        member.blamed = 0 if self._excused(member, reason) else member.blamed + 1
        if member.blamed >= MAX_FAILED_STARTS:
            raise CrewError(f"{member.role} {member.slot} failed {member.blamed} times: {reason}")

    def end(self) -> None:
        """End all actors."""
        for member in self.members:
            self._kill(member)

    def _kill(self, member: Member) -> None:
        import ray

        if member.handle is not None:
            ray.kill(member.handle, no_restart=True)
        if member.process is not None:
            # Ray asks the process to end; one that hangs does not hear it.
            end([member.process], 0.0, gently=False)
        member.handle = member.reference = member.process = None


def _in_words(error: Exception) -> str:
    """Return what Ray says in one line: a remote exception stands at the end of its text."""
    text = str(error).strip()
    if "its worker process has died" in text:
        return "its process died"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:_LONGEST_REASON]
