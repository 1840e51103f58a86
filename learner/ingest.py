"""Entries -> window: every accepted game once, counted, checked and kept.

Room: learner. May import: numpy, msgspec, engine, replay, learner (targets, equity, config).
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from engine.game import GameSpec
from learner.config import LearnerConfig
from learner.equity import EquityState, EquityTable, equity_table
from learner.messages import IngestedTotals
from learner.targets import facts_dtype, facts_of, reward_differences
from replay.buffer import Entry, ReaderState, TrajectoryReader
from replay.codec import decode
from replay.controller import ControllerState, SamplesPerInsert
from replay.split import SplitWindow
from replay.trajectory import POLICY, VALUE, Trajectory, TrajectoryError

ENTRIES_PER_READ = 256
"""Entries read between two updates at the most."""
_REWARD_MEMORY = 0.999
"""Weight that the sums of the reward terms keep with each game."""


class IngestState(msgspec.Struct, kw_only=True):
    """What a snapshot stores; the window itself is read again from the stream."""

    reader: ReaderState
    controller: ControllerState
    totals: IngestedTotals
    reward_sums: list[float]
    equity: EquityState | None


class Ingest:
    """Reads, decodes, checks and counts games, and keeps them in the split window.

    Games of another run or other rules are an error and not skipped: all keys carry the run's id,
    so that a foreign game in the stream is a fault that somebody has to see.
    """

    def __init__(
        self,
        config: LearnerConfig,
        spec: GameSpec,
        game: Any,
        reader: TrajectoryReader,
        run_id: str,
    ) -> None:
        if config.min_window_positions > config.window_positions:
            raise ValueError(
                f"window_positions = {config.window_positions}: allowed are "
                f"{config.min_window_positions} (min_window_positions) and more"
            )
        self._config, self._spec, self._run_id = config, spec, run_id
        self._reader = reader
        self.equity: EquityTable | None = None
        if config.target == "equity":
            self.equity = equity_table(spec, game)
        self.split = SplitWindow(
            spec,
            game,
            config.window_positions,
            held_out_share=config.held_out_share,
            values_per_position=config.values_per_position,
            facts_dtype=facts_dtype(config),
        )
        self.controller = self._new_controller(None)
        self.totals = IngestedTotals()
        self._reward_sums = np.zeros(len(spec.reward_terms))

    def _new_controller(self, state: ControllerState | None) -> SamplesPerInsert:
        config = self._config
        return SamplesPerInsert(
            samples_per_insert=config.samples_per_insert,
            batch_size=config.batch_size,
            min_window=config.min_window_positions,
            slack=config.insert_slack_positions,
            state=state,
        )

    def read(self, timeout_s: float) -> int:
        """Ingest up to ENTRIES_PER_READ new entries; wait ``timeout_s`` for the first one.

        Returns how many there were. Raises TrajectoryError for a game that does not belong here.
        """
        entries = self._reader.read(ENTRIES_PER_READ, timeout_s)
        for entry in entries:
            self._ingest(entry)
        self.totals.lost_entries = self._reader.state.num_lost
        return len(entries)

    def _ingest(self, entry: Entry) -> None:
        trajectory = self._open(entry)
        window = self.split.add(entry, trajectory, facts_of(trajectory, self._config))
        header, flags = trajectory.header, trajectory.examples["flags"]
        eligible = trajectory.num_eligible()
        totals = self.totals
        totals.games += 1
        totals.plies += header.num_plies
        totals.simulations += header.num_simulations
        totals.full_searches += header.num_full_searches
        totals.examples += eligible
        totals.value_examples += int(np.count_nonzero((flags & (VALUE | POLICY)) == VALUE))
        self._reward_sums *= _REWARD_MEMORY
        self._reward_sums += reward_differences(header.reward_terms)
        if window is self.split.held_out:
            totals.held_out_games += 1
            return
        # The table makes targets: it may not see held-out games either.
        self.controller.inserted(eligible)
        if self.equity is not None:
            self.equity.observe(header.hand_ends, header.returns)

    def _open(self, entry: Entry) -> Trajectory:
        trajectory = decode(entry.payload, self._spec)
        if trajectory.header.run_id != self._run_id:
            raise TrajectoryError(
                f"entry {entry.cursor} of {entry.producer} belongs to run "
                f"{trajectory.header.run_id!r}, this is run {self._run_id!r}"
            )
        _check_visits(trajectory, entry)
        return trajectory

    def reward_shares(self) -> dict[str, float]:
        """Return the share of each reward term in the absolute differences between the sides."""
        total = float(self._reward_sums.sum())
        if total <= 0.0:
            return {}
        shares = (self._reward_sums / total).tolist()
        return dict(zip(self._spec.reward_terms, shares, strict=True))

    def state(self) -> IngestState:
        """Return what ``restore`` needs."""
        self.split.describe(self._reader.state)
        return IngestState(
            reader=self._reader.state,
            controller=self.controller.state,
            totals=self.totals,
            reward_sums=self._reward_sums.tolist(),
            equity=None if self.equity is None else self.equity.state(),
        )

    def restore(self, state: IngestState) -> None:
        """Go on from ``state``: rebuild the window from the stream, counting nothing twice.

        No credit is given for the rebuilt positions, so that there is no burst of updates.
        """
        self.totals = state.totals
        self._reward_sums = np.array(state.reward_sums)
        if self.equity is not None and state.equity is not None:
            self.equity.restore(state.equity)
        self._reader.state = state.reader
        self.split.clear()
        for entry in self._reader.rebuild():
            trajectory = self._open(entry)
            self.split.add(entry, trajectory, facts_of(trajectory, self._config))
        self.controller = self._new_controller(state.controller)
        self.controller.rebuilt(self.split.training.num_eligible)
        self.totals.lost_entries = self._reader.state.num_lost


def _check_visits(trajectory: Trajectory, entry: Entry) -> None:
    """Raise TrajectoryError for a policy example without a single visit."""
    counts: NDArray[np.int64] = trajectory.examples["num_actions"].astype(np.int64)
    row = np.repeat(np.arange(len(counts)), counts)
    totals = np.bincount(row, weights=trajectory.visits, minlength=len(counts))
    policy = (trajectory.examples["flags"] & POLICY) != 0
    if np.any(totals[policy] == 0):
        raise TrajectoryError(
            f"entry {entry.cursor} of {entry.producer}: a policy example without a visit"
        )
