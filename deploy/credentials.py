"""Who this program is at an own server: address, user, password, and what may not be written where.

Room: deploy. Light: the command line loads it. The password comes from the environment or a file,
and goes to actors inside ``components.Server`` alone: it is in no option, so that no configuration,
manifest, command line or log has it.
"""

from __future__ import annotations

import os
from pathlib import Path

from deploy.config import RunConfig
from replay.address import QUERY_OPTIONS, has_password, is_tls, unknown_option, user_of, with_user
from replay.config import ReplayConfig

USER_VARIABLE = "CARDLEAGUE_REDIS_USER"
"""Environment variable with the user at an own Redis; the address may name it instead."""
PASSWORD_VARIABLE = "CARDLEAGUE_REDIS_PASSWORD"
"""Environment variable with the password of an own Redis; with ``_FILE`` appended: its path."""


def server_fault(replay: ReplayConfig) -> str:
    """Return what is wrong with the options of an own server; empty when nothing is."""
    url = replay.redis_url
    if has_password(url):
        return (
            "replay.redis_url holds a password, which would show in the process list and be saved: "
            f"leave it out of the address and set {PASSWORD_VARIABLE}, or {PASSWORD_VARIABLE}_FILE "
            "to the path of a file that holds it"
        )
    if option := unknown_option(url):
        return (
            f"replay.redis_url has the option {option!r} behind its ?: allowed is "
            f"{', '.join(QUERY_OPTIONS)}; TLS is set by replay.tls_ca_file and its neighbours"
        )
    if bool(replay.tls_cert_file) != bool(replay.tls_key_file):
        return (
            f"replay.tls_cert_file = {replay.tls_cert_file!r} and replay.tls_key_file = "
            f"{replay.tls_key_file!r}: allowed is both or neither"
        )
    names = ("tls_ca_file", "tls_cert_file", "tls_insecure_skip_host_name")
    used = [f"replay.{name}" for name in names if getattr(replay, name)]
    if used and not is_tls(url):
        return (
            f"{used[0]} is set and replay.redis_url = {url!r} is not encrypted: allowed is an "
            "address that begins with rediss://"
        )
    return ""


def own_server_url(config: RunConfig) -> str:
    """Return the address of an own server, with the user of the environment in it.

    Raises ValueError when address and environment name different users.
    """
    url, user = config.replay.redis_url, os.environ.get(USER_VARIABLE, "")
    if not user or user_of(url) == user:
        return url
    if user_of(url):
        raise ValueError(
            f"replay.redis_url names the user {user_of(url)!r} and {USER_VARIABLE} is {user!r}: "
            "allowed is one of them"
        )
    return with_user(url, user)


def read_password() -> str:
    """Return the password of an own server from the environment or the file it names."""
    file = os.environ.get(f"{PASSWORD_VARIABLE}_FILE", "")
    if file:
        return Path(file).read_text().rstrip("\n")
    return os.environ.get(PASSWORD_VARIABLE, "")


def forget_password() -> None:
    """Take the password out of this process's environment: what it starts does not need it."""
    os.environ.pop(PASSWORD_VARIABLE, None)
