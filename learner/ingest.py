"""Entries -> window: every accepted game once, counted, checked and kept.

What is no game of this run is passed over, counted by reason and said in words: somebody may write
into the stream, or another version of the program, and the games behind it are good ones.

Room: learner. May import: numpy, msgspec, engine, replay, learner (targets, features,
equity, config).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from engine.game import GameSpec
from learner.config import LearnerConfig
from learner.equity import EquityState, EquityTable, equity_table
from learner.features import first_mismatch
from learner.messages import IngestedTotals
from learner.targets import facts_dtype, facts_of, reward_differences
from replay.buffer import Entry, ReaderState, TrajectoryReader
from replay.codec import decode
from replay.controller import ControllerState, SamplesPerInsert
from replay.marks import START, cursor_key
from replay.split import SplitWindow
from replay.trajectory import POLICY, VALUE, Trajectory, TrajectoryError
from replay.window import check_rules

ENTRIES_PER_READ = 256
"""Entries read between two updates at the most."""
_REWARD_MEMORY = 0.999
"""Weight that the sums of the reward terms keep with each game."""
_FIRST_NOTES = 3
"""Rejected entries of each reason that are told one by one; later ones at powers of ten."""
_MAX_NOTE = 300
_MAX_COUNT = 1 << 40
"""No game has so many plies or simulations."""


class IngestState(msgspec.Struct, kw_only=True):
    """What a snapshot stores; the window itself is read again from the stream."""

    reader: ReaderState
    controller: ControllerState
    totals: IngestedTotals
    reward_sums: list[float]
    equity: EquityState | None


class _Opened(NamedTuple):
    """A game that belongs here."""

    trajectory: Trajectory
    facts: NDArray[Any] | None


class _Place(NamedTuple):
    """How far a reader has come."""

    lineage: str
    cursors: dict[str, str]
    num_lost: int

    @classmethod
    def of(cls, state: ReaderState) -> _Place:
        return cls(state.lineage, dict(state.cursors), state.num_lost)

    def behind(self, before: _Place) -> list[str]:
        """Return the shards whose cursors went back although the streams are the same."""
        if self.lineage != before.lineage:
            return []
        return [
            shard
            for shard, cursor in before.cursors.items()
            if cursor_key(self.cursors.get(shard, START)) < cursor_key(cursor)
        ]


class Ingest:
    """Reads, decodes, checks and counts games, and keeps them in the split window."""

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
        self._config, self._spec, self._game, self._run_id = config, spec, game, run_id
        self._rules = spec.describe(game)
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
        self._notes: list[str] = []
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

        Returns how many there were, rejected ones included.
        """
        before = _Place.of(self._reader.state)
        entries = self._reader.read(ENTRIES_PER_READ, timeout_s)
        self._note_losses(before)
        for entry in entries:
            self.totals.entries += 1
            try:
                self._ingest(entry)
            except TrajectoryError as error:
                self._reject(entry, error)
        self.totals.lost_entries = self._reader.state.num_lost
        return len(entries)

    def take_notes(self) -> tuple[str, ...]:
        """Return what the log has to say since the last call."""
        notes, self._notes = tuple(self._notes), []
        return notes

    def _note_losses(self, before: _Place) -> None:
        """Say what is gone since ``before``; the marks see to it that nothing counts twice."""
        now, held = _Place.of(self._reader.state), self.split.training.num_games
        if before.lineage and now.lineage != before.lineage:
            self._notes.append(
                f"the streams were lost and begin anew: the {held} games of the window are in "
                "memory alone until newer ones take their places"
            )
        for shard in now.behind(before):
            self._notes.append(
                f"stream {shard} ends before what was read of it (an older copy, or lost): it is "
                "read again from its start, repeats are dropped"
            )
        if now.num_lost > before.num_lost:
            self._notes.append(
                f"{now.num_lost - before.num_lost} accepted trajectories are gone, "
                f"{now.num_lost} in all"
            )

    def _reject(self, entry: Entry, error: TrajectoryError) -> None:
        if not entry.fault:
            self.split.skip(entry)
        rejected, reason = self.totals.rejected, error.reason
        count = rejected[reason] = rejected.get(reason, 0) + 1
        if count <= _FIRST_NOTES or count == 10 ** (len(str(count)) - 1):
            writer = f" of {entry.producer}" if entry.producer else ""
            text = f"entry {entry.cursor}{writer} rejected: {error} ({reason}, number {count})"
            self._notes.append(text[:_MAX_NOTE])

    def _ingest(self, entry: Entry) -> None:
        """Count and keep a game. Raises TrajectoryError, and nothing has changed then."""
        trajectory, facts = self._open(entry)
        training = self.split.training
        before = training.num_games
        window = self.split.add(entry, trajectory, facts)
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
        totals.evicted_games += before + 1 - training.num_games
        totals.window_games = training.num_games
        # The table makes targets: it may not see held-out games either.
        self.controller.inserted(eligible)
        if self.equity is not None:
            self.equity.observe(header.hand_ends, header.returns)

    def _open(self, entry: Entry) -> _Opened:
        """Return the game in ``entry``. Raises TrajectoryError for what is no game of this run."""
        if entry.fault:
            raise TrajectoryError(entry.fault, "stray")
        trajectory = decode(entry.payload, self._spec)
        if trajectory.header.run_id != self._run_id:
            raise TrajectoryError(
                f"belongs to run {trajectory.header.run_id!r}, this is run {self._run_id!r}", "run"
            )
        check_rules(trajectory.header, self._rules)
        _check_header(trajectory, self._spec)
        _check_visits(trajectory, self._spec, self._game)
        return _Opened(trajectory, facts_of(trajectory, self._config))

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
        before = _Place.of(state.reader)
        self._rebuild()
        self._note_losses(before)
        totals = self.totals
        # A snapshot of an earlier program did not count entries; it had rejected none.
        totals.entries = max(totals.entries, totals.games + sum(totals.rejected.values()))
        totals.window_games = self.split.training.num_games
        totals.evicted_games = totals.games - totals.held_out_games - totals.window_games
        self.controller = self._new_controller(state.controller)
        self.controller.rebuilt(self.split.training.num_eligible)
        self.totals.lost_entries = self._reader.state.num_lost

    def _rebuild(self) -> None:
        self.split.clear()
        refused = 0
        for entry in self._reader.rebuild():
            try:
                self.split.add(entry, *self._open(entry))
            except TrajectoryError as error:  # counted when it was read, or of an older program
                self.split.skip(entry)
                refused += 1
                words = str(error)
        if refused:
            text = f"rebuilding the window passed over {refused} entries, the last one: {words}"
            self._notes.append(text[:_MAX_NOTE])


def _check_header(trajectory: Trajectory, spec: GameSpec) -> None:
    """Raise TrajectoryError for facts of the game that no game of ``spec`` has."""
    header = trajectory.header
    counts = (header.num_plies, header.num_simulations, header.num_full_searches)
    if not all(0 <= count <= _MAX_COUNT for count in counts):
        raise TrajectoryError(f"plies, simulations, full searches {counts}: no game has these")
    if any(len(terms) != len(spec.reward_terms) for terms in header.reward_terms):
        raise TrajectoryError(f"reward terms {header.reward_terms}, expected {spec.reward_terms}")
    figures = [*header.returns, *(term for terms in header.reward_terms for term in terms)]
    if not np.all(np.isfinite(figures)):
        raise TrajectoryError(f"returns {header.returns}, reward terms {header.reward_terms}")
    rows = [row for ends in header.hand_ends for row in ends]
    if rows and not 0 <= min(rows) <= max(rows) < spec.num_equity_states:
        raise TrajectoryError(
            f"equity rows {min(rows)} to {max(rows)}: allowed are 0 to {spec.num_equity_states - 1}"
        )


def _check_visits(trajectory: Trajectory, spec: GameSpec, game: Any) -> None:
    """Raise TrajectoryError for visits of actions that are not, or a policy without a visit."""
    examples = trajectory.examples
    counts: NDArray[np.int64] = examples["num_actions"].astype(np.int64)
    wrong = first_mismatch(spec, game, trajectory.views, examples["seat"], counts)
    if wrong >= 0:
        raise TrajectoryError(
            f"{counts[wrong]} visit counts of seat {examples['seat'][wrong]} in a position that "
            "gives it another number of actions",
            "visits",
        )
    row = np.repeat(np.arange(len(counts)), counts)
    totals = np.bincount(row, weights=trajectory.visits, minlength=len(counts))
    policy = (trajectory.examples["flags"] & POLICY) != 0
    if np.any(totals[policy] == 0):
        raise TrajectoryError("a policy example without a visit", "visits")
