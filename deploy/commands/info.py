"""``games`` and ``warmup``. Room: deploy; light imports."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from deploy.commands import UserError

if TYPE_CHECKING:
    from engine.game import GameSpec


def all_specs() -> list[GameSpec]:
    """Return the specs of all games. Raises UserError for a package whose game does not load."""
    from engine.game import UnknownGameError, game_names, get_spec

    try:
        return [get_spec(name) for name in game_names()]
    except UnknownGameError as error:
        raise UserError(str(error)) from error


def games() -> int:
    """List the games with their rules, options and encoders."""
    lines: list[str] = []
    for spec in all_specs():
        default = spec.make()
        lines.append(f"{spec.name}")
        lines.append(f"  rules     {', '.join(spec.presets)}")
        lines.append(f"  encoders  {', '.join(encoder.name for encoder in spec.encoders)}")
        lines.append(f"  options   (as in {next(iter(spec.presets))}; change one with --set)")
        for option, word in spec.describe(default).items():
            known = spec.options[option]
            values = known.values
            allowed = ", ".join(values) if values is not None else f"{known.low} to {known.high}"
            text = f"    {option} = {word}  [{allowed}]"
            lines.append(f"{text}  {known.help}".rstrip())
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def warmup() -> int:
    """Compile the kernels of every game, once for this version of the program."""
    from deploy.warm import warm_up

    warm_up(spec.name for spec in all_specs())
    return 0
