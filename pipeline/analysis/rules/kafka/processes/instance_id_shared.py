"""Rule ``instance_id_shared``: two processes use one group.instance.id, and take the membership from each other.

Meaning: for the coordinator they are one member. In the classic protocol whoever joins takes the place, and the other
is fenced at its next request; in the consumer protocol (KIP-848) whoever comes second is refused. Records between the
last commit and each change are processed twice, and one of the two always stands still.
Evidence: requests that name the instance id and were accepted, and FENCED_INSTANCE_ID or UNRELEASED_INSTANCE_ID in
answers to another connection. A deploy that starts the new instance before the old one ends fences it once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote

from decoder.fields import Json, integer, items, parsed, text
from decoder.kafka.apis import ApiKey, KafkaError
from decoder.kafka.errors import NO_ERROR, error_name
from pipeline.analysis.claims.kafka.processes import INSTANCE_ID_SHARED
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.rules.case.case import Case, begun
from pipeline.analysis.rules.case.entities import CLIENT, GROUP
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, advised, groups
from pipeline.analysis.rules.format import host_of, times
from pipeline.analysis.rules.kafka.api_groups import NAMING_INSTANCES
from pipeline.analysis.rules.kafka.groups.coming_and_going import HEARTBEATS
from pipeline.analysis.rules.kafka.links import PUT_OUT, STANDSTILL
from pipeline.analysis.rules.kafka.refused_apis import refused_apis
from pipeline.analysis.rules.kafka.thresholds import JOIN_REFUSED_SECONDS, ZOMBIE_TIMES
from pipeline.analysis.rules.model import NAMELESS, Finding, Sources
from pipeline.analysis.rules.recurrence import earlier
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.analysis.tables import ADDRESS, Row, Tables, numbers
from pipeline.humanize import clock, joined, listed, pluralize

_FIX = (
    "Fix: a group.instance.id for each process, from what is its own (the pod's name in a StatefulSet, host and "
    "number), never a constant of the configuration or image."
)
ADVICE = (
    "Now: stop one of {who}, or start it with a group.instance.id of its own: until then each puts the other out, and "
    f"what was not committed is processed twice. {_FIX}"
)
ALONE = (
    "Now: find the other process (`kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {group} "
    "--members` shows where it runs): it is the member now. Stop {who}, or start it with a group.instance.id of its "
    "own. "
    f"{_FIX}"
)


def _both(case: Case) -> str:
    return listed(str(name) for name in case.details.get("names", ()))


def _shared(case: Case) -> str:
    instance = case.details.get("group_instance_id")
    if _is_alone(case):
        return (
            f"{_both(case)} is refused in group {case.group} ({case.kinds}): another process, which was not captured, "
            f"uses group.instance.id {instance} as well"
        )
    both = f"{_both(case)} both use group.instance.id {instance} in group {case.group}"
    if case.details.get("each_other"):
        return f"{both} and fence each other, {pluralize(case.times, 'time')}: give each its own group.instance.id"
    return (
        f"{both}: the coordinator refuses {case.details.get('refused')} ({case.kinds}). Give each its own "
        "group.instance.id"
    )


def _both_rivals(case: Case) -> str:
    """Client, port, member and since when, of each process."""
    found = []
    for one in case.details.get("rivals", ()):
        member = f", member {one['member_id']}" if one.get("member_id") else ""
        found.append(f"{one.get('client_id')} at {one.get('address')}{member}, since {clock(one['since_us'])} UTC")
    return "; ".join(found)


def _is_alone(case: Case) -> bool:
    return len(case.details.get("rivals", ())) == 1


def _stop_one(case: Case) -> str:
    if _is_alone(case):
        return f"{begun(advised(case, 'now'))} The one that is refused: {_both_rivals(case)}."
    return (
        f"Stop one of the two, or start it with another group.instance.id ({_both_rivals(case)}): until then each puts "
        "the other out, and what was not committed is processed twice."
    )


def _why(case: Case) -> str:
    if _is_alone(case):
        return f"{SEEN}the coordinator's refusals: it knows another member under this group.instance.id."
    return f"{SEEN}both name this group.instance.id, and the coordinator's refusals."


class InstanceIdShared(Rule):
    """Two processes use one group.instance.id and put each other out of the group."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        zombie_times: Count = ZOMBIE_TIMES
        join_refused_seconds: Seconds = JOIN_REFUSED_SECONDS

    name = "instance_id_shared"
    title = "Instance id shared"
    protocol = "kafka"
    about = "membership"
    severities = ("critical", "warning")
    advice = (ADVICE, ALONE)
    urgency = REFUSED
    texts = Texts(
        headline=_shared,
        now=_stop_one,
        fix=lambda case: begun(advised(case, "fix")),
        reasoning=_why,
        source=_both,
        affected=groups,
    )
    effects = (
        Link(
            (
                *PUT_OUT,
                "join_refused",
                "rebalance_storm",
                "slow_rebalance",
                "competing_committers",
                "stuck_commit",
                "commit_regressed",
                "rewound",
                "poll_interval_exceeded",
                *STANDSTILL,
            ),
            (GROUP,),
            "who shares an instance id is put out each time",
        ),
        Link(("connection_churn",), (CLIENT,), "who is fenced ends and connects again"),
    )
    claims = INSTANCE_ID_SHARED

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> Iterator[Finding]:
        """Apply the rule: one finding for each instance id."""
        if not refused_apis(sources) or not sources.tables.any(_ANY):
            return
        pause_us = settings.silence_periods * settings.episode_pause_seconds * 1_000_000
        for place, some_uses in uses(sources.tables, sources.catalog).items():
            enough = [run for run in _runs(fences(some_uses), pause_us) if _is_enough(run, settings)]
            if enough:
                yield _finding(place, enough, some_uses, sources, settings)


FENCED, UNRELEASED = int(KafkaError.FENCED_INSTANCE_ID), int(KafkaError.UNRELEASED_INSTANCE_ID)
_SESSION_US = 45_000_000
"""The brokers' default where members join by heartbeats, which state no session timeout, µs."""
STATES_ONE = f"""(api_key IN {numbers(*NAMING_INSTANCES)} AND contains(request_body, 'nstanceId":"'))"""
"""As SQL: whether a request names an instance id."""
_REFUSED = f"list_has_any(coalesce(error_codes, []), [{FENCED}, {UNRELEASED}])"
_ANY = f"FROM exchanges WHERE protocol = 'kafka' AND {_REFUSED}"
_NAMED = f"""
    SELECT {ADDRESS["server"]} AS server, {ADDRESS["client"]} AS client, client_id, api_key, exchange_id,
        epoch_us(ts) AS us, epoch_us(coalesce(response_ts, ts)) AS answered_us, request_body, response_body, error_codes
    FROM exchanges WHERE protocol = 'kafka' AND status = 'paired' AND api_key IN {numbers(*NAMING_INSTANCES)}
        AND ({STATES_ONE} OR {_REFUSED})
    ORDER BY answered_us, exchange_id
"""
_LIVES, _LEAVES, _FENCED = "lives", "leaves", "fenced"


@dataclass(frozen=True, slots=True)
class Use:
    """One request in the name of an instance id.

    Attributes:
        what: it was accepted, it says goodbye, or another process has the id.
        client: ip:port of the connection.
        member: member id; empty: none yet.
        code: of a refusal.
        rival: of a refusal: the last accepted use of another process; None: none was seen.
    """

    what: str
    us: int
    exchange_id: str
    client_id: str | None
    client: str
    member: str
    code: int = NO_ERROR
    rival: Use | None = None

    @property
    def process(self) -> tuple[str | None, str]:
        """What stays of a process that is started again on its host."""
        return self.client_id, host_of(self.client)


Instance = tuple[str, str, str]
"""Cluster, group, instance id."""


def uses(tables: Tables, catalog: ClusterCatalog) -> dict[Instance, list[Use]]:
    """All requests in the name of each instance id, in the order of time."""
    found: defaultdict[Instance, list[Use]] = defaultdict(list)
    of_member: dict[tuple[str, str], str] = {}
    for row in tables.each(_NAMED):
        request, response = parsed(row.request_body), parsed(row.response_body)
        group = text(request, "groupId") or ""
        for instance, use in _uses_of(row, request, response):
            name = instance or of_member.get((group, use.member), "")
            if not name:
                continue
            if use.what == _LIVES and use.member:
                of_member[group, use.member] = name
            found[catalog.cluster_at(row.server, row.answered_us), group, name].append(use)
    return found


def _uses_of(row: Row, request: Json, response: Json) -> Iterator[tuple[str, Use]]:
    """Instance id (empty: not stated) and use."""
    codes = set(row.error_codes or ())
    own = text(request, "groupInstanceId") or text(request, "instanceId") or ""
    member = text(response, "memberId") or text(request, "memberId") or ""
    use = Use(_LIVES, row.answered_us, row.exchange_id, row.client_id, row.client, member)
    if refused := codes & {FENCED, UNRELEASED}:
        asked = text(request, "memberId") or ""
        yield own, replace(use, what=_FENCED, member=asked, code=min(refused))
    elif codes:
        return
    elif row.api_key == ApiKey.LEAVE_GROUP:
        for one in items(request, "members"):
            yield text(one, "groupInstanceId") or "", replace(use, what=_LEAVES, member=text(one, "memberId") or "")
    elif row.api_key in HEARTBEATS and (integer(request, "memberEpoch") or 0) < 0:
        yield own, replace(use, what=_LEAVES)
    else:
        yield own, use


def fences(some_uses: Sequence[Use]) -> list[Use]:
    """The refusals of one instance id, each with the process that had it then, as far as one was captured."""
    found: list[Use] = []
    holder: Use | None = None
    for use in some_uses:
        if use.what == _LEAVES:
            holder = None if holder is not None and holder.member in (use.member, "") else holder
        elif use.what == _LIVES:
            holder = use
        else:
            is_other = holder is not None and holder.client != use.client
            found.append(replace(use, rival=holder if is_other else _next_other(some_uses, use)))
    return found


def _next_other(some_uses: Sequence[Use], refused: Use) -> Use | None:
    """Who uses the id next, of other connections and members."""
    later = (one for one in some_uses if one.us >= refused.us and one.what == _LIVES)
    return next((one for one in later if one.client != refused.client and one.member != refused.member), None)


def _runs(some: Sequence[Use], pause_us: float) -> list[list[Use]]:
    runs: list[list[Use]] = []
    for one in some:
        if not runs or one.us - runs[-1][-1].us > pause_us:
            runs.append([])
        runs[-1].append(one)
    return runs


def _is_enough(run: Sequence[Use], settings: InstanceIdShared.Thresholds) -> bool:
    """Whether it is more than a deploy that starts the new instance before the old one ends, and its rollback."""
    if len({one.rival.member for one in run if one.rival is not None}) >= settings.zombie_times:
        return True
    by_process: defaultdict[tuple[str | None, str], list[Use]] = defaultdict(list)
    for one in run:
        by_process[one.process].append(one)
    return any(len(own) >= settings.zombie_times and _lasts(own, settings) for own in by_process.values())


def _lasts(own: Sequence[Use], settings: InstanceIdShared.Thresholds) -> bool:
    waits = all(one.code == UNRELEASED for one in own)
    least_us = max(settings.join_refused_seconds * 1_000_000, _SESSION_US if waits else 0)
    return own[-1].us - own[0].us >= least_us


def _rivals(run: Sequence[Use]) -> list[Use]:
    """The last sign of each process, by host, or where they share one by connection."""
    both = [each for one in run for each in (one, one.rival) if each is not None]
    by_host = {one.process: one for one in both}
    if len(by_host) > 1:
        return [by_host[key] for key in sorted(by_host, key=lambda key: (key[1], key[0] or ""))]
    last = run[-1]
    return sorted((one for one in (last, last.rival) if one is not None), key=lambda one: one.client)


def _names(rivals: Sequence[Use]) -> list[str]:
    """Names that differ: by host, or else by client id, or else by port."""
    hosts = [host_of(one.client) for one in rivals]
    if len(set(hosts)) == len(rivals):
        return hosts
    clients = [f"{one.client_id or NAMELESS} at {host}" for one, host in zip(rivals, hosts, strict=True)]
    return clients if len(set(clients)) == len(rivals) else [one.client for one in rivals]


def _since(rival: Use, some_uses: Sequence[Use]) -> int:
    """When a process first used the id."""
    return min((one.us for one in some_uses if one.client == rival.client), default=rival.us)


def _finding(
    place: Instance, enough: Sequence[Sequence[Use]], some_uses: Sequence[Use], sources: Sources,
    settings: InstanceIdShared.Thresholds,
) -> Finding:  # fmt: skip
    cluster, group, instance = place
    run = enough[-1]
    rivals = _rivals(run)
    names = _names(rivals)
    first_us, last_us = run[0].us, run[-1].us
    losers = {one.process if len({r.process for r in rivals}) > 1 else one.client for one in run}
    is_alone = len(rivals) == 1
    each_other = len(losers) > 1 and not is_alone
    kinds = sorted({error_name(one.code) for one in run})
    state = sources.state(cluster, first_us, last_us, len(run))
    loser = names[next((n for n, one in enumerate(rivals) if one.process == run[-1].process), 0)]
    how = "fence each other" if each_other else f"the coordinator refuses {loser}"
    who = f"{joined(names)} both use group.instance.id {instance} in group {group}, and {how}"
    if is_alone:
        names = [f"{rivals[0].client_id or NAMELESS} at {names[0]}"]
        who = (
            f"{names[0]} is refused in group {group}: another process, which was not captured, uses "
            f"group.instance.id {instance}, too"
        )
    return Finding(
        rule=InstanceIdShared.name, severity="warning" if state == "resolved" else "critical",
        subject=f"{group}/{instance}", state=state, cluster=cluster, topic=None, partition=None, group_id=group,
        first_us=first_us, last_us=last_us,
        summary=f"{who}: {', '.join(kinds)} {times(len(run), first_us, last_us)}.",
        advice=ALONE.format(who=names[0], group=quote(group)) if is_alone else ADVICE.format(who=joined(names)),
        evidence=[one.exchange_id for one in run][-settings.max_evidence :],
        details={
            "times": len(run), "kinds": kinds, "group_instance_id": instance, "each_other": each_other,
            "names": names, "refused": loser,
            "rivals": [_details(one, _since(one, some_uses)) for one in rivals],
            **earlier((one[0].us, one[-1].us) for one in enough),
            "enough_us": run[min(settings.zombie_times, len(run)) - 1].us,
        },
    )  # fmt: skip


def _details(rival: Use, since_us: int) -> Mapping[str, object]:
    return {
        "client_id": rival.client_id, "address": rival.client, "member_id": rival.member or None, "since_us": since_us,
    }  # fmt: skip
