"""What a game is to the rest of the program: ``GameSpec``, the registry, and readable options.

Room: engine. Python only; nothing here is compiled.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine import plugins, rules
from engine.layout import Field, Layout, Relation
from engine.rng import Rng

GAME_MODULES = ("cuarenta", "durak", "forty_fives", "kuhn", "leduc")
"""Modules of ``engine.games``, named as their games, which are registered on first use.

Games of other packages are found as ``engine.plugins`` says.
"""


class UnknownGameError(ValueError):
    """A game, preset, option or value that does not exist, or a game that cannot be loaded.

    Names what is allowed, or the package that offers the game.
    """


def format_code(game: Any, view: Any, code: int) -> str:
    """Return an action as its code: what a game without a notation of its own shows."""
    return f"action {code}"


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """How a view becomes numbers. A change of meaning or size raises ``version``."""

    name: str
    version: int
    code: int
    """Passed to the compiled ``observe`` and ``describe_actions``."""
    observation_size: int
    action_size: int


@dataclass(frozen=True, kw_only=True)
class Option:
    """One rule option: the int that the kernels see, by the word that people write."""

    values: Mapping[str, int] | None = None
    """Allowed words and their codes; None when the option is a plain number."""
    low: int = 0
    high: int = 0
    """Inclusive bounds of a plain number."""
    help: str = ""

    def parse(self, name: str, value: object) -> int:
        """Return the code of ``value`` (word, number or bool). Raises UnknownGameError."""
        if self.values is not None:
            word = str(value).lower() if isinstance(value, bool) else str(value)
            word = {"true": "yes", "false": "no"}.get(word, word)
            if word in self.values:
                return self.values[word]
            allowed = ", ".join(self.values)
            raise UnknownGameError(f"rule option {name} = {value!r}: allowed are {allowed}")
        try:
            number = int(str(value))
        except ValueError:
            number = self.low - 1
        if not self.low <= number <= self.high:
            raise UnknownGameError(
                f"rule option {name} = {value!r}: allowed are {self.low} to {self.high}"
            )
        return number

    def word(self, code: int) -> str:
        """Return the word for ``code``."""
        if self.values is None:
            return str(code)
        return next(word for word, value in self.values.items() if value == code)


@dataclass(frozen=True, kw_only=True)
class GameSpec:
    """Static facts of one game. ``register`` checks them against the compiled functions."""

    name: str
    game_type: type
    """NamedTuple class with int fields only; its fields are the keys of ``options``."""
    options: Mapping[str, Option]
    presets: Mapping[str, Any]
    """Instances of ``game_type`` by name; the first is the default."""
    state_dtype: np.dtype[Any]
    fields: Callable[[Any], Mapping[str, Field]]
    """``game -> {field: allowed values}``, for every field of the record.

    With the relations below it is what keeps the compiled functions within their arrays, whatever a
    record from outside holds: no view that passes may lead ``observe``, ``legal_actions`` and
    ``describe_actions`` astray, no state that passes any of the functions, to the end of its game.
    """
    encoders: tuple[Encoder, ...]
    max_actions: int
    """Most legal actions in any position of any variant."""
    max_plies: int
    """No game of any variant is longer (arrays are sized by it)."""
    view_relations: Mapping[str, Relation] = field(default_factory=dict)
    """What views satisfy beyond that, by what it says; only what indices depend on is needed."""
    state_relations: Mapping[str, Relation] = field(default_factory=dict)
    """The same of states. A check that passes has to leave every seat to move an action."""
    recalled_plies: int = 0
    """Plies back to which ``view_then`` tells something in any variant; 0: the game has none."""
    playout_rule_share: float = 0.5
    """Probability of a ply by the rule player in playouts; the other plies are random."""
    num_equity_states: int = 0
    """Rows of the match-equity table; 0 for games of a single hand."""
    equity_prior: Callable[[Any], np.ndarray[Any, Any]] | None = None
    """``game -> float64[num_equity_states]``, prior probability that the row's side wins."""
    reward_terms: tuple[str, ...] = ("win",)
    statistics: tuple[str, ...] = ()
    initial_states: Callable[[Any], list[tuple[float, Any]]] | None = None
    """``game -> [(probability, state)]`` for the exactly solvable games: every first deal."""
    format_action: Callable[[Any, Any, int], str] = format_code
    """``(game, view, action) -> text``, the notation in which people write the action. What is
    shown of others' actions is written with the view of the seat that watches."""
    spellings: Callable[[Any, Any, str], Iterable[str]] | None = None
    """``(game, view, text) -> texts of format_action`` that somebody who writes ``text`` may mean
    (lower case, single spaces, suits as letters); the parser keeps those that are legal."""
    format_view: Callable[[Any, Any, int], str] = field(default=lambda game, view, seat: str(view))
    """``(game, view, seat) -> text`` for play-throughs, one or more lines."""
    styles: tuple[str, ...] = ()
    """Names of further rule-based players (``rules:NAME``), in the order of ``style_action``."""
    format_table: Callable[[Any, Any, int], str] | None = None
    """``(game, view, seat) -> text`` for somebody who plays ``seat``; None: as ``format_view``."""
    levels: tuple[str, ...] = ()
    """Players of rising strength as people write them; the first is ``level:1``."""
    state_from_document: Callable[[Any, Mapping[str, Any], Rng | None], Any] | None = None
    """``(game, document, rng) -> state`` for position documents, as in ``tests/cases``.

    Without ``rng`` the document is the truth, and what it leaves open is filled in a fixed way.
    With it the document is first reduced to what the seat to move knows, and everything else is
    drawn: states of several draws differ in nothing that the document tells this seat."""

    def encoder(self, name: str) -> Encoder:
        """Return the encoder called ``name``. Raises UnknownGameError."""
        for encoder in self.encoders:
            if encoder.name == name:
                return encoder
        allowed = ", ".join(encoder.name for encoder in self.encoders)
        raise UnknownGameError(f"encoder {name!r} of {self.name}: allowed are {allowed}")

    def layout(self, game: Any) -> Layout:
        """Return what records of ``game`` may hold. Raises TypeError for a declaration amiss."""
        return Layout(
            self.state_dtype,
            self.fields(game),
            game,
            self.view_relations,
            self.state_relations,
        )

    def new_states(self, count: int) -> Any:
        """Return ``count`` zeroed states as a ``np.recarray`` (elements are views into it)."""
        return np.zeros(count, dtype=self.state_dtype).view(np.recarray)

    def new_state(self) -> Any:
        """Return one zeroed state."""
        return self.new_states(1)[0]

    def make(self, preset: str = "", overrides: Mapping[str, object] | None = None) -> Any:
        """Return a game from a preset and overrides in words. Raises UnknownGameError."""
        preset = preset or next(iter(self.presets))
        if preset not in self.presets:
            allowed = ", ".join(self.presets)
            raise UnknownGameError(f"rules {preset!r} of {self.name}: allowed are {allowed}")
        game = self.presets[preset]
        codes: dict[str, int] = {}
        for name, value in (overrides or {}).items():
            if name not in self.options:
                allowed = ", ".join(self.options) or "none"
                raise UnknownGameError(
                    f"rule option {name!r} of {self.name}: allowed are {allowed}"
                )
            codes[name] = self.options[name].parse(name, value)
        return game._replace(**codes)

    def describe(self, game: Any) -> dict[str, str]:
        """Return all options of ``game`` in words; ``make("", describe(game)) == game``."""
        return {name: self.options[name].word(code) for name, code in game._asdict().items()}


_REGISTRY: dict[str, GameSpec] = {}


def register(spec: GameSpec, functions: Mapping[str, Any]) -> GameSpec:
    """Add a game. ``functions`` is the module's ``globals()``.

    Raises ValueError for a second game of the same name, or a second NamedTuple of the same name:
    numba tells NamedTuples apart by name and field types alone and would serve one game's machine
    code for the other.
    """
    type_name = spec.game_type.__name__
    for other in _REGISTRY.values():
        if other.name == spec.name or other.game_type.__name__ == type_name:
            raise ValueError(
                f"game {spec.name!r} ({type_name}): name already taken by {other.name!r}"
            )
    fields = getattr(spec.game_type, "_fields", None)
    if not fields or set(fields) != set(spec.options):
        raise TypeError(f"{type_name}: options {sorted(spec.options)} are not its fields {fields}")
    for game in spec.presets.values():
        spec.layout(game)
    rules.implement(spec.game_type, functions)
    _REGISTRY[spec.name] = spec
    return spec


def _load_own() -> None:
    for module in GAME_MODULES:
        importlib.import_module(f"engine.games.{module}")


def _load_offered(name: str) -> None:
    """Import the module that a package offers as the game ``name``. Raises UnknownGameError."""
    offers = [point for point in plugins.entry_points() if point.name == name]
    packages = ", ".join(plugins.package_of(point) for point in offers)
    if not offers:
        raise UnknownGameError(f"game {name!r}: allowed are {', '.join(game_names())}")
    if len(offers) > 1:
        raise UnknownGameError(f"game {name!r}: allowed is one package that offers it: {packages}")
    module = offers[0].module
    try:
        importlib.import_module(module)
    except Exception as error:
        raise UnknownGameError(
            f"game {name!r} of {packages} cannot be loaded: {type(error).__name__}: {error} "
            f"(python -c 'import {module}' says where)"
        ) from error
    if name not in _REGISTRY:
        raise UnknownGameError(
            f"game {name!r} of {packages}: its module {module} registers no game of this name"
        )


def game_names() -> list[str]:
    """Return the names of all games, those that other packages offer last.

    Raises UnknownGameError when one of them takes the name of a game of this program.
    """
    _load_own()
    offers = plugins.entry_points()
    for point in offers:
        if point.name in GAME_MODULES:
            raise UnknownGameError(
                f"game {point.name!r} of {plugins.package_of(point)}: allowed is another name than "
                f"{', '.join(GAME_MODULES)}"
            )
    return list(dict.fromkeys([*_REGISTRY, *(point.name for point in offers)]))


def get_spec(name: str) -> GameSpec:
    """Return the spec of the game called ``name``; loads no other package's games but this one.

    Raises UnknownGameError.
    """
    _load_own()
    if name not in _REGISTRY:
        _load_offered(name)
    return _REGISTRY[name]


def spec_of(game: Any) -> GameSpec:
    """Return the spec of a game instance."""
    for spec in _REGISTRY.values():
        if isinstance(game, spec.game_type):
            return spec
    raise UnknownGameError(f"{type(game).__name__} is not a registered game")
