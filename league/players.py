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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np

from engine.game import GameSpec, get_spec
from engine.players import Player, RandomPlayer, RulePlayer, SearchPlayer
from engine.search.flat import FlatPlayer
from engine.search.ismcts import SearchOptions
from engine.search.pimc import PimcOptions, PimcPlayer
from engine.search.rollout import RolloutEvaluator
from league.evaluator import Device, OnnxEvaluator, read_metadata
from league.models import ModelError, ModelMetadata, check_compatible
from league.stores import FileModelStore

MAX_SIMULATIONS = 1_000_000
"""Simulations a move that a player may be given."""
MAX_WORLDS, MAX_DEPTH = 100_000, 50
"""What a player that searches sampled worlds may be given."""
RUNS = Path("runs")
"""Folder of runs that are given by name."""


class PlayerError(ValueError):
    """Text that is no player; names it and what is allowed."""


class PlayerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A player as written; nothing is opened yet."""

    text: str
    kind: str
    """Name in the registry."""
    source: str = ""
    """Run (name or folder) or model file."""
    version: int | None = None
    """Model version of a run; None is its champion."""
    simulations: int = 0
    """Simulations a move; 0 where there is no search."""
    worlds: int = 0
    """Sampled worlds a move."""
    depth: int = 0
    """Decisions that are searched in each."""
    style: str = ""
    """Name of one of the game's rule-based players; empty for the one that every game has."""
    level: int = 0
    """Level of the game's own players; 0 for all others."""


class RunLocator(Protocol):
    """Finds the model file of a run."""

    def __call__(self, run: str, version: int | None) -> Path:
        """Return the file of ``version`` (None: the champion). Raises ModelError."""
        ...


class ResolvedPlayer(NamedTuple):
    """A player with its model, before it knows the game that it will play."""

    spec: PlayerSpec
    model: bytes | None
    metadata: ModelMetadata | None
    """What the model was made for; None for players that play any game."""


class PlayContext(NamedTuple):
    """What a player is told of the games that it will play."""

    spec: GameSpec
    game: Any
    options: SearchOptions = SearchOptions()
    """How the trees of players that search grow."""
    batch: int = 64
    """Positions that a player searches at once."""
    device: Device = "cpu"
    """Where networks run."""


class PlayerKind(NamedTuple):
    """One way to write a player."""

    name: str
    syntax: str
    """As shown in errors and help."""
    parse: Callable[[str], PlayerSpec | None]
    """Text -> spec, or None when the text is of another kind; PlayerError when it is malformed."""
    build: Callable[[ResolvedPlayer, PlayContext], Player]
    locate: Callable[[PlayerSpec, RunLocator], Path] | None = None
    """Spec -> model file; None for kinds without a model."""


_KINDS: dict[str, PlayerKind] = {}


def register_kind(kind: PlayerKind) -> PlayerKind:
    """Add a kind. Raises ValueError when its name is taken."""
    if kind.name in _KINDS:
        raise ValueError(f"player kind {kind.name!r} is already registered")
    _KINDS[kind.name] = kind
    return kind


def allowed_players() -> str:
    """Return the syntax of all kinds, for help and errors."""
    return ", ".join(kind.syntax for kind in _KINDS.values())


def parse_player(text: str) -> PlayerSpec:
    """Return the player that ``text`` stands for. Raises PlayerError."""
    for kind in _KINDS.values():
        spec = kind.parse(text)
        if spec is not None:
            return spec
    raise PlayerError(f"player {text!r}: allowed are {allowed_players()}")


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
    locate = _KINDS[spec.kind].locate
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


# --- play -----------------------------------------------------------------------------------------


def build_player(player: ResolvedPlayer, context: PlayContext) -> Player:
    """Return the engine's player. Raises ModelError when its model is for another game."""
    return _KINDS[player.spec.kind].build(player, context)


def model_player(model: bytes, simulations: int, context: PlayContext) -> SearchPlayer:
    """Return the player of ONNX bytes: ``simulations`` a move, 0 is the policy's first choice.

    Between hands it values positions with the match-equity table of the model, if the model's
    value head was trained against one. Raises ModelError when the model is for another game.
    """
    metadata = read_metadata(model)
    encoder = context.spec.encoder(metadata.encoder)
    evaluator = OnnxEvaluator(context.spec, context.game, encoder, device=context.device)
    evaluator.set_model(0, model)
    equity = np.asarray(metadata.equity, np.float64) if metadata.target == "equity" else None
    return SearchPlayer(
        context.spec,
        context.game,
        encoder,
        evaluator,
        simulations=simulations,
        options=context.options,
        equity=equity,
        batch=context.batch,
    )


def _build_model(player: ResolvedPlayer, context: PlayContext) -> Player:
    if player.model is None:
        raise ModelError(f"player {player.spec.text!r} has no model")
    return model_player(player.model, player.spec.simulations, context)


def _build_ismcts(player: ResolvedPlayer, context: PlayContext) -> Player:
    spec, game = context.spec, context.game
    return SearchPlayer(
        spec,
        game,
        spec.encoders[0],
        RolloutEvaluator(spec, game),
        simulations=player.spec.simulations,
        options=context.options,
        batch=context.batch,
    )


# --- kinds ----------------------------------------------------------------------------------------


def parse_simulations(text: str, number: str | None, low: int, example: str) -> int:
    """Return the simulations behind the colon of ``text``. Raises PlayerError."""
    value = int(number) if number is not None and number.isascii() and number.isdecimal() else -1
    if not low <= value <= MAX_SIMULATIONS:
        found = "no number" if number is None else f"number {number!r}"
        raise PlayerError(
            f"player {text!r}: {found} of simulations a move; allowed are {low} to "
            f"{MAX_SIMULATIONS}, for example {example}"
        )
    return value


def _split(text: str) -> tuple[str, str | None]:
    """Return ``text`` before and after its last colon; None where there is no colon."""
    head, colon, number = text.rpartition(":")
    return (head, number) if colon else (text, None)


def _parse_plain(name: str) -> Callable[[str], PlayerSpec | None]:
    def parse(text: str) -> PlayerSpec | None:
        head, number = _split(text)
        if head != name:
            return None
        if number is not None:
            raise PlayerError(f"player {text!r}: {name} takes no number")
        return PlayerSpec(text=text, kind=name)

    return parse


def _parse_rules(text: str) -> PlayerSpec | None:
    head, name = _split(text)
    if head != "rules":
        return None
    if name is not None and not name.isidentifier():
        raise PlayerError(
            f"player {text!r}: rules takes no number; allowed are rules and, in games that have "
            "more of them, rules:NAME"
        )
    return PlayerSpec(text=text, kind="rules", style=name or "")


def _build_rules(player: ResolvedPlayer, context: PlayContext) -> Player:
    styles = context.spec.styles
    if player.spec.style and player.spec.style not in styles:
        allowed = ", ".join(["rules", *(f"rules:{style}" for style in styles)])
        raise PlayerError(
            f"player {player.spec.text!r}: rule-based players of {context.spec.name} are {allowed}"
        )
    return RulePlayer(context.spec, context.game, player.spec.style)


def _parse_ismcts(text: str) -> PlayerSpec | None:
    head, number = _split(text)
    if head != "ismcts":
        return None
    simulations = parse_simulations(text, number, 1, "ismcts:2000")
    return PlayerSpec(text=text, kind="ismcts", simulations=simulations)


def _parse_pimc(text: str) -> PlayerSpec | None:
    head, number = _split(text)
    if head != "pimc":
        return None
    words = (number or "").split("x")
    sizes = [int(word) for word in words if word.isascii() and word.isdecimal()]
    if (
        len(words) != 2
        or len(sizes) != 2
        or not (1 <= sizes[0] <= MAX_WORLDS and 1 <= sizes[1] <= MAX_DEPTH)
    ):
        raise PlayerError(
            f"player {text!r}: allowed are pimc:WORLDSxDEPTH with 1 to {MAX_WORLDS} worlds and a "
            f"depth of 1 to {MAX_DEPTH}, for example pimc:25x4"
        )
    return PlayerSpec(text=text, kind="pimc", worlds=sizes[0], depth=sizes[1])


def _build_pimc(player: ResolvedPlayer, context: PlayContext) -> Player:
    options = PimcOptions(worlds=player.spec.worlds, depth=player.spec.depth)
    return PimcPlayer(context.spec, context.game, options)


def _parse_rollouts(text: str) -> PlayerSpec | None:
    head, number = _split(text)
    if head != "rollouts":
        return None
    worlds = int(number) if number and number.isascii() and number.isdecimal() else 0
    if not 1 <= worlds <= MAX_WORLDS:
        raise PlayerError(
            f"player {text!r}: allowed are rollouts:WORLDS with 1 to {MAX_WORLDS} worlds, for "
            "example rollouts:50"
        )
    return PlayerSpec(text=text, kind="rollouts", worlds=worlds)


def _build_rollouts(player: ResolvedPlayer, context: PlayContext) -> Player:
    return FlatPlayer(context.spec, context.game, player.spec.worlds)


def _parse_level(text: str) -> PlayerSpec | None:
    head, number = _split(text)
    if head != "level":
        return None
    if number is None or not (number.isascii() and number.isdecimal()) or int(number) < 1:
        raise PlayerError(f"player {text!r}: no level; allowed are numbers from 1, as level:2")
    return PlayerSpec(text=text, kind="level", level=int(number))


def _build_level(player: ResolvedPlayer, context: PlayContext) -> Player:
    levels = context.spec.levels
    if player.spec.level > len(levels):
        allowed = f"level:1 to level:{len(levels)}" if levels else "none"
        raise PlayerError(
            f"player {player.spec.text!r}: levels of {context.spec.name} are {allowed}"
        )
    return build_player(resolve(parse_player(levels[player.spec.level - 1])), context)


def _parse_run(text: str) -> PlayerSpec | None:
    head, number = _split(text)
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
    head, number = _split(text)
    if not head.endswith(".onnx"):
        return None
    simulations = parse_simulations(text, number, 0, f"{head}:128")
    return PlayerSpec(text=text, kind="file", source=head, simulations=simulations)


register_kind(
    PlayerKind(
        "random",
        "random",
        _parse_plain("random"),
        lambda player, context: RandomPlayer(context.spec, context.game),
    )
)
register_kind(PlayerKind("rules", "rules", _parse_rules, _build_rules))
register_kind(PlayerKind("ismcts", "ismcts:SIMULATIONS", _parse_ismcts, _build_ismcts))
register_kind(PlayerKind("pimc", "pimc:WORLDSxDEPTH", _parse_pimc, _build_pimc))
register_kind(PlayerKind("rollouts", "rollouts:WORLDS", _parse_rollouts, _build_rollouts))
register_kind(PlayerKind("level", "level:NUMBER", _parse_level, _build_level))
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
