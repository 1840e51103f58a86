"""Players as people write them: one parser and one registry of kinds.

Room: league. May import: engine, league. Kinds are registered by name (``register_kind``); the
parser knows nothing of them beyond that.

    random                  any legal action
    rules                   the game's rule-based player
    rules:careful           another one, where the game has a name for it
    pimc:25x4               25 sampled worlds, alpha-beta over 4 decisions in each
    rollouts:50             50 sampled worlds, each move followed by the rule-based player
    level:2                 the game's own player of that level
    ismcts:2000             tree search with playouts, no network
    RUN@champion:128        the champion of a training run, named under runs/ or by its folder
    RUN@v12:0               version 12 of it
    file.onnx:400           an exported model

The number is simulations a move; 0 plays a model's policy by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from engine.game import GameSpec, get_spec
from engine.players import Player, SearchPlayer
from engine.search.belief import belief_for
from league import classic_players
from league.evaluator import OnnxEvaluator, read_metadata
from league.models import ModelError, check_compatible
from league.player_kinds import (
    PlayContext,
    PlayerError,
    PlayerKind,
    PlayerSpec,
    ResolvedPlayer,
    RunLocator,
    allowed_players,
    build_player,
    kind_of,
    parse_player,
    parse_simulations,
    register_kind,
    split_text,
)
from league.stores import FileModelStore

__all__ = [
    "PlayContext",
    "PlayerError",
    "PlayerKind",
    "PlayerSpec",
    "ResolvedPlayer",
    "RunLocator",
    "agree_on_game",
    "allowed_players",
    "build_player",
    "classic_players",
    "locate_model",
    "model_player",
    "parse_player",
    "register_kind",
    "resolve",
    "run_folder",
]

RUNS = Path("runs")
"""Folder of runs that are given by name."""


# --- models of runs -------------------------------------------------------------------------------


class _ManifestHead(msgspec.Struct):
    """What is read here of a run's manifest, whose other fields are the owner's."""

    champion: int = -1


def run_folder(run: str, runs: Path = RUNS) -> Path:
    """Return the folder of ``run``, a name under ``runs`` or a path. Raises ModelError."""
    for folder in (runs / run, Path(run)):
        with contextlib.suppress(OSError):  # a name too long for a file
            if (folder / "manifest.json").is_file():
                return folder
    names = sorted(path.parent.name for path in runs.glob("*/manifest.json"))
    raise ModelError(f"run {run!r}: no such run; {runs}/ has {', '.join(names) or 'none'}")


def locate_model(run: str, version: int | None) -> Path:
    """Return the file of a run's model version (None: its champion). Raises ModelError."""
    folder = run_folder(run)
    store = FileModelStore(folder / "models")
    if version is None:
        manifest = folder / "manifest.json"
        try:
            version = msgspec.json.decode(manifest.read_bytes(), type=_ManifestHead).champion
        except (OSError, msgspec.DecodeError) as error:
            raise ModelError(f"{manifest}: not a manifest ({error})") from error
        if version < 0:
            raise ModelError(f"run {run!r} has no champion yet")
    path = store.path(version)
    if not path.is_file():
        versions = ", ".join(f"v{stored}" for stored in store.versions()) or "none"
        raise ModelError(f"run {run!r}: no version v{version}; kept are {versions}")
    return path


def resolve(spec: PlayerSpec, run_locator: RunLocator = locate_model) -> ResolvedPlayer:
    """Return ``spec`` with its model read. Raises ModelError for one missing or damaged."""
    locate = kind_of(spec).locate
    if locate is None:
        return ResolvedPlayer(spec, None, None)
    path = locate(spec, run_locator)
    metadata = read_metadata(path)
    return ResolvedPlayer(spec, path.read_bytes(), metadata)


def agree_on_game(
    players: Sequence[ResolvedPlayer],
    game: str = "",
    rules: str = "",
    options: Mapping[str, object] | None = None,
) -> tuple[GameSpec, Any]:
    """Return spec and rule options of the game that all ``players`` play.

    Args:
        players: Those of one match.
        game: Name of the game; may be empty when a player's model names it.
        rules: Rule preset; may be empty when a player's model names the rules.
        options: Rule options in words, on top of the preset or of the model's rules.

    Raises:
        PlayerError: No model names the game, and ``game`` or ``rules`` is empty.
        UnknownGameError: A game, preset or option that does not exist.
        ModelError: Models that disagree with one another, or with what was asked for.
    """
    models = [player.metadata for player in players if player.metadata is not None]
    if not models:
        if not game or not rules:
            texts = " and ".join(player.spec.text for player in players)
            missing = "--game" if not game else "--rules"
            raise PlayerError(f"{missing} is missing: {texts} name no game by themselves")
        spec = get_spec(game)
        return spec, spec.make(rules, options)
    first = models[0]
    for model in models:  # before encoders are compared, whose names mean nothing across games
        if model.game != (game or first.game):
            raise ModelError(
                f"model {model.version} is for game {model.game!r}, not {game or first.game!r}"
            )
    spec = get_spec(first.game)
    chosen = spec.make(rules, options if rules else {**first.rules, **(options or {})})
    words = spec.describe(chosen)
    for model in models:
        encoder = spec.encoder(model.encoder)
        check_compatible(
            model, game=spec.name, rules=words, encoder=(encoder.name, encoder.version)
        )
    return spec, chosen


# --- play ----------------------------------------------------------------------------------------


def model_player(model: bytes, simulations: int, context: PlayContext) -> SearchPlayer:
    """Return the player of ONNX bytes: ``simulations`` a move, 0 is the policy's first choice.

    Between hands it values positions with the match-equity table of the model, if the model's
    value head was trained against one, and weighs worlds by what the others have played, in games
    that tell of it. Raises ModelError when the model is for another game.
    """
    metadata = read_metadata(model)
    encoder = context.spec.encoder(metadata.encoder)
    evaluator = OnnxEvaluator(context.spec, context.game, encoder, device=context.device)
    evaluator.set_model(0, model)
    equity = np.asarray(metadata.equity, np.float64) if metadata.target == "equity" else None
    infers = context.infers and context.spec.recalled_plies > 0 and simulations > 0
    return SearchPlayer(
        context.spec,
        context.game,
        encoder,
        evaluator,
        simulations=simulations,
        options=context.options,
        equity=equity,
        batch=context.batch,
        belief=belief_for(simulations) if infers else None,
    )


def _build_model(player: ResolvedPlayer, context: PlayContext) -> Player:
    if player.model is None:
        raise ModelError(f"player {player.spec.text!r} has no model")
    return model_player(player.model, player.spec.simulations, context)


def _parse_run(text: str) -> PlayerSpec | None:
    head, number = split_text(text)
    run, at, word = head.rpartition("@")
    if not at:
        return None
    digits = word[1:] if word.startswith("v") else ""
    if not run or not (word == "champion" or (digits.isascii() and digits.isdecimal())):
        raise PlayerError(f"player {text!r}: allowed are RUN@champion and RUN@v12, not {head!r}")
    return PlayerSpec(
        text=text,
        kind="run",
        source=run,
        version=None if word == "champion" else int(digits),
        simulations=parse_simulations(text, number, 0, f"{head}:128"),
    )


def _parse_file(text: str) -> PlayerSpec | None:
    head, number = split_text(text)
    if not head.endswith(".onnx"):
        return None
    simulations = parse_simulations(text, number, 0, f"{head}:128")
    return PlayerSpec(text=text, kind="file", source=head, simulations=simulations)


register_kind(
    PlayerKind(
        "run",
        "RUN@champion:SIMULATIONS, RUN@vNUMBER:SIMULATIONS",
        _parse_run,
        _build_model,
        lambda spec, locator: locator(spec.source, spec.version),
    )
)
register_kind(
    PlayerKind(
        "file",
        "FILE.onnx:SIMULATIONS",
        _parse_file,
        _build_model,
        lambda spec, locator: Path(spec.source),
    )
)
