"""The soak's judgement, on planted leaks.

* a process that grows by 5 % an hour is caught, a flat one that breathes is not, a step is none
* what happens before the warm-up does not count, nor do processes that come and go
* an append-only file that is cut back in turn passes, one that is not does not
* games that become longer in the streams are no leak of their server; what lies beside them is one
* roles of a run's processes
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.soak.fit import HOUR_S, Limit, Sample, after, peaks, trend
from tests.soak.verdict import judge
from tests.soak.watch import KEPT, role_of

LIMIT = Limit(2.0)
LEVEL = 600e6


def series(
    percent_per_hour: float, *, seed: int, minutes: float = 45.0, noise: float = 0.01
) -> list[Sample]:
    """Memory that grows and breathes: jitter, a peak at every tenth sample, a slow wave."""
    rng = np.random.default_rng(seed)
    times = np.arange(0.0, 60.0 * minutes, 5.0)
    values = LEVEL * (1.0 + percent_per_hour / 100.0 * times / HOUR_S)
    values += LEVEL * noise * (rng.random(len(times)) - 0.5)
    values += LEVEL * 0.05 * (rng.random(len(times)) < 0.1)
    values += LEVEL * 0.002 * np.sin(times / 90.0)
    return [Sample(float(at), float(value)) for at, value in zip(times, values, strict=True)]


@pytest.mark.parametrize("seed", range(20))
def test_a_process_that_grows_by_5_percent_an_hour_is_caught(seed: int) -> None:
    found = trend(series(5.0, seed=seed))
    assert not LIMIT.allows(found)
    assert found.low > 0.0
    assert 4.0 < found.percent_per_hour < 6.0


@pytest.mark.parametrize("seed", range(20))
def test_a_flat_process_that_breathes_passes(seed: int) -> None:
    found = trend(series(0.0, seed=seed))
    assert LIMIT.allows(found)
    assert abs(found.percent_per_hour) < 1.0
    assert found.low <= found.per_hour <= found.high


def test_the_interval_covers_the_true_slope_nearly_always() -> None:
    true = LEVEL * 0.03
    covered = [
        found.low <= true <= found.high
        for found in (trend(series(3.0, seed=seed)) for seed in range(60))
    ]
    assert np.mean(covered) > 0.85  # 95 %; four standard errors of 60 would allow 0.84


def test_a_single_step_is_no_slope() -> None:
    samples = [Sample(at, LEVEL * (1.02 if at > 1800 else 1.0)) for at in range(0, 2700, 5)]
    assert abs(trend(samples).percent_per_hour) < 2.0


def test_growth_before_the_warm_up_does_not_count() -> None:
    warming = [Sample(at, LEVEL * at / 900.0) for at in range(0, 900, 5)]
    later = [Sample(900.0 + sample.at_s, sample.value) for sample in series(0.0, seed=3)]
    assert not LIMIT.allows(trend([*warming, *later[:100]]))
    assert LIMIT.allows(trend(after([*warming, *later], 900.0)))


def test_a_leak_that_begins_after_the_warm_up_is_caught() -> None:
    warming = [Sample(at, LEVEL) for at in range(0, 900, 5)]
    later = [Sample(900.0 + sample.at_s, sample.value) for sample in series(5.0, seed=4)]
    assert not LIMIT.allows(trend(after([*warming, *later], 900.0)))


def test_what_is_small_may_grow_by_the_floor() -> None:
    samples = [Sample(at, 30e6 + 0.9e6 * at / HOUR_S) for at in range(0, 2700, 5)]
    assert not LIMIT.allows(trend(samples))
    assert Limit(2.0, floor_per_hour=1e6).allows(trend(samples))


def test_too_few_samples_have_no_slope() -> None:
    with pytest.raises(ValueError, match="3 samples fill 1 stretches"):
        trend([Sample(0.0, 1.0), Sample(1.0, 1.0), Sample(2.0, 1.0)])
    with pytest.raises(ValueError, match="no two halves"):
        peaks([Sample(0.0, 1.0)])


def sawtooth(growth: float) -> list[Sample]:
    """A file that is rewritten every ten minutes, from which ``growth`` times as much is left."""
    return [
        Sample(at, 20e6 * growth ** (at // 600) + 64e6 * (at % 600) / 600)
        for at in range(0, 3600, 5)
    ]


def run(**changed: list[Sample]) -> dict[str, list[Sample]]:
    """A run in which all is well, but for ``changed``."""
    flat = [Sample(at, 20.0) for at in range(0, 3600, 5)]
    fine = {
        "rss worker 1": series(0.0, seed=1, minutes=60),
        "pss worker 1": series(9.0, seed=1, minutes=60),
        "files worker 1": flat,
        "threads worker 1": flat,
        "server memory": series(0.5, seed=2, minutes=60),
        "bytes of server": sawtooth(1.0),
        "bytes of the streams": flat,
        KEPT: [Sample(at, 1.1 + at % 60 * at / 3e6) for at, _ in flat],
        "budget of the streams": [Sample(at, 25.0) for at, _ in flat],
    }
    return fine | {name.replace("_", " "): found for name, found in changed.items()}


def test_a_run_in_which_all_is_well_passes() -> None:
    assert all(row.is_fine for row in judge(run(), LIMIT))


@pytest.mark.parametrize(
    ("name", "samples"),
    [
        ("rss_worker_1", series(5.0, seed=5, minutes=60)),
        ("server_memory", series(5.0, seed=6, minutes=60)),
        ("files_worker_1", [Sample(at, 20.0 + at / 100.0) for at in range(0, 3600, 5)]),
        ("threads_worker_1", [Sample(at, 20.0 + at / 300.0) for at in range(0, 3600, 5)]),
        ("bytes_of_server", sawtooth(1.5)),
        (KEPT, [Sample(at, 1.1 + at / 20_000.0 + at % 60 / 600.0) for at in range(0, 3600, 5)]),
        ("budget_of_the_streams", [Sample(at, 19.0) for at in range(0, 3600, 5)]),
        ("bytes_of_logs", [Sample(at, 1e5 * at) for at in range(0, 3600, 5)]),
    ],
)
def test_each_kind_of_leak_is_named(name: str, samples: list[Sample]) -> None:
    (grows,) = [row for row in judge(run(**{name: samples}), LIMIT) if not row.is_fine]
    assert grows.name.removesuffix(" beside the streams") == name.replace("_", " ")


def test_games_that_change_are_no_leak_of_the_server_but_what_lies_beside_them_is() -> None:
    more = [Sample(at, 20.0 + 3e3 * at) for at in range(0, 3600, 5)]  # 11 MB/h
    for base, is_fine in (
        (series(0.0, seed=3, minutes=60), True),
        (series(5.0, seed=3, minutes=60), False),
    ):
        total = [
            Sample(at, value + games) for (at, value), (_, games) in zip(base, more, strict=True)
        ]
        rows = judge(
            run(
                rss_server_1=total,
                bytes_of_the_streams=more,
                budget_of_the_streams=[Sample(at, 20e6) for at, _ in more],
            ),
            LIMIT,
        )
        failed = [row.name for row in rows if not row.is_fine]
        assert failed == ([] if is_fine else ["rss server 1 beside the streams"])
    unwatched = {n: s for n, s in run(rss_server_1=total).items() if "streams" not in n}
    failed = [row.name for row in judge(unwatched, LIMIT) if not row.is_fine]
    assert failed == ["rss server 1"]


def test_a_process_that_came_and_went_has_no_slope() -> None:
    child = [Sample(at, 1e6 * at) for at in range(600, 660, 5)]
    rows = judge(run(rss_server_child=child), LIMIT)
    assert all(row.is_fine for row in rows)
    assert "rss server child" not in {row.name for row in rows}


def test_a_soak_that_watched_nothing_is_no_pass() -> None:
    with pytest.raises(ValueError, match="nothing was watched"):
        judge({"server memory": series(0.0, seed=1)}, LIMIT)
    with pytest.raises(ValueError, match="nothing was watched"):
        judge({}, LIMIT)


@pytest.mark.parametrize(
    ("name", "command", "role"),
    [
        ("ray::SelfPlayHos", ["ray::SelfPlayHost.step"], "worker"),
        ("ray::LearnerHost", ["ray::LearnerHost"], "learner"),
        ("ray::GateHost.st", ["ray::GateHost.step"], "gate"),
        ("ray::DashboardAg", ["ray::DashboardAgent"], "ray DashboardAgent"),
        ("raylet", ["/venv/ray/core/raylet", "--x"], "ray raylet"),
        ("gcs_server", ["/venv/ray/core/gcs_server"], "ray gcs_server"),
        ("python", ["python", "-u", "/venv/ray/log_monitor.py", "--y"], "ray log_monitor"),
        ("valkey-server", ["valkey-server"], "valkey-server"),
        ("python", [], "python"),
    ],
)
def test_roles(name: str, command: list[str], role: str) -> None:
    assert role_of(name, command, pid=7, known={3: "owner"}) == role
    assert role_of(name, command, pid=3, known={3: "owner"}) == "owner"
