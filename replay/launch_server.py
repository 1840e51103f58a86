"""What runs between the supervisor and the bundled server: a process that becomes the server.

Room: replay. Standard library only; run as a script by replay.embedded, which also imports
``start_token``.

Preparing the child after ``fork`` inside the parent would run Python in a process whose other
threads have just vanished. Here a fresh interpreter does it and then replaces itself: the process
keeps its pid and start time, so what it writes to ``server.json`` is true from the first instant
in which the server can exist, and nothing that holds the lock is ever unknown.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def boot_id() -> str:
    """Return text that tells this life of this machine from every other one.

    Start times count from the boot: on another machine, or after another boot, an unrelated process
    may have the same pid and the same start time.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return os.uname().nodename


def start_token(pid: int) -> str:
    """Return text that tells a process from any other, later or elsewhere, with the same pid.

    "" if there is no such process.
    """
    if sys.platform.startswith("linux"):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return ""
        fields = stat.rpartition(")")[2].split()
        # A zombie holds no file and no lock: it is as good as gone.
        return "" if fields[0] in "ZX" else f"{fields[19]} {boot_id()}"
    shown = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split()
    return "" if not shown or shown[0].startswith("Z") else " ".join([*shown[1:], boot_id()])


def write_record(path: Path, record: dict[str, object]) -> None:
    """Replace ``path`` by ``record`` as JSON, durably; a reader sees the old or the new one."""
    temporary = path.with_name(path.name + ".new")
    with open(temporary, "w") as file:
        json.dump(record, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _end_with_parent(parent: int) -> None:
    """Ask the kernel for SIGTERM when the parent goes, and leave if it has gone already."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)


def main(arguments: list[str]) -> None:
    """``binary record parent socket``: become the server that reads its options from stdin."""
    binary, record, parent, socket = arguments
    write_record(
        Path(record), {"pid": os.getpid(), "start": start_token(os.getpid()), "socket": socket}
    )
    _end_with_parent(int(parent))
    os.execv(binary, [binary, "-"])


if __name__ == "__main__":
    main(sys.argv[1:])
