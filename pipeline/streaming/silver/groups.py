"""Which group does an event belong to, and when does a commit inside a transaction count? From other exchanges."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.kafka.facts.state import GROUP_KINDS
from pipeline.analysis.hours import GROUP_KNOWN_US, HOUR_US
from pipeline.streaming.storage.hours import first_hour_column, hour_column


def with_group(events: DataFrame, states: DataFrame) -> DataFrame:
    """Fill ``group_id``: a Fetch names no group, so its client's other requests decide, if they agree.

    A request counts for its hour (see :mod:`pipeline.streaming.storage.hours`) and the next ones, up to
    ``GROUP_KNOWN_US``. First those of the same connection, then those of the same host and client_id (clients keep a
    connection of its own to the group's coordinator). Where they name several groups, or none, the group stays empty.

    Args:
        events: rows of ``silver.offset_events`` of whole hours.
        states: rows of ``silver.state_events`` from ``GROUP_KNOWN_US`` before them on.
    """
    naming = states.where(F.col("kind").isin(*GROUP_KINDS) & (F.col("group_id") != "")).select(
        "server", "client", "client_id", F.col("group_id").alias("group"),
        first_hour_column("ts").alias("first"), hour_column("ts").alias("own"),
    )  # fmt: skip
    hours = F.explode(F.sequence("first", F.col("own") + GROUP_KNOWN_US, F.lit(HOUR_US)))
    seen = naming.distinct().withColumns({"hour": hours, "client_ip": host_of("client")})
    by_connection = _unambiguous(seen, ("hour", "server", "client"), "connection_group")
    by_client = _unambiguous(seen.where("client_id IS NOT NULL"), ("hour", "client_ip", "client_id"), "client_group")
    is_fetch = F.col("kind").isin("fetched", "fetch_rejected", "fetch_forgotten") & F.col("isolation_level").isNotNull()
    inferred = F.when(is_fetch, F.coalesce("connection_group", "client_group"))
    return (
        events.withColumns({"hour": hour_column("ts"), "client_ip": host_of("client")})
        .join(F.broadcast(by_connection), ["hour", "server", "client"], "left")
        .join(F.broadcast(by_client), ["hour", "client_ip", "client_id"], "left")
        .withColumn("group_id", F.coalesce("group_id", inferred, F.lit("")))
    )


def host_of(column: str) -> Column:
    """The address without its port."""
    return F.regexp_replace(column, r":\d+$", "")


def _unambiguous(seen: DataFrame, by: tuple[str, ...], name: str) -> DataFrame:
    groups = seen.groupBy(*by).agg(F.collect_set("group").alias("groups"))
    return groups.where(F.size("groups") == 1).select(*by, F.col("groups")[0].alias(name))


def settled_commits(events: DataFrame, states: DataFrame) -> DataFrame:
    """Offsets committed by TxnOffsetCommit, at the time of the EndTxn that ends their transaction (KIP-98).

    An InitProducerId ends it as well: whoever begins anew aborts what an earlier process has left open.

    Returns:
        The last ``txn_committed`` event of each transaction, group and partition with kind ``txn_applied`` (committed)
        or ``txn_discarded`` (aborted), and date, ts and exchange_id of the EndTxn or InitProducerId.
    """
    end = F.struct("ts", "exchange_id", ((F.col("kind") == "txn_end") & F.col("committed")).alias("commits"))
    ends = states.where("kind IN ('txn_end', 'txn_init') AND error_code = 0")
    marked = ends.select("cluster", "ts", "exchange_id", "transactional_id", end.alias("end"))
    pending = events.where("kind = 'txn_committed'").withColumn("event_ordinal", F.col("ordinal"))
    # From the newest on: a frame that reaches to the end is gone through anew for every row.
    later = (
        Window.partitionBy("cluster", "transactional_id")
        .orderBy(F.desc("ts"), F.desc("exchange_id"), F.desc("event_ordinal"))
        .rowsBetween(Window.unboundedPreceding, 0)
    )
    both = pending.unionByName(marked, allowMissingColumns=True)
    ended = both.withColumn("end", F.last("end", ignorenulls=True).over(later)).where("kind IS NOT NULL")
    newest = Window.partitionBy(
        "cluster", "transactional_id", "end", "group_id", "topic", "incarnation", "partition"
    ).orderBy(F.desc("ts"), F.desc("exchange_id"), F.desc("event_ordinal"))
    last = ended.where("end IS NOT NULL").withColumn("_n", F.row_number().over(newest)).where("_n = 1").drop("_n")
    return last.withColumns(
        {
            "kind": F.when(F.col("end.commits"), "txn_applied").otherwise("txn_discarded"),
            "ts": F.col("end.ts"),
            "exchange_id": F.col("end.exchange_id"),
            "date": F.to_date("end.ts"),
        }
    )
