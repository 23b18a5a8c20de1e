"""Rule ``competing_committers``: two clients commit the same partition of the same group by turns.

Meaning: two believe that they own the partition. Records are processed twice, and the committed offset is whoever
spoke last.
Evidence: a committer returns after another one had taken over (A … B … A), ``competing_returns`` times or more, without
a newer generation: each rebalance raises the generation (or member epoch), so that a partition that is handed over and
handed back in good order does not count.
Advice: see ADVICE.
"""

from __future__ import annotations

from pyspark.sql import Row, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.settings import FindingSettings
from pipeline.streaming.findings.model import Finding, Sources, Who, clock, who

NAME = "competing_committers"
ADVICE = (
    "Find out which of the clients owns the partition (the group's assignment) and stop the other from committing it. "
    "Usual causes: a worker that goes on after its partition was revoked, a tool that sets offsets of a running group, "
    "or two applications with the same group.id that assign partitions by hand."
)
_KEY = ("cluster", "topic", "partition", "group_id")


def find(sources: Sources, settings: FindingSettings) -> list[Finding]:
    """Apply the rule."""
    in_order = Window.partitionBy(*_KEY).orderBy("ts", "exchange_id", "ordinal")
    by_committer = Window.partitionBy(*_KEY, "who").orderBy("ts", "exchange_id", "ordinal")
    commits = sources.events.where("kind = 'committed' AND offset IS NOT NULL").withColumn("who", who())
    takes_over = F.lag("who").over(in_order).isNotNull() & (F.col("who") != F.lag("who").over(in_order))
    generation = F.coalesce("generation", F.lit(-1))
    rebalanced = generation > F.coalesce(F.lag("generation").over(in_order), F.lit(-1))
    returns = takes_over & (F.row_number().over(by_committer) > 1) & ~rebalanced
    hits = (
        commits.withColumn("returns", returns)
        .groupBy(*_KEY)
        .agg(
            F.count_if("returns").alias("returned"),
            F.min(F.when(F.col("returns"), F.unix_micros("ts"))).alias("first_us"),
            F.max(F.when(F.col("returns"), F.unix_micros("ts"))).alias("last_us"),
            F.sort_array(F.collect_set(F.when(F.col("returns"), F.col("who")))).alias("returning"),
            F.sort_array(F.collect_set("who")).alias("all"),
            F.sort_array(
                F.collect_list(F.when(F.col("returns"), F.struct(F.unix_micros("ts").alias("us"), "exchange_id")))
            ).alias("evidence"),
        )
        .where(F.col("returned") >= settings.competing_returns)
    )
    return [_finding(row, sources, settings) for row in hits.orderBy(*_KEY).collect()]


def _finding(row: Row, sources: Sources, settings: FindingSettings) -> Finding:
    rivals = [Who(**w.asDict()) for w in (row.returning if len(row.returning) > 1 else row.all)]
    place = f"{row.topic}-{row.partition}"
    summary = (
        f"{' and '.join(map(str, rivals))} commit {place} of group {row.group_id} by turns: {row.returned} times from "
        f"{clock(row.first_us)} to {clock(row.last_us)} UTC one came back after the other, without a rebalance between."
    )
    state = sources.state(row.cluster, row.first_us, row.last_us, row.returned)
    return Finding(
        rule=NAME, severity="warning", subject=f"{row.group_id}/{place}", state=state,
        cluster=row.cluster, topic=row.topic, partition=row.partition, group_id=row.group_id,
        first_us=row.first_us, last_us=row.last_us, summary=summary,
        advice=ADVICE, evidence=[e.exchange_id for e in row.evidence[-settings.max_evidence :]],
        details={"committers": [w.details() for w in rivals], "returns": row.returned,
            "enough_us": row.evidence[settings.competing_returns - 1].us,
        },
    )  # fmt: skip
