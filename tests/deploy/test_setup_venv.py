"""The set-up of the environment, as far as it decides anything.

* which torch: what was asked for, else what is installed, else by the driver
* an index that does not answer is passed over at once; what is downloaded is said before
* nothing is done twice; pins and options that are missing are named
"""

from __future__ import annotations

import json
import platform
import re
import socket
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest

from deploy import setup_venv
from deploy.setup_venv import CPU_INDEX, ROOT, SetupError, choose_torch, install_torch


class Pip:
    """Notes what pip is asked for; the first ``failures`` calls fail."""

    def __init__(self, failures: int = 0) -> None:
        self.calls: list[tuple[str, ...]] = []
        self._failures = failures

    def __call__(self, *arguments: str) -> bool:
        self.calls.append(arguments)
        return len(self.calls) > self._failures


def install(pip: Pip, torch: str = "cpu", system: str = "Linux", *, reachable: bool = True) -> None:
    install_torch(torch, pip, ROOT, system=system, reachable=lambda url, timeout_s: reachable)


@pytest.mark.parametrize(
    ("wanted", "installed", "driver", "chosen"),
    [
        ("cpu", "cuda", True, "cpu"),
        ("cuda", "cpu", False, "cuda"),
        ("auto", "", True, "cuda"),
        ("auto", "", False, "cpu"),
        ("auto", "cpu", True, "cpu"),
    ],
)
def test_which_torch(wanted: str, installed: str, driver: bool, chosen: str) -> None:
    assert choose_torch(wanted, installed, driver) == chosen


def test_unknown_torch_is_refused() -> None:
    with pytest.raises(SetupError, match="TORCH=gpu: allowed are cpu and cuda"):
        choose_torch("gpu", "", False)


def test_cpu_build_comes_from_its_own_index_as_an_extra_one() -> None:
    pip = Pip()
    install(pip)
    assert len(pip.calls) == 1
    assert pip.calls[0][-2:] == ("--extra-index-url", CPU_INDEX)
    assert "torch==2.13.0" in pip.calls[0]


def test_silent_index_is_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    pip = Pip()
    install(pip, reachable=False)
    assert len(pip.calls) == 1
    assert CPU_INDEX not in pip.calls[0]
    out = capsys.readouterr().out
    assert "does not answer" in out
    assert "3 GB" in out, "what may be downloaded instead is said before"


def test_failing_index_falls_back_to_pips_own() -> None:
    pip = Pip(failures=1)
    install(pip)
    assert [CPU_INDEX in call for call in pip.calls] == [True, False]


def test_a_torch_that_cannot_be_had_is_an_error() -> None:
    with pytest.raises(SetupError, match=r"torch==2\.13\.0"):
        install(Pip(failures=2))


@pytest.mark.parametrize(("torch", "system"), [("cuda", "Linux"), ("cpu", "Darwin")])
def test_elsewhere_pips_own_index_has_the_right_build(torch: str, system: str) -> None:
    pip = Pip()
    install(pip, torch, system)
    assert [CPU_INDEX in call for call in pip.calls] == [False]


def test_no_cuda_on_macos() -> None:
    with pytest.raises(SetupError, match="no CUDA on macOS"):
        install(Pip(), "cuda", "Darwin")


@pytest.mark.parametrize("torch", ["cpu", "cuda"])
def test_size_is_said_before_the_download(torch: str, capsys: pytest.CaptureFixture[str]) -> None:
    def pip(*arguments: str) -> bool:
        assert "GB" in capsys.readouterr().out
        return True

    install_torch(torch, pip, ROOT, system="Linux", reachable=lambda url, timeout_s: True)


def test_a_listener_that_never_speaks_costs_no_more_than_the_time_limit() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        assert not setup_venv.answers(f"http://127.0.0.1:{silent.getsockname()[1]}/", 0.2)
        assert time.monotonic() - began < 5


def test_every_dependency_is_pinned() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    pins = {
        line.partition("==")[0].lower().replace("_", "-"): line.partition("==")[2]
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    }
    named = re.findall(r'"([A-Za-z0-9-]+)>=', project)
    assert len(named) > 20
    assert not [name for name in named if name.lower() not in pins]
    assert pins["torch"] == "2.13.0"
    assert not [pin for pin in pins.values() if not pin or "+" in pin or "--hash" in pin]


def test_an_up_to_date_environment_is_left_alone(tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "cardleague").touch()
    stamp = {
        "fingerprint": setup_venv.fingerprint(ROOT, platform.python_version()),
        "torch": "cpu",
        "extras": "learner,test",
    }
    (environment / setup_venv.STAMP).write_text(json.dumps(stamp))
    for extras in ("learner", "learner,test"):
        assert setup_venv.main(["--venv", str(environment), "--extras", extras]) == 0
    assert sorted(path.name for path in environment.iterdir()) == ["bin", setup_venv.STAMP]


def test_changed_pins_change_the_fingerprint(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    before = setup_venv.fingerprint(tmp_path, "3.11.7")
    (tmp_path / "constraints.txt").write_text("numpy==1\n")
    assert setup_venv.fingerprint(tmp_path, "3.11.7") != before
    assert setup_venv.fingerprint(tmp_path, "3.12.0") != setup_venv.fingerprint(tmp_path, "3.11.7")


def test_an_installed_package_is_compared_with_its_pin(tmp_path: Path) -> None:
    python, version = Path(sys.executable), metadata.version("rich")
    for pin, expected in ((version, True), ("0.1", False)):
        (tmp_path / "constraints.txt").write_text(f"rich=={pin}\nno-such-package==1\n")
        assert setup_venv.has_pinned(python, "rich", tmp_path) is expected
    assert not setup_venv.has_pinned(python, "no-such-package", tmp_path)


def test_damaged_stamp_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / setup_venv.STAMP).write_text("{")
    assert setup_venv.read_stamp(tmp_path) == {}


def test_the_script_runs_without_anything_installed(tmp_path: Path) -> None:
    """Started as make does, isolated, without site packages: the standard library is enough."""
    script = ROOT / "deploy" / "setup_venv.py"
    result = subprocess.run(
        [sys.executable, "-I", "-S", str(script), "--venv", str(tmp_path / "v"), "--torch", "gpu"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 2
    assert result.stderr == "set-up: TORCH=gpu: allowed are cpu and cuda (nothing: by the driver)\n"
    assert not (tmp_path / "v").exists()
