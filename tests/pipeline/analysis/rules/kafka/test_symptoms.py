"""Symptoms of single exchanges, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.analysis.rules.kafka.symptoms import Exchange, symptoms

_SLOW_US = 1_000_000


def symptoms_of(api_key: int, version: int = 0, **more: Any) -> set[tuple[str, str]]:
    base: dict[str, Any] = {"api_name": "Api", "client_id": "c", "server": "b:1", "status": "paired", "service_us": 5}
    base |= {"request_status": "ok", "error_codes": (), "request": {}, "response": {}}
    exchange = Exchange(api_key=api_key, api_version=version, **base | more)
    return {(s.rule, s.subject) for s in symptoms(exchange, _SLOW_US)}


GROUP = {"groupId": "g"}
MEMBER = {"groupId": "g", "memberId": "m", "generationIdOrMemberEpoch": 3}
LATE = {"groupId": "g", "memberId": "", "generationIdOrMemberEpoch": 3}
OUTSIDE = {"groupId": "g", "memberId": "", "generationIdOrMemberEpoch": -1}


_FETCHED = {"sessionId": 0, "responses": [{"topic": "t", "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]}


@pytest.mark.parametrize(
    ("exchange", "expected"),
    [
        ((8, 2, {"error_codes": (22,), "request": MEMBER}), {("commit_rejected", "g/c"), ("zombie_member", "g/c")}),
        ((8, 2, {"error_codes": (25,), "request": LATE}), {("commit_rejected", "g/c"), ("zombie_member", "g/c")}),
        ((8, 2, {"error_codes": (25,), "request": OUTSIDE}), {("commit_rejected", "g/c")}),
        ((8, 2, {"error_codes": (14, 16), "request": GROUP}), set()),
        ((8, 2, {"error_codes": (27,), "request": GROUP}), {("commit_rejected", "g/c")}),
        ((12, 0, {"error_codes": (27,), "request": GROUP}), set()),
        ((12, 0, {"error_codes": (25,), "request": MEMBER}), {("zombie_member", "g/c")}),
        ((11, 5, {"request": GROUP, "response": {"errorCode": 79}}), set()),
        ((11, 5, {"request": GROUP, "response": {"errorCode": 0, "generationId": 3}}), {("rebalance_storm", "g")}),
        ((68, 1, {"request": {**GROUP, "memberEpoch": 0}, "response": {"errorCode": 0}}), {("rebalance_storm", "g")}),
        ((68, 1, {"request": {**GROUP, "memberEpoch": 7}, "response": {"errorCode": 0, "assignment": {}}}), set()),
        ((18, 3, {"status": "unanswered"}), {("unanswered_requests", "b:1/c")}),
        ((3, 9, {"status": "unanswered"}), set()),
        ((1, 11, {"status": "unanswered"}), set()),
        ((0, 2, {"status": "unanswered", "api_name": "Produce"}), {("unsupported_version", "c/Produce v2")}),
        ((18, 99, {"request_status": "unknown_version", "error_codes": (35,)}), set()),
        ((3, 12, {"error_codes": (35,), "api_name": "Metadata"}), {("unsupported_version", "c/Metadata v12")}),
        ((3, 9, {"service_us": 2_000_000}), {("latency_outlier", "b:1")}),
        ((1, 11, {"service_us": 2_000_000}), set()),
        ((1, 11, {"service_us": 2_000_000, "request": {"maxWaitMs": 500}}), {("latency_outlier", "b:1")}),
        ((1, 11, {"service_us": 2_000_000, "request": {"maxWaitMs": 1500}}), set()),
        ((3, 9, {"service_us": 2_000_000, "response": {"throttleTimeMs": 1500}}), {("throttled", "c")}),
        ((68, 1, {"service_us": 2_000_000}), set()),
        ((9, 7, {"service_us": 2_000_000, "request": {"requireStable": True}}), set()),
        ((9, 7, {"service_us": 2_000_000, "request": {"requireStable": False}}), {("latency_outlier", "b:1")}),
        ((17, 1, {"request": {"mechanism": "GSSAPI"}}), {("sasl_mechanism", "c")}),
        ((8, 2, {"response": {"throttleTimeMs": 0}}), set()),
        ((8, 2, {"response": {"throttleTimeMs": 9}}), {("throttled", "c")}),
        ((36, 2, {"error_codes": (58,)}), {("auth_failed", "b:1/c")}),
        ((30, 3, {"error_codes": (31,)}), {("auth_failed", "b:1/c")}),
        # A broker without an authorizer refuses no login, but it does refuse the request.
        ((30, 3, {"error_codes": (54,)}), {("request_refused", "c/Api/SECURITY_DISABLED")}),
        ((26, 3, {"error_codes": (90,), "request": {"transactionalId": "tx"}}), {("fenced_producer", "tx")}),
        ((22, 4, {"request": {"transactionalId": "tx"}, "response": {"errorCode": 0}}), {("introduced", "tx")}),
        ((1, 11, {"request": {"sessionEpoch": 0}, "response": {"sessionId": 0}}), set()),
        ((1, 11, {"request": {"sessionEpoch": 0}, "response": {"sessionId": 5}}), {("fetch_session_churn", "c")}),
        ((1, 11, {"request": {"sessionEpoch": 0}, "response": _FETCHED}), {("fetch_session_churn", "c")}),
        ((1, 11, {"request": {"sessionEpoch": -1}, "response": _FETCHED}), set()),  # wants none
        ((1, 11, {"request": {"sessionEpoch": 0}, "response": _FETCHED | {"errorCode": -1}}), set()),
        ((0, 3, {"request": {"acks": 0}, "status": "no_response_expected"}), {("acks0_producer", "c")}),
        ((3, 9, {"response": {"topics": [{"name": "t", "errorCode": 3}]}}), {("unknown_topic_loop", "t/c")}),
    ],
)
def test_symptoms(exchange: tuple[int, int, dict[str, Any]], expected: set[tuple[str, str]]) -> None:
    api_key, version, more = exchange
    assert symptoms_of(api_key, version, **more) == expected


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        (2, "crc_mismatch"), (45, "sequence_gap"), (6, "stale_metadata"), (74, "fenced_leader_epoch"),
        (10, "oversized_or_tiny_batches"),
    ],
)  # fmt: skip
def test_errors_of_a_partition_name_it(code: int, rule: str) -> None:
    part = {"name": "t", "partitionResponses": [{"index": 1, "errorCode": code}]}
    subject = "t/c" if rule == "oversized_or_tiny_batches" else "t-1/c"
    assert symptoms_of(0, 9, error_codes=(code,), response={"responses": [part]}) == {(rule, subject)}
