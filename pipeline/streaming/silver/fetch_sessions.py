"""Which partitions does each fetch session hold? Statements of silver → ``silver.fetch_sessions``.

A refresh follows every session anew from the first day that has news; what it held before comes from its open rows of
the day before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from itertools import groupby
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.kafka.facts.fetch_sessions import Held, Part, SessionFetch, follow
from pipeline.streaming.spark.in_groups import Values, map_groups
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.streaming.storage.seen_once import read_once
from pipeline.streaming.storage.sinks import replace_dates
from pipeline.tables import FETCH_SESSIONS, OFFSET_EVENTS, STATE_EVENTS

_SESSION = ("server", "session_id")
_OUTPUT = (
    "cluster string, server string, session_id int, date date, client string, client_id string, topic string, "
    "topic_id string, partition int, isolation_level string, first_us bigint, last_us bigint, fetch_offset bigint, "
    "fetches bigint, session_epoch int, is_open boolean, complete boolean"
)


def refresh_fetch_sessions(spark: SparkSession, lake: Lake, first: date) -> None:
    """Recompute the days from ``first`` on."""
    since = F.col("date") >= F.lit(first)
    fetches = read_once(spark, lake, STATE_EVENTS, first).where(since & (F.col("kind") == "fetch_session"))
    said = F.col("kind").isin("fetched", "fetch_rejected", "fetch_forgotten") & F.col("session_id").isNotNull()
    parts = read_once(spark, lake, OFFSET_EVENTS, first).where(since & said)
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
    told = {"ts_us": F.unix_micros("ts"), "forgotten": F.col("kind") == "fetch_forgotten"}
    inputs = both.withColumns(told).select(*_FETCH, *Part._fields)
    rows = map_groups(inputs, _SESSION, ("ts_us", "exchange_id"), _follow, _OUTPUT)
    times = {"first_ts": F.timestamp_micros("first_us"), "last_ts": F.timestamp_micros("last_us")}
    return rows.withColumns(times)


class _Row(NamedTuple):
    """What a fetch of a session says of itself and of a partition, or (``carried``) what was held before."""

    server: str
    session_id: int
    cluster: str
    date: date
    ts_us: int
    exchange_id: str
    kind: str
    client: str
    client_id: str | None
    session_epoch: int
    error_code: int | None
    complete: bool
    part: Part


_FETCH = _Row._fields[:-1]


def _follow(session: Values, rows: Iterator[Values]) -> Iterator[Values]:
    """Rows of ``_OUTPUT`` of one session. What is carried comes first: it is of an earlier day."""
    clusters: dict[date, str] = {}
    carried: list[Held] = []
    said = _noting_clusters(rows, clusters)
    for is_carried, of_source in groupby(said, key=lambda row: row.kind == "carried"):
        if is_carried:
            carried = [_held(row) for row in of_source]
        else:
            for held in follow(_fetches(of_source), carried):
                yield (clusters[held.day], *session, held.day, *_values(held))


def _noting_clusters(rows: Iterator[Values], clusters: dict[date, str]) -> Iterator[_Row]:
    for values in rows:
        row = _Row._make([*values[: len(_FETCH)], Part._make(values[len(_FETCH) :])])
        clusters[row.date] = row.cluster
        yield row


def _values(held: Held) -> Values:
    return (
        held.client, held.client_id, held.topic, held.topic_id, held.partition, held.isolation_level, held.first_us,
        held.last_us, held.fetch_offset, held.fetches, held.session_epoch, held.is_open, held.complete,
    )  # fmt: skip


def _fetches(rows: Iterable[_Row]) -> Iterator[SessionFetch]:
    for _, of_one in groupby(rows, key=lambda row: (row.ts_us, row.exchange_id)):
        said = list(of_one)
        head = next((row for row in said if row.kind == "fetch_session"), None)
        if head is not None:
            parts = tuple(row.part for row in said if row.kind != "fetch_session")
            yield SessionFetch(
                head.date, head.ts_us, head.client, head.client_id, head.session_epoch, bool(head.error_code), parts
            )


def _held(row: _Row) -> Held:
    part = row.part
    return Held(
        row.date, row.client, row.client_id, part.topic, part.topic_id, part.partition, part.isolation_level,
        row.ts_us, row.ts_us, part.offset, 0, row.session_epoch, True, row.complete,
    )  # fmt: skip
