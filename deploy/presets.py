"""From a preset or file to a checked configuration: file < environment < ``--set``.

Room: deploy. May import: deploy.config, msgspec, the standard library. Light: no engine, no numpy.

Every value is checked where it is written, so that an error names the key, the value, what is
allowed and where it came from. Rule options and encoders are checked by ``deploy.preflight``, which
knows the games.
"""

from __future__ import annotations

import difflib
import functools
import math
import os
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as types

from deploy.config import RunConfig
from deploy.credentials import PASSWORD_VARIABLE, USER_VARIABLE, server_fault

PRESET_FOLDER = Path(__file__).resolve().parent / "configs"
PREFIX = "CARDLEAGUE_"
SEPARATOR = "__"
PLAIN_VARIABLES = ("SEED", "NAME")
"""Environment variables of keys without a section."""
OTHER_VARIABLES = (
    "CACHE_DIR",
    *(name.removeprefix(PREFIX) for name in (USER_VARIABLE, PASSWORD_VARIABLE)),
    f"{PASSWORD_VARIABLE.removeprefix(PREFIX)}_FILE",
)
"""The program's variables that are no options."""
SLIP = 0.85
"""Likeness of two names (difflib's ratio) from which one is taken for a slip of the other."""
CHOICES: dict[str, tuple[str, ...]] = {
    "search.partner": ("tree", "policy", "by_hand"),
    "search.opponents": ("tree", "policy", "by_hand"),
    "search.leaf_value": ("mover", "root_seat"),
}
"""Allowed words of keys whose type is a plain string."""


MAX_CONFIG_BYTES = 1 << 16
"""The largest preset has a twentieth of it."""
_MAX_DOTS = 1000
"""In a line: a dotted key takes time and memory with the square of its parts."""
_MAX_SHOWN = 200
MAX_SEED = 2**63 - 1
"""Seeds travel as signed integers of 64 bits."""
MAX_NAME_BYTES = 100
"""File systems take 255; names of actors and sockets are made of it too."""


class ConfigError(ValueError):
    """A preset, key or value that does not exist or is not allowed; names what is."""


Document = dict[str, Any]
"""Nested values as TOML gives them."""
Setting = tuple[str, str, str]
"""Key, text, and where it was written (for errors)."""


def preset_names() -> list[str]:
    """Return the names of the presets that come with the program."""
    return sorted(path.stem for path in PRESET_FOLDER.glob("*.toml"))


def load(
    source: str,
    *,
    overrides: Iterable[str] = (),
    flags: Iterable[Setting] = (),
    environment: Mapping[str, str] | None = None,
    saved: RunConfig | None = None,
) -> RunConfig:
    """Return the configuration of a preset name or a ``.toml`` path.

    ``overrides`` are ``key=value``; ``flags`` win over them. ``environment`` defaults to the
    process's. With ``saved`` (the configuration of an existing run) what is written nowhere keeps
    its saved value instead of the default. Raises ConfigError.
    """
    return build(read_source(source), [*_settings(overrides), *flags], environment, saved)


def amend(
    saved: RunConfig,
    *,
    overrides: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> RunConfig:
    """Return a saved configuration with environment and overrides on top. Raises ConfigError."""
    return build({}, _settings(overrides), environment, saved)


def build(
    document: Document,
    settings: Iterable[Setting],
    environment: Mapping[str, str] | None,
    saved: RunConfig | None,
) -> RunConfig:
    """Put the layers on top of each other, each checked, and check the whole."""
    merged: Document = msgspec.to_builtins(saved) if saved is not None else {}
    for key, value in _leaves(document):
        _put(merged, key, checked(key, value))
    variables = _environment_settings(os.environ if environment is None else environment)
    for key, text, origin in (*variables, *settings):
        _put(merged, key, checked(key, text, origin=origin, textual=True))
    try:
        config = msgspec.convert(merged, RunConfig)
    except msgspec.ValidationError as error:  # every leaf was checked: a value is missing
        raise ConfigError(f"configuration: {error}") from error
    check_together(config)
    return config


def read_source(source: str) -> Document:
    """Return the values of a preset or file, with ``name`` filled in. Raises ConfigError."""
    path = Path(source)
    if path.suffix != ".toml":
        if source not in preset_names():
            hint = _nearest(source, preset_names())
            allowed = ", ".join(preset_names())
            raise ConfigError(f"preset {source!r}: {hint}allowed are {allowed}, or a .toml file")
        path = PRESET_FOLDER / f"{source}.toml"
    try:
        document = tomllib.loads(_read(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"configuration file {source!r}: {error}") from error
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError
        raise ConfigError(f"configuration file {source!r} is not TOML: {error}") from error
    document.setdefault("name", path.stem)
    return document


def _read(path: Path) -> str:
    """Return the text of a file that may be anything. Raises OSError or UnicodeDecodeError."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_CONFIG_BYTES:
        raise OSError(f"not a file of at most {MAX_CONFIG_BYTES} bytes")
    text = path.read_text(encoding="utf-8")
    if any(line.count(".") > _MAX_DOTS for line in text.splitlines()):
        raise OSError(f"a line with more than {_MAX_DOTS} dots")
    return text


# --- keys and values ------------------------------------------------------------------------------


def _leaves(document: Document, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (key, value); a table is descended into where the configuration has one."""
    for name, value in document.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            type_of(key)  # a mistyped section is named as such, not as its first key
            yield from _leaves(value, f"{key}.")
        else:
            yield key, value


def _put(document: Document, key: str, value: Any) -> None:
    *sections, name = key.split(".")
    for section in sections:
        document = document.setdefault(section, {})
    document[name] = value


def _environment_settings(environment: Mapping[str, str]) -> Iterator[Setting]:
    for variable in sorted(environment):
        name = variable.removeprefix(PREFIX)
        if name == variable or name in OTHER_VARIABLES:
            continue
        if not (SEPARATOR in name or name in PLAIN_VARIABLES):
            if meant := _meant_variable(name):
                raise ConfigError(f"variable {variable}: did you mean {PREFIX}{meant}?")
            continue
        yield name.lower().replace(SEPARATOR, "."), environment[variable], variable


def _meant_variable(name: str) -> str:
    """Return the variable that ``name`` (without PREFIX) is a slip of; "" for somebody else's.

    Others may use the prefix too: an orchestrator names variables after its services.
    """
    known = [*PLAIN_VARIABLES, *OTHER_VARIABLES]
    for section, kind in fields_of(RunConfig).items():
        if isinstance(kind, types.StructType):
            known += [f"{section}{SEPARATOR}{key}".upper() for key in fields_of(kind.cls)]
    matches = difflib.get_close_matches(name.upper(), known, n=1, cutoff=SLIP)
    return matches[0] if matches else ""


def _settings(overrides: Iterable[str]) -> Iterator[Setting]:
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set {override!r}: write key=value, such as self_play.games=64")
        yield key.strip(), text.strip(), "--set"


@functools.cache
def fields_of(struct: type) -> dict[str, types.Type]:
    """Return the keys of a configuration section and their types."""
    info = types.type_info(struct)
    assert isinstance(info, types.StructType)
    return {f.encode_name: f.type for f in info.fields if f.encode_name != "schema_version"}


def type_of(key: str, origin: str = "") -> types.Type:
    """Return the type of ``section.key``. Raises ConfigError with the nearest key that exists."""
    keys = fields_of(RunConfig)
    at: types.Type | None = None
    walked: list[str] = []
    for part in key.split("."):
        if isinstance(at, types.DictType):
            at = at.value_type
        else:
            if at is not None:
                keys = fields_of(at.cls) if isinstance(at, types.StructType) else {}
            if part not in keys:
                raise ConfigError(_unknown(key, walked, list(keys), origin))
            at = keys[part]
        walked.append(part)
    assert at is not None
    return at


def _unknown(key: str, walked: list[str], keys: list[str], origin: str) -> str:
    where = f" ({origin})" if origin else ""
    if not keys:
        return f"{key}{where}: {'.'.join(walked)} is a value, not a section"
    part = key.split(".")[len(walked)]
    names = [".".join([*walked, name]) for name in keys]
    hint = _elsewhere(part) or _nearest(".".join([*walked, part]), names)
    kind = f"in section {'.'.join(walked)}" if walked else "at the top"
    return f"unknown key {key!r}{where}: {hint}allowed {kind} are {', '.join(keys)}"


def _nearest(word: str, words: Iterable[str]) -> str:
    matches = difflib.get_close_matches(word, list(words), n=1)
    return f"did you mean {matches[0]!r}? " if matches else ""


def _elsewhere(name: str) -> str:
    """Return a hint when ``name`` is a key of some section."""
    for section, kind in fields_of(RunConfig).items():
        if isinstance(kind, types.StructType) and name in fields_of(kind.cls):
            return f"did you mean '{section}.{name}'? "
    return ""


def checked(key: str, value: Any, *, origin: str = "", textual: bool = False) -> Any:
    """Return ``value`` (as text when ``textual``) in the type of ``key``. Raises ConfigError."""
    kind = type_of(key, origin)
    where = f" ({origin})" if origin else ""
    if isinstance(kind, types.StructType):
        keys = ", ".join(f"{key}.{name}" for name in fields_of(kind.cls))
        raise ConfigError(f"{key} = {_shown(value)}{where}: this is a section; set one of {keys}")
    if isinstance(kind, types.DictType):
        raise ConfigError(f"{key} = {_shown(value)}{where}: write {key}.option = word")
    try:
        converted = _convert(kind, value, textual)
    except (msgspec.ValidationError, ValueError, OverflowError):
        raise ConfigError(
            f"{key} = {_shown(value)}{where}: allowed is {allowed_values(kind)}"
        ) from None
    choices = CHOICES.get(key)
    if choices is not None and converted not in choices:
        raise ConfigError(f"{key} = {_shown(value)}{where}: allowed is {' or '.join(choices)}")
    return converted


def _shown(value: Any) -> str:
    """Return ``value`` as an error shows it; a file may hold numbers and texts of any length."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # whole numbers of thousands of digits have no decimal
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def _convert(kind: types.Type, value: Any, textual: bool) -> Any:
    """Return ``value`` as ``kind``. Raises ValueError or msgspec.ValidationError."""
    match kind:
        case types.StrType():
            if isinstance(value, bool):
                return "yes" if value else "no"
            if isinstance(value, (str, int, float)):
                return str(value)
        case types.LiteralType(values=values):
            if value in values:
                return value
        case types.VarTupleType(item_type=item) | types.ListType(item_type=item):
            if textual:
                value = [part.strip() for part in value.strip("[]() ").split(",") if part.strip()]
            if isinstance(value, (list, tuple)):
                return tuple(_convert(item, part, textual) for part in value)
        case types.BoolType():
            return msgspec.convert(value, bool, strict=not textual)
        case types.IntType():
            return _within(kind, int(value) if textual else msgspec.convert(value, int))
        case types.FloatType():
            return _within(kind, float(value) if textual else msgspec.convert(value, float))
        case _:
            raise TypeError(f"no option may have the type {kind}")
    raise ValueError(value)


def _within(kind: types.IntType | types.FloatType, value: float) -> float:
    if (
        not math.isfinite(value)
        or (kind.ge is not None and value < kind.ge)
        or (kind.gt is not None and value <= kind.gt)
        or (kind.le is not None and value > kind.le)
        or (kind.lt is not None and value >= kind.lt)
    ):
        raise ValueError(value)
    return value


def allowed_values(kind: types.Type) -> str:
    """Return in words what a value of ``kind`` may be."""
    match kind:
        case types.BoolType():
            return "true or false"
        case types.StrType():
            return "a word"
        case types.LiteralType(values=values):
            return " or ".join(map(str, values))
        case types.IntType(ge=ge, gt=gt, le=le, lt=lt):
            return "a whole number" + _bounds(ge, gt, le, lt)
        case types.FloatType(ge=ge, gt=gt, le=le, lt=lt):
            return "a number" + _bounds(ge, gt, le, lt)
        case types.VarTupleType(item_type=item) | types.ListType(item_type=item):
            return f"a list, each {allowed_values(item)}"
    return str(kind)


def _bounds(ge: float | None, gt: float | None, le: float | None, lt: float | None) -> str:
    words = []
    for word, bound in (("at least", ge), ("above", gt), ("at most", le), ("below", lt)):
        if bound is not None:
            words.append(f"{word} {bound}")
    return ", " + " and ".join(words) if words else ""


# --- values that must agree -----------------------------------------------------------------------


def is_folder_name(name: str) -> bool:
    """Return whether a run may have this name: one folder, and ``RUN@v12`` stays readable."""
    return (
        bool(name.strip())
        and name == name.strip()
        and name not in (".", "..")
        and name.isprintable()
        and not set(name) & set("/\\@:")
        and len(os.fsencode(name)) <= MAX_NAME_BYTES
    )


def check_together(config: RunConfig) -> None:
    """Raise ConfigError for values that are allowed each, but not together."""
    if fault := server_fault(config.replay):
        raise ConfigError(fault)
    learner, league, gate, play = config.learner, config.league, config.gate, config.self_play
    rules: tuple[tuple[bool, str], ...] = (
        (
            learner.td_lambda == 1.0 or learner.root_value_mix == 0.0,
            f"learner.td_lambda = {learner.td_lambda} and learner.root_value_mix = "
            f"{learner.root_value_mix}: allowed is td_lambda below 1 or root_value_mix above 0, "
            "never both",
        ),
        (
            learner.held_out_share > 0.0
            or (learner.td_lambda == 1.0 and learner.root_value_mix == 0.0),
            f"learner.held_out_share = {learner.held_out_share}: with td_lambda = "
            f"{learner.td_lambda} and root_value_mix = {learner.root_value_mix} allowed is above "
            "0, for they wait until held-out games show that the value head can be trusted",
        ),
        (
            learner.min_window_positions <= learner.window_positions,
            f"learner.window_positions = {learner.window_positions}: allowed is at least "
            f"learner.min_window_positions = {learner.min_window_positions}; "
            "training would never start",
        ),
        (
            learner.batch_size <= learner.min_window_positions,
            f"learner.min_window_positions = {learner.min_window_positions}: allowed is at least "
            f"learner.batch_size = {learner.batch_size}",
        ),
        (
            league.self_play_floor <= league.self_play_ceiling,
            f"league.self_play_floor = {league.self_play_floor}: allowed is at most "
            f"league.self_play_ceiling = {league.self_play_ceiling}",
        ),
        (gate.p0 < gate.p1, f"gate.p1 = {gate.p1}: allowed is above gate.p0 = {gate.p0}"),
        (
            play.fast_simulations <= play.full_simulations,
            f"self_play.fast_simulations = {play.fast_simulations}: allowed is at most "
            f"self_play.full_simulations = {play.full_simulations}",
        ),
        (
            config.search.leaf_value != "root_seat" or play.off_turn_share > 0,
            "search.leaf_value = root_seat: allowed with self_play.off_turn_share above 0, for the "
            "value of views off turn is learned from such examples alone",
        ),
        (
            config.report.num_games % 2 == 0,
            f"report.num_games = {config.report.num_games}: games are played in pairs, "
            "allowed is an even number",
        ),
        (
            config.evaluation.num_games % 2 == 0,
            f"evaluation.num_games = {config.evaluation.num_games}: games are played in pairs, "
            "allowed is an even number",
        ),
        (
            all(number >= 0 for number in config.report.simulations),
            f"report.simulations = {config.report.simulations}: allowed is at least 0, each",
        ),
        (
            is_folder_name(config.name),
            f"name = {config.name!r}: allowed is the name of one folder, without slashes, @ and "
            f"colons, at most {MAX_NAME_BYTES} bytes long",
        ),
        (
            config.seed <= MAX_SEED,
            f"seed = {config.seed}: allowed is a whole number, at least 0 and at most {MAX_SEED}",
        ),
    )
    for holds, message in rules:
        if not holds:
            raise ConfigError(message)
