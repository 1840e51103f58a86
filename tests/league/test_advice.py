"""Advice: whose move it is, what every legal action is worth.

* The best action is the player's own; every legal action has a value, whoever advises; shares sum
  to one. The same key gives the same advice.
* Values are those of an outcome that can be computed by hand, searched or played out.
* Several views of one position share a search's budget, and the advice is for all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.game import get_spec
from engine.notation import legal_codes
from engine.rng import make_rng
from engine.search.flat_values import playout_values
from engine.sitting import Sitting
from league.advice import Advice, Advisor, as_views
from league.players import PlayContext, build_player, parse_player, resolve

PASS, BET = 0, 1


def advise(name: str, text: str, views: list[Any], seat: int, **more: Any) -> Advice:
    spec = get_spec(name)
    context = PlayContext(spec, spec.make())
    advisor = Advisor(resolve(parse_player(text)), context, num_views=len(views), **more)
    return advisor.advise(as_views(views, spec.state_dtype), seat, np.uint64(11))


def kuhn_view(hand: str, moves: list[str]) -> Any:
    spec = get_spec("kuhn")
    document = {"hand": hand, "moves": moves}
    state = spec.state_from_document(spec.make(), document, None)  # type: ignore[misc]
    sitting = Sitting(spec, spec.make(), 0)
    sitting.state = state
    return sitting.view(len(moves) % 2)


@pytest.mark.parametrize("text", ["random", "rules", "ismcts:60", "ismcts:1"])
@pytest.mark.parametrize("name", ["kuhn", "durak", "cuarenta"])
def test_the_best_action_is_the_players_own_and_all_have_values(name: str, text: str) -> None:
    spec = get_spec(name)
    game = spec.make()
    sitting = Sitting(spec, game, 3)
    view, seat = sitting.view(sitting.seat), sitting.seat
    found = advise(name, text, [view], seat, playouts=8)
    assert [row.action for row in found.actions] == legal_codes(spec, game, view)
    assert sum(row.share for row in found.actions) == pytest.approx(1.0)
    assert all(np.isfinite(row.value) for row in found.actions)
    player = build_player(resolve(parse_player(text)), PlayContext(spec, game, batch=1))
    chosen = np.zeros(1, np.int64)
    keys = np.array([make_rng(11, 0)[0]], np.uint64)
    player.act(as_views([view], spec.state_dtype), np.array([seat]), keys, chosen)
    assert found.best == chosen[0]
    assert advise(name, text, [view], seat, playouts=8) == found


@pytest.mark.parametrize("text", ["rules", "pimc:8x3", "ismcts:200"])
def test_who_holds_the_king_wins_the_bet_and_loses_the_ante_by_passing(text: str) -> None:
    found = advise("kuhn", text, [kuhn_view("K", ["bet"])], 1)
    assert found.best == BET
    assert [row.value for row in found.actions] == [-1.0, 2.0]


def test_playouts_find_what_a_call_with_the_queen_is_worth() -> None:
    # Jack or king, each as likely: plus two or minus two.
    spec = get_spec("kuhn")
    game, view = spec.make(), kuhn_view("Q", ["bet"])
    values = playout_values(spec, game, view, 1, [PASS, BET], make_rng(5), 4000)
    assert values[0] == -1.0
    assert values[1] == pytest.approx(0.0, abs=4 * 2 / np.sqrt(4000))


def test_the_value_is_for_the_side_of_the_seat_to_move() -> None:
    # Who has covered everything and is out of cards has won, with whatever seat.
    spec = get_spec("durak")
    game = spec.make("", {"players": 3})
    for attacker in range(3):
        hands: list[Any] = [["6C"], ["7C"], ["8C"]]
        hands[attacker], hands[(attacker + 1) % 3] = ["6S", "9D"], ["7S"]
        hands[(attacker + 2) % 3] = ["KC", "KD"]
        document = {"trump": "H", "hands": hands, "attacker": attacker, "moves": ["6S"]}
        state = spec.state_from_document(game, document, None)  # type: ignore[misc]
        seat = (attacker + 1) % 3
        sitting = Sitting(spec, game, 0)
        sitting.state = state
        codes = legal_codes(spec, game, sitting.view(seat))
        values = playout_values(spec, game, sitting.view(seat), seat, codes, make_rng(1), 64)
        assert values[codes.index(28)] == 0.5  # 7S: the others play on for the last place
        assert values.max() == 0.5


def test_several_views_share_the_budget_and_are_advised_together() -> None:
    spec = get_spec("durak")
    game = spec.make()
    given = {"trump": "H", "hands": [["7S", "9C"], ["8S", "9S"]]}
    views = []
    for seed in range(4):
        sitting = Sitting(spec, game, 0)
        state = spec.state_from_document(game, given, make_rng(seed))  # type: ignore[misc]
        sitting.state = state
        views.append(sitting.view(0))
    found = advise("durak", "ismcts:400", views, 0)
    assert len({view.tobytes() for view in views}) == 4
    shares = [row.share for row in found.actions]
    assert found.best == found.actions[int(np.argmax(shares))].action
    assert sum(shares) == pytest.approx(1.0)
    voted = advise("durak", "rules", views, 0)
    assert {row.share for row in voted.actions} == {0.0, 1.0}
