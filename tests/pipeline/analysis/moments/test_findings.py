"""Moments of findings over rows made by hand: what is read of each, and how much at most."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pipeline.analysis.moments.findings import with_moments
from pipeline.analysis.moments.wanted import MOST_FINDINGS
from pipeline.analysis.rules.model import Finding
from pipeline.tables import OFFSET_EVENTS
from tests.pipeline.analysis.sources import tables
from tests.pipeline.rows import T0, row

US = int(T0.timestamp()) * 1_000_000


def commit(n: int, who: str, offset: int | None, **more: Any) -> dict[str, Any]:
    what = {"kind": "committed", "topic": "t", "partition": 0, "group_id": "g", "cluster": "C", "ordinal": 0}
    by = {"client_id": who, "client": f"10.0.0.{len(who)}:9"}
    when = {"ts": T0 + timedelta(seconds=n), "exchange_id": f"e{n:04}"}
    return row(OFFSET_EVENTS, **what | by | when | {"offset": offset} | more)


def finding(number: int = 0, **values: Any) -> Finding:
    made: dict[str, Any] = {
        "rule": "stuck_commit", "severity": "critical", "subject": f"s{number:05}", "state": "ongoing", "cluster": "C",
        "topic": "t", "partition": 0, "group_id": "g", "first_us": US, "last_us": US + 60_000_000, "summary": "",
        "advice": "", "evidence": ["e0001"],
    }  # fmt: skip
    return Finding(**made | values)


def texts(one: Finding) -> list[str]:
    return [moment.text for moment in one.moments]


def test_commits_of_the_partition_are_read_beside_the_evidence() -> None:
    rows = [commit(1, "a", 5), commit(2, "b", 9), commit(3, "a", 5), commit(4, "a", None), commit(90, "a", 99)]
    (found,) = with_moments([finding()], tables(events=rows), 20)
    assert texts(found) == [
        "a commits t-0 at 5",
        "b commits t-0 at 9",
        "a sets t-0 back to offset 5",
        "a commits t-0",
    ]


def test_clients_of_one_name_on_several_hosts_are_named_with_them() -> None:
    rows = [commit(1, "a", 5, client="10.0.0.1:9"), commit(2, "a", 6, client="[::1]:9")]
    (found,) = with_moments([finding()], tables(events=rows), 20)
    assert [moment.actor for moment in found.moments] == ["a (10.0.0.1)", "a ([::1])"]


def test_of_too_many_findings_only_the_evidence_of_the_others_is_read() -> None:
    rows = [commit(1, "a", 5), commit(2, "b", 9)]
    found = with_moments([finding(n) for n in range(MOST_FINDINGS + 1)], tables(events=rows), 20)
    assert [len(one.moments) for one in found] == [2] * MOST_FINDINGS + [1]


def test_of_exchanges_that_were_not_all_read_the_count_is_the_least() -> None:
    rows = [commit(n, "a", 5) for n in range(9)]
    evidence = [f"e{n:04}" for n in range(9)]
    some = [finding(n, evidence=evidence[:1], partition=1) for n in range(MOST_FINDINGS)]
    *_, found = with_moments([*some, finding(MOST_FINDINGS, evidence=evidence)], tables(events=rows), 20)
    assert texts(found) == ["a commits t-0 at 5 (several times in 8.0 s)"]


def test_evidence_that_nothing_has_gives_no_moments() -> None:
    assert [one.moments for one in with_moments([finding(evidence=["gone"], partition=None)], tables(), 20)] == [()]
    assert with_moments([], tables(), 20) == []
