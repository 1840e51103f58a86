"""Self-play in lockstep: what is written, what is stamped, what is obeyed, what is repeatable.

* examples hold views (nothing hidden), visits add up to the simulations, only the learner's seats
* the stamp is the version that searched, and new versions are taken between moves
* the insert budget, the pause and the outbox bound are obeyed
* a view between two hands belongs to the hand that ended, one of each side; forced moves are value
  examples; noise is for full searches of the learning model
* a value head that its metadata forbids to value leaves has no say in any game
* leaves of the root seat's view are refused where no off-turn view is ever learned from
* moves follow visits ** (1 / temperature), however low the temperature
* the same seed plays the same games; a restored worker goes on bit for bit
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from actors.config import SearchConfig, SelfPlayConfig
from actors.lockstep import _choose, new_searches
from actors.messages import StepReply, StepRequest
from actors.selfplay import SelfPlayWorker
from engine import rules
from engine.game import get_spec
from engine.search.ismcts import Search
from league.config import LeagueConfig
from league.messages import LeagueState
from league.models import MemoryModelStore
from learner.config import LearnerConfig
from replay.buffer import OutboxFull
from replay.codec import decode
from replay.trajectory import (
    BETWEEN_DEALS,
    FULL_SEARCH,
    OFF_TURN,
    POLICY,
    VALUE,
    Trajectory,
    validate,
)
from tests.actors.models import untrained_model

GAMES = ["kuhn", "cuarenta"]


class ListWriter:
    """Accepts on poll, or never."""

    def __init__(self, *, bound: int = 10_000, accepts: bool = True) -> None:
        self.payloads: list[bytes] = []
        self.num_accepted = 0
        self.bound, self.accepts = bound, accepts

    def append(self, payload: bytes) -> None:
        if self.num_pending >= self.bound:
            raise OutboxFull
        self.payloads.append(payload)

    def poll(self, timeout_s: float) -> int:
        new = self.num_pending if self.accepts else 0
        self.num_accepted += new
        return new

    @property
    def num_pending(self) -> int:
        return len(self.payloads) - self.num_accepted

    def close(self) -> None:
        self.payloads.clear()


def make_worker(
    name: str, writer: ListWriter, models: MemoryModelStore | None = None, **options: Any
) -> SelfPlayWorker:
    spec = get_spec(name)
    game = spec.make()
    if models is None:
        models = MemoryModelStore()
        models.put(0, untrained_model(name, version=0))
    search = options.pop("search", SearchConfig())
    defaults: dict[str, Any] = {"games": 8, "full_simulations": 12, "fast_simulations": 4}
    return SelfPlayWorker(
        config=SelfPlayConfig(**(defaults | options)),
        search=search,
        league=LeagueConfig(pool_size=2),
        spec=spec,
        game=game,
        encoder=spec.encoders[0],
        models=models,
        writer=writer,
        run_id="test",
        node="here",
        slot=0,
        epoch=1,
        seed=7,
    )


def step(worker: SelfPlayWorker, evaluations: int, **fields: Any) -> StepReply:
    league = fields.pop("league", LeagueState(newest=0, champion=0, pool=()))
    fields = {"insert_budget": -1} | fields
    return worker.step(StepRequest(epoch=1, league=league, max_evaluations=evaluations, **fields))


def play_games(worker: SelfPlayWorker, writer: ListWriter, count: int, **fields: Any) -> None:
    for _ in range(2_000):
        if len(writer.payloads) >= count:
            return
        step(worker, 50, **fields)
    raise AssertionError(f"only {len(writer.payloads)} games after 100,000 batches")


def decoded(name: str, writer: ListWriter) -> list[Trajectory]:
    return [decode(payload, get_spec(name)) for payload in writer.payloads]


@pytest.mark.parametrize("name", GAMES)
def test_examples_are_views_with_visits_that_add_up(name: str) -> None:
    writer = ListWriter()
    worker = make_worker(name, writer, off_turn_share=0.5)
    play_games(worker, writer, 8)
    spec = get_spec(name)
    game = spec.make()
    out = spec.new_state()
    actions = np.zeros(spec.max_actions, np.int64)
    seen = 0
    for trajectory in decoded(name, writer):
        validate(trajectory)
        offset = 0
        for example, view in zip(trajectory.examples, trajectory.views, strict=True):
            rules.view(game, view, int(example["seat"]), out)
            assert out.tobytes() == view.tobytes()
            visits = trajectory.visits[offset : offset + int(example["num_actions"])]
            offset += int(example["num_actions"])
            if example["flags"] & POLICY:
                seen += 1
                assert visits.sum() == 12
                assert rules.legal_actions(game, view, actions) == len(visits)
                assert rules.current_seat(game, view) == example["seat"]
                assert -1.0 <= example["root_value"] <= 1.0 or name == "kuhn"
            else:
                assert len(visits) == 0
            if example["flags"] & BETWEEN_DEALS:
                assert rules.current_seat(game, view) == rules.CHANCE
            if example["flags"] & OFF_TURN:
                assert rules.current_seat(game, view) != example["seat"]
    assert seen > 8


def test_every_full_search_of_a_learning_seat_is_a_policy_example() -> None:
    writer = ListWriter()
    worker = make_worker("cuarenta", writer, full_share=1.0)
    play_games(worker, writer, 4)
    for trajectory in decoded("cuarenta", writer):
        flags = trajectory.examples["flags"]
        assert np.count_nonzero(flags & FULL_SEARCH) == trajectory.header.num_full_searches
        assert trajectory.num_eligible() == trajectory.header.num_full_searches
        assert trajectory.header.num_simulations == 12 * trajectory.header.num_full_searches


def test_hands_end_in_order_and_examples_name_their_hand() -> None:
    writer = ListWriter()
    worker = make_worker("cuarenta", writer)
    play_games(worker, writer, 4)
    for trajectory in decoded("cuarenta", writer):
        hands = trajectory.examples["hand"]
        assert np.all(np.diff(hands.astype(int)) >= 0)
        assert hands.max() == len(trajectory.header.hand_ends)
        assert np.all(np.diff(trajectory.examples["ply"].astype(int)) >= 0)
        rows = np.array(trajectory.header.hand_ends).reshape(-1, 2)
        assert np.all((rows >= 0) & (rows < get_spec("cuarenta").num_equity_states))


def test_a_view_between_hands_belongs_to_the_hand_that_ended() -> None:
    writer = ListWriter()
    play_games(make_worker("cuarenta", writer, temperature=0.0), writer, 6)
    spec = get_spec("cuarenta")
    game = spec.make()
    seen = 0
    for trajectory in decoded("cuarenta", writer):
        header = trajectory.header
        sides_at_end: dict[int, list[int]] = {}
        for example, view in zip(trajectory.examples, trajectory.views, strict=True):
            side = int(rules.side_of(game, int(example["seat"])))
            row = int(rules.equity_index(game, view, side))
            if row == rules.NO_HAND_END:
                continue
            hand = int(example["hand"])
            assert example["flags"] & BETWEEN_DEALS
            assert header.hand_ends[hand][side] == row
            sides_at_end.setdefault(hand, []).append(side)
            seen += 1
        assert sorted(sides_at_end) == list(range(len(header.hand_ends)))
        assert all(sorted(sides) == [0, 1] for sides in sides_at_end.values())
    assert seen >= 12


def test_only_full_searches_of_the_learning_model_have_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[tuple[int, int, float]] = []
    begin = Search.begin

    def watched(self: Search, *arguments: Any) -> None:
        _, _, _, models, simulations, _, noise, _ = arguments
        begun.extend(zip(models.tolist(), simulations.tolist(), noise.tolist(), strict=True))
        begin(self, *arguments)

    monkeypatch.setattr(Search, "begin", watched)
    writer, models = ListWriter(), MemoryModelStore()
    for version in range(3):
        models.put(version, untrained_model("cuarenta", version=version))
    worker = make_worker("cuarenta", writer, models, noise_share=0.3, full_share=0.4)
    play_games(worker, writer, 12, league=LeagueState(newest=2, champion=1, pool=(0, 1)))
    own = [(simulations, noise) for slot, simulations, noise in begun if slot < 2]
    assert set(own) == {(12, 0.3), (4, 0.0)}
    full = sum(simulations == 12 for simulations, _ in own)
    assert abs(full - 0.4 * len(own)) < 4 * np.sqrt(0.24 * len(own))
    assert {noise for slot, _, noise in begun if slot >= 2} == {0.0}


def test_forced_moves_are_value_examples_and_nothing_else() -> None:
    writer = ListWriter()
    play_games(make_worker("cuarenta", writer, full_share=1.0), writer, 4)
    spec = get_spec("cuarenta")
    game, legal = spec.make(), np.zeros(spec.max_actions, np.int64)
    forced = 0
    for trajectory in decoded("cuarenta", writer):
        for example, view in zip(trajectory.examples, trajectory.views, strict=True):
            if rules.legal_actions(game, view, legal) == 1:
                forced += 1
                assert example["flags"] == VALUE
                assert np.isnan(example["root_value"])
    assert forced > 4


def test_the_window_has_room_for_the_value_examples_that_come_with_its_positions() -> None:
    writer = ListWriter()
    play_games(make_worker("cuarenta", writer, full_share=1.0), writer, 8)
    flags = np.concatenate([t.examples["flags"] for t in decoded("cuarenta", writer)])
    eligible = SelfPlayConfig().full_share * np.count_nonzero(flags & POLICY)
    values_per_position = (len(flags) - eligible) / eligible
    assert 3.0 < values_per_position < LearnerConfig().values_per_position


@pytest.mark.parametrize("name", GAMES)
def test_same_seed_plays_the_same_games(name: str) -> None:
    writers = [ListWriter(), ListWriter()]
    for writer in writers:
        worker = make_worker(name, writer)
        for _ in range(20):
            step(worker, 100)
    assert writers[0].payloads
    assert writers[0].payloads == writers[1].payloads


@pytest.mark.parametrize("name", GAMES)
def test_restored_worker_goes_on_bit_for_bit(name: str) -> None:
    whole, first, second = ListWriter(), ListWriter(), ListWriter()
    worker = make_worker(name, whole)
    for _ in range(30):
        step(worker, 97)
    worker = make_worker(name, first)
    for _ in range(15):
        step(worker, 97)
    snapshot = worker.snapshot()
    worker = make_worker(name, second)
    worker.restore(snapshot)
    for _ in range(15):
        step(worker, 97)
    assert second.payloads
    assert whole.payloads == first.payloads + second.payloads


def test_versions_are_taken_between_moves_and_stamped_per_position() -> None:
    writer, models = ListWriter(), MemoryModelStore()
    for version in range(3):
        models.put(version, untrained_model("cuarenta", version=version))
    worker = make_worker("cuarenta", writer, models, full_share=1.0)
    step(worker, 400)
    play_games(worker, writer, 8, league=LeagueState(newest=1, champion=0, pool=()))
    stamps = [set(t.examples["model_version"].tolist()) for t in decoded("cuarenta", writer)]
    assert {0, 1} in stamps
    for trajectory in decoded("cuarenta", writer):
        assert np.all(np.diff(trajectory.examples["model_version"].astype(int)) >= 0)


def test_seats_name_the_version_that_really_plays_when_versions_come_fast() -> None:
    writer, models = ListWriter(), MemoryModelStore()
    for version in range(40):
        models.put(version, untrained_model("kuhn", version=version))
    worker = make_worker("kuhn", writer, models, full_share=1.0, full_simulations=40)
    late = 0
    for version in range(40):
        reply = step(worker, 2, league=LeagueState(newest=version, champion=0, pool=()))
        late += reply.model_version < version
    assert late  # a version had to wait for the searches of the one before last
    for trajectory in decoded("kuhn", writer):
        first = trajectory.examples[0]
        assert first["ply"] == 0
        assert first["model_version"] == trajectory.header.seat_versions[int(first["seat"])]


def test_other_models_seats_give_no_examples_and_results_name_the_opponent() -> None:
    writer, models = ListWriter(), MemoryModelStore()
    for version in range(3):
        models.put(version, untrained_model("cuarenta", version=version))
    worker = make_worker("cuarenta", writer, models)
    league = LeagueState(newest=2, champion=1, pool=(0, 1))
    results = []
    for _ in range(400):
        results += step(worker, 50, league=league).results
        if len(writer.payloads) >= 60:
            break
    kinds = set()
    for trajectory in decoded("cuarenta", writer):
        header = trajectory.header
        kinds.add(header.matchup)
        seats = set(trajectory.examples["seat"].tolist())
        learners = {seat for seat, own in enumerate(header.learner_seats) if own}
        assert seats <= learners
        for seat, version in enumerate(header.seat_versions):
            assert version == 2 if seat in learners else version in (0, 1)
    assert kinds == {"self_play", "league", "partner"}
    played = sum(t.header.matchup == "league" for t in decoded("cuarenta", writer))
    assert len(results) == played
    assert {result.opponent for result in results} <= {0, 1}


def test_insert_budget_pause_and_outbox_bound_are_obeyed() -> None:
    writer = ListWriter()
    worker = make_worker("cuarenta", writer)
    assert step(worker, 50, insert_budget=0).num_evaluations == 0
    assert step(worker, 50, paused=True).num_evaluations == 0
    assert step(worker, 50).num_evaluations > 0
    reply = step(worker, 100_000, insert_budget=60)
    assert 60 <= reply.num_examples < 60 + 8 * 120
    stuck = ListWriter(bound=3 + 8, accepts=False)
    worker = make_worker("kuhn", stuck, outbox_games=3)
    step(worker, 10_000)
    assert 3 <= stuck.num_pending <= 3 + 8
    assert step(worker, 10).num_evaluations == 0


def visits_of(model: bytes) -> list[bytes]:
    writer, models = ListWriter(), MemoryModelStore()
    models.put(0, model)
    play_games(make_worker("cuarenta", writer, models, games=2), writer, 2)
    return [trajectory.visits.tobytes() for trajectory in decoded("cuarenta", writer)]


def test_a_head_that_must_not_value_leaves_has_no_say_in_self_play() -> None:
    heads = (-2.0, 2.0)  # at every leaf one of them is very wrong
    by_network = [visits_of(untrained_model("cuarenta", version=0, value_bias=b)) for b in heads]
    assert by_network[0] != by_network[1]
    by_playout = [
        visits_of(untrained_model("cuarenta", version=0, value_bias=b, leaf_value="playout"))
        for b in heads
    ]
    assert by_playout[0] == by_playout[1]
    assert by_playout[0] not in by_network


def test_leaves_of_the_root_seats_view_need_off_turn_examples() -> None:
    leaves = SearchConfig(leaf_value="root_seat")
    with pytest.raises(ValueError, match="off_turn_share"):
        make_worker("cuarenta", ListWriter(), search=leaves)
    make_worker("cuarenta", ListWriter(), search=leaves, off_turn_share=0.2)


@pytest.mark.parametrize(
    ("temperature", "share"), [(1.0, 0.25), (0.5, 0.1), (0.01, 0.0), (0.001, 0.0), (0.0, 0.0)]
)
def test_moves_follow_the_visits_at_any_temperature(temperature: float, share: float) -> None:
    spec = get_spec("kuhn")
    searches = new_searches(spec, 1)
    searches.actions[0, :2] = (0, 1)
    searches.visits[0, :2] = (48, 16)
    searches.counts[0] = 2
    rng = np.array([3], np.uint64)
    moves = [int(_choose(searches, 0, temperature, rng)) for _ in range(1000)]
    assert abs(sum(moves) - 1000 * share) <= 4 * np.sqrt(1000 * share * (1 - share))


def test_no_model_yet_plays_nothing() -> None:
    worker = make_worker("kuhn", ListWriter())
    reply = step(worker, 10, league=LeagueState(newest=-1, champion=-1, pool=()))
    assert (reply.num_games, reply.model_version) == (0, -1)
