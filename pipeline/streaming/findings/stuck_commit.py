"""Rule ``stuck_commit``: somebody keeps committing an old offset of a partition that others have long left behind.

Meaning: the committed offset jumps back again and again. Lag looks huge or flickers, and after the next restart or
rebalance the group reads from the old offset again: records are processed twice.
Evidence: one committer's accepted commits of one offset, at least ``stuck_commit_repeats`` times; between them another
committer has committed beyond it, each time further. Where one client does both (a hung worker thread), or where only
the group's fetch position moves on, that is evidence too, the latter from more repeats on.
Advice: stop the worker that repeats the offset; the commit's exchange names its client, member and address.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.settings import FindingSettings
from pipeline.streaming.findings.model import Finding, Sources, Who, clock, who

NAME = "stuck_commit"
ADVICE = (
    "Stop or restart the client that repeats the old offset: a worker of it still holds a partition that it no longer "
    "owns, or hangs in a retry. Let workers drop their work when the partition is revoked "
    "(ConsumerRebalanceListener.onPartitionsRevoked / rebalance callback), and commit only what is assigned."
)
_KEY = ("cluster", "topic", "partition", "group_id")


def find(sources: Sources, settings: FindingSettings) -> list[Finding]:
    """Apply the rule."""
    repeated = _repeats(_positions(sources))
    latest = Window.partitionBy(*_KEY).orderBy(F.desc("last_us"), F.desc("repeats"), "committed")
    enough = F.when(F.col("by_commit") >= settings.stuck_commit_repeats - 1, True).otherwise(
        F.col("by_fetch") >= settings.stuck_commit_repeats_while_fetching - 1
    )
    hits = repeated.where(enough).withColumn("n", F.row_number().over(latest)).where("n = 1")
    return [_finding(row, sources, settings) for row in hits.orderBy(*_KEY).collect()]


def _positions(sources: Sources) -> DataFrame:
    """Accepted commits and fetch positions of each group and partition, with how far the group was before each."""
    commits = sources.events.where("kind = 'committed' AND offset IS NOT NULL").select(
        *_KEY, "ts", "exchange_id", "ordinal", F.col("offset").alias("committed"), who().alias("who")
    )
    fetches = sources.timeline.where("kind = 'fetched' AND group_id <> '' AND fetch_position IS NOT NULL").select(
        *_KEY,
        "ts",
        "exchange_id",
        "ordinal",
        F.col("fetch_position").alias("fetched"),
        F.col("client_id").alias("reader"),
    )
    before = (
        Window.partitionBy(*_KEY).orderBy("ts", "exchange_id", "ordinal").rowsBetween(Window.unboundedPreceding, -1)
    )
    both = commits.unionByName(fetches, allowMissingColumns=True)
    far = {
        "furthest": F.max(F.struct("committed", "who")).over(before),
        "furthest_fetch": F.max(F.struct("fetched", "reader")).over(before),
    }
    return both.withColumns(far).where("committed IS NOT NULL")


def _repeats(commits: DataFrame) -> DataFrame:
    """Per committer and offset: how often it was committed again after the group had moved further beyond it."""
    again = Window.partitionBy(*_KEY, "who", "committed").orderBy("ts", "exchange_id", "ordinal")
    committed = F.col("committed")

    def moved(position: str) -> Column:
        earlier = F.coalesce(F.lag(position).over(again), committed)
        is_again = F.row_number().over(again) > 1
        return F.coalesce(is_again & (F.col(position) > committed) & (F.col(position) > earlier), F.lit(False))

    flagged = commits.withColumns(
        {"commit_moved": moved("furthest.committed"), "fetch_moved": moved("furthest_fetch.fetched")}
    )
    micros = F.unix_micros("ts")
    return flagged.groupBy(*_KEY, "who", "committed").agg(
        F.count("*").alias("repeats"),
        F.count_if("commit_moved").alias("by_commit"),
        F.count_if("fetch_moved").alias("by_fetch"),
        F.min(micros).alias("first_us"),
        F.max(micros).alias("last_us"),
        F.max("furthest").alias("furthest"),
        F.max("furthest_fetch").alias("furthest_fetch"),
        F.sort_array(F.collect_list(F.struct(micros.alias("us"), "exchange_id"))).alias("commits"),
    )


def _finding(row: Row, sources: Sources, settings: FindingSettings) -> Finding:
    stuck = Who(**row.who.asDict())
    offset, place = row.committed, f"{row.topic}-{row.partition}"
    by_other = row.by_commit >= settings.stuck_commit_repeats - 1
    least = settings.stuck_commit_repeats if by_other else settings.stuck_commit_repeats_while_fetching
    if by_other:
        other = Who(**row.furthest.who.asDict())
        real = row.furthest.committed
        mover = "another worker of the same client" if other == stuck else str(other)
        moved = f"although {mover} had committed up to {real} in between"
    else:
        other = Who(row.furthest_fetch.reader, None, "")
        real = row.furthest_fetch.fetched
        moved = f"although {other.client_id} went on reading up to {real}"
    summary = (
        f"Group {row.group_id} is stuck on {place}: {stuck} committed offset {offset} {row.repeats} times "
        f"from {clock(row.first_us)} to {clock(row.last_us)} UTC, {moved}. "
        f"After a restart the group would read {real - offset} records again."
    )
    state = sources.state(row.cluster, row.first_us, row.last_us, row.repeats)
    return Finding(
        rule=NAME, severity="critical", subject=f"{row.group_id}/{place}", state=state,
        cluster=row.cluster, topic=row.topic, partition=row.partition, group_id=row.group_id,
        first_us=row.first_us, last_us=row.last_us, summary=summary,
        advice=ADVICE, evidence=[c.exchange_id for c in row.commits[-settings.max_evidence :]],
        details={
            "old_offset": offset, "repeats": row.repeats, "committer": stuck.details(),
            "other_committer": other.details() if by_other else None, "reader": None if by_other else other.client_id,
            "real_position": real, "records_behind": real - offset,
            "enough_us": row.commits[least - 1].us,
        },
    )  # fmt: skip
