"""Where a run's versions stand: ratings, results against each other, strength over time.

Room: deploy. May import: league.messages, league.ratings (numpy), msgspec. No engine: everything is
read from the files of a run, whether that is live or not.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from deploy.liveview import duration
from deploy.manifest import Manifest, ResumeError
from deploy.rundir import RunDirectory
from league.messages import (
    ANCHOR,
    EvaluationRecord,
    GateOutcome,
    PairTally,
    RatedVersion,
    RatingTable,
)
from league.ratings import rate, tally_between

MAX_POINTS = 6
"""Points of a strength curve that are shown in one line."""
MAX_RATINGS = 5
READ_ATTEMPTS = 5
"""Of a live run: a snapshot may be replaced between two reads."""


class _Ratings(msgspec.Struct):
    table: RatingTable


class _ArenaHead(msgspec.Struct):
    """What is read here of the arena's snapshot."""

    ratings: _Ratings | None = None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A version's row in the table."""

    version: int
    roles: list[str]
    """``champion``, ``newest``, ``pool``."""
    rating: float | None
    """Elo, the rule-based player has 0; None without rating games."""
    low: float | None
    high: float | None
    games: int
    wins: int
    """Games against the present champion."""
    draws: int
    losses: int


class Standings(msgspec.Struct, frozen=True, kw_only=True):
    """All of ``cardleague league``."""

    run: str
    live: bool
    newest: int
    champion: int
    pool: tuple[int, ...]
    basis: str
    """What the rating games have in common."""
    versions: list[Standing]
    """Best first, those without rating games last."""
    results: list[PairTally]
    """Rating games by pairing; -1 is the rule-based player."""
    promoted: int
    rejected: int
    undecided: int
    gates: list[GateOutcome]
    """Last ended gates, newest first."""


def load(directory: RunDirectory) -> tuple[Manifest, RatingTable]:
    """Return the manifest and the rating results it stands for. Raises ResumeError."""
    for attempt in range(READ_ATTEMPTS):
        manifest = directory.load()
        try:
            return manifest, read_table(directory, manifest)
        except ResumeError:
            if attempt == READ_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def read_table(directory: RunDirectory, manifest: Manifest) -> RatingTable:
    """Return the rating results of ``manifest``; empty ones before there are any."""
    if manifest.gate is None:
        return RatingTable()
    head = msgspec.json.decode(directory.get(manifest.gate), type=_ArenaHead)
    return head.ratings.table if head.ratings else RatingTable()


def standings(directory: RunDirectory) -> Standings:
    """Return where the versions of a run stand. Raises ResumeError."""
    manifest, table = load(directory)
    rated = {entry.version: entry for entry in rate(table).rated()}
    shown = list(rated)
    shown += [
        version
        for version in (manifest.newest, *reversed(manifest.pool))
        if version >= 0 and version not in shown
    ]
    gates = manifest.gates
    return Standings(
        run=str(directory.path),
        live=directory.is_live(),
        newest=manifest.newest,
        champion=manifest.champion,
        pool=manifest.pool,
        basis=table.basis,
        versions=[
            _standing(manifest, table, version, rated.get(version))
            for version in dict.fromkeys(shown)
        ],
        results=list(table.tallies),
        promoted=gates.promoted,
        rejected=gates.rejected,
        undecided=gates.undecided,
        gates=gates.outcomes[::-1],
    )


def _standing(
    manifest: Manifest, table: RatingTable, version: int, rated: RatedVersion | None
) -> Standing:
    roles = (
        ("champion", version == manifest.champion),
        ("newest", version == manifest.newest),
        ("pool", version in manifest.pool and version != manifest.champion),
    )
    against = PairTally(first=version, second=manifest.champion)
    if version != manifest.champion:
        against = tally_between(table, version, manifest.champion)
    return Standing(
        version=version,
        roles=[role for role, holds in roles if holds],
        rating=rated.rating if rated else None,
        low=rated.low if rated else None,
        high=rated.high if rated else None,
        games=2 * rated.num_pairs if rated else 0,
        wins=against.wins,
        draws=against.draws,
        losses=against.losses,
    )


# --- in words -------------------------------------------------------------------------------------


def name_of(version: int) -> str:
    """Return ``v12``, or ``rules`` for the anchor."""
    return "rules" if version == ANCHOR else f"v{version}"


def rating_lines(table: RatingTable) -> list[str]:
    """Return the best ratings in a line or two; none without rating games."""
    rated = rate(table).rated()
    if not rated:
        return []
    best = ", ".join(
        f"v{entry.version} {entry.rating:+.0f} ({entry.low:+.0f} to {entry.high:+.0f})"
        for entry in rated[:MAX_RATINGS]
    )
    more = f" and {len(rated) - MAX_RATINGS} more" if len(rated) > MAX_RATINGS else ""
    return [f"ratings in Elo, rules = 0, 95 % intervals: {best}{more} (cardleague league)"]


def curve_lines(records: Sequence[EvaluationRecord]) -> list[str]:
    """Return the strength over training time, a line for each opponent and way of playing."""
    curves: dict[tuple[str, int], list[EvaluationRecord]] = {}
    for record in records:
        curves.setdefault((record.opponent, record.simulations), []).append(record)
    lines = []
    for (opponent, simulations), points in sorted(curves.items()):
        points.sort(key=lambda point: (point.version, point.games))
        chosen = {point.version: point for point in points}  # of several the one of most games
        shown = _spread(list(chosen.values()))
        how = f"{simulations} simulations" if simulations else "policy alone"
        text = ", ".join(
            f"v{point.version} ({_at(point)}) {100 * point.win_rate:.1f} %" for point in shown
        )
        lines.append(f"strength against {opponent}, {how}: {text}")
    return lines


def _at(point: EvaluationRecord) -> str:
    return duration(point.elapsed_s) if point.elapsed_s >= 0 else "?"


def _spread(points: list[EvaluationRecord]) -> list[EvaluationRecord]:
    """Return at most MAX_POINTS of ``points``, the first and the last among them."""
    if len(points) <= MAX_POINTS:
        return points
    last = len(points) - 1
    return [points[round(i * last / (MAX_POINTS - 1))] for i in range(MAX_POINTS)]
