"""What every registered game and preset must satisfy. A new game is tested without a line here.

* Random games end within ``max_plies``; legal actions ascend strictly; returns sum to zero.
* A view is idempotent, holds no seed, and gives the seat to move the same legal actions.
* The view of a world drawn from a view is that view again; the world has as many cards.
* Features are finite, written in full, and of the declared sizes, also off turn and between deals.
* Redrawing all that is hidden, by an enumerator of its own, changes no view, no feature, no legal
  action; and it does change the state (the test could fail).
* What a seat knew at an earlier ply is rebuilt to the byte from the true state and what another
  seat remembers, as far back as the game says; worlds with one key give the same features.
* States and views of random games, also under random rules, stay within what the game declares of
  its records; and whatever does (found by changing them at random) cannot lead the rules out of any
  array.
* Records copy as bytes. The golden play-through is there and is what the game still does.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.game import GameSpec, UnknownGameError, game_names, get_spec, spec_of
from engine.rng import below, make_rng
from engine.rules import CHANCE, NO_HAND_END, TERMINAL
from tests.engine.hidden_worlds import CHANGES
from tests.interpreted import run_interpreted
from tests.playthroughs.generate import FOLDER, all_presets, path_of, playthrough

NUM_GAMES = 4
STRAYS = ("1", "150", "120", "60")
"""Seed, views, states and plies of the records that nobody dealt."""
PRESETS = pytest.mark.parametrize(("name", "preset"), all_presets())


class Walk:
    """Random games of one preset, position by position."""

    def __init__(self, name: str, preset: str) -> None:
        self.spec: GameSpec = get_spec(name)
        self.game: Any = self.spec.make(preset)
        self.num_seats = int(rules.num_seats(self.game))
        self.num_sides = int(rules.num_sides(self.game))
        self.actions = np.zeros(self.spec.max_actions, np.int64)

    def positions(self, seed: int) -> Iterator[tuple[Any, int]]:
        """Yield (state, current seat) for every position of a game, the last one too."""
        rng = make_rng(seed, 1)
        state = self.spec.new_state()
        rules.deal(self.game, state, np.uint64(seed))
        for _ in range(self.spec.max_plies + 1):
            seat = int(rules.current_seat(self.game, state))
            yield state, seat
            while seat == CHANCE:
                rules.deal_next(self.game, state)
                seat = int(rules.current_seat(self.game, state))
                yield state, seat
            if seat == TERMINAL:
                return
            count = int(rules.legal_actions(self.game, state, self.actions))
            rules.apply(self.game, state, self.actions[below(rng, count)])
        raise AssertionError(f"longer than max_plies = {self.spec.max_plies}")

    def view(self, state: Any, seat: int) -> Any:
        out = self.spec.new_state()
        rules.view(self.game, state, seat, out)
        return out

    def legal(self, record: Any) -> list[int]:
        self.actions[:] = -7
        count = int(rules.legal_actions(self.game, record, self.actions))
        assert 0 < count <= self.spec.max_actions
        return [int(code) for code in self.actions[:count]]

    def features(self, view: Any, seat: int, mover: int) -> list[bytes]:
        """Return observation, and candidates where ``seat`` is to move, for each encoder."""
        # Two different fillings: what is not written differs between them.
        first, second = (self._filled(view, seat, mover, filling) for filling in (np.nan, 7.0))
        assert first == second
        return first

    def _filled(self, view: Any, seat: int, mover: int, filling: float) -> list[bytes]:
        found = []
        for encoder in self.spec.encoders:
            seen = np.full(encoder.observation_size, filling, np.float32)
            rules.observe(self.game, view, seat, encoder.code, seen)
            assert np.all(np.isfinite(seen))
            found.append(seen.tobytes())
            if mover == seat:
                count = len(self.legal(view))
                described = np.full((count + 1, encoder.action_size), filling, np.float32)
                rules.describe_actions(
                    self.game, view, encoder.code, self.actions, count, described
                )
                assert np.all(np.isfinite(described[:count]))
                untouched = np.full(encoder.action_size, filling, np.float32)
                assert described[count].tobytes() == untouched.tobytes()
                found.append(described[:count].tobytes())
        return found


@PRESETS
def test_random_games_end_and_returns_sum_to_zero(name: str, preset: str) -> None:
    walk = Walk(name, preset)
    for seed in range(NUM_GAMES):
        for state, seat in walk.positions(seed):
            if seat >= 0:
                assert seat < walk.num_seats
                legal = walk.legal(state)
                assert legal == sorted(set(legal))
            for side in range(walk.num_sides):
                row = int(rules.equity_index(walk.game, state, side))
                assert row == NO_HAND_END or (
                    seat == CHANCE and 0 <= row < walk.spec.num_equity_states
                )
        outcome = np.zeros(walk.num_sides)
        rules.returns(walk.game, state, outcome)
        assert abs(outcome.sum()) < 1e-12  # thirds do not add up to the last bit


@PRESETS
def test_the_rule_player_plays_legal_actions(name: str, preset: str) -> None:
    walk = Walk(name, preset)
    rng = make_rng(3)
    for state, seat in walk.positions(1):
        if seat >= 0:
            view = walk.view(state, seat)
            assert int(rules.rule_action(walk.game, view, seat, rng)) in walk.legal(view)


@PRESETS
def test_views_are_idempotent_and_worlds_agree_with_them(name: str, preset: str) -> None:
    walk = Walk(name, preset)
    rng = make_rng(5)
    world = walk.spec.new_state()
    for seed in range(NUM_GAMES):
        for state, mover in walk.positions(seed):
            if mover == TERMINAL:
                continue
            for seat in range(walk.num_seats):
                view = walk.view(state, seat)
                assert walk.view(view, seat) == view
                assert int(rules.current_seat(walk.game, view)) == mover
                if "seed" in (walk.spec.state_dtype.names or ()):
                    assert view.seed == 0
                rules.determinize(walk.game, view, seat, rng, world)
                assert walk.view(world, seat) == view
                if mover == seat:
                    assert walk.legal(view) == walk.legal(state)


@PRESETS
def test_worlds_can_be_played_to_the_end(name: str, preset: str) -> None:
    walk = Walk(name, preset)
    rng = make_rng(6)
    world = walk.spec.new_state()
    positions = [(state.copy(), seat) for state, seat in walk.positions(2) if seat >= 0]
    for state, seat in random.Random(1).sample(positions, min(len(positions), 8)):
        rules.determinize(walk.game, walk.view(state, seat), seat, rng, world)
        for _ in range(walk.spec.max_plies):
            mover = int(rules.current_seat(walk.game, world))
            if mover == TERMINAL:
                break
            if mover == CHANCE:
                rules.deal_next(walk.game, world)
            else:
                rules.apply(walk.game, world, walk.legal(world)[0])
        else:
            raise AssertionError("the world was not played out")


@PRESETS
def test_what_a_seat_knew_is_rebuilt_from_a_world(name: str, preset: str) -> None:
    walk = Walk(name, preset)
    recalled = walk.spec.recalled_plies
    told: dict[int, int] = {}  # plies back -> positions that tell something
    for seed in range(NUM_GAMES if recalled else 0):
        before: list[tuple[Any, int]] = []
        for state, seat in walk.positions(seed):
            if seat < 0:
                continue
            # Twice the plies that the game speaks of: it must not tell of more.
            for back, (past, mover) in enumerate(reversed(before[-2 * recalled :]), start=1):
                told.setdefault(back, 0)
                if mover != seat:
                    told[back] += _rebuilds(walk, (past, mover), (state, seat))
            before.append((state.copy(), seat))
    if recalled:
        assert sum(told.values()) > 0
        assert not any(count for back, count in told.items() if back > recalled)


def _rebuilds(walk: Walk, earlier: tuple[Any, int], now: tuple[Any, int]) -> bool:
    """Return whether the truth ``now`` tells what the mover of ``earlier`` knew; check what."""
    (past, mover), (state, seat) = earlier, now
    seen, out = walk.view(past, seat), walk.spec.new_state()
    key = int(rules.view_then(walk.game, seen, state, out))
    if key < 0:
        return False
    assert out.tobytes() == walk.view(past, mover).tobytes()
    world, other = walk.spec.new_state(), walk.spec.new_state()
    rng = make_rng(key)
    for _ in range(4):
        rules.determinize(walk.game, walk.view(state, seat), seat, rng, world)
        same = int(rules.view_then(walk.game, seen, world, other)) == key
        assert walk.view(other, mover) == other
        if same:
            # Those of the default encoder: others may tell suits apart that mean nothing.
            rebuilt, true = (walk.features(view, mover, mover)[:2] for view in (other, out))
            assert rebuilt == true
    return True


@PRESETS
def test_features_are_finite_written_in_full_and_of_the_declared_size(
    name: str, preset: str
) -> None:
    walk = Walk(name, preset)
    for state, mover in walk.positions(3):
        for seat in range(walk.num_seats):
            assert walk.features(walk.view(state, seat), seat, mover)


@PRESETS
def test_nothing_that_a_seat_cannot_know_reaches_it(name: str, preset: str) -> None:
    walk = Walk(name, preset)
    change = CHANGES[name]
    rng = random.Random(4)
    num_changed = 0
    for state, mover in walk.positions(4):
        if mover == TERMINAL:
            continue
        for seat in range(walk.num_seats):
            changed = change(walk.spec, walk.game, state, seat, rng)
            num_changed += changed.tobytes() != state.tobytes()
            view, other = walk.view(state, seat), walk.view(changed, seat)
            assert other.tobytes() == view.tobytes()
            assert walk.features(other, seat, mover) == walk.features(view, seat, mover)
            if mover == seat:
                assert walk.legal(changed) == walk.legal(state)
    assert num_changed > 0


@PRESETS
def test_actions_and_deals_of_others_look_the_same_whatever_is_hidden(
    name: str, preset: str
) -> None:
    walk = Walk(name, preset)
    rng = random.Random(5)
    for state, mover in walk.positions(5):
        if mover < 0:
            continue
        for action in walk.legal(state):
            for seat in range(walk.num_seats):
                key = int(rules.observe_action(walk.game, state, action, seat))
                changed = CHANGES[name](walk.spec, walk.game, state, seat, rng)
                if mover == seat or action in walk.legal(changed):
                    assert int(rules.observe_action(walk.game, changed, action, seat)) == key


@PRESETS
def test_random_games_stay_within_what_the_game_declares(name: str, preset: str) -> None:
    walk = Walk(name, preset)
    layout = walk.spec.layout(walk.game)
    for seed in range(NUM_GAMES):
        states = [state.copy() for state, _ in walk.positions(seed)]
        assert layout.fault_of_states(np.array(states, walk.spec.state_dtype)) == ""
        for seat in range(walk.num_seats):
            views = [walk.view(state, seat) for state in states]
            seats = np.full(len(views), seat)
            assert layout.fault_of_views(np.array(views, walk.spec.state_dtype), seats) == ""


@pytest.mark.parametrize("name", game_names())
def test_no_record_within_the_declaration_leads_out_of_an_array(name: str) -> None:
    # Interpreted: compiled code would write somewhere and say nothing.
    shown = run_interpreted("tests.engine.stray_records", *STRAYS, name)
    for views, states in re.findall(r"(\d+) of \d+ views and (\d+) of \d+ states", shown):
        assert int(views) > 50
        assert int(states) > 3
    assert shown.count("passed") == len(get_spec(name).presets)
    assert "variants stay within" in shown


@PRESETS
def test_a_record_is_its_bytes(name: str, preset: str) -> None:
    walk = Walk(name, preset)
    assert walk.spec.state_dtype.hasobject is False
    for state, mover in walk.positions(6):
        copy = np.frombuffer(state.tobytes(), walk.spec.state_dtype).view(np.recarray)[0]
        assert copy == state
        if mover >= 0:
            assert walk.legal(copy) == walk.legal(state)


@PRESETS
def test_the_same_seed_deals_the_same_game(name: str, preset: str) -> None:
    walk = Walk(name, preset)
    first, second, other = walk.spec.new_states(3)
    rules.deal(walk.game, first, np.uint64(11))
    # A dirty record is overwritten.
    for state, _ in walk.positions(1):
        second = state
    rules.deal(walk.game, second, np.uint64(11))
    assert first.tobytes() == second.tobytes()
    different = 0
    for seed in range(20):
        rules.deal(walk.game, other, np.uint64(seed + 100))
        different += other.tobytes() != first.tobytes()
    assert different > 0


@PRESETS
def test_options_survive_being_written_in_words(name: str, preset: str) -> None:
    spec = get_spec(name)
    game = spec.make(preset)
    assert spec.make("", spec.describe(game)) == game
    assert spec_of(game) is spec
    with pytest.raises(UnknownGameError, match="no_such_option"):
        spec.make(preset, {"no_such_option": 1})


def test_a_value_that_does_not_exist_is_refused_by_name() -> None:
    for name in game_names():
        spec = get_spec(name)
        for option in spec.options:
            with pytest.raises(UnknownGameError, match="no_such_value"):
                spec.make("", {option: "no_such_value"})


@PRESETS
def test_the_golden_playthrough_is_what_the_game_does(name: str, preset: str) -> None:
    spec = get_spec(name)
    path = path_of(spec, preset)
    assert path.exists(), "write it with: python -m tests.playthroughs.generate"
    assert playthrough(spec, preset) == path.read_text()


def test_there_is_no_golden_playthrough_of_a_game_that_is_gone() -> None:
    wanted = {path_of(get_spec(name), preset) for name, preset in all_presets()}
    assert set(FOLDER.glob("*.txt")) == wanted


def test_every_game_has_an_enumerator_of_hidden_worlds() -> None:
    assert set(CHANGES) == set(game_names())
