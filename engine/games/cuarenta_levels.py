"""Cuarenta: players of rising strength, and a guess of the outcome where a search is cut.

Room: engine. May import: engine.bits, jit, rules (sentinels), and of Cuarenta state, rules and
encoder (how many cards a seat holds).

1. ``random``: any legal move.
2. ``rules:biggest``: the capture that takes most cards. Without one it places a card at random.
3. ``rules:careful``: also counts. A move is worth its caída and limpia, ``CARD_WORTH`` a card that
   goes to the pile, less what it gives away: the caída and limpia that the next seat could score,
   by the chance that one of its cards does so. The cards that it may hold are those that are
   neither in the own hand nor on the table or in a pile, each as likely as the other.
4. ``rollouts:N``: guesses the hidden hands N times, plays the rest of the deal in each with the
   rule player, and takes the move after which ``guess`` is best on average.

Equal choices are drawn, and every card in hand is a lot of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.bits import U0, lowest, popcount, without_lowest
from engine.games.cuarenta_encoder import cards_in_hand
from engine.games.cuarenta_rules import (
    action_base,
    action_rank,
    count_of_rank,
    is_caida,
    is_paid_limpia,
    play,
    rank_presence,
    taken_cards,
    write_actions,
)
from engine.games.cuarenta_state import (
    ALL_CARDS,
    CARDS_PER_DEAL,
    MAX_ACTIONS,
    NUM_CARDS,
    PLACE,
    STATE,
)
from engine.jit import kernel
from engine.rng import below
from engine.rules import CHANCE, TERMINAL

STYLES = ("biggest", "careful")
BIGGEST, CAREFUL = range(len(STYLES))
CARD_WORTH = 0.5
"""Points. A pile of 20 cards pays 6 and each card more one; one of 19 pays nothing."""
LEAD_UNIT, LEAD_UNIT_PER_POINT = 4.0, 0.15
"""A lead of so many points, and the second for every point that both sides still need, multiplies
the odds to win by e. A fit to games of rule players."""
_WINS = 1000.0


@kernel
def style_choice(game: Any, view: Any, seat: Any, style: Any, rng: Any) -> Any:
    """Return the action of the rule-based player ``style`` for the seat to move."""
    actions = np.empty(MAX_ACTIONS, np.int64)
    hand = view.hands[seat]
    best = -np.inf
    total = np.int64(0)
    chosen = np.int64(-1)
    for i in range(write_actions(game, hand, view.table, actions)):
        code = actions[i]
        worth = _worth(game, view, code, style)
        if worth < best:
            continue
        # One pass of weighted reservoir sampling.
        weight = count_of_rank(hand, action_rank(code))
        total = weight if worth > best else total + weight
        best = worth
        if total == weight or below(rng, total) < weight:
            chosen = code
    return chosen


@kernel
def _worth(game: Any, view: Any, code: Any, style: Any) -> Any:
    """Return what a move is worth to the player ``style``."""
    taken = taken_cards(game, view.table, view.ref, code)
    if style == BIGGEST:
        return 1.0 * popcount(taken)
    after = np.empty(1, STATE)
    after[0] = view
    state = after[0]
    play(game, state, code)
    side = view.to_move & 1
    if state.to_move == TERMINAL:
        return _WINS if state.winner == side else -_WINS
    points = np.int64(state.scores[side]) - np.int64(view.scores[side])
    cards = popcount(state.piles[side]) - popcount(view.piles[side])
    hand = view.hands[view.to_move]
    return points + CARD_WORTH * cards - expected_gift(game, state, hand)


@kernel
def expected_gift(game: Any, state: Any, hand: Any) -> Any:
    """Return the points that the next seat may expect of one caída or limpia.

    Args:
        game: Rule options.
        state: The position after the own move, changed here.
        hand: The own cards before it.
    """
    if state.plies_in_hand == NUM_CARDS:
        return 0.0
    size: Any = np.int64(CARDS_PER_DEAL)
    if state.to_move == CHANCE:
        state.to_move = (state.dealer + 1) % game.players
    else:
        size = cards_in_hand(state, state.to_move)
    unseen = ALL_CARDS & ~(hand | state.table | state.piles[0] | state.piles[1])
    actions = np.empty(MAX_ACTIONS, np.int64)
    paid = np.zeros(3, np.int64)  # unseen cards that score at least so many of the two
    ranks = rank_presence(unseen)
    while ranks != U0:
        card = ranks & ~without_lowest(ranks)
        ranks = without_lowest(ranks)
        most = 0
        for i in range(write_actions(game, card, state.table, actions)):
            if action_base(actions[i]) != PLACE:
                taken = taken_cards(game, state.table, state.ref, actions[i])
                caida = is_caida(game, state, actions[i], taken)
                most = max(most, caida + is_paid_limpia(game, state, taken, caida))
        for k in range(1, most + 1):
            paid[k] += count_of_rank(unseen, lowest(card) >> 2)
    total = popcount(unseen)
    return 2.0 * (chance_of_any(paid[1], total, size) + chance_of_any(paid[2], total, size))


@kernel
def chance_of_any(wanted: Any, total: Any, size: Any) -> Any:
    """Return the chance that ``size`` cards of ``total`` have one of ``wanted`` among them."""
    none = 1.0
    for i in range(size):
        none *= max(total - wanted - i, 0) / max(total - i, 1)
    return 1.0 - none


@kernel
def guess(game: Any, state: Any, side: Any) -> Any:
    """Return a guess of the outcome for ``side`` in [-1, 1]: by its lead in points and cards."""
    own, other = np.int64(state.scores[side]), np.int64(state.scores[1 - side])
    lead = 1.0 * (own - other)
    if state.plies_in_hand < NUM_CARDS:
        lead += CARD_WORTH * (popcount(state.piles[side]) - popcount(state.piles[1 - side]))
    missing = max(2 * game.target - own - other, 0)
    return math.tanh(0.5 * lead / (LEAD_UNIT + LEAD_UNIT_PER_POINT * missing))
