"""Players without a model: random, the game's own rules and levels, and the classical searches.

Room: league. May import: engine, league.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.players import Player, RandomPlayer, RulePlayer, SearchPlayer
from engine.search.flat import FlatPlayer
from engine.search.pimc import PimcOptions, PimcPlayer
from engine.search.rollout import RolloutEvaluator
from engine.search.select import BY_HAND, BY_TREE
from league.player_kinds import (
    PlayContext,
    PlayerError,
    PlayerKind,
    PlayerSpec,
    ResolvedPlayer,
    build_player,
    parse_player,
    parse_simulations,
    register_kind,
    split_text,
)

MAX_WORLDS, MAX_DEPTH = 100_000, 50
"""What a player that searches sampled worlds may be given."""


def _parse_plain(name: str) -> Callable[[str], PlayerSpec | None]:
    def parse(text: str) -> PlayerSpec | None:
        head, number = split_text(text)
        if head != name:
            return None
        if number is not None:
            raise PlayerError(f"player {text!r}: {name} takes no number")
        return PlayerSpec(text=text, kind=name)

    return parse


def _parse_rules(text: str) -> PlayerSpec | None:
    head, name = split_text(text)
    if head != "rules":
        return None
    if name is not None and not name.isidentifier():
        raise PlayerError(
            f"player {text!r}: rules takes no number; allowed are rules and, in games that have "
            "more of them, rules:NAME"
        )
    return PlayerSpec(text=text, kind="rules", style=name or "")


def _build_rules(player: ResolvedPlayer, context: PlayContext) -> Player:
    styles = context.spec.styles
    if player.spec.style and player.spec.style not in styles:
        allowed = ", ".join(["rules", *(f"rules:{style}" for style in styles)])
        raise PlayerError(
            f"player {player.spec.text!r}: rule-based players of {context.spec.name} are {allowed}"
        )
    return RulePlayer(context.spec, context.game, player.spec.style)


def _parse_ismcts(text: str) -> PlayerSpec | None:
    head, number = split_text(text)
    if head != "ismcts":
        return None
    simulations = parse_simulations(text, number, 1, "ismcts:2000")
    return PlayerSpec(text=text, kind="ismcts", simulations=simulations)


def _build_ismcts(player: ResolvedPlayer, context: PlayContext) -> Player:
    spec, game = context.spec, context.game
    options = context.options
    if options.partner_mode == BY_TREE:
        options = options._replace(partner_mode=BY_HAND)
    if options.opponent_mode == BY_TREE:
        options = options._replace(opponent_mode=BY_HAND)
    return SearchPlayer(
        spec,
        game,
        spec.encoders[0],
        RolloutEvaluator(spec, game),
        simulations=player.spec.simulations,
        options=options,
        batch=context.batch,
    )


def _parse_pimc(text: str) -> PlayerSpec | None:
    head, number = split_text(text)
    if head != "pimc":
        return None
    words = (number or "").split("x")
    sizes = [int(word) for word in words if word.isascii() and word.isdecimal()]
    if (
        len(words) != 2
        or len(sizes) != 2
        or not (1 <= sizes[0] <= MAX_WORLDS and 1 <= sizes[1] <= MAX_DEPTH)
    ):
        raise PlayerError(
            f"player {text!r}: allowed are pimc:WORLDSxDEPTH with 1 to {MAX_WORLDS} worlds and a "
            f"depth of 1 to {MAX_DEPTH}, for example pimc:25x4"
        )
    return PlayerSpec(text=text, kind="pimc", worlds=sizes[0], depth=sizes[1])


def _build_pimc(player: ResolvedPlayer, context: PlayContext) -> Player:
    options = PimcOptions(worlds=player.spec.worlds, depth=player.spec.depth)
    return PimcPlayer(context.spec, context.game, options)


def _parse_rollouts(text: str) -> PlayerSpec | None:
    head, number = split_text(text)
    if head != "rollouts":
        return None
    worlds = int(number) if number and number.isascii() and number.isdecimal() else 0
    if not 1 <= worlds <= MAX_WORLDS:
        raise PlayerError(
            f"player {text!r}: allowed are rollouts:WORLDS with 1 to {MAX_WORLDS} worlds, for "
            "example rollouts:50"
        )
    return PlayerSpec(text=text, kind="rollouts", worlds=worlds)


def _build_rollouts(player: ResolvedPlayer, context: PlayContext) -> Player:
    return FlatPlayer(context.spec, context.game, player.spec.worlds)


def _parse_level(text: str) -> PlayerSpec | None:
    head, number = split_text(text)
    if head != "level":
        return None
    if number is None or not (number.isascii() and number.isdecimal()) or int(number) < 1:
        raise PlayerError(f"player {text!r}: no level; allowed are numbers from 1, as level:2")
    return PlayerSpec(text=text, kind="level", level=int(number))


def _build_level(player: ResolvedPlayer, context: PlayContext) -> Player:
    levels = context.spec.levels
    if player.spec.level > len(levels):
        allowed = f"level:1 to level:{len(levels)}" if levels else "none"
        raise PlayerError(
            f"player {player.spec.text!r}: levels of {context.spec.name} are {allowed}"
        )
    text = levels[player.spec.level - 1]
    return build_player(ResolvedPlayer(parse_player(text), None, None), context)


register_kind(
    PlayerKind(
        "random",
        "random",
        _parse_plain("random"),
        lambda player, context: RandomPlayer(context.spec, context.game),
    )
)
register_kind(PlayerKind("rules", "rules", _parse_rules, _build_rules))
register_kind(PlayerKind("ismcts", "ismcts:SIMULATIONS", _parse_ismcts, _build_ismcts))
register_kind(PlayerKind("pimc", "pimc:WORLDSxDEPTH", _parse_pimc, _build_pimc))
register_kind(PlayerKind("rollouts", "rollouts:WORLDS", _parse_rollouts, _build_rollouts))
register_kind(PlayerKind("level", "level:NUMBER", _parse_level, _build_level))
