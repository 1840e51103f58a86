"""Forty-fives: hands and discards of the other seats drawn by exact counting, after the draw.

Room: engine. May import: engine.bits, jit, rng, and of Forty-fives state and cards.

What is known of the cards that a seat holds comes in classes: a seat that could not follow lacks a
plain suit; one that refused a trump lead lacks the low trumps, and may or may not lack the three
that it could have held back. So it is enough to count cards of each class in each hand. On top of
that comes what the number of cards drawn says. A seat that drew n kept 5 - n of its first cards,
and the world replays how: with probability ``1 - FLOOR`` it kept its trumps and nothing else (a
bidder with more than five of them the best five; where one card has to be kept, a seat without
trumps any one), else each card by the toss of a coin. A world's weight is the number of ways in
which its hands and discards can have come about, times that probability.

With a, the numbers of trumps in the three hands, everything else factors: splits of the trumps,
splits of the plain cards, discards from what is left. Counts stay below 2^53 or lose a relative
1e-16 in float64.
"""

from __future__ import annotations

from math import comb
from typing import Any, NamedTuple

import numpy as np

from engine.bits import U0, bit, fill_cards, lowest, popcount, without_lowest
from engine.games.forty_fives_cards import lacking_cards, played_cards
from engine.games.forty_fives_state import (
    ABOVE,
    ACE_OF_HEARTS,
    FIVE,
    HAND_SIZE,
    JACK,
    NUM_CARDS,
    NUM_RANKS,
    NUM_SEATS,
    NUM_SUITS,
    PLAIN,
    POWER,
    TRUMPS,
)
from engine.jit import kernel
from engine.rng import below, uniform

FLOOR = 0.1
"""Probability that a seat discards otherwise than by keeping its trumps."""
_OTHERS = NUM_SEATS - 1
_SIZE = HAND_SIZE + 1
_MASKS = 1 << _OTHERS
_NUM_CLASSES = 4
"""Classes of trumps at the most, and of plain cards."""
_CHOOSE = np.array([[comb(n, k) for k in range(10)] for n in range(NUM_CARDS + 1)], np.float64)


class Classes(NamedTuple):
    """Unseen cards that the hands may or may not hold alike. C classes, H = 3 other hands."""

    masks: Any
    """uint64[C] the cards; the last class is the only one that may be large."""
    sizes: Any
    """int64[C]."""
    allowed: Any
    """bool[C, H]."""
    ways: Any
    """float64[C, 6, 6, 6]: ways to fill so many places of each hand from the classes from c on."""


@kernel
def _tossed(base: Any, kept: Any) -> Any:
    """Return the probability of one set of ``kept`` cards of ``base`` when coins are tossed."""
    chance = 0.5**base
    if base == HAND_SIZE or kept < HAND_SIZE:
        return chance
    fewer = 0.0
    for k in range(HAND_SIZE):
        fewer += _CHOOSE[base, k] * chance
    return (1.0 - fewer) / _CHOOSE[base, HAND_SIZE]


@kernel
def num_thrown(game: Any, view: Any, seat: Any) -> Any:
    """Return how many cards ``seat`` threw, once it has drawn."""
    kitty = game.kitty if view.bidder == seat else 0
    return np.int64(view.drawn[seat]) + kitty


@kernel
def _weigh_discards(game: Any, view: Any, seat: Any, weights: Any) -> None:
    """Write the weights of one seat's discards by its trumps in hand (see ``count_hands``).

    ``weights`` is float64[2, 6]: with trumps among the thrown cards, and with plain ones only.
    """
    thrown = num_thrown(game, view, seat)
    kept = HAND_SIZE - np.int64(view.drawn[seat])
    out = popcount(played_cards(view, seat) & TRUMPS[view.trump])
    tossed = FLOOR * _CHOOSE[HAND_SIZE, kept] * _tossed(kept + thrown, kept)
    full = kept == HAND_SIZE and thrown > 0  # a bidder that may have thrown trumps
    for held in range(_SIZE):
        trumps = held + out
        by_rule = 0.0
        if trumps <= HAND_SIZE:
            by_rule = _CHOOSE[trumps, kept]
            if game.min_keep == 1 and kept == 1:  # one of its cards a seat without trumps keeps
                by_rule += (HAND_SIZE - trumps) / (kept + thrown)
        with_trumps = (1.0 - FLOOR) * by_rule if full else 0.0
        plain_only = 0.0 if full else (1.0 - FLOOR) * by_rule
        if game.may_throw_trump or (full and trumps == HAND_SIZE):
            with_trumps += tossed
        else:
            plain_only += tossed
        weights[0, held] = with_trumps
        weights[1, held] = plain_only


@kernel
def _new_classes(view: Any, seat: Any, unseen: Any, trumps: Any) -> Any:
    """Return the classes of the unseen trumps, or of the unseen plain cards, without ``ways``."""
    trump = np.int64(view.trump)
    masks = np.zeros(_NUM_CLASSES, np.uint64)
    if trumps:
        masks[0] = bit(trump * NUM_RANKS + FIVE)
        masks[1] = bit(trump * NUM_RANKS + JACK)
        masks[2] = bit(ACE_OF_HEARTS)
        masks[3] = TRUMPS[trump] & ~(masks[0] | masks[1] | masks[2])
    else:
        for suit in range(NUM_SUITS):
            masks[suit] = PLAIN[trump, suit]
        # The suit that is trump has none: it takes the last place, which every hand may hold.
        masks[trump] = masks[NUM_SUITS - 1]
        masks[NUM_SUITS - 1] = U0
    sizes = np.zeros(_NUM_CLASSES, np.int64)
    allowed = np.ones((_NUM_CLASSES, _OTHERS), np.bool_)
    free = np.ones(_NUM_CLASSES, np.bool_)
    last = _NUM_CLASSES - 1
    for index in range(last, -1, -1):
        mask = masks[index] & unseen
        for slot in range(_OTHERS):
            lacks = lacking_cards(view, (seat + 1 + slot) % NUM_SEATS)
            allowed[index, slot] = lacks & mask == U0
            free[index] = free[index] and allowed[index, slot]
        if index < last and free[index] and free[last]:
            # Cards that every hand may hold are one class, and the last one costs least.
            masks[last] |= mask
            mask = U0
        masks[index] = mask
    for index in range(_NUM_CLASSES):
        sizes[index] = popcount(masks[index])
    ways = np.empty((_NUM_CLASSES, _SIZE, _SIZE, _SIZE))
    return Classes(masks, sizes, allowed, ways)


@kernel
def _ways_to_split(classes: Any, index: Any, a: Any, b: Any, c: Any) -> Any:
    """Return the ways in which the hands take a, b and c cards of a class."""
    size = classes.sizes[index]
    if (
        a + b + c > size
        or (a > 0 and not classes.allowed[index, 0])
        or (b > 0 and not classes.allowed[index, 1])
        or (c > 0 and not classes.allowed[index, 2])
    ):
        return 0.0
    return _CHOOSE[size, a] * _CHOOSE[size - a, b] * _CHOOSE[size - a - b, c]


@kernel
def _splits(classes: Any, index: Any, left: Any, weights: Any) -> Any:
    """Write the ways of every split of a class but the last one to ``weights``; return their sum.

    ``left`` is int64[H], the places to fill; ``weights`` is float64[6, 6, 6], written up to them.
    """
    total = 0.0
    for a in range(left[0] + 1):
        for b in range(left[1] + 1):
            for c in range(left[2] + 1):
                weight = _ways_to_split(classes, index, a, b, c)
                if weight > 0.0:
                    weight *= classes.ways[index + 1, left[0] - a, left[1] - b, left[2] - c]
                weights[a, b, c] = weight
                total += weight
    return total


@kernel
def _fill_ways(classes: Any, places: Any, weights: Any) -> None:
    """Fill ``classes.ways`` for up to ``places`` (int64[H]) in each hand."""
    left = np.zeros(_OTHERS, np.int64)
    last = _NUM_CLASSES - 1
    for index in range(last, -1, -1):
        for a in range(places[0] + 1):
            for b in range(places[1] + 1):
                for c in range(places[2] + 1):
                    if index == last:  # it fills whatever places are left
                        ways = _ways_to_split(classes, index, a, b, c)
                    elif classes.sizes[index] == 0:
                        ways = classes.ways[index + 1, a, b, c]
                    else:
                        left[0], left[1], left[2] = a, b, c
                        ways = _splits(classes, index, left, weights)
                    classes.ways[index, a, b, c] = ways


@kernel
def _pick_split(weights: Any, left: Any, threshold: Any, split: Any) -> None:
    """Write to ``split`` (int64[H]) the split at which the running sum passes ``threshold``."""
    for a in range(left[0] + 1):
        for b in range(left[1] + 1):
            for c in range(left[2] + 1):
                if weights[a, b, c] > 0.0:
                    split[0], split[1], split[2] = a, b, c
                    threshold -= weights[a, b, c]
                    if threshold < 0.0:
                        return


@kernel
def _deal_classes(classes: Any, left: Any, weights: Any, rng: Any, hands: Any) -> None:
    """Fill ``left`` places of each hand (int64[H], counted down) at random; add to ``hands``."""
    cards = np.empty(NUM_CARDS, np.uint8)
    split = np.zeros(_OTHERS, np.int64)
    for index in range(_NUM_CLASSES):
        if classes.sizes[index] == 0:
            continue
        if index == _NUM_CLASSES - 1:
            split[:] = left
        else:
            total = _splits(classes, index, left, weights)
            _pick_split(weights, left, uniform(rng) * total, split)
        remaining = fill_cards(classes.masks[index], cards)
        for slot in range(_OTHERS):
            left[slot] -= split[slot]
            hands[slot] |= _draw(cards, remaining, split[slot], rng)
            remaining -= split[slot]


@kernel
def _draw(cards: Any, remaining: Any, count: Any, rng: Any) -> Any:
    """Take ``count`` of ``cards[:remaining]`` at random to its end; return them as a set."""
    taken = U0
    for _ in range(count):
        pick = below(rng, remaining)
        remaining -= 1
        taken |= bit(cards[pick])
        cards[pick], cards[remaining] = cards[remaining], cards[pick]
    return taken


@kernel
def _weigh_left(thrown: Any, plain: Any, total: Any, mask: Any) -> Any:
    """Return the ways to throw ``thrown`` cards (int64[H]) of ``total`` cards left.

    The seats of the bit set ``mask`` throw of the ``plain`` ones alone.
    """
    ways = 1.0
    for slot in range(_OTHERS):
        if mask >> slot & 1:
            if thrown[slot] > plain:
                return 0.0
            ways *= _CHOOSE[plain, thrown[slot]]
            plain -= thrown[slot]
            total -= thrown[slot]
    for slot in range(_OTHERS):
        if not mask >> slot & 1:
            if thrown[slot] > total:
                return 0.0
            ways *= _CHOOSE[total, thrown[slot]]
            total -= thrown[slot]
    return ways


@kernel
def _pick_trumps(trump_ways: Any, plain_ways: Any, places: Any, discards: Any, rng: Any) -> Any:
    """Draw trumps in each hand, and the set of who threw plain cards alone; return their code.

    ``discards`` is (weights of every seat's discards, cards thrown, unseen trumps, unseen cards).
    """
    weights, thrown, num_trumps, num_unseen = discards
    size = places[0] + places[1] + places[2]
    left = np.zeros((size + 1, _MASKS))
    for held in range(size + 1):
        plain = num_unseen - num_trumps - (size - held)
        for mask in range(_MASKS):
            if plain >= 0 and held <= num_trumps:
                left[held, mask] = _weigh_left(thrown, plain, num_unseen - size, mask)
    options = np.empty(_SIZE**_OTHERS * _MASKS)
    codes = np.empty(_SIZE**_OTHERS * _MASKS, np.int64)
    count = 0
    total = 0.0
    for a in range(places[0] + 1):
        for b in range(places[1] + 1):
            for c in range(places[2] + 1):
                ways = trump_ways[a, b, c] * plain_ways[places[0] - a, places[1] - b, places[2] - c]
                if ways == 0.0:
                    continue
                for mask in range(_MASKS):
                    weight = ways * left[a + b + c, mask]
                    weight *= weights[0, mask & 1, a] * weights[1, mask >> 1 & 1, b]
                    weight *= weights[2, mask >> 2, c]
                    if weight > 0.0:
                        total += weight
                        options[count] = weight
                        codes[count] = ((a * _SIZE + b) * _SIZE + c) * _MASKS + mask
                        count += 1
    threshold = uniform(rng) * total
    chosen = 0
    while chosen < count - 1 and threshold >= options[chosen]:
        threshold -= options[chosen]
        chosen += 1
    return codes[chosen]


@kernel
def _keeps_best(game: Any, out: Any, seat: Any, rng: Any) -> Any:
    """Return whether to accept a world: where a bidder threw a higher trump than it kept, rarely.

    Its kept cards are its five cards, and counted as if its thrown trumps had all been lower.
    """
    trump = np.int64(out.trump)
    final = out.hands[seat] | played_cards(out, seat)
    if out.drawn[seat] > 0 or popcount(final & TRUMPS[trump]) < HAND_SIZE:
        return True
    least = lowest(final)
    while final != U0:
        card = lowest(final)
        final = without_lowest(final)
        if POWER[trump, card] < POWER[trump, least]:
            least = card
    if out.thrown[seat] & ABOVE[trump, least] == U0:
        return True
    tossed = FLOOR * _tossed(HAND_SIZE + num_thrown(game, out, seat), HAND_SIZE)
    return uniform(rng) * (1.0 - FLOOR + tossed) < tossed


@kernel
def count_hands(game: Any, view: Any, seat: Any, unseen: Any, rng: Any, out: Any) -> Any:
    """Write a draw of the other seats' hands and thrown cards to ``out``; False to draw again.

    Args:
        game: Rule options.
        view: What ``seat`` knows, after the draw; may be ``out`` itself.
        seat: Whose view it is.
        unseen: The cards that it does not see.
        rng: Advanced in place.
        out: Record that holds the public part and the own cards.
    """
    places = np.zeros(_OTHERS, np.int64)
    thrown = np.zeros(_OTHERS, np.int64)
    discards = np.zeros((_OTHERS, 2, _SIZE))
    for slot in range(_OTHERS):
        other = (seat + 1 + slot) % NUM_SEATS
        places[slot] = HAND_SIZE - popcount(played_cards(view, other))
        thrown[slot] = num_thrown(game, view, other)
        _weigh_discards(game, view, other, discards[slot])
    weights = np.zeros((_SIZE, _SIZE, _SIZE))
    trumps = _new_classes(view, seat, unseen, True)
    plain = _new_classes(view, seat, unseen, False)
    _fill_ways(trumps, places, weights)
    _fill_ways(plain, places, weights)
    num_trumps = popcount(unseen & TRUMPS[view.trump])
    about = (discards, thrown, num_trumps, popcount(unseen))
    code = _pick_trumps(trumps.ways[0], plain.ways[0], places, about, rng)
    held = np.zeros(_OTHERS, np.int64)
    mask = code % _MASKS
    code //= _MASKS
    for slot in range(_OTHERS - 1, -1, -1):
        held[slot] = code % _SIZE
        code //= _SIZE
        places[slot] -= held[slot]
    hands = np.zeros(_OTHERS, np.uint64)
    _deal_classes(trumps, held, weights, rng, hands)
    _deal_classes(plain, places, weights, rng, hands)
    for slot in range(_OTHERS):
        out.hands[(seat + 1 + slot) % NUM_SEATS] = hands[slot]
        unseen &= ~hands[slot]
    _deal_thrown(out, seat, unseen, (mask, thrown), rng)
    if view.bidder == seat:
        return True
    return _keeps_best(game, out, np.int64(view.bidder), rng)


@kernel
def _deal_thrown(out: Any, seat: Any, left: Any, how: Any, rng: Any) -> None:
    """Draw what the other seats threw from the cards ``left``; first those of plain cards alone.

    ``how`` is (set of the seats, as slots, that threw plain cards alone; cards thrown, int64[H]).
    """
    mask, thrown = how
    cards = np.empty(NUM_CARDS, np.uint8)
    for turn in range(2 * _OTHERS):
        slot = turn % _OTHERS
        plain_only = turn < _OTHERS
        if (mask >> slot & 1 == 1) == plain_only:
            other = (seat + 1 + slot) % NUM_SEATS
            free = left & ~TRUMPS[out.trump] if plain_only else left
            remaining = fill_cards(free, cards)
            out.thrown[other] = _draw(cards, remaining, thrown[slot], rng)
            left &= ~out.thrown[other]
