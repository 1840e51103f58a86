"""Behaviours of the proxy: passes on, cuts off one kind of client alone, and lets it in again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.proxy import OPEN, REFUSED, SILENT, Proxy


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Path]:
    """A server that answers every client with what it sends."""
    path = tmp_path / "echo"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()

    def answer(client: socket.socket) -> None:
        with client:
            while data := client.recv(4096):
                client.sendall(data)

    def accept() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield path
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


def ask(client: socket.socket, text: bytes, timeout_s: float = 5.0) -> bytes:
    client.settimeout(timeout_s)
    client.sendall(text)
    return client.recv(100)


def joined(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def is_cut(client: socket.socket) -> bool:
    """Return whether the client gets no answer but the end of its connection."""
    try:
        return ask(client, b"still?") == b""
    except ConnectionError:
        return True


def is_refused(port: int) -> bool:
    """Return whether a client that comes now is cut off."""
    with joined(port) as client:
        return is_cut(client)


def test_refused_client_is_cut_off_alone(target: Path) -> None:
    with (
        Proxy(target, ("one", "two")) as proxy,
        joined(proxy.ports["one"]) as one,
        joined(proxy.ports["two"]) as two,
    ):
        assert ask(one, b"hello") == b"hello"
        assert ask(two, b"there") == b"there"
        proxy.set("one", REFUSED)
        assert is_cut(one)
        assert not is_cut(two)
        assert is_refused(proxy.ports["one"])
        assert not is_refused(proxy.ports["two"])
        proxy.set("one", OPEN)
        assert not is_refused(proxy.ports["one"])


def test_silent_client_gets_its_answer_late(target: Path) -> None:
    with Proxy(target, ("one",)) as proxy, joined(proxy.ports["one"]) as client:
        assert ask(client, b"a") == b"a"
        proxy.set("one", SILENT)
        with pytest.raises(TimeoutError):
            ask(client, b"b", 0.2)
        proxy.set("one", OPEN)
        client.settimeout(5)
        assert client.recv(100) == b"b"
