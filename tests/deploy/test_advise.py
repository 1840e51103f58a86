"""``cardleague advise``: every position case, what a seat cannot know, and mistakes.

* The legal moves of every case of kind ply, line, follow and auction are the expected ones.
* Every legal move has a value, and the move to play is one of them; on a real terminal, in every
  game. The same seed gives the same answer.
* The cards of others in a document make no difference to the answer.
* A position that cannot be, and whatever else is wrong, is one line and exit code 2.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from deploy import cli
from engine.game import game_names
from tests.deploy.on_terminal import Terminal
from tests.league.tiny_models import make_model

CASES = Path(__file__).parents[1] / "cases"
KINDS = ("ply", "line", "follow", "auction")


def all_cases() -> list[dict[str, Any]]:
    found = [case for path in sorted(CASES.glob("*.json")) for case in json.loads(path.read_text())]
    return [case for case in found if case["kind"] in KINDS]


def expected(case: dict[str, Any]) -> list[str] | None:
    """Return the legal moves that a case expects, in the notation of its game."""
    wanted = case["expect"]
    if case["kind"] == "ply":
        moves = [(action["play"], " ".join(action["take"])) for action in wanted]
        return [f"{card} takes {taken}" if taken else card for card, taken in moves]
    if case["kind"] == "line":
        return [] if wanted.get("over") else wanted.get("legal")
    return [str(move) for move in wanted]


def save(folder: Path, document: object) -> str:
    path = folder / "position.json"
    path.write_text(json.dumps(document))
    return str(path)


def answer(capsys: pytest.CaptureFixture[str], game: str, path: str, *argv: str) -> Any:
    """Return what the command prints as JSON."""
    assert cli.main(["advise", "--game", game, "--position", path, "--json", *argv]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_every_kind_and_game_has_cases() -> None:
    assert {case["kind"] for case in all_cases()} == set(KINDS)
    assert sum(expected(case) is not None for case in all_cases()) >= 60


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: f"{case['game']}-{case['id']}")
def test_the_legal_moves_of_a_case(
    case: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = save(tmp_path, case)
    found = answer(capsys, case["game"], path, "--legal")
    assert list(found) == ["legal"]
    wanted = expected(case)
    if wanted is not None:
        assert sorted(found["legal"]) == sorted(wanted)
    assert cli.main(["advise", "--game", case["game"], "--position", path, "--legal"]) == 0
    assert capsys.readouterr().out.splitlines() == found["legal"]


@pytest.mark.parametrize("player", ["ismcts:64", "rules"])
@pytest.mark.parametrize("identity", ["C25opt", "D09", "D22b", "F09", "F33a"])
def test_every_legal_move_of_a_case_has_a_value(
    identity: str, player: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    case = next(case for case in all_cases() if case["id"] == identity)
    path = save(tmp_path, case)
    argv = (case["game"], path, "--player", player, "--seed", "7")
    found = answer(capsys, *argv)
    assert found["move"] in found["legal"]
    assert [row["move"] for row in found["moves"]] == found["legal"]
    assert all(isinstance(row["value"], float) for row in found["moves"])
    assert sum(row["share"] for row in found["moves"]) == pytest.approx(1.0)
    assert sorted(found["legal"]) == sorted(expected(case) or found["legal"])
    assert answer(capsys, *argv) == found


def test_a_game_that_is_over_has_no_moves(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    case = next(case for case in all_cases() if case["id"] == "D13")
    found = answer(capsys, "durak", save(tmp_path, case))
    assert found["move"] is None
    assert found["legal"] == found["moves"] == []
    assert cli.main(["advise", "--game", "durak", "--position", save(tmp_path, case)]) == 0
    assert "The game is over." in capsys.readouterr().out


LINE: dict[str, Any] = {
    "trump": "H",
    "hands": [["6S", "6C", "7C", "8C", "10C", "JC"], ["7S", "8S", "9C", "6H", "KD", "QD"]],
    "talon": 3,
    "turned_up": "9H",
    "moves": ["6S"],
}


@pytest.mark.parametrize("player", ["ismcts:64", "rules"])
def test_the_cards_of_others_make_no_difference(
    player: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = LINE["hands"][1]
    found = [
        answer(capsys, "durak", save(tmp_path, {**LINE, "hands": [hand, own]}), "--player", player)
        for hand in (LINE["hands"][0], ["6S", "AH", "KH", "QH", "JH", "10H"], 6)
    ]
    assert found[0] == found[1] == found[2]
    other = {**LINE, "hands": [6, [*own[:-1], "AD"]]}
    assert answer(capsys, "durak", save(tmp_path, other), "--player", player) != found[0]


def test_the_last_trick_is_advised_by_what_the_hand_can_win(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # The five is the best trump: the only card of the two that no other beats.
    document = {"trump": "S", "led": "9D", "hand": ["5S", "2C"], "kind": "follow"}
    found = answer(capsys, "forty_fives", save(tmp_path, document), "--player", "ismcts:1600")
    assert found["draws"] > 1  # the tricks before are not given
    assert set(found["legal"]) == {"5S", "2C"}


def test_rules_come_from_the_document_or_from_the_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    document: dict[str, Any] = {"table": ["5"], "hand": ["5"]}
    path = save(tmp_path, document)
    assert answer(capsys, "cuarenta", path, "--legal") == {"legal": ["5 takes 5", "5"]}
    two = answer(capsys, "cuarenta", path, "--legal", "--rules", "report_b_2p")
    assert two == {"legal": ["5 takes 5"]}
    one = answer(capsys, "cuarenta", path, "--legal", "--set", "must_capture=yes")
    assert one == {"legal": ["5 takes 5"]}
    path = save(tmp_path, {**document, "rules": {"preset": "report_b_2p"}})
    assert answer(capsys, "cuarenta", path, "--legal") == {"legal": ["5 takes 5"]}


def test_a_model_advises_in_its_own_game_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model = tmp_path / "tiny.onnx"
    model.write_bytes(make_model(1))
    path = save(tmp_path, {"hand": "K", "moves": ["bet"]})
    for argv in (("--model", str(model)), ("--player", f"{model}:0")):
        found = answer(capsys, "kuhn", path, *argv)
        assert found["player"].startswith(f"{model}:")
        # With 0 simulations nothing is searched, and the values are those of playouts.
        assert [row["value"] for row in found["moves"]] == [-1.0, 2.0]
    path = save(tmp_path, {"hand": "K", "rules": {"ante": 2}})
    words = ["ante"]
    assert_refused(capsys, words, "--game", "kuhn", "--position", path, "--model", str(model))
    path = save(tmp_path, {"hand": "K"})
    words = ["'kuhn'", "'leduc'"]
    assert_refused(capsys, words, "--game", "leduc", "--position", path, "--model", str(model))


def test_the_position_may_come_from_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"hand": "K"}')))
    assert answer(capsys, "kuhn", "-", "--legal") == {"legal": ["pass", "bet"]}


# --- on a terminal --------------------------------------------------------------------------------

SMALL = {
    "cuarenta": ({"table": ["5", "6"], "just_placed_index": 0, "hand": ["5", "Q"]}, "5 takes 5 6"),
    "durak": ({"trump": "H", "hands": [["7S"], ["8S", "KD"]], "moves": ["7S"]}, "8S"),
    "forty_fives": ({"trump": "S", "led": "JS", "hand": ["AH", "KD", "2C"]}, "AH"),
    "kuhn": ({"hand": "K", "moves": ["bet"]}, "bet"),
    "leduc": ({"hand": "K", "board": "K", "moves": ["check", "check", "raise"]}, "raise"),
}


@pytest.mark.parametrize("name", SMALL)
def test_advice_on_a_terminal(name: str, tmp_path: Path) -> None:
    assert set(SMALL) == set(game_names())
    document, move = SMALL[name]
    path = save(tmp_path, document)
    argv = ("advise", "--game", name, "--position", path, "--player", "ismcts:640")
    terminal = Terminal(*argv, columns=60, environment={"NO_COLOR": "1"})
    shown = terminal.next_prompt()
    assert terminal.close() == 0
    assert "You are seat" in shown
    assert f"  {move}" in shown
    assert "value" in shown
    assert f"Play {move}, says ismcts:640" in shown
    assert "\x1b" not in terminal.raw


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "content", "words"),
    [
        ("chess", "{}", ["'chess'", "cuarenta"]),
        ("durak", "", ["one JSON object"]),
        ("durak", "[" * 100_000, ["one JSON object"]),
        ("durak", "[1, 2]", ["one JSON object, not a list of 2"]),
        ("durak", '{"trump": "H"}', ["'hands'"]),
        ("durak", '{"game": "kuhn"}', ["'kuhn'", "--game is 'durak'"]),
        ("durak", '{"trump": "H", "hands": [["7S"], ["7S"]]}', ["7S", "two places"]),
        ("durak", '{"trump": "H", "hands": [30, 30]}', ["30 cards", "6 are left"]),
        ("durak", '{"trump": "H", "hands": [1, 1], "stock": 3}', ["'stock'", "talon"]),
        ("durak", '{"rules": {"limit": 7}}', ["limit", "6, none"]),
        ("durak", '{"rules": {"limits": 6}}', ["'limits'", "first_limit"]),
        ("durak", '{"rules": {"preset": "x"}}', ["'x'", "report_d"]),
        ("durak", '{"rules": {"preset": []}}', ["preset []"]),
        ("durak", '{"rules": 3}', ["rules 3"]),
        ("durak", '{"trump": "H", "hands": [3, ["7S"]]}', ["hand of the seat to move"]),
        ("cuarenta", '{"table": [], "hand": ["A","A","A","A","A"]}', ["'A'", "more than 4"]),
        ("cuarenta", '{"kind": "count", "piles": [20, 20]}', ["'count'", "ply"]),
        ("forty_fives", '{"kind": "trick", "trick": []}', ["'trick'", "auction, follow"]),
        ("forty_fives", '{"bids_so_far": ["40"]}', ["'40'", "30for60"]),
    ],
)
def test_a_mistake_in_a_position_is_one_line(
    game: str, content: str, words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "position.json"
    path.write_text(content)
    assert_refused(capsys, words, "--game", game, "--position", str(path))


def assert_refused(capsys: pytest.CaptureFixture[str], words: list[str], *argv: str) -> None:
    assert cli.main(["advise", *argv]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    for word in words:
        assert word in captured.err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--player", "foo"), ["'foo'", "ismcts:"]),
        (("--player", "level:1"), ["'level:1'", "none"]),
        (("--model", "nothing"), ["'nothing'", "no such run"]),
        (("--model", "nothing.onnx"), ["nothing.onnx"]),
        (("--model", "a", "--player", "rules"), ["--player rules", "--model a", "one of them"]),
        (("--rules", "x"), ["'x'", "standard"]),
        (("--seed", "-1"), ["-1"]),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(
    argv: tuple[str, ...],
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = save(tmp_path, {"hand": "K"})
    assert_refused(capsys, words, "--game", "kuhn", "--position", path, *argv)


def test_a_file_that_cannot_be_read_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        assert_refused(capsys, ["cannot be read"], "--game", "kuhn", "--position", str(path))
    large = tmp_path / "large.json"
    large.write_text(" " * 1_000_001)
    assert_refused(capsys, ["1,000,000 bytes"], "--game", "kuhn", "--position", str(large))
    binary = tmp_path / "binary.json"
    binary.write_bytes(b'{"hand": "\xff"}')
    assert_refused(capsys, ["JSON object"], "--game", "kuhn", "--position", str(binary))


def test_rules_twice_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = save(tmp_path, {"hand": "K", "rules": {"ante": 2}})
    argv = ("--game", "kuhn", "--position", path, "--rules", "standard")
    assert_refused(capsys, ["--rules and --set", "rules of its own"], *argv)
