"""The owner of a run under attack: deploy.cluster with recording hosts, and a record of its words.

``python -m tests.chaos.owner RUN_DIR ...`` takes the arguments of deploy.cluster.
"""

from __future__ import annotations

import sys
import time

from deploy import cluster
from deploy.owner import Owner
from deploy.tracker import Tracker
from league.messages import LeagueState
from tests.chaos.hosts import RecordedGateHost, RecordedLearnerHost, RecordedSelfPlayHost
from tests.chaos.records import Champion, Logs, Said


def record_words() -> None:
    """Record every event in words, and every champion that actors are told of."""
    log = Logs.of_environment().owner_log()
    say, league = Tracker.say, Owner.league
    told: set[int] = set()

    def recorded_say(self: Tracker, message: str) -> None:
        log.write(Said(message, time.time()))
        say(self, message)

    def recorded_league(self: Owner) -> LeagueState:
        state = league(self)
        if state.champion not in told:
            told.add(state.champion)
            log.write(Champion(state.champion, time.time()))
        return state

    Tracker.say = recorded_say  # type: ignore[method-assign]
    Owner.league = recorded_league  # type: ignore[method-assign]


def main() -> int:
    record_words()
    cluster.SelfPlayHost = RecordedSelfPlayHost  # type: ignore[misc]
    cluster.GateHost = RecordedGateHost  # type: ignore[misc]
    cluster.LearnerHost = RecordedLearnerHost  # type: ignore[misc]
    return cluster.main()


if __name__ == "__main__":
    sys.exit(main())
