"""Stored views -> the numbers that the network reads. One compiled pass over a batch.

Room: learner. May import: numpy, engine.

A view is stored as the game's own record; its features are worked out when it is sampled, by the
same compiled functions that the search uses, so that training and play cannot drift apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.game import Encoder, GameSpec
from engine.jit import kernel
from engine.rules import describe_actions, legal_actions, observe, policy_weight


class Features(NamedTuple):
    """Inputs of the network for B rows; C candidates of the rows with a policy target."""

    observations: NDArray[np.float32]
    """[B, F]."""
    candidates: NDArray[np.float32]
    """[C, A], in canonical order within a row."""
    candidate_row: NDArray[np.int64]
    """[C], ascending."""


@kernel
def _fill(game: Any, encoder: Any, views: Any, rows: Any, features: Any, actions: Any) -> Any:
    """Fill ``features``; return -1, or the first row whose legal actions are not as many as stored.

    ``rows`` is int64[B, 2]: seat, number of candidates (0: none wanted).
    """
    total = 0
    for i in range(len(rows)):
        observe(game, views[i], rows[i, 0], encoder, features.observations[i])
        wanted = rows[i, 1]
        if wanted > 0:
            count = legal_actions(game, views[i], actions)
            if count != wanted:
                return i
            describe_actions(
                game, views[i], encoder, actions, count, features.candidates[total : total + count]
            )
            for j in range(count):
                features.candidate_row[total + j] = i
            total += count
    return -1


@kernel
def _weigh(game: Any, views: Any, is_policy_row: Any, weights: Any) -> None:
    """Write the game's policy weight of each policy row to ``weights`` [B], 0 of the others."""
    for i in range(len(weights)):
        weights[i] = policy_weight(game, views[i]) if is_policy_row[i] else 0.0


class FeatureMaker:
    """Computes features of views of one game with one encoder."""

    def __init__(self, spec: GameSpec, game: Any, encoder: Encoder) -> None:
        self._spec, self._game, self._encoder = spec, game, encoder
        self._actions = np.zeros(spec.max_actions, np.int64)

    def make(self, views: Any, seats: NDArray[Any], num_actions: NDArray[Any]) -> Features:
        """Return the features of ``views``.

        Args:
            views: state_dtype[B], contiguous.
            seats: [B], whose view each is.
            num_actions: [B], stored number of legal actions; 0 where no policy is wanted.

        Raises:
            ValueError: the rules give a view another number of legal actions than was stored.
        """
        rows = np.stack([seats, num_actions], axis=1).astype(np.int64)
        num_candidates = int(rows[:, 1].sum())
        features = Features(
            np.zeros((len(rows), self._encoder.observation_size), np.float32),
            np.zeros((num_candidates, self._encoder.action_size), np.float32),
            np.zeros(num_candidates, np.int64),
        )
        records = np.ascontiguousarray(views).view(np.recarray)
        bad = int(_fill(self._game, self._encoder.code, records, rows, features, self._actions))
        if bad >= 0:
            count = int(legal_actions(self._game, records[bad], self._actions))
            raise ValueError(
                f"an example of {self._spec.name} has {rows[bad, 1]} visit counts, its view has "
                f"{count} legal actions"
            )
        return features

    def policy_weights(self, views: Any, is_policy_row: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return [B] what each row weighs in the policy loss; 0 where no policy is wanted.

        ``views`` are those of the seats to move.
        """
        weights = np.zeros(len(is_policy_row), np.float32)
        _weigh(self._game, np.ascontiguousarray(views).view(np.recarray), is_policy_row, weights)
        return weights
