"""Makes the virtual environment that `make` uses. Runs before anything is installed.

Room: deploy. May import: the standard library alone. Start: ``python -I deploy/setup_venv.py``.

Nothing is done when the stamp in the environment says that the same project file, the same pins,
the same Python and at least the same extras are installed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAMP = "cardleague-setup.json"
PYTHONS = ((3, 11), (3, 13))
"""Oldest and newest supported Python."""
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CPU_INDEX_TIMEOUT_S = 5.0
DRIVER_FILES = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"))


class SetupError(RuntimeError):
    """The environment cannot be made; says what to do."""


def say(text: str) -> None:
    """Print a line at once, so that it stands before what the next process prints."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def has_nvidia_driver() -> bool:
    """Return whether this machine has an NVIDIA driver (not whether a GPU is free)."""
    return shutil.which("nvidia-smi") is not None or any(path.exists() for path in DRIVER_FILES)


def choose_torch(wanted: str, installed: str, driver: bool) -> str:
    """Return ``cpu`` or ``cuda``: what was asked for, what is installed, or by the driver."""
    if wanted in ("cpu", "cuda"):
        return wanted
    if wanted != "auto":
        raise SetupError(f"TORCH={wanted}: allowed are cpu and cuda (nothing: by the driver)")
    return installed or ("cuda" if driver else "cpu")


def fingerprint(root: Path, python: str) -> str:
    """Hash everything that decides what is installed."""
    digest = hashlib.sha256(f"{python}\n{root}\n".encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((root / name).read_bytes())
    return digest.hexdigest()


def read_stamp(environment: Path) -> dict[str, str]:
    """Return the stamp of a finished set-up; empty when there is none."""
    try:
        stamp = json.loads((environment / STAMP).read_text())
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in stamp.items()} if isinstance(stamp, dict) else {}


def answers(url: str, timeout_s: float) -> bool:
    """Return whether ``url`` answers within ``timeout_s``."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s):
            return True
    except (OSError, ValueError, urllib.error.URLError):
        return False


def pinned(name: str, root: Path) -> str:
    """Return ``name==version`` from the constraints."""
    for line in (root / "constraints.txt").read_text().splitlines():
        if line.startswith(f"{name}=="):
            return line.strip()
    raise SetupError(f"constraints.txt pins no {name}")


def has_pinned(python: Path, name: str, root: Path) -> bool:
    """Return whether the environment of ``python`` has the pinned ``name``, of whichever build."""
    code = "import sys; from importlib import metadata; print(metadata.version(sys.argv[1]))"
    found = subprocess.run([python, "-c", code, name], capture_output=True, text=True)
    version = found.stdout.strip().partition("+")[0]
    return found.returncode == 0 and f"{name}=={version}" == pinned(name, root)


def download_size(torch: str, system: str) -> str:
    """Return in words what installing torch downloads."""
    if torch == "cuda":
        return "about 3 GB with NVIDIA's libraries"
    return "about 0.2 GB" if system == "Linux" else "about 0.1 GB"


def install_torch(
    torch: str,
    pip: Callable[..., bool],
    root: Path,
    *,
    system: str,
    reachable: Callable[[str, float], bool] = answers,
) -> None:
    """Install the pinned torch; says the size of the download first.

    ``pip(*arguments)`` runs pip and returns whether it succeeded. Only Linux needs the index of CPU
    builds: elsewhere the default one has nothing else.
    """
    if torch == "cuda" and system == "Darwin":
        raise SetupError("TORCH=cuda: there is no CUDA on macOS; allowed is cpu")
    requirement = pinned("torch", root)
    arguments = ("install", "-c", str(root / "constraints.txt"), requirement)
    say(f"Installing {requirement} ({torch} build): a download of {download_size(torch, system)}.")
    if torch == "cpu" and system == "Linux":
        if reachable(f"{CPU_INDEX}/torch/", CPU_INDEX_TIMEOUT_S):
            if pip(*arguments, "--extra-index-url", CPU_INDEX):
                return
            say(f"Installing from {CPU_INDEX} failed.")
        else:
            say(f"{CPU_INDEX} does not answer.")
        say(
            "Trying pip's own index: unless it has a CPU build, this takes the CUDA build "
            f"({download_size('cuda', system)}), which runs on CPUs too."
        )
    if not pip(*arguments):
        raise SetupError(f"pip could not install {requirement} (its messages stand above)")


def make_environment(environment: Path) -> Path:
    """Create ``environment`` unless its Python is of this one's version; return its Python."""
    python = environment / "bin" / "python"
    probe = "import sys; print(sys.version_info[:2] == tuple(map(int, sys.argv[1:])))"
    version = [str(part) for part in sys.version_info[:2]]
    if python.exists():
        found = subprocess.run([python, "-c", probe, *version], capture_output=True, text=True)
        if found.returncode == 0 and found.stdout.strip() == "True":
            return python
        say(f"{environment} is of another Python or broken: made anew.")
    say(f"Making {environment} with Python {platform.python_version()}.")
    try:
        venv.EnvBuilder(with_pip=True, clear=True, symlinks=True).create(environment)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(
            f"cannot make {environment}: {error}; on Debian and Ubuntu install python3-venv"
        ) from error
    return python


def install(environment: Path, extras: Sequence[str], torch: str, stamp: dict[str, str]) -> None:
    """Install torch (when ``learner`` is among the extras), the pins, and the project, editable."""
    python = make_environment(environment)

    def pip(*arguments: str) -> bool:
        command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
        return subprocess.run(command).returncode == 0

    changed = stamp.get("torch", torch) != torch
    if "learner" in extras and (changed or not has_pinned(python, "torch", ROOT)):
        if changed:
            pip("uninstall", "-y", "torch")
        install_torch(torch, pip, ROOT, system=platform.system())
    say("Installing the other pinned packages: a download of about 0.3 GB when nothing is cached.")
    project = f"{ROOT}[{','.join(extras)}]"
    if not pip("install", "--quiet", "-c", str(ROOT / "constraints.txt"), "-e", project):
        raise SetupError("pip could not install the project (its messages stand above)")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Make the virtual environment of this project.")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--extras", default="learner", help="comma-separated")
    parser.add_argument("--torch", default="auto", help="cpu, cuda or auto")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Make the environment; return 0, or 2 after one line that says what is wrong."""
    arguments = parse(argv)
    environment = arguments.venv.absolute()
    try:
        if not PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
            raise SetupError(
                f"Python {platform.python_version()}: allowed are 3.11 to 3.13 "
                "(say which with make PYTHON=python3.12 …)"
            )
        stamp = read_stamp(environment)
        torch = choose_torch(arguments.torch or "auto", stamp.get("torch", ""), has_nvidia_driver())
        wanted = {part for part in arguments.extras.split(",") if part}
        mark = fingerprint(ROOT, platform.python_version())
        installed = set(stamp.get("extras", "").split(","))
        up_to_date = stamp.get("fingerprint") == mark and stamp.get("torch") == torch
        if up_to_date and wanted <= installed and (environment / "bin" / "cardleague").exists():
            return 0
        extras = sorted(wanted | (installed - {""} if up_to_date else set()))
        install(environment, extras, torch, stamp)
    except SetupError as error:
        sys.stderr.write(f"set-up: {error}\n")
        return 2
    record = {"fingerprint": mark, "torch": torch, "extras": ",".join(extras)}
    (environment / STAMP).write_text(json.dumps(record) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
