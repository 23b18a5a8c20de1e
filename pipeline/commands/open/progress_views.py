"""Groups and partitions over time as views: rows of tables in, rows of a screen out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pipeline.commands.open.message_views import clock_of
from pipeline.commands.open.view import WAYS, Block, Column, Messages, OneExchange, Row, Target, View, prose, sentence
from pipeline.dashboard.queries.progress.groups import Group, GroupSeen
from pipeline.dashboard.queries.progress.held import Hold
from pipeline.dashboard.queries.progress.offsets import Offsets
from pipeline.dashboard.queries.progress.partitions import Place, trouble
from pipeline.dashboard.queries.progress.rebalances import Rebalance
from pipeline.dashboard.queries.traffic.exchange_search import Search
from pipeline.dashboard.web.format import moment, seen
from pipeline.humanize import duration, number, pluralize, size

MOST_EVENTS = 1000
"""Events of a partition that are listed: the last ones."""

_PARTITIONS = (
    Column("partition"), Column("committed", is_right=True, from_width=100),
    Column("end", is_right=True, from_width=100), Column("lag", is_right=True), Column("behind", is_right=True),
    Column("trouble"),
)  # fmt: skip
_MEMBERS = (
    Column("member"), Column("address"), Column("seen (UTC)", style="dim"), Column("protocol", from_width=100),
    Column("left"),
)  # fmt: skip
_REBALANCES = (
    Column("began (UTC)", style="dim"), Column("generation", is_right=True), Column("took", is_right=True),
    Column("how"),
)  # fmt: skip
_TIMELINE = (Column("time (UTC)", style="dim"), Column("who"), Column("what"))
_COMMITTERS = (
    Column("member"), Column("accepted", is_right=True), Column("rejected", is_right=True),
    Column("in transactions", is_right=True, from_width=100), Column("offsets"),
)  # fmt: skip
_OUTCOMES = {
    "accepted": "commits", "rejected": "is refused a commit at", "pending": "commits in a transaction",
    "aborted": "loses with an aborted transaction the commit at",
}  # fmt: skip


def absent_view(name: str) -> View:
    """A screen of an unknown group or partition."""
    return View(name, (sentence(f"Nothing was seen of {name}: no commit, no fetch and no member.", "yellow"),))


def group_view(shown: GroupSeen, lag: Iterable[dict[str, Any]]) -> View:
    """A group: its partitions, members and rebalances.

    Args:
        shown: what was seen of it.
        lag: rows of :func:`pipeline.dashboard.queries.progress.partitions.lag`, of any groups.
    """
    group = shown.group
    own = [row for row in lag if (row["cluster"], row["group_id"]) == (group.cluster, group.group_id)]
    named = Messages(Search(group_id=group.group_id), f"messages of group {group.group_id}")
    blocks = [
        prose([
            ("group", group.group_id), ("cluster", group.cluster or "unknown"),
            ("seen", seen(shown.scope.start, shown.scope.end)),
        ]),
        Block("Partitions", _PARTITIONS, [_partition_row(row) for row in own], is_cut=True),
        Block("Members", _MEMBERS, [_member_row(shown, row) for row in shown.seen_members], is_cut=True),
        Block("Rebalances", _REBALANCES, _rebalance_rows(shown)),
        Block("Look at", WAYS, [Row(("Messages", "that name the group"), named)]),
    ]  # fmt: skip
    return View(f"group {group.group_id}", tuple(block for block in blocks if block.rows))


def _partition_row(row: dict[str, Any]) -> Row:
    place = Place(row["cluster"], row["topic"], row["partition"], row["group_id"])
    cells = (
        f"{row['topic']}-{row['partition']}", number(row["committed_offset"]), number(row["high_watermark"]),
        "unknown" if row["lag"] is None else number(row["lag"]), duration(row["lag_seconds"]), trouble(row),
    )  # fmt: skip
    return Row(cells, place, "yellow" if trouble(row) else "")


def _member_row(shown: GroupSeen, row: Mapping[str, Any]) -> Row:
    name = shown.name(row["client_id"], row["member_id"])
    spoken = f"{row['first_ts']:%H:%M:%S} to {row['last_ts']:%H:%M:%S}"
    left = "was not seen to leave" if row["left_ts"] is None else f"left at {row['left_ts']:%H:%M:%S}"
    static = f", static as {row['instance']}" if row["instance"] else ""
    opens = None
    if row["client_id"]:
        wanted = Search(client_id=row["client_id"], group_id=shown.group.group_id)
        opens = Messages(wanted, f"messages of {row['client_id']}")
    cells = (name, row["client"] or "unknown", spoken, ", ".join(row["protocols"] or ()), f"{left}{static}")
    return Row(cells, opens)


def _rebalance_rows(shown: GroupSeen) -> list[Row]:
    clock_text = clock_of(one.began for one in shown.rebalances)
    return [
        Row((clock_text(one.began), number(one.generation), duration(one.seconds), _how(shown, one)))
        for one in shown.rebalances
    ]


def _how(shown: GroupSeen, one: Rebalance) -> str:
    who = "" if one.culprit is None else f", {shown.name(*one.culprit)} {one.why}"
    return f"{pluralize(one.members, 'member')}{who}"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a partition.

    Attributes:
        ts: when.
        who: who did it.
        what: what was done.
        opens: where it leads.
        style: of its line.
        times: how often it came in a row.
        until: when it came last.
    """

    ts: datetime
    who: str
    what: str
    opens: Target | None = None
    style: str = ""
    times: int = 1
    until: datetime | None = None


def partition_view(shown: Offsets, standing: dict[str, Any] | None, committers: Sequence[Mapping[str, Any]]) -> View:
    """A partition and a group over time.

    Args:
        shown: what the picture of the page shows.
        standing: its row of :func:`pipeline.dashboard.queries.progress.partitions.lag`; None: it was never committed.
        committers: rows of :func:`pipeline.dashboard.queries.progress.partitions.committers`.
    """
    place = shown.place
    name = f"{place.topic}-{place.partition}"
    events = folded(sorted(_events(shown), key=lambda one: one.ts))
    last = events[-MOST_EVENTS:]
    more = f", the last {MOST_EVENTS:,} of {len(events):,}" if len(events) > len(last) else ""
    blocks = [
        prose(list(_standing(shown, standing))),
        Block(f"What happened{more}", _TIMELINE, event_rows(last)),
        Block("Who committed what", _COMMITTERS, [_committer_row(shown, row) for row in committers], is_cut=True),
        Block("Look at", WAYS, list(_ways(place))),
    ]
    return View(f"partition {name}", tuple(block for block in blocks if block.rows))


def _ways(place: Place) -> Iterator[Row]:
    name = f"{place.topic}-{place.partition}"
    every = Search(topic=place.topic, partition=place.partition)
    if place.group_id:
        yield Row((f"Group {place.group_id}", "members, partitions, rebalances"), Group(place.cluster, place.group_id))
        own = replace(every, group_id=place.group_id)
        yield Row(("Messages", f"that name {name} and the group"), Messages(own, f"messages of {name}"))
    yield Row(("All messages", f"that name {name}, also of producers"), Messages(every, f"messages of {name}"))


def _standing(shown: Offsets, row: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    place = shown.place
    yield "partition", f"{place.topic}-{place.partition}"
    yield "group", place.group_id
    yield "seen", seen(shown.scope.start, shown.scope.end)
    if row is None:
        return
    if row["lag"] is not None:
        lag = pluralize(row["lag"], "record")
        age = "" if row["lag_seconds"] is None else f", the oldest of {duration(row['lag_seconds'])}"
        yield "lag", f"{lag}{age if row['lag'] else ''}, as of {moment(row['as_of'])}"
    offsets = [
        ("committed", row["committed_offset"]), ("last stable offset", row["last_stable_offset"]),
        ("high watermark", row["high_watermark"]), ("offsets without records", row["offsets_without_records"] or None),
    ]  # fmt: skip
    yield "offsets", ", ".join(f"{label} {number(value)}" for label, value in offsets if value is not None)
    yield "trouble", trouble(row)


def _events(shown: Offsets) -> Iterator[Event]:
    yield from _commits(shown)
    for row in shown.owners:
        generation = "" if row["generation"] is None else f", generation {row['generation']}"
        yield Event(
            row["owned_from"], shown.label(row["client_id"], row["member_id"]), f"owns it{generation}", style="cyan"
        )
    for row in shown.rebalances:
        took = duration((row["ended"] - row["began"]).total_seconds())
        what = f"rebalances to generation {row['generation']}, {pluralize(row['members'], 'member')}, took {took}"
        yield Event(row["began"], f"group {shown.place.group_id}", what, style="cyan")
    for hold in shown.held:
        yield _hold(hold)
    for row in shown.losses:
        lost = f"lost {size(row['bytes_lost'])} of {pluralize(row['connections'], 'connection')} that spoke of it"
        yield Event(row["began"], "the capture", lost, style="yellow")


def _hold(hold: Hold) -> Event:
    over = "" if hold.is_over else ", still open when it was stated last"
    what = f"holds readers at {hold.last_stable_offset:,} for {duration(hold.seconds)}{over}"
    return Event(hold.since, hold.producer, what, style="yellow")


def _commits(shown: Offsets) -> Iterator[Event]:
    for row in shown.commits.to_pylist():
        done = _OUTCOMES.get(row["outcome"], row["outcome"])
        error = f": {row['error_name']}" if row["outcome"] == "rejected" and row["error_name"] else ""
        what = f"{done} {number(row['value'])}{error}"
        opens = None if row["exchange_id"] is None else OneExchange(row["exchange_id"], row["ts"])
        style = "yellow" if row["outcome"] in ("rejected", "aborted") else ""
        yield Event(row["ts"], shown.label(row["client_id"], row["member_id"]), what, opens, style, row["n"])


def folded(events: Sequence[Event]) -> list[Event]:
    """The events, of one that comes again and again in a row the first with how often it came."""
    found: list[Event] = []
    for one in events:
        before = found[-1] if found else None
        if before is not None and (before.who, before.what) == (one.who, one.what):
            found[-1] = replace(before, times=before.times + one.times, until=one.ts)
        else:
            found.append(one)
    return found


def event_rows(events: Sequence[Event]) -> list[Row]:
    """A line for each event."""
    clock_text = clock_of(one.ts for one in events)
    rows = []
    for one in events:
        until = "" if one.until is None else f", until {clock_text(one.until)}"
        times = f" ({one.times:,} times{until})" if one.times > 1 else ""
        rows.append(Row((clock_text(one.ts), one.who, f"{one.what}{times}"), one.opens, one.style))
    return rows


def _committer_row(shown: Offsets, row: Mapping[str, Any]) -> Row:
    errors = f", {', '.join(row['errors'])}" if row["errors"] else ""
    offsets = f"{number(row['first_offset'])} to {number(row['last_offset'])}{errors}"
    opens = None
    if row["client_id"]:
        place = shown.place
        wanted = Search(
            client_id=row["client_id"], group_id=place.group_id, topic=place.topic, partition=place.partition
        )
        opens = Messages(wanted, f"messages of {row['client_id']}")
    name = shown.label(row["client_id"], row["member_id"])
    cells = (name, number(row["accepted"]), number(row["rejected"]), number(row["pending"]), offsets)
    return Row(cells, opens)
