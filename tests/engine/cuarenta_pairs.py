"""The compiled Cuarenta and its naive twin side by side: same positions, same moves, all compared.

Also a program: ``python -m tests.engine.cuarenta_pairs 20`` compares 20 positions and 2 games, with
or without the JIT.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from engine import rules
from engine.game import get_spec
from engine.games.cuarenta_encoder import cards_in_hand, stock_size
from engine.games.cuarenta_rules import action_rank, is_caida, is_paid_limpia, taken_cards
from engine.games.cuarenta_state import PASSED_BY_PLACING, PASSED_BY_TAKING
from engine.games.cuarenta_text import base_name
from engine.rules import CHANCE, TERMINAL
from tests.engine.twins import Looking, expect
from tests.naive.cuarenta import Card, NaiveCuarenta

SPEC = get_spec("cuarenta")
ALL_CARDS = (1 << 40) - 1
UNKNOWN, NONE, SOME = 0, 1, 2


def ranks(mask: int) -> list[int]:
    """Return the ranks (1 .. 10) of a card mask, ascending."""
    return [card // 4 + 1 for card in range(40) if int(mask) >> card & 1]


def passed_ranks(passed: int) -> dict[int, set[str]]:
    """Return what a seat passed over, by rank, as the twin writes it."""
    flags = {"by placing": PASSED_BY_PLACING, "by taking": PASSED_BY_TAKING}
    found: dict[int, set[str]] = {}
    for rank in range(1, 11):
        for how, flag in flags.items():
            if int(passed) >> (rank - 1 + flag) & 1:
                found.setdefault(rank, set()).add(how)
    return found


def random_options(rng: random.Random) -> dict[str, str]:
    """Return a preset with each switch changed to a random value with probability 1/4."""
    options = SPEC.describe(SPEC.make(rng.choice(list(SPEC.presets))))
    for name, option in SPEC.options.items():
        if rng.random() < 0.25:
            if option.values is not None:
                options[name] = rng.choice(list(option.values))
            else:
                options[name] = str(rng.choice([20, 30, 40]))
    return options


class Pair(Looking):
    """One position, twice."""

    def __init__(self, game: Any, state: Any, naive: NaiveCuarenta) -> None:
        self.game, self.state, self.naive = game, state, naive
        self.num_seats = int(rules.num_seats(game))
        self.views = SPEC.new_states(self.num_seats)
        self.actions = np.zeros(SPEC.max_actions, np.int64)
        self.events: list[list[tuple[object, ...]]] = [list(seen) for seen in naive.events]
        self.look()

    def look(self) -> None:
        """Take every seat's view and compare it with what the twin lets that seat know."""
        for seat in range(self.num_seats):
            rules.view(self.game, self.state, seat, self.views[seat])
        if not self.is_due():
            return
        self.compare_places()
        for seat in range(self.num_seats):
            expect(f"seat {seat}", self.engine_knows(seat), self.naive_knows(seat))

    def compare_places(self) -> None:
        """Every card is in one place, and in the same one in both."""
        state, naive = self.state, self.naive
        masks = [int(m) for m in (*state.hands, *state.piles, state.table, state.stock)]
        expect("number of cards", sum(mask.bit_count() for mask in masks), 40)
        expect("cards", sum(masks), ALL_CARDS)
        expect("cards", naive.all_cards(), Counter(dict.fromkeys(range(1, 11), 4)))
        expect("stock", ranks(state.stock), sorted(naive.stock))
        for seat in range(self.num_seats):
            expect("hand", ranks(state.hands[seat]), sorted(naive.hands[seat]))

    def engine_knows(self, seat: int) -> dict[str, object]:
        """Return what the view of ``seat`` says."""
        game, view = self.game, self.views[seat]
        seats = range(self.num_seats)
        current = int(rules.current_seat(game, view))
        return {
            "hand": ranks(view.hands[seat]),
            "others": [int(view.hands[other]) for other in range(4) if other != seat],
            "hidden": (int(view.seed), int(view.stock)),
            "table": ranks(view.table),
            "piles": [ranks(pile) for pile in view.piles],
            "ref": None if view.ref < 0 else int(view.ref) // 4 + 1,
            "scores": [int(score) for score in view.scores],
            "stats": [[int(n) for n in x] for x in (view.caidas, view.limpias, view.captured)],
            "carton": [int(points) for points in view.carton],
            "played": [ranks(view.played[other]) for other in seats],
            "passed": [passed_ranks(view.passed[other]) for other in seats],
            "announced": [
                {UNKNOWN: "unknown", NONE: "none", SOME: "some"}.get(code, code - SOME)
                for code in (int(view.ronda[other]) for other in seats)
            ],
            "sizes": [int(cards_in_hand(view, other)) for other in seats],
            "stock": int(stock_size(game, view)),
            "dealer": int(view.dealer),
            "to_move": None if current < 0 else current,
            "over": current == TERMINAL,
            "winner": int(view.winner),
        }

    def naive_knows(self, seat: int) -> dict[str, object]:
        """Return the same from the twin."""
        naive = self.naive
        over = naive.winner is not None
        return {
            "hand": sorted(naive.hands[seat]),
            "others": [0, 0, 0],
            "hidden": (0, 0),
            "table": sorted(card.rank for card in naive.table),
            "piles": [sorted(pile) for pile in naive.piles],
            "ref": naive.ref.rank if naive.ref else None,
            "scores": naive.scores,
            "stats": [naive.caidas, naive.limpias, naive.captured],
            "carton": naive.cartons,
            "played": [sorted(cards) for cards in naive.played],
            "passed": naive.passed,
            "announced": naive.announced,
            "sizes": [len(hand) for hand in naive.hands],
            "stock": len(naive.stock),
            "dealer": naive.dealer,
            "to_move": naive.to_move(),
            "over": over,
            "winner": naive.winner if over else -1,
        }

    def decode(self, view: Any, code: int) -> tuple[int, tuple[int, ...], str]:
        """Return an engine action as the twin writes it."""
        taken = taken_cards(self.game, view.table, view.ref, code)
        return int(action_rank(code)) + 1, tuple(ranks(taken)), base_name(code)

    def step(self, rng: random.Random) -> bool:
        """Compare the legal actions, make one move; return False when the game is over."""
        seat = int(rules.current_seat(self.game, self.state))
        if seat == TERMINAL:
            for other in range(self.num_seats):
                expect("events", self.events[other], self.naive.events[other])
            self.compare_returns()
            return False
        if seat == CHANCE:
            self.next_deal()
        else:
            self.ply(seat, rng)
        self.look()
        return True

    def next_deal(self) -> None:
        """Deal in the engine, and tell the twin."""
        rules.deal_next(self.game, self.state)
        hands = [ranks(self.state.hands[seat]) for seat in range(self.num_seats)]
        self.naive.next_deal(hands)
        self.look()
        for seat in range(self.num_seats):
            view = self.views[seat]
            self.events[seat].append(("deal", tuple(ranks(view.hands[seat]))))
            for turn in range(self.num_seats):
                other = (int(view.dealer) + 1 + turn) % self.num_seats
                code = int(view.ronda[other])
                if code >= SOME:
                    self.events[seat].append(("ronda", other, code - SOME or None))
            if rules.current_seat(self.game, view) == TERMINAL:
                self.events[seat].append(("end", int(view.winner)))

    def ply(self, seat: int, rng: random.Random) -> None:
        """Compare legal actions and their points, then play one of them in both."""
        game, state, view = self.game, self.state, self.views[seat]
        count = int(rules.legal_actions(game, view, self.actions))
        codes = [int(code) for code in self.actions[:count]]
        expect("legal from the state", int(rules.legal_actions(game, state, self.actions)), count)
        expect("order", codes, sorted(set(codes)))
        legal = {action.key(): action for action in self.naive.legal()}
        decoded = [self.decode(view, code) for code in codes]
        expect("legal", sorted(decoded), sorted(legal))
        for code, key in zip(codes, decoded, strict=True):
            taken = taken_cards(game, view.table, view.ref, code)
            caida = int(is_caida(game, view, code, taken))
            limpia = int(is_paid_limpia(game, view, taken, caida))
            expect(f"points of {key}", (caida, limpia), self.naive.points(legal[key]))
        # Captures are rarer than placements and tell more.
        captures = [i for i, key in enumerate(decoded) if key[2] != "place"]
        index = rng.choice(captures) if captures and rng.random() < 0.6 else rng.randrange(count)
        before = [int(score) for score in state.scores]
        carton = [int(points) for points in state.carton]
        for other in range(self.num_seats):
            key = rules.observe_action(game, state, codes[index], other)
            self.events[other].append(("play", seat, *self.decode(self.views[other], int(key))))
        self.naive.play(legal[decoded[index]])
        rules.apply(game, state, codes[index])
        self.look()
        self.see_end(seat & 1, before, carton)

    def see_end(self, side: int, before: list[int], carton: list[int]) -> None:
        """Note the count and the end of the game as every seat sees them after a ply."""
        for seat in range(self.num_seats):
            view = self.views[seat]
            points = [int(view.carton[k]) - carton[k] for k in range(2)]
            own = int(view.scores[side]) - points[side]
            won = own > before[side] and own >= self.game.target and self.game.end_mid_deal == 1
            if view.plies_in_hand == 40 and not won:
                self.events[seat].append(("count", *points))
            if rules.current_seat(self.game, view) == TERMINAL:
                self.events[seat].append(("end", int(view.winner)))

    def compare_returns(self) -> None:
        """The outcome per side."""
        out = np.zeros(2)
        rules.returns(self.game, self.state, out)
        winner = self.naive.winner
        wanted = [0.0, 0.0] if winner == -1 else [1.0 if s == winner else -1.0 for s in range(2)]
        expect("returns", list(out), wanted)


# --- positions ------------------------------------------------------------------------------------


def new_game(
    options: dict[str, str], seed: int, naive_options: dict[str, str] | None = None
) -> Pair:
    """Return a pair at the first ply of a game."""
    game = SPEC.make("", options)
    state = SPEC.new_state()
    rules.deal(game, state, np.uint64(seed))
    naive = NaiveCuarenta(naive_options or options, int(state.dealer))
    naive.deal([ranks(state.hands[seat]) for seat in range(game.players)])
    return Pair(game, state, naive)


def random_position(
    options: dict[str, str], rng: random.Random, naive_options: dict[str, str] | None = None
) -> Pair:
    """Return a pair in the middle of a game: anything that the sizes of hands allow."""
    naive = NaiveCuarenta(naive_options or options, rng.randrange(int(options["players"])))
    per_deal = 5 * naive.players
    late = rng.random() < 0.5
    deal = 40 // per_deal - 1 if late else rng.randrange(40 // per_deal)
    ply = rng.randrange(per_deal)
    if late:
        ply = max(ply, rng.randrange(per_deal))
    naive.plies = deal * per_deal + ply
    naive.hand_index = 99 if rng.random() < 0.05 else rng.randrange(4)
    cards = [rank for rank in range(1, 11) for _ in range(4)]
    rng.shuffle(cards)
    if rng.random() < 0.5:  # a stock of few ranks, for threes and fours in the next deal
        order = rng.sample(range(1, 11), 10)
        cards.sort(key=order.index)
    naive.stock = [cards.pop() for _ in range(40 - (deal + 1) * per_deal)]
    rng.shuffle(cards)
    for turn, seat in enumerate(naive.order()):
        played = ply // naive.players + (turn < ply % naive.players)
        naive.hands[seat] = sorted(cards.pop() for _ in range(5 - played))
        naive.played[seat] = cards[:0]
    fill_table(naive, cards, rng)
    most = 48 if options["end_mid_deal"] == "no" else int(options["target"]) - 2
    for side in (0, 1):
        naive.scores[side] = 2 * rng.randint(0 if rng.random() < 0.3 else most // 2 - 5, most // 2)
        naive.scores[side] = max(naive.scores[side], 0)
    naive.last_capturer = rng.choice([None, 0, 1])
    game = SPEC.make("", options)
    return Pair(game, to_engine(game, naive, rng), naive)


def fill_table(naive: NaiveCuarenta, cards: list[int], rng: random.Random) -> None:
    """Put ``cards`` (all that have been played) on the table and the piles."""
    out = list(cards)
    few = naive.plies > 35 and rng.random() < 0.7
    size = min(
        len(cards), rng.choice([0, 0, 1, 2]) if few else rng.choice([1, 2, 3, 4, 5, 7, 9, 16])
    )
    naive.table = [Card(cards.pop()) for _ in range(size)]
    half = len(cards) // 2 + rng.choice([-1, 0, 0, 1]) if few else rng.randint(0, len(cards))
    naive.piles = [cards[:half], cards[half:]]
    rng.shuffle(out)
    for seat in range(naive.players):
        naive.played[seat] = [out.pop() for _ in range(5 - len(naive.hands[seat]))]
    ply = naive.plies % (5 * naive.players)
    order = naive.order()
    if naive.table and ply and rng.random() < 0.7:
        naive.ref = rng.choice(naive.table)
        back = rng.randint(1, naive.players) if naive.options["caida_ref_sticky"] == "yes" else 1
        naive.ref_seat = order[(ply - back) % naive.players]


def to_engine(game: Any, naive: NaiveCuarenta, rng: random.Random) -> Any:
    """Return the engine's state of a twin's position, with random suits."""
    suits = {rank: rng.sample(range(4), 4) for rank in range(1, 11)}

    def mask(cards: Iterable[int]) -> np.uint64:
        return np.uint64(sum(1 << (4 * (rank - 1) + suits[rank].pop()) for rank in cards))

    state = SPEC.new_state()
    for seat, hand in enumerate(naive.hands):
        state.hands[seat] = mask(hand)
    table = [(card, mask([card.rank])) for card in naive.table]
    state.table = np.uint64(sum(int(bit) for _, bit in table))
    for side in (0, 1):
        state.piles[side] = mask(naive.piles[side])
        state.scores[side] = naive.scores[side]
    state.stock = mask(naive.stock)
    out = int(state.table) | int(state.piles[0]) | int(state.piles[1])
    for seat, cards in enumerate(naive.played):
        for rank in cards:
            card = next(c for c in range(4 * rank - 4, 4 * rank) if out >> c & 1)
            out &= ~(1 << card)
            state.played[seat] |= np.uint64(1 << card)
    state.seed = np.uint64(rng.getrandbits(64))
    state.plies_in_hand, state.hand_index = naive.plies, naive.hand_index
    state.dealer, state.to_move, state.winner = naive.dealer, naive.to_move(), -1
    state.ref = next((int(bit).bit_length() - 1 for card, bit in table if card is naive.ref), -1)
    state.ref_seat = 0 if naive.ref is None else naive.ref_seat
    state.last_capturer = -1 if naive.last_capturer is None else naive.last_capturer
    return state


def compare(pair: Pair, rng: random.Random, max_steps: int = 2000) -> None:
    """Play on in both until the end. Raises Mismatch."""
    for _ in range(max_steps):
        if not pair.step(rng):
            return


def main(num_positions: int) -> None:
    """Compare positions and games with options of all kinds."""
    rng = random.Random(7)
    for _ in range(num_positions):
        compare(random_position(random_options(rng), rng), rng, max_steps=12)
    for seed in range(max(num_positions // 10, 1)):
        compare(new_game(random_options(rng), seed), rng)


if __name__ == "__main__":
    main(int(sys.argv[1]))
