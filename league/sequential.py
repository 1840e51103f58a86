"""A match that a sequential test ends: is the first player stronger than the second?

Room: league. May import: engine, league. The test is the gate's (``league.sprt``), and the gate
itself reads the pairs: in the order of issue, and nothing after the decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from engine.game import GameSpec
from engine.play import GameJob, Table
from engine.players import Player
from league import duplicate, sprt
from league.config import GateConfig
from league.duplicate import PairCollector, PairResult
from league.gatekeeper import Gatekeeper, sprt_of
from league.match import MatchReport, Progress, SequentialOutcome, build_report

SETTINGS = ("p0", "p1", "alpha", "beta")
_SECOND, _FIRST = 0, 1


class SequentialError(ValueError):
    """A test or a game that cannot be; names what is allowed."""


def parse_test(text: str, num_pairs: int) -> GateConfig:
    """Return the test of ``p1=0.6,alpha=0.01``, which reads ``num_pairs`` pairs at the most.

    What is not written keeps the gate's default. Raises SequentialError naming what is allowed.
    """
    values: dict[str, float] = {}
    for setting in text.split(","):
        name, _, word = setting.partition("=")
        try:
            values[name.strip()] = float(word)
        except ValueError:
            name = ""
        if name.strip() not in SETTINGS:
            raise SequentialError(
                f"sequential test {text!r}: allowed are numbers for {', '.join(SETTINGS)}, such "
                "as p1=0.6,alpha=0.01"
            )
    test = GateConfig(**values, max_decided=num_pairs, max_pairs=num_pairs)  # type: ignore[arg-type]
    try:
        sprt_of(test)
    except ValueError as error:
        raise SequentialError(f"sequential test {text!r}: {error}") from error
    return test


def play_sequential(
    spec: GameSpec,
    game: Any,
    players: Sequence[Player],
    test: GateConfig,
    seed: int,
    *,
    names: tuple[str, str] = ("first", "second"),
    slots: int = 16,
    progress: Progress | None = None,
) -> MatchReport:
    """Play pairs until ``test`` decides whether the first player is stronger; report on those.

    The result does not depend on ``slots``; more of them play more games that are not read.

    Args:
        spec: The game.
        game: Its rule options.
        players: The two players.
        test: Error rates, and the pairs at the most.
        seed: Of all deals and of the players' own randomness.
        names: Of the players, for the report.
        slots: Games side by side.
        progress: Called as games end with those that the test could read, and the most.

    Raises:
        SequentialError: A game of more than two sides.
        ValueError: Not two players.
    """
    if len(players) != duplicate.NUM_PLAYERS:
        raise ValueError(f"{len(players)} players: a match has {duplicate.NUM_PLAYERS}")
    if duplicate.block_size(game) != 2:
        raise SequentialError(
            f"{duplicate.block_size(game)} sides: the sequential test is for games of two"
        )
    gate = Gatekeeper(test, candidate=_FIRST, champion=_SECOND, seed=seed)

    def jobs() -> Iterator[GameJob]:
        while pairs := gate.issue(1):
            yield from duplicate.game_jobs(game, pairs[0])

    table = Table(spec, game, players, jobs(), num_slots=slots)
    collector = PairCollector(game)
    finished: dict[int, PairResult] = {}
    while not gate.is_over:
        for result in table.step():
            pair = collector.add(result)
            if pair is not None:
                finished[pair.pair] = pair
                gate.report(pair.pair, pair.score)
                if progress is not None:
                    progress(2 * gate.status().num_pairs, 2 * test.max_pairs)
    outcome = gate.outcome()
    assert outcome is not None
    read = [finished[number] for number in range(outcome.num_pairs)]
    report = build_report(spec, game, names, read, seed=seed, num_requested=2 * len(read))
    sequential = SequentialOutcome(
        **{name: getattr(test, name) for name in SETTINGS},
        max_pairs=test.max_pairs,
        outcome=outcome.outcome,
        num_decided=outcome.num_decided,
        wins=outcome.wins,
        llr=outcome.llr,
        verdict=_verdict(names, outcome.outcome),
    )
    return msgspec.structs.replace(report, sequential=sequential)


def _verdict(names: tuple[str, str], outcome: str) -> str:
    if outcome == sprt.PROMOTED:
        return f"{names[0]} is stronger"
    if outcome == sprt.REJECTED:
        return f"{names[0]} is not that much stronger"
    return "undecided"
