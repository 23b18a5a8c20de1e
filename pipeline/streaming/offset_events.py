"""What do completed exchanges say of offsets, records, state and names? ``silver.exchanges`` → the event tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import StructType

from decoder.kafka import facts as said
from decoder.kafka import offsets, state
from pipeline.streaming.facts import Fact, Facts
from pipeline.streaming.lake import Lake, read_table, struct_type
from pipeline.tables import OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, Table

if TYPE_CHECKING:
    import pandas as pd

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


def address(ip: str, port: str) -> Column:
    """``ip:port``, with brackets around an IPv6 address."""
    host = F.when(F.col(ip).contains(":"), F.concat(F.lit("["), ip, F.lit("]"))).otherwise(F.col(ip))
    return F.concat_ws(":", host, F.col(port).cast("string"))


def event_rows(exchanges: DataFrame, facts: Facts) -> DataFrame:
    """Rows of ``silver.offset_events`` from completed exchanges."""
    columns = [c for c in OFFSET_EVENTS.columns if c.name not in _OURS]
    rows = _map(exchanges, offsets.OFFSET_APIS, struct_type(columns), _events)
    return _resolved(rows, facts, OFFSET_EVENTS)


def batch_rows(exchanges: DataFrame, facts: Facts) -> DataFrame:
    """Rows of ``silver.record_batches`` from completed exchanges."""
    columns = [c for c in RECORD_BATCHES.columns if c.name not in _OURS]
    rows = _map(exchanges, said.BATCH_APIS, struct_type(columns), _batches)
    return _resolved(rows, facts, RECORD_BATCHES)


def state_rows(exchanges: DataFrame, facts: Facts) -> DataFrame:
    """Rows of ``silver.state_events`` from completed exchanges."""
    columns = [c for c in STATE_EVENTS.columns if c.name not in _OURS]
    return _resolved(_map(exchanges, state.STATE_APIS, struct_type(columns), _states), facts, STATE_EVENTS)


def collect_facts(exchanges: DataFrame) -> list[Fact]:
    """What completed exchanges say of clusters and topic ids, each statement once."""
    schema = StructType.fromDDL("told_by string, cluster string, topic_id string, topic string")
    rows = _map(exchanges, said.FACT_APIS, schema, _facts)
    once = rows.groupBy("told_by", "cluster", "topic_id", "topic").agg(F.min("ts_us"), F.max("ts_us"))
    return [Fact(*row) for row in once.collect()]


_OURS = {"date", "exchange_id", "connection_id", "ts", "cluster", "server", "client", "client_id"}
"""Columns that follow from the exchange, not from its bodies."""

_Extract = Callable[[Said], Iterable[Mapping[str, Any]]]


def _told(row: Any) -> dict[str, Any]:
    """The fields of a dataclass with slots. asdict() copies in depth, which takes longer than making the row did."""
    return {name: getattr(row, name) for name in row.__slots__}


def _events(item: Said) -> Iterator[Mapping[str, Any]]:
    for event in offsets.offset_events(item.api_key, item.api_version, item.request, item.response, item.client_id):
        yield _told(event)


def _batches(item: Said) -> Iterator[Mapping[str, Any]]:
    for row in said.record_batch_rows(item.api_key, item.request, item.response):
        yield _told(row)


def _states(item: Said) -> Iterator[Mapping[str, Any]]:
    for event in state.state_events(
        item.api_key, item.api_version, item.request, item.response, item.request_embedded, item.response_embedded
    ):
        yield _told(event)


def _facts(item: Said) -> Iterator[Mapping[str, Any]]:
    cluster = said.cluster_id(item.api_key, item.response)
    if cluster is not None:
        brokers = (
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            for host, port in said.cluster_addresses(item.api_key, item.response)
        )
        for server in sorted({item.server, *brokers}):
            yield {"told_by": server, "cluster": cluster}
    for topic in said.topic_ids(item.api_key, item.response):
        yield {"told_by": item.server, "cluster": cluster, "topic_id": topic.topic_id, "topic": topic.topic}


def _map(exchanges: DataFrame, apis: Iterable[int], columns: StructType, extract: _Extract) -> DataFrame:
    """Run ``extract`` over the exchanges of ``apis``; its rows with the columns of ``_CONTEXT`` in front."""
    inputs = exchanges.where((F.col("protocol") == "kafka") & F.col("api_key").isin(*apis)).select(
        "exchange_id",
        "connection_id",
        F.unix_micros(F.coalesce("response_ts", "request_ts")).alias("ts_us"),
        address("server_ip", "server_port").alias("server"),
        address("client_ip", "client_port").alias("client"),
        "client_id",
        "api_key",
        "api_version",
        "request_body",
        "response_body",
        "request_embedded",
        "response_embedded",
    )
    context = StructType.fromDDL(_CONTEXT)
    schema = StructType([*context.fields, *columns.fields])
    names = schema.names

    def run(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import pandas as pd  # noqa: PLC0415 - on the worker only

        for batch in batches:
            rows = [
                (*(getattr(row, name) for name in context.names), *map(found.get, columns.names))
                for row in batch.itertuples(index=False)
                for found in extract(_parsed(row))
            ]
            yield pd.DataFrame(rows, columns=names, dtype=object)

    return inputs.mapInPandas(run, schema)


def _parsed(row: Any) -> Said:
    texts = (row.request_body, row.response_body, row.request_embedded, row.response_embedded)
    parsed = [None if text is None else orjson.loads(text) for text in texts]
    version = -1 if row.api_version is None or row.api_version != row.api_version else int(row.api_version)
    return Said(int(row.api_key), version, row.client_id, row.server, *parsed)


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
    spans = F.broadcast(facts.spans(rows.sparkSession))
    return (
        rows.join(spans, _in_span(F.col("server"), F.col("ts")), "left")
        .withColumn("cluster", F.coalesce("span_cluster", "server"))
        .drop(*spans.columns)
    )


def _in_span(server: Column, ts: Column) -> Column:
    return (server == F.col("span_server")) & (ts >= F.col("from_ts")) & (ts < F.col("until_ts"))


def rename_earlier(spark: SparkSession, lake: Lake, facts: Facts, before: Facts) -> None:
    """Give rows written earlier the cluster or topic name that was learned since.

    Run before the new facts are saved: a crash in between repeats it, and nothing else needs to remember.
    """
    servers, names = facts.servers_changed(before), facts.names_learned(before)
    for table in (OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS):
        if names:
            _rename_topics(spark, lake, table, names)
        if servers:
            _rename_clusters(spark, lake, table, facts.spans(spark, servers))


def _rename_topics(spark: SparkSession, lake: Lake, table: Table, names: Mapping[str, str]) -> None:
    missing = F.col("topic").isNull() & F.col("topic_id").isin(list(names))
    if not read_table(spark, lake, table).where(missing).isEmpty():
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
