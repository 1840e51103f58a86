"""The program ``cardleague``: reads the command line and runs one command.

Room: deploy. Loads neither ray, torch, numba, scipy nor onnxruntime: ``cardleague --help`` has to
answer at once. Commands import what they need when they run.

Exit codes: 0 done, 1 a run or match that ended badly, or a server that does not answer, 2 a mistake
of the user (one line on stderr), 130 interrupted.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import tyro

from deploy.commands import NotThere, UserError
from deploy.commands.advise import advise
from deploy.commands.bench import bench
from deploy.commands.compare import compare
from deploy.commands.crossplay import crossplay
from deploy.commands.info import games, warmup
from deploy.commands.league import league
from deploy.commands.migrate import migrate
from deploy.commands.models import export, match
from deploy.commands.play import play
from deploy.commands.runs import resume, status, train
from deploy.presets import ConfigError

ROOMS = ("engine", "replay", "learner", "league", "actors", "deploy")
COMMANDS: dict[str, Callable[..., int]] = {
    "train": train,
    "resume": resume,
    "status": status,
    "migrate": migrate,
    "league": league,
    "match": match,
    "crossplay": crossplay,
    "play": play,
    "advise": advise,
    "compare": compare,
    "export": export,
    "games": games,
    "warmup": warmup,
    "bench": bench,
}
DESCRIPTION = "Actor-learner training for card games of hidden information."
PYTHON_PHRASES = {
    r"invalid literal for int\(\) with base 10: ('[^']*')": "a whole number",
    r"could not convert string to float: ('[^']*')": "a number",
}
"""What Python says of a word that is no number, and what is allowed instead."""
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def room_roots() -> dict[str, Path | None]:
    """Return the folder that each of the six packages would be imported from; imports none."""
    roots: dict[str, Path | None] = {}
    for room in ROOMS:
        found = importlib.util.find_spec(room)
        origin = found.origin if found is not None else None
        roots[room] = Path(origin).resolve().parent.parent if origin else None
    return roots


def check_one_root(roots: dict[str, Path | None]) -> None:
    """Raise UserError unless all packages come from one folder: their names are common words."""
    if len(set(roots.values())) == 1 and None not in roots.values():
        return
    places = ", ".join(f"{room} from {root or 'nowhere'}" for room, root in roots.items())
    raise UserError(
        f"the packages of cardleague come from different folders ({places}): another package of "
        "that name is in the way; use an environment of its own, and another working directory"
    )


def gather_settings(argv: Sequence[str]) -> list[str]:
    """Return ``argv`` with ``--set a=1 b=2`` written as ``--set a=1 --set b=2``."""
    result: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        result.append(word)
        if word != "--set":
            continue
        first = True
        while rest and not rest[0].startswith("-") and (first or "=" in rest[0]):
            result += [rest.pop(0)] if first else ["--set", rest.pop(0)]
            first = False
    return result


def parse(argv: Sequence[str]) -> Callable[[], int]:
    """Return the command as a call without arguments. Raises UserError; ``--help`` exits with 0."""
    chosen: list[Callable[[], int]] = []

    def deferred(command: Callable[..., int]) -> Callable[..., None]:
        import functools

        @functools.wraps(command)
        def note(*arguments: object, **options: object) -> None:
            chosen.append(lambda: command(*arguments, **options))

        return note

    messages = io.StringIO()
    try:
        with contextlib.redirect_stderr(messages):
            tyro.extras.subcommand_cli_from_dict(
                {name: deferred(command) for name, command in COMMANDS.items()},
                prog="cardleague",
                description=DESCRIPTION,
                args=gather_settings(argv),
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as error:
        if error.code in (0, None):
            raise
        raise UserError(one_line(messages.getvalue())) from None
    return chosen[0]


def one_line(box: str) -> str:
    """Return what a box of the parser says, without its frame, in one line.

    Rules divide the box: first the mistake, then options and commands that may have been meant.
    Where the locale knows ASCII alone there is no frame, and the title has a section of its own.
    """
    sections: list[list[str]] = [[]]
    for line in box.splitlines():
        text = line.strip("│ ")
        if text.startswith(("╭", "╰")):
            continue
        if text and not text.strip("─-"):
            sections.append([])
        elif text:
            sections[-1].append(text)
    if "╭" not in box and len(sections) > 1:
        del sections[0]
    message = " ".join(sections[0]) or " ".join(box.split())
    for section in sections[1:]:
        if section and section[0].startswith("Available"):
            message += "; available: " + " ".join(section).partition(": ")[2]
        elif section and section[0].startswith("Perhaps"):
            first = [text.split()[0] for text in section if text.startswith("--")]
            meant = [word for word in dict.fromkeys(first) if word not in message.split()]
            message += f"; did you mean {' or '.join(meant)}?" if meant else ""
    for phrase, allowed in PYTHON_PHRASES.items():
        message = re.sub(phrase, rf"\1: allowed is {allowed}", message)
    return f"{message} (see cardleague --help)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        check_one_root(room_roots())
        command = parse(sys.argv[1:] if argv is None else argv)
        return command()
    except (UserError, ConfigError) as error:
        sys.stderr.write(f"cardleague: {error}\n")
        return EXIT_USAGE
    except NotThere as error:
        sys.stderr.write(f"cardleague: {error}\n")
        return 1
    except BrokenPipeError:  # the reader of a pipe went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
