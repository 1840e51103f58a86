"""Each proof holds on sound records and fails on a planted fault.

Behaviours checked:
* a missing entry, a repeat, other content, a gap, a mark that is not reached
* what a learner read after the snapshot that its successor restored is no part of the line; a
  snapshot that nobody made is an error
* wrong sums, a late or missing delivery
* a promotion counted twice, announced and not in the manifest, in it and never announced; a
  champion that falls
* a total below the last manifest's
* a torn last line of a log is left out
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from learner.messages import IngestedTotals
from tests.chaos.proofs import (
    Disturbance,
    Line,
    LineError,
    Promotions,
    Sample,
    final_line,
    missing,
    prove_accepted,
    prove_deliveries,
    prove_exactly_once,
    prove_nothing_left,
    prove_promotions,
    prove_sums,
    prove_totals_never_fall,
)
from tests.chaos.records import (
    Accepted,
    Champion,
    Ingested,
    LearnerRecord,
    Log,
    OwnerRecord,
    Restored,
    Said,
    Snapshot,
    read_log,
)


def entry(sequence: int, producer: str = "a", digest: str = "") -> Ingested:
    return Ingested(producer, sequence, digest or f"{producer}{sequence}")


def accepted(sequence: int, producer: str = "a", digest: str = "") -> Accepted:
    return Accepted(producer, sequence, digest or f"{producer}{sequence}", 1.0)


LINE = Line([entry(1), entry(1, "b"), entry(2), entry(3), entry(2, "b")], {"a": 3, "b": 2})


# --- the line -------------------------------------------------------------------------------------


def records() -> dict[int, list[LearnerRecord]]:
    """Two learners: the second one goes on from the first one's first snapshot."""
    return {
        1: [
            Restored(""),
            entry(1),
            Snapshot("one", {"a": 1}),
            entry(2),
            Snapshot("refused", {"a": 2}),
            entry(3),
        ],
        5: [Restored("one"), Snapshot("one", {"a": 1}), entry(2), Snapshot("two", {"a": 2})],
    }


def test_line_leaves_out_what_was_read_after_the_restored_snapshot() -> None:
    line = final_line(records(), "two")
    assert line == Line([entry(1), entry(2)], {"a": 2})
    assert prove_exactly_once(line).holds


def test_snapshot_that_was_made_again_unchanged_is_the_first_one() -> None:
    assert final_line(records(), "one") == Line([entry(1)], {"a": 1})
    assert final_line(records(), "") == Line([], {})


def test_snapshot_that_nobody_made_is_an_error() -> None:
    with pytest.raises(LineError, match="three"):
        final_line(records(), "three")
    headless = {1: records()[1][1:]}
    with pytest.raises(LineError, match="where it began"):
        final_line(headless, "one")


# --- accepted and ingested ------------------------------------------------------------------------


def test_each_entry_once_up_to_the_mark() -> None:
    assert prove_exactly_once(LINE).holds
    repeated = Line([*LINE.entries, entry(2)], LINE.marks)
    assert prove_exactly_once(repeated).faults == ["a: 2 was ingested again"]
    gap = Line([entry(1), entry(4)], {"a": 4})
    assert prove_exactly_once(gap).faults == ["a: gap from 2 to 3"]
    short = Line([entry(1)], {"a": 2})
    assert prove_exactly_once(short).faults == ["a: ingested up to 1, its mark is 2"]
    unmarked = Line([entry(1), entry(1, "b")], {"a": 1})
    assert prove_exactly_once(unmarked).faults == ["b: ingested up to 1, its mark is 0"]


def test_accepted_is_ingested() -> None:
    sound = [accepted(1), accepted(2), accepted(2, "b")]
    assert prove_accepted(sound, LINE).holds
    assert missing([*sound, accepted(4)], LINE) == [accepted(4)]
    lost = prove_accepted([*sound, accepted(4)], LINE)
    assert lost.faults == ["a: 4 was accepted and never ingested"]
    other = prove_accepted([accepted(1, digest="x")], LINE)
    assert other.faults == ["a: 1 was ingested with other content"]
    assert prove_accepted([accepted(1), accepted(1)], LINE).faults == ["a: 1 was accepted twice"]


TOTALS = IngestedTotals(
    entries=5, games=4, window_games=2, evicted_games=1, held_out_games=1, rejected={"other run": 1}
)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"entries": 6}, "6 entries are counted, 5 were ingested"),
        ({"rejected": {}}, "5 entries, but 4 games and 0 rejected"),
        ({"evicted_games": 0}, "5 entries, but 3 games and 1 rejected"),
        ({"games": 5}, "5 games are counted, 4 have a place"),
        ({"lost_entries": 2}, "2 accepted entries count as lost"),
    ],
)
def test_sums(change: dict[str, object], fault: str) -> None:
    assert prove_sums(TOTALS, LINE).holds
    assert fault in prove_sums(msgspec.structs.replace(TOTALS, **change), LINE).faults


# --- deliveries -----------------------------------------------------------------------------------


def test_deliveries() -> None:
    disturbances = [Disturbance("round 1", 10.0, (0, 1)), Disturbance("round 2", 40.0, (1,))]
    times = {0: [9.0, 20.0], 1: [5.0, 10.0, 30.0, 99.0]}
    assert prove_deliveries(disturbances, times, 60.0).holds
    late = prove_deliveries(disturbances, times, 30.0)
    assert late.faults == ["worker 1 took 59.0 s after round 2"]
    nothing = prove_deliveries(disturbances, {0: [9.0], 1: times[1]}, 60.0)
    assert nothing.faults == ["worker 0 delivered nothing after round 1"]


# --- promotions -----------------------------------------------------------------------------------

WORDS: list[OwnerRecord] = [
    Champion(0, 1.0),
    Said("version 2 promoted after 3 pairs (2 of 2 decided won)", 2.0),
    Champion(2, 3.0),
    Said("version 3 rejected after 3 pairs (0 of 2 decided won)", 4.0),
    Champion(2, 5.0),
    Said("version 4 promoted after 3 pairs (2 of 2 decided won)", 6.0),
]
SOUND = Promotions(frozenset({0, 2, 4}), 4, 2)


@pytest.mark.parametrize(
    ("words", "manifest", "fault"),
    [
        ([*WORDS, WORDS[1]], SOUND, "version 2 was promoted 2 times"),
        ([*WORDS, Champion(5, 7.0)], SOUND, "version 5 was announced as champion"),
        ([*WORDS, Champion(0, 7.0)], SOUND, "champion 0 was announced after 2"),
        (WORDS[:-1], SOUND, "version 4 was champion by the manifest and never announced"),
        (WORDS, Promotions(SOUND.versions, 4, 3), "3 promotions are counted, 3 champions"),
        (WORDS, Promotions(SOUND.versions, 2, 2), "champion 2 is not the last one promoted"),
    ],
)
def test_promotions(words: list[OwnerRecord], manifest: Promotions, fault: str) -> None:
    assert prove_promotions(WORDS, SOUND).holds
    (found,) = prove_promotions(words, manifest).faults
    assert found.startswith(fault)


# --- totals ---------------------------------------------------------------------------------------


def test_totals_never_fall() -> None:
    samples = [
        Sample("manifest", 1.0, {"games": 10, "steps": 3}),
        Sample("status", 2.0, {"games": 15}),
        Sample("status", 2.5, {"games": 12}),  # a learner goes on from the manifest's snapshot
        Sample("manifest", 3.0, {"games": 20, "steps": 3}),
        Sample("status", 4.0, {"games": 20}),
    ]
    assert prove_totals_never_fall(samples[::-1]).holds
    below = prove_totals_never_fall([*samples, Sample("status", 5.0, {"games": 19})])
    assert len(below.faults) == 1
    assert "games 19" in below.faults[0]
    fallen = prove_totals_never_fall([*samples, Sample("manifest", 5.0, {"steps": 2})])
    assert len(fallen.faults) == 1
    assert "steps 2" in fallen.faults[0]


def test_what_is_left_is_named() -> None:
    assert prove_nothing_left([]).holds
    assert "valkey 17" in str(prove_nothing_left(["valkey 17"]))


def test_shown_proof_says_what_fails() -> None:
    assert str(prove_exactly_once(LINE)).startswith("holds")
    many = prove_accepted([accepted(number) for number in range(10, 20)], LINE)
    assert str(many).startswith("FAILS")
    assert "and 5 more" in str(many)


def test_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "accepted-0-1.jsonl"
    log = Log(path)
    log.write(accepted(1), accepted(2))
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    assert read_log(path, Accepted) == [accepted(1)]
    assert read_log(tmp_path / "none.jsonl", Accepted) == []
