"""The live view.

* at 80 x 24 everything fits and is readable; a larger terminal shows more
* what is not known yet is a dash; alerts and silent processes are seen
* the bar of the gate lies between its bounds; without a terminal there are plain, rare lines
"""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from deploy.config import RunConfig
from deploy.liveview import (
    LiveView,
    bar,
    draw,
    duration,
    gate_bounds,
    llr_bar,
    number,
    plain_line,
    print_status,
)
from deploy.status import RunStatus, WorkerStatus
from league.config import GateConfig
from league.messages import GateStatus
from tests.deploy.statuses import outcome, running_status

BOUNDS = gate_bounds(GateConfig())


def screen(status: RunStatus, width: int = 80, height: int = 24) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, record=True)
    console.print(draw(status, BOUNDS, width, height - 1))
    return console.export_text().rstrip("\n").splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (200, 60)])
def test_the_picture_fits_the_terminal(width: int, height: int) -> None:
    status = running_status()
    status.workers *= 20
    status.outcomes *= 20
    status.alerts = ["memory 3.2 GB of 3.0 GB"]
    lines = screen(status, width, height)
    assert len(lines) <= height - 1
    assert all(len(line) <= width for line in lines)


def test_80_by_24_shows_what_matters_uncut() -> None:
    text = "\n".join(screen(running_status()))
    for word in (
        "runs/demo",
        "running",
        "3:12 of 10:00, 6:48 left",
        "trained 4:12 in all",
        "5,123",
        "18,123,456",
        "183,210 of 600,000",
        "0.912",
        "0.931",
        "0.446",
        "0.215",
        "newest v13",
        "champion v9",
        "2 promoted, 1 rejected, 0 undecided",
        "v9 policy 68 ± 7 % rules",
        "v12 against v9: 180 pairs, 58 won, 38 lost, 84 split",
        "+1.43",
        "v9 promoted against v3",
        "selfplay 1",
        "restarted 1×",
        "down",
        "version 9 promoted",
        "http://127.0.0.1:9100/metrics",
    ):
        assert word in text, word
    assert "…" not in text


def test_held_out_losses_stand_below_those_of_training() -> None:
    lines = screen(running_status())
    training = next(line for line in lines if line.startswith("training"))
    held_out = next(line for line in lines if line.startswith("held out"))
    assert training.index("0.912") == held_out.index("0.931")
    assert training.index("0.513") == held_out.index("0.554")


def test_a_larger_terminal_shows_more_processes_and_outcomes() -> None:
    status = running_status()
    status.workers = [WorkerStatus(role="selfplay", slot=slot) for slot in range(12)]
    status.outcomes = [outcome(version, "rejected") for version in range(8)]
    small, large = screen(status, 80, 24), screen(status, 80, 50)
    assert any("more (cardleague status" in line for line in small)
    assert sum("rejected against" in line for line in small) == 1
    assert sum(line.startswith("selfplay") for line in large) == 12
    assert sum("rejected against" in line for line in large) == 8


def test_a_new_run_shows_dashes_and_no_nan() -> None:
    text = "\n".join(screen(RunStatus(run="new", game="kuhn")))
    assert "nan" not in text
    assert "newest –" in text
    assert "idle" in text
    assert "until Ctrl-C" in text


def test_the_time_of_a_start_is_not_set_against_the_limit() -> None:
    status = running_status()
    status.state, status.limit_s, status.updated_at = "starting", 60.0, status.started_at + 139.0
    assert plain_line(status).startswith("2:19 starting |")
    assert any("starting   2:19, then 1:00" in line for line in screen(status))
    status.state, status.updated_at = "running", status.started_at + 9.0
    assert plain_line(status).startswith("0:09 of 1:00 running |")
    assert any("0:09 of 1:00, 0:51 left" in line for line in screen(status))


def test_a_stopped_run_waits_for_nothing() -> None:
    status = running_status()
    status.state, status.resident_bytes, status.workers = "stopped", 0, []
    text = "\n".join(screen(status))
    assert "trained 4:12 in all" in text
    assert "no process runs" in text
    assert "left" not in text
    assert "0 MB" not in text


def test_alerts_are_seen() -> None:
    status = running_status()
    status.alerts = ["held-out R² below 0"]
    assert any(line.startswith("! held-out R² below 0") for line in screen(status))


@pytest.mark.parametrize("llr", [-math.inf, -9.0, -1.0, 0.0, 2.0, math.inf])
def test_the_bar_of_the_gate_stays_between_its_bounds(llr: float) -> None:
    text = llr_bar(llr, BOUNDS).plain
    assert len(text) == 30
    zero = text.index("┃")
    filled = [i for i, sign in enumerate(text) if sign == "█"]
    assert all(i < zero for i in filled) if llr < 0 else all(i > zero for i in filled)
    if math.isinf(llr):
        assert filled[-1] == 29 if llr > 0 else filled[0] == 0


def test_the_window_bar_is_full_to_its_share() -> None:
    assert bar(0.0).count("█") == 0
    assert bar(0.5).count("█") == 15
    assert bar(2.0).count("█") == 30


def test_figures_for_people() -> None:
    assert number(1234567.0) == "1,234,567"
    assert number(math.nan) == "–"
    assert duration(59.6) == "1:00"
    assert duration(3723) == "1:02:03"


def test_without_a_terminal_there_are_plain_lines_for_events_and_now_and_then() -> None:
    file = io.StringIO()
    view = LiveView(RunConfig(), Console(file=file, width=80))
    status = running_status()
    for second in range(25):
        status.updated_at = 1192.0 + second
        status.message = f"version {second} at step 100"  # a version is no event
        if second == 13:
            status.num_rejected += 1
            status.message = "version 12 rejected"
        view.update(status)
    view.close()
    lines = file.getvalue().splitlines()
    assert len(lines) == 4  # after 0, 10, 13 (event) and 23 seconds
    assert "version 12 rejected" in lines[2]
    assert all("\x1b" not in line and "games 5,123" in line for line in lines)


def test_on_a_terminal_the_picture_is_drawn_in_place() -> None:
    file = io.StringIO()
    console = Console(file=file, width=80, height=24, force_terminal=True, legacy_windows=False)
    view = LiveView(RunConfig(), console)
    view.update(running_status())
    status = running_status()
    status.gate = GateStatus()
    view.update(status)
    view.close()
    view.close()
    text = file.getvalue()
    assert "champion" in text
    assert "waits for a newer version" in text
    assert "\x1b[1A" in text, "the cursor goes back up to draw over the former picture"


@pytest.mark.parametrize("num_alerts", [0, 3])
@pytest.mark.parametrize("num_outcomes", [0, 5])
def test_status_shows_every_process(num_outcomes: int, num_alerts: int) -> None:
    status = running_status()
    status.workers = [WorkerStatus(role="selfplay", slot=slot) for slot in range(40)]
    status.outcomes = [outcome(version, "rejected") for version in range(num_outcomes)]
    status.alerts = [f"alert {number}" for number in range(num_alerts)]
    file = io.StringIO()
    print_status(status, GateConfig(), Console(file=file, width=80))
    lines = file.getvalue().splitlines()
    assert sum(line.startswith("selfplay") for line in lines) == 40
    assert sum("rejected against" in line for line in lines) == num_outcomes
    assert not any("more (cardleague status" in line for line in lines)
