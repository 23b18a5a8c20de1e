"""Life after life of a group's members ends at the same offset of one partition.

Meaning: a record there ends whoever processes it. Its partition stands still, and with each restart the whole group
rebalances.
Evidence: members that fetched beyond the group's commit in this partition and then ended (they left for good, or the
same client came back over a new connection), again and again, while the commit did not move. Members that end while
they hold other partitions as well say less: the partition in which most of them ended is the one, and where all stand
still alike it is none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from shlex import quote
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline.analysis.rules.format import times, who
from pipeline.analysis.rules.kafka.groups.coming_and_going import LEAVES, Step
from pipeline.analysis.rules.model import Finding, Sources, State
from pipeline.analysis.rules.recurrence import last_of_each
from pipeline.analysis.tables import Row, Tables
from pipeline.humanize import clock, some

if TYPE_CHECKING:
    from pipeline.analysis.rules.kafka.groups.poison_record import PoisonRecord

NAME = "poison_record"
ADVICE = (
    "Now: look in the log of the members for an exception at this offset, and look at the record "
    "(`kafka-console-consumer.sh --bootstrap-server BROKER --topic {topic} --partition {partition} --offset {offset} "
    "--max-messages 1 --property print.headers=true --property print.key=true`). If they fail on it and it may be "
    "skipped, stop the group and set it past the record (`kafka-consumer-groups.sh --bootstrap-server BROKER "
    "--reset-offsets --to-offset {after} --group {group} --topic {place} --execute`). If no exception shows, skip "
    "nothing: the members process the record and end without committing it. Fix: commit before the consumer closes; "
    "catch what processing one record throws and write that record to a dead letter topic (Spring: "
    "DefaultErrorHandler with DeadLetterPublishingRecoverer; Kafka Streams: deserialization.exception.handler and "
    "processing.exception.handler; Connect: errors.tolerance=all with errors.deadletterqueue.topic.name)."
)

_CLEAR = 0.75
"""Of the lives that ended in the partition in question, at most this share may have ended in another one as well."""

_LAST_OFFSET = 2**63

Place = tuple[str, int]
_Connection = tuple[str, str, str]
"""Cluster, group, connection."""
_Client = tuple[str, str, str, str | None]
"""Cluster, group, host, client id."""


@dataclass(frozen=True, slots=True)
class Life:
    """The last membership of a process: from its last entry to its end, µs since the epoch."""

    client_id: str | None
    host: str
    cluster: str
    group: str
    since_us: int
    until_us: int
    exchange_id: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A life that ended with records of a partition in hand, beyond the group's commit.

    Attributes:
        at: the first offset that was not committed.
        fetched_to: one past the last record that it had fetched.
    """

    life: Life
    at: int
    fetched_to: int
    exchange_id: str


@dataclass(frozen=True, slots=True)
class Standstill:
    """Lives that ended at one offset of a partition, without a commit beyond it in between."""

    place: Place
    ends: tuple[Ended, ...]
    healed_us: int | None

    @property
    def first_us(self) -> int:
        """When the first of these lives began."""
        return self.ends[0].life.since_us

    @property
    def last_us(self) -> int:
        """When the last of them ended."""
        return self.ends[-1].life.until_us

    def is_beside(self, other: Standstill) -> bool:
        """Whether both were at one time."""
        return self.first_us <= other.last_us and other.first_us <= self.last_us


def lives(of_groups: Iterable[Step]) -> dict[tuple[str, str], list[Life]]:
    """By cluster and group the lives that ended, in the order of their ends.

    A life ended if its member left and its connection did not enter again, or if the same client entered over a new
    one. Of members of one host and client id that run side by side it is not known who ended: they are left out.
    """
    entered: dict[_Connection, Step] = {}
    left: dict[_Connection, Step] = {}
    latest: dict[_Client, _Connection] = {}
    found: defaultdict[_Client, list[Life]] = defaultdict(list)
    over: set[_Connection] = set()
    side_by_side: set[_Client] = set()
    for step in of_groups:
        connection = (step.cluster, step.group, step.connection_id)
        client = (step.cluster, step.group, step.host, step.client_id)
        if step.what == LEAVES:
            if connection in entered:
                left[connection] = step
            continue
        before = latest.get(client, connection)
        if before != connection and before in entered:
            end = left.pop(before, step)
            found[client].append(_life(entered.pop(before), end.us))
            over.add(before)
        if connection in over:
            side_by_side.add(client)
        left.pop(connection, None)
        entered[connection], latest[client] = step, connection
    for connection, end in left.items():
        last = entered[connection]
        found[last.cluster, last.group, last.host, last.client_id].append(_life(last, end.us))
    by_group: defaultdict[tuple[str, str], list[Life]] = defaultdict(list)
    for client, some_lives in found.items():
        if client not in side_by_side:
            by_group[client[:2]] += some_lives
    return {group: sorted(some_lives, key=lambda life: life.until_us) for group, some_lives in by_group.items()}


def _life(last: Step, until_us: int) -> Life:
    return Life(last.client_id, last.host, last.cluster, last.group, last.answered_us, until_us, last.exchange_id)


def standstills(
    ended: Mapping[Place, Sequence[Ended]], commits: Mapping[Place, Sequence[tuple[int, int]]]
) -> list[Standstill]:
    """Of each partition of a group the runs of lives that ended at the same offset, in order of time.

    Args:
        ended: by partition, in the order of their ends.
        commits: by partition, time and offset of accepted commits, in the order of time.
    """
    found = []
    for place, ends in sorted(ended.items()):
        for at, some_ends in groupby(ends, key=lambda one: one.at):
            run = tuple(some_ends)
            some_commits = commits.get(place, ())
            later = islice(some_commits, bisect_right(some_commits, (run[-1].life.until_us, _LAST_OFFSET)), None)
            found.append(Standstill(place, run, next((us for us, offset in later if offset > at), None)))
    return found


def is_poisoned(
    one: Standstill,
    others: Sequence[Standstill],
    commits: Mapping[Place, Sequence[tuple[int, int]]],
    settings: PoisonRecord.Thresholds,
) -> bool:
    """Whether these lives ended because of a record of this partition.

    Args:
        one: what is in question.
        others: the group's other partitions, at that time.
        commits: of all partitions of the group; see :func:`standstills`.
        settings: thresholds.
    """
    usual = _usual_us(commits)
    enough = settings.poison_restarts if usual is not None else 2 * settings.poison_restarts
    least_us = max(settings.poison_seconds * 1_000_000, 2 * (usual or 0))
    if len(one.ends) < enough or one.last_us - one.first_us < least_us:
        return False
    as_often = [other for other in others if len(other.ends) > _CLEAR * len(one.ends)]
    return not as_often or all(_gets_on(other.place, one, commits) for other in as_often)


def _usual_us(commits: Mapping[Place, Sequence[tuple[int, int]]]) -> float | None:
    """What usually is between two commits of a partition; None if too little was seen."""
    gaps = [after - before for some_commits in commits.values() for (before, _), (after, _) in pairwise(some_commits)]
    return median(gaps) if len(gaps) >= 2 else None


def _gets_on(place: Place, one: Standstill, commits: Mapping[Place, Sequence[tuple[int, int]]]) -> bool:
    offsets = [offset for us, offset in commits.get(place, ()) if one.first_us <= us <= one.last_us]
    return bool(offsets) and offsets[-1] > offsets[0]


_FETCHED = """
    SELECT l.number, e.topic, e.partition, min(e."offset") AS fetched_from, max(e.next_offset) AS fetched_to,
        arg_max(e.exchange_id, (e.ts, e.exchange_id)) AS exchange_id
    FROM (
        SELECT *, epoch_us(ts) AS us, coalesce(client_id, '') AS who, host_of(client) AS host
        FROM events WHERE kind = 'fetched' AND records > 0 AND next_offset IS NOT NULL AND topic IS NOT NULL
    ) AS e ASOF JOIN lives AS l ON e.cluster = l.cluster AND e.who = l.who AND e.host = l.host AND e.us >= l.since_us
    WHERE e.us <= l.until_us GROUP BY l.number, e.topic, e.partition ORDER BY l.number, e.topic, e.partition
"""
"""What each life had fetched. Of lives of one client the later one counts."""
_COMMITTED = """
    SELECT cluster, group_id, topic, partition, epoch_us(ts) AS us, "offset" AS committed
    FROM events SEMI JOIN (SELECT DISTINCT cluster, group_id FROM lives) USING (cluster, group_id)
    WHERE kind IN ('committed', 'txn_committed') AND "offset" IS NOT NULL AND topic IS NOT NULL
    ORDER BY cluster, group_id, topic, partition, us
"""
_SUSPECTS = """
    SELECT DISTINCT base_offset, last_offset, records, size FROM batches
    WHERE source = 'fetch' AND cluster = $cluster AND topic = $topic AND partition = $partition
        AND last_offset >= $at AND base_offset < $until AND NOT coalesce(is_control, false)
    ORDER BY base_offset LIMIT 5
"""


def poisoned(sources: Sources, settings: PoisonRecord.Thresholds) -> list[Finding]:
    """Apply the rule."""
    ended = lives(sources.steps)
    restless = [
        life for some_lives in ended.values() if len(some_lives) >= settings.poison_restarts for life in some_lives
    ]
    if not restless:
        return []
    found: list[_Found] = []
    for (cluster, group), (ends, commits) in _by_group(restless, sources.tables).items():
        stills = standstills(ends, commits)
        for one in (still for still in stills if len(still.ends) >= settings.poison_restarts):
            others = [other for other in stills if other.place != one.place and one.is_beside(other)]
            is_most = all(len(other.ends) <= len(one.ends) for other in others)
            if is_most and is_poisoned(one, others, commits, settings):
                found.append(_Found(cluster, group, one, others, commits))
    suspects = sources.tables.of_each(_SUSPECTS, [each.asked() for each in found])
    return last_of_each(_finding(*pair, sources, settings) for pair in zip(found, suspects, strict=True))


Commits = dict[Place, list[tuple[int, int]]]


def _by_group(
    restless: Sequence[Life], tables: Tables
) -> dict[tuple[str, str], tuple[dict[Place, list[Ended]], Commits]]:
    """By cluster and group: lives that ended with something in hand, and commits, by partition."""
    columns = {
        "number": list(range(len(restless))), "cluster": [life.cluster for life in restless],
        "group_id": [life.group for life in restless], "who": [life.client_id or "" for life in restless],
        "host": [life.host for life in restless], "since_us": [life.since_us for life in restless],
        "until_us": [life.until_us for life in restless],
    }  # fmt: skip
    tables.add("lives", pa.table(columns))
    found: defaultdict[
        tuple[str, str], tuple[defaultdict[Place, list[Ended]], defaultdict[Place, list[tuple[int, int]]]]
    ]
    found = defaultdict(lambda: (defaultdict(list), defaultdict(list)))
    for row in tables.rows(_COMMITTED):
        found[row.cluster, row.group_id][1][row.topic, row.partition].append((row.us, row.committed))
    for row in tables.rows(_FETCHED):
        life = restless[row.number]
        ends, commits = found[life.cluster, life.group]
        one = _ended(life, row, commits[row.topic, row.partition])
        if one is not None:
            ends[row.topic, row.partition].append(one)
    return {
        group: (
            {place: sorted(some_ends, key=lambda one: one.life.until_us) for place, some_ends in ends.items()},
            {place: some_commits for place, some_commits in commits.items() if some_commits},
        )
        for group, (ends, commits) in found.items()
    }


def _ended(life: Life, row: Row, commits: Sequence[tuple[int, int]]) -> Ended | None:
    """None if all that it had fetched was committed."""
    number = bisect_right(commits, (life.until_us, _LAST_OFFSET))
    at = commits[number - 1][1] if number else row.fetched_from
    if at is None or row.fetched_to <= at:
        return None
    return Ended(life, at, row.fetched_to, row.exchange_id)


@dataclass(frozen=True, slots=True)
class _Found:
    """A standstill of a group, with those of its other partitions and all its commits."""

    cluster: str
    group: str
    one: Standstill
    others: Sequence[Standstill]
    commits: Mapping[Place, Sequence[tuple[int, int]]]

    @property
    def suspects(self) -> tuple[int, int]:
        """From which offset on records may end who reads them, and until which (exclusive)."""
        return self.one.ends[0].at, min(ended.fetched_to for ended in self.one.ends)

    def asked(self) -> dict[str, Any]:
        """What ``_SUSPECTS`` is asked for."""
        (topic, partition), (at, until) = self.one.place, self.suspects
        return {"cluster": self.cluster, "topic": topic, "partition": partition, "at": at, "until": until}


def _finding(found: _Found, batches: Sequence[Row], sources: Sources, settings: PoisonRecord.Thresholds) -> Finding:
    cluster, group, one, others, commits = found.cluster, found.group, found.one, found.others, found.commits
    (topic, partition), (at, until) = one.place, found.suspects
    number = len(one.ends)
    get_on = [place for place in commits if place != one.place and _gets_on(place, one, commits)]
    clients = some(who(ended.life.client_id, ended.life.host) for ended in one.ends)
    largest = max((row.size or 0 for row in batches), default=0)
    spread = f"offset {at} or one of those up to {until - 1}" if until - at > 1 else f"offset {at}"
    meanwhile = " Its other partitions get on." if get_on else ""
    state: State = "resolved"
    healed = "" if one.healed_us is None else f" At {clock(one.healed_us)} UTC it got over it."
    if one.healed_us is None:
        state = sources.state_unhealed(cluster, one.first_us, one.last_us, number)
    if state == "unknown":
        healed = f" It is unknown since {clock(one.last_us)} UTC: no member has tried again, nothing is committed."
    evidence = [exchange_id for ended in one.ends for exchange_id in (ended.life.exchange_id, ended.exchange_id)]
    return Finding(
        rule=NAME, severity="critical" if get_on or len(commits) > 1 else "warning",
        subject=f"{group}/{topic}-{partition}",
        state=state,
        cluster=cluster, topic=topic, partition=partition, group_id=group, first_us=one.first_us,
        last_us=one.healed_us or one.last_us,
        summary=f"Group {group} is stuck at offset {at} of {topic}-{partition}: "
        f"{times(number, one.first_us, one.last_us)} a member ({clients}) read from there and ended before it "
        f"committed. The record that ends them is {spread}.{meanwhile}{healed}",
        advice=ADVICE.format(
            topic=quote(topic), partition=partition, offset=at, after=at + 1, group=quote(group),
            place=quote(f"{topic}:{partition}"),
        ),
        evidence=list(dict.fromkeys(evidence))[-settings.max_evidence :],
        details={
            "offset": at, "last_suspect": until - 1, "lives": number, "clients": clients, "largest_batch": largest,
            "batches": [row._asdict() for row in batches],
            "healed_us": one.healed_us,
            **({"known_until_us": one.last_us} if state == "unknown" else {}),
            "ended_elsewhere": {f"{o.place[0]}-{o.place[1]}": len(o.ends) for o in others},
            "enough_us": one.ends[min(settings.poison_restarts, number) - 1].life.until_us,
        },
    )  # fmt: skip
