"""The order of the classical players, each neighbouring pair by the sequential test.

``python -m tests.bench.order [GAME …]`` (or ``make order``) plays ``cardleague match --sequential``
for every pair, the stronger one first, and fails unless each test ends for it.
"""

from __future__ import annotations

import itertools
import sys
import time

from deploy import report
from league import sprt

TEST = "p1=0.6,alpha=0.01"
MAX_GAMES = 4000
SEED = 1
ORDER: dict[str, tuple[str, tuple[str, ...]]] = {
    "durak": ("report_d", ("level:4", "level:3", "level:2", "level:1")),
    "cuarenta": ("report_b_2p", ("level:4", "level:3", "level:2", "level:1")),
    "forty_fives": ("report_c", ("ismcts:1000", "rules", "random")),
}
"""By game: rules, and its players from the strongest to the weakest."""


def pairs(game: str) -> list[tuple[str, str]]:
    """Return the neighbouring players of ``game``, the weakest pair first."""
    players = ORDER[game][1]
    return list(itertools.pairwise(players))[::-1]


def main(games: list[str]) -> int:
    """Play all pairs of ``games`` (default: all), print each; return how many were not shown."""
    missed = 0
    for game in games or list(ORDER):
        rules, _ = ORDER[game]
        for names in pairs(game):
            began = time.monotonic()
            found = report.match(names, MAX_GAMES, SEED, game=game, rules=rules, sequential=TEST)
            assert found.sequential is not None
            print(
                f"{game} {rules}: {names[0]} against {names[1]}: {found.num_games} games, won "
                f"{found.wins}, drawn {found.draws}, lost {found.losses}, "
                f"{100 * found.win_rate:.1f} %; {report.sequential_words(found)}; "
                f"{time.monotonic() - began:.0f} s",
                flush=True,
            )
            missed += found.sequential.outcome != sprt.PROMOTED
    return missed


if __name__ == "__main__":
    unknown = [game for game in sys.argv[1:] if game not in ORDER]
    if unknown:
        raise SystemExit(f"{unknown}: allowed are {', '.join(ORDER)}")
    raise SystemExit(min(main(sys.argv[1:]), 1))
