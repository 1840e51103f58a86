"""Checks of a run before anything of it is made or changed, in a process of their own.

Room: deploy. The supervisor must not load numba, so ``python -m deploy.preflight`` reads the
resolved configuration on its standard input and checks folder, port, game, yardstick, what a resume
needs of its files, the network's device, Ray's address and an own server. Then it compiles the
kernels once (several cold workers would all compile the same code).

A fault found here is one line of the user's; found later it would be the end of a started run.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from deploy.commands import NotThere, UserError
from deploy.config import RunConfig
from deploy.decisions import RECENT_VERSIONS
from deploy.manifest import Manifest, ResumeError
from deploy.processes import die_with_parent
from deploy.rundir import RunDirectory

EXIT_REFUSED = 2
EXIT_NOT_THERE = 3
CONNECT_LIMIT_S = 4.0
END_LIMIT_S = 5.0
"""Given to a child that Ctrl-C has reached before it is killed."""
MAX_OVERSUBSCRIPTION = 4
"""Configured CPUs for each that the machine has; a run for a larger machine would only crawl."""
NEWEST_LOOKED_AT = 20
"""Newest entries of each stream that say whether this program's schema is in use there."""
SAMPLE_POSITIONS = 1000
"""The learner's window is measured on one of so many positions."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What the child is asked."""

    config: RunConfig
    folder: str
    """Run directory; may not exist yet."""


def check_in_child(config: RunConfig, folder: Path) -> None:
    """Check ``config`` for the run in ``folder``.

    Raises UserError, or NotThere for what starting again later may mend, with what the child says.
    """
    child = subprocess.Popen(
        [sys.executable, "-m", "deploy.preflight"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,  # what is refused; that it compiles stands on the other stream
    )
    try:
        question = Question(config=config, folder=str(folder))
        said, _ = child.communicate(msgspec.json.encode(question))
    except KeyboardInterrupt:  # the child got it too, and removes what it compiles in
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(END_LIMIT_S)
        child.kill()
        raise
    if child.returncode in (EXIT_REFUSED, EXIT_NOT_THERE):
        words = said.decode(errors="replace").strip()
        raise UserError(words) if child.returncode == EXIT_REFUSED else NotThere(words)
    if child.returncode != 0:
        raise UserError(f"checking the configuration failed (exit code {child.returncode})")


# --- what the system gives ------------------------------------------------------------------------


def check_writable(folder: Path) -> None:
    """Raise UserError unless files can be made in ``folder``, or it in its nearest parent."""
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            return
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return  # the supervisor says so, and waits
        raise UserError(
            f"run directory {str(folder)!r}: nothing can be written in {str(nearest)!r} "
            f"({error.strerror}); go to a folder that can be written"
        ) from error


def check_port(port: int) -> None:
    """Raise UserError when the port of the metrics is taken; 0 takes any that is free."""
    if port == 0:
        return
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            reason = "in use" if error.errno == errno.EADDRINUSE else error.strerror
            raise UserError(
                f"runtime.metrics_port = {port}: the port is {reason}; take another, or 0 for any "
                "that is free"
            ) from error


def check_memory(config: RunConfig) -> None:
    """Raise UserError for a window that this machine can never hold."""
    if config.runtime.ray_address:
        return  # the learner may be on another one
    positions, each = config.learner.window_positions, position_bytes(config)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    allowed = int(memory / each)
    if positions > allowed:
        raise UserError(
            f"learner.window_positions = {positions}: allowed is less than {allowed} in the "
            f"{memory / 2**30:.0f} GB of this machine, for a position of {config.game.name} takes "
            f"{each:.0f} bytes with its share of value-only and held-out ones"
        )


def position_bytes(config: RunConfig) -> float:
    """Return the bytes of the learner's windows per eligible training position of the game.

    Measured on small windows of the same make: their arrays grow in proportion.
    """
    from deploy.components import parts_of
    from learner.targets import facts_dtype
    from replay.split import SplitWindow, held_out_capacity

    learner, parts = config.learner, parts_of(config)
    positions, share = learner.window_positions, learner.held_out_share
    held_out = held_out_capacity(positions, share) * SAMPLE_POSITIONS / positions
    split = SplitWindow(
        parts.spec,
        parts.game,
        SAMPLE_POSITIONS,
        held_out_share=share,
        held_out_positions=max(1, round(held_out)),
        values_per_position=learner.values_per_position,
        facts_dtype=facts_dtype(learner),
    )
    return (split.training.nbytes + split.held_out.nbytes) / SAMPLE_POSITIONS


def check_cpus(config: RunConfig) -> None:
    """Raise UserError for a local run that is made for a far larger machine."""
    runtime, found = config.runtime, os.cpu_count() or 1
    if runtime.kind == "inprocess" or runtime.ray_address:
        return
    if runtime.num_cpus > MAX_OVERSUBSCRIPTION * found:
        raise UserError(
            f"runtime.num_cpus = {runtime.num_cpus}: this machine has {found}, allowed here is at "
            f"most {MAX_OVERSUBSCRIPTION * found}; give self_play.num_workers what it has as well, "
            "or take the preset cuarenta-laptop"
        )


def check_ray_address(config: RunConfig) -> None:
    """Raise NotThere unless something answers at ``runtime.ray_address``.

    Raises UserError where that is not HOST:PORT.
    """
    address = config.runtime.ray_address
    if not address or config.runtime.kind == "inprocess":
        return
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isascii() and port.isdecimal() and int(port) < 65536):
        raise UserError(
            f"runtime.ray_address = {address!r}: allowed is HOST:PORT, as 10.0.0.1:6379"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_LIMIT_S).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotThere(
            f"runtime.ray_address = {address!r}: no Ray cluster answers there ({reason}); leave it "
            "out for a local one"
        ) from error


def check_ray_token(config: RunConfig) -> None:
    """Raise UserError unless an existing cluster's token is there, or an open one is allowed."""
    if not config.runtime.ray_address or config.runtime.kind == "inprocess":
        return
    from deploy.ray_session import TOKEN, TOKEN_PATH, RaySessionError, check_token

    try:
        check_token(config, os.environ)
    except RaySessionError as error:
        raise UserError(str(error)) from error
    path = os.environ.get(TOKEN_PATH, "")
    if os.environ.get(TOKEN) or not path:
        return
    try:
        if not Path(path).read_bytes().strip():
            raise UserError(f"{TOKEN_PATH} = {path!r}: the file is empty; copy the cluster's token")
    except OSError as error:
        raise UserError(f"{TOKEN_PATH} = {path!r}: {error.strerror}") from error


def check_server(config: RunConfig, directory: RunDirectory) -> None:
    """Raise UserError unless an own server can be used, NotThere unless it answers.

    It has 5 s to answer, and 2 s more to confirm a write. What it holds of the run must be of this
    program's schema, and nobody else may hold the run there: that is waited for, with a word, as
    long as a dead owner's lease takes to end.
    """
    url = config.replay.redis_url
    if not url or config.runtime.kind == "inprocess":
        return
    from deploy.store import own_server
    from replay import redis_admin
    from replay.redis_link import StoreError, StoreUnreachable, check_tls_files, connect
    from replay.trajectory import TrajectoryError

    try:
        server = own_server(config, "")
        url = server.url
        check_tls_files(url, config.replay)
        client = connect(url, server.password, config.replay)
        redis_admin.check_server(client, accept_volatile=config.replay.accept_volatile)
        if directory.exists():
            run_id = directory.load().run_id
            _check_stream(client, run_id, config)
            _await_lease(client, run_id, directory)
    except StoreUnreachable as error:
        raise NotThere(f"{error}; start that server, or leave replay.redis_url out") from error
    except StoreError as error:
        text = str(error)
        raise UserError(text if url in text else f"{url}: {text}") from error
    except TrajectoryError as error:
        raise UserError(f"{url}: {error}; another version of the program wrote it") from error
    except OSError as error:
        raise UserError(f"password file {error.filename!r}: {error.strerror}") from error


def _await_lease(client: Any, run_id: str, directory: RunDirectory) -> None:
    """Raise LeaseHeld when a live owner elsewhere holds the run; wait where it may be dead."""
    from deploy.store import holder_of
    from replay.lease import wait_for_lease
    from replay.redis_keys import RunKeys

    def waiting(reason: str) -> bool:
        if reason:
            sys.stderr.write(f"cardleague: {reason}: waiting\n")
        return True

    wait_for_lease(client, RunKeys(run_id), holder_of(directory), waiting)


def _check_stream(client: Any, run_id: str, config: RunConfig) -> None:
    """Raise TrajectoryError when none of a stream's newest games is of this program's schema.

    Single ones that are not are the learner's to reject: anybody may have written them.
    """
    from replay.codec import decode_header
    from replay.redis_keys import PAYLOAD, RunKeys
    from replay.redis_link import call
    from replay.trajectory import TrajectoryError

    for shard in range(config.replay.shards):
        stream = RunKeys(run_id).stream(str(shard))
        failed: TrajectoryError | None = None
        for _, fields in call(client, "XREVRANGE", stream, "+", "-", "COUNT", NEWEST_LOOKED_AT):
            try:
                decode_header(fields.get(PAYLOAD, b""))
            except TrajectoryError as error:
                failed = failed or error
            else:
                failed = None
                break
        if failed is not None:
            raise failed


def check_device(config: RunConfig) -> None:
    """Raise UserError when a GPU is asked for that the local machine does not have."""
    if config.learner.device != "cuda" or config.runtime.ray_address:
        return
    from learner.device import Device

    try:
        Device("cuda", config.learner.threads)
    except ValueError as error:
        raise UserError(f"learner.{error}") from error


# --- what is played, and what was saved -----------------------------------------------------------


def check_game(config: RunConfig, folder: Path) -> None:
    """Raise UserError unless game, rules, options and encoder exist and the yardsticks can play."""
    from engine.game import UnknownGameError, get_spec

    try:
        spec = get_spec(config.game.name)
        game = spec.make(config.game.rules, config.game.options)
        if config.game.encoder:
            spec.encoder(config.game.encoder)
    except UnknownGameError as error:
        raise UserError(str(error)) from error
    _check_yardstick("report.opponent", config.report.opponent, folder, game)
    for opponent in config.evaluation.opponents:
        _check_yardstick("evaluation.opponents", opponent, folder, game)


def _check_yardstick(key: str, text: str, folder: Path, game: Any) -> None:
    from engine.game import UnknownGameError, spec_of
    from league.models import ModelError
    from league.players import PlayContext, PlayerError, build_player, parse_player, resolve

    try:
        opponent = parse_player(text)
        own = opponent.kind == "run" and Path(opponent.source).name == folder.name
        if opponent.source and not own:  # a version of this run may still be to come
            build_player(resolve(opponent), PlayContext(spec_of(game), game))
    except (PlayerError, ModelError, UnknownGameError) as error:
        raise UserError(f"{key} = {text!r}: {error}") from error


def check_saved(config: RunConfig, directory: RunDirectory) -> None:
    """Raise UserError unless the files of a run are whole and for its game. New runs have none."""
    if not directory.exists():
        return
    from deploy.components import parts_of
    from league.evaluator import read_metadata
    from league.models import ModelError, check_compatible

    parts = parts_of(config)
    words, encoder = parts.spec.describe(parts.game), parts.encoder
    at = ""
    try:
        manifest = directory.load()
        _check_snapshots(config, manifest, directory)
        recent = sorted(manifest.models)[-RECENT_VERSIONS:]  # the owner publishes these too
        needed = {manifest.champion, manifest.newest, *manifest.pool, *recent}
        for version in sorted(needed - {-1}):
            at = f"{directory.path}, version {version}"
            check_compatible(
                read_metadata(directory.model(manifest, version)),
                game=parts.spec.name,
                rules=words,
                encoder=(encoder.name, encoder.version),
            )
    except ResumeError as error:
        raise UserError(str(error)) from error
    except ModelError as error:
        raise UserError(f"{at}: {error}") from error


def _check_snapshots(config: RunConfig, manifest: Manifest, directory: RunDirectory) -> None:
    num_workers = config.self_play.num_workers
    local = config.runtime.kind == "inprocess"
    if local and manifest.workers and len(manifest.workers) != num_workers:
        raise ResumeError(
            f"self_play.num_workers = {num_workers}: the snapshot has {len(manifest.workers)}; in "
            "the in-process runtime a resume may not change it"
        )
    for blob in (manifest.learner, manifest.gate, *(manifest.workers if local else ())):
        if blob is not None:
            directory.get(blob)


def check(config: RunConfig, folder: Path) -> None:
    """Make all checks, the quick ones first. Raises UserError or NotThere."""
    directory = RunDirectory(folder)
    check_writable(folder)
    check_port(config.runtime.metrics_port)
    check_cpus(config)
    check_game(config, folder)
    check_memory(config)
    check_saved(config, directory)
    check_device(config)
    check_ray_token(config)
    check_ray_address(config)
    check_server(config, directory)


def main() -> int:
    """Check the question on standard input and warm up; return the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(-signal.SIGTERM))  # folders are removed
    die_with_parent(signal.SIGTERM)  # compiling takes a while: nobody would wait for it any more
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    try:
        check(question.config, Path(question.folder))
    except (UserError, NotThere) as error:
        sys.stdout.write(" ".join(str(error).split()) + "\n")
        return EXIT_REFUSED if isinstance(error, UserError) else EXIT_NOT_THERE
    from deploy.warm import warm_up

    with contextlib.redirect_stdout(sys.stderr):  # what it says is no refusal: the user waits
        warm_up([question.config.game.name])
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(-signal.SIGINT)
