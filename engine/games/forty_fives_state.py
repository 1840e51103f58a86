"""Forty-fives: rule options, the order of the cards, the state record, and the codes of actions.

Room: engine. May import: engine.game (Option), engine.layout, engine.rules (sentinels), numpy.

A card is ``suit * 13 + rank`` with suits S H D C = 0 .. 3 and ranks A 2 .. 10 J Q K = 0 .. 12. The
ace of hearts is a trump whatever is trump, and never a heart. A trump's *slot* is its place in the
order of trumps: 0 is the five, 1 the jack, 2 the ace of hearts, 3 the ace of trumps (empty when
hearts are trump), 4 the king, 5 the queen, 6 .. 13 the eight others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.game import Option
from engine.layout import SHOWN_TO_NONE, SHOWN_TO_OWN, Field
from engine.rules import TERMINAL

NUM_SUITS, NUM_RANKS, NUM_CARDS = 4, 13, 52
SUIT_NAMES = ("S", "H", "D", "C")
RANK_NAMES = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
HEARTS = 1
RED = (1, 2)
ACE_OF_HEARTS = HEARTS * NUM_RANKS
NUM_SEATS, HAND_SIZE, NUM_TRICKS = 4, 5, 5
NUM_SLOTS = 14
MAX_HANDS = 30
"""Sides that are set again and again could go on for ever, as random players do. After this many
hands the higher score wins, and an equal score is a draw. Rule players need about ten."""
MOST_CALLS = 17
"""Calls of an auction that goes on after a hold: four; five raises, five holds, three passes."""
MOST_BASE = HAND_SIZE + 4
MAX_PLIES = MAX_HANDS * (MOST_CALLS + 1 + MOST_BASE + 3 * HAND_SIZE + NUM_TRICKS * NUM_SEATS)
MAX_ACTIONS = 6
"""A pass, and five levels or four and a hold."""
WIN_BONUS = 120.0
"""About what a side scores in a game that it wins."""

# --- options: the int that the kernels see --------------------------------------------------------
ONE_TURN, CONTINUE = 0, 1
FORCED, REDEAL = 0, 1
AFTER_KITTY, BEFORE_KITTY = 0, 1
LEFT_OF_BIDDER, THE_BIDDER = 0, 1
NEEDS_A_BID, MUST_HOLD, IF_SET, NO_LIMIT = 0, 1, 2, 3
BIDDER_WINS, HIGHER_TOTAL, FIRST_LISTED = 0, 1, 2

LEVEL_15, LEVEL_20, LEVEL_25, LEVEL_30, LEVEL_60 = 1, 2, 3, 4, 5
"""Levels of a bid; LEVEL_60 is 30 for 60. 0 is no bid."""
LEVEL_NAMES = ("pass", "15", "20", "25", "30", "30for60")
LEVEL_POINTS = np.array([0, 15, 20, 25, 30, 30], np.int64)
"""Points that a level needs."""
_LADDERS = {
    "20": (LEVEL_20, LEVEL_25, LEVEL_60),
    "15": (LEVEL_15, LEVEL_20, LEVEL_25, LEVEL_30),
    "15_and_30for60": (LEVEL_15, LEVEL_20, LEVEL_25, LEVEL_30, LEVEL_60),
}
LADDERS = {word: sum(1 << level for level in levels) for word, levels in _LADDERS.items()}
"""Allowed levels as bits."""


class FortyFives(NamedTuple):
    """Options of Forty-fives; the defaults are the preset ``report_c``."""

    kitty: int = 4
    min_bid: int = LADDERS["20"]
    auction: int = ONE_TURN
    dealer_hold: int = 1
    hold_30for60: int = 1
    all_pass: int = FORCED
    trump_named: int = AFTER_KITTY
    min_keep: int = 0
    may_throw_trump: int = 1
    leader: int = LEFT_OF_BIDDER
    renege: int = 1
    thirty_fail: int = 30
    over100: int = NEEDS_A_BID
    over100_test: int = 0
    target: int = 120
    both_reach: int = BIDDER_WINS
    bid_out: int = 0
    no_trump_in_play: int = 0


_NO_YES = {"no": 0, "yes": 1}

OPTIONS: dict[str, Option] = {
    "kitty": Option(values={"4": 4, "3": 3, "0": 0}, help="cards that the bidder takes up"),
    "min_bid": Option(
        values=LADDERS,
        help="levels: 20, 25, 30for60; or 15, 20, 25, 30; or the latter with 30for60 above them",
    ),
    "auction": Option(
        values={"one_turn": ONE_TURN, "continue": CONTINUE},
        help="each seat speaks once; or after a hold those who have not passed speak again",
    ),
    "dealer_hold": Option(values=_NO_YES, help="whether the dealer may take over the highest bid"),
    "hold_30for60": Option(values=_NO_YES, help="whether the dealer may also hold a 30for60"),
    "all_pass": Option(
        values={"dealer_forced": FORCED, "redeal": REDEAL},
        help="after three passes the dealer has to bid, or may pass and the deal passes on",
    ),
    "trump_named": Option(
        values={"after_kitty": AFTER_KITTY, "before_kitty": BEFORE_KITTY},
        help="whether the bidder sees the kitty before trump is named",
    ),
    "min_keep": Option(values={"0": 0, "1": 1}, help="cards that a seat has to keep at least"),
    "may_throw_trump": Option(
        values=_NO_YES, help="whether trumps may be thrown by a seat that has five or fewer"
    ),
    "leader": Option(
        values={"left_of_bidder": LEFT_OF_BIDDER, "bidder": THE_BIDDER},
        help="who leads the first trick",
    ),
    "renege": Option(
        values={"off": 0, "on": 1},
        help="whether five, jack and ace of hearts may be held back from a lower trump lead",
    ),
    "thirty_fail": Option(values={"30": 30, "60": 60}, help="points lost with a failed 30for60"),
    "over100": Option(
        values={
            "entered_a_bid": NEEDS_A_BID,
            "holds_contract": MUST_HOLD,
            "if_bid_fails": IF_SET,
            "off": NO_LIMIT,
        },
        help="when a side over 100 that did not win the auction scores: if it entered a bid; "
        "never; if the bid fails; always",
    ),
    "over100_test": Option(values={">": 0, ">=": 1}, help="over 100, or 100 and more"),
    "target": Option(values={"120": 120, "125": 125}, help="score that wins"),
    "both_reach": Option(
        values={
            "bidder_wins": BIDDER_WINS,
            "higher_total": HIGHER_TOTAL,
            "first_listed": FIRST_LISTED,
        },
        help="who wins when one hand lifts both sides to the target; equal totals: the bidders",
    ),
    "bid_out": Option(values=_NO_YES, help="whether only a bidding side can win"),
    "no_trump_in_play": Option(
        values={"no_bonus": 0}, help="what becomes of the five points for the best trump"
    ),
}

PRESETS: dict[str, FortyFives] = {"report_c": FortyFives()}

# --- state ----------------------------------------------------------------------------------------
AUCTION, KITTY, TRUMP, DISCARD, DRAW, PLAY, HAND_END, OVER = range(8)
"""Phases. KITTY, DRAW and HAND_END are CHANCE positions, and so is the end of a seat's discards."""
NOBODY, NO_SUIT, NO_CARD, UNKNOWN = -1, -1, -1, -1

STATE: np.dtype[Any] = np.dtype(
    (
        np.record,
        [
            ("hands", np.uint64, (NUM_SEATS,)),  # hidden: 0 in the views of other seats
            ("thrown", np.uint64, (NUM_SEATS,)),  # own discards; hidden like hands
            ("kept", np.uint64),  # what the seat that discards has kept so far; its own to see
            ("stock", np.uint64),  # hidden; kitty and draws are a function of (seed, hand)
            ("seed", np.uint64),  # hidden: 0 in views
            ("played", np.int8, (NUM_TRICKS * NUM_SEATS,)),  # trick * 4 + seat: card, or NO_CARD
            ("scores", np.int16, (2,)),
            ("contracts", np.int16, (2,)),  # hands in which the side was the bidding one
            ("made", np.int16, (2,)),  # of those: made
            ("sets", np.int16, (2,)),  # points lost with failed contracts
            ("drawn", np.int8, (NUM_SEATS,)),  # cards that a seat drew; UNKNOWN before all draw
            ("bids", np.int8, (NUM_SEATS,)),  # highest level that a seat bid or held; 0: none
            ("passed", np.int8, (NUM_SEATS,)),
            ("lacks", np.uint8, (NUM_SEATS,)),  # what a seat has shown that it lacks, as below
            ("tricks", np.int8, (2,)),
            ("phase", np.int8),
            ("to_move", np.int8),  # seat, CHANCE or TERMINAL
            ("winner", np.int8),  # side; NOBODY: not over, or drawn
            ("hand_index", np.int8),
            ("dealer", np.int8),
            ("turns", np.int8),  # calls so far
            ("high", np.int8),  # level of the highest bid; 0: none
            ("bidder", np.int8),  # seat, or NOBODY
            ("held", np.int8),  # 1 once the dealer has held
            ("trump", np.int8),  # suit, or NO_SUIT
            ("leader", np.int8),  # of the present trick; before: who discards, or will next
            ("num_played", np.int8),  # cards played, 0 .. 20
            ("best_trump", np.int8),  # highest trump played so far, or NO_CARD
            ("best_side", np.int8),  # who played it, or NOBODY
        ],
    )
)

LACKS_SUITS, LACKS_SHIFT = 15, 4
"""``lacks`` is a bit for each plain suit, and from LACKS_SHIFT on the row of LACKED_TRUMPS."""

ALL_CARDS = np.uint64((1 << NUM_CARDS) - 1)
ALL_LACKED = 4
"""Row of LACKED_TRUMPS with all trumps."""
MOST_POINTS = 60 * MAX_HANDS
"""No side scores, or loses, more in a game."""


def fields(game: FortyFives) -> dict[str, Field]:
    """Return what the fields of a record may hold."""
    cards = int(ALL_CARDS)
    return {
        "hands": Field(cards=cards, most=HAND_SIZE + game.kitty, shown=SHOWN_TO_OWN),
        "thrown": Field(cards=cards, most=HAND_SIZE + game.kitty, shown=SHOWN_TO_OWN),
        "kept": Field(cards=cards, most=HAND_SIZE),
        "stock": Field(cards=cards, shown=SHOWN_TO_NONE),
        "seed": Field(cards=(1 << 64) - 1, shown=SHOWN_TO_NONE),
        "played": Field(NO_CARD, NUM_CARDS - 1),
        "scores": Field(-MOST_POINTS, MOST_POINTS),
        "contracts": Field(0, MAX_HANDS),
        "made": Field(0, MAX_HANDS),
        "sets": Field(0, MOST_POINTS),
        "drawn": Field(UNKNOWN, HAND_SIZE),
        "bids": Field(0, LEVEL_60),
        "passed": Field(0, 1),
        "lacks": Field(0, ALL_LACKED << LACKS_SHIFT | LACKS_SUITS),
        "tricks": Field(0, NUM_TRICKS),
        "phase": Field(AUCTION, OVER),
        "to_move": Field(TERMINAL, NUM_SEATS - 1),
        "winner": Field(NOBODY, 1),
        "hand_index": Field(0, MAX_HANDS - 1),
        "dealer": Field(0, NUM_SEATS - 1),
        "turns": Field(0, MOST_CALLS),
        "high": Field(0, LEVEL_60),
        "bidder": Field(NOBODY, NUM_SEATS - 1),
        "held": Field(0, 1),
        "trump": Field(NO_SUIT, NUM_SUITS - 1),
        "leader": Field(0, NUM_SEATS - 1),
        "num_played": Field(0, NUM_TRICKS * NUM_SEATS),
        "best_trump": Field(NO_CARD, NUM_CARDS - 1),
        "best_side": Field(NOBODY, 1),
    }


# --- actions: ascending code is pass, levels, hold; suits; keep, throw; cards ---------------------
PASS, HOLD = 0, 6
"""The codes between are levels."""
NAME_TRUMP = 8
"""``NAME_TRUMP + suit``."""
KEEP, THROW = 16, 17
PLAY_CARD = 32
"""``PLAY_CARD + card``."""

# --- order of the cards ---------------------------------------------------------------------------
FIVE, JACK, ACE, KING, QUEEN = 4, 10, 0, 12, 11
_LOWS = (1, 2, 3, 5, 6, 7, 8, 9)
"""Ranks 2 3 4 6 7 8 9 10, the order of the low black cards from the highest on."""
TRUMP_POWER = 20
"""Power of the lowest trump; plain cards have 0 .. 12, the king of every suit 12."""


def trump_order(trump: int) -> list[int]:
    """Return the card of every slot, from the highest trump on; NO_CARD for the empty one."""
    lows = _LOWS[::-1] if trump in RED else _LOWS
    own = [trump * NUM_RANKS + rank for rank in (FIVE, JACK, ACE, KING, QUEEN, *lows)]
    ace = NO_CARD if trump == HEARTS else own[2]
    return [own[0], own[1], ACE_OF_HEARTS, ace, *own[3:]]


def plain_order(suit: int) -> list[int]:
    """Return the cards of a suit that is not trump, highest first."""
    if suit in RED:
        ranks = (KING, QUEEN, JACK, 9, 8, 7, 6, 5, FIVE, 3, 2, 1, ACE)
    else:
        ranks = (KING, QUEEN, JACK, ACE, 1, 2, 3, FIVE, 5, 6, 7, 8, 9)
    cards = [suit * NUM_RANKS + rank for rank in ranks]
    return [card for card in cards if card != ACE_OF_HEARTS]


def _order_tables() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    """Return POWER, SLOT and TRUMPS."""
    power = np.zeros((NUM_SUITS, NUM_CARDS), np.int64)
    slot = np.full((NUM_SUITS, NUM_CARDS), -1, np.int64)
    trumps = np.zeros(NUM_SUITS, np.uint64)
    for trump in range(NUM_SUITS):
        for suit in range(NUM_SUITS):
            for place, card in enumerate(plain_order(suit)):
                power[trump, card] = 12 - place
        for place, card in enumerate(trump_order(trump)):
            if card != NO_CARD:
                power[trump, card] = TRUMP_POWER + NUM_SLOTS - 1 - place
                slot[trump, card] = place
                trumps[trump] |= np.uint64(1 << card)
    return power, slot, trumps


POWER, SLOT, TRUMPS = _order_tables()
"""POWER[trump, card]: of two trumps, or two plain cards of a suit, the higher one wins. SLOT[trump,
card]: the trump's slot, -1 for a plain card. TRUMPS[trump]: all trumps."""


def _suit_tables() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return PLAIN and ABOVE."""
    plain = np.zeros((NUM_SUITS, NUM_SUITS), np.uint64)
    above = np.zeros((NUM_SUITS, NUM_CARDS), np.uint64)
    for trump in range(NUM_SUITS):
        for suit in range(NUM_SUITS):
            mask = sum(1 << card for card in plain_order(suit))
            plain[trump, suit] = np.uint64(mask & ~int(TRUMPS[trump]))
        order = [card for card in trump_order(trump) if card != NO_CARD]
        for ranked in [order] + [plain_order(suit) for suit in range(NUM_SUITS) if suit != trump]:
            for place, card in enumerate(ranked):
                above[trump, card] = np.uint64(sum(1 << other for other in ranked[:place]))
    return plain, above


PLAIN, ABOVE = _suit_tables()
"""PLAIN[trump, suit]: cards of the suit that are no trumps. ABOVE[trump, card]: trumps above a
trump, or cards of its suit above a plain card."""


def _lacked_trumps() -> NDArray[np.uint64]:
    """Return LACKED_TRUMPS."""
    lacked = np.zeros((NUM_SUITS, ALL_LACKED + 1), np.uint64)
    for trump in range(NUM_SUITS):
        for row in range(1, ALL_LACKED + 1):
            held_back = sum(1 << card for card in trump_order(trump)[: ALL_LACKED - row])
            lacked[trump, row] = TRUMPS[trump] & ~np.uint64(held_back)
    return lacked


LACKED_TRUMPS = _lacked_trumps()
"""LACKED_TRUMPS[trump, 4 - k]: all trumps but the best k of five, jack and ace of hearts; row 0 is
empty. Who refuses a trump lead that k of these may be held back from has none of them."""
