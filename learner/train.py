"""The learner: reads games, trains, exports versions. One short ``step`` at a time.

Room: learner. May import: numpy, torch, psutil, engine, replay, league (models), learner.

A plain class; whoever hosts it (one process, or an actor of a cluster) calls ``step``. Everything
follows from the seed and from the order of the entries and calls: sampling has a generator of its
own, the only one there is (the network has no dropout), and it is part of the snapshot.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from engine.evaluation import num_value_heads
from engine.game import Encoder, GameSpec
from engine.rules import num_sides
from league.models import ModelMetadata
from learner import checkpoint
from learner.batches import draw, make_batch, newest_share
from learner.calibrate import calibrated, calibration_positions
from learner.checkpoint import Identity, Progress, Snapshot, SnapshotFacts
from learner.config import LearnerConfig, NetworkConfig
from learner.device import Device
from learner.evaluate import evaluate, is_trusted, needs_playouts
from learner.export import Exporter, export_checked
from learner.features import FeatureMaker
from learner.ingest import Ingest
from learner.messages import LearnMetrics, LearnReply, LearnRequest
from learner.network import NetworkShape, build_network
from learner.pacing import Clock
from learner.targets import check_targets, effective_target
from learner.update import Updater, UpdateSums, learning_rate
from replay.buffer import TrajectoryReader

_WAIT_S = 0.2
"""Longest wait for entries while there is nothing to train on."""
DRAIN_LIMIT_S = 5.0
"""For what is read before the last snapshot; an owner in a hurry waits no longer for that one."""


class Learner:
    """Trains one run's network. See ``step``.

    Args:
        config: training, targets and window.
        network: shape of the network.
        spec: the game.
        game: its rule options.
        encoder: how views become numbers.
        reader: stream of accepted trajectories; with ``snapshot`` its state is taken from there.
        run_id: games and snapshots of other runs are refused.
        seed: weights and sampling follow from it.
        epoch: epoch of this start; requests of another one are refused.
        snapshot: what ``step`` returned before; None for a fresh run.

    Raises:
        ValueError: options that exclude one another, or a device that is not there.
        SnapshotError: a snapshot that is damaged or belongs to another learner.
    """

    def __init__(
        self,
        *,
        config: LearnerConfig,
        network: NetworkConfig,
        spec: GameSpec,
        game: Any,
        encoder: Encoder,
        reader: TrajectoryReader,
        run_id: str,
        seed: int,
        epoch: int,
        snapshot: bytes | None,
    ) -> None:
        num_values = num_value_heads(int(num_sides(game)))
        check_targets(config, num_values, spec.num_equity_states)
        self._config, self._epoch = config, epoch
        shape = NetworkShape.of(network, encoder.observation_size, encoder.action_size, num_values)
        self._identity = Identity(
            run_id=run_id,
            seed=seed,
            game=spec.name,
            rules=spec.describe(game),
            encoder=encoder.name,
            encoder_version=encoder.version,
            observation_size=encoder.observation_size,
            action_size=encoder.action_size,
            num_values=num_values,
            network=shape.describe(),
            target=effective_target(config.target, spec.num_equity_states),
        )
        self._device = Device(config.device, config.threads)
        self._updater = Updater(build_network(shape, seed), self._device, config)
        self._exporter = Exporter(shape)
        self._features = FeatureMaker(spec, game, encoder)
        self._generator = np.random.default_rng(seed)
        self._progress = Progress()
        self._ingest = Ingest(config, spec, game, reader, run_id)
        if snapshot is not None:
            self._restore(checkpoint.decode(snapshot, self._identity))

    # --- one call ---------------------------------------------------------------------------------

    def step(self, request: LearnRequest) -> LearnReply:
        """Ingest what is there and train within the bounds of ``request``; return what came of it.

        Ends early when a version is due (it is in the reply) and, without ``budget_s``, when there
        is nothing to train on. Version 0, the untrained network, is exported by the first call
        that asks for it, before anything else.

        Raises:
            ValueError: a request of another epoch, or a version number that was used before.
            ExportError: a version that does not answer as the network does.
        """
        if request.epoch != self._epoch:
            raise ValueError(f"request of epoch {request.epoch}: this learner has {self._epoch}")
        clock, sums = Clock(request), UpdateSums()
        if request.drain:
            with clock:
                self._drain()
        else:
            self._train(request, clock, sums)
        self._set_figures(sums.means())
        reply = LearnReply(epoch=self._epoch, device=self._device.name)
        with clock:
            if self._is_version_due(request):
                reply.model = self._export(request.next_version)
            if request.snapshot:
                reply.snapshot = self._snapshot()
        reply.num_updates, reply.step = sums.num_updates, self._progress.step
        reply.totals = self._ingest.totals.copy()
        reply.notes = self._ingest.take_notes()
        reply.metrics = self._metrics()
        reply.window_positions = self._ingest.split.training.num_eligible
        reply.insert_budget = self._ingest.controller.insert_budget()
        reply.window_edge = self._ingest.split.window_edge()
        reply.busy_s = clock.busy_s
        reply.resident_bytes = psutil.Process().memory_info().rss
        return reply

    def _train(self, request: LearnRequest, clock: Clock, sums: UpdateSums) -> None:
        """Read and update in turn until the bounds of ``request`` or a version is reached."""
        while not self._is_version_due(request) and not clock.is_over:
            with clock:
                num_new = self._ingest.read(0.0)
            if request.max_updates and sums.num_updates >= request.max_updates:
                return
            if self._ingest.controller.may_sample(self._config.batch_size):
                with clock:
                    self._update(sums)
                clock.rest()
            elif num_new == 0:
                if clock.remaining_s == 0.0:
                    return
                self._ingest.read(min(_WAIT_S, clock.remaining_s))

    def _drain(self) -> None:
        """Ingest until nothing new is there, for a bounded time; a resume ingests the rest."""
        deadline = time.monotonic() + DRAIN_LIMIT_S
        while self._ingest.read(0.0) and time.monotonic() < deadline:
            continue

    def _is_version_due(self, request: LearnRequest) -> bool:
        progress = self._progress
        if progress.version < 0 and progress.step == 0:
            return request.next_version == 0
        return progress.step - progress.version_step >= self._config.updates_per_version

    def _update(self, sums: UpdateSums) -> None:
        """Take one optimizer step, and measure when that is due."""
        progress, config = self._progress, self._config
        equity = self._ingest.equity
        if equity is not None and progress.step % config.updates_per_version == 0:
            equity.refresh()
        window = self._ingest.split.training
        controller = self._ingest.controller
        newest = newest_share(controller.state.num_inserted, window.num_eligible, config)
        slots = draw(window, self._generator, config, newest)
        controller.sampled(config.batch_size)
        batch = make_batch(
            window.gather(slots),
            self._features,
            config,
            self._equity_rows(),
            bootstrap=progress.value_trusted,
        )
        self._updater.update(batch, progress.step, progress.version, sums)
        progress.step += 1
        if progress.step % config.held_out_every == 0:
            self._measure()

    def _equity_rows(self) -> NDArray[np.float64] | None:
        equity = self._ingest.equity
        return None if equity is None else equity.probabilities

    # --- figures ----------------------------------------------------------------------------------

    def _measure(self) -> None:
        """Measure on held-out games; give or take away trust in the value head.

        A head that has lost it altogether values no leaves from the next version on.
        """
        measured = evaluate(
            self._ingest.split.held_out,
            self._updater.network,
            self._features,
            self._device,
            self._config,
            self._equity_rows(),
        )
        progress = self._progress
        progress.value_trusted = is_trusted(measured, self._config)
        progress.ever_trusted |= progress.value_trusted
        progress.leaves_by_playout = needs_playouts(
            measured,
            self._config,
            ever_trusted=progress.ever_trusted,
            until_now=progress.leaves_by_playout,
        )
        if measured is not None:
            progress.root_value_bias = measured.root_value_bias
            self._set_figures(
                {
                    "held_out_games": measured.num_games,
                    "held_out_policy_loss": measured.policy_loss,
                    "held_out_value_loss": measured.value_loss,
                    "held_out_value_r2": measured.value_r2,
                    "held_out_outcome_r2": measured.outcome_r2,
                    "held_out_scale": measured.scale,
                }
            )

    def _set_figures(self, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            self._progress.figures.pop(name, None)
            if math.isfinite(value):
                self._progress.figures[name] = float(value)

    def _metrics(self) -> LearnMetrics:
        progress = self._progress
        figures: dict[str, Any] = dict(progress.figures)
        return LearnMetrics(
            **figures | {"held_out_games": int(figures.get("held_out_games", 0))},
            learning_rate=learning_rate(self._config, progress.step),
            root_value_bias=progress.root_value_bias,
            value_trusted=progress.value_trusted,
            leaves_by_playout=progress.leaves_by_playout,
            reward_shares=self._ingest.reward_shares(),
        )

    # --- versions and snapshots -------------------------------------------------------------------

    def _export(self, version: int) -> bytes:
        """Return version ``version`` as checked ONNX bytes; its parent is the one before."""
        progress, identity = self._progress, self._identity
        if version <= progress.version:
            raise ValueError(
                f"next_version = {version}: allowed are {progress.version + 1} and more"
            )
        equity = self._equity_rows()
        metadata = ModelMetadata(
            run_id=identity.run_id,
            version=version,
            parent=progress.version,
            step=progress.step,
            num_examples=self._ingest.totals.examples,
            game=identity.game,
            rules=identity.rules,
            encoder=identity.encoder,
            encoder_version=identity.encoder_version,
            observation_size=identity.observation_size,
            action_size=identity.action_size,
            num_values=identity.num_values,
            target=identity.target,
            network=identity.network,
            equity=() if equity is None else tuple(equity.tolist()),
            value_trusted=progress.value_trusted,
            leaf_value="playout" if progress.leaves_by_playout else "network",
        )
        model = self._calibrated(export_checked(self._exporter, self._updater.network, metadata))
        progress.version, progress.version_step = version, progress.step
        return model

    def _calibrated(self, model: bytes) -> bytes:
        """Return ``model`` with its calibration; as it is where there are no positions yet."""
        window, count = self._ingest.split.training, self._config.calibration_positions
        positions = calibration_positions(window, self._features, count)
        return model if positions is None else calibrated(model, positions)

    def _snapshot(self) -> bytes:
        facts = SnapshotFacts(
            identity=self._identity,
            progress=self._progress,
            ingest=self._ingest.state(),
            generator=checkpoint.generator_state(self._generator),
        )
        weights = {
            name: value.detach().cpu() for name, value in self._updater.network.state_dict().items()
        }
        return checkpoint.encode(Snapshot(facts, weights, self._updater.moments()))

    def _restore(self, snapshot: Snapshot) -> None:
        try:
            self._updater.network.load_state_dict(snapshot.weights)
            self._updater.restore_moments(snapshot.moments)
        except (KeyError, RuntimeError) as error:  # missing, foreign or of another shape
            raise checkpoint.SnapshotError(f"tensors of the snapshot: {error}") from error
        self._generator = checkpoint.restore_generator(snapshot.facts.generator)
        self._progress = snapshot.facts.progress
        self._ingest.restore(snapshot.facts.ingest)
