"""Compiling once: the tiny run goes through every room, and nothing is compiled twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deploy import warm


def test_the_tiny_run_reaches_an_optimizer_step() -> None:
    warm.train("kuhn")  # raises when it does not


def test_what_is_marked_is_not_played_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played: list[str] = []
    monkeypatch.setattr(warm, "marker", lambda game: tmp_path / f"{game}.warm")
    monkeypatch.setattr(warm, "play", played.append)
    monkeypatch.setattr(warm, "train", played.append)
    warm.warm_up(["kuhn"])
    assert played == ["kuhn", "kuhn"]
    assert "compiling the kernels of kuhn" in capsys.readouterr().out
    warm.warm_up(["kuhn"])
    assert played == ["kuhn", "kuhn"]
    assert capsys.readouterr().out == ""


def test_a_failure_leaves_no_marker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(game: str) -> None:
        raise RuntimeError(game)

    monkeypatch.setattr(warm, "marker", lambda game: tmp_path / f"{game}.warm")
    monkeypatch.setattr(warm, "play", fail)
    with pytest.raises(RuntimeError, match="kuhn"):
        warm.warm_up(["kuhn"])
    assert list(tmp_path.iterdir()) == []


def test_the_marker_follows_the_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = _copy(tmp_path / "copy")
    monkeypatch.setattr(warm, "ROOT", folder)
    before = warm.marker("kuhn")
    assert before == warm.marker("kuhn") != warm.marker("cuarenta")
    (folder / SOURCE).write_text("changed = True\n")
    os.utime(folder / SOURCE, ns=(0, 0))
    assert warm.marker("kuhn") != before


def test_a_copy_elsewhere_and_one_checked_out_again_are_cold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = _copy(tmp_path / "first"), _copy(tmp_path / "second")
    monkeypatch.setattr(warm, "ROOT", first)
    before = warm.marker("kuhn")
    monkeypatch.setattr(warm, "ROOT", second)
    assert warm.marker("kuhn") != before
    monkeypatch.setattr(warm, "ROOT", first)
    os.utime(first / SOURCE, ns=(1, 1))
    assert warm.marker("kuhn") != before


SOURCE = Path("actors") / "lockstep.py"


def _copy(folder: Path) -> Path:
    """Return ``folder`` with one source file of a room, the same whenever it is made."""
    (folder / SOURCE).parent.mkdir(parents=True)
    (folder / SOURCE).write_text("changed = False\n")
    os.utime(folder / SOURCE, ns=(0, 0))
    return folder
