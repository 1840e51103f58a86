"""What the groups share: sizes, the preset, an untrained network, positions, and played games.

Room: deploy. May import: every room. Everything is made when it is first asked for.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from deploy import components
from deploy.components import Parts
from deploy.config import RunConfig
from deploy.presets import load
from engine.game import GameSpec
from engine.jit import kernel
from engine.rng import below, make_rng, next_u64
from engine.rules import (
    CHANCE,
    TERMINAL,
    apply,
    current_seat,
    deal,
    deal_next,
    legal_actions,
    view,
)
from engine.search.tree import plain_records
from league.evaluator import OnnxEvaluator, Precision, read_metadata
from league.models import check_compatible
from learner.messages import LearnRequest
from replay.memory import MemoryReader, MemoryStore

if TYPE_CHECKING:
    from deploy.bench.selfplay import PlayedGames

PRESET = "cuarenta-laptop"
RUN_ID = "bench"
SEED = 20
QUICK = (
    "self_play.games=8",
    "self_play.full_simulations=4",
    "self_play.fast_simulations=2",
    "learner.batch_size=32",
    "learner.window_positions=2000",
    "learner.min_window_positions=100",
)
T = TypeVar("T")
Told = Callable[[str], None]


class Unavailable(RuntimeError):
    """A group that cannot be measured here; says what is missing."""


class Positions(NamedTuple):
    """Positions with a choice, met along random games."""

    views: Any
    """state_dtype[n] view of the seat to move."""
    seats: NDArray[np.int64]
    """[n] that seat."""


class Setup:
    """Sizes and shared parts of one call of the command."""

    def __init__(
        self,
        *,
        quick: bool,
        folder: Path,
        model: Path | None = None,
        say: Told = lambda text: None,
    ) -> None:
        """Prepare nothing yet.

        Args:
            quick: Measure in a small form.
            folder: Where servers and other files go.
            model: ONNX file of the preset's game to search with; None: untrained weights.
            say: Tells progress.
        """
        self.quick = quick
        self._model = model
        self.folder = folder
        self.say = say
        self.commands: list[str] = []
        """Commands that others can repeat."""
        self.left_out: list[tuple[str, str]] = []
        """Parts of groups that could not be measured: (group, why)."""

    def pick(self, full: T, quick: T) -> T:
        """Return the size to use."""
        return quick if self.quick else full

    @property
    def repeats(self) -> int:
        """Repeats of a measurement."""
        return self.pick(5, 2)

    @functools.cached_property
    def config(self) -> RunConfig:
        """The preset; nothing of the environment."""
        return load(PRESET, overrides=QUICK if self.quick else (), environment={})

    @functools.cached_property
    def parts(self) -> Parts:
        """The preset's game."""
        return components.parts_of(self.config)

    @functools.cached_property
    def model(self) -> bytes:
        """The network to search with.

        Raises:
            ModelError: The given file is missing, damaged or made for another game.
            Unavailable: There is no file and no torch to make one.
        """
        if self._model is not None:
            parts, metadata = self.parts, read_metadata(self._model)
            encoder = (parts.encoder.name, parts.encoder.version)
            words = parts.spec.describe(parts.game)
            check_compatible(metadata, game=parts.spec.name, rules=words, encoder=encoder)
            return self._model.read_bytes()
        need("torch", "the network of the preset is made with it")
        small = msgspec.structs.replace(
            self.config.learner, window_positions=1000, min_window_positions=100
        )
        learner = components.build_learner(
            msgspec.structs.replace(self.config, learner=small),
            MemoryReader(MemoryStore()),
            RUN_ID,
            epoch=1,
            snapshot=None,
        )
        return self._calibrated(learner.step(LearnRequest(epoch=1, next_version=0)).model)

    def _calibrated(self, model: bytes) -> bytes:
        """Return ``model`` with a calibration on random games, so that it runs as later ones do."""
        from learner.calibrate import calibrated
        from learner.features import FeatureMaker

        parts = self.parts
        met = positions(parts.spec, parts.game, self.pick(1024, 64), stride=3)
        legal = np.zeros(parts.spec.max_actions, np.int64)
        counts = [int(legal_actions(parts.game, position, legal)) for position in met.views]
        maker = FeatureMaker(parts.spec, parts.game, parts.encoder)
        return calibrated(model, maker.make(met.views, met.seats, np.array(counts)))

    @functools.cached_property
    def played(self) -> PlayedGames:
        """A self-play worker that has played for a while. Raises Unavailable."""
        from deploy.bench.selfplay import PlayedGames

        self.say("playing games for the groups that need them")
        return PlayedGames(self)

    def evaluator(self, precision: Precision = "auto") -> OnnxEvaluator:
        """Return a new evaluator with that model."""
        parts = self.parts
        evaluator = OnnxEvaluator(parts.spec, parts.game, parts.encoder, precision=precision)
        evaluator.set_model(0, self.model)
        return evaluator

    def equity(self) -> NDArray[np.float64] | None:
        """Return the model's match-equity table, if its values were trained against one."""
        metadata = read_metadata(self.model)
        return np.asarray(metadata.equity, np.float64) if metadata.target == "equity" else None

    @functools.cached_property
    def network(self) -> str:
        """The network in words."""
        if self._model is None:
            return f"network of {PRESET}, untrained"
        metadata = read_metadata(self._model)
        width, layers = (metadata.network.get(key, 0) for key in ("width", "num_layers"))
        return f"a trained network ({metadata.step} updates, {width} wide, {layers} layers)"


def need(module: str, why: str) -> None:
    """Raise Unavailable unless ``module`` is installed."""
    if importlib.util.find_spec(module) is None:
        raise Unavailable(f"{module} is not installed: {why}")


def positions(spec: GameSpec, game: Any, count: int, *, stride: int, seed: int = SEED) -> Positions:
    """Return every ``stride``-th decision with a choice along games of random moves."""
    found = Positions(plain_records(spec.state_dtype, count), np.zeros(count, np.int64))
    scratch = (plain_records(spec.state_dtype, 1), np.zeros(spec.max_actions, np.int64))
    _meet(game, found, scratch, stride, make_rng(seed))
    return found


@kernel
def _meet(game: Any, found: Any, scratch: Any, stride: Any, rng: Any) -> None:
    """Fill ``found`` (see ``positions``)."""
    states, legal = scratch
    views, seats = found
    stored, met = 0, 0
    deal(game, states[0], next_u64(rng))
    while stored < seats.shape[0]:
        seat = current_seat(game, states[0])
        if seat == TERMINAL:
            deal(game, states[0], next_u64(rng))
        elif seat == CHANCE:
            deal_next(game, states[0])
        else:
            count = legal_actions(game, states[0], legal)
            if count > 1:
                if met % stride == 0:
                    view(game, states[0], seat, views[stored])
                    seats[stored] = seat
                    stored += 1
                met += 1
            apply(game, states[0], legal[below(rng, count)])
