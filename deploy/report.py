"""Measured strength for people: the table of a match, and the closing table of a run.

Room: deploy. May import: league, engine, rich. Heavy: commands and the closing child load it late.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from deploy.config import RunConfig
from engine.game import get_spec
from engine.search.ismcts import SearchOptions, search_options
from league.duplicate import block_size, num_pairs
from league.match import MatchReport, PlayerReport, play_match
from league.match import Progress as Told
from league.messages import EvaluationResult
from league.players import (
    PlayContext,
    ResolvedPlayer,
    agree_on_game,
    build_player,
    parse_player,
    resolve,
)
from league.sequential import parse_test, play_sequential

SLOTS = 256
"""Games side by side: large enough for batches, small enough for their trees' memory."""
CHAMPION = "champion"
MIN_ROW_S = 1.0
"""A limited table gives each row at least so long."""


# --- closing table --------------------------------------------------------------------------------


def closing_table(
    run_directory: Path, config: RunConfig, limit_s: float = 0.0, console: Console | None = None
) -> list[MatchReport]:
    """Play the champion of a run against the yardstick of its configuration and print the table.

    One column per ``config.report.simulations``. With ``limit_s`` > 0 the matches end after about
    so long in all; each then says how many games it is made of. Returns what was found.

    Raises:
        ModelError: There is no champion, or its file is damaged.
        PlayerError: The opponent is no player.
    """
    console = console or Console()
    report, began = config.report, time.monotonic()
    opponent = resolve(parse_player(report.opponent))
    found: list[MatchReport] = []
    for row, simulations in enumerate(report.simulations):
        champion = resolve(parse_player(f"{run_directory}@champion:{simulations}"))
        rows_left = len(report.simulations) - row
        left_s = max(MIN_ROW_S, (limit_s - (time.monotonic() - began)) / rows_left)
        what = f"champion ({policy_words(simulations)}) against {report.opponent}"
        with told(console, what) as progress:
            found.append(
                _play(
                    (champion, opponent),
                    config,
                    deadline_s=left_s if limit_s > 0 else None,
                    progress=progress,
                )
            )
    version = _version(champion)
    title = f"{config.name}: {CHAMPION} v{version} against {report.opponent}"
    heads = [policy_words(simulations) for simulations in report.simulations]
    print_table(console, table(title, heads, found), (CHAMPION, report.opponent))
    return found


def closing_results(
    version: int, config: RunConfig, reports: Sequence[MatchReport]
) -> list[EvaluationResult]:
    """Return the matches of a closing table as evaluations of the champion, empty ones left out."""
    return [
        EvaluationResult(
            version=version,
            is_champion=True,
            opponent=config.report.opponent,
            simulations=simulations,
            games=report.num_games,
            wins=report.wins,
            draws=report.draws,
            losses=report.losses,
            win_rate=report.win_rate,
            win_rate_low=report.win_rate_low,
            win_rate_high=report.win_rate_high,
            own=_figures(report.players[0]),
            other=_figures(report.players[1]),
            seed=report.seed,
        )
        for simulations, report in zip(config.report.simulations, reports, strict=True)
        if report.num_games
    ]


def _figures(player: PlayerReport) -> dict[str, float]:
    return {**player.statistics, "return": player.shaped_return, "plies": player.plies}


def _play(
    players: tuple[ResolvedPlayer, ResolvedPlayer],
    config: RunConfig,
    *,
    deadline_s: float | None,
    progress: Told,
) -> MatchReport:
    spec = get_spec(config.game.name)
    game = spec.make(config.game.rules, config.game.options)
    context = PlayContext(spec, game, options_of(config), batch=SLOTS)
    load_kernels(players, context)
    # A yardstick that searches is the same one whatever the run's own options are.
    plain = context._replace(options=SearchOptions())
    champion, opponent = players
    return play_match(
        spec,
        game,
        [build_player(champion, context), build_player(opponent, plain)],
        config.report.num_games,
        config.seed,
        names=(CHAMPION, config.report.opponent),
        slots=SLOTS,
        progress=progress,
        deadline_s=deadline_s,
    )


def options_of(config: RunConfig) -> SearchOptions:
    """Return the engine's search options of a run."""
    return search_options(**msgspec.to_builtins(config.search))


def policy_words(simulations: int) -> str:
    """Return in words how a model plays."""
    return f"{simulations} simulations" if simulations else "policy alone"


def _version(player: ResolvedPlayer) -> int:
    return player.metadata.version if player.metadata is not None else -1


def load_kernels(players: Sequence[ResolvedPlayer], context: PlayContext) -> None:
    """Play one pair with the shortest searches, so that no game's time holds loading of code."""
    brief = [
        player._replace(
            spec=msgspec.structs.replace(player.spec, simulations=min(2, player.spec.simulations))
        )
        for player in players
    ]
    seated = [build_player(player, context._replace(batch=2)) for player in brief]
    play_match(context.spec, context.game, seated, block_size(context.game), 0)


# --- matches --------------------------------------------------------------------------------------


def match(
    players: tuple[str, str],
    num_games: int,
    seed: int,
    *,
    game: str = "",
    rules: str = "",
    options: dict[str, str] | None = None,
    sequential: str = "",
    console: Console | None = None,
) -> MatchReport:
    """Play two players as people write them; progress goes to ``console`` when there is one.

    With ``sequential``, the settings of a test, ``num_games`` is the most.

    Raises PlayerError, ModelError, UnknownGameError, OddGamesError or SequentialError; each names
    its value.
    """
    resolved = [resolve(parse_player(text)) for text in players]
    spec, chosen = agree_on_game(resolved, game, rules, options)
    pairs = num_pairs(chosen, num_games)  # refused before anything is said or loaded
    test = parse_test(sequential, pairs) if sequential else None
    context = PlayContext(spec, chosen, batch=SLOTS)
    load_kernels(resolved, context)
    names = players if players[0] != players[1] else (f"{players[0]} (1)", f"{players[1]} (2)")
    with told(console, f"{names[0]} against {names[1]}") as progress:
        built = [build_player(player, context) for player in resolved]
        if test is not None:
            return play_sequential(spec, chosen, built, test, seed, names=names, progress=progress)
        return play_match(
            spec,
            chosen,
            built,
            num_games,
            seed,
            names=names,
            slots=SLOTS,
            progress=progress,
        )


def print_match(report: MatchReport, console: Console | None = None) -> None:
    """Print a match as a table."""
    first, second = (player.name for player in report.players)
    heads, title = [f"{first} – {second}"], f"{report.game}: {first} against {second}"
    print_table(console or Console(), table(title, heads, [report]), (first, second))


@contextlib.contextmanager
def told(console: Console | None, what: str) -> Iterator[Told]:
    """Show progress while the context lasts; without a terminal only say what is played."""
    if console is None:
        yield lambda done, games: None
        return
    if not console.is_terminal or console.is_dumb_terminal:
        console.print(f"playing: {what}", markup=False, highlight=False)
        yield lambda done, games: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, games: bars.update(task, completed=done, total=games)


# --- the table ------------------------------------------------------------------------------------


def table(title: str, heads: Sequence[str], reports: Sequence[MatchReport]) -> Table:
    """Return one column per match; figures of both sides stand as ``first – second``."""
    result = Table(title=title, title_justify="left")
    result.add_column("", no_wrap=True)
    for head in heads:
        result.add_column(head, justify="right")
    for label, cells in rows(reports):
        result.add_row(label, *cells, style="bold" if label in ("win rate", "verdict") else "")
    return result


def print_table(console: Console, shown: Table, names: tuple[str, str]) -> None:
    """Print a table and how it is to be read."""
    console.print(shown)
    console.print(
        f"Pairs of figures are {names[0]} – {names[1]}, means a game. Every deal is played twice "
        "with the sides exchanged; the interval comes from these pairs.",
        style="dim",
        highlight=False,
        markup=False,
    )


def rows(reports: Sequence[MatchReport]) -> list[tuple[str, list[str]]]:
    """Return the lines of the table: a label and one cell per match."""
    plain = (
        ("win rate", lambda r: f"{100 * r.win_rate:.1f} %"),
        ("95 % interval", lambda r: f"{100 * r.win_rate_low:.1f} to {100 * r.win_rate_high:.1f} %"),
        ("verdict", lambda r: r.verdict),
        ("games", num_games_words),
        ("won, drawn, lost", lambda r: f"{r.wins:,}, {r.draws:,}, {r.losses:,}"),
        ("different games", lambda r: f"{r.distinct_games:,}"),
    )
    lines = [(label, [show(report) for report in reports]) for label, show in plain]
    if any(report.sequential is not None for report in reports):
        lines.insert(3, ("sequential test", [sequential_words(report) for report in reports]))
    for name in reports[0].players[0].statistics:
        lines.append((name, [_both([p.statistics[name] for p in r.players]) for r in reports]))
    lines.append(("shaped return", [_both([p.shaped_return for p in r.players]) for r in reports]))
    lines.append(("plies a game", [f"{r.players[0].plies:.1f}" for r in reports]))
    lines.append(("seconds a game", [f"{r.seconds_per_game:.4f}" for r in reports]))
    return lines


def sequential_words(report: MatchReport) -> str:
    """Return how the sequential test of a match ended; nothing for a match without one."""
    found = report.sequential
    if found is None:
        return ""
    return (
        f"{found.verdict}: {found.wins:,} of {found.num_decided:,} decided pairs won, "
        f"{report.num_pairs:,} played (p1 = {found.p1:g}, alpha = {found.alpha:g})"
    )


def num_games_words(report: MatchReport) -> str:
    """Return the number of games, and of how many when the match was cut short."""
    if report.num_games == report.num_requested:
        return f"{report.num_games:,}"
    return f"{report.num_games:,} of {report.num_requested:,} (cut short)"


def _both(values: Sequence[float]) -> str:
    return " – ".join(f"{value:.2f}" for value in values)
