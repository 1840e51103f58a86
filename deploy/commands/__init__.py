"""The commands of ``cardleague``, one module per group.

Room: deploy. A module imports lightly at its top; what is heavy (ray, torch, numba, scipy,
onnxruntime) is imported inside the command that needs it. A command returns its exit code and
raises UserError (or ConfigError of deploy.presets) for what its user can put right.
"""

from __future__ import annotations

from typing import Any

from tyro.conf import arg


class UserError(ValueError):
    """A mistake of the user: printed as one line that names the value and what is allowed."""


class NotThere(Exception):
    """A server or cluster that does not answer now and may later: one line, and no mistake."""


def option(metavar: str) -> Any:
    """Return the markings of an option that may be left out."""
    return arg(metavar=metavar, help_behavior_hint="")
