"""Durak: the encoder ``suits`` - trumps first, the plain suits in an order of their own content.

Room: engine. May import: engine.bits, jit, and of Durak state, rules, counting and levels.

Plain suits differ in nothing but their cards, so that they are sorted by what the observer sees of
them: positions that are equal up to the names of suits have equal features. All features lie in
about [0, 1]. Seats are counted from the observer, clockwise. A set of cards is 36 flags: suit (in
that order) x rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, bit, lowest, popcount, without_lowest
from engine.games.durak_counting import unseen_cards
from engine.games.durak_levels import cost_of
from engine.games.durak_rules import (
    cards_beating,
    discarded,
    known_cards,
    rank_of,
    ranks_in,
    room_left,
    suit_cards,
    suit_of,
    table_cards,
)
from engine.games.durak_state import (
    ATTACK,
    BEATEN,
    DEFEND,
    EVERY_SUIT,
    MAX_SEATS,
    MULTI,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SUITS,
    OVER,
    PASS,
    SHOW,
    SUIT_BITS,
    SUIT_SETS,
    SWAP,
    TRANSFER,
)
from engine.jit import kernel

SEAT_FEATURES = 10
_MOST_ROOM = 6
_SOON = 50

# --- observation: offsets as a sum of sections ----------------------------------------------------
O_HAND = 0  # own hand
O_KNOWN = O_HAND + NUM_CARDS  # known of the hands of the next seats: seat x cards
O_SHOWN = O_KNOWN + (MAX_SEATS - 1) * NUM_CARDS  # own cards that all know of
O_OPEN = O_SHOWN + NUM_CARDS  # attacks that are not covered
O_COVERED = O_OPEN + NUM_CARDS  # attacks that are
O_COVERS = O_COVERED + NUM_CARDS
O_DISCARD = O_COVERS + NUM_CARDS
O_UNSEEN = O_DISCARD + NUM_CARDS  # in another hand or the stock, nobody knows where
O_SEATS = O_UNSEEN + NUM_CARDS  # by seat: see _encode_seat
O_BOTTOM = O_SEATS + MAX_SEATS * SEAT_FEATURES  # rank of the card at the bottom of the stock
O_STOCK = O_BOTTOM + NUM_RANKS  # size / 24, empty, at most 1 .. 6 cards
O_PHASE = O_STOCK + 8  # attack, defend, throw in, taking, beaten, taken, over
O_ATTACKS = O_PHASE + OVER + 1  # attacks / 6, open ones / 6
O_ROOM = O_ATTACKS + 2  # attacks that may follow: none, 1, .. 5, 6 or more
O_RANKS = O_ROOM + _MOST_ROOM + 1  # ranks on the table
O_PLIES = O_RANKS + NUM_RANKS  # plies left / all plies, / 50 at the end
O_GAME = O_PLIES + 2  # nothing was beaten yet; 2, 3, 4 seats are in
OBSERVATION_SIZE = O_GAME + MAX_SEATS

# --- action ---------------------------------------------------------------------------------------
K_ATTACK, K_THROW, K_COVER, K_TAKE, K_PASS, K_TRANSFER, K_SHOW, K_SWAP = range(8)
A_KIND = 0
A_RANK = A_KIND + K_SWAP + 1  # ranks of the cards
A_SUIT = A_RANK + NUM_RANKS  # suits, trumps first
A_NUM = A_SUIT + NUM_SUITS  # cards / 4
A_COST = A_NUM + 1  # rank, trumps above plain cards, / 17
A_MARGIN = A_COST + 1  # ranks above the card that it covers in suit / 8
A_RUFF = A_MARGIN + 1  # covers a plain card with a trump
A_NEW_RANK = A_RUFF + 1  # the rank is not on the table
A_LEFT = A_NEW_RANK + 1  # cards in hand after it / 6, none, one
A_COPIES = A_LEFT + 3  # further cards of the rank in hand: 3 levels
A_UNSEEN = A_COPIES + 3  # unseen cards of the rank: 3 levels
A_BEATERS = A_UNSEEN + 3  # unseen cards that beat it / 12; the defender is known to have one
A_TAKEN = A_BEATERS + 2  # cards that are taken with it / 12, trumps among them / 4
A_SUIT_LEFT = A_TAKEN + 2  # cards of the suit left in hand / 6
ACTION_SIZE = A_SUIT_LEFT + 1


@kernel
def suit_places(game: Any, view: Any, seat: Any, places: Any) -> None:
    """Write the place of each suit in the observer's order to ``places`` (int64[4])."""
    trump = np.int64(view.trump)
    table = table_cards(view)
    discard = discarded(view)
    known = U0
    for other in range(game.players):
        if other != seat:
            known |= known_cards(view, other)
    keys = np.empty(NUM_SUITS, np.uint64)
    for suit in range(NUM_SUITS):
        shift = np.uint64(NUM_RANKS * suit)
        key = (view.hands[seat] >> shift) & SUIT_BITS
        key = (key << np.uint64(NUM_RANKS)) | ((table >> shift) & SUIT_BITS)
        key = (key << np.uint64(NUM_RANKS)) | ((discard >> shift) & SUIT_BITS)
        keys[suit] = (key << np.uint64(NUM_RANKS)) | ((known >> shift) & SUIT_BITS)
    for suit in range(NUM_SUITS):
        place = 0 if suit == trump else 1
        for other in range(NUM_SUITS):
            if trump not in (suit, other) and other != suit:
                ahead = keys[other] > keys[suit] or (keys[other] == keys[suit] and other < suit)
                place += 1 if ahead else 0
        places[suit] = place


@kernel
def _write_cards(mask: Any, places: Any, out: Any, offset: Any) -> None:
    """Write a set of cards as 36 flags."""
    while mask != U0:
        card = lowest(mask)
        out[offset + NUM_RANKS * places[suit_of(card)] + rank_of(card)] = 1.0
        mask = without_lowest(mask)


@kernel
def _encode_seat(view: Any, seat: Any, out: Any) -> None:
    """Write what belongs to one seat to ``out`` (float32[SEAT_FEATURES])."""
    size = np.int64(view.sizes[seat])
    out[0] = np.float32(size) / np.float32(6.0)
    out[1] = np.float32(size - popcount(known_cards(view, seat))) / np.float32(6.0)
    if size < 3:
        out[2 + size] = 1.0
    out[5] = 1.0 if view.finished[seat] > 0 else 0.0
    out[6] = 1.0 if view.attacker == seat else 0.0
    out[7] = 1.0 if view.defender == seat else 0.0
    out[8] = 1.0 if view.to_move == seat else 0.0
    out[9] = np.float32((view.passed >> seat) & 1)


@kernel
def _encode_table(view: Any, places: Any, out: Any) -> None:
    """Write the cards on the table."""
    for i in range(view.num_attacks):
        section = O_COVERED if i < view.num_covers else O_OPEN
        _write_cards(bit(view.attacks[i]), places, out, section)
    _write_cards(view.covers, places, out, O_COVERS)
    ranks = ranks_in(table_cards(view))
    while ranks != U0:
        out[O_RANKS + lowest(ranks)] = 1.0
        ranks = without_lowest(ranks)
    num_open = np.int64(view.num_attacks) - np.int64(view.num_covers)
    out[O_ATTACKS] = np.float32(view.num_attacks) / np.float32(6.0)
    out[O_ATTACKS + 1] = np.float32(num_open) / np.float32(6.0)


@kernel
def _encode_game(game: Any, view: Any, out: Any) -> None:
    """Write stock, phase, limits and what is left of the game."""
    stock = np.int64(view.stock_size)
    if stock > 0:
        out[O_BOTTOM + rank_of(view.stock[0])] = 1.0
    out[O_STOCK] = np.float32(stock) / np.float32(24.0)
    for level in range(7):
        out[O_STOCK + 1 + level] = 1.0 if stock <= level else 0.0
    out[O_PHASE + np.int64(view.phase)] = 1.0
    if view.phase < BEATEN:
        out[O_ROOM + min(max(room_left(game, view), 0), _MOST_ROOM)] = 1.0
    left = int(game.max_plies) - int(view.plies)
    out[O_PLIES] = np.float32(left) / np.float32(game.max_plies)
    out[O_PLIES + 1] = np.float32(min(left, _SOON)) / np.float32(_SOON)
    out[O_GAME] = 1.0 if view.beaten == 0 else 0.0
    num_active = 0
    for seat in range(game.players):
        num_active += 1 if view.finished[seat] == 0 else 0
    if num_active > 1:
        out[O_GAME + num_active - 1] = 1.0


@kernel
def encode_view(game: Any, view: Any, seat: Any, out: Any) -> None:
    """Write the observation (``float32[OBSERVATION_SIZE]``)."""
    for i in range(OBSERVATION_SIZE):
        out[i] = 0.0
    places = np.empty(NUM_SUITS, np.int64)
    suit_places(game, view, seat, places)
    _write_cards(view.hands[seat], places, out, O_HAND)
    _write_cards(known_cards(view, seat), places, out, O_SHOWN)
    _write_cards(discarded(view), places, out, O_DISCARD)
    _write_cards(unseen_cards(view, seat), places, out, O_UNSEEN)
    for relative in range(game.players):
        other = (seat + relative) % game.players
        if relative > 0:
            section = O_KNOWN + (relative - 1) * NUM_CARDS
            _write_cards(known_cards(view, other), places, out, section)
        first = O_SEATS + relative * SEAT_FEATURES
        _encode_seat(view, other, out[first : first + SEAT_FEATURES])
    _encode_table(view, places, out)
    _encode_game(game, view, out)


# --- actions --------------------------------------------------------------------------------------


@kernel
def _kind_of(view: Any, code: Any) -> Any:
    """Return the kind of an action."""
    if code < PASS:
        if view.phase == ATTACK:
            return K_ATTACK
        return K_COVER if view.phase == DEFEND else K_THROW
    if code == PASS:
        return K_TAKE if view.phase == DEFEND else K_PASS
    if code < SHOW:
        return K_TRANSFER
    if code < SWAP:
        return K_SHOW
    return K_SWAP if code == SWAP else K_ATTACK


@kernel
def _cards_of_action(view: Any, code: Any) -> Any:
    """Return the cards that an action is about."""
    if code < PASS:
        return bit(code)
    if code == PASS:
        return U0
    if code < SHOW:
        return bit(code - TRANSFER)
    if code < SWAP:
        return bit(code - SHOW)
    if code == SWAP:
        return bit(view.stock[0])
    suits = (code - MULTI) % SUIT_SETS
    mask = U0
    for suit in range(NUM_SUITS):
        if (suits >> suit) & 1:
            mask |= bit(suit * NUM_RANKS + (code - MULTI) // SUIT_SETS)
    return mask


@kernel
def encode_actions(game: Any, view: Any, actions: Any, count: Any, out: Any) -> None:
    """Write the features of ``actions[:count]`` (``float32[>= count, ACTION_SIZE]``)."""
    seat = np.int64(view.to_move)
    places = np.empty(NUM_SUITS, np.int64)
    suit_places(game, view, seat, places)
    unseen = unseen_cards(view, seat)
    for i in range(count):
        features = out[i]
        for k in range(ACTION_SIZE):
            features[k] = 0.0
        code = np.int64(actions[i])
        kind = _kind_of(view, code)
        features[A_KIND + kind] = 1.0
        cards = _cards_of_action(view, code)
        if kind == K_TAKE:
            table = table_cards(view)
            features[A_TAKEN] = np.float32(popcount(table)) / np.float32(12.0)
            trumps = popcount(table & suit_cards(view.trump))
            features[A_TAKEN + 1] = np.float32(trumps) / np.float32(4.0)
        kept = view.hands[seat]
        if kind != K_SHOW and kind != K_SWAP:
            kept &= ~cards
        left = popcount(kept)
        features[A_LEFT] = np.float32(left) / np.float32(6.0)
        if left < 2:
            features[A_LEFT + 1 + left] = 1.0
        if cards != U0:
            _encode_cards(view, cards, kept, unseen, features)
            _write_suits(cards, places, features)
            if kind == K_COVER:
                _encode_cover(view, code, features)


@kernel
def _write_suits(cards: Any, places: Any, out: Any) -> None:
    """Write the suits of the cards of an action."""
    while cards != U0:
        out[A_SUIT + places[suit_of(lowest(cards))]] = 1.0
        cards = without_lowest(cards)


@kernel
def _encode_cards(view: Any, cards: Any, kept: Any, unseen: Any, out: Any) -> None:
    """Write what the cards of an action, all of one rank, are worth."""
    card = lowest(cards)
    rank = rank_of(card)
    of_rank = EVERY_SUIT << np.uint64(rank)
    beaters = cards_beating(card, np.int64(view.trump))
    out[A_RANK + rank] = 1.0
    out[A_NUM] = np.float32(popcount(cards)) / np.float32(4.0)
    out[A_COST] = np.float32(cost_of(view, card)) / np.float32(17.0)
    out[A_NEW_RANK] = 1.0 if table_cards(view) & of_rank == U0 else 0.0
    for level in range(min(popcount(kept & of_rank), 3)):
        out[A_COPIES + level] = 1.0
    for level in range(min(popcount(unseen & of_rank), 3)):
        out[A_UNSEEN + level] = 1.0
    out[A_BEATERS] = np.float32(popcount(unseen & beaters)) / np.float32(12.0)
    out[A_BEATERS + 1] = 1.0 if known_cards(view, view.defender) & beaters != U0 else 0.0
    in_suit = popcount(kept & suit_cards(suit_of(card)))
    out[A_SUIT_LEFT] = np.float32(in_suit) / np.float32(6.0)


@kernel
def _encode_cover(view: Any, card: Any, out: Any) -> None:
    """Write how a card covers the oldest open attack."""
    attack = np.int64(view.attacks[view.num_covers])
    if suit_of(attack) == suit_of(card):
        out[A_MARGIN] = np.float32(card - attack) / np.float32(8.0)
    else:
        out[A_RUFF] = 1.0
