"""One game, move by move, that can be taken back.

Room: engine. May import: numpy and the other rooms of engine. For people at a terminal and other
slow players; ``engine.play`` plays many games fast.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine import rules
from engine.game import GameSpec
from engine.notation import legal_codes
from engine.past import Past, PastPlies
from engine.rng import make_rng


class Move(NamedTuple):
    """An action and who played it."""

    seat: int
    action: int


class Sitting:
    """A game under way. Cards follow from the seed, also those that are dealt later."""

    def __init__(self, spec: GameSpec, game: Any, seed: int) -> None:
        """Deal the game ``seed``."""
        self.spec = spec
        self.game = game
        self.seed = seed
        self.moves: list[Move] = []
        self._states = spec.new_states(1)
        self.state: Any = self._states[0]
        plies = spec.recalled_plies
        self._past = PastPlies(spec.state_dtype, 1, plies) if plies else None
        self._deal()

    def _deal(self) -> None:
        self.moves.clear()
        if self._past:
            self._past.start(0)
        rules.deal(self.game, self.state, np.uint64(self.seed & 0xFFFFFFFFFFFFFFFF))
        self._deal_due()

    def _deal_due(self) -> None:
        while int(rules.current_seat(self.game, self.state)) == rules.CHANCE:
            rules.deal_next(self.game, self.state)

    @property
    def seat(self) -> int:
        """The seat to move, or TERMINAL."""
        return int(rules.current_seat(self.game, self.state))

    def view(self, seat: int) -> Any:
        """Return what ``seat`` knows, a record."""
        out = self.spec.new_state()
        rules.view(self.game, self.state, seat, out)
        return out

    def past(self, seat: int) -> Past | None:
        """Return what ``seat`` remembers of the plies that the game can tell something from."""
        if not self._past:
            return None
        return self._past.seen(self.game, np.zeros(1, np.int64), np.array([seat], np.int64))

    def key(self) -> np.uint64:
        """Return randomness for the decision that is due: a function of seed and moves so far."""
        return np.uint64(make_rng(self.seed, len(self.moves), self.seat)[0])

    def play(self, action: int) -> None:
        """Play ``action`` for the seat to move, and deal what is due.

        Raises:
            ValueError: It is not legal; the game stays as it was.
        """
        legal = legal_codes(self.spec, self.game, self.state)
        if action not in legal:
            raise ValueError(f"action {action}: legal are {', '.join(map(str, legal)) or 'none'}")
        self.moves.append(Move(self.seat, action))
        if self._past:
            self._past.add(self._states, np.zeros(1, np.int64), np.array([action], np.int64))
        rules.apply(self.game, self.state, np.int64(action))
        self._deal_due()

    def rewind(self, num_moves: int) -> None:
        """Go back to the position after the first ``num_moves`` moves, with the same cards.

        Raises:
            ValueError: More moves than were played, or fewer than none.
        """
        if not 0 <= num_moves <= len(self.moves):
            raise ValueError(f"move {num_moves}: allowed are 0 to {len(self.moves)}")
        kept = self.moves[:num_moves]
        self._deal()
        for move in kept:
            self.play(move.action)

    def returns(self) -> NDArray[np.float64]:
        """Return the outcome per side of a finished game."""
        out = np.zeros(int(rules.num_sides(self.game)))
        rules.returns(self.game, self.state, out)
        return out
