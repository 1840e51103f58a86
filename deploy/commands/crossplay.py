"""``crossplay``: who plays well only with its like. Room: deploy; light imports."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from tyro.conf import Positional, UseAppendAction, arg

from deploy.commands import UserError, option
from deploy.commands.models import rule_options
from deploy.presets import MAX_SEED

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from league.crossplay import CrossplayReport
    from league.players import PlayerSpec

MAX_PLAYERS = 26
"""Rows and columns of the matrix are called A to Z."""
DEFAULT_GAMES = 400


def crossplay(
    players: Annotated[Positional[tuple[str, ...]], arg(metavar="A B ...")],
    /,
    *,
    games: Annotated[int, option("N")] = DEFAULT_GAMES,
    simulations: Annotated[int | None, option("S")] = None,
    against: Annotated[str, option("PLAYER")] = "rules",
    game: Annotated[str, option("GAME")] = "",
    rules: Annotated[str, option("PRESET")] = "",
    set: Annotated[UseAppendAction[tuple[str, ...]], option("OPTION=WORD")] = (),
    seed: Annotated[int, option("SEED")] = 0,
    json: Annotated[bool, option("")] = False,
) -> int:
    """Play every pair of players as partners against a fixed side; show private conventions.

    Players are written as for match. Every pair plays the same deals, on both sides and in both
    orders; the matrix shows its win rates, and the gap what a player loses with a stranger.

    Args:
        players: Two or more, for example versions of a run, or champions of other seeds.
        games: Games of every pair, a multiple of 4.
        simulations: Simulations a move of players that are written without a number.
        against: Player on both seats of the other side.
        game: Needed when no player is a model.
        rules: Rule preset of the game; needed when no player is a model.
        set: Rule options, such as --set sum_cards=2+.
        seed: Number that all deals follow from.
        json: Print all figures as JSON.
    """
    if not 0 <= seed <= MAX_SEED:
        raise UserError(f"--seed {seed}: allowed is a whole number from 0 to {MAX_SEED}")
    if len(players) > MAX_PLAYERS:
        raise UserError(f"{len(players)} players: allowed are 2 to {MAX_PLAYERS}")
    from rich.console import Console

    from engine.game import UnknownGameError
    from league.crossplay import NoPartnersError
    from league.duplicate import OddGamesError
    from league.models import ModelError
    from league.players import PlayerError

    try:
        found = measure(
            [with_simulations(text, simulations) for text in players],
            with_simulations(against, simulations),
            games,
            seed,
            game=game,
            rules=rules,
            options=rule_options(set),
            console=None if json else Console(stderr=True),
        )
    except (PlayerError, ModelError, UnknownGameError, OddGamesError, NoPartnersError) as error:
        raise UserError(str(error)) from error
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
    else:
        print_report(found, Console())
    return 0


def with_simulations(text: str, simulations: int | None) -> PlayerSpec:
    """Return the player ``text``, or ``text:simulations`` where a number is missing.

    Raises PlayerError.
    """
    from league.players import PlayerError, parse_player

    try:
        return parse_player(text)
    except PlayerError:
        if simulations is None or ":" in text:
            raise
        return parse_player(f"{text}:{simulations}")


def measure(
    players: Sequence[PlayerSpec],
    against: PlayerSpec,
    num_games: int,
    seed: int,
    *,
    game: str = "",
    rules: str = "",
    options: dict[str, str] | None = None,
    console: Console | None = None,
) -> CrossplayReport:
    """Play ``players`` with one another; progress goes to ``console`` when there is one.

    Raises UserError, PlayerError, ModelError, UnknownGameError, NoPartnersError or OddGamesError;
    each names its value.
    """
    from deploy.report import SLOTS, told
    from league.crossplay import check_names, num_deals, play_crossplay
    from league.players import PlayContext, agree_on_game, build_player, resolve

    names = [player.text for player in players]
    try:
        check_names(names)
    except ValueError as error:
        raise UserError(str(error)) from error
    resolved = [resolve(player) for player in (*players, against)]
    spec, chosen = agree_on_game(resolved, game, rules, options)
    num_deals(spec, chosen, num_games)  # refused before anything is said or loaded
    # The trees of all players stay in memory; a match has those of two.
    context = PlayContext(spec, chosen, batch=max(1, 2 * SLOTS // len(resolved)))
    *seated, fixed = [build_player(player, context) for player in resolved]
    with told(console, f"{len(names)} players as partners against {against.text}") as progress:
        return play_crossplay(
            spec,
            chosen,
            seated,
            fixed,
            num_games,
            seed,
            names=names,
            against_name=against.text,
            slots=SLOTS,
            progress=progress,
        )


# --- tables ---------------------------------------------------------------------------------------


def print_report(report: CrossplayReport, console: Console) -> None:
    """Print the matrix, the gaps and the verdict."""
    console.print(matrix_table(report))
    console.print(gap_table(report))
    console.print(f"Verdict: {report.verdict}.", style="bold", markup=False, highlight=False)
    console.print(
        f"Win rates of two partners against two of {report.against}, in percent: "
        f"{report.num_deals:,} deals, the same for all, on both sides and in both orders. Gap: "
        "mean of the two with their like, minus mixed. Loss: the weaker with its like, minus "
        "mixed; above 0 it cannot come from a difference in strength. Intervals are 95 %, from the "
        "deals; among many pairs one in twenty misses by chance.",
        style="dim",
        markup=False,
        highlight=False,
    )


def letter(index: int) -> str:
    """Return the name of a player in the matrix."""
    return chr(ord("A") + index)


def matrix_table(report: CrossplayReport) -> Table:
    """Return the matrix of win rates; below the diagonal it would repeat itself."""
    from rich.table import Table

    table = Table(title=f"{report.game}: partners against {report.against}", title_justify="left")
    table.add_column("", overflow="fold")
    for index in range(len(report.players)):
        table.add_column(f"with {letter(index)}", justify="right", no_wrap=True)
    cells = {(cell.first, cell.second): cell for cell in report.cells}
    for index, name in enumerate(report.players):
        row = []
        for partner in report.players:
            cell = cells.get((name, partner))
            row.append(
                f"{100 * cell.win_rate:.1f}\n"
                f"{100 * cell.win_rate_low:.1f} to {100 * cell.win_rate_high:.1f}"
                if cell is not None
                else ""
            )
        table.add_row(f"{letter(index)}  {name}", *row)
    return table


def gap_table(report: CrossplayReport) -> Table:
    """Return self-play minus cross-play, of all players and of each pair, in points."""
    from rich.table import Table

    table = Table(title="Self-play minus cross-play, in points", title_justify="left")
    table.add_column("")
    for figure in ("gap", "loss"):
        table.add_column(figure, justify="right")
        table.add_column("95 % interval", justify="right", no_wrap=True)
    rows = [("all pairs", report.gap, report.loss)]
    if len(report.pair_gaps) > 1:
        where = {name: letter(index) for index, name in enumerate(report.players)}
        rows += [
            (f"{where[p.first]} and {where[p.second]}", p.gap, p.loss) for p in report.pair_gaps
        ]
    for label, *figures in rows:
        cells = []
        for found in figures:
            cells.append(f"{100 * found.mean:+.1f}")
            cells.append(f"{100 * found.low:+.1f} to {100 * found.high:+.1f}")
        table.add_row(label, *cells)
    return table
