"""Which rule-based player it is: a hash of golden games.

Room: league. May import: engine. Ratings are anchored at the rule-based player of the game. When it
or the rules change, the same seeds give other games and another hash, and what was played against
the former one is not mixed with what is played against this one.
"""

from __future__ import annotations

import hashlib
from typing import Any

from engine.game import GameSpec
from engine.play import Table
from engine.players import RulePlayer
from league.duplicate import game_jobs, pair_jobs

NUM_PAIRS = 16
"""Golden games: both replays of so many deals."""
_SEED = 0x474F4C44


def anchor_hash(spec: GameSpec, game: Any) -> str:
    """Return the hex hash of golden games that the rule-based player plays against itself."""
    players = [RulePlayer(spec, game), RulePlayer(spec, game)]
    jobs = [job for pair in pair_jobs(_SEED, range(NUM_PAIRS)) for job in game_jobs(game, pair)]
    results = Table(spec, game, players, jobs, num_slots=len(jobs)).play_all()
    digest = hashlib.sha256(repr(sorted(spec.describe(game).items())).encode())
    for result in sorted(results, key=lambda result: (result.job.pair, result.job.replay)):
        figures = (result.plies, result.digest, result.returns.tolist())
        digest.update(repr(figures).encode())
    return digest.hexdigest()[:16]
