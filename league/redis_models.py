"""Models in Redis, from where workers of all nodes fetch them.

Room: league. May import: redis, league.models. The run directory holds the truth; Redis holds
copies, and the owner publishes a missing one again. A model is ONNX bytes beside their SHA-256;
nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis

from league.models import ModelError, content_hash
from league.stores import ModelsUnreachable


class RedisModelStore:
    """A ModelStore over a client that returns bytes (``decode_responses`` off).

    Keys, all of one cluster slot: ``cardleague:{RUN}:models`` (sorted set of versions) and
    ``cardleague:{RUN}:model:N`` (hash of ``sha256`` and ``onnx``). Every method raises
    ModelsUnreachable when the server does not answer; nothing is repeated here.
    """

    def __init__(self, client: redis.Redis, run_id: str) -> None:
        """Keep ``run_id``'s models on ``client``'s server."""
        if client.get_encoder().decode_responses:
            raise ValueError("decode_responses = True: models are bytes, it must be False")
        if not run_id:
            raise ValueError("run_id is empty")
        self._client: Any = client
        self._prefix = f"cardleague:{{{run_id}}}:model"

    def put(self, version: int, model: bytes) -> None:
        """See ModelStore."""
        if version < 0:
            raise ValueError(f"model version {version}: at least 0")
        key, digest = self._key(version), content_hash(model)

        def store(pipe: Any) -> None:
            stored = pipe.hget(key, "sha256")
            if stored is not None and stored != digest.encode():
                raise ModelError(f"model version {version} is already stored with other bytes")
            pipe.multi()
            if stored is None:
                pipe.hset(key, mapping={"sha256": digest, "onnx": model})
            pipe.zadd(self._index, {str(version): version})

        with _reachable():
            self._client.transaction(store, key)

    def get(self, version: int) -> bytes:
        """See ModelStore. Raises ModelError also for bytes that are not what was stored."""
        with _reachable():
            digest, model = self._client.hmget(self._key(version), "sha256", "onnx")
        if model is None or digest is None:
            raise ModelError(f"model version {version} in Redis: stored are {self.versions()}")
        if content_hash(model).encode() != digest:
            raise ModelError(
                f"model version {version} in Redis: bytes have SHA-256 {content_hash(model)}, "
                f"stored as {digest.decode(errors='replace')[:80]}"
            )
        return bytes(model)

    def versions(self) -> list[int]:
        """See ModelStore. A version whose bytes have vanished is not among them."""
        with _reachable():
            members = self._client.zrange(self._index, 0, -1)
            # Somebody else may have written there; what is no number of a version is none.
            versions = [int(member) for member in members if member.isdigit() and len(member) < 16]
            pipe = self._client.pipeline(transaction=False)
            for version in versions:
                pipe.hget(self._key(version), "sha256")
            stored = pipe.execute()
        return [v for v, digest in zip(versions, stored, strict=True) if digest is not None]

    def delete(self, version: int) -> None:
        """See ModelStore."""
        with _reachable():
            pipe = self._client.pipeline(transaction=True)
            pipe.zrem(self._index, str(version))
            pipe.delete(self._key(version))
            pipe.execute()

    @property
    def _index(self) -> str:
        return f"{self._prefix}s"

    def _key(self, version: int) -> str:
        return f"{self._prefix}:{version}"


@contextmanager
def _reachable() -> Iterator[None]:
    """Turn a server that does not answer, or still loads, into ModelsUnreachable."""
    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError) as error:
        raise ModelsUnreachable(f"models in Redis: {error}") from error
