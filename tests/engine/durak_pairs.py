"""The compiled Durak and its naive twin side by side: same positions, same moves, all compared.

Also a program: ``python -m tests.engine.durak_pairs 20`` compares 20 positions and 2 games, with or
without the JIT.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from engine import rules
from engine.game import get_spec
from engine.games.durak_rules import discarded, known_cards, low_trump_of
from engine.rules import CHANCE, TERMINAL
from tests.engine.twins import Looking, expect
from tests.naive.durak import DECK, SUITS, NaiveDurak, holder_of_lowest_trump, lowest_trump

SPEC = get_spec("durak")
PHASES = ("attack", "defend", "throw in", "taking", "beaten", "taken", "over")
LOWEST_BEGAN, NOBODY_HAD_TRUMP, NO_FIVE = 1, 2, 4


def names(mask: int) -> list[str]:
    """Return the cards of a mask."""
    return [DECK[card] for card in range(36) if int(mask) >> card & 1]


def mask_of(cards: Iterable[str]) -> np.uint64:
    """Return the mask of cards."""
    return np.uint64(sum(1 << DECK.index(card) for card in cards))


def ordered(cards: Iterable[str]) -> list[str]:
    """Return cards in the order of the deck."""
    return sorted(cards, key=DECK.index)


def random_options(rng: random.Random) -> dict[str, str]:
    """Return a preset with each switch changed to a random value with probability 1/3."""
    options = SPEC.describe(SPEC.make(rng.choice(list(SPEC.presets))))
    for name, option in SPEC.options.items():
        if rng.random() < 1 / 3:
            if option.values is not None:
                options[name] = rng.choice(list(option.values))
            elif name == "max_plies":
                options[name] = str(rng.choice([1, 7, 40, 120, 1000]))
            else:
                options[name] = str(rng.randint(option.low, option.high))
    return options


class Pair(Looking):
    """One position, twice."""

    def __init__(self, game: Any, state: Any, naive: NaiveDurak) -> None:
        self.game, self.state, self.naive = game, state, naive
        self.num_seats = int(rules.num_seats(game))
        self.views = SPEC.new_states(self.num_seats)
        self.actions = np.zeros(SPEC.max_actions, np.int64)
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
        size = int(state.stock_size)
        stock = [DECK[card] for card in state.stock[:size][::-1]]
        places = [names(hand) for hand in state.hands]
        places += [names(discarded(state)), stock, names(state.covers)]
        places += [[DECK[card] for card in state.attacks[: state.num_attacks]]]
        expect("cards", ordered(card for place in places for card in place), DECK)
        expect("stock", stock, naive.stock)
        for seat in range(self.num_seats):
            expect("hand", names(state.hands[seat]), ordered(naive.hands[seat]))
        everywhere = [*naive.stock, *naive.discard, *(c for pair in naive.table for c in pair)]
        everywhere += [card for hand in naive.hands for card in hand]
        expect("cards of the twin", ordered(everywhere), DECK)

    def engine_knows(self, seat: int) -> dict[str, object]:
        """Return what the view of ``seat`` says."""
        view, seats = self.views[seat], range(self.num_seats)
        current = int(rules.current_seat(self.game, view))
        attacks = [DECK[card] for card in view.attacks[: view.num_attacks]]
        over = current == TERMINAL
        shown = {
            DECK[card]: divmod(int(code), 64) for card, code in enumerate(view.first_shown) if code
        }
        return {
            "hand": names(view.hands[seat]),
            "others": [names(view.hands[other]) for other in seats if other != seat],
            "hidden": [int(low_trump_of(view, other)) for other in range(4) if other != seat],
            "stock": (int(view.stock_size), [int(card) for card in view.stock if card >= 0]),
            "beyond": {int(card) for card in view.attacks[len(attacks) :]} <= {-1},
            "known": [names(known_cards(view, other)) for other in seats],
            "sizes": [int(view.sizes[other]) for other in seats],
            "given": [int(view.given[other]) for other in seats],
            "shown": shown,
            "discard": names(discarded(view)),
            "table": (attacks, names(view.covers), int(view.num_covers)),
            "trump": (SUITS[view.trump], DECK[view.turned_up]),
            "phase": None if over else PHASES[view.phase],
            "roles": None if over else (int(view.attacker), int(view.defender)),
            "defender_cards": None if over or current < 0 else int(view.defender_cards),
            "passed": {o for o in seats if not over and int(view.passed) >> o & 1},
            "out": {other: int(view.finished[other]) for other in seats if view.finished[other]},
            "counts": (int(view.plies), int(view.bouts), bool(view.beaten)),
            "to_move": None if current < 0 else current,
            "over": over,
            "durak": int(view.durak),
        }

    def naive_knows(self, seat: int) -> dict[str, object]:
        """Return the same from the twin."""
        naive = self.naive
        over = naive.over
        covers = [card for pair in naive.table for card in pair[1:]]
        return {
            "hand": ordered(naive.hands[seat]),
            "others": [
                ordered(naive.known[other]) for other in range(self.num_seats) if other != seat
            ],
            "hidden": [15] * 3,
            "stock": (len(naive.stock), [DECK.index(card) for card in naive.stock[-1:]]),
            "beyond": True,
            "known": [ordered(cards) for cards in naive.known],
            "sizes": [len(hand) for hand in naive.hands],
            "given": naive.given,
            "shown": naive.first_shown,
            "discard": ordered(naive.discard),
            "table": ([pair[0] for pair in naive.table], ordered(covers), len(covers)),
            "trump": (naive.trump, naive.turned_up),
            "phase": None if over else naive.phase,
            "roles": None if over else (naive.attacker, naive.defender),
            "defender_cards": None if naive.to_move() is None else naive.defender_cards,
            "passed": naive.passed if not over else set(),
            "out": naive.out,
            "counts": (naive.num_plies, naive.num_bouts, naive.num_beaten > 0),
            "to_move": naive.to_move(),
            "over": over,
            "durak": naive.durak,
        }

    def step(self, rng: random.Random) -> bool:
        """Compare the legal actions, make one move; return False when the game is over."""
        seat = int(rules.current_seat(self.game, self.state))
        if seat == TERMINAL:
            out = np.zeros(self.num_seats)
            rules.returns(self.game, self.state, out)
            expect("returns", list(out), self.naive.outcome())
            return False
        if seat == CHANCE:
            before = [int(given) for given in self.state.given]
            receives = [
                bool(rules.receives_cards(self.game, self.state, other))
                for other in range(self.num_seats)
            ]
            self.naive.draw()
            rules.deal_next(self.game, self.state)
            now = [self.state.given[i] > before[i] for i in range(self.num_seats)]
            expect("receives", receives, now)
        else:
            self.ply(seat, rng)
        self.look()
        return True

    def ply(self, seat: int, rng: random.Random) -> None:
        """Compare legal actions, then play one of them in both."""
        game, state, view = self.game, self.state, self.views[seat]
        count = int(rules.legal_actions(game, view, self.actions))
        codes = [int(code) for code in self.actions[:count]]
        expect("legal from the state", int(rules.legal_actions(game, state, self.actions)), count)
        expect("order", codes, sorted(set(codes)))
        texts = [SPEC.format_action(game, view, code) for code in codes]
        expect("legal", sorted(texts), sorted(self.naive.legal()))
        index = self.choose(texts, rng)
        for other in range(self.num_seats):
            expect(
                "seen", int(rules.observe_action(game, state, codes[index], other)), codes[index]
            )
        self.naive.play(texts[index])
        rules.apply(game, state, codes[index])

    @staticmethod
    def choose(texts: list[str], rng: random.Random) -> int:
        """Prefer what is rare: passing an attack on, several cards, and then playing to passing."""
        rare = [i for i, text in enumerate(texts) if ":" in text or "+" in text or text == "swap"]
        cards = [i for i, text in enumerate(texts) if text not in ("take", "pass")]
        if rare and rng.random() < 0.4:
            return rng.choice(rare)
        if cards and rng.random() < 0.6:
            return rng.choice(cards)
        return rng.randrange(len(texts))


# --- positions ------------------------------------------------------------------------------------


def new_game(
    options: dict[str, str], seed: int, naive_options: dict[str, str] | None = None
) -> Pair:
    """Return a pair at the first ply of a game; who attacks and what that tells is compared too."""
    game = SPEC.make("", options)
    state = SPEC.new_state()
    rules.deal(game, state, np.uint64(seed))
    size = int(state.stock_size)
    stock = [DECK[card] for card in state.stock[:size][::-1]]
    hands = [names(state.hands[seat]) for seat in range(game.players)]
    naive = NaiveDurak(naive_options or options, hands, stock, stock[-1][-1])
    compare_first_attacker(naive, state)
    naive.begin(int(state.attacker))
    return Pair(game, state, naive)


def compare_first_attacker(naive: NaiveDurak, state: Any) -> None:
    """Compare who attacks first, and the facts that this tells."""
    options, attacker, facts = naive.options, int(state.attacker), int(state.facts)
    expect("first attacker", int(state.first_attacker), attacker)
    if options["redeal"] == "yes":
        most = max(sum(c[-1] == s for c in hand) for hand in naive.hands for s in SUITS)
        expect("five of a suit", most >= 5, False)
        expect("fact of suits", facts & NO_FIVE, NO_FIVE)
        facts &= ~NO_FIVE
    if options["first_attacker"] == "after_last_loser":
        loser = int(options["last_loser"]) % naive.num_seats
        expect("defends first", (attacker + 1) % naive.num_seats, loser)
    if options["first_attacker"] != "lowest_trump":
        expect("facts", facts, 0)
        return
    holder = holder_of_lowest_trump(naive.hands, naive.trump)
    expect("facts", facts, NOBODY_HAD_TRUMP if holder is None else LOWEST_BEGAN)
    if holder is not None:
        expect("first attacker", attacker, holder)
    for seat, hand in enumerate(naive.hands):
        low = lowest_trump(hand, naive.trump)
        expect("lowest trump", int(low_trump_of(state, seat)), 9 if low is None else low)


def random_position(
    options: dict[str, str], rng: random.Random, naive_options: dict[str, str] | None = None
) -> Pair:
    """Return a pair at the start of a bout in the middle or near the end of a game."""
    num_seats = int(options["players"])
    cards = list(DECK)
    rng.shuffle(cards)
    if rng.random() < 0.6:  # few ranks, for transfers, sets and throw-ins
        order = rng.sample([card[:-1] for card in DECK[:9]], 9)
        cards.sort(key=lambda card: order.index(card[:-1]) + 2 * rng.random())
    trump = rng.choice(SUITS)
    stock: list[str] = []
    if rng.random() < 0.5:
        stock = [cards.pop() for _ in range(rng.choice([0, 1, 2, 3, 7]))]
        trumps = [card for card in cards if card[-1] == trump]
        rng.shuffle(trumps)
        stock.append(trumps[0])
        cards.remove(trumps[0])
    choices = rng.choice([[1, 1, 2, 3, 4], [1, 2, 3], [2, 4, 6, 6, 7], [7, 8, 9]])
    sizes = [6 if stock else rng.choice(choices) for _ in range(num_seats)]
    if not stock and num_seats > 2 and rng.random() < 0.3:
        sizes[rng.randrange(num_seats)] = 0
    hands = [[cards.pop(0) for _ in range(size)] for size in sizes]
    naive = NaiveDurak(naive_options or options, hands, stock, trump)
    naive.discard = cards
    naive.turned_up = naive.turned_up or "6" + trump
    naive.num_beaten = rng.choice([0, 1, 5])
    naive.num_bouts = naive.num_beaten + rng.choice([0, 2])
    naive.num_plies = 5 if int(options["max_plies"]) > 5 else 0
    naive.out = {seat: 1 for seat, size in enumerate(sizes) if size == 0}
    naive.begin(rng.choice([seat for seat, size in enumerate(sizes) if size]))
    game = SPEC.make("", options)
    return Pair(game, to_engine(game, naive, rng), naive)


def to_engine(game: Any, naive: NaiveDurak, rng: random.Random) -> Any:
    """Return the engine's state of a twin's position at the start of a bout."""
    state = SPEC.new_state()
    rules.deal(game, state, np.uint64(rng.getrandbits(64)))  # what is not set below is cleared
    state.facts = 0
    state.low_trumps = 0xFFFF
    for seat, hand in enumerate(naive.hands):
        state.hands[seat] = mask_of(hand)
        state.sizes[seat] = state.given[seat] = len(hand)
        state.finished[seat] = naive.out.get(seat, 0)
    size = len(naive.stock)
    state.stock[:] = -1
    state.stock[:size] = [DECK.index(card) for card in naive.stock[::-1]]
    state.stock_size = size
    state.seen = mask_of([*naive.discard, *naive.stock[-1:]])
    state.trump = SUITS.index(naive.trump)
    state.turned_up = DECK.index(naive.turned_up)
    state.attacker = state.first_attacker = state.to_move = naive.attacker
    state.defender, state.defender_cards = naive.defender, naive.defender_cards
    state.plies, state.bouts = naive.num_plies, naive.num_bouts
    state.beaten = naive.num_beaten > 0
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
        compare(random_position(random_options(rng), rng), rng, max_steps=14)
    for seed in range(max(num_positions // 10, 1)):
        compare(new_game(random_options(rng), seed), rng)


if __name__ == "__main__":
    main(int(sys.argv[1]))
