"""Rule ``join_refused``: a client asks again and again to be let into a group, and the coordinator refuses.

Meaning: it reads nothing, and no one may notice: the others of the group do its work, as long as there are others.
Evidence: error codes of JoinGroup and, where members join by heartbeats, of ConsumerGroupHeartbeat (KIP-848),
ShareGroupHeartbeat (KIP-932) and StreamsGroupHeartbeat (KIP-1071), without an accepted one of the same client in
between. MEMBER_ID_REQUIRED (KIP-394) is how a member gets its id, and no refusal, unless it never joins with one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from shlex import quote

from pydantic import Field

from decoder.fields import items, natural, parsed, text
from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.analysis.claims.kafka.members import JOIN_REFUSED
from pipeline.analysis.codes.kafka.table import KAFKA
from pipeline.analysis.codes.model import CodeFacts
from pipeline.analysis.rules.case.entities import CLIENT, GROUP
from pipeline.analysis.rules.case.texts import REFUSED
from pipeline.analysis.rules.format import times, who
from pipeline.analysis.rules.kafka.groups.coming_and_going import HEARTBEATS
from pipeline.analysis.rules.kafka.links import PUT_OUT, STANDSTILL
from pipeline.analysis.rules.kafka.thresholds import JOIN_REFUSED_SECONDS
from pipeline.analysis.rules.kinds import kinds
from pipeline.analysis.rules.model import Finding, Sources, State
from pipeline.analysis.rules.recurrence import earlier
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.analysis.tables import Row, Tables
from pipeline.humanize import clock, some

WAITS = (KafkaError.GROUP_MAX_SIZE_REACHED, KafkaError.FENCED_INSTANCE_ID, KafkaError.UNRELEASED_INSTANCE_ID)
"""A place may become free: a deploy that starts the new instance before the old one ends is refused for a while."""
REFUSALS = (
    *KAFKA.of_area("join"),
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    *(code for code in WAITS if code not in KAFKA.of_area("join")),
)


def facts(code: int) -> CodeFacts:
    """What is known of an error of JoinGroup."""
    return KAFKA.meaning(int(ApiKey.JOIN_GROUP), code)


_DESCRIBE = "`kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {group}"
LOOK = {
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: f"What they offer was not captured: {_DESCRIBE} --state` shows it.",
    KafkaError.GROUP_MAX_SIZE_REACHED: f"Who they are was not captured: {_DESCRIBE} --members` shows them.",
    KafkaError.FENCED_INSTANCE_ID: f"The other one was not captured: {_DESCRIBE} --members` shows where it runs.",
    KafkaError.UNRELEASED_INSTANCE_ID: f"The other one was not captured: {_DESCRIBE} --members` shows where it runs.",
}
"""Where to look for what depends on other members that the capture does not show."""


def unseen(code: int) -> str:
    """The advice where the others were not captured."""
    now, fix, rest = facts(code).advice.partition(" Fix: ")
    return f"{now} {LOOK[KafkaError(code)]}{fix}{rest}"


WITHOUT_ID = (
    "Now: run the client's last version that got into the group. Fix: update its library: MEMBER_ID_REQUIRED gives it "
    "a member id (KIP-394), with which it must send JoinGroup again; this one asks without an id each time. A proxy "
    "that rewrites requests may drop it as well."
)


class JoinRefused(Rule):
    """A coordinator refuses again and again to let a client into its group."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        join_refused_times: Count = Field(
            default=3, description="Refused joins of one client and group, and none accepted"
        )
        join_refused_seconds: Seconds = JOIN_REFUSED_SECONDS

    name = "join_refused"
    title = "Join refused"
    protocol = "kafka"
    about = "membership"
    severities = ("critical", "warning")
    reads = ("states", "exchanges")
    advice = (*(facts(code).advice for code in REFUSALS), *(unseen(code) for code in LOOK), WITHOUT_ID)
    urgency = REFUSED
    effects = (
        Link(("rebalance_storm", *STANDSTILL), (GROUP,), "who may not join reads nothing"),
        Link(PUT_OUT, (GROUP, CLIENT), "who may not join is no member"),
        Link(("connection_churn",), (CLIENT,), "a client that may not join connects again"),
    )
    claims = JOIN_REFUSED

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> list[Finding]:
        """Apply the rule."""
        is_refused = not kinds(sources).codes_of_states.isdisjoint(_CODES)
        if not is_refused or not sources.tables.any(_ANY, times=settings.join_refused_times):
            return []
        rows = sources.tables.rows(_JOINS)
        asked = _asked(sources.tables, {(row.group_id, row.client_id) for row in rows if row.error_code})
        seen = _seen(sources.tables, {row.group_id for row in rows})
        found = []
        for subject, joins in groupby(rows, key=attrgetter("cluster", "group_id", "client_id")):
            some_rows = list(joins)
            wishes = asked[subject[1], subject[2]]
            runs = [
                run
                for _, some_joins in groupby(some_rows, key=attrgetter("host"))
                for run in knocks(some_joins)
                if is_enough(run, wishes.session_us, settings)
            ]
            if runs:
                found.append(
                    _finding(subject, runs, _first_seen(some_rows), wishes, subject[:2] in seen, sources, settings)
                )
        return found


_SESSION_US = 45_000_000
"""The brokers' default where members join by heartbeats, which state no session timeout, µs."""


_NO_ID = int(KafkaError.MEMBER_ID_REQUIRED)


@dataclass(slots=True)
class Knocking:
    """Refused joins of one client on one host, without an accepted one in between. Times are µs since the epoch.

    Attributes:
        tries: times and exchange ids.
        let_in_us: when a join was accepted after all; None: it was not.
    """

    client_id: str | None
    host: str
    code: int
    error: str
    tries: list[tuple[int, str]] = field(default_factory=list)
    let_in_us: int | None = None

    @property
    def span_us(self) -> int:
        """From the first refusal to the last."""
        return self.tries[-1][0] - self.tries[0][0]


@dataclass(slots=True)
class _Asked:
    """What members of a group ask for when they join.

    Attributes:
        refused, others: the protocols (assignors) of those refused, and of the others.
        type_refused, types_of_others: types of protocol (consumer, connect) likewise.
        session_us: the longest session timeout of those refused, µs.
        instance: group.instance.id of those refused; empty: none.
    """

    refused: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    type_refused: set[str] = field(default_factory=set)
    types_of_others: set[str] = field(default_factory=set)
    session_us: int = 0
    instance: str = ""


_CODES = (*map(int, REFUSALS), _NO_ID)
_JOINS = f"""
    WITH without_id AS (
        SELECT client_id, client_ip FROM exchanges WHERE api_key = {int(ApiKey.JOIN_GROUP)} GROUP BY ALL
        HAVING bool_and(coalesce(contains(request_body, '"memberId":""'), false))
            AND bool_or(list_contains(error_codes, {_NO_ID}))
    ), tries AS (
        SELECT * FROM states
        WHERE kind = 'join' AND (error_code <> {_NO_ID} OR EXISTS (
            FROM without_id AS w
            WHERE w.client_ip = host_of(client) AND w.client_id IS NOT DISTINCT FROM states.client_id
        )) OR (kind IN ('heartbeat', 'assignment') AND group_protocol <> 'classic')
    ), refused AS (
        SELECT DISTINCT cluster, group_id, client_id FROM tries
        WHERE error_code IN {_CODES} AND group_id IS NOT NULL
    )
    SELECT DISTINCT t.cluster, t.group_id, t.client_id, host_of(t.client) AS host, t.client AS address,
        epoch_us(t.ts) AS us, t.exchange_id, t.error_code, t.error_name
    FROM tries AS t SEMI JOIN refused AS r ON t.cluster = r.cluster AND t.group_id = r.group_id
        AND t.client_id IS NOT DISTINCT FROM r.client_id
    WHERE t.error_code = 0 OR t.error_code IN {_CODES}
    ORDER BY cluster, group_id, client_id, host, us, exchange_id
"""
"""Joins of clients that were ever refused."""
_ANY = f"""
    SELECT client_id FROM states WHERE error_code IN {_CODES} GROUP BY client_id HAVING count(*) >= $times
"""
"""Whether any client was refused often enough."""


def knocks(joins: Iterable[Row]) -> Iterator[Knocking]:
    """What one client on one host was refused, run by run.

    Args:
        joins: its joins in the order of time, accepted ones among them. One on a connection that was let in before
            the run, while the run continues elsewhere, is another process of that name and host.
    """
    run: Knocking | None = None
    inside: set[str] = set()
    twins: frozenset[str] = frozenset()
    for row in joins:
        if row.error_code == 0:
            inside.add(row.address)
            if run is not None and row.address not in twins:
                run.let_in_us = row.us
                yield run
                run = None
            continue
        inside.discard(row.address)
        twins = frozenset(inside) if run is None else twins - {row.address}
        if run is None or run.code != row.error_code:
            if run is not None:
                yield run
            run = Knocking(row.client_id, row.host, row.error_code, row.error_name)
        run.tries.append((row.us, row.exchange_id))
    if run is not None:
        yield run


def is_enough(run: Knocking, session_us: int, settings: JoinRefused.Thresholds) -> bool:
    """Whether it is more than a client that waits for its place.

    Args:
        run: refusals.
        session_us: the session timeout that it asks for, µs; 0: it states none.
        settings: thresholds.
    """
    patience_us = settings.join_refused_seconds * 1_000_000
    if run.code in WAITS:
        patience_us = max(patience_us, session_us or _SESSION_US)
    return len(run.tries) >= settings.join_refused_times and run.span_us >= patience_us


def _first_seen(rows: Iterable[Row]) -> list[int]:
    """When each host was let in that was never refused, µs: a client that was repaired may come from another one."""
    by_host: dict[str, list[Row]] = {}
    for row in rows:
        by_host.setdefault(row.host, []).append(row)
    return [some_rows[0].us for some_rows in by_host.values() if not any(row.error_code for row in some_rows)]


_REQUESTS = f"""
    SELECT client_id, api_key, request_body, error_codes FROM exchanges
    WHERE protocol = 'kafka' AND request_body IS NOT NULL AND (api_key = {int(ApiKey.JOIN_GROUP)}
        OR (api_key IN {HEARTBEATS} AND len(error_codes) > 0))
"""


def _asked(tables: Tables, refused: set[tuple[str, str | None]]) -> defaultdict[tuple[str, str | None], _Asked]:
    """By group and refused client."""
    groups = {group for group, _ in refused}
    asked: defaultdict[tuple[str, str | None], _Asked] = defaultdict(_Asked)
    for row in tables.each(_REQUESTS):
        body = parsed(row.request_body)
        group = text(body, "groupId")
        if group is None or group not in groups:
            continue
        offers = {text(item, "name") for item in items(body, "protocols")} or {text(body, "serverAssignor")}
        names = {name for name in offers if name}
        types = {name for name in (text(body, "protocolType"),) if name}
        if any(code in REFUSALS for code in row.error_codes or ()):
            one = asked[group, row.client_id]
            one.refused |= names
            one.type_refused |= types
            one.instance = text(body, "groupInstanceId") or text(body, "instanceId") or one.instance
            one.session_us = max(one.session_us, (natural(body, "sessionTimeoutMs") or 0) * 1000)
        elif not row.error_codes:
            for client in (client for other, client in refused if other == group):
                asked[group, client].others |= names
                asked[group, client].types_of_others |= types
    return asked


_OTHERS = """
    SELECT DISTINCT cluster, group_id FROM states
    WHERE kind IN ('join', 'heartbeat', 'assignment') AND error_code = 0 AND group_id IS NOT NULL
        AND group_id IN (SELECT unnest($groups))
"""
"""Groups that have members."""


def _seen(tables: Tables, groups: Iterable[str]) -> set[tuple[str, str]]:
    """Cluster and group with at least one seen member."""
    return {(row.cluster, row.group_id) for row in tables.rows(_OTHERS, groups=sorted(groups))}


def _finding(
    subject: tuple[str, str, str | None], runs: Sequence[Knocking], elsewhere: Sequence[int], asked: _Asked,
    are_others_seen: bool, sources: Sources, settings: JoinRefused.Thresholds,
) -> Finding:  # fmt: skip
    cluster, group, client_id = subject
    last = max(runs, key=lambda run: (run.tries[-1], run.host))
    same = [run for run in runs if run.code == last.code and run.tries[-1][0] >= last.tries[0][0]]
    tries = sorted(one for run in same for one in run.tries)
    first_us, last_us = tries[0][0], tries[-1][0]
    let_in = [run.let_in_us for run in same]
    let_in_us = None if None in let_in else max(us for us in let_in if us is not None)
    let_in_us = let_in_us or min((us for us in elsewhere if us > last_us), default=None)
    is_in = let_in_us is not None
    state: State = "resolved" if is_in else sources.state_unhealed(cluster, first_us, last_us, 1)
    clients = some(who(client_id, run.host) for run in same)
    before = [(run.tries[0][0], run.tries[-1][0]) for run in runs if run.tries[-1][0] < first_us]
    end = " Then it was let in." if is_in else " It reads nothing of the group."
    if state == "unknown":
        end = f" It is unknown since {clock(last_us)} UTC: it has not asked again, and was not let in."
    return Finding(
        rule=JoinRefused.name, severity="warning" if is_in else "critical", subject=f"{group}/{client_id or '?'}",
        state=state, cluster=cluster, topic=None, partition=None, group_id=group, first_us=first_us, last_us=last_us,
        summary=f"The coordinator refused to let {clients} into group {group} {times(len(tries), first_us, last_us)}: "
        f"{last.error}{_why(last.code, asked, are_others_seen)}.{end}",
        advice=_advice(last.code, group, asked, are_others_seen),
        evidence=[exchange_id for _, exchange_id in tries[: settings.max_evidence]],
        details={
            "times": len(tries), "client_id": client_id, "error": last.error, "hosts": sorted({r.host for r in same}),
            "offers": sorted(asked.refused), "others_offer": sorted(asked.others),
            "others_seen": are_others_seen, "group_instance_id": asked.instance or None,
            "session_timeout_ms": asked.session_us // 1000 or None,
            **earlier([*before, (first_us, last_us)]),
            "let_in_us": let_in_us,
            **({"known_until_us": last_us} if state == "unknown" else {}),
            "enough_us": tries[min(settings.join_refused_times, len(tries)) - 1][0],
        },
    )  # fmt: skip


def _advice(code: int, group: str, asked: _Asked, are_others_seen: bool) -> str:
    if code == _NO_ID:
        return WITHOUT_ID
    is_known = bool(asked.others) if code == KafkaError.INCONSISTENT_GROUP_PROTOCOL else are_others_seen
    if is_known or code not in LOOK:
        return facts(code).filled(group=quote(group)).advice
    return unseen(code).format(group=quote(group))


def _why(code: int, asked: _Asked, are_others_seen: bool) -> str:
    """What it asks for, and what the others do."""
    if code == _NO_ID:
        return " (it asks without the member id that it is given, each time)"
    if code == KafkaError.INCONSISTENT_GROUP_PROTOCOL and asked.refused:
        return f" ({_against_others(asked, are_others_seen)})"
    if code == KafkaError.UNSUPPORTED_ASSIGNOR and asked.refused:
        return f" (it asks for {', '.join(sorted(asked.refused))})"
    if code == KafkaError.INVALID_SESSION_TIMEOUT and asked.session_us:
        return f" (it asks for {asked.session_us // 1000} ms)"
    if code in (KafkaError.FENCED_INSTANCE_ID, KafkaError.UNRELEASED_INSTANCE_ID) and asked.instance:
        used = f"another process is {asked.instance} (group.instance.id)"
        return f" ({used}{'' if are_others_seen else ', and was not captured'})"
    return "" if are_others_seen or code not in LOOK else " (no other member of the group was captured)"


def _against_others(asked: _Asked, are_others_seen: bool) -> str:
    """What it offers, and what the members of the group do, as far as their joins were captured."""
    types, other_types = (", ".join(sorted(some)) for some in (asked.type_refused, asked.types_of_others))
    offers = ", ".join(sorted(asked.refused))
    if types and other_types and types != other_types:
        return f"it joins as {types}, the others as {other_types}"
    if not asked.others:
        when = "was stated before the capture began" if are_others_seen else "was not captured"
        return f"it offers {offers}; what the others offer {when}"
    if asked.others & asked.refused:
        return f"it offers {offers}, as others do; a member that was not captured does not"
    return f"it offers {offers}, the others {', '.join(sorted(asked.others))}"
