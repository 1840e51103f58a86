"""Whether a worker's saved games are games: for snapshots, whose numbers compiled code would trust.

Room: actors. May import: engine, league (what a matchup is), the record of replay.trajectory.

A snapshot may have been edited, or belong to another program. What kernels use as indices, counts
and positions is held against the rules, and the games against the searches that belong to them; the
trees themselves check themselves (engine.search.checking).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from actors.lockstep import (
    HAND,
    NEWEST,
    NUM_EXAMPLES,
    NUM_VISITS,
    PLY,
    SEARCHING,
    Games,
    write_roots,
)
from engine import rules
from engine.game import GameSpec
from engine.search.tree import EMPTY
from league.matchmaking import Matchup
from replay.trajectory import POLICY


class GamesError(ValueError):
    """Saved games that no worker has left; names what disagrees."""


def _demand(holds: Any, what: str) -> None:
    """Raise GamesError for the first game in which ``holds`` [G, ...] is not so."""
    bad = ~np.asarray(holds)
    if bad.any():
        raise GamesError(f"games of a worker snapshot: {what} (game {int(np.argwhere(bad)[0][0])})")


def check_models(
    games: Games, trees: Any, search_slots: Any, versions: Sequence[int], newest: tuple[int, int]
) -> None:
    """Raise GamesError unless every slot that is in use holds a model.

    Args:
        games: G games.
        trees: engine.search.tree.TREE[G].
        search_slots: int32[G] slot of each search, -1 before the first.
        versions: model version in each slot, -1 where there is none.
        newest: slot and version of the newest model; version -1 before there is one.
    """
    loaded = np.asarray(versions) >= 0
    slot, version = newest
    if slot not in (0, 1) or (version >= 0 and versions[slot] != version):
        raise GamesError(f"worker snapshot with version {version} in slot {slot}: {versions[:2]}")
    alive = trees["status"] != EMPTY
    for name, used, least in (
        ("seats", games.seat_models, NEWEST),
        ("searches", search_slots, -1),
        ("trees", np.where(alive, trees["model"], -1), -1),
    ):
        inside = (used >= least) & (used < len(loaded))
        held = loaded[np.clip(used, 0, len(loaded) - 1)]
        _demand(inside & (held | (used < 0)), f"a slot without a model ({name})")


def check_seating(games: Games, matchups: Sequence[Matchup | None], sides: int) -> None:
    """Raise GamesError unless each game has a matchup that fits its seats."""
    seats = games.seat_models.shape[1]
    if len(matchups) != len(games.states):
        raise GamesError(f"worker snapshot with {len(matchups)} matchups")
    for g, matchup in enumerate(matchups):
        fits = (
            matchup is not None
            and len(matchup.seat_versions) == len(matchup.learner_seats) == seats
            and 0 <= matchup.learner_side < sides
            and [slot == NEWEST for slot in games.seat_models[g]] == list(matchup.learner_seats)
        )
        if not fits:
            raise GamesError(f"games of a worker snapshot: matchup (game {g})")


def check_games(spec: GameSpec, game: Any, games: Games, trees: Any, roots: Any) -> None:
    """Raise GamesError unless ``games`` (all begun) and their searches can go on.

    Args:
        spec: the game.
        game: its rule options.
        games: G games.
        trees: engine.search.tree.TREE[G], checked already.
        roots: state_dtype[G], the views that are searched.
    """
    _check_records(spec, games, int(rules.num_seats(game)))
    layout = spec.layout(game)
    written = np.arange(games.examples.shape[1]) < games.counters[:, NUM_EXAMPLES, None]
    fault = layout.fault_of_states(games.states)
    fault = fault or layout.fault_of_views(games.views[written], games.examples["seat"][written])
    if fault:
        raise GamesError(f"games of a worker snapshot: {fault}")
    _demand(games.status == SEARCHING, "status")
    _demand(trees["status"] != EMPTY, "no search")
    seats, views = np.zeros(len(roots), np.int64), spec.new_states(len(roots))
    write_roots(game, games, seats, views)
    _demand(seats == trees["seat"], "seat to move")
    same = np.array([a.tobytes() == b.tobytes() for a, b in zip(views, roots, strict=True)])
    _demand(same, "the search is of another position")


def _check_records(spec: GameSpec, games: Games, num_seats: int) -> None:
    """Check what has been written for the trajectories."""
    counters = games.counters
    for counter, size, what in (
        (NUM_EXAMPLES, games.examples.shape[1], "number of examples"),
        (NUM_VISITS, games.visits.shape[1], "number of visits"),
        (HAND, games.hand_ends.shape[1], "number of hands"),
        (PLY, spec.max_plies, "number of plies"),
    ):
        _demand((counters[:, counter] >= 0) & (counters[:, counter] <= size), what)
    _demand(counters >= 0, "counters")
    examples = games.examples
    written = np.arange(examples.shape[1]) < counters[:, NUM_EXAMPLES, None]
    _demand((examples["seat"] < num_seats) | ~written, "seat of an example")
    _demand((examples["hand"] <= counters[:, HAND, None]) | ~written, "hand of an example")
    counts = np.where(written, examples["num_actions"], 0).astype(np.int64)
    _demand(counts <= spec.max_actions, "actions of an example")
    _demand(counts.sum(axis=1) == counters[:, NUM_VISITS], "visits of the examples")
    _demand((counts > 0) | ((examples["flags"] & POLICY) == 0) | ~written, "visits of a policy")
    ended = np.arange(games.hand_ends.shape[1]) < counters[:, HAND, None]
    rows = games.hand_ends
    inside = (rows >= 0) & (rows < max(1, spec.num_equity_states))
    _demand(inside | ~ended[:, :, None], "equity row of a hand")
