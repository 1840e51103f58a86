"""Games of other packages, which name their modules in the entry-point group ``cardleague.games``.

Room: engine. May import: the standard library.

    [project.entry-points."cardleague.games"]
    highcard = "highcard"

What is installed is there in every process of every node, without an option that would have to
reach it. Importing the module registers the game (``engine.game.register``) under the name of the
entry point.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib import metadata, util
from pathlib import Path

GROUP = "cardleague.games"


@functools.cache
def entry_points() -> tuple[metadata.EntryPoint, ...]:
    """Return the games that installed packages offer, in order of name; nothing is loaded."""
    found = metadata.entry_points(group=GROUP)
    return tuple(sorted(found, key=lambda point: (point.name, point.value)))


def package_of(point: metadata.EntryPoint) -> str:
    """Return name and version of the package that offers a game, as people write them."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "a package"


def sources() -> Iterator[tuple[str, Path]]:
    """Yield (name, file) of every Python source beside the offered games, in a fixed order.

    All of the top-level module or package that an entry point names: a game may be many modules.
    """
    for top in sorted({point.module.partition(".")[0] for point in entry_points()}):
        spec = util.find_spec(top)
        if spec is None:
            continue  # loading the game will say so
        for folder in map(Path, spec.submodule_search_locations or ()):
            for path in sorted(folder.rglob("*.py")):
                yield f"{top}/{path.relative_to(folder)}", path
        if spec.submodule_search_locations is None and spec.origin is not None:
            yield top, Path(spec.origin)
