"""Which software speaks to the brokers, in which versions, and does Kafka 4 still understand it? ``gold.clients``.

Clients of MongoDB stand beside those of Kafka, by the name of their application; they tell no versions of commands.
The inventory is small, so it is merged in plain Python on the driver: unions, minima and maxima, which do not depend
on how the stream was cut into batches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.kafka.schema.releases import is_removed
from decoder.kafka.schema.table import api_names
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
_VERSION = re.compile(r"(.+) v(\d+)")


@dataclass(slots=True)
class Client:
    """What is known of a client; ``versions`` are (api name, version), times µs since the epoch."""

    first_us: int
    last_us: int
    protocol: str = "kafka"
    software: set[str] = field(default_factory=set)
    versions: set[tuple[str, int]] = field(default_factory=set)

    def removed(self) -> list[tuple[str, int]]:
        """The request versions among them that the newest Kafka refuses."""
        keys = {name: key for key, name in api_names().items()}
        return sorted((api, version) for api, version in self.versions if is_removed(keys.get(api, -1), version))

    def oldest(self) -> list[tuple[str, int]]:
        """The lowest version of each api."""
        lowest: dict[str, int] = {}
        for api, version in self.versions:
            lowest[api] = min(version, lowest.get(api, version))
        return sorted(lowest.items())


Inventory = dict[tuple[str, str, str], Client]
"""By cluster, client_id and address."""


def refresh_clients(spark: SparkSession, lake: Lake, facts: Facts, since_us: int) -> None:
    """Take in what clients said from ``since_us`` (µs since the epoch) on."""
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
            known = _put(before, (row.server, row.client_id, row.client_ip), row)
            known.software.update(row.held.software)
            known.versions.update(map(_parse, row.held.api_versions))
    after = _resolved(before, facts)
    for row in rows:
        if row.held is None:
            client = _put(after, (facts.cluster_at(row.server, row.first_us), row.client_id or "", row.client_ip), row)
            if row.software is not None:
                client.software.add(row.software)
            elif row.api_version is not None:
                client.versions.add((row.api_name, row.api_version))
    if after != before:
        frame = spark.createDataFrame([_row(key, client) for key, client in sorted(after.items(), key=str)], _SCHEMA)
        times = {"first_ts": F.timestamp_micros("first_us"), "last_ts": F.timestamp_micros("last_us")}
        overwrite(frame.withColumns(times), lake, CLIENTS)


def _seen() -> tuple[Column, Column]:
    return F.unix_micros(F.min("ts")).alias("first_us"), F.unix_micros(F.max("ts")).alias("last_us")


def _put(inventory: Inventory, key: tuple[str, str, str], seen: Row | Client) -> Client:
    client = inventory.setdefault(key, Client(seen.first_us, seen.last_us, seen.protocol or "kafka"))
    client.first_us, client.last_us = min(client.first_us, seen.first_us), max(client.last_us, seen.last_us)
    return client


def _resolved(inventory: Inventory, facts: Facts) -> Inventory:
    """The same, with the clusters whose id was learned since."""
    found: Inventory = {}
    for (cluster, client_id, address_), seen in inventory.items():
        client = _put(found, (facts.cluster_at(cluster, seen.first_us), client_id, address_), seen)
        client.software |= seen.software
        client.versions |= seen.versions
    return found


def _parse(text: str) -> tuple[str, int]:
    found = _VERSION.fullmatch(text)
    return (found[1], int(found[2])) if found else (text, -1)


def _texts(versions: Iterable[tuple[str, int]]) -> list[str]:
    return [f"{api} v{version}" for api, version in sorted(versions)]


def _row(key: tuple[str, str, str], client: Client) -> tuple[object, ...]:
    removed = _texts(client.removed())
    return (
        *key, sorted(client.software), _texts(client.versions), _texts(client.oldest()), bool(removed), removed,
        client.first_us, client.last_us, client.protocol,
    )  # fmt: skip
