"""Records that nobody dealt, through the rules, interpreted: a bad index is an error then.

``NUMBA_DISABLE_JIT=1 python -m tests.engine.stray_records SEED VIEWS STATES PLIES [GAME ...]``: for
every preset, takes views and states of random games, puts other values that the game declares as
allowed (and cards in other places) into some of their fields, and plays with what the game's layout
lets pass. Games under random rules are played before: nothing of them may be refused. Compiled code
treats the same records in the same way, but would not notice.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from engine import rules
from engine.game import GameSpec, game_names, get_spec
from engine.jit import jit_enabled
from engine.layout import SHOWN_TO_NONE, SHOWN_TO_OWN, Field, Layout
from engine.rng import below, make_rng
from engine.rules import CHANCE, NO_HAND_END, TERMINAL
from tests.playthroughs.generate import all_presets

VARIANTS = 8


class Stray:
    """Changes records of one preset at random, and uses them."""

    def __init__(self, name: str, preset: str, seed: int, game: Any = None) -> None:
        self.spec: GameSpec = get_spec(name)
        self.game: Any = self.spec.make(preset) if game is None else game
        self.layout: Layout = self.spec.layout(self.game)
        self.fields = dict(self.spec.fields(self.game))
        self.num_seats = int(rules.num_seats(self.game))
        self.actions = np.zeros(self.spec.max_actions, np.int64)
        self.random = random.Random(f"{name} {preset} {seed}")
        self.rng = make_rng(seed)

    def states(self, count: int) -> Iterator[Any]:
        """Yield positions of random games."""
        state = self.spec.new_state()
        while True:
            rules.deal(self.game, state, np.uint64(self.random.getrandbits(64)))
            for _ in range(self.spec.max_plies):
                if self.random.random() < 0.2:
                    yield state.copy()
                    count -= 1
                    if count == 0:
                        return
                if not self.go_on(state):
                    break

    def go_on(self, state: Any) -> bool:
        """Play a random action, or deal; return False at the end of the game."""
        seat = int(rules.current_seat(self.game, state))
        if seat == TERMINAL:
            return False
        if seat == CHANCE:
            rules.deal_next(self.game, state)
            return True
        assert 0 <= seat < self.num_seats
        count = int(rules.legal_actions(self.game, state, self.actions))
        assert 0 < count <= self.spec.max_actions
        rules.apply(self.game, state, self.actions[below(self.rng, count)])
        return True

    def change(self, record: Any, seat: int) -> None:
        """Put other values into ``record`` [1], a view of ``seat`` or (-1) a state, in place."""
        names = [name for name, field in self.fields.items() if self._is_free(field, seat)]
        most = self.random.choice((1, 1, 2, 4, len(names)))
        for name in self.random.sample(names, min(most, len(names))):
            entries = record[name].reshape(-1)
            for i in self.random.sample(range(len(entries)), self.random.randint(1, len(entries))):
                if not self._is_hidden(name, i, seat):
                    entries[i] = self._value(self.fields[name])
            record[name] = entries.reshape(record[name].shape)
        if seat < 0 and self.random.random() < 0.5:
            self._move_cards(record)

    def _is_free(self, field: Field, seat: int) -> bool:
        return seat < 0 or field.shown != SHOWN_TO_NONE

    def _is_hidden(self, name: str, entry: int, seat: int) -> bool:
        field = self.fields[name]
        return entry >= field.used or (seat >= 0 and field.shown == SHOWN_TO_OWN and entry != seat)

    def _value(self, field: Field) -> Any:
        if not field.cards:
            return self.random.choice(
                (field.low, field.high, self.random.randint(field.low, field.high))
            )
        bits = [bit for bit in range(64) if field.cards >> bit & 1]
        most = min(field.most, len(bits))
        size = self.random.choice((0, most, self.random.randint(0, most)))
        return np.uint64(sum(1 << bit for bit in self.random.sample(bits, size)))

    def _move_cards(self, record: Any) -> None:
        """Exchange the contents of two sets, or parts of them."""
        sets = [n for n, f in self.fields.items() if f.cards and record[n].dtype == np.uint64]
        places = [(n, i) for n in sets for i in range(record[n].reshape(1, -1).shape[1])]
        if len(places) < 2:
            return
        (one, i), (other, j) = self.random.sample(places, 2)
        first, second = record[one].reshape(1, -1), record[other].reshape(1, -1)
        mask = np.uint64(self.random.getrandbits(64))
        a, b = first[0, i], second[0, j]
        first[0, i], second[0, j] = (a & ~mask) | (b & mask), (b & ~mask) | (a & mask)

    # --- using them -------------------------------------------------------------------------------

    def look(self, view: Any, seat: int) -> None:
        """Let all that reads a stored view read this one."""
        mover = int(rules.current_seat(self.game, view))
        for encoder in self.spec.encoders:
            out = np.zeros(encoder.observation_size, np.float32)
            rules.observe(self.game, view, seat, encoder.code, out)
            if mover == seat:
                count = int(rules.legal_actions(self.game, view, self.actions))
                assert 0 <= count <= self.spec.max_actions
                rows = np.zeros((count, encoder.action_size), np.float32)
                rules.describe_actions(self.game, view, encoder.code, self.actions, count, rows)

    def play(self, state: Any, plies: int) -> None:
        """Play on from a state as self-play and search do."""
        view, world = self.spec.new_states(2)
        outcome = np.zeros(int(rules.num_sides(self.game)))
        for ply in range(plies):
            seat = int(rules.current_seat(self.game, state))
            for side in range(len(outcome)):
                row = int(rules.equity_index(self.game, state, side))
                assert row == NO_HAND_END or 0 <= row < self.spec.num_equity_states
            if ply % 20 == 0 and seat != TERMINAL:
                observer = seat if seat >= 0 else 0
                rules.view(self.game, state, observer, view)
                self.look(view, observer)
                rules.determinize(self.game, view, observer, self.rng, world)
                self.go_on(world)
            if not self.go_on(state):
                rules.returns(self.game, state, outcome)
                return

    def run(self, num_views: int, num_states: int, plies: int) -> str:
        """Try so many records; return what passed, in words."""
        views = states = 0
        record = np.zeros(1, self.spec.state_dtype)
        for state in self.states(num_views):
            seat = self.random.randrange(self.num_seats)
            rules.view(self.game, state, seat, record.view(np.recarray)[0])
            self.change(record, seat)
            if not self.layout.fault_of_views(record, np.array([seat])):
                views += 1
                self.look(record.view(np.recarray)[0], seat)
        for state in self.states(num_states):
            record[0] = state
            self.change(record, -1)
            if not self.layout.fault_of_states(record):
                states += 1
                self.play(record.view(np.recarray)[0], plies)
        return f"{views} of {num_views} views and {states} of {num_states} states passed"


def variants_stay_within(name: str, count: int, seed: int) -> str:
    """Play random games under random rules: no record may be refused; return what was done."""
    choice = random.Random(f"{name} {seed}")
    spec, num_states = get_spec(name), 0
    for number in range(count):
        stray = Stray(name, "", seed + number, variant(spec, choice))
        records = np.array(list(stray.states(40)), spec.state_dtype)
        fault = stray.layout.fault_of_states(records)
        assert not fault, f"{stray.game}: {fault}"
        num_states += len(records)
        views = np.zeros(len(records), spec.state_dtype).view(np.recarray)
        for seat in range(stray.num_seats):
            for record, view in zip(records.view(np.recarray), views, strict=True):
                rules.view(stray.game, record, seat, view)
            fault = stray.layout.fault_of_views(views, np.full(len(views), seat))
            assert not fault, f"{stray.game}, seat {seat}: {fault}"
    return f"{num_states} states of {count} variants stay within"


def variant(spec: GameSpec, choice: random.Random) -> Any:
    """Return a game with an allowed value of every option."""
    codes = {}
    for name, option in spec.options.items():
        allowed = option.values.values() if option.values is not None else (option.low, option.high)
        codes[name] = choice.choice(list(allowed))
    return spec.game_type(**codes)


def main() -> int:
    assert not jit_enabled()
    seed, views, states, plies = (int(word) for word in sys.argv[1:5])
    for name in sys.argv[5:] or game_names():
        with np.errstate(over="ignore"):
            print(f"{name}: {variants_stay_within(name, VARIANTS, seed)}", flush=True)
    for name, preset in all_presets():
        if name in sys.argv[5:] or len(sys.argv) == 5:
            with np.errstate(over="ignore"):
                said = Stray(name, preset, seed).run(views, states, plies)
            print(f"{name} {preset}: {said}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
