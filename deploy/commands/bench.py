"""``bench``: how fast this machine is. Room: deploy; light imports."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import msgspec

from deploy.commands import UserError, option


def bench(
    *,
    quick: Annotated[bool, option("")] = False,
    only: Annotated[tuple[str, ...], option("GROUP ...")] = (),
    model: Annotated[str, option("FILE.onnx")] = "",
    out: Annotated[str, option("BENCHMARKS.md")] = "",
    json: Annotated[bool, option("")] = False,
) -> int:
    """Measure games, searches, self-play, learner and stream, beside their references.

    Takes about ten minutes on two cores; nothing else should run meanwhile.

    Args:
        quick: Tiny sizes: shows that everything runs, not how fast.
        only: Groups: play, levels, playouts, network, decision, onnx, selfplay, learner, stream,
            ingest, together.
        model: Network of an exported model to search with; by default untrained weights.
        out: Document to write the figures into; what is written by hand there is kept.
        json: Print all figures as JSON.
    """
    from deploy.bench import document, suite
    from deploy.files import Files
    from deploy.warm import warm_up
    from league.evaluator import read_metadata
    from league.models import ModelError

    try:
        suite.check_groups(only)
        if out:
            document.read_document(Path(out))
        if model:  # refused before a minute of compiling
            read_metadata(Path(model))
    except (suite.UnknownGroupError, document.DocumentError, ModelError) as error:
        raise UserError(str(error)) from error
    with contextlib.redirect_stdout(sys.stderr):  # standard output is the report's
        warm_up()
    try:
        report = suite.run(only, quick=quick, model=Path(model) if model else None, say=_say)
    except ModelError as error:
        raise UserError(str(error)) from error
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report)).decode() + "\n")
    else:
        document.print_report(report)
    if out:
        path = Path(out)
        text = document.with_report(document.read_document(path), report)
        Files().write_atomic(path, text.encode())
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
