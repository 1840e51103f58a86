"""What enters the window, and what is counted of it.

* What is no game of this run is passed over, counted by reason and told in words, not for ever.
* The books are exact over rejections, evictions, resumes, rebuilds and a lost stream.
* A rebuild passes over the same entries and misses none.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

import msgspec
import numpy as np
import pytest

from learner.ingest import Ingest, IngestState
from learner.messages import IngestedTotals
from replay.codec import decode, encode
from replay.memory import MemoryReader, MemoryStore
from replay.trajectory import SCHEMA_VERSION, Trajectory
from tests.learner.kuhn_data import GAME, RUN, SPEC, config, payloads

GAMES = list(payloads(1500, seed=7))
SMALL = config(window_positions=1000, held_out_share=0.2)


def with_header(**changes: Any) -> bytes:
    game = decode(GAMES[0], SPEC)
    return encode(dataclasses.replace(game, header=msgspec.structs.replace(game.header, **changes)))


def without_visits() -> bytes:
    game = next(g for g in (decode(p, SPEC) for p in GAMES) if g.num_eligible())
    game.visits[:2] = 0
    return encode(game)


def with_views(**values: Any) -> bytes:
    """A game with impossible views, sealed as a worker seals its games."""
    game = decode(GAMES[0], SPEC)
    for name, value in values.items():
        game.views[name] = value
    return encode(game)


def of_other_actions() -> bytes:
    """A game whose policy examples have three actions; Kuhn has two."""
    game = next(g for g in (decode(p, SPEC) for p in GAMES) if g.num_eligible())
    counts = game.examples["num_actions"]
    counts[counts > 0] = 3
    visits = np.ones(int(counts.sum()), np.uint16)
    return encode(Trajectory(game.header, game.examples, game.views, visits))


def of_the_other_seat() -> bytes:
    """A game with choices of seats that are not to move."""
    game = decode(next(p for p in GAMES if decode(p, SPEC).num_eligible()), SPEC)
    game.examples["seat"] ^= 1
    game.views["cards"] = game.views["cards"][:, ::-1].copy()
    return encode(game)


def of_another_record() -> bytes:
    """A game of another program's Kuhn: its states have other fields."""
    game = decode(GAMES[0], SPEC)
    views = np.zeros(len(game.examples), np.dtype([("other", np.int8)])).view(np.recarray)
    return encode(Trajectory(game.header, game.examples, views, game.visits))


def too_large() -> bytes:
    game = decode(next(p for p in GAMES if decode(p, SPEC).num_eligible() == 2), SPEC)
    places = np.repeat(np.arange(len(game.examples)), 1200)
    counts = game.examples["num_actions"]
    ends = np.cumsum(counts)
    visits = [game.visits[e - c : e] for c, e in zip(counts, ends, strict=True)]
    return encode(
        Trajectory(
            game.header,
            game.examples[places],
            game.views[places],
            np.concatenate([visits[place] for place in places]),
        )
    )


def later_schema() -> bytes:
    return GAMES[0][:4] + struct.pack("<H", SCHEMA_VERSION + 1) + GAMES[0][6:]


WRONG = {
    "damaged": [b"", b"junk" * 20, GAMES[0][:-1], GAMES[0][:40] + b"x" + GAMES[0][41:]],
    "schema": [later_schema()],
    "game": [with_header(game="whist")],
    "record": [of_another_record()],
    "rules": [with_header(rules={"ante": "2"})],
    "run": [with_header(run_id="other")],
    "view": [
        with_views(num_plies=100),
        with_views(history=-100),
        with_views(cards=100),
        with_views(cards=0),
    ],
    "visits": [without_visits(), of_other_actions(), of_the_other_seat()],
    "content": [
        with_header(returns=(float("nan"), 1.0)),
        with_header(reward_terms=((1.0, 2.0), (1.0, 2.0))),
        with_header(hand_ends=((0, 10**12),)),
        with_header(num_plies=-1),
        with_header(num_simulations=2**62),
    ],
    "size": [too_large()],
}


def new_ingest(store: MemoryStore, state: bytes = b"") -> Ingest:
    ingest = Ingest(SMALL, SPEC, GAME, MemoryReader(store), RUN)
    if state:
        ingest.restore(msgspec.json.decode(state, type=IngestState))
    return ingest


def saved(ingest: Ingest) -> bytes:
    return msgspec.json.encode(ingest.state())


def read_all(ingest: Ingest) -> IngestedTotals:
    while ingest.read(0.0):
        check_books(ingest)
    return ingest.totals.copy()


def check_books(ingest: Ingest) -> None:
    totals = ingest.totals
    assert totals.entries == totals.games + sum(totals.rejected.values())
    assert totals.games == totals.window_games + totals.evicted_games + totals.held_out_games
    assert totals.window_games == ingest.split.training.num_games


class Stream:
    """Writes games of one producer, and other things."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.sequence = 0

    def add(self, payload: bytes) -> None:
        self.sequence += 1
        self.store.append("0", "worker", self.sequence, payload)

    def add_stray(self) -> None:
        self.store.append_stray("0", "no trajectory of any producer")


@pytest.mark.parametrize("reason", list(WRONG))
def test_what_does_not_belong_is_passed_over_counted_and_told(reason: str) -> None:
    stream = Stream()
    for payload in WRONG[reason]:
        stream.add(payload)
        stream.add(GAMES[1])
    ingest = new_ingest(stream.store)
    totals = read_all(ingest)
    count = len(WRONG[reason])
    assert totals.rejected == {reason: count}
    assert (totals.entries, totals.games) == (2 * count, count)
    notes = ingest.take_notes()
    assert len(notes) == min(count, 3)
    assert all(f"({reason}, number" in note and "of worker" in note for note in notes)


def test_a_flood_is_told_at_its_beginning_and_at_powers_of_ten() -> None:
    stream = Stream()
    for _ in range(150):
        stream.add(b"junk")
        stream.add_stray()
    ingest = new_ingest(stream.store)
    totals = read_all(ingest)
    assert totals.rejected == {"damaged": 150, "stray": 150}
    notes = ingest.take_notes()
    assert [note.rpartition("number ")[2] for note in notes if "damaged" in note] == [
        *("1)", "2)", "3)", "10)", "100)")
    ]
    assert len(notes) == 10
    assert max(map(len, notes)) <= 300


def mixed(first: int, last: int) -> Stream:
    stream = Stream()
    everything = [payload for group in WRONG.values() for payload in group]
    for number, payload in enumerate(GAMES[first:last]):
        stream.add(payload)
        if number % 7 == 0:
            stream.add(everything[number % len(everything)])
        if number % 31 == 0:
            stream.add_stray()
    return stream


def test_books_are_exact_over_evictions_resumes_and_rebuilds() -> None:
    stream = mixed(0, 1500)
    straight = new_ingest(stream.store)
    expected = read_all(straight)
    assert expected.evicted_games > 100
    assert len(expected.rejected) == len(WRONG) + 1
    assert expected.lost_entries == 0

    ingest = new_ingest(stream.store)
    while ingest.read(0.0):
        state = saved(ingest)
        stream.store.trim(ingest.split.window_edge())
        ingest = new_ingest(stream.store, state)
        check_books(ingest)
        assert saved(ingest) == state
        assert len(ingest.take_notes()) <= 1
    assert ingest.totals == expected
    assert [g.sequence for g in ingest.split.training.games] == [
        g.sequence for g in straight.split.training.games
    ]


def test_a_lost_stream_moves_the_window_to_the_evicted_and_counts_no_entry_twice() -> None:
    stream = mixed(0, 600)
    ingest = new_ingest(stream.store)
    before = read_all(ingest)
    state = saved(ingest)
    stream.store.forget()
    stream.add_stray()
    stream.add(GAMES[600])
    # The one that lives on keeps its window; the one that starts again has lost it.
    ingest.take_notes()
    totals = read_all(ingest)
    assert totals.entries == before.entries + 2
    assert f"begin anew: the {before.window_games} games" in " ".join(ingest.take_notes())
    again = new_ingest(stream.store, state)
    check_books(again)
    assert again.totals.window_games == 0
    assert again.totals.evicted_games == before.evicted_games + before.window_games
    assert again.totals.lost_entries > 0
    notes = " ".join(again.take_notes())
    assert "begin anew" in notes
    assert f"{again.totals.lost_entries} accepted trajectories are gone" in notes
    assert read_all(again).entries == before.entries + 2


def test_games_that_the_program_cannot_read_any_more_leave_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = mixed(0, 100)
    ingest = new_ingest(stream.store)
    before = read_all(ingest)
    state = saved(ingest)
    monkeypatch.setattr("replay.codec.SCHEMA_VERSION", SCHEMA_VERSION + 7)
    again = new_ingest(stream.store, state)
    check_books(again)
    assert (again.totals.window_games, again.totals.games) == (0, before.games)
    (note,) = again.take_notes()
    assert f"schema {SCHEMA_VERSION}, this program reads {SCHEMA_VERSION + 7}" in note


def test_totals_of_an_earlier_program_are_made_whole() -> None:
    stream = Stream()
    for payload in GAMES[:30]:
        stream.add(payload)
    ingest = new_ingest(stream.store)
    read_all(ingest)
    old = msgspec.json.decode(saved(ingest))
    for name in ("entries", "rejected", "window_games", "evicted_games"):
        del old["totals"][name]
    del old["reader"]["strays"]
    again = new_ingest(stream.store, msgspec.json.encode(old))
    check_books(again)
    assert again.totals.entries == 30
