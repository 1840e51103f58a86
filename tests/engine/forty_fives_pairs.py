"""The compiled Forty-fives and its naive twin side by side: same positions, same moves, compared.

Also a program: ``python -m tests.engine.forty_fives_pairs 20`` compares 20 positions and 2 games,
with or without the JIT.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from engine import rules
from engine.game import get_spec
from engine.games.forty_fives_cards import lacking_cards, played_cards
from engine.games.forty_fives_rules import begin_discards, begin_play
from engine.games.forty_fives_score import raw_points
from engine.games.forty_fives_state import (
    AUCTION,
    DISCARD,
    DRAW,
    HAND_END,
    KITTY,
    LEVEL_NAMES,
    PLAY,
    SUIT_NAMES,
)
from engine.games.forty_fives_text import PHASE_NAMES, card_name, format_action, parse_card
from engine.games.forty_fives_worlds import cards_held
from engine.rules import CHANCE, TERMINAL
from tests.engine.twins import Looking, expect
from tests.naive.forty_fives import DECK, LADDERS, NaiveFortyFives, plain_of, trumps_of

SPEC = get_spec("forty_fives")
ALL_CARDS = (1 << 52) - 1
SEATS = range(4)


@functools.cache
def _names(mask: int) -> tuple[str, ...]:
    return tuple(sorted(card_name(card) for card in range(64) if mask >> card & 1))


def names(mask: Any) -> list[str]:
    """Return the names of the cards of a mask, sorted."""
    return list(_names(int(mask)))


def played_by(state: Any, seat: int) -> list[str]:
    """Return the cards that a seat has played, in order."""
    cards = [int(state.played[4 * trick + seat]) for trick in range(5)]
    return [card_name(card) for card in cards if card >= 0]


def mask_of(cards: Iterable[str]) -> np.uint64:
    """Return the mask of named cards."""
    return np.uint64(sum(1 << parse_card(card) for card in cards))


def random_options(rng: random.Random) -> dict[str, str]:
    """Return a preset with each switch changed to a random value with probability 1/4."""
    options = SPEC.describe(SPEC.make(rng.choice(list(SPEC.presets))))
    for name, option in SPEC.options.items():
        if rng.random() < 0.25:
            assert option.values is not None
            options[name] = rng.choice(list(option.values))
    return options


class Pair(Looking):
    """One position, twice."""

    def __init__(self, game: Any, state: Any, naive: NaiveFortyFives) -> None:
        self.game, self.state, self.naive = game, state, naive
        self.views = SPEC.new_states(4)
        self.actions = np.zeros(SPEC.max_actions, np.int64)
        self.events: list[list[tuple[object, ...]]] = [list(seen) for seen in naive.events]
        self.look()

    def look(self) -> None:
        """Take every seat's view and compare it with what the twin lets that seat know."""
        for seat in SEATS:
            rules.view(self.game, self.state, seat, self.views[seat])
        if not self.is_due():
            return
        self.compare_places()
        for seat in SEATS:
            expect(f"seat {seat}", self.engine_knows(seat), self.naive_knows(seat))

    def compare_places(self) -> None:
        """Every card is in one place, and in the same one in both."""
        state, naive = self.state, self.naive
        masks = [int(m) for m in (*state.hands, *state.thrown, state.stock)]
        masks += [int(played_cards(state, seat)) for seat in SEATS]
        expect("number of cards", sum(mask.bit_count() for mask in masks), 52)
        expect("cards", sum(masks), ALL_CARDS)
        expect("stock", names(state.stock), sorted(naive.stock))
        for seat in SEATS:
            expect("hand", names(state.hands[seat]), sorted(naive.hands[seat]))
            expect("thrown", names(state.thrown[seat]), sorted(naive.thrown[seat]))

    def engine_knows(self, seat: int) -> dict[str, object]:
        """Return what the view of ``seat`` says."""
        view = self.views[seat]
        current = int(rules.current_seat(self.game, view))
        phase = int(view.phase)
        hidden = [int(m[o]) for m in (view.hands, view.thrown) for o in SEATS if o != seat]
        return {
            "hand": names(view.hands[seat]),
            "thrown": names(view.thrown[seat]),
            "kept": names(view.kept),
            "hidden": any(hidden) or bool(view.seed) or bool(view.stock),
            "played": [played_by(view, other) for other in SEATS],
            "lacks": [set(names(lacking_cards(view, other))) for other in SEATS],
            "num played": int(view.num_played),
            "scores": [int(score) for score in view.scores],
            "counts": [[int(n) for n in x] for x in (view.contracts, view.made, view.sets)],
            "drew": [None if n < 0 else int(n) for n in view.drawn],
            "bids": [LEVEL_NAMES[int(n)] if n else None for n in view.bids],
            "passed": [bool(n) for n in view.passed],
            "high": LEVEL_NAMES[int(view.high)] if view.high else None,
            "bidder": None if view.bidder < 0 else int(view.bidder),
            "trump": None if view.trump < 0 else SUIT_NAMES[int(view.trump)],
            "tricks": [int(n) for n in view.tricks],
            "raw": [int(raw_points(view, side)) for side in (0, 1)] if view.trump >= 0 else None,
            "leader": int(view.leader) if phase in (PLAY, DISCARD) else None,
            "sizes": [int(cards_held(self.game, view, other)) for other in SEATS],
            "phase": PHASE_NAMES[phase],
            "hand index": int(view.hand_index),
            "dealer": int(view.dealer),
            "mover": None if current < 0 else current,
            "over": current == TERMINAL,
            "winner": None if view.winner < 0 else int(view.winner),
        }

    def naive_knows(self, seat: int) -> dict[str, object]:
        """Return the same from the twin."""
        naive = self.naive
        leader = None
        if naive.phase == "play":
            leader = naive.leader
        elif naive.phase == "discard":
            leader = naive.discarders[0] if naive.mover is None else naive.mover
        # How far a seat has come with its discards is its own to know.
        sizes = [
            len(naive.hands[o]) + (0 if naive.drew[o] else len(naive.thrown[o])) for o in SEATS
        ]
        if any(count is not None for count in naive.drew):
            sizes = [len(hand) for hand in naive.hands]
        return {
            "hand": sorted(naive.hands[seat]),
            "thrown": sorted(naive.thrown[seat]),
            "kept": sorted(naive.kept) if naive.mover == seat else [],
            "hidden": False,
            "played": naive.played,
            "lacks": naive.lacks,
            "num played": len(naive.history),
            "scores": naive.scores,
            "counts": [naive.contracts, naive.made, naive.sets],
            "drew": naive.drew,
            "bids": naive.bids,
            "passed": naive.passed,
            "high": naive.high,
            "bidder": naive.bidder,
            "trump": naive.trump,
            "tricks": naive.tricks,
            "raw": [naive.raw(side) for side in (0, 1)] if naive.trump else None,
            "leader": leader,
            "sizes": sizes,
            "phase": naive.phase,
            "hand index": naive.hand_index,
            "dealer": naive.dealer,
            "mover": naive.mover,
            "over": naive.phase == "over",
            "winner": naive.winner,
        }

    def step(self, rng: random.Random) -> bool:
        """Compare the legal actions, make one move; return False when the game is over."""
        seat = int(rules.current_seat(self.game, self.state))
        if seat == TERMINAL:
            self.compare_returns()
            return False
        if seat == CHANCE:
            self.chance()
        else:
            self.ply(seat, rng)
        self.look()
        for other in SEATS:
            if self.state.to_move == CHANCE and self.state.phase in (DISCARD, DRAW):
                done = (int(self.views[other].leader) + 3) % 4
                self.events[other].append((done, "has discarded"))
            expect("events", self.events[other], self.naive.events[other])
        return True

    def chance(self) -> None:
        """Deal in the engine, and tell the twin."""
        state, naive = self.state, self.naive
        phase, before = int(state.phase), [int(hand) for hand in state.hands]
        rules.deal_next(self.game, state)
        new = [names(int(state.hands[seat]) & ~before[seat]) for seat in SEATS]
        if phase == KITTY:
            assert naive.bidder is not None
            # Who has no choice (five trumps that may not be thrown) has thrown some of it already.
            thrown = int(state.thrown[naive.bidder])
            kitty = sorted([*new[naive.bidder], *names(thrown & ~before[naive.bidder])])
            expect("kitty", len(kitty), int(naive.options["kitty"]))
            naive.take_kitty(kitty)
            self.events[naive.bidder].append(("kitty", *kitty))
        elif phase == DISCARD:
            naive.next_discard()
        elif phase == DRAW:
            naive.draw(new)
            for seat in SEATS:
                self.events[seat] += [("draws", *new[seat]), ("drew", *map(int, state.drawn))]
        else:
            assert phase == HAND_END
            hands = [names(state.hands[seat]) for seat in SEATS]
            naive.next_hand(hands)
            for seat in SEATS:
                self.events[seat].append(("deal", *hands[seat]))

    def ply(self, seat: int, rng: random.Random) -> None:
        """Compare legal actions, then play one of them in both."""
        game, state, view = self.game, self.state, self.views[seat]
        count = int(rules.legal_actions(game, view, self.actions))
        codes = [int(code) for code in self.actions[:count]]
        expect("legal from the state", int(rules.legal_actions(game, state, self.actions)), count)
        expect("order", codes, sorted(set(codes)))
        words = [format_action(game, view, code) for code in codes]
        expect("legal", sorted(words), sorted(self.naive.legal()))
        index = rng.randrange(count)
        if state.phase == AUCTION and "hold" in words and rng.random() < 0.5:
            index = words.index("hold")
        for other in SEATS:
            key = int(rules.observe_action(game, state, codes[index], other))
            if key >= 0:
                word = format_action(game, self.views[seat], key)
                self.events[other].append((seat, word))
        self.naive.play(words[index])
        rules.apply(game, state, codes[index])

    def compare_returns(self) -> None:
        """The outcome per side."""
        out = np.zeros(2)
        rules.returns(self.game, self.state, out)
        winner = self.naive.winner
        wanted = [0.0, 0.0] if winner is None else [1.0 if s == winner else -1.0 for s in range(2)]
        expect("returns", list(out), wanted)


# --- positions ------------------------------------------------------------------------------------


def new_game(
    options: dict[str, str],
    seed: int,
    naive_options: dict[str, str] | None = None,
    scores: tuple[int, int] = (0, 0),
) -> Pair:
    """Return a pair at the first call of a game, or at a hand of a game under way."""
    game = SPEC.make("", options)
    state = SPEC.new_state()
    rules.deal(game, state, np.uint64(seed))
    naive = NaiveFortyFives(naive_options or options, int(state.dealer))
    naive.scores = list(scores)
    state.scores[:] = scores
    naive.deal([names(state.hands[seat]) for seat in SEATS])
    return Pair(game, state, naive)


def random_position(
    options: dict[str, str],
    rng: random.Random,
    naive_options: dict[str, str] | None = None,
    start: str = "",
) -> Pair:
    """Return a pair at the auction, the discards or the play of a hand near the end of a game.

    Args:
        options: rules of the engine.
        rng: advanced.
        naive_options: rules of the twin, where they differ.
        start: ``auction``, ``discard`` or ``play``; by default any.
    """
    naive = NaiveFortyFives(naive_options or options, rng.randrange(4))
    naive.hand_index = 29 if rng.random() < 0.05 else rng.randrange(9)
    close = rng.random() < 0.4  # one hand may lift both sides to the target
    choices = [22, 23, 23] if close else [-4, 3, 12, 16, 19, 20, 21, 22, 23]
    naive.scores = [5 * rng.choice(choices) for _ in range(2)]
    if options["bid_out"] == "yes" and rng.random() < 0.5:
        naive.scores[rng.randrange(2)] = 130
    trump = rng.choice(SUIT_NAMES)
    cards = rng.sample(DECK, 52)
    if rng.random() < 0.7:  # many trumps, high ones above all, and few plain suits
        order = trumps_of(trump)[: rng.choice([3, 5, 9, 14])] + plain_of(rng.choice("SHDC"), trump)
        cards.sort(key=lambda card: card not in order[:13])
        first = rng.sample(cards[:20], 20)
        cards = first + cards[20:]
    naive.deal([[cards.pop(0) for _ in range(5)] for _ in SEATS])
    start = start or rng.choice(["auction", "discard", "play", "play"])
    if start != "auction":
        bid_and_name(naive, options, trump, rng)
    if start == "play":
        for seat in SEATS:
            naive.drew[seat] = rng.randint(0, 5)
            extra = int(options["kitty"]) if seat == naive.bidder else 0
            naive.thrown[seat] = [cards.pop() for _ in range(naive.drew[seat] + extra)]
            naive.events[seat] = []
    elif start == "discard":
        assert naive.bidder is not None
        naive.hands[naive.bidder] += [cards.pop() for _ in range(int(options["kitty"]))]
    naive.stock = cards
    game = SPEC.make("", options)
    state = to_engine(naive, rng)
    begin(game, state, naive, start)
    return Pair(game, state, naive)


def bid_and_name(
    naive: NaiveFortyFives, options: dict[str, str], trump: str, rng: random.Random
) -> None:
    """Let the auction be over and trump named."""
    levels = sorted(rng.choices(LADDERS[options["min_bid"]], k=rng.choice([1, 1, 2])))
    order = rng.sample(naive.order(), len(levels))
    ladder = LADDERS[options["min_bid"]]
    for seat, level in zip(order, sorted(levels, key=ladder.index), strict=True):
        naive.bids[seat] = naive.high = level
        naive.bidder = seat
    naive.passed = [bid is None for bid in naive.bids]
    naive.calls, naive.trump, naive.mover = 4, trump, None


def begin(game: Any, state: Any, naive: NaiveFortyFives, start: str) -> None:
    """Let the discards or the play begin in both."""
    if start == "discard":
        naive.first_discard()
        begin_discards(game, state)
    elif start == "play":
        assert naive.bidder is not None
        naive.leader = (naive.bidder + (naive.options["leader"] != "bidder")) % 4
        naive.phase, naive.mover = "play", naive.leader
        begin_play(game, state)


def to_engine(naive: NaiveFortyFives, rng: random.Random) -> Any:
    """Return the engine's state of a twin's position before the discards or the play begin."""
    state = SPEC.new_state()
    for seat in SEATS:
        state.hands[seat] = mask_of(naive.hands[seat])
        state.thrown[seat] = mask_of(naive.thrown[seat])
        drew, bid = naive.drew[seat], naive.bids[seat]
        state.drawn[seat] = -1 if drew is None else drew
        state.bids[seat] = 0 if bid is None else LEVEL_NAMES.index(bid)
        state.passed[seat] = naive.passed[seat]
    for side in (0, 1):
        state.scores[side] = naive.scores[side]
    state.played[:] = -1
    state.stock = mask_of(naive.stock)
    state.seed = np.uint64(rng.getrandbits(64))
    state.hand_index, state.dealer, state.turns = naive.hand_index, naive.dealer, naive.calls
    state.winner = state.best_trump = state.best_side = -1
    state.phase, state.to_move = AUCTION, -1 if naive.mover is None else naive.mover
    state.high = 0 if naive.high is None else LEVEL_NAMES.index(naive.high)
    state.bidder = -1 if naive.bidder is None else naive.bidder
    state.trump = -1 if naive.trump is None else SUIT_NAMES.index(naive.trump)
    return state


def compare(pair: Pair, rng: random.Random, max_steps: int = 3000) -> None:
    """Play on in both until the end. Raises Mismatch."""
    for _ in range(max_steps):
        if not pair.step(rng):
            return


def main(num_positions: int) -> None:
    """Compare positions and games with options of all kinds."""
    rng = random.Random(7)
    for _ in range(num_positions):
        compare(random_position(random_options(rng), rng), rng, max_steps=60)
    for seed in range(max(num_positions // 10, 1)):
        compare(new_game(random_options(rng), seed), rng)


if __name__ == "__main__":
    main(int(sys.argv[1]))
