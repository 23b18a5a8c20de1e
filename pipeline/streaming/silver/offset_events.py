"""What do completed exchanges state of offsets, records, state and names? ``silver.exchanges`` → the event tables.

Bodies are large and parsing them is the work, so that all of it is taken from each in one pass (``statement_rows``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from delta.tables import DeltaTable
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import StructField, StructType

from pipeline.analysis.facts import Fact, Facts
from pipeline.analysis.statements.kafka import BODIES, FACT, PARTS, statements
from pipeline.streaming.silver.facts import span_rows
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.lake import Lake, holds, read_table, struct_type
from pipeline.tables import OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, Table

if TYPE_CHECKING:
    import pyarrow as pa

_CONTEXT = "exchange_id string, connection_id string, ts_us bigint, server string, client string, client_id string"


def address(ip: str, port: str) -> SparkColumn:
    """``ip:port``, with brackets around an IPv6 address."""
    host = F.when(F.col(ip).contains(":"), F.concat(F.lit("["), ip, F.lit("]"))).otherwise(F.col(ip))
    return F.concat_ws(":", host, F.col(port).cast("string"))


def statement_rows(exchanges: DataFrame) -> DataFrame:
    """All that completed exchanges state: a row each, in one of the columns ``event``, ``batch``, ``state``, ``fact``.

    Beside it stands which exchange states it. To be persisted where more than one of the functions below reads it.
    """
    apis = sorted({api for part in PARTS.values() for api in part.apis})
    inputs = exchanges.where((F.col("protocol") == "kafka") & F.col("api_key").isin(apis)).select(
        "exchange_id",
        "connection_id",
        F.unix_micros(F.coalesce("response_ts", "request_ts")).alias("ts_us"),
        address("server_ip", "server_port").alias("server"),
        address("client_ip", "client_port").alias("client"),
        "client_id",
        *BODIES,
    )
    context = StructType.fromDDL(_CONTEXT)
    parts = [StructField(name, struct_type(part.columns)) for name, part in PARTS.items()]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from statements(batch, context.names)

    return inputs.mapInArrow(run, StructType([*context.fields, *parts]))


def event_rows(rows: DataFrame, facts: Facts) -> DataFrame:
    """Rows of ``silver.offset_events`` from what :func:`statement_rows` gives."""
    return _resolved(_only(rows, "event"), facts, OFFSET_EVENTS)


def batch_rows(rows: DataFrame, facts: Facts) -> DataFrame:
    """Rows of ``silver.record_batches`` from what :func:`statement_rows` gives."""
    return _resolved(_only(rows, "batch"), facts, RECORD_BATCHES)


def state_rows(rows: DataFrame, facts: Facts) -> DataFrame:
    """Rows of ``silver.state_events`` from what :func:`statement_rows` gives."""
    return _resolved(_only(rows, "state"), facts, STATE_EVENTS)


def collect_facts(rows: DataFrame) -> list[Fact]:
    """What :func:`statement_rows` gives of clusters and topic ids, each statement once."""
    names = [column.name for column in FACT]
    once = _only(rows, "fact").groupBy(*names).agg(F.min("ts_us"), F.max("ts_us"))
    return [Fact(*row) for row in once.collect()]


def _only(rows: DataFrame, part: str) -> DataFrame:
    return rows.where(F.col(part).isNotNull()).select(*StructType.fromDDL(_CONTEXT).names, f"{part}.*")


# --- names ------------------------------------------------------------------------------------------------------


def _resolved(rows: DataFrame, facts: Facts, table: Table) -> DataFrame:
    """Give rows their time, cluster and topic name, as far as they are known."""
    spark = rows.sparkSession
    timed = rows.withColumn("ts", F.timestamp_micros("ts_us")).withColumn("date", F.to_date("ts"))
    placed = with_cluster(timed, facts)
    names = spark.createDataFrame(sorted(facts.names().items()), "_id string, _name string")
    named = placed.join(F.broadcast(names), F.col("topic").isNull() & (F.col("topic_id") == F.col("_id")), "left")
    return named.withColumn("topic", F.coalesce("topic", "_name")).select(*table.column_names)


def with_cluster(rows: DataFrame, facts: Facts) -> DataFrame:
    """Add ``cluster`` to rows that have ``server`` and ``ts``."""
    spans = F.broadcast(span_rows(rows.sparkSession, facts))
    return (
        rows.join(spans, _in_span(F.col("server"), F.col("ts")), "left")
        .withColumn("cluster", F.coalesce("span_cluster", "server"))
        .drop(*spans.columns)
    )


def _in_span(server: SparkColumn, ts: SparkColumn) -> SparkColumn:
    return (server == F.col("span_server")) & (ts >= F.col("from_ts")) & (ts < F.col("until_ts"))


def rename_earlier(spark: SparkSession, lake: Lake, facts: Facts, before: Facts) -> None:
    """Give rows written earlier the cluster or topic name that was learned since.

    Run before the new facts are saved: a crash in between repeats it, and nothing else needs to remember.
    """
    servers, names = facts.servers_changed(before), facts.names_learned(before)

    def rename(table: Table) -> None:
        if names:
            _rename_topics(spark, lake, table, names)
        if servers:
            _rename_clusters(spark, lake, table, span_rows(spark, facts, servers))

    side_by_side(*(partial(rename, table) for table in (OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS)))


def _rename_topics(spark: SparkSession, lake: Lake, table: Table, names: Mapping[str, str]) -> None:
    missing = F.col("topic").isNull() & F.col("topic_id").isin(list(names))
    if holds(spark, lake, table, missing):
        pairs = [F.lit(text) for item in sorted(names.items()) for text in item]
        target = DeltaTable.forPath(spark, lake.path(table))
        target.update(missing, {"topic": F.try_element_at(F.create_map(*pairs), F.col("topic_id"))})


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
