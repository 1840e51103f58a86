"""What a game declares of its records.

* Every bound, every hidden entry and every set is held; the field is named, with its value.
* Signs and sizes of integers are those of the record, up to the largest.
* Relations are asked only of records whose fields are right, and named.
* A declaration that is not of the record is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.layout import PERHAPS_SHOWN, SHOWN_TO_NONE, SHOWN_TO_OWN, Field, Layout

RECORD = np.dtype(
    (
        np.record,
        [
            ("hands", np.uint64, (3,)),
            ("seed", np.uint64),
            ("score", np.int16, (2,)),
            ("card", np.int8),
            ("own", np.int8, (3,)),
            ("grid", np.uint8, (2, 2)),
            ("long", np.int64),
        ],
    )
)
FIELDS = {
    "hands": Field(cards=0xFF, most=3, shown=SHOWN_TO_OWN, used=2),
    "seed": Field(cards=(1 << 64) - 1, shown=SHOWN_TO_NONE),
    "score": Field(-300, 300),
    "card": Field(0, 5, shown=PERHAPS_SHOWN, blank=-1),
    "own": Field(0, 2, shown=SHOWN_TO_OWN, blank=-1, used=2),
    "grid": Field(1, 200),
    "long": Field(-1, 7),
}


def record() -> Any:
    """Return two records that are right as states, and as views of seat 1."""
    records = np.zeros(2, RECORD)
    records["hands"][:, 1] = 0b111
    records["own"] = (-1, 2, -1)
    records["grid"] = 1
    return records


def faults(**values: Any) -> tuple[str, str]:
    """Return what is wrong with the second record as a view of seat 1, and as a state."""
    records = record()
    records["own"][:, 0] = -1
    for name, value in values.items():
        records[name][1] = value
    layout = Layout(RECORD, FIELDS)
    states = records.copy()
    states["own"][0, 0] = 0
    if "own" not in values:
        states["own"][1, 0] = 0
    return layout.fault_of_views(records, np.array([1, 1])), layout.fault_of_states(states)


def test_what_is_right_passes() -> None:
    assert faults() == ("", "")
    assert faults(score=(-300, 300), grid=((200, 1), (1, 200)), long=-1) == ("", "")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"score": (0, 301)}, "score[1] = 301"),
        ({"score": (-301, 0)}, "score[0] = -301"),
        ({"hands": (0, 0b1111, 0)}, "hands[1] = 15"),
        ({"hands": (0, 1 << 8, 0)}, "hands[1] = 256"),
        ({"hands": (0, 1, 1)}, "hands[2] = 1"),
        ({"grid": ((1, 0), (1, 1))}, "grid[0][1] = 0"),
        ({"grid": ((1, 1), (1, 201))}, "grid[1][1] = 201"),
        ({"long": -(2**63)}, f"long = {-(2**63)}"),
        ({"long": 2**63 - 1}, f"long = {2**63 - 1}"),
        ({"card": 6}, "card = 6"),
        ({"card": -2}, "card = -2"),
    ],
)
def test_what_is_wrong_is_named_in_views_and_states(values: dict[str, Any], named: str) -> None:
    for said in faults(**values):
        assert said == f"{named} is no value of it (record 1)"


def test_a_view_holds_nothing_that_is_hidden_and_a_state_holds_it() -> None:
    assert faults(hands=(1, 0b111, 0))[0].startswith("hands[0] = 1")
    assert faults(hands=(1, 0b111, 0))[1] == ""
    assert faults(seed=2**64 - 1)[0].startswith(f"seed = {2**64 - 1}")
    assert faults(seed=2**64 - 1)[1] == ""
    assert faults(own=(0, 2, -1))[0].startswith("own[0] = 0")
    assert faults(own=(0, 2, -1))[1] == ""
    assert faults(own=(0, -1, -1))[1].startswith("own[1] = -1")
    assert faults(card=-1) == ("", "card = -1 is no value of it (record 1)")


def test_relations_are_asked_last_and_named() -> None:
    def decided(game: Any, records: Any, seats: Any) -> Any:
        assert np.all(records["card"] <= 5)
        return records["card"] == (game if seats is None else seats)

    layout = Layout(RECORD, FIELDS, 0, {"own card": decided}, {"card of the game": decided})
    records = record()
    records["own"][:, 0] = 0
    assert layout.fault_of_states(records) == ""
    records["card"][1] = 1
    assert layout.fault_of_states(records) == "card of the game: not so in record 1"
    records["card"][1] = 6
    assert layout.fault_of_states(records).startswith("card = 6")
    views = record()
    assert layout.fault_of_views(views, np.array([1, 1])) == "own card: not so in record 0"
    views["card"] = 1
    assert layout.fault_of_views(views, np.array([1, 1])) == ""
    assert layout.fault_of_views(views[:0], np.zeros(0)) == ""


def test_a_declaration_of_other_fields_is_refused() -> None:
    with pytest.raises(TypeError, match="long"):
        Layout(RECORD, {name: f for name, f in FIELDS.items() if name != "long"})
    with pytest.raises(TypeError, match="field share of float64"):
        Layout(np.dtype([("share", np.float64)]), {"share": Field()})
