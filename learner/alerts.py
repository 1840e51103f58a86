"""What of the learner's figures somebody should look at, in words.

Room: learner. May import: learner (messages, config). No torch: whoever shows a run may ask.
"""

from __future__ import annotations

from learner.config import LearnerConfig
from learner.messages import LearnMetrics

MAX_SCALE = 3.0
"""Mean |prediction| over mean |target| on held-out games; 1 is right, 70 has been seen."""
MAX_ROOT_BIAS = 0.2
"""Mean of root value minus outcome in a phase, on the [-1, 1] scale: one game in ten misjudged."""


def alerts(metrics: LearnMetrics, config: LearnerConfig) -> list[str]:
    """Return the alerts of ``metrics``, most serious first; empty while all is well.

    Figures on fewer than ``trust_games`` held-out games say nothing yet and raise none.
    """
    found = []
    if metrics.leaves_by_playout:
        found.append(
            f"value head explains less than a constant (held-out R² "
            f"{metrics.held_out_outcome_r2:.2f}): leaves are valued by playouts"
        )
    if metrics.held_out_games >= config.trust_games:
        if metrics.held_out_scale > MAX_SCALE:  # False for NaN
            found.append(
                f"value head {metrics.held_out_scale:.1f} times too large on held-out games"
            )
        found += [
            f"root values of {phase} plies are {abs(bias):.2f} too {'high' if bias > 0 else 'low'}"
            for phase, bias in metrics.root_value_bias.items()
            if abs(bias) > MAX_ROOT_BIAS
        ]
    if metrics.policy_lag > config.max_lag:
        found.append(f"policy lag {metrics.policy_lag:.0f} versions")
    return found
