"""Position documents from files, as ``cardleague advise`` reads them. Room: deploy.

What is in a document is the game's own (``GameSpec.state_from_document``); here are the file, the
game and the rules.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from deploy.commands import UserError
from engine import rules
from engine.documents import shown
from engine.game import GameSpec
from engine.notation import legal_codes
from engine.rng import Rng
from engine.search.tree import plain_records

MOST_BYTES = 1_000_000
"""A document is a few hundred bytes."""
STDIN = "-"


def read_document(path: str) -> dict[str, Any]:
    """Return the document in a file, or on standard input for ``-``. Raises UserError."""
    try:
        if path == STDIN:
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"position {shown(path)}: cannot be read ({reason})") from error
    if len(content) > MOST_BYTES:
        raise UserError(f"position {shown(path)}: allowed are {MOST_BYTES:,} bytes")
    try:
        document = msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:
        raise UserError(f"position {shown(path)}: allowed is one JSON object ({error})") from error
    if not isinstance(document, dict):
        found = f"a list of {len(document)}" if isinstance(document, list) else shown(document)
        raise UserError(f"position {shown(path)}: allowed is one JSON object, not {found}")
    return document


def check_game(spec: GameSpec, document: Mapping[str, Any]) -> None:
    """Raise UserError for a document of another game, or a game that reads none."""
    named = document.get("game", spec.name)
    if named != spec.name:
        raise UserError(f"game {shown(named)} of the position: --game is {spec.name!r}")
    if spec.state_from_document is None:
        raise UserError(f"game {spec.name!r}: it reads no position documents")


def rules_in(document: Mapping[str, Any]) -> tuple[str, dict[str, object]]:
    """Return preset (empty: none) and options of a document's rules. Raises UserError."""
    given = document.get("rules", {})
    if not isinstance(given, dict):
        raise UserError(f"rules {shown(given)}: allowed is an object of rule options")
    options = dict(given)
    preset = options.pop("preset", "")
    if not isinstance(preset, str):
        raise UserError(f"rules preset {shown(preset)}: allowed is a word")
    return preset, options


def read_state(spec: GameSpec, game: Any, document: Mapping[str, Any], rng: Rng | None) -> Any:
    """Return the state of a document; ``rng`` as in ``state_from_document``. Raises UserError."""
    assert spec.state_from_document is not None
    try:
        return spec.state_from_document(game, document, rng)
    except ValueError as error:
        raise UserError(str(error)) from error


def sampled_views(
    spec: GameSpec, game: Any, document: Mapping[str, Any], rng: Rng, count: int
) -> tuple[int | None, Any]:
    """Return the seat to move (None: the game is over) and its views in ``count`` draws.

    The draws differ in what the document leaves open and everybody would see; where that is
    nothing there is one view. The views are a plain array of records; ``rng`` is advanced.

    Raises:
        UserError: A document that is no position, or that does not say what the seat to move holds.
    """
    states = [read_state(spec, game, document, rng) for _ in range(count)]
    seat = int(rules.current_seat(game, states[0]))
    views = plain_records(spec.state_dtype, count)
    if seat < 0:
        views[0] = states[0]
        return None, views[:1]
    legal = legal_codes(spec, game, states[0])
    for index, state in enumerate(states):
        if legal_codes(spec, game, state) != legal:
            raise UserError("position: the hand of the seat to move has to be given")
        rules.view(game, state, seat, views[index])
    same = all(view.tobytes() == views[0].tobytes() for view in views)
    return seat, views[:1] if same else views
