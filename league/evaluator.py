"""ONNX models as the engine's Evaluator: several models in one batch, one session each.

Room: league. May import: engine, league (models, quantize); onnxruntime and onnx on first use.

Each row names the slot of the model that answers it. Rows of one model that lie side by side are
passed as slices of the batch, without a copy; only scattered rows are gathered first.

On a CPU a model that carries a calibration runs in eight bits (``league.quantize``).

Rows stay independent, bit by bit, on one CPU thread: sums of small integers are exact, and every
float32 product of the graph sums over features in an order that does not depend on the number of
rows. A product of a single row is the one exception that matrix libraries make (a vector kernel),
so batches are never smaller than MIN_ROWS.

A model says by its metadata what values its leaves. Where that is ``playout``, the network gives
the policy alone and one playout from each row's sampled world gives the value, in every search
that runs on this evaluator: self-play, gate, match.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from engine import rules
from engine.evaluation import EvalBatch, num_value_heads
from engine.game import Encoder, GameSpec
from engine.search.rollout import RolloutEvaluator
from league.graph import MAX_MODEL_BYTES, check_graph, parse
from league.models import (
    METADATA_KEY,
    ModelError,
    ModelMetadata,
    check_compatible,
    content_hash,
)
from league.quantize import quantized

INPUTS = ("observations", "candidates", "candidate_row")
OUTPUTS = ("logits", "values")
MIN_ROWS = 2
"""Fewer rows or candidates are padded with zero rows (about 2 µs), so that they run on the same
matrix kernels as larger batches."""
CUDA_PROVIDER = "CUDAExecutionProvider"
CPU_PROVIDER = "CPUExecutionProvider"

Device = Literal["cpu", "cuda", "auto"]
Precision = Literal["auto", "float32"]


class _Slot(NamedTuple):
    digest: str
    session: Any
    metadata: ModelMetadata
    playouts: RolloutEvaluator | None
    """What values its rows in place of the network."""
    in_eight_bits: bool


class OnnxEvaluator:
    """An ``engine.evaluation.Evaluator`` over up to ``num_slots`` models of one game.

    Not thread-safe. Memory is bounded by the slots: a model that is replaced is released.
    """

    def __init__(
        self,
        spec: GameSpec,
        game: Any,
        encoder: Encoder,
        num_slots: int = 1,
        *,
        device: Device = "cpu",
        precision: Precision = "auto",
    ) -> None:
        """Expect models of ``game`` (rule options included) and ``encoder``.

        ``device``: ``cuda`` needs an ONNX Runtime with CUDA (ValueError without), ``auto`` takes
        it where there is one. Rows are bitwise independent on ``cpu`` only.

        ``precision``: ``auto`` runs calibrated models in eight bits on a CPU; ``float32`` does not.
        """
        if num_slots < 1:
            raise ValueError(f"num_slots = {num_slots}: at least 1")
        if precision not in get_args(Precision):
            raise ValueError(
                f"precision {precision!r}: allowed are {', '.join(get_args(Precision))}"
            )
        self._spec, self._game = spec, game
        self._rules = spec.describe(game)
        self._encoder = encoder
        self._num_values = num_value_heads(int(rules.num_sides(game)))
        self._slots: list[_Slot | None] = [None] * num_slots
        self._providers = _providers(device)
        self._rounds = precision == "auto" and self._providers == [CPU_PROVIDER]

    @property
    def num_slots(self) -> int:
        """Most models at once."""
        return len(self._slots)

    def set_model(self, slot: int, model: bytes) -> ModelMetadata:
        """Put ``model`` (ONNX bytes) into ``slot`` and return its metadata.

        Slots that hold the same bytes share one session. Raises ModelError, and leaves the slot
        as it was, for damaged bytes or a model made for another game, rules or encoder.
        """
        self._check_slot(slot)
        digest = content_hash(model)
        for held in self._slots:
            if held is not None and held.digest == digest:
                self._slots[slot] = held
                return held.metadata
        metadata = read_metadata(model)
        self._check_metadata(metadata)
        check_graph(parse(model))
        rounded = quantized(model) if self._rounds else None
        session = open_session(rounded or model, self._providers)
        _check_interface(session, metadata)
        _try_out(session, metadata)
        playouts = self._playouts_of(metadata)
        self._slots[slot] = _Slot(digest, session, metadata, playouts, rounded is not None)
        return metadata

    def _playouts_of(self, metadata: ModelMetadata) -> RolloutEvaluator | None:
        """Return what values the leaves of a model whose value head must not; else None."""
        if metadata.leaf_value != "playout":
            return None
        # Where the head learned equities, playouts end with the very table that it learned from.
        has_table = metadata.target == "equity" and len(metadata.equity) > 0
        table = np.asarray(metadata.equity, np.float64) if has_table else None
        return RolloutEvaluator(self._spec, self._game, equity=table)

    def clear(self, slot: int) -> None:
        """Release the model of ``slot``; an empty slot is left as it is."""
        self._check_slot(slot)
        self._slots[slot] = None

    def metadata(self, slot: int) -> ModelMetadata | None:
        """Return the metadata of the model in ``slot``, None when it is empty."""
        self._check_slot(slot)
        held = self._slots[slot]
        return None if held is None else held.metadata

    def in_eight_bits(self, slot: int) -> bool:
        """Return whether the model of ``slot`` runs in eight bits; False for an empty slot."""
        self._check_slot(slot)
        held = self._slots[slot]
        return held is not None and held.in_eight_bits

    def evaluate(self, batch: EvalBatch, num_rows: int, num_candidates: int) -> None:
        """Fill ``logits[:num_candidates]`` and ``values[:num_rows]`` of ``batch`` in place.

        Raises ModelError when a row names an empty slot.
        """
        if num_rows == 0:
            return
        model = batch.model[:num_rows]
        first = int(model[0])
        if (model == first).all():
            self._evaluate_run(batch, first, 0, num_rows)
            return
        slot_of_candidate = model[batch.candidate_row[:num_candidates]]
        for slot in np.unique(model).tolist():
            rows = np.flatnonzero(model == slot)
            if rows[-1] - rows[0] + 1 == len(rows):
                self._evaluate_run(batch, slot, int(rows[0]), int(rows[-1]) + 1)
            else:
                candidates = np.flatnonzero(slot_of_candidate == slot)
                self._evaluate_scattered(batch, slot, rows, candidates)

    def _evaluate_run(self, batch: EvalBatch, slot: int, start: int, stop: int) -> None:
        """Answer rows ``start:stop``, all of one model, from slices of the batch."""
        low, high = int(batch.offsets[start]), int(batch.offsets[stop])
        candidate_row = batch.candidate_row[low:high]
        logits, values = self._run(
            slot,
            batch.observations[start:stop],
            batch.candidates[low:high],
            candidate_row if start == 0 else candidate_row - start,
        )
        batch.logits[low:high] = logits
        batch.values[start:stop] = values
        self._play_out(batch, slot, np.arange(start, stop))

    def _evaluate_scattered(
        self,
        batch: EvalBatch,
        slot: int,
        rows: NDArray[np.int64],
        candidates: NDArray[np.int64],
    ) -> None:
        """Answer ``rows`` and their ``candidates`` (ascending indices) from gathered copies."""
        position = np.empty(int(rows[-1]) + 1, np.int64)
        position[rows] = np.arange(len(rows))
        logits, values = self._run(
            slot,
            batch.observations.take(rows, axis=0),
            batch.candidates.take(candidates, axis=0),
            position[batch.candidate_row[candidates]],
        )
        batch.logits[candidates] = logits
        batch.values[rows] = values
        self._play_out(batch, slot, rows)

    def _play_out(self, batch: EvalBatch, slot: int, rows: NDArray[np.int64]) -> None:
        """Value ``rows`` by playouts where the model in ``slot`` asks for them."""
        held = self._slots[slot]
        if held is None or held.playouts is None:
            return
        part = batch._replace(
            worlds=np.asarray(batch.worlds).view(np.ndarray)[rows],
            seats=batch.seats[rows],
            seeds=batch.seeds[rows],
            wants_value=batch.wants_value[rows],
            logits=batch.logits[:0],
            values=np.zeros((len(rows), self._num_values), np.float32),
        )
        held.playouts.evaluate(part, len(rows), 0)
        batch.values[rows] = part.values

    def _run(
        self,
        slot: int,
        observations: NDArray[np.float32],
        candidates: NDArray[np.float32],
        candidate_row: NDArray[np.int64],
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return logits and values of one model for contiguous arrays."""
        held = self._slots[slot] if 0 <= slot < len(self._slots) else None
        if held is None:
            filled = [i for i, other in enumerate(self._slots) if other is not None]
            raise ModelError(f"a row names model slot {slot}: filled slots are {filled}")
        num_rows, num_candidates = len(observations), len(candidates)
        if num_rows < MIN_ROWS or num_candidates < MIN_ROWS:
            observations, candidates = _padded(observations), _padded(candidates)
            candidate_row = _padded(candidate_row)
        feed = dict(zip(INPUTS, (observations, candidates, candidate_row), strict=True))
        logits, values = held.session.run(OUTPUTS, feed)
        return logits[:num_candidates], values[:num_rows]

    def _check_slot(self, slot: int) -> None:
        if not 0 <= slot < len(self._slots):
            raise ValueError(f"model slot {slot}: allowed are 0 to {len(self._slots) - 1}")

    def _check_metadata(self, metadata: ModelMetadata) -> None:
        check_compatible(
            metadata,
            game=self._spec.name,
            rules=self._rules,
            encoder=(self._encoder.name, self._encoder.version),
        )
        sizes = (
            ("observation_size", metadata.observation_size, self._encoder.observation_size),
            ("action_size", metadata.action_size, self._encoder.action_size),
            ("num_values", metadata.num_values, self._num_values),
        )
        for name, there, here in sizes:
            if there != here:
                raise ModelError(f"model {metadata.version}: {name} is {there} there, {here} here")
        table, rows = metadata.equity, self._spec.num_equity_states
        if len(table) not in (0, rows) or not all(0.0 <= chance <= 1.0 for chance in table):
            raise ModelError(
                f"model {metadata.version}: equity table of {len(table)} rows, allowed are none or "
                f"{rows} probabilities"
            )


def read_metadata(model: bytes | Path) -> ModelMetadata:
    """Return the metadata inside an ONNX file or its bytes.

    Raises ModelError for a missing file, bytes that are not ONNX, an ONNX graph that carries no
    metadata of this program, and metadata that does not have this program's fields.
    """
    data, name = (model, "model") if isinstance(model, bytes) else (_read(model), str(model))
    entries = {entry.key: entry.value for entry in parse(data, name).metadata_props}
    if METADATA_KEY not in entries:
        raise ModelError(
            f"{name}: an ONNX graph without {METADATA_KEY!r} metadata; it has {sorted(entries)}"
        )
    try:
        return msgspec.json.decode(entries[METADATA_KEY], type=ModelMetadata)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ModelError(f"{name}: damaged {METADATA_KEY!r} metadata: {error}") from error


def _read(path: Path) -> bytes:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_MODEL_BYTES:
            raise ModelError(f"model file {path}: not a file of at most {MAX_MODEL_BYTES} bytes")
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"model file {path}: {error.strerror}") from error


def open_session(model: bytes, providers: list[Any] | None = None) -> Any:
    """Return an ``onnxruntime.InferenceSession``, one thread, no spinning, all optimisations.

    Raises ModelError when ONNX Runtime refuses the bytes.
    """
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    with _refusals():
        return ort.InferenceSession(model, options, providers=providers or [CPU_PROVIDER])


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Turn what ONNX Runtime raises into ModelError."""
    try:
        yield
    except Exception as error:  # the runtime's own errors derive from Exception alone
        if type(error).__module__.startswith("onnxruntime"):
            raise ModelError(f"ONNX Runtime refuses the model: {error}") from error
        raise


def _providers(device: Device) -> list[Any]:
    """Return ONNX Runtime's providers for ``device``. Raises ValueError for ``cuda`` without it."""
    if device == "cpu":
        return [CPU_PROVIDER]
    if device not in ("cuda", "auto"):
        raise ValueError(f"device {device!r}: allowed are cpu, cuda, auto")
    import onnxruntime as ort

    available = ort.get_available_providers()
    if CUDA_PROVIDER in available:
        # Full float32 products: answers then agree with the CPU's to rounding.
        return [(CUDA_PROVIDER, {"use_tf32": "0"}), CPU_PROVIDER]
    if device == "cuda":
        raise ValueError(f"device 'cuda': this ONNX Runtime has {', '.join(available)}")
    return [CPU_PROVIDER]


def _check_interface(session: Any, metadata: ModelMetadata) -> None:
    """Raise ModelError unless the graph has the inputs and outputs that its metadata promises."""
    inputs = {value.name: value.shape for value in session.get_inputs()}
    outputs = [value.name for value in session.get_outputs()]
    if set(inputs) != set(INPUTS) or set(outputs) != set(OUTPUTS):
        raise ModelError(
            f"model {metadata.version}: graph {sorted(inputs)} -> {sorted(outputs)}, "
            f"expected {sorted(INPUTS)} -> {sorted(OUTPUTS)}"
        )
    widths = (inputs["observations"][1], inputs["candidates"][1])
    if widths != (metadata.observation_size, metadata.action_size):
        raise ModelError(
            f"model {metadata.version}: graph takes {widths[0]} and {widths[1]} features, its "
            f"metadata says {metadata.observation_size} and {metadata.action_size}"
        )


def _try_out(session: Any, metadata: ModelMetadata) -> None:
    """Raise ModelError unless the graph answers as many rows and candidates as it is given.

    Dimensions of weights that do not fit show only when the graph runs.
    """
    num_rows, num_candidates = 3, 5
    feed = {
        "observations": np.zeros((num_rows, metadata.observation_size), np.float32),
        "candidates": np.zeros((num_candidates, metadata.action_size), np.float32),
        "candidate_row": np.array([0, 0, 1, 2, 2], np.int64),
    }
    with _refusals():
        logits, values = session.run(OUTPUTS, feed)
    shapes = (logits.shape, values.shape)
    if shapes != ((num_candidates,), (num_rows, metadata.num_values)):
        raise ModelError(f"model {metadata.version}: answers {shapes} to 3 rows, 5 candidates")


def _padded(array: NDArray[Any]) -> NDArray[Any]:
    """Return ``array`` with zero rows appended up to MIN_ROWS."""
    if len(array) >= MIN_ROWS:
        return array
    padded = np.zeros((MIN_ROWS, *array.shape[1:]), array.dtype)
    padded[: len(array)] = array
    return padded
