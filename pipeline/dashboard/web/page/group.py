"""The page of a group: who owned which partition when, who waited for whom, how far behind it is, how it commits."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import streamlit as st

from pipeline.analysis.rules.kafka.share_groups.share_states import SharePlace
from pipeline.dashboard.queries.progress import groups, shares
from pipeline.dashboard.queries.progress.groups import Group, GroupSeen
from pipeline.dashboard.queries.progress.partitions import standing
from pipeline.dashboard.queries.scope import Scope, widened
from pipeline.dashboard.web.format import code
from pipeline.dashboard.web.page_context import PageContext, choose, fixed, link, part, run, say_absent
from pipeline.dashboard.web.parts.grid import Column
from pipeline.dashboard.web.parts.group_drawn import draw_group, draw_shares
from pipeline.dashboard.web.parts.lag_text import lag_in_words
from pipeline.dashboard.web.parts.table import table
from pipeline.humanize import duration, pluralize

_KEYS = ("group", "cluster", "share")

_MEMBERS = (
    Column("member", "member"),
    Column("client", "address"),
    Column("protocols", "protocol", help="classic (JoinGroup) or consumer (KIP-848)."),
    Column("instance", "group.instance.id", help="Of a static member (KIP-345)."),
    Column("owned", "partitions", "number", "That it owned at some time."),
    Column("generation", "last generation", "number"),
    Column("first_ts", "first seen", "time"),
    Column("last_ts", "last seen", "time"),
    Column("left_ts", "left", "time"),
    Column("member_id", "member id"),
)
_REBALANCES = (
    Column("began", "began", "time"),
    Column("generation", "generation", "number", "Of the group; in the consumer protocol the epoch of its members."),
    Column("seconds", "took", "duration", "From the first word of it to the last assignment."),
    Column("members", "members", "number"),
    Column("waited", "they waited, together", "duration", "Each from its JoinGroup to the answer."),
    Column("culprit", "waited for", width="large"),
    Column("protocol", "protocol"),
)
_RHYTHM = (
    Column("member", "member"),
    Column("topic", "topic"),
    Column("partition", "partition", "number"),
    Column("commits", "commits", "number"),
    Column("refused", "refused", "number"),
    Column("usual", "usually every", "duration", "Median of the time from one commit to the next."),
    Column("longest", "longest pause", "duration"),
    Column("silent", "none since", "duration", "Up to the last word of the group."),
    Column("last_ts", "last commit", "time"),
)

_AGAIN = (
    Column("first", "offset", "number"),
    Column("last", "to", "number"),
    Column("deliveries", "delivered", "number", "As the broker counts."),
    Column("members", "to"),
    Column("ends", "and each time", width="large"),
    Column("began", "first", "time"),
    Column("ended", "last", "time"),
)


def draw(here: PageContext) -> None:
    """Draw the page."""
    if not here.scope.has("kafka"):
        st.info("MongoDB has no groups: choose Kafka, or no protocol.")
        return
    there, sharing = _groups(here, here.scope)
    if not there:
        st.info("No group was seen in this time range.")
        return
    left, right = st.columns(2)
    name = choose(left, "Group", "group", list(dict.fromkeys(one.group_id for one in there)), None, _KEYS)
    if name is None:
        say_absent(here, "group", "group", "group", lambda whole: {one.group_id for one in _groups(here, whole)[0]})
        return
    clusters = [one.cluster for one in there if one.group_id == name]
    cluster = choose(right, "Cluster", "cluster", clusters, None, _KEYS)
    if cluster is None:
        say_absent(
            here, "group", f"group {code(name)} in cluster", "cluster",
            lambda whole: {one.cluster for one in _groups(here, whole)[0] if one.group_id == name},
        )  # fmt: skip
        return
    if (cluster, name) in sharing.groups:
        _share(here, sharing, Group(cluster, name))
        return
    shown = groups.group_seen(here.connection, here.scope, Group(cluster, name))
    if shown is None:
        st.info("Nothing was seen of this group in this time range.")
        return
    part(lambda: _stands(here, shown.group))
    for draw_part in (_pictures, _members, _rebalances):
        part(partial(draw_part, shown))
    part(partial(_rhythm, here, shown))


def _groups(here: PageContext, scope: Scope) -> tuple[list[Group], shares.Shares]:
    """Those seen in a span, share groups last; and what share groups did."""
    there = groups.groups(here.connection, scope)
    sharing = shares.shares(here.connection, scope)
    return there + [one for pair in sharing.groups if (one := Group(*pair)) not in there], sharing


def _stands(here: PageContext, group: Group) -> None:
    stands = standing(here.connection, here.scope, group.cluster, group.group_id)
    if words := lag_in_words(stands, group.group_id):
        st.markdown(words)


def _pictures(shown: GroupSeen) -> None:
    draw_group(shown)
    with st.container(horizontal=True, vertical_alignment="center"):
        link(
            "group", "Link to this picture, with these times", "link", group=shown.group.group_id,
            cluster=shown.group.cluster, **fixed(shown.scope),
        )  # fmt: skip
        link(
            "partitions", "Offsets of its partitions", "stacked_line_chart", group=shown.group.group_id,
            cluster=shown.group.cluster, **fixed(shown.scope),
        )  # fmt: skip


def _members(shown: GroupSeen) -> None:
    st.header("Members", anchor=False)
    if not shown.seen_members:
        st.info("No member was seen: this group assigns itself, or joined before the capture and sends nothing.")
        return
    owned: dict[str, set[tuple[str, int]]] = {}
    for row in shown.owned:
        owned.setdefault(row["member_id"], set()).add((row["topic"], row["partition"]))
    rows = [
        {**row, "member": shown.name(row["client_id"], row["member_id"]), "owned": len(owned.get(row["member_id"], ()))}
        for row in shown.seen_members
    ]
    table(
        rows, _MEMBERS, name="Members",
        to=lambda row: ("exchanges", {"group": shown.group.group_id, "client": row["client_id"], **fixed(shown.scope)}),
    )  # fmt: skip


def _rebalances(shown: GroupSeen) -> None:
    st.header("Rebalances", anchor=False)
    if not shown.rebalances:
        st.info("No rebalance was seen in this time range.")
        return
    waited = [one.waited for one in shown.rebalances if one.waits]
    together = f"; members waited {duration(sum(waited))} together" if waited else ""
    st.caption(f"{pluralize(len(shown.rebalances), 'rebalance')}{together}. Longest first.")
    rows: list[dict[str, Any]] = [
        {
            "began": one.began, "until": one.began + timedelta(seconds=one.seconds),
            "generation": one.generation, "seconds": one.seconds, "members": one.members,
            "waited": one.waited if one.waits else None, "protocol": one.protocol,
            "culprit": f"{shown.name(*one.culprit)}: {one.why}" if one.culprit else "",
        }
        for one in sorted(shown.rebalances, key=lambda one: -one.seconds)
    ]  # fmt: skip
    table(
        rows, _REBALANCES, name="Rebalances",
        to=lambda row: (
            "exchanges", {"group": shown.group.group_id, **fixed(widened(Scope(row["began"], row["until"]), 1.5))},
        ),
    )  # fmt: skip


def _rhythm(here: PageContext, shown: GroupSeen) -> None:
    st.header("Rhythm of commits", anchor=False)
    rows = groups.rhythm(here.connection, shown.scope, shown.group)
    if not rows:
        st.info("It committed nothing in this time range.")
        return
    rows = [{**row, "member": shown.name(row["client_id"], row["member_id"])} for row in rows]
    named = {"group": shown.group.group_id, "cluster": shown.group.cluster}
    table(
        rows, _RHYTHM, name="Rhythm of commits",
        to=lambda row: ("partitions", {**named, "topic": row["topic"], "partition": row["partition"]}),
    )  # fmt: skip


def _share(here: PageContext, known: shares.Shares, group: Group) -> None:
    """A share group: its partitions have states of records in place of owners and committed offsets."""
    mine = _places(known, group)
    st.caption(
        "A share group (KIP-932): several members may read one partition; each record is accepted, released or "
        "rejected by itself, and comes again when its lock runs out."
    )
    if not mine:
        st.info(f"Nothing was delivered to {code(group.group_id)} in this time range.")
        return
    names = {_name(place): place for place in mine}
    chosen = choose(st, "Partition", "share", list(names), None, _KEYS)
    if chosen is None:
        say_absent(
            here, "group", f"partition of share group {code(group.group_id)} named", "share",
            lambda whole: {_name(place) for place in _places(shares.shares(here.connection, whole), group)},
        )  # fmt: skip
        return
    place = names[chosen]
    shown = shares.shares_seen(here.connection, here.scope, known, place)
    if shown is None:
        st.info("Nothing was seen of this partition in this time range.")
        return
    draw_shares(shown, key=f"share {place}")
    _again(shown)


def _places(known: shares.Shares, group: Group) -> list[SharePlace]:
    """Partitions of a share group that were seen."""
    return sorted(
        place
        for place in {*known.delivered, *known.starts}
        if (place.cluster, place.group) == (group.cluster, group.group_id)
    )


def _name(place: SharePlace) -> str:
    return f"{place.topic}-{place.partition}"


def _again(shown: shares.SharesSeen) -> None:
    """Records that came more than once."""
    st.header("Records that came again", anchor=False)
    rows = shares.again(shown.held)
    if rows:
        table([{**row, "ends": ", ".join(row["ends"])} for row in rows], _AGAIN, name="Records that came again")
    else:
        st.info("None: each record came once.")


run(draw)
