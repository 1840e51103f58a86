"""Checks of a configuration that need the engine, made in a process of their own.

Room: deploy. The supervisor must not load numba, so ``python -m deploy.preflight`` reads the
resolved configuration on its standard input, checks game, rules, encoder and the closing table's
opponent, and compiles the kernels once (several cold workers would all compile the same code).
"""

from __future__ import annotations

import subprocess
import sys

import msgspec

from deploy.commands import UserError
from deploy.config import RunConfig
from deploy.processes import die_with_parent

EXIT_REFUSED = 2


def check_in_child(config: RunConfig) -> None:
    """Check ``config`` in a child process. Raises UserError with what the child says."""
    child = subprocess.run(
        [sys.executable, "-m", "deploy.preflight"],
        input=msgspec.json.encode(config),
        stderr=subprocess.PIPE,
    )
    message = child.stderr.decode(errors="replace").strip()
    if child.returncode == EXIT_REFUSED:
        raise UserError(message)
    if child.returncode != 0:
        sys.stderr.write(f"{message}\n")
        raise UserError(f"checking the configuration failed (exit code {child.returncode})")


def check_game(config: RunConfig) -> None:
    """Raise UserError unless game, rules, options, encoder and yardstick exist."""
    from engine.game import UnknownGameError, get_spec
    from league.players import PlayerError, parse_player

    try:
        parse_player(config.report.opponent)
        spec = get_spec(config.game.name)
        spec.make(config.game.rules, config.game.options)
        if config.game.encoder:
            spec.encoder(config.game.encoder)
    except (UnknownGameError, PlayerError) as error:
        raise UserError(str(error)) from error


def main() -> int:
    """Check the configuration on standard input and warm up; return the exit code."""
    die_with_parent()  # compiling takes a while: nobody would wait for it any more
    config = msgspec.json.decode(sys.stdin.buffer.read(), type=RunConfig)
    try:
        check_game(config)
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_REFUSED
    from deploy.warm import warm_up

    warm_up([config.game.name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
