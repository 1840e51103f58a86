"""Group ``selfplay``: one worker alone, and where its time goes. Room: deploy.

Its games serve the groups that need trajectories as they really are.
"""

from __future__ import annotations

from typing import Any

import msgspec

from actors import selfplay
from actors.messages import StepReply, StepRequest
from actors.selfplay import SelfPlayWorker
from deploy import components
from deploy.bench.figures import (
    Estimate,
    Figure,
    Sample,
    figure,
    measured,
    rate,
    timed,
)
from deploy.bench.network import SEARCH_PARTS
from deploy.bench.setup import RUN_ID, Setup
from deploy.bench.stopwatch import watched
from engine.search import ismcts
from league.messages import LeagueState
from league.models import MemoryModelStore
from replay.codec import decode
from replay.memory import MemoryStore, MemoryWriter

GROUP = "selfplay"
WARM_LIMIT_S = 120.0
"""Games are dealt at one moment; after so long they count as spread over their course (but one of
them has to have ended: the first steps may compile for minutes)."""
PARTS: dict[str, tuple[tuple[Any, str], ...]] = {
    **SEARCH_PARTS,
    "roots": ((ismcts, "begin_trees"), (ismcts, "read_roots")),
    "moves": ((selfplay, "play_moves"), (selfplay, "start_games")),
    "trajectories": ((SelfPlayWorker, "_finish"),),
}
HOWS = {
    "network": "ONNX Runtime and what surrounds it in league.evaluator",
    "select": "worlds, descents, views and features of the leaves",
    "absorb": "priors and backing up",
    "roots": "starting searches and reading their visits",
    "moves": "recording examples, playing moves, forced moves, deals",
    "trajectories": "game facts, packing, compressing, handing to the outbox",
    "Python": "everything else: the loop, buffers, matchups",
}


class PlayedGames:
    """A worker of the preset that writes to memory, warmed up: its games are out of step."""

    def __init__(self, setup: Setup) -> None:
        """Play until as many games ended as are played at once. Raises Unavailable."""
        config = setup.config
        models = MemoryModelStore()
        models.put(0, setup.model)
        self.store = MemoryStore()
        alone = msgspec.structs.replace(config.self_play, share=1.0)
        self.worker = components.build_worker(
            msgspec.structs.replace(config, self_play=alone),
            models,
            MemoryWriter(self.store, "bench"),
            RUN_ID,
            node="bench",
            slot=0,
            epoch=1,
        )
        self.num_games = 0
        spent = 0.0
        while not self.num_games or (self.num_games < alone.games and spent < WARM_LIMIT_S):
            reply = self.step(1.0)
            spent += reply.busy_s

    def step(self, budget_s: float) -> StepReply:
        """Play for ``budget_s``."""
        league = LeagueState(newest=0, champion=0, pool=())
        request = StepRequest(epoch=1, league=league, budget_s=budget_s, insert_budget=-1)
        reply = self.worker.step(request)
        self.num_games += reply.num_games
        return reply

    def payloads(self) -> list[bytes]:
        """Return all finished games as they go over the wire."""
        return [entry.payload for entry in self.store.after("0", "0-0", 1_000_000)]


def measure(setup: Setup) -> list[Figure]:
    """Return plies a second of one worker, its parts, its memory, and the size of its games."""
    played = setup.played
    replies: list[StepReply] = []
    samples: list[Sample] = []
    splits: list[dict[str, float]] = []

    def play() -> float:
        replies.append(played.step(setup.pick(5.0, 0.5)))
        return float(replies[-1].num_plies)

    with watched(PARTS) as stopwatch:
        for _ in range(setup.pick(3, 2)):
            stopwatch.reset()
            samples.append(timed(play))
            splits.append(dict(stopwatch.seconds))
    options = setup.config.self_play
    how = (
        f"{setup.network}: {options.games} games in lockstep, "
        f"{options.full_share:.0%} of the moves at {options.full_simulations} simulations, the "
        f"rest at {options.fast_simulations}; one worker, one core, written to memory"
    )
    simulations = [
        Sample(float(reply.num_simulations), sample.wall_s, sample.cpu_s)
        for reply, sample in zip(replies, samples, strict=True)
    ]
    return [
        figure(GROUP, "one worker alone", "plies/s", rate(samples), how),
        figure(
            GROUP, "one worker alone, simulations", "simulations/s", rate(simulations), "the same"
        ),
        *_shares(samples, splits),
        *_memory(setup, played),
        *_sizes(setup, played),
    ]


def _shares(samples: list[Sample], splits: list[dict[str, float]]) -> list[Figure]:
    """Return the share of each part in the worker's processor time."""
    for sample, split in zip(samples, splits, strict=True):
        split["Python"] = sample.cpu_s - sum(split.values())
    return [
        figure(
            GROUP,
            f"share of {part}",
            "%",
            measured(
                [
                    100.0 * split[part] / sample.cpu_s
                    for sample, split in zip(samples, splits, strict=True)
                ],
                samples,
            ),
            how,
            lower_is_better=True,
        )
        for part, how in HOWS.items()
    ]


def _memory(setup: Setup, played: PlayedGames) -> list[Figure]:
    games = setup.config.self_play.games
    size = len(played.worker.snapshot()) / games / 1024
    return [
        figure(
            GROUP,
            "memory of a game in lockstep",
            "KiB",
            exactly(size),
            f"states, examples, trees and generators of {games} games, as a snapshot holds them",
            lower_is_better=True,
        )
    ]


def _sizes(setup: Setup, played: PlayedGames) -> list[Figure]:
    """Return bytes a position of the games that were played."""
    spec, payloads = setup.parts.spec, played.payloads()
    trajectories = [decode(payload, spec) for payload in payloads]
    eligible = max(1, sum(trajectory.num_eligible() for trajectory in trajectories))
    examples = sum(len(trajectory.examples) for trajectory in trajectories)
    num_bytes = sum(map(len, payloads))
    how = f"{len(payloads)} games as stream entries"
    return [
        figure(
            GROUP,
            "an entry of the stream",
            "bytes/game",
            exactly(num_bytes / len(payloads)),
            how,
            lower_is_better=True,
        ),
        figure(
            GROUP,
            "trajectory, fully searched positions",
            "bytes/position",
            exactly(num_bytes / eligible),
            f"{how}; all of their bytes over the positions with a policy target",
            goal=200.0,
            lower_is_better=True,
        ),
        figure(
            GROUP,
            "trajectory, all stored examples",
            "bytes/example",
            exactly(num_bytes / examples),
            how,
            lower_is_better=True,
        ),
    ]


def exactly(value: float) -> Estimate:
    """Return a figure that was counted and not timed."""
    return Estimate(value, value, value, 1, 0.0, 0.0, True)
