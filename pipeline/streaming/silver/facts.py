"""The facts of :mod:`pipeline.analysis.facts` in the lake: ``silver.brokers`` and ``silver.topics``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.facts import Facts, Seen
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.lake import Lake, read_table, snapshot
from pipeline.streaming.storage.sinks import overwrite
from pipeline.tables import BROKERS, TOPICS


def span_rows(spark: SparkSession, facts: Facts, servers: Iterable[str] | None = None) -> DataFrame:
    """The spans of ``servers`` (None: of all) as rows ``span_server``, ``from_ts``, ``until_ts``, ``span_cluster``."""
    frame = spark.createDataFrame(
        facts.spans(servers), "span_server string, from_us bigint, until_us bigint, span_cluster string"
    )
    return frame.select(
        "span_server",
        F.timestamp_micros("from_us").alias("from_ts"),
        F.timestamp_micros("until_us").alias("until_ts"),
        "span_cluster",
    )


def load_facts(spark: SparkSession, lake: Lake) -> Facts:
    """The facts that ``silver.brokers`` and ``silver.topics`` hold; read only if they have changed."""
    versions = _versions(spark, lake)
    facts = _NEWEST.get(versions)
    return facts if facts is not None else _remembered(versions, _read_facts(spark, lake))


def save_facts(spark: SparkSession, lake: Lake, facts: Facts, before: Facts) -> None:
    """Write what differs from ``before``."""
    writes = []
    if facts.brokers != before.brokers:
        rows = [(server, cluster, s.first_us, s.last_us) for (server, cluster), s in sorted(facts.brokers.items())]
        frame = spark.createDataFrame(rows, "server string, cluster string, first_us bigint, last_us bigint")
        writes.append(partial(overwrite, _timed(frame), lake, BROKERS))
    if facts.topics != before.topics:
        named = [
            (c, i, name, first, facts.topics[c, i].last_us, first, until, number)
            for c, name, i, number, first, until in facts.incarnations()
        ]
        schema = (
            "cluster string, topic_id string, topic string, first_us bigint, last_us bigint, from_us bigint, "
            "until_us bigint, incarnation int"
        )
        valid = {"valid_from": F.timestamp_micros("from_us"), "valid_to": F.timestamp_micros("until_us")}
        named_rows = _timed(spark.createDataFrame(named, schema)).withColumns(valid)
        writes.append(partial(overwrite, named_rows, lake, TOPICS))
    side_by_side(*writes)
    if writes:
        _remembered(_versions(spark, lake), facts)


_Versions = tuple[tuple[str, int], ...]
"""Of each of the two tables its id, which a table made anew does not share, and the number of its newest commit."""

_NEWEST: dict[_Versions, Facts] = {}
"""What the tables held when they were last read or written. Every batch of every query asks; answers seldom change."""


def _versions(spark: SparkSession, lake: Lake) -> _Versions:
    now = [snapshot(spark, lake, table) for table in (BROKERS, TOPICS)]
    return tuple((state.metadata().id(), state.version()) for state in now)


def _remembered(versions: _Versions, facts: Facts) -> Facts:
    _NEWEST.clear()
    _NEWEST[versions] = facts
    return facts


def _read_facts(spark: SparkSession, lake: Lake) -> Facts:
    times = (F.unix_micros("first_ts").alias("first_us"), F.unix_micros("last_ts").alias("last_us"))
    brokers = read_table(spark, lake, BROKERS).select(
        F.col("server").alias("a"), "cluster", F.lit(None).alias("topic"), *times
    )
    topics = read_table(spark, lake, TOPICS).select(F.col("topic_id").alias("a"), "cluster", "topic", *times)
    rows = brokers.unionByName(topics).collect()
    return Facts(
        {(r.a, r.cluster): Seen(r.cluster, r.first_us, r.last_us) for r in rows if r.topic is None},
        {(r.cluster, r.a): Seen(r.topic, r.first_us, r.last_us) for r in rows if r.topic is not None},
    )


def _timed(frame: DataFrame) -> DataFrame:
    return frame.withColumns({"first_ts": F.timestamp_micros("first_us"), "last_ts": F.timestamp_micros("last_us")})
