"""The loop of a game at the terminal, with a keyboard and a screen in memory.

* What it shows never depends on what is hidden from the seat: with all of that changed every screen
  reads the same, tables, legal moves, hints and answers; a planted leak is seen.
* Unseen moves of a seat are told once, however many they are.
* Undo goes back to the decision before with the same cards; the same move gets the same answers.
* Commands, with a slash too; a move that is named like one is the move.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from deploy.playing import COMMANDS, LeftGame, TerminalGame
from engine import rules
from engine.game import get_spec
from engine.players import RulePlayer
from engine.rng import make_rng
from engine.sitting import Sitting
from league.advice import Advisor
from league.players import PlayContext, parse_player, resolve
from tests.engine import relay_game
from tests.playthroughs.generate import all_presets

PRESETS = pytest.mark.parametrize(("name", "preset"), all_presets())
WIDTH = 78
MOST_DECISIONS = 12


class Keyboard:
    """Lines that are typed; the person leaves when there are no more."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self.lines = list(lines)

    def __call__(self) -> str:
        if not self.lines:
            raise LeftGame
        return self.lines.pop(0)


class Table:
    """A game in memory: rule players on all seats but one."""

    def __init__(
        self,
        sitting: Sitting,
        own: int = 0,
        hints: str = "ismcts:10",
        kind: Callable[..., TerminalGame] = TerminalGame,
    ) -> None:
        self.sitting = sitting
        self.keyboard = Keyboard()
        self.screen = io.StringIO()
        spec, game = sitting.spec, sitting.game
        count = int(rules.num_seats(game))
        player = RulePlayer(spec, game)
        advisor = Advisor(resolve(parse_player(hints)), PlayContext(spec, game), playouts=4)
        self.loop = kind(
            sitting,
            own,
            {seat: player for seat in range(count) if seat != own},
            [*["rules"] * count, hints],
            advisor,
            Console(file=self.screen, width=WIDTH, markup=False, highlight=False),
            self.keyboard,
        )

    def shown(self) -> str:
        """Return what was shown since the last call."""
        text = self.screen.getvalue()
        self.screen.seek(0)
        self.screen.truncate()
        return text

    def run(self, *lines: str) -> str:
        """Type lines until the game is over or they have been read; return what was shown."""
        self.keyboard.lines = list(lines)
        with contextlib.suppress(LeftGame):
            self.loop.run()
        return self.shown()


def new_table(name: str, seed: int = 1, preset: str = "", **more: Any) -> Table:
    spec = get_spec(name)
    return Table(Sitting(spec, spec.make(preset), seed), **more)


# --- what is shown --------------------------------------------------------------------------------


def screen_of(table: Table) -> str:
    """Return all that can be shown at a decision of the person's seat."""
    table.keyboard.lines = ["hint", "moves", "table", "help", "what"]
    with pytest.raises(LeftGame):
        table.loop.ask()
    return table.shown()


def differing_screens(name: str, preset: str, kind: Callable[..., TerminalGame]) -> list[bool]:
    """Return for every decision of a game whether other hidden cards show another screen."""
    spec = get_spec(name)
    game = spec.make(preset)
    found = []
    own = 1
    table = Table(Sitting(spec, game, 4), own, kind=kind)
    other = Table(Sitting(spec, game, 4), own, kind=kind)
    rng = make_rng(6)
    sitting = table.sitting
    while sitting.seat >= 0 and len(found) < MOST_DECISIONS:
        view = sitting.view(sitting.seat)
        if sitting.seat == own:
            other.sitting.moves[:] = sitting.moves
            rules.determinize(game, view, own, rng, other.sitting.state)
            found.append(screen_of(table) != screen_of(other))
        sitting.play(int(rules.rule_action(game, view, sitting.seat, rng)))
    assert found
    return found


class LeakyGame(TerminalGame):
    """A planted leak: the table shows a sum over all cards."""

    def say_table(self) -> None:
        state = self._sitting.state
        cards = state.cards if "cards" in state.dtype.names else state.hands
        self.say(" ".join(str(int(card)) for card in cards))


@PRESETS
def test_the_screen_does_not_depend_on_hidden_cards(name: str, preset: str) -> None:
    assert not any(differing_screens(name, preset, TerminalGame))


@pytest.mark.parametrize("name", ["cuarenta", "durak", "forty_fives"])
def test_a_planted_leak_is_seen(name: str) -> None:
    assert any(differing_screens(name, "", LeakyGame))


def test_unseen_moves_are_told_once_however_many_they_are() -> None:
    table = new_table("forty_fives", seed=4)
    sitting, told = table.sitting, []
    while not sitting.state.num_played:
        seat = sitting.seat
        view = sitting.view(seat)
        action = int(rules.rule_action(sitting.game, view, seat, make_rng(1)))
        table.loop.say_move(seat, action)
        sitting.play(action)
        told += [line for line in table.shown().splitlines() if line]
    # The calls, trump, the discards of all seats, and the first card that is led.
    assert sum(line.endswith("moves unseen") for line in told) == 3
    assert len(sitting.moves) > len(told)
    assert not any(
        first == second and first.endswith("unseen") for first, second in itertools.pairwise(told)
    )


def test_a_seat_of_a_game_without_a_notation_sees_no_face_down_card() -> None:
    table = Table(Sitting(relay_game.SPEC, relay_game.Relay(), 5), own=0)
    shown = table.run("1")
    assert "you: action 0" in shown
    assert "seat 1 (rules): moves unseen" in shown
    assert "seat 2 (rules): action" in shown
    assert "Legal: 1 action 0; 2 action 1" in shown


# --- commands -------------------------------------------------------------------------------------


def test_undo_goes_back_to_the_decision_before_with_the_same_cards() -> None:
    table = new_table("cuarenta", seed=3, preset="report_b_2p")
    first = table.run()
    start = table.sitting.state.tobytes()
    moves = len(table.sitting.moves)
    second = table.run("#1")
    after = table.sitting.state.tobytes()
    assert second.startswith(first[first.index("\nYou are") :])
    third = table.run("undo")
    assert "Back to your move before." in third
    assert table.sitting.state.tobytes() == start
    assert len(table.sitting.moves) == moves
    assert "There is nothing to take back yet." in table.run("undo")
    # Nothing was drawn anew: the same move brings the same answers and the same cards.
    assert table.run("#1") == second
    assert table.sitting.state.tobytes() == after


def test_undo_goes_back_over_a_deal() -> None:
    table = new_table("leduc", seed=2)
    states = []
    while not states or not table.sitting.state.shown:
        states.append(table.sitting.state.tobytes())
        table.run("call" if len(states) > 1 else "check")
    table.run("undo")
    assert not table.sitting.state.shown
    assert table.sitting.state.tobytes() in states


def test_a_hint_names_its_player_its_move_and_a_value_for_every_move() -> None:
    table = new_table("durak", hints="rules")
    legal = table.run().split("Legal: ")[1].splitlines()[0].split("; ")
    shown = table.run("hint")
    assert f"rules would play: {legal[0]}" in shown  # the cheapest card
    for move in legal:
        assert f"\n  {move:<3}  value " in shown


def test_commands_are_answered_and_moves_come_first() -> None:
    table = new_table("kuhn", seed=3)
    shown = table.run("help", "/moves", "TABLE", "legal")
    for name, meaning in COMMANDS.items():
        assert f"{name}: {meaning[:40]}" in shown
    assert shown.count("Legal: pass; bet") == 3
    assert shown.count("Your card:") == 2
    assert table.sitting.moves == []
    table.run("/quit", "bet")
    assert table.sitting.moves == []


def test_enter_plays_the_only_move_and_nothing_else() -> None:
    table = new_table("durak")
    table.run("", "  ")
    assert table.sitting.moves == []
    # An attack that the other seat takes: the attacker may throw nothing and passes.
    while "(Enter plays it)" not in table.run("#1"):
        pass
    moves = len(table.sitting.moves)
    table.run("")
    assert len(table.sitting.moves) > moves


def test_the_end_tells_who_won() -> None:
    spec = get_spec("kuhn")
    for seed in range(8):
        table = Table(Sitting(spec, spec.make(), seed), own=0)
        shown = table.run("bet")
        outcome = table.sitting.returns()[0]
        assert np.sign(outcome) == (1 if "You won" in shown else -1)
        assert f"outcome {outcome:+g} for your side" in shown
