"""Leduc poker of the engine against the obvious twin, position by position, and its exact values.

* to move, chance, over or not, legal actions, chips, outcome agree in every position of every deal
* two positions share a view exactly if the seat cannot tell them apart
* the seeded shuffler deals every deal as often as there are ways to draw it
* uniform play has NashConv 4.747222 and the value that the twin finds; CFR becomes unexploitable
* a search goes on through the card turned up, with the card of its world
* the rule player beats a random one
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from engine import exact, rules
from engine.game import get_spec
from engine.games.leduc import O_BOARD
from engine.games.leduc_state import NUM_RANKS
from engine.play import GameJob, Table
from engine.players import Player, RandomPlayer, RulePlayer
from engine.search.cfr import CfrSolver
from engine.search.ismcts import Search
from engine.search.rollout import RolloutEvaluator
from tests.naive import leduc as naive

SPEC = get_spec("leduc")
GAME = SPEC.make()
CODES = "fcr"
HISTORIES = sorted(naive.histories())
DEALS = naive.deals()
TREE = exact.enumerate_game(GAME)


def letters(state: Any) -> str:
    return "".join(naive.CARDS[card] for card in (*state.cards, state.board))


def start_of(cards: str) -> Any:
    assert SPEC.initial_states is not None
    return next(state for _, state in SPEC.initial_states(GAME) if letters(state) == cards)


def play(state: Any, history: str) -> Any:
    for move in history:
        if move == "/":
            assert rules.current_seat(GAME, state) == rules.CHANCE
            rules.deal_next(GAME, state)
        else:
            rules.apply(GAME, state, CODES.index(move))
    return state


def view_of(state: Any, seat: int) -> Any:
    out = SPEC.new_state()
    rules.view(GAME, state, seat, out)
    return out


@pytest.mark.parametrize("cards", sorted(DEALS))
def test_every_position_agrees_with_the_naive_game(cards: str) -> None:
    actions = np.zeros(SPEC.max_actions, np.int64)
    outcome, terms = np.zeros(2), np.zeros((2, 1))
    for history in HISTORIES:
        state = play(start_of(cards), history)
        assert state.paid.tolist() == naive.paid(history)
        if naive.is_over(history):
            assert rules.current_seat(GAME, state) == rules.TERMINAL
            rules.returns(GAME, state, outcome)
            payoff = naive.payoff(cards, history)
            assert outcome.tolist() == [payoff, -payoff]
            rules.reward_terms(GAME, state, terms)
            assert terms[:, 0].tolist() == outcome.tolist()
        elif naive.awaits_card(history):
            assert rules.current_seat(GAME, state) == rules.CHANCE
            assert not rules.receives_cards(GAME, state, 0)
        else:
            assert rules.current_seat(GAME, state) == naive.to_move(history)
            count = rules.legal_actions(GAME, state, actions)
            assert "".join(CODES[code] for code in actions[:count]) == naive.legal(history)


@pytest.mark.parametrize("seat", [0, 1])
def test_views_are_equal_exactly_when_the_seat_cannot_tell_positions_apart(seat: int) -> None:
    by_view: dict[bytes, set[tuple[str, str, str]]] = {}
    for cards in DEALS:
        for history in HISTORIES:
            seen = view_of(play(start_of(cards), history), seat).tobytes()
            by_view.setdefault(seen, set()).add(naive.seen_by(cards, history, seat))
    assert all(len(known) == 1 for known in by_view.values())
    known = {naive.seen_by(cards, history, seat) for cards in DEALS for history in HISTORIES}
    assert len(by_view) == len(known)


def test_seeded_deals_come_as_often_as_there_are_ways_to_draw_them() -> None:
    state = SPEC.new_state()
    counts: Counter[str] = Counter()
    num_deals = 12_000
    for seed in range(num_deals):
        rules.deal(GAME, state, np.uint64(seed))
        counts[letters(state)] += 1
    assert set(counts) == set(DEALS)
    for cards, ways in DEALS.items():
        share = ways / 120
        assert abs(counts[cards] - num_deals * share) <= 4 * (num_deals * share) ** 0.5


def test_uniform_play_has_the_known_nash_conv_and_the_naive_value() -> None:
    uniform = exact.uniform_policy(TREE)
    assert exact.nash_conv(TREE, uniform) == pytest.approx(4.747222, abs=1e-6)
    value = sum(ways * naive.uniform_value(cards, "") for cards, ways in DEALS.items()) / 120
    assert exact.expected_value(TREE, uniform) == pytest.approx(value, abs=1e-12)


def test_cfr_becomes_hardly_exploitable() -> None:
    solver = CfrSolver(TREE)
    solver.run(200)
    assert solver.exploitability() < 0.01
    assert solver.value() == pytest.approx(-0.0856, abs=0.005)


def test_a_search_goes_on_through_the_card_that_is_turned_up() -> None:
    # A call ends the first round. Every card that may be turned up leads to nodes of its own, in
    # which the seat knows other things; every visit checks that.
    search = Search(
        SPEC, GAME, SPEC.encoders[0], num_trees=1, max_simulations=400, check_views=True
    )
    state = play(start_of("KJK"), "cr")
    search.begin(
        np.zeros(1, np.int64),
        np.array([view_of(state, 0)], SPEC.state_dtype),
        np.zeros(1, np.int64),
        np.zeros(1, np.int32),
        np.full(1, 400, np.int64),
        np.ones(1, np.uint64),
        np.zeros(1),
    )
    search.run(RolloutEvaluator(SPEC, GAME))
    actions, visits = np.zeros((2, 1, 3), np.int64)
    values = np.zeros(1)
    search.results(np.zeros(1, np.int64), actions, visits, np.zeros(1, np.int64), values)
    assert visits.sum() == 400
    assert visits[0, 0] < 40  # a king does not fold
    arrays = search.snapshot()
    num_nodes = int(arrays["trees"]["num_nodes"][0])
    boards = arrays["node_features"][0, :num_nodes, O_BOARD : O_BOARD + NUM_RANKS]
    assert {tuple(row) for row in boards.tolist()} == {(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)}
    assert values[0] > 1.0


def test_the_rule_player_beats_a_random_one() -> None:
    players: list[Player] = [RulePlayer(SPEC, GAME), RandomPlayer(SPEC, GAME)]
    jobs = [GameJob(i // 2, 0, i // 2, (i % 2, 1 - i % 2)) for i in range(800)]
    results = Table(SPEC, GAME, players, jobs).play_all()
    assert len(results) == 800
    gains = [result.returns[result.job.seat_players.index(0)] for result in results]
    assert np.mean(gains) > 0.5
