"""``league``: the table of a run's versions. Room: deploy; light imports."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
from tyro.conf import Positional, arg

from deploy.commands import UserError, option
from deploy.commands.runs import find_run

if TYPE_CHECKING:
    from rich.console import Console

    from deploy.standings import Standings

MAX_MATRIX = 12
"""Versions in the matrix of results; all of them are in the JSON."""
MAX_GATES = 5
NEVER_MET = "·"


def league(
    name: Annotated[Positional[str], arg(metavar="RUN")],
    /,
    *,
    json: Annotated[bool, option("")] = False,
) -> int:
    """Show how a run's versions stand against each other, live or stopped.

    Ratings are in Elo, the rule-based player has 0. They come from games that are played for them
    alone, and are as old as the run's last snapshot.

    Args:
        name: Folder of the run, or its name.
        json: Print all figures as JSON.
    """
    from deploy.manifest import ResumeError
    from deploy.rundir import RunDirectory
    from deploy.standings import standings

    try:
        found = standings(RunDirectory(find_run(name)))
    except ResumeError as error:
        raise UserError(str(error)) from error
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
        return 0
    from rich.console import Console

    print_standings(found, Console())
    return 0


def print_standings(found: Standings, console: Console) -> None:
    """Print the table, the matrix and the last gates, or say in words what is missing."""

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    if not found.versions:
        say(f"{found.run}: there is no version yet")
        return
    _print_table(found, console)
    if found.results:
        say(f"rating games: {found.basis}")
        _print_matrix(found, console)
    else:
        say("there are no rating games yet: the arena plays them beside the gates")
    num_gates = found.promoted + found.rejected + found.undecided
    if not num_gates:
        say("no gate has ended yet")
        return
    say(f"gates: {found.promoted} promoted, {found.rejected} rejected, {found.undecided} undecided")
    from deploy.liveview import outcome_words

    for outcome in found.gates[:MAX_GATES]:
        say(f"  {outcome_words(outcome)}")


def _print_table(found: Standings, console: Console) -> None:
    from rich.table import Table

    from deploy.standings import name_of

    state = "live" if found.live else "stopped"
    table = Table(title=f"{found.run} ({state})", title_justify="left")
    heads = ("version", "", "rating", "95 % interval", "games", "won", "drawn", "lost")
    for i, head in enumerate(heads):
        table.add_column(head, justify="left" if i < 2 else "right", no_wrap=True)
    for entry in found.versions:
        rated = entry.rating is not None
        met = entry.wins + entry.draws + entry.losses > 0
        results = [f"{n:,}" if met else NEVER_MET for n in (entry.wins, entry.draws, entry.losses)]
        table.add_row(
            name_of(entry.version),
            ", ".join(entry.roles),
            f"{entry.rating:+.0f}" if rated else NEVER_MET,
            f"{entry.low:+.0f} to {entry.high:+.0f}" if rated else NEVER_MET,
            f"{entry.games:,}",
            *results,
            style="bold" if "champion" in entry.roles else "",
        )
    console.print(table)
    console.print(
        f"Elo, rules = 0. Won, drawn, lost: games against {name_of(found.champion)}, the champion.",
        style="dim",
        highlight=False,
        markup=False,
    )


def _print_matrix(found: Standings, console: Console) -> None:
    from rich.table import Table

    from deploy.standings import name_of
    from league.messages import ANCHOR, RatingTable
    from league.ratings import SCORES, tally_between, versions_of

    results = RatingTable(tallies=tuple(found.results))
    versions = sorted(versions_of(results), reverse=True)
    players = [*versions[:MAX_MATRIX], ANCHOR]
    table = Table(title="points of the row against the column, in percent", title_justify="left")
    for head in ("", *map(name_of, players)):
        table.add_column(head, justify="right", no_wrap=True)
    for first in players:
        cells = []
        for second in players:
            counts = tally_between(results, first, second).scores if first != second else ()
            met = sum(counts)
            share = sum(n * s for n, s in zip(counts, SCORES, strict=False)) / met if met else 0.0
            cells.append(f"{100 * share:.0f}" if met else NEVER_MET)
        table.add_row(name_of(first), *cells)
    console.print(table)
    hidden = len(versions) - MAX_MATRIX
    if hidden > 0:
        console.print(f"and {hidden} older versions (--json has all)", highlight=False, style="dim")
