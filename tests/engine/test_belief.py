"""Worlds weighted by what the others have played.

Behaviours: against opponents whose policy is known the search finds the best response to the exact
posterior (Kuhn poker, enumerated here); weights are Bayes' rule with a floor, recomputed naively in
Cuarenta; a position's result does not depend on its neighbours; without a past all worlds weigh the
same; compiled and interpreted code agree.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.evaluation import EvalBatch
from engine.game import get_spec
from engine.jit import jit_enabled, kernel
from engine.past import Past, PastPlies
from engine.players import SearchPlayer
from engine.rng import make_rng, next_u64
from engine.search.belief import BeliefOptions, belief_for
from engine.search.ismcts import Search, search_options
from engine.search.rollout import HashingEvaluator
from engine.search.select import next_world
from tests.engine import relay_game
from tests.engine.searching import (
    Positions,
    begin,
    kuhn_positions,
    one_row_answers,
    plain,
    read,
)
from tests.engine.test_search_kuhn import response
from tests.interpreted import run_interpreted

FLOOR = 0.15
BETS = (0.05, 0.3, 0.9)
"""How often a seat of the known policy bets with J, Q, K."""


class CardPolicy:
    """Kuhn: bets by its card; knows nothing of values."""

    def evaluate(self, batch: EvalBatch, num_rows: int, num_candidates: int) -> None:
        bets = batch.observations[:num_rows, :3] @ np.array(BETS, np.float32)
        rows = batch.candidate_row[:num_candidates]
        chosen = batch.candidates[:num_candidates].argmax(axis=1)
        batch.logits[:num_candidates] = np.log(np.where(chosen == 1, bets[rows], 1 - bets[rows]))
        batch.values[:num_rows] = 0.0


def kuhn_past(positions: Positions) -> Past:
    """Return the plies before each information set as its seat saw them."""
    count = len(positions)
    past = Past(
        plain(positions.spec.new_states(2 * count)).reshape(count, 2),
        np.zeros((count, 2), np.int64),
        np.zeros(count, np.int64),
    )
    for row, view in enumerate(positions.views):
        past.counts[row] = view.num_plies
        for p in range(view.num_plies):
            past.views[row, p] = view
            past.views[row, p]["history"][p:] = 0
            past.views[row, p]["num_plies"] = p
            past.actions[row, p] = view.history[p]
    return past


def likelihood(view: Any, seat: int, card: int) -> float:
    """Return how likely the other seat's plays were with ``card``, floor included."""
    found = 1.0
    for p in range(view.num_plies):
        if p % 2 != seat:
            found *= max(FLOOR, BETS[card] if view.history[p] == 1 else 1.0 - BETS[card])
    return found


def best_value(positions: Positions, row: int, posterior: dict[int, float]) -> float:
    """Return the value of the best action of a seat that decides once more and no oftener."""
    view, seat = positions.views[row], int(positions.seats[row])
    values = []
    for action in range(2):
        value = 0.0
        for card, share in posterior.items():
            world = view.copy()
            world.cards[1 - seat] = card
            rules.apply(positions.game, world, action)
            value += share * response(positions.game, [world], seat, BETS[card])
        values.append(value)
    return max(values)


def test_search_finds_the_best_response_to_the_exact_posterior() -> None:
    positions = kuhn_positions()
    simulations, worlds = 20_000, 400
    search = Search(
        positions.spec,
        positions.game,
        positions.spec.encoders[0],
        search_options(opponents="policy"),
        num_trees=12,
        max_simulations=simulations,
        descents=32,
        belief=BeliefOptions(worlds=worlds, floor=FLOOR),
    )
    begin(search, positions, simulations)
    search.weigh_worlds(np.arange(12), kuhn_past(positions), CardPolicy())
    search.run(CardPolicy())
    found = read(search, np.arange(12))
    for row in range(12):
        view, seat = positions.views[row], int(positions.seats[row])
        cards = search.forest.pooled[row]["cards"][:, 1 - seat]
        shares = np.diff(search.forest.shares[row], prepend=0.0)
        exact = np.array([likelihood(view, seat, card) for card in cards])
        np.testing.assert_allclose(shares, exact / exact.sum(), rtol=1e-6)
        posterior = {card: float(shares[cards == card].sum()) for card in set(cards.tolist())}
        # Near the truth as far as 400 draws are: five standard errors.
        draws = {card: np.mean(cards == card) for card in posterior}
        assert all(abs(share - 0.5) < 5 * 0.5 / math.sqrt(worlds) for share in draws.values())
        if row >= 3:  # those of the first three decide a second time
            chosen = found.visits[row].argmax()
            value = best_value(positions, row, posterior)
            assert found.action_values[row, chosen] == pytest.approx(value, abs=0.02)


def played(name: str, count: int, seed: int) -> tuple[Positions, Past]:
    """Return positions with a choice in random games, and what was played before them."""
    spec = get_spec(name)
    game = spec.make()
    views, seats = spec.new_states(count), np.zeros(count, np.int64)
    states, legal = spec.new_states(count), np.zeros(spec.max_actions, np.int64)
    memory = PastPlies(spec.state_dtype, count, spec.recalled_plies)
    rng = make_rng(seed)
    for i in range(count):
        deal(game, states[i], rng)
        memory.start(i)
        length = int(next_u64(rng)) % spec.max_plies % 60
        while True:
            seat = int(rules.current_seat(game, states[i]))
            choices = int(rules.legal_actions(game, states[i], legal)) if seat >= 0 else 0
            if choices > 1 and length <= 0:
                break
            length -= 1
            if seat == rules.CHANCE:
                rules.deal_next(game, states[i])
            elif seat == rules.TERMINAL:
                deal(game, states[i], rng)
                memory.start(i)
            else:
                action = legal[int(next_u64(rng)) % choices]
                memory.add(plain(states), np.array([i]), np.array([action]))
                rules.apply(game, states[i], action)
        seats[i] = seat
        rules.view(game, states[i], seat, views[i])
    past = memory.seen(game, np.arange(count), seats)
    return Positions(spec, game, plain(views), seats), past


def deal(game: Any, state: Any, rng: Any) -> None:
    rules.deal(game, state, np.uint64(next_u64(rng)))


def test_weights_are_the_products_of_the_policys_probabilities() -> None:
    positions, past = played("cuarenta", 10, 3)
    options = BeliefOptions(worlds=9, floor=0.1)
    evaluator = HashingEvaluator()
    search = weighed(positions, past, options, evaluator)
    spec, game = positions.spec, positions.game
    answers = one_row_answers(positions, evaluator)
    out, legal = spec.new_state(), np.zeros(spec.max_actions, np.int64)
    unequal = 0
    for row in range(len(positions)):
        seat, logs = int(positions.seats[row]), np.zeros(options.worlds)
        for k in range(options.worlds):
            world = search.forest.pooled[row, k].view(np.recarray)
            for p in range(past.counts[row]):
                before = past.views[row, p].view(np.recarray)
                mover = int(rules.current_seat(game, before))
                if mover == seat or rules.view_then(game, before, world, out) < 0:
                    continue
                count = int(rules.legal_actions(game, out, legal))
                logits, _ = answers(out, mover, legal[:count].tolist())
                policy = np.exp(logits) / np.exp(logits).sum()
                index = legal[:count].tolist().index(past.actions[row, p])
                logs[k] += math.log(max(options.floor, policy[index]))
        weights = np.exp(logs - logs.max())
        shares = np.diff(search.forest.shares[row], prepend=0.0)
        np.testing.assert_allclose(shares, weights / weights.sum(), atol=1e-6)
        unequal += np.ptp(shares) > 0.01
    assert unequal >= 5


def weighed(
    positions: Positions, past: Past, options: BeliefOptions, evaluator: HashingEvaluator
) -> Search:
    """Return a search of all positions whose worlds have their weights."""
    search = Search(
        positions.spec,
        positions.game,
        positions.spec.encoders[0],
        num_trees=len(positions),
        max_simulations=24,
        belief=options,
    )
    begin(search, positions, 24)
    search.weigh_worlds(np.arange(len(positions)), past, evaluator)
    return search


def test_without_a_past_all_worlds_weigh_the_same() -> None:
    positions, past = played("cuarenta", 4, 5)
    nothing = past._replace(counts=np.zeros(4, np.int64))
    search = weighed(positions, nothing, BeliefOptions(worlds=8), HashingEvaluator())
    np.testing.assert_allclose(search.forest.shares, np.tile(np.arange(1, 9) / 8, (4, 1)))


@kernel
def _take_worlds(forest: Any, count: Any, taken: Any) -> None:
    for started in range(count):
        forest.trees[0].started = started
        taken[next_world(forest, 0)] += 1.0


def test_simulations_take_worlds_by_their_shares() -> None:
    shares = np.cumsum([0.05, 0.6, 0.0, 0.35])
    positions, past = played("cuarenta", 1, 5)
    search = weighed(positions, past, BeliefOptions(worlds=4), HashingEvaluator())
    search.forest.shares[0] = shares
    taken = np.zeros(4)
    _take_worlds(search.forest, 400, taken)
    # The golden ratio's walk is never off by more than a few, whatever the number of steps.
    np.testing.assert_allclose(taken, [20, 240, 0, 140], atol=4)


@pytest.mark.parametrize("name", ["cuarenta", "leduc"])
def test_what_is_played_depends_on_the_own_position_and_past_alone(name: str) -> None:
    positions, past = played(name, 9, 8)
    everything = np.arange(9)
    together = actions(positions, past, everything, batch=16)
    for rows in (np.array([8, 3, 0]), np.array([5]), np.array([1, 2, 6, 7])):
        np.testing.assert_array_equal(actions(positions, past, rows, batch=2), together[rows])
    forgetful = past._replace(counts=np.zeros(9, np.int64))
    assert name != "cuarenta" or (actions(positions, forgetful, everything, 16) != together).any()


def actions(positions: Positions, past: Past, rows: Any, batch: int) -> Any:
    player = SearchPlayer(
        positions.spec,
        positions.game,
        positions.spec.encoders[0],
        HashingEvaluator(),
        simulations=24,
        batch=batch,
        belief=BeliefOptions(worlds=12),
    )
    assert player.num_recalled == positions.spec.recalled_plies
    out = np.full(len(rows), -1)
    seen = Past(*(array[rows] for array in past))
    keys = rows.astype(np.uint64)
    player.act_on_past(positions.views[rows], positions.seats[rows], keys, seen, out)
    return out


def test_a_new_search_in_a_slot_forgets_the_weights_of_the_last() -> None:
    positions, past = played("cuarenta", 4, 9)
    used = weighed(positions, past, BeliefOptions(worlds=8), HashingEvaluator())
    used.run(HashingEvaluator())
    begin(used, positions, 24)
    used.run(HashingEvaluator())
    fresh = Search(
        positions.spec,
        positions.game,
        positions.spec.encoders[0],
        num_trees=4,
        max_simulations=24,
    )
    begin(fresh, positions, 24)
    fresh.run(HashingEvaluator())
    np.testing.assert_array_equal(read(used, np.arange(4)).visits, read(fresh, np.arange(4)).visits)


def test_what_is_not_allowed_is_named() -> None:
    positions, past = played("cuarenta", 1, 1)
    for options, message in (
        (BeliefOptions(worlds=0), "belief worlds = 0"),
        (BeliefOptions(floor=0.0), "belief floor = 0.0"),
        (BeliefOptions(floor=1.5), "belief floor = 1.5"),
    ):
        with pytest.raises(ValueError, match=message):
            weighed(positions, past, options, HashingEvaluator())
    search = weighed(positions, past, BeliefOptions(), HashingEvaluator())
    with pytest.raises(ValueError, match="no snapshot"):
        search.snapshot()
    spec, game = relay_game.SPEC, relay_game.Relay()
    with pytest.raises(ValueError, match="'relay' tells nothing of past plays"):
        Search(spec, game, spec.encoders[0], num_trees=1, max_simulations=1, belief=BeliefOptions())
    plain_search = Search(spec, game, spec.encoders[0], num_trees=1, max_simulations=1)
    with pytest.raises(ValueError, match="belief = None"):
        plain_search.weigh_worlds(np.arange(1), past, HashingEvaluator())


def test_the_number_of_worlds_follows_the_simulations() -> None:
    numbers = {count: belief_for(count).worlds for count in (1, 32, 128, 400, 1000, 9999)}
    assert numbers == {1: 1, 32: 12, 128: 48, 400: 48, 1000: 120, 9999: 256}


def findings() -> list[Any]:
    """Weigh and search a few positions, and list what is found."""
    found = []
    for name in ("kuhn", "leduc", "cuarenta"):
        positions, past = played(name, 4, 21)
        search = weighed(positions, past, BeliefOptions(worlds=6), HashingEvaluator())
        search.run(HashingEvaluator())
        found += [search.forest.shares.tolist(), read(search, np.arange(4)).visits.tolist()]
    return found


@pytest.mark.skipif(not jit_enabled(), reason="compares with compiled code")
def test_interpreted_code_weighs_as_the_compiled_one_does() -> None:
    assert json.loads(run_interpreted("tests.engine.test_belief")) == findings()


if __name__ == "__main__":
    print(json.dumps(findings()))
