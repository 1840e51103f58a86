"""An own server behind TLS, with a user of least rights and a password.

Behaviours checked:
* the authority's certificate and the server's name decide, by name; so does a client's certificate
* a user without a needed command is refused with its name; other keys are out of reach
* files that a node lacks are named with the node
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deploy.components import Server, redis_models, redis_reader, redis_writer
from deploy.config import RunConfig
from replay.address import redacted, with_user
from replay.config import ReplayConfig
from replay.embedded import EmbeddedServer
from replay.redis_admin import check_server
from replay.redis_link import StoreError, StoreRefused, call, connect, make_client
from tests.system.tls import (
    USER,
    Certificates,
    TlsProxy,
    access_rule,
    free_port,
    make_certificates,
    tls_before,
)

pytestmark = pytest.mark.system

PASSWORD = secrets.token_hex(16)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates") / "own")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedServer, int]]:
    """The bundled server with a port, an administrator's password and the manual's user."""
    port = free_port()
    server = EmbeddedServer(
        tmp_path_factory.mktemp("server"),
        maxmemory_mb=64,
        password=secrets.token_hex(16),
        port=port,
        options={"user": access_rule(PASSWORD)},
    )
    server.start()
    yield server, port
    server.stop()


@pytest.fixture(scope="module")
def proxy(server: tuple[EmbeddedServer, int], certificates: Certificates) -> Iterator[TlsProxy]:
    with tls_before(server[1], certificates.server_context()) as proxy:
        yield proxy


def address(proxy: TlsProxy, host: str = "localhost") -> str:
    return f"rediss://{USER}@{host}:{proxy.port}/0"


def tls(certificates: Certificates, **options: Any) -> ReplayConfig:
    return ReplayConfig(tls_ca_file=str(certificates.authority), **options)


def refusal(url: str, config: ReplayConfig, password: str = PASSWORD) -> str:
    with pytest.raises(StoreError) as raised:
        connect(url, password, config)
    assert password not in str(raised.value)
    return f"{type(raised.value).__name__}: {raised.value}"


def test_games_and_models_go_through_tls_with_the_manuals_rights(
    proxy: TlsProxy, certificates: Certificates
) -> None:
    config = RunConfig(replay=tls(certificates))
    server = Server(address(proxy), "run", PASSWORD)
    client = connect(server.url, server.password, config.replay)
    assert check_server(client).can_lose == ""
    writer, reader = redis_writer(server, config, "w", 0), redis_reader(server, config)
    models = redis_models(server, config)
    for number in range(200):
        writer.append(b"%d" % number * 500)
    while writer.num_pending:
        writer.poll(5.0)
    entries = []
    while len(entries) < 200:
        entries += reader.read(64, 1.0)
    assert [entry.sequence for entry in entries] == list(range(1, 201))
    models.put(3, bytes(300_000))
    assert models.get(3) == bytes(300_000)
    models.delete(3)
    assert models.versions() == []
    writer.close()
    reader.close()
    client.close()


def test_certificate_of_another_authority_is_refused(proxy: TlsProxy, tmp_path: Path) -> None:
    other = make_certificates(tmp_path / "other")
    for options in ({}, {"tls_insecure_skip_host_name": True}):
        words = refusal(address(proxy), tls(other, **options))
        assert words.startswith("StoreRefused")
        assert "TLS: " in words
        assert "unable to get local issuer" in words or "self-signed" in words


def test_name_of_the_server_must_be_its_certificates_unless_that_is_skipped_loudly(
    proxy: TlsProxy, certificates: Certificates
) -> None:
    url = address(proxy, "127.0.0.1")
    words = refusal(url, tls(certificates))
    assert words.startswith("StoreRefused")
    assert "127.0.0.1" in words
    connect(url, PASSWORD, tls(certificates, tls_insecure_skip_host_name=True)).close()


def test_server_that_asks_for_a_certificate_gets_it(
    server: tuple[EmbeddedServer, int], certificates: Certificates
) -> None:
    context = certificates.server_context(asks_clients=True)
    with tls_before(server[1], context) as proxy:
        assert "asks for a certificate: replay.tls_cert_file" in refusal(
            address(proxy), tls(certificates)
        )
        own = {
            "tls_cert_file": str(certificates.client),
            "tls_key_file": str(certificates.client_key),
        }
        connect(address(proxy), PASSWORD, tls(certificates, **own)).close()


def test_server_that_speaks_tls_alone_is_guessed_behind_a_plain_address(proxy: TlsProxy) -> None:
    plain = address(proxy).replace("rediss://", "redis://")
    assert "Perhaps it speaks TLS alone: rediss://" in refusal(plain, ReplayConfig())


def test_files_that_a_node_lacks_are_named_with_the_node(
    proxy: TlsProxy, certificates: Certificates, tmp_path: Path
) -> None:
    server = Server(address(proxy), "run", PASSWORD)
    missing = ReplayConfig(tls_ca_file=str(tmp_path / "none.crt"))
    broken = ReplayConfig(tls_ca_file=str(tmp_path / "broken.crt"))
    (tmp_path / "broken.crt").write_text("not PEM")
    for replay, words in ((missing, "No such file .* on .*every node"), (broken, "PEM")):
        config = RunConfig(replay=replay)
        for build in (redis_models, redis_reader):
            with pytest.raises(StoreRefused, match=words):
                build(server, config)
        with pytest.raises(StoreRefused, match=words):
            redis_writer(server, config, "w", 0)


def test_wrong_password_and_unencrypted_speech_are_refused(
    proxy: TlsProxy, certificates: Certificates
) -> None:
    words = refusal(address(proxy), tls(certificates), "wrong")
    assert words.startswith("StoreRefused")
    assert "WRONGPASS" in words or "password" in words
    assert words.count(USER) == 1
    plain = address(proxy).replace("rediss", "redis")
    assert refusal(plain, ReplayConfig()).startswith("StoreUnreachable")


def test_every_command_that_the_user_lacks_is_named(server: tuple[EmbeddedServer, int]) -> None:
    admin = connect(server[0].url, server[0].password)
    rule = access_rule("poor").replace("+xadd", "-xadd").replace("+eval", "-eval")
    call(admin, "ACL", "SETUSER", "poor", *rule.split()[1:])
    client = connect(f"redis://poor@127.0.0.1:{server[1]}/0", "poor")
    with pytest.raises(StoreRefused, match=r"XADD .*EVAL .*docs/operations\.md"):
        check_server(client)
    call(admin, "ACL", "SETUSER", "poor", "-info")
    with pytest.raises(StoreRefused, match=r"XADD .*EVAL .*INFO "):
        check_server(client)
    client.close()
    admin.close()


def test_other_keys_and_commands_are_out_of_the_users_reach(
    server: tuple[EmbeddedServer, int],
) -> None:
    url = f"redis://{USER}@127.0.0.1:{server[1]}/0"
    client = make_client(url, PASSWORD)
    call(client, "SET", "cardleague:mine", "1", "EX", 60)
    for command in (
        ("GET", "others"),
        ("EVAL", "return redis.call('GET', 'others')", 0),
        ("KEYS", "*"),
        ("FLUSHALL",),
        ("CONFIG", "GET", "*"),
        ("ACL", "LIST"),
    ):
        with pytest.raises(StoreError, match=r"permission|ACL|NOPERM"):
            call(client, *command)
    client.close()


def test_addresses_are_shown_without_secrets() -> None:
    assert redacted("rediss://me@host:1/0") == "rediss://me@host:1/0"
    assert redacted("rediss://me:secret@host:1/0") == "rediss://me:***@host:1/0"
    assert redacted("rediss://host/0?db=1&password=secret") == "rediss://host/0?db=1&password=***"
    assert redacted("redis://:secret@[host") == "***@[host"
    assert with_user("rediss://host:1/0", "a b") == "rediss://a%20b@host:1/0"
    assert with_user("unix:///run/s", "me") == "unix://me@/run/s"
    server = Server("rediss://host:1/0", "run", "secret")
    assert "secret" not in f"{server!r} {server}"
    assert "secret" not in msgspec.json.encode(RunConfig()).decode()
