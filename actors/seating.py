"""Seats players for what is measured: versions of the run, the rule player, fixed opponents.

Room: actors. May import: engine, league.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from actors.config import SearchConfig
from actors.pairs import PairTable
from engine.game import Encoder, GameSpec
from engine.players import Player, RulePlayer
from engine.search.ismcts import SearchOptions, search_options
from league.anchor import anchor_hash
from league.duplicate import PairJob, PairResult
from league.evaluator import read_metadata
from league.messages import ANCHOR
from league.models import ModelError, ModelStore
from league.players import PlayContext, build_player, model_player, parse_player, resolve


class Seating:
    """The players of one run's measurements."""

    def __init__(
        self,
        spec: GameSpec,
        game: Any,
        encoder: Encoder,
        search: SearchConfig,
        models: ModelStore,
        run_id: str,
    ) -> None:
        """Versions of ``run_id`` come from ``models`` and search as ``search`` says."""
        self.spec, self.game = spec, game
        self._encoder, self._models, self._run_id = encoder, models, run_id
        self._search = msgspec.structs.asdict(search)
        self._options = search_options(**self._search)

    def basis(self, simulations: int) -> str:
        """Return what rating games at ``simulations`` a move have in common, in words."""
        words = ", ".join(f"{name} {value}" for name, value in self._search.items())
        return f"rules {anchor_hash(self.spec, self.game)}, {simulations} simulations, {words}"

    def has(self, versions: set[int]) -> bool:
        """Return whether the store holds all of ``versions``. Raises ModelsUnreachable."""
        return versions <= set(self._models.versions())

    def version(
        self, version: int, simulations: int, batch: int, *, infers: bool = False
    ) -> Player:
        """Return the player of a version. Raises ModelError: missing, damaged or foreign.

        ``infers``: it weighs worlds by past plays, as in matches; gate and ratings compare versions
        at less cost without.
        """
        model = self._models.get(version)
        metadata = read_metadata(model)
        if (metadata.run_id, metadata.version) != (self._run_id, version):
            raise ModelError(
                f"model {version} of run {self._run_id!r} says that it is version "
                f"{metadata.version} of run {metadata.run_id!r}"
            )
        if metadata.encoder != self._encoder.name:
            raise ModelError(
                f"model {version} has encoder {metadata.encoder}, not {self._encoder.name}"
            )
        context = self._context(self._options, batch)
        return model_player(model, simulations, context._replace(infers=infers))

    def rated(self, player: int, simulations: int, batch: int) -> Player:
        """Return a version, or the rule player for ANCHOR. Raises ModelError."""
        if player == ANCHOR:
            return RulePlayer(self.spec, self.game)
        return self.version(player, simulations, batch)

    def opponent(self, text: str, batch: int) -> Player:
        """Return a fixed opponent; its search has the default options, whatever the run's are.

        Raises PlayerError or ModelError.
        """
        return build_player(resolve(parse_player(text)), self._context(SearchOptions(), batch))

    def _context(self, options: SearchOptions, batch: int) -> PlayContext:
        return PlayContext(self.spec, self.game, options, batch=batch)

    def table(
        self,
        players: Sequence[Player],
        games: int,
        issue: Callable[[int], list[PairJob]],
        report: Callable[[PairResult], None],
    ) -> PairTable:
        """Return a table at which ``players`` play up to ``games`` games at once."""
        return PairTable(self.spec, self.game, players, games=games, issue=issue, report=report)
