"""What a player is as text: the registry of kinds, and the parser, which knows no more of them.

Room: league. May import: engine, league.models. Kinds register themselves (``register_kind``);
``league.players`` has all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from engine.game import GameSpec
from engine.players import Player
from engine.search.ismcts import SearchOptions
from league.evaluator import Device
from league.models import ModelMetadata

MAX_SIMULATIONS = 1_000_000
"""Simulations a move that a player may be given."""


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
    infers: bool = True
    """Whether those with a network weigh worlds by past plays, in games that tell of them."""
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


def kind_of(spec: PlayerSpec) -> PlayerKind:
    """Return the kind of a parsed player."""
    return _KINDS[spec.kind]


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


def build_player(player: ResolvedPlayer, context: PlayContext) -> Player:
    """Return the engine's player. Raises ModelError when its model is for another game."""
    return kind_of(player.spec).build(player, context)


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


def split_text(text: str) -> tuple[str, str | None]:
    """Return ``text`` before and after its last colon; None where there is no colon."""
    head, colon, number = text.rpartition(":")
    return (head, number) if colon else (text, None)
