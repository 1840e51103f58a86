"""An owner that reaches a learner that hangs as little as if the network between them were gone.

``python -m tests.system.cut_off_owner RUN_DIR ...``: tests.chaos.owner, whose learners are not
ended while a call is in flight, neither by Ray nor by a signal.
"""

from __future__ import annotations

import sys
from typing import Any

from deploy.crew import Crew, Member
from deploy.tracker import LEARNER
from tests.chaos import owner


def main() -> int:
    kill = Crew._kill
    unreached: list[Any] = []

    def kill_others(self: Crew, member: Member) -> None:
        if member.role == LEARNER and member.reference is not None:
            unreached.append(member.handle)  # Ray would end an actor that nobody holds
            member.handle = member.reference = member.process = None
        kill(self, member)

    Crew._kill = kill_others  # type: ignore[method-assign]
    return owner.main()


if __name__ == "__main__":
    sys.exit(main())
