"""The resolved configuration of a run, composed from the rooms' own options.

Room: deploy. Light imports only: ``cardleague --help`` and the supervisor load this module.
Precedence: preset or file < environment (``CARDLEAGUE_SECTION__KEY``) < ``--set``.
Loading and overriding live in deploy.presets.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from actors.config import SearchConfig, SelfPlayConfig
from league.config import EvaluationConfig, GateConfig, LeagueConfig, RatingConfig
from learner.config import LearnerConfig, NetworkConfig
from replay.config import ReplayConfig

CONFIG_SCHEMA = 1


class GameConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which game is learned."""

    name: str = "cuarenta"
    """Name in ``cardleague games``."""
    rules: str = ""
    """Rule preset of the game; empty takes its first."""
    options: dict[str, str] = {}
    """Rule options that differ from the preset, in words."""
    encoder: str = ""
    """Encoder of the game; empty takes its first."""


class RuntimeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Processes, time limits and folders."""

    kind: Literal["ray", "inprocess"] = "ray"
    """``ray``: supervisor, server and actors; ``inprocess``: one deterministic process."""
    ray_address: str = ""
    """Address of an existing Ray cluster; empty starts a local one."""
    allow_open_ray: bool = False
    """Use a cluster that asks for no token."""
    num_cpus: Annotated[int, Meta(ge=0)] = 0
    """CPUs of the local Ray; 0 takes what the machine has."""
    object_store_mb: Annotated[int, Meta(ge=80)] = 100
    """Object store of the local Ray."""
    step_s: Annotated[float, Meta(gt=0, le=10)] = 1.0
    """Length of one ``step()`` of an actor."""
    step_limit_s: Annotated[float, Meta(gt=0)] = 30.0
    """An actor that has not answered for so long is replaced."""
    learner_share: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Part of its time in which the learner may compute; below 1 it leaves a CPU to the workers."""
    owner_silence_s: Annotated[float, Meta(gt=0)] = 120.0
    """A worker that the owner has not called for so long ends itself."""
    stop_timeout_s: Annotated[float, Meta(gt=0)] = 25.0
    """SIGTERM: everything is saved and ended within this time."""
    snapshot_s: Annotated[float, Meta(gt=0)] = 60.0
    """Ray runtime: seconds between two manifests with snapshots."""
    kept_champions: Annotated[int, Meta(ge=0)] = 1000
    """Promoted versions that keep their file, the newest ones; 0 keeps all, for ever."""
    metrics_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """Port of the Prometheus endpoint on loopback; 0 picks a free one (``status`` shows it)."""
    max_memory_gb: Annotated[float, Meta(gt=0)] = 3.0
    """Resident memory of all processes from which an alert is raised."""
    inprocess_evaluations: Annotated[int, Meta(ge=1)] = 64
    """In-process: search evaluation batches of self-play between two learner turns."""
    inprocess_updates: Annotated[int, Meta(ge=1)] = 16
    """In-process: optimizer steps of a learner turn at the most."""
    inprocess_gate_pairs: Annotated[int, Meta(ge=1)] = 4
    """In-process: gate pairs a turn."""


class ReportConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The closing table of measured strength."""

    num_games: Annotated[int, Meta(ge=2)] = 2000
    """Games per row (even: they are played in pairs)."""
    opponent: str = "rules"
    """The fixed yardstick, written like a player of ``cardleague match``."""
    simulations: tuple[int, ...] = (0, 128)
    """Simulations a move of the champion, one row each."""
    interrupted_s: Annotated[float, Meta(ge=0)] = 60.0
    """At most so long after Ctrl-C."""


class RunConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that a run is. Saved with the run, resolved."""

    schema_version: int = CONFIG_SCHEMA
    name: str = "run"
    """Folder under ``runs/``."""
    seed: Annotated[int, Meta(ge=0)] = 0
    """Seeds every deal, search and weight of the run."""
    game: GameConfig = GameConfig()
    search: SearchConfig = SearchConfig()
    self_play: SelfPlayConfig = SelfPlayConfig()
    network: NetworkConfig = NetworkConfig()
    learner: LearnerConfig = LearnerConfig()
    league: LeagueConfig = LeagueConfig()
    gate: GateConfig = GateConfig()
    rating: RatingConfig = RatingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    replay: ReplayConfig = ReplayConfig()
    runtime: RuntimeConfig = RuntimeConfig()
    report: ReportConfig = ReportConfig()


IDENTITY_KEYS = ("game", "network", "seed")
"""Sections that a resume must not change; other changes are applied and recorded."""
