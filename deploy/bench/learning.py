"""Group ``learner``: updates, and what a batch costs before and after them. Room: deploy."""

from __future__ import annotations

from typing import Any

import msgspec

from deploy import components
from deploy.bench.figures import (
    MICROSECONDS,
    MILLISECONDS,
    Figure,
    Sample,
    figure,
    measured,
    rate,
    timed,
)
from deploy.bench.setup import PRESET, RUN_ID, Setup, need
from deploy.bench.stopwatch import watched
from learner.messages import LearnRequest
from learner.train import Learner
from replay.memory import MemoryReader, MemoryStore, MemoryWriter

GROUP = "learner"
UPDATE, SAMPLE, FEATURES, EXPORT = "update", "sample", "features", "export"


def measure(setup: Setup) -> list[Figure]:
    """Return updates and examples a second and the parts of one update. Raises Unavailable."""
    need("torch", "the learner runs on it")
    learner = _learner(setup)
    updates = setup.pick(20, 2)
    samples: list[Sample] = []
    splits: list[dict[str, float]] = []
    with watched(_parts()) as stopwatch:
        for version in range(1, 2 + setup.repeats):
            stopwatch.reset()
            request = LearnRequest(epoch=1, next_version=version, max_updates=updates)
            samples.append(timed(lambda: float(learner.step(request).num_updates)))  # noqa: B023
            splits.append(dict(stopwatch.seconds))
    samples, splits = samples[1:], splits[1:]  # the first one warmed up
    trained = [
        Sample(sample.done, sample.wall_s, sample.cpu_s - split[EXPORT])
        for sample, split in zip(samples, splits, strict=True)
    ]
    config = setup.config.learner
    rows = config.batch_size + round(config.batch_size * config.value_only_share)
    how = (
        f"network of {PRESET}, {config.threads} thread, batches of {config.batch_size} searched "
        f"positions and {rows - config.batch_size} value-only ones"
    )
    examples = [Sample(s.done * config.batch_size, s.wall_s, s.cpu_s) for s in trained]
    return [
        figure(GROUP, "updates", "updates/s", rate(trained), how),
        figure(
            GROUP,
            "examples learned",
            "examples/s",
            rate(examples),
            "searched positions in those updates; value-only ones are not counted",
        ),
        _part(UPDATE, samples, splits, MILLISECONDS, "ms/update", "forward, backward, optimizer"),
        _part(SAMPLE, samples, splits, MILLISECONDS, "ms/update", "drawing and gathering rows"),
        _part(
            FEATURES,
            samples,
            splits,
            MICROSECONDS / rows,
            "µs/row",
            "stored views to network inputs (compiled), allocation included",
        ),
        figure(
            GROUP,
            "a checked version",
            "ms",
            measured([MILLISECONDS * split[EXPORT] for split in splits], samples),
            "weights to ONNX, and the comparison with torch at four batch sizes",
            lower_is_better=True,
        ),
    ]


def _parts() -> dict[str, tuple[tuple[Any, str], ...]]:
    from learner import train
    from learner.features import FeatureMaker
    from learner.update import Updater
    from replay.window import Window

    return {
        UPDATE: ((Updater, "update"),),
        SAMPLE: ((train, "draw"), (Window, "gather")),
        FEATURES: ((FeatureMaker, "make"),),
        EXPORT: ((train, "export_checked"),),
    }


def _part(
    part: str,
    samples: list[Sample],
    splits: list[dict[str, float]],
    scale: float,
    unit: str,
    how: str,
) -> Figure:
    values = [
        scale * split[part] / sample.done for sample, split in zip(samples, splits, strict=True)
    ]
    return figure(
        GROUP, f"part: {part}", unit, measured(values, samples), how, lower_is_better=True
    )


def _learner(setup: Setup) -> Learner:
    """Return a learner whose window holds the games that were played, and that is never short."""
    store = MemoryStore()
    writer = MemoryWriter(store, "bench", max_pending=1_000_000)
    for payload in setup.played.payloads():
        writer.append(payload)
    writer.poll(0.0)
    config = setup.config
    always = msgspec.structs.replace(
        config.learner,
        device="cpu",
        min_window_positions=100,
        samples_per_insert=1e6,
        updates_per_version=setup.pick(20, 2),
        held_out_every=1_000_000,
    )
    learner = components.build_learner(
        msgspec.structs.replace(config, learner=always),
        MemoryReader(store),
        RUN_ID,
        epoch=1,
        snapshot=None,
    )
    learner.step(LearnRequest(epoch=1, next_version=0))  # version 0
    return learner
