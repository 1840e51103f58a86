"""Names of a run's keys on a Redis or Valkey server, and what a stream entry consists of.

Room: replay. Standard library only. Two runs on one server do not meet: every key carries the run.
"""

from __future__ import annotations

from dataclasses import dataclass

PRODUCER, SEQUENCE, PAYLOAD = b"p", b"s", b"d"
"""Fields of a stream entry."""


@dataclass(frozen=True)
class RunKeys:
    """Keys of one run. The braces keep them in one slot of a Redis cluster."""

    run_id: str

    def __post_init__(self) -> None:
        if not self.run_id or not set("{}: \n").isdisjoint(self.run_id):
            raise ValueError(
                f"run id {self.run_id!r}: allowed is text without braces, colons, gaps"
            )

    @property
    def prefix(self) -> str:
        """Start of every key of the run."""
        return f"cardleague:{{{self.run_id}}}:"

    def stream(self, shard: str) -> str:
        """Stream of one shard."""
        return f"{self.prefix}trajectories:{shard}"

    @property
    def lineage(self) -> str:
        """Random id that lives as long as the streams' contents."""
        return f"{self.prefix}lineage"

    @property
    def lease(self) -> str:
        """Who owns the run, and in which epoch."""
        return f"{self.prefix}lease"
