"""``valkey-server CONFIG`` for a test: the bundled server, with TLS from a proxy before it.

The bundled binary has no TLS. So the options of a configuration file that speak of it go to a
proxy, and all others to the server on another port of loopback. Both go on when this ends.
"""

from __future__ import annotations

import ssl
import subprocess
import sys
import threading
from pathlib import Path

from replay.embedded import find_binary
from replay.redis_link import answers
from tests.deploy.waiting import ROOT, wait_for
from tests.system.tls import TlsProxy, free_port

OWN = ("tls-", "port ", "bind ", "daemonize ", "logfile ")


def start(config: Path) -> None:
    """Start server and proxy as ``config`` says; return once the server answers."""
    lines = config.read_text().splitlines()
    tls = dict(line.split(maxsplit=1) for line in lines if line.startswith("tls-"))
    port = free_port()
    inner = config.with_suffix(".inner")
    kept = [line for line in lines if not line.startswith(OWN)]
    inner.write_text("\n".join([*kept, f"port {port}", "bind 127.0.0.1"]) + "\n")
    proxy = [sys.executable, "-m", "tests.system.tls_server", "--proxy", str(port)]
    proxy += [tls["tls-port"], tls["tls-cert-file"], tls["tls-key-file"]]
    with open(config.with_suffix(".log"), "wb") as log:
        for command in ([str(find_binary()), str(inner)], proxy):
            subprocess.Popen(
                command,
                cwd=config.parent if command is not proxy else ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    wait_for(lambda: answers(f"redis://127.0.0.1:{port}/0"), 60, "the server")


def serve_proxy(target: int, port: int, certificate: str, key: str) -> None:
    """Be the proxy until somebody ends it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with TlsProxy(target, context, port):
        threading.Event().wait()


if __name__ == "__main__":
    if sys.argv[1] == "--proxy":
        serve_proxy(int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
    else:
        start(Path(sys.argv[1]))
