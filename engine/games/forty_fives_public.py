"""Forty-fives: what both encoders show of everything but the cards themselves.

Room: engine. May import: engine.bits, jit, rules (sentinels), and of Forty-fives state and rules.

All features lie in about [0, 1]. "Own" and "other" are sides, relative to the observing seat; seats
are counted from the observer (own, next, partner, previous).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import contains
from engine.games.forty_fives_rules import card_to_decide
from engine.games.forty_fives_score import raw_points
from engine.games.forty_fives_state import (
    DISCARD,
    DRAW,
    HAND_END,
    HAND_SIZE,
    LEVEL_60,
    LEVEL_POINTS,
    NUM_SEATS,
    NUM_SLOTS,
    NUM_TRICKS,
    OVER,
    PLAY,
    SLOT,
    TRUMPS,
)
from engine.jit import kernel
from engine.rules import CHANCE

LEVEL_BITS = LEVEL_60  # one a level
_LOWEST_MARK, _NUM_MARKS = 60, 12
"""Scores that are told by thresholds: at least 60, 65, .. 115 points."""

P_PHASE = 0  # auction, kitty, trump, discard, draw, play, end of a hand
P_CHANCE = P_PHASE + OVER  # before a deal, a draw, the kitty, or the next seat's discards
P_MOVER = P_CHANCE + 1  # relative seat to move; none at chance
P_DEALER = P_MOVER + NUM_SEATS  # relative seat that deals
P_LEADER = P_DEALER + NUM_SEATS  # relative seat that leads the trick; before play: that discards
P_BIDDER = P_LEADER + NUM_SEATS  # relative seat that has bid highest
P_ROLE = P_BIDDER + NUM_SEATS  # bidding side, defence, bidder, supporter
P_HIGH = P_ROLE + 4  # level of the highest bid
P_BIDS = P_HIGH + LEVEL_BITS  # relative seat x (highest level it bid or held, passed)
P_HELD = P_BIDS + NUM_SEATS * (LEVEL_BITS + 1)  # the dealer has held
P_DRAWN = P_HELD + 1  # relative seat x cards drawn, 0 .. 5; none before the draw
P_TRICKS = P_DRAWN + NUM_SEATS * (HAND_SIZE + 1)  # own, other: at least 1, .. 5 tricks
P_PLACE = P_TRICKS + 2 * NUM_TRICKS  # cards in the trick, 0 .. 3
P_NUMBER = P_PLACE + NUM_SEATS  # number of the trick
P_BEST = P_NUMBER + NUM_TRICKS  # best trump so far: own, other, its height / 14
P_NEEDED = P_BEST + 3  # points that the bid still needs / 30; made; points that are left / 30
P_OWN_SCORE = P_NEEDED + 3  # score / 120, not below -1; thresholds
P_OTHER_SCORE = P_OWN_SCORE + 1 + _NUM_MARKS
P_LEAD = P_OTHER_SCORE + 1 + _NUM_MARKS  # (own score - other score) / 120, within -1 and 1
P_OVER_100 = P_LEAD + 1  # own, other: past 100; own, other: entered a bid
PUBLIC_SIZE = P_OVER_100 + 4


@kernel
def decided_card(view: Any) -> Any:
    """Return the card that the seat to move decides to keep or to throw."""
    undecided = view.hands[view.to_move] & ~view.kept
    return card_to_decide(np.int64(view.trump), undecided)


@kernel
def write_levels(level: Any, out: Any, first: Any) -> None:
    """Write which level a bid has; nothing for none."""
    if level > 0:
        out[first + np.int64(level) - 1] = 1.0


@kernel
def write_public(game: Any, view: Any, seat: Any, out: Any) -> None:
    """Write the first ``PUBLIC_SIZE`` numbers of an observation, which holds zeros."""
    if view.phase < OVER:
        out[P_PHASE + np.int64(view.phase)] = 1.0
    if view.to_move == CHANCE:
        out[P_CHANCE] = 1.0
    for relative in range(NUM_SEATS):
        other = (seat + relative) % NUM_SEATS
        if view.to_move == other:
            out[P_MOVER + relative] = 1.0
        if view.dealer == other:
            out[P_DEALER + relative] = 1.0
        if view.leader == other and (view.phase == DISCARD or view.phase == PLAY):
            out[P_LEADER + relative] = 1.0
        if view.bidder == other:
            out[P_BIDDER + relative] = 1.0
        first = P_BIDS + relative * (LEVEL_BITS + 1)
        write_levels(view.bids[other], out, first)
        out[first + LEVEL_BITS] = np.float32(view.passed[other])
        if view.drawn[other] >= 0:
            out[P_DRAWN + relative * (HAND_SIZE + 1) + np.int64(view.drawn[other])] = 1.0
    write_levels(view.high, out, P_HIGH)
    out[P_HELD] = np.float32(view.held)
    _write_role(view, seat, out)
    _write_tricks(view, seat & 1, out)
    _write_scores(game, view, seat & 1, out)


@kernel
def _write_role(view: Any, seat: Any, out: Any) -> None:
    """Write whether the seat bids, supports or defends, as far as the auction has come."""
    if view.bidder < 0:
        return
    bidding = (view.bidder ^ seat) & 1 == 0
    out[P_ROLE] = 1.0 if bidding else 0.0
    out[P_ROLE + 1] = 0.0 if bidding else 1.0
    out[P_ROLE + 2] = 1.0 if view.bidder == seat else 0.0
    out[P_ROLE + 3] = 1.0 if bidding and view.bidder != seat else 0.0


@kernel
def _write_tricks(view: Any, own: Any, out: Any) -> None:
    """Write what has been taken, and what the bid still needs."""
    for k in range(2):
        side = own if k == 0 else 1 - own
        for i in range(np.int64(view.tricks[side])):
            out[P_TRICKS + k * NUM_TRICKS + i] = 1.0
        if view.best_side == side:
            out[P_BEST + k] = 1.0
    if view.phase == PLAY:
        out[P_PLACE + np.int64(view.num_played) % NUM_SEATS] = 1.0
        out[P_NUMBER + np.int64(view.num_played) // NUM_SEATS] = 1.0
    best = np.int64(view.best_trump)
    if best >= 0 and contains(TRUMPS[view.trump], best):
        height = NUM_SLOTS - SLOT[view.trump, best]
        out[P_BEST + 2] = np.float32(height) / np.float32(NUM_SLOTS)
    if view.bidder >= 0 and (view.phase == PLAY or view.phase == DISCARD or view.phase == DRAW):
        taken = raw_points(view, np.int64(view.bidder) & 1)
        needed = LEVEL_POINTS[view.high] - taken
        left = 5 * (NUM_TRICKS - np.int64(view.tricks[0]) - np.int64(view.tricks[1]))
        out[P_NEEDED] = np.float32(max(needed, 0)) / np.float32(30)
        out[P_NEEDED + 1] = 1.0 if needed <= 0 else 0.0
        out[P_NEEDED + 2] = np.float32(left) / np.float32(30)


@kernel
def _write_scores(game: Any, view: Any, own: Any, out: Any) -> None:
    """Write the scores, with the thresholds near the end of a game."""
    for k in range(2):
        side = own if k == 0 else 1 - own
        score = np.int64(view.scores[side])
        first = P_OWN_SCORE if k == 0 else P_OTHER_SCORE
        out[first] = np.float32(max(score, -game.target)) / np.float32(game.target)
        for i in range(_NUM_MARKS):
            out[first + 1 + i] = 1.0 if score >= _LOWEST_MARK + 5 * i else 0.0
        past = score >= 100 if game.over100_test else score > 100
        out[P_OVER_100 + k] = 1.0 if past else 0.0
        entered = view.phase < HAND_END and (view.bids[side] != 0 or view.bids[side + 2] != 0)
        out[P_OVER_100 + 2 + k] = 1.0 if entered else 0.0
    lead = np.int64(view.scores[own]) - np.int64(view.scores[1 - own])
    lead = min(max(lead, -game.target), game.target)
    out[P_LEAD] = np.float32(lead) / np.float32(game.target)
