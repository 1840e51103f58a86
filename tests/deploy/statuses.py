"""A RunStatus with something in every field, for the tests of screens and metrics."""

from __future__ import annotations

from typing import Any

import msgspec

from deploy.status import RunStatus, WorkerStatus
from league.messages import EvaluationRecord, GateOutcome, GateStatus, RatedVersion
from learner.messages import IngestedTotals, LearnMetrics


def outcome(candidate: int, word: str) -> GateOutcome:
    """Return how a gate against version 3 ended."""
    return GateOutcome(
        candidate=candidate,
        champion=3,
        outcome=word,
        num_pairs=190,
        num_decided=90,
        wins=60,
        llr=3.25,
        score=0.5789,
    )


def evaluation(version: int = 9, **changes: Any) -> EvaluationRecord:
    """Return an evaluation of the champion's policy, with ``changes``."""
    record = EvaluationRecord(
        kind="scheduled",
        version=version,
        is_champion=True,
        opponent="rules",
        simulations=0,
        games=100,
        wins=68,
        draws=1,
        losses=31,
        win_rate=0.685,
        win_rate_low=0.61,
        win_rate_high=0.75,
        own={"score": 35.5, "caidas": 4.5, "return": 3.25, "plies": 91.0},
        other={"score": 28.5, "caidas": 3.5, "return": -3.25, "plies": 91.0},
        generated_games=2100,
        examples=75_000,
        step=450,
        elapsed_s=171.0,
        seed=17,
        time="2026-01-02T03:04:05+00:00",
    )
    return msgspec.structs.replace(record, **changes)


def running_status() -> RunStatus:
    """Return a run in full swing: two workers, the learner, the gate."""
    workers = [
        WorkerStatus(
            role="selfplay",
            node="here",
            slot=slot,
            plies_per_s=2210.3,
            simulations_per_s=61234.0,
            evaluate_share=0.41,
            outbox=12 + slot,
            model_version=13,
            resident_bytes=312_000_000,
        )
        for slot in range(2)
    ]
    workers.append(WorkerStatus(role="learner", node="here", device="cpu", restarts=1))
    workers.append(WorkerStatus(role="gate", node="here", alive=False, model_version=12))
    return RunStatus(
        run="runs/demo",
        run_id="abc",
        game="cuarenta",
        rules="report_a_4p",
        state="running",
        message="version 9 promoted",
        started_at=1000.0,
        updated_at=1192.0,
        elapsed_s=252.0,
        limit_s=600.0,
        totals=IngestedTotals(
            entries=5130,
            rejected={"run": 2, "schema": 5},
            games=5123,
            plies=612345,
            simulations=18123456,
            full_searches=183703,
            examples=183210,
            held_out_games=512,
            window_games=4000,
            evicted_games=611,
        ),
        metrics=LearnMetrics(
            policy_loss=0.912,
            value_loss=0.513,
            held_out_policy_loss=0.931,
            held_out_value_loss=0.554,
            value_r2=0.487,
            held_out_value_r2=0.446,
            held_out_outcome_r2=0.215,
            entropy=0.719,
            policy_lag=1.3,
            held_out_scale=0.93,
            gradient_norm=0.4,
            reward_shares={"win": 0.2, "captured": 0.8},
        ),
        games_per_s=36.2,
        plies_per_s=4321.0,
        simulations_per_s=121_000.0,
        examples_per_s=1290.0,
        updates_per_s=3.7,
        step=655,
        window_positions=183_210,
        window_capacity=600_000,
        newest=13,
        champion=9,
        pool=(0, 3, 9),
        gate=GateStatus(candidate=12, champion=9, num_pairs=180, num_decided=96, wins=58, llr=1.43),
        outcomes=[outcome(5, "rejected"), outcome(9, "promoted")],
        num_promoted=2,
        num_rejected=1,
        gate_games=640,
        rating_games=96,
        evaluation_games=200,
        evaluations=[evaluation(), evaluation(13, is_champion=False, win_rate=0.72)],
        ratings=[RatedVersion(version=9, rating=131.0, low=80.0, high=182.0, num_pairs=48)],
        workers=workers,
        worker_restarts=1,
        resident_bytes=2_100_000_000,
        metrics_url="http://127.0.0.1:9100/metrics",
    )
