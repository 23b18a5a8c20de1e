"""Which partitions does each fetch session hold? Statements of silver → ``silver.fetch_sessions``.

A refresh follows every session anew from the first day that has news; what it held before comes from its open rows of
the day before that.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.kafka.fetch_sessions import Held, Part, SessionFetch, follow
from pipeline.streaming.lake import Lake, read_table
from pipeline.streaming.sinks import replace_dates
from pipeline.tables import FETCH_SESSIONS, OFFSET_EVENTS, STATE_EVENTS

if TYPE_CHECKING:
    import pandas as pd

_SESSION = ("server", "session_id")
_PARTITION = ("topic", "topic_id", "partition", "isolation_level")
_INPUT = (
    *_SESSION, "cluster", "date", "ts_us", "exchange_id", "kind", "client", "client_id", "session_epoch", "error_code",
    *_PARTITION, "offset", "next_offset", "complete",
)  # fmt: skip
_OUTPUT = (
    "cluster string, server string, session_id int, date date, client string, client_id string, topic string, "
    "topic_id string, partition int, isolation_level string, first_us bigint, last_us bigint, fetch_offset bigint, "
    "fetches bigint, session_epoch int, is_open boolean, complete boolean"
)


def refresh_fetch_sessions(spark: SparkSession, lake: Lake, first: date) -> None:
    """Recompute the days from ``first`` on."""
    since = F.col("date") >= F.lit(first)
    fetches = read_table(spark, lake, STATE_EVENTS).where(since & (F.col("kind") == "fetch_session"))
    said = F.col("kind").isin("fetched", "fetch_rejected", "fetch_forgotten") & F.col("session_id").isNotNull()
    parts = read_table(spark, lake, OFFSET_EVENTS).where(since & said)
    before = read_table(spark, lake, FETCH_SESSIONS).where(
        (F.col("date") == F.lit(first - timedelta(days=1))) & F.col("is_open")
    )
    carried = before.withColumns(
        {"ts": F.col("last_ts"), "exchange_id": F.lit(""), "kind": F.lit("carried"), "offset": F.col("fetch_offset")}
    )
    replace_dates(session_rows(fetches, parts, carried), lake, FETCH_SESSIONS, first)


def session_rows(fetches: DataFrame, parts: DataFrame, carried: DataFrame) -> DataFrame:
    """Rows of ``silver.fetch_sessions``.

    Args:
        fetches: ``fetch_session`` rows of ``silver.state_events``.
        parts: fetches of ``silver.offset_events`` in a session.
        carried: open rows of the day before.
    """
    both = fetches.unionByName(parts, allowMissingColumns=True).unionByName(carried, allowMissingColumns=True)
    # Offsets travel as text: pandas makes floats of integers where some are null, and those end at 2^53.
    offsets = {name: F.col(name).cast("string") for name in ("offset", "next_offset")}
    inputs = both.withColumns({"ts_us": F.unix_micros("ts"), **offsets}).select(*_INPUT)
    rows = inputs.groupBy(*_SESSION).applyInPandas(_follow, _OUTPUT)
    times = {"first_ts": F.timestamp_micros("first_us"), "last_ts": F.timestamp_micros("last_us")}
    return rows.withColumns(times)


def _follow(rows: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415 - on the worker only

    plain = rows.astype(object).where(rows.notna(), None)
    ordered = sorted(plain.itertuples(index=False), key=lambda row: (row.ts_us, row.exchange_id))
    carried = [row for row in ordered if row.kind == "carried"]
    held = follow(_fetches(row for row in ordered if row.kind != "carried"), map(_held, carried))
    clusters = {row.date: row.cluster for row in ordered}
    server, session = ordered[0].server, int(ordered[0].session_id)
    found = [(clusters[h.day], server, session, h.day, *_values(h)) for h in held]
    columns = [part.split()[0] for part in _OUTPUT.split(", ")]
    rows_held: pd.DataFrame = pd.DataFrame(found, columns=columns, dtype=object)
    return rows_held


def _values(held: Held) -> tuple[Any, ...]:
    return (
        held.client, held.client_id, held.topic, held.topic_id, held.partition, held.isolation_level, held.first_us,
        held.last_us, held.fetch_offset, held.fetches, held.session_epoch, held.is_open, held.complete,
    )  # fmt: skip


def _fetches(rows: Any) -> Iterator[SessionFetch]:
    for _, of_one in groupby(rows, key=lambda row: (row.ts_us, row.exchange_id)):
        said = list(of_one)
        head = next((row for row in said if row.kind == "fetch_session"), None)
        if head is not None:
            parts = tuple(_part(row) for row in said if row.kind != "fetch_session")
            yield SessionFetch(
                head.date, int(head.ts_us), head.client, head.client_id, int(head.session_epoch),
                bool(head.error_code), parts,
            )  # fmt: skip


def _part(row: Any) -> Part:
    return Part(
        row.topic, row.topic_id, int(row.partition), row.isolation_level, _int(row.offset), _int(row.next_offset),
        row.kind == "fetch_forgotten",
    )  # fmt: skip


def _held(row: Any) -> Held:
    return Held(
        row.date, row.client, row.client_id, row.topic, row.topic_id, int(row.partition), row.isolation_level,
        int(row.ts_us), int(row.ts_us), _int(row.offset), 0, int(row.session_epoch), True, bool(row.complete),
    )  # fmt: skip


def _int(value: Any) -> int | None:
    return None if value is None else int(value)
