"""Words for incidents that begin with commits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.analysis.incidents.case import Case, arg, begun, count, listed, waiting
from pipeline.analysis.incidents.entities import Known, names_of_each
from pipeline.analysis.incidents.words.model import LOSES, SEEN, STANDS, WHY_IS_NOT, Say, Words, advised, groups, never
from pipeline.analysis.incidents.words.refusals import fix, now
from pipeline.analysis.libraries import STORED_BY, WHEN_REVOKED
from pipeline.analysis.rules.callers import Caller
from pipeline.analysis.rules.kafka.positions import loop_words, unread_words
from pipeline.analysis.rules.people import joined

_MEMBERS = "kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group"
_AT_RANDOM = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
"""Coordinators make member ids of the client id and this: no name for a headline."""
_COMMANDS = 3
_REVOKED = f"Finish or drop a partition's work when it is revoked ({WHEN_REVOKED}), and commit only what is assigned"


def _committer(case: Case) -> Caller:
    """Who commits the old offset, apart from who is held back by it."""
    stated = case.details.get("committer")
    if isinstance(stated, dict):
        name = stated.get("client_id")
        return next((one for one in case.callers if one.client_id == name), Caller(name, None))
    return case.first_caller


def _members(case: Case) -> str:
    """Who it is among them is not on the wire, unless the finding says so."""
    return case.who if case.callers else f"a member of group {case.group}"


def _stuck(case: Case) -> str:
    details = case.details
    other = (details.get("other_committer") or {}).get("client_id")
    over = f", over the newer commits of {other}" if other else ", although the group has read on"
    old = details.get("old_offset")
    back = "an old offset" if old is None or len(case.bundle.findings) > 1 else f"offset {old}"
    return f"{_committer(case)} sets group {case.group} back to {back} of {case.places} again and again{over}"


def _stuck_now(case: Case) -> str:
    again = f": it would read {count(case.records, 'record')} again" if case.records else ""
    return f"Restart {_committer(case)}. Do not restart the rest of group {case.group} before that{again}."


def _rivals(case: Case) -> str:
    committers = case.details.get("committers") or ()
    ways = [_way(one, committers) for one in committers]
    return (
        f"{joined([f'{name}{way}' for name, way in zip(names_of_each(committers), ways, strict=True)])} commit "
        f"{case.places} of group {case.group} by turns, over each other"
    )


def _way(one: Mapping[str, Any], committers: Sequence[Mapping[str, Any]]) -> str:
    """Who is a member and who is not, where both are among them."""
    if len({bool(other.get("member_id")) for other in committers}) < 2:
        return ""
    return " by subscribe()" if one.get("member_id") else " by assign(), without being a member,"


def _regressed(case: Case) -> str:
    before, after = case.details.get("before"), case.details.get("after")
    falls = sum(int(one.details.get("falls") or 1) for one in case.bundle.findings)
    how_far = "" if before is None or after is None else f", at most from {before} to {after}"
    return f"{case.who} sets group {case.group} back on {case.places}, {count(falls, 'time')}{how_far}"


def _rejected(case: Case) -> str:
    if case.details.get("by_hand"):
        members = listed(str(name) for name in case.details.get("subscribed", ())) or "others"
        return (
            f"{case.who} commits to group {case.group} by assign(), without being a member, while {members} joined it "
            f"by subscribe(): the coordinator refuses each of its commits ({case.kinds})"
        )
    return (
        f"The coordinator refuses the commits of {case.who} to group {case.group} ({case.kinds}): its progress is "
        "not saved, and the group reads these records again"
    )


def _dropped(case: Case) -> str:
    if case.details.get("shape"):
        return unread_words.headline(case.group, case.places, case.details)
    waits = f"{waiting(case.records)} there" if case.records else "records wait there"
    owner = _owner(case)
    by = f"{owner} of group" if owner else "Group"
    return f"{by} {case.group} no longer commits {case.places}, but still commits the topic's other partitions: {waits}"


def _owner(case: Case) -> str:
    """The process that holds the partition; by its member id, without what is random in it, where no more is known."""
    if name := case.details.get("owner_name"):
        return str(name)
    return case.who if case.callers else _AT_RANDOM.sub("", str(case.details.get("owner") or ""))


def _dropped_now(case: Case) -> str:
    if case.details.get("shape"):
        return _advised(case, "now")
    members = f"`{_MEMBERS} {arg(case.group)} --members --verbose`"
    why = f"its worker for {case.places} has died or hangs, does not store its offsets, or is paused"
    if case.callers:
        return f"Restart {_owner(case)}: {why}."
    owner = case.details.get("owner") or f"the member that owns {case.places}"
    return f"Restart {owner} ({members} gives its host): {why}."


def _stopped(case: Case) -> str:
    silent = [one.details for one in case.bundle.findings if unread_words.is_silent(one.details)]
    if silent:
        waits = f": {waiting(case.records)}" if case.records else ""
        is_whole = any(
            one.row.get("partition") is None and not one.details.get("members") for one in case.bundle.findings
        )
        return unread_words.silent_since(case.group, case.places, silent, is_whole=is_whole) + waits
    if case.details.get("shape"):
        return unread_words.headline(case.group, case.places, case.details)
    waits = waiting(case.records) if case.records else "records wait"
    if case.details.get("members"):
        places = case.details.get("places") or [case.places]
        return f"{case.who} of group {case.group} no longer commits {listed(places)}: {waits} there"
    if _still_fetches(case):
        return f"{case.members} still fetches {case.places}, but has stopped committing: {waits}"
    return f"{case.members} has stopped committing on {case.places}: {waits}"


def _still_fetches(case: Case) -> bool:
    """Whether a group that has stopped committing keeps up with the log, in each topic."""
    return all(one.details.get("fetched_beyond") for one in case.bundle.findings)


def _look_at_members(case: Case) -> str:
    if case.details.get("shape"):
        return _advised(case, "now")
    if case.details.get("members"):
        return (
            f"Take a stack dump of {case.who}, then restart it: the others of group {case.group} take over what it "
            "holds and read on from the last commit."
        )
    if _still_fetches(case):
        return (
            f"Check the log of {case.who} for failing commits (in Flink: checkpoints), and take a stack dump: a client "
            "that still fetches either processes records without committing them, or its library fetches ahead of a "
            "worker that hangs. If processing records twice does no harm, restart it: it reads again from the last "
            f"commit (`{_MEMBERS} {arg(case.group)}` shows it)."
        )
    return (
        f"List the members that are left: `{_MEMBERS} {arg(case.group)} --members`.{_last_committer(case)} Restart "
        "them; if there are none, start the application. If it was shut down for good, delete the group."
    )


def _last_committer(case: Case) -> str:
    return f" Its commits came from {case.who}." if case.callers else ""


def _stopped_fix(case: Case) -> str:
    if case.details.get("shape") or _still_fetches(case):
        return _advised(case, "fix")
    return (
        "Let the process exit when its consumer fails, so that it is restarted; commit or acknowledge each processed "
        "record; keep the work between two polls below max.poll.interval.ms; alert on the group's lag."
    )


def _stopped_why(case: Case) -> str:
    if case.details.get("shape"):
        return _shape_why(case)
    came = "new records came, and the group fetched them" if _still_fetches(case) else "new records came"
    return f"{SEEN}{came}, but no commit followed. {WHY_IS_NOT}"


def _stalled(case: Case) -> str:
    offset = case.details.get("offset")
    if _loops(case):
        waits = f", {waiting(case.records)}" if case.records else ""
        came = "" if len(case.bundle.findings) > 1 else f" {loop_words.came(case.details)}"
        alive = "commits but " if case.details.get("commits") else ""
        at = "one offset" if len(case.bundle.findings) > 1 else f"offset {offset}"
        does = f"{alive}does not move on {case.places}"
        return f"{case.members} {does}: it fetches from {at} again and again{came}{waits}"
    at = f" at offset {offset}" if offset is not None and len(case.bundle.findings) == 1 else ""
    waits = f": {waiting(case.records)}" if case.records else ""
    return f"{case.members} is alive but makes no progress on {case.places}{at}{waits}"


def _advised(case: Case, part: str) -> str:
    return begun(advised(case, part))


def _or_advised(part: str, text: str) -> Say:
    """A text that holds for all cases but those of a shape of their own, whose findings state what to do."""
    return lambda case: _advised(case, part) if case.details.get("shape") else text


def _or_reads(text: str) -> Say:
    """What a case rests on."""
    return lambda case: _shape_why(case) if case.details.get("shape") else text


def _shape_why(case: Case) -> str:
    return f"{SEEN}{unread_words.seen(case.details)}. {WHY_IS_NOT}"


def _loops(case: Case) -> bool:
    """Whether it is a group that fetches from one offset again and again."""
    return bool(case.details.get("again"))


def _stalled_fix(case: Case) -> str:
    if _loops(case):
        return _advised(case, "fix")
    return "Give a record that fails a limited number of tries, then a dead letter topic; resume() what was paused."


def _is_cut_off(case: Case) -> bool:
    """Whether what stops it is on the wire: its own limit, at which the broker cuts a record off."""
    return case.details.get("again") == loop_words.CUT


def _stalled_why(case: Case) -> str:
    if _is_cut_off(case):
        return f"{SEEN}its fetches name one offset and their limit, and the answers end within the record there."
    if _loops(case):
        return f"{SEEN}its fetches name one offset, and the answers a later end of the log. {WHY_IS_NOT}"
    return f"{SEEN}it commits one offset over and over and fetches nothing beyond it. {WHY_IS_NOT}"


def _place(one: Known) -> tuple[str, int]:
    return str(one.row.get("topic") or ""), int(one.row.get("partition") or 0)


def _as_options(findings: Iterable[Known]) -> str:
    """Topics and partitions as ``--reset-offsets`` takes them."""
    by_topic: dict[str, set[int]] = {}
    for row in (one.row for one in findings if one.row.get("topic") is not None):
        numbers = by_topic.setdefault(row["topic"], set())
        if row.get("partition") is not None:
            numbers.add(row["partition"])
    places = (
        f"{topic}:{','.join(map(str, sorted(numbers)))}" if numbers else topic
        for topic, numbers in sorted(by_topic.items())
    )
    return " ".join(f"--topic {arg(place)}" for place in places) or "--topic TOPIC:PARTITION"


def _stalled_now(case: Case) -> str:
    if _loops(case):
        return _advised(case, "now")
    return (
        f"Restart the member that owns {case.places} (`{_MEMBERS} {arg(case.group)} --members --verbose` names it): "
        "it retries a record for ever, or has paused the partition. If it gets stuck again, stop the group, set it "
        f"past that record by {joined(_past(case))}, and start it."
    )


_RESET = "kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets"


def _past(case: Case) -> list[str]:
    """The commands that set the group to an offset that exists: behind the record, or where the log begins."""
    deleted = [one for one in case.bundle.findings if one.details.get("lost_to_retention")]
    found = [f"`{_RESET} --to-earliest {_as_options(deleted)} --group {arg(case.group)} --execute`"] if deleted else []
    others = sorted((one for one in case.bundle.findings if one not in deleted), key=_place)
    for one in others[:_COMMANDS]:
        offset = one.details.get("offset")
        to = offset + 1 if isinstance(offset, int) else "OFFSET"
        found.append(f"`{_RESET} --to-offset {to} {_as_options([one])} --group {arg(case.group)} --execute`")
    if len(others) > _COMMANDS:
        found.append(f"the same for {count(len(others) - _COMMANDS, 'more partition')}")
    return found


def _lag(case: Case) -> str:
    before = sum(int(one.details.get("lag_before") or 0) for one in case.bundle.findings)
    after = sum(int(one.details.get("lag_after") or 0) for one in case.bundle.findings)
    grew = f": {waiting(after)}, {before:,} when it began" if after else ""
    return f"{case.members} consumes less than is written to {case.places}{grew}"


def _rewound(case: Case) -> str:
    if case.details.get("shape"):
        return unread_words.headline(case.group, case.places, case.details)
    back = f"{count(case.records, 'record')} of {case.places} are read again" if case.records else "records come again"
    return f"{case.who if case.callers else 'Somebody'} set group {case.group} back: {back}"


def _rewound_now(case: Case) -> str:
    if case.details.get("shape"):
        return _advised(case, "now")
    return (
        f"If nobody set group {case.group} back on purpose (kafka-consumer-groups.sh, seek), "
        f"stop {case.clients}; warn downstream systems that these records arrive twice."
    )


COMMITS: dict[str, Words] = {
    "stuck_commit": Words(
        _stuck,
        _stuck_now,
        f"{_REVOKED}. Worker threads must not commit by themselves: hand what they have done to the thread that polls.",
        f"{SEEN}the broker accepted the old offset each time, and the newer ones between.",
        STANDS,
        source=lambda case: str(_committer(case)),
        affected=groups,
    ),
    "competing_committers": Words(
        _rivals,
        lambda case: (
            f"Find out who owns the partition (`{_MEMBERS} {arg(case.group)} --members --verbose`) and stop the other."
        ),
        f"{_REVOKED}; give applications that are not one another's copies a group.id of their own, and do not mix "
        "assign() with subscribe() in one group.",
        f"{SEEN}both commit, and are accepted, without a rebalance between.",
        LOSES,
    ),
    "commit_regressed": Words(
        _regressed,
        lambda case: (
            f"If group {case.group} must be restarted, wait until it has committed beyond: else it reads records twice."
        ),
        "Commit offsets of a partition in order and from one place: do not repeat a failed commitAsync that a newer "
        "one may have overtaken, nor commit what worker threads finish out of order.",
        f"{SEEN}the broker accepted each of these commits.",
        LOSES,
    ),
    "commit_rejected": Words(
        _rejected,
        lambda case: begun(advised(case, "now")) if case.details.get("by_hand") else now(case),
        lambda case: begun(advised(case, "fix")) if case.details.get("by_hand") else fix(case),
        f"{SEEN}these are the coordinator's own answers.",
        LOSES,
    ),
    "partition_dropped_from_commits": Words(
        _dropped,
        _dropped_now,
        _or_advised(
            "fix",
            "Let the whole process fail when one of its workers does, resume what was paused (resume()), and store "
            f"the offset of each record that was processed ({STORED_BY}).",
        ),
        _or_reads(f"{SEEN}the topic's other partitions are committed without this one. {WHY_IS_NOT}"),
        STANDS,
        source=_members,
        is_cause=never,
    ),
    "stopped": Words(
        _stopped,
        _look_at_members,
        _stopped_fix,
        _stopped_why,
        STANDS,
        source=_members,
        is_cause=never,
    ),
    "stalled": Words(
        _stalled,
        _stalled_now,
        _stalled_fix,
        _stalled_why,
        STANDS,
        source=_members,
        is_cause=_is_cut_off,
    ),
    "lag_growing": Words(
        _lag,
        lambda case: (
            f"Start more members of group {case.group}, up to the number of partitions; if only {case.places} lag, "
            "look at the member that owns them."
        ),
        "Make the work per record cheaper (batch what goes to databases and remote calls), add partitions, spread "
        "keys; fetch more at once (fetch.min.bytes, max.partition.fetch.bytes, max.poll.records).",
        f"{SEEN}it commits and gets on, and more is written than it takes.",
        LOSES + 5,
        source=_members,
        is_cause=never,
    ),
    "rewound": Words(
        _rewound,
        _rewound_now,
        _or_advised(
            "fix",
            "Make what follows from a record idempotent; let only one tool or job reset offsets, of groups at rest.",
        ),
        _or_reads(f"{SEEN}the commit that fell back, and the fetches from there."),
        LOSES,
    ),
}
