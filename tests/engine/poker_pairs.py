"""Kuhn and Leduc poker of the engine beside their naive twins, with any stakes.

Every position of the standard games is compared in test_kuhn.py and test_leduc.py; here whole games
are, with all options.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from engine import rules
from engine.game import GameSpec, get_spec
from engine.rules import CHANCE, TERMINAL
from tests.engine.twins import Looking, expect
from tests.naive import kuhn, leduc


def random_options(spec: GameSpec, rng: random.Random) -> dict[str, str]:
    """Return a value of every option, drawn evenly."""
    return {
        name: str(rng.randint(option.low, option.high)) for name, option in spec.options.items()
    }


class PokerPair(Looking):
    """One position, twice: the engine's, and cards and history as the twin writes them."""

    codes = ""
    """The moves as the twin writes them, in the order of the engine's codes."""

    def __init__(self, spec: GameSpec, options: Mapping[str, str], seed: int) -> None:
        self.spec, self.options = spec, options
        self.game = spec.make("", options)
        self.state = spec.new_state()
        rules.deal(self.game, self.state, np.uint64(seed))
        self.history = ""
        self.actions = np.zeros(spec.max_actions, np.int64)
        self.look()

    def legal(self) -> str:
        """The moves that the twin allows."""
        raise NotImplementedError

    def mover(self) -> int:
        """Who is to move in the twin's game, CHANCE or TERMINAL."""
        raise NotImplementedError

    def payoff(self) -> int:
        """What seat 0 gains in the twin's game."""
        raise NotImplementedError

    def known(self, view: Any, seat: int) -> tuple[object, object]:
        """What a view tells, and what the twin lets that seat know."""
        raise NotImplementedError

    def look(self) -> None:
        """Compare who is to move, and every seat's view with what the twin lets that seat know."""
        expect("mover", int(rules.current_seat(self.game, self.state)), self.mover())
        if self.is_due():
            view = self.spec.new_state()
            for seat in range(2):
                rules.view(self.game, self.state, seat, view)
                expect(f"seat {seat}", *self.known(view, seat))

    def step(self, rng: random.Random) -> bool:
        """Compare the legal actions, make one move; return False when the game is over."""
        mover = int(rules.current_seat(self.game, self.state))
        if mover == TERMINAL:
            out = np.zeros(2)
            rules.returns(self.game, self.state, out)
            expect("returns", list(out), [self.payoff(), -self.payoff()])
            return False
        if mover == CHANCE:
            rules.deal_next(self.game, self.state)
            self.history += "/"
        else:
            count = int(rules.legal_actions(self.game, self.state, self.actions))
            moves = [self.codes[code] for code in self.actions[:count]]
            expect("legal", "".join(moves), self.legal())
            move = rng.choice(moves)
            rules.apply(self.game, self.state, self.codes.index(move))
            self.history += move
        self.look()
        return True


class KuhnPair(PokerPair):
    """Kuhn poker."""

    codes = "pb"

    def __init__(self, options: Mapping[str, str], seed: int) -> None:
        super().__init__(get_spec("kuhn"), options, seed)

    @property
    def cards(self) -> str:
        return "".join(kuhn.CARDS[card] for card in self.state.cards)

    def legal(self) -> str:
        return "pb"

    def mover(self) -> int:
        return TERMINAL if kuhn.is_over(self.history) else kuhn.to_move(self.history)

    def payoff(self) -> int:
        return kuhn.payoff(self.cards, self.history) * int(self.options["ante"])

    def known(self, view: Any, seat: int) -> tuple[object, object]:
        history = "".join(self.codes[move] for move in view.history[: view.num_plies])
        seen = kuhn.CARDS[view.cards[seat]], history, int(view.cards[1 - seat])
        return seen, (*kuhn.seen_by(self.cards, self.history, seat), -1)


class LeducPair(PokerPair):
    """Leduc poker."""

    codes = "fcr"

    def __init__(self, options: Mapping[str, str], seed: int) -> None:
        ante, first, second, most = (
            int(options[name]) for name in ("ante", "first_raise", "second_raise", "max_raises")
        )
        self.stakes = leduc.Stakes(ante, (first, second), most)
        super().__init__(get_spec("leduc"), options, seed)

    @property
    def cards(self) -> str:
        return "".join(leduc.CARDS[card] for card in (*self.state.cards, self.state.board))

    def legal(self) -> str:
        return leduc.legal(self.history, self.stakes)

    def mover(self) -> int:
        if leduc.awaits_card(self.history):
            return CHANCE
        return TERMINAL if leduc.is_over(self.history) else leduc.to_move(self.history)

    def payoff(self) -> int:
        return leduc.payoff(self.cards, self.history, self.stakes)

    def known(self, view: Any, seat: int) -> tuple[object, object]:
        board = leduc.CARDS[view.board] if view.board >= 0 else "?"
        rounds = range(1 + int(view.shown))
        moves = [view.moves[i][: view.num_moves[i]] for i in rounds]
        history = "/".join("".join(self.codes[move] for move in made) for made in moves)
        seen = leduc.CARDS[view.cards[seat]], board, history
        engine = seen, [int(n) for n in view.paid], int(view.cards[1 - seat])
        paid = leduc.paid(self.history, self.stakes)
        return engine, (leduc.seen_by(self.cards, self.history, seat), paid, -1)
