"""The story of an incident: what happened, in the order of time, who did it, and on which exchange that rests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.analysis.incidents.grouping import alone, trees_of
from pipeline.analysis.incidents.story import clock_of_line, lines_of, story_of
from pipeline.analysis.moments.model import MOST_OF_ONE, Moment, text_of
from pipeline.analysis.rules.model import Finding
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from tests.paths import CAPTURES

STORIES = {
    ("stuck_commit.pcap", "stuck_commit"): [
        ("04:46:08.921533", "billing-1 commits payments-2 at 24", "5490b4b89fa61490-56"),
        ("04:46:09.037977", "group billing begins generation 2, billing-2 owns payments-2", "7892e3c308b1ec0a-3"),
        ("04:46:09.335879", "billing-1 commits payments-2 at 24 (3 times in 23.5 s)", "5490b4b89fa61490-65"),
        (
            "04:46:09.734223",
            "billing-2 commits payments-2 at 28 to 115 (30 times in 21.0 s, about every 0.7 s)",
            "7892e3c308b1ec0a-5",
        ),
        (
            "04:46:10.144064",
            "billing-1 sets payments-2 back to offset 24 (27 times in 21.1 s, about every 0.8 s)",
            "5490b4b89fa61490-70",
        ),
    ],
    ("stalled_lso.pcap", "hanging_transaction"): [
        ("04:51:18.005291", "orders-batch starts as orders-tx-1", "40cbe63821453acf-1"),
        (
            "04:51:18.146892",
            "AddPartitionsManager-client-1 adds orders-0 to transaction orders-tx-1",
            "4dd4474779f93b09-4",
        ),
        ("04:51:18.149232", "orders-batch writes to orders-0 at offset 24", "40cbe63821453acf-3"),
        (
            "04:51:18.473872",
            "reports reads orders-0 at offset 24 (113 times in 37.7 s, about every 0.3 s; by then last "
            "stable offset 24, high watermark 176)",
            "47aba90ffdb28703-36",
        ),
        ("04:51:56.218287", "transaction orders-tx-1 has not ended, as far as was captured", None),
    ],
    ("incidents/evicted.pcap", "rebalance_storm"): [
        (
            "15:10:42.876209",
            "steady-1 joins group flapping (8 times in 4.0 s, about every 0.6 s)",
            "d67f0473acbba1ab-3",
        ),
        (
            "15:10:42.883421",
            "group flapping begins generation 1 to 7, 1 member seen (2 times in 3.5 s)",
            "d67f0473acbba1ab-5",
        ),
        (
            "15:10:43.321673",
            "flapping-1 joins group flapping (6 times in 3.6 s, about every 0.7 s)",
            "d56b2649c465a906-3",
        ),
        (
            "15:10:43.326948",
            "group flapping begins generation 2 to 6, 2 members seen (5 times in 2.5 s, about every 0.6 s)",
            "d56b2649c465a906-4",
        ),
        (
            "15:10:43.738491",
            "flapping-1 leaves group flapping (5 times in 2.5 s, about every 0.6 s)",
            "d56b2649c465a906-9",
        ),
    ],
    ("incidents/evicted.pcap", "poll_interval_exceeded"): [
        ("15:10:31.376753", "ledger-1 leaves group ledger", "cbca18f08257882b-13"),
        ("15:10:31.385326", "group ledger begins generation 2, 1 member seen", "f325e3cbe84ff6e5-4"),
        (
            "15:10:31.413494",
            "ledger-1 commits entries-0 at 30, refused: UNKNOWN_MEMBER_ID (6 times in 4.3 s, about every 0.9 s)",
            "cbca18f08257882b-14",
        ),
    ],
    ("mongodb/lost_streams.pcap", "change_stream_lost"): [
        (
            "05:32:57.738000",
            "invoices sends aggregate on shop.invoices, which fails: InvalidResumeToken (3 times in 4.0 s)",
            "ecde7acc8a0c3f0d-1",
        ),
    ],
    ("connections/nobody_listens.pcap.zst", "connection_failed"): [
        (
            "00:24:29.530639",
            "127.0.5.1 is refused a connection by 127.0.3.1:9093 (at least 20 times in 5.5 s)",
            "56ab2e908aa0c2c7",
        ),
    ],
}
"""Time, line, and exchange or connection, of an incident with findings of a rule."""


def story(capture: str, rule: str) -> list[tuple[str, str, str | None]]:
    found = diagnose(read_inputs([str(CAPTURES / capture)]), StreamSettings()).incidents.to_pylist()
    lines = next(lines_of(row) for row in found if rule in row["rules"])
    return [(str(line["ts"])[11:26], line["text"], line["exchange_id"] or line["connection_id"]) for line in lines]


@pytest.mark.parametrize(("capture", "rule"), STORIES)
def test_the_story_of_a_recording(capture: str, rule: str) -> None:
    assert story(capture, rule) == STORIES[capture, rule]


def finding(**values: Any) -> dict[str, Any]:
    made = Finding(
        rule="stopped", severity="warning", subject="g/t-0", state="ongoing", cluster="c", topic="t", partition=0,
        group_id="g", first_us=1_000_000, last_us=5_000_000, summary="Group g has stopped.", advice="Now: a. Fix: b.",
    )  # fmt: skip
    return {**made.row(), **values}


def lines(*rows: dict[str, Any]) -> list[tuple[str, str]]:
    (tree,) = trees_of(rows)
    return [(clock_of_line(line), line["text"]) for line in lines_of({"story": story_of(tree)})]


def test_without_moments_the_first_and_the_last_sign_are_the_story() -> None:
    expected = [
        ("00:00:01.00", "g/t-0 shows the first sign of stopped"),
        ("00:00:05.00", "g/t-0 shows the last sign of stopped"),
    ]
    assert lines(finding(moments=None)) == lines(finding(moments="[]")) == lines(finding(moments="{")) == expected


def test_what_began_before_the_capture_was_already_so() -> None:
    row = finding(details='{"already":true}', moments=text_of([Moment(7, "a", "commits"), Moment(8, "b", "commits")]))
    assert lines(row) == [
        ("00:00:00.00", "a commits (already so when the capture begins)"),
        ("00:00:00.00", "b commits"),
    ]


def test_a_row_of_an_older_release_has_no_lines() -> None:
    assert [lines_of(row) for row in ({}, {"story": None}, {"story": "{"}, {"story": "7"}, {"story": "[7]"})] == [
        []
    ] * 5


@given(st.text(), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1), st.text() | st.none())
def test_whatever_a_finding_holds_its_story_has_lines_in_order(
    subject: str, first_us: int, last_us: int, moments: str | None
) -> None:
    row = finding(subject=subject, first_us=first_us, last_us=last_us, moments=moments)
    found = lines_of({"story": story_of(alone(row))})
    assert 1 <= len(found) <= MOST_OF_ONE
    assert [line["ts"] for line in found] == sorted(line["ts"] for line in found)
