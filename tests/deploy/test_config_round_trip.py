"""Every preset, and random changes of it, written as a file, as variables and as ``--set``.

Behaviours checked:
* what a configuration says, written in any of the three ways, is the same configuration
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploy.config import RunConfig
from deploy.presets import PREFIX, SEPARATOR, amend, load, preset_names


def leaves(document: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in document.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{name}.")
        elif name != "schema_version":
            yield f"{prefix}{name}", value


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "seed": st.integers(0, 2**63 - 1),
        "learner.learning_rate": st.floats(1e-9, 1.0),
        "self_play.games": st.integers(1, 4096),
        "evaluation.opponents": st.lists(
            st.sampled_from(["rules", "random", "ismcts:20"]), max_size=3
        ),
        "report.simulations": st.lists(st.integers(0, 10**6), max_size=4),
        "game.options.ante": st.sampled_from(["yes", "no", "3", "a b"]),
        "runtime.allow_open_ray": st.booleans(),
    },
)


@pytest.mark.parametrize("preset", preset_names())
@given(changes=CHANGES)
@settings(max_examples=20)
def test_a_configuration_survives_every_way_of_writing_it(
    preset: str, changes: dict[str, Any]
) -> None:
    written = [f"{key}={as_text(value)}" for key, value in changes.items()]
    config = load(preset, overrides=written, environment={})
    found = dict(leaves(msgspec.to_builtins(config)))
    texts = {key: as_text(value) for key, value in found.items()}
    overrides = [f"{key}={text}" for key, text in texts.items()]
    assert amend(RunConfig(), overrides=overrides, environment={}) == config
    names = {key: key.replace(".", SEPARATOR).upper() for key in texts}
    variables = {f"{PREFIX}{names[key]}": text for key, text in texts.items()}
    assert amend(RunConfig(), environment=variables) == config
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mine.toml"
        path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in found.items()))
        assert load(str(path), environment={}) == config
