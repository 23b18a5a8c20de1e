"""Every rule on every recorded incident: it fires where it must and nowhere else, beside what Burrow would report."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as Printed

from pipeline.analysis.derive import derive, findings_of
from pipeline.analysis.fit import fit
from pipeline.analysis.rules.kafka.progress.burrow import BurrowState
from pipeline.analysis.rules.kafka.progress.evaluate import judge
from pipeline.analysis.rules.kafka.progress.lagging import burrow_partition, group_points, points_of
from pipeline.analysis.rules.kafka.progress.track import Point
from pipeline.analysis.rules.rule import all_rules
from pipeline.analysis.rules.settings import finding_settings
from pipeline.analysis.tables import Tables
from pipeline.capture.runs.reading import read_capture
from pipeline.config.settings import StreamSettings
from pipeline.dashboard.sql import query
from pipeline.streaming.job import run_stream
from pipeline.tables import EXCHANGES, FINDINGS, FRAMES, GAPS, INCIDENTS, OFFSET_TIMELINE, Table
from tests.pipeline.analysis.rules.advice import is_of_its_rule
from tests.pipeline.analysis.rules.incidents import Recording, recordings
from tests.pipeline.lakes import DATA

pytestmark = pytest.mark.spark

RECORDED = recordings()
RULES = [rule.name for rule in all_rules()]
_BURROW_BAD = (BurrowState.WARN, BurrowState.STOP, BurrowState.STALL, BurrowState.REWIND)
_STEP_US = 1_000_000


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All recordings, landed one by one and streamed at once."""
    folder = tmp_path_factory.mktemp("incidents")
    for recording in RECORDED:
        read_capture([recording.pcap], folder / "landing")
    run_stream(folder / "landing", folder / "lake", once=True, spark=spark)
    return folder / "lake"


@pytest.fixture(scope="module")
def findings(lake: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = query(
        lake, f"SELECT *, epoch_us(first_ts) AS us FROM {FINDINGS.full_name}"
    ).to_pylist()
    return rows


def of(recording: Recording, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    start, end = recording.span_us
    return [row for row in rows if start <= row["us"] <= end]


def test_every_rule_fires_on_its_incidents_and_nothing_else_fires(findings: list[dict[str, Any]]) -> None:
    fired = {r.name: {(row["rule"], row["subject"]) for row in of(r, findings)} for r in RECORDED}
    _print_rules(fired)
    missed = {(r.name, *pair) for r in RECORDED for pair in r.expected - fired[r.name]}
    surplus = {(r.name, *pair) for r in RECORDED for pair in fired[r.name] - r.expected}
    assert (missed, surplus) == (set(), set())
    assert sum(len(of(r, findings)) for r in RECORDED) == len(findings)
    assert {rule for r in RECORDED for rule, _ in r.expected} == set(RULES)


def _print_rules(fired: dict[str, set[tuple[str, str]]]) -> None:
    """Each rule on each recording: subjects found of subjects expected, and how many were not expected."""
    table = Printed("rule", *(r.name for r in RECORDED))
    for rule in RULES:
        cells = []
        for recording in RECORDED:
            wanted = {subject for name, subject in recording.expected if name == rule}
            found = {subject for name, subject in fired[recording.name] if name == rule}
            extra = f" +{len(found - wanted)} false" if found - wanted else ""
            cells.append(f"{len(found & wanted)}/{len(wanted)} fired{extra}" if wanted or found else "-")
        table.add_row(rule, *cells)
    Console(width=260).print(table)


def test_every_finding_has_words_evidence_and_a_state(lake: Path, findings: list[dict[str, Any]]) -> None:
    known = {r["exchange_id"] for r in query(lake, f"SELECT exchange_id FROM {EXCHANGES.full_name}").to_pylist()}
    for row in findings:
        about = (row["rule"], row["subject"])
        assert row["state"] in ("ongoing", "resolved", "unknown"), about
        assert row["evidence"] or json.loads(row["details"])["connections"], about
        assert set(row["evidence"]) <= known, about
        assert row["summary"].endswith("."), about
        assert "None" not in row["summary"], about
        assert is_of_its_rule(row["rule"], row["advice"]), about
        assert row["first_ts"] <= row["last_ts"], about


def test_one_process_derives_the_same_tables_and_findings(lake: Path, findings: list[dict[str, Any]]) -> None:
    """Spark and :mod:`pipeline.analysis` are each other's oracle, table by table."""
    derived = derive(_held(lake, FRAMES), _held(lake, GAPS), StreamSettings())
    for table in (table for table in DATA if table.full_name in derived.tables):
        ours, theirs = (sorted(rows.to_pylist(), key=repr) for rows in (derived.of(table), _held(lake, table)))
        assert ours == theirs, table.full_name
    judged_later = {table.full_name for table in (FINDINGS, INCIDENTS)}
    assert {table.full_name for table in DATA} - set(derived.tables) == judged_later
    judged = findings_of(derived, finding_settings()).findings
    assert {(f.finding_id, f.state, f.summary) for f in judged} == {
        (row["finding_id"], row["state"], row["summary"]) for row in findings
    }


def _held(lake: Path, table: Table) -> pa.Table:
    return fit(DeltaTable(str(lake / table.path)).to_pyarrow_table(), table)


def test_what_goes_on_is_open_and_what_is_over_is_closed(findings: list[dict[str, Any]]) -> None:
    state = {(row["rule"], row["subject"]): row["state"] for row in findings}
    assert state["stopped", "stopped/clicks"] == "ongoing"
    assert state["lag_growing", "slow/clicks-0"] == "ongoing"
    # Another recording of this cluster is later, and nobody in it fetches orders-0.
    assert state["lso_stalled", "orders-0"] == "unknown"
    assert state["mongo_cursor_leak", "reports/127.0.0.1"] == "ongoing"
    assert state["rewound", "rewound/clicks-0"] == "resolved"
    assert state["zombie_member", "ledger/ledger-1"] == "resolved"
    assert state["unknown_topic_loop", "artcles/typo"] == "resolved"


Places = dict[tuple[str, str], dict[int, list[Point]]]


@pytest.fixture(scope="module")
def places(lake: Path) -> Places:
    """Points by group, topic and partition, as the rules about progress get them."""
    rows: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    timeline = DeltaTable(str(lake / OFFSET_TIMELINE.path)).to_pyarrow_table()
    for row in group_points(Tables({"timeline": timeline})):
        rows[row.group_id, row.topic].append(row)
    return {place: points_of(some) for place, some in rows.items()}


TROUBLES = {
    "lag grows": ("lagging", "slow", "clicks", "lag_growing"),
    "member hangs": ("lagging", "stopped", "clicks", "stopped"),
    "partitions paused": ("lagging", "stalled", "clicks", "stalled"),
    "partition left out": ("lagging", "dropped", "clicks", "partition_dropped_from_commits"),
    "late commits": ("lagging", "regressed", "clicks", "commit_regressed"),
    "set back": ("lagging", "rewound", "clicks", "rewound"),
    "stale worker": ("stuck_commit", "billing", "payments", "stuck_commit"),
    "open transaction": ("stalled_lso", "reports", "orders", "lso_stalled"),
}
"""Recording, group, topic, and the rule that names the incident."""


def test_time_to_detect_and_false_alarms_beside_burrow(places: Places, findings: list[dict[str, Any]]) -> None:
    """Both see the same traffic and are asked once a second; Burrow knows the ends of logs of its last poll."""
    table = Printed("incident", "ours", "after s", "Burrow", "after s")
    logs = {r.name: r for r in RECORDED}
    for name, (recording, group, topic, rule) in TROUBLES.items():
        began = _began(logs[recording], group)
        ours = _ours(places[group, topic], rule, findings, began)
        state, burrows = _burrow(places[group, topic], began)
        table.add_row(name, rule, _seconds(ours), state, _seconds(burrows))
        assert ours is not None, name
    Console(width=120).print(table)
    healthy = {"archive", "warehouse", "audit", "mirror", "live-view", "counters", "steady", "viewer"}
    alarms = {place: _burrow(points, 0) for place, points in places.items() if place[0] in healthy}
    ours_false = [row for row in findings if row["group_id"] in healthy]
    loud = sorted(f"{group}/{topic} {state}" for (group, topic), (state, us) in alarms.items() if us is not None)
    print(f"false alarms on {len(alarms)} healthy groups: ours {len(ours_false)}, Burrow {len(loud)} {loud}")
    assert ours_false == []


def _began(recording: Recording, group: str) -> int:
    """When the incident began: what the client logged, or the start of the capture's trouble as the scenario has it."""
    events = recording.log["events"]
    marks = [e["ts_ms"] for e in events if e["kind"] == "incident" and e["client_id"] == f"{group}-1"]
    marks += [e["ts_ms"] for e in events if e["kind"] == "txn_open"]
    marks += [e["ts_ms"] for e in events if e["kind"] == "assigned" and e["client_id"] == "billing-2"]
    return int(marks[0]) * 1000


def _ours(points: dict[int, list[Point]], rule: str, findings: list[dict[str, Any]], began: int) -> int | None:
    """µs until we know: for rules about progress by asking once a second, for the others as the finding states."""
    end = max(p.ts_us for some in points.values() for p in some)
    for now in range(began, end + _STEP_US, _STEP_US):
        seen = {partition: [p for p in some if p.ts_us <= now] for partition, some in points.items()}
        if any(t.rule == rule and t.last_us >= began for t in judge(seen, finding_settings())):
            return now - began
    enough_us = [
        json.loads(row["details"])["enough_us"]
        for row in findings
        if row["rule"] == rule and row["us"] >= began - _STEP_US
    ]
    return min(enough_us) - began if enough_us else None


def _burrow(points: dict[int, list[Point]], began: int) -> tuple[str, int | None]:
    """Burrow's first state that is an alarm, and µs until then."""
    times = [p.ts_us for some in points.values() for p in some]
    start = began or min(times)
    known = [burrow_partition(some, min(times)) for some in points.values()]
    for now in range(start, max(times) + _STEP_US, _STEP_US):
        state = max(one.state(now) for one in known)
        if state in _BURROW_BAD:
            return state.name, now - start
    return "OK", None


def _seconds(us: int | None) -> str:
    return "never" if us is None else f"{us / 1_000_000:.0f}"
