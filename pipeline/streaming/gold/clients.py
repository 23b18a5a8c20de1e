"""Which software speaks to the brokers, in which versions, and does Kafka 4 still understand it? ``gold.clients``.

Clients of MongoDB stand beside those of Kafka, by the name of their application; they state no versions of commands.
The inventory is small, so it is merged in plain Python on the driver: unions, minima and maxima, which do not depend
on how the stream was cut into batches.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.clients import COLUMNS, Inventory, inventory_row, parse_version, put, resolved, take
from pipeline.analysis.facts import Facts
from pipeline.streaming.silver.groups import host_of
from pipeline.streaming.silver.offset_events import address
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.streaming.storage.sinks import overwrite, since
from pipeline.tables import CLIENTS, EXCHANGES, MONGO_COMMANDS, STATE_EVENTS

_SCHEMA = (
    "cluster string, client_id string, client_ip string, software array<string>, api_versions array<string>, "
    "oldest_versions array<string>, breaks_on_kafka_4 boolean, removed_versions array<string>, first_us bigint, "
    "last_us bigint, protocol string"
)


def refresh_clients(spark: SparkSession, lake: Lake, facts: Facts, since_us: int) -> None:
    """Take in what clients stated from ``since_us`` (µs since the epoch) on."""
    later = since(since_us)
    who = ("server", "client_id", "client_ip")
    asked = (
        read_table(spark, lake, EXCHANGES)
        .where(later & F.expr("protocol = 'kafka' AND request_ts IS NOT NULL AND api_name IS NOT NULL"))
        .select("*", address("server_ip", "server_port").alias("server"))
        .groupBy(*who, "api_name", "api_version")
        .agg(*_seen())
    )
    software = (
        read_table(spark, lake, STATE_EVENTS)
        .where(later & (F.col("kind") == "software"))
        .withColumn("client_ip", F.regexp_replace(host_of("client"), r"[\[\]]", ""))
        .groupBy(*who, F.concat_ws(" ", "software_name", "software_version").alias("software"))
        .agg(*_seen())
    )
    commands = (
        read_table(spark, lake, MONGO_COMMANDS)
        .where(later & F.coalesce("driver", "application").isNotNull())
        .withColumnRenamed("application", "client_id")
        # A library around the driver adds its name and version behind a bar, an extension a name only.
        .groupBy(*who, F.regexp_replace(F.concat_ws(" ", "driver", "driver_version"), r"\|+$", "").alias("software"))
        .agg(*_seen())
        .withColumn("protocol", F.lit("mongodb"))
    )
    held = read_table(spark, lake, CLIENTS).select(
        *who[1:],
        F.col("cluster").alias("server"),
        F.struct("software", "api_versions").alias("held"),
        F.unix_micros("first_ts").alias("first_us"),
        F.unix_micros("last_ts").alias("last_us"),
        "protocol",
    )
    parts = (asked, software, commands, held)
    rows = reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), parts).collect()
    before: Inventory = {}
    for row in rows:
        if row.held is not None:
            known = put(before, (row.server, row.client_id, row.client_ip), row)
            known.software.update(row.held.software)
            known.versions.update(map(parse_version, row.held.api_versions))
    after = resolved(before, facts)
    for row in rows:
        if row.held is None:
            take(after, row, facts)
    if after != before:
        rows_after = [inventory_row(key, client) for key, client in sorted(after.items(), key=str)]
        frame = spark.createDataFrame([tuple(row[name] for name in COLUMNS) for row in rows_after], _SCHEMA)
        times = {"first_ts": F.timestamp_micros("first_us"), "last_ts": F.timestamp_micros("last_us")}
        overwrite(frame.withColumns(times), lake, CLIENTS)


def _seen() -> tuple[Column, Column]:
    return F.unix_micros(F.min("ts")).alias("first_us"), F.unix_micros(F.max("ts")).alias("last_us")
