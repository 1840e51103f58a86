"""What players are told of earlier plies.

Behaviours: a seat is told of the last plies of its own game, in order, each as it saw it then: its
own views, and of actions no more than it saw; players that do not ask get nothing; a new game
begins without a past.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.game import get_spec
from engine.past import Past
from engine.play import GameJob, Table
from engine.players import RandomPlayer, RecallingPlayer
from tests.engine import relay_game

CUARENTA = get_spec("cuarenta")
GAMES = {
    "cuarenta": (CUARENTA, CUARENTA.make("report_a_4p"), 4),
    "relay": (relay_game.SPEC, relay_game.Relay(deaf=1), 3),
}


class Witness(RandomPlayer):
    """Plays at random, and checks its past against what all witnesses of its game were shown."""

    def __init__(self, spec: Any, game: Any, num_recalled: int) -> None:
        super().__init__(spec, game)
        self.num_recalled = num_recalled
        self.spec = spec
        self.rules = game
        self.games: list[list[tuple[int, bytes, int]]] = []
        """Per game (seat, view, action) of each ply; one slot, so that games follow each other."""
        self.told = 0
        self.hidden = 0

    def act_on_past(self, views: Any, seats: Any, keys: Any, past: Past, out_actions: Any) -> None:
        self.act(views, seats, keys, out_actions)
        seat, count = int(seats[0]), int(past.counts[0])
        if count == 0:
            self.games.append([])
        plies = self.games[-1]
        assert count == min(len(plies), self.num_recalled)
        for p, (mover, view, action) in enumerate(plies[len(plies) - count :]):
            seen = self.spec.new_states(1)
            seen[0] = past.views[0, p]
            assert int(rules.current_seat(self.rules, seen[0])) == mover
            again = self.spec.new_state()
            rules.view(self.rules, seen[0], seat, again)
            assert again.tobytes() == seen[0].tobytes(), "more than a view"
            if mover == seat:
                assert seen[0].tobytes() == view
            key = int(past.actions[0, p])
            assert key == action or key < 0
            self.hidden += key < 0
            self.told += mover != seat
        plies.append((seat, views[0].tobytes(), int(out_actions[0])))


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("num_recalled", [1, 7, 200])
def test_a_seat_is_told_of_the_last_plies_as_it_saw_them(name: str, num_recalled: int) -> None:
    spec, game, seats = GAMES[name]
    witness = Witness(spec, game, num_recalled)
    assert isinstance(witness, RecallingPlayer)
    jobs = [GameJob(i, 0, i, (0,) * seats) for i in range(3)]
    results = Table(spec, game, [witness], jobs, num_slots=1).play_all()
    assert [len(plies) for plies in witness.games] == [result.plies for result in results]
    assert witness.told > 0
    assert (witness.hidden > 0) == (name == "relay")


def test_neighbours_and_players_without_a_memory_change_nothing() -> None:
    spec, game, seats = GAMES["cuarenta"]
    jobs = [GameJob(i, 0, i, (0, 1) * (seats // 2)) for i in range(6)]
    plain = [RandomPlayer(spec, game), RandomPlayer(spec, game)]
    expected = {r.job: r.digest for r in Table(spec, game, plain, jobs, num_slots=4).play_all()}
    counts: list[Any] = []

    class Asking(RandomPlayer):
        num_recalled = 3

        def act_on_past(
            self, views: Any, seats: Any, keys: Any, past: Past, out_actions: Any
        ) -> None:
            counts.append(np.array(past.counts))
            self.act(views, seats, keys, out_actions)

    asking = [RandomPlayer(spec, game), Asking(spec, game)]
    found = {r.job: r.digest for r in Table(spec, game, asking, jobs, num_slots=4).play_all()}
    assert found == expected
    assert max(np.concatenate(counts)) == 3
