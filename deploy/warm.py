"""Compiles every kernel once, so that the processes of a run only load machine code.

Room: deploy. May import: engine, league, actors. The way to compile all that is played is to play
it: short matches and a few steps of self-play. A marker in the cache's folder, which is named after
the sources, says that this was done.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

NUM_GAMES = 2
SIMULATIONS = 2


def marker(game: str) -> Path:
    """Return the file that exists once ``game`` has been compiled for this program and machine."""
    from engine.jit import cache_key, cache_root

    return cache_root() / cache_key() / f"{game}.warm"


def warm_up(games: Iterable[str] | None = None) -> None:
    """Compile what ``games`` (default: all) need, unless it was done; says so if it has to."""
    from engine.game import game_names
    from engine.jit import jit_enabled

    if not jit_enabled():
        return
    cold = [name for name in games or game_names() if not marker(name).exists()]
    if not cold:
        return
    sys.stdout.write(f"compiling the kernels of {', '.join(cold)} (once) …\n")
    sys.stdout.flush()
    began = time.monotonic()
    for name in cold:
        _play(name)
        marker(name).parent.mkdir(parents=True, exist_ok=True)
        marker(name).touch()
    sys.stdout.write(f"compiled in {time.monotonic() - began:.0f} s\n")


def _play(name: str) -> None:
    """Play the shortest match in which every player that needs no model sits."""
    from engine.game import get_spec
    from league.match import play_match
    from league.players import PlayContext, build_player, parse_player, resolve

    spec = get_spec(name)
    game = spec.make()
    context = PlayContext(spec, game, batch=NUM_GAMES)
    for texts in (("random", "rules"), ("rules", f"ismcts:{SIMULATIONS}")):
        players: list[Any] = [build_player(resolve(parse_player(text)), context) for text in texts]
        play_match(spec, game, players, NUM_GAMES, 0, slots=NUM_GAMES)
