"""Codec: round trips, and bytes that must never pass (cut, damaged, foreign, of no position)."""

from __future__ import annotations

import dataclasses

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import rules
from engine.game import GameSpec, game_names, get_spec
from replay import codec
from replay.codec import decode, decode_header, encode
from replay.trajectory import EXAMPLE, SCHEMA_VERSION, Trajectory, TrajectoryError
from tests.engine.stray_records import Stray
from tests.replay.games import assert_same, kuhn, make_trajectory

trajectories = st.builds(
    make_trajectory,
    seed=st.integers(0, 2**32 - 1),
    num_eligible=st.integers(0, 40),
    num_values=st.integers(0, 40),
    num_hands=st.integers(1, 6),
)


@given(trajectories)
@settings(max_examples=60, deadline=None)
def test_decoding_gives_back_every_bit(trajectory: Trajectory) -> None:
    payload = encode(trajectory)
    assert_same(decode(payload, kuhn()[0]), trajectory)
    assert decode_header(payload) == trajectory.header
    assert encode(decode(payload, kuhn()[0])) == payload


@given(trajectories, st.data())
@settings(max_examples=60, deadline=None)
def test_cut_payloads_never_pass(trajectory: Trajectory, data: st.DataObject) -> None:
    payload = encode(trajectory)
    length = data.draw(st.integers(0, len(payload) - 1))
    with pytest.raises(TrajectoryError):
        decode(payload[:length], kuhn()[0])


def test_every_flipped_bit_is_noticed() -> None:
    payload = encode(make_trajectory(3))
    for bit in range(8 * len(payload)):
        damaged = bytearray(payload)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(TrajectoryError):
            decode(bytes(damaged), kuhn()[0])


@given(trajectories, st.data())
@settings(max_examples=60, deadline=None)
def test_overwritten_bytes_never_pass(trajectory: Trajectory, data: st.DataObject) -> None:
    payload = encode(trajectory)
    start = data.draw(st.integers(0, len(payload) - 1))
    patch = data.draw(st.binary(min_size=1, max_size=16))
    damaged = payload[:start] + patch + payload[start + len(patch) :]
    if damaged == payload:
        return
    with pytest.raises(TrajectoryError):
        decode(damaged, kuhn()[0])


def test_trailing_bytes_do_not_pass() -> None:
    with pytest.raises(TrajectoryError, match="cut or damaged"):
        decode(encode(make_trajectory(1)) + b"\0", kuhn()[0])


def test_another_schema_is_refused_by_its_number() -> None:
    payload = bytearray(encode(make_trajectory(1)))
    payload[4] = SCHEMA_VERSION + 1
    with pytest.raises(TrajectoryError, match=rf"schema {SCHEMA_VERSION + 1}.* {SCHEMA_VERSION}"):
        decode(bytes(payload), kuhn()[0])


def test_foreign_bytes_are_refused_by_their_start() -> None:
    with pytest.raises(TrajectoryError, match="PNG"):
        decode(b"\x89PNG" + bytes(100), kuhn()[0])


def test_another_game_is_refused_by_name() -> None:
    payload = encode(make_trajectory(1, game="whist"))
    with pytest.raises(TrajectoryError, match=r"'whist', expected 'kuhn'"):
        decode(payload, kuhn()[0])


def test_another_state_record_is_refused_naming_the_engine() -> None:
    payload = encode(make_trajectory(1))
    spec = kuhn()[0]
    wider = np.dtype((np.record, [*spec.state_dtype.descr, ("more", np.int8)]))
    other: GameSpec = dataclasses.replace(spec, state_dtype=wider)
    with pytest.raises(TrajectoryError, match="0123456789abcdef"):
        decode(payload, other)


def test_arrays_that_disagree_are_not_encoded() -> None:
    good = make_trajectory(1)
    cut = dataclasses.replace(good, visits=good.visits[:-1])
    with pytest.raises(TrajectoryError, match="visit counts"):
        encode(cut)


@pytest.mark.parametrize(("count", "named"), [(1 << 15, "arrays of"), (1 << 40, "num_examples")])
def test_a_frame_that_claims_to_be_huge_is_refused_before_it_is_unpacked(
    count: int, named: str
) -> None:
    trajectory = make_trajectory(1)
    payload = encode(trajectory)
    header_bytes = int.from_bytes(payload[8:12], "little")
    envelope = msgspec.msgpack.decode(payload[24 : 24 + header_bytes])
    envelope["num_examples"] = count
    encoded = msgspec.msgpack.encode(envelope)
    frame = payload[24 + header_bytes :]
    prefix = codec._PREFIX.pack(codec.MAGIC, SCHEMA_VERSION, 0, len(encoded), len(frame))
    forged = prefix + codec._digest(prefix, encoded, frame) + encoded + frame
    with pytest.raises(TrajectoryError, match=named):
        decode(forged, kuhn()[0])


def test_decoded_arrays_are_writable_and_own_their_memory() -> None:
    payload = encode(make_trajectory(1))
    first = decode(payload, kuhn()[0])
    first.examples["ply"][:] = 77
    first.views.cards[:] = 1
    first.visits[:] = 9
    assert_same(decode(payload, kuhn()[0]), make_trajectory(1))


@pytest.mark.parametrize("game", game_names())
def test_a_position_takes_less_than_200_bytes_before_compression(game: str) -> None:
    """Record, view and the visits of a dozen legal actions, for every game."""
    assert EXAMPLE.itemsize + get_spec(game).state_dtype.itemsize + 2 * 12 < 200


@pytest.mark.parametrize("game", game_names())
def test_views_of_every_game_come_back_bit_for_bit(game: str) -> None:
    trajectory = of_game(game)
    assert_same(decode(encode(trajectory), get_spec(game)), trajectory)


def of_game(name: str) -> Trajectory:
    """Return a trajectory with views of random positions of any game."""
    spec, kuhns = get_spec(name), make_trajectory(2, num_eligible=20, num_values=20, game=name)
    stray = Stray(name, "", seed=1)
    views = spec.new_states(len(kuhns.examples))
    for i, state in enumerate(stray.states(len(views))):
        rules.view(stray.game, state, int(kuhns.examples["seat"][i]), views[i])
    header = msgspec.structs.replace(kuhns.header, rules=spec.describe(stray.game))
    return dataclasses.replace(kuhns, header=header, views=views)


@pytest.mark.parametrize("game", game_names())
def test_a_sealed_view_of_no_position_is_refused_by_its_field(game: str) -> None:
    """Every entry of every field that does not allow every value of its type."""
    spec, good = get_spec(game), of_game(game)
    fields = spec.fields(spec.make())
    num_refused = 0
    for name, field in fields.items():
        limits = np.iinfo(good.views[name].dtype)
        for value in (limits.max, limits.min):
            views = good.views.copy()
            views[name][7] = value
            if not field.cards and field.low <= value <= field.high:
                continue
            if bytes(views[7].tobytes()) == bytes(good.views[7].tobytes()):
                continue
            if field.cards and (int(value) & field.cards) == value <= field.most:
                continue
            with pytest.raises(TrajectoryError, match=rf"no seat of {game}.*: {name}") as refused:
                decode(encode(dataclasses.replace(good, views=views)), spec)
            assert refused.value.reason == "view"
            num_refused += 1
    assert num_refused >= len(fields) - 1


def test_a_view_that_shows_another_hand_is_refused() -> None:
    good = make_trajectory(3)
    views = good.views.copy()
    views.cards[0, 1 - good.examples["seat"][0]] = 2
    with pytest.raises(TrajectoryError, match="cards"):
        decode(encode(dataclasses.replace(good, views=views)), kuhn()[0])


def test_an_example_of_a_seat_that_is_not_is_refused() -> None:
    good = make_trajectory(3)
    examples = good.examples.copy()
    examples["seat"][2] = 2
    with pytest.raises(TrajectoryError, match="seat 2"):
        decode(encode(dataclasses.replace(good, examples=examples)), kuhn()[0])


def test_views_under_rules_that_do_not_exist_are_refused() -> None:
    good = make_trajectory(3)
    for words in ({"ante": "many"}, {"bet": "1"}):
        header = msgspec.structs.replace(good.header, rules=words)
        with pytest.raises(TrajectoryError, match="rule option") as refused:
            decode(encode(dataclasses.replace(good, header=header)), kuhn()[0])
        assert refused.value.reason == "rules"
