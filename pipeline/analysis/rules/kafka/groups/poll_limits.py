"""Rule ``poll_interval_exceeded``: a client leaves its group in the middle of its work and comes back later.

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

from pipeline.analysis.rules.coming_again import earlier
from pipeline.analysis.rules.kafka.groups.coming_and_going import ENTERS, LEAVES, Step
from pipeline.analysis.rules.kafka.groups.poll_interval_exceeded import ADVICE, PollIntervalExceeded
from pipeline.analysis.rules.kafka.progress.rhythm import KNOWN_RHYTHM
from pipeline.analysis.rules.model import Finding, Sources, State
from pipeline.analysis.rules.people import times, who
from pipeline.analysis.rules.rule import finds
from pipeline.analysis.safety.work import affordable
from pipeline.analysis.tables import Row, Tables
from pipeline.humanize import clock, pluralize, seconds, some

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
        """Whether its process went on as if it were a member, or to become one again."""
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
    """Whether the library left because the application did not poll, and nobody asked it to leave."""
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
"""When members of which no JoinGroup was seen sent their first heartbeat."""
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
"""Lives of one client follow each other, so that all of them hold each fetch once. Where they lie upon each other, of
a message that removes hundreds of members, the work of the first of them is not looked at."""


@finds(PollIntervalExceeded)
def find(sources: Sources, settings: PollIntervalExceeded.Thresholds) -> list[Finding]:
    """Apply the rule."""
    tables, all_steps = sources.tables, sources.steps
    if not any(step.what == LEAVES for step in all_steps):
        return []
    refused: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for row in tables.rows(_REFUSED):
        refused[row.group_id, row.client].append((row.us, row.exchange_id))
    suspects = _with_begun(departures(all_steps, refused), tables)
    by_client: defaultdict[tuple[str, str, str | None], list[Left]] = defaultdict(list)
    for left in _with_work(suspects, tables):
        if is_exceeded(left):
            by_client[left.step.cluster, left.step.group, left.step.client_id].append(left)
    return [
        _finding(all_left, sources, settings)
        for all_left in by_client.values()
        if len(all_left) >= settings.poll_exceeded_times
    ]


def bouts(all_left: Iterable[Left]) -> list[list[Left]]:
    """Times that one client left, in order of time, cut where it was over in between and worked on as it should."""
    found: list[list[Left]] = []
    for left in all_left:
        if not found or (left.commits >= KNOWN_RHYTHM and _is_over(found[-1][-1], left.step.us)):
            found.append([])
        found[-1].append(left)
    return found


def _is_over(last: Left, at_us: int) -> bool:
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


def _finding(all_left: Sequence[Left], sources: Sources, settings: PollIntervalExceeded.Thresholds) -> Finding:
    times_apart = bouts(all_left)
    some_left = times_apart[-1]
    last = some_left[-1]
    step = last.step
    first_us, last_us = some_left[0].step.us, max(step.us, last.returned_us or 0)
    refused = [exchange_id for left in some_left for exchange_id in left.refused]
    clients = some(who(left.step.client_id, left.step.host) for left in some_left)
    limit = f" ({seconds(last.limit_us)})" if last.limit_us else ""
    number, state = len(some_left), _state(last, sources)
    evidence = [exchange_id for left in some_left for exchange_id in (left.step.exchange_id, *left.refused)]
    unfinished = [held for held in last.held if held.is_unfinished]
    return Finding(
        rule=PollIntervalExceeded.name, severity="critical" if refused or len(all_left) > 1 else "warning",
        subject=f"{step.group}/{step.client_id or '?'}", state=state, cluster=step.cluster, topic=None,
        partition=None, group_id=step.group, first_us=first_us, last_us=last_us,
        summary=f"{clients} exceeded max.poll.interval.ms{limit} and dropped out of group {step.group} "
        f"{times(number, first_us, step.us)}{_work(unfinished)}.{_after(last, len(refused), state)}",
        advice=ADVICE.format(who=clients), evidence=evidence[-settings.max_evidence :],
        details={
            "times": number, "client_id": step.client_id, "member_id": step.member, "host": step.host,
            "max_poll_interval_ms": last.limit_us // 1000 or None, "reason": step.reason,
            "interval_us": (step.us - first_us) // (number - 1) if number > 1 else None,
            "out_us": None if last.returned_us is None else last.returned_us - step.us, "commits_refused": len(refused),
            "in_hand": [
                {"topic": h.topic, "partition": h.partition, "fetched_from": h.fetched_from, "fetched_to": h.fetched_to,
                 "committed": h.committed, "records": h.records} for h in unfinished
            ],
            **earlier((few[0].step.us, max(few[-1].step.us, few[-1].back_us or 0)) for few in times_apart),
            **({"known_until_us": max(step.us, last.tried_us)} if state == "unknown" else {}),
            "enough_us": some_left[min(settings.poll_exceeded_times, number) - 1].step.us,
        },
    )  # fmt: skip


def _state(last: Left, sources: Sources) -> State:
    end_us = sources.ends.get(last.step.cluster, last.step.us)
    if last.returned_us is not None:
        return "resolved" if _is_over(last, end_us) else "ongoing"
    tried_us = max(last.step.us, last.tried_us)
    return "ongoing" if end_us - tried_us <= max(sources.resolved_after_us, 2 * last.limit_us) else "unknown"


def _work(unfinished: Sequence[Held]) -> str:
    """What it was at."""
    if not unfinished:
        return ""
    held = max(unfinished, key=lambda one: (one.fetched_to - (one.committed or one.fetched_from or 0), one.topic))
    begin = held.committed if held.committed is not None else held.fetched_from
    more = f" and {pluralize(len(unfinished) - 1, 'more partition')}" if len(unfinished) > 1 else ""
    return f", at work on offsets {begin} to {held.fetched_to - 1} of {held.topic}-{held.partition}{more}"


def _after(last: Left, refused: int, state: State) -> str:
    if last.returned_us is not None:
        how = "was back" if last.back_us is not None else "was started anew"
        back = f" It {how} {seconds(last.returned_us - last.step.us)} later."
    else:
        unknown = " It is unknown whether it hangs on or has ended." if state == "unknown" else ""
        back = f" It is not back since {clock(last.step.us)} UTC.{unknown}"
    return (
        f"{back} {pluralize(refused, 'commit')} of it {'was' if refused == 1 else 'were'} refused meanwhile."
        if refused
        else back
    )
