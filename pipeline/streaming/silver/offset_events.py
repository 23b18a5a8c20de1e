"""What do completed exchanges say of offsets, records, state and names? ``silver.exchanges`` → the event tables.

Bodies are large and parsing them is the work, so that all of it is taken from each in one pass (``said_by``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from delta.tables import DeltaTable
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import StructField, StructType

from decoder.kafka.facts import exchanges as said
from decoder.kafka.facts import offsets, state
from pipeline.analysis.facts import Fact, Facts
from pipeline.streaming.silver.facts import span_rows
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.lake import Lake, holds, read_table, struct_type
from pipeline.tables import OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

_CONTEXT = "exchange_id string, connection_id string, ts_us bigint, server string, client string, client_id string"


class Said(NamedTuple):
    """An exchange with parsed bodies."""

    api_key: int
    api_version: int
    client_id: str | None
    server: str
    request: dict[str, Any] | None
    response: dict[str, Any] | None
    request_embedded: list[dict[str, Any]] | None
    response_embedded: list[dict[str, Any]] | None


def address(ip: str, port: str) -> SparkColumn:
    """``ip:port``, with brackets around an IPv6 address."""
    host = F.when(F.col(ip).contains(":"), F.concat(F.lit("["), ip, F.lit("]"))).otherwise(F.col(ip))
    return F.concat_ws(":", host, F.col(port).cast("string"))


def said_by(exchanges: DataFrame) -> DataFrame:
    """All that completed exchanges say: a row each, in one of the columns ``event``, ``batch``, ``state``, ``fact``.

    Beside it stands which exchange says it. To be persisted where more than one of the functions below reads it.
    """
    apis = sorted({api for part in _PARTS.values() for api in part.apis})
    inputs = exchanges.where((F.col("protocol") == "kafka") & F.col("api_key").isin(apis)).select(
        "exchange_id",
        "connection_id",
        F.unix_micros(F.coalesce("response_ts", "request_ts")).alias("ts_us"),
        address("server_ip", "server_port").alias("server"),
        address("client_ip", "client_port").alias("client"),
        "client_id",
        *_BODIES,
    )
    context = StructType.fromDDL(_CONTEXT)
    parts = [StructField(name, struct_type(part.columns)) for name, part in _PARTS.items()]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from _said(batch, context.names)

    return inputs.mapInArrow(run, StructType([*context.fields, *parts]))


def event_rows(rows: DataFrame, facts: Facts) -> DataFrame:
    """Rows of ``silver.offset_events`` from what :func:`said_by` gives."""
    return _resolved(_only(rows, "event"), facts, OFFSET_EVENTS)


def batch_rows(rows: DataFrame, facts: Facts) -> DataFrame:
    """Rows of ``silver.record_batches`` from what :func:`said_by` gives."""
    return _resolved(_only(rows, "batch"), facts, RECORD_BATCHES)


def state_rows(rows: DataFrame, facts: Facts) -> DataFrame:
    """Rows of ``silver.state_events`` from what :func:`said_by` gives."""
    return _resolved(_only(rows, "state"), facts, STATE_EVENTS)


def collect_facts(rows: DataFrame) -> list[Fact]:
    """What :func:`said_by` gives of clusters and topic ids, each statement once."""
    names = [column.name for column in _FACT]
    once = _only(rows, "fact").groupBy(*names).agg(F.min("ts_us"), F.max("ts_us"))
    return [Fact(*row) for row in once.collect()]


def _only(rows: DataFrame, part: str) -> DataFrame:
    return rows.where(F.col(part).isNotNull()).select(*StructType.fromDDL(_CONTEXT).names, f"{part}.*")


_OURS = {"date", "exchange_id", "connection_id", "ts", "cluster", "server", "client", "client_id"}
"""Columns that follow from the exchange, not from its bodies."""
_BODIES = (
    "api_key", "api_version", "request_body", "response_body", "request_embedded", "response_embedded",
)  # fmt: skip
_FACT = tuple(Column(name, "string", "") for name in ("told_by", "cluster", "topic_id", "topic"))


class _Told(NamedTuple):
    """A statement about names, with the columns of ``_FACT``."""

    told_by: str
    cluster: str | None
    topic_id: str | None = None
    topic: str | None = None


def _events(item: Said) -> Iterable[object]:
    return offsets.offset_events(item.api_key, item.api_version, item.request, item.response, item.client_id)


def _batches(item: Said) -> Iterable[object]:
    return said.record_batch_rows(item.api_key, item.request, item.response)


def _states(item: Said) -> Iterable[object]:
    return state.state_events(
        item.api_key, item.api_version, item.request, item.response, item.request_embedded, item.response_embedded
    )


def _facts(item: Said) -> Iterator[_Told]:
    cluster = said.cluster_id(item.api_key, item.response)
    if cluster is not None:
        brokers = (
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            for host, port in said.cluster_addresses(item.api_key, item.response)
        )
        for server in sorted({item.server, *brokers}):
            yield _Told(server, cluster)
    for topic in said.topic_ids(item.api_key, item.response):
        yield _Told(item.server, cluster, topic.topic_id, topic.topic)


class _Part(NamedTuple):
    """One kind of statement: which apis make it, its columns, and what extracts it from an exchange."""

    apis: frozenset[int]
    columns: tuple[Column, ...]
    extract: Callable[[Said], Iterable[object]]


def _own(table: Table) -> tuple[Column, ...]:
    return tuple(column for column in table.columns if column.name not in _OURS)


_PARTS = {
    "event": _Part(frozenset(offsets.OFFSET_APIS), _own(OFFSET_EVENTS), _events),
    "batch": _Part(frozenset(said.BATCH_APIS), _own(RECORD_BATCHES), _batches),
    "state": _Part(frozenset(state.STATE_APIS), _own(STATE_EVENTS), _states),
    "fact": _Part(frozenset(said.FACT_APIS), _FACT, _facts),
}


def _said(batch: pa.RecordBatch, context: list[str]) -> Iterator[pa.RecordBatch]:
    """For each kind of statement a batch with its rows, in which the columns of the other kinds are null."""
    import pyarrow as pa  # noqa: PLC0415 - on the worker only

    from pipeline.arrow import arrow_type  # noqa: PLC0415

    types = {
        name: pa.struct([(column.name, arrow_type(column.type)) for column in part.columns])
        for name, part in _PARTS.items()
    }
    values = {name: attrgetter(*(column.name for column in part.columns)) for name, part in _PARTS.items()}
    found: dict[str, list[Any]] = {name: [] for name in _PARTS}
    sources: dict[str, list[int]] = {name: [] for name in _PARTS}
    columns = (batch.column(name).to_pylist() for name in ("client_id", "server", *_BODIES))
    for number, row in enumerate(zip(*columns, strict=True)):
        item = _parsed(*row)
        for name, part in _PARTS.items():
            if item.api_key in part.apis:
                rows = [values[name](one) for one in part.extract(item)]
                found[name] += rows
                sources[name] += [number] * len(rows)
    for name, rows in found.items():
        if rows:
            fields = [
                pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), types[name], strict=True)
            ]
            told = pa.StructArray.from_arrays(fields, fields=list(types[name]))
            others = [told if kind == name else pa.nulls(len(rows), types[kind]) for kind in types]
            who = batch.select(context).take(pa.array(sources[name], pa.int32()))
            yield pa.RecordBatch.from_arrays([*who.columns, *others], names=[*context, *types])


def _parsed(client_id: str | None, server: str, api_key: int, api_version: int | None, *texts: str | None) -> Said:
    parsed = [None if text is None else orjson.loads(text) for text in texts]
    return Said(api_key, -1 if api_version is None else api_version, client_id, server, *parsed)


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
