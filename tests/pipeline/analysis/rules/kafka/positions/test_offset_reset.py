"""Rule ``offset_reset``: positions that are gone, and what looks like it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipeline.analysis.rules.kafka.positions.offset_reset import OffsetReset
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.settings import finding_settings
from tests.pipeline.analysis.rules.kafka.group_rows import Row, at, known
from tests.pipeline.analysis.sources import sources


def gone(seconds: float, offset: int | None, **more: object) -> Row:
    values: dict[str, object] = {"error_name": "OFFSET_OUT_OF_RANGE", "event_offset": offset}
    return known("fetch_rejected", seconds, **(values | more))


def goes_on(seconds: float, offset: int, start: int, end: int, **more: object) -> Row:
    return known("fetched", seconds, event_offset=offset, log_start_offset=start, high_watermark=end, **more)


def found(rows: Sequence[Row]) -> list[Finding]:
    return OffsetReset.detect(sources(timeline=rows), finding_settings())


@pytest.mark.parametrize(
    ("rows", "severity", "lost", "skipped", "again"),
    [
        ([gone(0, 10), goes_on(1, 60, 60, 100)], "critical", 50, 0, 0),
        ([gone(0, 10), goes_on(1, 100, 60, 100)], "critical", 50, 40, 0),
        ([gone(0, 500), goes_on(1, 0, 0, 100)], "warning", 0, 0, 100),
        # An incremental session names no offset: what the client had fetched up to counts.
        ([gone(0, None, fetch_position=10), goes_on(1, 60, 60, 100)], "critical", 50, 0, 0),
        ([known("fetched_commit", 0), goes_on(1, 100, 20, 100)], "info", 0, 80, 0),
        ([known("fetched_commit", 0, committed_offset=70), goes_on(1, 100, 20, 100)], "critical", 0, 30, 0),
        ([known("fetched_commit", 0, committed_offset=70), goes_on(1, 20, 20, 100)], "warning", 0, 0, 50),
    ],
)
def test_it_counts_what_is_lost_skipped_and_read_again(
    rows: list[Row], severity: str, lost: int, skipped: int, again: int
) -> None:
    (finding,) = found(rows)
    counted = tuple(finding.details[name] for name in ("lost", "skipped", "read_again"))
    assert (finding.severity, *counted) == (severity, lost, skipped, again)


@pytest.mark.parametrize(
    "rows",
    [
        [known("fetched_commit", 0), goes_on(1, 0, 0, 100)],  # begins at the beginning
        [known("fetched_commit", 0), goes_on(1, 40, 0, 100)],  # was told where
        [known("fetched_commit", 0), goes_on(1, 0, 0, 0)],  # an empty topic
        [known("fetched_commit", 0)],  # a tool asks
        [known("fetched_commit", 0), goes_on(1, 100, 20, 100, client_id="b")],  # somebody else reads
        [gone(0, 10)],  # did not continue within the capture
        [gone(0, 10), goes_on(1, 10, 10, 100)],  # the broker was not ready; nothing was skipped
        [gone(0, 10, error_name="NOT_LEADER_OR_FOLLOWER"), goes_on(1, 60, 0, 100)],
        [known("fetched_commit", 0, event_offset=10, committed_offset=10), goes_on(1, 60, 0, 100)],  # seeks
    ],
)
def test_what_is_in_order(rows: list[Row]) -> None:
    assert found(rows) == []


def test_a_log_that_got_shorter_is_told_from_retention() -> None:
    written = known("produced", -5, group_id="", event_offset=270, event_next_offset=277, client_id="w")
    (finding,) = found([written, gone(0, 277), goes_on(1, 0, 0, 223)])
    assert "the log now ends at 223: it reached 277 before, so that 54 records or more are gone" in finding.summary
    assert (finding.details["cause"], finding.details["gone"]) == ("log shorter", 54)
    assert "nothing is lost" not in finding.advice
    assert "retention" not in finding.advice
    assert "from offset 223 on are lost" in finding.advice
    assert "unclean.leader.election.enable=false" in finding.advice


@pytest.mark.parametrize("written", [[], [known("produced", -5, group_id="", event_next_offset=90, client_id="w")]])
def test_a_position_that_was_never_seen_in_the_log_loses_nothing_for_sure(written: list[Row]) -> None:
    (finding,) = found([*written, gone(0, 277), goes_on(1, 0, 0, 100)])
    assert "was at offset 277 of t-0, which no longer exists (the log ends at 100)" in finding.summary
    assert (finding.details["cause"], "gone" in finding.details) == ("beyond the end", False)
    assert finding.advice.startswith("Now: find out why the position is beyond the end of the log")
    assert "nothing is lost" not in finding.advice
    assert "retention" not in finding.advice


def test_what_is_written_after_the_reset_shortens_no_log() -> None:
    later = known("produced", 5, group_id="", event_offset=300, event_next_offset=310, client_id="w")
    (finding,) = found([gone(0, 277), goes_on(1, 0, 0, 100), later])
    assert finding.details["cause"] == "beyond the end"


def test_a_topic_made_anew_has_a_rule_of_its_own() -> None:
    rows = [gone(0, 10), goes_on(1, 0, 0, 5)]
    anew = replace(sources(timeline=rows), made_anew={("C", "t"): [int(at(-1).timestamp() * 1_000_000)]})
    assert OffsetReset.detect(anew, finding_settings()) == []


def test_it_is_over_once_the_group_has_committed_there() -> None:
    rows = [gone(0, 10), goes_on(1, 60, 60, 100)]
    assert [finding.state for finding in found(rows)] == ["ongoing"]
    (over,) = found([*rows, known("committed", 5, event_offset=70)])
    assert over.state == "resolved"


def test_partitions_of_one_topic_are_one_finding() -> None:
    rows = [row for n in range(4) for row in (gone(0, 10, partition=n), goes_on(1, 60, 60, 100, partition=n))]
    (finding,) = found(rows)
    assert (finding.subject, finding.partition, finding.details["lost"]) == ("g/t", None, 200)
    assert "t-0, t-1, t-2 and 1 more partition" in finding.summary


_SET = "kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets --group g --topic"


@pytest.mark.parametrize(
    ("rows", "now"),
    [
        (
            [gone(0, 10), goes_on(1, 60, 60, 100)],
            "Now: records that retention deleted can be restored from their source only",
        ),
        (
            [gone(0, 10), goes_on(1, 100, 60, 100)],
            f"`{_SET} t:0 --to-earliest --execute`); records that retention deleted",
        ),
        ([gone(0, 70), goes_on(1, 100, 60, 100)], f"`{_SET} t:0 --to-offset 70 --execute`)."),
        ([gone(0, 500), goes_on(1, 0, 0, 100)], "Now: find out why the position is beyond the end of the log"),
        (
            [known("fetched_commit", 0, committed_offset=70), goes_on(1, 20, 20, 100)],
            f"Now: the group reads these records again by itself.*`{_SET} t:0 --to-offset OFFSET --execute`",
        ),
        (
            [known("fetched_commit", 0), goes_on(1, 100, 20, 100)],
            f"set it back (`{_SET} t:0 --to-earliest --execute`).",
        ),
        (
            [row for n in (0, 1) for row in (gone(0, 70 + n, partition=n), goes_on(1, 100, 60, 100, partition=n))],
            f"`{_SET} t:PARTITION --to-offset OFFSET --execute` for each at its offset: 0: 70, 1: 71).",
        ),
    ],
)
def test_what_to_do_follows_from_what_became_of_the_records(rows: list[Row], now: str) -> None:
    (finding,) = found(rows)
    for part in now.split(".*"):
        assert part in finding.advice
    assert ("if the skipped records are needed" in finding.advice) == bool(finding.details["skipped"])
