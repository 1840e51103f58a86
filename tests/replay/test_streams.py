"""Writers and readers without a server: memory and segment files behave alike, and exactly once.

* accepted once, ingested once: with confirmations held back, entries sent again, a store away;
* a reader resumes from its state; repeats, gaps, a lost and an old stream are counted;
* a window is rebuilt bit for bit; segments survive a torn tail and go back to a snapshot.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from replay.buffer import Entry, OutboxFull, ReaderState, TrajectoryReader, TrajectoryWriter
from replay.codec import decode, encode
from replay.marks import cursor_key, ingest
from replay.memory import MemoryReader, MemoryStore, MemoryWriter
from replay.segments import SegmentError, SegmentReader, SegmentStore, SegmentWriter
from replay.split import SplitWindow
from tests.replay.games import kuhn, make_trajectory
from tests.replay.test_window import assert_same_batch

Pair = tuple[Callable[[], TrajectoryWriter], Callable[[ReaderState | None], TrajectoryReader]]


@pytest.fixture(params=["memory", "segments"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    if request.param == "memory":
        memory = MemoryStore()
        yield (
            lambda: MemoryWriter(memory, "w", max_pending=50),
            lambda state: MemoryReader(memory, state),
        )
        return
    segments = SegmentStore(tmp_path, segment_bytes=300)
    yield (
        lambda: SegmentWriter(segments, "w", max_pending=50),
        lambda state: SegmentReader(segments, state),
    )
    segments.close()


def copied(state: ReaderState) -> ReaderState:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=ReaderState)


def write(writer: TrajectoryWriter, first: int, last: int) -> None:
    for number in range(first, last + 1):
        writer.append(b"payload %d" % number)
    writer.poll(1.0)


def read_all(reader: TrajectoryReader) -> list[int]:
    numbers: list[int] = []
    while entries := reader.read(7, 0.0):
        assert len(entries) <= 7
        numbers += [int(entry.payload.split()[1]) for entry in entries]
    return numbers


def test_entries_arrive_once_in_order(pair: Pair) -> None:
    writer, reader = pair[0](), pair[1](None)
    write(writer, 1, 30)
    assert (writer.num_pending, writer.num_accepted) == (0, 30)
    assert read_all(reader) == list(range(1, 31))
    write(writer, 31, 40)
    assert read_all(reader) == list(range(31, 41))
    assert reader.state.num_lost == 0


def test_nothing_is_accepted_before_poll_and_the_outbox_is_bounded(pair: Pair) -> None:
    writer, reader = pair[0](), pair[1](None)
    for number in range(50):
        writer.append(b"payload %d" % number)
    assert (writer.num_pending, writer.num_accepted) == (50, 0)
    with pytest.raises(OutboxFull, match="50 trajectories"):
        writer.append(b"payload 50")
    assert read_all(reader) == []
    assert writer.poll(0.0) == 50
    assert read_all(reader) == list(range(50))


def test_reader_resumes_from_every_state(pair: Pair) -> None:
    writer, reader = pair[0](), pair[1](None)
    write(writer, 1, 20)
    states = [copied(reader.state)]
    while reader.read(3, 0.0):
        states.append(copied(reader.state))
    assert len(states) > 5
    for index, state in enumerate(states):
        assert read_all(pair[1](copied(state))) == list(range(min(3 * index, 20) + 1, 21))


def test_sent_again_after_a_lost_confirmation_is_ingested_once() -> None:
    store = MemoryStore()
    writer, reader = MemoryWriter(store, "w"), MemoryReader(store)
    store.confirming = False
    write(writer, 1, 5)
    assert (writer.num_pending, writer.num_accepted) == (5, 0)
    store.reachable = False
    assert writer.poll(0.0) == 0
    store.reachable, store.confirming = True, True
    writer.append(b"payload 6")
    assert writer.poll(0.0) == 6
    assert len(store.after("0", "0-0", 100)) == 11
    assert read_all(reader) == [1, 2, 3, 4, 5, 6]
    assert reader.state.num_lost == 0


def test_a_store_that_is_away_loses_nothing() -> None:
    store = MemoryStore()
    writer, reader = MemoryWriter(store, "w"), MemoryReader(store)
    store.reachable = False
    write(writer, 1, 3)
    assert reader.read(10, 0.01) == []
    store.reachable = True
    assert writer.poll(0.0) == 3
    assert read_all(reader) == [1, 2, 3]


def test_flushed_store_is_noticed_and_its_losses_counted() -> None:
    store = MemoryStore()
    writer, reader = MemoryWriter(store, "w"), MemoryReader(store)
    write(writer, 1, 4)
    assert read_all(reader) == [1, 2, 3, 4]
    lineage = reader.state.lineage
    write(writer, 5, 9)
    store.forget()
    write(writer, 10, 12)
    assert read_all(reader) == [10, 11, 12]
    assert reader.state.lineage != lineage
    assert reader.state.num_lost == 5


def test_producers_have_marks_of_their_own() -> None:
    state = ReaderState()
    rows = [("a", 1), ("b", 1), ("a", 2), ("a", 1), ("a", 2), ("b", 2), ("b", 1), ("a", 5)]
    entries = [Entry(f"{i}-0", who, number, b"") for i, (who, number) in enumerate(rows, 1)]
    fresh = ingest(state, "0", entries)
    assert [(e.producer, e.sequence) for e in fresh] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("b", 2),
        ("a", 5),
    ]
    assert state.num_lost == 2
    assert state.cursors == {"0": "8-0"}


def test_cursors_are_ordered_by_number_and_not_by_text() -> None:
    assert cursor_key("9-12") < cursor_key("10-0") < cursor_key("10-1")
    for text in ("", "12", "a-b", "1-", "-1"):
        with pytest.raises(ValueError, match="allowed is the form"):
            cursor_key(text)


# --- rebuilding -----------------------------------------------------------------------------------


def new_split() -> SplitWindow:
    return SplitWindow(
        *kuhn(), 60, held_out_share=0.2, held_out_positions=20, values_per_position=2.0
    )


def ingest_all(reader: TrajectoryReader, split: SplitWindow) -> None:
    while entries := reader.read(16, 0.0):
        for entry in entries:
            split.add(entry, decode(entry.payload, kuhn()[0]))


def rebuilt_from(reader: TrajectoryReader) -> SplitWindow:
    split = new_split()
    for entry in reader.rebuild():
        split.add(entry, decode(entry.payload, kuhn()[0]))
    return split


def assert_same_windows(one: SplitWindow, other: SplitWindow) -> None:
    for left, right in ((one.training, other.training), (one.held_out, other.held_out)):
        assert left.num_games == right.num_games > 0
        assert_same_batch(*(w.gather(w.all_eligible()) for w in (left, right)))
        assert_same_batch(
            *(w.gather(w.sample_values(np.random.default_rng(1), 50)) for w in (left, right))
        )


def test_window_is_rebuilt_bit_for_bit_and_both_lives_go_on_alike(pair: Pair) -> None:
    writer, reader = pair[0](), pair[1](None)
    split = new_split()

    def play(first: int, last: int) -> None:
        for seed in range(first, last):
            writer.append(encode(make_trajectory(seed, num_eligible=seed % 5, num_values=seed % 3)))
            writer.poll(1.0)

    play(0, 90)
    ingest_all(reader, split)
    split.describe(reader.state)
    saved = copied(reader.state)
    play(90, 100)

    resumed = pair[1](copied(saved))
    rebuilt = rebuilt_from(resumed)
    assert_same_windows(split, rebuilt)
    assert resumed.state == saved
    ingest_all(reader, split)
    ingest_all(resumed, rebuilt)
    assert_same_windows(split, rebuilt)
    assert resumed.state.marks == reader.state.marks
    assert resumed.state.num_lost == 0


def test_rebuild_ignores_repeats_of_games_that_had_left_the_window() -> None:
    store = MemoryStore(num_shards=1)
    reader, split = MemoryReader(store), new_split()
    payloads = [encode(make_trajectory(seed)) for seed in range(80)]
    for number in range(1, 41):
        store.append("0", "w", number, payloads[number])
    store.append("0", "other", 1, payloads[0])
    for number in (38, 39, 40, *range(41, 70)):  # three were sent again
        store.append("0", "w", number, payloads[number])
    ingest_all(reader, split)
    split.describe(reader.state)
    resumed = MemoryReader(store, copied(reader.state))
    assert_same_windows(split, rebuilt_from(resumed))
    assert resumed.state.num_lost == 0


def test_rebuild_counts_what_is_gone() -> None:
    store = MemoryStore()
    writer, reader, split = MemoryWriter(store, "w"), MemoryReader(store), new_split()
    for seed in range(60):
        writer.append(encode(make_trajectory(seed)))
    writer.poll(0.0)
    ingest_all(reader, split)
    split.describe(reader.state)
    expected = reader.state.window_entries["0"]
    assert 0 < expected < 60
    store.forget()
    resumed = MemoryReader(store, copied(reader.state))
    assert list(resumed.rebuild()) == []
    assert resumed.state.num_lost == expected
    # What the worker wrote before and sends again is dropped by its mark.
    store.append("0", "w", 60, encode(make_trajectory(59)))
    store.append("0", "w", 61, encode(make_trajectory(60)))
    assert [entry.sequence for entry in resumed.read(10, 0.0)] == [61]


def test_a_loss_behind_repeats_of_what_left_the_window_is_counted() -> None:
    store = MemoryStore()
    reader, split = MemoryReader(store), new_split()
    payloads = [encode(make_trajectory(seed)) for seed in range(60)]
    for number in range(1, 5):
        store.append("0", "w", number, payloads[number])
    for number in range(1, 22):
        store.append("0", "other", number, payloads[20 + number])
    for number in (2, 3, 4, *range(5, 16)):  # three are sent again, as by one that was cut off
        store.append("0", "w", number, payloads[number])
    ingest_all(reader, split)
    split.describe(reader.state)
    assert set(reader.state.floors) == {"w", "other"}
    edge = int(reader.state.window_edge["0"].partition("-")[0])
    assert 4 < edge < 4 + 21  # an entry of the other one, behind the first four
    whole = MemoryReader(store, copied(reader.state))
    assert_same_windows(split, rebuilt_from(whole))
    assert whole.state.num_lost == 0
    store.trim({"0": f"{edge + 3}-0"})
    robbed = MemoryReader(store, copied(reader.state))
    list(robbed.rebuild())
    assert robbed.state.num_lost == 3


def test_a_loss_is_counted_after_any_number_of_rebuilds() -> None:
    store = MemoryStore()
    writer, reader, split = MemoryWriter(store, "w"), MemoryReader(store), new_split()
    other = MemoryWriter(store, "other")
    for seed in range(1, 81):
        (other if seed % 3 == 0 else writer).append(encode(make_trajectory(seed)))
    writer.poll(0.0)
    other.poll(0.0)
    ingest_all(reader, split)
    for _ in range(3):
        split.describe(reader.state)
        expected = reader.state.window_entries["0"]
        reader = MemoryReader(store, copied(reader.state))
        split = rebuilt_from(reader)
        assert reader.state.num_lost == 0
        robbed = MemoryReader(store, copied(reader.state))
        (edge,) = reader.state.window_edge.values()
        robbed.state.window_edge = {"0": f"{int(edge.partition('-')[0]) + 2}-0"}
        list(robbed.rebuild())
        assert robbed.state.num_lost == 2
        assert expected > 2


def test_a_snapshot_of_a_program_that_knew_no_bases_is_read() -> None:
    store = MemoryStore()
    writer, reader, split = MemoryWriter(store, "w"), MemoryReader(store), new_split()
    for seed in range(60):
        writer.append(encode(make_trajectory(seed)))
    writer.poll(0.0)
    ingest_all(reader, split)
    split.describe(reader.state)
    reader.state.bases = None
    resumed = MemoryReader(store, copied(reader.state))
    assert_same_windows(split, rebuilt_from(resumed))
    assert resumed.state.num_lost == 0


def test_trimming_to_the_edge_keeps_the_window() -> None:
    store = MemoryStore()
    writer, reader, split = MemoryWriter(store, "w"), MemoryReader(store), new_split()
    for seed in range(60):
        writer.append(encode(make_trajectory(seed)))
    writer.poll(0.0)
    ingest_all(reader, split)
    split.describe(reader.state)
    assert store.trim(reader.state.window_edge) == 60 - reader.state.window_entries["0"]
    resumed = MemoryReader(store, copied(reader.state))
    assert_same_windows(split, rebuilt_from(resumed))
    assert resumed.state.num_lost == 0


# --- segment files --------------------------------------------------------------------------------


def filled(folder: Path, count: int, segment_bytes: int = 200) -> SegmentStore:
    store = SegmentStore(folder, segment_bytes=segment_bytes)
    writer = SegmentWriter(store, "w", max_pending=count)
    write(writer, 1, count)
    return store


def numbers_in(store: SegmentStore) -> list[int]:
    return [int(entry.payload.split()[1]) for entry in store.entries("0-0")]


def test_segments_are_read_again_after_reopening(tmp_path: Path) -> None:
    store = filled(tmp_path, 40)
    lineage = store.lineage
    store.close()
    assert len(list(tmp_path.glob("*.seg"))) > 3
    again = SegmentStore(tmp_path, segment_bytes=200)
    assert (again.end, again.lineage, again.num_torn_bytes) == ("40-0", lineage, 0)
    again.append("w", 41, b"payload 41")
    assert numbers_in(again) == list(range(1, 42))
    assert [entry.cursor for entry in again.entries("38-0")] == ["39-0", "40-0", "41-0"]
    again.close()


def test_a_tail_torn_anywhere_is_dropped_and_the_rest_kept(tmp_path: Path) -> None:
    filled(tmp_path, 5, segment_bytes=1 << 20).close()
    (path,) = tmp_path.glob("*.seg")
    data = path.read_bytes()
    ends = [0]
    store = SegmentStore(tmp_path)
    for count in range(1, 6):
        ends.append(len(data) * count // 5)
    store.close()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        store = SegmentStore(tmp_path)
        whole = sum(end <= length for end in ends) - 1
        assert numbers_in(store) == list(range(1, whole + 1))
        assert store.num_torn_bytes == length - ends[whole]
        store.append("w", whole + 1, b"payload %d" % (whole + 1))
        assert numbers_in(store) == list(range(1, whole + 2))
        store.close()


def test_damage_in_the_middle_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    store = filled(tmp_path, 40)
    store.close()
    first = min(tmp_path.glob("*.seg"))
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)
    with pytest.raises(SegmentError, match=first.name):
        numbers_in(SegmentStore(tmp_path))


def test_a_missing_segment_is_an_error(tmp_path: Path) -> None:
    filled(tmp_path, 40).close()
    sorted(tmp_path.glob("*.seg"))[1].unlink()
    with pytest.raises(SegmentError, match="missing"):
        numbers_in(SegmentStore(tmp_path))


@pytest.mark.parametrize("target", [0, 1, 7, 8, 20, 39, 40])
def test_going_back_to_a_snapshot_removes_what_came_later(tmp_path: Path, target: int) -> None:
    store = filled(tmp_path, 40)
    assert store.truncate(f"{target}-0") == 40 - target
    assert numbers_in(store) == list(range(1, target + 1))
    writer = SegmentWriter(store, "w", first_sequence=target + 1)
    write(writer, target + 1, target + 3)
    store.close()
    again = SegmentStore(tmp_path)
    assert numbers_in(again) == list(range(1, target + 4))
    assert [e.sequence for e in again.entries("0-0")] == list(range(1, target + 4))
    with pytest.raises(SegmentError, match="cannot go back"):
        again.truncate("99-0")
    again.close()


def test_trimmed_segments_are_gone_and_numbers_go_on(tmp_path: Path) -> None:
    store = filled(tmp_path, 40)
    removed = store.trim("25-0")
    assert 0 < removed < 25
    assert numbers_in(store) == list(range(removed + 1, 41))
    store.trim("41-0")
    store.close()
    again = SegmentStore(tmp_path)
    assert again.end == "40-0"
    with pytest.raises(SegmentError, match="cannot go back"):
        again.truncate("3-0")
    again.close()


def test_interrupted_and_resumed_equals_uninterrupted(tmp_path: Path) -> None:
    """A snapshot at any point, a crash later, and the games after it played again."""
    payloads = [encode(make_trajectory(seed)) for seed in range(60)]
    rng = random.Random(3)
    store = SegmentStore(tmp_path, segment_bytes=2000)
    writer, reader, split = SegmentWriter(store, "w"), SegmentReader(store), new_split()
    for number, payload in enumerate(payloads[:40], 1):
        writer.append(payload)
        if rng.random() < 0.5:
            writer.poll(0.0)
            ingest_all(reader, split) if rng.random() < 0.5 else None
        if number == 30:
            writer.poll(0.0)
            split.describe(reader.state)
            saved = (copied(reader.state), store.end, writer.next_sequence)
    store.close()
    state, end, sequence = saved

    store = SegmentStore(tmp_path, segment_bytes=2000)
    assert store.truncate(end) > 0
    writer = SegmentWriter(store, "w", first_sequence=sequence)
    reader = SegmentReader(store, state)
    split = rebuilt_from(reader)
    for payload in payloads[30:]:
        writer.append(payload)
        writer.poll(0.0)
    ingest_all(reader, split)

    memory, straight = MemoryStore(), new_split()
    other = MemoryWriter(memory, "w")
    for payload in payloads:
        other.append(payload)
    other.poll(0.0)
    ingest_all(MemoryReader(memory), straight)
    assert_same_windows(split, straight)
    assert reader.state.num_lost == 0
    store.close()
