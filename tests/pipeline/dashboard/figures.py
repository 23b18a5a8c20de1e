"""Each figure that is in several places of one lake, read in all of them: disagreements, a sentence each.

Places: SQL views, queries of the pages, ``wirelake findings`` and ``wirelake top``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import orjson

from pipeline.commands.findings import read_incidents
from pipeline.commands.top.screen import Shown
from pipeline.config.settings import SqlSettings
from pipeline.dashboard.queries import clients
from pipeline.dashboard.queries.overview.incidents import findings_of, incident, incident_counts, incidents
from pipeline.dashboard.queries.overview.names import CLIENT, names
from pipeline.dashboard.queries.overview.trends import trends
from pipeline.dashboard.queries.progress import groups, partitions, transactions
from pipeline.dashboard.queries.progress.all_groups import all_groups
from pipeline.dashboard.queries.scope import Scope, ask_rows, extent
from pipeline.dashboard.sql import connect_readable
from pipeline.embedded.live_monitor import Snapshot
from tests.pipeline.commands.top.golden import drawn

_CLOSE = 1e-3
"""Seconds by which two ages of one thing may differ: times are whole µs."""
_TOO_OLD = re.compile(r"(\d+) clients are too old for Kafka 4")
_OPEN_TRANSACTION = "hanging_transaction"
Key = tuple[Any, ...]


def disagreements(lake: Path, now: Snapshot) -> list[str]:
    """Figures of a lake that differ from place to place; ``now`` is what ``top`` shows of the same capture."""
    with connect_readable(lake, SqlSettings()).connection as connection:
        there = extent(connection)
        if there is None:
            return []
        scope = Scope(there.first, there.last)
        standing = ask_rows(connection, "SELECT * FROM consumer_lag")
        return [
            *_breaking_clients(connection, scope),
            *_lag_of_partitions(connection, scope, standing),
            *_lag_of_groups(standing, now),
            *_list_of_groups(connection, scope, standing),
            *_lag_of_group_pages(connection, scope, standing),
            *_lag_of_incidents(connection, scope, standing),
            *_records_behind(connection, standing),
            *_held_back(connection, standing),
            *_held_back_elsewhere(connection, scope),
            *_open_transactions(connection, scope, now),
            *_incidents(connection, scope, lake, now),
            *_screen(now),
        ]


def _breaking_clients(connection: duckdb.DuckDBPyConnection, scope: Scope) -> Iterator[str]:
    counts = clients.counts(connection, scope)
    found = ask_rows(
        connection,
        "SELECT DISTINCT cluster, subject FROM gold.findings "
        "WHERE rule = 'kip896_incompatible_client' AND severity = 'warning'",
    )
    listed = clients.clients(connection, scope)
    seen = {(row["protocol"], row["client_id"]) for row in listed if row["client_id"]}
    ids = {name.text for name in names(connection, scope) if name.kind == CLIENT}
    if len(seen) != counts["kafka"] + counts["mongodb"] or {name for _, name in seen} != ids:
        yield f"clients: {counts} of the page, {len(seen)} in its table, {len(ids)} on the home page"
    named = {(row["cluster"], row["client_id"]) for row in listed if row["verdict"] == "breaks"}
    view = ask_rows(connection, "SELECT DISTINCT cluster, client_id FROM breaking_clients WHERE verdict = 'breaks'")
    numbers = {"findings": len(found), "clients page": counts["breaking"], "its table": len(named), "SQL": len(view)}
    if len(set(numbers.values())) > 1:
        yield f"clients that break on Kafka 4: {numbers}"
    using = {(row["cluster"], row["client_id"]) for row in listed if row["breaks_on_kafka_4"]}
    if len(using) != counts["breaking"] + counts["unknown"]:
        yield f"clients that use removed versions: {len(using)}, of the page {counts}"
    for row in ask_rows(connection, "SELECT headline, rule FROM gold.incidents"):
        stated = _TOO_OLD.search(row["headline"])
        if stated and int(stated[1]) != counts["breaking"]:
            yield f"clients that break on Kafka 4: {counts['breaking']}, of the incident {row['headline']}"


def _lag_of_partitions(
    connection: duckdb.DuckDBPyConnection, scope: Scope, standing: list[dict[str, Any]]
) -> Iterator[str]:
    """The page of partitions shows what the view says of the end of the data."""
    shown = {_place(row): row for row in partitions.lag(connection, scope)}
    for row in standing:
        page = shown.get(_place(row))
        if page is None and len(shown) < partitions.MOST_ROWS:
            yield f"{_place(row)} is in SQL alone"
        for name in ("lag", "lag_read_committed", "lag_seconds", "offsets_without_records", "as_of"):
            if page is not None and page[name] != row[name]:
                yield f"{name} of {_place(row)}: SQL {row[name]}, page {page[name]}"
        if row["lag"] is not None and row["high_watermark"] is not None and row["lag"]:
            offsets = row["high_watermark"] - row["committed_offset"]
            if row["lag"] + row["offsets_without_records"] != offsets:
                yield f"lag of {_place(row)}: {row['lag']} of {offsets} offsets"


def _lag_of_groups(standing: list[dict[str, Any]], now: Snapshot) -> Iterator[str]:
    lags: Counter[Key] = Counter()
    ages: dict[Key, float] = {}
    for row in standing:
        key = row["cluster"], row["group_id"]
        lags[key] += row["lag"] or 0
        if row["lag_seconds"] is not None:
            ages[key] = max(row["lag_seconds"], ages.get(key, 0.0))
    for group in now.groups:
        key = group.cluster, group.group_id
        if (group.lag or 0) != lags[key]:
            yield f"lag of group {key}: SQL {lags[key]}, top {group.lag}"
        if abs((group.behind_s or 0.0) - ages.get(key, 0.0)) > _CLOSE:
            yield f"age of what waits for group {key}: SQL {ages.get(key)}, top {group.behind_s}"


def _list_of_groups(
    connection: duckdb.DuckDBPyConnection, scope: Scope, standing: list[dict[str, Any]]
) -> Iterator[str]:
    """The page of all groups, of which a line says what SQL says of the partitions together."""
    lags: Counter[Key] = Counter()
    for row in standing:
        lags[row["cluster"], row["group_id"]] += row["lag"] or 0
    listed = {(one.now.cluster, one.now.group_id): one.now.lag for one in all_groups(connection, scope)}
    for key, lag in lags.items():
        if (listed.get(key) or 0) != lag:
            yield f"lag of group {key}: SQL {lag}, list of groups {listed.get(key)}"


def _lag_of_group_pages(
    connection: duckdb.DuckDBPyConnection, scope: Scope, standing: list[dict[str, Any]]
) -> Iterator[str]:
    """The last cell of the picture, where it continues to the last word of the partition."""
    known: defaultdict[Key, list[dict[str, Any]]] = defaultdict(list)
    for row in standing:
        known[row["cluster"], row["group_id"]].append(row)
    for group in groups.groups(connection, scope):
        seen = groups.group_seen(connection, scope, group)
        last = {} if seen is None else {(cell["topic"], cell["partition"]): cell for cell in seen.lag.to_pylist()}
        for row in known[group.cluster, group.group_id]:
            cell = last.get((row["topic"], row["partition"]))
            if seen is not None and cell and seen.scope.end >= row["partition_seen"] and cell["lag"] != row["lag"]:
                yield f"lag of {_place(row)}: SQL {row['lag']}, group page {cell['lag']}"


def _lag_of_incidents(
    connection: duckdb.DuckDBPyConnection, scope: Scope, standing: list[dict[str, Any]]
) -> Iterator[str]:
    """What grows of an incident on the page of incidents, where the line continues to the last word."""
    known = {_place(row): row for row in standing}
    shown = {row["incident_id"]: row for row in incidents(connection, scope)}
    for name, trend in trends(connection, list(shown.values())):
        row = known.get(_place(shown[name]))
        if trend.kind != "lag" or row is None or trend.points[-1][0] < row["partition_seen"]:
            continue
        if trend.points[-1][1] != row["lag"]:
            yield f"lag of {_place(row)}: SQL {row['lag']}, incident {trend.points[-1][1]}"
        if row["lag"] and trend.offsets != row["lag"] + row["offsets_without_records"]:
            yield f"offsets behind {_place(row)}: SQL {row['offsets_without_records']} more, incident {trend.offsets}"


def _records_behind(connection: duckdb.DuckDBPyConnection, standing: list[dict[str, Any]]) -> Iterator[str]:
    known = {_place(row): row for row in standing}
    for row in ask_rows(connection, "SELECT * FROM stuck_partitions"):
        lag = known.get(_place(row))
        if lag and lag["committed_offset"] == row["stuck_offset"] and lag["lag"] != row["records_behind"]:
            yield f"lag of {_place(row)}: SQL {lag['lag']}, of stuck_partitions {row['records_behind']}"


def _held_back(connection: duckdb.DuckDBPyConnection, standing: list[dict[str, Any]]) -> Iterator[str]:
    """What an open transaction holds back of a partition, and what waits for a group that is before it."""
    stated = ask_rows(connection, "FROM gold.findings WHERE rule = 'lso_stalled' AND state <> 'resolved'")
    for finding in stated:
        held = orjson.loads(finding["details"])
        first, records = held["last_stable_offset"], held["records_behind"]
        if records + held.get("transaction_markers", 0) != held["high_watermark"] - first:
            yield f"{finding['subject']}: {held}"
        for row in standing:
            is_there = (row["cluster"], row["topic"], row["partition"]) == _partition(finding)
            if is_there and row["high_watermark"] == held["high_watermark"] and (row["committed_offset"] or 0) <= first:
                before = first - (row["committed_offset"] or 0)
                if row["lag"] is not None and not records <= row["lag"] <= records + before:
                    yield f"lag of {_place(row)}: SQL {row['lag']}, held back {records} and {before} offsets before"


def _held_back_elsewhere(connection: duckdb.DuckDBPyConnection, scope: Scope) -> Iterator[str]:
    """What an open transaction holds back: of the finding, the SQL view, the page of transactions and an incident."""
    view = {_partition(row): row for row in ask_rows(connection, "SELECT * FROM open_transactions")}
    page = {_partition(row): row for row in transactions.held_partitions(connection, scope)}
    for row in ask_rows(connection, "FROM gold.findings WHERE rule = 'lso_stalled' AND state <> 'resolved'"):
        held, shown = orjson.loads(row["details"]), view.get(_partition(row))
        for place, one in (("SQL", shown), ("page", page.get(_partition(row)))):
            if one is None or one["high_watermark"] != held["high_watermark"]:
                continue
            figures = one["records_held_back"], one["transaction_markers"]
            if figures != (held["records_behind"], held.get("transaction_markers", 0)):
                yield f"held back in {row['subject']}: finding {held}, {place} {figures}"
    rows = {row["incident_id"]: row for row in incidents(connection, scope)}
    for name, trend in trends(connection, list(rows.values())):
        shown = view.get(_partition(rows[name]))
        if trend.kind == "held back" and shown and trend.points[-1][0] >= shown["last_seen"]:
            figures = trend.points[-1][1], trend.offsets
            of_view = shown["records_held_back"], shown["records_held_back"] + shown["transaction_markers"]
            if figures != of_view:
                yield f"held back by {rows[name]['headline']}: SQL {of_view}, line {figures}"


def _open_transactions(connection: duckdb.DuckDBPyConnection, scope: Scope, now: Snapshot) -> Iterator[str]:
    shown = {
        (row["cluster"], row["transactional_id"], row["first_ts"]): row
        for row in transactions.open_transactions(connection, scope)
    }
    stated = ask_rows(connection, f"FROM gold.findings WHERE rule = '{_OPEN_TRANSACTION}' AND state <> 'resolved'")
    for row in stated:
        page, age = shown.get((row["cluster"], row["subject"], row["first_ts"])), orjson.loads(row["details"])["age_us"]
        if page is None:
            yield f"transaction {row['subject']} is open in findings, and on no page"
        elif abs(page["open_seconds"] - age / 1e6) > _CLOSE:
            yield f"age of transaction {row['subject']}: finding {age / 1e6}, page {page['open_seconds']}"
    held = {
        (row["cluster"], row["topic"], row["partition"]): row for row in transactions.held_partitions(connection, scope)
    }
    for row in ask_rows(connection, "FROM gold.findings WHERE rule = 'lso_stalled' AND state = 'ongoing'"):
        page = held.get((row["cluster"], row["topic"], row["partition"]))
        seconds = (row["last_ts"] - row["first_ts"]).total_seconds()
        if page is None or abs(page["held_seconds"] - seconds) > _CLOSE:
            yield f"{row['subject']} is held for {seconds} s, of the page {page and page['held_seconds']}"


def _incidents(connection: duckdb.DuckDBPyConnection, scope: Scope, lake: Path, now: Snapshot) -> Iterator[str]:
    told, _ = read_incidents(lake)
    counts = incident_counts(connection, scope)
    places = {
        "home": {name: count for name, count in counts.items() if count},
        "findings": Counter("resolved" if row["state"] == "resolved" else row["severity"] for row in told),
        "top": Counter("resolved" if row["state"] == "resolved" else row["severity"] for row in now.incidents),
    }
    if places["home"] != dict(places["findings"]) or places["home"] != dict(places["top"]):
        yield f"incidents: {places}"
    begun = {row["incident_id"]: row["first_us"] for row in now.incidents}
    for row in incidents(connection, scope):
        whole = incident(connection, row["incident_id"])
        shown = findings_of(connection, whole) if whole else []
        if len(shown) != row["findings"]:
            yield f"evidence of {row['findings']} findings, of which {len(shown)} are shown: {row['headline']}"
        first_us = round(row["first_ts"].timestamp() * 1e6)
        if begun.get(row["incident_id"], first_us) != first_us:
            yield f"since when: page {first_us}, top {begun[row['incident_id']]}: {row['headline']}"


def _screen(now: Snapshot) -> Iterator[str]:
    """``top`` does not say that all is well above a lag that grows."""
    text = drawn(now, Shown("-"), 200)
    if any(group.is_growing for group in now.groups) and "No incident in what" in text:
        yield "top: No incident, above a lag that grows"


def _partition(row: dict[str, Any]) -> Key:
    return row["cluster"], row["topic"], row["partition"]


def _place(row: dict[str, Any]) -> Key:
    return row["cluster"], row["topic"], row["partition"], row["group_id"]
