"""Exact values of small games, against every pure strategy of the naive Kuhn game.

* sizes of the tree; the same set of histories, sets and values as the naive game
* NashConv of uniform play is 11/12; the equilibrium family gives -1/18 and zero exploitability
* best responses, action values and expected values agree with brute force for random policies
* policies that are not policies, games that do not qualify, and views that forget are refused
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from engine import exact, rules
from engine.game import get_spec
from tests.naive import kuhn as naive

SPEC = get_spec("kuhn")
GAME = SPEC.make()
TREE = exact.enumerate_game(GAME)


def known(infoset: exact.InformationSet) -> tuple[str, str]:
    """Return (own card, history) of an information set in the naive game's letters."""
    view = infoset.view
    history = "".join("pb"[move] for move in view.history[: view.num_plies])
    return naive.CARDS[view.cards[infoset.seat]], history


def policy_of(strategy: naive.Strategy) -> dict[exact.InfoKey, Any]:
    rows = {}
    for infoset in TREE.infosets:
        bet = strategy(*known(infoset))
        rows[infoset.key] = [1 - bet, bet]
    return rows


def random_strategy(seed: int) -> naive.Strategy:
    rng = np.random.default_rng(seed)
    # Zeros and ones too: sets that are never reached are where averages go wrong.
    bets = {known(infoset): float(rng.choice([0, 1, rng.random()])) for infoset in TREE.infosets}
    return lambda card, history: bets[card, history]


def test_tree_has_the_histories_and_information_sets_of_kuhn() -> None:
    assert len(TREE.parent) == len(list(naive.positions()))
    assert len(TREE.infosets) == 12
    assert {known(infoset) for infoset in TREE.infosets} == {
        naive.seen_by(cards, history, naive.to_move(history))
        for cards, history in naive.positions()
        if not naive.is_over(history)
    }
    assert all(infoset.actions == (0, 1) for infoset in TREE.infosets)


def test_uniform_play_has_nash_conv_eleven_twelfths_and_value_an_eighth() -> None:
    uniform = exact.uniform_policy(TREE)
    assert exact.nash_conv(TREE, uniform) == pytest.approx(11 / 12, abs=1e-12)
    assert exact.exploitability(TREE, uniform) == pytest.approx(11 / 24, abs=1e-12)
    assert exact.expected_value(TREE, uniform) == pytest.approx(1 / 8, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.25, 1 / 3])
def test_equilibrium_family_is_worth_minus_an_eighteenth_and_not_exploitable(alpha: float) -> None:
    policy = policy_of(naive.equilibrium(alpha))
    assert exact.expected_value(TREE, policy) == pytest.approx(-1 / 18, abs=1e-12)
    assert exact.exploitability(TREE, policy) == pytest.approx(0.0, abs=1e-12)


def test_equilibrium_beyond_its_range_is_exploitable() -> None:
    def bluffs_too_often(card: str, history: str) -> float:
        return 0.6 if (card, history) == ("J", "") else naive.equilibrium(1 / 3)(card, history)

    assert exact.exploitability(TREE, policy_of(bluffs_too_often)) > 0.01


@pytest.mark.parametrize("seed", range(6))
def test_values_agree_with_all_pure_strategies_of_the_naive_game(seed: int) -> None:
    strategy = random_strategy(seed)
    policy = policy_of(strategy)
    assert exact.expected_value(TREE, policy) == pytest.approx(
        naive.game_value(strategy, strategy), abs=1e-12
    )
    for seat in range(2):
        value, response = exact.best_response(TREE, policy, seat)
        assert value == pytest.approx(naive.best_response_value(seat, strategy), abs=1e-12)
        assert {key[0] for key in response} == {seat}
        played = exact.expected_value(TREE, policy | response)
        assert (played if seat == 0 else -played) == pytest.approx(value, abs=1e-12)
    assert exact.exploitability(TREE, policy) == pytest.approx(
        naive.exploitability(strategy), abs=1e-12
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("seat", [0, 1])
def test_action_values_agree_with_naive_averages_over_the_hidden_card(seed: int, seat: int) -> None:
    rng = np.random.default_rng(100 + seed)
    bets = {known(infoset): float(rng.uniform(0.05, 0.95)) for infoset in TREE.infosets}

    def strategy(card: str, history: str) -> float:
        return bets[card, history]

    rows = exact.action_values(TREE, policy_of(strategy), seat, continuation="policy")
    assert len(rows) == 6
    for key, row in rows.items():
        card, history = known(TREE.infosets[TREE.index[key]])
        weights, totals = 0.0, np.zeros(2)
        for cards in naive.deals():
            if cards[seat] != card:
                continue
            weight = 1.0
            for ply, move in enumerate(history):
                if ply % 2 != seat:
                    bet = strategy(cards[1 - seat], history[:ply])
                    weight *= bet if move == "b" else 1 - bet
            weights += weight
            sign = 1 if seat == 0 else -1
            for i, move in enumerate("pb"):
                totals[i] += weight * sign * naive.value(cards, history + move, strategy, strategy)
        assert row == pytest.approx(totals / weights, abs=1e-12)


def test_action_values_of_the_best_response_against_uniform_play() -> None:
    rows = exact.action_values(TREE, exact.uniform_policy(TREE), 0)
    named = {known(TREE.infosets[TREE.index[key]]): row.tolist() for key, row in rows.items()}
    # With the king: bet 1 + P(call) = 1.5; pass 1 on a pass, 2 after a bet that is called: 1.5.
    assert named["K", ""] == pytest.approx([1.5, 1.5])
    assert named["K", "pb"] == pytest.approx([-1.0, 2.0])
    assert named["J", "pb"] == pytest.approx([-1.0, -2.0])
    assert named["Q", "pb"] == pytest.approx([-1.0, 0.0])


def test_action_values_are_nan_where_the_other_seat_never_leads() -> None:
    never_bets = policy_of(lambda card, history: 0.0)
    rows = exact.action_values(TREE, never_bets, 0)
    for key, row in rows.items():
        _, history = known(TREE.infosets[TREE.index[key]])
        assert np.all(np.isnan(row)) == (history == "pb")


def test_info_key_is_the_same_for_a_state_and_its_view() -> None:
    assert SPEC.initial_states is not None
    for _, state in SPEC.initial_states(GAME):
        key = exact.info_key(GAME, state, 0)
        assert key in TREE.index
        assert exact.info_key(GAME, TREE.infosets[TREE.index[key]].view, 0) == key


def test_bad_policies_are_refused_by_name() -> None:
    good: dict[exact.InfoKey, Any] = dict(exact.uniform_policy(TREE))
    key = TREE.infosets[0].key
    for row in ([0.5, 0.6], [1.0], [1.5, -0.5], [float("nan"), 1.0]):
        with pytest.raises(ValueError, match="2 probabilities that sum to 1"):
            exact.nash_conv(TREE, good | {key: row})
    del good[key]
    with pytest.raises(ValueError, match="lacks information set seat 0: cards J"):
        exact.nash_conv(TREE, good)
    with pytest.raises(ValueError, match="continuation 'worst'"):
        exact.action_values(TREE, exact.uniform_policy(TREE), 0, continuation="worst")
    with pytest.raises(ValueError, match="seat 2"):
        exact.best_response(TREE, exact.uniform_policy(TREE), 2)


def test_games_that_are_too_large_or_not_enumerable_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="more than 20 histories"):
        exact.enumerate_game(GAME, max_histories=20)
    hidden = dataclasses.replace(SPEC, initial_states=None)
    monkeypatch.setattr(exact, "spec_of", lambda game: hidden)
    with pytest.raises(ValueError, match="no initial_states"):
        exact.enumerate_game(GAME)


def test_a_view_that_forgets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(game: Any, state: Any, seat: Any, out: Any) -> None:
        out.cards[seat] = state.cards[seat]
        out.num_plies = 2 if state.num_plies >= 2 else state.num_plies
        out.history[1] = 1 if out.num_plies == 2 else 0

    monkeypatch.setattr(rules, "view", forgetful)
    tree = exact.enumerate_game(GAME)  # seat 1 forgets, but only what it never needs again
    assert len(tree.infosets) < 12

    def more_forgetful(game: Any, state: Any, seat: Any, out: Any) -> None:
        out.cards[seat] = state.cards[seat]

    monkeypatch.setattr(rules, "view", more_forgetful)
    with pytest.raises(ValueError, match="forgets"):
        exact.enumerate_game(GAME)
