"""The page that lists all groups and topics: the state of each, the worst first, each row a link to its own page."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import streamlit as st

from pipeline.dashboard.queries.progress.all_groups import MOST, WINDOW, Listed, all_groups, all_topics
from pipeline.dashboard.queries.progress.unread import unread, without_reader
from pipeline.dashboard.web.page_context import PageContext, part, run
from pipeline.dashboard.web.parts.grid import Column
from pipeline.dashboard.web.parts.table import table
from pipeline.humanize import duration, number, pluralize

_GROUPS = (
    Column("group_id", "group"),
    Column("state", "state"),
    Column("members", "members", "number", "Seen in the last 15 minutes of the cluster, without those that left."),
    Column("partitions", "partitions", "number", "The partitions with a known lag.", at_first=False),
    Column("lag", "lag", "number", "Records that it has not committed, without transaction markers."),
    Column("trend", "trend", "trend", "Records by which the lag grows each second, from commit to commit."),
    Column("behind_s", "oldest waits", "duration", "Age of the oldest record that is not committed."),
    Column("made", "written", "rate", "Offsets that were added to its partitions each second."),
    Column("taken", "committed", "rate", "Offsets that it committed each second."),
    Column("worst", "most behind on"),
    Column("commit_ts", "last commit", "time"),
    Column("refused", "refused", "number", "Commits that the coordinator refused.", at_first=False),
    Column("as_of", "as of", "time", "The last word of its cluster.", at_first=False),
    Column("cluster", "cluster"),
)
_TOPICS = (
    Column("topic", "topic"),
    Column("partitions", "partitions", "number", "The partitions that were seen."),
    Column("groups", "groups", "number", "That committed offsets of it."),
    Column("reader", "without a reader", help="Of partitions that were written to and that no group reads."),
    Column("worst", "group furthest behind"),
    Column("lag", "its lag", "number", "Records, on the partition where it is furthest behind."),
    Column("added", "offsets added", "number", "By which the ends of its partitions grew."),
    Column("last_ts", "last seen", "time"),
    Column("cluster", "cluster"),
)


def draw(here: PageContext) -> None:
    """Draw the page."""
    if not here.scope.has("kafka"):
        st.info("MongoDB has no groups and topics: choose Kafka, or no protocol.")
        return
    part(lambda: _groups(here))
    part(lambda: _topics(here))


def _groups(here: PageContext) -> None:
    found = here.once(all_groups)
    if not found:
        st.info("No group was seen in this time range.")
        return
    bad = sum(not one.is_well for one in found)
    st.caption(
        f"{pluralize(len(found), 'group')}, {number(bad)} in trouble; at the last word of each cluster, members and "
        f"rates of the {duration(WINDOW.total_seconds())} before it.{_of_many(len(found))}"
    )
    table(
        [_row(one) for one in found], _GROUPS, name="All groups", key="", muted=lambda row: row["is_well"],
        to=lambda row: ("group", {"group": row["group_id"], "cluster": row["cluster"]}),
    )  # fmt: skip


def _row(one: Listed) -> dict[str, Any]:
    now = one.now
    commit = None if now.commit_us is None else datetime.fromtimestamp(now.commit_us / 1e6, timezone.utc)
    worst = "" if now.worst is None else f"{now.worst[0]}-{now.worst[1]}: {number(now.worst[2])}"
    return {
        "group_id": now.group_id, "cluster": now.cluster, "state": one.state, "members": now.members,
        "partitions": now.partitions, "lag": now.lag, "trend": now.trend,
        "behind_s": now.behind_s, "made": now.made,
        "taken": now.taken, "worst": worst, "commit_ts": commit,
        "refused": now.refused or None, "as_of": one.as_of, "is_well": one.is_well,
    }  # fmt: skip


def _topics(here: PageContext) -> None:
    st.header("Topics", anchor=False)
    found = all_topics(here.connection, here.scope)
    if not found:
        st.info("No topic was seen in this time range.")
        return
    st.caption(f"{pluralize(len(found), 'topic')}.{_of_many(len(found))} A row leads to its partitions.")
    readers = without_reader(here.once(unread), found)
    table(
        [{**row, "reader": reader} for row, reader in zip(found, readers, strict=True)],
        _TOPICS, name="All topics", key="topics",
        to=lambda row: ("partitions", {"topic": row["topic"], "cluster": row["cluster"], "group": row["worst"]}),
    )  # fmt: skip


def _of_many(count: int) -> str:
    return f" Those in most trouble: more than {number(MOST)} are not listed." if count == MOST else ""


run(draw)
