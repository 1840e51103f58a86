"""Behaviours of model metadata: what is compatible, and that a mismatch is named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from league.models import ModelError, ModelMetadata, check_compatible, content_hash
from tests.league.tiny_models import make_metadata

RULES = {"players": "4", "sums": "two"}


def check(metadata: ModelMetadata, **changes: Any) -> None:
    arguments: dict[str, Any] = {
        "game": metadata.game,
        "rules": dict(metadata.rules),
        "encoder": (metadata.encoder, metadata.encoder_version),
    }
    check_compatible(metadata, **(arguments | changes))


def test_a_model_is_compatible_with_what_it_was_made_for() -> None:
    check(make_metadata(rules=RULES))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"game": "durak"}, "is for game 'kuhn', not 'durak'"),
        ({"rules": {"players": "2", "sums": "two"}}, "rule option players is '4' there, '2' here"),
        ({"rules": {"players": "4"}}, "rule option sums is 'two' there, None here"),
        ({"rules": {**RULES, "new": "1"}}, "rule option new is None there, '1' here"),
        ({"encoder": ("other", 1)}, "this program has other v1"),
    ],
)
def test_the_first_difference_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        check(make_metadata(rules=RULES), **changes)


def test_metadata_survives_json_and_unknown_fields_are_refused() -> None:
    metadata = make_metadata(equity=(0.25, 0.5), value_trusted=True)
    text = msgspec.json.encode(metadata)
    assert msgspec.json.decode(text, type=ModelMetadata) == metadata
    with pytest.raises(msgspec.ValidationError, match="surprise"):
        msgspec.json.decode(text[:-1] + b',"surprise":1}', type=ModelMetadata)


def test_content_hash_is_sha256() -> None:
    assert content_hash(b"abc").startswith("ba7816bf8f01cfea")
