"""What signals ask for, and what the owner is told.

Behaviours checked:
* each wish once, a later one hurries more
* ``within`` stops and sets a limit; other lines set none; unknown lines are refused
"""

from __future__ import annotations

import math

import pytest

from deploy import control
from deploy.control import Control
from deploy.signals import Signals


def test_every_signal_adds_its_wish() -> None:
    signals = Signals()
    assert signals.wishes() == []
    signals.interrupts = 1
    assert signals.wishes() == [control.STOP]
    signals.interrupts = 3
    assert signals.wishes() == [control.STOP, control.NOW]
    signals.terminated = 1
    assert signals.wishes() == [control.STOP, control.NOW, control.WITHIN]


def test_within_stops_and_limits_the_time() -> None:
    owner = Control(-1)
    assert owner.left_s() == math.inf
    owner.take(control.STOP)
    assert owner.left_s() == math.inf
    owner = Control(-1)
    owner.take(f"{control.WITHIN} 12.5")
    assert owner.stopping.is_set()
    assert not owner.skip_drain.is_set()
    assert 0 < owner.left_s() <= 12.5


def test_unknown_line_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(ValueError, match="within S"):
        Control(-1).take("later")
