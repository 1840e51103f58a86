"""Who sits where in self-play: opponents by prioritised fictitious self-play, partners by rotation.

Room: league. May import: engine.rng, league.config, league.messages, league.records.

A draw is a function of (seed, key, league) alone, so a worker that is started again, or a run that
is resumed, seats the same game in the same way.

    self_play  all seats hold the newest model
    league     one side holds the newest model, all other seats hold one model of the pool
    partner    as league, but one seat of the learning side is left to the newest model and its
               partners come from the pool by rotation, so that no private convention can form

Vinyals et al.: Grandmaster level in StarCraft II using multi-agent reinforcement learning (Nature
575, 2019), Methods, "Prioritized fictitious self-play".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from engine.rng import below, make_rng, uniform
from league.config import LeagueConfig
from league.messages import LeagueState, PairRecord
from league.records import posterior_mean

MatchupKind = Literal["self_play", "league", "partner"]


class Matchup(msgspec.Struct, frozen=True, kw_only=True):
    """One game's seating."""

    kind: MatchupKind
    seat_versions: tuple[int, ...]
    """Model version per seat."""
    learner_seats: tuple[bool, ...]
    """Seats of the learning model; they always play the newest version, also after a swap."""
    learner_side: int
    """Side that the learning model is measured for (any side in self-play)."""
    opponent: int | None
    """Pool member in the opponents' seats; None in self-play."""

    @property
    def rated(self) -> bool:
        """Whether its result feeds the records: the learning side is wholly the learner's."""
        return self.kind == "league"


class Matchmaker:
    """Draws matchups for a game with fixed seats."""

    def __init__(
        self, config: LeagueConfig, num_seats: int, side_of: Sequence[int], seed: int = 0
    ) -> None:
        """``side_of[seat]`` is the seat's side. Raises ValueError for options that disagree.

        ``seed`` tells apart two matchmakers that are asked for the same keys.
        """
        if len(side_of) != num_seats or num_seats < 1:
            raise ValueError(f"side_of = {list(side_of)}: one side for each of {num_seats} seats")
        sides = sorted(set(side_of))
        if sides != list(range(len(sides))):
            raise ValueError(f"side_of = {list(side_of)}: sides are numbered from 0 without gaps")
        if config.self_play_floor > config.self_play_ceiling:
            raise ValueError(
                f"self_play_floor = {config.self_play_floor}: at most self_play_ceiling = "
                f"{config.self_play_ceiling}"
            )
        self._config = config
        self._side_of = tuple(int(side) for side in side_of)
        self._num_sides = len(sides)
        self._seed = seed

    def draw(self, key: int, league: LeagueState) -> Matchup:
        """Return the matchup of game ``key`` (uint64; consecutive keys alternate the side).

        Members of the pool that are the newest version itself are left out: such a game would be
        self-play. With nobody left every game is self-play.
        """
        pool = tuple(version for version in league.pool if version != league.newest)
        key = int(key)
        rng = make_rng(self._seed, key)
        # Drawn always, so that one decision does not shift the numbers of the next.
        kind_at, opponent_at, partner_at = (float(uniform(rng)) for _ in range(3))
        side = key % self._num_sides
        if not pool or kind_at < self_play_share(self._config, pool, league.records):
            return self.self_play(league, side)
        weights = pfsp_weights(self._config, pool, league.records)
        opponent = pool[_pick(weights, opponent_at)]
        own_seats = [seat for seat, own in enumerate(self._side_of) if own == side]
        learner_seats = own_seats
        partner: int | None = None
        if len(own_seats) > 1 and partner_at < self._config.partner_share:
            learner_seats = [own_seats[int(below(rng, len(own_seats)))]]
            partner = pool[(key // self._num_sides) % len(pool)]
        versions = [
            partner if own == side and partner is not None else opponent for own in self._side_of
        ]
        for seat in learner_seats:
            versions[seat] = league.newest
        return Matchup(
            kind="league" if partner is None else "partner",
            seat_versions=tuple(versions),
            learner_seats=tuple(seat in learner_seats for seat in range(len(self._side_of))),
            learner_side=side,
            opponent=opponent,
        )

    def self_play(self, league: LeagueState, learner_side: int = 0) -> Matchup:
        """Return the matchup in which the newest version holds every seat."""
        num_seats = len(self._side_of)
        return Matchup(
            kind="self_play",
            seat_versions=(league.newest,) * num_seats,
            learner_seats=(True,) * num_seats,
            learner_side=learner_side,
            opponent=None,
        )


def self_play_share(
    config: LeagueConfig, pool: Sequence[int], records: Mapping[int, PairRecord]
) -> float:
    """Return the share of self-play: the floor until every member of ``pool`` is beaten."""
    beaten = all(posterior_mean(records.get(version)) > 0.5 for version in pool)
    return config.self_play_ceiling if beaten else config.self_play_floor


def pfsp_weights(
    config: LeagueConfig, pool: Sequence[int], records: Mapping[int, PairRecord]
) -> NDArray[np.float64]:
    """Return the probability of each member of ``pool`` as opponent.

    (1 - p)^2 prefers those that the learner loses to, p (1 - p) those at its own level;
    ``pfsp_hard`` mixes the two. Uniform when all weights vanish.
    """
    p = np.array([posterior_mean(records.get(version)) for version in pool])
    hard = config.pfsp_hard
    return _normalised(hard * (1.0 - p) ** 2 + (1.0 - hard) * p * (1.0 - p))


def _normalised(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    total = float(weights.sum())
    if total <= 0.0:
        return np.full(len(weights), 1.0 / len(weights))
    return weights / total


def _pick(probabilities: NDArray[np.float64], at: float) -> int:
    """Return the index whose share of [0, 1) holds ``at``."""
    index = int(np.searchsorted(np.cumsum(probabilities), at, side="right"))
    return min(index, len(probabilities) - 1)
