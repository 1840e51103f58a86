"""Durak: rule options, the state record, and the codes of actions.

Room: engine. May import: engine.game (Option), engine.layout, engine.rules (sentinels), numpy.

A card is ``suit * 9 + rank`` with ranks 6 7 8 9 10 J Q K A = 0 .. 8 and suits C D H S = 0 .. 3, so
that a suit is nine bits of a card mask, side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.game import Option
from engine.layout import Field
from engine.rules import TERMINAL

NUM_RANKS, NUM_SUITS, NUM_CARDS = 9, 4, 36
RANK_NAMES = ("6", "7", "8", "9", "10", "J", "Q", "K", "A")
SUIT_NAMES = ("C", "D", "H", "S")
HAND_SIZE = 6
MAX_SEATS = 4
MAX_STOCK = NUM_CARDS - 2 * HAND_SIZE
MAX_ATTACKS = 18
"""Attacks in one bout: each is covered by, or waits for, another card."""
MAX_PLIES = 1000

# --- options: the int that the kernels see --------------------------------------------------------
HAND_SIZE_ONLY = NUM_CARDS
"""Code of a limit that no number of attacks reaches."""
ALL_THROW, NEIGHBOURS_THROW, ATTACKER_THROWS = 0, 1, 2
LOWEST_TRUMP, RANDOM_SEAT, AFTER_LAST_LOSER = 0, 1, 2
DRAWN, ATTACKER_WINS = 0, 1


class Durak(NamedTuple):
    """Options of Durak; the defaults are the preset ``report_d``."""

    players: int = 2
    limit: int = 6
    first_limit: int = 6
    throw_after_take: int = 1
    throwers: int = ALL_THROW
    multi_card_attack: int = 0
    transfer: int = 0
    transfer_show_trump: int = 0
    transfer_first_bout: int = 1
    first_attacker: int = LOWEST_TRUMP
    last_loser: int = 0
    refill: int = 0
    draw: int = DRAWN
    swap_trump_six: int = 0
    redeal: int = 0
    max_plies: int = MAX_PLIES
    deck: int = NUM_CARDS


_NO_YES = {"no": 0, "yes": 1}

OPTIONS: dict[str, Option] = {
    "players": Option(values={"2": 2, "3": 3, "4": 4}, help="seats; everybody for himself"),
    "limit": Option(
        values={"6": 6, "none": HAND_SIZE_ONLY},
        help="attacks in one bout, beside the defender's hand at its beginning",
    ),
    "first_limit": Option(
        values={"6": 6, "5": 5}, help="5: no more than five attacks until a bout was beaten"
    ),
    "throw_after_take": Option(
        values=_NO_YES, help="whether more cards may be thrown once the defender takes"
    ),
    "throwers": Option(
        values={
            "all": ALL_THROW,
            "neighbours": NEIGHBOURS_THROW,
            "attacker": ATTACKER_THROWS,
        },
        help="who throws in: all, the attacker and the seat after the defender, the attacker",
    ),
    "multi_card_attack": Option(
        values=_NO_YES, help="whether a bout may begin with several cards of one rank"
    ),
    "transfer": Option(
        values=_NO_YES, help="whether an attack may be passed on with a card of its rank"
    ),
    "transfer_show_trump": Option(
        values=_NO_YES, help="whether the trump of that rank may be shown instead of played"
    ),
    "transfer_first_bout": Option(
        values=_NO_YES, help="whether the first bout of a game may be passed on"
    ),
    "first_attacker": Option(
        values={
            "lowest_trump": LOWEST_TRUMP,
            "random": RANDOM_SEAT,
            "after_last_loser": AFTER_LAST_LOSER,
        },
        help="who attacks first; after_last_loser: the seat before the loser attacks him",
    ),
    "last_loser": Option(
        low=0, high=MAX_SEATS - 1, help="seat that lost the game before, modulo the players"
    ),
    "refill": Option(
        values={"defender_last": 0}, help="who draws first: attacker, the others, the defender"
    ),
    "draw": Option(
        values={"draw": DRAWN, "attacker_wins": ATTACKER_WINS},
        help="all go out in one bout: nobody loses, or the defender does",
    ),
    "swap_trump_six": Option(
        values=_NO_YES, help="whether the trump six may be exchanged for the card turned up"
    ),
    "redeal": Option(
        values=_NO_YES, help="whether hands are dealt anew when one has five cards of a suit"
    ),
    "max_plies": Option(low=1, high=MAX_PLIES, help="plies after which a game is drawn"),
    "deck": Option(values={"36": NUM_CARDS}, help="cards, from the six up"),
}

PRESETS: dict[str, Durak] = {
    "report_d": Durak(),
    "transfer_3p": Durak(players=3, transfer=1, max_plies=300),
    "classic_4p": Durak(players=4, max_plies=300),
}

# --- state ----------------------------------------------------------------------------------------
NO_CARD = -1
NOBODY = -1
NO_TRUMP = NUM_RANKS
"""Entry of ``low_trumps`` of a seat that was dealt no trump."""
UNKNOWN = 15
"""Entry of other seats in a view, and in worlds, where nobody asks for it."""
ALL_UNKNOWN = 0xFFFF

ATTACK, DEFEND, THROW_IN, TAKING, BEATEN, TAKEN, OVER = range(7)
"""Phases. BEATEN and TAKEN: the bout is over and seats are about to draw (a chance position)."""

LOWEST_BEGAN, NOBODY_HAD_TRUMP, NO_FIVE_OF_SUIT = 1, 2, 4
"""Bits of ``facts``: the first attacker was dealt the lowest trump that any hand was dealt; no hand
was dealt a trump; no hand was dealt five cards of a suit. 0 where nothing is known of the deal."""

SHOWN_SEAT = 64
"""``first_shown`` is ``seat * SHOWN_SEAT + given``, with ``given`` of the seat at that time."""

STATE: np.dtype[Any] = np.dtype(
    (
        np.record,
        [
            ("hands", np.uint64, (MAX_SEATS,)),  # hidden: others' views hold what was seen of it
            ("seen", np.uint64),  # cards that all have seen: where they lie is known to all
            ("covers", np.uint64),  # on the table
            ("plies", np.uint16),
            ("bouts", np.uint16),  # that have ended
            ("low_trumps", np.uint16),  # hidden: four bits a seat, rank of the lowest trump dealt
            ("stock", np.int8, (MAX_STOCK,)),  # drawn from the end; hidden but for [0], turned up
            ("attacks", np.int8, (MAX_ATTACKS,)),  # in the order of play; NO_CARD beyond
            ("first_shown", np.uint8, (NUM_CARDS,)),  # 0: never seen; see SHOWN_SEAT
            ("finished", np.int8, (MAX_SEATS,)),  # place, 1 for who went out first; 0: it is in
            ("given", np.int8, (MAX_SEATS,)),  # cards that came into the hand unseen by others
            ("sizes", np.int8, (MAX_SEATS,)),  # cards in hand
            ("beaten", np.int8),  # whether a bout ended on the discard pile
            ("stock_size", np.int8),  # with the card turned up
            ("trump", np.int8),  # suit
            ("turned_up", np.int8),  # card at the bottom of the stock, also after it was drawn
            ("facts", np.int8),  # bits, see above
            ("first_attacker", np.int8),
            ("attacker", np.int8),
            ("defender", np.int8),
            ("defender_cards", np.int8),  # his hand when the bout opened or reached him
            ("phase", np.int8),
            ("to_move", np.int8),  # seat, CHANCE or TERMINAL
            ("passed", np.int8),  # bit per seat
            ("num_attacks", np.int8),
            ("num_covers", np.int8),  # the oldest attacks are covered first
            ("durak", np.int8),  # the loser; NOBODY: not over, or drawn
        ],
    )
)

ALL_CARDS = np.uint64((1 << NUM_CARDS) - 1)


def fields(game: Durak) -> dict[str, Field]:
    """Return what the fields of a record may hold. A view has sets and places that it knows of."""
    cards, last = int(ALL_CARDS), game.players - 1
    return {
        "hands": Field(cards=cards, used=game.players),
        "seen": Field(cards=cards),
        "covers": Field(cards=cards),
        "plies": Field(0, game.max_plies),
        "bouts": Field(0, game.max_plies),
        "low_trumps": Field(0, ALL_UNKNOWN),
        "stock": Field(NO_CARD, NUM_CARDS - 1),
        "attacks": Field(NO_CARD, NUM_CARDS - 1),
        "first_shown": Field(0, last * SHOWN_SEAT + HAND_SIZE + MAX_STOCK),
        "finished": Field(0, game.players),
        "given": Field(0, HAND_SIZE + MAX_STOCK),
        "sizes": Field(0, NUM_CARDS),
        "beaten": Field(0, 1),
        "stock_size": Field(0, MAX_STOCK),
        "trump": Field(0, NUM_SUITS - 1),
        "turned_up": Field(0, NUM_CARDS - 1),
        "facts": Field(0, LOWEST_BEGAN | NOBODY_HAD_TRUMP | NO_FIVE_OF_SUIT),
        "first_attacker": Field(0, last),
        "attacker": Field(0, last),
        "defender": Field(0, last),
        "defender_cards": Field(0, NUM_CARDS),
        "phase": Field(ATTACK, OVER),
        "to_move": Field(TERMINAL, last),
        "passed": Field(0, (1 << MAX_SEATS) - 1),
        "num_attacks": Field(0, MAX_ATTACKS),
        "num_covers": Field(0, MAX_ATTACKS),
        "durak": Field(NOBODY, last),
    }


# --- actions --------------------------------------------------------------------------------------
# A code below PASS plays, covers with or throws that card.
PASS = 36
"""Passing, and taking where the seat defends."""
TRANSFER = 37
"""``TRANSFER + card`` passes the attack on with the card."""
SHOW = TRANSFER + NUM_CARDS
"""``SHOW + card`` passes it on by showing the card, which stays in hand."""
SWAP = SHOW + NUM_CARDS
MULTI = SWAP + 1
"""``MULTI + rank * 16 + suits`` attacks with two or more cards; ``suits`` has a bit per suit."""
SUIT_SETS = 16

MAX_ACTIONS = NUM_CARDS + 1 + NUM_RANKS * (SUIT_SETS - 1 - NUM_SUITS)
"""Any card, or a set of two to four of a rank; in no other phase are there more."""

SUIT_BITS = np.uint64((1 << NUM_RANKS) - 1)
EVERY_SUIT = np.uint64(sum(1 << (NUM_RANKS * suit) for suit in range(NUM_SUITS)))
"""Times a set of ranks: all cards of these ranks."""
