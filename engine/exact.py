"""Exact values of small games: information sets, best responses and exploitability.

Room: engine. May import: engine, numpy. Python and numpy only; the rules do the playing.

A game qualifies when it has two seats on two sides, a zero-sum outcome and ``initial_states``, and
when an initial state fixes all later chance (``deal_next`` is then deterministic). The tree of all
histories is laid out by depth, so that every quantity below is a handful of numpy passes over
levels. Dimensions: N histories, I information sets, K slots. A slot is one action of one
information set; a policy is one probability per slot.

Definitions: Osborne, Rubinstein, A Course in Game Theory (1994), section 11.1 (information sets,
perfect recall). NashConv is the sum over seats of what a best response gains (Lanctot et al., A
Unified Game-Theoretic Approach to Multiagent Reinforcement Learning, NeurIPS 2017, section 2);
exploitability is its half.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine import rules
from engine.game import GameSpec, spec_of

InfoKey: TypeAlias = tuple[int, bytes]
"""(seat to move, bytes of its view): the name of an information set."""
Policy: TypeAlias = Mapping[InfoKey, ArrayLike]
"""Probabilities over the legal actions, in canonical order, of every information set."""
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

NO_PARENT = -1
"""Parent and slot of an initial history."""
NO_INFOSET = -1
"""Information set of a finished history."""
_ROW_TOLERANCE = 1e-9
_MAX_DEALS = 10_000
"""More ``deal_next`` in a row than any game needs: a game whose chance never ends."""


def info_key(game: Any, state: Any, seat: int) -> InfoKey:
    """Return the information set of ``seat`` in ``state`` (or in ``seat``'s view of it)."""
    out = spec_of(game).new_state()
    rules.view(game, state, seat, out)
    return seat, out.tobytes()


class InformationSet(NamedTuple):
    """All histories that the seat to move cannot tell apart."""

    key: InfoKey
    seat: int
    view: Any
    """The record that the seat sees."""
    actions: tuple[int, ...]
    """Legal actions in canonical order."""
    first_slot: int
    """Its actions are slots ``first_slot : first_slot + len(actions)``."""


@dataclass(frozen=True, kw_only=True)
class GameTree:
    """All histories of a small game. Build it with ``enumerate_game``.

    Histories are ordered by depth (plies played); ``levels[d] : levels[d + 1]`` are depth d.
    """

    game: Any
    infosets: tuple[InformationSet, ...]
    index: dict[InfoKey, int]
    """Position of a key in ``infosets``."""
    levels: tuple[int, ...]
    parent: IntArray
    """[N]"""
    slot: IntArray
    """[N] slot of the action that led here."""
    infoset: IntArray
    """[N] information set of the seat to move."""
    seat: IntArray
    """[N] seat to move; meaningless where ``infoset`` is NO_INFOSET."""
    chance: FloatArray
    """[N] probability of the first deal that the history belongs to."""
    outcome: FloatArray
    """[N] return of seat 0 in a finished history, else 0."""
    slot_infoset: IntArray
    """[K]"""

    @property
    def num_slots(self) -> int:
        """K."""
        return len(self.slot_infoset)

    def later_levels(self) -> list[tuple[int, int]]:
        """Return (begin, end) of every level but that of the first deals, shallow to deep."""
        return list(itertools.pairwise(self.levels[1:]))

    def uniform(self) -> FloatArray:
        """Return the policy that plays every legal action alike (``float64[K]``)."""
        counts = np.array([len(infoset.actions) for infoset in self.infosets], np.float64)
        weights: FloatArray = (1.0 / counts)[self.slot_infoset]
        return weights

    def vector(self, policy: Policy) -> FloatArray:
        """Return ``policy`` as ``float64[K]``. Raises ValueError naming the first bad row."""
        out = np.empty(self.num_slots)
        for infoset in self.infosets:
            if infoset.key not in policy:
                raise ValueError(f"policy lacks information set {self.describe(infoset)}")
            row = np.asarray(policy[infoset.key], np.float64)
            if (
                row.shape != (len(infoset.actions),)
                or not np.all(row >= 0)
                or abs(float(row.sum()) - 1.0) > _ROW_TOLERANCE
            ):
                raise ValueError(
                    f"policy at {self.describe(infoset)} is {row.tolist()}: needed are "
                    f"{len(infoset.actions)} probabilities that sum to 1"
                )
            out[infoset.first_slot : infoset.first_slot + len(row)] = row
        return out

    def mapping(self, values: FloatArray) -> dict[InfoKey, FloatArray]:
        """Return one number per slot (``float64[K]``) as rows by information set."""
        return {
            infoset.key: values[infoset.first_slot : infoset.first_slot + len(infoset.actions)]
            for infoset in self.infosets
        }

    def describe(self, infoset: InformationSet) -> str:
        """Return a readable name of ``infoset``."""
        text = spec_of(self.game).format_view(self.game, infoset.view, infoset.seat)
        return f"seat {infoset.seat}: {text}"


def uniform_policy(tree: GameTree) -> dict[InfoKey, FloatArray]:
    """Return the policy that plays every legal action alike."""
    return tree.mapping(tree.uniform())


# --- values ---------------------------------------------------------------------------------------


def expected_value(tree: GameTree, policy: Policy) -> float:
    """Return the expected return of seat 0 when both seats play ``policy``."""
    return expected_value_of(tree, tree.vector(policy))


def best_response(
    tree: GameTree, policy: Policy, seat: int
) -> tuple[float, dict[InfoKey, FloatArray]]:
    """Return what ``seat`` can get at most against ``policy``, and a pure policy that gets it.

    The value is from ``seat``'s perspective. The mapping holds only ``seat``'s information sets.
    """
    vector = tree.vector(policy)
    solved = solve_for(tree, vector, seat, best=True)
    rows = tree.mapping(solved.policy)
    return solved.value, {key: row for key, row in rows.items() if key[0] == seat}


def action_values(
    tree: GameTree, policy: Policy, seat: int, *, continuation: str = "best"
) -> dict[InfoKey, FloatArray]:
    """Return the exact value of every action at every information set of ``seat``.

    The other seat plays ``policy``; hidden cards are weighted by chance and by what the other seat
    did so far. After the action ``seat`` plays its best response (``continuation="best"``) or
    ``policy`` itself (``"policy"``). Values are from ``seat``'s perspective; a row is NaN where the
    other seat's policy never leads.
    """
    if continuation not in ("best", "policy"):
        raise ValueError(f"continuation {continuation!r}: allowed are best, policy")
    solved = solve_for(tree, tree.vector(policy), seat, best=continuation == "best")
    with np.errstate(invalid="ignore", divide="ignore"):
        values = solved.counterfactual / solved.reach[tree.slot_infoset]
    values[solved.reach[tree.slot_infoset] == 0] = np.nan
    rows = tree.mapping(values)
    return {key: row for key, row in rows.items() if key[0] == seat}


def nash_conv(tree: GameTree, policy: Policy) -> float:
    """Return the sum over both seats of what a best response to ``policy`` gains."""
    return nash_conv_of(tree, tree.vector(policy))


def exploitability(tree: GameTree, policy: Policy) -> float:
    """Return half of ``nash_conv``: what a best response gains, averaged over the seats."""
    return nash_conv(tree, policy) / 2.0


# --- the same on policy vectors -------------------------------------------------------------------


class Solved(NamedTuple):
    """What one backward pass for one seat finds; all values from that seat's perspective."""

    value: float
    policy: FloatArray
    """[K] what the seat played: the given policy, or its best response."""
    counterfactual: FloatArray
    """[K] value of the seat's actions, summed over histories weighted by the others' reach."""
    reach: FloatArray
    """[I] the others' and chance's reach, summed over the histories of the seat's sets."""


def reach_of(tree: GameTree, policy: FloatArray, *, without: int | None = None) -> FloatArray:
    """Return the probability of every history (``float64[N]``).

    ``without`` leaves out one seat's own decisions: chance and the other seat alone.
    """
    reach = tree.chance.copy()
    for begin, end in tree.later_levels():
        up = tree.parent[begin:end]
        step = policy[tree.slot[begin:end]]
        if without is not None:
            step = np.where(tree.seat[up] == without, 1.0, step)
        reach[begin:end] = reach[up] * step
    return reach


def expected_value_of(tree: GameTree, policy: FloatArray) -> float:
    """Return the expected return of seat 0 for a policy vector (``float64[K]``)."""
    return float(reach_of(tree, policy) @ tree.outcome)


def nash_conv_of(tree: GameTree, policy: FloatArray) -> float:
    """Return ``nash_conv`` for a policy vector (``float64[K]``)."""
    # The game is zero-sum: the values of the policy itself cancel.
    return sum(solve_for(tree, policy, seat, best=True).value for seat in range(2))


def solve_for(tree: GameTree, policy: FloatArray, seat: int, *, best: bool) -> Solved:
    """Work out ``seat``'s values against ``policy`` from the last level to the first.

    With ``best`` the seat deviates to its best response (the first of equally good actions);
    otherwise it plays ``policy`` too. Counterfactual value: Zinkevich et al., Regret Minimization
    in Games with Incomplete Information (NIPS 2007), section 3.
    """
    if seat not in (0, 1):
        raise ValueError(f"seat {seat}: allowed are 0 and 1")
    reach = reach_of(tree, policy, without=seat)
    values = tree.outcome.copy() if seat == 0 else -tree.outcome
    played = policy.copy()
    counterfactual = np.zeros(tree.num_slots)
    for begin, end in reversed(tree.later_levels()):
        up, slots = tree.parent[begin:end], tree.slot[begin:end]
        own = tree.seat[up] == seat
        np.add.at(counterfactual, slots[own], reach[up[own]] * values[begin:end][own])
        if best:
            _choose_best(tree, np.unique(tree.infoset[up[own]]), counterfactual, played)
        np.add.at(values, up, played[slots] * values[begin:end])
    mine = (tree.seat == seat) & (tree.infoset != NO_INFOSET)
    mass = np.zeros(len(tree.infosets))
    np.add.at(mass, tree.infoset[mine], reach[mine])
    first = slice(0, tree.levels[1])
    value = float(tree.chance[first] @ values[first])
    return Solved(value, played, counterfactual, mass)


def _choose_best(
    tree: GameTree, infosets: IntArray, counterfactual: FloatArray, played: FloatArray
) -> None:
    """Write the best pure choice of every one of ``infosets`` to ``played`` in place."""
    for number in infosets:
        infoset = tree.infosets[number]
        block = slice(infoset.first_slot, infoset.first_slot + len(infoset.actions))
        played[block] = 0.0
        played[infoset.first_slot + int(np.argmax(counterfactual[block]))] = 1.0


# --- enumeration ----------------------------------------------------------------------------------


def enumerate_game(game: Any, *, max_histories: int = 1_000_000) -> GameTree:
    """Play every history of ``game`` and return its tree.

    Raises ValueError when the game does not qualify (see the module), is larger than
    ``max_histories``, or has views that are not perfect recall.
    """
    spec = spec_of(game)
    if spec.initial_states is None:
        raise ValueError(f"{spec.name} has no initial_states: it is not exactly solvable")
    if rules.num_seats(game) != 2 or rules.num_sides(game) != 2:
        raise ValueError(f"{spec.name} has {rules.num_seats(game)} seats: needed are 2 on 2 sides")
    return _Builder(game, spec, max_histories).build(spec.initial_states(game))


class _Builder:
    """Breadth-first enumeration; one instance builds one tree."""

    def __init__(self, game: Any, spec: GameSpec, max_histories: int) -> None:
        self.game, self.spec, self.max_histories = game, spec, max_histories
        self.infosets: list[InformationSet] = []
        self.index: dict[InfoKey, int] = {}
        self.num_slots = 0
        self.parent: list[int] = []
        self.slot: list[int] = []
        self.infoset: list[int] = []
        self.seat: list[int] = []
        self.chance: list[float] = []
        self.outcome: list[float] = []
        self.states: list[Any] = []
        self.own_last: list[tuple[int, int]] = []
        """Per history: the slot of either seat's own last action, for the check of recall."""
        self.recall: dict[int, tuple[int, int]] = {}
        """Per information set: (depth, own last slot) of its first history."""
        self.actions = np.zeros(spec.max_actions, np.int64)

    def build(self, deals: list[tuple[float, Any]]) -> GameTree:
        """Enumerate from ``deals``, level by level."""
        probabilities = [probability for probability, _ in deals]
        if min(probabilities) <= 0 or abs(sum(probabilities) - 1.0) > _ROW_TOLERANCE:
            raise ValueError(
                f"{self.spec.name}: probabilities of the first deals must be positive and sum to 1"
            )
        levels = [0]
        for probability, state in deals:
            self._add(NO_PARENT, NO_PARENT, probability, self._copy(state), depth=0)
        levels.append(len(self.parent))
        while levels[-1] > levels[-2]:
            depth = len(levels) - 1
            for node in range(levels[-2], levels[-1]):
                self._expand(node, depth)
            levels.append(len(self.parent))
        return self._tree(tuple(levels[:-1]))

    def _copy(self, state: Any) -> Any:
        copy = self.spec.new_states(1)
        copy[0] = state
        return copy[0]

    def _expand(self, node: int, depth: int) -> None:
        if self.infoset[node] == NO_INFOSET:
            return
        infoset = self.infosets[self.infoset[node]]
        for i, action in enumerate(infoset.actions):
            state = self._copy(self.states[node])
            rules.apply(self.game, state, action)
            self._add(node, infoset.first_slot + i, self.chance[node], state, depth=depth)
        self.states[node] = None  # inner states are no longer needed

    def _add(self, parent: int, slot: int, probability: float, state: Any, *, depth: int) -> None:
        if len(self.parent) >= self.max_histories:
            raise ValueError(f"{self.spec.name} has more than {self.max_histories} histories")
        own_last = (NO_PARENT, NO_PARENT)
        if parent != NO_PARENT:
            mover = self.seat[parent]
            before = self.own_last[parent]
            own_last = (slot, before[1]) if mover == 0 else (before[0], slot)
        seat = self._settle_chance(state)
        infoset, outcome = NO_INFOSET, 0.0
        if seat == rules.TERMINAL:
            outcome = self._outcome(state)
        else:
            infoset = self._infoset(state, seat)
            self._check_recall(infoset, depth, own_last[seat])
        self.parent.append(parent)
        self.slot.append(slot)
        self.infoset.append(infoset)
        self.seat.append(seat)
        self.chance.append(probability)
        self.outcome.append(outcome)
        self.states.append(state)
        self.own_last.append(own_last)

    def _settle_chance(self, state: Any) -> int:
        """Deal until somebody is to move or the game is over; return ``current_seat``."""
        for _ in range(_MAX_DEALS):
            seat = int(rules.current_seat(self.game, state))
            if seat != rules.CHANCE:
                return seat
            rules.deal_next(self.game, state)
        raise ValueError(f"{self.spec.name}: {_MAX_DEALS} deals in a row")

    def _outcome(self, state: Any) -> float:
        returns = np.zeros(2)
        rules.returns(self.game, state, returns)
        by_seat = [float(returns[int(rules.side_of(self.game, seat))]) for seat in range(2)]
        if abs(by_seat[0] + by_seat[1]) > _ROW_TOLERANCE:
            raise ValueError(f"{self.spec.name}: returns {by_seat} do not sum to zero")
        return by_seat[0]

    def _infoset(self, state: Any, seat: int) -> int:
        view = self.spec.new_state()
        rules.view(self.game, state, seat, view)
        key = (seat, view.tobytes())
        count = int(rules.legal_actions(self.game, view, self.actions))
        actions = tuple(int(action) for action in self.actions[:count])
        if key not in self.index:
            self.index[key] = len(self.infosets)
            self.infosets.append(InformationSet(key, seat, view, actions, self.num_slots))
            self.num_slots += count
        return self.index[key]

    def _check_recall(self, infoset: int, depth: int, own_last: int) -> None:
        """Levels need one depth per information set, values need perfect recall."""
        first = self.recall.setdefault(infoset, (depth, own_last))
        if first != (depth, own_last):
            text = self.spec.format_view(
                self.game, self.infosets[infoset].view, self.infosets[infoset].seat
            )
            raise ValueError(
                f"{self.spec.name}: the view {text!r} forgets: it is reached at depth {first[0]} "
                f"after own action {first[1]}, and at depth {depth} after {own_last}"
            )

    def _tree(self, levels: tuple[int, ...]) -> GameTree:
        slot_infoset = [
            number for number, infoset in enumerate(self.infosets) for _ in infoset.actions
        ]
        return GameTree(
            game=self.game,
            infosets=tuple(self.infosets),
            index=self.index,
            levels=levels,
            parent=np.array(self.parent, np.int64),
            slot=np.array(self.slot, np.int64),
            infoset=np.array(self.infoset, np.int64),
            seat=np.array(self.seat, np.int64),
            chance=np.array(self.chance),
            outcome=np.array(self.outcome),
            slot_infoset=np.array(slot_infoset, np.int64),
        )
