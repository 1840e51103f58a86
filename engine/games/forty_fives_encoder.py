"""Forty-fives: the encoder ``symmetric`` - suits by their part in the hand, low ranks in buckets.

Room: engine. May import: engine.bits, jit, rules (sentinels), and of Forty-fives state, cards,
player (the worth of a suit), worlds (what is unseen) and the encoder of what is public.

A card is a trump of a slot, or a plain card of a rank in one of three suits that are ordered by the
own cards in them. Before trump is named each suit stands for itself, the one that the hand is worth
most with first. The eight low trumps are two buckets of four, the plain cards below the jack two
buckets of three and seven; what a bucket hides of a candidate (its exact rank, what is above it,
whether it wins) its own features tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, contains, lowest, popcount, without_lowest
from engine.games.forty_fives_cards import (
    lacking_cards,
    led_card,
    played_cards,
    present_trick,
    trick_power,
)
from engine.games.forty_fives_player import is_best, suit_worth
from engine.games.forty_fives_public import (
    LEVEL_BITS,
    PUBLIC_SIZE,
    decided_card,
    write_levels,
    write_public,
)
from engine.games.forty_fives_state import (
    ABOVE,
    ACE_OF_HEARTS,
    DISCARD,
    FIVE,
    HAND_SIZE,
    HEARTS,
    HOLD,
    JACK,
    KEEP,
    LEVEL_60,
    NAME_TRUMP,
    NUM_RANKS,
    NUM_SEATS,
    NUM_SLOTS,
    NUM_SUITS,
    PASS,
    PLAIN,
    PLAY_CARD,
    POWER,
    SLOT,
    TRUMP_POWER,
    TRUMPS,
)
from engine.games.forty_fives_worlds import unseen_cards
from engine.jit import kernel

_OTHERS = NUM_SEATS - 1
_TOP_SLOTS = 6
TRUMP_BITS = _TOP_SLOTS + 2  # slots 0 .. 5, then how many of slots 6 .. 9 and 10 .. 13, / 4
PLAIN_BITS = 5  # king, queen, jack, then how many of the next three, / 3, and of the rest, / 7
SUIT_BITS = 2 * PLAIN_BITS + 2 + _OTHERS  # own, unseen, own discards / 5, led, seats that lack it
TRICK_BITS = 6  # has played, a trump, its height / 14, plain power / 12, of the suit led, wins

# --- observation: offsets as a sum of sections ----------------------------------------------------
O_SUITS = PUBLIC_SIZE  # before trump is named: suit by own worth x (own cards as trumps, hearts)
O_OWN = O_SUITS + NUM_SUITS * (TRUMP_BITS + 1)  # trumps: own hand
O_UNSEEN = O_OWN + TRUMP_BITS  # trumps: unseen
O_THROWN = O_UNSEEN + TRUMP_BITS  # trumps: own discards
O_PLAYED = O_THROWN + TRUMP_BITS  # trumps: played, by relative seat
O_PLAIN = O_PLAYED + NUM_SEATS * TRUMP_BITS  # plain suits by own cards in them
O_TRICK = O_PLAIN + 3 * SUIT_BITS  # by relative seat
O_LACKS = O_TRICK + NUM_SEATS * TRICK_BITS  # seats after the observer: five, jack, A of hearts, low
O_DISCARD = O_LACKS + _OTHERS * 4  # own discards: share kept, share thrown, share left, / 5
OBSERVATION_SIZE = O_DISCARD + 3

# --- action ---------------------------------------------------------------------------------------
A_KIND = 0  # pass, hold, name trump, keep, throw, play
A_LEVEL = A_KIND + 6  # level bid or held
A_SUIT = A_LEVEL + LEVEL_BITS  # suit named: own cards as trumps, hearts, worth / 40
A_CARD = A_SUIT + TRUMP_BITS + 2  # slot of a trump, or rank of a plain card
A_TRUMP = A_CARD + TRUMP_BITS + PLAIN_BITS  # a trump; its height / 14; plain power / 12
A_FOLLOWS = A_TRUMP + 3  # leads; is of the suit led; wins so far; partner wins so far; plays last
A_BEST = A_FOLLOWS + 5  # no unseen card of its kind is higher; unseen ones above it / 5
A_OWN = A_BEST + 2  # own cards of its kind / 5, those above it / 5
ACTION_SIZE = A_OWN + 2


@kernel
def _write_trumps(cards: Any, trump: Any, out: Any, first: Any) -> None:
    """Write the trumps of ``cards`` by slot and bucket."""
    cards &= TRUMPS[trump]
    while cards != U0:
        slot = SLOT[trump, lowest(cards)]
        cards = without_lowest(cards)
        if slot < _TOP_SLOTS:
            out[first + slot] = 1.0
        else:
            out[first + _TOP_SLOTS + (slot - _TOP_SLOTS) // 4] += 0.25


@kernel
def _write_plain(cards: Any, trump: Any, out: Any, first: Any) -> None:
    """Write ``cards`` of one plain suit by rank and bucket."""
    while cards != U0:
        power = POWER[trump, lowest(cards)]
        cards = without_lowest(cards)
        if power >= 10:
            out[first + 12 - power] = 1.0
        elif power >= 7:
            out[first + 3] += np.float32(1.0 / 3.0)
        else:
            out[first + 4] += np.float32(1.0 / 7.0)


@kernel
def _pattern(trump: Any, cards: Any) -> Any:
    """Return a number that orders sets of plain cards of one suit by their highest cards."""
    pattern = np.int64(0)
    while cards != U0:
        pattern |= np.int64(1) << POWER[trump, lowest(cards)]
        cards = without_lowest(cards)
    return pattern


@kernel
def _plain_key(view: Any, seat: Any, suit: Any) -> Any:
    """Return what orders the plain suits: own cards, then all else that their features show."""
    trump = np.int64(view.trump)
    mask = PLAIN[trump, suit]
    key = _pattern(trump, view.hands[seat] & mask) << NUM_RANKS
    key |= _pattern(trump, unseen_cards(view, seat) & mask)
    key = key << 4 | popcount(view.thrown[seat] & mask)
    led = led_card(view)
    key = key << 1 | (1 if led >= 0 and contains(mask, led) else 0)
    for offset in range(_OTHERS):
        lacks = lacking_cards(view, (seat + 1 + offset) % NUM_SEATS)
        key = key << 1 | (1 if lacks & mask != U0 else 0)
    return key


@kernel
def _order_suits(view: Any, seat: Any, order: Any) -> None:
    """Write the suits to ``order`` (int64[4]): by worth, or trump first and then the plain ones.

    Suits that differ in nothing that is shown may come in any order: no renaming of suits changes
    an observation, as far as their own ranks allow (black suits, or the two red ones but for an
    ace of hearts).
    """
    trump = np.int64(view.trump)
    keys = np.empty(NUM_SUITS, np.int64)
    hand = view.hands[seat]
    for suit in range(NUM_SUITS):
        order[suit] = suit
        if trump < 0:
            pattern = np.int64(0)
            cards = hand & TRUMPS[suit]
            while cards != U0:
                pattern |= np.int64(1) << (NUM_SLOTS - 1 - SLOT[suit, lowest(cards)])
                cards = without_lowest(cards)
            keys[suit] = suit_worth(hand, suit) << NUM_SLOTS | pattern
            keys[suit] = keys[suit] << 1 | (1 if suit == HEARTS else 0)
        elif suit == trump:
            keys[suit] = np.int64(1) << 60
        else:
            keys[suit] = _plain_key(view, seat, suit)
    for i in range(1, NUM_SUITS):
        j = i
        while j > 0 and keys[order[j]] > keys[order[j - 1]]:
            held = order[j]
            order[j] = order[j - 1]
            order[j - 1] = held
            j -= 1


@kernel
def encode_view(game: Any, view: Any, seat: Any, out: Any) -> None:
    """Write the observation (``float32[OBSERVATION_SIZE]``)."""
    for i in range(OBSERVATION_SIZE):
        out[i] = 0.0
    write_public(game, view, seat, out)
    trump = np.int64(view.trump)
    order = np.empty(NUM_SUITS, np.int64)
    _order_suits(view, seat, order)
    if trump < 0:
        for place in range(NUM_SUITS):
            first = O_SUITS + place * (TRUMP_BITS + 1)
            _write_trumps(view.hands[seat], order[place], out, first)
            out[first + TRUMP_BITS] = 1.0 if order[place] == HEARTS else 0.0
        return
    unseen = unseen_cards(view, seat)
    _write_trumps(view.hands[seat], trump, out, O_OWN)
    _write_trumps(unseen, trump, out, O_UNSEEN)
    _write_trumps(view.thrown[seat], trump, out, O_THROWN)
    for relative in range(NUM_SEATS):
        played = played_cards(view, (seat + relative) % NUM_SEATS)
        _write_trumps(played, trump, out, O_PLAYED + relative * TRUMP_BITS)
    for place in range(1, NUM_SUITS):
        _write_suit(view, seat, order[place], out, O_PLAIN + (place - 1) * SUIT_BITS)
    _write_trick(view, seat, out)
    _write_lacks(view, seat, out)
    if view.phase == DISCARD and view.to_move == seat:
        kept = popcount(view.kept)
        undecided = popcount(view.hands[seat]) - kept
        out[O_DISCARD] = np.float32(kept) / np.float32(HAND_SIZE)
        out[O_DISCARD + 1] = np.float32(popcount(view.thrown[seat])) / np.float32(HAND_SIZE)
        out[O_DISCARD + 2] = np.float32(undecided) / np.float32(HAND_SIZE)


@kernel
def _write_suit(view: Any, seat: Any, suit: Any, out: Any, first: Any) -> None:
    """Write one plain suit."""
    trump = np.int64(view.trump)
    mask = PLAIN[trump, suit]
    _write_plain(view.hands[seat] & mask, trump, out, first)
    _write_plain(unseen_cards(view, seat) & mask, trump, out, first + PLAIN_BITS)
    first += 2 * PLAIN_BITS
    out[first] = np.float32(popcount(view.thrown[seat] & mask)) / np.float32(HAND_SIZE)
    led = led_card(view)
    out[first + 1] = 1.0 if led >= 0 and contains(mask, led) else 0.0
    for offset in range(_OTHERS):
        lacks = lacking_cards(view, (seat + 1 + offset) % NUM_SEATS)
        out[first + 2 + offset] = 1.0 if lacks & mask != U0 else 0.0


@kernel
def _write_trick(view: Any, seat: Any, out: Any) -> None:
    """Write the cards of the present trick by relative seat."""
    trump, led = np.int64(view.trump), led_card(view)
    if led < 0:
        return
    place, winning, _ = present_trick(view)
    start = np.int64(view.num_played) - place
    for i in range(place):
        card = np.int64(view.played[start + (np.int64(view.leader) + i) % NUM_SEATS])
        relative = (np.int64(view.leader) + i - seat) % NUM_SEATS
        first = O_TRICK + relative * TRICK_BITS
        power = POWER[trump, card]
        out[first] = 1.0
        if power >= TRUMP_POWER:
            out[first + 1] = 1.0
            out[first + 2] = np.float32(power - TRUMP_POWER + 1) / np.float32(NUM_SLOTS)
        else:
            out[first + 3] = np.float32(power) / np.float32(12)
        out[first + 4] = 1.0 if trick_power(trump, led, card) >= 0 else 0.0
        out[first + 5] = 1.0 if winning == i else 0.0


@kernel
def _write_lacks(view: Any, seat: Any, out: Any) -> None:
    """Write which trumps the other seats have shown that they lack."""
    trump = np.int64(view.trump)
    for offset in range(_OTHERS):
        lacks = lacking_cards(view, (seat + 1 + offset) % NUM_SEATS)
        first = O_LACKS + offset * 4
        out[first] = 1.0 if contains(lacks, trump * NUM_RANKS + FIVE) else 0.0
        out[first + 1] = 1.0 if contains(lacks, trump * NUM_RANKS + JACK) else 0.0
        out[first + 2] = 1.0 if contains(lacks, ACE_OF_HEARTS) else 0.0
        # The king stands for all trumps below the ace of hearts: they are shown together.
        out[first + 3] = 1.0 if contains(lacks, trump * NUM_RANKS + NUM_RANKS - 1) else 0.0


@kernel
def encode_actions(game: Any, view: Any, actions: Any, count: Any, out: Any) -> None:
    """Write the features of ``actions[:count]`` (``float32[>= count, ACTION_SIZE]``)."""
    hand = view.hands[view.to_move]
    for i in range(count):
        code, features = actions[i], out[i]
        for k in range(ACTION_SIZE):
            features[k] = 0.0
        if code >= PLAY_CARD:
            features[A_KIND + 5] = 1.0
            _write_card(view, code - PLAY_CARD, features)
            _write_play(view, code - PLAY_CARD, features)
        elif code >= KEEP:
            features[A_KIND + 3 + code - KEEP] = 1.0
            _write_card(view, decided_card(view), features)
        elif code >= NAME_TRUMP:
            suit = code - NAME_TRUMP
            features[A_KIND + 2] = 1.0
            _write_trumps(hand, suit, features, A_SUIT)
            features[A_SUIT + TRUMP_BITS] = 1.0 if suit == HEARTS else 0.0
            features[A_SUIT + TRUMP_BITS + 1] = np.float32(suit_worth(hand, suit)) / np.float32(40)
        elif code == PASS:
            features[A_KIND] = 1.0
        else:
            features[A_KIND + 1] = 1.0 if code == HOLD else 0.0
            write_levels(view.high if code == HOLD else min(code, LEVEL_60), features, A_LEVEL)


@kernel
def _write_card(view: Any, card: Any, features: Any) -> None:
    """Write what a card is, and where it stands among the own and the unseen ones."""
    trump, seat = np.int64(view.trump), np.int64(view.to_move)
    power = POWER[trump, card]
    single = np.uint64(1) << np.uint64(card)
    if power >= TRUMP_POWER:
        kind = TRUMPS[trump]
        _write_trumps(single, trump, features, A_CARD)
        features[A_TRUMP] = 1.0
        features[A_TRUMP + 1] = np.float32(power - TRUMP_POWER + 1) / np.float32(NUM_SLOTS)
    else:
        kind = PLAIN[trump, card // NUM_RANKS]
        _write_plain(single, trump, features, A_CARD + TRUMP_BITS)
        features[A_TRUMP + 2] = np.float32(power) / np.float32(12)
    unseen = unseen_cards(view, seat)
    hand = view.hands[seat]
    five = np.float32(HAND_SIZE)
    features[A_BEST] = 1.0 if is_best(trump, unseen, card) else 0.0
    features[A_BEST + 1] = np.float32(popcount(ABOVE[trump, card] & unseen)) / five
    features[A_OWN] = np.float32(popcount(hand & kind)) / five
    features[A_OWN + 1] = np.float32(popcount(hand & ABOVE[trump, card])) / five


@kernel
def _write_play(view: Any, card: Any, features: Any) -> None:
    """Write what a card does in the present trick."""
    trump, led = np.int64(view.trump), led_card(view)
    if led < 0:
        features[A_FOLLOWS] = 1.0
        return
    place, winning, best = present_trick(view)
    power = trick_power(trump, led, best)
    features[A_FOLLOWS + 1] = 1.0 if trick_power(trump, led, card) >= 0 else 0.0
    features[A_FOLLOWS + 2] = 1.0 if trick_power(trump, led, card) > power else 0.0
    features[A_FOLLOWS + 3] = 1.0 if place - winning == 2 else 0.0
    features[A_FOLLOWS + 4] = 1.0 if place == NUM_SEATS - 1 else 0.0
