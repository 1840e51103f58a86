"""Samples per insert: the ratio holds, both sides are bounded, and nothing ever blocks both."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.controller import ControllerState, SamplesPerInsert


def make(state: ControllerState | None = None, **changes: float) -> SamplesPerInsert:
    options = {
        "samples_per_insert": 3.0,
        "batch_size": 64,
        "min_window": 500,
        "slack": 200,
        **changes,
    }
    return SamplesPerInsert(state=state, **options)  # type: ignore[arg-type]


def run(controller: SamplesPerInsert, num_rounds: int, game: int = 35) -> int:
    """Alternate: insert while there is a budget, then sample while allowed; return the batches."""
    num_batches = 0
    for _ in range(num_rounds):
        if controller.insert_budget() > 0:
            controller.inserted(game)
        while controller.may_sample(controller.batch_size):
            controller.sampled(controller.batch_size)
            num_batches += 1
    return num_batches


def test_ratio_converges_to_samples_per_insert() -> None:
    controller = make(min_window=300)
    run(controller, 5000)
    state = controller.state
    assert state.num_forfeited == 0
    assert state.num_sampled / state.num_inserted == pytest.approx(3.0, rel=0.001)


def test_no_sampling_below_the_minimum_window() -> None:
    controller = make()
    for _ in range(499):
        controller.inserted(1)
        assert not controller.may_sample(1)
    controller.inserted(1)
    assert controller.may_sample(64)


def test_inserting_stops_at_the_slack_and_goes_on_with_training() -> None:
    controller = make()
    controller.rebuilt(1000)
    while controller.insert_budget() > 0:
        controller.inserted(1)
    assert controller.state.num_inserted == 200
    controller.sampled(64)
    assert controller.insert_budget() == 21


def test_budget_is_never_negative() -> None:
    # A negative budget would mean "no bound" to a worker.
    controller = make()
    controller.rebuilt(1000)
    controller.inserted(100_000)
    assert controller.insert_budget() == 0


def test_minimum_window_may_be_filled_beyond_the_slack() -> None:
    controller = make(min_window=5000)
    num_inserted = 0
    while not controller.may_sample(64):
        assert controller.insert_budget() > 0
        controller.inserted(35)
        num_inserted += 35
    assert 5000 <= num_inserted < 5035


def test_resume_does_not_catch_up() -> None:
    controller = make()
    run(controller, 1000)
    saved = msgspec.msgpack.encode(controller.state)
    resumed = make(msgspec.msgpack.decode(saved, type=ControllerState))
    resumed.rebuilt(controller.window_positions)
    # What was written while the snapshot grew old comes in at once.
    resumed.inserted(1_000_000)
    num_batches = 0
    while resumed.may_sample(64):
        resumed.sampled(64)
        num_batches += 1
    assert num_batches * 64 <= 2 * 200 * 3.0
    assert resumed.state.num_forfeited > 0


def test_resume_continues_where_the_snapshot_was() -> None:
    one = make()
    run(one, 500)
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(one.state), type=ControllerState)
    other = make(state)
    other.rebuilt(one.window_positions)
    assert run(one, 100) == run(other, 100)
    assert one.state == other.state


def test_lost_stream_leaves_room_to_insert() -> None:
    controller = make()
    controller.rebuilt(1000)
    while controller.insert_budget():
        controller.inserted(1)
    resumed = make(controller.state)
    resumed.rebuilt(0)
    assert not resumed.may_sample(64)
    assert resumed.insert_budget() == 500
    assert run(resumed, 100) > 0


@given(
    st.floats(0.1, 20.0),
    st.integers(1, 300),
    st.integers(1, 2000),
    st.integers(0, 500),
    st.integers(1, 80),
    st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_restoring_at_every_boundary_makes_progress(
    ratio: float, batch: int, min_window: int, extra: int, game: int, keeps_window: bool
) -> None:
    """Restored after every single event, with its window or without, neither side blocks."""
    slack = int(batch / ratio) + 2 + extra
    controller = SamplesPerInsert(
        samples_per_insert=ratio, batch_size=batch, min_window=min_window, slack=slack
    )
    num_batches = 0
    for step in range(20_000):
        if num_batches == 3:
            break
        can_insert, can_sample = controller.insert_budget() > 0, controller.may_sample(batch)
        assert can_insert or can_sample, f"blocked at step {step}"
        if can_sample:
            controller.sampled(batch)
            num_batches += 1
        else:
            controller.inserted(game)
        state = msgspec.msgpack.decode(
            msgspec.msgpack.encode(controller.state), type=ControllerState
        )
        held = controller.window_positions
        controller = SamplesPerInsert(
            samples_per_insert=ratio,
            batch_size=batch,
            min_window=min_window,
            slack=slack,
            state=state,
        )
        # Losing the window once must not stop the run for ever.
        controller.rebuilt(0 if not keeps_window and step == 50 else held)
    assert num_batches == 3


def test_figures_that_would_block_both_sides_are_refused() -> None:
    with pytest.raises(ValueError, match="allowed are 23 and more"):
        make(slack=22)
    make(slack=23)
    with pytest.raises(ValueError, match="positive"):
        make(samples_per_insert=0.0)
