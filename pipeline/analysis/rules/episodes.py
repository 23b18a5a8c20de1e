"""Symptoms that belong together: those of one subject, cut where they pause.

Only exchanges that can hold a symptom are parsed; the others are ruled out by columns and a search in their text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from decoder.fields import parsed
from decoder.kafka.apis import ApiKey
from pipeline.analysis.facts import Facts
from pipeline.analysis.fit import fit
from pipeline.analysis.rules.kafka.processes.instance_ids import STATES_ONE
from pipeline.analysis.rules.kafka.refusals import NAMING
from pipeline.analysis.rules.kafka.share_groups.share_states import SHARE_APIS
from pipeline.analysis.rules.kafka.symptoms import (
    INTRODUCED,
    SLOW_BY_DESIGN,
    Exchange,
    symptoms,
)
from pipeline.analysis.rules.model import NAMELESS
from pipeline.analysis.rules.rule import rule_named
from pipeline.analysis.tables import ADDRESS, IS_CONNECTION, SERVICE_US, Row, Tables, numbers
from pipeline.finding_settings import FindingSettings
from pipeline.tables import EXCHANGES

_NAMES_KEPT = 50
_SMALL_METADATA = 4_000
"""Characters of a Metadata answer that may be of a cluster with few brokers: how many it lists is asked for."""


@dataclass(frozen=True, slots=True)
class Episode:
    """Symptoms of one rule and subject without a long pause between them. Times are µs since the epoch.

    Attributes:
        server, servers: where the last symptom was shown, and where any was, at most fifty.
        kinds, names: how many distinct ``what`` its symptoms have, and which, at most fifty.
        callers, clients: how many showed it, and who, ``client_id at address``, at most fifty.
        total, peak: sum and maximum of their values.
        evidence, times_us: exchange ids and times of the first of them, as many as ``max_evidence``.
        unhealed: symptoms after which their client did not succeed (see Shown.healed_us).
        run, run_us: the most symptoms of a client between two of its successes, and the longest such time.
        healed_us: when the client of the last symptom succeeded after it; None if that was not seen.
        before: first and last time of its episodes before this one, in order of time. It makes no other episode of it:
            what is known of the one by itself is found by the one that knows what was before.
        each: its symptoms in order of time, of rules that look at each.
        answers: names of the apis and of what they were answered, distinct, at most fifty.
    """

    rule: str
    cluster: str
    server: str
    subject: str
    times: int
    first_us: int
    last_us: int
    total: float
    peak: float
    kinds: int
    names: tuple[str, ...]
    callers: int
    clients: tuple[str, ...]
    topic: str | None
    partition: int | None
    group_id: str | None
    evidence: tuple[str, ...]
    times_us: tuple[int, ...]
    servers: tuple[str, ...] = ()
    unhealed: int = 0
    run: int = 0
    run_us: int = 0
    healed_us: int | None = None
    before: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    each: tuple[Shown, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()

    @property
    def span_us(self) -> int:
        """From the first symptom to the last."""
        return self.last_us - self.first_us

    def with_another(self, other: Episode) -> Episode:
        """This one and what others showed meanwhile."""
        names, clients = sorted({*self.names, *other.names}), sorted({*self.clients, *other.clients})
        shown = sorted(zip((*self.times_us, *other.times_us), (*self.evidence, *other.evidence), strict=True))
        kept = shown[: max(len(self.evidence), len(other.evidence))]
        healed = (self.healed_us, other.healed_us)
        return replace(
            self, times=self.times + other.times, first_us=min(self.first_us, other.first_us),
            total=self.total + other.total, peak=max(self.peak, other.peak),
            kinds=max(self.kinds, other.kinds, len(names)), names=tuple(names[:_NAMES_KEPT]),
            callers=max(self.callers, other.callers, len(clients)), clients=tuple(clients[:_NAMES_KEPT]),
            evidence=tuple(one for _, one in kept), times_us=tuple(us for us, _ in kept),
            servers=tuple(sorted({*self.servers, *other.servers}))[:_NAMES_KEPT],
            unhealed=self.unhealed + other.unhealed, run=max(self.run, other.run),
            run_us=max(self.run_us, other.run_us),
            each=tuple(sorted((*self.each, *other.each), key=lambda one: (one.us, one.exchange_id))),
            healed_us=None if None in healed else max(us for us in healed if us is not None),
            answers=tuple(sorted({*self.answers, *other.answers})[:_NAMES_KEPT]),
        )  # fmt: skip


class Shown(NamedTuple):
    """A symptom and who showed it where. Times are µs since the epoch.

    Attributes:
        us: when the request was sent.
        client: ip:port.
        latency_us: from then to the answer; 0 without one.
        healed_us: when the client succeeded in what had failed; None if it was not seen to, or of other rules.
    """

    server: str
    client_id: str | None
    client_ip: str
    us: int
    exchange_id: str
    rule: str
    subject: str
    what: str
    topic: str | None
    partition: int | None
    group_id: str | None
    value: float
    client: str = ""
    connection_id: str = ""
    api_name: str = ""
    latency_us: int = 0
    healed_us: int | None = None

    @property
    def host(self) -> str:
        """Distinguishes whose symptoms are counted for themselves."""
        return self.client_ip if rule_named(self.rule).counting.by_host else ""


def exchange_symptoms(tables: Tables, settings: FindingSettings) -> Iterator[Shown]:
    """The symptoms of Kafka exchanges, in no order.

    Args:
        tables: ``exchanges``, and ``gaps``: where frames were lost, nothing follows from a missing answer.
        settings: the latency that is a symptom.
    """
    slow_us = int(settings.slow_seconds * 1_000_000)
    for row in tables.each(_CANDIDATES, slow_us=slow_us):
        for one in symptoms(_exchange(row), slow_us):
            yield Shown(
                row.server, row.client_id, row.client_ip, row.us, row.exchange_id, one.rule, one.subject, one.what,
                one.topic, one.partition, one.group_id, one.value, row.client, row.connection_id, row.api_name or "",
                row.latency_us or 0,
            )  # fmt: skip


def collect_episodes(found: Iterable[Shown], facts: Facts, settings: FindingSettings) -> list[Episode]:
    """All episodes, those of one subject in order of time.

    Args:
        found: symptoms, as :func:`exchange_symptoms` gives them.
        facts: clusters as known now.
        settings: the pause that ends an episode.
    """
    shown = list(found)
    clusters = facts.clusters_at((one.server, one.us) for one in shown)
    ordered = sorted(zip(clusters, shown, strict=True), key=_in_order)
    episodes = []
    for (cluster, rule, _, _), some in groupby(ordered, key=_of_subject):
        runs = _without_pauses((one for _, one in some), *_longest_pauses_us(rule, settings))
        episodes += [_episode(run, cluster, settings.max_evidence) for run in runs]
    return episodes


def _longest_pauses_us(rule: str, settings: FindingSettings) -> tuple[float, float]:
    """The longest pause within an episode, µs, between any two symptoms, and between two of one connection."""
    counting = rule_named(rule).counting
    if counting.pause_setting is not None:
        own_us = 2 * getattr(settings, counting.pause_setting) * 1_000_000
        return own_us, own_us
    pause_us = settings.episode_pause_seconds * 1_000_000
    patient_us = pause_us * settings.silence_periods
    is_patient = counting.is_refused or counting.is_refused_on_connection
    return (patient_us if counting.is_refused else pause_us), (patient_us if is_patient else pause_us)


def _of_subject(placed: tuple[str, Shown]) -> tuple[str, str, str, str]:
    """A coordinator or leader that moves to another broker goes on with the same: clusters count, not servers."""
    cluster, one = placed
    return cluster, one.rule, one.subject, one.host


def _in_order(placed: tuple[str, Shown]) -> tuple[object, ...]:
    one = placed[1]
    partition = -1 if one.partition is None else one.partition
    return (*_of_subject(placed), one.us, one.exchange_id, one.what, partition)


def _without_pauses(some: Iterable[Shown], longest_us: float, of_one_us: float) -> Iterator[list[Shown]]:
    run: list[Shown] = []
    for one in some:
        if run and one.us - run[-1].us > (of_one_us if one.client == run[-1].client else longest_us):
            yield run
            run = []
        run.append(one)
    if run:
        yield run


_JOINS = numbers(
    ApiKey.JOIN_GROUP, ApiKey.INIT_PRODUCER_ID, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.SASL_HANDSHAKE
)
MAY_SHOW_ONE = f"""
        coalesce(len(error_codes), 0) > 0
        OR ({SERVICE_US} >= $slow_us AND api_key NOT IN {SLOW_BY_DESIGN})
        OR status <> 'paired' OR request_status IN ('unknown_api', 'unknown_version')
        OR (contains(response_body, '"throttleTimeMs":') AND NOT contains(response_body, '"throttleTimeMs":0'))
        OR (api_key = {ApiKey.FETCH} AND regexp_matches(request_body, '"sessionEpoch":0\\b'))
        OR (api_key = {ApiKey.PRODUCE} AND response_body IS NULL)
        OR api_key IN {_JOINS}
        OR (api_key = {ApiKey.CONSUMER_GROUP_HEARTBEAT} AND contains(response_body, '"assignment":{{'))
"""
"""As SQL, with ``$slow_us``: which Kafka exchanges may show a symptom. The bodies of no other are looked at."""
_COMES_OR_GOES = f"""
    (api_key = {ApiKey.LEAVE_GROUP}
        OR (api_key = {ApiKey.CONSUMER_GROUP_HEARTBEAT} AND regexp_matches(request_body, '"memberEpoch":(0|-)')))
"""
_BODIES_ASKED = f"""protocol = 'kafka' AND (
    api_key IN {numbers(ApiKey.API_VERSIONS, ApiKey.STREAMS_GROUP_HEARTBEAT, *SHARE_APIS)}
    OR (api_key = {ApiKey.METADATA} AND length(response_body) <= {_SMALL_METADATA})
    OR {_COMES_OR_GOES} OR {MAY_SHOW_ONE})
"""
_CANDIDATES = f"""
    WITH lossy AS (SELECT DISTINCT connection_id FROM gaps WHERE NOT {IS_CONNECTION})
    SELECT {ADDRESS["server"]} AS server, {ADDRESS["client"]} AS client, client_id, client_ip, connection_id,
        epoch_us(ts) AS us, exchange_id, api_key, api_name, api_version,
        status, request_status, latency_us, {SERVICE_US} AS service_us, error_codes, request_body, response_body
    FROM exchanges
    WHERE protocol = 'kafka' AND ({MAY_SHOW_ONE}) AND NOT (
        connection_id IN (SELECT connection_id FROM lossy) AND status IN ('unanswered', 'orphan_response')
    )
"""
"""Exchanges in which there may be a symptom."""
_HELLO_BYTES = 4_000
"""Within so many characters a reply to hello names the members."""
_HALVES_ASKED = {
    "request": f"({_BODIES_ASKED}) OR (protocol = 'kafka' AND (api_key IN {numbers(*NAMING)} OR {STATES_ONE}))",
    "response": f"""({_BODIES_ASKED}) OR (protocol = 'mongodb' AND (
        contains(response_body, 'RetryAfterMs') OR contains(response_body[:{_HELLO_BYTES}], '"hosts":[')
    ))""",
}
"""By half, which bodies rules look into: in an accepted request also for the group, instance or transactional id."""


def without_bodies(exchanges: pa.Table, settings: FindingSettings) -> pa.Table:
    """Exchanges without the bodies that no rule looks into: an empty object stands for each, where there was one."""
    less = ", ".join(
        f"CASE WHEN {half}_body IS NULL THEN NULL WHEN {asked} THEN {half}_body ELSE '{{}}' END AS {half}_body"
        for half, asked in _HALVES_ASKED.items()
    )
    nulls = ", ".join(f"NULL AS {half}_{part}" for half in ("request", "response") for part in ("embedded", "header"))
    tables = Tables({"exchanges": exchanges})
    try:
        slow_us = int(settings.slow_seconds * 1_000_000)
        return fit(tables.table(f"SELECT * REPLACE ({less}, {nulls}) FROM exchanges", slow_us=slow_us), EXCHANGES)
    finally:
        tables.close()


def _exchange(row: Row) -> Exchange:
    request, response = parsed(row.request_body), parsed(row.response_body)
    key = row.api_key
    return Exchange(
        -1 if key is None else key, row.api_name or f"api {key}", row.api_version, row.client_id, row.server,
        row.status, row.request_status, row.service_us, tuple(row.error_codes or ()), request, response,
    )  # fmt: skip


def _episode(run: list[Shown], cluster: str, max_evidence: int) -> Episode:
    first, last = run[0], run[-1]
    shown: dict[str, tuple[Any, ...]] = dict(zip(Shown._fields, zip(*run, strict=True), strict=True))
    names = sorted(set(shown["what"]))
    who = set(zip(shown["client_id"], shown["client_ip"], strict=True))
    clients = sorted({f"{NAMELESS if client_id is None else client_id} at {host}" for client_id, host in who})
    between: defaultdict[tuple[str, int | None], list[int]] = defaultdict(list)
    for host, healed_us, us in zip(shown["client_ip"], shown["healed_us"], shown["us"], strict=True):
        between[host, healed_us].append(us)
    values = [float(value) for value in shown["value"]]
    return Episode(
        rule=first.rule, cluster=cluster, server=last.server, subject=first.subject,
        times=len(run), first_us=first.us, last_us=last.us, total=sum(values), peak=max(values),
        kinds=len(names), names=tuple(name for name in names[:_NAMES_KEPT] if name),
        callers=len(clients), clients=tuple(clients[:_NAMES_KEPT]),
        topic=_greatest(shown["topic"]), partition=_greatest(shown["partition"]), group_id=_greatest(shown["group_id"]),
        evidence=shown["exchange_id"][:max_evidence], times_us=shown["us"][:max_evidence],
        servers=tuple(sorted(set(shown["server"]))[:_NAMES_KEPT]),
        unhealed=shown["healed_us"].count(None), run=max(map(len, between.values())),
        run_us=max(some[-1] - some[0] for some in between.values()), healed_us=last.healed_us,
        each=tuple(run) if first.rule == INTRODUCED or rule_named(first.rule).counting.keeps_each else (),
        answers=tuple(sorted(set(zip(shown["api_name"], shown["what"], strict=True)))[:_NAMES_KEPT]),
    )  # fmt: skip


def _greatest(values: Iterable[Any]) -> Any:
    """None if all are None."""
    return max((value for value in set(values) if value is not None), default=None)
