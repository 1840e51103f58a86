"""Forty-fives as plainly as it can be said: names of cards, no bits, nothing of the engine.

Options are words, as people write them. Chance is given from outside: ``deal``, ``take_kitty`` and
``draw`` are told the cards. A card is rank and suit, such as ``10S``. Every seat keeps the list of
events that it saw.
"""

from __future__ import annotations

import functools

SUITS = ("S", "H", "D", "C")
RANKS = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
DECK = [rank + suit for suit in SUITS for rank in RANKS]
ACE_OF_HEARTS = "AH"
MAX_HANDS = 30

RED_TRUMPS = ["5", "J", "AH", "A", "K", "Q", "10", "9", "8", "7", "6", "4", "3", "2"]
BLACK_TRUMPS = ["5", "J", "AH", "A", "K", "Q", "2", "3", "4", "6", "7", "8", "9", "10"]
RED_PLAIN = ["K", "Q", "J", "10", "9", "8", "7", "6", "5", "4", "3", "2", "A"]
BLACK_PLAIN = ["K", "Q", "J", "A", "2", "3", "4", "5", "6", "7", "8", "9", "10"]
LADDERS = {
    "20": ["20", "25", "30for60"],
    "15": ["15", "20", "25", "30"],
    "15_and_30for60": ["15", "20", "25", "30", "30for60"],
}
ALL_LEVELS = ["15", "20", "25", "30", "30for60"]


@functools.cache
def trumps_of(trump: str) -> list[str]:
    """Return the trumps, highest first."""
    order = RED_TRUMPS if trump in "HD" else BLACK_TRUMPS
    cards = [ACE_OF_HEARTS if rank == "AH" else rank + trump for rank in order]
    return list(dict.fromkeys(cards))  # with hearts as trump its ace is named twice


@functools.cache
def plain_of(suit: str, trump: str) -> list[str]:
    """Return the cards of a suit that are no trumps, highest first."""
    order = RED_PLAIN if suit in "HD" else BLACK_PLAIN
    return [rank + suit for rank in order if rank + suit not in trumps_of(trump)]


def legal_cards(hand: list[str], led: str | None, trump: str, renege: bool = True) -> list[str]:
    """Return what may be played to ``led`` from ``hand``."""
    if led is None:
        return list(hand)
    trumps = trumps_of(trump)
    held = [card for card in hand if card in trumps]
    if led in trumps:
        above = trumps[: trumps.index(led)]
        best_three = trumps[:3]
        privileged = [c for c in held if renege and c in best_three and c in above]
        return list(hand) if len(privileged) == len(held) else held
    following = [card for card in hand if card in plain_of(led[-1], trump)]
    return following + held if following else list(hand)


def trick_winner(trick: list[str], trump: str) -> int:
    """Return the index of the winning card."""
    for order in (trumps_of(trump), plain_of(trick[0][-1], trump)):
        played = [card for card in order if card in trick]
        if played:
            return trick.index(played[0])
    raise AssertionError(trick)


def contract_score(bid: str, raw: int, thirty_fail: int) -> int:
    """Return what the bidding side scores."""
    if bid == "30for60":
        return 60 if raw == 30 else -thirty_fail
    return raw if raw >= int(bid) else -int(bid)


def other_score(options: dict[str, str], raw: int, before: int, entered: bool, made: bool) -> int:
    """Return what the other side scores."""
    over = before > 100 or (before == 100 and options["over100_test"] == ">=")
    if not over or options["over100"] == "off":
        return raw
    if options["over100"] == "holds_contract":
        return 0
    if options["over100"] == "if_bid_fails":
        return 0 if made else raw
    return raw if entered else 0


def winner_of(options: dict[str, str], scores: list[int], bidding_side: int) -> int | None:
    """Return the side that has won after a hand, or None."""
    target = int(options["target"])
    reached = [side for side in (0, 1) if scores[side] >= target]
    if options["bid_out"] == "yes":
        reached = [side for side in reached if side == bidding_side]
    if len(reached) < 2:
        return reached[0] if reached else None
    if options["both_reach"] == "first_listed":
        return 0
    if options["both_reach"] == "higher_total" and scores[0] != scores[1]:
        return scores.index(max(scores))
    return bidding_side


class NaiveFortyFives:
    """A game between its first deal and its end."""

    def __init__(self, options: dict[str, str], dealer: int) -> None:
        self.options = options
        self.dealer = dealer
        self.hand_index = 0
        self.scores = [0, 0]
        self.contracts, self.made, self.sets = [0, 0], [0, 0], [0, 0]
        self.winner: int | None = None
        self.drawn_game = False
        self.events: list[list[tuple[object, ...]]] = [[] for _ in range(4)]

    def order(self) -> list[int]:
        """Return the seats from the dealer's left on, the dealer last."""
        return [(self.dealer + turn) % 4 for turn in (1, 2, 3, 4)]

    def tell(self, event: tuple[object, ...]) -> None:
        """Let every seat see ``event``."""
        for seen in self.events:
            seen.append(event)

    def deal(self, hands: list[list[str]]) -> None:
        """Begin a hand with these cards."""
        self.hands = [list(hand) for hand in hands]
        for seat in range(4):
            assert len(hands[seat]) == 5
            self.events[seat].append(("deal", *sorted(hands[seat])))
        self.stock = [card for card in DECK if not any(card in hand for hand in hands)]
        self.thrown: list[list[str]] = [[], [], [], []]
        self.kept: list[str] = []
        self.played: list[list[str]] = [[], [], [], []]
        self.lacks: list[set[str]] = [set(), set(), set(), set()]
        self.drew: list[int | None] = [None] * 4
        self.bids: list[str | None] = [None] * 4
        self.passed = [False] * 4
        self.calls = 0
        self.high: str | None = None
        self.bidder: int | None = None
        self.has_held = False
        self.trump: str | None = None
        self.tricks = [0, 0]
        self.trick: list[str] = []
        self.history: list[str] = []
        self.phase = "auction"
        self.mover: int | None = self.order()[0]

    # --- what may be done -------------------------------------------------------------------------

    def legal(self) -> list[str]:
        """Return the legal actions of the seat to move, in words."""
        assert self.mover is not None
        if self.phase == "auction":
            return self.legal_calls()
        if self.phase == "trump":
            return list(SUITS)
        if self.phase == "discard":
            return [f"keep {self.next_card()}", f"throw {self.next_card()}"]
        assert self.trump is not None
        led = self.trick[0] if self.trick else None
        return legal_cards(self.hands[self.mover], led, self.trump, self.options["renege"] == "on")

    def legal_calls(self) -> list[str]:
        """Return the legal calls."""
        is_dealer = self.mover == self.dealer
        levels = LADDERS[self.options["min_bid"]]
        if self.high is not None:
            levels = [x for x in levels if ALL_LEVELS.index(x) > ALL_LEVELS.index(self.high)]
        calls = list(levels)
        bagged = is_dealer and self.high is None and self.options["all_pass"] == "dealer_forced"
        if not bagged:
            calls.append("pass")
        may_hold = self.options["dealer_hold"] == "yes"
        if self.high == "30for60" and self.options["hold_30for60"] == "no":
            may_hold = False
        if is_dealer and self.high is not None and may_hold:
            calls.append("hold")
        return calls

    def discard_order(self) -> list[str]:
        """Return all cards in the order in which they are decided on."""
        assert self.trump is not None
        by_height = [plain_of(suit, self.trump) for suit in SUITS]
        plain = [suit[i] for i in range(13) for suit in by_height if i < len(suit)]
        return trumps_of(self.trump) + plain

    def next_card(self) -> str | None:
        """Return the card that the mover decides on next, None when all is settled."""
        assert self.mover is not None
        left = [card for card in self.hands[self.mover] if card not in self.kept]
        return min(left, key=self.discard_order().index) if left else None

    # --- an action --------------------------------------------------------------------------------

    def play(self, word: str) -> None:
        """Do what the mover has chosen."""
        assert word in self.legal()
        seat = self.mover
        assert seat is not None
        if self.phase == "discard":
            self.events[seat].append((seat, word))
            self.decide(seat, word.startswith("keep"))
            self.settle(seat)
            return
        self.tell((seat, word))
        if self.phase == "auction":
            self.call(seat, word)
        elif self.phase == "trump":
            self.trump = word
            before = self.options["trump_named"] == "before_kitty"
            self.go_to_kitty() if before and self.options["kitty"] != "0" else self.first_discard()
        else:
            self.play_card(seat, word)

    def call(self, seat: int, word: str) -> None:
        """Speak in the auction."""
        self.calls += 1
        if word == "pass":
            self.passed[seat] = True
        else:
            if word == "hold":
                self.has_held = True
            else:
                self.high = word
            self.bids[seat] = self.high
            self.bidder = seat
        if self.calls < 4:
            self.mover = self.order()[self.calls]
            return
        if self.has_held and self.options["auction"] == "continue" and self.passed.count(False) > 1:
            following = [(seat + step) % 4 for step in (1, 2, 3, 4)]
            self.mover = next(other for other in following if not self.passed[other])
            assert self.mover != self.bidder
            return
        if self.high is None:
            self.finish_hand(bidding_side=None)
        elif self.options["trump_named"] == "after_kitty" and self.options["kitty"] != "0":
            self.go_to_kitty()
        else:
            self.phase, self.mover = "trump", self.bidder

    def go_to_kitty(self) -> None:
        """Wait for the kitty."""
        self.phase, self.mover = "kitty", None

    def take_kitty(self, cards: list[str]) -> None:
        """Give the kitty to the bidder."""
        assert self.bidder is not None
        assert len(cards) == int(self.options["kitty"])
        self.hands[self.bidder] += cards
        self.events[self.bidder].append(("kitty", *sorted(cards)))
        self.stock = [card for card in self.stock if card not in cards]
        if self.trump is None:
            self.phase, self.mover = "trump", self.bidder
        else:
            self.first_discard()

    # --- discards ---------------------------------------------------------------------------------

    def first_discard(self) -> None:
        """The seat at the dealer's left discards first."""
        self.phase = "discard"
        self.discarders = self.order()
        self.next_discard()

    def next_discard(self) -> None:
        """Let the next seat discard."""
        self.mover = self.discarders.pop(0)
        self.settle(self.mover)

    def decide(self, seat: int, keeps: bool) -> None:
        """Keep or throw the next card."""
        card = self.next_card()
        assert card is not None
        if keeps:
            self.kept.append(card)
        else:
            self.hands[seat].remove(card)
            self.thrown[seat].append(card)

    def settle(self, seat: int) -> None:
        """Pass over the cards about which there is no choice."""
        trumps = trumps_of(str(self.trump))
        while (card := self.next_card()) is not None:
            left = [c for c in self.hands[seat] if c not in self.kept]
            num_trumps = sum(c in trumps for c in self.hands[seat])
            if len(self.kept) == 5:
                self.decide(seat, keeps=False)
            elif (
                self.options["may_throw_trump"] == "no" and card in trumps and num_trumps <= 5
            ) or (self.options["min_keep"] == "1" and not self.kept and len(left) == 1):
                self.decide(seat, keeps=True)
            else:
                return
        self.kept = []
        self.mover = None
        self.tell((seat, "has discarded"))
        if not self.discarders:
            self.phase = "draw"

    def draw(self, drawn: list[list[str]]) -> None:
        """Let every seat draw these cards, and lead to the first trick."""
        for seat, cards in enumerate(drawn):
            assert len(self.hands[seat]) + len(cards) == 5
            self.hands[seat] += cards
            self.stock = [card for card in self.stock if card not in cards]
            self.drew[seat] = len(cards)
            self.events[seat].append(("draws", *sorted(cards)))
        self.tell(("drew", *self.drew))
        assert self.bidder is not None
        bidder_leads = self.options["leader"] == "bidder"
        self.phase, self.leader = "play", self.bidder if bidder_leads else (self.bidder + 1) % 4
        self.mover = self.leader

    # --- tricks and score -------------------------------------------------------------------------

    def play_card(self, seat: int, card: str) -> None:
        """Play a card; the fourth ends the trick."""
        assert self.trump is not None
        renege = self.options["renege"] == "on"
        if self.trick:
            # With any of these in hand the card would not have been legal.
            self.lacks[seat] |= {
                other
                for other in DECK
                if other != card
                and card not in legal_cards([card, other], self.trick[0], self.trump, renege)
            }
        self.hands[seat].remove(card)
        self.played[seat].append(card)
        self.trick.append(card)
        self.history.append(card)
        if len(self.trick) < 4:
            self.mover = (seat + 1) % 4
            return
        self.leader = (self.leader + trick_winner(self.trick, self.trump)) % 4
        self.mover = self.leader
        self.tricks[self.leader % 2] += 1
        self.trick = []
        if not any(self.hands):
            self.count()

    def raw(self, side: int) -> int:
        """Return the points of a side: tricks, and the best trump of all that were played."""
        out = [card for card in trumps_of(str(self.trump)) if card in self.history]
        best = 5 if out and out[0] in self.played[side] + self.played[side + 2] else 0
        return 5 * self.tricks[side] + best

    def count(self) -> None:
        """Score the hand."""
        assert self.bidder is not None
        assert self.high is not None
        side, other = self.bidder % 2, 1 - self.bidder % 2
        points = contract_score(self.high, self.raw(side), int(self.options["thirty_fail"]))
        entered = self.bids[other] is not None or self.bids[other + 2] is not None
        others = other_score(self.options, self.raw(other), self.scores[other], entered, points > 0)
        self.scores[side] += points
        self.scores[other] += others
        self.contracts[side] += 1
        self.made[side] += points > 0
        self.sets[side] += max(-points, 0)
        self.finish_hand(bidding_side=side)

    def finish_hand(self, bidding_side: int | None) -> None:
        """End the game, or wait for the next hand."""
        self.mover = None
        if bidding_side is not None:
            self.winner = winner_of(self.options, self.scores, bidding_side)
        last = self.hand_index + 1 == MAX_HANDS
        if self.winner is None and last:
            self.drawn_game = self.scores[0] == self.scores[1]
            if not self.drawn_game:
                self.winner = self.scores.index(max(self.scores))
        self.phase = "hand end" if self.winner is None and not self.drawn_game else "over"

    def next_hand(self, hands: list[list[str]]) -> None:
        """Deal the next hand; the deal has passed on."""
        self.dealer = (self.dealer + 1) % 4
        self.hand_index += 1
        self.deal(hands)
