"""The game protocol: generic functions, chosen by the type of ``game``.

Room: engine. ``game`` is a NamedTuple of int options; its *type* picks the rules, its *fields* are
the variant. Every function below is declared once, and implemented once per game in a module of
``engine/games`` that calls ``engine.game.register``. Compiled callers reach the implementation
through ``numba.extending.overload`` (static, inlined, cached on disk); Python callers, and all
callers when the JIT is off, through ``functools.singledispatch``.

Shapes and words
    state    one numpy structured record (``np.record``), changed in place. Fields by attribute.
    view     a record of the same dtype that holds one seat's perfect-recall knowledge and nothing
             else: hidden cards, stock order and the seed of future chance are zero.
    seat     place at the table, 0 .. num_seats - 1.      side  team of a seat, 0 .. num_sides - 1.
    action   int64 code, opaque to the search. **Canonical order is ascending code**: legal actions
             are written in strictly ascending order, without repeats.
    seed     uint64; every deck of a game is a function of (seed, number of the hand) alone.
    rng      ``uint64[1]`` (engine.rng), advanced in place.

Chance is explicit. When cards have to be dealt in mid-game ``current_seat`` returns ``CHANCE`` and
the caller calls ``deal_next``; a search therefore sees the position *before* the deal. Small
chance events that no seat sees at once (a refill from the stock) may happen inside ``apply``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from numba.extending import overload

from engine.jit import KERNEL_OPTIONS, kernel

CHANCE = -1
"""``current_seat`` of a position in which ``deal_next`` is due."""
TERMINAL = -2
"""``current_seat`` of a finished game."""
NO_HAND_END = -1
"""``equity_index`` of a position that is not between two hands."""

_DISPATCHERS: dict[str, Any] = {}
_IMPLEMENTATIONS: dict[str, dict[type, Callable[..., Any]]] = {}
_OPTIONAL: set[str] = set()


def _generic(declaration: Callable[..., Any]) -> Callable[..., Any]:
    """Declare a generic function that each game must implement."""
    name = declaration.__name__
    implementations: dict[type, Callable[..., Any]] = {}
    dispatcher = functools.singledispatch(declaration)

    def resolve(game: Any, *arguments: Any) -> Callable[..., Any] | None:
        return implementations.get(getattr(game, "instance_class", None))  # type: ignore[arg-type]

    overload(dispatcher, strict=False, jit_options=KERNEL_OPTIONS)(resolve)
    _DISPATCHERS[name] = dispatcher
    _IMPLEMENTATIONS[name] = implementations
    return dispatcher


def _optional(declaration: Callable[..., Any]) -> Callable[..., Any]:
    """Declare a generic function whose body here serves games that do not implement it."""
    _OPTIONAL.add(declaration.__name__)
    dispatcher = _generic(declaration)
    return dispatcher


def implement(game_type: type, functions: Mapping[str, Any]) -> None:
    """Bind the functions of one game module to its type. Raises TypeError if one is missing."""
    for name, dispatcher in _DISPATCHERS.items():
        function = functions.get(name)
        if function is None or function is dispatcher:
            if name not in _OPTIONAL:
                raise TypeError(f"{game_type.__name__} does not implement {name!r} of engine.rules")
            function = dispatcher.__wrapped__
        # A module may decorate its functions with @kernel for its own use: overload wants Python.
        function = getattr(function, "py_func", function)
        _IMPLEMENTATIONS[name][game_type] = function
        dispatcher.register(game_type)(kernel(function))


def _missing(game: Any, name: str) -> NotImplementedError:
    return NotImplementedError(f"{type(game).__name__} is not a registered game ({name})")


# --- structure ------------------------------------------------------------------------------------


@_generic
def num_seats(game: Any) -> Any:
    """Return the number of seats."""
    raise _missing(game, "num_seats")


@_generic
def num_sides(game: Any) -> Any:
    """Return the number of sides (teams)."""
    raise _missing(game, "num_sides")


@_generic
def side_of(game: Any, seat: Any) -> Any:
    """Return the side of ``seat``."""
    raise _missing(game, "side_of")


# --- play -----------------------------------------------------------------------------------------


@_generic
def deal(game: Any, state: Any, seed: Any) -> Any:
    """Overwrite ``state`` with the start of a game; dealer and every deck follow from seed."""
    raise _missing(game, "deal")


@_generic
def current_seat(game: Any, state: Any) -> Any:
    """Return the seat to move, ``CHANCE`` when ``deal_next`` is due, or ``TERMINAL``."""
    raise _missing(game, "current_seat")


@_generic
def legal_actions(game: Any, state: Any, actions: Any) -> Any:
    """Write the legal actions of the seat to move to ``actions``, ascending; return their number.

    Also works on the view of the seat to move. ``actions`` is ``int64[>= spec.max_actions]``.
    """
    raise _missing(game, "legal_actions")


@_generic
def apply(game: Any, state: Any, action: Any) -> Any:
    """Play the legal ``action`` in place. Legality is the caller's duty. States only, not views."""
    raise _missing(game, "apply")


@_optional
def deal_next(game: Any, state: Any) -> Any:
    """Resolve the pending chance event of a ``CHANCE`` position in place."""


@_optional
def receives_cards(game: Any, state: Any, seat: Any) -> Any:
    """Return whether ``deal_next`` on this ``CHANCE`` position gives ``seat`` private cards."""
    return True


@_generic
def returns(game: Any, state: Any, out: Any) -> Any:
    """Write the outcome of a ``TERMINAL`` state per side to ``out`` (``float64[num_sides]``).

    +1 win, -1 loss, 0 draw for two sides; sums to zero over the sides.
    """
    raise _missing(game, "returns")


# --- information ----------------------------------------------------------------------------------


@_generic
def view(game: Any, state: Any, seat: Any, out: Any) -> Any:
    """Overwrite ``out`` with what ``seat`` knows of ``state``; the one door out of hidden data.

    Idempotent: the view of a view is the view itself.
    """
    raise _missing(game, "view")


@_generic
def determinize(game: Any, view: Any, seat: Any, rng: Any, out: Any) -> Any:
    """Overwrite ``out`` with a full state drawn uniformly from those that agree with ``view``.

    A game may weigh them by what the others' hidden actions make likely; its module says how.
    Draws the seed of future chance from ``rng`` too. The view of ``out`` is ``view`` again.
    """
    raise _missing(game, "determinize")


@_generic
def observe(game: Any, view: Any, seat: Any, encoder: Any, out: Any) -> Any:
    """Write the features of ``seat``'s view to ``out`` (``float32[encoder.observation_size]``).

    ``seat`` need not be the one to move; also defined on ``CHANCE`` positions (with a flag).
    ``encoder`` is ``Encoder.code``. Everything is relative to ``seat``: own side first.
    """
    raise _missing(game, "observe")


@_generic
def describe_actions(game: Any, view: Any, encoder: Any, actions: Any, count: Any, out: Any) -> Any:
    """Write features of ``actions[:count]`` of the seat to move to ``out``.

    ``out`` is ``float32[>= count, encoder.action_size]``. ``view`` is that seat's view.
    """
    raise _missing(game, "describe_actions")


@_generic
def observe_action(game: Any, state: Any, action: Any, seat: Any) -> Any:
    """Return an int64 key of what ``seat`` sees of ``action``; called on the state before it.

    The action's own code where the seat sees which one it is, and a negative number where not.
    """
    raise _missing(game, "observe_action")


@_optional
def observe_chance(game: Any, state: Any, seat: Any) -> Any:
    """Return an int64 key of what ``seat`` saw of a ``deal_next``; called on the state after it.

    Own cards are not part of it (a search ends before its own seat receives cards).
    """
    return 0


@_optional
def view_then(game: Any, past: Any, world: Any, out: Any) -> Any:
    """Overwrite ``out`` with what the seat to move knew at an earlier ply, were ``world`` true now.

    ``past`` is another seat's view of the position before that ply. Returns a key from 0 on: worlds
    with the same key differ in nothing that mattered to that seat then. Below 0: nothing in
    ``world`` can be told from that ply (cards that were dealt later).
    ``spec.recalled_plies`` says how many plies back this is asked.
    """
    return -1


# --- values ---------------------------------------------------------------------------------------


@_optional
def equity_index(game: Any, state: Any, side: Any) -> Any:
    """Return the row of the match-equity table from ``side``'s perspective between two hands.

    The row stands for (own score, other score, who deals next), in
    ``range(spec.num_equity_states)``. ``NO_HAND_END`` everywhere else, and in games of one hand.
    """
    return NO_HAND_END


@_generic
def reward_terms(game: Any, state: Any, out: Any) -> Any:
    """Write the shaped reward so far to ``out`` (``float64[num_sides, len(spec.reward_terms)]``).

    Each term is in points and already weighted; their sum over terms is the shaped return of a
    side. The win bonus is among them on ``TERMINAL`` states.
    """
    raise _missing(game, "reward_terms")


@_generic
def statistics(game: Any, state: Any, out: Any) -> Any:
    """Write table figures per side to ``out`` (``float64[num_sides, len(spec.statistics)]``)."""
    raise _missing(game, "statistics")


@_optional
def policy_weight(game: Any, view: Any) -> Any:
    """Return the weight of the policy loss of a decision, given the view of the seat to move.

    1 where a decision is one action. A game that splits a decision into steps gives each of them
    less, so that decisions of many steps do not outweigh the others.
    """
    return 1.0


@_generic
def rule_action(game: Any, view: Any, seat: Any, rng: Any) -> Any:
    """Return the action of the rule-based player for the seat to move; advances ``rng``."""
    raise _missing(game, "rule_action")


@_optional
def by_hand(game: Any, state: Any) -> Any:
    """Return whether this decision is about the seat's hand while its actions are the same in all.

    Bids and face-down discards are, plays are not: what may be played shows in the hand. A random
    player ruins such a decision, so playouts leave it to the rule player. And a search in which one
    node stands for all hands of another seat cannot make it, so in the mode ``by_hand`` it draws
    such an action from the policy for the sampled hand.
    """
    return False


@_optional
def style_action(game: Any, view: Any, seat: Any, style: Any, rng: Any) -> Any:
    """Return the action of a further rule-based player; advances ``rng``.

    ``style`` is its place in ``spec.styles``.
    """
    return rule_action(game, view, seat, rng)


# --- what search by sampled worlds asks -----------------------------------------------------------


@_optional
def static_value(game: Any, state: Any, side: Any) -> Any:
    """Return a guess of ``side``'s outcome in [-1, 1] where a search in ``state`` is cut."""
    return 0.0


@_optional
def rank_actions(game: Any, state: Any, actions: Any, count: Any, most: Any) -> Any:
    """Put the promising ones of ``actions[:count]`` first, in place; return how many to try.

    At most ``most`` of them, where a game can tell; all of them, in order of code, where not.
    """
    return count


@_optional
def extra_depth(game: Any, view: Any) -> Any:
    """Return by how many plies a search of fixed depth goes deeper in this position."""
    return 0


@_optional
def is_certain(game: Any, view: Any, seat: Any) -> Any:
    """Return whether only one state agrees with ``seat``'s view."""
    return False
