"""Exchanges of the lake with what their frames hold: ``silver.exchanges`` joined with ``bronze.frames``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from pipeline.analysis.bodies import with_bodies_sql
from pipeline.analysis.fit import fit, schema_of
from pipeline.analysis.tables import Some, Tables
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import EXCHANGES_WITH_BODIES, FRAMES

AT_ONCE = 50_000
"""Exchanges whose bodies are in memory together."""
_ASKED = "SELECT * FROM all_exchanges WHERE {}"
_BY_SECOND = """
    SELECT floor(epoch_us(ts) / 1000000)::BIGINT AS second, count(*) AS rows FROM exchanges GROUP BY ALL ORDER BY second
"""
_OF_SPAN = "(SELECT * FROM exchanges WHERE ts >= make_timestamptz({}) AND ts < make_timestamptz({}))"
_BOUNDS = """
    SELECT min(least(epoch_us(ts), epoch_us(request_ts), epoch_us(response_ts))) AS first_us,
        max(greatest(epoch_us(ts), epoch_us(request_ts), epoch_us(response_ts))) AS last_us
    FROM {}
"""
_BETWEEN = "(SELECT * FROM frames WHERE ts BETWEEN make_timestamptz({}) AND make_timestamptz({}))"


def exchanges_with_bodies(
    rows: LakeIO, wanted: TableScan, exchanges: Some | None = None, asked: str = "true"
) -> Iterator[pa.Table]:
    """Exchanges with their bodies, some at a time, in the order of time.

    Args:
        rows: of the lake.
        wanted: rows of ``silver.exchanges``.
        exchanges: the same, where they are in memory already.
        asked: which of them, as SQL; of a lake elsewhere all are given.
    """
    if not rows.lake.is_local:
        yield fit(_frame_with_bodies(rows, wanted).toArrow(), EXCHANGES_WITH_BODIES)
        return
    held = rows.scan(wanted) if exchanges is None else exchanges
    tables = Tables({"all_exchanges": held, "frames": rows.scan(TableScan(FRAMES))})
    tables.view("exchanges", _ASKED.format(asked))
    try:
        for span in _spans(tables):
            some = _OF_SPAN.format(*span)
            (bounds,) = tables.rows(_BOUNDS.format(some))
            found = tables.table(with_bodies_sql(some, _BETWEEN.format(*bounds)))
            yield fit(found, EXCHANGES_WITH_BODIES)
    finally:
        tables.close()


def together(pieces: Iterable[pa.Table]) -> pa.Table:
    """All of them as one table."""
    return pa.concat_tables([schema_of(EXCHANGES_WITH_BODIES).empty_table(), *pieces])


def _spans(tables: Tables) -> Iterator[tuple[int, int]]:
    """Spans of time with some :data:`AT_ONCE` exchanges each, µs since the epoch; the end is exclusive."""
    span: tuple[int, int] | None = None
    held = 0
    for row in tables.rows(_BY_SECOND):
        if span is not None and held + row.rows > AT_ONCE:
            yield span
            span, held = None, 0
        begin_us = row.second * 1_000_000
        span, held = (begin_us if span is None else span[0], begin_us + 1_000_000), held + row.rows
    if span is not None:
        yield span


def _frame_with_bodies(rows: LakeIO, wanted: TableScan) -> DataFrame:
    """The same as Spark reads them."""
    both = {"exchanges": rows.frame(wanted), "frames": rows.frame(TableScan(FRAMES))}
    found: DataFrame = rows.spark.sql(with_bodies_sql("{exchanges}", "{frames}"), **both)
    return found
