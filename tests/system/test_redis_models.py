"""Behaviours of models in Redis, on the bundled server: as in files, verified, apart by run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from league.models import ModelError, content_hash
from league.redis_models import RedisModelStore
from league.stores import ModelsUnreachable, prune
from replay.embedded import EmbeddedServer
from replay.redis_link import make_client

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(tmp_path_factory.mktemp("server"), maxmemory_mb=64)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def client(server: EmbeddedServer) -> Iterator[Any]:
    client = make_client(server.url)
    client.flushall()
    yield client
    client.close()


def test_versions_come_back_ascending_with_their_bytes(client: Any) -> None:
    store = RedisModelStore(client, "run")
    assert store.versions() == []
    for version in (10, 2, 1_234_567):
        store.put(version, bytes(range(256)) * version.bit_length())
    assert store.versions() == [2, 10, 1_234_567]
    assert store.get(10) == bytes(range(256)) * 4
    assert RedisModelStore(client, "run").get(2) == store.get(2)


def test_same_bytes_again_are_allowed_and_others_refused(client: Any) -> None:
    store = RedisModelStore(client, "run")
    store.put(3, b"one")
    store.put(3, b"one")
    with pytest.raises(ModelError, match="version 3 is already stored with other bytes"):
        store.put(3, b"two")
    assert store.get(3) == b"one"
    with pytest.raises(ValueError, match="version -1"):
        store.put(-1, b"")


def test_two_runs_on_one_server_do_not_meet(client: Any) -> None:
    first, second = RedisModelStore(client, "first"), RedisModelStore(client, "second")
    first.put(1, b"one")
    second.put(1, b"other")
    first.delete(1)
    assert first.versions() == []
    assert second.get(1) == b"other"


def test_missing_and_deleted_versions_are_named(client: Any) -> None:
    store = RedisModelStore(client, "run")
    for version in (1, 4):
        store.put(version, b"%d" % version)
    store.delete(4)
    store.delete(4)
    with pytest.raises(ModelError, match=r"version 4 in Redis: stored are \[1\]"):
        store.get(4)
    assert [key.decode() for key in client.keys("*model:*")] == ["cardleague:{run}:model:1"]


def test_a_version_whose_bytes_vanished_is_missing_and_can_be_put_again(client: Any) -> None:
    store = RedisModelStore(client, "run")
    for version in (1, 4):
        store.put(version, b"%d" % version)
    client.delete("cardleague:{run}:model:4")
    assert store.versions() == [1]
    store.put(4, b"4")
    assert store.versions() == [1, 4]
    assert store.get(4) == b"4"


def test_bytes_that_changed_on_the_server_are_refused(client: Any) -> None:
    store = RedisModelStore(client, "run")
    store.put(1, b"one")
    client.hset("cardleague:{run}:model:1", "onnx", b"0ne")
    with pytest.raises(ModelError, match=f"stored as {content_hash(b'one')}"):
        store.get(1)


def test_the_owner_bounds_the_store(client: Any) -> None:
    store = RedisModelStore(client, "run")
    for version in range(6):
        store.put(version, b"%d" % version)
    assert prune(store, keep=[0, 5], max_versions=3) == [1, 2, 3]
    assert store.versions() == [0, 4, 5]


def test_a_client_that_decodes_and_a_run_without_id_are_refused(
    client: Any, server: EmbeddedServer
) -> None:
    decoding = redis.Redis.from_url(server.url, decode_responses=True)
    with pytest.raises(ValueError, match="decode_responses = True"):
        RedisModelStore(decoding, "run")
    decoding.close()
    with pytest.raises(ValueError, match="run_id is empty"):
        RedisModelStore(client, "")


def test_a_server_that_is_gone_is_an_error_that_players_can_catch(tmp_path: Path) -> None:
    client = make_client(f"unix://{tmp_path}/nobody.sock")
    store = RedisModelStore(client, "run")
    for call in (
        store.versions,
        lambda: store.get(1),
        lambda: store.put(1, b"one"),
        lambda: store.delete(1),
    ):
        with pytest.raises(ModelsUnreachable, match="models in Redis"):
            call()
    client.close()
