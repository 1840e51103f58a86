"""``advise``: what to play in a position that was written down. Room: deploy; light imports."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import UseAppendAction, arg

from deploy.commands import UserError, option
from deploy.commands.models import rule_options
from deploy.presets import MAX_SEED

if TYPE_CHECKING:
    from engine.game import GameSpec

DEFAULT_PLAYER = "ismcts:3200"
MODEL_SIMULATIONS = 400
NUM_STATES = 16
"""Draws of what a document leaves open and everybody would see, such as cards that are gone."""


def advise(
    *,
    game: Annotated[str, arg(metavar="GAME")],
    position: Annotated[str, arg(metavar="FILE")],
    legal: Annotated[bool, option("")] = False,
    player: Annotated[str, option("PLAYER")] = "",
    model: Annotated[str, option("RUN|FILE.onnx")] = "",
    rules: Annotated[str, option("PRESET")] = "",
    set: Annotated[UseAppendAction[tuple[str, ...]], option("OPTION=WORD")] = (),
    seed: Annotated[int, option("SEED")] = 0,
    json: Annotated[bool, option("")] = False,
) -> int:
    """Say what to play in a position, and what every legal move is worth.

    The position is a JSON document as in tests/cases. What it does not give is unknown and sampled;
    what the seat to move cannot know (the cards of others) is dropped before anything is searched.

    Args:
        game: Its game.
        position: File of the document; - is standard input.
        legal: List the legal moves alone.
        player: Who advises, written as for match (default: a search with playouts).
        model: A run, RUN@v12 or FILE.onnx that advises, instead of --player.
        rules: Rule preset, for a document without rules.
        set: Rule options, for a document without rules.
        seed: Number that everything sampled follows from.
        json: Print JSON.
    """
    if not 0 <= seed <= MAX_SEED:
        raise UserError(f"--seed {seed}: allowed is a whole number from 0 to {MAX_SEED}")
    if player and model:
        raise UserError(f"--player {player} and --model {model}: allowed is one of them")
    from deploy.positions import check_game, read_document, rules_in
    from engine.game import UnknownGameError, get_spec
    from league.models import ModelError
    from league.players import PlayerError

    try:
        spec = get_spec(game)
        document = read_document(position)
        check_game(spec, document)
        preset, options = rules_in(document)
        if (preset or options) and (rules or set):
            raise UserError("--rules and --set: the position has rules of its own")
        chosen = (preset or rules, {**options, **rule_options(set)})
        if legal:
            _print_legal(spec, spec.make(*chosen), document, json)
            return 0
        found = _find(spec, document, chosen, player or player_of(model), seed)
    except (UnknownGameError, PlayerError, ModelError) as error:
        raise UserError(str(error)) from error
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
    else:
        _print(found)
    return 0


class MoveReport(msgspec.Struct, frozen=True, kw_only=True):
    """A legal move."""

    move: str
    value: float
    """Expected outcome for the side of the seat to move, in the unit of the game's returns."""
    share: float
    """Of the simulations of the search, or of the player's choices."""


class AdviceReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``advise`` found."""

    game: str
    rules: dict[str, str]
    """All rule options in words."""
    player: str
    seed: int
    seat: int | None
    """Seat to move; None when the game is over."""
    move: str | None
    """The move to play."""
    moves: list[MoveReport]
    """All legal moves, in the game's order."""
    legal: list[str]
    """The same, by name alone."""
    draws: int
    """Draws of what the document leaves open; 1 where it leaves nothing open."""
    table: str
    """What the seat to move sees, with what was drawn first where the document leaves it open."""


def player_of(model: str) -> str:
    """Return ``model`` as a player: its champion, and simulations, where they are not given."""
    if not model:
        return DEFAULT_PLAYER
    if ":" in model:
        return model
    named = model if model.endswith(".onnx") or "@" in model else f"{model}@champion"
    return f"{named}:{MODEL_SIMULATIONS}"


def _print_legal(spec: GameSpec, game: Any, document: dict[str, Any], json: bool) -> None:
    from deploy.positions import read_state
    from engine.notation import legal_moves

    moves = list(legal_moves(spec, game, read_state(spec, game, document, None)))
    if json:
        sys.stdout.write(msgspec.json.encode({"legal": moves}).decode() + "\n")
    else:
        sys.stdout.write("".join(f"{move}\n" for move in moves))


def _find(
    spec: GameSpec,
    document: dict[str, Any],
    rules: tuple[str, dict[str, object]],
    player: str,
    seed: int,
) -> AdviceReport:
    """Ask ``player``. Raises UserError, UnknownGameError, PlayerError or ModelError."""
    from deploy.positions import sampled_views
    from engine.notation import legal_moves, table_text
    from engine.rng import make_rng
    from league.advice import Advisor
    from league.players import PlayContext, agree_on_game, parse_player, resolve

    resolved = resolve(parse_player(player))
    if resolved.metadata is None:
        game = spec.make(*rules)
    else:
        spec, game = agree_on_game([resolved], spec.name, *rules)
    context = PlayContext(spec, game)
    Advisor(resolved, context)  # a player that cannot play this game is refused first
    rng = make_rng(seed)
    seat, views = sampled_views(spec, game, document, rng, NUM_STATES)
    texts = {code: text for text, code in legal_moves(spec, game, views[0]).items()}
    if seat is None:
        moves, best, table = [], None, "The game is over."
    else:
        advice = Advisor(resolved, context, num_views=len(views)).advise(views, seat, rng[0])
        best, table = texts[advice.best], table_text(spec, game, views[0], seat)
        moves = [
            MoveReport(move=texts[found.action], value=round(found.value, 4), share=found.share)
            for found in advice.actions
        ]
    return AdviceReport(
        game=spec.name,
        rules=spec.describe(game),
        player=player,
        seed=seed,
        seat=seat,
        move=best,
        moves=moves,
        legal=list(texts.values()),
        draws=len(views),
        table=table,
    )


def _print(found: AdviceReport) -> None:
    """Print the table, the moves and the move to play."""
    from rich.console import Console

    from deploy.playing import say_moves

    console = Console(highlight=False, markup=False)
    console.print(found.table)
    if found.move is None:
        return
    drawn = f", in {found.draws} draws of what the position leaves open" if found.draws > 1 else ""
    rows = [(move.move, move.value, move.share) for move in found.moves]
    say_moves(console, rows)
    console.print(f"Play {found.move}, says {found.player}{drawn}.")
