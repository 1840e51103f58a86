"""For each game: another state that one seat cannot tell from the given one.

Written from the rules of what is public, without the game's own ``determinize``: the tests of
hidden information would otherwise trust the code that they test. A registered game without an
entry here fails the suite.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from engine.game import GameSpec

Change = Callable[[GameSpec, Any, Any, int, random.Random], Any]
"""``(spec, game, state, seat, rng)`` -> a new state, all that ``seat`` cannot see redrawn."""


def _copy(spec: GameSpec, state: Any) -> Any:
    copy = spec.new_states(1)
    copy[0] = state
    return copy[0]


def _cards(mask: int) -> list[int]:
    return [card for card in range(64) if int(mask) >> card & 1]


def _mask(cards: list[int]) -> np.uint64:
    return np.uint64(sum(1 << card for card in cards))


def change_cuarenta(spec: GameSpec, game: Any, state: Any, seat: int, rng: random.Random) -> Any:
    """Deal the cards of the other hands and the stock anew, until all announcements fit."""
    others = [other for other in range(game.players) if other != seat]
    pool = [card for other in others for card in _cards(state.hands[other])]
    pool += _cards(state.stock)
    while True:
        changed = _copy(spec, state)
        rng.shuffle(pool)
        rest = list(pool)
        for other in others:
            size = len(_cards(state.hands[other]))
            changed.hands[other] = _mask(rest[:size])
            del rest[:size]
        changed.stock = _mask(rest)
        changed.seed = np.uint64(rng.getrandbits(64))
        if all(_cuarenta_fits(game, state, changed, other) for other in others):
            return changed


def _cuarenta_fits(game: Any, state: Any, changed: Any, seat: int) -> bool:
    """What a seat was dealt has as many threes and fours as before, where they are announced."""

    def dealt(record: Any) -> list[int]:
        cards = _cards(record.hands[seat]) + _cards(record.played[seat])
        return list(Counter(card // 4 for card in cards).values())

    three = game.ronda == 0 or int(state.ronda[seat]) == 0
    three = three or (3 in dealt(changed)) == (3 in dealt(state))
    return three and (not game.four_of_a_kind or 4 not in dealt(changed))


def change_kuhn(spec: GameSpec, game: Any, state: Any, seat: int, rng: random.Random) -> Any:
    """Give the other seat one of the two cards that this seat does not hold."""
    changed = _copy(spec, state)
    changed.cards[1 - seat] = rng.choice([card for card in range(3) if card != state.cards[seat]])
    return changed


CHANGES: dict[str, Change] = {"cuarenta": change_cuarenta, "kuhn": change_kuhn}
