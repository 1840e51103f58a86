"""The command line.

* help answers at once: no heavy library is loaded, and the packages come from one folder
* a mistake is one line on stderr that names the value and what is allowed; exit code 2
* a second ``train`` of a run goes on with it, and refuses to change what the run is
* a process that other processes can see holds no password
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import cli
from deploy.commands import UserError, runs
from deploy.config import RunConfig
from deploy.manifest import new_manifest
from deploy.presets import load
from deploy.rundir import RunDirectory
from tests.deploy.statuses import running_status

HEAVY = ("ray", "torch", "numba", "scipy", "onnxruntime", "numpy", "redis", "prometheus_client")
Started = dict[str, object]


def run_python(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return result.stdout


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run a command that must be refused; return its one line."""
    assert cli.main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("cardleague: ")
    return lines[0]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Started:
    """Catch what would be started, in an empty working directory."""
    calls: Started = {}

    def fake_train(config: RunConfig, folder: Path, *, resume: bool, minutes: float | None) -> int:
        calls.update(config=config, folder=folder, resume=resume, minutes=minutes)
        return 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("deploy.supervise.train", fake_train)
    monkeypatch.setattr("deploy.preflight.check_in_child", lambda config, folder: None)
    return calls


def make_run(name: str, *overrides: str) -> RunDirectory:
    """Save a run under runs/ as its owner would."""
    directory = RunDirectory(Path("runs") / name)
    directory.prepare()
    config = load("smoke", overrides=[f"name={name}", *overrides], environment={})
    directory.save(new_manifest(config, ["cardleague"]))
    return directory


# --- start-up -------------------------------------------------------------------------------------


def test_importing_the_program_loads_nothing_heavy() -> None:
    loaded = run_python("import sys, deploy.cli; print(*sys.modules)").split()
    roots = {name.partition(".")[0] for name in loaded}
    assert "tyro" in roots
    assert not roots & set(HEAVY)


def test_help_answers_without_heavy_libraries_and_names_every_command() -> None:
    code = (
        "import sys\nfrom deploy import cli\n"
        "try:\n    cli.main(['--help'])\n"
        f"finally:\n    print('HEAVY', *set({HEAVY!r}) & set(sys.modules))"
    )
    text = run_python(code)
    assert text.splitlines()[-1] == "HEAVY"
    for command in cli.COMMANDS:
        assert command in text


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: cardleague {command}" in capsys.readouterr().out


def test_all_packages_come_from_one_folder() -> None:
    roots = cli.room_roots()
    assert set(roots) == {"engine", "replay", "learner", "league", "actors", "deploy"}
    assert set(roots.values()) == {Path(cli.__file__).resolve().parent.parent}
    cli.check_one_root(roots)


def test_a_package_of_the_same_name_elsewhere_is_one_clear_error() -> None:
    roots = {**cli.room_roots(), "learner": Path("/elsewhere"), "engine": None}
    with pytest.raises(UserError, match=r"engine from nowhere.*learner from /elsewhere"):
        cli.check_one_root(roots)


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((), ["train", "match"]),
        (("trian",), ["trian", "available: train", "warmup, bench"]),
        (("train",), ["PRESET|FILE.toml"]),
        (("train", "smoke", "--mintues", "3"), ["--mintues", "did you mean --minutes?"]),
        (("train", "smoke", "--nam", "x"), ["--nam", "did you mean --name?"]),
        (("train", "smoke", "--json"), ["--json"]),
        (("train", "smoke", "--minutes", "soon"), ["--minutes", "soon"]),
        (("train", "smoke", "--minutes", "-1"), ["-1.0", "above 0"]),
        (("train", "smoke", "--minutes", "nan"), ["nan", "above 0"]),
        (("train", "smoke", "--runtime", "cloud"), ["'cloud'", "--runtime", "inprocess or ray"]),
        (("train", "smoke", "--seed", "-1"), ["'-1'", "--seed", "at least 0"]),
        (("train", "smok"), ["'smok'", "did you mean 'smoke'?"]),
        (("train", "smoke", "--set", "gate.alhpa=1"), ["gate.alhpa", "did you mean 'gate.alpha'?"]),
        (("train", "smoke", "--set", "gate.p0=.5", "gate.p2=1"), ["gate.p2"]),
        (("resume", "nothing"), ["'nothing'", "does not exist"]),
        (("status", "nothing"), ["'nothing'", "does not exist"]),
        (("export", "nothing", "model.onnx"), ["'nothing'"]),
        (("export", "nothing", "model.bin"), ["'model.bin'", ".onnx"]),
        (("export", "run@12", "model.onnx"), ["'run@12'", "RUN@v12"]),
        (("match", "random", "rules"), ["--games"]),
        (("match", "rnadom", "rules", "--games", "2"), ["'rnadom'", "random", "ismcts:"]),
        (("match", "random", "rules", "--games", "2"), ["--game"]),
        (("match", "random", "rules", "--games", "2", "--game", "kuhn"), ["--rules"]),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    argv: tuple[str, ...],
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    started: Started,
) -> None:
    line = refused(capsys, *argv)
    for word in words:
        assert word in line
    assert not started


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_mistake_is_told_alike_in_every_locale(encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deploy.cli", "train", "smoke", "--nam", "x"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert done.returncode == 2
    assert done.stderr == (
        "cardleague: Unrecognized options: --nam, x; did you mean --name? (see cardleague --help)\n"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--game", "khun", "--rules", "standard"], ["'khun'", "kuhn"]),
        (["--game", "kuhn", "--rules", "odd"], ["'odd'", "standard"]),
        (["--game", "kuhn", "--rules", "standard", "--set", "ante=0"], ["ante = '0'", "1 to"]),
        (["--game", "kuhn", "--rules", "standard", "--set", "ante"], ["'ante'", "option=word"]),
        (["--game", "kuhn", "--rules", "standard", "--games", "3"], ["3 games", "even"]),
        (
            ["--game", "kuhn", "--rules", "standard", "--sequential", "p=1"],
            ["'p=1'", "p0, p1, alpha, beta"],
        ),
        (
            ["--game", "kuhn", "--rules", "standard", "--sequential", "p1=.4"],
            ["p1 = 0.4", "p0 < p1"],
        ),
    ],
)
def test_rules_of_a_match_are_checked(
    options: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(capsys, "match", "random", "random", "--json", "--games", "2", *options)
    for word in words:
        assert word in line


def test_a_password_in_an_address_is_refused_and_not_printed(
    capsys: pytest.CaptureFixture[str], started: Started
) -> None:
    line = refused(capsys, "train", "smoke", "--redis-url", "redis://:s3cret@localhost:1/0")
    assert "s3cret" not in line
    assert "CARDLEAGUE_REDIS_PASSWORD" in line


def test_a_game_that_does_not_exist_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "deploy.cli", "train", "smoke", "--set", "game.rules=reprot_a_4p"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 2
    assert "'reprot_a_4p'" in result.stderr
    assert "report_a_4p" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


# --- what is started ------------------------------------------------------------------------------


def test_train_starts_the_supervisor_with_everything_that_was_said(started: Started) -> None:
    argv = ["train", "smoke", "--name", "mine", "--minutes", "1.5", "--seed", "3"]
    argv += ["--runtime", "inprocess", "--ray-address", "10.0.0.1:6379"]
    argv += ["--redis-url", "redis://here:6379/0", "--accept-volatile-redis", "--allow-open-ray"]
    argv += ["--set", "self_play.games=8", "gate.games=16", "--set", "gate.alpha=0.01"]
    assert cli.main(argv) == 0
    assert started["folder"] == Path("runs/mine")
    assert started["resume"] is False
    assert started["minutes"] == 1.5
    config = started["config"]
    assert isinstance(config, RunConfig)
    assert (config.name, config.seed, config.runtime.kind) == ("mine", 3, "inprocess")
    assert (config.self_play.games, config.gate.games, config.gate.alpha) == (8, 16, 0.01)
    assert (config.replay.redis_url, config.replay.accept_volatile) == ("redis://here:6379/0", True)
    assert (config.runtime.ray_address, config.runtime.allow_open_ray) == ("10.0.0.1:6379", True)


def test_without_minutes_a_run_has_no_limit(started: Started) -> None:
    assert cli.main(["train", "smoke"]) == 0
    assert started["minutes"] is None


def test_train_on_an_existing_run_goes_on_with_it(
    started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run("mine", "seed=7", "gate.alpha=0.01")
    assert cli.main(["train", "smoke", "--name", "mine", "--set", "self_play.games=16"]) == 0
    assert started["resume"] is True
    config = started["config"]
    assert isinstance(config, RunConfig)
    assert (config.seed, config.gate.alpha, config.self_play.games) == (7, 0.01, 16)
    assert "self_play.games from 128 to 16" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "key"),
    [
        (["--seed", "8"], "seed"),
        (["--set", "network.width=128"], "network.width"),
        (["--set", "game.options.sum_cards=2+"], "game.options"),
        (["--set", "game.encoder=other"], "game.encoder"),
    ],
)
def test_train_refuses_to_change_what_a_run_is(
    options: list[str], key: str, started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run("mine", "seed=7")
    assert key in refused(capsys, "train", "smoke", "--name", "mine", *options)
    assert not started


def test_resume_takes_the_saved_configuration(started: Started) -> None:
    directory = make_run("mine", "seed=7", "self_play.games=16")
    assert cli.main(["resume", "runs/mine", "--minutes", "2"]) == 0
    assert started["config"] == directory.load().config
    assert (started["folder"], started["resume"], started["minutes"]) == (
        Path("runs/mine"),
        True,
        2.0,
    )
    assert cli.main(["resume", "mine"]) == 0


def test_a_live_run_is_not_started_twice(
    started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make_run("mine")
    with directory.lock():
        assert "live" in refused(capsys, "resume", "mine")
    assert not started


def test_a_damaged_manifest_is_named(started: Started, capsys: pytest.CaptureFixture[str]) -> None:
    directory = make_run("mine")
    directory.manifest_path.write_text("{")
    assert "manifest.json" in refused(capsys, "resume", "mine")


def test_a_mistyped_run_lists_those_that_exist(
    started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run("mine")
    assert "mine" in refused(capsys, "resume", "mien")


# --- status, games, match -------------------------------------------------------------------------


def test_status_tells_live_from_stopped(
    started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make_run("mine")
    directory.write_status(running_status())
    assert cli.main(["status", "mine", "--json"]) == 0
    stopped = json.loads(capsys.readouterr().out)
    assert (stopped["live"], stopped["state"]) == (False, "stopped")
    assert (stopped["workers"], stopped["plies_per_s"]) == ([], 0.0)
    with directory.lock():
        assert cli.main(["status", "mine", "--json"]) == 0
        live = json.loads(capsys.readouterr().out)
        assert cli.main(["status", "mine"]) == 0
    assert (live["live"], live["state"], live["totals"]["games"]) == (True, "running", 5123)
    assert "5,123" in capsys.readouterr().out


def test_status_of_a_run_that_never_ran(
    started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make_run("mine")
    assert "never started" in refused(capsys, "status", "mine")
    with directory.lock():
        assert "it is starting" in refused(capsys, "status", "mine")


def test_games_lists_rules_options_and_encoders(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["games"]) == 0
    text = capsys.readouterr().out
    for word in ("cuarenta", "report_a_4p", "ranks", "sum_cards = 2", "kuhn", "ante = 1"):
        assert word in text


def test_match_prints_figures_and_the_same_seed_the_same_games(
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = ["match", "rules", "random", "--games", "40", "--game", "kuhn", "--rules", "standard"]
    found = []
    for seed in ("5", "5", "6"):
        assert cli.main([*argv, "--seed", seed, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        document.pop("seconds_per_game")
        found.append(document)
    assert found[0] == found[1]
    assert found[0] != found[2]
    assert found[0]["num_games"] == 40
    assert found[0]["wins"] + found[0]["draws"] + found[0]["losses"] == 40
    assert cli.main(argv) == 0
    text = capsys.readouterr().out
    for word in ("win rate", "95 % interval", "verdict", "seconds a game", "different games"):
        assert word in text


def test_a_match_ends_when_its_test_decides(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["match", "rules", "random", "--games", "4000", "--game", "cuarenta"]
    argv += ["--rules", "report_b_2p", "--sequential", "p1=0.6,alpha=0.01"]
    assert cli.main([*argv, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = document["sequential"]
    assert (found["p1"], found["alpha"], found["max_pairs"]) == (0.6, 0.01, 2000)
    assert found["outcome"] == "promoted"
    assert document["num_games"] < 400
    assert cli.main(argv) == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for word in ("sequential test", "rules is stronger:", "decided pairs", "alpha = 0.01"):
        assert word in text


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "gathered"),
    [
        (["--set", "a=1", "b=2"], ["--set", "a=1", "--set", "b=2"]),
        (["x", "--set", "a=1", "--set", "b=2"], ["x", "--set", "a=1", "--set", "b=2"]),
        (["--set", "a=1", "y"], ["--set", "a=1", "y"]),
        (["--set", "--json"], ["--set", "--json"]),
    ],
)
def test_settings_are_gathered(argv: list[str], gathered: list[str]) -> None:
    assert cli.gather_settings(argv) == gathered


def test_find_run_takes_a_path_or_a_name(started: Started) -> None:
    make_run("mine")
    assert runs.find_run("mine") == Path("runs/mine")
    assert runs.find_run("runs/mine") == Path("runs/mine")
