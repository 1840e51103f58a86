"""Window: what is held, evicted, sampled and rebuilt, against an obvious twin."""

from __future__ import annotations

import dataclasses
import multiprocessing
import tracemalloc
from typing import Any

import msgspec
import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.buffer import Entry, ReaderState
from replay.split import SplitWindow, held_out_capacity, is_held_out
from replay.trajectory import EXAMPLE, POLICY, Trajectory, TrajectoryError
from replay.window import LAST_HAND, Batch, Window
from tests.replay.games import kuhn, make_trajectory

games = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(1, 3)), min_size=1, max_size=25
)


def new_window(capacity: int, **options: Any) -> Window:
    return Window(*kuhn(), capacity, **options)


def fill(window: Window, shapes: list[tuple[int, int, int]]) -> list[Trajectory]:
    made = [
        make_trajectory(seed, num_eligible=policy, num_values=value, num_hands=hands)
        for seed, (policy, value, hands) in enumerate(shapes)
    ]
    for number, trajectory in enumerate(made, 1):
        window.add(trajectory, f"{number}-0")
    return made


def naive_held(made: list[Trajectory], capacity: int, value_capacity: int) -> list[Trajectory]:
    """Return the longest run of newest games that fits (games without examples are not held)."""
    held: list[Trajectory] = []
    for trajectory in reversed([game for game in made if len(game.examples)]):
        held.insert(0, trajectory)
        policy = sum(game.num_eligible() for game in held)
        values = sum(len(game.examples) - game.num_eligible() for game in held)
        if policy > capacity or values > value_capacity:
            return held[1:]
    return held


def naive_examples(held: list[Trajectory], with_policy: bool) -> list[tuple[Any, ...]]:
    """Return, oldest first, everything a target needs, worked out one example at a time."""
    rows: list[tuple[Any, ...]] = []
    for game in held:
        header, position = game.header, 0
        totals = [sum(terms) for terms in header.reward_terms]
        for i, example in enumerate(game.examples):
            count = int(example["num_actions"])
            visits = tuple(game.visits[position : position + count].tolist())
            position += count
            if bool(example["flags"] & POLICY) != with_policy:
                continue
            side = int(example["seat"])
            hand = int(example["hand"])
            row = header.hand_ends[hand][side] if hand < len(header.hand_ends) else LAST_HAND
            rows.append(
                (
                    example.tobytes(),
                    np.asarray(game.views)[i].tobytes(),
                    visits,
                    header.returns[side],
                    totals[side] - totals[1 - side],
                    row,
                )
            )
    return rows


def rows_of(window: Window, slots: np.ndarray[Any, Any]) -> list[tuple[Any, ...]]:
    batch = window.gather(slots)
    return [
        (
            batch.examples[i].tobytes(),
            np.asarray(batch.views)[i].tobytes(),
            tuple(batch.visits[batch.offsets[i] : batch.offsets[i + 1]].tolist()),
            batch.outcome[i, 0],
            batch.shaped[i],
            batch.equity_row[i],
        )
        for i in range(len(slots))
    ]


@given(games, st.integers(12, 40), st.integers(12, 40))
@settings(max_examples=60, deadline=None)
def test_window_holds_the_newest_whole_games_and_all_their_facts(
    shapes: list[tuple[int, int, int]], capacity: int, value_capacity: int
) -> None:
    window = new_window(
        capacity, values_per_position=value_capacity / capacity, actions_per_position=4
    )
    made = fill(window, shapes)
    held = naive_held(made, capacity, window._value_capacity)
    assert window.num_games == len(held)
    assert rows_of(window, window.all_eligible()) == naive_examples(held, with_policy=True)
    values = window._values.by_age(np.arange(window.num_values))
    assert rows_of(window, values) == naive_examples(held, with_policy=False)
    edge = {"0": f"{made.index(held[0]) + 1}-0"} if held else {}
    assert window.window_edge() == edge


@given(games, st.integers(0, 20))
@settings(max_examples=40, deadline=None)
def test_window_rebuilt_from_its_edge_draws_the_same_examples(
    shapes: list[tuple[int, int, int]], seed: int
) -> None:
    window, rebuilt = (new_window(30, values_per_position=1.0) for _ in range(2))
    made = fill(window, shapes)
    if not window.num_games:
        return
    first = int(window.window_edge()["0"].split("-")[0])
    for number in range(first, len(made) + 1):
        rebuilt.add(made[number - 1], f"{number}-0")
    for sample in ("sample", "sample_values"):
        ring = window.num_eligible if sample == "sample" else window.num_values
        if not ring:
            continue
        one, other = (
            w.gather(getattr(w, sample)(np.random.default_rng(seed), 16)) for w in (window, rebuilt)
        )
        assert_same_batch(one, other)


def assert_same_batch(one: Batch, other: Batch) -> None:
    for left, right in zip(one, other, strict=True):
        assert (left is None) == (right is None)
        if left is not None:
            assert np.asarray(left).tobytes() == np.asarray(right).tobytes()


def test_sampling_is_uniform_over_eligible_positions() -> None:
    window = new_window(50)
    fill(window, [(1, 0, 1), (9, 3, 1), (5, 0, 1), (30, 8, 1), (5, 1, 1)])
    num_draws = 100_000
    slots = window.sample(np.random.default_rng(7), num_draws)
    counts = np.bincount(slots, minlength=window._num_slots)[window.all_eligible()]
    assert counts.sum() == num_draws
    expected = num_draws / window.num_eligible
    # Four standard errors of a binomial count.
    assert np.abs(counts - expected).max() < 4 * np.sqrt(expected)


def test_newest_share_of_the_window_is_sampled_uniformly() -> None:
    window = new_window(50)
    fill(window, [(1, 0, 1), (9, 3, 1), (5, 0, 1), (30, 8, 1), (5, 1, 1)])
    slots = window.sample(np.random.default_rng(7), 100_000, newest=0.2)
    newest = window.all_eligible()[-int(np.ceil(window.num_eligible * 0.2)) :]
    counts = np.bincount(slots, minlength=window._num_slots)[newest]
    assert counts.sum() == 100_000
    expected = 100_000 / len(newest)
    assert np.abs(counts - expected).max() < 4 * np.sqrt(expected)


@pytest.mark.parametrize("newest", [0.0, -0.5, 1.5, float("nan")])
def test_share_that_is_none_is_refused(newest: float) -> None:
    window = new_window(50)
    fill(window, [(3, 0, 1)])
    with pytest.raises(ValueError, match="allowed are shares above 0, up to 1"):
        window.sample(np.random.default_rng(0), 1, newest)


def test_batches_and_games_do_not_alias_the_window() -> None:
    window = new_window(50)
    game = make_trajectory(1)
    window.add(game, "1-0")
    slots = window.all_eligible()
    before = rows_of(window, slots)
    batch = window.gather(slots)
    for array in batch:
        if array is not None:
            raw = np.asarray(array)
            assert raw.flags["C_CONTIGUOUS"]
            raw.view(np.uint8)[:] = 255
    game.examples["ply"] = 999
    game.views.cards[:] = 2
    game.visits[:] = 1
    assert rows_of(window, slots) == before


def test_memory_does_not_grow_with_the_length_of_the_run() -> None:
    window = new_window(200)
    made = [make_trajectory(seed, num_eligible=7, num_values=11) for seed in range(50)]

    def add(rounds: int) -> None:
        for number in range(rounds):
            window.add(made[number % len(made)], f"{number}-0", producer="p", sequence=number)

    size = window.nbytes
    add(200)
    tracemalloc.start()
    try:
        add(200)
        before, _ = tracemalloc.get_traced_memory()
        add(4000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 16_384
    assert window.nbytes == size


def fill_and_go_on() -> None:
    window = new_window(200_000, actions_per_position=100)  # 40 MB for visits, used by a tenth
    made = make_trajectory(1, num_eligible=1000, num_values=1000)
    resident = psutil.Process().memory_info
    for number in range(200):
        window.add(made, f"{number}-0", sequence=number)
    full = resident().rss
    window.add(made, "200-0", sequence=200)
    claimed = resident().rss
    assert window.num_games == 200
    assert claimed - full > 30e6
    for number in range(201, 500):
        window.add(made, f"{number}-0", sequence=number)
    assert resident().rss - claimed < 3e6
    assert window.nbytes < claimed


def test_all_memory_is_resident_from_the_first_eviction_on() -> None:
    # In a process of its own: memory that other tests gave back would be resident already.
    child = multiprocessing.get_context("spawn").Process(target=fill_and_go_on)
    child.start()
    child.join(240)
    assert child.exitcode == 0


def test_games_without_examples_are_not_held() -> None:
    window = new_window(50)
    for number in range(1000):
        window.add(make_trajectory(number, num_eligible=0, num_values=0), f"{number}-0")
    assert window.num_games == 0
    assert window.window_edge() == {}


def test_visits_bound_evicts_whole_games_too() -> None:
    window = new_window(40, actions_per_position=1)
    fill(window, [(10, 0, 1)] * 4)
    assert 0 < window.num_games < 4
    assert window.num_eligible == 10 * window.num_games


def test_window_edges_are_kept_per_shard() -> None:
    window = new_window(9)
    for number in range(1, 8):
        window.add(make_trajectory(number), f"{number}-0", str(number % 2))
    assert window.window_edge() == {"0": "6-0", "1": "5-0"}


def test_facts_of_the_caller_travel_with_their_examples() -> None:
    dtype = np.dtype([("seed", np.int64), ("ply", np.int64)])
    window = new_window(20, facts_dtype=dtype)
    for seed in range(10):
        game = make_trajectory(seed)
        facts = np.zeros(len(game.examples), dtype)
        facts["seed"], facts["ply"] = seed, game.examples["ply"]
        window.add(game, f"{seed}-0", facts=facts)
    batch = window.gather(window.all_eligible())
    assert batch.facts is not None
    assert np.array_equal(batch.facts["seed"], batch.examples["model_version"])
    assert np.array_equal(batch.facts["ply"], batch.examples["ply"])
    with pytest.raises(ValueError, match="facts"):
        window.add(make_trajectory(1), "99-0")


def test_other_rules_are_refused_naming_the_option() -> None:
    window = new_window(50)
    game = make_trajectory(1)
    header = msgspec.structs.replace(game.header, rules={"ante": "2"})
    other = dataclasses.replace(game, header=header)
    with pytest.raises(TrajectoryError, match="ante"):
        window.add(other, "1-0")
    assert window.num_games == 0


def test_a_seat_that_the_game_does_not_have_is_refused() -> None:
    game = make_trajectory(1)
    game.examples["seat"][0] = 2
    with pytest.raises(TrajectoryError, match="seat 2"):
        new_window(50).add(game, "1-0")


def test_a_window_too_small_for_one_game_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="window of 5 positions is too small"):
        new_window(5).add(make_trajectory(1, num_eligible=6), "1-0")
    with pytest.raises(ValueError, match="allowed are 1 and more"):
        new_window(0)


def test_sampling_from_nothing_is_an_error() -> None:
    window = new_window(5)
    with pytest.raises(ValueError, match="nothing to sample"):
        window.sample(np.random.default_rng(0), 1)
    with pytest.raises(ValueError, match="nothing to sample"):
        window.sample_values(np.random.default_rng(0), 1)


# --- held-out games -------------------------------------------------------------------------------


def new_split(share: float = 0.3, held_out_positions: int = 20) -> SplitWindow:
    return SplitWindow(*kuhn(), 60, held_out_share=share, held_out_positions=held_out_positions)


def entry(number: int, producer: str = "w") -> Entry:
    return Entry(f"{number}-0", producer, number, b"")


def test_held_out_share_is_met_and_fixed() -> None:
    chosen = [is_held_out("worker-1", sequence, 0.1) for sequence in range(20_000)]
    assert chosen == [is_held_out("worker-1", sequence, 0.1) for sequence in range(20_000)]
    # Four standard errors around 10 %.
    assert abs(sum(chosen) - 2000) < 4 * np.sqrt(20_000 * 0.1 * 0.9)
    assert not any(is_held_out("w", sequence, 0.0) for sequence in range(1000))
    # A game that is held out at a small share is held out at every larger one.
    assert all(is_held_out("worker-1", s, 0.2) for s in range(20_000) if chosen[s])


def test_games_go_to_one_window_whole() -> None:
    split = new_split()
    for number in range(1, 200):
        split.add(entry(number), make_trajectory(number))
    for window, expected in ((split.training, False), (split.held_out, True)):
        held = {game.sequence for game in window.games}
        assert held
        assert {is_held_out("w", sequence, 0.3) for sequence in held} == {expected}


@pytest.mark.parametrize(("held_out_positions", "older"), [(10, "training"), (60, "held_out")])
def test_description_covers_both_windows(held_out_positions: int, older: str) -> None:
    split = new_split(held_out_positions=held_out_positions)
    for number in range(1, 200):
        split.add(entry(number), make_trajectory(number))
    state = ReaderState()
    split.describe(state)
    oldest = min(
        game.sequence for window in (split.training, split.held_out) for game in window.games
    )
    assert state.window_edge == split.window_edge() == {"0": f"{oldest}-0"}
    assert state.window_entries == {"0": 200 - oldest}
    assert state.floors == {"w": oldest}
    assert split.training.num_eligible <= 60
    assert split.held_out.num_eligible <= held_out_positions
    assert oldest == getattr(split, older).games[0].sequence


def test_description_keeps_shards_apart() -> None:
    split = new_split()
    for number in range(1, 200):
        shard = "1" if number % 5 == 0 else "0"
        split.add(entry(number, "w" + shard)._replace(shard=shard), make_trajectory(number))
    state = ReaderState()
    split.describe(state)
    games = [game for window in (split.training, split.held_out) for game in window.games]
    for shard in ("0", "1"):
        oldest = min(game.sequence for game in games if game.shard == shard)
        assert state.window_edge[shard] == f"{oldest}-0"
        since = [n for n in range(oldest, 200) if (n % 5 == 0) == (shard == "1")]
        assert state.window_entries[shard] == len(since)


def test_held_out_window_lasts_as_long_as_the_training_window() -> None:
    assert held_out_capacity(600_000, 0.1) == 66_667
    assert held_out_capacity(20_000, 0.1) == 20_000
    with pytest.raises(ValueError, match="allowed are 0"):
        new_split(share=1.0)


def test_example_record_is_what_the_codec_and_the_window_agree_on() -> None:
    assert new_window(1).gather(np.zeros(0, np.int64)).examples.dtype == EXAMPLE
