"""Moves as people write and see them, in every game.

* What is written as the game writes it, in any case, is that move; ``#2`` is the second one.
* A game's other spellings; first words that belong to one move; no move, or more than one, is an
  error that lists the legal ones. A game without a notation is played by number.
* What is shown of a move, and the table, follow from what the seat knows: in another world that
  agrees with it they read the same. Where a move is unseen they say no more than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.game import GameSpec, get_spec
from engine.notation import (
    UNSEEN,
    MoveError,
    legal_codes,
    legal_moves,
    listed,
    parse_move,
    seen_move,
    table_text,
)
from engine.rng import below, make_rng
from engine.sitting import Sitting
from tests.engine import relay_game
from tests.playthroughs.generate import all_presets

PRESETS = pytest.mark.parametrize(("name", "preset"), all_presets())
MOST_MOVES = 120


def random_game(spec: GameSpec, game: Any, seed: int) -> Iterator[tuple[Sitting, int]]:
    """Yield a game, and the random action that is played next, until it is over."""
    sitting = Sitting(spec, game, seed)
    rng = make_rng(seed, 9)
    while sitting.seat >= 0 and len(sitting.moves) < MOST_MOVES:
        codes = legal_codes(spec, game, sitting.state)
        action = codes[below(rng, len(codes))]
        yield sitting, action
        sitting.play(action)


@PRESETS
def test_every_move_is_read_as_it_is_written(name: str, preset: str) -> None:
    spec = get_spec(name)
    game = spec.make(preset)
    for sitting, _ in random_game(spec, game, 3):
        view = sitting.view(sitting.seat)
        moves = legal_moves(spec, game, view)
        assert list(moves.values()) == legal_codes(spec, game, sitting.state)
        for number, (text, code) in enumerate(moves.items(), 1):
            assert text.isascii()
            for written in (text, f"  {text.lower()} ", text.upper(), f"#{number}"):
                assert parse_move(spec, game, view, written) == code


def read(name: str, document: dict[str, Any], text: str, **options: object) -> str:
    """Return the move of a position that ``text`` stands for, as the game writes it."""
    spec = get_spec(name)
    game = spec.make("", options)
    state = spec.state_from_document(game, document, None)  # type: ignore[misc]
    return spec.format_action(game, state, parse_move(spec, game, state, text))


CUARENTA = {"table": ["2", "3", "5", "6", "7"], "hand": ["5", "Q"]}
LINE = {"trump": "H", "hands": [["7S", "7C", "6D"], ["7D", "8S", "7H"]], "attacker": 0}
AUCTION = {"bids_so_far": [20]}
FOLLOW = {"trump": "S", "hand": ["5S", "10S", "KD"], "led": "9S"}


@pytest.mark.parametrize(
    ("name", "document", "options", "text", "move"),
    [
        ("cuarenta", CUARENTA, {}, "5 takes 7 6 5", "5 takes 5 6 7"),
        ("cuarenta", CUARENTA, {}, "5 take 3, 2, 6 and 7", "5 takes 2 3 6 7"),
        ("cuarenta", CUARENTA, {}, "place q", "Q"),
        ("cuarenta", CUARENTA, {}, "5", "5"),
        ("cuarenta", CUARENTA, {}, "5 takes 5", "5 takes 5 6 7"),  # the run is mandatory
        ("cuarenta", {"table": ["5"], "hand": ["5"]}, {"must_capture": True}, "5", "5 takes 5"),
        ("durak", LINE, {}, "attack 7♠", "7S"),
        ("durak", LINE, {"multi_card_attack": True}, "7s 7c", "7C+7S"),
        ("durak", {**LINE, "moves": ["7S"]}, {"transfer": True}, "transfer 7D", "transfer:7D"),
        ("durak", {**LINE, "moves": ["7S"]}, {"transfer": True}, "defend with 8s", "8S"),
        ("durak", {**LINE, "moves": ["7S"]}, {}, "Take", "take"),
        ("durak", {**LINE, "moves": ["7S", "8S"]}, {}, "done", "pass"),
        ("forty_fives", AUCTION, {}, "30 for 60", "30for60"),
        ("forty_fives", AUCTION, {}, "bid 25", "25"),
        ("forty_fives", FOLLOW, {}, "play 10♠", "10S"),
        ("leduc", {"hand": "Q"}, {}, "Check", "check"),
    ],
)
def test_other_spellings(
    name: str, document: dict[str, Any], options: dict[str, object], text: str, move: str
) -> None:
    assert read(name, document, text, **options) == move


@pytest.mark.parametrize(
    ("name", "document", "text", "message"),
    [
        ("cuarenta", CUARENTA, "6", "move '6': allowed are 5 takes 5 6 7; .*; 5; Q"),
        ("cuarenta", CUARENTA, "5 takes", "'5 takes' is not clear: it may be 5 takes 5 6 7; 5 ta"),
        ("cuarenta", CUARENTA, "5 steals 5", "allowed are"),
        ("cuarenta", CUARENTA, "", "allowed are"),
        ("durak", LINE, "pass", "move 'pass': allowed are 7C; 6D; 7S"),
        ("durak", LINE, "#4", "allowed are"),
        ("durak", LINE, "\x1b[31m7S\n", r"move '\\x1b\[31m7S\\n': allowed"),
        ("forty_fives", FOLLOW, "KD", "move 'KD': allowed are 5S; 10S"),
        ("forty_fives", AUCTION, "x" * 1000, "move 'x{40,60}[.]{3}: allowed"),
    ],
)
def test_what_is_no_move_is_answered_with_the_legal_ones(
    name: str, document: dict[str, Any], text: str, message: str
) -> None:
    with pytest.raises(MoveError, match=message):
        read(name, document, text)


def test_a_game_without_a_notation_is_played_by_number() -> None:
    spec, game = relay_game.SPEC, relay_game.Relay()
    state = spec.new_state()
    state.cards[0] = 2
    moves = legal_moves(spec, game, state)
    assert listed(spec, moves) == "1 action 0; 2 action 1; 3 action 2"
    for text in ("3", "#3", "action 2"):
        assert parse_move(spec, game, state, text) == 2
    with pytest.raises(MoveError, match="'0': allowed are 1 action 0; 2"):
        parse_move(spec, game, state, "0")


# --- what is shown --------------------------------------------------------------------------------


def assert_shown_alike(spec: GameSpec, game: Any, seeds: int) -> set[str]:
    """Compare what seats see of moves in a game and in worlds that agree with them; return it."""
    shown: set[str] = set()
    world = spec.new_state()
    for seed in range(seeds):
        rng = make_rng(seed, 4)
        for sitting, action in random_game(spec, game, seed):
            for seat in range(int(rules.num_seats(game))):
                text = seen_move(spec, game, sitting.state, action, seat)
                shown.add(text)
                view = sitting.view(seat)
                rules.determinize(game, view, seat, rng, world)
                key = int(rules.observe_action(game, sitting.state, action, seat))
                for other in legal_codes(spec, game, world):
                    if int(rules.observe_action(game, world, other, seat)) == key:
                        assert seen_move(spec, game, world, other, seat) == text
                again = spec.new_state()
                rules.view(game, world, seat, again)
                table = table_text(spec, game, view, seat)
                assert table == table_text(spec, game, again, seat)
                assert table.isascii()
    return shown


@PRESETS
def test_what_is_shown_does_not_depend_on_what_is_hidden(name: str, preset: str) -> None:
    spec = get_spec(name)
    shown = assert_shown_alike(spec, spec.make(preset), 2)
    assert (UNSEEN in shown) == (name == "forty_fives")
    assert len(shown) > 1


def test_a_card_that_is_played_face_down_is_not_shown_even_if_it_is_the_only_one() -> None:
    spec, game = relay_game.SPEC, relay_game.Relay()
    assert UNSEEN in assert_shown_alike(spec, game, 8)
    state = spec.new_state()
    state.num_moves = 1  # seat 1 holds a 0 and is forced
    assert legal_codes(spec, game, state) == [0]
    assert seen_move(spec, game, state, 0, 0) == UNSEEN
    assert seen_move(spec, game, state, 0, 1) == "action 0"


@PRESETS
def test_the_table_is_readable_to_the_end(name: str, preset: str) -> None:
    spec = get_spec(name)
    game = spec.make(preset)
    sitting = Sitting(spec, game, 1)
    rng = make_rng(2)
    out = np.zeros(1, np.int64)
    while sitting.seat >= 0:
        view = sitting.view(sitting.seat)
        out[0] = rules.rule_action(game, view, sitting.seat, rng)
        sitting.play(int(out[0]))
    for seat in range(int(rules.num_seats(game))):
        lines = table_text(spec, game, sitting.view(seat), seat).splitlines()
        assert len(lines) >= 3
        assert f"You are seat {seat}" in lines[0]


# --- a game that can be taken back ----------------------------------------------------------------


@PRESETS
def test_a_game_that_is_taken_back_has_the_same_cards(name: str, preset: str) -> None:
    spec = get_spec(name)
    game = spec.make(preset)
    states, moves = [], []
    for sitting, action in random_game(spec, game, 5):
        states.append(sitting.state.tobytes())
        moves.append((sitting.seat, action))
    assert list(sitting.moves) == moves
    for number in (len(moves) - 1, len(moves) // 2, 0):
        sitting.rewind(number)
        assert sitting.state.tobytes() == states[number]
        assert sitting.moves == moves[:number]
        for seat, action in moves[number:]:
            assert sitting.seat == seat
            sitting.play(action)
    with pytest.raises(ValueError, match=f"move {len(moves) + 1}: allowed are 0 to {len(moves)}"):
        sitting.rewind(len(moves) + 1)


def test_an_action_that_is_not_legal_changes_nothing() -> None:
    spec = get_spec("durak")
    sitting = Sitting(spec, spec.make(), 1)
    before = sitting.state.tobytes()
    with pytest.raises(ValueError, match="action 36: legal are"):
        sitting.play(36)
    assert sitting.state.tobytes() == before
    assert sitting.moves == []
