"""``play``: a game at the terminal. Room: deploy; light imports."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from tyro.conf import Positional, UseAppendAction, arg

from deploy.commands import UserError, option
from deploy.commands.models import rule_options
from deploy.presets import MAX_SEED

if TYPE_CHECKING:
    from rich.console import Console

    from deploy.playing import TerminalGame
    from engine.game import GameSpec
    from league.players import ResolvedPlayer

ME = "me"
"""The person, among the seats."""
OTHERS = "rules"
"""Who sits on the seats that ``--seats`` does not name."""
HINTS = "ismcts:1000"


def play(
    game: Annotated[Positional[str], arg(metavar="GAME")],
    /,
    *,
    seats: Annotated[str, option("me,PLAYER,...")] = "",
    rules: Annotated[str, option("PRESET")] = "",
    set: Annotated[UseAppendAction[tuple[str, ...]], option("OPTION=WORD")] = (),
    hints: Annotated[str, option("PLAYER")] = HINTS,
    seed: Annotated[int | None, option("SEED")] = None,
) -> int:
    """Play a game against players of the program; what you see is what your seat may know.

    You are asked for your moves: hint, undo, moves, table and help are answered too. undo goes back
    to your last decision with the same cards, and you may well know more by then. Ctrl-D leaves.

    Args:
        game: The game.
        seats: Who sits where, players as for match, you once (default: me, and rules elsewhere).
        rules: Rule preset (default: the game's first one, or that of a model at the table).
        set: Rule options, such as --set players=3.
        hints: Player that is asked for hints.
        seed: Number that the cards follow from (default: drawn, and told at the end).
    """
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise UserError(f"--seed {seed}: allowed is a whole number from 0 to {MAX_SEED}")
    from deploy.playing import LeftGame, new_console
    from engine.game import UnknownGameError
    from league.models import ModelError
    from league.players import PlayerError

    deals = secrets.randbelow(2**32) if seed is None else seed
    console = new_console()
    try:
        seating = _seating(game, seats, hints, rules, rule_options(set))
        table = _sit_down(seating, deals, console)
    except (PlayerError, ModelError, UnknownGameError) as error:
        raise UserError(str(error)) from error
    try:
        table.run()
    except KeyboardInterrupt:
        console.print("\nYou left the game.")
    except LeftGame:
        console.print("You left the game.")
    console.print(f"--seed {deals} deals the same cards again.")
    return 0


class Seating(NamedTuple):
    """Who sits where, in which game."""

    spec: GameSpec
    game: Any
    own: int
    """The person's seat."""
    others: dict[int, ResolvedPlayer]
    hints: ResolvedPlayer


def _seating(game: str, seats: str, hints: str, rules: str, options: dict[str, str]) -> Seating:
    """Return what the words stand for. Raises UserError and what league.players raises."""
    from engine.game import get_spec
    from engine.rules import num_seats
    from league.players import agree_on_game, parse_player, resolve

    spec = get_spec(game)
    words = [word.strip() for word in seats.split(",")] if seats else []
    if words and words.count(ME) != 1:
        raise UserError(f"--seats {seats}: allowed is {ME} once, on your seat")
    adviser = resolve(parse_player(hints))
    texts = {word: resolve(parse_player(word)) for word in {*words, OTHERS} - {ME}}
    players = [adviser, *(texts[word] for word in words if word != ME)]
    if any(player.metadata is not None for player in players):
        spec, chosen = agree_on_game(players, game, rules, options)
    else:
        chosen = spec.make(rules, options)
    count = int(num_seats(chosen))
    words = words or [ME, *[OTHERS] * (count - 1)]
    if len(words) != count:
        raise UserError(f"--seats {seats}: {game} has {count} seats here, not {len(words)}")
    others = {seat: texts[word] for seat, word in enumerate(words) if word != ME}
    return Seating(spec, chosen, words.index(ME), others, adviser)


def _sit_down(seating: Seating, seed: int, console: Console) -> TerminalGame:
    """Return the game, dealt and not yet begun. Raises ModelError or PlayerError."""
    from deploy.playing import TerminalGame
    from deploy.warm import marker
    from engine.jit import jit_enabled
    from engine.sitting import Sitting
    from league.advice import Advisor
    from league.players import PlayContext, build_player

    spec, game, own, others, hints = seating
    context = PlayContext(spec, game, batch=1)
    built = {player.spec.text: build_player(player, context) for player in others.values()}
    advisor = Advisor(hints, context)
    if jit_enabled() and not marker(spec.name).exists():
        console.print(f"The first game of {spec.name} compiles its rules, about a minute ...")
    names = [others[seat].spec.text if seat in others else ME for seat in range(len(others) + 1)]
    return TerminalGame(
        Sitting(spec, game, seed),
        own,
        {seat: built[player.spec.text] for seat, player in others.items()},
        [*names, hints.spec.text],
        advisor,
        console,
    )
