"""The catalog of :mod:`pipeline.analysis.cluster_catalog` in the lake: ``silver.brokers`` and ``silver.topics``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from delta.tables import DeltaTable
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.catalog_tables import brokers, known_catalog, topics
from pipeline.analysis.changes import of_all
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.change_log import note_news, renamed_since
from pipeline.streaming.storage.lake import Lake, holds, read_table, version_of
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import BROKERS, OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, TOPICS, Table


def load_catalog(rows: LakeIO) -> ClusterCatalog:
    """The catalog that ``silver.brokers`` and ``silver.topics`` hold; read only if they have changed."""
    versions = _versions(rows)
    catalog = _NEWEST.get(versions)
    if catalog is not None:
        return catalog
    return _remembered(versions, known_catalog(rows.read(TableScan(BROKERS)), rows.read(TableScan(TOPICS))))


def save_catalog(rows: LakeIO, catalog: ClusterCatalog, before: ClusterCatalog) -> None:
    """Write what differs from ``before``."""
    writes = []
    if catalog.brokers != before.brokers:
        writes.append(partial(rows.overwrite, brokers(catalog), BROKERS))
    if catalog.topics != before.topics:
        writes.append(partial(rows.overwrite, topics(catalog), TOPICS))
    side_by_side(*writes)
    if writes:
        _remembered(_versions(rows), catalog)


_Versions = tuple[tuple[str, int], ...]
"""Of each of the two tables its id, which a recreated table does not share, and the number of its newest commit."""

_NEWEST: dict[_Versions, ClusterCatalog] = {}
"""What the tables held when they were last read or written. Every batch of every query asks; answers seldom change."""


def _versions(rows: LakeIO) -> _Versions:
    return tuple(version_of(rows.spark, rows.lake, table) for table in (BROKERS, TOPICS))


def _remembered(versions: _Versions, catalog: ClusterCatalog) -> ClusterCatalog:
    _NEWEST.clear()
    _NEWEST[versions] = catalog
    return catalog


def rename_earlier(rows: LakeIO, catalog: ClusterCatalog, before: ClusterCatalog) -> None:
    """Give rows written earlier the cluster or topic name that was learned since.

    Run before the new catalog is saved: a crash in between repeats it, and nothing else needs to remember.
    """
    spark, lake = rows.spark, rows.lake
    servers, names = catalog.servers_changed(before), catalog.names_learned(before)
    named_before = sorted(names.keys() & before.names.keys())

    def rename(table: Table) -> None:
        if rows.is_empty(table):
            return
        if names:
            _rename_topics(spark, lake, table, names, named_before)
        if servers:
            _rename_clusters(spark, lake, table, _span_rows(spark, catalog, servers))

    if not (servers or names):
        return
    side_by_side(*(partial(rename, table) for table in (OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS)))
    since_us = renamed_since(rows, servers, list(names))
    if since_us is not None:
        note_news(rows, of_all(1, since_us))


def _rename_topics(
    spark: SparkSession, lake: Lake, table: Table, names: Mapping[str, str], named_before: Sequence[str]
) -> None:
    """Name rows that have no name, and those of ids that had another one: it was inferred."""
    pairs = [F.lit(text) for item in sorted(names.items()) for text in item]
    name = F.try_element_at(F.create_map(*pairs), F.col("topic_id"))
    missing = F.col("topic").isNull() & F.col("topic_id").isin(list(names))
    if named_before:
        missing = missing | F.col("topic_id").isin(list(named_before)) & (F.col("topic") != name)
    if holds(spark, lake, table, missing):
        DeltaTable.forPath(spark, lake.path(table)).update(missing, {"topic": name})


def _rename_clusters(spark: SparkSession, lake: Lake, table: Table, spans: DataFrame) -> None:
    wrong = _in_span(F.col("server"), F.col("ts")) & (F.col("cluster") != F.col("span_cluster"))
    if read_table(spark, lake, table).join(F.broadcast(spans), wrong).isEmpty():
        return
    place = _in_span(F.col("t.server"), F.col("t.ts")) & (F.col("t.cluster") != F.col("s.span_cluster"))
    (
        DeltaTable.forPath(spark, lake.path(table)).alias("t").merge(spans.alias("s"), place)
        .whenMatchedUpdate(set={"cluster": F.col("s.span_cluster")})
        .execute()
    )  # fmt: skip


def _span_rows(spark: SparkSession, catalog: ClusterCatalog, servers: Iterable[str]) -> DataFrame:
    """The spans of ``servers`` as rows ``span_server``, ``from_ts``, ``until_ts``, ``span_cluster``."""
    frame = spark.createDataFrame(
        catalog.spans(servers), "span_server string, from_us bigint, until_us bigint, span_cluster string"
    )
    return frame.select(
        "span_server",
        F.timestamp_micros("from_us").alias("from_ts"),
        F.timestamp_micros("until_us").alias("until_ts"),
        "span_cluster",
    )


def _in_span(server: SparkColumn, ts: SparkColumn) -> SparkColumn:
    return (server == F.col("span_server")) & (ts >= F.col("from_ts")) & (ts < F.col("until_ts"))
