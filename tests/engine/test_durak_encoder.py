"""The encoders of Durak, on positions that a reader can check.

* Every card is counted once: own hand, table, discard and what is unseen make 36.
* ``report_d`` has 235 numbers and 37 actions, 73 with transfers, each at the place that it names.
* ``suits``: positions that are equal up to the names of plain suits look the same; seats are
  counted from the observer; a candidate says what it plays, beats, takes and leaves.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import rules
from engine.game import get_spec
from engine.games import durak_encoder as enc
from engine.games import durak_encoder_d as enc_d
from engine.games.durak_text import card_of
from engine.rng import below, make_rng
from engine.rules import CHANCE, TERMINAL
from tests.engine.test_durak_rules import legal, line

SPEC = get_spec("durak")


def observe(game: Any, state: Any, seat: int, encoder: str) -> NDArray[np.float32]:
    view = SPEC.new_state()
    rules.view(game, state, seat, view)
    out = np.full(SPEC.encoder(encoder).observation_size, np.nan, np.float32)
    rules.observe(game, view, seat, SPEC.encoder(encoder).code, out)
    return out


def candidates(game: Any, state: Any, encoder: str) -> dict[str, NDArray[np.float32]]:
    """Return the features of every legal action of the seat to move by its text."""
    view = SPEC.new_state()
    rules.view(game, state, int(state.to_move), view)
    actions = np.zeros(SPEC.max_actions, np.int64)
    count = int(rules.legal_actions(game, view, actions))
    out = np.zeros((count, SPEC.encoder(encoder).action_size), np.float32)
    rules.describe_actions(game, view, SPEC.encoder(encoder).code, actions, count, out)
    return {SPEC.format_action(game, view, int(actions[i])): out[i] for i in range(count)}


def test_sizes_of_report_d() -> None:
    sizes = [
        (SPEC.encoder(name).observation_size, SPEC.encoder(name).action_size)
        for name in ("report_d", "report_d_transfer")
    ]
    assert sizes == [(235, 37), (235, 73)]


@pytest.mark.parametrize("preset", list(SPEC.presets))
def test_every_card_is_counted_once(preset: str) -> None:
    game = SPEC.make(preset)
    state = SPEC.new_state()
    actions = np.zeros(SPEC.max_actions, np.int64)
    rng = make_rng(1)
    rules.deal(game, state, np.uint64(5))
    while (mover := rules.current_seat(game, state)) != TERMINAL:
        seat = int(state.plies) % game.players
        out = observe(game, state, seat, "report_d")
        table = slice(enc_d.D_ATTACKS, enc_d.D_DISCARD)
        sections = [out[: enc_d.D_TAKEN], out[table], out[enc_d.D_DISCARD : enc_d.D_TRUMP]]
        assert sum(section.sum() for section in sections) == 36
        own = observe(game, state, seat, "suits")
        bottom = 1 if state.stock_size > 0 else 0
        assert own[: enc.O_SEATS].sum() - own[enc.O_SHOWN : enc.O_OPEN].sum() == 36 - bottom
        if mover == CHANCE:
            rules.deal_next(game, state)
            continue
        count = rules.legal_actions(game, state, actions)
        rules.apply(game, state, actions[below(rng, count)])


def test_sections_of_report_d() -> None:
    hands = [["7S", "7D", "9C", "10C"], ["9S", "KD", "QC", "6C"]]
    game, state = line(hands, ["7S", "take", "7D", "pass", "9C"], talon=["AC", "6S", "9H"])
    out = observe(game, state, 0, "report_d")
    # Seat 0 drew both cards; seat 1 took two, and holds six.
    held = {card_of(card) for card in ("10C", "AC", "6S", "9H")}
    assert set(np.flatnonzero(out[:36]) - enc_d.D_HAND) == held
    taken = {enc_d.D_TAKEN + card_of(card) for card in ("7S", "7D")}
    assert set(np.flatnonzero(out[36:72]) + 36) == taken
    assert np.flatnonzero(out[72:108]).tolist() == [card_of("9C")]
    assert out[108:144].sum() == 0
    assert out[144:180].sum() == 25
    unseen = {card_of(card) for card in ("7S", "7D", "9S", "KD", "QC", "6C")}
    assert set(np.flatnonzero(out[180:216])) == unseen
    assert out[216:220].tolist() == [0, 0, 1, 0]
    assert np.flatnonzero(out[220:229]).tolist() == [3]
    assert np.allclose(out[229:], [0, 6 / 36, 1, 1, 1, 0])
    assert np.allclose(observe(game, state, 1, "report_d")[229:], [0, 4 / 36, 0, 1, 1, 1])


def test_actions_of_report_d() -> None:
    hands = [["7S", "KS", "QS"], ["7H", "KC"]]
    game, state = line(hands, ["7S"], rules={"transfer": True})
    found = {
        text: np.flatnonzero(row).tolist()
        for text, row in candidates(game, state, "report_d_transfer").items()
    }
    seven = card_of("7H")
    assert found == {"7H": [seven], "take": [36], "transfer:7H": [37 + seven]}
    game, state = line([["7S"], ["7H", "KC"]], ["7S"])
    found = {
        text: np.flatnonzero(row).tolist()
        for text, row in candidates(game, state, "report_d").items()
    }
    assert found == {"7H": [seven], "take": [36]}


def renamed(cards: list[str], suits: dict[str, str]) -> list[str]:
    return [card[:-1] + suits[card[-1]] for card in cards]


def test_names_of_plain_suits_do_not_matter() -> None:
    hands = [["7S", "7D", "9C", "10C", "JH"], ["9S", "KD", "QC", "6C", "AS"], ["8D", "8S"]]
    moves = ["7S", "9S", "pass", "pass", "6C", "8D"]
    moves = ["7S", "take", "7D", "pass", "pass", "8S"]
    seen = set()
    for plain in itertools.permutations("CDS"):
        suits = dict(zip("CDS", plain, strict=True)) | {"H": "H"}
        game, state = line([renamed(hand, suits) for hand in hands], renamed(moves[:1], suits))
        for move in moves[1:]:
            text = move if move in ("take", "pass") else renamed([move], suits)[0]
            names = legal(game, state)
            actions = np.zeros(SPEC.max_actions, np.int64)
            rules.legal_actions(game, state, actions)
            rules.apply(game, state, actions[names.index(text)])
        rows = sorted(row.tobytes() for row in candidates(game, state, "suits").values())
        views = [observe(game, state, seat, "suits").tobytes() for seat in range(3)]
        seen.add((*rows, *views))
    assert len(seen) == 1


def test_seats_are_counted_from_the_observer() -> None:
    hands = [["7S", "KS"], ["8S", "6D", "9D"], ["9C", "9D"[:1] + "H"]]
    game, state = line(hands, ["7S", "8S", "pass"])
    assert state.to_move == 2
    for seat in range(3):
        seats = observe(game, state, seat, "suits")[enc.O_SEATS : enc.O_BOTTOM].reshape(4, 10)
        assert np.allclose(
            seats[:, 0] * 6, [[1, 2, 2, 0][(seat + k) % 3] if k < 3 else 0 for k in range(4)]
        )
        for column, wanted in ((6, 0), (7, 1), (8, 2), (9, 0)):
            assert np.flatnonzero(seats[:, column]).tolist() == [(wanted - seat) % 3]


def test_candidates_of_a_defender() -> None:
    hands = [["7S", "KS", "QS"], ["9S", "7H", "9C", "KC"]]
    game, state = line(hands, ["7S"])
    found = candidates(game, state, "suits")
    assert set(found) == {"9S", "7H", "take"}
    cover = found["9S"]
    assert np.flatnonzero(cover[: enc.A_RANK]).tolist() == [enc.K_COVER]
    assert np.flatnonzero(cover[enc.A_RANK : enc.A_SUIT]).tolist() == [3]
    assert np.isclose(cover[enc.A_MARGIN], 2 / 8)
    assert cover[enc.A_RUFF] == 0
    assert cover[enc.A_NEW_RANK] == 1
    assert cover[enc.A_COPIES : enc.A_UNSEEN].tolist() == [1, 0, 0]
    ruff = found["7H"]
    assert ruff[enc.A_RUFF] == 1
    assert ruff[enc.A_NEW_RANK] == 0
    assert np.flatnonzero(ruff[enc.A_SUIT : enc.A_NUM]).tolist() == [0]
    assert np.isclose(ruff[enc.A_COST], 10 / 17)
    take = found["take"]
    assert np.flatnonzero(take[: enc.A_RANK]).tolist() == [enc.K_TAKE]
    assert np.isclose(take[enc.A_TAKEN], 1 / 12)
    assert take[enc.A_RANK : enc.A_LEFT].sum() == 0


def test_plies_left_are_seen() -> None:
    game = SPEC.make("", {"max_plies": 100})
    state = SPEC.new_state()
    rules.deal(game, state, np.uint64(1))
    state.plies = 75
    out = observe(game, state, 0, "suits")
    assert np.allclose(out[enc.O_PLIES : enc.O_GAME], [0.25, 0.5])
