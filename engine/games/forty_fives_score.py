"""Forty-fives: what a hand scores, and when the game is over.

Room: engine. May import: engine.jit, rules (sentinels), and of Forty-fives the state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.games.forty_fives_state import (
    BIDDER_WINS,
    FIRST_LISTED,
    HAND_END,
    IF_SET,
    LEVEL_60,
    LEVEL_POINTS,
    MAX_HANDS,
    MUST_HOLD,
    NEEDS_A_BID,
    NOBODY,
    OVER,
)
from engine.jit import kernel
from engine.rules import CHANCE, TERMINAL


@kernel
def raw_points(state: Any, side: Any) -> Any:
    """Return the points of the tricks so far, and for the best trump in play."""
    best = 5 if state.best_side == side else 0
    return 5 * np.int64(state.tricks[side]) + best


@kernel
def bid_points(game: Any, level: Any, raw: Any) -> Any:
    """Return what the bidding side scores with ``raw`` points: all of them, or minus the bid."""
    needed = LEVEL_POINTS[level]
    if level == LEVEL_60:
        return 60 if raw >= needed else -game.thirty_fail
    return raw if raw >= needed else -needed


@kernel
def other_points(game: Any, raw: Any, score: Any, entered: Any, made: Any) -> Any:
    """Return what the other side scores: all of ``raw``, or nothing when over 100 forbids it.

    Args:
        game: Rule options.
        raw: Its points in the hand.
        score: Its score before the hand.
        entered: Whether one of its seats made a bid or held.
        made: Whether the contract was made.
    """
    over = score >= 100 if game.over100_test else score > 100
    barred = (
        (game.over100 == NEEDS_A_BID and not entered)
        or game.over100 == MUST_HOLD
        or (game.over100 == IF_SET and made)
    )
    return 0 if over and barred else raw


@kernel
def count_hand(game: Any, state: Any) -> None:
    """Score a hand that is played out; end the game or wait for the next hand."""
    side = np.int64(state.bidder) & 1
    other = 1 - side
    change = bid_points(game, np.int64(state.high), raw_points(state, side))
    entered = state.bids[other] != 0 or state.bids[other + 2] != 0
    raw, score = raw_points(state, other), np.int64(state.scores[other])
    state.scores[other] += other_points(game, raw, score, entered, change > 0)
    state.scores[side] += change
    state.contracts[side] += 1
    if change > 0:
        state.made[side] += 1
    else:
        state.sets[side] -= change
    end_hand(game, state)


@kernel
def winning_side(game: Any, state: Any) -> Any:
    """Return the side that has won with this hand, or NOBODY."""
    if state.bidder < 0:
        return NOBODY
    side = np.int64(state.bidder) & 1
    own, other = np.int64(state.scores[side]), np.int64(state.scores[1 - side])
    if own < game.target:
        return NOBODY if other < game.target or game.bid_out else 1 - side
    if other < game.target or game.bid_out or game.both_reach == BIDDER_WINS:
        return side
    if game.both_reach == FIRST_LISTED:
        return 0
    return 1 - side if other > own else side


@kernel
def end_hand(game: Any, state: Any) -> None:
    """End the game if it is won or has gone on for too long, else wait for the next hand."""
    winner = winning_side(game, state)
    last = state.hand_index + 1 == MAX_HANDS
    if winner < 0 and last and state.scores[0] != state.scores[1]:
        winner = 0 if state.scores[0] > state.scores[1] else 1
    if winner >= 0 or last:
        state.phase = OVER
        state.to_move = TERMINAL
        state.winner = winner
    else:
        state.phase = HAND_END
        state.to_move = CHANCE
