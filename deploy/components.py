"""Builds the parts of a run from its configuration: the same ones for both runtimes.

Room: deploy. The one place that makes Redis clients. Nothing heavy is imported before it is needed:
torch only by ``build_learner``, so that a process that plays never loads it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from deploy.config import RunConfig

if TYPE_CHECKING:
    from actors.arena import GateWorker
    from actors.selfplay import SelfPlayWorker
    from engine.game import Encoder, GameSpec
    from league.models import ModelStore
    from learner.train import Learner
    from replay.buffer import TrajectoryReader, TrajectoryWriter

T = TypeVar("T")

STORE_PATIENCE_S = 20.0
"""How long an actor waits for models while the server is away; less than the limit of a step."""


@dataclass(frozen=True)
class Parts:
    """The game of a run."""

    spec: GameSpec
    game: Any
    encoder: Encoder


@dataclass(frozen=True)
class Server:
    """Where the trajectories and models of a run are. Holds the password: never log it."""

    url: str
    run_id: str
    password: str = ""

    def __repr__(self) -> str:
        return f"Server({self.url!r}, {self.run_id!r})"


def parts_of(config: RunConfig) -> Parts:
    """Return the game that ``config`` names. Raises UnknownGameError."""
    from engine.game import get_spec

    spec = get_spec(config.game.name)
    game = spec.make(config.game.rules, config.game.options)
    encoder = spec.encoder(config.game.encoder) if config.game.encoder else spec.encoders[0]
    return Parts(spec, game, encoder)


def producer_name(node: str, slot: int, epoch: int) -> str:
    """Return the name under which one start of a worker writes; no other start has it."""
    return f"{node}/{slot}/{epoch}"


class PatientModelStore:
    """A ModelStore whose readers wait a bounded time for a server that is being restarted."""

    def __init__(self, store: ModelStore, patience_s: float = STORE_PATIENCE_S) -> None:
        self._store = store
        self._patience_s = patience_s

    def put(self, version: int, model: bytes) -> None:
        """See ModelStore."""
        self._store.put(version, model)

    def get(self, version: int) -> bytes:
        """See ModelStore. Raises ModelsUnreachable once patience is at its end."""
        return self._wait(lambda: self._store.get(version))

    def versions(self) -> list[int]:
        """See ModelStore. Raises ModelsUnreachable once patience is at its end."""
        return self._wait(self._store.versions)

    def delete(self, version: int) -> None:
        """See ModelStore."""
        self._store.delete(version)

    def _wait(self, ask: Callable[[], T]) -> T:
        from league.stores import ModelsUnreachable
        from replay.redis_buffer import Backoff

        backoff = Backoff()
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return ask()
            except ModelsUnreachable:
                if time.monotonic() > deadline:
                    raise
                backoff.failed()
                time.sleep(backoff.wait_s())


def redis_models(server: Server, config: RunConfig) -> ModelStore:
    """Return the models on the run's server; nothing is connected yet."""
    from league.redis_models import RedisModelStore
    from replay.redis_link import check_tls_files, make_client

    check_tls_files(server.url, config.replay)
    client = make_client(server.url, server.password, config.replay)
    return RedisModelStore(client, server.run_id)


def redis_writer(server: Server, config: RunConfig, producer: str, slot: int) -> TrajectoryWriter:
    """Return a worker's writer. Its bound leaves room for the games under way."""
    from replay.redis_buffer import RedisWriter
    from replay.redis_link import check_tls_files

    check_tls_files(server.url, config.replay)
    return RedisWriter(
        server.url,
        server.run_id,
        producer,
        shard=str(slot % config.replay.shards),
        config=config.replay,
        password=server.password,
        max_pending=config.self_play.outbox_games + config.self_play.games,
    )


def redis_reader(server: Server, config: RunConfig) -> TrajectoryReader:
    """Return the learner's reader of all shards."""
    from replay.redis_link import check_tls_files
    from replay.redis_reader import RedisReader

    check_tls_files(server.url, config.replay)
    return RedisReader(
        server.url,
        server.run_id,
        shards=tuple(str(shard) for shard in range(config.replay.shards)),
        config=config.replay,
        password=server.password,
    )


def build_worker(
    config: RunConfig,
    models: ModelStore,
    writer: TrajectoryWriter,
    run_id: str,
    *,
    node: str,
    slot: int,
    epoch: int,
) -> SelfPlayWorker:
    """Return a self-play worker."""
    from actors.selfplay import SelfPlayWorker

    parts = parts_of(config)
    return SelfPlayWorker(
        config=config.self_play,
        search=config.search,
        league=config.league,
        spec=parts.spec,
        game=parts.game,
        encoder=parts.encoder,
        models=models,
        writer=writer,
        run_id=run_id,
        node=node,
        slot=slot,
        epoch=epoch,
        seed=config.seed,
    )


def build_learner(
    config: RunConfig, reader: TrajectoryReader, run_id: str, *, epoch: int, snapshot: bytes | None
) -> Learner:
    """Return the learner; the first import of torch in a process."""
    from learner.train import Learner

    parts = parts_of(config)
    return Learner(
        config=config.learner,
        network=config.network,
        spec=parts.spec,
        game=parts.game,
        encoder=parts.encoder,
        reader=reader,
        run_id=run_id,
        seed=config.seed,
        epoch=epoch,
        snapshot=snapshot,
    )


def build_gate(
    config: RunConfig, models: ModelStore, run_id: str, *, epoch: int, snapshot: bytes | None
) -> GateWorker:
    """Return the gate's worker."""
    from actors.arena import GateWorker

    parts = parts_of(config)
    return GateWorker(
        config=config.gate,
        rating=config.rating,
        evaluation=config.evaluation,
        search=config.search,
        spec=parts.spec,
        game=parts.game,
        encoder=parts.encoder,
        models=models,
        run_id=run_id,
        seed=config.seed,
        epoch=epoch,
        snapshot=snapshot,
    )
