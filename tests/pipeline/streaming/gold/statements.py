"""What exchanges state of one partition, as rows of silver, and lakes that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pipeline.streaming.storage.lake import Lake, create_tables, read_table
from pipeline.tables import (
    DUPLICATE_FLOWS,
    OFFSET_EVENTS,
    OFFSET_SNAPSHOTS,
    OFFSET_TIMELINE,
    RECORD_BATCHES,
    STATE_EVENTS,
    Table,
)
from tests.pipeline.rows import T0, add, row

WEEK = timedelta(days=7)
SERVER, APP, READER = "10.0.0.1:9092", "10.0.0.8:1000", "10.0.0.9:2000"
Row = dict[str, Any]


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def us(seconds: float) -> int:
    """µs since the epoch."""
    return round(at(seconds).timestamp() * 1_000_000)


def event(seconds: float, kind: str, **more: Any) -> Row:
    common = {"ts": at(seconds), "date": at(seconds).date(), "exchange_id": f"e{seconds:09.1f}", "kind": kind}
    place = {"cluster": "C", "server": SERVER, "topic": "t", "partition": 0, "ordinal": 0, "error_code": 0}
    return row(OFFSET_EVENTS, **common | place | more)


def produced(seconds: float, first: int, end: int) -> Row:
    return event(seconds, "produced", offset=first, next_offset=end, client=APP, client_id="app", records=end - first)


def fetched(seconds: float, offset: int, end: int | None, high: int | None, **more: Any) -> Row:
    values = {"offset": offset, "next_offset": end, "high_watermark": high, "client": READER, "client_id": "reader"}
    return event(seconds, "fetched", **values | {"isolation_level": "read_uncommitted"} | more)


def committed(seconds: float, offset: int, kind: str = "committed", **more: Any) -> Row:
    values = {"offset": offset, "group_id": "g", "member_id": "m", "client": READER, "client_id": "reader"}
    return event(seconds, kind, **values | more)


def state(seconds: float, kind: str, **more: Any) -> Row:
    when = {"ts": at(seconds), "date": at(seconds).date(), "exchange_id": f"x{seconds:09.1f}", "kind": kind}
    who = {"cluster": "C", "server": SERVER, "client": "10.0.0.9:2001", "client_id": "reader", "error_code": 0}
    return row(STATE_EVENTS, **when | who | more)


def beat(seconds: float, group: str = "g", **more: Any) -> Row:
    return state(seconds, "heartbeat", group_id=group, **more)


def ended(seconds: float, *, committed: bool) -> Row:
    return state(seconds, "txn_end", transactional_id="tx", producer_id=7, committed=committed)


def begun(seconds: float) -> Row:
    return state(seconds, "txn_init", transactional_id="tx", producer_id=7)


def marker(seconds: float, offset: int) -> Row:
    place = {"cluster": "C", "server": SERVER, "topic": "t", "partition": 0, "ordinal": 0}
    when = {"ts": at(seconds), "date": at(seconds).date(), "exchange_id": f"e{seconds:09.1f}", "source": "fetch"}
    return row(RECORD_BATCHES, **place | when, is_control=True, base_offset=offset, last_offset=offset)


def put(lake: Lake, table: Table, rows: Sequence[Row]) -> None:
    if rows:
        add(lake.path(table), table, rows)


def content(spark: SparkSession, lake: Lake) -> list[Any]:
    return read_table(spark, lake, OFFSET_TIMELINE).orderBy("ts", "exchange_id", "group_id", "ordinal").collect()


def new_lake(spark: SparkSession, folder: Path) -> Lake:
    lake = Lake.at(folder)
    create_tables(
        spark, lake, [DUPLICATE_FLOWS, STATE_EVENTS, OFFSET_EVENTS, RECORD_BATCHES, OFFSET_TIMELINE, OFFSET_SNAPSHOTS]
    )
    return lake
