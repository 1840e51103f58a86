"""What self-play found out about the pool: the learner's score against each member.

Room: league. May import: league.messages. Light, without numba and numpy: the owner keeps records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from league.messages import PairRecord


def posterior_mean(record: PairRecord | None) -> float:
    """Return p = (wins + 1) / (games + 2), one half without games."""
    return 0.5 if record is None else (record.wins + 1.0) / (record.games + 2.0)


def apply_result(records: dict[int, PairRecord], opponent: int, score: float) -> None:
    """Add a game against pool member ``opponent`` to ``records`` in place.

    ``score`` is the learning side's: 1 win, 0.5 draw, 0 loss. Only for matchups that are ``rated``.
    Raises ValueError for any other score.
    """
    if score not in (0.0, 0.5, 1.0):
        raise ValueError(f"score {score}: allowed are 1 (win), 0.5 (draw), 0 (loss)")
    old = records.get(opponent, PairRecord())
    records[opponent] = PairRecord(wins=old.wins + score, games=old.games + 1)


def records_of_pool(
    records: Mapping[int, PairRecord], pool: Iterable[int]
) -> dict[int, PairRecord]:
    """Return the records of ``pool``'s members alone (those of departed members are dropped)."""
    return {version: records[version] for version in pool if version in records}
