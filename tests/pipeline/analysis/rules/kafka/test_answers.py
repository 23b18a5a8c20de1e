"""Answers that come late or never, made by hand: a broker in trouble, and what only looks like it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from decoder.model import FrameFlags
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.run import find_all
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import EXCHANGES_WITH_BODIES, GAPS
from tests.pipeline.analysis.sources import tables
from tests.pipeline.rows import T0, row

SETTINGS = finding_settings()
SECOND = 1_000_000
AFTER_GAP = int(FrameFlags.AFTER_GAP)
KEYS = {
    "Produce": 0, "Fetch": 1, "Metadata": 3, "OffsetCommit": 8, "OffsetFetch": 9, "JoinGroup": 11, "Heartbeat": 12,
    "OffsetForLeaderEpoch": 23, "InitProducerId": 22, "CreateTopics": 19, "EndTxn": 26,
}  # fmt: skip
Row = dict[str, Any]


def asked(at: float, api: str, latency_s: float | None, connection: str = "c", **more: Any) -> Row:
    """An exchange; without a latency it has no answer."""
    ts = T0 + timedelta(seconds=at)
    latency_us = None if latency_s is None else round(latency_s * SECOND)
    answer = {} if latency_us is None else {"response_ts": ts + timedelta(microseconds=latency_us)}
    values = {
        "api_name": api, "api_key": KEYS[api], "api_version": 11 if api == "Fetch" else 7, "client_id": "app",
        "client_ip": "10.0.0.1", "client_port": 5, "server_port": 9092, "connection_id": connection, "ts": ts,
        "request_ts": ts, "latency_us": latency_us, "status": "unanswered" if latency_us is None else "paired",
        "exchange_id": f"{connection}/{at:09.3f}/{api}", "request_body": "{}", "response_body": "{}", **answer,
    }  # fmt: skip
    return row(EXCHANGES_WITH_BODIES, **{**values, **more})


def usual(api: str, times: int = 40, latency_s: float = 0.002, **more: Any) -> list[Row]:
    return [asked(-600 + n, api, latency_s, "usual", **more) for n in range(times)]


def slow(api: str, times: int = 4, latency_s: float = 3.0, **more: Any) -> list[Row]:
    return [asked(n, api, latency_s, **{"connection": "usual", **more}) for n in range(times)]


def to(topic: str) -> str:
    """The body of a Produce that waits for replicas."""
    return json.dumps({"acks": -1, "timeoutMs": 30000, "topicData": [{"name": topic, "partitionData": [{"index": 0}]}]})


WAITS = {"request_body": '{"maxWaitMs":5000}'}
THROTTLED = [asked(9 * n, "Produce", 0.01, response_body='{"throttleTimeMs":8000}') for n in range(4)]
LATE: dict[str, tuple[list[Row], str | None]] = {
    "hangs": ([*usual("Heartbeat"), *slow("Heartbeat")], "warning"),
    "hangs once": ([*usual("Heartbeat"), *slow("Heartbeat", 2)], None),
    "is always slow": (slow("Heartbeat", 90), None),
    "is asked for the first time": (slow("Metadata"), None),
    "is asked seldom": ([*usual("Metadata", 9), *slow("Metadata")], None),
    "is slow for another api": ([*usual("Heartbeat"), *slow("Metadata")], None),
    "is slow a little": ([*usual("Metadata", latency_s=0.5), *slow("Metadata")], None),
    "has just started": (
        [*usual("Metadata"), *(one for n in range(4) for one in slow("Metadata", 1, connection=f"new {n}"))],
        None,
    ),
    "answers behind a long poll": ([*usual("Heartbeat"), *slow("Heartbeat", service_us=900)], None),
    "answers behind a long poll, and is slow": (
        [*usual("Heartbeat"), *slow("Heartbeat", latency_s=5.0, service_us=3 * SECOND)],
        "warning",
    ),
    "answers behind what was not seen": ([*usual("Heartbeat"), *slow("Heartbeat", response_flags=AFTER_GAP)], None),
    "always answers behind long polls": (
        [*usual("Heartbeat", latency_s=5.0, service_us=2_000), *slow("Heartbeat")],
        "warning",
    ),
    "waits for members": ([*usual("JoinGroup"), *slow("JoinGroup")], None),
    "waits for a transaction": ([*usual("InitProducerId"), *slow("InitProducerId"), *slow("EndTxn")], None),
    "waits for what is stable": (
        [*usual("OffsetFetch"), *slow("OffsetFetch", request_body='{"requireStable":true}')],
        None,
    ),
    "is asked while leaders change": ([*usual("OffsetForLeaderEpoch"), *slow("OffsetForLeaderEpoch")], None),
    "makes topics": ([*usual("CreateTopics"), *slow("CreateTopics", latency_s=20)], None),
    "polls for long": ([*usual("Fetch", **WAITS), *slow("Fetch", latency_s=5.1, **WAITS)], None),
    "polls for much longer than that": ([*usual("Fetch", **WAITS), *slow("Fetch", latency_s=9, **WAITS)], "warning"),
    "polls, and nobody knows for how long": ([*usual("Fetch"), *slow("Fetch", latency_s=9)], None),
    "waits for replicas": ([*usual("Produce"), *slow("Produce")], "info"),
    "waits for replicas too long": ([*usual("Produce"), *slow("Produce", latency_s=40)], "warning"),
    "waits for replicas as long as it was told": (
        [*usual("Produce"), *slow("Produce", latency_s=20, request_body='{"acks":-1,"timeoutMs":30000}')],
        "info",
    ),
    "waits for replicas longer than it was told": (
        [*usual("Produce"), *slow("Produce", latency_s=7, request_body='{"acks":-1,"timeoutMs":5000}')],
        "warning",
    ),
    "waits for nobody": ([*usual("Produce"), *slow("Produce", request_body='{"acks":1,"timeoutMs":30000}')], "warning"),
    "waits for replicas of several topics": (
        [*usual("Produce"), *(one for t in "ab" for one in slow("Produce", 3, request_body=to(t), client_port=ord(t)))],
        "warning",
    ),
    "waits for replicas of several topics at one moment": (
        [*usual("Produce"), *(asked(n / 1000, "Produce", 3, "usual", request_body=to(f"t{n}")) for n in range(4))],
        "info",
    ),
    "waits for replicas in several apis": (
        [*usual("Produce"), *usual("OffsetCommit"), *slow("Produce"), *slow("OffsetCommit")],
        "warning",
    ),
    "waits for replicas, and is slow once": (
        [*usual("Produce"), *usual("Metadata"), *slow("Produce", 2, 10.0), *slow("Metadata", 1, 1.05)],
        "info",
    ),
    "pauses once": ([*usual("Heartbeat"), *(asked(n / 1000, "Heartbeat", 1.2, "usual") for n in range(9))], "info"),
    "pauses for long": ([*usual("Heartbeat"), *(asked(n, "Heartbeat", 9.0 - n, "usual") for n in range(8))], "warning"),
    "pauses three times": (
        [*usual("Heartbeat"), *(asked(n % 3 * 9, "Heartbeat", 1.2, "usual", client_port=n) for n in range(9))],
        "warning",
    ),
    "holds back": (
        [*usual("Heartbeat"), *THROTTLED, *(asked(9 * n + 0.02, "Heartbeat", 7.9, "usual") for n in range(4))],
        None,
    ),
    "holds another back": (
        [
            *usual("Heartbeat"), *THROTTLED,
            *(asked(9 * n + 0.02, "Heartbeat", 7.9, "usual", client_ip="10.0.0.2") for n in range(4)),
        ],
        "warning",
    ),
}  # fmt: skip


def lost(times: Sequence[float], api: str = "Produce", connection: str = "c", **more: Any) -> list[Row]:
    return [asked(at, api, None, connection, **more) for at in times]


OTHERS = [asked(n / 2, "Heartbeat", 0.001, "other", client_id="other", client_ip="10.0.0.2") for n in range(120)]
NEVER: dict[str, tuple[list[Row], str | None]] = {
    "sends on and hears nothing": ([*lost([0, 1, 2]), *OTHERS], "critical"),
    "was killed": ([*lost([0, 0.1, 0.2]), *OTHERS], None),
    "makes a connection for each try": (
        [*(one for n in range(3) for one in lost([9 * n], connection=f"c{n}")), *OTHERS],
        "critical",
    ),
    "was killed on many hosts": (
        [
            *(one for n in range(5) for one in lost([9 * n], connection=f"c{n}", client_ip=f"10.0.1.{n}")),
            *OTHERS,
        ],
        None,
    ),
    "many of a host, and twice a broker that went away": (
        [*(one for n in range(10) for one in lost([60 * (n % 2)], connection=f"c{n}")), *OTHERS],
        None,
    ),
    "went away behind a long poll": (
        [*lost([0], "Fetch"), *lost([0.1, 1, 2], "OffsetCommit"), *OTHERS],
        None,
    ),
    "asks in the background": ([*lost([0, 1, 2], "Metadata"), *OTHERS], None),
    "restarts": (lost([0, 1, 2]), "info"),
    "answers nobody for long": (lost([0, 5, 10, 15]), "critical"),
    "was not captured": ([*lost([0, 1, 2], connection="lossy"), *OTHERS], None),
}


def judged(plays: Sequence[Sequence[Row]]) -> list[dict[str, Finding]]:
    """Of each play the findings by rule; each plays at a broker of its own."""
    rows = [
        one | {"server_ip": f"10.0.9.{number}", "exchange_id": f"{number}/{one['exchange_id']}"}
        for number, some in enumerate(plays)
        for one in some
    ]
    findings = find_all(
        tables(exchanges=rows, gaps=[row(GAPS, connection_id="lossy")]), ClusterCatalog(), SETTINGS
    ).findings
    return [{f.rule: f for f in findings if f.cluster == f"10.0.9.{n}:9092"} for n in range(len(plays))]


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Finding]]:
    """By play the findings by rule."""
    plays = {**LATE, **NEVER}
    return dict(zip(plays, judged([rows for rows, _ in plays.values()]), strict=True))


Found = dict[str, dict[str, Finding]]


def severity_of(found: Found, name: str, rule: str) -> str | None:
    return found[name][rule].severity if rule in found[name] else None


@pytest.mark.parametrize("name", LATE)
def test_an_answer_is_late_against_what_is_usual(found: Found, name: str) -> None:
    assert severity_of(found, name, "latency_outlier") == LATE[name][1]


@pytest.mark.parametrize("name", NEVER)
def test_an_answer_is_missed_by_who_waits_for_it(found: Found, name: str) -> None:
    assert severity_of(found, name, "unanswered_requests") == NEVER[name][1]


def test_the_words_say_how_long_and_whether_others_were_answered(found: Found) -> None:
    summary = found["sends on and hears nothing"]["unanswered_requests"].summary
    assert "left 3 requests of app at 10.0.0.1 without an answer (Produce)" in summary
    assert "waited up to 2 s; 5 that others sent meanwhile were answered." in summary


def test_only_what_is_unusual_is_named() -> None:
    rows = [*usual("Heartbeat"), *slow("Heartbeat"), *usual("Metadata", latency_s=0.9), *slow("Metadata", latency_s=1)]
    (one,) = judged([rows])
    assert (
        "took up to 3.0 s to answer Heartbeat (4 times, usually below 2 ms), among 8 slow answers"
        in one["latency_outlier"].summary
    )


def test_an_answer_is_told_beside_those_of_its_own_api(found: dict[str, dict[str, Finding]]) -> None:
    one = found["waits for replicas, and is slow once"]["latency_outlier"]
    assert "up to 10.0 s to answer Produce (2 times, usually below 2 ms)" in one.summary
    assert "up to 1.1 s to answer Metadata (once, usually below 2 ms)" in one.summary
    apis = one.details["apis"]
    assert isinstance(apis, dict)
    assert apis["Metadata"] == {"times": 1, "peak_us": 1_050_000, "usual_us": 2000}
    assert "It was one pause" in found["pauses once"]["latency_outlier"].summary


def test_what_was_slow_before_is_dated_though_it_is_over_since() -> None:
    later = [asked(3000 + n, "Heartbeat", 0.002, "usual") for n in range(60)]
    one_slow = [asked(2000 + n, "Metadata", 1.5, "usual") for n in range(4)]  # of which nothing is known
    (play,) = judged([[*usual("Heartbeat"), *slow("Heartbeat"), *one_slow, *later]])
    assert play["latency_outlier"].details["times"] == 4


def test_what_waits_for_replicas_is_not_laid_to_a_follower_alone(found: Found) -> None:
    one = found["waits for replicas"]["latency_outlier"]
    assert one.summary.endswith(" a follower was late, or the leader's own disk slow.")
    several = found["waits for replicas of several topics"]["latency_outlier"]
    assert "was slow, of 2 topics: a follower was late, or" in several.summary
    assert several.topic is None
    assert "of 2 apis" in found["waits for replicas in several apis"]["latency_outlier"].summary


def test_a_broker_that_is_slow_again_is_told_by_its_last_time() -> None:
    again = [asked(3000 + n, "Heartbeat", 4.0, "usual") for n in range(5)]
    (play,) = judged([[*usual("Heartbeat"), *slow("Heartbeat"), *again]])
    one = play["latency_outlier"]
    assert (one.details["times"], one.details["recurrences"]) == (5, 1)
