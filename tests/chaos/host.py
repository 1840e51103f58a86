"""The supervisor of a run under attack: the real one, whose owner records.

``python -m tests.chaos.host RUN_DIR [KEY=VALUE ...]``: starts the run, or resumes it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from deploy import presets
from deploy.config import RunConfig
from deploy.rundir import RunDirectory
from deploy.supervise import Supervisor
from tests.system.run_host import OVERRIDES

QUICK_GATE = ("gate.max_pairs=30", "gate.share=0.3")
"""Equal versions soon are undecided, which the recording gate takes for better."""
OWNER_VARIABLE = "CHAOS_OWNER"
"""Names another module than ``tests.chaos.owner``."""


def owner_command(directory: RunDirectory, _: RunConfig, server_url: str) -> list[str]:
    module = os.environ.get(OWNER_VARIABLE, "tests.chaos.owner")
    command = [sys.executable, "-m", module, str(directory.path)]
    return [*command, "--server-url", server_url] if server_url else command


def main() -> int:
    directory = RunDirectory(Path(sys.argv[1]))
    overrides = [*OVERRIDES, *QUICK_GATE, *sys.argv[2:]]
    config = presets.load("kuhn-smoke", overrides=overrides)
    resume = directory.exists()
    return Supervisor(config, directory, resume=resume, owner_command=owner_command).run()


if __name__ == "__main__":
    sys.exit(main())
