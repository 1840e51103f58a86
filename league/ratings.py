"""Ratings of model versions from pair scores, anchored at the rule-based player (rating 0, Elo).

Room: league. May import: league.messages, numpy. Pure functions; they know no game and no clock.

Bradley and Terry's model (Rank Analysis of Incomplete Block Designs, Biometrika 39, 1952): player i
scores sigmoid(t_i - t_j) against player j on average. One observation is the score of a whole pair
(the same cards twice), 0 to 1, a draw one half. The likelihood with shares for outcomes is the
quasi-likelihood of Wedderburn (Biometrika 61, 1974): means are right, and intervals come from the
pairs themselves, by bootstrap (Efron, Bootstrap Methods, Annals of Statistics 7, 1979).

One virtual draw per version against the anchor keeps every rating finite, also that of a version
that has won everything or has never met, even through others, the anchor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from league.messages import ANCHOR, PairTally, RatedVersion, RatingTable

ELO_PER_NAT = 400.0 / math.log(10.0)
SCORES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
"""Of a pair; the order of ``PairTally.scores``."""
NUM_RESAMPLES = 200
HOPELESS_ELO = 400.0
"""Ten pairs lost for one won: how much more does not matter to anybody."""
_QUANTILE = 1.959963984540054
"""Two-sided 95 % of the normal distribution."""
_MAX_ITERATIONS = 100
_MAX_STEP = 2.0
"""Nats: far from the maximum Newton's step is cut, near it every step is shorter."""
_TOLERANCE = 1e-9
_MIN_DISPERSION = 0.05

_Array = NDArray[np.float64]


class Ratings(NamedTuple):
    """Ratings of all versions of a table; row 0 is the anchor, whose rating is 0 by definition."""

    versions: tuple[int, ...]
    rating: _Array
    """[n] Elo."""
    low: _Array
    """[n] two-sided 95 % interval."""
    high: _Array
    covariance: _Array
    """[n, n] Elo², from the information of the pairs; of the anchor 0."""
    num_pairs: NDArray[np.int64]
    """[n] pairs that the version played."""

    def rated(self) -> list[RatedVersion]:
        """Return the ratings without the anchor, best first."""
        rows = sorted(range(1, len(self.versions)), key=lambda row: -self.rating[row])
        return [
            RatedVersion(
                version=self.versions[row],
                rating=float(self.rating[row]),
                low=float(self.low[row]),
                high=float(self.high[row]),
                num_pairs=int(self.num_pairs[row]),
            )
            for row in rows
        ]


# --- the table ------------------------------------------------------------------------------------


def add_tally(table: RatingTable, new: PairTally) -> RatingTable:
    """Return ``table`` with the pairs of ``new`` added to those of its two players.

    Raises ValueError for players that are not in ascending order.
    """
    if not new.first < new.second:
        raise ValueError(f"tally of {new.first} and {new.second}: needed is first < second")
    tallies = {(tally.first, tally.second): tally for tally in table.tallies}
    old = tallies.get((new.first, new.second))
    if old is not None:
        new = PairTally(
            first=new.first,
            second=new.second,
            scores=tuple(a + b for a, b in zip(old.scores, new.scores, strict=True)),
            wins=old.wins + new.wins,
            draws=old.draws + new.draws,
            losses=old.losses + new.losses,
        )
    tallies[new.first, new.second] = new
    ordered = tuple(tallies[key] for key in sorted(tallies))
    return RatingTable(basis=table.basis, tallies=ordered)


def tally_between(table: RatingTable, first: int, second: int) -> PairTally:
    """Return the results of ``first`` against ``second`` as seen by ``first``; empty if none."""
    low, high = min(first, second), max(first, second)
    for tally in table.tallies:
        if (tally.first, tally.second) == (low, high):
            if first == low:
                return tally
            return PairTally(
                first=first,
                second=second,
                scores=tally.scores[::-1],
                wins=tally.losses,
                draws=tally.draws,
                losses=tally.wins,
            )
    return PairTally(first=first, second=second)


def versions_of(table: RatingTable) -> list[int]:
    """Return the versions that ``table`` has results of, ascending, without the anchor."""
    found = {player for tally in table.tallies for player in (tally.first, tally.second)}
    return sorted(found - {ANCHOR})


def keep_versions(table: RatingTable, keep: Iterable[int], max_versions: int) -> RatingTable:
    """Return ``table`` without its oldest versions outside ``keep``, at most ``max_versions``."""
    kept, versions = set(keep), versions_of(table)
    surplus = max(0, len(versions) - max_versions)
    gone = set([version for version in versions if version not in kept][:surplus])
    tallies = tuple(t for t in table.tallies if not {t.first, t.second} & gone)
    return msgspec.structs.replace(table, tallies=tallies) if gone else table


# --- maximum likelihood ---------------------------------------------------------------------------


def rate(table: RatingTable, *, num_resamples: int = NUM_RESAMPLES, seed: int = 0) -> Ratings:
    """Return the ratings of all versions in ``table``; the same arguments give the same bits.

    Interval: the rating ± 1.96 standard errors. The standard error is the bootstrap's, over pairs,
    and never below the one of the information matrix: a version that is tied to the anchor by
    virtual draws alone does not look certain because its resamples agree on where that puts it.
    """
    versions = (ANCHOR, *versions_of(table))
    row = {version: index for index, version in enumerate(versions)}
    ends = [(row[tally.first], row[tally.second]) for tally in table.tallies]
    counts = np.array([tally.scores for tally in table.tallies], np.float64).reshape(-1, 5)
    size = len(versions)
    strength = _fit(_score_matrix(counts[None], ends, size))[0]
    covariance = _covariance(counts, ends, strength)
    error = np.sqrt(np.diag(covariance))
    if ends and num_resamples > 1:
        resampled = _resample(counts, num_resamples, seed)
        spread = _fit(_score_matrix(resampled, ends, size), strength).std(axis=0, ddof=1)
        error = np.maximum(error, spread)
    num_pairs = np.zeros(size, np.int64)
    for (first, second), tally in zip(ends, table.tallies, strict=True):
        num_pairs[[first, second]] += sum(tally.scores)
    rating, half = ELO_PER_NAT * strength, ELO_PER_NAT * _QUANTILE * error
    return Ratings(
        versions, rating, rating - half, rating + half, ELO_PER_NAT**2 * covariance, num_pairs
    )


def _score_matrix(counts: _Array, ends: Sequence[tuple[int, int]], size: int) -> _Array:
    """Return [B, n, n]: what row scored against column in all, the virtual draws included.

    ``counts`` is [B, K, 5]: pairs of tally k by score.
    """
    scores = np.zeros((len(counts), size, size))
    won, lost = counts @ SCORES, counts @ (1.0 - SCORES)
    for k, (first, second) in enumerate(ends):
        scores[:, first, second] += won[:, k]
        scores[:, second, first] += lost[:, k]
    scores[:, 0, 1:] += 0.5
    scores[:, 1:, 0] += 0.5
    return scores


def _fit(scores: _Array, start: _Array | None = None) -> _Array:
    """Return the strengths [B, n] in nats that maximise the likelihood of ``scores`` [B, n, n].

    Newton's method with halved steps; the likelihood is strictly concave once every player is
    tied to the anchor.
    """
    batch, size = scores.shape[0], scores.shape[1]
    at = np.zeros((batch, size)) if start is None else np.tile(start, (batch, 1))
    games = scores + np.swapaxes(scores, 1, 2)
    value = _log_likelihood(at, scores)
    for _ in range(_MAX_ITERATIONS):
        expected = _sigmoid(at[:, :, None] - at[:, None, :])
        gradient = (scores - games * expected).sum(axis=2)[:, 1:]
        if not gradient.size or np.abs(gradient).max() < _TOLERANCE * (1.0 + games.max()):
            break
        step = np.zeros_like(at)
        information = _laplacian(games * expected * (1.0 - expected))[:, 1:, 1:]
        step[:, 1:] = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
        step *= np.minimum(1.0, _MAX_STEP / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]
        at, value = _climb(at, value, step, scores)
    return at


def _climb(at: _Array, value: _Array, step: _Array, scores: _Array) -> tuple[_Array, _Array]:
    """Return where ``step`` leads, halved in every row until the likelihood does not fall."""
    length = np.ones((len(at), 1))
    for _ in range(40):
        there = at + length * step
        reached = _log_likelihood(there, scores)
        falls = reached < value - 1e-12 * (1.0 + np.abs(value))
        if not falls.any():
            break
        length[falls] *= 0.5
    return there, reached


def _log_likelihood(at: _Array, scores: _Array) -> _Array:
    difference = at[:, :, None] - at[:, None, :]
    return -(scores * np.logaddexp(0.0, -difference)).sum(axis=(1, 2))


def _sigmoid(x: _Array) -> _Array:
    return np.exp(-np.logaddexp(0.0, -x))


def _laplacian(weights: _Array) -> _Array:
    """Return [..., n, n] with minus ``weights`` beside the diagonal and their sums on it."""
    result = -weights
    index = np.arange(weights.shape[-1])
    result[..., index, index] += weights.sum(axis=-1)
    return result


# --- how certain ----------------------------------------------------------------------------------


def _resample(counts: _Array, num_resamples: int, seed: int) -> _Array:
    """Return [B, K, 5]: as many pairs as there are, drawn again from all of them.

    Every tally gives one virtual pair besides, half of it lost and half won, so that a version
    that has won everything still varies.
    """
    cells = counts.copy()
    cells[:, [0, -1]] += 0.5
    generator = np.random.default_rng(seed)
    shares = cells.ravel() / cells.sum()
    drawn = generator.multinomial(int(counts.sum()), shares, size=num_resamples)
    return drawn.reshape(num_resamples, *counts.shape).astype(np.float64)


def _covariance(counts: _Array, ends: Sequence[tuple[int, int]], strength: _Array) -> _Array:
    """Return the inverse information [n, n] in nats²; the anchor's row and column are 0.

    A pair varies less than one coin. By how much (the dispersion) is estimated over all pairs.
    """
    size = len(strength)
    result = np.zeros((size, size))
    if size == 1:
        return result
    expected = _sigmoid(strength[:, None] - strength[None, :])
    coin = expected * (1.0 - expected)
    pairs, excess, scale = np.zeros((size, size)), 0.0, 0.0
    for (first, second), row in zip(ends, counts, strict=True):
        pairs[first, second] += row.sum()
        pairs[second, first] += row.sum()
        excess += float(row @ (SCORES - expected[first, second]) ** 2)
        scale += float(row.sum() * coin[first, second])
    # One virtual pair as of a coin: nothing is certain because a few pairs agree.
    dispersion = min(1.0, max(_MIN_DISPERSION, (excess + 0.25) / (scale + 0.25)))
    virtual = np.zeros((size, size))
    virtual[0, 1:] = virtual[1:, 0] = 1.0
    information = _laplacian(coin * (pairs / dispersion + virtual))[1:, 1:]
    result[1:, 1:] = np.linalg.inv(information)
    return result


def most_informative(
    table: RatingTable, players: Sequence[int], focus: int
) -> tuple[int, int] | None:
    """Return the two of ``players`` whose next pair tells most; None for fewer than two.

    The greedy step of a linear-optimal design (Fedorov, Theory of Optimal Experiments, 1972): a
    pair of i and j adds p (1 - p) of information along d = t_i - t_j and so takes
    (c' S d)^2 / (1 / (p (1 - p)) + d' S d) off the variance of a contrast c; S is the covariance.
    What is asked is how ``focus``, one of ``players``, compares with the others, each of these
    contrasts weighted by 4 p (1 - p): it is near-equals whose order is open. A player that is
    surely more than ``HOPELESS_ELO`` below it is left out. The anchor counts fully, since ratings
    are differences to it. Ties go to the pair that was played least, then to the older versions.
    """
    chosen = sorted(set(players))
    if len(chosen) < 2:
        return None
    strangers = [p for p in chosen if p != ANCHOR and p not in versions_of(table)]
    blank = tuple(PairTally(first=ANCHOR, second=version) for version in strangers)
    ratings = rate(msgspec.structs.replace(table, tallies=table.tallies + blank), num_resamples=0)
    row = {version: index for index, version in enumerate(ratings.versions)}
    rows = np.array([row[version] for version in chosen])
    rating, covariance = ratings.rating[rows], ratings.covariance[np.ix_(rows, rows)]
    centre = chosen.index(focus)
    weights = 4.0 * _information(rating - rating[centre])
    weights[[version == ANCHOR for version in chosen]] = 1.0
    variance = np.diag(covariance) + covariance[centre, centre] - 2.0 * covariance[centre]
    surely_at_most = rating - rating[centre] + _QUANTILE * np.sqrt(variance)
    open_to = [
        v == ANCHOR or e >= -HOPELESS_ELO for v, e in zip(chosen, surely_at_most, strict=True)
    ]
    contrasts = np.eye(len(chosen)) - np.eye(len(chosen))[centre]
    best: tuple[float, int, int, int] | None = None
    for i, first in enumerate(chosen):
        for j in range(i + 1, len(chosen)):
            if not (open_to[i] and open_to[j]):
                continue
            along = covariance[i] - covariance[j]
            spread = float(along[i] - along[j])
            information = float(_information(rating[i] - rating[j]))
            removed = (contrasts @ along) ** 2 / (ELO_PER_NAT**2 / information + spread)
            played = sum(tally_between(table, first, chosen[j]).scores)
            key = (-round(float(weights @ removed), 9), played, first, chosen[j])
            best = key if best is None or key < best else best
    return None if best is None else (best[2], best[3])


def _information(difference: _Array | np.float64) -> _Array:
    """Return p (1 - p) of players that are ``difference`` Elo apart; never 0."""
    p = 1.0 / (1.0 + 10.0 ** (np.asarray(difference) / 400.0))
    return np.maximum(p * (1.0 - p), 1e-6)
