"""Findings that are alike are one table, in the place of the first of them."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("streamlit")
from pipeline.dashboard.queries.overview.incidents import IncidentFinding
from pipeline.dashboard.web.parts.finding_list import alike, table_rows
from tests.pipeline.dashboard.conftest import at


def found(rule: str, subject: str, depth: int = 0, because: str = "", details: str = "{}") -> IncidentFinding:
    finding: dict[str, Any] = {
        "rule": rule, "subject": subject, "cluster": "k", "summary": "s", "first_ts": at(0), "last_ts": at(1),
        "evidence": ["a", "b"], "details": details,
    }  # fmt: skip
    return IncidentFinding(finding, depth, because)


def test_those_of_one_rule_and_cause_come_together_in_the_order_of_the_first() -> None:
    rows = [
        found("old", "a"), found("lag", "x", 1, "why"), found("old", "b"), found("lag", "y", 1, "other"),
        found("old", "c"),
    ]  # fmt: skip
    assert [[one.finding["subject"] for one in some] for some in alike(rows)] == [["a", "b", "c"], ["x"], ["y"]]


def test_a_row_has_library_and_versions_as_far_as_known() -> None:
    rows = [
        found("old", "a", details='{"apis":["Fetch v2","Produce v2"]}'),
        found("old", "b", details='{"library":"librdkafka","magics":[0,1]}'),
        found("old", "c", details="no json"),
    ]
    shown = table_rows(rows, {("k", "a"): ["lib 1.0", "lib 1.1"]})
    assert [(row["subject"], row["library"], row["versions"], row["exchanges"]) for row in shown] == [
        ("a", "lib 1.0, lib 1.1", "Fetch v2, Produce v2", 2), ("b", "librdkafka", "v0, v1", 2), ("c", "", "", 2),
    ]  # fmt: skip
