"""What the fields of a game's records may hold, and whether given records hold it.

Room: engine. May import: numpy, engine.bits and engine.jit.

Compiled code uses numbers of a record as indices and loop bounds, and trusts them. Records that
come from outside (a stored view, a worker's snapshot) are therefore held against what their game
declares beside its record: the values of each field, and relations between fields where those of
single ones do not suffice. What passes cannot make a kernel read or write out of bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.bits import popcount
from engine.jit import kernel

SHOWN_TO_ALL, SHOWN_TO_OWN, SHOWN_TO_NONE, PERHAPS_SHOWN = range(4)
"""What a view holds: the state's value; that of the observing seat's entry alone; never it; it, or
the blank (whichever: the value has to be allowed or be the blank)."""


class Field(NamedTuple):
    """Allowed values of one field: numbers from ``low`` to ``high``, or sets of cards."""

    low: int = 0
    high: int = 0
    """Inclusive bounds of a number."""
    cards: int = 0
    """Not 0: the field is a set of these cards (bits)."""
    most: int = 64
    """Cards in such a set at the most."""
    shown: int = SHOWN_TO_ALL
    """How much of it a view holds."""
    blank: int = 0
    """What stands in a view for what is hidden, and in entries that are not used."""
    used: int = 1 << 30
    """Entries (along the first axis) in use; those behind them hold the blank."""


Relation = Callable[[Any, Any, Any], Any]
"""``(game, records [N], seats [N]) -> bool[N]``. Every field holds an allowed value by then. States
are not seen from any seat: ``seats`` is None for them."""

_OFFSET, _SIZE, _SIGNED, _LOW, _HIGH, _MOST, _SHOWN, _SEAT, _BLANK, _USED = range(10)
_COLUMNS = 10
_LEAST = np.int64(-(2**63))
_NONE = np.uint64(0)
_S8, _S16, _S24, _S32, _S63 = (np.uint64(n) for n in (8, 16, 24, 32, 63))


@kernel
def _read(raw: Any, row: Any, offset: Any, size: Any) -> Any:
    """Return the little-endian bytes of an entry as uint64."""
    value = np.uint64(raw[row, offset])
    if size == 1:
        return value
    value |= np.uint64(raw[row, offset + 1]) << _S8
    if size == 2:
        return value
    value |= np.uint64(raw[row, offset + 2]) << _S16 | np.uint64(raw[row, offset + 3]) << _S24
    if size == 4:
        return value
    high = np.uint64(raw[row, offset + 4]) | np.uint64(raw[row, offset + 5]) << _S8
    high |= np.uint64(raw[row, offset + 6]) << _S16 | np.uint64(raw[row, offset + 7]) << _S24
    return value | high << _S32


@kernel
def _as_number(value: Any, size: Any, signed: Any) -> Any:
    """Return the number that the bytes ``value`` stand for as int64; the least for larger ones."""
    if value >> _S63 != _NONE:
        return -np.int64(~value) - 1 if signed else _LEAST
    number = np.int64(value)
    if signed and number >> (8 * size - 1) == 1:
        number -= np.int64(1) << (8 * size)
    return number


@kernel
def _first_in_entry(raw: Any, seats: Any, rule: Any, cards: Any) -> Any:
    """Return the first row whose value of one entry is not allowed, or -1."""
    offset, size, signed = rule[_OFFSET], rule[_SIZE], rule[_SIGNED] == 1
    shown, blank = rule[_SHOWN], rule[_BLANK]
    most, low, high = rule[_MOST], rule[_LOW], rule[_HIGH]
    for row in range(raw.shape[0]):
        value = _read(raw, row, offset, size)
        seat = seats[row]
        hidden = rule[_USED] == 0
        if seat >= 0:
            hidden = hidden or shown == SHOWN_TO_NONE
            hidden = hidden or (shown == SHOWN_TO_OWN and rule[_SEAT] != seat)
        if not hidden:
            if cards != _NONE:
                allowed = value & ~cards == _NONE and (most >= 64 or popcount(value) <= most)
            else:
                allowed = low <= _as_number(value, size, signed) <= high
            if allowed:
                continue
            if seat < 0 or shown != PERHAPS_SHOWN:
                return row
        if _as_number(value, size, signed) != blank:
            return row
    return -1


@kernel
def _first_fault(raw: Any, seats: Any, rules: Any, cards: Any) -> Any:
    """Return ``row * K + entry`` of a value that is not allowed, -1 if there is none.

    Args:
        raw: uint8[N, bytes of a record].
        seats: int64[N] whose view a record is, -1 for a state.
        rules: int64[K, _COLUMNS], one for each entry of each field.
        cards: uint64[K], the sets.
    """
    for k in range(rules.shape[0]):
        row = _first_in_entry(raw, seats, rules[k], cards[k])
        if row >= 0:
            return row * rules.shape[0] + k
    return -1


class Layout:
    """What the records of one game variant may hold.

    Args:
        dtype: the record.
        fields: allowed values of each of its fields.
        game: rule options, handed to the relations.
        of_views: relations that views have to satisfy, by what they say.
        of_states: the same of states.

    Raises:
        TypeError: fields that are not those of the record, or of a kind that no rule can be for.
    """

    def __init__(
        self,
        dtype: np.dtype[Any],
        fields: Mapping[str, Field],
        game: Any = None,
        of_views: Mapping[str, Relation] | None = None,
        of_states: Mapping[str, Relation] | None = None,
    ) -> None:
        if set(fields) != set(dtype.names or ()):
            raise TypeError(f"values of {sorted(fields)}, the record has {dtype.names}")
        self._game, self._dtype = game, dtype
        self._of_views, self._of_states = dict(of_views or {}), dict(of_states or {})
        self.names: list[str] = []
        """Of every entry, as an error shows it."""
        rows: list[list[int]] = []
        sets: list[int] = []
        for name, field in fields.items():
            for row, label in _entries(dtype, name, field):
                rows.append(row)
                sets.append(field.cards)
                self.names.append(label)
        self._rules = np.array(rows, np.int64)
        self._sets = np.array(sets, np.uint64)

    def fault_of_views(self, views: Any, seats: NDArray[Any]) -> str:
        """Return what is wrong with views, in words; "" when each may be that of its seat.

        ``views`` is [N] records, ``seats`` is [N].
        """
        seats = np.ascontiguousarray(seats, np.int64)
        return self._fault(views, seats) or self._unmet(self._of_views, views, seats)

    def fault_of_states(self, states: Any) -> str:
        """Return what is wrong with states, in words; "" when each is one of the game."""
        seats = np.full(len(states), -1, np.int64)
        return self._fault(states, seats) or self._unmet(self._of_states, states, None)

    def _fault(self, records: Any, seats: NDArray[np.int64]) -> str:
        plain = np.ascontiguousarray(records).view(np.ndarray)
        if plain.dtype != self._dtype:
            raise TypeError(f"records of {plain.dtype}, expected {self._dtype}")
        raw = plain.view(np.uint8).reshape(len(plain), self._dtype.itemsize)
        found = int(_first_fault(raw, seats, self._rules, self._sets))
        if found < 0:
            return ""
        row, entry = divmod(found, len(self.names))
        rule = self._rules[entry]
        data = bytes(raw[row, rule[_OFFSET] : rule[_OFFSET] + rule[_SIZE]])
        value = int.from_bytes(data, "little", signed=bool(rule[_SIGNED]))
        return f"{self.names[entry]} = {value} is no value of it (record {row})"

    def _unmet(self, relations: Mapping[str, Relation], records: Any, seats: Any) -> str:
        plain = np.asarray(records).view(np.ndarray)
        for words, relation in relations.items():
            met = relation(self._game, plain, seats)
            if not np.all(met):
                return f"{words}: not so in record {int(np.argmin(met))}"
        return ""


def _entries(dtype: np.dtype[Any], name: str, field: Field) -> list[tuple[list[int], str]]:
    """Return the rule and the label of every entry of a field."""
    fields: Any = dtype.fields
    kind, offset = fields[name][:2]
    base, shape = kind.subdtype or (kind, ())
    if base.kind not in "iu":
        raise TypeError(f"field {name} of {base}: rules are for integers")
    found = []
    for i, index in enumerate(np.ndindex(*shape)):
        row = [0] * _COLUMNS
        row[_OFFSET], row[_SIZE] = offset + i * base.itemsize, base.itemsize
        row[_SIGNED] = int(base.kind == "i")
        row[_LOW], row[_HIGH], row[_MOST] = field.low, field.high, field.most
        row[_SHOWN], row[_BLANK] = field.shown, field.blank
        row[_SEAT] = index[0] if index else -1
        row[_USED] = int(not index or index[0] < field.used)
        found.append((row, name + "".join(f"[{place}]" for place in index)))
    return found
