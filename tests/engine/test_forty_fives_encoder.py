"""The encoders of Forty-fives: what stands where, on positions that a reader can check.

* ``symmetric`` does not know black suits apart: renaming them changes no number of it.
* Every trump is counted once; what a bucket hides of a candidate its features tell.
* Role, positions, bids, cards drawn, scores with their thresholds; plain suits led and lacked.
* Before trump is named the suit that the hand is worth most with comes first.
* ``full`` shows every card by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import rules
from engine.game import get_spec
from engine.games import forty_fives_encoder as enc
from engine.games import forty_fives_encoder_full as full
from engine.games import forty_fives_public as public
from engine.games.forty_fives_state import RANK_NAMES, SUIT_NAMES
from engine.games.forty_fives_text import card_name, format_action, parse_card
from engine.rng import below, make_rng
from engine.rules import CHANCE, TERMINAL
from tests.engine.forty_fives_controls import at_play, do, mask_of

SPEC = get_spec("forty_fives")
GAME = SPEC.make()
HANDS = ["9S KC 3H 4C 6D", "5S 10S KD QD 9D", "AH 3S 4D 2H 7D", "JS 3C QC 6H 7H"]
MASKS = ("hands", "thrown")


def observe(state: Any, seat: int, encoder: int = 0) -> NDArray[np.float32]:
    view = SPEC.new_state()
    rules.view(GAME, state, seat, view)
    out = np.full(SPEC.encoders[encoder].observation_size, np.nan, np.float32)
    rules.observe(GAME, view, seat, encoder, out)
    return out


def candidates(state: Any, encoder: int = 0) -> dict[str, NDArray[np.float32]]:
    """Return the features of every legal action by its text."""
    view = SPEC.new_state()
    rules.view(GAME, state, state.to_move, view)
    actions = np.zeros(SPEC.max_actions, np.int64)
    count = rules.legal_actions(GAME, view, actions)
    out = np.zeros((SPEC.max_actions, SPEC.encoders[encoder].action_size), np.float32)
    rules.describe_actions(GAME, view, encoder, actions, count, out)
    return {format_action(GAME, view, int(actions[i])): out[i] for i in range(count)}


def positions(seed: int, every: int = 1) -> Any:
    """Yield every ``every``-th position of the first hands of a random game."""
    rng = make_rng(seed)
    actions = np.zeros(SPEC.max_actions, np.int64)
    state = SPEC.new_state()
    rules.deal(GAME, state, np.uint64(seed))
    for number in range(260):
        mover = int(rules.current_seat(GAME, state))
        if mover == TERMINAL:
            return
        if number % every == 0:
            yield state, mover
        if mover == CHANCE:
            rules.deal_next(GAME, state)
        else:
            count = rules.legal_actions(GAME, state, actions)
            rules.apply(GAME, state, actions[below(rng, count)])


# --- symmetric ------------------------------------------------------------------------------------


def renamed(word: str) -> str:
    """Return an action with spades and clubs exchanged."""
    return word.translate(str.maketrans("SC", "CS"))


def rename_suits(state: Any) -> Any:
    """Return a state with spades and clubs exchanged."""
    changed = SPEC.new_states(1)
    changed[0] = state
    changed = changed[0]

    def swapped(card: int) -> int:
        return parse_card(renamed(card_name(card)))

    def swap(mask: Any) -> np.uint64:
        return np.uint64(sum(1 << swapped(card) for card in range(52) if int(mask) >> card & 1))

    for field in MASKS:
        for seat in range(4):
            changed[field][seat] = swap(state[field][seat])
    changed.kept, changed.stock = swap(state.kept), swap(state.stock)
    for i, card in enumerate(state.played):
        changed.played[i] = swapped(int(card)) if card >= 0 else -1
    for seat, lacks in enumerate(state.lacks):  # bits 0 and 3 are spades and clubs
        changed.lacks[seat] = int(lacks) & ~9 | (int(lacks) & 1) << 3 | (int(lacks) & 8) >> 3
    if state.trump >= 0:
        changed.trump = SUIT_NAMES.index(renamed(SUIT_NAMES[int(state.trump)]))
    if state.best_trump >= 0:
        changed.best_trump = swapped(int(state.best_trump))
    return changed


def test_renaming_black_suits_changes_nothing() -> None:
    compared = 0
    for seed in range(3):
        for state, mover in positions(seed):
            other = rename_suits(state)
            for seat in range(4):
                assert np.array_equal(observe(state, seat), observe(other, seat))
                # The test could fail: the other encoder knows suits apart.
                compared += not np.array_equal(observe(state, seat, 1), observe(other, seat, 1))
            # While discarding, plain cards of equal height are decided on by suit.
            if mover >= 0 and "keep" not in " ".join(candidates(state)):
                first, second = candidates(state), candidates(other)
                for word, features in first.items():
                    assert np.array_equal(features, second[renamed(word)])
    assert compared > 1000


def test_every_trump_is_counted_once() -> None:
    for state, _ in positions(1):
        if state.trump < 0:
            continue
        count = 13 if SUIT_NAMES[int(state.trump)] == "H" else 14
        for seat in range(4):
            found = observe(state, seat)[enc.O_OWN : enc.O_PLAIN].reshape(-1, enc.TRUMP_BITS)
            assert found[:, :6].sum() + 4 * found[:, 6:].sum() == count


def test_sections_of_an_observation() -> None:
    state = at_play(GAME, "S", HANDS)
    do(GAME, state, "KC")
    out = observe(state, 1)
    own = out[enc.O_OWN : enc.O_UNSEEN]
    assert list(own) == [1, 0, 0, 0, 0, 0, 0, 0.25]  # the five, and the ten among the lowest four
    # Plain suits by own cards: diamonds K Q 9; hearts and clubs none, clubs have more unseen.
    suits = out[enc.O_PLAIN : enc.O_TRICK].reshape(3, enc.SUIT_BITS)
    assert list(suits[0, :3]) == [1, 1, 0]
    assert suits[0, 3] == pytest.approx(1 / 3)
    assert suits[1:, :5].sum() == 0
    led = enc.PLAIN_BITS * 2 + 1
    assert sorted(suits[:, led]) == [0, 0, 1]
    # The king was led by the seat before: relative seat 3. It follows suit, and it wins.
    trick = out[enc.O_TRICK : enc.O_LACKS].reshape(4, enc.TRICK_BITS)
    assert list(trick[3]) == [1, 0, 0, 1, 1, 1]
    assert trick[:3].sum() == 0
    do(GAME, state, "9D")  # it has no club
    suits = observe(state, 2)[enc.O_PLAIN : enc.O_TRICK].reshape(3, enc.SUIT_BITS)
    assert suits[:, -1].sum() == 1  # of the seat before, relative seat 3: one suit
    assert suits[suits[:, led] == 1, -1] == 1


def test_trumps_that_a_seat_lacks() -> None:
    state = at_play(GAME, "S", ["JS KC 3H 4C 6D", "5S QD KD 2H 9D", "AH 3S 4D 2D 7D", "3C"])
    do(GAME, state, "JS", "9D")  # the five may be held back from the jack
    lacks = observe(state, 2)[enc.O_LACKS : enc.O_DISCARD].reshape(3, 4)
    assert list(lacks[2]) == [0, 1, 1, 1]
    assert lacks[:2].sum() == 0


def test_role_positions_bids_and_scores() -> None:
    state = at_play(GAME, "S", HANDS)
    state.scores[0], state.scores[1] = 105, -200
    state.drawn[1] = 2
    out = observe(state, 1)  # seat 3 has bid 20 and deals
    assert list(out[public.P_ROLE : public.P_HIGH]) == [1, 0, 0, 1]  # its supporter
    assert list(observe(state, 3)[public.P_ROLE : public.P_HIGH]) == [1, 0, 1, 0]
    assert list(observe(state, 0)[public.P_ROLE : public.P_HIGH]) == [0, 1, 0, 0]
    assert list(out[public.P_MOVER : public.P_DEALER]) == [0, 0, 0, 1]
    assert list(out[public.P_DEALER : public.P_LEADER]) == [0, 0, 1, 0]
    assert list(out[public.P_LEADER : public.P_BIDDER]) == [0, 0, 0, 1]
    assert list(out[public.P_BIDDER : public.P_ROLE]) == [0, 0, 1, 0]
    assert list(out[public.P_HIGH : public.P_BIDS]) == [0, 1, 0, 0, 0]
    bids = out[public.P_BIDS : public.P_HELD].reshape(4, 6)
    assert list(bids[2]) == [0, 1, 0, 0, 0, 0]
    assert list(bids[0]) == [0, 0, 0, 0, 0, 1]
    drawn = out[public.P_DRAWN : public.P_TRICKS].reshape(4, 6)
    assert [int(np.argmax(row)) for row in drawn] == [2, 5, 5, 5]
    assert out[public.P_NEEDED] == pytest.approx(20 / 30)
    assert out[public.P_OWN_SCORE] == -1
    marks = out[public.P_OTHER_SCORE + 1 : public.P_LEAD]
    assert list(marks) == [1] * 10 + [0, 0]  # 60, 65, .. 105
    assert list(out[public.P_OVER_100 : public.PUBLIC_SIZE]) == [0, 1, 1, 0]


def test_flags_of_chance_and_of_who_is_to_move() -> None:
    for state, mover in positions(2):
        for seat in range(4):
            out = observe(state, seat)
            assert out[public.P_CHANCE] == (mover == CHANCE)
            assert out[public.P_MOVER : public.P_DEALER].sum() == (mover != CHANCE)
            assert out[public.P_PHASE : public.P_CHANCE].sum() == 1


def test_the_suit_of_most_worth_comes_first_while_trump_is_open() -> None:
    state = SPEC.new_state()
    rules.deal(GAME, state, np.uint64(1))
    seat = int(state.to_move)
    state.hands[seat] = mask_of(["JC", "AC", "KC", "5D", "9S"])
    suits = observe(state, seat)[enc.O_SUITS : enc.O_OWN].reshape(4, enc.TRUMP_BITS + 1)
    assert list(suits[0, :6]) == [0, 1, 0, 1, 1, 0]  # clubs: jack, ace, king
    assert list(suits[1, :6]) == [1, 0, 0, 0, 0, 0]  # diamonds: the five
    assert [suit[-1] for suit in suits] == [0, 0, 0, 1]  # hearts: nothing


def test_features_of_a_candidate() -> None:
    state = at_play(GAME, "S", HANDS)
    do(GAME, state, "9S", "10S")
    found = candidates(state)
    assert set(found) == {"AH", "3S"}
    three = found["3S"]
    assert three[enc.A_KIND : enc.A_LEVEL].tolist() == [0, 0, 0, 0, 0, 1]
    # The third of the low black trumps: slots 6 2, 7 3.
    assert three[enc.A_CARD + 6] == 0.25
    assert three[enc.A_TRUMP] == 1
    assert three[enc.A_TRUMP + 1] == pytest.approx(7 / 14)
    assert three[enc.A_FOLLOWS : enc.A_BEST].tolist() == [0, 1, 1, 1, 0]
    assert three[enc.A_OWN :].tolist() == pytest.approx([2 / 5, 1 / 5])
    assert found["AH"][enc.A_BEST] == 0  # five and jack are unseen
    assert found["AH"][enc.A_BEST + 1] == pytest.approx(2 / 5)


def test_bucket_mates_are_told_apart() -> None:
    state = at_play(GAME, "S", ["2S 3S 4S 6S 7S", *HANDS[1:]])
    found = candidates(state)
    assert len({features.tobytes() for features in found.values()}) == 5


# --- full -----------------------------------------------------------------------------------------


def test_the_full_encoder_shows_every_card() -> None:
    state = at_play(GAME, "S", HANDS)
    do(GAME, state, "KC", "9D")
    out = observe(state, 2, 1)

    def cards(first: int) -> set[str]:
        return {card_name(card) for card in range(52) if out[first + card]}

    assert cards(full.F_HAND) == set(HANDS[2].split())
    assert cards(full.F_TRICK) == {"KC", "9D"}
    assert cards(full.F_LED) == {"KC"}
    assert cards(full.F_PLAYED + 3 * 52) == {"9D"}  # by the seat before
    assert cards(full.F_PLAYED + 2 * 52) == {"KC"}
    assert cards(full.F_LACKS + 2 * 52) == {rank + "C" for rank in RANK_NAMES}
    seen = {*HANDS[2].split(), "KC", "9D"} | cards(full.F_THROWN)
    assert cards(full.F_UNSEEN) == {card_name(card) for card in range(52)} - seen
    assert len(cards(full.F_THROWN)) == 5
    assert out[full.F_TRUMP : full.F_HAND].tolist() == [1, 0, 0, 0]
    found = candidates(state, 1)
    assert found["AH"][full.B_CARD + parse_card("AH")] == 1
    assert found["AH"][full.B_WINS :].tolist() == [1, 1]


def test_a_discard_shows_the_card_that_is_decided_on() -> None:
    for state, mover in positions(3):
        if mover < 0:
            continue
        for word, features in candidates(state, 1).items():
            card = features[full.B_CARD : full.B_WINS]
            if " " in word:
                assert card_name(int(np.argmax(card))) == word.split()[1]
                kept = observe(state, mover, 1)[full.F_KEPT : full.F_THROWN]
                assert kept.sum() == int(state.kept).bit_count()
            elif len(word) > 1 and word[0] in "A2345678910JQK" and word[-1] in SUIT_NAMES:
                assert card_name(int(np.argmax(card))) == word
            else:
                assert card.sum() == 0
