"""Games of Kuhn poker as self-play would store them, made without any search.

Each position of the seat to move is an example: with a policy target (visits in the shares of a
fixed teacher) or, for about a third of them, a value target alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from engine import rules
from engine.game import get_spec
from engine.jit import engine_hash
from learner.config import LearnerConfig, NetworkConfig
from learner.train import Learner
from replay.buffer import TrajectoryReader
from replay.codec import encode
from replay.memory import MemoryStore, MemoryWriter
from replay.trajectory import EXAMPLE, FULL_SEARCH, POLICY, VALUE, Header, Trajectory

SPEC = get_spec("kuhn")
GAME = SPEC.make()
ENCODER = SPEC.encoder("cards")
RUN = "kuhn-run"
VISITS = 60


def bet_share(card: int, facing_bet: bool) -> float:
    """The teacher: share of visits of a bet (or call)."""
    if card == 2:
        return 0.95
    if card == 1:
        return 0.35 if facing_bet else 0.05
    return 0.05 if facing_bet else 0.3


def play(generator: np.random.Generator, version: int = 0) -> Trajectory:
    """Play one game by the teacher and return its examples."""
    seed = int(generator.integers(0, 2**63))
    state = SPEC.new_state()
    rules.deal(GAME, state, np.uint64(seed))
    rows: list[tuple[int, int, int, int]] = []
    views = SPEC.new_states(SPEC.max_plies)
    visits: list[int] = []
    while (seat := int(rules.current_seat(GAME, state))) >= 0:
        plies = int(state.num_plies)
        facing = plies > 0 and int(state.history[plies - 1]) == 1
        share = bet_share(int(state.cards[seat]), facing)
        with_policy = generator.random() < 0.67
        flags = VALUE | (POLICY | FULL_SEARCH if with_policy else 0)
        rules.view(GAME, state, seat, views[len(rows)])
        rows.append((plies, seat, flags, 2 if with_policy else 0))
        if with_policy:
            bets = round(share * VISITS)
            visits += [VISITS - bets, bets]
        rules.apply(GAME, state, int(generator.random() < share))
    return _trajectory(state, seed, rows, views[: len(rows)], visits, version)


def _trajectory(
    state: Any,
    seed: int,
    rows: list[tuple[int, int, int, int]],
    views: Any,
    visits: list[int],
    version: int,
) -> Trajectory:
    outcome = np.zeros(2)
    rules.returns(GAME, state, outcome)
    examples = np.zeros(len(rows), EXAMPLE)
    for name, column in zip(
        ("ply", "seat", "flags", "num_actions"), zip(*rows, strict=True), strict=True
    ):
        examples[name] = column
    examples["model_version"] = version
    searched = (examples["flags"] & POLICY) != 0
    examples["root_value"] = np.where(searched, np.sign(outcome)[examples["seat"]] * 0.1, np.nan)
    header = Header(
        run_id=RUN,
        game="kuhn",
        rules=SPEC.describe(GAME),
        engine_hash=engine_hash(),
        seed=seed,
        matchup="self_play",
        seat_versions=(version, version),
        learner_seats=(True, True),
        num_plies=len(rows),
        num_simulations=VISITS * int(searched.sum()),
        num_full_searches=int(searched.sum()),
        returns=tuple(np.sign(outcome).tolist()),
        reward_terms=((float(outcome[0]),), (float(outcome[1]),)),
        statistics=((0.0,), (0.0,)),
    )
    return Trajectory(header, examples, views, np.array(visits, np.uint16))


def payloads(num_games: int, seed: int) -> Iterator[bytes]:
    """Yield the bytes of ``num_games`` games."""
    generator = np.random.default_rng(seed)
    for _ in range(num_games):
        yield encode(play(generator))


def write(store: MemoryStore, games: list[bytes], *, first_sequence: int = 1) -> None:
    """Append games to the store as one producer."""
    writer = MemoryWriter(store, "worker-0", max_pending=len(games), first_sequence=first_sequence)
    for payload in games:
        writer.append(payload)
    assert writer.poll(0.0) == len(games)


def config(**changes: Any) -> LearnerConfig:
    """Options for a learner that is done in seconds."""
    options: dict[str, Any] = {
        "device": "cpu",
        "target": "win",
        "batch_size": 64,
        "learning_rate": 3e-3,
        "final_learning_rate": 1e-3,
        "decay_steps": 400,
        "window_positions": 4000,
        "min_window_positions": 400,
        "insert_slack_positions": 2000,
        "samples_per_insert": 4.0,
        "updates_per_version": 20,
        "held_out_every": 20,
        "trust_games": 50,
    }
    return LearnerConfig(**(options | changes))


NETWORK = NetworkConfig(width=24, num_layers=2, candidate_width=16)


def new_learner(
    reader: TrajectoryReader,
    learner_config: LearnerConfig | None = None,
    *,
    snapshot: bytes | None = None,
    **changes: Any,
) -> Learner:
    """Return a learner of Kuhn poker."""
    options: dict[str, Any] = {
        "config": learner_config or config(),
        "network": NETWORK,
        "spec": SPEC,
        "game": GAME,
        "encoder": ENCODER,
        "reader": reader,
        "run_id": RUN,
        "seed": 5,
        "epoch": 1,
        "snapshot": snapshot,
    }
    return Learner(**(options | changes))
