"""Counterfactual regret minimisation (CFR+) on exactly enumerated games.

Room: engine. May import: engine, numpy. The yardstick for every other search: it converges to an
equilibrium, and ``engine.exact`` says how far away it still is.

Zinkevich, Johanson, Bowling, Piccione: Regret Minimization in Games with Incomplete Information
(NIPS 2007), section 3: counterfactual regret of an action is its counterfactual value minus that of
the current policy, and the policy is regret matching on it (theorems 3 and 4 bound the average
policy's exploitability). The three changes of CFR+ are Tammelin's, Solving Large Imperfect
Information Games Using CFR+ (arXiv:1407.5042, 2014): negative sums of regret are cut to zero after
every iteration, seats are updated in turn, and iteration t weighs t in the average.
"""

from __future__ import annotations

import numpy as np

from engine.exact import (
    FloatArray,
    GameTree,
    InfoKey,
    expected_value_of,
    nash_conv_of,
    reach_of,
    solve_for,
)


class CfrSolver:
    """CFR+ on one game tree. Deterministic: it samples nothing.

    Dimensions are those of ``engine.exact``: K slots, one per action of an information set.
    """

    def __init__(self, tree: GameTree) -> None:
        self.tree = tree
        self.num_iterations = 0
        self._regret = np.zeros(tree.num_slots)
        self._policy_sum = np.zeros(tree.num_slots)
        seats = np.array([infoset.seat for infoset in tree.infosets])[tree.slot_infoset]
        self._slots_of = tuple(np.flatnonzero(seats == seat) for seat in range(2))

    def run(self, num_iterations: int) -> None:
        """Do ``num_iterations`` more iterations. Raises ValueError when negative."""
        if num_iterations < 0:
            raise ValueError(f"num_iterations = {num_iterations}: needed is 0 or more")
        for _ in range(num_iterations):
            self.num_iterations += 1
            for seat in range(2):
                self._update(seat)

    def average_policy(self) -> dict[InfoKey, FloatArray]:
        """Return the weighted average policy, the one that converges to an equilibrium."""
        return self.tree.mapping(self._average())

    def exploitability(self) -> float:
        """Return the exploitability of the average policy, in units of the returns."""
        return nash_conv_of(self.tree, self._average()) / 2.0

    def value(self) -> float:
        """Return the expected return of seat 0 under the average policy."""
        return expected_value_of(self.tree, self._average())

    def _update(self, seat: int) -> None:
        """Update ``seat``'s regrets, then its part of the average, in place."""
        tree, slots = self.tree, self._slots_of[seat]
        policy = _normalised(tree, self._regret)
        values = solve_for(tree, policy, seat, best=False).counterfactual
        of_policy = np.zeros(len(tree.infosets))
        np.add.at(of_policy, tree.slot_infoset[slots], (policy * values)[slots])
        gain = values[slots] - of_policy[tree.slot_infoset[slots]]
        self._regret[slots] = np.maximum(self._regret[slots] + gain, 0.0)
        policy = _normalised(tree, self._regret)
        reach = self._own_reach(policy, seat)
        self._policy_sum[slots] += self.num_iterations * (reach[tree.slot_infoset] * policy)[slots]

    def _own_reach(self, policy: FloatArray, seat: int) -> FloatArray:
        """Return ``float64[I]``: the probability that ``seat``'s own actions lead to its sets."""
        tree = self.tree
        reach = reach_of(tree, policy, without=1 - seat) / tree.chance
        out = np.zeros(len(tree.infosets))
        inner = tree.infoset >= 0
        out[tree.infoset[inner]] = reach[inner]  # equal in a set, by perfect recall
        return out

    def _average(self) -> FloatArray:
        return _normalised(self.tree, self._policy_sum)


def _normalised(tree: GameTree, weights: FloatArray) -> FloatArray:
    """Return ``weights`` (``float64[K]``, none negative) as a policy; uniform where all vanish."""
    total = np.zeros(len(tree.infosets))
    np.add.at(total, tree.slot_infoset, weights)
    share = total[tree.slot_infoset]
    empty = share == 0
    policy: FloatArray = np.where(empty, tree.uniform(), weights / np.where(empty, 1.0, share))
    return policy
