"""Leduc poker: six cards, two seats, two rounds of betting. The larger exact yardstick.

Room: engine. Rules: Southey, Bowling, Larson, Piccione, Burch, Billings, Rayner, Bayes' Bluff:
Opponent Modelling in Poker (UAI 2005), section 5.1. Two cards each of J, Q, K; each seat antes 1
and gets one. Seat 0 opens both rounds; a raise is 2 in the first round and 4 in the second, with at
most two raises a round. Between the rounds one card is turned up for both. At showdown the seat
whose card pairs with it wins, else the higher card; equal cards split. Returns are in chips won
(-13 .. 13 with the standard options), as in the exact values that are published for the game.

The two cards of a rank play alike, so a record holds ranks and no suits. The card that will be
turned up is drawn with the first deal and hidden until the ``CHANCE`` position between the rounds
is resolved: it goes to no seat's hand, so a search goes on through it with the card of its world.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from engine.game import Encoder, GameSpec, Option, register
from engine.games.leduc_state import (
    CALL,
    FOLD,
    MAX_MOVES,
    MOST_RAISES,
    NO_CARD,
    NUM_CARDS,
    NUM_COPIES,
    NUM_RANKS,
    NUM_ROUNDS,
    RAISE,
    STATE,
    STATE_RELATIONS,
    VIEW_RELATIONS,
    Leduc,
    fields,
)
from engine.games.poker_documents import RANK_NAMES, reader
from engine.jit import kernel
from engine.rng import below, mix
from engine.rules import CHANCE, TERMINAL

NUM_DEALS = NUM_CARDS * (NUM_CARDS - 1) * (NUM_CARDS - 2)
_STREAM = np.uint64(0)
_S32 = np.uint64(32)


def num_seats(game: Any) -> Any:  # documented in engine.rules, as all below
    return 2


def num_sides(game: Any) -> Any:
    return 2


def side_of(game: Any, seat: Any) -> Any:
    return seat


@kernel
def _start(game: Any, state: Any, first: Any, second: Any, board: Any) -> None:
    """Overwrite ``state`` with the start of a game of these ranks."""
    state.cards[0] = first
    state.cards[1] = second
    state.board = board
    state.shown = 0
    state.betting_round = 0
    for index in range(NUM_ROUNDS):
        state.num_moves[index] = 0
        for move in range(MAX_MOVES):
            state.moves[index, move] = 0
    state.raises = 0
    state.to_move = 0
    state.folded = NO_CARD
    state.paid[0] = game.ante
    state.paid[1] = game.ante


@kernel
def _next_card(index: Any, low: Any, high: Any) -> Any:
    """Return the ``index``-th of the cards 0 .. 5 without ``low`` and ``high``, low < high."""
    card = index
    if card >= low:
        card += 1
    if card >= high:
        card += 1
    return card


def deal(game: Any, state: Any, seed: Any) -> Any:
    # Multiply-shift on the high half of one hash picks one of the 120 ordered triples of cards.
    bits = mix(seed, _STREAM) >> _S32
    index = np.int64((bits * np.uint64(NUM_DEALS)) >> _S32)
    first = index // 20
    second = (index // 4) % 5
    if second >= first:
        second += 1
    board = _next_card(index % 4, min(first, second), max(first, second))
    _start(game, state, first // NUM_COPIES, second // NUM_COPIES, board // NUM_COPIES)


@kernel
def current_seat(game: Any, state: Any) -> Any:
    return np.int64(state.to_move)


@kernel
def legal_actions(game: Any, state: Any, actions: Any) -> Any:
    count = 0
    if state.paid[0] != state.paid[1]:
        actions[count] = FOLD
        count += 1
    actions[count] = CALL
    count += 1
    if state.raises < game.max_raises:
        actions[count] = RAISE
        count += 1
    return count


def apply(game: Any, state: Any, action: Any) -> Any:
    seat = np.int64(state.to_move)
    index = np.int64(state.betting_round)
    state.moves[index, state.num_moves[index]] = action
    state.num_moves[index] += 1
    faced = state.paid[seat] != state.paid[1 - seat]
    state.to_move = 1 - seat
    if action == FOLD:
        state.folded = seat
        state.to_move = TERMINAL
        return
    state.paid[seat] = state.paid[1 - seat]
    if action == RAISE:
        state.paid[seat] += game.first_raise if index == 0 else game.second_raise
        state.raises += 1
    elif faced or state.num_moves[index] == 2:
        state.to_move = CHANCE if index == 0 else TERMINAL


def deal_next(game: Any, state: Any) -> Any:
    state.shown = 1
    state.betting_round = 1
    state.raises = 0
    state.to_move = 0


def receives_cards(game: Any, state: Any, seat: Any) -> Any:
    return False


@kernel
def _winner(state: Any) -> Any:
    """Return the seat that wins a finished game, or -1 when the pot is split."""
    if state.folded != NO_CARD:
        return 1 - np.int64(state.folded)
    first, second = np.int64(state.cards[0]), np.int64(state.cards[1])
    if first == second:
        return -1
    if first == state.board:
        return 0
    if second == state.board:
        return 1
    return 0 if first > second else 1


@kernel
def returns(game: Any, state: Any, out: Any) -> Any:
    winner = _winner(state)
    out[0] = 0.0
    out[1] = 0.0
    if winner >= 0:
        stake = np.float64(state.paid[1 - winner])
        out[winner] = stake
        out[1 - winner] = -stake


@kernel
def _copy_public(state: Any, out: Any) -> None:
    """Copy all but the cards."""
    out.shown = state.shown
    out.betting_round = state.betting_round
    for index in range(NUM_ROUNDS):
        out.num_moves[index] = state.num_moves[index]
        for move in range(MAX_MOVES):
            out.moves[index, move] = state.moves[index, move]
    out.raises = state.raises
    out.to_move = state.to_move
    out.folded = state.folded
    out.paid[0] = state.paid[0]
    out.paid[1] = state.paid[1]


def view(game: Any, state: Any, seat: Any, out: Any) -> Any:
    own = state.cards[seat]
    board = state.board
    _copy_public(state, out)
    out.cards[seat] = own
    out.cards[1 - seat] = NO_CARD
    out.board = board if state.shown else NO_CARD


def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> Any:
    own = np.int64(view.cards[seat])
    board = np.int64(view.board)
    left = np.empty(NUM_CARDS, np.int64)
    count = 0
    for card in range(NUM_CARDS):
        # Of each rank one copy less lies unseen for the own card, and one for the card turned up.
        rank, copy = card // NUM_COPIES, card % NUM_COPIES
        seen = (1 if rank == own else 0) + (1 if view.shown and rank == board else 0)
        if copy >= seen:
            left[count] = rank
            count += 1
    pick = below(rng, count)
    other = left[pick]
    left[pick] = left[count - 1]
    _copy_public(view, out)
    out.board = board if view.shown else left[below(rng, count - 1)]
    out.cards[seat] = own
    out.cards[1 - seat] = other


def view_then(game: Any, past: Any, world: Any, out: Any) -> Any:
    seat = np.int64(current_seat(game, past))
    _copy_public(past, out)
    out.board = past.board
    out.cards[seat] = world.cards[seat]
    out.cards[1 - seat] = NO_CARD
    return np.int64(world.cards[seat])


# --- features -------------------------------------------------------------------------------------
O_CARD = 0  # own rank
O_BOARD = O_CARD + NUM_RANKS  # rank turned up
O_SEAT = O_BOARD + NUM_RANKS  # own seat
O_TURN = O_SEAT + 2  # the seat to move is me; between deals
O_PAID = O_TURN + 2  # chips / 13: own, other
O_MOVES = O_PAID + 2  # round x move x (call, raise)
OBSERVATION_SIZE = O_MOVES + NUM_ROUNDS * MAX_MOVES * 2
ACTION_SIZE = 3
_CHIPS = np.float32(13.0)


def observe(game: Any, view: Any, seat: Any, encoder: Any, out: Any) -> Any:
    for i in range(OBSERVATION_SIZE):
        out[i] = 0.0
    out[O_CARD + view.cards[seat]] = 1.0
    if view.shown:
        out[O_BOARD + view.board] = 1.0
    out[O_SEAT + seat] = 1.0
    if view.to_move == seat:
        out[O_TURN] = 1.0
    if view.to_move == CHANCE:
        out[O_TURN + 1] = 1.0
    out[O_PAID] = np.float32(view.paid[seat]) / _CHIPS
    out[O_PAID + 1] = np.float32(view.paid[1 - seat]) / _CHIPS
    for index in range(NUM_ROUNDS):
        for move in range(view.num_moves[index]):
            kind = np.int64(view.moves[index, move])
            if kind != FOLD:
                out[O_MOVES + (index * MAX_MOVES + move) * 2 + kind - CALL] = 1.0


def describe_actions(game: Any, view: Any, encoder: Any, actions: Any, count: Any, out: Any) -> Any:
    for i in range(count):
        for kind in range(ACTION_SIZE):
            out[i, kind] = 0.0
        out[i, actions[i]] = 1.0


def observe_action(game: Any, state: Any, action: Any, seat: Any) -> Any:
    return action


def observe_chance(game: Any, state: Any, seat: Any) -> Any:
    return np.int64(state.board)


# --- values ---------------------------------------------------------------------------------------


def reward_terms(game: Any, state: Any, out: Any) -> Any:
    for side in range(2):
        out[side, 0] = 0.0
    if state.to_move == TERMINAL:
        returns(game, state, out[:, 0])


def statistics(game: Any, state: Any, out: Any) -> Any:
    for side in range(2):
        out[side, 0] = 0.0
        out[side, 1] = 1.0 if state.folded == side else 0.0
    for index in range(NUM_ROUNDS):
        for move in range(state.num_moves[index]):
            if state.moves[index, move] == RAISE:
                out[move & 1, 0] += 1.0


def rule_action(game: Any, view: Any, seat: Any, rng: Any) -> Any:
    card = np.int64(view.cards[seat])
    faced = view.paid[0] != view.paid[1]
    may_raise = view.raises < game.max_raises
    strong = card == view.board or (card == NUM_RANKS - 1 and (not view.shown or not faced))
    if strong and may_raise:
        return RAISE
    if strong or not faced:
        bluffs = card == 0 and may_raise and below(rng, 6) == 0
        return RAISE if bluffs else CALL
    return FOLD if card == 0 else CALL


# --- in words -------------------------------------------------------------------------------------


def _initial_states(game: Any) -> list[tuple[float, Any]]:
    found = []
    for ranks in itertools.product(range(NUM_RANKS), repeat=3):
        left = [NUM_COPIES] * NUM_RANKS
        ways = 1
        for rank in ranks:
            ways *= left[rank]
            left[rank] -= 1
        if ways:
            state = SPEC.new_state()
            _start(game, state, *ranks)
            found.append((ways / NUM_DEALS, state))
    return found


def _format_action(game: Any, view: Any, action: int) -> str:
    if action == CALL and view.paid[0] == view.paid[1]:
        return "check"
    return ("fold", "call", "raise")[action]


def _format_view(game: Any, view: Any, seat: int) -> str:
    names = {NO_CARD: "?", 0: "J", 1: "Q", 2: "K"}
    cards = " ".join(names[int(card)] for card in view.cards)
    rounds = [
        "".join("fcr"[move] for move in view.moves[index, : view.num_moves[index]]) or "-"
        for index in range(NUM_ROUNDS)
    ]
    board = names[int(view.board)] if view.shown else "?"
    return (
        f"cards {cards} board {board} rounds {' '.join(rounds)} paid {view.paid[0]} {view.paid[1]}"
    )


def _format_table(game: Any, view: Any, seat: int) -> str:
    rounds = []
    for index in range(int(view.betting_round) + 1):
        # A call that faces nothing is the first move of a round, or answers a check.
        moves = [int(move) for move in view.moves[index, : view.num_moves[index]]]
        checks = moves.index(RAISE) if RAISE in moves else len(moves)
        words = [("fold", "call", "raise")[move] for move in moves]
        rounds.append(", ".join(["check"] * checks + words[checks:]) or "nothing")
    board = RANK_NAMES[int(view.board)] if view.shown else "not turned up yet"
    return (
        f"You are seat {seat}. Chips in the pot: you {int(view.paid[seat])}, "
        f"they {int(view.paid[1 - seat])}.\nSo far: {'; then '.join(rounds)}\n"
        f"Board: {board}\nYour card: {RANK_NAMES[int(view.cards[seat])]}"
    )


SPEC: GameSpec = register(
    GameSpec(
        name="leduc",
        game_type=Leduc,
        options={
            "ante": Option(low=1, high=100, help="chips that each seat antes"),
            "first_raise": Option(low=1, high=100, help="chips of a raise in the first round"),
            "second_raise": Option(low=1, high=100, help="chips of a raise in the second round"),
            "max_raises": Option(low=1, high=MOST_RAISES, help="raises a round at the most"),
        },
        presets={"standard": Leduc()},
        state_dtype=STATE,
        fields=fields,
        view_relations=VIEW_RELATIONS,
        state_relations=STATE_RELATIONS,
        encoders=(
            Encoder(
                name="cards",
                version=1,
                code=0,
                observation_size=OBSERVATION_SIZE,
                action_size=ACTION_SIZE,
            ),
        ),
        max_actions=3,
        max_plies=NUM_ROUNDS * MAX_MOVES,
        recalled_plies=NUM_ROUNDS * MAX_MOVES - 1,
        reward_terms=("win",),
        statistics=("raises", "folds"),
        initial_states=_initial_states,
        format_action=_format_action,
        format_view=_format_view,
        format_table=_format_table,
        state_from_document=reader(lambda: SPEC, has_board=True),
    ),
    globals(),
)
