"""Behaviours of players as text: parsing, models of runs, and the game that a match plays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.game import GameSpec, UnknownGameError, get_spec
from engine.play import GameJob, GameResult, Table
from engine.players import Player, RandomPlayer, RecallingPlayer, RulePlayer
from engine.search.flat import FlatPlayer
from engine.search.pimc import PimcPlayer
from league import player_kinds
from league.models import ModelError
from league.players import (
    PlayContext,
    PlayerError,
    PlayerKind,
    PlayerSpec,
    ResolvedPlayer,
    agree_on_game,
    build_player,
    locate_model,
    parse_player,
    register_kind,
    resolve,
    run_folder,
)
from league.stores import FileModelStore
from tests.league.tiny_models import GAME, SPEC, make_metadata, make_model

CONTEXT = PlayContext(SPEC, GAME, batch=8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("random", ("random", "", None, 0)),
        ("rules", ("rules", "", None, 0)),
        ("ismcts:2000", ("ismcts", "", None, 2000)),
        ("cuarenta-laptop@champion:128", ("run", "cuarenta-laptop", None, 128)),
        ("runs/a@b/c@v12:0", ("run", "runs/a@b/c", 12, 0)),
        ("/tmp/best.onnx:400", ("file", "/tmp/best.onnx", None, 400)),
    ],
)
def test_each_form_is_parsed(text: str, expected: tuple[str, str, int | None, int]) -> None:
    kind, source, version, simulations = expected
    assert parse_player(text) == PlayerSpec(
        text=text, kind=kind, source=source, version=version, simulations=simulations
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "player '': allowed are random, rules, ismcts:SIMULATIONS"),
        ("ruels", "player 'ruels': allowed are random, rules"),
        ("rules:5", "rules takes no number"),
        ("ismcts", "'ismcts': no number of simulations a move; allowed are 1 to"),
        ("rules:a-b", "allowed are rules and, in games that have more of them, rules:NAME"),
        ("rollouts", "'rollouts': allowed are rollouts:WORLDS with 1 to"),
        ("rollouts:0", "'rollouts:0': allowed are rollouts:WORLDS with 1 to"),
        ("level", "'level': no level; allowed are numbers from 1, as level:2"),
        ("pimc:25", "'pimc:25': allowed are pimc:WORLDSxDEPTH with 1 to"),
        ("pimc:0x4", "'pimc:0x4': allowed are"),
        ("level:0", "'level:0': no level; allowed are numbers from 1"),
        ("ismcts:0", "'ismcts:0': number '0' of simulations"),
        ("ismcts:-5", "number '-5' of simulations"),
        ("ismcts:1e3", "number '1e3' of simulations"),
        ("ismcts:9999999", "allowed are 1 to 1000000"),
        ("run@champion", "no number of simulations a move.*for example run@champion:128"),
        ("run@v:5", "allowed are RUN@champion and RUN@v12, not 'run@v'"),
        ("run@best:5", "not 'run@best'"),
        ("@champion:5", "not '@champion'"),
        ("model.onnx", "no number of simulations a move.*for example model.onnx:128"),
        ("model.pt:5", "player 'model.pt:5': allowed are"),
    ],
)
def test_what_is_no_player_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(PlayerError, match=message):
        parse_player(text)


def test_further_kinds_are_registered_by_name_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player_kinds, "_KINDS", dict(player_kinds._KINDS))

    def parse(text: str) -> PlayerSpec | None:
        return PlayerSpec(text=text, kind="echo") if text == "echo" else None

    def build(player: ResolvedPlayer, context: PlayContext) -> Player:
        return RulePlayer(context.spec, context.game)

    kind = PlayerKind("echo", "echo", parse, build)
    assert register_kind(kind) is kind
    assert parse_player("echo").kind == "echo"
    assert isinstance(build_player(plain("echo"), CONTEXT), RulePlayer)
    with pytest.raises(PlayerError, match=r"allowed are random, .*, echo"):
        parse_player("ecko")
    with pytest.raises(ValueError, match="player kind 'echo' is already registered"):
        register_kind(kind)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run with versions 3 and 12, champion 3, in the working directory."""
    monkeypatch.chdir(tmp_path)
    store = FileModelStore(Path("runs/test/models"))
    for version in (3, 12):
        store.put(version, make_model(version, metadata=make_metadata(version=version)))
    Path("runs/test/manifest.json").write_text(json.dumps({"champion": 3, "run_id": "x"}))
    return "test"


@pytest.mark.parametrize("source", ["test", "runs/test"])
def test_a_run_is_found_by_name_and_by_folder(run: str, source: str) -> None:
    champion = resolve(parse_player(f"{source}@champion:0"))
    assert champion.metadata == make_metadata(version=3)
    assert champion.model == make_model(3, metadata=make_metadata(version=3))
    version = resolve(parse_player(f"{source}@v12:5"))
    assert version.metadata == make_metadata(version=12)


def test_a_file_is_read_as_it_is(run: str, tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    path.write_bytes(make_model(1))
    assert resolve(parse_player(f"{path}:5")).metadata == make_metadata()
    assert resolve(parse_player("rules")) == ResolvedPlayer(parse_player("rules"), None, None)


def test_what_a_run_does_not_have_is_named(run: str) -> None:
    with pytest.raises(ModelError, match=r"run 'test': no version v7; kept are v3, v12"):
        resolve(parse_player("test@v7:0"))
    with pytest.raises(ModelError, match=r"run 'other': no such run; runs/ has test"):
        resolve(parse_player("other@champion:0"))
    with pytest.raises(ModelError, match=r"missing\.onnx: No such file"):
        resolve(parse_player("missing.onnx:0"))
    manifest = run_folder(run) / "manifest.json"
    manifest.write_text("{}")
    with pytest.raises(ModelError, match="run 'test' has no champion yet"):
        locate_model(run, None)
    manifest.write_text("{")
    with pytest.raises(ModelError, match="not a manifest"):
        locate_model(run, None)


def test_the_way_to_find_models_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.onnx"
    path.write_bytes(make_model(1))
    asked = []

    def locator(run: str, version: int | None) -> Path:
        asked.append((run, version))
        return path

    assert resolve(parse_player("far@v4:9"), locator).metadata == make_metadata()
    assert asked == [("far", 4)]


def plain(text: str) -> ResolvedPlayer:
    return resolve(parse_player(text))


def with_model(**changes: object) -> ResolvedPlayer:
    spec = PlayerSpec(text="m.onnx:5", kind="file", source="m.onnx", simulations=5)
    return ResolvedPlayer(spec, b"", make_metadata(**changes))


def test_game_and_rules_are_required_when_no_player_names_them() -> None:
    both = [plain("rules"), plain("random")]
    with pytest.raises(PlayerError, match="--game is missing: rules and random name no game"):
        agree_on_game(both, rules="standard")
    with pytest.raises(PlayerError, match="--rules is missing"):
        agree_on_game(both, game="kuhn")
    preset = next(iter(SPEC.presets))
    assert agree_on_game(both, "kuhn", preset) == (SPEC, GAME)
    with pytest.raises(UnknownGameError, match="game 'chess'"):
        agree_on_game(both, "chess", preset)


def test_a_model_names_game_and_rules() -> None:
    preset = next(iter(SPEC.presets))
    for arguments in ((), ("kuhn",), ("kuhn", preset), ("", preset)):
        assert agree_on_game([plain("rules"), with_model()], *arguments) == (SPEC, GAME)
    words = SPEC.describe(GAME)
    assert agree_on_game([with_model()], options=words) == (SPEC, GAME)


def test_what_conflicts_with_a_model_is_refused() -> None:
    option, word = other_option()
    with pytest.raises(ModelError, match="is for game 'kuhn', not 'durak'"):
        agree_on_game([with_model()], "durak")
    with pytest.raises(ModelError, match=f"rule option {option}"):
        agree_on_game([with_model()], options={option: word})
    changed = SPEC.describe(GAME) | {option: word}
    with pytest.raises(ModelError, match=f"rule option {option}"):
        agree_on_game([with_model(), with_model(rules=changed)])
    with pytest.raises(ModelError, match="encoder"):
        agree_on_game([with_model(), with_model(encoder_version=99)])
    with pytest.raises(ModelError, match="is for game 'other', not 'kuhn'"):
        agree_on_game([with_model(), with_model(game="other")])


def other_option() -> tuple[str, str]:
    """Return a rule option with an allowed word that is not the one of GAME."""
    for name, option in SPEC.options.items():
        for code in range(option.low, option.high + 1):
            if code != getattr(GAME, name):
                return name, option.word(code)
    raise AssertionError("the game of the tests has no option to change")


def test_every_kind_plays(run: str, tmp_path: Path) -> None:
    (tmp_path / "out.onnx").write_bytes(make_model(1))
    texts = ["random", "rules", "ismcts:3", "test@champion:0", "test@v12:4", "out.onnx:4"]
    players = [build_player(plain(text), CONTEXT) for text in texts]
    jobs = [
        GameJob(pair=pair, replay=0, seed=pair, seat_players=(pair % 6, (pair + 1) % 6))
        for pair in range(24)
    ]
    digests = []
    for num_slots in (8, 3):
        table = Table(SPEC, GAME, players, jobs, num_slots=num_slots)
        results: list[GameResult] = []
        for _ in range(10 * len(jobs)):
            results += table.step()
        assert sorted(result.job.pair for result in results) == list(range(24))
        digests.append({result.job.pair: result.digest for result in results})
    assert digests[0] == digests[1]


def test_a_model_infers_from_past_plays_where_it_searches_and_the_game_tells(run: str) -> None:
    def recalled(text: str, infers: bool = True) -> int:
        player = build_player(plain(text), CONTEXT._replace(infers=infers))
        return player.num_recalled if isinstance(player, RecallingPlayer) else 0

    assert SPEC.recalled_plies > 0
    assert recalled("test@v12:4") == SPEC.recalled_plies
    assert recalled("test@v12:4", infers=False) == 0
    assert [recalled(text) for text in ("test@v12:0", "ismcts:3", "rules")] == [0, 0, 0]


def test_a_model_of_other_rules_does_not_play() -> None:
    option, word = other_option()
    changed = make_metadata(rules=SPEC.describe(GAME) | {option: word})
    spec = parse_player("m.onnx:5")
    with pytest.raises(ModelError, match=f"rule option {option}"):
        build_player(ResolvedPlayer(spec, make_model(1, metadata=changed), changed), CONTEXT)


def test_a_level_is_the_games_own_player_of_that_strength() -> None:
    durak, cuarenta = get_spec("durak"), get_spec("cuarenta")

    def made(spec: GameSpec) -> list[type]:
        context = PlayContext(spec, spec.make())
        return [
            type(build_player(resolve(parse_player(f"level:{n}")), context)) for n in (1, 2, 3, 4)
        ]

    assert made(durak) == [RandomPlayer, RulePlayer, PimcPlayer, PimcPlayer]
    assert made(cuarenta) == [RandomPlayer, RulePlayer, RulePlayer, FlatPlayer]
    spec = parse_player("pimc:25x4")
    assert (spec.kind, spec.worlds, spec.depth) == ("pimc", 25, 4)
    context = PlayContext(durak, durak.make())
    with pytest.raises(PlayerError, match="levels of durak are level:1 to level:4"):
        build_player(resolve(parse_player("level:9")), context)
    with pytest.raises(PlayerError, match="levels of kuhn are none"):
        build_player(resolve(parse_player("level:1")), CONTEXT)


def test_a_game_names_its_further_rule_players() -> None:
    cuarenta = get_spec("cuarenta")
    context = PlayContext(cuarenta, cuarenta.make())
    for text in ("rules:biggest", "rules:careful"):
        assert isinstance(build_player(resolve(parse_player(text)), context), RulePlayer)
    message = "'rules:bold': rule-based players of cuarenta are rules, rules:biggest, rules:careful"
    with pytest.raises(PlayerError, match=message):
        build_player(resolve(parse_player("rules:bold")), context)
    with pytest.raises(PlayerError, match=r"rule-based players of kuhn are rules$"):
        build_player(resolve(parse_player("rules:bold")), CONTEXT)
