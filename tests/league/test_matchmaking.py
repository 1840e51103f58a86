"""Behaviours of matchmaking: who sits where, how often, and what feeds the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import chisquare

from league.config import LeagueConfig
from league.matchmaking import (
    Matchmaker,
    Matchup,
    pfsp_weights,
    self_play_share,
)
from league.messages import LeagueState, PairRecord

TEAMS = (0, 1, 0, 1)
POOL = (0, 4, 9)
RECORDS = {
    0: PairRecord(wins=30.0, games=40),
    4: PairRecord(wins=8.5, games=20),
    9: PairRecord(wins=2.0, games=10),
}
LEAGUE = LeagueState(newest=12, champion=9, pool=POOL, records=RECORDS)
NUM_DRAWS = 2000
SIGNIFICANCE = 1e-4


def matchmaker(config: LeagueConfig | None = None, seed: int = 5) -> Matchmaker:
    return Matchmaker(config or LeagueConfig(), 4, TEAMS, seed)


def draws(
    config: LeagueConfig | None = None,
    league: LeagueState = LEAGUE,
    keys: Callable[[int], int] = lambda index: index,
) -> list[Matchup]:
    maker = matchmaker(config)
    return [maker.draw(keys(index), league) for index in range(NUM_DRAWS)]


def assert_frequencies(counts: list[int], shares: list[float]) -> None:
    expected = np.array(shares) * sum(counts)
    assert chisquare(counts, expected).pvalue > SIGNIFICANCE


@pytest.mark.parametrize(
    "keys", [lambda index: index, lambda index: (index * 0x9E3779B97F4A7C15) % 2**64]
)
def test_kinds_follow_the_configured_shares(keys: Callable[[int], int]) -> None:
    kinds = Counter(matchup.kind for matchup in draws(keys=keys))
    assert_frequencies(
        [kinds["self_play"], kinds["league"], kinds["partner"]], [0.7, 0.3 * 0.75, 0.3 * 0.25]
    )


@pytest.mark.parametrize("hard", [0.0, 0.5, 1.0])
def test_opponents_follow_pfsp(hard: float) -> None:
    config = LeagueConfig(self_play_floor=0.0, pfsp_hard=hard)
    counts = Counter(matchup.opponent for matchup in draws(config))
    p = np.array([31 / 42, 9.5 / 22, 3 / 12])
    weights = hard * (1 - p) ** 2 + (1 - hard) * p * (1 - p)
    assert_frequencies([counts[version] for version in POOL], list(weights / weights.sum()))


def test_partners_rotate_evenly_and_sides_alternate() -> None:
    matchups = draws(LeagueConfig(self_play_floor=0.0, partner_share=1.0))
    assert [matchup.learner_side for matchup in matchups[:6]] == [0, 1, 0, 1, 0, 1]
    partners, learners = Counter[int](), Counter[int]()
    for matchup in matchups:
        assert matchup.kind == "partner"
        own = [seat for seat in range(4) if TEAMS[seat] == matchup.learner_side]
        (learner,) = (seat for seat in own if matchup.learner_seats[seat])
        (partner,) = (seat for seat in own if not matchup.learner_seats[seat])
        learners[learner] += 1
        partners[matchup.seat_versions[partner]] += 1
    assert max(partners.values()) - min(partners.values()) <= 2
    assert sorted(partners) == list(POOL)
    assert_frequencies([learners[seat] for seat in range(4)], [0.25] * 4)


def test_opponents_and_partners_of_one_league_follow_the_configured_weights() -> None:
    config = LeagueConfig(self_play_floor=0.2, partner_share=0.4, pfsp_hard=0.3)
    matchups = draws(config)
    weights = pfsp_weights(config, POOL, RECORDS)
    opponents, partners = Counter[int | None](), Counter[int]()
    for matchup in matchups:
        if matchup.kind != "self_play":
            opponents[matchup.opponent] += 1
        if matchup.kind == "partner":
            own = [seat for seat in range(4) if TEAMS[seat] == matchup.learner_side]
            partners.update(matchup.seat_versions[s] for s in own if not matchup.learner_seats[s])
    assert_frequencies([opponents[version] for version in POOL], list(weights))
    assert_frequencies([partners[version] for version in POOL], [1 / 3] * 3)
    assert_frequencies([partners.total(), opponents.total() - partners.total()], [0.4, 0.6])
    assert_frequencies([opponents.total(), len(matchups) - opponents.total()], [0.8, 0.2])


def test_an_all_beaten_pool_is_still_played_by_the_matchmaker() -> None:
    # Beaten so often that every weight of the hard share is next to nothing, and then nothing.
    for games, shares in ((10**6, [1 / 3] * 3), (10**300, [1 / 3] * 3)):
        beaten = {version: PairRecord(wins=float(games), games=games) for version in POOL}
        league = LeagueState(newest=12, champion=9, pool=POOL, records=beaten)
        config = LeagueConfig(self_play_ceiling=0.8, pfsp_hard=1.0)
        matchups = draws(config, league)
        opponents = Counter(m.opponent for m in matchups if m.opponent is not None)
        assert_frequencies([opponents[version] for version in POOL], shares)
        assert_frequencies([opponents.total(), len(matchups) - opponents.total()], [0.2, 0.8])


def test_learning_seats_always_play_the_newest_and_opponents_share_one_model() -> None:
    kinds = set()
    for matchup in draws():
        kinds.add(matchup.kind)
        newest_seats = [version == LEAGUE.newest for version in matchup.seat_versions]
        assert newest_seats == list(matchup.learner_seats)
        others = [s for s in range(4) if TEAMS[s] != matchup.learner_side]
        if matchup.kind == "self_play":
            assert all(matchup.learner_seats)
            assert matchup.opponent is None
        else:
            assert {matchup.seat_versions[seat] for seat in others} == {matchup.opponent}
            assert matchup.opponent in POOL
        if matchup.kind == "league":
            assert sum(matchup.learner_seats) == 2
        assert matchup.rated == (matchup.kind == "league")
    assert kinds == {"self_play", "league", "partner"}


def test_a_draw_depends_on_seed_key_and_league_alone() -> None:
    first, again = draws()[:200], [matchmaker().draw(key, LEAGUE) for key in reversed(range(200))]
    assert first == again[::-1]
    other = matchmaker(seed=6)
    assert first != [other.draw(key, LEAGUE) for key in range(200)]


def test_an_empty_pool_or_one_of_the_newest_alone_gives_self_play() -> None:
    config = LeagueConfig(self_play_floor=0.0, self_play_ceiling=0.0)
    for pool in ((), (12,)):
        league = LeagueState(newest=12, champion=12, pool=pool)
        kinds = {matchup.kind for matchup in draws(config, league)}
        assert kinds == {"self_play"}


def test_single_seat_sides_have_no_partner_games() -> None:
    config = LeagueConfig(self_play_floor=0.0, self_play_ceiling=0.0, partner_share=1.0)
    maker = Matchmaker(config, 3, (0, 1, 2), 1)
    matchups = [maker.draw(key, LEAGUE) for key in range(60)]
    assert {matchup.kind for matchup in matchups} == {"league"}
    assert {matchup.learner_side for matchup in matchups} == {0, 1, 2}
    assert all(sum(matchup.learner_seats) == 1 for matchup in matchups)


def test_self_play_rises_to_its_ceiling_once_every_member_is_beaten() -> None:
    config = LeagueConfig()
    assert self_play_share(config, POOL, RECORDS) == 0.7
    beaten = {version: PairRecord(wins=6.0, games=10) for version in POOL}
    assert self_play_share(config, POOL, beaten) == 0.9
    even = beaten | {4: PairRecord(wins=5.0, games=10)}
    assert self_play_share(config, POOL, even) == 0.7
    unmet = {version: record for version, record in beaten.items() if version != 9}
    assert self_play_share(config, POOL, unmet) == 0.7
    league = LeagueState(newest=12, champion=9, pool=POOL, records=beaten)
    kinds = Counter(matchup.kind == "self_play" for matchup in draws(league=league))
    assert_frequencies([kinds[True], kinds[False]], [0.9, 0.1])


def test_opponents_are_uniform_when_all_weights_vanish() -> None:
    # So many games that (1 - p)^2 underflows against any other figure.
    beaten = {version: PairRecord(wins=1e300, games=10**300) for version in POOL}
    weights = pfsp_weights(LeagueConfig(), POOL, beaten)
    np.testing.assert_allclose(weights, 1 / 3)


@pytest.mark.parametrize(
    ("config", "side_of", "message"),
    [
        (LeagueConfig(self_play_floor=0.95), TEAMS, "self_play_floor = 0.95: at most"),
        (LeagueConfig(), (0, 1, 0), "one side for each of 4 seats"),
        (LeagueConfig(), (0, 2, 0, 2), "without gaps"),
    ],
)
def test_options_that_disagree_are_refused(
    config: LeagueConfig, side_of: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Matchmaker(config, 4, side_of, 0)
