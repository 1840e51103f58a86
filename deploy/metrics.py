"""Prometheus metrics of a run: one registry and one endpoint on loopback, both in the owner.

Room: deploy. The one module that imports prometheus_client.

Counters are the run's totals (computed where trajectories are ingested and kept in the snapshot):
they are exact, go on over restarts of anything, and never count a game twice. Gauges of processes
are labelled by role, node and slot; a pid would make a new series at every restart.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from deploy.status import RunStatus, WorkerStatus

LOOPBACK = "127.0.0.1"
WORKER_LABELS = ("role", "node", "slot")
GATE_OUTCOMES = ("promoted", "rejected", "undecided")


class MetricsError(RuntimeError):
    """The endpoint cannot be opened; names the port and what to do."""


class StatusCollector(Collector):
    """Turns the latest RunStatus into metrics whenever the endpoint is read."""

    def __init__(self) -> None:
        self.status: RunStatus | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield every metric; nothing before the first status."""
        status = self.status  # one reference: the owner replaces it while a reader iterates
        if status is None:
            return
        yield from _counters(status)
        yield from _gauges(status)
        yield from _learning(status)
        yield from _strength(status)
        yield from _workers(status.workers)


class Metrics:
    """The registry and its endpoint; ``update`` is all that the owner calls.

    ``port`` 0 picks a free one. Raises MetricsError when the port cannot be had.
    """

    def __init__(self, port: int = 0) -> None:
        self.registry = CollectorRegistry()
        self._collector = StatusCollector()
        self.registry.register(self._collector)
        try:
            self._server, self._thread = start_http_server(port, LOOPBACK, self.registry)
        except OSError as error:
            reason = "in use" if error.errno == errno.EADDRINUSE else str(error)
            raise MetricsError(
                f"runtime.metrics_port = {port}: the port is {reason}; take another, or 0 for any "
                "that is free"
            ) from error

    @property
    def port(self) -> int:
        """The port that is open."""
        return int(self._server.server_port)

    @property
    def url(self) -> str:
        """Where the metrics are read."""
        return f"http://{LOOPBACK}:{self.port}/metrics"

    def update(self, status: RunStatus) -> None:
        """Show ``status`` from now on. The struct must not be changed afterwards."""
        self._collector.status = status

    def close(self) -> None:
        """Close the endpoint; repeated calls do nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"cardleague_{name}", text, value=value)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"cardleague_{name}", text, value=value)


def _counters(status: RunStatus) -> Iterator[Metric]:
    totals = status.totals
    yield _counter("games", "Self-play games ingested.", totals.games)
    yield _counter("plies", "Plies of the ingested games.", totals.plies)
    yield _counter("simulations", "Search simulations of the ingested games.", totals.simulations)
    yield _counter("full_searches", "Full searches in the ingested games.", totals.full_searches)
    yield _counter("examples", "Eligible policy examples ingested.", totals.examples)
    yield _counter("value_examples", "Value-only examples ingested.", totals.value_examples)
    yield _counter("entries", "Entries read from the streams.", totals.entries)
    rejected = CounterMetricFamily(
        "cardleague_rejected_entries", "Entries that are no games of the run.", labels=["reason"]
    )
    for reason, count in sorted(totals.rejected.items()):
        rejected.add_metric([reason], count)
    yield rejected
    yield _counter("evicted_games", "Training games that left the window.", totals.evicted_games)
    yield _counter("held_out_games", "Ingested games kept out of training.", totals.held_out_games)
    yield _counter(
        "lost_entries", "Accepted trajectories that the server lost.", totals.lost_entries
    )
    yield _counter("updates", "Optimizer steps.", status.step)
    yield _counter("gate_games", "Games played by the gate (never trained on).", status.gate_games)
    yield _counter("rating_games", "Rating games (neither gate nor training).", status.rating_games)
    yield _counter(
        "evaluation_games", "Games against yardsticks beside training.", status.evaluation_games
    )
    yield _counter("worker_restarts", "Actors replaced or restarted.", status.worker_restarts)
    yield _counter("server_restarts", "Restarts of the bundled server.", status.server_restarts)
    outcomes = CounterMetricFamily("cardleague_gates", "Ended gates.", labels=["outcome"])
    counts = (status.num_promoted, status.num_rejected, status.num_undecided)
    for outcome, count in zip(GATE_OUTCOMES, counts, strict=True):
        outcomes.add_metric([outcome], count)
    yield outcomes


def _gauges(status: RunStatus) -> Iterator[Metric]:
    for name, per_s in (
        ("games", status.games_per_s),
        ("plies", status.plies_per_s),
        ("simulations", status.simulations_per_s),
        ("examples", status.examples_per_s),
        ("updates", status.updates_per_s),
    ):
        yield _gauge(f"{name}_per_second", f"Rate of {name} over the last seconds.", per_s)
    yield _gauge("training_seconds", "Training time over all invocations.", status.elapsed_s)
    yield _gauge("window_positions", "Positions in the window.", status.window_positions)
    yield _gauge("window_games", "Training games in the window.", status.totals.window_games)
    yield _gauge("window_capacity", "Positions that fit the window.", status.window_capacity)
    yield _gauge("stream_entries", "Entries in the trajectory streams.", status.stream_entries)
    yield _gauge("stream_bytes", "Memory of the trajectory streams.", status.stream_bytes)
    yield _gauge("resident_bytes", "Resident memory of the run here.", status.resident_bytes)
    yield _gauge("newest_version", "Newest model version.", status.newest)
    yield _gauge("champion_version", "Version of the champion.", status.champion)
    yield _gauge("pool_size", "Past champions in the pool.", len(status.pool))
    yield _gauge("epoch", "Last epoch given to an actor.", status.epoch)
    yield _gauge("alerts", "Alerts raised now.", len(status.alerts))
    gate = status.gate
    yield _gauge("gate_candidate", "Version in the gate; -1 when idle.", gate.candidate)
    yield _gauge("gate_llr", "Log-likelihood ratio of the gate.", gate.llr)
    yield _gauge("gate_pairs", "Pairs read by the gate.", gate.num_pairs)
    yield _gauge("gate_decided_pairs", "Decided pairs of the gate.", gate.num_decided)
    yield _gauge("gate_won_pairs", "Decided pairs the candidate won.", gate.wins)
    state = GaugeMetricFamily("cardleague_state", "1 for the run's state.", labels=["state"])
    state.add_metric([status.state], 1)
    yield state


def _learning(status: RunStatus) -> Iterator[Metric]:
    """Yield the learner's figures; what is not known yet is absent, not zero."""
    metrics = status.metrics
    losses = GaugeMetricFamily("cardleague_loss", "Mean loss.", labels=["head", "data"])
    for head, data, value in (
        ("policy", "training", metrics.policy_loss),
        ("policy", "held_out", metrics.held_out_policy_loss),
        ("value", "training", metrics.value_loss),
        ("value", "held_out", metrics.held_out_value_loss),
    ):
        if math.isfinite(value):
            losses.add_metric([head, data], value)
    yield losses
    r2 = GaugeMetricFamily("cardleague_value_r2", "R² of the value.", labels=["target", "data"])
    for target, data, value in (
        ("target", "training", metrics.value_r2),
        ("target", "held_out", metrics.held_out_value_r2),
        ("outcome", "held_out", metrics.held_out_outcome_r2),
    ):
        if math.isfinite(value):
            r2.add_metric([target, data], value)
    yield r2
    for name, text, value in (
        (
            "held_out_scale",
            "Mean |prediction| over mean |target|, held out.",
            metrics.held_out_scale,
        ),
        ("entropy_nats", "Mean entropy of the search policy.", metrics.entropy),
        (
            "value_trusted",
            "1 while targets may bootstrap from the value head.",
            float(metrics.value_trusted),
        ),
        (
            "leaves_by_playout",
            "1 while playouts value leaves in the head's place.",
            float(metrics.leaves_by_playout),
        ),
        ("policy_lag_versions", "Newest version minus an example's.", metrics.policy_lag),
        ("gradient_norm", "Norm of the gradient before clipping.", metrics.gradient_norm),
    ):
        if math.isfinite(value):
            yield _gauge(name, text, value)
    biases = GaugeMetricFamily(
        "cardleague_root_value_bias", "Mean of root value minus outcome.", labels=["phase"]
    )
    for phase, bias in metrics.root_value_bias.items():
        biases.add_metric([phase], bias)
    yield biases
    shares = GaugeMetricFamily(
        "cardleague_reward_share", "Share of a term in the absolute returns.", labels=["term"]
    )
    for term, share in metrics.reward_shares.items():
        shares.add_metric([term], share)
    yield shares


def _strength(status: RunStatus) -> Iterator[Metric]:
    """Yield the last evaluations and the ratings of champion and newest version."""
    labels = ["opponent", "simulations", "model"]
    rates = {
        name: GaugeMetricFamily(f"cardleague_evaluation_{name}", text, labels=labels)
        for name, text in (
            ("win_rate", "Mean pair score against a yardstick."),
            ("win_rate_low", "Lower end of its 95 % interval."),
            ("win_rate_high", "Upper end of its 95 % interval."),
            ("version", "Version that was measured."),
        )
    }
    means = GaugeMetricFamily(
        "cardleague_evaluation_mean", "Mean a game.", labels=[*labels, "side", "figure"]
    )
    for record in status.evaluations:
        model = "champion" if record.is_champion else "newest"
        about = [record.opponent, str(record.simulations), model]
        for name, family in rates.items():
            family.add_metric(about, getattr(record, name))
        for side, figures in (("for", record.own), ("against", record.other)):
            for figure, value in figures.items():
                means.add_metric([*about, side, figure], value)
    yield from rates.values()
    yield means
    ratings = GaugeMetricFamily(
        "cardleague_rating_elo", "Rating; the rule-based player has 0.", labels=["model", "bound"]
    )
    for rated in status.ratings:
        if rated.version == status.champion:
            for bound, value in (("", rated.rating), ("low", rated.low), ("high", rated.high)):
                ratings.add_metric(["champion", bound], value)
    yield ratings


def _workers(workers: Iterable[WorkerStatus]) -> Iterator[Metric]:
    families = {
        name: GaugeMetricFamily(f"cardleague_worker_{name}", text, labels=WORKER_LABELS)
        for name, text in (
            ("up", "1 while the process answers."),
            ("restarts", "Times this slot was restarted."),
            ("last_reply_seconds", "Time since its last reply."),
            ("plies_per_second", "Plies it plays."),
            ("simulations_per_second", "Simulations it searches."),
            ("evaluate_share", "Part of its busy time spent in the network."),
            ("outbox_games", "Finished games that wait for acceptance."),
            ("model_version", "Version it plays; -1 for none."),
            ("resident_bytes", "Resident memory."),
        )
    }
    for worker in workers:
        labels = (worker.role, worker.node, str(worker.slot))
        for family, value in zip(families.values(), _worker_values(worker), strict=True):
            family.add_metric(labels, value)
    yield from families.values()


def _worker_values(worker: WorkerStatus) -> tuple[float, ...]:
    """Return the values in the order of the families."""
    return (
        float(worker.alive),
        worker.restarts,
        worker.last_reply_s,
        worker.plies_per_s,
        worker.simulations_per_s,
        worker.evaluate_share,
        worker.outbox,
        worker.model_version,
        worker.resident_bytes,
    )
