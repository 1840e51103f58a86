"""Players.

Behaviours: every player's action is legal and depends on its own view and key alone, whatever the
batch; the random player is uniform; the rule player plays the game's rules; a search player without
simulations plays the policy's first choice and beats random play with some.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import rules
from engine.players import Player, RandomPlayer, RulePlayer, SearchPlayer
from engine.search.ismcts import search_options
from engine.search.rollout import HashingEvaluator, RolloutEvaluator
from tests.engine.searching import (
    Positions,
    cuarenta_positions,
    kuhn_positions,
    one_row_answers,
    relay_positions,
)


def search_player(positions: Positions, *, simulations: int, batch: int, **more: Any) -> Player:
    return SearchPlayer(
        positions.spec,
        positions.game,
        positions.spec.encoders[0],
        HashingEvaluator(),
        simulations=simulations,
        batch=batch,
        **more,
    )


def act(player: Player, positions: Positions, rows: Any, keys: Any = None) -> Any:
    out = np.full(len(rows), -1)
    keys = np.asarray(rows) if keys is None else keys
    player.act(positions.views[rows], positions.seats[rows], keys.astype(np.uint64), out)
    return out


def players(positions: Positions, batch: int) -> list[Player]:
    return [
        RandomPlayer(positions.spec, positions.game),
        RulePlayer(positions.spec, positions.game),
        search_player(positions, simulations=32, batch=batch),
        search_player(positions, simulations=0, batch=batch),
        search_player(
            positions, simulations=32, batch=batch, options=search_options(opponents="policy")
        ),
    ]


@pytest.mark.parametrize("make", [relay_positions, cuarenta_positions])
def test_actions_are_legal_and_depend_on_their_own_position_alone(make: Any) -> None:
    positions = make(9)
    everything = np.arange(9)
    for wide, narrow in zip(players(positions, 16), players(positions, 2), strict=True):
        together = act(wide, positions, everything)
        order = np.array([8, 3, 0, 5, 1])
        np.testing.assert_array_equal(act(narrow, positions, order), together[order])
        for row in range(9):
            np.testing.assert_array_equal(act(narrow, positions, np.array([row])), together[row])
            legal = np.zeros(positions.spec.max_actions, np.int64)
            count = rules.legal_actions(positions.game, positions.views[row], legal)
            assert together[row] in legal[:count]


def test_keys_are_read_and_not_advanced() -> None:
    positions = relay_positions(5)
    for player in players(positions, 8):
        keys = np.arange(5).astype(np.uint64)
        first = act(player, positions, np.arange(5), keys)
        np.testing.assert_array_equal(keys, np.arange(5))
        np.testing.assert_array_equal(act(player, positions, np.arange(5), keys), first)


def test_random_player_is_uniform_over_legal_actions() -> None:
    positions = kuhn_positions()
    rows = np.zeros(4000, np.int64)
    keys = np.arange(4000).astype(np.uint64) << np.uint64(20)
    bets = act(RandomPlayer(positions.spec, positions.game), positions, rows, keys).sum()
    assert abs(bets - 2000) < 4 * np.sqrt(1000)


def test_rule_player_plays_the_rules_of_the_game() -> None:
    positions = kuhn_positions()
    found = act(RulePlayer(positions.spec, positions.game), positions, np.arange(12))
    assert found[2] == found[5] == found[8] == found[11] == 1  # a king always bets
    assert found[6] == found[9] == 0  # a jack never calls


def test_without_simulations_the_policys_first_choice_is_played() -> None:
    positions = cuarenta_positions(8)
    found = act(search_player(positions, simulations=0, batch=8), positions, np.arange(8))
    answers = one_row_answers(positions, HashingEvaluator())
    for row in range(8):
        legal = np.zeros(positions.spec.max_actions, np.int64)
        count = int(rules.legal_actions(positions.game, positions.views[row], legal))
        logits, _ = answers(positions.views[row], int(positions.seats[row]), legal[:count].tolist())
        assert found[row] == legal[int(np.argmax(logits))]


def test_search_with_playouts_finds_the_kings_bet_and_the_jacks_fold() -> None:
    positions = kuhn_positions()
    player = SearchPlayer(
        positions.spec,
        positions.game,
        positions.spec.encoders[0],
        RolloutEvaluator(positions.spec, positions.game),
        simulations=200,
    )
    found = act(player, positions, np.arange(12))
    assert found[[6, 9]].tolist() == [0, 0]
    assert found[[8, 11]].tolist() == [1, 1]


def test_equity_table_reaches_the_search() -> None:
    positions = cuarenta_positions(4)
    with pytest.raises(ValueError, match="equity table of 2 rows"):
        search_player(positions, simulations=8, batch=4, equity=np.zeros(2))
    table = np.random.default_rng(0).random(positions.spec.num_equity_states)
    player = search_player(positions, simulations=8, batch=4, equity=table)
    act(player, positions, np.arange(4))
    assert isinstance(player, SearchPlayer)
    assert player.search.num_simulations == 32
