"""The encoder ``ranks`` of Cuarenta: what stands where, on positions that a reader can check.

* Every card is counted in exactly one of hand, table, piles and unseen.
* Sides and seats are relative to the observer; the flags between deals are set there alone.
* What a seat passed over is shown to the others, until it plays such a card or gets new ones.
* A candidate's features say what it plays, takes, scores and leaves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import rules
from engine.game import get_spec
from engine.games import cuarenta_encoder as enc
from engine.games.cuarenta_text import format_action
from engine.rng import below, make_rng
from engine.rules import CHANCE, TERMINAL

SPEC = get_spec("cuarenta")
GAME = SPEC.make()
TWO, THREE, FIVE, SIX, QUEEN, KING = 1, 2, 4, 5, 8, 9


def observe(state: Any, seat: int, game: Any = GAME) -> NDArray[np.float32]:
    view = SPEC.new_state()
    rules.view(game, state, seat, view)
    out = np.full(enc.OBSERVATION_SIZE, np.nan, np.float32)
    rules.observe(game, view, seat, 0, out)
    return out


def candidates(state: Any) -> dict[str, NDArray[np.float32]]:
    """Return the features of every legal action of seat 0 by its text."""
    view = SPEC.new_state()
    rules.view(GAME, state, 0, view)
    actions = np.zeros(SPEC.max_actions, np.int64)
    count = rules.legal_actions(GAME, view, actions)
    out = np.zeros((SPEC.max_actions, enc.ACTION_SIZE), np.float32)
    rules.describe_actions(GAME, view, 0, actions, count, out)
    return {format_action(GAME, view, int(actions[i])): out[i] for i in range(count)}


def position(**fields: Any) -> Any:
    document = {"table": ["2", "3", "Q"], "just_placed_index": 1, "hand": ["5", "3", "3"]}
    return SPEC.state_from_document(GAME, {**document, "score": 0, **fields})  # type: ignore[misc]


def test_every_card_is_counted_once() -> None:
    rng = make_rng(1)
    for preset in SPEC.presets:
        game = SPEC.make(preset)
        state = SPEC.new_state()
        rules.deal(game, state, np.uint64(5))
        actions = np.zeros(SPEC.max_actions, np.int64)
        while (mover := rules.current_seat(game, state)) != TERMINAL:
            for seat in range(game.players):
                out = observe(state, seat, game)
                # Hand and table have three levels: a fourth equal card in them is not counted.
                fours = sum(
                    (int(mask) >> 4 * rank & 15) == 15
                    for mask in (state.hands[seat], state.table)
                    for rank in range(10)
                )
                assert out[enc.O_HAND : enc.O_REF].sum() == 40 - fours
                between = mover == CHANCE
                assert out[enc.O_BETWEEN] == between
                assert out[enc.O_BETWEEN + 1] == (between and state.plies_in_hand == 40)
                assert out[enc.O_MOVER : enc.O_DEALER].sum() == (not between)
            if mover == CHANCE:
                rules.deal_next(game, state)
                continue
            count = rules.legal_actions(game, state, actions)
            rules.apply(game, state, actions[below(rng, count)])


def test_sections_of_an_observation() -> None:
    state = position(score=36, other_score=6)
    out = observe(state, 0)
    hand = out[enc.O_HAND : enc.O_TABLE].reshape(10, 3)
    assert hand[THREE].tolist() == [1, 1, 0]
    assert hand[FIVE].tolist() == [1, 0, 0]
    assert hand.sum() == 3
    table = out[enc.O_TABLE : enc.O_OWN_PILE].reshape(10, 3)
    assert np.flatnonzero(table[:, 0]).tolist() == [TWO, THREE, QUEEN]
    assert np.flatnonzero(out[enc.O_REF : enc.O_OWN_SCORE]).tolist() == [THREE]
    assert out[enc.O_OWN_SCORE : enc.O_OTHER_SCORE].tolist() == [1.0] * 18 + [0.0]
    assert out[enc.O_OTHER_SCORE : enc.O_HAND_SIZES].tolist() == [1.0] * 3 + [0.0] * 16
    sizes = out[enc.O_HAND_SIZES : enc.O_STOCK]
    assert np.allclose(sizes, [0.6, 0.4, 0.4, 0.4])
    assert np.allclose(out[enc.O_STOCK : enc.O_MOVER], [0.5, 0.0])
    assert np.isclose(out[enc.O_LEAD], 30 / 40)


def test_sides_and_seats_are_relative_to_the_observer() -> None:
    state = position(score=36, other_score=6)
    for seat in range(4):
        out = observe(state, seat)
        own = 18 if seat % 2 == 0 else 3
        assert out[enc.O_OWN_SCORE : enc.O_OTHER_SCORE].sum() == own
        assert np.isclose(out[enc.O_LEAD], 0.75 if seat % 2 == 0 else -0.75)
        # Seat 0 deals and is to move.
        for section in (enc.O_MOVER, enc.O_DEALER):
            assert np.flatnonzero(out[section : section + 4]).tolist() == [-seat % 4]


def test_what_a_seat_passed_over_is_seen_by_the_others() -> None:
    state = position(table=["2", "3", "Q"], hand=["7", "3", "K"])
    state.hands[1] = state.hands[0]  # so that seat 1 can be told what to play

    def passed(seat: int, of: int) -> dict[int, list[float]]:
        section = observe(state, seat)[enc.O_PASSED :].reshape(3, 10, 2)[(of - seat) % 4 - 1]
        return {rank: section[rank].tolist() for rank in range(10) if section[rank].any()}

    def act(text: str) -> None:
        actions = np.zeros(SPEC.max_actions, np.int64)
        count = rules.legal_actions(GAME, state, actions)
        (code,) = [a for a in actions[:count] if format_action(GAME, state, int(a)) == text]
        rules.apply(GAME, state, code)

    state.to_move = 0
    act("K")
    # 5 = 2 + 3 could have been taken; the ace, 4, 6, 7, jack and king take nothing.
    by_placing = [1.0, 0.0]
    expected = dict.fromkeys((TWO, THREE, FIVE, QUEEN), by_placing)
    for seat in (1, 2, 3):
        assert passed(seat, 0) == expected
    act("3 takes 3")
    by_taking = [0.0, 1.0]
    assert passed(0, 1) == dict.fromkeys((TWO, FIVE, QUEEN, KING), by_taking)
    assert passed(2, 0) == expected
    state.to_move = 0
    act("3")  # it held one after all
    del expected[THREE]
    assert passed(3, 0) == expected | {KING: by_placing}
    state.to_move = CHANCE
    assert passed(3, 0) == {}


def test_a_caida_among_the_candidates() -> None:
    features = candidates(position())["3 takes 3"]
    assert np.flatnonzero(features[:10]).tolist() == [THREE]
    assert features[enc.A_TAKEN + THREE] == 0.5
    assert np.flatnonzero(features[enc.A_LEFT : enc.A_LEFT + 10]).tolist() == [TWO, QUEEN]
    assert features[enc.A_CAIDA] == 1
    assert features[enc.A_LIMPIA] == 0
    assert features[enc.A_POINTS] == 0.5
    assert features[enc.A_WINS] == 0
    assert features[enc.A_COPIES : enc.A_COPIES + 2].tolist() == [1, 0]
    assert features[enc.A_NUM_LEFT : enc.A_NUM_LEFT + 3].tolist() == [0, 0, 1]


def test_a_winning_sum_that_clears_the_table() -> None:
    state = position(table=["2", "3"], just_placed_index=0, hand=["5"], score=36)
    state.scores[0] = 36
    assert candidates(state)["5 takes 2 3"][enc.A_WINS] == 0
    game = SPEC.make("", {"limpia_cap": "none"})
    state.scores[0] = 38
    view = SPEC.new_state()
    rules.view(game, state, 0, view)
    actions = np.zeros(SPEC.max_actions, np.int64)
    count = rules.legal_actions(game, view, actions)
    out = np.zeros((SPEC.max_actions, enc.ACTION_SIZE), np.float32)
    rules.describe_actions(game, view, 0, actions, count, out)
    features = out[0]
    assert features[enc.A_SUM] == 1
    assert features[enc.A_LIMPIA] == 1
    assert features[enc.A_WINS] == 1
    assert features[enc.A_NUM_LEFT] == 1
    assert np.isclose(features[enc.A_NUM_TAKEN], 2 / 6)


def test_a_placement() -> None:
    state = position(hand=["6", "3"])
    features = candidates(state)["6"]
    hidden = int(state.stock) | int(state.hands[1]) | int(state.hands[2]) | int(state.hands[3])
    unseen = (hidden >> 4 * SIX & 15).bit_count()
    assert unseen == 2
    assert features[enc.A_UNSEEN : enc.A_UNSEEN + 3].tolist() == [1, 1, 0]
    assert np.isclose(features[enc.A_LEFT_UNSEEN + SIX], 2 / 3)
    assert features[enc.A_PLACE] == 1
    assert features[enc.A_MATCH] == features[enc.A_SUM] == 0
    assert features[enc.A_TAKEN : enc.A_LEFT].sum() == 0
    left = np.flatnonzero(features[enc.A_LEFT : enc.A_LEFT_UNSEEN]).tolist()
    assert left == [TWO, THREE, SIX, QUEEN]
    assert np.isclose(features[enc.A_NUM_LEFT + 3], 0.4)
