"""Digests of what the engine computes, for comparison between compiled code and the JIT off.

``python -m tests.engine.three_ways [part ...]`` prints, as JSON, a digest of each part and how many
functions were compiled on the way.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.core import event

from actors.config import SearchConfig, SelfPlayConfig
from actors.messages import StepRequest
from actors.selfplay import SelfPlayWorker
from engine import bits, exact, rng, rules
from engine.game import GameSpec, get_spec
from engine.play import GameJob, Table
from engine.players import Player, RandomPlayer, RulePlayer
from engine.rules import CHANCE, TERMINAL
from engine.search.flat import FlatPlayer
from engine.search.ismcts import Search, search_options
from engine.search.rollout import HashingEvaluator, RolloutEvaluator
from league.config import LeagueConfig
from league.messages import LeagueState
from league.models import MemoryModelStore
from replay.marks import START
from replay.memory import MemoryStore, MemoryWriter
from tests.league.tiny_models import make_model
from tests.playthroughs.generate import all_presets

SMALL = ("kuhn", "leduc")
CUARENTA_PLIES = 60
DURAK_PLIES = 40
DURAK_SWITCHES = ("transfer_show_trump", "swap_trump_six", "multi_card_attack", "redeal")
FIVES_POSITIONS = 110
"""More than a hand and less than three."""
MANY, FEW = 24, 6
"""Simulations of a search on the small games, and on Cuarenta."""


class Digest:
    """Hashes arrays and numbers, exact to the bit."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, *values: Any) -> None:
        """Add arrays by their bytes, and anything else by its text."""
        for value in values:
            if isinstance(value, np.ndarray | np.void):
                self._hash.update(value.tobytes())
            else:
                self._hash.update(repr(value).encode())

    def text(self) -> str:
        """Return the digest."""
        return self._hash.hexdigest()[:16]


def walk(spec: GameSpec, game: Any, seed: int, most: int) -> Iterator[tuple[Any, int]]:
    """Yield (state, seat to move or CHANCE) of one random game, ``most`` positions at the most."""
    numbers = rng.make_rng(seed)
    actions = np.zeros(spec.max_actions, np.int64)
    state = spec.new_state()
    rules.deal(game, state, np.uint64(seed))
    for _ in range(most):
        seat = int(rules.current_seat(game, state))
        yield state, seat
        if seat == TERMINAL:
            return
        if seat == CHANCE:
            rules.deal_next(game, state)
        else:
            count = int(rules.legal_actions(game, state, actions))
            rules.apply(game, state, actions[int(rng.below(numbers, count))])


def add_position(digest: Digest, spec: GameSpec, game: Any, state: Any, mover: int) -> None:
    """Add everything that the game's functions say of a position."""
    sides = int(rules.num_sides(game))
    digest.add(state, mover)
    if mover == TERMINAL:
        outcome = np.zeros(sides)
        rules.returns(game, state, outcome)
        digest.add(outcome)
    terms = np.zeros((sides, len(spec.reward_terms)))
    figures = np.zeros((sides, max(1, len(spec.statistics))))
    rules.reward_terms(game, state, terms)
    rules.statistics(game, state, figures)
    digest.add(terms, figures)
    if mover == TERMINAL:
        return
    numbers = rng.make_rng(5)
    view, world = spec.new_states(2)
    actions = np.zeros(spec.max_actions, np.int64)
    for seat in range(int(rules.num_seats(game))):
        rules.view(game, state, seat, view)
        rules.determinize(game, view, seat, numbers, world)
        digest.add(view, world, numbers)
        for encoder in spec.encoders:
            observed = np.zeros(encoder.observation_size, np.float32)
            rules.observe(game, view, seat, encoder.code, observed)
            digest.add(observed)
            if seat == mover:
                count = int(rules.legal_actions(game, view, actions))
                described = np.zeros((count, encoder.action_size), np.float32)
                rules.describe_actions(game, view, encoder.code, actions, count, described)
                digest.add(actions[:count], described)
                digest.add(int(rules.rule_action(game, view, seat, numbers)))
                for style in range(len(spec.styles)):
                    digest.add(int(rules.style_action(game, view, seat, style, numbers)))


def bits_part(digest: Digest, seed: int) -> None:
    """Masks with any bit set, the highest too, and all that the generator offers."""
    numbers = rng.make_rng(seed, 2**63 + 5)
    cards = np.zeros(64, np.int64)
    drawn = [np.uint64(rng.next_u64(numbers)) for _ in range(50)]
    for mask in [np.uint64(0), np.uint64(1), np.uint64(2**63), np.uint64(2**64 - 1), *drawn]:
        digest.add(int(bits.popcount(mask)), int(bits.lowest(mask)))
        digest.add(int(np.uint64(bits.without_lowest(mask))), bool(bits.contains(mask, 63)))
        digest.add(int(bits.fill_cards(mask, cards)), cards)
        digest.add(int(rng.below(numbers, 1000)), float(rng.uniform(numbers)))
        digest.add(int(np.uint64(rng.mix(mask, np.uint64(7)))))
        rng.shuffle(numbers, cards, 40)
    digest.add(numbers)


def small_games_part(digest: Digest, seed: int) -> None:
    """Every history of the exactly solvable games, and exact values that follow from them."""
    for name in SMALL:
        spec = get_spec(name)
        game = spec.make()
        tree = exact.enumerate_game(game)
        digest.add(tree.outcome, tree.seat, tree.chance, tree.slot, seed)
        digest.add(exact.nash_conv(tree, exact.uniform_policy(tree)))
        for number in range(seed, seed + 12):
            for state, mover in walk(spec, game, number, 40):
                add_position(digest, spec, game, state, mover)


def cuarenta_part(digest: Digest, seed: int) -> None:
    """Positions of every preset of Cuarenta."""
    for name, preset in all_presets():
        if name == "cuarenta":
            spec = get_spec(name)
            game = spec.make(preset)
            for state, mover in walk(spec, game, seed, CUARENTA_PLIES):
                add_position(digest, spec, game, state, mover)


def durak_part(digest: Digest, seed: int) -> None:
    """Positions of every preset of Durak, and of games with all that the presets leave out."""
    spec = get_spec("durak")
    games = [spec.make(preset) for preset in spec.presets]
    games.append(spec.make("transfer_3p", dict.fromkeys(DURAK_SWITCHES, "yes")))
    for number, game in enumerate(games):
        for state, mover in walk(spec, game, seed + number, DURAK_PLIES):
            add_position(digest, spec, game, state, mover)


def forty_fives_part(digest: Digest, seed: int) -> None:
    """Every third position of the first hands of Forty-fives."""
    spec = get_spec("forty_fives")
    game = spec.make()
    for number, (state, mover) in enumerate(walk(spec, game, seed, FIVES_POSITIONS)):
        if number % 3 == 0 or mover == CHANCE:
            add_position(digest, spec, game, state, mover)


def search_part(digest: Digest, seed: int, games: tuple[str, ...] = (*SMALL, "cuarenta")) -> None:
    """Searches with both kinds of evaluators, all modes, noise, and several descents."""
    settings = (
        (search_options(), 0.25, 1),
        (search_options(partner="policy", opponents="policy", leaf_value="root_seat"), 0.0, 3),
    )
    for name in games:
        spec = get_spec(name)
        game = spec.make()
        large = name == "cuarenta"
        evaluators: list[Any] = [HashingEvaluator(seed)]
        if not large:
            evaluators.append(RolloutEvaluator(spec, game))
        for (options, noise, descents), encoder in itertools.product(settings, spec.encoders):
            search = Search(
                spec,
                game,
                encoder,
                options,
                num_trees=2,
                max_simulations=MANY,
                descents=descents,
            )
            for evaluator in evaluators:
                add_search(digest, spec, game, search, (evaluator, noise, FEW if large else MANY))


def add_search(digest: Digest, spec: GameSpec, game: Any, search: Search, how: Any) -> None:
    """Add what two trees find at the first two decisions of a game."""
    evaluator, noise, simulations = how
    decisions = [(s.copy(), seat) for s, seat in walk(spec, game, 1, 8) if seat >= 0][:2]
    views = spec.new_states(2)
    for view, (state, seat) in zip(views, decisions, strict=True):
        rules.view(game, state, seat, view)
    trees = np.arange(2)
    search.begin(
        trees,
        views,
        np.array([seat for _, seat in decisions], np.int64),
        np.zeros(2, np.int32),
        np.full(2, simulations, np.int64),
        np.array([3, 2**63 + 9], np.uint64),
        np.full(2, noise),
    )
    search.run(evaluator)
    actions, visits = np.zeros((2, 2, spec.max_actions), np.int64)
    counts, values, priors = np.zeros(2, np.int64), np.zeros(2), np.zeros((2, spec.max_actions))
    search.results(trees, actions, visits, counts, values)
    search.priors(trees, priors)
    digest.add(actions, visits, counts, values, priors)


def rollouts_part(digest: Digest, seed: int) -> None:
    """Guesses, and what rollouts choose, on some positions of Cuarenta with two players."""
    spec = get_spec("cuarenta")
    game = spec.make("report_b_2p")
    player = FlatPlayer(spec, game, 2)
    views, out = np.zeros(1, spec.state_dtype), np.zeros(1, np.int64)
    for number, (state, mover) in enumerate(walk(spec, game, seed, CUARENTA_PLIES)):
        digest.add(float(rules.static_value(game, state, 0)))
        if mover >= 0 and number % 5 == 0:
            rules.view(game, state, mover, views.view(np.recarray)[0])
            player.act(views, np.array([mover]), np.array([number], np.uint64), out)
            digest.add(out)


def matches_part(digest: Digest, seed: int) -> None:
    """Games between the rule player and a random one."""
    for name, num_games in (("kuhn", 20), ("leduc", 20), ("cuarenta", 1)):
        spec = get_spec(name)
        game = spec.make()
        seats = int(rules.num_seats(game))
        players: list[Player] = [RulePlayer(spec, game), RandomPlayer(spec, game)]
        jobs = [
            GameJob(i, 0, seed + i, tuple(seat % 2 for seat in range(seats)))
            for i in range(num_games)
        ]
        for result in Table(spec, game, players, jobs, num_slots=4).play_all():
            digest.add(result.digest, result.returns, result.statistics, result.plies)


def self_play_part(digest: Digest, seed: int) -> None:
    """The stored bytes of Kuhn games of self-play with a network."""
    spec = get_spec("kuhn")
    store, models = MemoryStore(), MemoryModelStore()
    models.put(0, make_model(seed))
    worker = SelfPlayWorker(
        config=SelfPlayConfig(
            games=6, full_simulations=10, fast_simulations=3, full_share=0.6, off_turn_share=0.5
        ),
        search=SearchConfig(),
        league=LeagueConfig(pool_size=2),
        spec=spec,
        game=spec.make(),
        encoder=spec.encoders[0],
        models=models,
        writer=MemoryWriter(store, "test"),
        run_id="test",
        node="here",
        slot=0,
        epoch=1,
        seed=seed,
    )
    league = LeagueState(newest=0, champion=0, pool=())
    request = StepRequest(epoch=1, league=league, max_evaluations=60, insert_budget=-1)
    for _ in range(3):
        worker.step(request)
    entries = store.since("0", START)
    assert len(entries) > 10
    for entry in entries:
        digest.add(np.frombuffer(entry.payload, np.uint8))


PARTS: dict[str, Callable[[Digest, int], None]] = {
    "bits": bits_part,
    "small_games": small_games_part,
    "cuarenta": cuarenta_part,
    "durak": durak_part,
    "forty_fives": forty_fives_part,
    "search": search_part,
    "rollouts": rollouts_part,
    "matches": matches_part,
    "self_play": self_play_part,
    "kuhn_search": lambda digest, seed: search_part(digest, seed, ("kuhn",)),
}


def digest_of(part: str, seed: int = 1) -> str:
    """Return the digest of a part."""
    digest = Digest()
    PARTS[part](digest, seed)
    return digest.text()


def main() -> None:
    """Print the digests, and the number of functions compiled."""
    recorder = event.RecordingListener()
    event.register("numba:compile", recorder)
    found: dict[str, Any] = {part: digest_of(part) for part in sys.argv[1:] or PARTS}
    print(json.dumps(found | {"compiled": len(recorder.buffer)}))


if __name__ == "__main__":
    main()
