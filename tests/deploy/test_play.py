"""``cardleague play`` on a real terminal, in every game.

* A whole game by hints, with a move that is none and one that is taken back.
* Ctrl-D and Ctrl-C leave with exit code 0 and no traceback, at the prompt and elsewhere.
* A narrow terminal, NO_COLOR, bytes that are no text, and no terminal at all.
* A mistake on the command line is one line and exit code 2.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import cli
from engine.game import game_names
from tests.deploy.on_terminal import TIMEOUT_S, Terminal

GAMES = {
    "cuarenta": ("--seats", "rules,me", "--rules", "report_b_2p", "--set", "target=10"),
    "durak": ("--seats", "random,me,rules", "--set", "players=3"),
    "forty_fives": ("--seats", "me,rules,rules,rules"),
    "kuhn": (),
    "leduc": ("--seats", "rules, me"),
}
HINTS = ("--hints", "ismcts:60")
MOST_DECISIONS = 400


@pytest.fixture(autouse=True)
def _no_terminal_of_ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A terminal that a test starts is its own: the tests' one has no say."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    return


def table_in(shown: str) -> str:
    """Return the last table that was shown."""
    return shown[shown.rindex("You are seat") :]


def test_every_game_is_played() -> None:
    assert set(GAMES) == set(game_names())


@pytest.mark.parametrize("name", GAMES)
def test_a_whole_game_by_hints(name: str) -> None:
    terminal = Terminal("play", name, "--seed", "5", *GAMES[name], *HINTS)
    shown = terminal.next_prompt()
    assert "Legal: " in shown
    answer = terminal.answer("no such move")
    assert "move 'no such move': allowed are " in answer
    legal = shown.split("Legal: ")[1].split("\n")[0].split(" (Enter")[0]
    assert legal.split("; ")[0] in answer
    assert "There is nothing to take back yet." in terminal.answer("undo")
    took_back = False
    for _ in range(MOST_DECISIONS):
        hint = terminal.answer("hint")
        assert "value" in hint
        move = hint.rsplit("ismcts:60 would play: ", 1)[1].split("\n")[0]
        before = table_in(shown)
        shown = terminal.answer(move)
        assert f"\nyou: {move}\n" in shown
        if terminal.ended:
            break
        if not took_back:
            undone = terminal.answer("undo")
            assert "Back to your move before." in undone
            assert table_in(undone) == before
            assert terminal.answer(move) == shown
            took_back = True
    assert "The game is over. " in shown
    assert "--seed 5 deals the same cards again." in shown
    assert terminal.close() == 0
    assert "Traceback" not in terminal.raw


def test_ctrl_d_leaves_and_bytes_that_are_no_text_are_no_move() -> None:
    terminal = Terminal("play", "kuhn", "--seed", "3")
    terminal.next_prompt()
    terminal.send_bytes(b"\xff\xfe\x1b[31m\n")
    shown = terminal.next_prompt()
    assert "allowed are pass; bet" in shown
    assert "Your card" not in shown  # asked again, not begun again
    terminal.press("d")
    shown = terminal.next_prompt()
    assert terminal.ended
    assert "You left the game." in shown
    assert "Traceback" not in terminal.raw
    assert terminal.close() == 0


def test_ctrl_c_at_the_prompt_leaves() -> None:
    terminal = Terminal("play", "leduc", "--seed", "3")
    terminal.next_prompt()
    terminal.press("c")
    assert "You left the game." in terminal.next_prompt()
    assert terminal.close() == 0
    assert "Traceback" not in terminal.raw


def test_ctrl_c_while_a_player_thinks_leaves_as_well() -> None:
    terminal = Terminal("play", "durak", "--seed", "5", "--seats", "me,ismcts:100000")
    terminal.next_prompt()
    terminal.send_bytes(b"#1\n")
    terminal.wait_for("you: ")
    terminal.press("c")
    shown = terminal.next_prompt()
    assert terminal.ended
    assert "You left the game." in shown
    assert "Traceback" not in terminal.raw
    assert terminal.close() == 0


def test_a_narrow_terminal_without_color_shows_everything_in_its_width() -> None:
    columns = 30
    argv = ("play", "forty_fives", "--seed", "2", *HINTS)
    terminal = Terminal(*argv, columns=columns, environment={"NO_COLOR": "1"})
    shown = terminal.next_prompt() + terminal.answer("hint") + terminal.answer("help")
    terminal.press("d")
    assert terminal.close() == 0
    assert "\x1b" not in terminal.raw
    for line in terminal.raw.split("\r\n"):
        assert len(line) <= columns, line
    assert "Your cards: " in " ".join(shown.split())
    assert "would play: " in " ".join(shown.split())


def test_without_a_terminal_moves_come_from_a_pipe() -> None:
    argv = [
        sys.executable,
        "-m",
        "deploy.cli",
        "play",
        "kuhn",
        "--seed",
        "3",
        "--seats",
        "me,rules",
    ]
    lines = "hint\nnonsense\nbet\npass\npass\n"
    ended = subprocess.run(
        argv, input=lines, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "\nyour move> bet\nyou: bet\n" in ended.stdout
    assert "The game is over." in ended.stdout
    assert "\x1b" not in ended.stdout
    assert ended.stderr == ""


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("chess",), ["'chess'", "cuarenta"]),
        (("durak", "--seats", "rules,rules"), ["--seats rules,rules", "me once"]),
        (("durak", "--seats", "me,me"), ["--seats me,me", "me once"]),
        (("durak", "--seats", "me"), ["--seats me", "2 seats here, not 1"]),
        (("durak", "--seats", "me,"), ["player ''", "ismcts:"]),
        (("durak", "--seats", "me,expert"), ["'expert'", "ismcts:"]),
        (("durak", "--seats", "me,level:9"), ["'level:9'", "level:1 to level:4"]),
        (("kuhn", "--hints", "level:1"), ["'level:1'", "none"]),
        (("kuhn", "--rules", "x"), ["'x'", "standard"]),
        (("kuhn", "--set", "ante=0"), ["ante", "1 to 100"]),
        (("kuhn", "--set", "ante"), ["'ante'", "option=word"]),
        (("kuhn", "--seed", "-1"), ["-1"]),
        (("kuhn", "--seats", "me,nothing@champion:8"), ["'nothing'", "no such run"]),
        ((), ["GAME"]),
    ],
)
def test_a_mistake_is_one_line(
    argv: tuple[str, ...],
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["play", *argv]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    for word in words:
        assert word in captured.err
