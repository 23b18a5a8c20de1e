"""Clients that leave their group in the middle of their work and come back later.

Meaning: between two polls more than ``max.poll.interval.ms`` went by. The library itself then leaves the group, the
partitions go to others, who process the same records again, and what the client commits of them is refused.
Evidence: a LeaveGroup of a client that lives on. Java and kafka-python state the reason (KIP-800); of the others: the
same connection enters the group again, or commits and is refused, and before it left it had not committed for as long
as it may work between two polls, with records in hand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pipeline.analysis.rules.kafka.groups.coming_and_going import ENTERS, LEAVES, Step
from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.safety.work import affordable
from pipeline.analysis.tables import Row, Tables

_POLL = "poll"
"""What the stated reason has in it: `consumer poll timeout has expired.`"""
_NEAR = 0.9
"""Whoever was quiet for so much of its limit: commits and answers take their time, too."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a client had in hand of one partition when it left."""

    topic: str
    partition: int
    fetched_from: int | None
    fetched_to: int
    committed: int | None
    records: int
    exchange_id: str

    @property
    def is_unfinished(self) -> bool:
        """Whether records beyond the last commit had been fetched."""
        return self.committed is None or self.fetched_to > self.committed


@dataclass(frozen=True, slots=True)
class Left:
    """A LeaveGroup with what precedes and what follows it. Times are µs since the epoch.

    Attributes:
        entered: how the member had entered; None: that was not seen.
        begun_us: when a member that was not seen to enter sent its first heartbeat; 0: it sent none.
        back_us: when the same connection entered the group again; None: it did not.
        back_limit_us: how long it may take between two polls, as it stated then; 0: not known.
        anew_us: when its client entered by a connection that was not there before: it was restarted; None: it was not.
        refused, tried_us: exchange ids of its commits that were refused afterwards, and when the last of them was.
        advanced_us, commits: its last accepted commit before, and how many it made since it had entered; 0: none.
        held: what it had in hand.
    """

    step: Step
    entered: Step | None = None
    begun_us: int = 0
    back_us: int | None = None
    back_limit_us: int = 0
    anew_us: int | None = None
    refused: tuple[str, ...] = ()
    tried_us: int = 0
    advanced_us: int = 0
    commits: int = 0
    held: tuple[Held, ...] = ()

    @property
    def lives_on(self) -> bool:
        """Whether its process continued as if it were a member, or to become one again."""
        return self.back_us is not None or bool(self.refused)

    @property
    def returned_us(self) -> int | None:
        """When it was a member again, restarted or not."""
        return self.back_us if self.back_us is not None else self.anew_us

    @property
    def limit_us(self) -> int:
        """How long it may take between two polls; 0: not known."""
        return self.entered.limit_us if self.entered is not None else self.back_limit_us

    @property
    def was_in_since_us(self) -> int | None:
        """From when on it was a member, as far as that was seen; None: never before it left."""
        return self.begun_us or None if self.entered is None else self.entered.answered_us


def is_exceeded(left: Left) -> bool:
    """Whether the library left because the application did not poll, and was not asked to leave."""
    if left.step.reason:
        return _POLL in left.step.reason.lower()
    since_us = left.was_in_since_us
    if not left.lives_on or since_us is None or not left.limit_us:
        return False
    quiet_us = left.step.us - max(left.advanced_us, since_us)
    in_hand = any(held.is_unfinished for held in left.held)
    was_in_us = left.step.us - since_us
    if left.refused and was_in_us >= _NEAR * left.limit_us:
        return in_hand
    return in_hand and quiet_us >= _NEAR * left.limit_us


def departures(of_groups: Iterable[Step], refused: Mapping[tuple[str, str], Sequence[tuple[int, str]]]) -> list[Left]:
    """Each LeaveGroup that may be one of a client that lives on.

    Args:
        of_groups: in the order of time.
        refused: by group and client address, times and exchange ids of commits that were refused.
    """
    entered: dict[tuple[str, str, str], Step] = {}
    waiting: dict[tuple[str, str, str], int] = {}
    found: list[Left] = []
    known: set[tuple[str, str, str]] = set()
    gone: defaultdict[tuple[str, str, str, str | None], list[int]] = defaultdict(list)
    for step in of_groups:
        member, place = (step.cluster, step.group, step.member), (step.cluster, step.group, step.connection_id)
        if step.what == ENTERS:
            entered[member] = step
            client = (step.cluster, step.group, step.host, step.client_id)
            if place in waiting:
                number = waiting.pop(place)
                found[number] = replace(found[number], back_us=step.us, back_limit_us=step.limit_us)
                gone[client] = [one for one in gone[client] if one != number]
            elif place not in known and gone[client]:
                number = gone[client].pop(0)
                found[number] = replace(found[number], anew_us=step.us)
            known.add(place)
        elif step.what == LEAVES:
            before = entered.pop(member, None)
            if before is not None and before.connection_id != step.connection_id and before.host != step.host:
                continue  # a tool that puts members out
            waiting[place] = len(found)
            gone[step.cluster, step.group, step.host, step.client_id].append(len(found))
            found.append(Left(step, before))
    all_left = [_with_refused(left, refused) for left in found]
    return [left for left in all_left if left.lives_on or left.step.reason]


def _with_refused(left: Left, refused: Mapping[tuple[str, str], Sequence[tuple[int, str]]]) -> Left:
    until_us = left.back_us if left.back_us is not None else left.step.us + 10 * max(left.limit_us, 1)
    all_of_it = refused.get((left.step.group, left.step.client), ())
    after = [one for one in all_of_it if left.step.us < one[0] <= until_us]
    return replace(left, refused=tuple(e for _, e in after), tried_us=max((us for us, _ in after), default=0))


_REFUSED = """
    SELECT DISTINCT group_id, client, epoch_us(ts) AS us, exchange_id FROM events
    WHERE kind = 'commit_rejected' AND group_id IS NOT NULL ORDER BY us, exchange_id
"""
_BEGUN = """
    SELECT cluster, group_id, member_id, min(epoch_us(ts)) AS us FROM states
    WHERE kind = 'heartbeat' AND error_code = 0 AND member_id IN (SELECT unnest($members))
    GROUP BY ALL ORDER BY ALL
"""
"""When members without a captured JoinGroup sent their first heartbeat."""
_HELD = """
    WITH fetches AS (
        SELECT l.number, e.topic, e.partition, arg_max(e."offset", (e.ts, e.exchange_id)) AS fetched_from,
            arg_max(e.next_offset, (e.ts, e.exchange_id)) AS fetched_to,
            arg_max(e.records, (e.ts, e.exchange_id)) AS records,
            arg_max(e.exchange_id, (e.ts, e.exchange_id)) AS exchange_id
        FROM departures AS l JOIN events AS e ON e.cluster = l.cluster
            AND host_of(e.client) = l.host AND e.client_id IS NOT DISTINCT FROM l.client_id
        WHERE e.kind = 'fetched' AND e.records > 0 AND e.next_offset IS NOT NULL
            AND epoch_us(e.ts) BETWEEN l.since_us AND l.us
        GROUP BY l.number, e.topic, e.partition
    ), commits AS (
        SELECT l.number, e.topic, e.partition, max(e."offset") AS committed, max(epoch_us(e.ts)) AS committed_us,
            count(DISTINCT e.exchange_id) AS commits
        FROM departures AS l JOIN events AS e ON e.cluster = l.cluster AND e.group_id = l.group_id
        WHERE e.kind = 'committed' AND e.member_id = l.member AND epoch_us(e.ts) BETWEEN l.since_us AND l.us
        GROUP BY l.number, e.topic, e.partition
    ), of_others AS (
        SELECT DISTINCT l.number, e.topic, e.partition
        FROM departures AS l JOIN events AS e ON e.cluster = l.cluster AND e.group_id = l.group_id
            AND host_of(e.client) = l.host AND e.client_id IS NOT DISTINCT FROM l.client_id
        WHERE e.kind = 'committed' AND e.member_id <> l.member AND epoch_us(e.ts) BETWEEN l.since_us AND l.us
    )
    SELECT * FROM fetches FULL JOIN commits USING (number, topic, partition)
    WHERE commits IS NOT NULL OR (number, topic, partition) NOT IN (FROM of_others)
    ORDER BY number, topic, partition
"""
"""What the member had fetched and committed in this life, by partition; not what another member of the same name and
host, another process, commits meanwhile."""
_WORK = """
    WITH numbered AS (
        SELECT cluster, host, client_id, us, row_number() OVER (PARTITION BY cluster, host, client_id ORDER BY us) AS n
        FROM (
            SELECT cluster, host_of(client) AS host, coalesce(client_id, '') AS client_id,
                epoch_us(ts) AS us
            FROM events WHERE kind = 'fetched' AND records > 0 AND next_offset IS NOT NULL
        )
    ), counts AS (SELECT cluster, host, client_id, us, max(n) AS n FROM numbered GROUP BY ALL),
    lives AS (
        SELECT number, cluster, host, coalesce(client_id, '') AS client_id, us, since_us - 1 AS before_us
        FROM departures
    )
    SELECT lives.number, coalesce(until.n, 0) - coalesce(before.n, 0) AS fetches
    FROM lives ASOF LEFT JOIN counts AS until
            ON lives.cluster = until.cluster AND lives.host = until.host AND lives.client_id = until.client_id
            AND lives.us >= until.us
        ASOF LEFT JOIN counts AS before
            ON lives.cluster = before.cluster AND lives.host = before.host AND lives.client_id = before.client_id
            AND lives.before_us >= before.us
    ORDER BY number
"""
"""How many partitions the client of each departure fetched in this life."""
_MOST_FETCHES = 20_000
"""Lives of one client follow each other, so that all of them hold each fetch once. Where they are upon each other, of
a message that removes hundreds of members, the work of the first of them is not looked at."""


def exceeded(sources: Sources) -> dict[tuple[str, str, str | None], list[Left]]:
    """By cluster, group and client id the times that a client exceeded its limit and left, in the order of time."""
    tables, all_steps = sources.tables, sources.steps
    if not any(step.what == LEAVES for step in all_steps):
        return {}
    refused: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for row in tables.rows(_REFUSED):
        refused[row.group_id, row.client].append((row.us, row.exchange_id))
    suspects = _with_begun(departures(all_steps, refused), tables)
    by_client: defaultdict[tuple[str, str, str | None], list[Left]] = defaultdict(list)
    for left in _with_work(suspects, tables):
        if is_exceeded(left):
            by_client[left.step.cluster, left.step.group, left.step.client_id].append(left)
    return by_client


def bouts(all_left: Iterable[Left]) -> list[list[Left]]:
    """Times that one client left, in order of time, cut where it was over in between and worked on as it should."""
    found: list[list[Left]] = []
    for left in all_left:
        if not found or (left.commits >= KNOWN_RHYTHM and is_over(found[-1][-1], left.step.us)):
            found.append([])
        found[-1].append(left)
    return found


def is_over(last: Left, at_us: int) -> bool:
    """It is over once it has been back for twice as long as it may take between two polls."""
    back_us = last.returned_us
    return back_us is not None and at_us - back_us >= 2 * last.limit_us


def _with_begun(suspects: Sequence[Left], tables: Tables) -> list[Left]:
    """With the first heartbeats of members that joined before the capture began."""
    members = sorted({left.step.member for left in suspects if left.entered is None})
    if not members:
        return list(suspects)
    begun = {(row.cluster, row.group_id, row.member_id): row.us for row in tables.rows(_BEGUN, members=members)}
    return [
        replace(left, begun_us=begun.get((left.step.cluster, left.step.group, left.step.member), 0))
        if left.entered is None
        else left
        for left in suspects
    ]


def _with_work(suspects: Sequence[Left], tables: Tables) -> list[Left]:
    if not suspects:
        return []
    columns = {
        "number": list(range(len(suspects))), "cluster": [left.step.cluster for left in suspects],
        "group_id": [left.step.group for left in suspects], "member": [left.step.member for left in suspects],
        "client_id": pa.array([left.step.client_id for left in suspects], pa.string()),
        "host": [left.step.host for left in suspects], "us": [left.step.us for left in suspects],
        "since_us": [left.entered.us if left.entered is not None else 0 for left in suspects],
    }  # fmt: skip
    tables.add("departures", pa.table(columns))
    fetches = [row.fetches for row in tables.rows(_WORK)]
    affordable_ones = affordable(fetches, max(_MOST_FETCHES, 2 * max(fetches)))
    if len(affordable_ones) < len(suspects):
        tables.add("departures", pa.table(columns).take(affordable_ones))
    work: defaultdict[int, list[Row]] = defaultdict(list)
    for row in tables.rows(_HELD):
        work[row.number].append(row)
    return [
        replace(
            left,
            advanced_us=max((row.committed_us or 0 for row in work[number]), default=0),
            commits=max((row.commits or 0 for row in work[number]), default=0),
            held=tuple(
                Held(
                    row.topic,
                    row.partition,
                    row.fetched_from,
                    row.fetched_to,
                    row.committed,
                    row.records,
                    row.exchange_id,
                )
                for row in work[number]
                if row.fetched_to is not None
            ),
        )
        for number, left in enumerate(suspects)
    ]
