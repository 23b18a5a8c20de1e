"""Who was fenced off a transactional id: a deploy, two that fight for it, one that writes on, and a time-out."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.incidents.incidents import grouped
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.run import find_all
from pipeline.analysis.rules.settings import finding_settings
from pipeline.tables import EXCHANGES_WITH_BODIES
from tests.pipeline.analysis.sources import tables
from tests.pipeline.rows import T0, row

Row = dict[str, Any]
INIT, END, PRODUCE, METADATA = (22, "InitProducerId"), (26, "EndTxn"), (0, "Produce"), (3, "Metadata")
OLD, NEW = ("old", "10.0.0.1", "o"), ("new", "10.0.0.2", "n")
AGAIN = ("old", "10.0.0.1", "another connection")


def asked(n: float, api: tuple[int, str], by: tuple[str, str, str], code: int = 0) -> Row:
    ts, (client_id, host, connection) = T0 + timedelta(seconds=n), by
    return row(
        EXCHANGES_WITH_BODIES, api_key=api[0], api_name=api[1], api_version=9, client_id=client_id, client_ip=host,
        connection_id=connection, server_ip="b", server_port=1, ts=ts, request_ts=ts, latency_us=1000,
        response_ts=ts + timedelta(milliseconds=1), exchange_id=f"{connection}/{n:09.1f}",
        request_body=json.dumps({"transactionalId": "tx"} if api != METADATA else {}), response_body='{"errorCode": 0}',
        error_codes=[code] if code else [],
    )  # fmt: skip


def on(begin: int, end: int, by: tuple[str, str, str] = NEW) -> list[Row]:
    return [asked(n + 0.5, METADATA, by) for n in range(begin, end, 5)]


def judged(*rows: Row, max_evidence: int = 20) -> tuple[Finding, Row]:
    found = find_all(tables(exchanges=rows), ClusterCatalog(), finding_settings(max_evidence=max_evidence)).findings
    (one,) = (finding for finding in found if finding.rule == "fenced_producer")
    (incident,) = grouped([one.row()]).incidents
    return one, incident


DEPLOY = [asked(0, INIT, OLD), asked(99, INIT, NEW), asked(100, END, OLD, 90), *on(100, 400)]
TURNS = [asked(0, INIT, OLD), asked(20, INIT, NEW), asked(30, END, OLD, 90), asked(31, INIT, OLD)]
TURNS += [asked(40, END, NEW, 90), asked(41, INIT, NEW), asked(50, END, OLD, 90), *on(60, 100)]


@pytest.mark.parametrize(
    ("rows", "severity", "shared", "course"),
    [
        (DEPLOY, "info", True, "taken over"),
        ([asked(99, INIT, NEW), asked(100, END, OLD, 90), asked(100.2, PRODUCE, OLD, 47)], "info", True, "taken over"),
        ([*DEPLOY, asked(500, INIT, AGAIN)], "info", True, "taken over"),  # the deploy is taken back
        ([*DEPLOY, *on(100, 400, OLD)], "warning", True, "lingers"),
        ([*DEPLOY, asked(110, PRODUCE, OLD, 90)], "critical", True, "writes on"),
        (TURNS, "critical", True, "by turns"),
        ([asked(0, INIT, OLD), asked(99, INIT, AGAIN), asked(100, END, OLD, 90)], "info", True, "taken over"),
        ([asked(0, INIT, NEW), asked(20, INIT, OLD), asked(100, END, OLD, 47)], "critical", False, "aborted"),
        ([asked(0, INIT, OLD), asked(100, END, OLD, 47), asked(101, INIT, OLD)], "warning", False, "aborted"),
        ([asked(100, END, OLD, 47)], "critical", False, "aborted"),
        (
            [asked(0, INIT, OLD), asked(100, END, OLD, 47), asked(101, INIT, AGAIN), asked(900, END, AGAIN, 47)],
            "critical", False, "aborted",
        ),
    ],
)  # fmt: skip
def test_who_is_refused_once_and_gone_was_replaced(rows: list[Row], severity: str, shared: bool, course: str) -> None:
    one, _ = judged(*rows)
    assert (one.severity, one.details["shared"], one.details["course"]) == (severity, shared, course)


def test_who_took_the_id_is_named() -> None:
    one, incident = judged(*DEPLOY)
    assert one.details["taken_by"] == ["new at 10.0.0.2"]
    assert "new at 10.0.0.2 has taken the id over" in incident["headline"]
    assert incident["immediate_action"].endswith("the newer one does that work again.")
    _, incident = judged(*TURNS)
    assert incident["headline"].startswith("old at 10.0.0.1 and new at 10.0.0.2 take transactional id tx from each")


def test_nobody_is_told_to_end_who_has_no_rival() -> None:
    _, incident = judged(asked(0, INIT, OLD), asked(100, END, OLD, 47))
    assert "another uses the same id" not in incident["headline"]
    assert incident["headline"].startswith("The coordinator aborted transaction tx of old (10.0.0.1); no other")
    assert incident["immediate_action"].startswith("Restart old")
    assert "transaction.timeout.ms" in incident["remediation"]
    assert "who took the id" not in incident["reasoning"]


def test_it_is_over_once_the_id_was_taken_anew() -> None:
    one, _ = judged(asked(0, INIT, OLD), asked(100, END, OLD, 47), asked(101, INIT, OLD))
    assert (one.state, one.details["healed_us"]) == ("resolved", one.last_us + 1_000_000)


@pytest.mark.parametrize("max_evidence", [1, 20])
def test_how_much_is_shown_decides_nothing(max_evidence: int) -> None:
    often = [asked(100 + n / 10, PRODUCE, OLD, 90) for n in range(6000)]
    one, _ = judged(asked(0, INIT, OLD), asked(99, INIT, NEW), *often, max_evidence=max_evidence)
    assert (one.severity, one.state, one.details["course"]) == ("critical", "ongoing", "writes on")
    anew = [asked(2 * n, INIT, OLD) for n in range(40)]
    one, _ = judged(*anew, asked(99, INIT, NEW), asked(100, END, OLD, 90), max_evidence=max_evidence)
    assert (one.details["course"], one.details["taken_by"]) == ("taken over", ["new at 10.0.0.2"])
    assert "n/0000099.0" in one.evidence
    one, _ = judged(*TURNS, max_evidence=max_evidence)
    assert one.details["course"] == "by turns"
