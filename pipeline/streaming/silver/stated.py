"""What completed exchanges state: rows of the event tables and of MongoDB's, found in one pass over the bodies.

Bodies are large and parsing them is the work. Here, where the exchanges are in memory, or by Spark's workers, batch by
batch; the functions (:mod:`pipeline.analysis.statements.exchanges`) are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import StructField, StructType

from pipeline.analysis.cluster_catalog import ClusterCatalog, Fact
from pipeline.analysis.derive import Gathered, gathered
from pipeline.analysis.fit import schema_of
from pipeline.analysis.inferred import with_inferred
from pipeline.analysis.statements.exchanges import TABLES, KafkaStatements, mongodb_statements, statement_rows
from pipeline.analysis.statements.kafka import CONTEXT, FACT, PARTS
from pipeline.lake.arrow import arrow_schema
from pipeline.streaming.spark.bundles import map_tables
from pipeline.streaming.storage.lake import struct_type
from pipeline.streaming.storage.lake_io import Appended, Made
from pipeline.tables import (
    GAPS,
    MONGO_COMMANDS,
    MONGO_HANDSHAKES,
    OFFSET_EVENTS,
    RECORD_BATCHES,
    STATE_EVENTS,
    Column,
    Table,
)

_FACT = (*FACT, Column("first_us", "bigint", ""), Column("last_us", "bigint", ""))
"""Of each Fact, in its order."""
STEP = "statements of exchanges"
"""What fails where these functions do."""
NAMED_AT_MOST = 200_000
"""Statements of one batch that clusters, and names of topics known by their ids alone, are inferred from."""


@dataclass(frozen=True, slots=True)
class Stated:
    """What some exchanges state.

    Attributes:
        catalog: merges what the exchanges state of clusters and topic ids into an earlier catalog.
        events: gives, with that, the rows of each event table that has any.
        commands: rows of ``silver.mongo_commands``, without what handshakes state; None if there is none.
        handshakes: rows of ``silver.mongo_handshakes``; None likewise.
    """

    catalog: Callable[[ClusterCatalog], ClusterCatalog]
    events: Callable[[ClusterCatalog], Sequence[tuple[Table, Appended]]]
    commands: Appended | None
    handshakes: Made | None


def gathered_here(complete: pa.Table, known: ClusterCatalog) -> Gathered:
    """What rows of ``silver.exchanges`` hold that are in memory, with what was known before."""
    return gathered(complete, schema_of(GAPS).empty_table(), known)


def stated_here(new: Gathered) -> Stated:
    """What was gathered of exchanges states."""
    events: list[tuple[Table, Made]] = [
        (table, rows)
        for table, rows in ((OFFSET_EVENTS, new.events), (RECORD_BATCHES, new.batches), (STATE_EVENTS, new.states))
        if rows.num_rows
    ]
    commands = new.commands if new.commands.num_rows else None
    handshakes = new.handshakes if new.handshakes.num_rows else None
    return Stated(lambda _: new.catalog, lambda _: events, commands, handshakes)


@contextmanager
def stated_apart(complete: DataFrame) -> Iterator[Stated]:
    """The same of rows that Spark's workers look at; what they find is kept until the end of the block."""
    rows = _statement_frame(complete).persist()
    of_mongodb = complete.where("protocol = 'mongodb'")
    try:
        counted = rows.agg(*(F.count(part).alias(part) for part in PARTS)).collect()[0]
        stating = map_tables(rows.where("fact IS NOT NULL"), _facts, struct_type(_FACT), STEP)
        facts = [Fact(*row) for row in stating.collect()] if counted.fact else []

        def events(known: ClusterCatalog) -> list[tuple[Table, Made]]:
            return [
                (table, map_tables(rows, _table_of(part, known), struct_type(table.columns), STEP))
                for part, table in TABLES.items()
                if counted[part]
            ]

        has_commands = not of_mongodb.isEmpty()
        handshakes = map_tables(
            of_mongodb.where(F.col("request_body").contains('"driver":')),
            lambda some: mongodb_statements(some)[1],
            struct_type(MONGO_HANDSHAKES.columns),
            STEP,
        )
        commands = map_tables(
            of_mongodb, lambda some: mongodb_statements(some)[0], struct_type(MONGO_COMMANDS.columns), STEP
        )
        yield Stated(
            lambda before: _with_inferred(before.merged(facts) if facts else before, rows),
            events,
            commands if has_commands else None,
            handshakes if has_commands and not handshakes.isEmpty() else None,
        )
    finally:
        rows.unpersist()


def _with_inferred(known: ClusterCatalog, rows: DataFrame) -> ClusterCatalog:
    """This catalog, with the clusters and names that the first of many statements show."""
    names = F.array(*map(F.lit, known.names)).cast("array<string>")
    servers = F.array(*map(F.lit, sorted({server for server, _ in known.brokers}))).cast("array<string>")
    of_event = F.col("event.topic_id").isNotNull() & F.col("event.topic").isNull()
    of_member = F.size(F.array_except("subscription.topic_ids", names)) > 0
    of_server = F.col("event").isNotNull() & ~F.array_contains(servers, F.col("server"))
    if rows.where(of_event & ~F.array_contains(names, F.col("event.topic_id")) | of_member | of_server).isEmpty():
        return known
    first = rows.where("event IS NOT NULL OR subscription IS NOT NULL").limit(NAMED_AT_MOST).toArrow()
    stated = KafkaStatements.in_columns(first)
    return with_inferred(known, stated.table("event", known), stated.subscriptions())


def _statement_frame(complete: DataFrame) -> DataFrame:
    """All that Kafka's exchanges state, as :func:`pipeline.analysis.statements.exchanges.statement_rows` gives it."""
    context = struct_type(Column(name, "bigint" if name == "ts_us" else "string", "") for name in CONTEXT)
    parts = [StructField(name, struct_type(part.columns)) for name, part in PARTS.items()]
    output = StructType([*context.fields, *parts])
    return map_tables(complete.where("protocol = 'kafka'"), statement_rows, output, STEP)


def _facts(rows: pa.Table) -> pa.Table:
    return facts_table(KafkaStatements.in_columns(rows).facts())


def facts_table(facts: Iterable[Fact]) -> pa.Table:
    """ClusterCatalog as rows with their attributes."""
    found = [astuple(fact) for fact in facts]
    names = [column.name for column in _FACT]
    return pa.Table.from_pylist([dict(zip(names, fact, strict=True)) for fact in found], arrow_schema(_FACT))


def _table_of(part: str, known: ClusterCatalog) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: KafkaStatements.in_columns(rows).table(part, known)
