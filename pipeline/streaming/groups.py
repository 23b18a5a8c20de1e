"""Which group does an event belong to, and when does a commit inside a transaction count? From other exchanges."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.streaming.facts import Facts
from pipeline.streaming.offset_events import address, with_cluster

_OFFSET_COMMIT, _OFFSET_FETCH, _JOIN_GROUP, _HEARTBEAT, _SYNC_GROUP, _CONSUMER_GROUP_HEARTBEAT = 8, 9, 11, 12, 14, 68
GROUP_APIS = (_OFFSET_COMMIT, _OFFSET_FETCH, _JOIN_GROUP, _HEARTBEAT, _SYNC_GROUP, _CONSUMER_GROUP_HEARTBEAT)
END_TXN = 26


def with_group(events: DataFrame, exchanges: DataFrame) -> DataFrame:
    """Fill ``group_id``: a Fetch names no group, so its client's other requests of the same day tell, if they agree.

    First those of the same connection, then those of the same host and client_id (clients keep a connection of its own
    to the group's coordinator). Where they name several groups, or none, the group stays empty.

    Args:
        events: rows of ``silver.offset_events``.
        exchanges: rows of ``silver.exchanges`` of the same days.
    """
    seen = exchanges.where((F.col("protocol") == "kafka") & F.col("api_key").isin(*GROUP_APIS)).select(
        "date",
        address("server_ip", "server_port").alias("server"),
        address("client_ip", "client_port").alias("client"),
        "client_id",
        F.get_json_object("request_body", "$.groupId").alias("group"),
    )
    seen = seen.where("group <> ''").withColumn("client_ip", host_of("client")).distinct()
    by_connection = _unambiguous(seen, ("date", "server", "client"), "connection_group")
    by_client = _unambiguous(seen.where("client_id IS NOT NULL"), ("date", "client_ip", "client_id"), "client_group")
    is_fetch = F.col("kind").isin("fetched", "fetch_rejected") & F.col("isolation_level").isNotNull()
    told = F.when(is_fetch, F.coalesce("connection_group", "client_group"))
    return (
        events.withColumn("client_ip", host_of("client"))
        .join(F.broadcast(by_connection), ["date", "server", "client"], "left")
        .join(F.broadcast(by_client), ["date", "client_ip", "client_id"], "left")
        .withColumn("group_id", F.coalesce("group_id", told, F.lit("")))
    )


def host_of(column: str) -> Column:
    """The address without its port."""
    return F.regexp_replace(column, r":\d+$", "")


def _unambiguous(seen: DataFrame, by: tuple[str, ...], name: str) -> DataFrame:
    groups = seen.groupBy(*by).agg(F.collect_set("group").alias("groups"))
    return groups.where(F.size("groups") == 1).select(*by, F.col("groups")[0].alias(name))


def applied_commits(events: DataFrame, exchanges: DataFrame, facts: Facts) -> DataFrame:
    """Offsets committed by TxnOffsetCommit, at the time of the EndTxn that commits their transaction (KIP-98).

    Returns:
        The ``txn_committed`` events with kind ``txn_applied``, and date, ts and exchange_id of the EndTxn.
    """
    body = F.col("request_body")
    ends = exchanges.where(
        (F.col("protocol") == "kafka") & (F.col("api_key") == END_TXN) & (F.size("error_codes") == 0)
    ).select(
        address("server_ip", "server_port").alias("server"),
        F.coalesce("response_ts", "request_ts").alias("ts"),
        "exchange_id",
        F.get_json_object(body, "$.transactionalId").alias("transactional_id"),
        (F.get_json_object(body, "$.committed") == "true").alias("commits"),
    )
    end = F.struct("ts", "exchange_id", "commits")
    marked = with_cluster(ends, facts).withColumn("end", end).drop("server")
    pending = events.where("kind = 'txn_committed'").withColumn("event_ordinal", F.col("ordinal"))
    later = (
        Window.partitionBy("cluster", "transactional_id")
        .orderBy("ts", "exchange_id", "event_ordinal")
        .rowsBetween(0, Window.unboundedFollowing)
    )
    both = pending.unionByName(marked, allowMissingColumns=True)
    ended = both.withColumn("end", F.first("end", ignorenulls=True).over(later)).where("kind IS NOT NULL")
    return ended.where("end.commits").withColumns(
        {
            "kind": F.lit("txn_applied"),
            "ts": F.col("end.ts"),
            "exchange_id": F.col("end.exchange_id"),
            "date": F.to_date("end.ts"),
        }
    )
