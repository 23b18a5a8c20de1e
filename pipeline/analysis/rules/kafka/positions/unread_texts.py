"""What is reported of a group that reads without commits, or does not read what it holds, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from shlex import quote
from typing import Any

from pipeline.analysis.libraries import STORED_BY, WHEN_REVOKED
from pipeline.analysis.rules.format import wait_or_waits
from pipeline.humanize import clock, first_of, joined, pluralize, seconds

UNCOMMITTED, OUT_OF_RANGE, OFFSETS_REFUSED, NEVER_COMMITS, NEVER_FETCHED, GROUP_UNCOMMITTED, SINCE_REFUSED = (
    "read_not_committed", "out_of_range", "offsets_refused", "never_commits", "never_fetched", "group_uncommitted",
    "since_refused",
)  # fmt: skip
UNASSIGNED, LEFT_OUT, UNSEEN = "unassigned", "left_out", "unseen"
SILENT: Mapping[str, str] = {
    shape: f"silent_{shape}" for shape in (SINCE_REFUSED, OUT_OF_RANGE, NEVER_FETCHED)
}  # fmt: skip
"""Shapes that name why a member does not read, and the advice where it fetches nothing at all."""
OF_TOPICS = (NEVER_COMMITS, GROUP_UNCOMMITTED)
"""Shapes of a group and topic; the others are those of a partition."""
STATED, START, END, BETWEEN = "at the commit", "at the start", "at the end", "between"
"""Where a group began to read: at the offset that OffsetFetch stated; without any at the start or end of the log, or
elsewhere."""
REQUESTS = {"commit_rejected": "commit", "fetched_commit": "OffsetFetch"}
"""What was refused, by the kind of the event."""
Details = Mapping[str, Any]
_AT_ONCE_US = 1_000_000
_DESCRIBE = "kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {group}"
_TO_OFFSET = (
    "`kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets --to-offset OFFSET --group {group} --topic "
    "{place} --execute`"
)
_ENDS = (
    "`kafka-get-offsets.sh --bootstrap-server BROKER --topic-partitions {place} --time earliest`, and `--time latest`"
)
_WHERE_IT_BEGINS = (
    f"See its commit first (`{_DESCRIBE}`): it reads again from there, and without a commit it begins where "
    "auto.offset.reset says (latest skips what waits)."
)
ADVICE: Mapping[str, str] = {
    UNCOMMITTED: (
        "Now: take a stack dump of {who}: a worker that hangs, or an acknowledgement that is missing, holds back the "
        "commits of this partition. {restart} If no worker hangs, a restart does not help: the application does not "
        "store the offsets of what it has processed. Fix: mark or store the offset of each record that was processed, "
        f"for every partition that is assigned ({STORED_BY}). With asynchronous acknowledgements one that is missing "
        f"holds back all later ones. Drop the work in hand when partitions are revoked ({WHEN_REVOKED}), and end the "
        "process when the worker of a partition ends."
    ),
    OUT_OF_RANGE: (
        f"Now: compare offset {{offset}} with the start and the end of the log ({_ENDS}), then restart {{who}}: it "
        "begins where auto.offset.reset says (earliest reads the whole log, latest skips what waits). If it is refused "
        f"again, stop the group and set it to an offset that exists ({_TO_OFFSET}). Fix: set auto.offset.reset to "
        "earliest or latest, or handle the error and seek; keep retention.ms of topic {topic} longer than the longest "
        "halt of the group."
    ),
    OFFSETS_REFUSED: (
        "Now: restart {who}, so that it asks again. Fix: after NOT_COORDINATOR a client must find the coordinator "
        "again (FindCoordinator), and repeat OffsetFetch until it is answered: update its library, or correct what "
        "catches the error."
    ),
    NEVER_FETCHED: (
        "Now: take a stack dump of {who}, then restart it: it holds the partition, so no other member reads it. "
        f"{_WHERE_IT_BEGINS} Fix: resume() what was paused in every path; seek to a known offset where the stored one "
        "could not be had; and end the process when the worker of a partition ends, so that another member takes it."
    ),
    SINCE_REFUSED: (
        "Now: take a stack dump of {who}, then restart it: its heartbeats continue, so it keeps the partition, and no "
        f"other member reads it. {_WHERE_IT_BEGINS} Fix: repeat what was refused if the error passes by itself "
        "(COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR), else drop what is in hand and read on from the last commit; "
        "poll again after UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION, so that the member joins again; and end the process "
        "when the worker of a partition ends, so that another member takes it."
    ),
    UNASSIGNED: (
        "Now: restart {who}, which leads the group and assigns: it asks again which partitions the topic has. If the "
        f"partition stays without a member (`{_DESCRIBE}` shows none), change the assignor. Fix: use an assignor of "
        "the library (partition.assignment.strategy), or let your own give each partition of every topic that is "
        "subscribed to; a leader notices added partitions after metadata.max.age.ms."
    ),
    LEFT_OUT: (
        "Now: nothing if {who} is not meant to read this partition, or another process that is not captured does. Else "
        "take a stack dump: the partition is paused, its worker has ended, or assign() left it out. Restart it "
        "then: it assigns again. Fix: resume() in every path; take what you assign from partitionsFor() and ask again "
        "after metadata.max.age.ms, or let subscribe() do it; end the process when the reader of a partition ends."
    ),
    UNSEEN: (
        f"Now: see whether the group's commit of this partition moves (`{_DESCRIBE}`): then {{who}} works where the "
        "capture does not see it, so capture its host (`--members --verbose` names it) as well. If the commit does not "
        "move, restart it: it hangs or is gone, and the coordinator keeps its partitions until session.timeout.ms has "
        "passed, those of a static member (group.instance.id) even if it leaves. Fix: set session.timeout.ms no longer "
        "than a partition may stand still, and end the process when it no longer polls."
    ),
    SILENT[OUT_OF_RANGE]: (
        f"Now: compare offset {{offset}} with the start and the end of the log ({_ENDS}), then restart {{who}}: its "
        "heartbeats continue and it fetches nothing, so its partitions are not read. It begins where auto.offset.reset "
        "says (earliest reads the whole log, latest skips what waits). If it is refused again, stop the group and set "
        f"each partition that is refused to an offset that exists ({_TO_OFFSET}). Fix: set auto.offset.reset to "
        "earliest or latest, or handle the error and seek; end the process when its reading loop ends; keep "
        "retention.ms of topic {topic} longer than the longest halt of the group."
    ),
    SILENT[NEVER_FETCHED]: (
        "Now: take a stack dump of {who}, then restart it: it holds partitions that no other member reads, and has "
        "fetched nothing at all. If its log names a broker that it cannot reach, or offsets that it cannot look up, a "
        f"restart does not help. {_WHERE_IT_BEGINS} Fix: resume() what was paused in every path, and end the process "
        "when its reading loop ends or never begins, so that others take its partitions."
    ),
    SILENT[SINCE_REFUSED]: (
        "Now: take a stack dump of {who}, then restart it: it holds partitions that no other member reads, and has "
        f"read nothing since that refusal. {_WHERE_IT_BEGINS} Fix: repeat what was refused if the error passes by "
        "itself; poll again, so that a member that was put out joins again; and end the process when its reading loop "
        "ends, so that others take its partitions."
    ),
    NEVER_COMMITS: (
        "Now: nothing if {who} is meant to read everything at each start. Else let it commit before it ends "
        "(`kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {group}` shows no offset until then). "
        "Fix: enable.auto.commit=true, or commit after each batch and once more before close(); a reader that needs no "
        "offsets needs no group.id: let it use assign()."
    ),
    GROUP_UNCOMMITTED: (
        f"Now: look in the log of {{who}} for commits that fail or are never sent (`{_DESCRIBE}` shows what the group "
        "has committed), and restart nothing before you know that it does no harm to process these records twice, or "
        "to skip them. If it keeps its offsets elsewhere, or commits more seldom than this (with each file that it "
        "writes), all is well. "
        f"Fix: enable.auto.commit=true, or commit what is processed after each batch ({STORED_BY}) and once more "
        "before close()."
    ),
}
"""By shape."""


def summary(group: str, place: str, first_us: int, last_us: int, details: Mapping[str, Any]) -> str:
    """What happened, in plain words."""
    more = _MORE[details["shape"]](details)
    return f"{headline(group, place, details)}, from {clock(first_us)} to {clock(last_us)} UTC.{more}"


def advice(group: str, topic: str, partition: int | None, details: Mapping[str, Any]) -> str:
    """What to do about it."""
    shape = details["shape"]
    return ADVICE[SILENT[shape] if is_silent(details) else shape].format(
        group=quote(group), topic=quote(topic), place=quote(f"{topic}:{partition}"), who=details["clients"],
        offset=details.get("offset"), restart=_restart(group, details),
    )  # fmt: skip


def _restart(group: str, details: Details) -> str:
    """What a restart does to a partition that is read and not committed."""
    if details.get("committed") is None or details.get("records_behind") is None:
        shows = _DESCRIBE.format(group=quote(group))
        return (
            f"See the commit before a restart (`{shows}`): without one it begins where auto.offset.reset says (latest "
            "skips what it has in hand)."
        )
    again = pluralize(details["records_behind"], "record")
    return f"A restart reads {again} again, from the last commit, {details['committed']}."


def is_silent(details: Details) -> bool:
    """Whether a member fetches nothing at all, and why is known."""
    return details.get("shape") in SILENT and not details["other_fetches"]


def headline(group: str, place: str, details: Mapping[str, Any]) -> str:
    """The same in one line."""
    return _HEADLINES[details["shape"]](group, place, details)


def _read_on(group: str, place: str, details: Details) -> str:
    are_several = " " in place
    from_to = "" if are_several else f", from offset {details['begun_at']} to {details['position']},"
    it = "them" if are_several else "it"
    others = ""
    if details["other_commits"]:
        whose = "it" if details["own_commits"] else "the group"
        others = f", while {whose} commits other partitions ({pluralize(details['other_commits'], 'commit')})"
    return f"{details['clients']} of group {group} keeps reading {place}{from_to} without committing {it}{others}"


def _out_of_range(group: str, place: str, details: Details) -> str:
    who, at = details["clients"], clock(details["refused_us"])
    if details["refusals"] > 1:
        many = pluralize(details["refusals"], "time")
        return f"{who} of group {group} cannot read {place}: OFFSET_OUT_OF_RANGE, {many} since {at} UTC"
    at = f"for offset {details['offset']} at {at} UTC"
    return f"{who} of group {group} has not fetched {place} since it got OFFSET_OUT_OF_RANGE {at}"


def _waiting(details: Details) -> str:
    number = details["records_behind"]
    return f"{pluralize(number, 'record')} {wait_or_waits(number)}"


def _never_fetched(group: str, place: str, details: Details) -> str:
    since, waits = clock(details["since_us"]), _waiting(details)
    if is_silent(details):
        whose = f"{details['clients']} of group {group} has held {place} since {since} UTC"
        return f"{whose} and has fetched nothing at all: {waits}"
    return (
        f"{details['clients']} of group {group} has held {place} since {since} UTC and never fetched it, although it "
        f"fetches others: {waits}"
    )


def _since_refused(group: str, place: str, details: Details) -> str:
    refused = f"its {details['request']} was refused with {details['error']} at {clock(details['refused_us'])} UTC"
    others = "although it fetches others" if details["other_fetches"] else "and fetches nothing else"
    waits = _waiting(details)
    return f"{details['clients']} of group {group} has not fetched {place} since {refused}, {others}: {waits}"


def _unassigned(group: str, place: str, details: Details) -> str:
    return (
        f"No member of group {group} was given {place} by {details['clients']}, its leader, at "
        f"{clock(details['since_us'])} UTC, although members read other partitions of the topic: {_waiting(details)}"
    )


def _unseen(group: str, place: str, details: Details) -> str:
    at, waits = clock(details["since_us"]), _waiting(details)
    if details["seen_us"] is not None and details["seen_us"] - details["since_us"] < _AT_ONCE_US:
        return f"{details['clients']} of group {group} was given {place} at {at} UTC and was not seen since: {waits}"
    if details["seen_us"] is None:
        return (
            f"Member {details['clients']} of group {group} was given {place} at {at} UTC, and the capture shows "
            f"nothing of it, although it shows others at its coordinator {details['server']}: {waits}"
        )
    return (
        f"{details['clients']} of group {group} was given {place} at {at} UTC, and nothing of it was seen on any "
        f"connection since {clock(details['seen_us'])} UTC: {waits}"
    )


def _left_out(_group: str, place: str, details: Details) -> str:
    of = f"who commits for group {details['group']} and is no member," if details["group"] else "of no known group,"
    waits = _waiting(details)
    if details["sign"] == "never":
        number = pluralize(details["partitions_read"], "other partition")
        return f"{details['clients']}, {of} reads {number} of the topic and has never asked for {place}: {waits}"
    at = f"{clock(details['since_us'])} UTC"
    known = {
        "committed": f"it last committed there at {at}",
        "fetched_commit": f"it asked for its commit there at {at}",
    }
    since = f"since {known.get(details['sign'], at)}"
    return f"{details['clients']}, {of} has not fetched {place} {since}, although it continues reading others: {waits}"


def silent_since(group: str, places: str, of_members: Sequence[Details], *, is_whole: bool) -> str:
    """One line about members that fetch nothing at all, and since when.

    Args:
        group, places: what they read.
        of_members: details of SILENT shapes, of each member and topic.
        is_whole: whether the group as a whole has stopped.
    """
    shape = of_members[0]["shape"]
    alike = [one for one in of_members if one["shape"] == shape]
    whos = list(dict.fromkeys(str(one["clients"]) for one in alike))
    if shape == NEVER_FETCHED:
        have = "has" if len(whos) == 1 else "have"
        since = clock(min(one["since_us"] for one in alike))
        return f"{first_of(whos)} of group {group} {have} fetched nothing at all of {places} since {since} UTC"
    if is_whole:
        return f"Group {group} has read nothing of {places} {_since(alike, first_of(whos))}"
    have, they = ("has", "it") if len(whos) == 1 else ("have", "they")
    since = _since(alike, they if shape == OUT_OF_RANGE else first_of(whos))
    return f"{first_of(whos)} of group {group} {have} fetched nothing {since}"


def _since(alike: Sequence[Details], name: str) -> str:
    at = clock(min(one["refused_us"] for one in alike))
    if alike[0]["shape"] == OUT_OF_RANGE:
        return f"since {name} got OFFSET_OUT_OF_RANGE at {at} UTC"
    requests = joined(list(dict.fromkeys(str(one["request"]) for one in alike)))
    errors = ", ".join(dict.fromkeys(str(one["error"]) for one in alike))
    return f"since the {requests} of {name} was refused with {errors} at {at} UTC"


def _offsets_refused(group: str, place: str, details: Details) -> str:
    tries = "once" if details["refusals"] == 1 else pluralize(details["refusals"], "time")
    return (
        f"{details['clients']} asked {tries} for the offsets of group {group}, was refused with {details['error']}, "
        f"and has read nothing of {place} since"
    )


def _never_committed(group: str, place: str, details: Details) -> str:
    return (
        f"Group {group} has never committed {place}: each of {details['starts']} starts of {details['clients']} read "
        f"from offset {details['begun_at']} on"
    )


def _nothing_committed(group: str, place: str, details: Details) -> str:
    read = f"{pluralize(details['read'], 'record')} of {place} in {seconds(details['read_us'])}"
    return f"Group {group} commits nothing: {details['clients']} has read {read}"


_SEEN: Mapping[str, str] = {
    UNCOMMITTED: "its fetches of these offsets, and that no commit of them follows",
    OUT_OF_RANGE: "the broker's OFFSET_OUT_OF_RANGE, and that no later fetch there succeeds",
    OFFSETS_REFUSED: "the refused OffsetFetch, and that the client neither repeats it nor fetches",
    NEVER_FETCHED: "that the member holds the partition, and that no fetch of it follows",
    NEVER_COMMITS: "the offset at which each start begins to fetch, and that no commit follows",
    GROUP_UNCOMMITTED: "its fetches, and that no commit of the group follows",
    SINCE_REFUSED: "the refusal, later heartbeats, and that no fetch follows",
    UNSEEN: "what the leader gave to the member, records written since, and that no request of it follows",
    LEFT_OUT: "its fetches of other partitions of that broker, records written since, and that no fetch follows",
    UNASSIGNED: "all that the leader gave to members with SyncGroup, records written since, and that no fetch follows",
}


def seen(details: Details) -> str:
    """What a finding of a shape rests on."""
    return _SEEN.get(details["shape"], "its requests and their responses")


_HEADLINES: Mapping[str, Callable[[str, str, Details], str]] = {
    UNCOMMITTED: _read_on,
    OUT_OF_RANGE: _out_of_range,
    NEVER_FETCHED: _never_fetched,
    OFFSETS_REFUSED: _offsets_refused,
    NEVER_COMMITS: _never_committed,
    GROUP_UNCOMMITTED: _nothing_committed,
    SINCE_REFUSED: _since_refused,
    UNASSIGNED: _unassigned,
    LEFT_OUT: _left_out,
    UNSEEN: _unseen,
}


def _known_commit(details: Details) -> str:
    """The last commit of what is read on, and how much a restart would read again."""
    stated = details["committed"]
    seen_us = details.get("committed_us")
    by = "as OffsetFetch states" if seen_us is None else f"at {clock(seen_us)} UTC"
    known = "No commit of it is known." if stated is None else f"Its last commit, {by}, is {stated}."
    least = ""
    if not details.get("is_asked", True):
        known, least = "Its last commit is older than the capture, or there never was one.", "at least "
    return f" {known} After a restart it would read {least}{pluralize(details['records_behind'], 'record')} again."


def _asked_for(details: Details) -> str:
    waits = f" {_waiting(details)} there." if details["records_behind"] else ""
    return f" It asked for offset {details['offset']}.{waits}"


def _begun(details: Details) -> str:
    """Where a group that commits nothing began, where a restart would begin, and whether it is a member."""
    began, place = details["began"], details["place"]
    again = pluralize(details["read"], "record")
    if not details["is_asked"]:
        known = f"It began before the capture, or did not ask for its commit of {place}."
    elif began == STATED:
        stated = f"Its commit of {place} is {details['committed']}, as OffsetFetch states"
        known = f"{stated}: a restart would read {again} again."
    else:
        known = f"OffsetFetch states no commit of {place}: a restart begins where auto.offset.reset says. "
        known += {
            START: f"This time that was the start of the log: it would read {again} again.",
            END: "This time that was the end of the log: it would skip what comes until then.",
        }.get(began, f"This time it began at offset {details['begun_at']}.")
    member = "Its heartbeats continue." if details["is_member"] else "It is no member of the group (assign())."
    return f" {known} {member}"


_MORE: Mapping[str, Callable[[Details], str]] = {
    UNCOMMITTED: _known_commit,
    OUT_OF_RANGE: _asked_for,
    NEVER_FETCHED: lambda _: "",
    OFFSETS_REFUSED: lambda details: f" It is alive: its last request was seen {seconds(details['alive_us'])} later.",
    NEVER_COMMITS: lambda details: f" In all {pluralize(details['read_again'], 'record')} were read again.",
    GROUP_UNCOMMITTED: _begun,
    SINCE_REFUSED: lambda _: " Its heartbeats continue.",
    UNASSIGNED: lambda _: "",
    UNSEEN: lambda _: " It hangs or is gone, or works where the capture does not see it.",
    LEFT_OUT: lambda _: " No other captured reader that may replace it fetches the partition.",
}
