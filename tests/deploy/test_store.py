"""The owner's side of a server that hangs.

Behaviours checked:
* a server that gives no sign fails every call at once, is left alone for a while and asked again
* models, stream and lease go through it
"""

from __future__ import annotations

import pytest

from deploy.store import ASK_AGAIN_S, AWAY, Prompt, PromptModels
from league.models import MemoryModelStore
from replay.redis_link import StoreUnreachable


class Server:
    """Answers or hangs; counts how often it was asked."""

    def __init__(self) -> None:
        self.hangs = False
        self.num_asked = 0
        self.now = 100.0

    def answers(self) -> bool:
        self.num_asked += 1
        return not self.hangs

    def clock(self) -> float:
        return self.now


def test_silent_server_is_left_alone_for_a_while() -> None:
    server = Server()
    prompt = Prompt(server.answers, server.clock)
    prompt.check()
    server.hangs = True
    for _ in range(5):
        with pytest.raises(StoreUnreachable):
            prompt.check()
    assert server.num_asked == 2
    server.hangs = False
    with pytest.raises(StoreUnreachable):
        prompt.check()
    server.now += ASK_AGAIN_S
    prompt.check()
    assert server.num_asked == 3


def test_models_of_a_silent_server_are_away_at_once() -> None:
    server = Server()
    models = PromptModels(MemoryModelStore(), Prompt(server.answers, server.clock))
    models.put(1, b"one")
    assert models.versions() == [1]
    assert models.get(1) == b"one"
    server.hangs = True
    for call in (models.versions, lambda: models.put(2, b"two"), lambda: models.delete(1)):
        with pytest.raises(AWAY):
            call()
    server.now += ASK_AGAIN_S
    server.hangs = False
    assert models.versions() == [1]
