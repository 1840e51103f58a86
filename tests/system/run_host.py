"""A process that runs a real training run on Kuhn over real Ray, for tests to signal and to kill.

``python -m tests.system.run_host RUN_DIR [KEY=VALUE ...]``: starts the run, or resumes it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from deploy import presets
from deploy.rundir import RunDirectory
from deploy.supervise import train

OVERRIDES = (
    "runtime.kind=ray",
    "runtime.snapshot_s=2",
    "runtime.step_s=0.3",
    "runtime.step_limit_s=6",
    "runtime.num_cpus=2",
    "self_play.num_workers=2",
    "self_play.share=0.3",
    "replay.min_free_disk_gb=0",
    "report.interrupted_s=0",
)


def main() -> int:
    folder = Path(sys.argv[1])
    config = presets.load("kuhn-smoke", overrides=[*OVERRIDES, *sys.argv[2:]])
    return train(config, folder, resume=RunDirectory(folder).exists(), minutes=None)


if __name__ == "__main__":
    sys.exit(main())
