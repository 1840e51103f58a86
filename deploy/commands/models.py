"""``match`` and ``export``: what is done with models and players. Room: deploy; light imports."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
from tyro.conf import Positional, UseAppendAction, arg

from deploy.commands import UserError, option
from deploy.presets import MAX_SEED


def export(
    run: Annotated[Positional[str], arg(metavar="RUN[@champion|@vNUMBER]")],
    out: Annotated[Positional[str], arg(metavar="OUT.onnx")],
    /,
) -> int:
    """Write a model of a run to a file that knows its game, rules and encoder.

    Args:
        run: Folder or name of the run; its champion, or the version behind the @.
        out: File to write; it is replaced.
    """
    from league.evaluator import read_metadata
    from league.models import ModelError
    from league.players import locate_model

    name, version = split_version(run)
    target = Path(out)
    if target.suffix != ".onnx":
        raise UserError(f"output {out!r}: allowed is a file name that ends in .onnx")
    try:
        source = locate_model(name, version)
        metadata = read_metadata(source)
    except ModelError as error:
        raise UserError(str(error)) from error
    temporary = target.with_name(f".{target.name}.new")
    try:
        temporary.write_bytes(source.read_bytes())
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UserError(f"output {out!r}: {error}") from error
    sys.stdout.write(
        f"{out}: {metadata.game}, version {metadata.version} of run {name}, "
        f"{metadata.step} optimizer steps, {source.stat().st_size / 1e6:.1f} MB\n"
    )
    return 0


def split_version(run: str) -> tuple[str, int | None]:
    """Return run and version (None: the champion) of ``RUN``, ``RUN@champion`` or ``RUN@v12``."""
    name, at, word = run.rpartition("@")
    if not at:
        return run, None
    if name and word == "champion":
        return name, None
    if name and word[:1] == "v" and word[1:].isascii() and word[1:].isdecimal():
        return name, int(word[1:])
    raise UserError(f"run {run!r}: allowed are RUN, RUN@champion and RUN@v12")


def match(
    first: Annotated[Positional[str], arg(metavar="A")],
    second: Annotated[Positional[str], arg(metavar="B")],
    /,
    *,
    games: Annotated[int, arg(metavar="N")],
    game: Annotated[str, option("GAME")] = "",
    rules: Annotated[str, option("PRESET")] = "",
    set: Annotated[UseAppendAction[tuple[str, ...]], option("OPTION=WORD")] = (),
    seed: Annotated[int, option("SEED")] = 0,
    sequential: Annotated[str, option("p1=0.6,alpha=0.01")] = "",
    json: Annotated[bool, option("")] = False,
) -> int:
    """Play two players against each other, every deal twice with the sides exchanged.

    A player is random, rules, ismcts:2000 (search with playouts), RUN@champion:128, RUN@v12:0 or
    file.onnx:400; the number is simulations a move, 0 the policy alone. Where the game has them,
    pimc:25x4, rollouts:50 and level:3 are players too.

    Args:
        first: A player.
        second: Its opponent.
        games: Number of games, even.
        game: Needed when neither player is a model.
        rules: Rule preset of the game; needed when neither player is a model.
        set: Rule options, such as --set sum_cards=2.
        seed: Number that all deals follow from.
        sequential: End as soon as a sequential test on decided pairs says whether A is stronger;
            --games is then the most. Settings, with a comma between them: p0, p1, alpha, beta.
        json: Print all figures as JSON.
    """
    if not 0 <= seed <= MAX_SEED:
        raise UserError(f"--seed {seed}: allowed is a whole number from 0 to {MAX_SEED}")
    from rich.console import Console

    from deploy import report
    from engine.game import UnknownGameError
    from league.duplicate import OddGamesError
    from league.models import ModelError
    from league.players import PlayerError
    from league.sequential import SequentialError

    try:
        found = report.match(
            (first, second),
            games,
            seed,
            game=game,
            rules=rules,
            options=rule_options(set),
            sequential=sequential,
            console=None if json else Console(stderr=True),
        )
    except (PlayerError, ModelError, UnknownGameError, OddGamesError, SequentialError) as error:
        raise UserError(str(error)) from error
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
    else:
        report.print_match(found)
    return 0


def rule_options(settings: Iterable[str]) -> dict[str, str]:
    """Return ``option=word`` texts as a dictionary. Raises UserError."""
    options: dict[str, str] = {}
    for setting in settings:
        name, equals, word = setting.partition("=")
        if not (name and equals and word):
            raise UserError(f"--set {setting!r}: write option=word, such as sum_cards=2")
        options[name.strip()] = word.strip()
    return options
