"""The page of partitions: the picture of one, who committed what, and where all groups are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from pipeline.dashboard.queries.progress import partitions
from pipeline.dashboard.queries.progress.offsets import offsets
from pipeline.dashboard.queries.progress.partitions import Place
from pipeline.dashboard.queries.progress.unread import NO_READER, unread
from pipeline.dashboard.queries.scope import Scope, widened
from pipeline.dashboard.web.format import code
from pipeline.dashboard.web.page_context import (
    PageContext,
    choose,
    fixed,
    link,
    look_at,
    part,
    run,
    say_absent,
)
from pipeline.dashboard.web.parts.grid import Column
from pipeline.dashboard.web.parts.lag_text import lag_in_words
from pipeline.dashboard.web.parts.offsets_drawn import draw_offsets, link_commits
from pipeline.dashboard.web.parts.table import Address, table
from pipeline.humanize import number, pluralize

NO_GROUP = "(no group)"
_MOST_UNREAD = 1000
"""Partitions without a group that are listed."""
_DIGITS = 10
"""A partition has fewer."""
_KEYS = ("group", "topic", "partition", "cluster")
_COLUMNS = {"group": "group_id", "topic": "topic", "partition": "partition", "cluster": "cluster"}

_LAG = (
    Column("group_id", "group"),
    Column("topic", "topic"),
    Column("partition", "partition", "number"),
    Column("trouble", "trouble", width="medium"),
    Column("lag", "lag", "number", "Records between the committed offset and the high watermark, without markers."),
    Column(
        "offsets_without_records",
        "offsets without records",
        "number",
        "Transaction markers, and what retention removed: high watermark - committed - lag.",
    ),
    Column(
        "lag_seconds",
        "behind",
        "duration",
        "Age of the oldest record that is not committed, as of the last word of its cluster.",
    ),
    Column("committed_offset", "committed", "number"),
    Column("last_stable_offset", "last stable offset", "number"),
    Column("high_watermark", "high watermark", "number"),
    Column(
        "lag_read_committed",
        "lag, read_committed",
        "number",
        "Records up to the last stable offset, as of its time if an open transaction held it. Empty if it is older "
        "than the high watermark.",
    ),
    Column("last_stable_ts", "last stable offset as of", "time"),
    Column("group_seen", "group seen", "time"),
    Column("as_of", "as of", "time", "The last word of the cluster."),
    Column("cluster", "cluster"),
)
_UNREAD = (
    Column("topic", "topic"),
    Column("partition", "partition", "number"),
    Column("reader", "reader"),
    Column("added", "offsets added", "number", "By which its end grew."),
    Column("high_watermark", "high watermark", "number"),
    Column("written_ts", "last written", "time"),
    Column("writers", "written by"),
    Column("cluster", "cluster"),
)
_COMMITTERS = (
    Column("client_id", "client"),
    Column("member_id", "member"),
    Column("generation", "generation", "number"),
    Column("accepted", "accepted", "number"),
    Column("rejected", "rejected", "number"),
    Column("pending", "in transactions", "number"),
    Column("first_offset", "first offset", "number"),
    Column("last_offset", "last offset", "number"),
    Column("last_ts", "last commit", "time"),
    Column("errors", "errors"),
)


def _group(group_id: str) -> str:
    return group_id or NO_GROUP


def _in_order(name: str) -> tuple[int, str]:
    """Numbers by their value, names by their letters."""
    return (int(name) if name.isdecimal() and len(name) < _DIGITS else 0), name


_NAMES: dict[str, Callable[[Place], str]] = {
    "group": lambda place: _group(place.group_id), "topic": lambda place: place.topic,
    "partition": lambda place: str(place.partition), "cluster": lambda place: place.cluster,
}  # fmt: skip
"""Of a partition and group what is in the address."""


def draw(here: PageContext) -> None:
    """Draw the page."""
    if not here.scope.has("kafka"):
        st.info("MongoDB has no groups and partitions: choose Kafka, or no protocol.")
        return
    boxes, picture, rest = st.container(), st.container(), st.container()
    named = _named(here)
    if named is not None:  # the picture need not wait for what else there is to choose
        with picture:
            part(lambda: _picture(here, named))
    standing = [] if named else partitions.lag(here.connection, here.scope)
    places = partitions.places(here.connection, here.scope)
    if not places:
        st.info("No partition was produced to, fetched from or committed in this time range.")
        return
    with boxes:
        place = _choose(here, standing, places)
    if named is None and place is not None:
        with picture:
            part(lambda: _picture(here, place))
    with rest:
        if named is None and place is not None:
            _standing(standing)
            part(lambda: _unread(here))
        else:
            link("partitions", "Lag of all groups", "format_list_numbered")


def _named(here: PageContext) -> Place | None:
    """The partition and group of the address, if all of it is stated and something was seen of both."""
    group, topic, partition, cluster = (st.query_params.get(key) for key in _KEYS)
    if not (group and topic and partition and cluster and partition.isdecimal() and len(partition) < _DIGITS):
        return None
    place = Place(cluster, topic, int(partition), "" if group == NO_GROUP else group)
    return place if partitions.is_there(here.connection, here.scope, place) else None


def _standing(standing: list[dict[str, Any]]) -> None:
    st.header("Lag of all groups", anchor=False, help="At the end of the time range; the worst first.")
    if not standing:
        st.info("No consumer group committed in this time range.")
        return
    rows = [{**row, "trouble": partitions.trouble(row)} for row in standing]
    table(rows, _LAG, name="Lag of all groups", key="", to=place_of)


def _unread(here: PageContext) -> None:
    """What a list of groups leaves out: partitions that are written to while no group reads them."""
    found = here.once(unread)
    if not found:
        return
    st.header("Written, read by no group", anchor=False)
    alone = sum(row["reader"] == NO_READER for row in found)
    more = f" The first {number(_MOST_UNREAD)} are listed." if len(found) > _MOST_UNREAD else ""
    st.caption(
        f"{pluralize(len(found), 'partition')}; {NO_READER} of {number(alone)}. A reader whose connections were not "
        f"captured is not seen.{more}"
    )
    table(
        [{**row, "writers": ", ".join(row["writers"] or ()), "group_id": ""} for row in found[:_MOST_UNREAD]], _UNREAD,
        name="Partitions that no group reads", key="unread", to=place_of,
    )  # fmt: skip


def place_of(row: dict[str, Any]) -> Address:
    """The picture of a partition and group."""
    named = {key: row[key] for key in ("topic", "partition", "cluster")}
    return "partitions", {"group": _group(row["group_id"]), **named}


def _choose(here: PageContext, standing: list[dict[str, Any]], places: list[Place]) -> Place | None:
    """Selection from left to right, each of what the one before leaves; at first the partition in most trouble.

    None: the address names a group, topic, partition or cluster that is not there, which the page states.
    """
    boxes = st.columns([2, 3, 1, 3])
    chosen: dict[str, str] = {}
    for box, (key, name_of) in zip(boxes, _NAMES.items(), strict=True):
        names = sorted({name_of(place) for place in places}, key=_in_order)
        first = (
            _worst_group(standing, places) if key == "group" else str(standing[0][_COLUMNS[key]]) if standing else None
        )
        name = choose(box, key.capitalize(), key, names, first, _KEYS)
        if name is None:
            _say_absent(here, key, chosen)
            return None
        chosen[key] = name
        places = [place for place in places if name_of(place) == name]
        standing = [row for row in standing if str(row[_COLUMNS[key]]) == name]
    return places[0]


def _say_absent(here: PageContext, key: str, chosen: dict[str, str]) -> None:
    """That what the address names was not seen, or not of what is to its left."""
    chosen = {name: value for name, value in chosen.items() if name in st.query_params}
    of = " of ".join(f"{name} {code(chosen[name])}" for name in reversed(_KEYS) if name in chosen)

    def names(whole: Scope) -> set[str]:
        there = partitions.places(here.connection, whole)
        fitting = [place for place in there if all(_NAMES[one](place) == name for one, name in chosen.items())]
        return {_NAMES[key](place) for place in fitting}

    say_absent(here, "partitions", f"{key} of {of} named" if of else key, key, names)
    link("partitions", "Lag of all groups", "format_list_numbered")


def _worst_group(standing: list[dict[str, Any]], places: list[Place]) -> str | None:
    """Of the groups on what the address names, e.g. a partition without a group, the one in most trouble."""
    asked = {key: value for key in ("topic", "partition", "cluster") if (value := st.query_params.get(key))}
    fitting = [row for row in standing if all(str(row[key]) == value for key, value in asked.items())]
    if fitting:
        return str(fitting[0]["group_id"])
    there = [place for place in places if all(str(getattr(place, key)) == value for key, value in asked.items())]
    return _group(there[0].group_id) if there else None


def _picture(here: PageContext, place: Place) -> None:
    shown = here.once(offsets, place)
    if shown is None:
        st.info("Nothing was seen of this partition in this time range.")
        return
    span = shown.scope
    if place.group_id:
        stands = partitions.standing(here.connection, here.scope, place.cluster, place.group_id, place)
        st.markdown(lag_in_words(stands, place.group_id, f"{place.topic}-{place.partition}"))
    draw_offsets(shown, can_zoom=True)
    with st.container(horizontal=True, vertical_alignment="center"):
        link(
            "partitions", "Link to this picture, with these times", "link", group=_group(place.group_id),
            topic=place.topic, partition=place.partition, cluster=place.cluster, **fixed(span),
        )  # fmt: skip
        if place.group_id:
            link("group", "The whole group", "groups", group=place.group_id, cluster=place.cluster, **fixed(span))
        link_commits(shown)
        st.button("Wider", icon=":material/zoom_out:", type="tertiary", on_click=look_at, args=(widened(span),))
    if place.group_id:
        _committers(here, place)


def _committers(here: PageContext, place: Place) -> None:
    who = partitions.committers(here.connection, here.scope, place)
    st.header("Who committed what", anchor=False)
    if not who:
        st.info(f"This partition was never committed in the name of {code(place.group_id)} in this time range.")
        return
    total = sum(row["accepted"] for row in who)
    rejected = sum(row["rejected"] for row in who)
    st.caption(
        f"{pluralize(total, 'commit')} accepted, {number(rejected)} rejected, by {pluralize(len(who), 'member')}."
    )
    named = {"group": place.group_id, "topic": place.topic, "partition": place.partition}
    table(
        [{**row, "errors": row["errors"] or ""} for row in who], _COMMITTERS, name="Who committed what",
        to=lambda row: ("exchanges", {**named, "client": row["client_id"], "api": "OffsetCommit"}),
    )  # fmt: skip


run(draw)
