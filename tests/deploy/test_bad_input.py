"""What a user may get wrong, as a table.

Every case: one line on standard error that names the value and what is allowed, exit code 2 (1 if
a server or cluster does not answer, which may change), nothing on standard output, no file made or
changed, nothing started.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
import pytest

from deploy import cli, preflight
from deploy.config import RunConfig
from deploy.manifest import Manifest, new_manifest
from deploy.presets import load
from deploy.rundir import RunDirectory
from replay.embedded import EmbeddedServer
from replay.redis_keys import PAYLOAD, RunKeys
from replay.redis_link import call, make_client
from tests.actors.models import untrained_model
from tests.deploy.fake_server import FakeServer
from tests.deploy.statuses import running_status
from tests.deploy.waiting import heed_ctrl_c, processes_of, wait_for

MATCH = ("match", "random", "rules", "--games", "2")
KUHN = (*MATCH, "--game", "kuhn", "--rules", "standard")
TRAIN = ("train", "kuhn-smoke")
OVER_RAY = (*TRAIN, "--runtime", "ray")
SECRET = "s3cret"


class World:
    """An empty working directory, and what a case puts into it."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, stack: ExitStack) -> None:
        self.folder = folder
        self.patch = patch
        self.stack = stack

    def run(self, preset: str = "kuhn-smoke", name: str = "mine", **changes: object) -> Manifest:
        """Save a run as its owner would, with version 0 as champion."""
        directory = RunDirectory(Path("runs") / name)
        directory.prepare()
        config = load(preset, overrides=[f"name={name}"], environment={})
        manifest = new_manifest(config, ["cardleague"])
        model = untrained_model(config.game.name, version=0)
        manifest.models[0] = directory.put_model(0, model, 0)
        manifest.learner = directory.put_snapshot("learner", b"what the learner knows")
        manifest.champion = manifest.newest = 0
        for field, value in changes.items():
            setattr(manifest, field, value)
        directory.save(manifest)
        return manifest

    def write(self, name: str, content: bytes | str) -> str:
        """Write a file and return its name."""
        data = content.encode() if isinstance(content, str) else content
        Path(name).write_bytes(data)
        return name

    def model(self, game: str, name: str = "model.onnx") -> str:
        """Write an exported model of ``game`` and return its name."""
        return self.write(name, untrained_model(game, version=7))

    def variable(self, name: str, value: str) -> None:
        """Set a variable of the environment."""
        self.patch.setenv(name, value)

    def port(self, *, listening: bool) -> int:
        """Return a port of loopback that is taken, or one that nobody listens on."""
        taken = self.stack.enter_context(closing(socket.socket()))
        taken.bind(("127.0.0.1", 0))
        if listening:
            taken.listen()
        return int(taken.getsockname()[1])

    def fake_server(self, **facts: str) -> str:
        """Start a server that says of itself what ``facts`` say; return its address."""
        return self.stack.enter_context(FakeServer(facts)).url

    def real_server(self, **options: str) -> str:
        """Start the bundled server with other options; return its address."""
        server = EmbeddedServer(self.folder.parent / "server", options=options)
        server.start()
        self.stack.callback(server.stop)
        return server.url


Prepared = tuple[str, ...]
Case = tuple[str, Callable[[World], Prepared], tuple[str, ...]]


def same(*argv: str) -> Callable[[World], Prepared]:
    """Return a case's command that needs nothing."""
    return lambda world: argv


def after(prepare: Callable[[World], object], *argv: str) -> Callable[[World], Prepared]:
    """Return a case's command behind something that is put into the working directory.

    ``{}`` in the command stands for what ``prepare`` returned.
    """

    def command(world: World) -> Prepared:
        prepared = prepare(world)
        return tuple(word.replace("{}", str(prepared)) for word in argv)

    return command


def configured(*settings: str) -> Callable[[World], Prepared]:
    """Return ``train`` with ``--set``."""
    return same(*TRAIN, "--set", *settings)


def toml(text: str) -> Callable[[World], Prepared]:
    """Return ``train`` of a file."""
    return after(lambda world: world.write("own.toml", text), "train", "{}")


def lose_recent_model(world: World) -> None:
    """Save a run whose version 1, neither newest nor in the pool, has lost its file."""
    manifest = world.run()
    directory = RunDirectory(Path("runs/mine"))
    model = untrained_model("kuhn", version=1)
    manifest.models[1] = directory.put_model(1, model, 1)
    directory.save(manifest)
    (directory.path / manifest.models[1].blob.file).unlink()


def truncate_model(world: World) -> None:
    manifest = world.run()
    path = Path("runs/mine") / manifest.models[0].blob.file
    path.write_bytes(path.read_bytes()[:-100])


def truncate_snapshot(world: World) -> None:
    manifest = world.run()
    assert manifest.learner is not None
    path = Path("runs/mine") / manifest.learner.file
    path.write_bytes(path.read_bytes()[:-1])


def model_of_another_game(world: World) -> None:
    manifest = world.run()
    directory = RunDirectory(Path("runs/mine"))
    manifest.models[0] = directory.put_model(0, untrained_model("leduc", version=0), 0)
    directory.save(manifest)


def rewrite_manifest(**changes: object) -> Callable[[World], None]:
    def rewrite(world: World) -> None:
        world.run()
        path = Path("runs/mine/manifest.json")
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return rewrite


def lock_run(world: World) -> None:
    world.run()
    lock = RunDirectory(Path("runs/mine")).lock()
    world.stack.callback(lock.release)


def status_only(world: World) -> None:
    world.run()
    RunDirectory(Path("runs/mine")).write_status(running_status())
    Path("runs/mine/manifest.json").unlink()


def stream_of_another_schema(world: World) -> str:
    """Put a game of a later schema into the stream of run ``mine`` on a real server."""
    url = world.real_server()
    run_id = world.run().run_id
    client = make_client(url)
    call(client, "XADD", RunKeys(run_id).stream("0"), "*", PAYLOAD, later_schema())
    client.close()
    return url


def later_schema() -> bytes:
    from replay import codec

    prefix = codec._PREFIX.pack(codec.MAGIC, 99, 0, 0, 0)
    return prefix.ljust(codec._PREFIX_BYTES, b"\0")


def other_encoder(world: World) -> str:
    import onnx

    proto = onnx.ModelProto.FromString(untrained_model("kuhn", version=7))
    for entry in proto.metadata_props:
        facts = json.loads(entry.value)
        entry.value = json.dumps(facts | {"encoder": "pictures"})
    return world.write("model.onnx", proto.SerializeToString())


CASES: list[Case] = [
    # names
    ("preset", same("train", "smok"), ("'smok'", "did you mean 'smoke'?", "kuhn-smoke")),
    ("file", same("train", "none.toml"), ("'none.toml'", "No such file")),
    ("not TOML", toml("[game"), ("'own.toml'", "not TOML")),
    ("command", same("tarin"), ("tarin", "train")),
    ("flag", same(*TRAIN, "--mintues", "1"), ("--mintues", "--minutes")),
    # options, by the place where they are written
    ("file: key", toml("[gate]\nalhpa = 1"), ("'gate.alhpa'", "did you mean 'gate.alpha'?")),
    ("file: section", toml("[gaet]\nalpha = 1"), ("'gaet'", "gate")),
    ("file: value", toml("[gate]\nalpha = 0.5"), ("gate.alpha = 0.5", "below 0.5")),
    ("file: type", toml("[self_play]\ngames = 'many'"), ("self_play.games = 'many'", "at least 1")),
    ("file: section as value", toml("gate = 3"), ("gate = 3", "section", "gate.alpha")),
    ("set: key", configured("gate.p2=1"), ("gate.p2", "allowed in section gate")),
    ("set: value", configured("self_play.games=0"), ("'0'", "--set", "at least 1")),
    ("set: choice", configured("runtime.kind=cloud"), ("'cloud'", "inprocess or ray")),
    ("set: no value", configured("self_play.games"), ("'self_play.games'", "key=value")),
    ("set: rule option", configured("game.options.ante=0"), ("ante = '0'", "1 to 100")),
    ("set: no such rule option", configured("game.options.anti=1"), ("'anti'", "ante")),
    (
        "environment: key",
        after(lambda w: w.variable("CARDLEAGUE_GATE__ALHPA", "1"), *TRAIN),
        ("CARDLEAGUE_GATE__ALHPA", "did you mean 'gate.alpha'?"),
    ),
    (
        "environment: value",
        after(lambda w: w.variable("CARDLEAGUE_SEED", "one"), *TRAIN),
        ("'one'", "CARDLEAGUE_SEED", "whole number"),
    ),
    ("game", configured("game.name=khun"), ("'khun'", "kuhn")),
    ("rules", configured("game.rules=odd"), ("'odd'", "standard")),
    ("encoder", configured("game.encoder=pictures"), ("'pictures'", "cards")),
    ("opponent", configured("report.opponent=rnadom"), ("'rnadom'", "report.opponent", "ismcts:")),
    ("opponent's file", configured("report.opponent=x.onnx:1"), ("x.onnx", "No such file")),
    (
        "opponent of another game",
        after(lambda w: w.model("leduc"), *TRAIN, "--set", "report.opponent={}:8"),
        ("report.opponent", "'leduc'", "'kuhn'"),
    ),
    # numbers
    ("minutes 0", same(*TRAIN, "--minutes", "0"), ("--minutes 0.0", "above 0")),
    ("minutes -1", same(*TRAIN, "--minutes", "-1"), ("--minutes -1.0", "above 0")),
    ("minutes nan", same(*TRAIN, "--minutes", "nan"), ("--minutes nan", "above 0")),
    ("minutes soon", same(*TRAIN, "--minutes", "soon"), ("'soon'", "--minutes", "a number")),
    ("resume 0", after(World.run, "resume", "mine", "--minutes", "0"), ("0.0", "above 0")),
    ("seed -1", same(*TRAIN, "--seed", "-1"), ("'-1'", "at least 0")),
    ("seed 2^63", same(*TRAIN, "--seed", f"{2**63}"), (f"{2**63}", f"at most {2**63 - 1}")),
    ("seed empty", same(*TRAIN, "--seed", ""), ("seed = ''", "--seed", "whole number")),
    ("odd report", configured("report.num_games=3"), ("= 3", "even")),
    ("no report", configured("report.num_games=0"), ("'0'", "at least 2")),
    ("negative list", configured("report.simulations=-1"), ("-1", "at least 0")),
    ("no workers", configured("self_play.num_workers=0"), ("'0'", "at least 1")),
    (
        "huge window",
        configured("learner.window_positions=100000000000000"),
        ("learner.window_positions = 100000000000000", "GB of this machine"),
    ),
    ("no such port", configured("runtime.metrics_port=65536"), ("'65536'", "at most 65535")),
    ("games 0", same(*KUHN, "--games", "0"), ("0 games", "even")),
    ("games -2", same(*KUHN, "--games", "-2"), ("-2 games", "even")),
    ("games 3", same(*KUHN, "--games", "3"), ("3 games", "even")),
    ("games 2.5", same(*KUHN, "--games", "2.5"), ("'2.5'", "--games", "a whole number")),
    ("match seed", same(*KUHN, "--seed", "-1"), ("--seed -1", "from 0")),
    ("simulations", same("match", "ismcts:0", "rules", "--games", "2"), ("'0'", "1 to 1000000")),
    ("no simulations", same("match", "ismcts", "rules", "--games", "2"), ("ismcts:2000",)),
    # where a run lies
    ("name: slash", same(*TRAIN, "--name", "a/b"), ("'a/b'", "without slashes")),
    ("name: empty", same(*TRAIN, "--name", ""), ("name = ''", "one folder")),
    ("name: blank", same(*TRAIN, "--name", " "), ("name = ' '", "one folder")),
    ("name: long", same(*TRAIN, "--name", "n" * 300), ("nnn", "100 bytes")),
    (
        "runs is a file",
        after(lambda w: w.write("runs", ""), *TRAIN),
        ("'runs/kuhn-smoke'", "Not a directory"),
    ),
    ("read only", after(lambda w: os.chdir("/proc"), *TRAIN), ("'/proc'", "nothing can be")),
    (
        "metrics port",
        after(lambda w: w.port(listening=True), *TRAIN, "--set", "runtime.metrics_port={}"),
        ("runtime.metrics_port = ", "in use"),
    ),
    ("resume: no run", after(World.run, "resume", "mien"), ("'mien'", "does not exist", "mine")),
    ("resume: path", same("resume", "runs/mien"), ("'runs/mien'", "does not exist")),
    ("resume: long", same("resume", "n" * 300), ("nnn", "does not exist")),
    ("resume: live", after(lock_run, "resume", "mine"), ("'runs/mine'", "live")),
    ("train: live", after(lock_run, *TRAIN, "--name", "mine"), ("'runs/mine'", "live")),
    ("status: none", same("status", "mien"), ("'mien'", "does not exist")),
    ("status: no manifest", after(status_only, "status", "mine"), ("'mine'", "does not exist")),
    ("status: never ran", after(World.run, "status", "mine"), ("runs/mine", "never started")),
    # what a run holds
    (
        "another game",
        after(World.run, "train", "smoke", "--name", "mine"),
        ("'runs/mine'", "'kuhn'", "'cuarenta'", "another --name"),
    ),
    ("another seed", after(World.run, *TRAIN, "--name", "mine", "--seed", "9"), ("seed is 9",)),
    (
        "newer manifest",
        after(rewrite_manifest(schema_version=99), "resume", "mine"),
        ("manifest schema 99", "reads 1"),
    ),
    (
        "newer options",
        after(
            lambda w: rewrite_manifest(
                config=json.loads(msgspec.json.encode(RunConfig(name="mine"))) | {"magic": 1}
            )(w),
            "resume",
            "mine",
        ),
        ("manifest.json", "magic"),
    ),
    (
        "damaged manifest",
        after(lambda w: (w.run(), w.write("runs/mine/manifest.json", "{")), "resume", "mine"),
        ("manifest.json", "not a manifest"),
    ),
    ("vanished recent model", after(lose_recent_model, "resume", "mine"), ("v000001", "missing")),
    ("truncated model", after(truncate_model, "resume", "mine"), ("v000000.onnx", "truncated")),
    ("truncated snapshot", after(truncate_snapshot, "resume", "mine"), ("learner-", "truncated")),
    (
        "its model is of another game",
        after(model_of_another_game, "resume", "mine"),
        ("version 0", "'leduc'", "'kuhn'"),
    ),
    # models
    ("match: no game", same(*MATCH), ("--game",)),
    ("match: no rules", same(*MATCH, "--game", "kuhn"), ("--rules",)),
    ("match: game", same(*MATCH, "--game", "khun", "--rules", "standard"), ("'khun'", "kuhn")),
    ("match: rules", same(*MATCH, "--game", "kuhn", "--rules", "odd"), ("'odd'", "standard")),
    ("match: option", same(*KUHN, "--set", "ante=0"), ("ante = '0'", "1 to 100")),
    ("match: player", same("match", "rnadom", "rules", "--games", "2"), ("'rnadom'", "ismcts:")),
    ("match: run", same("match", "mien@v1:0", "rules", "--games", "2"), ("'mien'", "no such run")),
    (
        "match: version",
        after(World.run, "match", "mine@v3:0", "rules", "--games", "2"),
        ("v3", "kept are v0"),
    ),
    (
        "match: long name",
        same("match", "n" * 300 + "@v1:0", "rules", "--games", "2"),
        ("nnn", "no such run"),
    ),
    (
        "match: other game",
        after(lambda w: w.model("kuhn"), "match", "{}:0", *KUHN[2:5], "--game", "leduc"),
        ("'kuhn'", "'leduc'"),
    ),
    (
        "match: models of two games",
        after(
            lambda w: (w.model("kuhn"), w.model("leduc", "other.onnx")),
            *("match", "model.onnx:0", "other.onnx:0", "--games", "2"),
        ),
        ("'leduc'", "not 'kuhn'"),
    ),
    (
        "match: other rules",
        after(lambda w: w.model("kuhn"), "match", "{}:0", *KUHN[2:5], "--set", "ante=2"),
        ("ante", "'1' there", "'2' here"),
    ),
    (
        "match: other encoder",
        after(other_encoder, "match", "{}:0", *KUHN[2:5]),
        ("'pictures'", "cards"),
    ),
    (
        "match: truncated model",
        after(
            lambda w: w.write("cut.onnx", untrained_model("kuhn", version=7)[:500]),
            *("match", "{}:0", *KUHN[2:5]),
        ),
        ("cut.onnx", "not an ONNX model"),
    ),
    ("match: no model", same("match", "x.onnx:0", *KUHN[2:5]), ("x.onnx", "No such file")),
    ("export: no run", same("export", "mien", "out.onnx"), ("'mien'", "no such run")),
    ("export: name", after(World.run, "export", "mine", "out.bin"), ("'out.bin'", ".onnx")),
    (
        "export: folder",
        after(World.run, "export", "mine", "none/out.onnx"),
        ("'none/out.onnx'", "No such file"),
    ),
    ("export: version", after(World.run, "export", "mine@v9", "o.onnx"), ("v9", "kept are v0")),
    ("bench: group", same("bench", "--only", "paly"), ("'paly'", "playouts")),
    ("bench: model", same("bench", "--quick", "--model", "x.onnx"), ("x.onnx", "No such file")),
    ("bench: document", same("bench", "--out", "none/x.md"), ("'none/x.md'", "does not exist")),
    # servers
    (
        "server: no address",
        same(*OVER_RAY, "--redis-url", "somewhere"),
        ("'somewhere'", "redis://"),
    ),
    (
        "server: password in address",
        same(*OVER_RAY, "--redis-url", f"redis://:{SECRET}@127.0.0.1:1/0"),
        ("CARDLEAGUE_REDIS_PASSWORD",),
    ),
    (
        "server: password file",
        after(
            lambda w: w.variable("CARDLEAGUE_REDIS_PASSWORD_FILE", "none"),
            *(*OVER_RAY, "--redis-url", "redis://127.0.0.1:1/0"),
        ),
        ("'none'", "No such file"),
    ),
    (
        "server: too old",
        after(lambda w: w.fake_server(redis_version="6.2.0"), *OVER_RAY, "--redis-url", "{}"),
        ("6.2.0", "7.2 or newer"),
    ),
    (
        "server: evicts",
        after(
            lambda w: w.fake_server(redis_version="7.4.0", maxmemory_policy="allkeys-lru"),
            *(*OVER_RAY, "--redis-url", "{}"),
        ),
        ("allkeys-lru", "noeviction"),
    ),
    (
        "server: no append-only file",
        after(lambda w: w.real_server(appendonly="no"), *OVER_RAY, "--redis-url", "{}"),
        ("append-only", "--accept-volatile-redis"),
    ),
    (
        "server: another schema",
        after(stream_of_another_schema, *OVER_RAY, "--name", "mine", "--redis-url", "{}"),
        ("trajectory schema 99", "this program reads"),
    ),
    # Ray
    (
        "ray: no token",
        same(*OVER_RAY, "--ray-address", "127.0.0.1:1"),
        ("without a token", "RAY_AUTH_TOKEN_PATH", "--allow-open-ray"),
    ),
    (
        "ray: no file of a token",
        after(
            lambda w: w.variable("RAY_AUTH_TOKEN_PATH", "none"),
            *(*OVER_RAY, "--ray-address", "127.0.0.1:1"),
        ),
        ("'none'", "No such file"),
    ),
    (
        "ray: empty token",
        after(
            lambda w: w.variable("RAY_AUTH_TOKEN_PATH", w.write("token", "\n")),
            *(*OVER_RAY, "--ray-address", "127.0.0.1:1"),
        ),
        ("'token'", "empty"),
    ),
    (
        "ray: no address",
        same(*OVER_RAY, "--ray-address", "here", "--allow-open-ray"),
        ("'here'", "HOST:PORT"),
    ),
]


NOT_THERE: list[Case] = [
    (
        "server: silent",
        after(lambda w: w.port(listening=True), *OVER_RAY, "--redis-url", "redis://127.0.0.1:{}/0"),
        ("redis://127.0.0.1:", "start that server"),
    ),
    (
        "server: nobody",
        after(
            lambda w: w.port(listening=False), *OVER_RAY, "--redis-url", "redis://127.0.0.1:{}/0"
        ),
        ("redis://127.0.0.1:", "refused"),
    ),
    (
        "ray: nobody",
        after(
            lambda w: w.port(listening=False),
            *OVER_RAY,
            "--ray-address",
            "127.0.0.1:{}",
            "--allow-open-ray",
        ),
        ("127.0.0.1:", "no Ray cluster answers"),
    ),
]
"""What may answer later: nobody's mistake, and a service is to try again."""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Stand in an empty folder; what would start a run fails the test."""
    folder = tmp_path / "w"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("deploy.preflight.check_in_child", preflight.check)
    with ExitStack() as stack:
        yield World(folder, monkeypatch, stack)


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below ``folder`` and their bytes, and folders as empty."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
        if not path.is_socket() and path.name != "run.lock"
    }


@pytest.mark.parametrize(
    ("case", "code"),
    [*((case, 2) for case in CASES), *((case, 1) for case in NOT_THERE)],
    ids=[name for name, _, _ in (*CASES, *NOT_THERE)],
)
def test_one_line_exit_code_and_nothing_else(
    case: Case,
    code: int,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, command, words = case
    argv = command(world)
    started: list[object] = []
    monkeypatch.setattr("deploy.supervise.train", lambda *args, **options: started.append(args))
    before, began = contents(world.folder), time.monotonic()
    assert cli.main(argv) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1, captured.err
    assert captured.err.startswith("cardleague: ")
    for word in words:
        assert word in captured.err
    assert SECRET not in captured.err
    assert "Traceback" not in captured.err
    assert not started
    assert contents(world.folder) == before
    assert time.monotonic() - began < 6.0


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (("--set", "game.rules=odd"), 2, ("'odd'", "standard")),
        (
            ("--runtime", "ray", "--redis-url", "redis://127.0.0.1:1/0"),
            1,
            ("redis://127.0.0.1:1/0", "refused"),
        ),
    ],
)
def test_the_program_itself_says_no_more(
    argv: tuple[str, ...], code: int, words: tuple[str, ...], tmp_path: Path
) -> None:
    """The same in real processes, whose own output counts too."""
    result = subprocess.run(
        [sys.executable, "-m", "deploy.cli", *TRAIN, *argv],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == code, result.stderr
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr
    assert not list(tmp_path.iterdir())
    assert not processes_of(tmp_path)


def test_a_whole_run_and_a_good_server_are_accepted(world: World) -> None:
    """The checks refuse what is wrong, not everything."""
    url = world.real_server()
    world.run()
    overrides = ["name=mine", "runtime.kind=ray", f"replay.redis_url={url}"]
    config = load("kuhn-smoke", overrides=overrides, environment={})
    preflight.check(config, Path("runs/mine"))
    preflight.check(config, Path("runs/other"))


def test_compiling_is_told_to_the_user_who_waits_for_it(tmp_path: Path) -> None:
    code = (
        "import sys; from deploy import preflight, warm;"
        "warm.marker = lambda game: __import__('pathlib').Path(sys.argv[1]) / 'marker';"
        "warm.play = warm.train = lambda game: None;"
        "sys.exit(preflight.main())"
    )
    question = preflight.Question(config=load("kuhn-smoke", environment={}), folder="runs/mine")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        input=msgspec.json.encode(question),
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    assert b"compiling the kernels of kuhn" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_ends_while_it_compiles_leaves_nothing(
    number: signal.Signals, tmp_path: Path
) -> None:
    """Ctrl-C reaches both processes of the terminal, SIGTERM (of a service) the first alone."""
    (tmp_path / "sitecustomize.py").write_text(
        "import tempfile, time\n"
        "from deploy import warm\n"
        "def play(game):\n"
        "    with tempfile.TemporaryDirectory(prefix='warm-') as folder:\n"
        "        time.sleep(60)\n"
        "warm.play = play\n"
        f"warm.marker = lambda game: __import__('pathlib').Path({str(tmp_path / 'none')!r})\n"
    )
    folder = tmp_path / "temporary"
    folder.mkdir()
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = subprocess.Popen(
        [sys.executable, "-m", "deploy.cli", *TRAIN],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": paths},
        start_new_session=True,
        stderr=subprocess.PIPE,
        preexec_fn=heed_ctrl_c,
    )
    try:
        wait_for(lambda: list(folder.glob("warm-*")) != [], 60, "compiling")
        if number == signal.SIGINT:
            os.killpg(command.pid, number)
        else:
            command.send_signal(number)
        _, said = command.communicate(timeout=30)
        wait_for(lambda: not list(folder.iterdir()), 20, "an empty folder")
    finally:
        with command:
            command.kill()
    assert command.returncode in (130, -number)
    assert b"Traceback" not in said
    assert not processes_of(tmp_path)
