"""Cuarenta: the compiled rules - what may be played, what it takes, what it scores.

Room: engine. May import: engine.bits, jit, rules (sentinels), and of Cuarenta state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, U1, bit, contains, lowest, popcount, without_lowest
from engine.games.cuarenta_state import (
    AFTER_CAIDA,
    BASE_MASK,
    BASE_SHIFT,
    BY_MATCH,
    CARDS_PER_DEAL,
    DOUBLES,
    EXACTLY_TWO,
    HIGHER_TOTAL,
    LOW_BITS,
    MATCH,
    MAX_HANDS,
    NIBBLE,
    NO_CARD,
    NOBODY,
    NUM_CARDS,
    NUM_NUMBERS,
    PASSED_BY_PLACING,
    PASSED_BY_TAKING,
    PLACE,
    RANK_SHIFT,
    RUN_MASK,
    RUN_NONE,
    RUN_OPTIONAL,
    SPLIT_BOTH_6,
    SPLIT_NEXT_6,
    SUM_NEED,
    SUM_ROWS,
    SUMS_OF_TWO,
    TAKES_ALL_EQUAL,
    TWO_OR_MORE,
)
from engine.jit import kernel
from engine.rules import CHANCE, TERMINAL

_S1, _S2, _S3, _S4 = (np.uint64(n) for n in (1, 2, 3, 4))
_PAIRS = np.uint64(0x5555555555)
_QUADS = np.uint64(0x3333333333)
_NOT_LOWEST = np.uint64(0xEEEEEEEEEE)
_UPPER_HALF = np.uint64(0xCCCCCCCCCC)
_HIGHEST = np.uint64(0x8888888888)
_NOT_HIGHEST = np.uint64(0x7777777777)
_S6, _S12, _S24 = (np.uint64(n) for n in (6, 12, 24))
_TWO_OF_EIGHT = np.uint64(0x0303030303)
_FOUR_OF_SIXTEEN = np.uint64(0x000F000F000F)
_LOW_EIGHT, _TOP_TWO = np.uint64(0xFF), np.uint64(0x300)
_ALL_LOW_BITS = np.uint64(0x1111111111111111)


# --- masks ----------------------------------------------------------------------------------------


@kernel
def rank_counts(mask: Any) -> Any:
    """Return a mask whose nibbles are the numbers of cards of each rank in ``mask``."""
    pairs = mask - ((mask >> _S1) & _PAIRS)
    return (pairs & _QUADS) + ((pairs >> _S2) & _QUADS)


@kernel
def rank_presence(mask: Any) -> Any:
    """Return ``mask`` with the lowest bit of a nibble set where it holds a card of that rank."""
    halves = mask | (mask >> _S2)
    return (halves | (halves >> _S1)) & LOW_BITS


@kernel
def thermometer(mask: Any) -> Any:
    """Return ``mask`` with the cards of each rank moved to the lowest suits."""
    counts = rank_counts(mask)
    four = counts >> _S2
    at_least_2 = (counts >> _S1) | four
    at_least_3 = (counts & (counts >> _S1)) | four
    return (
        ((counts | at_least_2) & LOW_BITS)
        | ((at_least_2 & LOW_BITS) << _S1)
        | ((at_least_3 & LOW_BITS) << _S2)
        | ((four & LOW_BITS) << _S3)
    )


@kernel
def count_of_rank(mask: Any, rank: Any) -> Any:
    """Return the number of cards of ``rank`` in ``mask`` as int64."""
    return popcount((mask >> np.uint64(4 * rank)) & NIBBLE)


@kernel
def one_of_each(mask: Any, first: Any) -> Any:
    """Return the lowest suit of each rank in ``mask``, but the card ``first`` for its own rank.

    ``first`` is a card of ``mask`` or NO_CARD.
    """
    higher = (
        ((mask << _S1) & _NOT_LOWEST) | ((mask << _S2) & _UPPER_HALF) | ((mask << _S3) & _HIGHEST)
    )
    chosen = mask & ~higher
    if first >= 0:
        chosen = (chosen & ~(NIBBLE << np.uint64(np.int64(first) & ~3))) | bit(first)
    return chosen


@kernel
def run_length(present: Any, rank: Any) -> Any:
    """Return how many ranks in a row, from ``rank + 1`` on, are in ``present``."""
    above = present >> np.uint64(4 * rank + 4)
    return lowest(~above & _ALL_LOW_BITS) >> 2


# --- legal actions --------------------------------------------------------------------------------


@kernel
def _write_runs(game: Any, actions: Any, count: Any, code: Any, longest: Any) -> Any:
    """Append ``code`` with the run it must, or each run it may, be followed by."""
    if game.run == RUN_OPTIONAL:
        for length in range(longest + 1):
            actions[count + length] = code + length
        return count + longest + 1
    actions[count] = code + longest
    return count + 1


@kernel
def write_actions(game: Any, hand: Any, table: Any, actions: Any) -> Any:
    """Write the actions of ``hand`` on ``table`` in ascending order; return their number."""
    on_table = thermometer(table)
    ranks = rank_presence(hand)
    count = 0
    while ranks != U0:
        rank = lowest(ranks) >> 2
        ranks = without_lowest(ranks)
        code = rank << RANK_SHIFT
        first = count
        longest = 0 if game.run == RUN_NONE else run_length(on_table & LOW_BITS, rank)
        if contains(on_table, 4 * rank):
            count = _write_runs(game, actions, count, code, longest)
        if game.run_after_sum == 0:
            longest = 0
        stop = SUM_ROWS[rank, 2] if game.sum_cards == TWO_OR_MORE else SUM_ROWS[rank, 1]
        for base in range(SUM_ROWS[rank, 0], stop):
            if SUM_NEED[base] & ~on_table == U0:
                count = _write_runs(game, actions, count, code | (base << BASE_SHIFT), longest)
        if game.must_capture == 0 or count == first:
            actions[count] = code | (PLACE << BASE_SHIFT)
            count += 1
    return count


@kernel
def ten_bits(lows: Any) -> Any:
    """Return the lowest bits of ``lows``'s nibbles side by side: bit r for rank r, as int64."""
    pairs = (lows | (lows >> _S3)) & _TWO_OF_EIGHT
    fours = (pairs | (pairs >> _S6)) & _FOUR_OF_SIXTEEN
    eights = fours | (fours >> _S12)
    return np.int64((eights & _LOW_EIGHT) | ((eights >> _S24) & _TOP_TWO))


@kernel
def taking_ranks(game: Any, table: Any) -> Any:
    """Return bit r for each rank r of which a card could take something from ``table``."""
    on_table = thermometer(table)
    present = ten_bits(on_table & LOW_BITS)
    if game.sum_cards == EXACTLY_TWO:
        twice = ten_bits((on_table >> _S1) & LOW_BITS)
        return present | SUMS_OF_TWO[present & 127] | DOUBLES[twice & 7]
    for rank in range(1, NUM_NUMBERS):
        for base in range(SUM_ROWS[rank, 0], SUM_ROWS[rank, 2]):
            if SUM_NEED[base] & ~on_table == U0:
                present |= 1 << rank
                break
    return present


# --- one ply --------------------------------------------------------------------------------------


@kernel
def action_rank(code: Any) -> Any:
    """Return the rank that the action plays."""
    return code >> RANK_SHIFT


@kernel
def action_base(code: Any) -> Any:
    """Return MATCH, PLACE or the row of SUM_NEED."""
    return (code >> BASE_SHIFT) & BASE_MASK


@kernel
def taken_cards(game: Any, table: Any, ref: Any, code: Any) -> Any:
    """Return the table cards that the action takes; the empty set for a placement.

    ``ref`` is the card open to a caida or NO_CARD: of equal ranks it is taken first.
    """
    base = action_base(code)
    if base == PLACE:
        return U0
    layer = one_of_each(table, ref)
    shift = np.uint64(4 * action_rank(code))
    run = ((U1 << np.uint64(4 * (code & RUN_MASK))) - U1) << (shift + _S4)
    taken = layer & run
    if base == MATCH:
        equal = table if game.match_takes == TAKES_ALL_EQUAL else layer
        return taken | (equal & (NIBBLE << shift))
    need = SUM_NEED[base]
    rest = table
    while need != U0:
        taken |= layer & ((need & LOW_BITS) * NIBBLE)
        need = (need >> _S1) & _NOT_HIGHEST
        if need != U0:
            rest &= ~layer
            layer = one_of_each(rest, NO_CARD)
    return taken


@kernel
def is_caida(game: Any, state: Any, code: Any, taken: Any) -> Any:
    """Return 1 if the action of the seat to move takes the card open to a caida, else 0."""
    if state.ref < 0 or not contains(taken, state.ref):
        return 0
    if game.caida_by == BY_MATCH:
        # The reference may also lie in a sum, or in the run after the match of a lower rank.
        matched = action_base(code) == MATCH and action_rank(code) == np.int64(state.ref) >> 2
        if not matched:
            return 0
    # Without the sticky reference the card is from the ply before: always an opponent's.
    if game.caida_ref_sticky and ((state.ref_seat ^ state.to_move) & 1) == 0:
        return 0
    return 1


@kernel
def is_paid_limpia(game: Any, state: Any, taken: Any, caida: Any) -> Any:
    """Return 1 if taking ``taken`` clears the table and pays for that, else 0."""
    if taken == U0 or taken != state.table:
        return 0
    score = np.int64(state.scores[state.to_move & 1])
    if game.limpia_cap_test == AFTER_CAIDA:
        score += 2 * caida
    if score >= game.limpia_cap:
        return 0
    return 1 - caida if game.caida_plus_limpia == 2 else 1


@kernel
def _capture(game: Any, state: Any, card: Any, code: Any) -> None:
    """Move ``card`` (a set of one) and what it takes to the pile of the seat to move; score it."""
    side = state.to_move & 1
    taken = taken_cards(game, state.table, state.ref, code)
    caida = is_caida(game, state, code, taken)
    limpia = is_paid_limpia(game, state, taken, caida)
    state.table &= ~taken
    state.piles[side] |= taken | card
    state.captured[side] += popcount(taken)
    state.caidas[side] += caida
    state.limpias[side] += limpia
    state.scores[side] += 2 * (caida + limpia)
    state.last_capturer = side
    if state.ref >= 0 and (game.caida_ref_sticky == 0 or contains(taken, state.ref)):
        state.ref = NO_CARD
        state.ref_seat = 0


@kernel
def _note_passed(game: Any, state: Any, seat: Any, code: Any) -> None:
    """Note the ranks that could have been played to take something, before ``code`` is played."""
    first = PASSED_BY_PLACING if action_base(code) == PLACE else PASSED_BY_TAKING
    passed = np.int64(state.passed[seat]) | (taking_ranks(game, state.table) << first)
    of_rank = (1 << PASSED_BY_PLACING) | (1 << PASSED_BY_TAKING)
    state.passed[seat] = passed & ~(of_rank << action_rank(code))


@kernel
def play(game: Any, state: Any, code: Any) -> None:
    """Play the action ``code`` of the seat to move, in place."""
    seat = np.int64(state.to_move)
    of_rank = state.hands[seat] & (NIBBLE << np.uint64(4 * action_rank(code)))
    card = of_rank & ~without_lowest(of_rank)
    state.hands[seat] &= ~card
    state.played[seat] |= card
    state.plies_in_hand += 1
    _note_passed(game, state, seat, code)
    if action_base(code) == PLACE:
        state.table |= card
        state.ref = lowest(card)
        state.ref_seat = seat
    else:
        _capture(game, state, card, code)
        if game.end_mid_deal and state.scores[seat & 1] >= game.target:
            finish(state, seat & 1)
            return
    plies = np.int64(state.plies_in_hand)
    if plies == NUM_CARDS:
        _count_hand(game, state)
    elif plies % (CARDS_PER_DEAL * game.players) == 0:
        state.to_move = CHANCE
        if game.caida_across_deals == 0:
            state.ref = NO_CARD
            state.ref_seat = 0
    else:
        state.to_move = seat + 1 if seat + 1 < game.players else 0


@kernel
def finish(state: Any, winner: Any) -> None:
    """End the game: ``winner`` is a side, or NOBODY for a draw."""
    state.to_move = TERMINAL
    state.winner = winner


# --- the end of a hand ----------------------------------------------------------------------------


@kernel
def carton_points(num_cards: Any) -> Any:
    """Return the points of a pile: from 20 cards on, the cards over 14, rounded up to even."""
    return 0 if num_cards < 20 else (num_cards - 13) & ~1


@kernel
def count_points(game: Any, own: Any, other: Any, deals_next: Any) -> Any:
    """Return the points of a side with ``own`` pile cards against ``other`` at the end of a hand.

    ``deals_next`` is 1 if the side deals the next hand. The cut-off by score is the caller's.
    """
    if own == 20 and other == 20:
        if game.split_20_20 == SPLIT_BOTH_6:
            return 6
        return deals_next * (6 if game.split_20_20 == SPLIT_NEXT_6 else 2)
    if own >= 20 or other >= 20:
        return carton_points(own)
    if own > other or (own == other and deals_next == 1):
        return game.below20
    return 0


@kernel
def _count_hand(game: Any, state: Any) -> None:
    """Score the piles after the last ply of a hand; end the game or wait for the next hand."""
    next_side = (state.dealer + 1) & 1
    if game.leftover and state.last_capturer >= 0:
        state.piles[state.last_capturer] |= state.table
        state.table = U0
    sizes = (popcount(state.piles[0]), popcount(state.piles[1]))
    for side in range(2):
        if state.scores[side] < game.carton_cutoff:
            points = count_points(game, sizes[side], sizes[1 - side], 1 if side == next_side else 0)
            state.scores[side] += points
            state.carton[side] += points
    state.ref = NO_CARD
    state.ref_seat = 0
    difference = np.int64(state.scores[0]) - np.int64(state.scores[1])
    higher = (0 if difference > 0 else 1) if difference != 0 else NOBODY
    reached = max(state.scores[0], state.scores[1]) >= game.target
    if min(state.scores[0], state.scores[1]) >= game.target:
        by_total = game.both_40 == HIGHER_TOTAL and higher >= 0
        finish(state, higher if by_total else next_side)
    elif reached or state.hand_index + 1 == MAX_HANDS:
        finish(state, higher)
    else:
        state.to_move = CHANCE
