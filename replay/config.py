"""Options of the stream between workers and learner. Room: replay. Docstrings are the help."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class ReplayConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Redis or Valkey server, limits and time limits."""

    redis_url: str = ""
    """Server to use (``redis://host:6379/0``, ``rediss://…``, ``unix:///path``); empty starts the
    bundled one. A password belongs into the environment or a file, not in here."""
    tls_ca_file: str = ""
    """``rediss://``: PEM file of the authorities that may have signed the server's certificate;
    empty takes the system's. These files lie at the same path on every node."""
    tls_cert_file: str = ""
    """Own certificate (PEM) for a server that asks for one; with ``tls_key_file``."""
    tls_key_file: str = ""
    """Key of the own certificate (PEM, not encrypted)."""
    tls_insecure_skip_host_name: bool = False
    """DANGEROUS: accept the certificate of any host that the authorities have signed."""
    accept_volatile: bool = False
    """Use a server without append-only file or WAITAOF: what it loses in a crash is lost."""
    shards: Annotated[int, Meta(ge=1, le=1024)] = 1
    """Streams; more than one only for several learner ranks (rank r of R reads s, s mod R = r)."""
    maxmemory_mb: Annotated[int, Meta(ge=64)] = 1024
    """Memory limit of the bundled server; trajectories may fill 60 % of it."""
    connect_timeout_s: Annotated[float, Meta(gt=0, le=5)] = 2.0
    """A connection that is not made within this time has failed."""
    socket_timeout_s: Annotated[float, Meta(ge=1, le=600)] = 10.0
    """No answer for so long ends the connection; blocking reads wait for half of it at the most."""
    waitaof_timeout_s: Annotated[float, Meta(gt=0, le=300)] = 3.0
    """How long one request for confirmation waits for the disk; then it is asked again."""
    max_batch_mb: Annotated[int, Meta(ge=1, le=256)] = 4
    """Largest transaction that a writer sends."""
    min_free_disk_gb: Annotated[float, Meta(ge=0)] = 2.0
    """Workers pause while the disk of the run directory has less than this."""
    server_silence_s: Annotated[float, Meta(gt=0)] = 90.0
    """The bundled server is restarted when nothing answers for so long."""
    lease_s: Annotated[float, Meta(ge=1)] = 30.0
    """An owner that has not renewed its lease on the run for so long has lost it."""
