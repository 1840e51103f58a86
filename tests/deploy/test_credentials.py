"""Who the program is at an own server.

Behaviours checked:
* the user comes from the address or the environment, and a contradiction is refused by name
* the password comes from a file before the variable, without the end of its line, and is forgotten
* options that would do nothing, or carry a secret, are refused (tests/deploy/test_presets.py)
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deploy.config import RunConfig
from deploy.credentials import (
    PASSWORD_VARIABLE,
    USER_VARIABLE,
    forget_password,
    own_server_url,
    read_password,
)
from deploy.store import own_server
from replay.config import ReplayConfig
from replay.redis_link import StoreRefused


def config(url: str) -> RunConfig:
    return RunConfig(replay=ReplayConfig(redis_url=url))


def test_user_of_the_environment_completes_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = config("rediss://host:6380/0")
    assert own_server_url(plain) == "rediss://host:6380/0"
    monkeypatch.setenv(USER_VARIABLE, "trainer")
    monkeypatch.setenv(PASSWORD_VARIABLE, "secret")
    assert own_server_url(plain) == "rediss://trainer@host:6380/0"
    assert own_server_url(config("rediss://trainer@host/0")) == "rediss://trainer@host/0"
    server = own_server(plain, "run")
    assert (server.url, server.password) == ("rediss://trainer@host:6380/0", "secret")
    with pytest.raises(StoreRefused, match=f"'other' and {USER_VARIABLE} is 'trainer'"):
        own_server(config("rediss://other@host/0"), "run")


def test_password_comes_from_a_file_and_is_forgotten(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert read_password() == ""
    monkeypatch.setenv(PASSWORD_VARIABLE, "variable")
    assert read_password() == "variable"
    (tmp_path / "password").write_text("of the file\n")
    monkeypatch.setenv(f"{PASSWORD_VARIABLE}_FILE", str(tmp_path / "password"))
    assert read_password() == "of the file"
    forget_password()
    assert PASSWORD_VARIABLE not in os.environ
