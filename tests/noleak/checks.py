"""The no-leak checks: functions of a subject, each of which raises ``Leak``.

Each takes positions of random games, redraws what one seat cannot know (cards of other hands, what
will be dealt, the seed of future chance; from an enumerator that shares no code with the engine),
and compares byte for byte what reaches that seat.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from engine import rules
from engine.past import Past
from engine.play import GameJob, Table
from engine.players import RulePlayer
from engine.rng import make_rng
from engine.rules import CHANCE
from engine.search.ismcts import Search, SearchOptions, search_options
from replay.trajectory import BETWEEN_DEALS, OFF_TURN, POLICY, Trajectory
from tests.noleak.subject import MakeEvaluator, Subject

NUM_CHANGES = 3
"""Redrawn states of each position and seat."""
SEARCHES: tuple[tuple[int, float, SearchOptions], ...] = (
    (0, 0.0, search_options()),
    (24, 0.25, search_options(leaf_value="root_seat")),
    (24, 0.0, search_options(partner="policy", opponents="policy")),
)
"""(simulations, share of noise, options) of the searches that are compared."""


class Leak(AssertionError):
    """Something reached a seat that it cannot know."""


def _require(holds: bool, what: str, subject: Subject, state: Any, seat: int) -> None:
    if not holds:
        text = subject.spec.format_view(subject.game, subject.view(state, seat), seat)
        raise Leak(f"{what} of seat {seat} depends on what is hidden from it:\n{text}")


def changes(subject: Subject, seed: int, count: int) -> Iterator[tuple[Any, Any, int]]:
    """Yield (state, state with all redrawn that ``seat`` cannot know, seat).

    Raises AssertionError if nothing was ever changed: the checks could not fail.
    """
    rng = random.Random(seed)
    num_changed = 0
    for state in subject.positions(seed, count):
        for seat in range(subject.num_seats):
            for _ in range(NUM_CHANGES):
                changed = subject.hidden.change(subject.spec, subject.game, state, seat, rng)
                num_changed += changed.tobytes() != state.tobytes()
                yield state, changed, seat
    assert num_changed > 0


def check_views(subject: Subject) -> None:
    """The view, the one door out of a state, holds nothing else."""
    for state, changed, seat in changes(subject, 1, subject.num_positions):
        same = subject.view(state, seat).tobytes() == subject.view(changed, seat).tobytes()
        _require(same, "the view", subject, state, seat)


def check_features(subject: Subject) -> None:
    """Observations, on and off turn and between deals, and the candidates' features."""
    for state, changed, seat in changes(subject, 2, subject.num_positions):
        same = _features(subject, state, seat) == _features(subject, changed, seat)
        _require(same, "the features", subject, state, seat)


def _features(subject: Subject, state: Any, seat: int) -> list[bytes]:
    view = subject.view(state, seat)
    found = []
    for encoder in subject.spec.encoders:
        observed = np.full(encoder.observation_size, np.nan, np.float32)
        rules.observe(subject.game, view, seat, encoder.code, observed)
        found.append(observed.tobytes())
        if subject.mover(state) == seat:
            legal = np.array(subject.legal(view), np.int64)
            described = np.full((len(legal), encoder.action_size), np.nan, np.float32)
            rules.describe_actions(subject.game, view, encoder.code, legal, len(legal), described)
            found.append(described.tobytes())
    return found


def check_actions(subject: Subject) -> None:
    """Legal actions, and what the rule player makes of the position."""
    for state, changed, seat in changes(subject, 3, subject.num_positions):
        if subject.mover(state) == seat:
            same = _choices(subject, state, seat) == _choices(subject, changed, seat)
            _require(same, "the legal actions or the rule player", subject, state, seat)


def _choices(subject: Subject, state: Any, seat: int) -> list[list[int]]:
    view = subject.view(state, seat)
    chosen = [int(rules.rule_action(subject.game, view, seat, make_rng(seed))) for seed in range(4)]
    return [subject.legal(state), subject.legal(view), chosen]


def check_deals(subject: Subject) -> None:
    """What a seat sees of a deal: the same, whatever the others were dealt."""
    rng = random.Random(7)
    for before in subject.positions(7, 2 * subject.num_positions):
        if subject.mover(before) != CHANCE:
            continue
        state = before.copy()
        rules.deal_next(subject.game, state)
        for seat in range(subject.num_seats):
            changed = subject.hidden.change(subject.spec, subject.game, state, seat, rng)
            first, second = (
                int(rules.observe_chance(subject.game, record, seat)) for record in (state, changed)
            )
            _require(first == second, "what is seen of a deal", subject, state, seat)


def check_worlds(subject: Subject) -> None:
    """Sampled worlds: the same for the same numbers, possible, and with a future of their own."""
    for number, (state, changed, seat) in enumerate(changes(subject, 4, subject.num_positions)):
        worlds = []
        for record in (state, changed):
            rng = make_rng(number)
            view = subject.view(record, seat)
            for _ in range(4):
                world = subject.spec.new_state()
                rules.determinize(subject.game, view, seat, rng, world)
                worlds.append(world)
        drawn = [world.tobytes() for world in worlds]
        _require(drawn[:4] == drawn[4:], "the sampled worlds", subject, state, seat)
        for world in worlds[:4]:
            possible = subject.hidden.is_possible(subject.game, state, seat, world)
            if not possible:
                raise Leak(f"a sampled world that seat {seat} knows to be impossible: {world}")
        if "seed" in (subject.spec.state_dtype.names or ()):
            seeds = {int(world.seed) for world in worlds[:4]} | {int(state.seed)}
            if len(seeds) != 5:
                raise Leak("sampled worlds share a stream of future chance")


def check_searches(subject: Subject) -> None:
    """Visits, priors and values of searches, with every evaluator and several options."""
    chosen = []
    for state, changed, seat in changes(subject, 5, subject.num_searched):
        if subject.mover(state) == seat and len(subject.legal(state)) > 1:
            chosen.append((state, changed, seat))
    assert chosen
    for simulations, noise, options in SEARCHES:
        search = Search(
            subject.spec,
            subject.game,
            subject.encoder,
            options,
            num_trees=1,
            max_simulations=simulations,
        )
        for make in subject.evaluators.values():
            for state, changed, seat in chosen:
                first, second = (
                    _search(subject, search, make, record, seat, (simulations, noise))
                    for record in (state, changed)
                )
                _require(first == second, "the search", subject, state, seat)


def _search(
    subject: Subject,
    search: Search,
    make: MakeEvaluator,
    state: Any,
    seat: int,
    budget: tuple[int, float],
) -> list[bytes]:
    """Return what a search from ``seat``'s view of ``state`` finds."""
    simulations, noise = budget
    view = subject.spec.new_states(1)
    view[0] = subject.search_input(subject, state, seat)
    slot = np.zeros(1, np.int64)
    search.begin(
        slot,
        view,
        np.full(1, seat, np.int64),
        np.zeros(1, np.int32),
        np.full(1, simulations, np.int64),
        np.full(1, 99, np.uint64),
        np.full(1, noise),
    )
    search.run(make(subject, state))
    actions, visits = np.zeros((2, 1, subject.spec.max_actions), np.int64)
    counts, values = np.zeros(1, np.int64), np.zeros(1)
    priors = np.zeros((1, subject.spec.max_actions))
    search.results(slot, actions, visits, counts, values)
    search.priors(slot, priors)
    return [array.tobytes() for array in (actions, visits, counts, values, priors)]


def check_examples(subject: Subject) -> None:
    """What self-play stores of a seat, up to the first moment at which it can know.

    The same game is played from two states, once with everything redrawn that the seat to move
    cannot know, and once with the future alone redrawn, when all seats' examples have to agree
    until the next cards are dealt.
    """
    rng = random.Random(6)
    num_policies = 0
    for seed, state in enumerate(subject.positions(6, subject.num_games)):
        mover = subject.mover(state)
        if mover < 0:
            continue
        played, searched = subject.play_from(state, seed)
        _require_views(subject, "a search of self-play", searched)
        hidden = subject.hidden
        for change in (hidden.change, hidden.change_future):
            changed = change(subject.spec, subject.game, state, mover, rng)
            if changed.tobytes() == state.tobytes():
                continue
            moved = _changed_seats(subject, state, changed)
            again, _ = subject.play_from(changed, seed)
            before, after = (_stored(subject, game, moved) for game in (played, again))
            _require(before == after, "a stored example", subject, state, mover)
            num_policies += sum(policy for policy, _ in before)
    assert num_policies > 0


def _changed_seats(subject: Subject, state: Any, changed: Any) -> set[int]:
    """Return the seats that hold other cards in ``changed``."""
    hand, game = subject.hidden.hand, subject.game
    seats = range(subject.num_seats)
    return {seat for seat in seats if hand(game, state, seat) != hand(game, changed, seat)}


def _stored(subject: Subject, game: Trajectory, moved: set[int]) -> list[tuple[bool, bytes]]:
    """Return (has a policy target, bytes) of the examples of seats that hold the same cards.

    Up to the first move of a seat that holds others (from then on all seats may see a difference),
    or the first deal: positions before it are the last.
    """
    found = []
    first_visit = 0
    dealt = False
    for example, view in zip(game.examples, game.views, strict=True):
        seat, flags = int(example["seat"]), int(example["flags"])
        between = bool(flags & BETWEEN_DEALS)
        if dealt and not between:
            break
        dealt = dealt or between
        if seat in moved and not flags & (OFF_TURN | BETWEEN_DEALS):
            break
        last_visit = first_visit + int(example["num_actions"])
        visits = game.visits[first_visit:last_visit]
        first_visit = last_visit
        if seat not in moved:
            stored = example.tobytes() + view.tobytes() + visits.tobytes()
            found.append((bool(flags & POLICY), stored))
    return found


def _require_views(subject: Subject, who: str, given: list[tuple[Any, int]]) -> None:
    """Raise Leak unless every record is the view of its seat and holds nothing else."""
    assert given
    for record, seat in given:
        if subject.view(record, seat).tobytes() != record.tobytes():
            raise Leak(f"{who} was given more than the view of seat {seat}: {record}")


class _Recorder(RulePlayer):
    """Plays by the rules and keeps what it was given."""

    given: list[tuple[Any, int]]
    remembered: list[tuple[Any, int]]

    def act(self, views: Any, seats: Any, keys: Any, out_actions: Any) -> None:
        self.given += [(view.copy(), int(seat)) for view, seat in zip(views, seats, strict=True)]
        super().act(views, seats, keys, out_actions)

    num_recalled = 12

    def act_on_past(self, views: Any, seats: Any, keys: Any, past: Past, out_actions: Any) -> None:
        for seat, seen, count in zip(seats, past.views, past.counts, strict=True):
            self.remembered += [(view.copy(), int(seat)) for view in seen[:count]]
        self.act(views, seats, keys, out_actions)


def check_players(subject: Subject) -> None:
    """Players at a table are given views, of the past too."""
    player = _Recorder(subject.spec, subject.game)
    player.given, player.remembered = [], []
    jobs = [GameJob(i, 0, i, (0,) * subject.num_seats) for i in range(3)]
    Table(subject.spec, subject.game, [player], jobs, num_slots=2).play_all()
    for what, told in (("a player", player.given), ("a player's memory", player.remembered)):
        records = subject.spec.new_states(len(told))
        for i, (view, _) in enumerate(told):
            records[i] = view
        seats = [seat for _, seat in told]
        _require_views(subject, what, list(zip(records, seats, strict=True)))


CHECKS: dict[str, Callable[[Subject], None]] = {
    "views": check_views,
    "features": check_features,
    "actions": check_actions,
    "deals": check_deals,
    "worlds": check_worlds,
    "searches": check_searches,
    "examples": check_examples,
    "players": check_players,
}
