"""Position documents: typed fields, and errors that name what is wrong with them.

Room: engine. Standard library only. A document is what a JSON file holds, so that nothing about it
is certain. Every mistake is a PositionError of one line with the value and what is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

COMMON_KEYS = ("id", "game", "kind", "rules", "expect")
"""What every document may have: its name, its rules, and the answer that a test wants."""
MOST_SHOWN = 60
"""Characters of a value that a message repeats."""


class PositionError(ValueError):
    """A document that is no position; names the value and what is allowed."""


def shown(value: object) -> str:
    """Return ``value`` as a message repeats it: on one line, and not all of a long one."""
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


class Fields:
    """The fields of one document."""

    def __init__(
        self,
        document: Mapping[str, Any],
        kind: str,
        needed: Sequence[str],
        optional: Sequence[str] = (),
    ) -> None:
        """Check the kind and the keys. A document without a kind is taken to be of this one.

        Raises:
            PositionError: Another kind, a needed key that is missing, or one that is unknown.
        """
        if document.get("kind", kind) != kind:
            raise PositionError(f"position of kind {shown(document['kind'])}: allowed is {kind}")
        for key in needed:
            if key not in document:
                allowed = " and ".join(map(repr, needed))
                raise PositionError(f"position without {key!r}: it needs {allowed}")
        allowed_keys = (*needed, *optional)
        for key in document:
            if key not in allowed_keys and key not in COMMON_KEYS:
                allowed = ", ".join((*allowed_keys, *COMMON_KEYS))
                raise PositionError(f"key {shown(key)} of a position: allowed are {allowed}")
        self._document = document

    def __contains__(self, key: str) -> bool:
        """Return whether the document has ``key``, with a value that is not null."""
        return self._document.get(key) is not None

    def words(self, key: str, low: int, high: int, noun: str = "cards") -> list[str]:
        """Return a list of ``low`` to ``high`` words; one that is missing is empty."""
        return words(key, self._document.get(key, []), low, high, noun)

    def word(self, key: str, allowed: Sequence[str]) -> str:
        """Return one of the words ``allowed``."""
        value = self._document.get(key)
        if value not in allowed:
            raise PositionError(f"{key} {shown(value)}: allowed are {', '.join(allowed)}")
        return str(value)

    def number(self, key: str, low: int, high: int, default: int) -> int:
        """Return a whole number from ``low`` to ``high``."""
        value = self._document.get(key, default)
        if not is_number(value) or not low <= value <= high:
            raise PositionError(f"{key} {shown(value)}: allowed are {low} to {high}")
        return int(value)

    def index(self, key: str, length: int) -> int | None:
        """Return a place in a list of ``length``, or None."""
        value = self._document.get(key)
        if value is None or (is_number(value) and 0 <= value < length):
            return value
        allowed = f"0 to {length - 1} or null" if length else "null"
        raise PositionError(f"{key} {shown(value)}: allowed are {allowed}")

    def get(self, key: str) -> Any:
        """Return a value that is not checked; None where it is missing."""
        return self._document.get(key)


def is_number(value: object) -> bool:
    """Return whether ``value`` is a whole number (true and false are none)."""
    return isinstance(value, int) and not isinstance(value, bool)


def words(key: str, value: object, low: int, high: int, noun: str = "cards") -> list[str]:
    """Return ``value`` as a list of words; numbers among them are written out.

    Raises:
        PositionError: No list, something else in it, or fewer than ``low`` or more than ``high``.
    """
    if not isinstance(value, list | tuple):
        raise PositionError(f"{key} {shown(value)}: allowed is a list of {noun}")
    for word in value:
        if not isinstance(word, str) and not is_number(word):
            raise PositionError(f"{key} has {shown(word)}: allowed are {noun} as words")
    if not low <= len(value) <= high:
        raise PositionError(f"{key} of {len(value)} {noun}: allowed are {low} to {high}")
    return [str(word) for word in value]
