"""The Prometheus endpoint.

* counters are the run's totals, exactly; figures that are not known yet are absent
* gauges of processes carry role, node and slot, and never a pid
* the endpoint listens on loopback alone; an occupied port is one clear error
"""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from deploy.metrics import Metrics, MetricsError
from deploy.status import RunStatus
from tests.deploy.statuses import running_status

Sample = tuple[str, frozenset[tuple[str, str]]]


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    opened = Metrics(0)
    yield opened
    opened.close()


def scrape(metrics: Metrics) -> dict[Sample, float]:
    with urllib.request.urlopen(metrics.url, timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: dict[Sample, float], name: str, **labels: str) -> float:
    return samples[f"cardleague_{name}", frozenset(labels.items())]


def test_nothing_is_shown_before_the_first_status(metrics: Metrics) -> None:
    assert scrape(metrics) == {}


def test_counters_are_the_exact_totals(metrics: Metrics) -> None:
    status = running_status()
    status.totals.simulations = 2**53 - 1  # the largest count that a double holds exactly
    metrics.update(status)
    samples = scrape(metrics)
    assert value(samples, "games_total") == 5123
    assert value(samples, "plies_total") == 612345
    assert value(samples, "simulations_total") == 2**53 - 1
    assert value(samples, "examples_total") == 183210
    assert value(samples, "updates_total") == 655
    assert value(samples, "entries_total") == 5130
    assert value(samples, "rejected_entries_total", reason="schema") == 5
    assert value(samples, "evicted_games_total") == 611
    assert value(samples, "window_games") == 4000
    assert value(samples, "worker_restarts_total") == 1
    assert value(samples, "gates_total", outcome="promoted") == 2
    assert value(samples, "gates_total", outcome="undecided") == 0


def test_every_figure_that_operators_watch_is_there(metrics: Metrics) -> None:
    metrics.update(running_status())
    samples = scrape(metrics)
    assert value(samples, "games_per_second") == 36.2
    assert value(samples, "window_positions") == 183210
    assert value(samples, "policy_lag_versions") == 1.3
    assert value(samples, "loss", head="policy", data="held_out") == 0.931
    assert value(samples, "value_r2", target="target", data="held_out") == 0.446
    assert value(samples, "value_r2", target="outcome", data="held_out") == 0.215
    assert value(samples, "entropy_nats") == 0.719
    assert value(samples, "gate_llr") == 1.43
    assert value(samples, "newest_version") == 13
    assert value(samples, "champion_version") == 9
    assert value(samples, "resident_bytes") == 2_100_000_000
    assert value(samples, "reward_share", term="win") == 0.2
    assert value(samples, "state", state="running") == 1


def test_processes_are_labelled_by_role_node_and_slot(metrics: Metrics) -> None:
    metrics.update(running_status())
    samples = scrape(metrics)
    labels = {"role": "selfplay", "node": "here", "slot": "1"}
    assert value(samples, "worker_outbox_games", **labels) == 13
    assert value(samples, "worker_simulations_per_second", **labels) == 61234.0
    assert value(samples, "worker_up", role="gate", node="here", slot="0") == 0
    names = {name for _, labels in samples for name, _ in labels}
    learning = {"head", "data", "target", "outcome", "term", "state", "reason"}
    strength = {"opponent", "simulations", "model", "side", "figure", "bound"}
    assert names == {"role", "node", "slot"} | learning | strength


def test_strength_is_labelled_by_opponent_and_simulations_and_never_by_version(
    metrics: Metrics,
) -> None:
    metrics.update(running_status())
    samples = scrape(metrics)
    champion = {"opponent": "rules", "simulations": "0", "model": "champion"}
    newest = champion | {"model": "newest"}
    assert value(samples, "evaluation_win_rate", **champion) == 0.685
    assert value(samples, "evaluation_win_rate", **newest) == 0.72
    assert value(samples, "evaluation_win_rate_low", **champion) == 0.61
    assert value(samples, "evaluation_version", **newest) == 13
    for side, score in (("for", 35.5), ("against", 28.5)):
        labels = champion | {"side": side, "figure": "score"}
        assert value(samples, "evaluation_mean", **labels) == score
    assert value(samples, "rating_elo", model="champion", bound="low") == 80.0
    assert value(samples, "rating_games_total") == 96
    assert value(samples, "evaluation_games_total") == 200


def test_unknown_figures_are_absent_not_zero(metrics: Metrics) -> None:
    metrics.update(RunStatus(run="new"))
    samples = scrape(metrics)
    assert value(samples, "games_total") == 0
    names = {name for name, _ in samples}
    assert not names & {"cardleague_entropy_nats", "cardleague_loss", "cardleague_value_r2"}


def test_a_later_status_replaces_the_former(metrics: Metrics) -> None:
    metrics.update(running_status())
    scrape(metrics)
    later = running_status()
    later.totals.games += 7
    later.workers = later.workers[:1]
    metrics.update(later)
    samples = scrape(metrics)
    assert value(samples, "games_total") == 5130
    assert sum(name == "cardleague_worker_up" for name, _ in samples) == 1


def test_the_endpoint_listens_on_loopback_alone(metrics: Metrics) -> None:
    assert metrics.url == f"http://127.0.0.1:{metrics.port}/metrics"
    assert metrics._server.server_address[0] == "127.0.0.1"


def test_an_occupied_port_is_a_clear_error() -> None:
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        port = occupied.getsockname()[1]
        with pytest.raises(MetricsError, match=rf"metrics_port = {port}: the port is in use"):
            Metrics(port)


def test_a_closed_endpoint_frees_its_port() -> None:
    first = Metrics(0)
    first.close()
    first.close()
    second = Metrics(first.port)
    second.close()
