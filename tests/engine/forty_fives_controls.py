"""Many games of Forty-fives between rule players, in one compiled loop; positions for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import rules
from engine.game import get_spec
from engine.games.forty_fives_rules import begin_play
from engine.games.forty_fives_state import LEVEL_NAMES, NAME_TRUMP, SUIT_NAMES
from engine.games.forty_fives_text import format_action, parse_card
from engine.jit import kernel
from engine.rng import make_rng
from engine.rules import CHANCE, TERMINAL
from engine.rules import view as view_of

SPEC = get_spec("forty_fives")


@kernel
def _play(game: Any, states: Any, rng: Any, num_games: Any, totals: Any) -> Any:
    """Add the statistics of both sides to ``totals``; return the hands of all games."""
    state, seen = states[0], states[1]
    figures = np.zeros((2, len(totals)))
    hands = 0
    for index in range(num_games):
        rules.deal(game, state, np.uint64(index))
        seat = rules.current_seat(game, state)
        while seat != TERMINAL:
            if seat == CHANCE:
                rules.deal_next(game, state)
            else:
                view_of(game, state, seat, seen)
                rules.apply(game, state, rules.rule_action(game, seen, seat, rng))
            seat = rules.current_seat(game, state)
        hands += np.int64(state.hand_index) + 1
        rules.statistics(game, state, figures)
        for k in range(len(totals)):
            totals[k] += figures[0, k] + figures[1, k]
    return hands


def play_rule_games(game: Any, num_games: int) -> tuple[float, NDArray[np.float64]]:
    """Return hands, and ``SPEC.statistics`` of both sides together, per game."""
    totals = np.zeros(len(SPEC.statistics))
    hands = _play(game, SPEC.new_states(2), make_rng(1), num_games, totals)
    return hands / num_games, totals / num_games


def mask_of(cards: Iterable[str]) -> np.uint64:
    """Return the mask of named cards."""
    return np.uint64(sum(1 << parse_card(card) for card in cards))


def at_play(game: Any, trump: str, hands: list[str], **fields: Any) -> Any:
    """Return a state in which the hands (texts, seat 0 first) are to be played, by seat 0 first.

    Seat 3 has bid 20 and leads its left neighbour in; all drew five cards, unless ``fields`` of the
    record say otherwise.
    """
    state = SPEC.new_state()
    state.winner = state.best_trump = state.best_side = -1
    state.played[:] = -1
    for seat, text in enumerate(hands):
        state.hands[seat] = mask_of(text.split())
    state.trump = SUIT_NAMES.index(trump)
    state.high, state.bidder, state.dealer, state.turns = LEVEL_NAMES.index("20"), 3, 3, 4
    state.bids[3] = state.high
    for seat in range(3):
        state.passed[seat] = 1
    rest = [1 << card for card in range(52) if not sum(map(int, state.hands)) >> card & 1]
    for seat in range(4):
        state.drawn[seat] = 5
        extra = game.kitty if seat == 3 else 0
        state.thrown[seat] = np.uint64(sum(rest.pop() for _ in range(5 + extra)))
    state.stock = np.uint64(sum(rest))
    for name, value in fields.items():
        getattr(state, name)  # a name that is none is an error
        setattr(state, name, value)
    begin_play(game, state)
    return state


def legal_words(game: Any, state: Any) -> list[str]:
    """Return the legal actions in words."""
    actions = np.zeros(SPEC.max_actions, np.int64)
    count = rules.legal_actions(game, state, actions)
    return [format_action(game, state, int(code)) for code in actions[:count]]


def do(game: Any, state: Any, *words: str) -> None:
    """Play actions in words: ``keep`` and ``throw`` without the card will do."""
    actions = np.zeros(SPEC.max_actions, np.int64)
    for word in words:
        count = rules.legal_actions(game, state, actions)
        legal = {format_action(game, state, int(code)): int(code) for code in actions[:count]}
        legal |= {text.split()[0]: code for text, code in legal.items() if " " in text}
        assert word in legal, f"{word} is not among {', '.join(legal)}"
        rules.apply(game, state, legal[word])


def pass_chance(game: Any, state: Any) -> None:
    """Deal whatever is due."""
    while rules.current_seat(game, state) == CHANCE:
        rules.deal_next(game, state)


def to_discards(game: Any, seed: int = 1) -> Any:
    """Return a state in which the first seat discards: it has bid 20 and named spades."""
    state = SPEC.new_state()
    rules.deal(game, state, np.uint64(seed))
    do(game, state, "20", "pass", "pass", "pass")
    pass_chance(game, state)
    rules.apply(game, state, NAME_TRUMP)
    pass_chance(game, state)
    return state
