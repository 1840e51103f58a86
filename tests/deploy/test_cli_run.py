"""The program as its user runs it: train, look, resume, match, export, in real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SETTINGS = ["--set", "report.num_games=4", "report.simulations=0"]


def cardleague(folder: Path, *argv: str) -> str:
    """Run the program in ``folder`` without a terminal; return what it printed."""
    result = subprocess.run(
        [sys.executable, "-m", "deploy.cli", *argv],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.system
def test_train_status_resume_match_export(tmp_path: Path) -> None:
    shown = cardleague(
        tmp_path, "train", "kuhn-smoke", "--name", "k", "--minutes", "0.05", *SETTINGS
    )
    assert "running" in shown
    assert "k: champion v" in shown, "the closing table follows"
    before = json.loads(cardleague(tmp_path, "status", "k", "--json"))
    assert (before["live"], before["state"]) == (False, "stopped")
    assert before["totals"]["games"] > 0
    cardleague(tmp_path, "resume", "runs/k", "--minutes", "0.05")
    after = json.loads(cardleague(tmp_path, "status", "k", "--json"))
    assert after["totals"]["games"] > before["totals"]["games"]
    assert after["elapsed_s"] > before["elapsed_s"]
    assert after["run_id"] == before["run_id"]
    assert "kuhn" in cardleague(tmp_path, "export", "k", "best.onnx")
    match = ["match", "best.onnx:4", "k@champion:0", "--games", "20", "--json"]
    found = json.loads(cardleague(tmp_path, *match))
    assert (found["game"], found["num_games"]) == ("kuhn", 20)
    assert [player["name"] for player in found["players"]] == ["best.onnx:4", "k@champion:0"]
