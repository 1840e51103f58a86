"""The encoder ``bits`` of Cuarenta, against a twin that counts on its fingers.

* 208 and 84 numbers, every one of them what the twin says, over random games of every preset:
  who has played how often is counted while the game is played, not read from the record.
* Candidates by hand: a caida, a limpia, both, a sum with a run, a placement; what they score is
  what playing them scores.
* Suits of own cards show; nothing else tells equal ranks apart.
* It says less than ``ranks``, and a model of the one encoder is refused by the other.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import rules
from engine.game import Encoder, get_spec
from engine.games import cuarenta_encoder_bits as enc
from engine.games.cuarenta_text import format_action
from engine.rng import below, make_rng
from engine.rules import CHANCE, TERMINAL

SPEC = get_spec("cuarenta")
GAME = SPEC.make()
ENCODER: Encoder = SPEC.encoder("bits")
ACE, TWO, THREE, FOUR, FIVE, QUEEN = 0, 1, 2, 3, 4, 8


def view_of(state: Any, seat: int, game: Any = GAME) -> Any:
    view = SPEC.new_state()
    rules.view(game, state, seat, view)
    return view


def observe(state: Any, seat: int, game: Any = GAME) -> NDArray[np.float32]:
    out = np.full(ENCODER.observation_size, np.nan, np.float32)
    rules.observe(game, view_of(state, seat, game), seat, ENCODER.code, out)
    return out


def describe(state: Any, game: Any = GAME) -> tuple[list[int], NDArray[np.float32]]:
    """Return the legal actions of the seat to move and their features."""
    view = view_of(state, int(state.to_move), game)
    actions = np.zeros(SPEC.max_actions, np.int64)
    count = int(rules.legal_actions(game, view, actions))
    out = np.full((count, ENCODER.action_size), np.nan, np.float32)
    rules.describe_actions(game, view, ENCODER.code, actions, count, out)
    return actions[:count].tolist(), out


def cards(mask: Any) -> list[int]:
    return [card for card in range(40) if int(mask) >> card & 1]


def one_hot(held: list[int]) -> list[float]:
    return [float(card in held) for card in range(40)]


def test_sizes() -> None:
    assert (ENCODER.observation_size, ENCODER.action_size) == (208, 84)
    assert (enc.O_OWN_SCORE, enc.A_CAIDA, enc.A_PLACE) == (200, 80, 83)


def expected_view(state: Any, seat: int, players: int, plays: Counter[int]) -> list[float]:
    own = seat % 2
    numbers = []
    for mask in (state.hands[seat], state.table, state.piles[own], state.piles[1 - own]):
        numbers += one_hot(cards(mask))
    numbers += one_hot([int(state.ref)])
    numbers += [int(state.scores[own]) / 40, int(state.scores[1 - own]) / 40]
    mover = int(state.to_move)
    numbers.append(((mover - seat) % players + 1) / 4 if mover >= 0 else 0.0)
    numbers.append(len(cards(state.stock)) / 40)
    turns = [plays[(seat + k) % players] / (40 / players) for k in range(players)]
    return numbers + turns + [0.0] * (4 - players)


def expected_action(before: Any, after: Any) -> list[float]:
    """Tell an action from what it did to the true state."""
    seat, side = int(before.to_move), int(before.to_move) % 2
    played = set(cards(before.hands[seat])) - set(cards(after.hands[seat]))
    caida = int(after.caidas[side] - before.caidas[side])
    limpia = int(after.limpias[side] - before.limpias[side])
    number = int(after.captured[side] - before.captured[side])
    (card,) = played
    gained = set(cards(after.piles[side])) - set(cards(before.piles[side])) - played
    taken = sorted(gained & set(cards(before.table)))
    assert number == len(taken)
    placed = card in cards(after.table)
    numbers = [*one_hot([card]), *one_hot(taken), float(caida), float(limpia), number / 6]
    return [*numbers, float(placed)]


@pytest.mark.parametrize("preset", SPEC.presets)
def test_every_number_is_what_the_twin_says(preset: str) -> None:
    game = SPEC.make(preset)
    seen: Counter[str] = Counter()
    for seed in range(3):
        rng = make_rng(seed)
        state = SPEC.new_state()
        rules.deal(game, state, np.uint64(seed))
        plays: Counter[int] = Counter()
        while (mover := int(rules.current_seat(game, state))) != TERMINAL:
            for seat in range(game.players):
                expected = np.array(expected_view(state, seat, game.players, plays), np.float32)
                np.testing.assert_array_equal(observe(state, seat, game), expected)
            if mover == CHANCE:
                if int(state.plies_in_hand) == 40:
                    assert set(plays.values()) == {40 // game.players}
                    plays.clear()
                rules.deal_next(game, state)
                continue
            actions, features = describe(state, game)
            chosen = below(rng, len(actions))
            after = state.copy()
            rules.apply(game, after, actions[chosen])
            if int(after.plies_in_hand) < 40:  # a hand's last ply may sweep the table as well
                expected = np.array(expected_action(state, after), np.float32)
                np.testing.assert_array_equal(features[chosen], expected)
                seen["caida"] += int(expected[enc.A_CAIDA])
                seen["limpia"] += int(expected[enc.A_LIMPIA])
                seen["placed"] += int(expected[enc.A_PLACE])
            rules.apply(game, state, actions[chosen])
            plays[mover] += 1
    assert min(seen["caida"], seen["limpia"], seen["placed"]) > 0


def position(**fields: Any) -> Any:
    document = {"table": ["2", "3", "Q"], "just_placed_index": 1, "hand": ["5", "3", "3"]}
    return SPEC.state_from_document(GAME, {**document, "score": 0, **fields})  # type: ignore[misc]


def candidates(state: Any) -> dict[str, NDArray[np.float32]]:
    """Return the features of every legal action of seat 0 by its text."""
    actions, features = describe(state)
    view = view_of(state, 0)
    return {format_action(GAME, view, a): f for a, f in zip(actions, features, strict=True)}


def ranks(section: NDArray[np.float32]) -> list[int]:
    return [card // 4 for card in np.flatnonzero(section).tolist()]


def scoring(features: NDArray[np.float32]) -> list[float]:
    """Return caida, limpia, number taken, placed."""
    caida, limpia, number, placed = features[enc.A_CAIDA :].tolist()
    return [caida, limpia, round(6 * number), placed]


def test_candidates_by_hand() -> None:
    found = candidates(position(hand=["5", "3", "A"]))
    caida = found["3 takes 3"]
    assert ranks(caida[: enc.A_TAKEN]) == ranks(caida[enc.A_TAKEN : enc.A_CAIDA]) == [THREE]
    assert scoring(caida) == [1, 0, 1, 0]
    total = found["5 takes 2 3"]
    assert ranks(total[: enc.A_TAKEN]) == [FIVE]
    assert ranks(total[enc.A_TAKEN : enc.A_CAIDA]) == [TWO, THREE]
    assert scoring(total) == [0, 0, 2, 0]
    placed = found["A"]
    assert ranks(placed[: enc.A_TAKEN]) == [ACE]
    assert scoring(placed) == [0, 0, 0, 1]
    # A caida that clears counts as the caida alone where the two pay two points together.
    both = candidates(position(table=["3"], just_placed_index=0, hand=["3", "A"]))
    assert scoring(both["3 takes 3"]) == [1, 0, 1, 0]
    limpia = candidates(position(table=["2", "3"], just_placed_index=0, hand=["5", "A"]))
    assert scoring(limpia["5 takes 2 3"]) == [0, 1, 2, 0]


def test_the_card_played_is_the_lowest_suit_held() -> None:
    state = position(hand=["3", "3", "A"])
    held = [card for card in cards(state.hands[0]) if card // 4 == THREE]
    assert len(held) == 2
    features = candidates(state)["3 takes 3"]
    assert np.flatnonzero(features[: enc.A_TAKEN]).tolist() == [min(held)]
    assert np.flatnonzero(observe(state, 0)[: enc.O_TABLE]).tolist() == cards(state.hands[0])
