"""Gates between equal players: how often is a candidate promoted that is no better?

    python -m tests.bench.equal_gates --gates 200

Every candidate has the champion's weights, byte for byte; only the version in its metadata differs.
The worker, the sequential test, the networks and the searches are those of a run. The game is
Cuarenta to ten points, so that a gate is short. Equal models still decide pairs: each seat of each
replay draws worlds of its own, so the same cards are not played in the same way twice.

It prints a line for each gate, and at the end how many were promoted beside what the exact law of
the test allows, and the share of pairs that were decided.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from scipy.stats import binom

from actors.arena import GateWorker
from actors.config import SearchConfig
from engine import rules
from engine.evaluation import num_value_heads
from engine.game import GameSpec, get_spec
from league import sprt
from league.config import GateConfig
from league.gatekeeper import sprt_of
from league.messages import GateOutcome, GateReply, GateRequest, LeagueState
from league.models import MemoryModelStore, ModelMetadata
from learner.config import NetworkConfig
from learner.export import Exporter
from learner.network import CandidateNetwork, NetworkShape, build_network

GAME, RULES, OPTIONS = "cuarenta", "report_a_4p", {"target": 10}
RUN_ID = "equal-gates"
LEAST_DECIDED_SHARE = 0.2
"""A gate of fewer decided pairs would measure the cards and not the players."""
TAIL = 0.0005
"""Each tail of the binomial law that counts as out of bounds: one run in a thousand."""
_CALL_S = 3600.0
_NETWORK = NetworkConfig(width=16, num_layers=1, candidate_width=8)


class Subject(NamedTuple):
    """The game and the network that all versions share."""

    spec: GameSpec
    game: Any
    exporter: Exporter
    network: CandidateNetwork


def make_subject(seed: int) -> Subject:
    """Return the short game and a small untrained network."""
    spec = get_spec(GAME)
    game = spec.make(RULES, OPTIONS)
    encoder = spec.encoders[0]
    heads = num_value_heads(int(rules.num_sides(game)))
    sizes = encoder.observation_size, encoder.action_size
    shape = NetworkShape.of(_NETWORK, *sizes, heads)
    return Subject(spec, game, Exporter(shape), build_network(shape, seed))


def model_of(subject: Subject, version: int) -> bytes:
    """Return the network as ``version``."""
    spec, encoder, shape = subject.spec, subject.spec.encoders[0], subject.network.shape
    metadata = ModelMetadata(
        run_id=RUN_ID,
        version=version,
        parent=version - 1,
        step=0,
        num_examples=0,
        game=spec.name,
        rules=spec.describe(subject.game),
        encoder=encoder.name,
        encoder_version=encoder.version,
        observation_size=shape.observation_size,
        action_size=shape.action_size,
        num_values=shape.num_values,
        target="win",
        network=shape.describe(),
    )
    return subject.exporter.export(subject.network, metadata)


def make_worker(subject: Subject, config: GateConfig, store: MemoryModelStore, seed: int) -> Any:
    """Return the gate's worker as a run builds it; it never sleeps."""
    return GateWorker(
        config=config,
        search=SearchConfig(),
        spec=subject.spec,
        game=subject.game,
        encoder=subject.spec.encoders[0],
        models=store,
        run_id=RUN_ID,
        seed=seed,
        epoch=1,
        sleep=lambda seconds: None,
    )


def play_gates(config: GateConfig, num_gates: int, seed: int) -> Iterator[GateOutcome]:
    """Play ``num_gates`` gates, one after the other, and yield how each ended.

    Version 0 stays champion: a promoted candidate would be the same player.
    """
    subject = make_subject(seed)
    store = MemoryModelStore()
    store.put(0, model_of(subject, 0))
    worker = make_worker(subject, config, store, seed)
    for candidate in range(1, num_gates + 1):
        store.put(candidate, model_of(subject, candidate))
        league = LeagueState(newest=candidate, champion=0, pool=(0,))
        request = GateRequest(epoch=1, league=league, budget_s=_CALL_S)
        outcomes: list[GateOutcome] = []
        while not outcomes:
            reply: GateReply = worker.step(request)
            outcomes = reply.outcomes
        yield outcomes[0]
        store.delete(candidate)


class Summary(NamedTuple):
    """What a number of gates found, beside the exact law of the test."""

    num_gates: int
    promoted: int
    rejected: int
    undecided: int
    num_pairs: int
    num_decided: int
    num_won: int
    """Decided pairs that candidates won."""
    promoted_share: float
    """Exact probability that an equal candidate is promoted, at the decided share found."""
    low: int
    """Fewest promotions within the bound."""
    high: int
    """Most promotions within the bound."""

    @property
    def decided_share(self) -> float:
        """Share of the pairs read that were decided."""
        return self.num_decided / self.num_pairs

    @property
    def within_bound(self) -> bool:
        """Whether promotions and decided pairs are as equal players have them."""
        return self.low <= self.promoted <= self.high


def summarise(outcomes: list[GateOutcome], config: GateConfig) -> Summary:
    """Return what ``outcomes`` amount to."""
    ends = [outcome.outcome for outcome in outcomes]
    num_pairs = sum(outcome.num_pairs for outcome in outcomes)
    num_decided = sum(outcome.num_decided for outcome in outcomes)
    law = sprt.characteristics(
        sprt_of(config), config.p0, split_share=1.0 - num_decided / num_pairs
    )
    spread = binom(len(outcomes), law.promoted)
    return Summary(
        num_gates=len(outcomes),
        promoted=ends.count(sprt.PROMOTED),
        rejected=ends.count(sprt.REJECTED),
        undecided=ends.count(sprt.UNDECIDED),
        num_pairs=num_pairs,
        num_decided=num_decided,
        num_won=sum(outcome.wins for outcome in outcomes),
        promoted_share=law.promoted,
        low=int(spread.ppf(TAIL)),
        high=int(spread.ppf(1.0 - TAIL)),
    )


def describe(summary: Summary) -> str:
    """Return ``summary`` in words, a line a figure."""
    decided = summary.num_decided
    won = summary.num_won / decided if decided else math.nan
    return "\n".join(
        (
            f"gates            {summary.num_gates}",
            f"promoted         {summary.promoted} (equal players: {summary.promoted_share:.2%} of "
            f"gates, {summary.low} to {summary.high} are within the bound)",
            f"rejected         {summary.rejected}",
            f"undecided        {summary.undecided}",
            f"pairs            {summary.num_pairs}, {summary.decided_share:.1%} of them decided "
            f"(at least {LEAST_DECIDED_SHARE:.0%} is needed)",
            f"decided pairs    {decided}, {decided / summary.num_gates:.1f} a gate, candidates won "
            f"{won:.2%}",
            f"within the bound {'yes' if summary.within_bound else 'NO'}",
        )
    )


def main() -> int:
    """Play the gates that the command line asks for; 1 when they are out of bounds."""
    parser = argparse.ArgumentParser(description="gates between byte-identical models")
    parser.add_argument("--gates", type=int, default=200, help="number of gates")
    parser.add_argument("--simulations", type=int, default=16, help="simulations a move")
    parser.add_argument("--games", type=int, default=96, help="games in lockstep")
    parser.add_argument("--seed", type=int, default=0, help="of weights and deals")
    asked = parser.parse_args()
    config = GateConfig(simulations=asked.simulations, games=asked.games)
    outcomes: list[GateOutcome] = []
    for outcome in play_gates(config, asked.gates, asked.seed):
        outcomes.append(outcome)
        print(
            f"{len(outcomes):4} {outcome.outcome:9} {outcome.wins} of {outcome.num_decided} "
            f"decided pairs won, {outcome.num_pairs} pairs",
            flush=True,
        )
    summary = summarise(outcomes, config)
    print(describe(summary))
    enough = summary.decided_share >= LEAST_DECIDED_SHARE
    return 0 if summary.within_bound and enough else 1


if __name__ == "__main__":
    raise SystemExit(main())
