"""Each figure that stands on several pages of one lake, read off the pages: disagreements, a sentence each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from pipeline.config.settings import SqlSettings
from pipeline.dashboard.queries.clients import counts
from pipeline.dashboard.queries.overview.incidents import incidents
from pipeline.dashboard.queries.scope import Scope, ask_rows, extent
from pipeline.dashboard.sql import connect_readable
from tests.pipeline.dashboard.web.apps import open_page, text_of

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

_LESS = re.compile(r"([\d,]+) records?\*{0,2} (?:behind\*\* )?\(([\d,]+) offsets? less ([\d,]+) ")
"""Records, the offsets that they are counted from, and those of them that hold no record."""
_BEHIND = re.compile(r"is \*\*([\d,]+) records? behind\*\*")
_HELD = re.compile(r"`([^`]+)` stands at [\d,]+ for at least .* is open\. \*\*([\d,]+) records?\*\*")
_HELD_METRIC, _LAG_METRIC = "Held back in {}, records", "Lag of {}, records"
_MOST = 2
"""Partitions, groups and incidents of a lake whose page is opened: the worst."""


def page_disagreements(lake: Path) -> list[str]:
    """Figures of the pages that differ from those of SQL; the lake is the one that the environment names."""
    with connect_readable(lake, SqlSettings()).connection as connection:
        there = extent(connection)
        if there is None:
            return []
        scope = Scope(there.first, there.last)
        standing = ask_rows(connection, "SELECT * FROM consumer_lag ORDER BY lag DESC NULLS LAST, group_id, topic")
        return [
            *_partitions(standing),
            *_groups(standing),
            *_transactions(connection),
            *_clients(connection, scope),
            *_home(connection, standing),
            *_incidents(connection, scope),
        ]


def _partitions(standing: list[dict[str, Any]]) -> Iterator[str]:
    for row in standing[:_MOST]:
        address = {"group": row["group_id"], **{name: str(row[name]) for name in ("topic", "partition", "cluster")}}
        text = _text("partitions", **address)
        yield from _sums("partition", text)
        if (shown := _behind(text)) != row["lag"]:
            yield f"lag of {address}: SQL {row['lag']}, its page {shown}"


def _groups(standing: list[dict[str, Any]]) -> Iterator[str]:
    for cluster, group_id in list(dict.fromkeys((row["cluster"], row["group_id"]) for row in standing))[:_MOST]:
        mine = [row["lag"] for row in standing if (row["cluster"], row["group_id"]) == (cluster, group_id)]
        text = _text("group", group=group_id, cluster=cluster)
        yield from _sums("group", text)
        if (shown := _behind(text)) != sum(lag or 0 for lag in mine) and set(mine) != {None}:
            yield f"lag of group {group_id}: SQL {mine}, its page {shown}"


def _transactions(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    text = _text("transactions")
    yield from _sums("transactions", text)
    held = {f"{row['topic']}-{row['partition']}": row for row in ask_rows(connection, "FROM open_transactions")}
    shown = {place: _number(records) for place, records in _HELD.findall(text)}
    if shown != {place: row["records_held_back"] for place, row in list(held.items())[: len(shown)]}:
        yield f"held back: SQL {held}, page {shown}"


def _clients(connection: duckdb.DuckDBPyConnection, scope: Scope) -> Iterator[str]:
    shown = {metric.label: metric.value for metric in _page("clients").metric}
    number = counts(connection, scope)["breaking"]
    if shown.get("Break on Kafka 4", "0") != str(number):
        yield f"clients that break: {number}, page {shown}"


def _home(connection: duckdb.DuckDBPyConnection, standing: list[dict[str, Any]]) -> Iterator[str]:
    """What grows of an incident is what SQL says of its place, where its line goes on to the last word of it."""
    app = _page("home")
    yield from _sums("home", _plain(app))
    shown = {metric.label.replace("\\", ""): _number(metric.value) for metric in app.metric}
    for row in ask_rows(connection, "FROM open_transactions"):
        label = _HELD_METRIC.format(f"{row['topic']}-{row['partition']}")
        if label in shown and shown[label] != row["records_held_back"]:
            yield f"{label}: SQL {row['records_held_back']}, home {shown[label]}"
    for row in standing:
        label, most = _LAG_METRIC.format(f"{row['topic']}-{row['partition']}"), row["lag"] or 0
        others = [
            one["lag"] or 0 for one in standing if (one["topic"], one["partition"]) == (row["topic"], row["partition"])
        ]
        if label in shown and shown[label] > max(most, *others):
            yield f"{label}: SQL {others}, home {shown[label]}"


def _incidents(connection: duckdb.DuckDBPyConnection, scope: Scope) -> Iterator[str]:
    for row in incidents(connection, scope)[:_MOST]:
        text = _text("incident", incident=row["incident_id"])
        yield from _sums(row["headline"], text)


def _sums(where: str, text: str) -> Iterator[str]:
    """A formula beside a figure gives the figure."""
    for records, offsets, others in _LESS.findall(text):
        if _number(records) + _number(others) != _number(offsets):
            yield f"{where}: {records} records are not {offsets} offsets less {others}"


def _behind(text: str) -> int | None:
    if "has committed every record" in text:
        return 0
    found = _BEHIND.search(text)
    return _number(found[1]) if found else None


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _text(page: str, **address: str) -> str:
    return _plain(_page(page, **address))


def _page(page: str, **address: str) -> AppTest:
    return open_page(page, range="all", **address)


def _plain(app: AppTest) -> str:
    return text_of(app).replace("\\", "")
