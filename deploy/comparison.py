"""Runs beside one another: where their configurations differ, and how strong they became.

Room: deploy. May import: deploy (config, evaluations, rundir), league.messages, msgspec. Light: no
engine, no numpy. ``deploy.plots`` draws what is gathered here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from deploy.config import RunConfig
from deploy.evaluations import key_of, read_records
from deploy.rundir import RunDirectory
from league.messages import EvaluationRecord

MAX_RUNS = 10
"""As many colours can be told apart."""
LABEL_KEYS = frozenset({"name", "schema_version"})
"""Configuration keys that say nothing about how a run learns."""


class ComparisonError(ValueError):
    """Runs that cannot be compared; names them."""


class LoadedRun(NamedTuple):
    """What is read of a run."""

    name: str
    """As it is shown: of its folder, or the folder's path where two have one name."""
    config: RunConfig
    evaluations: list[EvaluationRecord]
    """By training time."""
    changed: tuple[str, ...]
    """Options that a resume changed on the way."""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Strength of all runs against one opponent with one budget of search."""

    opponent: str
    simulations: int
    """Simulations a move of the measured models."""
    runs: dict[str, list[EvaluationRecord]]
    """By name of the run, each by training time; runs without such evaluations are missing."""

    def figures(self) -> list[str]:
        """Return the names of the means a game, in the records' order."""
        found: dict[str, None] = {}
        for record in (record for records in self.runs.values() for record in records):
            found.update(dict.fromkeys((*record.own, *record.other)))
        return list(found)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What ``compare`` shows."""

    game: str
    runs: tuple[str, ...]
    notes: tuple[str, ...]
    """What a reader has to know, each naming its run."""
    config: dict[str, dict[str, Any]]
    """Keys that differ -> value by run; a rule option that a run does not set is missing."""
    curves: tuple[Curve, ...]


def compare_runs(folders: Sequence[Path]) -> Comparison:
    """Read the runs in ``folders`` and compare them.

    Raises:
        ComparisonError: A run twice, too many or none, or different games.
        ResumeError: A manifest or records that cannot be read.
    """
    runs = load_runs(folders)
    games = {run.name: run.config.game.name for run in runs}
    if len(set(games.values())) > 1:
        words = ", ".join(f"{name} plays {game!r}" for name, game in games.items())
        raise ComparisonError(f"runs of different games cannot be compared: {words}")
    return Comparison(
        game=runs[0].config.game.name,
        runs=tuple(games),
        notes=tuple(_notes(runs)),
        config=config_difference({run.name: run.config for run in runs}),
        curves=tuple(curves(runs)),
    )


def load_runs(folders: Sequence[Path]) -> list[LoadedRun]:
    """Read the runs in ``folders``, in that order. Raises as ``compare_runs`` does."""
    if not 1 <= len(folders) <= MAX_RUNS:
        raise ComparisonError(f"{len(folders)} runs: allowed are 1 to {MAX_RUNS}")
    places = [folder.resolve() for folder in folders]
    for place in places:
        if places.count(place) > 1:
            raise ComparisonError(f"run {place.name!r} is named twice")
    names = [place.name for place in places]
    runs = []
    for place in places:
        manifest = RunDirectory(place).load()
        keys = {key for change in manifest.config_changes for key in change.changes}
        runs.append(
            LoadedRun(
                name=place.name if names.count(place.name) == 1 else str(place),
                config=manifest.config,
                evaluations=read_evaluations(place),
                changed=tuple(sorted(keys)),
            )
        )
    return runs


def read_evaluations(folder: Path) -> list[EvaluationRecord]:
    """Return the records of a run by training time, the same games once; see ``read_records``."""
    found = {key_of(record): record for record in read_records(RunDirectory(folder))}
    return sorted(found.values(), key=lambda record: (record.elapsed_s, record.step))


def _notes(runs: Sequence[LoadedRun]) -> Iterator[str]:
    for run in runs:
        if not run.evaluations:
            yield f"run {run.name!r} has no evaluations yet"
        if run.changed:
            yield f"run {run.name!r} went on with other options: {', '.join(run.changed)}"
    rules = [msgspec.to_builtins(run.config.game) for run in runs]
    if any(other["rules"] != rules[0]["rules"] for other in rules) or any(
        other["options"] != rules[0]["options"] for other in rules
    ):
        yield "the runs play by different rules: their win rates are of different games"


# --- configurations -------------------------------------------------------------------------------


def config_difference(configs: Mapping[str, RunConfig]) -> dict[str, dict[str, Any]]:
    """Return ``section.key`` -> value by run, of the keys whose values are not all equal."""
    flat = {name: dict(_leaves(msgspec.to_builtins(config))) for name, config in configs.items()}
    keys: dict[str, None] = {}
    for values in flat.values():
        keys.update(dict.fromkeys(values))
    found = {}
    for key in keys:
        by_run = {name: values[key] for name, values in flat.items() if key in values}
        first = next(iter(by_run.values()))
        if len(by_run) < len(flat) or any(value != first for value in by_run.values()):
            found[key] = by_run
    return {key: by_run for key, by_run in found.items() if key not in LABEL_KEYS}


def _leaves(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in document.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


# --- strength -------------------------------------------------------------------------------------


def curves(runs: Iterable[LoadedRun]) -> list[Curve]:
    """Return one curve per opponent and simulations, opponents in order of appearance."""
    found: dict[str, dict[int, dict[str, list[EvaluationRecord]]]] = {}
    for run in runs:
        for record in run.evaluations:
            budgets = found.setdefault(record.opponent, {})
            by_run = budgets.setdefault(record.simulations, {})
            by_run.setdefault(run.name, []).append(record)
    return [
        Curve(opponent=opponent, simulations=simulations, runs=budgets[simulations])
        for opponent, budgets in found.items()
        for simulations in sorted(budgets)
    ]


def curve_words(curve: Curve) -> str:
    """Return in words what a curve measures."""
    budget = f"{curve.simulations} simulations" if curve.simulations else "policy alone"
    return f"against {curve.opponent}, {budget}"


def thinned(records: Sequence[EvaluationRecord], count: int) -> list[EvaluationRecord]:
    """Return at most ``count`` (2 or more) of ``records``, evenly spread, with first and last."""
    if len(records) <= count:
        return list(records)
    last = len(records) - 1
    return [records[round(index * last / (count - 1))] for index in range(count)]
