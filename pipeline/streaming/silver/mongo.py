"""What do MongoDB exchanges state? ``silver.exchanges`` → ``silver.mongo_commands``, ``silver.mongo_handshakes``.

A client states its name in the first message of a connection only. Commands get it from the table of handshakes, and
those that were written before their handshake get it later: the rows do not depend on how the stream was cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import TYPE_CHECKING

from delta.tables import DeltaTable
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.statements.mongodb import (
    CONTEXT,
    FROM_HANDSHAKE,
    HALVES,
    REMEMBERED_DAYS,
    Extract,
    command_values,
    handshake_values,
    statements,
)
from pipeline.streaming.silver.offset_events import address
from pipeline.streaming.storage.lake import Lake, read_table, struct_type
from pipeline.streaming.storage.sinks import Batch, append, day_of
from pipeline.tables import MONGO_COMMANDS, MONGO_HANDSHAKES, Table

if TYPE_CHECKING:
    import pyarrow as pa


def write_commands(exchanges: DataFrame, lake: Lake, batch: Batch) -> None:
    """Append what a batch of completed exchanges states, and name earlier commands whose handshake it brings.

    Repeating it after a crash gives the same rows.
    """
    handshakes = handshake_rows(exchanges).persist()
    try:
        since_us = handshakes.agg(F.unix_micros(F.min("ts"))).collect()[0][0]
        if since_us is not None:
            append(handshakes, lake, MONGO_HANDSHAKES, batch)
        first = exchanges.where("protocol = 'mongodb'").agg(F.min("date")).collect()[0][0]
        append(command_rows(exchanges, lake, first), lake, MONGO_COMMANDS, batch)
        if since_us is not None:
            _name_earlier(lake, handshakes.select("connection_id"), since_us)
    finally:
        handshakes.unpersist()


def command_rows(exchanges: DataFrame, lake: Lake, first: date) -> DataFrame:
    """Rows of ``silver.mongo_commands`` from completed exchanges; applications as in ``silver.mongo_handshakes``.

    Args:
        exchanges: rows of ``silver.exchanges``.
        lake: where the tables are.
        first: the first day of these exchanges.
    """
    commands = _map(exchanges, MONGO_COMMANDS, command_values, FROM_HANDSHAKE).alias("t")
    connections = exchanges.where("protocol = 'mongodb'").select("connection_id")
    known = _known(lake, connections, first - timedelta(days=REMEMBERED_DAYS)).alias("s")
    return commands.join(known, _is_its(), "left").select("t.*", *(f"s.{name}" for name in FROM_HANDSHAKE))


def handshake_rows(exchanges: DataFrame) -> DataFrame:
    """Rows of ``silver.mongo_handshakes`` from completed exchanges."""
    hinted = exchanges.where(F.col("request_body").contains('"driver":'))
    return _map(hinted, MONGO_HANDSHAKES, handshake_values)


def _is_its() -> SparkColumn:
    """Whether the handshake ``s`` is that of the command ``t``."""
    is_recent = F.date_diff("t.date", "s.date") <= REMEMBERED_DAYS
    return (F.col("t.connection_id") == F.col("s.connection_id")) & is_recent


def _known(lake: Lake, connections: DataFrame, first: date) -> DataFrame:
    """The first handshake of each of ``connections``, from the day ``first`` on: servers refuse another one."""
    handshakes = read_table(connections.sparkSession, lake, MONGO_HANDSHAKES).where(F.col("date") >= F.lit(first))
    in_order = Window.partitionBy("connection_id").orderBy("ts", "exchange_id")
    ours = handshakes.join(connections.distinct(), "connection_id", "left_semi")
    numbered = ours.withColumn("_n", F.row_number().over(in_order))
    return numbered.where("_n = 1").select("connection_id", "date", *FROM_HANDSHAKE)


def _name_earlier(lake: Lake, connections: DataFrame, since_us: int) -> None:
    """Give commands what their handshake states, if it landed after them.

    Args:
        lake: where the tables are.
        connections: those whose handshake is new.
        since_us: the first of these handshakes, µs since the epoch; their commands came later.
    """
    spark, first = connections.sparkSession, day_of(since_us)
    known = _known(lake, connections, first)
    since = F.timestamp_micros(F.lit(since_us))
    later = (F.col("t.date") >= F.lit(first)) & (F.col("t.ts") >= since)
    differs: SparkColumn = F.lit(False)
    for name in FROM_HANDSHAKE:
        differs = differs | ~F.col(f"t.{name}").eqNullSafe(F.col(f"s.{name}"))
    place = _is_its() & later & differs
    if read_table(spark, lake, MONGO_COMMANDS).alias("t").join(F.broadcast(known.alias("s")), place).isEmpty():
        return
    (
        DeltaTable.forPath(spark, lake.path(MONGO_COMMANDS)).alias("t").merge(known.alias("s"), place)
        .whenMatchedUpdate(set={name: F.col(f"s.{name}") for name in FROM_HANDSHAKE})
        .execute()
    )  # fmt: skip


def _map(exchanges: DataFrame, table: Table, extract: Extract, without: tuple[str, ...] = ()) -> DataFrame:
    """Run ``extract`` over MongoDB exchanges; its values beside the exchange's own columns.

    By Arrow, which carries these columns through as they are: pandas would make floats of integers with nulls.
    """
    places = {
        "server": address("server_ip", "server_port"),
        "client": address("client_ip", "client_port"),
        "opcode": F.col("api_key"),
        "request_id": F.col("correlation_id"),
    }
    columns = [c for c in table.columns if c.name not in without]
    context = [c.name for c in columns if c.name in CONTEXT]
    schema = struct_type([c for c in columns if c.name in context] + [c for c in columns if c.name not in context])
    inputs = exchanges.where("protocol = 'mongodb'").select(
        *(places.get(name, F.col(name)).alias(name) for name in context), *HALVES
    )

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield statements(batch, table, context, extract, without)

    return inputs.mapInArrow(run, schema)
