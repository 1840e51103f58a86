"""``cardleague bench``.

* every group runs in its small form and gives figures above zero, with an estimate's bounds
* replayed games count where they arrive, and figures of a run that lost some are refused
* a group that lacks a package is named and left out; one that does not exist is refused; the help
  names all of them
* processor time and wall clock make the rates that they should, better is above 1 both ways
* a watched function is put back, and what it spends in another watched one is the other's
* the document keeps what is written by hand, and a file that is no such document is left alone

Nothing here is timed: a busy machine changes the figures and no test.
"""

from __future__ import annotations

import json
import time
import types
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deploy.bench import document, figures, setup, stopwatch, suite
from deploy.bench.figures import Figure, Sample
from deploy.bench.ingest import Phase, check
from deploy.bench.replaying import Child, Ingested, Play, Played
from deploy.commands import UserError
from deploy.commands.bench import bench
from engine.game import game_names
from league.models import ModelError

EXPECTED = {
    "play": (*(f"random play, {name}" for name in game_names()), "rules against rules"),
    "levels": (
        "Durak, level:2 against itself",
        "Durak, pimc:15x3 against itself",
        "Durak, level:4: 95 % of the moves that are not forced take less than",
    ),
    "playouts": tuple(
        f"search with playouts, {name}, random playouts"
        for name in (*game_names(), "cuarenta report_b_2p", "durak classic_4p")
    ),
    "network": ("search with network", "the engine's own share", "part: select"),
    "decision": ("one decision, 8 simulations, one descent",),
    "onnx": (
        "a leaf in batches of 1, eight bits",
        "a leaf in batches of 192, eight bits",
        "a leaf in batches of 192, float32",
    ),
    "selfplay": ("one worker alone", "share of network", "trajectory, fully searched positions"),
    "learner": ("updates", "examples learned", "part: features", "a checked version"),
    "stream": ("appends of one worker's outbox, accepted", "reads of one client"),
    "ingest": (
        "4 replayers, fully searched positions",
        "16 replayers, all stored examples",
        "64 replayers, fully searched positions, one core of the learner",
        "16 replayers, sampling 1024 positions, median",
        "16 replayers, sampling 1024 positions, 95 %",
    ),
    "together": ("self-play with the learner", "updates", "workers in play"),
}


def measure(*names: str) -> suite.Report:
    said: list[str] = []
    report = suite.run(names, quick=True, say=said.append)
    assert report.skipped == ()
    assert [f"measuring {name}" for name in names] == [t for t in said if t.startswith("measuring")]
    for found in report.figures:
        assert found.value > 0, found
        assert 0 < found.low <= found.value <= found.high, found
        assert found.how
        assert found.unit
        assert found.reference is None  # tiny sizes are not compared with anything
        assert found.goal is None
    return report


def names_of(report: suite.Report, group: str) -> set[str]:
    return {found.name for found in report.figures if found.group == group}


# --- every group, small ---------------------------------------------------------------------------


@pytest.mark.parametrize("group", ["play", "levels", "decision", "onnx"])
def test_a_group_gives_its_figures(group: str) -> None:
    report = measure(group)
    assert set(EXPECTED[group]) <= names_of(report, group)
    assert all(found.wall_s > 0 and found.cpu_s > 0 for found in report.figures)


def test_parts_of_a_search_add_up_to_no_more_than_the_whole() -> None:
    report = measure("network")
    assert set(EXPECTED["network"]) <= names_of(report, "network")
    by_name = {found.name: found for found in report.figures}
    whole = figures.MICROSECONDS / by_name["search with network"].low
    parts = [by_name[f"part: {part}"].low for part in ("network", "select", "absorb")]
    assert sum(parts) <= whole


@pytest.mark.slow
@pytest.mark.system
def test_playouts_stand_beside_openspiel() -> None:
    pytest.importorskip("pyspiel")
    report = measure("playouts")
    names = names_of(report, "playouts")
    assert set(EXPECTED["playouts"]) <= names
    for theirs in ("euchre", "hearts"):
        for ours in ("cuarenta", "durak classic_4p", "forty_fives"):
            assert f"{ours} to OpenSpiel's {theirs}" in names
    assert len(report.commands) == sum(name.startswith("OpenSpiel, ") for name in names)
    assert all(command.startswith("python -m deploy.bench.spiel ") for command in report.commands)


@pytest.mark.system
def test_self_play_learner_and_stream_share_their_games() -> None:
    report = measure("selfplay", "learner", "stream")
    for group in ("selfplay", "learner", "stream"):
        assert set(EXPECTED[group]) <= names_of(report, group)
    shares = [found.value for found in report.figures if found.unit == "%"]
    assert len(shares) == 7
    assert sum(found.low for found in report.figures if found.unit == "%") <= 100.0


@pytest.mark.system
def test_replayed_games_are_counted_by_the_learner_that_ingests_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orders: list[Play] = []
    found: list[Ingested] = []
    ask, answer = Child.ask, Child.answer

    def record_order(child: Child[Any], order: Any) -> None:
        orders.extend([order] if isinstance(order, Play) else [])
        ask(child, order)

    def record_answer(child: Child[Any]) -> Any:
        result = answer(child)
        found.extend([result] if isinstance(result, Ingested) else [])
        return result

    monkeypatch.setattr(Child, "ask", record_order)
    monkeypatch.setattr(Child, "answer", record_answer)
    report = measure("ingest")
    assert set(EXPECTED["ingest"]) <= names_of(report, "ingest")
    assert len(names_of(report, "projection")) == 6
    assert [order.num_replayers for order in orders[1:]] == [4, 16, 64]
    by_name = {figure.name: figure for figure in report.figures}
    for order, ingested in zip(orders[1:], found[1:], strict=True):
        assert ingested.num_games == order.num_games
        assert ingested.num_lost == 0
        shown = by_name[f"{order.num_replayers} replayers, fully searched positions"]
        assert shown.value * shown.wall_s == pytest.approx(ingested.num_examples)
        assert shown.wall_s == ingested.wall_s
        shown = by_name[f"{order.num_replayers} replayers, all stored examples"]
        everything = ingested.num_examples + ingested.num_value_examples
        assert shown.value * shown.wall_s == pytest.approx(everything)


def test_replayers_whose_games_do_not_all_arrive_give_no_figures() -> None:
    played = Played(num_accepted=10, num_resent=0, wall_s=1.0, cpu_s=1.0)
    numbers = dict.fromkeys(Ingested.__struct_fields__, 0.0) | {"sample_cpu_s": []}
    for num_games, num_lost in ((9, 0), (10, 1)):
        ingested = Ingested(**numbers | {"num_games": num_games, "num_lost": num_lost})
        with pytest.raises(RuntimeError, match=f"10 were accepted, {num_games} ingested"):
            check(Phase(4, played, ingested, 0.1, 0), 10)


@pytest.mark.slow
@pytest.mark.system
def test_workers_and_learner_run_beside_each_other() -> None:
    report = measure("together")
    assert set(EXPECTED["together"]) <= names_of(report, "together")
    assert not any(found.one_core for found in report.figures)


def test_every_group_is_expected_here() -> None:
    assert set(EXPECTED) == set(suite.GROUPS)


# --- what is missing ------------------------------------------------------------------------------


def test_a_missing_package_leaves_its_group_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    report = suite.run(["learner", "onnx"], quick=True)
    assert report.figures == ()
    assert [skipped.group for skipped in report.skipped] == ["onnx", "learner"]
    assert all("torch is not installed" in skipped.reason for skipped in report.skipped)


def test_the_help_names_every_group() -> None:
    described = " ".join((bench.__doc__ or "").split())
    assert f"Groups: {', '.join(suite.GROUPS)}." in described


def test_an_unknown_group_is_refused_with_those_that_exist() -> None:
    with pytest.raises(
        UserError, match=r"group 'speed': allowed are play, levels, playouts, .*together"
    ):
        bench(only=("play", "speed"))


def test_a_model_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    with pytest.raises(ModelError, match=r"model\.onnx"):
        suite.run(["play"], quick=True, model=path)
    path.write_bytes(b"no model")
    with pytest.raises(ModelError, match="not an ONNX model"):
        suite.run(["play"], quick=True, model=path)


def test_a_given_model_is_the_one_that_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(setup.Setup(quick=True, folder=tmp_path).model)
    report = suite.run(["onnx"], quick=True, model=path)
    assert all("a trained network (0 updates, 192 wide" in found.how for found in report.figures)


def test_groups_run_in_their_own_order() -> None:
    assert suite.check_groups(["stream", "play"]) == ("play", "stream")
    assert suite.check_groups([]) == tuple(suite.GROUPS)


# --- figures --------------------------------------------------------------------------------------

SAMPLES = [Sample(100.0, 4.0, 2.0), Sample(100.0, 4.0, 1.0), Sample(100.0, 4.0, 4.0)]


def test_a_rate_is_the_median_against_processor_time() -> None:
    found = figures.rate(SAMPLES)
    assert (found.value, found.low, found.high) == (50.0, 25.0, 100.0)
    assert (found.repeats, found.wall_s, found.cpu_s) == (3, 12.0, 7.0)
    assert figures.rate(SAMPLES, one_core=False).value == 25.0


def test_a_cost_is_the_time_of_one() -> None:
    assert figures.cost(SAMPLES, figures.MILLISECONDS).value == 20.0


def make_figure(**changes: object) -> Figure:
    row = figures.figure("play", "walking", "steps/s", figures.rate(SAMPLES), "on foot")
    return msgspec.structs.replace(row, **changes)


def test_above_one_is_better_whichever_direction_better_is() -> None:
    assert make_figure(reference=25.0).ratio == 2.0
    assert make_figure(reference=25.0, lower_is_better=True).ratio == 0.5
    assert make_figure(goal=60.0).goal_is_met is False
    assert make_figure(goal=60.0, lower_is_better=True).goal_is_met is True
    assert make_figure().ratio is None
    assert make_figure().goal_is_met is None


# --- stopwatch ------------------------------------------------------------------------------------


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_time_in_another_watched_function_is_the_others() -> None:
    module = types.SimpleNamespace(inner=lambda: burn(0.02))
    module.outer = lambda: module.inner()
    inner, outer = module.inner, module.outer
    places = {"inner": ((module, "inner"),), "outer": ((module, "outer"),)}
    with stopwatch.watched(places) as watch:
        module.outer()
    assert watch.calls == {"inner": 1, "outer": 1}
    assert watch.seconds["inner"] >= 0.02 > watch.seconds["outer"]
    assert (module.inner, module.outer) == (inner, outer)


def test_watched_functions_are_put_back_after_an_error() -> None:
    module = types.SimpleNamespace(known=burn)
    with (
        pytest.raises(AttributeError, match="unknown"),
        stopwatch.watched({"a": ((module, "known"),), "b": ((module, "unknown"),)}),
    ):
        pass
    assert module.known is burn


# --- document -------------------------------------------------------------------------------------


def make_report(**changes: object) -> suite.Report:
    machine = suite.Machine(
        date="2030-01-01 12:00",
        system="Linux 6",
        processor="A processor",
        cores=2,
        memory_gb=8.0,
        versions={"python": "3.11.9"},
        commit="0123456789ab",
        load_before=(0.1, 0.1, 0.1),
        load_after=(1.0, 0.5, 0.2),
        busy_before_percent=1.0,
    )
    report = suite.Report(
        quick=False,
        groups=("play",),
        machine=machine,
        figures=(make_figure(reference=25.0, goal=60.0),),
        skipped=(),
        commands=("python -m deploy.bench.spiel euchre",),
        wall_s=60.0,
    )
    return msgspec.structs.replace(report, **changes)


def test_the_document_keeps_what_is_written_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "BENCHMARKS.md"
    text = document.with_report(document.read_document(path), make_report())
    assert "| walking | 50 | 25 – 100 | steps/s | 25 | 2.00 | ≥ 60 missed |" in text
    path.write_text(f"{text}\n| champion | 75 % |\n")
    again = document.with_report(document.read_document(path), make_report(figures=()))
    assert again.endswith("| champion | 75 % |\n")
    assert "walking" not in again
    assert again.startswith("# Benchmarks\n")


@pytest.mark.parametrize(
    "text", ["# Something else\n", document.BEGIN, f"{document.END}\n{document.BEGIN}\n"]
)
def test_another_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "NOTES.md"
    path.write_text(text)
    with pytest.raises(UserError, match=r"NOTES\.md': it has not the lines"):
        bench(out=str(path))
    assert path.read_text() == text


def test_a_missing_folder_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="its folder does not exist"):
        bench(out=str(tmp_path / "none" / "BENCHMARKS.md"))


def test_a_busy_machine_is_said() -> None:
    assert make_report(figures=()).warnings() == []
    busy = msgspec.structs.replace(make_report().machine, busy_before_percent=80.0)
    (warning,) = make_report(figures=(), machine=busy).warnings()
    assert "others used 80 % of its 2 processors" in warning
    (warning,) = make_report().warnings()  # 7 s computed in 12 s
    assert "less than 90% of the wall clock was computed in play" in warning
    waiting = make_figure(one_core=False)
    assert make_report(figures=(waiting,)).warnings() == []
    assert "Quick run" in make_report(figures=(), quick=True).warnings()[0]
    assert f"**{warning}**" in document.markdown(make_report())


def test_numbers_have_three_digits() -> None:
    assert [document.number(value) for value in (18_314_526.5, 5000.0, 999.6, 3.14159, 0.05)] == [
        "18,300,000",
        "5,000",
        "1,000",
        "3.14",
        "0.05",
    ]


def test_the_command_prints_json_and_writes_the_document(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("deploy.warm.warm_up", lambda: print("compiling"))
    monkeypatch.setattr(
        suite, "run", lambda names, quick, model, say: make_report(groups=tuple(names))
    )
    path = tmp_path / "BENCHMARKS.md"
    assert bench(only=("play",), out=str(path), json=True) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["figures"][0]["value"] == 50.0
    assert captured.err == "compiling\n"
    assert "walking" in path.read_text()
    assert bench(only=("play",)) == 0
    assert "walking" in capsys.readouterr().out
