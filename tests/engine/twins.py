"""What the comparisons of a compiled game with its naive twin share."""

from __future__ import annotations


class Mismatch(AssertionError):
    """Engine and twin disagree."""


def expect(what: str, engine: object, naive: object) -> None:
    """Raise Mismatch unless both say the same."""
    if engine != naive:
        raise Mismatch(f"{what}: engine {engine!r}, naive {naive!r}")


class Looking:
    """How often a pair compares all that its seats know. Legal moves are compared at every ply.

    What differs stays different, as a rule: a long search among many games need not look at all of
    it in every position.
    """

    every = 1
    """Every so many looks compare all."""
    _num_looks = 0

    def is_due(self) -> bool:
        """Count a look; return whether it compares all."""
        self._num_looks += 1
        return self._num_looks % self.every == 0
