"""Perfect-information Monte Carlo: alpha-beta in sampled worlds, values averaged over the worlds.

Room: engine. May import: numpy and the other rooms of engine below search.

Two sides play minimax. With more, all others play against the root seat (the paranoid reduction of
Sturtevant and Korf, On Pruning Techniques for Multi-Player Games, AAAI 2000): values are the root
side's outcome alone. A line is cut, and valued by the game's guess, at a fixed number of decisions,
where the root seat itself would draw cards, and when the budget of nodes is spent. Forced moves
cost no depth. What the method cannot see: a world is searched as if all hands lay open.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.game import GameSpec
from engine.jit import inlined, kernel
from engine.rules import (
    CHANCE,
    TERMINAL,
    apply,
    current_seat,
    deal_next,
    determinize,
    extra_depth,
    is_certain,
    legal_actions,
    num_sides,
    rank_actions,
    receives_cards,
    returns,
    side_of,
    static_value,
)
from engine.search.borrow import borrow
from engine.search.tree import plain_records

MOST_EXTRA_DEPTH = 8
NO_BUDGET = 0
_NODES, _WORLDS, _DEPTH, _CUT = range(4)


class PimcOptions(NamedTuple):
    """How deep and how often a position is searched."""

    worlds: int
    depth: int
    """Decisions (moves that are not forced) on a line; the root's is the first."""
    most_actions: int = 5
    """Actions of a position that are tried, the most promising ones first."""
    node_budget: int = NO_BUDGET
    """Positions visited a decision at the most; 0 for as many as it takes."""


class Effort(NamedTuple):
    """What a decision took; zeros for a forced one."""

    nodes: int
    """Positions visited."""
    worlds: int
    """Sampled worlds that were searched."""
    depth: int
    """Decisions on a line, the root's among them."""
    cut: int
    """Lines that the budget of nodes ended before that depth; 0: the search was complete."""


class Stack(NamedTuple):
    """The line that is searched. L levels, A actions; level 0 is a sampled world after a root move.

    ``borrow`` passes it on without counting references.
    """

    states: Any
    """state_dtype[L]."""
    actions: NDArray[np.int64]
    """[L, A] actions to try."""
    counts: NDArray[np.int64]
    """[L, 3] actions to try, the next of them, decisions left."""
    bounds: NDArray[np.float64]
    """[L, 3] alpha, beta, best value so far; all for the root side."""
    own: NDArray[np.bool_]
    """[L] whether the root side moves."""
    outcome: NDArray[np.float64]
    """[S]."""
    counters: NDArray[np.int64]
    """[4] of this decision, as in ``Effort``."""


COUNT, NEXT, LEFT = range(3)
ALPHA, BETA, BEST = range(3)


class PimcPlayer:
    """Plays the action of the best mean value over sampled worlds; ties go by the game's order."""

    def __init__(self, spec: GameSpec, game: Any, options: PimcOptions) -> None:
        """Prepare one stack. Raises ValueError for options below their minimum."""
        for name, least in (("worlds", 1), ("depth", 1), ("most_actions", 1), ("node_budget", 0)):
            value = getattr(options, name)
            if value < least:
                raise ValueError(f"{name} = {value}: at least {least} is allowed")
        levels = options.depth + MOST_EXTRA_DEPTH + 1
        self._game, self._options = game, options
        self._world = plain_records(spec.state_dtype, 1)
        self._actions = np.zeros(spec.max_actions, np.int64)
        self._values = np.zeros(spec.max_actions)
        self._stack = Stack(
            states=plain_records(spec.state_dtype, levels),
            actions=np.zeros((levels, spec.max_actions), np.int64),
            counts=np.zeros((levels, 3), np.int64),
            bounds=np.zeros((levels, 3)),
            own=np.zeros(levels, np.bool_),
            outcome=np.zeros(int(num_sides(game))),
            counters=np.zeros(len(Effort._fields), np.int64),
        )

    @property
    def effort(self) -> Effort:
        """What the last decision took."""
        return Effort(*(int(count) for count in self._stack.counters))

    def act(
        self,
        views: Any,
        seats: NDArray[np.int64],
        keys: NDArray[np.uint64],
        out_actions: NDArray[np.int64],
    ) -> None:
        """Write one legal action per position."""
        scratch = (self._world, self._actions, self._values)
        positions = (views, seats, np.array(keys))
        _choose(self._game, self._options, self._stack, positions, scratch, out_actions)


@kernel
def _choose(
    game: Any, options: Any, stack: Any, positions: Any, scratch: Any, out_actions: Any
) -> None:
    """Write the chosen action of every position."""
    stack, positions, scratch = borrow(stack), borrow(positions), borrow(scratch)
    views, seats, keys = positions
    world, actions, values = scratch
    for i in range(out_actions.shape[0]):
        seat, rng = seats[i], keys[i : i + 1]
        count = legal_actions(game, views[i], actions)
        if count > 1:
            count = rank_actions(game, views[i], actions, count, options.most_actions)
        values[:count] = 0.0
        num_worlds = 0
        if count > 1:
            num_worlds = 1 if is_certain(game, views[i], seat) else options.worlds
        depth = options.depth + min(extra_depth(game, views[i]), MOST_EXTRA_DEPTH)
        stack.counters[_NODES] = stack.counters[_CUT] = 0
        stack.counters[_WORLDS] = num_worlds
        stack.counters[_DEPTH] = depth if count > 1 else 0
        for _ in range(num_worlds):
            determinize(game, views[i], seat, rng, world[0])
            for k in range(count):
                stack.states[0] = world[0]
                apply(game, stack.states[0], actions[k])
                values[k] += search_line(game, options, stack, seat, depth - 1)
        best = 0
        for k in range(1, count):
            if values[k] > values[best]:
                best = k
        out_actions[i] = actions[best]


@inlined
def search_line(game: Any, options: Any, stack: Any, seat: Any, depth: Any) -> Any:
    """Return the minimax value of ``stack.states[0]`` for the side of ``seat``."""
    counts, bounds = stack.counts, stack.bounds
    counts[0, LEFT] = depth
    bounds[0, ALPHA], bounds[0, BETA] = -2.0, 2.0
    level = 0
    entering = True
    while True:
        if entering:
            is_leaf = enter(game, options, stack, level, seat)
            entering = False
            if is_leaf:
                counts[level, COUNT] = counts[level, NEXT] = 0
        more = counts[level, NEXT] < counts[level, COUNT]
        if more and bounds[level, ALPHA] < bounds[level, BETA]:
            stack.states[level + 1] = stack.states[level]
            apply(game, stack.states[level + 1], stack.actions[level, counts[level, NEXT]])
            counts[level, NEXT] += 1
            counts[level + 1, LEFT] = counts[level, LEFT] - 1
            bounds[level + 1, ALPHA] = bounds[level, ALPHA]
            bounds[level + 1, BETA] = bounds[level, BETA]
            level += 1
            entering = True
            continue
        value = bounds[level, BEST]
        if level == 0:
            return value
        level -= 1
        if stack.own[level]:
            bounds[level, BEST] = max(bounds[level, BEST], value)
            bounds[level, ALPHA] = max(bounds[level, ALPHA], value)
        else:
            bounds[level, BEST] = min(bounds[level, BEST], value)
            bounds[level, BETA] = min(bounds[level, BETA], value)


@inlined
def enter(game: Any, options: Any, stack: Any, level: Any, seat: Any) -> Any:
    """Go on through forced moves and deals; return whether the line ends here, with its value.

    Otherwise the actions to try are written to the level.
    """
    state = stack.states[level]
    side = side_of(game, seat)
    while True:
        stack.counters[_NODES] += 1
        mover = current_seat(game, state)
        if mover == TERMINAL:
            returns(game, state, stack.outcome)
            stack.bounds[level, BEST] = stack.outcome[side]
            return True
        if mover == CHANCE:
            if receives_cards(game, state, seat):
                break
            deal_next(game, state)
            continue
        actions = stack.actions[level]
        count = legal_actions(game, state, actions)
        if count == 1:
            apply(game, state, actions[0])
            continue
        spent = stack.counters[_NODES] >= options.node_budget > NO_BUDGET
        if stack.counts[level, LEFT] <= 0 or spent:
            if stack.counts[level, LEFT] > 0:
                stack.counters[_CUT] += 1
            break
        stack.counts[level, COUNT] = rank_actions(game, state, actions, count, options.most_actions)
        stack.counts[level, NEXT] = 0
        stack.own[level] = side_of(game, mover) == side
        stack.bounds[level, BEST] = -2.0 if stack.own[level] else 2.0
        return False
    stack.bounds[level, BEST] = static_value(game, state, side)
    return True
