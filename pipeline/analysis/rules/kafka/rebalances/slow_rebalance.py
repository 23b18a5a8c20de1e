"""Rule ``slow_rebalance``: a whole group waits, because one of its members does not rejoin.

Meaning: in the classic protocol the coordinator answers no JoinGroup before all known members have sent theirs, until
the longest rebalance timeout (``max.poll.interval.ms``) or, of a member that is silent, its session timeout has passed.
Meanwhile those who wait have no assignment.
Evidence: the first JoinGroup of a generation and its answer; the heartbeats of the one that is late, which are answered
REBALANCE_IN_PROGRESS meanwhile, or its silence. While it lasts: those heartbeats, and joins that wait for their answer
(:mod:`pipeline.analysis.rules.kafka.rebalances.unfinished`); where the capture begins within it, those heartbeats
alone.
The consumer protocol (KIP-848) has no such wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from statistics import median

from pydantic import Field

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.claims.kafka.members import SLOW_REBALANCE
from pipeline.analysis.libraries import COOPERATIVE
from pipeline.analysis.rules.already import from_before
from pipeline.analysis.rules.case.entities import GROUP
from pipeline.analysis.rules.case.texts import SLOW
from pipeline.analysis.rules.format import host_of, wait_or_waits, who
from pipeline.analysis.rules.kafka.links import AWAY, PUT_OUT, STANDSTILL
from pipeline.analysis.rules.kafka.rebalances.before_capture import Begun, begun_rebalances
from pipeline.analysis.rules.kafka.rebalances.unfinished import HeldUp, held_up, members_of, waiting_joins
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.recurrence import earlier
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import Ratio, RuleThresholds, Seconds
from pipeline.analysis.tables import SERVICE_US, Row
from pipeline.humanize import clock, pluralize, seconds

BUSY = (
    "Now: let {who} finish, or restart it if it hangs; all others wait for it. Fix: less work between two polls by "
    "max.poll.records (librdkafka: smaller batches of consume()), and a max.poll.interval.ms not longer than the group "
    f"may stand still; {COOPERATIVE}, where others read on meanwhile."
)
SILENT = (
    "Now: nothing brings it back sooner; see why {who} ended without LeaveGroup (killed, out of memory, host or "
    "network gone). Fix: close the consumer when the process gets SIGTERM, a session.timeout.ms of a few "
    "heartbeats (heartbeat.interval.ms), or group.instance.id with a restart that is quicker than the session timeout."
)


class SlowRebalance(Rule):
    """A group waits for one member before it has an assignment again."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        slow_rebalance_seconds: Seconds = Field(
            default=10.0, description="How long a group waits for one member before it has an assignment again"
        )
        slow_rebalance_ratio: Ratio = Field(
            default=3.0, description="Times as long as rebalances of this group usually take, where that is known"
        )

    name = "slow_rebalance"
    title = "Slow rebalance"
    protocol = "kafka"
    about = "membership"
    severities = ("warning",)
    reads = ("states", "exchanges", "waiting")
    advice = (BUSY, SILENT)
    urgency = SLOW
    effects = (
        Link(PUT_OUT, (GROUP,), "commits that meet a rebalance are refused"),
        Link(STANDSTILL, (GROUP,), AWAY),
    )
    claims = SLOW_REBALANCE

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> list[Finding]:
        """Apply the rule."""
        least_us = int(settings.slow_rebalance_seconds * 1_000_000)
        over: dict[tuple[str, str], list[tuple[Round, Late]]] = {}
        if sources.tables.any(_ANY, least_us=least_us):
            rows = sources.tables.rows(_QUERY, least_us=least_us, before_us=_BEFORE_US)
            for (cluster, group), some_rows in groupby(rows, key=attrgetter("cluster", "group_id")):
                if slow := list(slow_rounds(list(some_rows), settings)):
                    over[cluster, group] = slow
        lasting = dict(_lasting(sources, over, settings))
        ended = [_finding(*place, slow, settings) for place, slow in over.items() if place not in lasting]
        begun = begun_rebalances(sources, least_us)
        older = [_begun_finding(one, settings) for one in begun if (one.cluster, one.group) not in {*over, *lasting}]
        return [*ended, *lasting.values(), *older]


_KNOWN_PAST = 3
"""Rebalances that it takes to know how long they take."""
_LATE_SHARE = 0.5
"""Whoever joins in the first half of the wait is not the one that is waited for."""


@dataclass(slots=True)
class Round:
    """How a group came to a generation. Times are µs since the epoch.

    Attributes:
        joins: by member, when it sent its JoinGroup and when that was answered.
        named: by member, client id and host.
        evidence: exchange ids of the joins, the first first.
    """

    generation: int
    joins: dict[str, tuple[int, int]] = field(default_factory=dict)
    named: dict[str, tuple[str | None, str]] = field(default_factory=dict)
    evidence: list[str] = field(default_factory=list)

    @property
    def first_us(self) -> int:
        """When the first member asked."""
        return min(asked for asked, _ in self.joins.values())

    @property
    def last_us(self) -> int:
        """When the last one was answered."""
        return max(answered for _, answered in self.joins.values())


@dataclass(frozen=True, slots=True)
class Late:
    """The member that a round waited for.

    Attributes:
        is_silent: it sent nothing; else it sent heartbeats all the while.
        rejoined_us: when it joined; None: it did not.
        last_seen_us: its last heartbeat or join.
    """

    member: str
    client_id: str | None
    host: str
    is_silent: bool
    rejoined_us: int | None
    last_seen_us: int
    evidence: tuple[str, ...] = ()


_QUERY = f"""
    WITH answered AS (
        SELECT exchange_id, epoch_us(request_ts) + coalesce(latency_us - {SERVICE_US}, 0) AS asked_us FROM exchanges
        WHERE protocol = 'kafka' AND api_key = {int(ApiKey.JOIN_GROUP)}
    ), members AS (
        SELECT s.cluster, s.group_id, s.kind, s.member_id, s.generation, s.client_id, s.client, s.exchange_id,
            s.ordinal, epoch_us(s.ts) AS us, coalesce(a.asked_us, epoch_us(s.ts)) AS asked_us, s.error_code
        FROM states AS s LEFT JOIN answered AS a USING (exchange_id)
        WHERE s.kind IN ('join', 'heartbeat', 'leave') AND s.group_protocol = 'classic' AND s.member_id <> ''
    ), slow AS (
        SELECT cluster, group_id, asked_us - $before_us AS begin_us,
            max(us) OVER (PARTITION BY cluster, group_id ORDER BY asked_us) AS end_us
        FROM members WHERE kind = 'join' AND error_code = 0 AND us - asked_us >= $least_us
    ), of_slow AS (
        SELECT DISTINCT * FROM members SEMI JOIN slow USING (cluster, group_id)
    )
    SELECT m.* FROM of_slow AS m
        ASOF LEFT JOIN slow AS s ON m.cluster = s.cluster AND m.group_id = s.group_id AND m.us >= s.begin_us
    WHERE m.kind <> 'heartbeat' OR m.us <= s.end_us
    ORDER BY m.cluster, m.group_id, m.us, m.exchange_id, m.ordinal
"""
"""What members did in groups in which a JoinGroup was answered late; heartbeats from shortly before it on.

``end_us`` is that of the latest wait among those that had begun, so that one row answers for all of them.
"""
_ANY = f"FROM exchanges WHERE api_key = {int(ApiKey.JOIN_GROUP)} AND latency_us >= $least_us"
_BEFORE_US = 600_000_000


def _lasting(
    sources: Sources, over: Mapping[tuple[str, str], Sequence[tuple[Round, Late]]], settings: SlowRebalance.Thresholds
) -> Iterator[tuple[tuple[str, str], Finding]]:
    """The rebalances that had not ended when the data did."""
    joins = waiting_joins(sources)
    for place, rows in members_of(sources, joins).items():
        end_us = sources.ends.get(place[0], rows[-1].us)
        one = held_up(rows, joins.get(place, ()), end_us)
        if one is not None and one.last_us - one.begun_us >= _least_us(_with_late(rows), settings):
            yield place, _open_finding(*place, one, over.get(place, ()), sources, settings)


def slow_rounds(rows: Sequence[Row], settings: SlowRebalance.Thresholds) -> Iterator[tuple[Round, Late]]:
    """The rebalances of one group that took long because of one member.

    Args:
        rows: its joins, heartbeats and leaves in the order of time.
        settings: thresholds.
    """
    seen = _with_late(rows)
    least_us = _least_us(seen, settings)
    for one, culprit in seen:
        if culprit is not None and one.last_us - one.first_us >= least_us:
            yield one, culprit


def _with_late(rows: Sequence[Row]) -> list[tuple[Round, Late | None]]:
    """The rebalances of one group, each with the member that it waited for."""
    seen = rounds(rows)
    return [(one, waited_for(one, before, rows)) for before, one in zip([None, *seen], seen, strict=False)]


def _least_us(seen: Sequence[tuple[Round, Late | None]], settings: SlowRebalance.Thresholds) -> float:
    """How long is long."""
    usual = [one.last_us - one.first_us for one, late in seen if late is None]
    least_us = settings.slow_rebalance_seconds * 1_000_000
    return max(least_us, settings.slow_rebalance_ratio * median(usual)) if len(usual) >= _KNOWN_PAST else least_us


def rounds(rows: Iterable[Row]) -> list[Round]:
    """The rebalances of one group, by when the first member asked.

    Args:
        rows: its joins, and other things that are left out, in the order of time.
    """
    found: dict[int, Round] = {}
    for row in rows:
        if row.kind == "join" and row.error_code == 0 and row.generation is not None:
            one = found.setdefault(row.generation, Round(row.generation))
            one.joins.setdefault(row.member_id, (row.asked_us, row.us))
            one.named[row.member_id] = (row.client_id, host_of(row.client))
            one.evidence.append(row.exchange_id)
    return sorted(found.values(), key=lambda one: one.first_us)


def waited_for(one: Round, before: Round | None, rows: Iterable[Row]) -> Late | None:
    """The member that did not rejoin for most of a round; None if no known one did so.

    Args:
        one: the round.
        before: the one before it, if it was seen.
        rows: of the group, in the order of time.
    """
    first_us, last_us = one.first_us, one.last_us
    rejoining: dict[str, list[Row]] = {}
    seen: dict[str, int] = {}
    gone: set[str] = set()
    for row in rows:
        if row.us > last_us:
            break
        if row.kind == "leave":
            gone.add(row.member_id)
        elif row.kind == "heartbeat":
            seen[row.member_id] = row.us
            if row.error_code == KafkaError.REBALANCE_IN_PROGRESS and row.us > first_us:
                rejoining.setdefault(row.member_id, []).append(row)
    busy = [member for member in rejoining if _is_late(one, member) and member not in gone]
    if busy:
        member = max(busy, key=lambda name: (one.joins.get(name, (last_us, last_us)), name))
        row = rejoining[member][-1]
        evidence = tuple(each.exchange_id for each in rejoining[member])
        rejoined_us = one.joins[member][0] if member in one.joins else None
        return Late(member, row.client_id, host_of(row.client), False, rejoined_us, row.us, evidence)
    return _silent(one, before, seen, gone)


def _is_late(one: Round, member: str) -> bool:
    if member not in one.joins:
        return True
    return one.joins[member][0] - one.first_us >= _LATE_SHARE * (one.last_us - one.first_us)


def _silent(one: Round, before: Round | None, seen: Mapping[str, int], gone: set[str]) -> Late | None:
    """A member of the generation before that was not seen any more, and did not leave."""
    if before is None:
        return None
    last_seen = {m: max(seen.get(m, 0), before.joins[m][1]) for m in before.joins if m not in one.joins}
    silent = [m for m, us in last_seen.items() if m not in gone and us <= one.first_us]
    if not silent:
        return None
    member = max(silent, key=lambda name: (last_seen[name], name))
    return Late(member, *before.named[member], True, None, last_seen[member])


def _finding(
    cluster: str, group: str, slow: Sequence[tuple[Round, Late]], settings: SlowRebalance.Thresholds
) -> Finding:
    one, late = max(slow, key=lambda each: each[0].last_us)
    first_us, last_us = one.first_us, one.last_us
    client = who(late.client_id, late.host)
    others = pluralize(len(one.joins) - (late.member in one.joins), "other member")
    did = (
        f"was silent since {clock(late.last_seen_us)} UTC and had not left"
        if late.is_silent
        else f"continued its work and joined at {clock(late.rejoined_us)} UTC only"
        if late.rejoined_us is not None
        else "continued its work and did not join"
    )
    more = f" It is the last of {len(slow)} such waits." if len(slow) > 1 else ""
    return Finding(
        rule=SlowRebalance.name, severity="warning", subject=group, state="resolved", cluster=cluster, topic=None,
        partition=None, group_id=group, first_us=first_us, last_us=last_us,
        summary=f"Group {group} waited {seconds(last_us - first_us)} for an assignment, from {clock(first_us)} to "
        f"{clock(last_us)} UTC: {client} {did}, while {others} waited.{more}",
        advice=(SILENT if late.is_silent else BUSY).format(who=client),
        evidence=[*one.evidence, *late.evidence][: settings.max_evidence],
        details={
            "waited_us": last_us - first_us, "generation": one.generation, "member_id": late.member,
            "client_id": late.client_id, "host": late.host, "is_silent": late.is_silent,
            "rejoined_us": late.rejoined_us, "waiting_members": len(one.joins), "times": len(slow),
            **earlier((each.first_us, each.last_us) for each, _ in slow),
            "enough_us": min(round_.first_us for round_, _ in slow) + int(settings.slow_rebalance_seconds * 1_000_000),
        },
    )  # fmt: skip


def _begun_finding(one: Begun, settings: SlowRebalance.Thresholds) -> Finding:
    client = who(one.client_id, one.host)
    did = "did not join" if one.rejoined_us is None else f"joined at {clock(one.rejoined_us)} UTC only"
    return Finding(
        rule=SlowRebalance.name, severity="warning", subject=one.group, state="resolved", cluster=one.cluster,
        topic=None, partition=None, group_id=one.group, first_us=one.first_us, last_us=one.last_us,
        summary=f"Group {one.group} waited for an assignment for {seconds(one.last_us - one.first_us)} at least, "
        f"{from_before(one.first_us, one.last_us)}: {client} continued its work and {did}, while the others waited.",
        advice=BUSY.format(who=client), evidence=list(one.evidence)[: settings.max_evidence],
        details={
            "waited_us": one.last_us - one.first_us, "member_id": one.member, "client_id": one.client_id,
            "host": one.host, "is_silent": False, "rejoined_us": one.rejoined_us, "times": 1, "already": True,
            **earlier([(one.first_us, one.last_us)]),
            "enough_us": one.first_us + int(settings.slow_rebalance_seconds * 1_000_000),
        },
    )  # fmt: skip


def _open_finding(
    cluster: str, group: str, one: HeldUp, over: Sequence[tuple[Round, Late]], sources: Sources,
    settings: SlowRebalance.Thresholds,
) -> Finding:  # fmt: skip
    client = who(one.client_id, one.host)
    others = (
        f"while {pluralize(one.waiting, 'other member')} {wait_or_waits(one.waiting)}"
        if one.waiting
        else "and no other member of the group was captured"
    )
    state = sources.state_unhealed(cluster, one.begun_us, one.last_us, 1)
    did = (
        f"is silent since {clock(one.last_seen_us)} UTC and has not left"
        if one.is_silent
        else "continues its work and has not joined"
    )
    limits = [step.limit_us for step in sources.steps if (step.cluster, step.group) == (cluster, group)]
    until = (
        f" At {clock(one.begun_us + max(limits))} UTC at the latest the others continue without it."
        if any(limits)
        else ""
    )
    spans = [*((each.first_us, each.last_us) for each, _ in over), (one.begun_us, one.last_us)]
    return Finding(
        rule=SlowRebalance.name, severity="warning", subject=group, state=state, cluster=cluster, topic=None,
        partition=None, group_id=group, first_us=one.begun_us, last_us=one.last_us,
        summary=f"Group {group} waits for an assignment since {clock(one.begun_us)} UTC, "
        f"{seconds(one.last_us - one.begun_us)} so far: {client} {did}, {others}.{until}",
        advice=(SILENT if one.is_silent else BUSY).format(who=client),
        evidence=list(one.evidence)[: settings.max_evidence],
        details={
            "waited_us": one.last_us - one.begun_us, "member_id": one.member, "client_id": one.client_id,
            "host": one.host, "is_silent": one.is_silent, "waiting_members": one.waiting, "times": len(over) + 1,
            **earlier(spans), "enough_us": one.begun_us + int(settings.slow_rebalance_seconds * 1_000_000),
        },
    )  # fmt: skip
