"""Cross-play: every pair of players as partners, against one fixed side, on the same cards.

Room: league. May import: engine, league.

Players that learned together may have agreed on meanings that a stranger does not know. Such a
private convention shows where partners change: each with its like wins more (self-play) than the
same players mixed (cross-play). Hu, Lerer, Peysakhovich, Foerster: "Other-Play" for Zero-Shot
Coordination (ICML 2020), section 4.

A cell is a pair of players as partners. On every deal it holds each side once in each order of its
seats, and the fixed player all other seats; all cells meet the same deals. Two figures of a pair:

* gap, (AA + BB) / 2 - AB: what partners have beyond their strength, where strengths add up. They do
  so roughly; a strong and a weak player can show a gap with no convention at all.
* loss, min(AA, BB) - AB: above 0 only if the mixed partners do worse than the weaker player with
  its like, which no difference in strength explains, on whatever scale strengths add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from engine import rules
from engine.game import GameSpec
from engine.play import GameJob, GameResult, Table
from engine.players import Player
from league import duplicate
from league.duplicate import OddGamesError
from league.match import Progress

SEATS_OF_A_SIDE = 2
ORDERS = 2
"""Ways to seat two partners on the two seats of a side."""
MIN_DEALS = 20
"""Fewer deals allow no verdict: a bootstrap of them promises more than it keeps."""
NUM_RESAMPLES = 4_000
_RESAMPLES_AT_ONCE = 250
CONVENTION = "private convention: mixed partners win less than either player with its like"
STRENGTH = (
    "no private convention shown: players win more with their like, but mixed partners lie between "
    "the two, as they do where only strengths differ"
)
NONE_SHOWN = "no private convention shown"


class NoPartnersError(ValueError):
    """A game whose sides are not partnerships of two; names it."""


class CrossplayCell(msgspec.Struct, frozen=True, kw_only=True):
    """Two players as partners against the fixed side."""

    first: str
    second: str
    """``first`` itself on the diagonal of the matrix."""
    num_games: int
    win_rate: float
    """Of the partners, draws as half."""
    win_rate_low: float
    """Two-sided 95 % interval from the deals (``duplicate.interval``)."""
    win_rate_high: float


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A difference of win rates, in [-1, 1]."""

    mean: float
    low: float
    """Two-sided 95 % interval by bootstrap over deals."""
    high: float


class PairGap(msgspec.Struct, frozen=True, kw_only=True):
    """What two players have with their like and lack with one another."""

    first: str
    second: str
    gap: Estimate
    """(AA + BB) / 2 - AB."""
    loss: Estimate
    """min(AA, BB) - AB; its interval errs towards less."""


class CrossplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. All rates are shares of games, in [0, 1]; gaps in [-1, 1]."""

    game: str
    rules: dict[str, str]
    """All rule options in words."""
    seed: int
    players: tuple[str, ...]
    against: str
    """The player on all seats of the other sides."""
    num_deals: int
    """Different deals; every cell played all of them."""
    num_games: int
    """Of all cells together."""
    cells: tuple[CrossplayCell, ...]
    """Upper triangle of the matrix, row by row."""
    self_play: float
    """Mean win rate of the diagonal."""
    cross_play: float
    """Mean win rate of the other cells."""
    gap: Estimate
    """``self_play - cross_play``: the mean gap of the pairs."""
    loss: Estimate
    """The mean loss of the pairs."""
    pair_gaps: tuple[PairGap, ...]
    """Each interval for itself; among many pairs one in twenty misses by chance."""
    verdict: str
    """In words, on ``gap`` and ``loss``."""


class Cell(NamedTuple):
    """Indices of two players; equal on the diagonal."""

    first: int
    second: int


def partnerships(spec: GameSpec, game: Any) -> list[tuple[int, int]]:
    """Return the two seats of every side. Raises NoPartnersError unless each side has two."""
    sides: list[list[int]] = [[] for _ in range(int(rules.num_sides(game)))]
    for seat in range(int(rules.num_seats(game))):
        sides[int(rules.side_of(game, seat))].append(seat)
    if any(len(seats) != SEATS_OF_A_SIDE for seats in sides):
        sizes = ", ".join(str(len(seats)) for seats in sides)
        raise NoPartnersError(
            f"game {spec.name!r} has no partnerships under these rules: its sides have {sizes} "
            f"seats, needed are {SEATS_OF_A_SIDE} each"
        )
    return [(seats[0], seats[1]) for seats in sides]


def matrix_cells(num_players: int) -> list[Cell]:
    """Return the cells of the upper triangle, row by row, diagonal included."""
    return [Cell(*pair) for pair in combinations_with_replacement(range(num_players), 2)]


def num_deals(spec: GameSpec, game: Any, num_games: int) -> int:
    """Return the deals on which the partners of a cell play ``num_games`` games.

    Raises NoPartnersError, or OddGamesError for a number that is not one of whole deals.
    """
    size = ORDERS * len(partnerships(spec, game))
    if num_games < size or num_games % size:
        raise OddGamesError(
            f"{num_games} games: needed is a multiple of {size} (two partners play every deal on "
            "every side and in both orders)"
        )
    return num_games // size


def seatings(
    sides: Sequence[tuple[int, int]], cell: Cell, against: int
) -> list[tuple[int, tuple[int, ...]]]:
    """Return (replay, player at every seat) of a cell's games on one deal.

    A replay stands for a side and an order of the partners; equal ones of different cells share all
    randomness, so that players who play alike have cells alike, to the last game.
    """
    found = []
    for side, seats in enumerate(sides):
        for order in range(ORDERS):
            held = [against] * (SEATS_OF_A_SIDE * len(sides))
            held[seats[order]], held[seats[1 - order]] = cell
            found.append((side * ORDERS + order, tuple(held)))
    return found


def crossplay_jobs(
    sides: Sequence[tuple[int, int]], num_players: int, seed: int, deals: int
) -> Iterator[GameJob]:
    """Yield all games, cell by cell (so that a player meets large batches).

    The fixed player's index is ``num_players``. Deals follow from ``seed`` and their number alone.
    """
    deal_jobs = duplicate.pair_jobs(seed, range(deals))
    for cell in matrix_cells(num_players):
        seated = seatings(sides, cell, num_players)
        for job in deal_jobs:
            for replay, seat_players in seated:
                yield GameJob(job.pair, replay, job.seed, seat_players)


def play_crossplay(
    spec: GameSpec,
    game: Any,
    players: Sequence[Player],
    against: Player,
    num_games: int,
    seed: int,
    *,
    names: Sequence[str],
    against_name: str,
    slots: int = 64,
    progress: Progress | None = None,
) -> CrossplayReport:
    """Play every pair of ``players`` as partners against ``against``, and report.

    Args:
        spec: The game.
        game: Its rule options.
        players: Two or more.
        against: Holds every seat of the other sides.
        num_games: Of every cell.
        seed: Of all deals and of the players' own randomness.
        names: Of the players, all different.
        against_name: Of the fixed player.
        slots: Games side by side; the result does not depend on them.
        progress: Called as games end.

    Raises:
        NoPartnersError: The game has no sides of two.
        OddGamesError: ``num_games`` is not a number of whole deals.
        ValueError: Fewer than two players, or two of one name.
    """
    check_names(names)
    if len(names) != len(players):
        raise ValueError(f"{len(names)} names for {len(players)} players")
    deals = num_deals(spec, game, num_games)
    sides = partnerships(spec, game)
    total = num_games * len(matrix_cells(len(players)))
    jobs = crossplay_jobs(sides, len(players), seed, deals)
    table = Table(spec, game, [*players, against], jobs, num_slots=min(slots, total))
    results: list[GameResult] = []
    while len(results) < total:
        ended = table.step()
        results += ended
        if ended and progress is not None:
            progress(len(results), total)
    scores = score_table(sides, len(players), deals, results)
    return build_report(spec, game, scores, names, against_name, seed=seed)


def check_names(names: Sequence[str]) -> None:
    """Raise ValueError unless there are two or more different ``names``."""
    if len(names) < 2:
        raise ValueError(f"{len(names)} players: cross-play needs two or more")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"player {name!r} is named twice: with itself every player plays anyway"
            )


def score_table(
    sides: Sequence[tuple[int, int]], num_players: int, deals: int, results: Sequence[GameResult]
) -> NDArray[np.float64]:
    """Return the partners' mean score per deal and cell, ``float64[deals, cells]`` in [0, 1]."""
    column = {cell: index for index, cell in enumerate(matrix_cells(num_players))}
    sums = np.zeros((deals, len(column)))
    counts = np.zeros((deals, len(column)), np.int64)
    for result in results:
        held = result.job.seat_players
        side = next(i for i, seats in enumerate(sides) if held[seats[0]] != num_players)
        first, second = sorted(held[seat] for seat in sides[side])
        where = result.job.pair, column[Cell(first, second)]
        sums[where] += duplicate.game_score([float(value) for value in result.returns], side)
        counts[where] += 1
    return sums / counts


def build_report(
    spec: GameSpec,
    game: Any,
    scores: NDArray[np.float64],
    names: Sequence[str],
    against_name: str,
    *,
    seed: int,
) -> CrossplayReport:
    """Return the report on ``scores`` (``score_table``); ``seed`` is that of the deals."""
    cells = matrix_cells(len(names))
    on_diagonal = np.array([cell.first == cell.second for cell in cells])
    rates, drawn = scores.mean(axis=0), resample(scores, seed)
    gaps, drawn_gaps = pair_gaps(rates), pair_gaps(drawn)
    losses, drawn_losses = pair_losses(rates), pair_losses(drawn)
    deals, pairs = len(scores), list(combinations(names, 2))
    gap = estimate(gaps.mean(), drawn_gaps.mean(axis=1), deals)
    loss = estimate(losses.mean(), drawn_losses.mean(axis=1), deals)
    matrix = _matrix(scores, names, len(partnerships(spec, game)))
    return CrossplayReport(
        game=spec.name,
        rules=spec.describe(game),
        seed=seed,
        players=tuple(names),
        against=against_name,
        num_deals=deals,
        num_games=sum(cell.num_games for cell in matrix),
        cells=matrix,
        self_play=float(rates[on_diagonal].mean()),
        cross_play=float(rates[~on_diagonal].mean()),
        gap=gap,
        loss=loss,
        pair_gaps=tuple(
            PairGap(
                first=first,
                second=second,
                gap=estimate(gaps[pair], drawn_gaps[:, pair], deals),
                loss=estimate(losses[pair], drawn_losses[:, pair], deals),
            )
            for pair, (first, second) in enumerate(pairs)
        ),
        verdict=verdict(gap, loss, deals),
    )


def _matrix(
    scores: NDArray[np.float64], names: Sequence[str], num_sides: int
) -> tuple[CrossplayCell, ...]:
    found = []
    for cell, column in zip(matrix_cells(len(names)), scores.T, strict=True):
        rate = duplicate.interval(column)
        found.append(
            CrossplayCell(
                first=names[cell.first],
                second=names[cell.second],
                num_games=len(column) * num_sides * ORDERS,
                win_rate=rate.mean,
                win_rate_low=rate.low,
                win_rate_high=rate.high,
            )
        )
    return tuple(found)


# --- statistics -----------------------------------------------------------------------------------


def pair_gaps(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (AA + BB) / 2 - AB of all pairs, ``[..., pairs]``, from rates ``[..., cells]``."""
    first, second, mixed = _of_pairs(rates)
    return (first + second) / 2.0 - mixed


def pair_losses(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return min(AA, BB) - AB of all pairs, ``[..., pairs]``, from rates ``[..., cells]``."""
    first, second, mixed = _of_pairs(rates)
    return np.minimum(first, second) - mixed


def _of_pairs(rates: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return AA, BB and AB of all pairs, each ``[..., pairs]``."""
    num_players = math.isqrt(2 * rates.shape[-1])
    column = {cell: index for index, cell in enumerate(matrix_cells(num_players))}
    pairs = list(combinations(range(num_players), 2))
    return (
        rates[..., [column[Cell(first, first)] for first, _ in pairs]],
        rates[..., [column[Cell(second, second)] for _, second in pairs]],
        rates[..., [column[Cell(*pair)] for pair in pairs]],
    )


def resample(scores: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Return the cells' rates on deals drawn anew with replacement, ``[resamples, cells]``.

    A draw is the same deals for all cells, as they share them. Follows from ``seed`` alone.
    """
    deals = len(scores)
    generator = np.random.default_rng(seed)
    even = np.full(deals, 1.0 / deals)
    return np.concatenate(
        [
            generator.multinomial(deals, even, size=_RESAMPLES_AT_ONCE) @ scores / deals
            for _ in range(NUM_RESAMPLES // _RESAMPLES_AT_ONCE)
        ]
    )


def estimate(mean: float, drawn: NDArray[np.float64], deals: int) -> Estimate:
    """Return ``mean`` with its 95 % interval from its ``drawn`` values, ``[resamples]``.

    Expanded percentiles: Hesterberg, What Teachers Should Know About the Bootstrap (The American
    Statistician 69, 2015), section 3.3. The quantiles move out as far as Student's do, without
    which few deals would give too short an interval. One deal bounds nothing.
    """
    from scipy.special import ndtr

    if deals < 2:
        return Estimate(mean=float(mean), low=-1.0, high=1.0)
    tail = float(ndtr(-math.sqrt(deals / (deals - 1)) * duplicate.student_quantile(deals - 1)))
    low, high = np.quantile(drawn, (tail, 1.0 - tail))
    return Estimate(mean=float(mean), low=float(low), high=float(high))


def verdict(gap: Estimate, loss: Estimate, deals: int) -> str:
    """Return in words what ``gap`` and ``loss`` show: their intervals against 0."""
    if deals < MIN_DEALS:
        return f"too few deals for a verdict: {deals}, needed are {MIN_DEALS}"
    if gap.low <= 0.0:
        return NONE_SHOWN
    return CONVENTION if loss.low > 0.0 else STRENGTH
