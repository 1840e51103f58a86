"""For each game: other states that one seat cannot tell from a given one.

The worlds come from ``tests.naive.worlds``, which knows nothing of the engine; this module reads
what a seat knows out of a state record, and writes a world into one. The games' own ``view`` and
``determinize`` take no part: the tests of hidden information would otherwise trust the code that
they test. A registered game without an entry here fails the suites.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.game import GameSpec
from engine.games import forty_fives_state as phases
from tests.naive import forty_fives as fives
from tests.naive import worlds

Change = Callable[[GameSpec, Any, Any, int, random.Random], Any]
"""``(spec, game, state, seat, rng)`` -> a new state, all that ``seat`` cannot see redrawn."""


@dataclass(frozen=True)
class HiddenPart:
    """What is hidden in the states of one game."""

    change: Change
    change_future: Change
    """The same with all hands left as they are: only what will be dealt is redrawn. ``seat`` is
    not used: no seat knows it."""
    hand: Callable[[Any, Any, int], Hashable]
    """``(game, state, seat)`` -> the cards that ``seat`` holds, for comparison."""
    world: Callable[[Any, Any, int], tuple[Any, ...]]
    """``(game, state, seat)`` -> where the hidden cards lie, as the lists below say it."""
    all_worlds: Callable[[Any, Any, int], Iterable[tuple[Any, ...]]]
    """``(game, state, seat)`` -> every possible world, as often as there are ways to deal it."""
    is_possible: Callable[[Any, Any, int, Any], bool]
    """``(game, state, seat, drawn)``: whether the state ``drawn`` is a possible world."""


def _copy(spec: GameSpec, state: Any) -> Any:
    copy = spec.new_states(1)
    copy[0] = state
    return copy[0]


# --- Cuarenta -------------------------------------------------------------------------------------
_ALL_CARDS = frozenset(range(40))


def _cards(mask: Any) -> frozenset[int]:
    return frozenset(card for card in range(64) if int(mask) >> card & 1)


def _mask(cards: Iterable[int]) -> np.uint64:
    return np.uint64(sum(1 << card for card in cards))


def _told(code: int) -> str | int:
    words = (worlds.UNKNOWN, worlds.ABSENT, worlds.ANNOUNCED)
    return words[code] if code < len(words) else code - len(words)


def cuarenta_knowledge(game: Any, state: Any, seat: int) -> worlds.CuarentaKnowledge:
    """Return what ``seat`` knows of the cards that it does not see."""
    seen = _cards(state.hands[seat]) | _cards(state.table)
    seen |= _cards(state.piles[0]) | _cards(state.piles[1])
    others = {}
    for other in range(game.players):
        if other != seat:
            played = _cards(state.played[other])
            told = _told(int(state.ronda[other]))
            others[other] = worlds.OtherSeat(5 - len(played), played, told)
    return worlds.CuarentaKnowledge(_ALL_CARDS - seen, others, bool(game.four_of_a_kind))


def _cuarenta_hands(game: Any, state: Any, seat: int) -> worlds.Hands:
    return tuple(_cards(state.hands[other]) for other in range(game.players) if other != seat)


def _change_cuarenta(spec: GameSpec, game: Any, state: Any, seat: int, rng: random.Random) -> Any:
    knowledge = cuarenta_knowledge(game, state, seat)
    changed = _change_cuarenta_future(spec, game, state, seat, rng)
    stock = set(knowledge.unseen)
    hands = worlds.random_cuarenta_world(knowledge, rng)
    for other, hand in zip(knowledge.others, hands, strict=True):
        changed.hands[other] = _mask(hand)
        stock -= hand
    changed.stock = _mask(stock)
    return changed


def _change_cuarenta_future(
    spec: GameSpec, game: Any, state: Any, seat: int, rng: random.Random
) -> Any:
    # The stock is a set: which of its cards come next follows from the seed alone.
    changed = _copy(spec, state)
    changed.seed = np.uint64(rng.getrandbits(64))
    return changed


def _cuarenta_is_possible(game: Any, state: Any, seat: int, drawn: Any) -> bool:
    knowledge = cuarenta_knowledge(game, state, seat)
    hands = _cuarenta_hands(game, drawn, seat)
    in_hands = frozenset[int]().union(*hands)
    return (
        worlds.cuarenta_world_is_possible(knowledge, hands)
        and _cards(drawn.stock) == knowledge.unseen - in_hands
        and drawn.hands[seat] == state.hands[seat]
    )


CUARENTA = HiddenPart(
    change=_change_cuarenta,
    change_future=_change_cuarenta_future,
    hand=lambda game, state, seat: int(state.hands[seat]),
    world=_cuarenta_hands,
    all_worlds=lambda game, state, seat: worlds.all_cuarenta_worlds(
        cuarenta_knowledge(game, state, seat)
    ),
    is_possible=_cuarenta_is_possible,
)


# --- Durak ----------------------------------------------------------------------------------------


def _durak_history(state: Any, seat: int) -> tuple[int | None, ...]:
    history: list[int | None] = []
    for given in range(6, int(state.given[seat]) + 1):
        history += [worlds.GOT_CARD] * (given > 6)
        history += [card for card in range(36) if state.first_shown[card] == 64 * seat + given]
    return tuple(history)


def durak_knowledge(game: Any, state: Any, seat: int) -> worlds.DurakKnowledge:
    """Return what ``seat`` knows of the cards that it does not see."""
    seen = _cards(state.hands[seat]) | _cards(state.seen)
    others = {}
    for other in range(game.players):
        if other != seat:
            known = _cards(state.hands[other]) & _cards(state.seen)
            hidden = int(state.sizes[other]) - len(known)
            others[other] = worlds.DurakSeat(hidden, _durak_history(state, other))
    facts, low = int(state.facts), int(state.low_trumps) >> 4 * seat & 15
    return worlds.DurakKnowledge(
        unseen=frozenset(range(36)) - seen,
        others=others,
        seat=seat,
        own_low=low if low < 9 else None,
        trump=int(state.trump),
        first=int(state.first_attacker) if facts & 1 else None,
        nobody_had_trump=bool(facts & 2),
        at_most_four=bool(facts & 4),
    )


def _durak_world(game: Any, state: Any, seat: int) -> worlds.DurakWorld:
    hands = tuple(
        _cards(state.hands[other]) - _cards(state.seen)
        for other in range(game.players)
        if other != seat
    )
    return hands, tuple(int(card) for card in state.stock[1 : state.stock_size])


def _change_durak(spec: GameSpec, game: Any, state: Any, seat: int, rng: random.Random) -> Any:
    knowledge = durak_knowledge(game, state, seat)
    (hands, stock), lows = worlds.random_durak_world(knowledge, rng)
    changed = _copy(spec, state)
    changed.stock[1 : len(stock) + 1] = stock
    for other, hand in zip(knowledge.others, hands, strict=True):
        changed.hands[other] = _mask(hand | (_cards(state.hands[other]) & _cards(state.seen)))
        if knowledge.first is not None or knowledge.nobody_had_trump:
            others = int(changed.low_trumps) & ~(15 << 4 * other)
            changed.low_trumps = others | lows[other] << 4 * other
    return changed


def _change_durak_stock(
    spec: GameSpec, game: Any, state: Any, seat: int, rng: random.Random
) -> Any:
    changed = _copy(spec, state)
    size = max(int(state.stock_size), 1)
    changed.stock[1:size] = rng.sample([int(card) for card in state.stock[1:size]], size - 1)
    return changed


def _durak_is_possible(game: Any, state: Any, seat: int, drawn: Any) -> bool:
    knowledge = durak_knowledge(game, state, seat)
    hands, stock = _durak_world(game, drawn, seat)
    cards = [*stock, *(card for hand in hands for card in hand)]
    return (
        sorted(cards) == sorted(knowledge.unseen)
        and [len(hand) for hand in hands]
        == [other.num_hidden for other in knowledge.others.values()]
        and all(
            _cards(state.hands[other]) & _cards(state.seen) <= _cards(drawn.hands[other])
            for other in knowledge.others
        )
        and drawn.hands[seat] == state.hands[seat]
        and drawn.stock[0] == state.stock[0]
        and worlds.durak_ways(knowledge, hands) > 0
    )


DURAK = HiddenPart(
    change=_change_durak,
    change_future=_change_durak_stock,
    hand=lambda game, state, seat: (
        int(state.hands[seat]),
        int(state.low_trumps) >> 4 * seat & 15,
    ),
    world=_durak_world,
    all_worlds=lambda game, state, seat: worlds.all_durak_worlds(
        durak_knowledge(game, state, seat)
    ),
    is_possible=_durak_is_possible,
)


# --- Forty-fives ----------------------------------------------------------------------------------
_DECK = frozenset(range(52))
_CARD_NAMES = [rank + suit for suit in fives.SUITS for rank in fives.RANKS]


def _played(state: Any, seat: int) -> frozenset[int]:
    return frozenset(int(card) for card in state.played[seat::4] if card >= 0)


@functools.cache
def _refused(card: str, led: str, trump: str, renege: bool) -> frozenset[int]:
    """Return the cards with which it would not be legal to play ``card`` to ``led``."""
    return frozenset(
        index
        for index, other in enumerate(_CARD_NAMES)
        if card not in fives.legal_cards([card, other], led, trump, renege)
    )


def _fives_lacks(game: Any, state: Any, seat: int) -> frozenset[int]:
    """Return the cards with which a play of ``seat`` in this hand would not have been legal."""
    trump = fives.SUITS[int(state.trump)]
    mover = (int(state.bidder) + (0 if game.leader else 1)) % 4
    lacks = frozenset[int]()
    for first in range(0, int(state.num_played), 4):
        cards = [int(state.played[first + (mover + turn) % 4]) for turn in range(4)]
        trick = [_CARD_NAMES[card] for card in cards if card >= 0]
        for place, card in enumerate(trick):
            if place and (mover + place) % 4 == seat:
                lacks |= _refused(card, trick[0], trump, bool(game.renege))
        mover = (mover + fives.trick_winner(trick, trump)) % 4
    return lacks


def forty_fives_knowledge(game: Any, state: Any, seat: int) -> worlds.FortyFivesKnowledge:
    """Return what ``seat`` knows of the cards that it does not see."""
    seen = _cards(state.hands[seat]) | _cards(state.thrown[seat])
    for other in range(4):
        seen |= _played(state, other)
    dealer = int(state.dealer)
    order = [(dealer + turn) % 4 for turn in (1, 2, 3, 4)]
    discarded: list[int] = []
    if state.phase == phases.DRAW:
        discarded = order
    elif state.phase == phases.DISCARD:
        discarded = order[: order.index(int(state.leader))]
    others = {}
    for offset in (1, 2, 3):
        other = (seat + offset) % 4
        base = 5
        if other == state.bidder and (
            state.phase in (phases.DISCARD, phases.DRAW)
            or (state.phase == phases.TRUMP and not game.trump_named)
        ):
            base += game.kitty
        played = _played(state, other)
        num_thrown = None
        lacks = frozenset[int]()
        if state.drawn[other] >= 0:
            num_thrown = int(state.drawn[other]) + (game.kitty if other == state.bidder else 0)
            base = 5 - len(played)
            lacks = _fives_lacks(game, state, other)
        others[other] = worlds.FortyFivesSeat(base, num_thrown, lacks, played, least=game.min_keep)
    return worlds.FortyFivesKnowledge(_DECK - seen, others, frozenset(discarded) - {seat})


def _fives_world(game: Any, state: Any, seat: int) -> worlds.Holdings:
    others = [(seat + offset) % 4 for offset in (1, 2, 3)]
    return tuple((_cards(state.hands[o]), _cards(state.thrown[o])) for o in others)


def _change_fives(spec: GameSpec, game: Any, state: Any, seat: int, rng: random.Random) -> Any:
    knowledge = forty_fives_knowledge(game, state, seat)
    changed = _change_fives_future(spec, game, state, seat, rng)
    stock = set(knowledge.unseen)
    holdings = worlds.random_forty_fives_world(knowledge, rng)
    for other, (hand, thrown) in zip(knowledge.others, holdings, strict=True):
        changed.hands[other], changed.thrown[other] = _mask(hand), _mask(thrown)
        stock -= hand | thrown
    changed.stock = _mask(stock)
    if state.to_move != seat:
        changed.kept = np.uint64(0)  # who discards has come as far as it likes: here it begins
    return changed


def _change_fives_future(
    spec: GameSpec, game: Any, state: Any, seat: int, rng: random.Random
) -> Any:
    changed = _copy(spec, state)
    changed.seed = np.uint64(rng.getrandbits(64))
    return changed


def _fives_is_possible(game: Any, state: Any, seat: int, drawn: Any) -> bool:
    knowledge = forty_fives_knowledge(game, state, seat)
    holdings = _fives_world(game, drawn, seat)
    used = {card for hand, thrown in holdings for card in (*hand, *thrown)}
    return (
        worlds.forty_fives_world_is_possible(knowledge, holdings)
        and _cards(drawn.stock) == knowledge.unseen - used
        and drawn.hands[seat] == state.hands[seat]
        and drawn.thrown[seat] == state.thrown[seat]
        and (state.to_move != seat or drawn.kept == state.kept)
    )


FORTY_FIVES = HiddenPart(
    change=_change_fives,
    change_future=_change_fives_future,
    hand=lambda game, state, seat: (int(state.hands[seat]), int(state.thrown[seat])),
    world=_fives_world,
    all_worlds=lambda game, state, seat: worlds.all_forty_fives_worlds(
        forty_fives_knowledge(game, state, seat)
    ),
    is_possible=_fives_is_possible,
)


# --- poker ----------------------------------------------------------------------------------------


def _kuhn_worlds(game: Any, state: Any, seat: int) -> list[tuple[int, ...]]:
    return worlds.all_kuhn_worlds(int(state.cards[seat]), seat)


def _leduc_worlds(game: Any, state: Any, seat: int) -> list[tuple[int, ...]]:
    board = int(state.board) if state.shown else None
    return worlds.all_leduc_worlds(int(state.cards[seat]), board, seat)


def _kuhn_world(game: Any, state: Any, seat: int) -> tuple[int, ...]:
    return tuple(int(card) for card in state.cards)


def _leduc_world(game: Any, state: Any, seat: int) -> tuple[int, ...]:
    return (*_kuhn_world(game, state, seat), int(state.board))


def _write_poker(spec: GameSpec, state: Any, world: tuple[int, ...]) -> Any:
    changed = _copy(spec, state)
    changed.cards[0], changed.cards[1] = world[:2]
    if len(world) > 2:
        changed.board = world[2]
    return changed


def _change_kuhn(spec: GameSpec, game: Any, state: Any, seat: int, rng: random.Random) -> Any:
    return _write_poker(spec, state, rng.choice(_kuhn_worlds(game, state, seat)))


def _change_leduc(spec: GameSpec, game: Any, state: Any, seat: int, rng: random.Random) -> Any:
    return _write_poker(spec, state, rng.choice(_leduc_worlds(game, state, seat)))


def _keep_kuhn(spec: GameSpec, game: Any, state: Any, seat: int, rng: random.Random) -> Any:
    return _copy(spec, state)  # nothing more is dealt


def _change_board(spec: GameSpec, game: Any, state: Any, seat: int, rng: random.Random) -> Any:
    dealt = _kuhn_world(game, state, seat)
    possible = [w for w in _leduc_worlds(game, state, seat) if w[:2] == dealt]
    return _write_poker(spec, state, rng.choice(possible))


def _own_card(game: Any, state: Any, seat: int) -> int:
    return int(state.cards[seat])


KUHN = HiddenPart(
    change=_change_kuhn,
    change_future=_keep_kuhn,
    hand=_own_card,
    world=_kuhn_world,
    all_worlds=_kuhn_worlds,
    is_possible=lambda game, state, seat, drawn: (
        _kuhn_world(game, drawn, seat) in _kuhn_worlds(game, state, seat)
    ),
)
LEDUC = HiddenPart(
    change=_change_leduc,
    change_future=_change_board,
    hand=_own_card,
    world=_leduc_world,
    all_worlds=_leduc_worlds,
    is_possible=lambda game, state, seat, drawn: (
        _leduc_world(game, drawn, seat) in _leduc_worlds(game, state, seat)
    ),
)

HIDDEN: dict[str, HiddenPart] = {
    "cuarenta": CUARENTA,
    "durak": DURAK,
    "forty_fives": FORTY_FIVES,
    "kuhn": KUHN,
    "leduc": LEDUC,
}
CHANGES: dict[str, Change] = {name: part.change for name, part in HIDDEN.items()}
