"""Cuarenta as plainly as it can be said: lists of cards, no bits, no numpy, nothing of the engine.

Options are words, as people write them. Chance is given from outside: ``deal`` is told the hands.
Ranks are 1 .. 10 (A 2 3 4 5 6 7 J Q K); only 1 .. 7 are numbers. Every seat keeps the list of
events that it saw.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field

MAX_HANDS = 100
NOT_OVER, DRAWN = None, -1


@dataclass(eq=False)
class Card:
    """One card on the table: equal ranks are told apart by identity."""

    rank: int


@dataclass(eq=False)
class Action:
    """A card played, and the table cards it takes."""

    rank: int
    base: str
    cards: list[Card] = field(default_factory=list)

    def key(self) -> tuple[int, tuple[int, ...], str]:
        """Return what anybody sees of the action."""
        return self.rank, tuple(sorted(card.rank for card in self.cards)), self.base


def carton(pile: int) -> int:
    """Return the points of a pile of 20 or more."""
    points = pile - 14
    return points + points % 2


class NaiveCuarenta:
    """A game between its first deal and its end."""

    def __init__(self, options: dict[str, str], dealer: int) -> None:
        self.options = options
        self.players = int(options["players"])
        self.target = int(options["target"])
        self.dealer = dealer
        self.hand_index = 0
        self.scores = [0, 0]
        self.caidas, self.limpias = [0, 0], [0, 0]
        self.captured, self.cartons = [0, 0], [0, 0]
        self.winner: int | None = NOT_OVER
        self.events: list[list[tuple[object, ...]]] = [[] for _ in range(self.players)]
        self.new_hand()

    def new_hand(self) -> None:
        """Gather all cards."""
        self.stock = [rank for rank in range(1, 11) for _ in range(4)]
        self.table: list[Card] = []
        self.piles: list[list[int]] = [[], []]
        self.hands: list[list[int]] = [[] for _ in range(self.players)]
        self.played: list[list[int]] = [[] for _ in range(self.players)]
        self.passed: list[dict[int, set[str]]] = [{} for _ in range(self.players)]
        self.announced: list[str | int] = ["unknown"] * self.players
        self.ref: Card | None = None
        self.ref_seat: int | None = None
        self.last_capturer: int | None = None
        self.plies = 0

    def order(self) -> list[int]:
        """Return the seats in the order in which they play."""
        return [(self.dealer + 1 + turn) % self.players for turn in range(self.players)]

    def tell(self, event: tuple[object, ...]) -> None:
        """Let every seat see ``event``."""
        for seen in self.events:
            seen.append(event)

    def to_move(self) -> int | None:
        """Return the seat to move; None when a deal is due or the game is over."""
        if self.winner is not NOT_OVER or not any(self.hands):
            return None
        return self.order()[self.plies % self.players]

    def all_cards(self) -> Counter[int]:
        """Return every card wherever it lies."""
        cards = Counter(self.stock)
        for pile in (*self.hands, *self.piles, [card.rank for card in self.table]):
            cards.update(pile)
        return cards

    # --- dealing ----------------------------------------------------------------------------------

    def next_deal(self, hands: list[list[int]]) -> None:
        """Deal ``hands``; a new hand of forty cards first when the last one is played out."""
        if self.plies == 40:
            self.dealer = (self.dealer + 1) % self.players
            self.hand_index += 1
            self.new_hand()
        self.deal(hands)

    def deal(self, hands: list[list[int]]) -> None:
        """Deal ``hands`` and score what that pays."""
        for seat, hand in enumerate(hands):
            assert len(hand) == 5
            for rank in hand:
                self.stock.remove(rank)
            self.hands[seat] = sorted(hand)
            self.events[seat].append(("deal", tuple(sorted(hand))))
        self.played = [[] for _ in range(self.players)]
        self.passed = [{} for _ in range(self.players)]
        self.announced = ["unknown"] * self.players
        if self.options["caida_across_deals"] == "no":
            self.ref = None
        if self.options["four_of_a_kind"] == "wins":
            self.score_fours()
        if self.options["ronda"] != "0" and self.winner is NOT_OVER:
            for seat in self.order():
                self.score_ronda(seat)

    def score_fours(self) -> None:
        """Four of a rank win; on both sides they draw."""
        sides = {
            seat % 2 for seat in range(self.players) if 4 in Counter(self.hands[seat]).values()
        }
        if len(sides) == 2:
            self.end(DRAWN)
        elif sides:
            (side,) = sides
            self.scores[side] = max(self.scores[side], self.target)
            self.end(side)

    def score_ronda(self, seat: int) -> None:
        """Exactly three of a rank pay, below the cap."""
        side = seat % 2
        if self.winner is not NOT_OVER or self.scores[side] >= int(self.options["ronda_cap"]):
            return
        threes = [rank for rank, count in Counter(self.hands[seat]).items() if count == 3]
        if not threes:
            self.announced[seat] = "none"
            return
        shown = self.options["ronda_reveals_rank"] == "yes"
        self.announced[seat] = threes[0] if shown else "some"
        self.tell(("ronda", seat, threes[0] if shown else None))
        self.add(side, int(self.options["ronda"]))

    def add(self, side: int, points: int) -> None:
        """Score points; the target ends the game at once, if the options say so."""
        self.scores[side] += points
        if self.options["end_mid_deal"] == "yes" and self.scores[side] >= self.target:
            self.end(side)

    def end(self, winner: int) -> None:
        """End the game, unless it is over."""
        if self.winner is NOT_OVER:
            self.winner = winner
            self.tell(("end", winner))

    # --- legal actions ----------------------------------------------------------------------------

    def pick(self, ranks: list[int]) -> list[Card]:
        """Return cards of the given ranks from the table, the reference before its equals."""
        free = sorted(self.table, key=lambda card: card is not self.ref)
        picked = []
        for rank in ranks:
            card = next(card for card in free if card.rank == rank)
            free.remove(card)
            picked.append(card)
        return picked

    def bases(self, rank: int) -> list[tuple[str, list[int]]]:
        """Return the matches and sums of a played rank, as the ranks that they take."""
        on_table = [card.rank for card in self.table]
        found: list[tuple[str, list[int]]] = []
        if rank in on_table:
            all_equal = self.options["match_takes"] == "all_equal"
            found.append(("match", [rank] * (on_table.count(rank) if all_equal else 1)))
        if rank <= 7:
            numbers = [number for number in on_table if number <= 7]
            most = 2 if self.options["sum_cards"] == "2" else len(numbers)
            sums = {
                tuple(sorted(cards))
                for size in range(2, most + 1)
                for cards in itertools.combinations(numbers, size)
                if sum(cards) == rank
            }
            found += [("sum", list(cards)) for cards in sorted(sums)]
        return found

    def runs(self, rank: int, base: str) -> list[list[int]]:
        """Return the runs that may follow a base."""
        if self.options["run"] == "none":
            return [[]]
        if base == "sum" and self.options["run_after_sum"] == "no":
            return [[]]
        run: list[int] = []
        while any(card.rank == rank + 1 + len(run) for card in self.table):
            run.append(rank + 1 + len(run))
        if self.options["run"] == "optional":
            return [run[:length] for length in range(len(run) + 1)]
        return [run]

    def legal(self) -> list[Action]:
        """Return the distinct legal actions of the seat to move."""
        seat = self.to_move()
        assert seat is not None
        actions = []
        for rank in sorted(set(self.hands[seat])):
            bases = self.bases(rank)
            for base, taken in bases:
                for run in self.runs(rank, base):
                    actions.append(Action(rank, base, self.pick(taken + run)))
            if not bases or self.options["must_capture"] == "no":
                actions.append(Action(rank, "place"))
        return actions

    # --- a ply ------------------------------------------------------------------------------------

    def points(self, action: Action) -> tuple[int, int]:
        """Return the caida and the limpia of an action, each 0 or 1."""
        seat = self.to_move()
        assert seat is not None
        caida = self.ref is not None and self.ref in action.cards
        if self.options["caida_by"] == "match":
            caida = caida and action.base == "match" and self.ref.rank == action.rank  # type: ignore[union-attr]
        if self.ref_seat is not None and self.ref_seat % 2 == seat % 2:
            caida = False
        clears = bool(action.cards) and len(action.cards) == len(self.table)
        score = self.scores[seat % 2]
        if self.options["limpia_cap_test"] == "after_caida" and caida:
            score += 2
        limpia = clears and (self.options["limpia_cap"] == "none" or score < 38)
        if caida and limpia and self.options["caida_plus_limpia"] == "2":
            limpia = False
        return int(caida), int(limpia)

    def note_passed(self, seat: int, action: Action) -> None:
        """Note the ranks that would have taken something where the seat plays another one."""
        how = "by placing" if action.base == "place" else "by taking"
        for rank in range(1, 11):
            if self.bases(rank):
                self.passed[seat].setdefault(rank, set()).add(how)
        self.passed[seat].pop(action.rank, None)

    def play(self, action: Action) -> None:
        """Play one of the legal actions."""
        seat = self.to_move()
        assert seat is not None
        side = seat % 2
        caida, limpia = self.points(action)
        self.note_passed(seat, action)
        self.hands[seat].remove(action.rank)
        self.played[seat].append(action.rank)
        self.plies += 1
        self.tell(("play", seat, *action.key()))
        if action.base == "place":
            self.ref = Card(action.rank)
            self.ref_seat = seat
            self.table.append(self.ref)
        else:
            self.table = [card for card in self.table if card not in action.cards]
            self.piles[side] += [action.rank] + [card.rank for card in action.cards]
            self.captured[side] += len(action.cards)
            self.caidas[side] += caida
            self.limpias[side] += limpia
            self.last_capturer = side
            if self.options["caida_ref_sticky"] == "no" or self.ref in action.cards:
                self.ref = None
            self.add(side, 2 * caida + 2 * limpia)
        if self.winner is NOT_OVER and not any(self.hands):
            if self.options["caida_across_deals"] == "no" or self.plies == 40:
                self.ref = None
            if self.plies == 40:
                self.count()

    # --- the end of a hand ------------------------------------------------------------------------

    def count_points(self, sizes: tuple[int, int], next_side: int) -> list[int]:
        """Return the points of two piles, before any cut-off by score."""
        if sizes == (20, 20):
            split = self.options["split_20_20"]
            if split == "6-6":
                return [6, 6]
            points = [0, 0]
            points[next_side] = 6 if split == "6_next_dealer" else 2
            return points
        if max(sizes) >= 20:
            return [carton(size) if size >= 20 else 0 for size in sizes]
        points = [0, 0]
        if sizes[0] != sizes[1]:
            points[sizes.index(max(sizes))] = int(self.options["below20"])
        else:
            points[next_side] = int(self.options["below20"])
        return points

    def count(self) -> None:
        """Count the piles, and end the game if it is won or has gone on for too long."""
        next_side = (self.dealer + 1) % 2
        if self.options["leftover"] == "last_capturer" and self.last_capturer is not None:
            self.piles[self.last_capturer] += [card.rank for card in self.table]
            self.table = []
        points = self.count_points((len(self.piles[0]), len(self.piles[1])), next_side)
        cutoff = self.options["carton_cutoff"]
        for side in (0, 1):
            if cutoff != "none" and self.scores[side] >= int(cutoff):
                points[side] = 0
            self.scores[side] += points[side]
            self.cartons[side] += points[side]
        self.tell(("count", *points))
        equal = self.scores[0] == self.scores[1]
        higher = 0 if self.scores[0] > self.scores[1] else 1
        if min(self.scores) >= self.target:
            if equal or self.options["both_40"] == "non_dealing_side":
                self.end(next_side)
            else:
                self.end(higher)
        elif max(self.scores) >= self.target:
            self.end(higher)
        elif self.hand_index + 1 == MAX_HANDS:
            self.end(DRAWN if equal else higher)
