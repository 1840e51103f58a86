"""Compiles every kernel once, so that the processes of a run only load machine code.

Room: deploy. May import: every room. The way to compile all that runs is to run it: short matches,
and where torch is installed a tiny training run in a folder that is thrown away. A marker in the
cache's folder, whose name stands for the engine's sources, numba and the processor, says that this
was done for the other rooms' sources too, and for this very copy of all of them: numba's disk cache
belongs to the path and the time stamp of each source file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deploy.config import RunConfig

if TYPE_CHECKING:
    from engine.game import GameSpec
    from league.players import PlayContext

ROOT = Path(__file__).resolve().parent.parent
ROOMS_WITH_KERNELS = ("engine", "replay", "learner", "league", "actors")
NUM_GAMES = 2
SIMULATIONS = 2
MAX_TURNS = 200
"""Turns of the tiny run at the most; it ends at its first optimizer step."""
TINY_RUN: dict[str, Any] = {
    "search": {},
    "self_play": {
        "num_workers": 1,
        "games": 16,
        "full_simulations": SIMULATIONS,
        "fast_simulations": 1,
        "full_share": 1.0,
        "off_turn_share": 0.5,
    },
    "network": {"width": 8, "num_layers": 1, "candidate_width": 8},
    "learner": {
        "device": "cpu",
        "batch_size": 8,
        "window_positions": 2000,
        "min_window_positions": 100,
        "insert_slack_positions": 100_000,
    },
    "gate": {"games": NUM_GAMES, "simulations": SIMULATIONS},
    "runtime": {"kind": "inprocess", "inprocess_gate_pairs": 1},
}
"""One small run through every room."""


def marker(game: str) -> Path:
    """Return the file that exists once all that ``game`` needs has been compiled here."""
    from engine.jit import cache_key, cache_root

    digest = hashlib.sha256(bytes(ROOT))
    for room in ROOMS_WITH_KERNELS:
        for path in sorted((ROOT / room).rglob("*.py")):
            digest.update(b"%d " % path.stat().st_mtime_ns)
            digest.update(path.read_bytes())
    trains = "train" if can_train() else "play"
    return cache_root() / cache_key() / f"{game}-{trains}-{digest.hexdigest()[:16]}.warm"


def can_train() -> bool:
    """Return whether torch is installed; a node that only plays does without."""
    return importlib.util.find_spec("torch") is not None


def warm_up(games: Iterable[str] | None = None) -> None:
    """Compile what ``games`` (default: all) need, unless it was done; says so if it has to."""
    from engine.game import game_names
    from engine.jit import jit_enabled

    if not jit_enabled():
        return
    cold = [name for name in games or game_names() if not marker(name).exists()]
    if not cold:
        return
    _say(f"compiling the kernels of {', '.join(cold)} (once, about a minute each) …")
    began = time.monotonic()
    for name in cold:
        play(name)
        if can_train():
            train(name)
        marker(name).parent.mkdir(parents=True, exist_ok=True)
        marker(name).touch()
    _say(f"compiled in {time.monotonic() - began:.0f} s")


def play(name: str) -> None:
    """Play the shortest matches in which all kinds of players sit, and ask one for advice."""
    from engine.game import get_spec
    from engine.players import SearchPlayer
    from engine.search.belief import belief_for
    from engine.search.rollout import RolloutEvaluator
    from league.match import play_match
    from league.players import PlayContext, build_player, parse_player, resolve

    spec = get_spec(name)
    game = spec.make()
    context = PlayContext(spec, game, batch=NUM_GAMES)
    for texts in (("random", "rules"), ("rules", f"ismcts:{SIMULATIONS}")):
        players = [build_player(resolve(parse_player(text)), context) for text in texts]
        play_match(spec, game, players, NUM_GAMES, 0, slots=NUM_GAMES)
    if spec.recalled_plies:
        player = SearchPlayer(
            spec,
            game,
            spec.encoders[0],
            RolloutEvaluator(spec, game),
            simulations=SIMULATIONS,
            batch=NUM_GAMES,
            belief=belief_for(SIMULATIONS),
        )
        play_match(spec, game, [player, player], NUM_GAMES, 0, slots=NUM_GAMES)
    _ask(spec, game, context)


def _ask(spec: GameSpec, game: Any, context: PlayContext) -> None:
    """Ask for advice in a game that is played at the terminal, and play its first move."""
    from engine.notation import seen_move
    from engine.sitting import Sitting
    from league.advice import Advisor, as_views
    from league.players import parse_player, resolve

    sitting = Sitting(spec, game, 0)
    views = as_views([sitting.view(sitting.seat)], spec.state_dtype)
    for text in ("rules", f"ismcts:{SIMULATIONS}"):
        advisor = Advisor(resolve(parse_player(text)), context, playouts=1)
        best = advisor.advise(views, sitting.seat, sitting.key()).best
    seen_move(spec, game, sitting.state, best, 1)
    sitting.play(best)
    sitting.returns()


def train(name: str) -> None:
    """Run everything once, from self-play to a resume, in a folder that is thrown away."""
    import msgspec

    from deploy.local import LocalRuntime
    from deploy.manifest import new_manifest
    from deploy.rundir import RunDirectory

    config = msgspec.convert({**TINY_RUN, "name": "warm", "game": {"name": name}}, RunConfig)
    with tempfile.TemporaryDirectory(prefix="cardleague-warm-") as folder:
        directory = RunDirectory(Path(folder) / config.name)
        directory.prepare()
        runtime = LocalRuntime(directory, new_manifest(config, ["warmup"]))
        try:
            for _ in range(MAX_TURNS):
                runtime.turn()
                if runtime.owner.tracker.status.step:
                    runtime.turn(boundary=True)
                    break
        finally:
            runtime.close()
        saved = directory.load()
        if saved.learner is not None:
            LocalRuntime(directory, saved).close()  # what is restored is checked by kernels too
            return
    raise RuntimeError(f"warming up {name}: no optimizer step in {MAX_TURNS} turns")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
