"""Runs the groups of figures one after the other and says on what machine.

Room: deploy. May import: every room; each group's module is imported when its turn comes.
"""

from __future__ import annotations

import importlib
import os
import tempfile
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import msgspec
import psutil

from deploy.bench.figures import Figure
from deploy.bench.setup import Setup, Told, Unavailable
from deploy.manifest import new_manifest

GROUPS: dict[str, tuple[str, str]] = {
    "play": ("play", "measure"),
    "levels": ("levels", "measure"),
    "playouts": ("playouts", "measure"),
    "network": ("network", "measure"),
    "decision": ("network", "measure_decision"),
    "onnx": ("network", "measure_onnx"),
    "selfplay": ("selfplay", "measure"),
    "learner": ("learning", "measure"),
    "stream": ("stream", "measure"),
    "ingest": ("ingest", "measure"),
    "together": ("together", "measure"),
}
"""Name -> module and function; in this order, so that what runs alone runs before what does not."""
BUSY_PERCENT = 10.0
"""Use of all processors before the first group from which the machine counts as busy."""
BUSY_SHARE = 0.9
"""A group that computed for less of the wall clock than this had to share its processor."""


class UnknownGroupError(ValueError):
    """A group that does not exist; names those that do."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where and when it was measured."""

    date: str
    """UTC."""
    system: str
    processor: str
    cores: int
    memory_gb: float
    versions: dict[str, str]
    commit: str
    """Empty outside a checkout; ends in ``+`` where files differ from it."""
    load_before: tuple[float, ...]
    """Load averages over 1, 5 and 15 minutes."""
    load_after: tuple[float, ...]
    busy_before_percent: float
    """Use of all processors by others before the first group."""


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A group that could not be measured."""

    group: str
    reason: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one call of the command found."""

    quick: bool
    """Small sizes: the figures say nothing but that everything runs."""
    groups: tuple[str, ...]
    machine: Machine
    figures: tuple[Figure, ...]
    skipped: tuple[Skipped, ...]
    commands: tuple[str, ...]
    """Commands of other programs that were run."""
    wall_s: float

    def warnings(self) -> list[str]:
        """Return what makes these figures doubtful, a sentence each."""
        found: list[str] = []
        if self.quick:
            found.append("Quick run: sizes so small that the figures show only that it works.")
        machine = self.machine
        if machine.busy_before_percent > BUSY_PERCENT:
            found.append(
                f"The machine was busy: others used {machine.busy_before_percent:.0f} % of its "
                f"{machine.cores} processors before the first measurement (load average "
                f"{machine.load_before[0]:.1f})."
            )
        shared = sorted({f.group for f in self.figures if _had_to_share(f)})
        if shared:
            found.append(
                "The machine was busy: less than "
                f"{BUSY_SHARE:.0%} of the wall clock was computed in {', '.join(shared)}."
            )
        return found


def _had_to_share(figure: Figure) -> bool:
    waited = figure.wall_s - figure.cpu_s
    return figure.one_core and waited > 0.05 and figure.cpu_s < BUSY_SHARE * figure.wall_s


def check_groups(names: Sequence[str]) -> tuple[str, ...]:
    """Return the groups to run, in their order; all for none. Raises UnknownGroupError."""
    for name in names:
        if name not in GROUPS:
            raise UnknownGroupError(f"group {name!r}: allowed are {', '.join(GROUPS)}")
    return tuple(name for name in GROUPS if not names or name in names)


def run(
    names: Sequence[str] = (),
    *,
    quick: bool = False,
    model: Path | None = None,
    say: Told = lambda text: None,
) -> Report:
    """Measure the groups ``names`` (default: all), searching with ``model`` if it is given.

    Call it from the main thread.

    Raises:
        UnknownGroupError: A name that is no group.
        ModelError: A model that is missing, damaged or made for another game.
    """
    groups = check_groups(names)
    began = time.perf_counter()
    before, busy = os.getloadavg(), psutil.cpu_percent(0.1 if quick else 2.0)
    figures: list[Figure] = []
    skipped: list[Skipped] = []
    with tempfile.TemporaryDirectory(prefix="cardleague-bench-") as folder:
        setup = Setup(quick=quick, folder=Path(folder), model=model, say=say)
        if model is not None:
            setup.evaluator()  # a model that does not fit is refused before anything is measured
        for name in groups:
            say(f"measuring {name}")
            module, function = GROUPS[name]
            try:
                measure = getattr(importlib.import_module(f"deploy.bench.{module}"), function)
                figures += measure(setup)
            except Unavailable as reason:
                skipped.append(Skipped(group=name, reason=str(reason)))
        skipped += [Skipped(group=name, reason=reason) for name, reason in setup.left_out]
        return Report(
            quick=quick,
            groups=groups,
            machine=_machine(setup, before, busy),
            figures=tuple(map(_bare, figures) if quick else figures),
            skipped=tuple(skipped),
            commands=tuple(setup.commands),
            wall_s=time.perf_counter() - began,
        )


def _bare(figure: Figure) -> Figure:
    """Return ``figure`` without its marks: sizes as small as these are not compared."""
    return msgspec.structs.replace(figure, reference=None, goal=None)


def _machine(setup: Setup, load_before: tuple[float, ...], busy: float) -> Machine:
    facts = new_manifest(setup.config, ["bench"])
    hardware = facts.hardware
    return Machine(
        date=time.strftime("%Y-%m-%d %H:%M", time.gmtime(facts.created_at)),
        system=hardware["system"],
        processor=hardware["processor"],
        cores=int(hardware["cpus"]),
        memory_gb=round(int(hardware["memory_bytes"]) / 2**30, 1),
        versions=facts.dependencies | _spiel_version(),
        commit=facts.git_commit[:12] + "+" * facts.git_dirty,
        load_before=load_before,
        load_after=os.getloadavg(),
        busy_before_percent=busy,
    )


def _spiel_version() -> dict[str, str]:
    try:
        return {"open_spiel": metadata.version("open_spiel")}
    except metadata.PackageNotFoundError:
        return {}
