"""``games`` and ``warmup``. Room: deploy; light imports."""

from __future__ import annotations

import sys


def games() -> int:
    """List the games with their rules, options and encoders."""
    from engine.game import game_names, get_spec

    lines: list[str] = []
    for name in game_names():
        spec = get_spec(name)
        default = spec.make()
        lines.append(f"{name}")
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

    warm_up()
    return 0
