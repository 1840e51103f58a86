"""Cuarenta: the encoder ``ranks`` - suits merged, counts as thermometers.

Room: engine. May import: engine.bits, jit, rules (sentinels), and of Cuarenta state and rules.

All features lie in about [0, 1]. "Own" and "other" are sides, relative to the observing seat; seats
are counted from the observer (own, next, partner, previous). A thermometer of a count c over levels
1 .. L is 1 on the first c levels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, contains, lowest, popcount, without_lowest
from engine.games.cuarenta_rules import (
    action_base,
    action_rank,
    count_of_rank,
    is_caida,
    is_paid_limpia,
    rank_presence,
    taken_cards,
    thermometer,
)
from engine.games.cuarenta_state import (
    ALL_CARDS,
    CARDS_PER_DEAL,
    MATCH,
    MAX_SEATS,
    NUM_CARDS,
    NUM_RANKS,
    PASSED_BY_PLACING,
    PASSED_BY_TAKING,
    PLACE,
    RONDA_ANNOUNCED,
    RUN_MASK,
)
from engine.jit import kernel
from engine.rules import CHANCE

_LEVELS_1_TO_3 = np.uint64(0x7777777777)

# --- observation: offsets as a sum of sections ----------------------------------------------------
O_HAND = 0  # own hand: rank x 3 levels
O_TABLE = O_HAND + 3 * NUM_RANKS  # table: rank x 3 levels
O_OWN_PILE = O_TABLE + 3 * NUM_RANKS  # rank x 4 levels
O_OTHER_PILE = O_OWN_PILE + 4 * NUM_RANKS  # rank x 4 levels
O_UNSEEN = O_OTHER_PILE + 4 * NUM_RANKS  # neither own hand, table nor piles: rank x 4 levels
O_REF = O_UNSEEN + 4 * NUM_RANKS  # rank of the card open to a caida
O_OWN_SCORE = O_REF + NUM_RANKS  # at least 2, 4, .. 38 points
O_OTHER_SCORE = O_OWN_SCORE + 19
O_HAND_SIZES = O_OTHER_SCORE + 19  # cards in hand / 5, by relative seat
O_STOCK = O_HAND_SIZES + MAX_SEATS  # stock / 40; last deal of the hand
O_MOVER = O_STOCK + 2  # relative seat to move; none between deals
O_DEALER = O_MOVER + MAX_SEATS  # relative seat that deals
O_LEAD = O_DEALER + MAX_SEATS  # (own score - other score) / 40
O_PILE_SIZES = O_LEAD + 1  # own, other: size / 40, at least 16, 20, 24
O_BETWEEN = O_PILE_SIZES + 8  # before a deal; before a new hand
O_RONDA = O_BETWEEN + 2  # announced, by relative seat
O_PASSED = O_RONDA + MAX_SEATS  # seats after the observer: rank x (by placing, by taking)
OBSERVATION_SIZE = O_PASSED + (MAX_SEATS - 1) * 2 * NUM_RANKS

# --- action ---------------------------------------------------------------------------------------
A_RANK = 0  # rank played
A_TAKEN = A_RANK + NUM_RANKS  # cards of the rank taken / 2
A_LEFT = A_TAKEN + NUM_RANKS  # ranks on the table after the ply
A_LEFT_UNSEEN = A_LEFT + NUM_RANKS  # of those: unseen cards of the rank / 3
A_MATCH = A_LEFT_UNSEEN + NUM_RANKS
A_SUM = A_MATCH + 1
A_PLACE = A_SUM + 1
A_CAIDA = A_PLACE + 1
A_LIMPIA = A_CAIDA + 1  # one that pays
A_POINTS = A_LIMPIA + 1  # / 4
A_WINS = A_POINTS + 1
A_NUM_TAKEN = A_WINS + 1  # / 6
A_RUN = A_NUM_TAKEN + 1  # cards added by the run / 5
A_NUM_LEFT = A_RUN + 1  # cards on the table after: none, one, two, number / 10
A_UNSEEN = A_NUM_LEFT + 4  # unseen cards of the rank played: 3 levels
A_COPIES = A_UNSEEN + 3  # further cards of the rank in hand: 2 levels
A_ON_TABLE = A_COPIES + 2  # cards of the rank on the table before / 2
A_PILE = A_ON_TABLE + 1  # own pile after / 40; 20 or more
A_SCORE = A_PILE + 2  # own score after / 40
ACTION_SIZE = A_SCORE + 1


@kernel
def write_bits(mask: Any, out: Any, offset: Any) -> None:
    """Set ``out[offset + i]`` for each bit ``i`` of ``mask``."""
    while mask != U0:
        out[offset + lowest(mask)] = 1.0
        mask = without_lowest(mask)


@kernel
def _write_three_levels(mask: Any, out: Any, offset: Any) -> None:
    """Write the thermometer of ``mask`` with three levels a rank."""
    levels = thermometer(mask) & _LEVELS_1_TO_3
    while levels != U0:
        index = lowest(levels)
        out[offset + index - (index >> 2)] = 1.0
        levels = without_lowest(levels)


@kernel
def _write_passed(passed: Any, out: Any, offset: Any) -> None:
    """Write what a seat's choices tell of its hand: two flags a rank."""
    for rank in range(NUM_RANKS):
        bits = np.int64(passed) >> rank
        out[offset + 2 * rank] = np.float32((bits >> PASSED_BY_PLACING) & 1)
        out[offset + 2 * rank + 1] = np.float32((bits >> PASSED_BY_TAKING) & 1)


@kernel
def unseen_cards(view: Any, seat: Any) -> Any:
    """Return the cards that lie in other hands or the stock, as ``seat`` knows it."""
    return ALL_CARDS & ~(view.hands[seat] | view.table | view.piles[0] | view.piles[1])


@kernel
def cards_in_hand(view: Any, seat: Any) -> Any:
    """Return how many cards ``seat`` holds, from a view or a state."""
    return CARDS_PER_DEAL - popcount(view.played[seat])


@kernel
def stock_size(game: Any, view: Any) -> Any:
    """Return the number of cards in the stock, which a view does not show."""
    size = NUM_CARDS - np.int64(view.plies_in_hand)
    for seat in range(game.players):
        size -= cards_in_hand(view, seat)
    return size


@kernel
def encode_view(game: Any, view: Any, seat: Any, out: Any) -> None:
    """Write the observation (``float32[OBSERVATION_SIZE]``)."""
    own = seat & 1
    for i in range(OBSERVATION_SIZE):
        out[i] = 0.0
    _write_three_levels(view.hands[seat], out, O_HAND)
    _write_three_levels(view.table, out, O_TABLE)
    write_bits(thermometer(view.piles[own]), out, O_OWN_PILE)
    write_bits(thermometer(view.piles[1 - own]), out, O_OTHER_PILE)
    write_bits(thermometer(unseen_cards(view, seat)), out, O_UNSEEN)
    if view.ref >= 0:
        out[O_REF + (np.int64(view.ref) >> 2)] = 1.0
    _encode_seats(game, view, seat, out)
    _encode_scores(view, own, out)
    stock = stock_size(game, view)
    out[O_STOCK] = np.float32(stock) / np.float32(40.0)
    if stock == 0:
        out[O_STOCK + 1] = 1.0
    if view.to_move == CHANCE:
        out[O_BETWEEN] = 1.0
        if view.plies_in_hand == NUM_CARDS:
            out[O_BETWEEN + 1] = 1.0


@kernel
def _encode_seats(game: Any, view: Any, seat: Any, out: Any) -> None:
    """Write what belongs to a seat, counted from the observer."""
    for relative in range(game.players):
        other = (seat + relative) % game.players
        out[O_HAND_SIZES + relative] = np.float32(cards_in_hand(view, other)) / np.float32(5.0)
        if view.to_move == other:
            out[O_MOVER + relative] = 1.0
        if view.dealer == other:
            out[O_DEALER + relative] = 1.0
        if view.ronda[other] >= RONDA_ANNOUNCED:
            out[O_RONDA + relative] = 1.0
        if relative > 0 and view.to_move != CHANCE:
            _write_passed(view.passed[other], out, O_PASSED + (relative - 1) * 2 * NUM_RANKS)


@kernel
def _encode_scores(view: Any, own: Any, out: Any) -> None:
    """Write scores and pile sizes, own side first."""
    for relative in range(2):
        side = own ^ relative
        for level in range(min(int(view.scores[side]) >> 1, 19)):
            out[O_OWN_SCORE + 19 * relative + level] = 1.0
        size = popcount(view.piles[side])
        offset = O_PILE_SIZES + 4 * relative
        out[offset] = np.float32(size) / np.float32(40.0)
        for level in range(3):
            if size >= 16 + 4 * level:
                out[offset + 1 + level] = 1.0
    lead = np.int64(view.scores[own]) - np.int64(view.scores[1 - own])
    out[O_LEAD] = np.float32(lead) / np.float32(40.0)


@kernel
def encode_actions(game: Any, view: Any, actions: Any, count: Any, out: Any) -> None:
    """Write the features of ``actions[:count]`` (``float32[>= count, ACTION_SIZE]``)."""
    seat = np.int64(view.to_move)
    unseen = unseen_cards(view, seat)
    for i in range(count):
        features = out[i]
        for k in range(ACTION_SIZE):
            features[k] = 0.0
        taken = taken_cards(game, view.table, view.ref, actions[i])
        _encode_result(game, view, actions[i], taken, features)
        _encode_cards(view, actions[i], taken, unseen, features)


@kernel
def _encode_result(game: Any, view: Any, code: Any, taken: Any, out: Any) -> None:
    """Write what the action is and what it scores."""
    side = view.to_move & 1
    base = action_base(code)
    num_taken = popcount(taken)
    if base == PLACE:
        out[A_PLACE] = 1.0
    else:
        out[A_MATCH if base == MATCH else A_SUM] = 1.0
        out[A_RUN] = np.float32(code & RUN_MASK) / np.float32(5.0)
    caida = is_caida(game, view, code, taken)
    limpia = is_paid_limpia(game, view, taken, caida)
    score = np.int64(view.scores[side]) + 2 * (caida + limpia)
    pile = popcount(view.piles[side]) + (num_taken + 1 if base != PLACE else 0)
    out[A_CAIDA] = np.float32(caida)
    out[A_LIMPIA] = np.float32(limpia)
    out[A_POINTS] = np.float32(caida + limpia) / np.float32(2.0)
    out[A_WINS] = 1.0 if score >= game.target else 0.0
    out[A_NUM_TAKEN] = np.float32(num_taken) / np.float32(6.0)
    out[A_PILE] = np.float32(pile) / np.float32(40.0)
    out[A_PILE + 1] = 1.0 if pile >= 20 else 0.0
    out[A_SCORE] = np.float32(score) / np.float32(40.0)


@kernel
def _encode_cards(view: Any, code: Any, taken: Any, unseen: Any, out: Any) -> None:
    """Write the ranks that the action plays, takes and leaves."""
    rank = action_rank(code)
    out[A_RANK + rank] = 1.0
    cards = taken
    while cards != U0:
        out[A_TAKEN + (lowest(cards) >> 2)] += np.float32(0.5)
        cards = without_lowest(cards)
    left = rank_presence(view.table & ~taken)
    num_left = popcount(view.table & ~taken)
    if action_base(code) == PLACE:
        num_left += 1
        if not contains(left, 4 * rank):
            out[A_LEFT + rank] = 1.0
            out[A_LEFT_UNSEEN + rank] = np.float32(count_of_rank(unseen, rank)) / np.float32(3.0)
    while left != U0:
        other = lowest(left) >> 2
        left = without_lowest(left)
        out[A_LEFT + other] = 1.0
        out[A_LEFT_UNSEEN + other] = np.float32(count_of_rank(unseen, other)) / np.float32(3.0)
    if num_left < 3:
        out[A_NUM_LEFT + num_left] = 1.0
    out[A_NUM_LEFT + 3] = np.float32(num_left) / np.float32(10.0)
    for level in range(min(count_of_rank(unseen, rank), 3)):
        out[A_UNSEEN + level] = 1.0
    for level in range(min(count_of_rank(view.hands[view.to_move], rank) - 1, 2)):
        out[A_COPIES + level] = 1.0
    out[A_ON_TABLE] = np.float32(count_of_rank(view.table, rank)) / np.float32(2.0)
