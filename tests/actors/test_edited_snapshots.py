"""A worker's snapshot in which somebody changed numbers is refused by name, or goes on.

Behaviours checked:
* hundreds of edits, interpreted: no index leaves its array, nothing hangs, every refusal has words
* of indices and counts of every kind one by one: the refusal names what disagrees
* compiled, a refused snapshot leaves a worker that takes the right one
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from actors.arrays import pack_arrays, unpack_arrays
from actors.lockstep import HAND, NUM_EXAMPLES, NUM_VISITS, PLY
from tests.actors.test_selfplay import ListWriter, make_worker, step
from tests.interpreted import run_interpreted

EDITS = 60


@pytest.mark.parametrize("name", ["kuhn", "cuarenta"])
def test_edits_are_refused_or_harmless(name: str) -> None:
    shown = run_interpreted("tests.actors.edited_snapshots", name, "3", str(EDITS))
    found = re.search(rf"(\d+) of {EDITS} refused", shown)
    assert found
    assert EDITS / 10 < int(found[1]) < EDITS


@pytest.fixture(scope="module")
def snapshot() -> bytes:
    worker = make_worker("cuarenta", ListWriter())
    step(worker, 150)
    return worker.snapshot()


def set_counter(counter: int, value: int) -> Callable[[dict[str, Any]], None]:
    def edit(arrays: dict[str, Any]) -> None:
        arrays["games.counters"][3, counter] = value

    return edit


def set_entry(array: str, field: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(arrays: dict[str, Any]) -> None:
        target = arrays[array][field]
        target[(0,) * target.ndim] = value

    return edit


def set_flat(array: str, value: int) -> Callable[[dict[str, Any]], None]:
    def edit(arrays: dict[str, Any]) -> None:
        arrays[array].reshape(-1)[0] = value

    return edit


EDITED = [
    (set_counter(NUM_EXAMPLES, 10**6), "number of examples"),
    (set_counter(NUM_EXAMPLES, -1), "number of examples"),
    (set_counter(NUM_VISITS, 10**9), "number of visits"),
    (set_counter(NUM_VISITS, 1), "visits of the examples"),
    (set_counter(HAND, 10**6), "number of hands"),
    (set_counter(PLY, 10**6), "number of plies"),
    (set_flat("games.seat_models", 99), "slot without a model .seats"),
    (set_flat("games.seat_models", 3), "slot without a model .seats"),
    (set_flat("search_slots", -7), "slot without a model .searches"),
    (set_flat("games.status", 1), "status"),
    (set_flat("games.hand_ends", -5), ""),  # of no hand that ended
    (set_entry("games.states", "to_move", -1), "turns go round"),
    (set_entry("games.states", "dealer", 4), "dealer = 4"),
    (set_entry("games.states", "hands", 1 << 60), "hands.0. = "),
    (set_entry("games.states", "table", 1), "every card|search is of another"),
    (set_entry("games.views", "ref", 100), "ref = 100"),
    (set_entry("games.examples", "seat", 4), "seat of an example"),
    (set_entry("games.examples", "hand", 9), "hand of an example"),
    (set_entry("search.trees", "seat", 9), "seat"),
    (set_entry("search.trees", "model", 77), "model"),
    (set_entry("search.trees", "num_nodes", 10**6), "num_nodes"),
    (set_entry("search.trees", "budget", 10**6), "budget"),
    (set_entry("search.trees", "started", 10**6), "started"),
    (set_entry("search.nodes", "first_edge", 10**6), "first edge"),
    (set_entry("search.nodes", "first_child", 10**6), "first child"),
    (set_entry("search.nodes", "side", 5), "side of a node"),
    (set_entry("search.edges", "next_edge", 0), "order of edges"),
    (set_entry("search.edges", "action", 1 << 40), "order of edges|not legal"),
    (set_entry("search.edges", "child", 10**6), "child of an edge"),
    (set_entry("search.roots", "ref", 100), "ref = 100"),
]


@pytest.mark.parametrize(("edit", "named"), EDITED)
def test_an_index_or_count_that_cannot_be_is_named(
    snapshot: bytes, edit: Callable[[dict[str, Any]], None], named: str
) -> None:
    arrays = unpack_arrays(snapshot)
    edit(arrays)
    worker = make_worker("cuarenta", ListWriter())
    if not named:
        worker.restore(pack_arrays(arrays))
        return
    with pytest.raises(ValueError, match=rf"snapshot.*({named})"):
        worker.restore(pack_arrays(arrays))


def test_a_worker_that_refused_takes_the_right_snapshot(snapshot: bytes) -> None:
    whole, second = ListWriter(), ListWriter()
    worker = make_worker("cuarenta", whole)
    worker.restore(snapshot)
    step(worker, 300)
    arrays = unpack_arrays(snapshot)
    arrays["games.states"]["stock"][1] = 0
    worker = make_worker("cuarenta", second)
    with pytest.raises(ValueError, match="every card is in one place"):
        worker.restore(pack_arrays(arrays))
    worker.restore(snapshot)
    step(worker, 300)
    assert second.payloads == whole.payloads
