"""TCP on loopback in front of a server's unix socket, with a port for each kind of client.

Each port can be cut off by itself: REFUSED ends its connections and every new one at once; SILENT
takes them and passes nothing on, in either direction, as a network does that loses packets.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterable
from pathlib import Path

OPEN, REFUSED, SILENT = "open", "refused", "silent"
_CHUNK = 1 << 16


class _Port:
    """One kind of client."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._passing = asyncio.Event()
        self._passing.set()
        self._refused = False
        self._clients: set[asyncio.StreamWriter] = set()

    def set(self, how: str) -> None:
        """Pass on, refuse or be silent from now on."""
        self._refused = how == REFUSED
        if how == SILENT:
            self._passing.clear()
        else:
            self._passing.set()
        if self._refused:
            for writer in self._clients:
                writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until either side ends it."""
        self._clients.add(writer)
        try:
            if not self._refused:
                await self._carry(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # either side is gone, or the proxy: so is the other one now
        finally:
            self._clients.discard(writer)
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, onward = await asyncio.open_unix_connection(str(self._target))
        pumps = {
            asyncio.ensure_future(self._pump(reader, onward)),
            asyncio.ensure_future(self._pump(there, writer)),
        }
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            onward.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            await self._passing.wait()
            writer.write(data)
            await writer.drain()


class Proxy:
    """A context manager; runs in a thread of its own."""

    def __init__(self, target: Path, kinds: Iterable[str]) -> None:
        self._target, self._kinds = target, tuple(kinds)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._lines: dict[str, _Port] = {}
        self._servers: list[asyncio.Server] = []
        self.ports: dict[str, int] = {}
        """Port of each kind of client."""

    def __enter__(self) -> Proxy:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def set(self, kind: str, how: str) -> None:
        """Make the port of ``kind`` OPEN, REFUSED or SILENT."""
        done = threading.Event()

        def change() -> None:
            self._lines[kind].set(how)
            done.set()

        self._loop.call_soon_threadsafe(change)
        done.wait(10)

    async def _open(self) -> None:
        for kind in self._kinds:
            line = self._lines[kind] = _Port(self._target)
            server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
            self._servers.append(server)
            self.ports[kind] = server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for line in self._lines.values():
            line.set(REFUSED)
        mine = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not mine]
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
