"""Forty-fives: the encoder ``full`` - every card by itself.

Room: engine. May import: engine.bits, jit, and of Forty-fives state, cards, worlds and the encoder
of what is public. Seats are counted from the observer (own, next, partner, previous).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.bits import U0, lowest, without_lowest
from engine.games.forty_fives_cards import (
    lacking_cards,
    led_card,
    played_cards,
    present_trick,
    trick_power,
)
from engine.games.forty_fives_public import (
    LEVEL_BITS,
    PUBLIC_SIZE,
    decided_card,
    write_levels,
    write_public,
)
from engine.games.forty_fives_state import (
    HOLD,
    KEEP,
    NAME_TRUMP,
    NUM_CARDS,
    NUM_SEATS,
    NUM_SUITS,
    PASS,
    PLAY_CARD,
)
from engine.games.forty_fives_worlds import unseen_cards
from engine.jit import kernel

_OTHERS = NUM_SEATS - 1

# --- observation: offsets as a sum of sections ----------------------------------------------------
F_TRUMP = PUBLIC_SIZE  # suit that is trump
F_HAND = F_TRUMP + NUM_SUITS  # own hand: 52 cards
F_KEPT = F_HAND + NUM_CARDS  # of it, while discarding: kept
F_THROWN = F_KEPT + NUM_CARDS  # own discards
F_UNSEEN = F_THROWN + NUM_CARDS  # cards that the seat does not see
F_PLAYED = F_UNSEEN + NUM_CARDS  # played in this hand, by relative seat
F_TRICK = F_PLAYED + NUM_SEATS * NUM_CARDS  # of those: in the present trick
F_LED = F_TRICK + NUM_CARDS  # of those: led
F_LACKS = F_LED + NUM_CARDS  # seats after the observer: cards that they do not hold
OBSERVATION_SIZE = F_LACKS + _OTHERS * NUM_CARDS

# --- action ---------------------------------------------------------------------------------------
B_KIND = 0  # pass, hold, name trump, keep, throw, play
B_LEVEL = B_KIND + 6  # level bid or held
B_SUIT = B_LEVEL + LEVEL_BITS  # suit named
B_CARD = B_SUIT + NUM_SUITS  # card kept, thrown or played
B_WINS = B_CARD + NUM_CARDS  # wins the trick so far; partner wins it so far
ACTION_SIZE = B_WINS + 2


@kernel
def write_cards(mask: Any, out: Any, first: Any) -> None:
    """Write 1 for every card of ``mask``."""
    while mask != U0:
        out[first + lowest(mask)] = 1.0
        mask = without_lowest(mask)


@kernel
def encode_view_full(game: Any, view: Any, seat: Any, out: Any) -> None:
    """Write the observation (``float32[OBSERVATION_SIZE]``)."""
    for i in range(OBSERVATION_SIZE):
        out[i] = 0.0
    write_public(game, view, seat, out)
    if view.trump >= 0:
        out[F_TRUMP + np.int64(view.trump)] = 1.0
    write_cards(view.hands[seat], out, F_HAND)
    if view.to_move == seat:
        write_cards(view.kept, out, F_KEPT)
    write_cards(view.thrown[seat], out, F_THROWN)
    write_cards(unseen_cards(view, seat), out, F_UNSEEN)
    for relative in range(NUM_SEATS):
        other = (seat + relative) % NUM_SEATS
        write_cards(played_cards(view, other), out, F_PLAYED + relative * NUM_CARDS)
        if relative > 0:
            write_cards(lacking_cards(view, other), out, F_LACKS + (relative - 1) * NUM_CARDS)
    place = np.int64(view.num_played) % NUM_SEATS
    start = np.int64(view.num_played) - place
    for i in range(place):
        card = view.played[start + (np.int64(view.leader) + i) % NUM_SEATS]
        out[F_TRICK + np.int64(card)] = 1.0
    if place > 0:
        out[F_LED + led_card(view)] = 1.0


@kernel
def encode_actions_full(game: Any, view: Any, actions: Any, count: Any, out: Any) -> None:
    """Write the features of ``actions[:count]`` (``float32[>= count, ACTION_SIZE]``)."""
    trump, led = np.int64(view.trump), led_card(view)
    for i in range(count):
        code, features = actions[i], out[i]
        for k in range(ACTION_SIZE):
            features[k] = 0.0
        if code >= PLAY_CARD:
            features[B_KIND + 5] = 1.0
            features[B_CARD + code - PLAY_CARD] = 1.0
            if led >= 0:
                place, winning, best = present_trick(view)
                power = trick_power(trump, led, best)
                wins = trick_power(trump, led, code - PLAY_CARD) > power
                features[B_WINS] = 1.0 if wins else 0.0
                features[B_WINS + 1] = 1.0 if place - winning == 2 else 0.0
        elif code >= KEEP:
            features[B_KIND + 3 + code - KEEP] = 1.0
            features[B_CARD + decided_card(view)] = 1.0
        elif code >= NAME_TRUMP:
            features[B_KIND + 2] = 1.0
            features[B_SUIT + code - NAME_TRUMP] = 1.0
        elif code == PASS:
            features[B_KIND] = 1.0
        else:
            features[B_KIND + 1] = 1.0 if code == HOLD else 0.0
            write_levels(view.high if code == HOLD else code, features, B_LEVEL)
