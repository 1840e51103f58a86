"""Alerts of the learner's figures: scale, bias by phase, playouts in place of the head, lag.

* Each is raised beyond its bound and by nothing else; what is not known raises none.
* Held-out figures on too few games raise none.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from learner.alerts import MAX_ROOT_BIAS, MAX_SCALE, alerts
from learner.config import LearnerConfig
from learner.messages import LearnMetrics

CONFIG = LearnerConfig(trust_games=100, max_lag=50)
BIAS = {"early": 0.0, "middle": -MAX_ROOT_BIAS, "late": MAX_ROOT_BIAS}


def metrics(**figures: Any) -> LearnMetrics:
    sound: dict[str, Any] = {"held_out_games": 100, "held_out_scale": MAX_SCALE, "policy_lag": 50.0}
    return LearnMetrics(**(sound | {"root_value_bias": BIAS} | figures))


def test_figures_at_their_bounds_and_unknown_ones_raise_nothing() -> None:
    assert alerts(metrics(), CONFIG) == []
    assert alerts(LearnMetrics(), CONFIG) == []


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"held_out_scale": 70.0}, "70.0 times too large"),
        ({"root_value_bias": {"late": 0.31}}, "late plies are 0.31 too high"),
        ({"root_value_bias": {"early": -0.21}}, "early plies are 0.21 too low"),
        ({"leaves_by_playout": True, "held_out_outcome_r2": -0.27}, "R² -0.27.*by playouts"),
        ({"policy_lag": 51.0}, "policy lag 51 versions"),
    ],
)
def test_each_figure_beyond_its_bound_raises_its_own_alert(
    figures: dict[str, Any], words: str
) -> None:
    (alert,) = alerts(metrics(**figures), CONFIG)
    assert re.search(words, alert)


def test_too_few_held_out_games_raise_nothing() -> None:
    early = metrics(held_out_games=99, held_out_scale=70.0, root_value_bias={"late": 2.0})
    assert alerts(early, CONFIG) == []
