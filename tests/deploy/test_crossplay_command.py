"""``cardleague crossplay``: players as people write them, the tables, and what is refused.

* matrix, gaps and verdict of real games of Cuarenta; the same as JSON; the same seed the same
* ``--simulations`` is the budget of players without a number, and of no others
* games without partnerships, repeated or unknown players and wrong counts are refused by name
"""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from deploy import cli
from deploy.commands import crossplay as command
from league.crossplay import CrossplayCell, CrossplayReport, Estimate, PairGap
from league.players import PlayerError

CUARENTA = ["--game", "cuarenta", "--rules", "report_a_4p"]


def printed(report: CrossplayReport) -> str:
    console = Console(file=io.StringIO(), width=160)
    command.print_report(report, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_matrix_of_real_games_as_json_and_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["crossplay", "rules", "random", "--games", "80", "--seed", "3", *CUARENTA]
    assert cli.main([*argv, "--json"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    found = json.loads(output.out)
    assert (found["game"], found["against"], found["num_deals"]) == ("cuarenta", "rules", 20)
    assert found["num_games"] == 240
    rates = {(cell["first"], cell["second"]): cell["win_rate"] for cell in found["cells"]}
    assert list(rates) == [("rules", "rules"), ("rules", "random"), ("random", "random")]
    assert rates["rules", "rules"] > 0.3 > rates["rules", "random"]
    assert rates["random", "random"] < 0.1
    assert cli.main(argv) == 0
    text = capsys.readouterr().out
    for words in ("partners against rules", "A  rules", "B  random", "with B", "Verdict: "):
        assert words in text
    for rate in rates.values():
        assert f"{100 * rate:.1f}" in text
    assert f"{100 * found['gap']['mean']:+.1f}" in text


def test_text_shows_every_cell_and_gap_of_the_report() -> None:
    def estimate(mean: float) -> Estimate:
        return Estimate(mean=mean, low=mean - 0.01, high=mean + 0.02)

    def cell(first: str, second: str, rate: float) -> CrossplayCell:
        return CrossplayCell(
            first=first,
            second=second,
            num_games=400,
            win_rate=rate,
            win_rate_low=rate - 0.043,
            win_rate_high=rate + 0.047,
        )

    names = ("x@v1:0", "y@v2:0", "z@v3:0")
    triangle = [(a, b) for i, a in enumerate(names) for b in names[i:]]
    rates = [0.71, 0.522, 0.533, 0.744, 0.555, 0.766]
    pairs = [(a, b) for a, b in triangle if a != b]
    report = CrossplayReport(
        game="cuarenta",
        rules={},
        seed=0,
        players=names,
        against="ismcts:100",
        num_deals=1_234,
        num_games=2_400,
        cells=tuple(cell(*pair, rate) for pair, rate in zip(triangle, rates, strict=True)),
        self_play=0.74,
        cross_play=0.54,
        gap=estimate(0.201),
        loss=estimate(0.182),
        pair_gaps=tuple(
            PairGap(first=a, second=b, gap=estimate(0.111 * n), loss=estimate(-0.033 * n))
            for n, (a, b) in enumerate(pairs, start=1)
        ),
        verdict="so it is",
    )
    text = printed(report)
    for rate in rates:
        assert f"{100 * rate:.1f}" in text
        assert f"{100 * (rate - 0.043):.1f} to {100 * (rate + 0.047):.1f}" in text
    lines = {line.split("│")[1].strip(): line for line in text.splitlines() if "│" in line}
    for label, gap, loss in (
        ("all pairs", "+20.1", "+18.2"),
        ("A and B", "+11.1", "-3.3"),
        ("A and C", "+22.2", "-6.6"),
        ("B and C", "+33.3", "-9.9"),
    ):
        assert gap in lines[label]
        assert loss in lines[label]
    assert "+19.1 to +22.1" in lines["all pairs"]
    for words in ("Verdict: so it is.", "1,234 deals", "two of ismcts:100"):
        assert words in text


def test_simulations_are_those_of_players_without_a_number() -> None:
    for text, simulations, expected in (
        ("ismcts", 8, ("ismcts:8", 8)),
        ("ismcts:2", 8, ("ismcts:2", 2)),
        ("run@champion", 128, ("run@champion:128", 128)),
        ("run@v3", 0, ("run@v3:0", 0)),
        ("file.onnx", 16, ("file.onnx:16", 16)),
        ("rules", 8, ("rules", 0)),
    ):
        found = command.with_simulations(text, simulations)
        assert (found.text, found.simulations) == expected
    with pytest.raises(PlayerError, match="'ismcts': no number"):
        command.with_simulations("ismcts", None)
    with pytest.raises(PlayerError, match="number '0'"):
        command.with_simulations("ismcts:0", 8)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["rules", "random", "--game", "kuhn", "--rules", "standard"], ["'kuhn'", "1, 1 seats"]),
        (["rules", "random", "--game", "cuarenta", "--rules", "report_b_2p"], ["'cuarenta'"]),
        (["rules", *CUARENTA], ["1 players", "two or more"]),
        ([*CUARENTA], ["0 players"]),
        (["rules"] * 27, ["27 players", "2 to 26"]),
        (["rules", "random", "rules", *CUARENTA], ["'rules' is named twice"]),
        (["rules", "rnadom", *CUARENTA], ["'rnadom'", "random, rules"]),
        (["rules", "random", "--against", "ruels", *CUARENTA], ["'ruels'"]),
        (["rules", "ismcts", *CUARENTA], ["'ismcts'", "no number of simulations"]),
        (["rules", "nothing@v1", "--simulations", "4"], ["'nothing'", "no such run"]),
        (["rules", "random", "--games", "6", *CUARENTA], ["6 games", "multiple of 4"]),
        (["rules", "random", "--seed", "-1", *CUARENTA], ["--seed -1"]),
        (["rules", "random"], ["--game"]),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    argv: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["crossplay", *argv]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    for word in words:
        assert word in output.err
