"""Traps of compiled code, each shown closed, and where it can be, shown to be real.

* after one warm-up processes that start together compile nothing, in a toy and in the real rooms
* an edited game is not served from a stale cache (with one folder for all sources it would be)
* two games whose types share a name are refused (numba calls both the same)
* NUMBA_BOUNDSCHECK=1 goes to a cache of its own and finds what a warm cache would hide
* the warning of splitmix64 with the JIT off is real, and nowhere silenced but in such a run
* compiled code is made in one place, with options that do not depend on who imports it
"""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import numba
import pytest

from engine.game import get_spec, register
from engine.games import kuhn

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("engine", "replay", "learner", "league", "actors", "deploy")

PROBE = """
import numpy as np
from engine.jit import kernel
from engine.rules import apply, deal, returns

@kernel
def pot_after_two_passes(game, state, outcome):
    deal(game, state, np.uint64(1))
    apply(game, state, 0)
    apply(game, state, 0)
    returns(game, state, outcome)
    return abs(outcome[0])

@kernel
def read(values, index):
    return values[index]
"""
MAIN = """
import json, sys
import numpy as np
from numba.core import config, event
recorder = event.RecordingListener()
event.register("numba:compile", recorder)
import engine
from engine.games.kuhn import SPEC
from engine import probe
assert engine.__file__.startswith(sys.argv[1]), engine.__file__
found = {"folder": config.CACHE_DIR}
try:
    if sys.argv[2] == "pot":
        game = SPEC.make()
        found["answer"] = probe.pot_after_two_passes(game, SPEC.new_state(), np.zeros(2))
        kernels = [probe.pot_after_two_passes]
    else:
        # The element lies behind the slice, in the same block of memory: a wild read is harmless.
        found["answer"] = int(probe.read(np.arange(8)[:2], 5))
        kernels = [probe.read]
    found["hits"] = sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels)
except IndexError:
    found["answer"] = "IndexError"
found["compiled"] = len(recorder.buffer)
print(json.dumps(found))
"""


class Copy:
    """A copy of the engine in a folder of its own, with a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "engine", folder / "engine", ignore=ignored)
        (folder / "engine" / "probe.py").write_text(PROBE)

    def edit(self, path: str, old: str, new: str) -> None:
        file = self.folder / "engine" / path
        text = file.read_text()
        assert text.count(old) == 1, f"{path} does not hold {old!r} once"
        file.write_text(text.replace(old, new))

    def start(self, what: str = "pot", **variables: str) -> subprocess.Popen[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
        environment |= {"CARDLEAGUE_CACHE_DIR": str(self.folder / "cache")} | variables
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-c", MAIN, str(self.folder), what],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, what: str = "pot", **variables: str) -> Any:
        return answer_of(self.start(what, **variables))


def answer_of(process: subprocess.Popen[str]) -> Any:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err[-3000:]
    return json.loads(out)


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


# --- the cache ------------------------------------------------------------------------------------


def test_processes_after_the_first_compile_nothing_though_they_start_together(copy: Copy) -> None:
    first = copy.run()
    assert first["compiled"] > 0
    assert first["hits"] == 0
    processes = [copy.start() for _ in range(3)]
    for process in processes:
        assert answer_of(process) == first | {"compiled": 0, "hits": 1}


def test_real_kernels_are_all_served_from_the_cache_after_a_warm_up() -> None:
    command = [sys.executable, "-m", "tests.engine.three_ways", "kuhn_search", "self_play"]
    found = []
    for _ in range(2):
        result = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
        )
        assert result.returncode == 0, result.stderr[-3000:]
        found.append(json.loads(result.stdout))
    assert found[1] == found[0] | {"compiled": 0}


EDIT = ("games/kuhn.py", "else game.ante\n    out[winner]", "else 7 * game.ante\n    out[winner]")


def test_an_edited_game_is_not_served_from_a_stale_cache(copy: Copy) -> None:
    before = copy.run()
    assert before["answer"] == 1
    copy.edit(*EDIT)
    after = copy.run()
    assert after["answer"] == 7
    assert after["folder"] != before["folder"]
    assert after["compiled"] > 0


def test_with_one_folder_for_all_sources_the_old_rules_would_be_served(copy: Copy) -> None:
    copy.edit("jit.py", "return digest.hexdigest()[:16]", 'return "always"')
    assert copy.run()["answer"] == 1
    copy.edit(*EDIT)
    assert copy.run()["answer"] == 1  # the caller's file did not change: numba sees no reason


def test_bounds_checks_have_a_cache_of_their_own_and_find_a_wild_read(copy: Copy) -> None:
    plain = copy.run("read")
    assert plain["answer"] == 5  # read behind the end of the slice
    checked = copy.run("read", NUMBA_BOUNDSCHECK="1")
    assert checked["answer"] == "IndexError"
    assert checked["folder"] != plain["folder"]
    assert copy.run("read") == plain | {"compiled": 0, "hits": 1}


def test_without_the_flag_in_the_folder_a_warm_cache_would_hide_the_wild_read(copy: Copy) -> None:
    copy.edit("jit.py", 'name.startswith("NUMBA_")', 'name.startswith("NOTHING_")')
    copy.run("read")
    assert copy.run("read", NUMBA_BOUNDSCHECK="1")["answer"] == 5


# --- names ----------------------------------------------------------------------------------------


def test_two_games_whose_types_share_a_name_are_refused() -> None:
    class Kuhn(NamedTuple):
        ante: int = 1

    # Machine code goes by what numba calls a type, and that tells nothing of the class.
    assert str(numba.typeof(Kuhn())) == str(numba.typeof(kuhn.Kuhn()))
    spec = dataclasses.replace(
        get_spec("kuhn"), name="other", game_type=Kuhn, presets={"standard": Kuhn()}
    )
    with pytest.raises(ValueError, match="name already taken by 'kuhn'"):
        register(spec, vars(kuhn))


def test_two_games_of_one_name_are_refused() -> None:
    class OtherKuhn(NamedTuple):
        ante: int = 1

    spec = dataclasses.replace(get_spec("kuhn"), game_type=OtherKuhn)
    with pytest.raises(ValueError, match="name already taken by 'kuhn'"):
        register(spec, vars(kuhn))


# --- the JIT off ----------------------------------------------------------------------------------
FILTER = "ignore:overflow encountered:RuntimeWarning"


def draw(*warnings: str, **variables: str) -> subprocess.CompletedProcess[str]:
    program = "from engine.rng import make_rng, next_u64; print(int(next_u64(make_rng(1, 2))))"
    options = [word for warning in warnings for word in ("-W", warning)]
    return subprocess.run(
        [sys.executable, *options, "-c", program],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_overflow_warning_is_of_runs_without_the_jit_and_filtered_only_there() -> None:
    compiled = draw("error")
    assert compiled.returncode == 0, compiled.stderr[-2000:]
    unfiltered = draw("error", NUMBA_DISABLE_JIT="1")
    assert unfiltered.returncode != 0
    assert "RuntimeWarning: overflow encountered" in unfiltered.stderr
    filtered = draw("error", FILTER, NUMBA_DISABLE_JIT="1")
    assert filtered.returncode == 0, filtered.stderr[-2000:]
    assert filtered.stdout == compiled.stdout
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert options["filterwarnings"] == ["error"]
    silencers = ("filterwarnings", "simplefilter", "seterr")
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        text = path.read_text().replace('simplefilter("error")', "")  # silences nothing
        assert not any(word in text for word in silencers), path


# --- one place ------------------------------------------------------------------------------------


def imported_names(path: Path) -> set[str]:
    """Return what a module takes from numba, and ``np.random`` where it is used."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "numba":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and node.attr in ("njit", "jit", "vectorize"):
            found.add(node.attr)
        elif (
            isinstance(node, ast.Attribute)
            and node.attr == "random"
            and isinstance(node.value, ast.Name)
            and node.value.id == "np"
        ):
            found.add("np.random")
    return found


def test_kernels_are_made_in_one_place_and_draw_no_numbers_of_numpy() -> None:
    compilers = {"njit", "jit", "vectorize", "guvectorize", "cfunc"}
    found = {}
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        unwanted = compilers
        if path.relative_to(ROOT).parts[0] in ("engine", "actors"):
            unwanted = compilers | {"np.random"}  # the other rooms use it outside of kernels
        if names := imported_names(path) & unwanted:
            found[str(path.relative_to(ROOT))] = names
    assert found == {"engine/jit.py": {"njit"}}
