"""Position documents: mistakes, and what the seat to move cannot know.

* Every mistake is a ValueError that names the value and what is allowed; whatever JSON can hold.
* With a generator the document is reduced to what the seat to move knows: other hands in it make no
  difference at all, and what it leaves open differs from draw to draw.
* A card that is played from a hand of unknown cards was in it; every card is in one place.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import rules
from engine.documents import MOST_SHOWN, shown
from engine.game import game_names, get_spec
from engine.games.durak_rules import discarded
from engine.games.durak_text import cards_of
from engine.notation import legal_moves
from engine.rng import make_rng

CASES = Path(__file__).parents[1] / "cases"
LINE: dict[str, Any] = {
    "trump": "H",
    "hands": [6, ["7S", "8S", "9C", "6H", "KD", "QD"]],
    "talon": 24,
    "turned_up": "9H",
    "discard_count": 0,
    "moves": ["6S"],
}
GOOD = {
    "cuarenta": {"table": ["2", "3"], "hand": ["5"]},
    "durak": LINE,
    "forty_fives": {"trump": "S", "hand": ["5S", "10S", "KD"], "led": "9S"},
    "kuhn": {"hand": "Q", "moves": ["pass", "bet"]},
    "leduc": {"hand": "Q", "moves": ["check", "raise", "call"], "board": "K"},
}


def position(name: str, document: dict[str, Any], seed: int | None = None) -> Any:
    spec = get_spec(name)
    rng = None if seed is None else make_rng(seed)
    return spec.state_from_document(spec.make(), document, rng)  # type: ignore[misc]


def test_every_game_reads_documents() -> None:
    for name in game_names():
        state = position(name, GOOD[name])
        assert legal_moves(get_spec(name), get_spec(name).make(), state)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("cuarenta", {"hand": ["A"] * 51}, "hand of 51 cards: allowed are 1 to 5"),
        ("cuarenta", {"hand": "5"}, "hand '5': allowed is a list of cards"),
        ("cuarenta", {"hand": [None]}, "hand has None: allowed are cards as words"),
        ("cuarenta", {"table": ["A"] * 5}, "rank 'A': more than 4"),
        ("cuarenta", {"table": ["J", "Q"], "hand": ["K"] * 5}, "rank 'K': more than 4"),
        ("cuarenta", {"just_placed_index": True}, "just_placed_index True: allowed are 0 to 1 or"),
        ("cuarenta", {"score": "38"}, "score '38': allowed are 0 to 39"),
        ("cuarenta", {"scores": 3}, "key 'scores' of a position: allowed are hand, table, just_pl"),
        ("cuarenta", {"kind": "count"}, "position of kind 'count': allowed is ply"),
        ("durak", {"hands": [6, 31]}, "31 cards that are not named"),
        ("durak", {"hands": [6, 37]}, "hand of seat 1 37: allowed are 0 to 36"),
        ("durak", {"hands": [6, ["7S"] * 2]}, "card '7S': it is in two places"),
        ("durak", {"hands": [6, 6, 6]}, "3 hands: 2 are needed .rule option players = 2"),
        ("durak", {"hands": {}}, "hands {}: allowed is a list of hands"),
        ("durak", {"talon": 25}, "talon 25: allowed are 0 to 24 cards"),
        ("durak", {"turned_up": "9S"}, "talon ends with 9S: its last card is a trump"),
        ("durak", {"talon": 0}, "turned_up: allowed beside a talon"),
        ("durak", {"moves": ["6S"] * 2}, "move '6S': allowed are"),
        ("durak", {"moves": {"6S": 1}}, "moves {'6S': 1}: allowed is a list of moves"),
        ("durak", {"attacker": 1.5}, "attacker 1.5: allowed are 0 to 1"),
        ("durak", {"trump": ["H"]}, r"trump \['H'\]: allowed are C, D, H, S"),
        ("durak", {"discard": ["7S"]}, "card '7S': it is in two places"),
        ("forty_fives", {"hand": ["5S"] * 51}, "hand of 51 cards: allowed are 1 to 5"),
        ("forty_fives", {"led": "5S"}, "card '5S': named twice"),
        ("forty_fives", {"led": 9}, "card 9: allowed are a rank of"),
        ("forty_fives", {"bid": 20}, "key 'bid' of a position: allowed are trump, hand, led"),
        ("kuhn", {"hand": "10"}, "hand '10': allowed are J, Q, K"),
        ("kuhn", {"moves": ["fold"]}, "move 'fold': allowed are pass, bet"),
        ("leduc", {"board": None}, "board None: allowed is a card, since it is turned up"),
        ("leduc", {"moves": []}, "board 'K': allowed is null before it is shown"),
    ],
)
def test_a_mistake_names_the_value_and_what_is_allowed(
    name: str, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        position(name, {**GOOD[name], **change})
    assert "\n" not in str(caught.value)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@given(st.data())
def test_whatever_json_holds_is_a_position_or_a_mistake_of_one_line(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(GOOD)))
    keys = [*GOOD[name], "kind", "bids_so_far", "is_dealer", "score", "discard", "other"]
    key = data.draw(st.sampled_from(keys))
    document = {**GOOD[name], key: data.draw(JSON_VALUES)}
    for seed in (None, 1):
        try:
            position(name, document, seed)
        except ValueError as error:
            assert "\n" not in str(error)  # noqa: PT017 - most values are mistakes, not all


def test_a_long_value_is_not_repeated_in_full() -> None:
    assert len(shown(["7S"] * 10_000)) == MOST_SHOWN
    assert shown("a\nb") == r"'a\nb'"


# --- what the seat to move knows ------------------------------------------------------------------


def drawn(document: dict[str, Any], seeds: int = 12) -> list[bytes]:
    return [position("durak", document, seed).tobytes() for seed in range(seeds)]


@pytest.mark.parametrize(
    "hands",
    [
        [["6S", "6C", "7C", "8C", "10C", "JC"], LINE["hands"][1]],
        [["6S", "AH", "KH", "QH", "JH", "10H"], LINE["hands"][1]],
    ],
)
def test_the_cards_of_others_make_no_difference(hands: list[Any]) -> None:
    assert drawn({**LINE, "hands": hands}) == drawn(LINE)


def test_the_order_of_the_stock_makes_no_difference() -> None:
    given = {"trump": "H", "hands": [["6S", "7S"], ["8S", "9S"]], "moves": ["6S"]}
    stocks = [["6C", "7C", "8C", "9H"], ["8C", "6C", "AD", "9H"], 4]
    first, second, third = (
        drawn({**given, "talon": stock, **({"turned_up": "9H"} if stock == 4 else {})})
        for stock in stocks
    )
    assert first == second == third


def test_the_discard_pile_does_not_tell_what_others_hold() -> None:
    # All cards but the four are gone, and which they are was not written down.
    given = {"trump": "H", "hands": [["7S", "9C"], ["8S", "9S"]]}
    spec = get_spec("durak")
    held = set()
    for seed in range(40):
        state = position("durak", given, seed)
        view = spec.new_state()
        rules.view(spec.make(), state, 0, view)
        assert cards_of(view.hands[0]) == ["9C", "7S"]
        held |= set(cards_of(state.hands[1]))
    assert len(held) > 25
    assert not held & {"7S", "9C"}


def test_cards_that_the_document_names_as_gone_are_gone() -> None:
    gone = ["6C", "7C", "8C", "10C", "JC", "QC", "KC", "AC"]
    given = {"trump": "H", "hands": [["7S", "9C"], 2], "discard": gone}
    for seed in range(20):
        state = position("durak", given, seed)
        assert not set(cards_of(state.hands[1])) & set(gone)
        assert set(gone) <= set(cards_of(discarded(state)))


def test_what_is_played_from_unknown_cards_was_among_them() -> None:
    moves = ["6S", "8S", "8D", "KD"]
    for seed in (None, *range(5)):
        state = position("durak", {**LINE, "moves": moves}, seed)
        assert [int(size) for size in state.sizes[:2]] == [4, 4]
        masks = [state.hands[0], state.hands[1], state.covers, discarded(state)]
        places = [card for mask in masks for card in range(36) if int(mask) >> card & 1]
        places += [int(card) for card in state.attacks[: state.num_attacks]]
        places += [int(card) for card in state.stock[: state.stock_size]]
        assert sorted(places) == list(range(36))


def test_draws_of_every_case_differ_in_what_is_open_alone() -> None:
    for path in sorted(CASES.glob("*.json")):
        spec = get_spec(path.stem)
        for case in json.loads(path.read_text()):
            if case["kind"] not in ("ply", "line", "follow", "auction"):
                continue
            options = dict(case.get("rules", {}))
            game = spec.make(options.pop("preset", ""), options)
            read = spec.state_from_document
            assert read is not None
            given = read(game, case, None)
            moves = legal_moves(spec, game, given)
            states = [read(game, case, make_rng(seed)) for seed in range(4)]
            for state in states:
                assert legal_moves(spec, game, state) == moves
                assert rules.current_seat(game, state) == rules.current_seat(game, given)
