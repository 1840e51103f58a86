"""Kuhn poker: three cards, two seats, one bet. The smallest exact yardstick.

Room: engine. Rules: H. W. Kuhn, A Simplified Two-Person Poker, Contributions to the Theory of Games
1 (1950), 97-103. Each seat antes 1 and gets one of J, Q, K. Passing twice shows down for 1; a bet
of 1 may be called or folded to. Returns are in antes (-2 .. 2): the sign of the outcome matters no
more than its size here, so ``returns`` is not cut to [-1, 1].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.game import Encoder, GameSpec, Option, register
from engine.games.poker_documents import RANK_NAMES, reader
from engine.jit import kernel
from engine.layout import SHOWN_TO_OWN, Field
from engine.rng import below, mix
from engine.rules import TERMINAL

PASS, BET = 0, 1
NO_CARD = -1
_MAX_BETS = 3
_STREAM = np.uint64(0)


class Kuhn(NamedTuple):
    """Options of Kuhn poker."""

    ante: int = 1


STATE = np.dtype(
    (
        np.record,
        [
            ("cards", np.int8, (2,)),  # 0 J, 1 Q, 2 K; NO_CARD in a view: hidden
            ("history", np.int8, (_MAX_BETS,)),  # PASS or BET
            ("num_plies", np.int8),
        ],
    )
)


def _fields(game: Any) -> dict[str, Field]:
    return {
        "cards": Field(0, 2, shown=SHOWN_TO_OWN, blank=NO_CARD),
        "history": Field(PASS, BET),
        "num_plies": Field(0, _MAX_BETS),
    }


def num_seats(game: Any) -> Any:  # documented in engine.rules, as all below
    return 2


def num_sides(game: Any) -> Any:
    return 2


def side_of(game: Any, seat: Any) -> Any:
    return seat


@kernel
def _deal_cards(state: Any, index: Any) -> None:
    """Deal the ``index``-th of the six ordered pairs of cards."""
    first = index // 2
    second = index % 2
    state.cards[0] = first
    state.cards[1] = second + 1 if second >= first else second
    for i in range(_MAX_BETS):
        state.history[i] = 0
    state.num_plies = 0


def deal(game: Any, state: Any, seed: Any) -> Any:
    # Multiply-shift on the high half of one hash: a deal needs no array of its own.
    bits = mix(seed, _STREAM) >> np.uint64(32)
    _deal_cards(state, np.int64((bits * np.uint64(6)) >> np.uint64(32)))


@kernel
def current_seat(game: Any, state: Any) -> Any:
    plies = np.int64(state.num_plies)
    facing_bet = plies == 2 and state.history[0] == PASS and state.history[1] == BET
    if plies < 2 or facing_bet:
        return plies & 1
    return TERMINAL


def legal_actions(game: Any, state: Any, actions: Any) -> Any:
    actions[0] = PASS
    actions[1] = BET
    return 2


def apply(game: Any, state: Any, action: Any) -> Any:
    state.history[state.num_plies] = action
    state.num_plies += 1


@kernel
def returns(game: Any, state: Any, out: Any) -> Any:
    plies = state.num_plies
    last = state.history[plies - 1]
    before = state.history[plies - 2]
    if before == BET and last == PASS:  # a fold: the seat that bet wins the ante
        winner: Any = np.int64(plies & 1)
        stake = game.ante
    else:
        winner = 0 if state.cards[0] > state.cards[1] else 1
        stake = 2 * game.ante if last == BET else game.ante
    out[winner] = stake
    out[1 - winner] = -stake


def view(game: Any, state: Any, seat: Any, out: Any) -> Any:
    own = state.cards[seat]
    for i in range(_MAX_BETS):
        out.history[i] = state.history[i]
    out.num_plies = state.num_plies
    out.cards[seat] = own
    out.cards[1 - seat] = NO_CARD


def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> Any:
    own = view.cards[seat]
    other = below(rng, 2)
    for i in range(_MAX_BETS):
        out.history[i] = view.history[i]
    out.num_plies = view.num_plies
    out.cards[seat] = own
    out.cards[1 - seat] = other + 1 if other >= own else other


def view_then(game: Any, past: Any, world: Any, out: Any) -> Any:
    seat = np.int64(past.num_plies) & 1
    for i in range(_MAX_BETS):
        out.history[i] = past.history[i]
    out.num_plies = past.num_plies
    out.cards[seat] = world.cards[seat]
    out.cards[1 - seat] = NO_CARD
    return np.int64(world.cards[seat])


# Features: own card (3), own seat (2), seat to move is me (1), per ply: pass, bet (3 * 2).
OBSERVATION_SIZE = 3 + 2 + 1 + 2 * _MAX_BETS
ACTION_SIZE = 2


def observe(game: Any, view: Any, seat: Any, encoder: Any, out: Any) -> Any:
    for i in range(OBSERVATION_SIZE):
        out[i] = 0.0
    out[view.cards[seat]] = 1.0
    out[3 + seat] = 1.0
    if current_seat(game, view) == seat:
        out[5] = 1.0
    for i in range(view.num_plies):
        out[6 + 2 * i + view.history[i]] = 1.0


def describe_actions(game: Any, view: Any, encoder: Any, actions: Any, count: Any, out: Any) -> Any:
    for i in range(count):
        out[i, 0] = 0.0
        out[i, 1] = 0.0
        out[i, actions[i]] = 1.0


def observe_action(game: Any, state: Any, action: Any, seat: Any) -> Any:
    return action


def reward_terms(game: Any, state: Any, out: Any) -> Any:
    for side in range(2):
        out[side, 0] = 0.0
    if current_seat(game, state) == TERMINAL:
        returns(game, state, out[:, 0])


def statistics(game: Any, state: Any, out: Any) -> Any:
    for side in range(2):
        bets = 0
        for i in range(state.num_plies):
            if i % 2 == side and state.history[i] == BET:
                bets += 1
        out[side, 0] = bets


def rule_action(game: Any, view: Any, seat: Any, rng: Any) -> Any:
    card = view.cards[seat]
    facing_bet = view.num_plies > 0 and view.history[view.num_plies - 1] == BET
    if card == 2:
        return BET
    if card == 1:
        return np.int64(below(rng, 3) == 0) if facing_bet else PASS
    return PASS if facing_bet else np.int64(below(rng, 3) == 0)


def _initial_states(game: Any) -> list[tuple[float, Any]]:
    states = SPEC.new_states(6)
    for index in range(6):
        _deal_cards(states[index], index)
    return [(1.0 / 6.0, states[index]) for index in range(6)]


def _format_action(game: Any, view: Any, action: int) -> str:
    return "bet" if action == BET else "pass"


def _format_view(game: Any, view: Any, seat: int) -> str:
    cards = " ".join("?" if card == NO_CARD else "JQK"[card] for card in view.cards)
    history = "".join("pb"[move] for move in view.history[: view.num_plies])
    return f"cards {cards} history {history or '-'}"


def _format_table(game: Any, view: Any, seat: int) -> str:
    moves = [_format_action(game, view, int(move)) for move in view.history[: view.num_plies]]
    card = RANK_NAMES[int(view.cards[seat])]
    return f"You are seat {seat}.\nSo far: {', '.join(moves) or 'nothing'}\nYour card: {card}"


SPEC: GameSpec = register(
    GameSpec(
        name="kuhn",
        game_type=Kuhn,
        options={"ante": Option(low=1, high=100, help="chips that each seat antes")},
        presets={"standard": Kuhn()},
        state_dtype=STATE,
        fields=_fields,
        state_relations={"two cards": lambda game, s, _: s["cards"][:, 0] != s["cards"][:, 1]},
        encoders=(
            Encoder(
                name="cards",
                version=1,
                code=0,
                observation_size=OBSERVATION_SIZE,
                action_size=ACTION_SIZE,
            ),
        ),
        max_actions=2,
        max_plies=_MAX_BETS,
        recalled_plies=_MAX_BETS - 1,
        reward_terms=("win",),
        statistics=("bets",),
        initial_states=_initial_states,
        format_action=_format_action,
        format_view=_format_view,
        format_table=_format_table,
        state_from_document=reader(lambda: SPEC, has_board=False),
    ),
    globals(),
)
