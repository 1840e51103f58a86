"""The package that docs/new-game.md builds, written from the blocks of that page."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.deploy.waiting import ROOT

PAGE = ROOT / "docs" / "new-game.md"


def files() -> dict[str, str]:
    """Return the files of the package: the blocks that name one, joined in their order."""
    found: dict[str, str] = {}
    for match in re.finditer(r"^```\w+ (\S+)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.M):
        before = found.get(match[1])
        found[match[1]] = match[2] if before is None else f"{before}\n\n{match[2]}"
    return found


def commands() -> list[str]:
    """Return the commands of the page, in their order."""
    blocks = re.findall(r"^```bash\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.M)
    return [line for block in blocks for line in block.splitlines()]


def install(folder: Path) -> None:
    """Write the package to ``folder``, with the facts of it that an installer would leave there.

    With ``folder`` on the path it is installed: no installer, and no network, is needed.
    """
    for name, text in files().items():
        (folder / name).write_text(text)
    project = tomllib.loads(files()["pyproject.toml"])["project"]
    facts = folder / f"{project['name']}-{project['version']}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines: list[str] = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (facts / "entry_points.txt").write_text("\n".join(lines) + "\n")
