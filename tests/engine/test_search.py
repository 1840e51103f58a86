"""Behaviours of the search as a whole.

Rows are independent (exactly, under an evaluator that hashes features); the same seed finds the
same; a snapshot goes on bit for bit; a full pool values its leaves and never backs up 0; virtual
losses are all given back; forced moves cost nothing; equity tables and models belong to their
trees; worlds that the root seat can tell apart never share a node; errors name what is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.evaluation import EvalBatch
from engine.search.ismcts import KnowledgeError, SearchOptions, search_options
from engine.search.rollout import ConstantEvaluator, HashingEvaluator, RolloutEvaluator
from engine.search.tree import IDLE, NO_EDGE, PoolSize
from tests.engine.searching import (
    Positions,
    assert_same,
    begin,
    cuarenta_positions,
    kuhn_positions,
    new_search,
    plain,
    read,
    relay_positions,
    search_all,
)

POLICY_MODES = search_options(partner="policy", opponents="policy", leaf_value="root_seat")


# --- independence ---------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [SearchOptions(), POLICY_MODES], ids=["tree", "policy"])
@pytest.mark.parametrize("descents", [1, 4])
@pytest.mark.parametrize("make", [relay_positions, cuarenta_positions])
def test_a_tree_does_not_depend_on_what_else_is_searched(
    make: Any, descents: int, options: SearchOptions
) -> None:
    positions = make(8)
    evaluator = HashingEvaluator()
    together = new_search(positions, options=options, descents=descents)
    expected = search_all(together, evaluator, positions, 48)
    # Alone, in another slot, beside other budgets, started later than its neighbours.
    other = new_search(positions, options=options, descents=descents, trees=5, simulations=99)
    begin(other, positions, 99, rows=[7, 6], slots=[0, 3], seed=1)
    other.step(evaluator)
    other.step(evaluator)
    begin(other, positions, 48, rows=[2, 5], slots=[4, 1])
    other.run(evaluator)
    found = read(other, [4, 1])
    for name, array in vars(expected).items():
        np.testing.assert_array_equal(getattr(found, name), array[[2, 5]], err_msg=name)


def test_the_same_seed_twice_gives_the_same_trees_bit_for_bit() -> None:
    positions = cuarenta_positions(4)
    states = []
    for _ in range(2):
        search = new_search(positions)
        search_all(search, RolloutEvaluator(positions.spec, positions.game), positions, 64)
        states.append(search.snapshot())
    for name, array in states[0].items():
        assert array.tobytes() == states[1][name].tobytes(), name


def test_another_seed_gives_other_visits() -> None:
    positions = cuarenta_positions(6)
    search = new_search(positions)
    evaluator = HashingEvaluator()
    first = search_all(search, evaluator, positions, 64)
    begin(search, positions, 64, seed=1)
    search.run(evaluator)
    assert not np.array_equal(first.visits, read(search, np.arange(6)).visits)


@pytest.mark.parametrize("descents", [1, 3])
def test_a_snapshot_goes_on_as_if_nothing_had_happened(descents: int) -> None:
    positions = relay_positions(6)
    evaluator = HashingEvaluator()
    straight = new_search(positions, options=POLICY_MODES, descents=descents)
    begin(straight, positions, 64, noise=0.25)
    for _ in range(9):
        straight.step(evaluator)
    saved = straight.snapshot()
    straight.run(evaluator)
    resumed = new_search(positions, options=POLICY_MODES, descents=descents)
    resumed.restore(saved)
    resumed.run(evaluator)
    assert_same(read(straight, np.arange(6)), read(resumed, np.arange(6)))
    assert resumed.num_simulations == straight.num_simulations
    assert resumed.num_rows_evaluated == straight.num_rows_evaluated


def test_a_snapshot_of_another_shape_is_refused_by_name() -> None:
    positions = relay_positions(2)
    saved = new_search(positions).snapshot()
    with pytest.raises(ValueError, match="nodes"):
        new_search(positions, simulations=999).restore(saved)


# --- consistency ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [SearchOptions(), POLICY_MODES], ids=["tree", "policy"])
@pytest.mark.parametrize("descents", [1, 2, 16])
@pytest.mark.parametrize("make", [lambda n: kuhn_positions(), relay_positions, cuarenta_positions])
def test_counts_agree_and_virtual_losses_are_given_back(
    make: Any, descents: int, options: SearchOptions
) -> None:
    positions = make(8)
    search = new_search(positions, options=options, descents=descents, check_views=True)
    found = search_all(search, HashingEvaluator(), positions, 64)
    assert found.visits.sum(axis=1).tolist() == [64] * len(positions)
    assert search.num_simulations == 64 * len(positions)
    assert search.num_running() == 0
    forest = search.snapshot()
    assert np.all(forest["descents"]["phase"] == IDLE)
    for t in range(len(positions)):
        for index in range(forest["trees"][t]["num_nodes"]):
            node = forest["nodes"][t, index]
            assert node["pending"] == 0
            assert node["visits"] == node["returned"]
            if node["first_edge"] != NO_EDGE:
                assert_edges_add_up(forest, t, node, descents)
    limit = 2.0 if positions.spec.name == "kuhn" else 1.0
    searched = found.action_values[~np.isnan(found.action_values)]
    assert np.all(np.abs(searched) <= limit + 1e-9)


def assert_edges_add_up(forest: Any, t: int, node: Any, descents: int) -> None:
    visits = ended = 0
    index = node["first_edge"]
    while index != NO_EDGE:
        edge = forest["edges"][t, index]
        visits += edge["visits"]
        assert edge["availability"] >= edge["visits"]
        assert edge["availability"] <= node["visits"]
        if edge["visits"] == 0:
            assert edge["value_sum"] == 0.0
        index = edge["next_edge"]
    # The first evaluation of a node ends the simulation, later ones do not. Descents that arrive
    # while it is awaited end there too.
    ended = node["returned"] - visits
    assert min(node["num_evaluations"], 1) <= ended
    if descents == 1:
        assert ended <= 1


def test_several_descents_make_batches_of_a_single_game_and_explore_alike() -> None:
    positions = cuarenta_positions(1)
    evaluator = HashingEvaluator()
    one = new_search(positions, simulations=512)
    many = new_search(positions, simulations=512, descents=8)
    begin(many, positions, 512)
    steps = 0
    while many.step(evaluator):
        steps += 1
    assert many.num_rows_evaluated / steps > 5.0
    alone = search_all(one, evaluator, positions, 512)
    assert abs(read(many, [0]).values[0] - alone.values[0]) < 0.1


def test_a_full_pool_values_its_leaves_and_never_backs_up_zero() -> None:
    positions = cuarenta_positions(6)
    options = search_options(leaf_value="root_seat")
    for pool in (PoolSize(3, 300), PoolSize(300, 14)):
        search = new_search(positions, options=options, pool=pool)
        begin(search, positions, 64)
        search.run(ConstantEvaluator(0.5))
        found = read(search, np.arange(6))
        assert search.num_pool_full > 64
        assert found.visits.sum(axis=1).tolist() == [64] * 6
        # Every leaf is worth 0.5 to the root seat; only a finished game could say otherwise.
        np.testing.assert_allclose(found.values, 0.5)


class Recorder:
    """Counts what a search asks for."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int]] = []
        self.seats: list[int] = []
        self.seeds: set[int] = set()

    def evaluate(self, batch: EvalBatch, num_rows: int, num_candidates: int) -> None:
        self.batches.append((num_rows, num_candidates))
        self.seats += batch.seats[:num_rows].tolist()
        self.seeds |= set(batch.seeds[:num_rows].tolist())
        assert batch.offsets[0] == 0
        assert batch.offsets[num_rows] == num_candidates
        for row in range(num_rows):
            own = slice(batch.offsets[row], batch.offsets[row + 1])
            assert np.all(batch.candidate_row[own] == row)
        batch.logits[:num_candidates] = 0.0
        batch.values[:num_rows] = 0.1


def test_rows_are_ragged_and_each_has_random_bits_of_its_own() -> None:
    positions = cuarenta_positions(8)
    search = new_search(positions, options=search_options(leaf_value="root_seat"))
    recorder = Recorder()
    search_all(search, recorder, positions, 64)
    assert sum(rows for rows, _ in recorder.batches) == search.num_rows_evaluated
    assert len(recorder.seeds) == search.num_rows_evaluated


def test_moves_that_are_forced_in_a_world_cost_no_evaluation() -> None:
    positions = relay_positions(1)
    view = positions.spec.new_state()
    rules.deal(positions.game, view, np.uint64(3))
    view.cards[0], view.cards[1], view.cards[2] = 2, -1, -1
    positions.views[0] = view
    positions.seats[0] = 0
    search = new_search(positions, simulations=200)
    recorder = Recorder()
    search_all(search, recorder, positions, 200)
    asked = np.bincount(recorder.seats, minlength=3)
    # Seat 0 is asked at the root and at its last move; the others are forced in a third of worlds.
    assert search.num_rows_evaluated < 200
    assert asked[1] > 0
    assert asked[2] > 0


# --- values ---------------------------------------------------------------------------------------


def last_play_of_a_hand() -> Positions:
    """Return a Cuarenta position whose every action ends the hand but not the game."""
    for seed in range(200):
        positions = cuarenta_positions(20, seed=seed)
        for row in range(20):
            if ends_hand(positions, row):
                return Positions(
                    positions.spec,
                    positions.game,
                    positions.views[row : row + 1],
                    positions.seats[row : row + 1],
                )
    raise AssertionError("no position at the end of a hand was met")


def ends_hand(positions: Positions, row: int) -> bool:
    spec, game = positions.spec, positions.game
    world = spec.new_state()
    legal = np.zeros(spec.max_actions, np.int64)
    seat = positions.seats[row]
    rules.determinize(game, positions.views[row], seat, np.zeros(1, np.uint64), world)
    for k in range(int(rules.legal_actions(game, world, legal))):
        after = world.copy()
        rules.apply(game, after, legal[k])
        if rules.current_seat(game, after) != rules.CHANCE:
            return False
        if rules.equity_index(game, after, rules.side_of(game, seat)) == rules.NO_HAND_END:
            return False
    return True


def test_between_hands_the_equity_table_of_the_trees_own_model_answers() -> None:
    position = last_play_of_a_hand()
    both = Positions(
        position.spec, position.game, plain(position.views.repeat(2)), position.seats.repeat(2)
    )
    search = new_search(both, models=2)
    search.set_equity(1, np.full(both.spec.num_equity_states, 0.8))
    begin(search, both, 32, models=[0, 1])
    recorder = Recorder()
    search.run(recorder)
    found = read(search, [0, 1])
    count = found.counts[0]
    np.testing.assert_allclose(found.action_values[0, :count], 0.1, atol=1e-6)
    np.testing.assert_allclose(found.action_values[1, :count], 0.6, atol=1e-12)
    assert search.num_rows_evaluated == 33 + 1
    search.set_equity(1, None)
    begin(search, both, 32, models=[0, 1])
    search.run(recorder)
    assert read(search, [1]).action_values[0, 0] == pytest.approx(0.1)


def test_before_its_own_deal_the_root_seat_values_the_position() -> None:
    positions = relay_positions(40)
    rows = np.flatnonzero(positions.seats == 1)
    search = new_search(positions)
    recorder = Recorder()
    begin(search, positions, 64, rows=rows[:1], slots=[0])
    search.run(recorder)
    # Seats 2 and 0 move after it, but seat 0's last move lies behind seat 1's own deal.
    assert set(recorder.seats) == {1, 2}


def test_values_that_are_not_numbers_are_refused() -> None:
    positions = relay_positions(2)
    search = new_search(positions)
    begin(search, positions, 8)
    with pytest.raises(FloatingPointError):
        search.run(ConstantEvaluator(float("nan")))


# --- knowledge ------------------------------------------------------------------------------------


def test_a_planted_fault_in_observation_is_found_by_the_checked_search() -> None:
    honest, deaf = relay_positions(8), relay_positions(8, deaf=1)
    search_all(new_search(honest, check_views=True), HashingEvaluator(), honest, 64)
    search = new_search(deaf, check_views=True)
    with pytest.raises(KnowledgeError):
        search_all(search, HashingEvaluator(), deaf, 64)


# --- errors ---------------------------------------------------------------------------------------


def test_what_is_not_allowed_is_named() -> None:
    positions = relay_positions(3)
    search = new_search(positions, simulations=8)
    with pytest.raises(ValueError, match="simulations 9 to 9: allowed are 0 to 8"):
        begin(search, positions, 9)
    with pytest.raises(ValueError, match=r"trees .*allowed are 0 to 2"):
        begin(search, positions, 8, slots=[0, 1, 3])
    with pytest.raises(ValueError, match="models 0 to 1: allowed are 0 to 0"):
        begin(search, positions, 8, models=[0, 1, 0])
    with pytest.raises(ValueError, match="seat to move"):
        search.begin(
            np.array([0]),
            positions.views[:1],
            (positions.seats[:1] + 1) % 3,
            np.zeros(1, np.int32),
            np.ones(1, np.int64),
            np.zeros(1, np.uint64),
            np.zeros(1),
        )
    begin(search, positions, 8)
    with pytest.raises(ValueError, match="only finished searches"):
        read(search, [0])
    with pytest.raises(ValueError, match="leaf_value = 'mean': allowed are mover, root_seat"):
        search_options(leaf_value="mean")
    with pytest.raises(ValueError, match="model 2"):
        search.set_equity(2, None)
    with pytest.raises(ValueError, match="equity table of 3 rows"):
        search.set_equity(0, np.zeros(3))
    with pytest.raises(ValueError, match="num_trees = -1"):
        new_search(positions, trees=-1)
