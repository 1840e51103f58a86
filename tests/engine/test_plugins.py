"""Games of other packages.

* A package's game is listed last, and its module is imported only when it is asked for.
* What is wrong with one is told by name of game and package: a module that is missing or fails, one
  that registers no such game, two packages with one game, a name that is taken.
* An edit of such a game's sources, in a module or anywhere in a package, changes the folder of the
  machine code and the hash by which nodes compare their programs.
* The games of this program need none of it.

A package that works is the example of docs/new-game.md (tests/test_new_game_doc.py).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import jit, plugins
from engine.game import GAME_MODULES, UnknownGameError, game_names, get_spec


class Site:
    """A folder of installed packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, package: str, games: dict[str, str]) -> None:
        """Install a package that offers ``games``: name -> module."""
        facts = self.folder / f"{package}-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"[{plugins.GROUP}]", *(f"{name} = {module}" for name, module in games.items())]
        (facts / "entry_points.txt").write_text("\n".join(lines) + "\n")
        self.refresh()

    def write(self, path: str, text: str) -> None:
        """Write a source."""
        (self.folder / path).parent.mkdir(exist_ok=True)
        (self.folder / path).write_text(text)
        self.refresh()

    def refresh(self) -> None:
        """Forget what was found, as a new process would."""
        importlib.invalidate_caches()
        plugins.entry_points.cache_clear()
        jit.engine_hash.cache_clear()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Site(tmp_path)
    made.refresh()
    yield made
    monkeypatch.undo()
    for name in [name for name in sys.modules if name.startswith("their_game")]:
        del sys.modules[name]
    made.refresh()


def test_an_offered_game_is_listed_and_not_loaded_for_it(site: Site) -> None:
    site.install("somebodys", {"theirs": "their_game"})
    site.write("their_game.py", "raise RuntimeError('was imported')\n")
    assert game_names()[-1] == "theirs"
    assert get_spec("kuhn").name == "kuhn"
    with pytest.raises(UnknownGameError, match=r"'no_such': allowed are .*kuhn.*, theirs$"):
        get_spec("no_such")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, "cannot be loaded: ModuleNotFoundError: No module named 'their_game'"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("NAME = 'theirs'", "its module their_game registers no game of this name"),
    ],
)
def test_a_game_that_cannot_be_loaded_is_told(site: Site, source: str | None, reason: str) -> None:
    site.install("somebodys", {"theirs": "their_game"})
    if source is not None:
        site.write("their_game.py", f"{source}\n")
    with pytest.raises(UnknownGameError) as caught:
        get_spec("theirs")
    assert str(caught.value).startswith("game 'theirs' of somebodys 1.0")
    assert reason in str(caught.value)


def test_two_packages_with_one_game_are_refused(site: Site) -> None:
    site.install("first", {"theirs": "first_game"})
    site.install("second", {"theirs": "second_game"})
    with pytest.raises(
        UnknownGameError, match=r"is one package that offers it: first 1\.0, second 1\.0"
    ):
        get_spec("theirs")


def test_a_game_of_this_program_cannot_be_replaced(site: Site) -> None:
    site.install("somebodys", {"kuhn": "their_game"})
    with pytest.raises(UnknownGameError, match=r"'kuhn' of somebodys 1.0: allowed is another name"):
        game_names()
    assert get_spec("kuhn").game_type.__module__ == "engine.games.kuhn"


@pytest.mark.parametrize("path", ["their_game.py", "their_game/__init__.py", "their_game/rules.py"])
def test_an_edit_of_an_offered_game_makes_other_machine_code(site: Site, path: str) -> None:
    keys = [(jit.engine_hash(), jit.cache_key())]
    site.install("somebodys", {"theirs": "their_game"})
    if path.endswith("rules.py"):
        site.write("their_game/__init__.py", "")
    for source in ("A = 1", "A = 2"):
        site.write(path, source)
        keys.append((jit.engine_hash(), jit.cache_key()))
    assert len(set(keys)) == 3
    assert len({hashed for hashed, _ in keys}) == 3
    assert "their_game" not in sys.modules


def test_names_of_modules_are_names_of_games() -> None:
    assert [get_spec(name).name for name in GAME_MODULES] == list(GAME_MODULES)
