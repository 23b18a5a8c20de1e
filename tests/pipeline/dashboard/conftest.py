"""A small lake made by hand with delta-rs: what the views must answer can be read off its rows."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.analysis.fit import table_of
from pipeline.analysis.incidents.incidents import grouped, incidents_table
from pipeline.analysis.rules.run import finding_rows
from pipeline.tables import (
    ASSIGNMENTS,
    CLIENTS,
    CONNECTIONS,
    EXCHANGES,
    FETCH_SESSIONS,
    FINDINGS,
    INCIDENTS,
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    PENDING_EXCHANGES,
    RECORD_BATCHES,
    STATE_EVENTS,
    TABLES,
    TRANSACTIONS,
)
from tests.pipeline.rows import T0, row, write

MAX = 2**63 - 1
"""The largest offset that the wire can claim."""


def at(seconds: float) -> Any:
    return T0 + timedelta(seconds=seconds)


def stable(seconds: float, offset: int, high: int | None) -> dict[str, Any]:
    """A last stable offset, the high watermark in the response that states it, and when that came."""
    return {
        "last_stable_offset": offset,
        "last_stable_high_watermark": high,
        "last_stable_ts": at(seconds),
    }


def _exchanges() -> list[dict[str, Any]]:
    fetches = [
        row(EXCHANGES, exchange_id=f"f{n}", api_name="Fetch", api_version=12, client_id="app", ts=at(n), latency_us=n)
        for n in range(1, 101)
    ]
    commits = [
        row(
            EXCHANGES,
            exchange_id=f"c{n}",
            api_name="OffsetCommit",
            api_version=8,
            client_id="=cmd()",
            ts=at(n),
            latency_us=700,
            error_codes=[22, 25],
            error_names=["ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"][: n % 2 + 1],
        )
        for n in range(3)
    ]
    lost = row(EXCHANGES, exchange_id="lost", api_name="Fetch", api_version=12, client_id="app", status="unanswered")
    return [*fetches, *commits, lost]


def _timeline() -> list[dict[str, Any]]:
    def event(seconds: float, partition: int, **values: Any) -> dict[str, Any]:
        group = {"cluster": "k", "topic": "orders", "group_id": "", "exchange_id": f"e{seconds:03}"}
        return row(OFFSET_TIMELINE, ts=at(seconds), partition=partition, **(group | values))

    def commit(seconds: float, partition: int, offset: int, client: str, high: int) -> dict[str, Any]:
        return event(
            seconds, partition, kind="committed", group_id="g", client_id=client, event_offset=offset,
            committed_offset=offset, high_watermark=high, fetch_position=high, lag=high - offset, lag_seconds=1.5,
        )  # fmt: skip

    return [
        # Partition 0: "old" commits 3 over and over while "new" has continued; the end is 60.
        commit(1, 0, 2, "old", 10), commit(2, 0, 3, "old", 20), commit(3, 0, 3, "old", 30),
        commit(4, 0, 40, "new", 40), commit(5, 0, 3, "old", 50),
        event(9, 0, kind="produced", high_watermark=60, **stable(3, 5, 20)),
        # Partition 1: caught up, commits again and again what is the end: not stuck.
        commit(1, 1, 7, "new", 7), commit(2, 1, 7, "new", 7), commit(3, 1, 7, "new", 7),
        event(1, 1, kind="fetched", high_watermark=7, **stable(1, 7, 7)),
        # Partition 2: was caught up, then records came, and nobody reads them.
        *(commit(n, 2, 7, "new", 7) | {"lag_seconds": 0.0} for n in (1, 2, 3)),
        event(9, 2, kind="produced", high_watermark=50),
        # Partition 4: the group is ahead of what was known of the log.
        commit(1, 4, 100, "new", 60) | {"lag": 0}, event(9, 4, kind="listed", high_watermark=130),
        # Partition 3: the topic was recreated, and its group has not committed there yet.
        commit(1, 3, 100, "new", 100), event(9, 3, kind="produced", high_watermark=10, incarnation=1),
    ]  # fmt: skip


def _filled() -> list[dict[str, Any]]:
    def event(seconds: float, partition: int, **values: Any) -> dict[str, Any]:
        where = {
            "cluster": "k",
            "topic": "filled",
            "partition": partition,
            "group_id": "",
            "exchange_id": f"m{seconds}",
        }
        return row(OFFSET_TIMELINE, ts=at(seconds), **(where | {"kind": "listed"} | values))

    committed = {"group_id": "g", "committed_offset": 4, "kind": "committed"}
    return [
        event(1, 0, high_watermark=10, **stable(1, 8, 10)),
        event(2, 0, high_watermark=10, lag=5, lag_read_committed=3, **stable(1, 8, 10), **committed),
        event(181, 0, high_watermark=30, **stable(1, 8, 10)),
        event(
            180.5, 0, high_watermark=10, lag=5, lag_read_committed=3, **stable(1, 8, 10),
            **(committed | {"pending_offset": 9, "kind": "txn_committed"}),
        ),
        event(1, 1, high_watermark=MAX, group_id="g", committed_offset=0, lag=MAX),
        event(61, 1, high_watermark=0, group_id="g", committed_offset=MAX, lag=0),
    ]  # fmt: skip


def _sessions() -> list[dict[str, Any]]:
    where = {"cluster": "k", "topic": "filled", "partition": 0, "isolation_level": "read_committed"}
    return [row(FETCH_SESSIONS, first_ts=at(5), last_ts=at(100), **where)]


def _assignments() -> list[dict[str, Any]]:
    def given(seconds: float, generation: int, member: str, partition: int | None, group: str) -> dict[str, Any]:
        protocol = "consumer" if group == "new" else "classic"
        return row(
            ASSIGNMENTS, cluster="k", group_id=group, generation=generation, member_id=member, partition=partition,
            topic=None if partition is None else "orders", group_protocol=protocol, first_ts=at(seconds),
            last_ts=at(20 if (group, partition) == ("new", 0) else seconds),
        )  # fmt: skip

    classic = [(10, 1, "a", 0), (10, 1, "a", 1), (20, 2, "b", 0), (21, 2, "a", 1)]
    new = [(10, 3, "m", 0), (10, 3, "m", 1), (30, 4, "n", 1), (45, 5, "n", None)]
    return [given(*one, "classic") for one in classic] + [given(*one, "new") for one in new]


def _statements() -> list[dict[str, Any]]:
    def event(seconds: float, kind: str, member: str, group: str, error: int = 0) -> dict[str, Any]:
        protocol = "consumer" if group == "new" else "classic"
        who = {"cluster": "k", "group_id": group, "member_id": member, "group_protocol": protocol, "error_code": error}
        return row(STATE_EVENTS, exchange_id=f"s{seconds}", ts=at(seconds), **(who | {"kind": kind}))

    leaves = [(5, "a", 0), (40, "b", 25), (50, "a", 0)]
    new = [(10, "m"), (20, "m"), (30, "n"), (45, "n")]  # m keeps partition 0 only: stated again at 20
    return [event(at_, "leave", member, "classic", error) for at_, member, error in leaves] + [
        event(at_, "assignment", member, "new") for at_, member in new
    ]


def _offset_events() -> list[dict[str, Any]]:
    def fetched(seconds: float, partition: int, stable: int, high: int) -> dict[str, Any]:
        return row(
            OFFSET_EVENTS, exchange_id=f"f{seconds}", ts=at(seconds), cluster="k", topic="orders", kind="fetched",
            partition=partition, last_stable_offset=stable, high_watermark=high,
        )  # fmt: skip

    return [
        fetched(1, 0, 5, 5), fetched(2, 0, 5, 8), fetched(3, 0, 5, 20),
        fetched(1, 1, 5, 8), fetched(2, 1, 9, 9),
    ]  # fmt: skip


def _batches() -> list[dict[str, Any]]:
    def batch(base: int, producer: int, *, transactional: bool) -> dict[str, Any]:
        return row(
            RECORD_BATCHES, exchange_id=f"b{base}", cluster="k", topic="orders", base_offset=base, last_offset=base,
            producer_id=producer, is_transactional=transactional,
        )  # fmt: skip

    return [batch(4, 1, transactional=True), batch(5, 4711, transactional=True), batch(6, 2, transactional=False)]


HOSTILE = "**x** <b>y</b> [l](http://e.example) :red[z] `q` $a$"
"""A name from the wire that would be markup where markup is read."""


def _findings() -> list[dict[str, Any]]:
    def found(rule: str, severity: str, seconds: tuple[float, float], state: str | None, **values: Any) -> Any:
        texts = {"subject": f"about {rule}", "summary": f"summary of {rule}", "advice": "Use `it` or **leave** it."}
        return row(
            FINDINGS, finding_id=f"id-{rule}", rule=rule, severity=severity, state=state, cluster="k",
            first_ts=at(seconds[0]), last_ts=at(seconds[1]), **(texts | {"evidence": [], "details": "{}"} | values),
        )  # fmt: skip

    where = {"topic": "orders", "partition": 0, "group_id": "g"}
    return [
        found("stopped", "warning", (1, 5), "ongoing"),
        found("stuck_commit", "critical", (2, 5), None, evidence=["c1", "f2"], **where),
        found("commit_rejected", "critical", (1, 2), "resolved", subject=HOSTILE, summary=HOSTILE),
        found("mongo_cursor_leak", "info", (1, 2), "ongoing"),
    ]


def _incidents() -> list[dict[str, Any]]:
    told = grouped(finding_rows(table_of(map(_in_us, _findings()), FINDINGS))).incidents
    rows: list[dict[str, Any]] = incidents_table(told).to_pylist()
    return rows


def _in_us(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, **{name: found[name].timestamp() * 1_000_000 for name in ("first_ts", "last_ts")}}


def _transactions() -> list[dict[str, Any]]:
    def transaction(name: str, producer: int, state: str, began: float, ended: float | None) -> dict[str, Any]:
        return row(
            TRANSACTIONS, cluster="k", transactional_id=name, producer_id=producer, first_exchange_id=name,
            client_id=f"{name}-client", state=state, partitions=["orders-0"], groups=[], first_ts=at(began),
            last_ts=at(ended or began), end_ts=None if ended is None else at(ended),
            duration_us=None if ended is None else int((ended - began) * 1e6),
        )  # fmt: skip

    return [
        transaction("done", 1, "committed", 1, 2),
        transaction("longer", 1, "aborted", 1, 3),
        transaction("hangs", 4711, "ongoing", 2, None),
    ]


def _clients() -> list[dict[str, Any]]:
    def client(name: str, removed: list[str], last: float, protocol: str = "kafka") -> dict[str, Any]:
        return row(
            CLIENTS, cluster="k", client_id=name, client_ip="10.0.0.1", software=["lib 1.0"], api_versions=["Fetch v2"],
            oldest_versions=["Fetch v2"], breaks_on_kafka_4=bool(removed), removed_versions=removed, first_ts=at(0),
            last_ts=at(last), protocol=protocol,
        )  # fmt: skip

    return [client("app", [], 100), client("old", ["Fetch v2"], 50), client("shop", [], 10, "mongodb")]


def _connections() -> list[dict[str, Any]]:
    def ended(flow: str, ended: str, *, is_failed: bool, counted: str | None = None, connections: int = 1) -> Any:
        where = {"client_ip": "10.0.0.1", "client_port": 41000, "server_ip": "10.0.0.9", "server_port": 9092}
        return row(
            CONNECTIONS, flow_id=flow, connection_id=flow, ended=ended, is_failed=is_failed, first_ts=at(1),
            last_ts=at(2), counted_connection_id=counted, connections=connections, how="spoke", **where,
        )  # fmt: skip

    return [
        ended("well", "closed by the client", is_failed=False),
        ended("cut", "reset by the server, request open", is_failed=True),
        ended("cut again", "reset by the server, request open", is_failed=True),
        ended("its copy", "reset by the server, request open", is_failed=True, counted="cut"),
        ended("flood", "refused", is_failed=True, connections=70),
    ]


@pytest.fixture(scope="session")
def hand_made_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("lake")
    filled = {
        EXCHANGES.full_name: _exchanges(),
        OFFSET_TIMELINE.full_name: [*_timeline(), *_filled()],
        FETCH_SESSIONS.full_name: _sessions(),
        ASSIGNMENTS.full_name: _assignments(),
        STATE_EVENTS.full_name: _statements(),
        OFFSET_EVENTS.full_name: _offset_events(),
        RECORD_BATCHES.full_name: _batches(),
        FINDINGS.full_name: _findings(),
        INCIDENTS.full_name: _incidents(),
        TRANSACTIONS.full_name: _transactions(),
        CLIENTS.full_name: _clients(),
        CONNECTIONS.full_name: _connections(),
        PENDING_EXCHANGES.full_name: [
            row(PENDING_EXCHANGES, exchange_id="waits", client_id="app", size=11, ts=at(200)),
            row(PENDING_EXCHANGES, exchange_id="f1", ts=at(1)),
        ],
    }
    for name, table in TABLES.items():
        write(lake, table, filled.get(name, []))
    return lake
