"""A server that speaks just enough of the Redis protocol to say what it is."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class FakeServer:
    """Answers PING and INFO on a free port of loopback, everything else with OK."""

    def __init__(self, facts: dict[str, str]) -> None:
        """Answer INFO with ``facts``."""
        self._info = "".join(f"{name}:{value}\r\n" for name, value in facts.items())
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._clients: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept)
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"

    def __enter__(self) -> FakeServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with client, client.makefile("rb") as lines:
                    client.settimeout(5.0)
                    while self._answer(client, lines.readline()):
                        words = [lines.readline() for _ in range(2 * self._num_words)][1::2]
                        client.sendall(self._reply(words[0].strip().upper()))

    def _answer(self, client: socket.socket, head: bytes) -> bool:
        """Read the head of a command; return whether there was one."""
        self._num_words = int(head[1:]) if head.startswith(b"*") else 0
        return self._num_words > 0

    def _reply(self, command: bytes) -> bytes:
        if command == b"PING":
            return b"+PONG\r\n"
        if command == b"INFO":
            return f"${len(self._info)}\r\n{self._info}\r\n".encode()
        return b"+OK\r\n"
