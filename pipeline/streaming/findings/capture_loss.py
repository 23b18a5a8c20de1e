"""Rule ``capture_loss``: the capture lost bytes, so that some of what the tables say cannot be trusted."""

from __future__ import annotations

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.settings import FindingSettings
from pipeline.streaming.findings.model import Finding, Sources, clock
from pipeline.streaming.silver.facts import Facts
from pipeline.streaming.silver.offset_events import address

NAME = "capture_loss"
ADVICE = (
    "Give the capture more room (`--buffer`, a quieter machine, a filter for the broker's port only), and look at "
    "`bronze.gaps`. Of the connections named here do not trust counts, unanswered requests, and offsets in the time of "
    "the loss."
)


def find(sources: Sources, gaps: DataFrame, facts: Facts, settings: FindingSettings) -> list[Finding]:
    """Apply the rule: one finding for each agent and server.

    Args:
        sources: exchanges tell to which server a connection went.
        gaps: rows of ``bronze.gaps``.
        facts: clusters as known now.
        settings: how much evidence is kept.
    """
    losses = gaps.groupBy("connection_id", "agent_id").agg(
        F.count("*").alias("gaps"),
        F.sum("bytes_lost").alias("bytes_lost"),
        F.min(F.unix_micros("ts")).alias("first_us"),
        F.max(F.unix_micros("ts")).alias("last_us"),
    )
    if losses.isEmpty():
        return []
    touched = (
        sources.exchanges.join(F.broadcast(losses.select("connection_id")), "connection_id", "left_semi")
        .groupBy("connection_id", address("server_ip", "server_port").alias("server"))
        .agg(
            F.collect_set("client_id").alias("client_ids"),
            F.coalesce(F.min(F.when(F.col("status") != "paired", F.col("exchange_id"))), F.min("exchange_id")).alias(
                "evidence"
            ),
        )
    )
    rows = (
        losses.join(touched, "connection_id")
        .groupBy("agent_id", "server")
        .agg(
            F.sum("gaps").alias("gaps"),
            F.sum("bytes_lost").alias("bytes_lost"),
            F.min("first_us").alias("first_us"),
            F.max("last_us").alias("last_us"),
            F.sort_array(F.collect_list("connection_id")).alias("connections"),
            F.sort_array(F.array_distinct(F.flatten(F.collect_list("client_ids")))).alias("client_ids"),
            F.sort_array(F.collect_list("evidence")).alias("evidence"),
        )
        .orderBy("agent_id", "server")
        .collect()
    )
    elsewhere = (
        gaps.where(F.col("connection_id").rlike(f"^({_FILE}|{_INTERFACE}|{_STRANGERS})"))
        .groupBy("agent_id", "connection_id")
        .agg(
            F.count("*").alias("gaps"),
            F.sum("bytes_lost").alias("bytes_lost"),
            F.max("seq").alias("packets"),
            F.min(F.unix_micros("ts")).alias("first_us"),
            F.max(F.unix_micros("ts")).alias("last_us"),
        )
        .orderBy("agent_id", "connection_id")
        .collect()
    )
    found = [_finding(row, facts, sources, settings) for row in rows]
    return found + [_of_no_connection(row, sources) for row in elsewhere]


_FILE, _INTERFACE, _STRANGERS = "file:", "interface:", "strangers:"
"""How the `connection_id` of a loss begins that is of no connection: a landing file, packets that were dropped, and
connections that were not looked at because strangers cost too much."""


def _of_no_connection(row: Row, sources: Sources) -> Finding:
    if row.connection_id.startswith(_FILE):
        name = row.connection_id.removeprefix(_FILE)
        summary = (
            f"The landing file {name} of the capture agent {row.agent_id} was lost before it was read, with "
            f"{row.bytes_lost} bytes of messages. Read the capture again if it is still there. `ops.landing_files` "
            "says what was wrong with it."
        )
    elif row.connection_id.startswith(_STRANGERS):
        summary = (
            f"The capture agent {row.agent_id} did not look at {row.bytes_lost} bytes of connections of which nothing "
            f"had been answered, from {clock(row.first_us)} to {clock(row.last_us)} UTC: too many of them cost too "
            "much to read, as in a flood or a scan. What was answered before was read."
        )
    else:
        name = row.connection_id.removeprefix(_INTERFACE).split(":")[0]
        summary = (
            f"The kernel dropped {row.packets} packets of the interface {name} before the capture agent {row.agent_id} "
            f"could read them, noticed from {clock(row.first_us)} to {clock(row.last_us)} UTC; of which connections "
            "nobody knows."
        )
    return Finding(
        rule=NAME, severity="warning", subject=f"{row.agent_id}/{row.connection_id}",
        state=sources.state("", row.first_us, row.last_us, row.gaps), cluster="", topic=None, partition=None,
        group_id=None, first_us=row.first_us, last_us=row.last_us, summary=summary, advice=ADVICE, evidence=[],
        details={
            "gaps": row.gaps, "bytes_lost": row.bytes_lost, "connections": [row.connection_id], "client_ids": [],
            "enough_us": row.first_us,
        },
    )  # fmt: skip


def _finding(row: Row, facts: Facts, sources: Sources, settings: FindingSettings) -> Finding:
    cluster = facts.cluster_at(row.server, row.last_us)
    summary = (
        f"The capture agent {row.agent_id} lost {row.bytes_lost} bytes in {row.gaps} places of {len(row.connections)} "
        f"connections to {row.server}, from {clock(row.first_us)} to {clock(row.last_us)} UTC; they belong to "
        f"{', '.join(row.client_ids[:5]) or 'clients without client_id'}. What the tables say of them is incomplete."
    )
    return Finding(
        rule=NAME, severity="warning", subject=f"{row.agent_id}/{row.server}",
        state=sources.state(cluster, row.first_us, row.last_us, row.gaps), cluster=cluster, topic=None, partition=None,
        group_id=None, first_us=row.first_us, last_us=row.last_us, summary=summary, advice=ADVICE,
        evidence=row.evidence[: settings.max_evidence],
        details={
            "gaps": row.gaps, "bytes_lost": row.bytes_lost, "connections": row.connections[: settings.max_evidence],
            "client_ids": row.client_ids, "enough_us": row.first_us,
        },
    )  # fmt: skip
