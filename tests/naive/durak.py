"""Durak as plainly as it can be said: lists of card names, no bits, no numpy, nothing of engine.

Options are words, as people write them. Chance is given from outside: the game is told the hands
and the stock. A move is what people say: ``7S``, ``take``, ``pass``, ``transfer:7D``, ``show:7H``,
``swap``, ``7C+7D``.
"""

from __future__ import annotations

import itertools

RANKS = ["6", "7", "8", "9", "10", "J", "Q", "K", "A"]
SUITS = ["C", "D", "H", "S"]
DECK = [rank + suit for suit in SUITS for rank in RANKS]
NOBODY = -1


def rank(card: str) -> str:
    """Return the rank of a card."""
    return card[:-1]


def suit(card: str) -> str:
    """Return the suit of a card."""
    return card[-1]


def beats(card: str, other: str, trump: str) -> bool:
    """Return whether ``card`` beats ``other``."""
    if suit(card) == suit(other):
        return RANKS.index(rank(card)) > RANKS.index(rank(other))
    return suit(card) == trump


def lowest_trump(hand: list[str], trump: str) -> int | None:
    """Return the place in RANKS of the lowest trump in ``hand``."""
    return min((RANKS.index(rank(card)) for card in hand if suit(card) == trump), default=None)


def holder_of_lowest_trump(hands: list[list[str]], trump: str) -> int | None:
    """Return the seat with the lowest trump; None if there is no trump in any hand."""
    lows = {seat: lowest_trump(hand, trump) for seat, hand in enumerate(hands)}
    found = {seat: low for seat, low in lows.items() if low is not None}
    return min(found, key=lambda seat: found[seat]) if found else None


class NaiveDurak:
    """A game from some bout on; ``stock`` is in the order of drawing, its last card turned up."""

    def __init__(
        self, options: dict[str, str], hands: list[list[str]], stock: list[str], trump: str
    ) -> None:
        self.options = options
        self.num_seats = int(options["players"])
        self.hands = [list(hand) for hand in hands]
        self.stock = list(stock)
        self.trump = trump
        self.discard: list[str] = []
        self.table: list[list[str]] = []
        """Each attack, with its cover behind it if there is one."""
        self.phase = "attack"
        self.attacker = self.defender = 0
        self.defender_cards = 0
        self.passed: set[int] = set()
        self.out: dict[int, int] = {}
        """Seats that went out, and their place; who goes out together shares one."""
        self.num_bouts = self.num_beaten = self.num_plies = 0
        self.over = False
        self.durak = NOBODY
        self.turned_up = stock[-1] if stock else ""
        self.known: list[list[str]] = [[] for _ in hands]
        """Cards of each hand that everybody knows of."""
        self.given = [len(hand) for hand in hands]
        self.first_shown: dict[str, tuple[int, int]] = {}
        """Seat that showed a hidden card first, and how many hidden ones it had got by then."""

    # --- seats ------------------------------------------------------------------------------------

    def clockwise(self, seat: int) -> list[int]:
        """Return all other seats in order, from the one after ``seat`` on."""
        return [(seat + step) % self.num_seats for step in range(1, self.num_seats)]

    def next_in(self, seat: int) -> int:
        """Return the next seat that is still in; ``seat`` itself if there is no other."""
        return next((other for other in self.clockwise(seat) if other not in self.out), seat)

    def begin(self, attacker: int) -> None:
        """Begin a bout."""
        self.phase = "attack"
        self.attacker = attacker
        self.new_defender()

    def new_defender(self) -> None:
        """Let the seat after the attacker defend, with the cards that it holds now."""
        self.defender = self.next_in(self.attacker)
        self.defender_cards = len(self.hands[self.defender])

    def throwing_seats(self) -> list[int]:
        """Return who may still throw in, in order."""
        seats = [self.attacker, *self.clockwise(self.attacker)]
        allowed = {
            "all": seats,
            "neighbours": [self.attacker, self.next_in(self.defender)],
            "attacker": [self.attacker],
        }[self.options["throwers"]]
        return [
            seat
            for seat in seats
            if seat in allowed
            and seat != self.defender
            and seat not in self.passed
            and self.hands[seat]
        ]

    def to_move(self) -> int | None:
        """Return the seat to move; None before a draw and when the game is over."""
        if self.over or self.phase in ("beaten", "taken"):
            return None
        if self.phase == "attack":
            return self.attacker
        if self.phase == "defend":
            return self.defender
        return self.throwing_seats()[0]

    # --- what is allowed --------------------------------------------------------------------------

    def limit(self) -> float:
        """Return the most attacks, whatever the defender holds."""
        if self.options["first_limit"] == "5" and self.num_beaten == 0:
            return 5
        return float("inf") if self.options["limit"] == "none" else int(self.options["limit"])

    def cap(self) -> float:
        """Return the most attacks of this bout."""
        return min(self.limit(), self.defender_cards)

    def legal(self) -> list[str]:
        """Return the legal moves of the seat to move."""
        seat = self.to_move()
        assert seat is not None
        hand = self.hands[seat]
        if self.phase == "attack":
            moves = [*hand, *self.sets(hand)]
        elif self.phase == "defend":
            attack = next(pair[0] for pair in self.table if len(pair) == 1)
            moves = [card for card in hand if beats(card, attack, self.trump)]
            moves += ["take", *self.transfers(seat)]
        else:
            ranks = {rank(card) for pair in self.table for card in pair}
            room = len(self.table) < self.cap()
            moves = [card for card in hand if rank(card) in ranks and room] + ["pass"]
        if self.options["swap_trump_six"] == "yes" and self.stock and "6" + self.trump in hand:
            moves.append("swap")
        return moves

    def sets(self, hand: list[str]) -> list[str]:
        """Return the attacks with several cards of one rank."""
        if self.options["multi_card_attack"] == "no":
            return []
        found = []
        for size in (2, 3, 4):
            for cards in itertools.combinations(sorted(hand, key=DECK.index), size):
                if len({rank(card) for card in cards}) == 1 and size <= self.cap():
                    found.append("+".join(cards))
        return found

    def transfers(self, seat: int) -> list[str]:
        """Return the ways to pass the attack on."""
        if self.options["transfer"] == "no" or any(len(pair) == 2 for pair in self.table):
            return []
        if self.options["transfer_first_bout"] == "no" and self.num_bouts == 0:
            return []
        after = self.next_in(seat)
        if after == seat:
            return []
        most = min(len(self.hands[after]), self.limit())
        cards = [card for card in self.hands[seat] if rank(card) == rank(self.table[0][0])]
        found = [f"transfer:{card}" for card in cards if len(self.table) + 1 <= most]
        if self.options["transfer_show_trump"] == "yes" and len(self.table) <= most:
            found += [f"show:{card}" for card in cards if suit(card) == self.trump]
        return found

    # --- a ply ------------------------------------------------------------------------------------

    def show(self, seat: int, card: str) -> None:
        """Everybody sees ``card``."""
        if card not in self.known[seat] and card not in self.first_shown:
            self.first_shown[card] = (seat, self.given[seat])

    def put_down(self, seat: int, card: str) -> None:
        """Take ``card`` out of a hand."""
        self.show(seat, card)
        self.hands[seat].remove(card)
        if card in self.known[seat]:
            self.known[seat].remove(card)

    def play(self, move: str) -> None:
        """Make a legal move."""
        seat = self.to_move()
        assert seat is not None
        self.num_plies += 1
        if move == "take":
            self.phase = "taking"
            self.passed = set()
        elif move == "pass":
            self.passed.add(seat)
        elif move == "swap":
            self.put_down(seat, "6" + self.trump)
            self.hands[seat].append(self.stock[-1])
            self.known[seat].append(self.stock[-1])
            self.stock[-1] = self.turned_up = "6" + self.trump
        elif move.startswith(("transfer:", "show:")):
            how, card = move.split(":")
            if how == "transfer":
                self.put_down(seat, card)
                self.table.append([card])
            else:
                self.show(seat, card)
                if card not in self.known[seat]:
                    self.known[seat].append(card)
            self.attacker = seat
            self.new_defender()
        else:
            self.play_cards(seat, move.split("+"))
        self.end_bout_if_due()

    def play_cards(self, seat: int, cards: list[str]) -> None:
        """Attack, cover, or throw in."""
        for card in cards:
            self.put_down(seat, card)
            if self.phase == "defend":
                next(pair for pair in self.table if len(pair) == 1).append(card)
            else:
                self.table.append([card])
        if self.phase == "defend":
            if all(len(pair) == 2 for pair in self.table):
                self.phase = "throw in"
                self.passed = set()
        elif self.phase == "taking":
            self.passed = set()
        else:
            self.phase = "defend"

    def end_bout_if_due(self) -> None:
        """End the bout when nobody is left to move, and the game when no ply is left."""
        if self.phase in ("throw in", "taking"):
            silent = self.phase == "taking" and self.options["throw_after_take"] == "no"
            if silent or not self.throwing_seats():
                self.end_bout()
        self.end_of_plies()

    def end_of_plies(self) -> None:
        """Draw the game where somebody would move and no ply is left."""
        if self.to_move() is not None and self.num_plies >= int(self.options["max_plies"]):
            self.over = True

    # --- the end of a bout ------------------------------------------------------------------------

    def end_bout(self) -> None:
        """Put the cards of the table where they belong."""
        cards = [card for pair in self.table for card in pair]
        if self.phase == "taking":
            self.hands[self.defender] += cards
            self.known[self.defender] += cards
            self.phase = "taken"
        else:
            self.discard += cards
            self.num_beaten += 1
            self.phase = "beaten"
        self.table = []
        self.passed = set()
        in_need = any(len(hand) < 6 for hand in self.hands)
        if not (self.stock and in_need):
            self.next_bout()

    def drawing_order(self) -> list[int]:
        """Return who draws: the attacker, the other seats clockwise, the defender last."""
        others = [seat for seat in self.clockwise(self.attacker) if seat != self.defender]
        return [self.attacker, *others, self.defender]

    def draw(self) -> None:
        """Fill the hands up to six cards from the stock."""
        for seat in self.drawing_order():
            while len(self.hands[seat]) < 6 and self.stock:
                card = self.stock.pop(0)
                self.hands[seat].append(card)
                if self.stock:
                    self.given[seat] += 1
                else:
                    self.known[seat].append(card)
        self.next_bout()
        self.end_of_plies()

    def next_bout(self) -> None:
        """See who is out and whether the game is over; begin the next bout."""
        self.num_bouts += 1
        if not self.stock:
            place = len(self.out) + 1
            for seat in range(self.num_seats):
                if not self.hands[seat]:
                    self.out.setdefault(seat, place)
        left = [seat for seat in range(self.num_seats) if seat not in self.out]
        if not left:
            self.over = True
            self.durak = self.defender if self.options["draw"] == "attacker_wins" else NOBODY
        elif len(left) == 1:
            self.over = True
            self.durak = left[0]
        elif self.phase == "beaten" and self.defender not in self.out:
            self.begin(self.defender)
        else:
            self.begin(self.next_in(self.defender))

    def outcome(self) -> list[float]:
        """Return what each seat gets."""
        if self.durak == NOBODY:
            return [0.0] * self.num_seats
        share = 1 / (self.num_seats - 1)
        return [-1.0 if seat == self.durak else share for seat in range(self.num_seats)]
