"""``train``, ``resume`` and ``status``: what is done with runs. Room: deploy; light imports."""

from __future__ import annotations

import contextlib
import math
import sys
from pathlib import Path
from typing import Annotated

import msgspec
from tyro.conf import Positional, UseAppendAction, arg

from deploy import presets
from deploy.commands import UserError, option
from deploy.config import RunConfig
from deploy.status import RunStatus

RUNS = Path("runs")
"""Folder of all runs, in the working directory."""


def train(
    source: Annotated[Positional[str], arg(metavar="PRESET|FILE.toml")],
    /,
    *,
    name: Annotated[str | None, option("NAME")] = None,
    minutes: Annotated[float, option("MINUTES")] = math.inf,
    seed: Annotated[str | None, option("SEED")] = None,
    runtime: Annotated[str | None, option("inprocess|ray")] = None,
    redis_url: Annotated[str | None, option("URL")] = None,
    ray_address: Annotated[str | None, option("ADDRESS")] = None,
    accept_volatile_redis: Annotated[bool, option("")] = False,
    allow_open_ray: Annotated[bool, option("")] = False,
    set: Annotated[UseAppendAction[tuple[str, ...]], option("KEY=VALUE")] = (),
) -> int:
    """Train, with a live view, until Ctrl-C; go on with the run if it exists.

    Args:
        source: A preset, such as cuarenta-laptop or smoke, or a TOML file.
        name: Folder under runs/; by default the name of the preset or file.
        minutes: Stop after so many minutes of training and measure the champion.
        seed: Number that all deals, searches and weights follow from.
        runtime: ray: several processes; inprocess: one process, reproducible.
        redis_url: An own Redis or Valkey server instead of the bundled one.
        ray_address: An existing Ray cluster instead of a local one.
        accept_volatile_redis: Use a server that may lose trajectories in a crash.
        allow_open_ray: Use a Ray cluster that asks for no token.
        set: Options, such as --set self_play.games=64 gate.games=32.
    """
    check_minutes(minutes)
    flags = [
        (key, value, flag)
        for key, value, flag in (
            ("name", name, "--name"),
            ("seed", seed, "--seed"),
            ("runtime.kind", runtime, "--runtime"),
            ("replay.redis_url", redis_url, "--redis-url"),
            ("runtime.ray_address", ray_address, "--ray-address"),
            (
                "replay.accept_volatile",
                "true" if accept_volatile_redis else None,
                "--accept-volatile-redis",
            ),
            ("runtime.allow_open_ray", "true" if allow_open_ray else None, "--allow-open-ray"),
        )
        if value is not None
    ]
    config = presets.load(source, overrides=set, flags=flags)
    folder = RUNS / config.name
    saved = saved_config(folder)
    if saved is not None:
        config = presets.load(source, overrides=set, flags=flags, saved=saved)
    return run(config, folder, resumed=saved is not None, minutes=minutes)


def resume(
    name: Annotated[Positional[str], arg(metavar="RUN")],
    /,
    *,
    minutes: Annotated[float, option("MINUTES")] = math.inf,
) -> int:
    """Go on with a run exactly as it was saved.

    Args:
        name: Folder of the run, such as runs/cuarenta-laptop, or its name.
        minutes: Stop after so many more minutes.
    """
    check_minutes(minutes)
    folder = find_run(name)
    saved = saved_config(folder)
    assert saved is not None
    return run(presets.amend(saved), folder, resumed=True, minutes=minutes)


def status(
    name: Annotated[Positional[str], arg(metavar="RUN")],
    /,
    *,
    json: Annotated[bool, option("")] = False,
) -> int:
    """Show where a run stands, live or stopped.

    Args:
        name: Folder of the run, or its name.
        json: Print all figures as JSON.
    """
    from deploy.manifest import ResumeError
    from deploy.provenance import in_words
    from deploy.rundir import RunDirectory

    directory = RunDirectory(find_run(name))
    live = directory.is_live()
    try:
        manifest = directory.load()
        if not live:  # a live owner may be removing what the manifest named a moment ago
            directory.check_named(manifest)
    except ResumeError as error:
        raise UserError(str(error)) from error
    found = directory.read_status()
    if found is None:
        why = "it is starting" if live else "it was never started"
        raise UserError(f"run {str(directory.path)!r} has no status yet: {why}")
    if not live:
        stand_still(found)
    if json:
        provenance = {"invocations": manifest.invocations, "migrations": manifest.migrations}
        document = {"live": live, **msgspec.to_builtins(found)}
        document |= {"seed": manifest.seed, "schemas": manifest.schemas} | provenance
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")
        return 0
    from deploy.liveview import print_status

    print_status(found, manifest.config.gate)
    if manifest.invocations:
        count = manifest.owner_starts
        sys.stdout.write(f"\nlast start (seed {manifest.seed}, {count} starts of an owner)\n")
        sys.stdout.writelines(f"  {line}\n" for line in in_words(manifest.invocations[-1]))
    return 0


def stand_still(status: RunStatus) -> None:
    """Turn what a live owner said last into the status of a run that nobody runs, in place."""
    status.state, status.metrics_url = "stopped", ""
    status.games_per_s = status.plies_per_s = status.simulations_per_s = 0.0
    status.examples_per_s = status.updates_per_s = 0.0
    status.workers = []
    status.resident_bytes = 0


def check_minutes(minutes: float) -> None:
    """Raise UserError unless ``minutes`` is above 0 (infinity: without a limit)."""
    if not minutes > 0:
        raise UserError(f"--minutes {minutes}: allowed is a number above 0")


def saved_config(folder: Path) -> RunConfig | None:
    """Return the configuration of an existing run; None when there is none. Raises UserError."""
    from deploy.manifest import ResumeError
    from deploy.rundir import RunDirectory

    directory = RunDirectory(folder)
    if not directory.exists():
        return None
    try:
        return directory.load().config
    except ResumeError as error:
        raise UserError(str(error)) from error


def find_run(name: str) -> Path:
    """Return the folder of a run by path or name. Raises UserError that lists the runs."""
    from deploy.rundir import RunDirectory

    for folder in (Path(name), RUNS / name):
        with contextlib.suppress(OSError):  # a name too long for a file
            if name and RunDirectory(folder).exists():
                return folder
    names = sorted(path.name for path in RUNS.glob("*") if RunDirectory(path).exists())
    there = ", ".join(names) or "none"
    raise UserError(f"run {name!r} does not exist; in {RUNS.absolute()} there are: {there}")


def run(config: RunConfig, folder: Path, *, resumed: bool, minutes: float) -> int:
    """Check what the light modules cannot, then become the supervisor."""
    from deploy.manifest import ResumeError, apply_config
    from deploy.preflight import check_in_child
    from deploy.rundir import RunDirectory, RunLockedError
    from deploy.terminal import own_foreground_group
    from replay.redis_link import StoreError

    directory = RunDirectory(folder)
    changes: dict[str, tuple[str, str]] = {}
    try:
        if resumed:
            if directory.is_live():
                raise UserError(
                    f"run {str(folder)!r} is live in another process: stop that one, or take "
                    "another --name"
                )
            manifest = directory.load()
            was, wanted = manifest.config.game.name, config.game.name
            if was != wanted:  # in these words before any difference in its options
                raise UserError(
                    f"run {str(folder)!r} is of game {was!r}, not {wanted!r}: take another --name"
                )
            changes = apply_config(manifest, config)
        check_in_child(config, folder)
        for key, (old, new) in changes.items():
            sys.stderr.write(f"cardleague: changed for this run: {key} from {old} to {new}\n")
        from deploy import supervise

        limit = minutes if math.isfinite(minutes) else None
        with own_foreground_group():
            return supervise.train(config, folder, resume=resumed, minutes=limit)
    except (ResumeError, RunLockedError) as error:
        raise UserError(str(error)) from error
    except StoreError as error:  # of the bundled server, after its owner was ended
        sys.stderr.write(f"cardleague: {error}\n")
        return 1
