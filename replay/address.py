"""Addresses of Redis servers: what they may hold, and how they are shown.

Room: replay. Standard library only (the command line loads it).
"""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit, urlunsplit

TLS_SCHEME = "rediss"
QUERY_OPTIONS = ("db",)
"""What may stand behind a ``?``. The library would take anything there, passwords and a switch that
turns certificates off among it."""


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


def has_password(url: str) -> bool:
    """Return whether an address carries a password, before the host or behind a ``?``."""
    parts = _split(url)
    if parts is None:
        return "@" in url
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    return parts.password is not None or any("password" in name.lower() for name in names)


def unknown_option(url: str) -> str:
    """Return the first option behind a ``?`` that is not allowed; empty where there is none."""
    parts = _split(url)
    names = parse_qsl(parts.query, keep_blank_values=True) if parts is not None else []
    return next((name for name, _ in names if name not in QUERY_OPTIONS), "")


def is_tls(url: str) -> bool:
    """Return whether connections to ``url`` are encrypted."""
    return url.partition("://")[0].lower() == TLS_SCHEME


def user_of(url: str) -> str:
    """Return the user that an address names; empty for the server's default one."""
    parts = _split(url)
    return unquote(parts.username or "") if parts is not None else ""


def with_user(url: str, user: str) -> str:
    """Return ``url`` with ``user`` before its host."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{quote(user, safe='')}@{host}"))


def redacted(url: str) -> str:
    """Return ``url`` without any password, for people to read."""
    parts = _split(url)
    if parts is None:
        return f"***@{url.rpartition('@')[2]}" if "@" in url else url
    if parts.password is not None:
        host = parts.netloc.rpartition("@")[2]
        parts = parts._replace(netloc=f"{parts.username or ''}:***@{host}")
    elif not parts.query:
        return url
    return urlunsplit(parts._replace(query=_shown(parts.query)))


def _shown(query: str) -> str:
    options = parse_qsl(query, keep_blank_values=True)
    return "&".join(
        f"{name}={value if name in QUERY_OPTIONS else '***'}" for name, value in options
    )
