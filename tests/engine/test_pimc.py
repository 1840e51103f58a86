"""Search by sampled worlds.

* Where only one world is possible and no line is cut, the chosen action is a minimax action: of two
  sides, and of three with the other two against the root seat.
* A budget of nodes ends a search early; the action is legal all the same, and depends on view, seat
  and key alone. Options below their minimum are refused by name.
* In Durak the sampled worlds are told by what a seat knows; stronger levels beat weaker ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.game import get_spec
from engine.play import GameJob, Table
from engine.players import RandomPlayer, RulePlayer
from engine.rng import below, make_rng
from engine.rules import CHANCE, TERMINAL
from engine.search.pimc import PimcOptions, PimcPlayer

SPEC = get_spec("durak")
PLIES_LEFT = 14
DEEP = PimcOptions(worlds=1, depth=40, most_actions=36)


def legal(game: Any, state: Any) -> list[int]:
    actions = np.zeros(SPEC.max_actions, np.int64)
    return [int(code) for code in actions[: rules.legal_actions(game, state, actions)]]


def after(game: Any, state: Any, action: int) -> Any:
    copies = SPEC.new_states(1)
    copies[0] = state
    copy = copies[0]
    rules.apply(game, copy, action)
    while rules.current_seat(game, copy) == CHANCE:
        rules.deal_next(game, copy)
    return copy


def minimax(game: Any, state: Any, seat: int, known: dict[bytes, float]) -> float:
    """Return the outcome for ``seat`` when all others play against it."""
    mover = int(rules.current_seat(game, state))
    if mover == TERMINAL:
        out = np.zeros(game.players)
        rules.returns(game, state, out)
        return float(out[seat])
    key = state.tobytes()
    if key not in known:
        values = [
            minimax(game, after(game, state, action), seat, known) for action in legal(game, state)
        ]
        known[key] = max(values) if mover == seat else min(values)
    return known[key]


def endings(game: Any, most_cards: int) -> Iterator[tuple[Any, int]]:
    """Yield positions with an empty stock and few cards in hand, one a game, and the seat."""
    actions = np.zeros(SPEC.max_actions, np.int64)
    rng = make_rng(3)
    state = SPEC.new_state()
    for seed in range(10_000):
        rules.deal(game, state, np.uint64(seed))
        while (seat := int(rules.current_seat(game, state))) != TERMINAL:
            if seat == CHANCE:
                rules.deal_next(game, state)
                continue
            small = state.stock_size == 0 and int(state.sizes.sum()) <= most_cards
            if small and rules.is_certain(game, state, seat) and len(legal(game, state)) > 1:
                yield state, seat
                break
            count = int(rules.legal_actions(game, state, actions))
            rules.apply(game, state, actions[below(rng, count)])


def choose(player: Any, game: Any, state: Any, seat: int, key: int = 7) -> int:
    views = SPEC.new_states(1)
    rules.view(game, state, seat, views[0])
    out = np.full(1, -1)
    player.act(views, np.array([seat]), np.array([key], np.uint64), out)
    return int(out[0])


@pytest.mark.parametrize(("players", "most_cards"), [(2, 6), (3, 6)])
def test_the_action_is_a_minimax_action(players: int, most_cards: int) -> None:
    game = SPEC.make("", {"players": players, "max_plies": 300})
    player = PimcPlayer(SPEC, game, DEEP)
    num_decided = 0
    for state, seat in itertools.islice(endings(game, most_cards), 12):
        state.plies = 300 - PLIES_LEFT
        known: dict[bytes, float] = {}
        values = {a: minimax(game, after(game, state, a), seat, known) for a in legal(game, state)}
        num_decided += len(set(values.values())) > 1
        assert values[choose(player, game, state, seat)] == max(values.values())
    assert num_decided > 2, "any action would have done"


def test_a_budget_of_nodes_ends_a_search_and_the_action_is_legal() -> None:
    game = SPEC.make()
    state = SPEC.new_state()
    rules.deal(game, state, np.uint64(4))
    seat = int(state.to_move)
    free = PimcPlayer(SPEC, game, PimcOptions(worlds=4, depth=8))
    bound = PimcPlayer(SPEC, game, PimcOptions(worlds=4, depth=8, node_budget=20))
    for player in (free, bound):
        assert choose(player, game, state, seat) in legal(game, state)
    # Once it is spent every root action still looks at a position or two in every world.
    assert bound.effort.nodes <= 20 + 2 * 4 * 5 < free.effort.nodes
    assert bound.effort.cut > 0 == free.effort.cut
    assert free.effort[1:3] == bound.effort[1:3] == (4, 8)
    assert choose(free, game, state, seat) == choose(free, game, state, seat)


@pytest.mark.parametrize("name", ["worlds", "depth", "most_actions"])
def test_options_below_their_minimum_are_refused(name: str) -> None:
    options = PimcOptions(worlds=1, depth=1)._replace(**{name: 0})
    with pytest.raises(ValueError, match=f"{name} = 0: at least 1 is allowed"):
        PimcPlayer(SPEC, SPEC.make(), options)


def score(first: Any, second: Any, num_games: int) -> tuple[float, float]:
    """Return the mean score of ``first``, draws half, and its standard error."""
    game = SPEC.make()
    jobs = [GameJob(i // 2, 0, i // 2, (0, 1) if i % 2 else (1, 0)) for i in range(num_games)]
    table = Table(SPEC, game, [first, second], jobs, num_slots=32)
    results = table.play_all()
    scores = [(r.returns[r.job.seat_players.index(0)] + 1) / 2 for r in results]
    return float(np.mean(scores)), float(np.std(scores) / num_games**0.5)


def test_stronger_players_of_durak_beat_weaker_ones() -> None:
    game = SPEC.make()
    greedy = RulePlayer(SPEC, game)
    mean, error = score(greedy, RandomPlayer(SPEC, game), 400)
    assert mean - 4 * error > 0.5
    mean, error = score(PimcPlayer(SPEC, game, PimcOptions(worlds=10, depth=3)), greedy, 200)
    assert mean - 3 * error > 0.5
