"""A game at the terminal: one seat is a person's, the others are players of the program.

Room: deploy. Imports rich and the engine. What is shown follows from the view of the person's seat
and from what that seat sees of each move, and from nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from rich.console import Console

from engine import rules
from engine.notation import (
    UNSEEN,
    MoveError,
    legal_moves,
    listed,
    normalized,
    parse_move,
    seen_move,
    table_text,
)
from engine.players import Player, act_with_past
from engine.rules import TERMINAL
from engine.sitting import Sitting
from league.advice import Advisor, as_views

PROMPT = "your move> "
COMMANDS = {
    "hint": "what the advisor would play, and what every move is worth",
    "undo": "back to your move before, with the same cards; what you saw meanwhile you have seen",
    "moves": "the legal moves",
    "table": "the table once more",
    "help": "this",
    "quit": "leave the game, as Ctrl-D does",
}
VALUE_NOTE = "Value: the mean outcome expected for the side to move; above 0 is better than even."
OTHER_NAMES = {"?": "help", "exit": "quit", "q": "quit", "legal": "moves"}


class LeftGame(Exception):
    """The person has left."""


def new_console() -> Console:
    """Return a console on standard output; it writes no escape codes when NO_COLOR is set."""
    return Console(
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        highlight=False,
        emoji=False,
    )


def read_line() -> str:
    """Ask for a line on the terminal. Raises LeftGame at its end, and at Ctrl-C."""
    try:
        line = input(PROMPT)
    except (EOFError, KeyboardInterrupt):
        sys.stdout.write("\n")
        raise LeftGame from None
    except UnicodeDecodeError:
        return "\ufffd"
    if not sys.stdin.isatty():
        sys.stdout.write(f"{line}\n")
    return line


def say_moves(console: Console, moves: Sequence[tuple[str, float, float]]) -> None:
    """Print (move, value, share) of each legal move."""
    width = max(len(text) for text, _, _ in moves)
    for text, value, share in moves:
        console.print(f"  {text:<{width}}  value {value:+.2f}  searched {100 * share:3.0f} %")
    console.print(VALUE_NOTE)


class TerminalGame:
    """A game, and the loop that plays it with a person."""

    def __init__(
        self,
        sitting: Sitting,
        own: int,
        players: Mapping[int, Player],
        names: Sequence[str],
        advisor: Advisor,
        console: Console,
        read: Callable[[], str] = read_line,
    ) -> None:
        """Prepare; nothing is shown yet.

        Args:
            sitting: The game.
            own: The person's seat.
            players: Who plays each of the other seats.
            names: Names of all seats; the advisor's is last.
            advisor: Whom a hint asks.
            console: Where everything is shown.
            read: Returns a line that the person wrote. Raises LeftGame.
        """
        self._sitting = sitting
        self._own = own
        self._players = players
        *self._names, self._advisor_name = names
        self._advisor = advisor
        self._console = console
        self._read = read
        self._unseen = -1
        """Seat whose moves are unseen at present: it is said once, not how many they are."""

    def run(self) -> None:
        """Play to the end of the game. Raises LeftGame."""
        sitting = self._sitting
        while (seat := sitting.seat) != TERMINAL:
            action = self.ask() if seat == self._own else self._choose(seat)
            if action is not None:
                self.say_move(seat, action)
                sitting.play(action)
        self._say_end()

    # --- what is shown ----------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Print lines."""
        self._console.print(text)

    def say_table(self) -> None:
        """Print what the person's seat knows."""
        sitting = self._sitting
        view = sitting.view(self._own)
        self.say("")
        self.say(table_text(sitting.spec, sitting.game, view, self._own))

    def say_move(self, seat: int, action: int) -> None:
        """Print what the person's seat sees of a move that is about to be played."""
        sitting = self._sitting
        seen = seen_move(sitting.spec, sitting.game, sitting.state, action, self._own)
        if seen == UNSEEN and self._unseen == seat:
            return
        self._unseen = seat if seen == UNSEEN else -1
        who = "you" if seat == self._own else f"seat {seat} ({self._names[seat]})"
        self.say(f"{who}: {seen}")

    def _say_legal(self, moves: Mapping[str, int]) -> None:
        only = " (Enter plays it)" if len(moves) == 1 else ""
        self.say(f"Legal: {listed(self._sitting.spec, dict(moves))}{only}")

    def _say_hint(self) -> None:
        """Print the advice for the person's seat."""
        sitting = self._sitting
        view = sitting.view(self._own)
        views = as_views([view], sitting.spec.state_dtype)
        past = sitting.past(self._own)
        advice = self._advisor.advise(views, self._own, sitting.key(), past)
        moves = legal_moves(sitting.spec, sitting.game, view)
        names = {code: text for text, code in moves.items()}
        say_moves(
            self._console,
            [(names[found.action], found.value, found.share) for found in advice.actions],
        )
        self.say(f"{self._advisor_name} would play: {names[advice.best]}")

    def _say_end(self) -> None:
        self.say_table()
        side = int(rules.side_of(self._sitting.game, self._own))
        outcome = float(self._sitting.returns()[side])
        word = "Drawn" if outcome == 0 else "You won" if outcome > 0 else "You lost"
        self.say(f"The game is over. {word}: outcome {outcome:+g} for your side.")

    # --- decisions --------------------------------------------------------------------------------

    def _choose(self, seat: int) -> int:
        """Return the action of a player of the program."""
        sitting = self._sitting
        views = as_views([sitting.view(seat)], sitting.spec.state_dtype)
        chosen = np.zeros(1, np.int64)
        keys = np.array([sitting.key()], np.uint64)
        positions = (views, np.array([seat], np.int64), keys)
        act_with_past(self._players[seat], positions, sitting.past(seat), chosen)
        return int(chosen[0])

    def ask(self) -> int | None:
        """Show the table and return the person's action; None after an undo. Raises LeftGame."""
        sitting = self._sitting
        view = sitting.view(self._own)
        moves = legal_moves(sitting.spec, sitting.game, view)
        self._unseen = -1
        self.say_table()
        self._say_legal(moves)
        while True:
            text = self._read()
            command = self._command(text, moves)
            if command == "undo":
                if self._undo():
                    return None
            elif command:
                self._obey(command, moves)
            elif not text.strip():
                if len(moves) == 1:
                    return next(iter(moves.values()))
            else:
                try:
                    return parse_move(sitting.spec, sitting.game, view, text)
                except MoveError as error:
                    self.say(f"{error} (help lists the commands)")

    def _command(self, text: str, moves: Mapping[str, int]) -> str:
        """Return the command that ``text`` is, or an empty word. Moves come first."""
        word = normalized(text)
        if word in map(normalized, moves):
            return ""
        word = OTHER_NAMES.get(word.removeprefix("/"), word.removeprefix("/"))
        return word if word in COMMANDS else ""

    def _obey(self, command: str, moves: Mapping[str, int]) -> None:
        """Do what a command says, other than ``undo``. Raises LeftGame."""
        if command == "quit":
            raise LeftGame
        if command == "hint":
            self._say_hint()
        elif command == "moves":
            self._say_legal(moves)
        elif command == "table":
            self.say_table()
        else:
            for name, meaning in COMMANDS.items():
                self.say(f"  {name}: {meaning}")
            self.say("Anything else is a move, as the list of legal ones writes it.")

    def _undo(self) -> bool:
        """Go back to the person's decision before this one; return whether there is one."""
        numbers = [
            number for number, move in enumerate(self._sitting.moves) if move.seat == self._own
        ]
        if not numbers:
            self.say("There is nothing to take back yet.")
            return False
        self._sitting.rewind(numbers[-1])
        self.say("Back to your move before.")
        return True
