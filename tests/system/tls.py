"""Certificates for a test, and a proxy that puts TLS before a server that has none."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import trustme

from tests.deploy.waiting import ROOT

USER = "cardleague"


@dataclass(frozen=True)
class Certificates:
    """Files of one authority: its own, a server's for ``localhost`` and a client's."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path

    def server_context(self, *, asks_clients: bool = False) -> ssl.SSLContext:
        """Return the server's side; with ``asks_clients`` it wants a client's certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server, self.server_key)
        if asks_clients:
            context.load_verify_locations(self.authority)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def make_certificates(folder: Path, host: str = "localhost") -> Certificates:
    """Write the certificates of a new authority into ``folder``."""
    folder.mkdir(parents=True)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.crt")
    for name, identity in (("server", host), ("client", "client@example.net")):
        issued = authority.issue_cert(identity)
        issued.cert_chain_pems[0].write_to_path(folder / f"{name}.crt")
        issued.private_key_pem.write_to_path(folder / f"{name}.key")
    names = ("ca.crt", "server.crt", "server.key", "client.crt", "client.key")
    return Certificates(*(folder / name for name in names))


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def access_rule(password: str) -> str:
    """Return what stands behind ``user`` in the server's configuration, as the manual has it."""
    manual = (ROOT / "docs" / "operations.md").read_text()
    found = re.search(rf"^user ({USER} on) #\S.* (resetkeys .*)$", manual, re.MULTILINE)
    assert found is not None, "docs/operations.md has no line: user cardleague on #… resetkeys …"
    digest = hashlib.sha256(password.encode()).hexdigest()
    return f"{found[1]} #{digest} {found[2]}"


class TlsProxy:
    """Decrypts what comes on ``port`` of loopback and passes it on to ``target``."""

    def __init__(self, target: int, context: ssl.SSLContext, port: int = 0) -> None:
        self._target, self._context, self.port = target, context, port
        self.num_open = 0
        self.most_open = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="tls-proxy", daemon=True)

    def __enter__(self) -> TlsProxy:
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._meet, "127.0.0.1", self.port, ssl=self._context)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.num_open += 1
        self.most_open = max(self.most_open, self.num_open)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._target)
            await asyncio.gather(
                self._pass_on(reader, inner_writer), self._pass_on(inner_reader, writer)
            )
        self.num_open -= 1

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()


@contextlib.contextmanager
def tls_before(target: int, context: ssl.SSLContext) -> Iterator[TlsProxy]:
    """A proxy for the length of a context."""
    with TlsProxy(target, context) as proxy:
        yield proxy
