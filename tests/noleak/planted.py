"""Planted leaks: games and parts of the program with one function replaced.

``python -m tests.noleak.planted`` runs the checks on each and prints, as JSON, which of them
failed. It runs with the JIT off: a function replaced in Python takes effect at once, in the search
too, nothing has to be compiled for it, and no machine code of a leaking game is left in a cache.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from engine import past, rules
from engine.evaluation import EvalBatch
from engine.game import get_spec
from engine.games import cuarenta, durak, forty_fives, kuhn, leduc
from engine.games.leduc_state import CALL, NO_CARD
from engine.jit import jit_enabled
from engine.search.rollout import HashingEvaluator
from replay.trajectory import Trajectory, TrajectoryError
from tests.engine.hidden_worlds import HIDDEN
from tests.noleak.checks import CHECKS, Leak
from tests.noleak.subject import Subject, WorkerFromState

ANNOUNCING = {"ronda": "4", "ronda_cap": "40"}
ABSENT, ANNOUNCED = 1, 2
"""Codes of Cuarenta's record for a seat that told nothing, and for one that announced."""


def subject_with(
    module: Any, options: dict[str, str] | None = None, preset: str = "", **functions: Any
) -> Subject:
    """Return the game of ``module`` under a type of its own, with ``functions`` replaced."""
    spec = get_spec(module.SPEC.name)
    # A type of its own each time: a function is found by the type of the game.
    fields = spec.game_type._fields  # type: ignore[attr-defined]
    number = len(_TYPES)
    _TYPES.append(collections.namedtuple(f"Planted{number}", fields))
    rules.implement(_TYPES[-1], vars(module) | functions)
    game = _TYPES[-1](*spec.make(preset, options))
    planted = dataclasses.replace(spec, game_type=_TYPES[-1], presets={"standard": game})
    part = HIDDEN[spec.name]
    return Subject(planted, game, part, num_positions=30, num_searched=5, num_games=4)


_TYPES: list[Any] = []

# --- poker ----------------------------------------------------------------------------------------


def view_with_the_hand(game: Any, state: Any, seat: Any, out: Any) -> None:
    other = state.cards[1 - seat]
    leduc.view(game, state, seat, out)
    out.cards[1 - seat] = other


def hand_in_the_observation() -> Subject:
    def observe(game: Any, view: Any, seat: Any, encoder: Any, out: Any) -> None:
        leduc.observe(game, view, seat, encoder, out)
        out[leduc.O_CARD] += 2.0 * view.cards[1 - seat]

    return subject_with(leduc, view=view_with_the_hand, observe=observe)


def determinizer_keeps_a_true_card() -> Subject:
    def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        other = view.cards[1 - seat]
        leduc.determinize(game, view, seat, rng, out)
        if other != NO_CARD:
            out.cards[1 - seat] = other

    return subject_with(leduc, view=view_with_the_hand, determinize=determinize)


def stock_order_is_the_true_one() -> Subject:
    def view(game: Any, state: Any, seat: Any, out: Any) -> None:
        board = state.board
        leduc.view(game, state, seat, out)
        out.board = board

    def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        board = view.board
        leduc.determinize(game, view, seat, rng, out)
        out.board = board

    return subject_with(leduc, view=view, determinize=determinize)


def rule_player_sees_the_hand() -> Subject:
    def rule_action(game: Any, view: Any, seat: Any, rng: Any) -> Any:
        beaten = view.cards[1 - seat] > view.cards[seat]
        return CALL if beaten else leduc.rule_action(game, view, seat, rng)

    return subject_with(leduc, view=view_with_the_hand, rule_action=rule_action)


class PeekingEvaluator(HashingEvaluator):
    """Gives other priors when the others hold other cards."""

    def __init__(self, hands: int) -> None:
        super().__init__()
        self._hands = hands

    def evaluate(self, batch: EvalBatch, num_rows: int, num_candidates: int) -> None:
        super().evaluate(batch, num_rows, num_candidates)
        batch.logits[:num_candidates:2] += np.float32(0.25 * self._hands)


def priors_from_the_true_hand() -> Subject:
    def peeking(subject: Subject, state: Any) -> PeekingEvaluator:
        return PeekingEvaluator(int(state.cards[0]) + 3 * int(state.cards[1]))

    return dataclasses.replace(subject_with(kuhn), evaluators={"peeking": peeking})


class RecordingWorker(WorkerFromState):
    """Stores the true cards of both seats."""

    def _trajectory(self, g: int) -> Trajectory:
        trajectory = super()._trajectory(g)
        trajectory.views["cards"][:] = self._games.states[g].cards
        return trajectory


def true_hand_in_a_stored_trajectory() -> Subject:
    return dataclasses.replace(subject_with(leduc), worker_type=RecordingWorker)


class CarelessWorker(WorkerFromState):
    """Gives the true state to the search."""

    def _begin(self, rows: Any) -> None:
        for row in rows:
            self._searches.views[row] = self._games.states[self._searches.games[row]]
        super()._begin(rows)


def self_play_searches_from_the_state() -> Subject:
    return dataclasses.replace(subject_with(leduc), worker_type=CarelessWorker)


def memory_of_true_states() -> Subject:
    subject = subject_with(leduc)
    plain = past.view

    def view(game: Any, state: Any, seat: Any, out: Any) -> None:
        plain(game, state, seat, out)
        if isinstance(game, subject.spec.game_type):  # the games of other leaks stay as they are
            out["cards"] = state["cards"]

    past.view = view  # type: ignore[assignment]
    return subject


# --- Cuarenta -------------------------------------------------------------------------------------


def without_facts(code: int) -> Callable[..., None]:
    """Return a determinizer that forgets the announcements with this code."""

    def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        told = view.ronda.copy()
        forgetful = view.copy()
        forgetful.ronda[told == code] = 0
        cuarenta.determinize(game, forgetful, seat, rng, out)
        out.ronda[:] = told

    return determinize


class AnnouncingSubject(Subject):
    """Takes positions in which some seat has announced three of a rank."""

    def positions(self, seed: int, count: int) -> list[Any]:
        found: list[Any] = []
        while len(found) < count:
            found += [s for s in super().positions(seed, 100) if (s.ronda == ANNOUNCED).any()]
            seed += 1
        return found[:count]


def announcement_dropped() -> Subject:
    plain = subject_with(cuarenta, ANNOUNCING, determinize=without_facts(ANNOUNCED))
    return AnnouncingSubject(plain.spec, plain.game, plain.hidden, num_positions=10)


def absence_dropped() -> Subject:
    return subject_with(cuarenta, ANNOUNCING, determinize=without_facts(ABSENT))


def deal_shows_a_hand() -> Subject:
    def observe_chance(game: Any, state: Any, seat: Any) -> Any:
        return cuarenta.observe_chance(game, state, seat) + 10_000 * (state.hands[0] % 7)

    return subject_with(cuarenta, observe_chance=observe_chance)


def view_with_the_seed(game: Any, state: Any, seat: Any, out: Any) -> None:
    seed = state.seed
    cuarenta.view(game, state, seat, out)
    out.seed = seed


def stream_of_chance_is_the_true_one() -> Subject:
    def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        seed = view.seed
        cuarenta.determinize(game, view, seat, rng, out)
        out.seed = seed

    subject = subject_with(cuarenta, view=view_with_the_seed, determinize=determinize)
    playouts = {"playouts": subject.evaluators["playouts"]}
    return dataclasses.replace(subject, evaluators=playouts, num_searched=3)


def stream_of_chance_is_used_again() -> Subject:
    def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        cuarenta.determinize(game, view, seat, rng, out)
        out.seed = np.uint64(5)

    return subject_with(cuarenta, determinize=determinize)


# --- Cuarenta with two players --------------------------------------------------------------------


def two_players(**functions: Any) -> Subject:
    return subject_with(cuarenta, preset="report_b_2p", **functions)


def hand_of_the_other_player_in_the_view() -> Subject:
    def view(game: Any, state: Any, seat: Any, out: Any) -> None:
        hand = state.hands[1 - seat]
        cuarenta.view(game, state, seat, out)
        out.hands[1 - seat] = hand

    return two_players(view=view)


def hand_of_the_other_player_kept() -> Subject:
    """The view is honest by itself; the world has the true lowest card of the other hand."""

    def view(game: Any, state: Any, seat: Any, out: Any) -> None:
        hand = state.hands[1 - seat]
        cuarenta.view(game, state, seat, out)
        out.stock = hand & (~hand + np.uint64(1))

    def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        kept = view.stock
        cuarenta.determinize(game, view, seat, rng, out)
        other = 1 - seat
        if kept and not out.hands[other] & kept:
            card = out.hands[other] & (~out.hands[other] + np.uint64(1))
            out.hands[other] ^= card | kept
            out.stock ^= card | kept

    return two_players(view=view, determinize=determinize)


def ronda_of_the_other_player_forgotten() -> Subject:
    plain = two_players(determinize=without_facts(ANNOUNCED))
    return AnnouncingSubject(plain.spec, plain.game, plain.hidden, num_positions=10)


def chance_of_two_players_is_the_true_one() -> Subject:
    def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        seed = view.seed
        cuarenta.determinize(game, view, seat, rng, out)
        out.seed = seed

    return two_players(view=view_with_the_seed, determinize=determinize)


# --- Durak ----------------------------------------------------------------------------------------


def first_attacker_forgotten() -> Subject:
    def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        forgetful = view.copy()
        forgetful.facts = 0
        durak.determinize(game, forgetful, seat, rng, out)
        out.facts = view.facts

    return subject_with(durak, determinize=determinize)


def taken_cards_forgotten() -> Subject:
    def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        forgetful = view.copy()
        for other in range(game.players):
            if other != seat:
                forgetful.seen &= ~view.hands[other]
        forgetful.facts = 0  # they are about hands that have no place for a taken card
        durak.determinize(game, forgetful, seat, rng, out)
        out.seen = view.seen
        out.facts = view.facts

    return subject_with(durak, determinize=determinize)


def order_of_the_stock_is_the_true_one() -> Subject:
    def view(game: Any, state: Any, seat: Any, out: Any) -> None:
        stock = state.stock.copy()
        durak.view(game, state, seat, out)
        out.stock[:] = stock

    return subject_with(durak, view=view)


def hand_of_another_in_the_view() -> Subject:
    def view(game: Any, state: Any, seat: Any, out: Any) -> None:
        other = (seat + 1) % game.players
        hand = state.hands[other]
        durak.view(game, state, seat, out)
        out.hands[other] = hand

    return subject_with(durak, view=view)


def dealt_trump_of_others_in_the_view() -> Subject:
    def view(game: Any, state: Any, seat: Any, out: Any) -> None:
        lows = state.low_trumps
        durak.view(game, state, seat, out)
        out.low_trumps = lows

    return subject_with(durak, view=view)


# --- Forty-fives ----------------------------------------------------------------------------------


class LateSubject(Subject):
    """Takes positions late in a hand, in which much is known of the others' cards."""

    def positions(self, seed: int, count: int) -> list[Any]:
        found: list[Any] = []
        while len(found) < count:
            found += [s for s in super().positions(seed, 60) if s.num_played > 10]
            seed += 1
        return found[:count]


def late_fives(**functions: Any) -> Subject:
    plain = subject_with(forty_fives, **functions)
    return LateSubject(plain.spec, plain.game, plain.hidden, num_positions=4)


def void_dropped() -> Subject:
    def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        forgetful = view.copy()
        forgetful.lacks[:] = 0
        forty_fives.determinize(game, forgetful, seat, rng, out)
        out.lacks[:] = view.lacks

    return late_fives(determinize=determinize)


def own_discards_forgotten() -> Subject:
    def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> None:
        forgetful = view.copy()
        forgetful.thrown[:] = 0
        forty_fives.determinize(game, forgetful, seat, rng, out)
        out.thrown[seat] = view.thrown[seat]

    return late_fives(determinize=determinize)


def discards_shown() -> Subject:
    def view(game: Any, state: Any, seat: Any, out: Any) -> None:
        thrown = state.thrown.copy()
        forty_fives.view(game, state, seat, out)
        out.thrown[:] = thrown

    return late_fives(view=view)


FEW = ("views", "worlds")
ALL = tuple(CHECKS)
WITHOUT_SEARCHES = tuple(check for check in CHECKS if check != "searches")
PLANTED: dict[str, tuple[Callable[[], Subject], tuple[str, ...], set[str]]] = {
    "nothing_in_kuhn": (lambda: subject_with(kuhn), ALL, set()),
    "nothing_in_leduc": (lambda: subject_with(leduc), ALL, set()),
    "nothing_in_cuarenta": (lambda: subject_with(cuarenta, ANNOUNCING), FEW, set()),
    "nothing_in_forty_fives": (late_fives, FEW, set()),
    "void_dropped": (void_dropped, FEW, {"worlds"}),
    "own_discards_forgotten": (own_discards_forgotten, FEW, {"worlds"}),
    "discards_shown": (discards_shown, FEW, {"views"}),
    "hand_in_the_observation": (
        hand_in_the_observation,
        WITHOUT_SEARCHES,  # a search would observe the hand of its own sampled world
        {"views", "features", "examples"},
    ),
    "determinizer_keeps_a_true_card": (
        determinizer_keeps_a_true_card,
        ALL,
        {"views", "worlds", "searches", "examples"},
    ),
    "stock_order_is_the_true_one": (
        stock_order_is_the_true_one,
        ALL,
        {"views", "worlds", "actions", "searches", "examples"},
    ),
    "rule_player_sees_the_hand": (
        rule_player_sees_the_hand,
        ("views", "actions"),
        {"views", "actions"},
    ),
    "priors_from_the_true_hand": (priors_from_the_true_hand, ALL, {"searches"}),
    "true_hand_in_a_stored_trajectory": (
        true_hand_in_a_stored_trajectory,
        WITHOUT_SEARCHES,
        {"examples"},
    ),
    "self_play_searches_from_the_state": (
        self_play_searches_from_the_state,
        ("examples", "players"),
        {"examples"},
    ),
    "memory_of_true_states": (memory_of_true_states, ("players", "views"), {"players"}),
    "stream_of_chance_is_the_true_one": (
        stream_of_chance_is_the_true_one,
        (*FEW, "searches"),
        {"views", "worlds", "searches"},
    ),
    "deal_shows_a_hand": (deal_shows_a_hand, ("deals", "views"), {"deals"}),
    "stream_of_chance_is_used_again": (stream_of_chance_is_used_again, FEW, {"worlds"}),
    "announcement_dropped": (announcement_dropped, FEW, {"worlds"}),
    "absence_dropped": (absence_dropped, FEW, {"worlds"}),
    "nothing_in_cuarenta_with_two_players": (two_players, FEW, set()),
    "hand_of_the_other_player_in_the_view": (hand_of_the_other_player_in_the_view, FEW, {"views"}),
    "hand_of_the_other_player_kept": (hand_of_the_other_player_kept, FEW, {"views", "worlds"}),
    "ronda_of_the_other_player_forgotten": (
        ronda_of_the_other_player_forgotten,
        FEW,
        {"worlds"},
    ),
    "chance_of_two_players_is_the_true_one": (
        chance_of_two_players_is_the_true_one,
        FEW,
        {"views", "worlds"},
    ),
    "nothing_in_durak": (lambda: subject_with(durak), FEW, set()),
    "first_attacker_forgotten": (first_attacker_forgotten, FEW, {"worlds"}),
    "taken_cards_forgotten": (taken_cards_forgotten, FEW, {"worlds"}),
    "order_of_the_stock_is_the_true_one": (
        order_of_the_stock_is_the_true_one,
        FEW,
        {"views"},
    ),
    "hand_of_another_in_the_view": (hand_of_another_in_the_view, FEW, {"views"}),
    "dealt_trump_of_others_in_the_view": (dealt_trump_of_others_in_the_view, FEW, {"views"}),
}
"""By name: how to make the subject, which checks are run on it, and which of them must fail."""


def failed_checks(name: str) -> list[str]:
    """Run the checks of one planted leak; return those that failed."""
    make, checks, _ = PLANTED[name]
    subject = make()
    failed = []
    for check in checks:
        try:
            CHECKS[check](subject)
        except Leak:
            failed.append(check)
        except TrajectoryError as error:
            # Whoever reads stored games refuses views that hold what their seat cannot know.
            if error.reason != "view":
                raise
            failed.append(check)
    return failed


def main() -> None:
    """Print the failed checks of every planted leak."""
    if jit_enabled():
        raise SystemExit("run it with NUMBA_DISABLE_JIT=1")
    names = sys.argv[1:] or list(PLANTED)
    print(json.dumps({name: failed_checks(name) for name in names}))


if __name__ == "__main__":
    main()
