"""Cuarenta's players of levels 2 to 4.

* each does on constructed positions what its text says
* the points given away are the exact expectation, by listing every hand that the next seat may hold
* rollouts agree with a plain rewriting of them; the guess is antisymmetric and grows with the lead
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.game import get_spec
from engine.games.cuarenta_levels import CARD_WORTH, CAREFUL, chance_of_any, expected_gift, guess
from engine.games.cuarenta_text import format_action
from engine.players import RulePlayer
from engine.rng import below, make_rng
from engine.rules import CHANCE, TERMINAL
from engine.search.flat import FlatPlayer

SPEC = get_spec("cuarenta")
TWO, FOUR = SPEC.make("report_b_2p"), SPEC.make("report_a_4p")
STYLES = ("biggest", "careful")


def choices(player: Any, game: Any, document: dict[str, Any], tries: int = 40) -> set[str]:
    """Return what a player does on a position document, over several keys."""
    state = SPEC.state_from_document(game, document)  # type: ignore[misc]
    views = np.zeros(1, SPEC.state_dtype)
    rules.view(game, state, 0, views.view(np.recarray)[0])
    found = set()
    for key in range(tries):
        out = np.zeros(1, np.int64)
        player.act(views, np.zeros(1, np.int64), np.array([key], np.uint64), out)
        found.add(format_action(game, views.view(np.recarray)[0], int(out[0])))
    return found


def position(hand: str, table: str, placed: int | None = None, score: int = 0) -> dict[str, Any]:
    return {
        "hand": hand.split(),
        "table": table.split(),
        "just_placed_index": placed,
        "score": score,
    }


@pytest.mark.parametrize(
    ("style", "where", "played"),
    [
        ("biggest", position("4 K", "4 5 6 K"), {"4"}),  # three cards, not one
        ("biggest", position("4 K", "4 5 K", 2), {"4"}),  # a caída counts one card
        ("biggest", position("Q J", "4 5"), {"Q", "J"}),  # nothing to take: either
        ("careful", position("4 K", "4 5 K", 2), {"K"}),  # two cards more are worth less
        ("careful", position("4 K", "4 5 K", 2, score=38), {"K"}),  # and it wins
        ("careful", position("Q Q Q J", "2 6"), {"Q"}),  # one queen is left to match it
        ("careful", position("3 J", "2"), {"J"}),  # on 2 and 3 a two and a five would clear
    ],
)
def test_what_is_taken(style: str, where: dict[str, Any], played: set[str]) -> None:
    found = choices(RulePlayer(SPEC, TWO, style), TWO, where)
    assert {word.split()[0] for word in found} == played


def legal(game: Any, state: Any) -> list[int]:
    actions = np.zeros(SPEC.max_actions, np.int64)
    return [int(code) for code in actions[: int(rules.legal_actions(game, state, actions))]]


def met_positions(game: Any, num_games: int) -> Iterator[Any]:
    """Yield the states before every choice of some random games."""
    rng = make_rng(5)
    state = SPEC.new_state()
    for seed in range(num_games):
        rules.deal(game, state, np.uint64(seed))
        while (mover := int(rules.current_seat(game, state))) != TERMINAL:
            if mover == CHANCE:
                rules.deal_next(game, state)
                continue
            codes = legal(game, state)
            if len(codes) > 1:
                yield state.copy()
            rules.apply(game, state, codes[below(rng, len(codes))])


def most_points(game: Any, state: Any, hand: tuple[int, ...]) -> int:
    """Return the points that the seat to move scores at the most with its next move."""
    seat = int(state.to_move)
    state.hands[seat] = np.uint64(sum(1 << card for card in hand))
    before, best = state.caidas + state.limpias, 0
    for code in legal(game, state):
        after = state.copy()
        rules.apply(game, after, code)
        scored = int((after.caidas + after.limpias - before)[seat & 1])
        best = max(best, 2 * scored)
    return best


@pytest.mark.parametrize("game", [TWO, FOUR, SPEC.make("report_a_literal", {"sum_cards": "2+"})])
def test_what_is_given_away_is_the_exact_expectation(game: Any) -> None:
    num_compared = num_risky = 0
    for state in itertools.islice(met_positions(game, 100), 0, None, 7):
        own = state.hands[state.to_move]
        state.scores[:] = 10  # nobody near the end
        after = state.copy()
        codes = legal(game, state)
        rules.apply(game, after, codes[int(state.plies_in_hand) % len(codes)])
        size = 5 - int(after.played[after.to_move]).bit_count() if after.to_move >= 0 else 5
        if size > 2 or after.plies_in_hand == 40:
            continue
        if num_compared == 12:
            break
        out = int(own) | int(after.table) | int(after.piles[0]) | int(after.piles[1])
        unseen = [card for card in range(40) if not out >> card & 1]
        hands = list(itertools.combinations(unseen, size))
        exact = sum(most_points(game, after.copy(), hand) for hand in hands) / len(hands)
        assert float(expected_gift(game, after.copy(), own)) == pytest.approx(exact)
        num_compared += 1
        num_risky += exact > 0
    assert num_compared == 12
    assert num_risky > 3


def test_a_move_is_worth_its_points_and_cards_less_what_it_gives_away() -> None:
    rng = make_rng(2)
    view = SPEC.new_state()
    for state in itertools.islice(met_positions(TWO, 3), 0, None, 5):
        seat = int(state.to_move)
        rules.view(TWO, state, seat, view)
        worth = {}
        for code in legal(TWO, state):
            after = view.copy()
            rules.apply(TWO, after, code)
            if after.to_move == TERMINAL:
                worth[code] = 1000.0
                continue
            points = int(after.scores[seat & 1]) - int(view.scores[seat & 1])
            cards = int(after.piles[seat & 1]).bit_count() - int(view.piles[seat & 1]).bit_count()
            gift = float(expected_gift(TWO, after, view.hands[seat]))
            worth[code] = points + CARD_WORTH * cards - gift
        chosen = int(rules.style_action(TWO, view, seat, CAREFUL, rng))
        assert worth[chosen] == pytest.approx(max(worth.values()))


@pytest.mark.parametrize(
    ("wanted", "total", "size", "chance"),
    [(0, 10, 5, 0.0), (10, 10, 1, 1.0), (1, 10, 5, 0.5), (2, 10, 5, 7 / 9), (3, 4, 2, 1.0)],
)
def test_chance_of_any(wanted: int, total: int, size: int, chance: float) -> None:
    assert float(chance_of_any(wanted, total, size)) == pytest.approx(chance)


def test_the_guess_is_antisymmetric_and_grows_with_points_and_cards() -> None:
    for state in itertools.islice(met_positions(FOUR, 2), 0, None, 9):
        value = float(guess(FOUR, state, 0))
        assert -1 < value < 1
        assert float(guess(FOUR, state, 1)) == -value
        more = state.copy()
        more.scores[0] += 2
        assert float(guess(FOUR, more, 0)) > value
        more = state.copy()
        more.piles[0] |= more.stock
        assert float(guess(FOUR, more, 0)) >= value


def rollout_values(game: Any, view: Any, seat: int, rng: Any, worlds: int) -> list[float]:
    """Return the sums over all worlds that the rollout player compares, written plainly."""
    codes = legal(game, view)
    values = [0.0] * len(codes)
    world, seen = SPEC.new_states(2)
    for _ in range(worlds):
        rules.determinize(game, view, seat, rng, world)
        for k, code in enumerate(codes):
            state, line_rng = world.copy(), rng.copy()
            rules.apply(game, state, code)
            while (mover := int(rules.current_seat(game, state))) >= 0:
                rules.view(game, state, mover, seen)
                rules.apply(game, state, rules.rule_action(game, seen, mover, line_rng))
            outcome = np.zeros(2)
            if mover == TERMINAL:
                rules.returns(game, state, outcome)
                values[k] += outcome[seat & 1]
            else:
                values[k] += float(rules.static_value(game, state, seat & 1))
    return values


def test_rollouts_agree_with_a_plain_rewriting() -> None:
    player = FlatPlayer(SPEC, TWO, 3)
    views = np.zeros(1, SPEC.state_dtype)
    view = views.view(np.recarray)[0]
    chosen = set()
    for key, state in enumerate(itertools.islice(met_positions(TWO, 2), 0, None, 11)):
        seat = int(state.to_move)
        rules.view(TWO, state, seat, view)
        keys, out = np.array([key], np.uint64), np.zeros(1, np.int64)
        player.act(views, np.array([seat]), keys, out)
        values = rollout_values(TWO, view, seat, np.array([key], np.uint64), 3)
        assert int(out[0]) == legal(TWO, view)[int(np.argmax(values))]
        assert int(keys[0]) == key
        chosen.add(int(np.argmax(values)))
    assert len(chosen) > 1


def test_fewer_than_one_world_is_refused() -> None:
    with pytest.raises(ValueError, match="worlds = 0: at least 1 is allowed"):
        FlatPlayer(SPEC, TWO, 0)


@pytest.mark.parametrize("style", STYLES)
def test_a_style_that_a_game_has_not_is_refused(style: str) -> None:
    assert SPEC.styles == STYLES
    kuhn = get_spec("kuhn")
    with pytest.raises(ValueError, match=f"rule-based player '{style}' of kuhn: allowed are none"):
        RulePlayer(kuhn, kuhn.make(), style)
