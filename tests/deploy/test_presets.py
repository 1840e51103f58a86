"""Presets and options.

* every preset loads, names existing keys, and is what it says (two workers on the laptop, …)
* the presets for larger machines: CPU shares and memory add up, the memory that their comments
  state is what the window takes, and a machine that is too small is told so in one line
* precedence: file < environment < --set < flags; a saved value counts where nothing is written
* every error names key and value, where it was written, and what is allowed
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest

from deploy import preflight, presets
from deploy.commands import UserError
from deploy.config import GameConfig, RunConfig
from deploy.credentials import PASSWORD_VARIABLE
from deploy.preflight import position_bytes
from deploy.presets import ConfigError, load
from engine.game import get_spec
from learner.config import LearnerConfig
from learner.targets import facts_dtype
from replay.split import SplitWindow, held_out_capacity


def _load(
    source: str = "smoke",
    *overrides: str,
    environment: dict[str, str] | None = None,
    saved: RunConfig | None = None,
) -> RunConfig:
    return load(source, overrides=overrides, environment=environment or {}, saved=saved)


def _error(source: str = "smoke", *overrides: str, **environment: str) -> str:
    with pytest.raises(ConfigError) as caught:
        _load(source, *overrides, environment=environment)
    message = str(caught.value)
    assert "\n" not in message
    return message


def _file(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def test_presets_that_come_with_the_program() -> None:
    assert presets.preset_names() == [
        "cuarenta-2p-laptop",
        "cuarenta-cluster",
        "cuarenta-laptop",
        "cuarenta-workstation",
        "durak-laptop",
        "forty-fives-laptop",
        "kuhn-smoke",
        "smoke",
    ]


@pytest.mark.parametrize("name", presets.preset_names())
def test_every_preset_loads_and_survives_saving(name: str) -> None:
    config = _load(name)
    assert config.name == name
    saved = msgspec.json.decode(msgspec.json.encode(config), type=RunConfig)
    assert saved == config


@pytest.mark.parametrize("name", [name for name in presets.preset_names() if "laptop" in name])
def test_the_laptop_presets_share_two_cores(name: str) -> None:
    config = _load(name)
    assert config.self_play.num_workers == 2
    workers = config.self_play.num_workers * config.self_play.share
    gate = config.gate.share * config.runtime.num_cpus
    assert config.runtime.num_cpus == 2
    assert workers + gate < 2.0, "nothing would be left for the learner"
    assert config.runtime.max_memory_gb == 3.0


def window_gb(config: RunConfig) -> float:
    return config.learner.window_positions * position_bytes(config) / 1e9


@pytest.mark.parametrize("options", [{}, {"td_lambda": 0.9}, {"held_out_share": 0.0}])
@pytest.mark.parametrize("game", ["kuhn", "cuarenta"])
def test_bytes_of_a_position_are_those_of_the_learners_windows(
    game: str, options: dict[str, float]
) -> None:
    learner = LearnerConfig(window_positions=7000, values_per_position=2.0, **options)  # type: ignore[arg-type]
    config = RunConfig(game=GameConfig(name=game), learner=learner)
    spec = get_spec(game)
    split = SplitWindow(
        spec,
        spec.make(),
        7000,
        held_out_share=learner.held_out_share,
        values_per_position=2.0,
        facts_dtype=facts_dtype(learner),
    )
    nbytes = split.training.nbytes + split.held_out.nbytes
    assert 7000 * position_bytes(config) == pytest.approx(nbytes, rel=0.01)
    assert game != "cuarenta" or position_bytes(config) > 500


def test_a_window_that_the_machine_cannot_hold_is_refused_with_what_it_can() -> None:
    config = _load("cuarenta-laptop")
    preflight.check_memory(config)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    most = int(memory / position_bytes(config))
    large = msgspec.structs.replace(config.learner, window_positions=most + most // 50)
    config = msgspec.structs.replace(config, learner=large)
    with pytest.raises(UserError, match=r"window_positions = \d+: allowed is less than \d+ in"):
        preflight.check_memory(config)
    cluster = msgspec.structs.replace(config.runtime, ray_address="10.0.0.1:6379")
    preflight.check_memory(msgspec.structs.replace(config, runtime=cluster))


LARGE = pytest.mark.parametrize("name", ["cuarenta-workstation", "cuarenta-cluster"])


@LARGE
def test_the_memory_that_a_preset_states_is_what_its_window_takes(name: str) -> None:
    config = _load(name)
    text = (presets.PRESET_FOLDER / f"{name}.toml").read_text()
    stated = re.findall(r"the window takes ([\d.]+) GB", text)
    assert len(stated) == 1
    assert float(stated[0]) == pytest.approx(window_gb(config), rel=0.03)
    assert window_gb(config) < config.runtime.max_memory_gb / 2


@LARGE
def test_presets_for_larger_machines_train_on_a_gpu_what_their_stream_can_hold(name: str) -> None:
    config, learner = _load(name), _load(name).learner
    assert learner.device == "cuda"
    assert learner.min_window_positions >= 20 * learner.batch_size
    held_out = held_out_capacity(learner.window_positions, learner.held_out_share)
    stream_gb = 112 * (learner.window_positions + held_out) / 1e9
    if not config.replay.redis_url:
        assert stream_gb < 0.6 * config.replay.maxmemory_mb * 2**20 / 1e9 / 2


def test_the_workstation_preset_shares_32_cores() -> None:
    config = _load("cuarenta-workstation")
    workers = config.self_play.num_workers * config.self_play.share
    gate = config.gate.share * config.runtime.num_cpus
    learner = config.runtime.learner_share
    assert config.runtime.num_cpus == 32
    assert 29.5 < workers + gate + learner <= 30, "two cores are left for server, Ray and owner"
    assert gate < 1.0


def test_the_cluster_preset_starts_nothing_of_its_own() -> None:
    config = _load("cuarenta-cluster")
    assert config.runtime.ray_address
    assert config.replay.redis_url
    assert not config.runtime.allow_open_ray
    assert not config.replay.accept_volatile
    assert config.self_play.num_workers >= 200


@pytest.mark.parametrize(
    ("num_cpus", "overrides", "words"),
    [
        (2, (), ["runtime.num_cpus = 32", "this machine has 2", "cuarenta-laptop"]),
        (7, (), ["runtime.num_cpus = 32", "this machine has 7"]),
        (32, (), ["learner.device = cuda", "no GPU", "auto, cpu"]),
        (8, ("learner.device=cpu",), []),
        (2, ("learner.device=cpu", "runtime.num_cpus=2"), []),
        (2, ("learner.device=cpu", "runtime.kind=inprocess"), []),
    ],
)
def test_a_machine_too_small_for_the_workstation_preset_is_told_what_it_lacks(
    num_cpus: int,
    overrides: tuple[str, ...],
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: num_cpus)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    config, folder = _load("cuarenta-workstation", *overrides), tmp_path / "run"
    if not words:
        preflight.check(config, folder)
        return
    with pytest.raises(UserError) as caught:
        preflight.check(config, folder)
    for word in words:
        assert word in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_precedence_file_environment_set_flags() -> None:
    environment = {"CARDLEAGUE_SELF_PLAY__GAMES": "32"}
    assert _load("smoke").self_play.games == 128
    assert _load("smoke", environment=environment).self_play.games == 32
    assert _load("smoke", "self_play.games=16", environment=environment).self_play.games == 16
    flagged = load(
        "smoke",
        overrides=["self_play.games=16"],
        flags=[("self_play.games", "8", "--games")],
        environment=environment,
    )
    assert flagged.self_play.games == 8


def test_environment_sets_seed_and_leaves_other_variables_alone() -> None:
    environment = {
        "CARDLEAGUE_SEED": "7",
        "CARDLEAGUE_CACHE_DIR": "/tmp/x",
        "CARDLEAGUE_REDIS_PASSWORD_FILE": "/tmp/y",
        "CARDLEAGUE_SERVICE_HOST": "10.0.0.1",
        "CARDLEAGUE_PORT_6379_TCP": "tcp://10.0.0.1:6379",
        "HOME": "/root",
    }
    assert _load("smoke", environment=environment).seed == 7


def test_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARDLEAGUE_GATE__ALPHA", "0.01")
    assert load("smoke").gate.alpha == 0.01


def test_texts_become_the_type_of_their_key() -> None:
    config = _load(
        "smoke",
        "report.simulations=0, 64,400",
        "runtime.allow_open_ray=true",
        "game.options.sum_cards=2",
        "learner.learning_rate=1",
        "network.width=32",
    )
    assert config.report.simulations == (0, 64, 400)
    assert config.runtime.allow_open_ray is True
    assert config.game.options == {"sum_cards": "2"}
    assert config.learner.learning_rate == 1.0
    assert config.network.width == 32


def test_toml_values_become_the_type_of_their_key(tmp_path: Path) -> None:
    text = "[game.options]\nsum_cards = 2\nmust_capture = true\n[learner]\nlearning_rate = 1\n"
    config = _load(_file(tmp_path, text))
    assert config.game.options == {"sum_cards": "2", "must_capture": "yes"}
    assert config.learner.learning_rate == 1.0
    assert config.name == "mine"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("self_play.gmaes=3", ["self_play.gmaes", "did you mean 'self_play.games'?", "share"]),
        ("games=3", ["'games'", "did you mean 'self_play.games'?"]),
        ("gtae.alpha=0.1", ["gtae.alpha", "did you mean 'gate'?"]),
        ("name.x=3", ["name.x", "name is a value"]),
        ("gate=3", ["gate", "section", "gate.alpha"]),
        ("game.options=3", ["game.options", "option = word"]),
        ("gate", ["'gate'", "key=value"]),
        ("self_play.games=0", ["self_play.games", "'0'", "at least 1 and at most 4096"]),
        ("self_play.games=1.5", ["self_play.games", "'1.5'", "a whole number"]),
        ("learner.trust_r2=nan", ["learner.trust_r2", "'nan'", "a number"]),
        ("learner.trust_r2=-0.1", ["learner.trust_r2", "'-0.1'", "at least 0 and at most 1"]),
        ("gate.alpha=0.5", ["gate.alpha", "'0.5'", "above 0 and below 0.5"]),
        ("runtime.kind=cloud", ["runtime.kind", "'cloud'", "inprocess or ray"]),
        ("runtime.allow_open_ray=perhaps", ["'perhaps'", "true or false"]),
        ("search.leaf_value=both", ["search.leaf_value", "'both'", "mover or root_seat"]),
        ("report.simulations=0,many", ["report.simulations", "'0,many'", "whole number"]),
    ],
)
def test_error_names_key_value_and_what_is_allowed(override: str, words: list[str]) -> None:
    message = _error("smoke", override)
    for word in words:
        assert word in message
    assert "--set" in message


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("report.num_games=3", ["report.num_games = 3", "even"]),
        ("search.leaf_value=root_seat", ["root_seat", "self_play.off_turn_share above 0"]),
        ("gate.p1=0.4", ["gate.p1 = 0.4", "gate.p0 = 0.5"]),
        ("learner.window_positions=1000", ["learner.window_positions = 1000", "2000"]),
        ("self_play.fast_simulations=64", ["self_play.fast_simulations = 64", "32"]),
        ("league.self_play_floor=0.95", ["league.self_play_floor = 0.95", "0.9"]),
        ("name=a/b", ["'a/b'", "without slashes"]),
    ],
)
def test_values_that_contradict_each_other_are_refused(override: str, words: list[str]) -> None:
    message = _error("smoke", override)
    for word in words:
        assert word in message


def test_lambda_returns_and_root_values_are_never_used_together() -> None:
    message = _error("smoke", "learner.td_lambda=0.9", "learner.root_value_mix=0.5")
    assert "learner.td_lambda = 0.9" in message
    assert "learner.root_value_mix = 0.5" in message
    for option in ("learner.td_lambda=0.9", "learner.root_value_mix=0.5"):
        message = _error("smoke", option, "learner.held_out_share=0")
        assert "learner.held_out_share = 0.0" in message
        assert "allowed is above 0" in message


def test_error_names_the_environment_variable() -> None:
    assert "CARDLEAGUE_GATE__ALPHA" in _error(CARDLEAGUE_GATE__ALPHA="2")
    assert "CARDLEAGUE_GTAE__ALPHA" in _error(CARDLEAGUE_GTAE__ALPHA="2")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("CARDLEAGUE_SELF_PLAY_GAMES", "CARDLEAGUE_SELF_PLAY__GAMES"),
        ("CARDLEAGUE_REPLAY_REDIS_URL", "CARDLEAGUE_REPLAY__REDIS_URL"),
        ("CARDLEAGUE_REDIS_PASWORD", "CARDLEAGUE_REDIS_PASSWORD"),
        ("CARDLEAGUE_SEEDS", "CARDLEAGUE_SEED"),
    ],
)
def test_a_slip_in_a_variable_is_no_silence(written: str, meant: str) -> None:
    error = _error(**{written: "1"})
    assert f"variable {written}: did you mean {meant}?" in error


def test_unknown_preset_names_the_nearest_and_all() -> None:
    message = _error("smok")
    assert "did you mean 'smoke'?" in message
    assert "cuarenta-laptop" in message


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    assert "nowhere.toml" in _error(str(tmp_path / "nowhere.toml"))
    assert "not TOML" in _error(_file(tmp_path, "a = = 1"))


def test_mistyped_section_of_a_file_is_named(tmp_path: Path) -> None:
    assert "did you mean 'gate'?" in _error(_file(tmp_path, "[gaet]\nalpha = 0.1\n"))


def test_password_in_an_address_is_refused_and_not_repeated() -> None:
    message = _error("smoke", "replay.redis_url=redis://:s3cret@localhost:6379/0")
    assert "s3cret" not in message
    assert PASSWORD_VARIABLE in message
    for option in ("password=s3cret", "db=1&ssl_password=s3cret"):
        message = _error("smoke", f"replay.redis_url=rediss://localhost:6379/0?{option}")
        assert "holds a password" in message
        assert "s3cret" not in message


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["redis_url=rediss://a:1/0?ssl_cert_reqs=none"], "'ssl_cert_reqs' behind its ?: allowed"),
        (["redis_url=rediss://a:1", "tls_cert_file=c.pem"], "tls_key_file = '': allowed is both"),
        (["redis_url=redis://a:1", "tls_ca_file=c.pem"], "'redis://a:1' is not encrypted"),
        (["tls_insecure_skip_host_name=true"], "tls_insecure_skip_host_name is set and"),
    ],
)
def test_tls_that_would_not_hold_is_refused(settings: list[str], words: str) -> None:
    assert words in _error("smoke", *(f"replay.{setting}" for setting in settings))


def test_saved_values_count_where_nothing_is_written(tmp_path: Path) -> None:
    source = _file(tmp_path, "[self_play]\ngames = 64\n")
    saved = _load(source, "seed=5", "gate.alpha=0.01", "self_play.games=8")
    again = _load(source, saved=saved)
    assert again.seed == 5
    assert again.gate.alpha == 0.01
    assert again.self_play.games == 64, "what the file says counts"


def test_amend_keeps_the_saved_configuration() -> None:
    saved = _load("smoke", "seed=5", "self_play.games=8")
    assert presets.amend(saved, environment={}) == saved
    changed = presets.amend(saved, overrides=["gate.alpha=0.01"], environment={})
    assert changed == msgspec.structs.replace(
        saved, gate=msgspec.structs.replace(saved.gate, alpha=0.01)
    )
