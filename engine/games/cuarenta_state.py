"""Cuarenta: rule options, the state record, and the codes of actions.

Room: engine. May import: engine.bits, engine.game (Option), engine.layout, engine.rules
(sentinels), numpy.

A card is ``rank * 4 + suit`` with ranks A 2 3 4 5 6 7 J Q K = 0 .. 9, so that a rank is a nibble of
a card mask. A "thermometer" of a mask has the lowest ``c`` bits of a nibble set when the mask holds
``c`` cards of that rank: suits are gone, and "holds at least these cards" is one AND.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.game import Option
from engine.layout import SHOWN_TO_NONE, SHOWN_TO_OWN, Field
from engine.rules import TERMINAL

NUM_RANKS, NUM_SUITS, NUM_CARDS = 10, 4, 40
RANK_NAMES = ("A", "2", "3", "4", "5", "6", "7", "J", "Q", "K")
NUM_NUMBERS = 7
"""Ranks 0 .. 6 have the values 1 .. 7; the faces have none."""
CARDS_PER_DEAL = 5
MAX_SEATS = 4
MAX_HANDS = 100
"""Players who may leave a card where it lies could go on for ever. After this many hands (games
between random players take eight, or 20 under the options that pay least) the higher score wins,
and an equal score is a draw."""
MAX_PLIES = MAX_HANDS * NUM_CARDS
WIN_BONUS = 20.0

# --- options: the int that the kernels see --------------------------------------------------------
RUN_MANDATORY, RUN_OPTIONAL, RUN_NONE = 0, 1, 2
EXACTLY_TWO, TWO_OR_MORE = 0, 1
BY_MATCH, BY_ANY = 0, 1
TAKES_ONE, TAKES_ALL_EQUAL = 0, 1
BEFORE_PLY, AFTER_CAIDA = 0, 1
SPLIT_BOTH_6, SPLIT_NEXT_6, SPLIT_NEXT_2 = 0, 1, 2
HIGHER_TOTAL, NON_DEALING_SIDE = 0, 1
NEVER = 1000
"""Code of a cap that no score reaches."""


class Cuarenta(NamedTuple):
    """Options of Cuarenta; the defaults are the preset ``report_a_4p``."""

    players: int = 4
    sum_cards: int = EXACTLY_TWO
    must_capture: int = 0
    run: int = RUN_MANDATORY
    run_after_sum: int = 1
    caida_by: int = BY_MATCH
    caida_across_deals: int = 0
    caida_ref_sticky: int = 0
    caida_plus_limpia: int = 2
    limpia_cap: int = 38
    limpia_cap_test: int = BEFORE_PLY
    carton_cutoff: int = NEVER
    ronda: int = 0
    ronda_cap: int = 30
    ronda_reveals_rank: int = 0
    four_of_a_kind: int = 0
    below20: int = 0
    split_20_20: int = SPLIT_BOTH_6
    leftover: int = 0
    match_takes: int = TAKES_ONE
    end_mid_deal: int = 1
    first_to_play: int = 0
    target: int = 40
    both_40: int = HIGHER_TOTAL


_NO_YES = {"no": 0, "yes": 1}

OPTIONS: dict[str, Option] = {
    "players": Option(values={"2": 2, "4": 4}, help="seats; four play as two teams"),
    "sum_cards": Option(
        values={"2": EXACTLY_TWO, "2+": TWO_OR_MORE},
        help="table cards that a sum is made of: exactly two, or two and more",
    ),
    "must_capture": Option(values=_NO_YES, help="whether a card that can capture has to"),
    "run": Option(
        values={"mandatory": RUN_MANDATORY, "optional": RUN_OPTIONAL, "none": RUN_NONE},
        help="whether a capture goes on with the ranks that follow, in full or as far as wanted",
    ),
    "run_after_sum": Option(values=_NO_YES, help="whether a sum may be followed by a run"),
    "caida_by": Option(
        values={"match": BY_MATCH, "any": BY_ANY},
        help="a caida is a match of the last placed card, or any capture that takes it",
    ),
    "caida_across_deals": Option(
        values=_NO_YES, help="whether the last card of a deal can be taken by caida in the next"
    ),
    "caida_ref_sticky": Option(
        values=_NO_YES, help="whether a placed card stays open to a caida until the next placement"
    ),
    "caida_plus_limpia": Option(values={"2": 2, "4": 4}, help="points of a caida that clears"),
    "limpia_cap": Option(
        values={"38": 38, "none": NEVER}, help="score from which clearing the table pays nothing"
    ),
    "limpia_cap_test": Option(
        values={"before": BEFORE_PLY, "after_caida": AFTER_CAIDA},
        help="score that the cap is held against: before the ply, or with its caida added",
    ),
    "carton_cutoff": Option(
        values={"none": NEVER, "30": 30, "38": 38},
        help="score from which a side gets nothing for its pile",
    ),
    "ronda": Option(values={"0": 0, "2": 2, "4": 4}, help="points for three of a rank dealt"),
    "ronda_cap": Option(low=0, high=40, help="score from which a ronda pays nothing"),
    "ronda_reveals_rank": Option(values=_NO_YES, help="whether the rank of a ronda is shown"),
    "four_of_a_kind": Option(
        values={"off": 0, "wins": 1}, help="whether four of a rank dealt win the game"
    ),
    "below20": Option(
        values={"0": 0, "2": 2}, help="points for the bigger pile when no side has 20 cards"
    ),
    "split_20_20": Option(
        values={"6-6": SPLIT_BOTH_6, "6_next_dealer": SPLIT_NEXT_6, "2_next_dealer": SPLIT_NEXT_2},
        help="points when both piles have 20 cards",
    ),
    "leftover": Option(
        values={"nobody": 0, "last_capturer": 1},
        help="who gets the cards that lie on the table at the end of a hand",
    ),
    "match_takes": Option(
        values={"one": TAKES_ONE, "all_equal": TAKES_ALL_EQUAL},
        help="whether a match takes one card or all cards of its rank",
    ),
    "end_mid_deal": Option(values=_NO_YES, help="whether the target ends the game at once"),
    "first_to_play": Option(
        values={"seat_after_dealer": 0, "non_dealer": 0}, help="who plays first in every deal"
    ),
    "target": Option(low=2, high=40, help="score that wins"),
    "both_40": Option(
        values={"higher_total": HIGHER_TOTAL, "non_dealing_side": NON_DEALING_SIDE},
        help="who wins when the count lifts both sides to the target",
    ),
}

PRESETS: dict[str, Cuarenta] = {
    "report_a_4p": Cuarenta(),
    "report_a_literal": Cuarenta(caida_by=BY_ANY, caida_plus_limpia=4),
    "report_b_2p": Cuarenta(
        players=2,
        sum_cards=TWO_OR_MORE,
        must_capture=1,
        caida_plus_limpia=4,
        ronda=2,
        four_of_a_kind=1,
        below20=2,
        split_20_20=SPLIT_NEXT_6,
    ),
}

# --- state ----------------------------------------------------------------------------------------
NO_CARD = -1
NOBODY = -1
RONDA_UNKNOWN = 0
"""Nothing can be told: the switch is off, or the side was at the cap."""
RONDA_ABSENT = 1
"""The seat would have been paid and announced nothing: it was not dealt exactly three of a rank."""
RONDA_ANNOUNCED = 2
RONDA_RANK = 3
"""``RONDA_RANK + rank`` where the rank is shown."""

PASSED_BY_PLACING, PASSED_BY_TAKING = 0, 16
"""First bits of the ranks in ``passed``, of two kinds: a card of the rank would have taken
something, and the seat placed another card, or took with another one. Who holds the rank seldom
does that. It follows from what all saw; forgotten when the seat plays the rank, and with new cards.
"""

STATE: np.dtype[Any] = np.dtype(
    (
        np.record,
        [
            ("hands", np.uint64, (MAX_SEATS,)),  # hidden: 0 in the views of other seats
            ("played", np.uint64, (MAX_SEATS,)),  # cards that a seat played of its present five
            ("table", np.uint64),
            ("piles", np.uint64, (2,)),  # by side
            ("stock", np.uint64),  # hidden; the next cards are a function of (seed, hand, deal)
            ("seed", np.uint64),  # hidden: 0 in views
            ("scores", np.int16, (2,)),
            ("captured", np.int16, (2,)),  # table cards taken in the whole game
            ("caidas", np.int16, (2,)),
            ("limpias", np.int16, (2,)),  # those that paid
            ("carton", np.int16, (2,)),  # points of all counts
            ("plies_in_hand", np.int8),  # 0 .. 40
            ("hand_index", np.int8),  # plies of the game: 40 * hand_index + plies_in_hand
            ("dealer", np.int8),
            ("to_move", np.int8),  # seat, CHANCE or TERMINAL
            ("winner", np.int8),  # side; NOBODY: not over, or drawn
            ("ref", np.int8),  # card open to a caida, or NO_CARD
            ("ref_seat", np.int8),  # who placed it; 0 when there is none
            ("last_capturer", np.int8),  # side, or NOBODY, in this hand
            ("ronda", np.int8, (MAX_SEATS,)),  # RONDA_* of the present five cards
            ("passed", np.int32, (MAX_SEATS,)),  # bits PASSED_* + rank, of the present five cards
        ],
    )
)

ALL_CARDS = np.uint64(0xFFFFFFFFFF)


def fields(game: Cuarenta) -> dict[str, Field]:
    """Return what the fields of a record may hold."""
    cards, seats = int(ALL_CARDS), game.players
    ranks = (1 << NUM_RANKS) - 1
    choices = ranks << PASSED_BY_PLACING | ranks << PASSED_BY_TAKING
    hand = {"cards": cards, "most": CARDS_PER_DEAL, "used": seats}
    points = Field(0, MAX_PLIES)  # of a game; no feature is indexed by them
    return {
        "hands": Field(**hand, shown=SHOWN_TO_OWN),
        "played": Field(**hand),
        "table": Field(cards=cards),
        "piles": Field(cards=cards),
        "stock": Field(cards=cards, shown=SHOWN_TO_NONE),
        "seed": Field(cards=(1 << 64) - 1, shown=SHOWN_TO_NONE),
        "scores": points,
        "captured": points,
        "caidas": points,
        "limpias": points,
        "carton": points,
        "plies_in_hand": Field(0, NUM_CARDS),
        "hand_index": Field(0, MAX_HANDS - 1),
        "dealer": Field(0, seats - 1),
        "to_move": Field(TERMINAL, seats - 1),
        "winner": Field(NOBODY, 1),
        "ref": Field(NO_CARD, NUM_CARDS - 1),
        "ref_seat": Field(0, seats - 1),
        "last_capturer": Field(NOBODY, 1),
        "ronda": Field(0, RONDA_RANK + NUM_RANKS - 1, used=seats),
        "passed": Field(cards=choices, used=seats),
    }


# --- actions --------------------------------------------------------------------------------------
# code = rank << 10 | base << 4 | run. Ascending code is by rank, then match, sums, placement; with
# optional runs by their length. ``run`` is the number of cards that the run adds.
RANK_SHIFT, BASE_SHIFT, RUN_MASK, BASE_MASK = 10, 4, 15, 63
MATCH, PLACE = 0, 63
"""Bases; 1 .. 33 are rows of SUM_NEED."""

LOW_BITS = np.uint64(0x1111111111)
"""The lowest suit of every rank."""
NIBBLE = np.uint64(15)


def _partitions(total: int, largest: int) -> list[list[int]]:
    """Return all multisets of values up to ``largest`` that add to ``total``, largest first."""
    if total == 0:
        return [[]]
    return [
        [value, *rest]
        for value in range(min(total, largest), 0, -1)
        for rest in _partitions(total - value, value)
    ]


def _sum_tables() -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return SUM_NEED and SUM_ROWS."""
    need = [0]
    rows = np.zeros((NUM_RANKS, 3), np.int64)
    for rank in range(NUM_NUMBERS):
        sums = [
            values
            for values in _partitions(rank + 1, rank)
            if max(values.count(value) for value in values) <= NUM_SUITS
        ]
        sums.sort(key=len)
        rows[rank] = (
            len(need),
            len(need) + sum(len(values) == 2 for values in sums),
            len(need) + len(sums),
        )
        for values in sums:
            need.append(sum(((1 << values.count(v)) - 1) << (4 * (v - 1)) for v in set(values)))
    return np.array(need, dtype=np.uint64), rows


SUM_NEED, SUM_ROWS = _sum_tables()
"""SUM_NEED[base]: thermometer of the cards of a sum. SUM_ROWS[rank]: its rows start, end with two
cards, end (the sums of exactly two cards come first)."""


def _two_sums() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return SUMS_OF_TWO and DOUBLES."""
    sums = np.zeros(1 << NUM_NUMBERS, np.int64)
    for present in range(len(sums)):
        ranks = [rank for rank in range(NUM_NUMBERS) if present >> rank & 1]
        for low in ranks:
            for high in ranks:
                if low < high and low + high + 1 < NUM_NUMBERS:
                    sums[present] |= 1 << (low + high + 1)
    doubles = np.zeros(8, np.int64)
    for twice in range(8):
        for rank in range(3):
            doubles[twice] |= (twice >> rank & 1) << (2 * rank + 1)
    return sums, doubles


SUMS_OF_TWO, DOUBLES = _two_sums()
"""SUMS_OF_TWO[ranks on the table, as bits]: ranks that two unequal cards add to. DOUBLES[ranks A to
3 of which two lie there]: ranks that two equal cards add to."""


def _max_actions() -> int:
    """Return a bound on the legal actions of any position of any variant.

    More cards on the table never allow fewer actions, so it is enough to look at every hand of
    five ranks with all other cards on the table, under optional runs and free placement.
    """
    counts = []
    for rank in range(NUM_RANKS):
        first, _, last = SUM_ROWS[rank]
        # Ranks that the hand holds have three copies left; allowing four only loosens the bound.
        counts.append((1 + last - first) * (NUM_RANKS - rank) + 1)
    return int(sum(sorted(counts)[-CARDS_PER_DEAL:]))


MAX_ACTIONS = _max_actions()
