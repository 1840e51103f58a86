"""Readable games, one for each game and preset, as golden text files beside this module.

``python -m tests.playthroughs.generate`` writes them anew, for review of what a change changed. A
change of the checksums alone means that an encoder gives other numbers: its version has to rise.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

from engine import rules
from engine.game import GameSpec, game_names, get_spec
from engine.rng import below, make_rng
from engine.rules import CHANCE, TERMINAL

FOLDER = Path(__file__).resolve().parent
SEED = 2
SEEDS = {"leduc": 8}
"""Other seeds for games in which the first shows too little."""
FULL_PLIES = 45
"""Plies that are shown with view and legal actions; later ones with the action alone."""


def path_of(spec: GameSpec, preset: str) -> Path:
    """Return the golden file of a game and preset."""
    return FOLDER / f"{spec.name}.{preset}.txt"


def seed_of(spec: GameSpec) -> int:
    """Return the seed of the game's deal and moves."""
    return SEEDS.get(spec.name, SEED)


def all_presets() -> list[tuple[str, str]]:
    """Return every (game, preset)."""
    return [(name, preset) for name in game_names() for preset in get_spec(name).presets]


class _Writer:
    """Plays one game and writes it down."""

    def __init__(self, spec: GameSpec, preset: str) -> None:
        self.spec = spec
        self.game = spec.make(preset)
        self.state, self.view = spec.new_states(2)
        self.actions = np.zeros(spec.max_actions, np.int64)
        options = " ".join(f"{k}={v}" for k, v in spec.describe(self.game).items())
        self.lines = [
            f"game {spec.name} {preset}",
            f"options {options}",
            f"seed {seed_of(spec)}",
            "",
        ]

    def checksums(self, seat: int, count: int) -> str:
        """Return a checksum of the observation and of the candidates for each encoder."""
        words = []
        for encoder in self.spec.encoders:
            seen = np.zeros(encoder.observation_size, np.float32)
            rules.observe(self.game, self.view, seat, encoder.code, seen)
            described = np.zeros((self.spec.max_actions, encoder.action_size), np.float32)
            rules.describe_actions(
                self.game, self.view, encoder.code, self.actions, count, described
            )
            words.append(
                f"{encoder.name} {encoder.version}"
                f" {zlib.crc32(seen.tobytes()):08x} {zlib.crc32(described[:count].tobytes()):08x}"
            )
        return ", ".join(words)

    def ply(self, number: int, seat: int, rng: Any) -> None:
        """Write down the position of ``seat`` and one random legal action, and play it."""
        rules.view(self.game, self.state, seat, self.view)
        count = int(rules.legal_actions(self.game, self.view, self.actions))
        action = int(self.actions[below(rng, count)])
        text = self.spec.format_action(self.game, self.view, action)
        if number < FULL_PLIES:
            self.lines += self.spec.format_view(self.game, self.view, seat).splitlines()
            legal = (
                self.spec.format_action(self.game, self.view, int(code))
                for code in self.actions[:count]
            )
            self.lines.append("legal " + "; ".join(legal))
            self.lines.append("features " + self.checksums(seat, count))
        self.lines.append(f"> ply {number} seat {seat}: {text}")
        if number < FULL_PLIES:
            self.lines.append("")
        rules.apply(self.game, self.state, action)

    def end(self) -> None:
        """Write down the outcome."""
        sides = int(rules.num_sides(self.game))
        outcome = np.zeros(sides)
        rules.returns(self.game, self.state, outcome)
        self.lines.append("returns " + " ".join(f"{value:g}" for value in outcome))
        for title, names, function in (
            ("rewards", self.spec.reward_terms, rules.reward_terms),
            ("statistics", self.spec.statistics, rules.statistics),
        ):
            table = np.zeros((sides, len(names)))
            function(self.game, self.state, table)
            for side in range(sides):
                words = (f"{n} {v:g}" for n, v in zip(names, table[side], strict=True))
                self.lines.append(f"{title} of side {side}: " + ", ".join(words))


def playthrough(spec: GameSpec, preset: str) -> str:
    """Return one random game as text."""
    writer = _Writer(spec, preset)
    rng = make_rng(seed_of(spec))
    rules.deal(writer.game, writer.state, np.uint64(seed_of(spec)))
    number = 0
    while (seat := int(rules.current_seat(writer.game, writer.state))) != TERMINAL:
        if seat == CHANCE:
            writer.lines.append("> deal")
            rules.deal_next(writer.game, writer.state)
            continue
        writer.ply(number, seat, rng)
        number += 1
    writer.end()
    return "\n".join(writer.lines) + "\n"


def main() -> None:
    """Write all golden files."""
    for name, preset in all_presets():
        spec = get_spec(name)
        path_of(spec, preset).write_text(playthrough(spec, preset))


if __name__ == "__main__":
    main()
