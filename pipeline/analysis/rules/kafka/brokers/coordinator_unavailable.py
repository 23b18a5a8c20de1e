"""Rule ``coordinator_unavailable``: groups or transactions cannot reach their coordinator.

Evidence: COORDINATOR_NOT_AVAILABLE (FindCoordinator finds none), COORDINATOR_LOAD_IN_PROGRESS and NOT_COORDINATOR,
again and again, without one accepted request of the group or transactional id in between. What readers and writers of
the partitions themselves get does not matter: a group can read on without being able to commit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter

from decoder.fields import Json, integer, items, parsed, text
from decoder.kafka.apis import ApiKey, KafkaError
from decoder.kafka.errors import error_name
from pipeline.analysis.claims.kafka.brokers import COORDINATOR_UNAVAILABLE
from pipeline.analysis.codes.kafka.table import KAFKA
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import GROUP, SERVER, TRANSACTION
from pipeline.analysis.rules.case.texts import STANDS
from pipeline.analysis.rules.kafka.brokers.outages import BY, Attempt, Wave, finding, lasting, lasting_waves
from pipeline.analysis.rules.kafka.links import SLOWED, STANDSTILL
from pipeline.analysis.rules.kafka.refused_apis import refused_requests
from pipeline.analysis.rules.kafka.thresholds import UNAVAILABLE_REFUSALS, UNAVAILABLE_SECONDS
from pipeline.analysis.rules.kinds import kinds
from pipeline.analysis.rules.model import NAMELESS, Finding, Sources
from pipeline.analysis.rules.recurrence import last_of_each
from pipeline.analysis.rules.rule import OF_CLUSTER, Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds
from pipeline.analysis.tables import ADDRESS, IS_LOSS, Row, Tables, numbers
from pipeline.humanize import first_of, pluralize

ADVICE = (
    "Now: look at the leader of the coordinator's partition (`kafka-topics.sh --bootstrap-server BROKER --describe "
    "--topic __consumer_offsets`, or __transaction_state): start that broker; while it loads "
    "(COORDINATOR_LOAD_IN_PROGRESS) wait, a restart begins the loading again. Clients that send FindCoordinator need "
    "no restart: they continue by themselves, and read again what they read meanwhile. Fix: as many replicas of both "
    "topics as there are brokers, up to three (offsets.topic.replication.factor, "
    "transaction.state.log.replication.factor; a topic keeps the replicas that it was made with: "
    "`kafka-reassign-partitions.sh`); keep the log cleaner of these topics at work (log.cleaner.enable=true), or "
    "loading takes minutes. Clients: default.api.timeout.ms (Java) longer than a restart."
)
RESTART = (
    "Now: restart {clients}: the broker that is asked does not coordinate the group, and no FindCoordinator was seen "
    "since the first refusal. Fix: update the client library: after NOT_COORDINATOR a client asks any broker for the "
    "coordinator (FindCoordinator) and repeats the request there."
)
PARTLY = (
    "Now: see whether enough replicas of __consumer_offsets are in sync (`kafka-topics.sh --bootstrap-server BROKER "
    "--describe --topic __consumer_offsets`): with fewer than min.insync.replicas the coordinator accepts heartbeats "
    "and no commits; start the brokers that are missing. Restart {clients} if the same requests of other members are "
    "accepted. Fix: keep three replicas of __consumer_offsets and __transaction_state, and their min.insync.replicas "
    "below that number."
)
TOO_FEW = (
    "Now: if the cluster has no more brokers than Metadata lists ({brokers}), set {factors}={number} on every broker "
    "and restart them: with more replicas than brokers the internal topic cannot be created (the broker's log states "
    "it); else start the missing brokers. Fix: in a cluster of {brokers} keep offsets.topic.replication.factor and "
    "transaction.state.log.replication.factor at {number}, and transaction.state.log.min.isr at most as high."
)


class CoordinatorUnavailable(Rule):
    """Groups or transactions cannot reach their coordinator: members cannot join, commit or begin."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        unavailable_refusals: Count = UNAVAILABLE_REFUSALS
        unavailable_seconds: Seconds = UNAVAILABLE_SECONDS

    name = "coordinator_unavailable"
    title = "Coordinator unavailable"
    protocol = "kafka"
    about = "clients and brokers"
    severities = ("critical", "warning")
    reads = ("states", "events", "exchanges", "gaps")
    advice = (ADVICE, RESTART, PARTLY, TOO_FEW)
    urgency = STANDS
    gathered = OF_CLUSTER
    effects = (
        Link(
            ("commit_rejected", "zombie_member", "rebalance_storm", "slow_rebalance", "join_refused", *STANDSTILL),
            (GROUP,),
            "without a coordinator a group can neither join nor commit",
        ),
        Link(
            ("hanging_transaction", "lso_stalled", "request_refused"),
            (TRANSACTION,),
            "without a coordinator no transaction ends",
        ),
        Link(("unanswered_requests", "latency_outlier"), (SERVER,), SLOWED),
    )
    claims = COORDINATOR_UNAVAILABLE

    @classmethod
    def is_of_brokers(cls, case: Case) -> bool:
        """Unless its clients never asked for their coordinator."""
        return not case.details.get("never_asked")

    @classmethod
    def detect(cls, sources: Sources, settings: Thresholds) -> list[Finding]:
        """Apply the rule: one finding for each wave, the last of those that begin at the same broker."""
        by_kind = _refused(sources)
        by_kind[_COMMITS] += _offsets_refused(sources)
        refused = [*(attempt for some in by_kind.values() for attempt in some), *_not_found(sources)]
        waves = list(lasting_waves(refused, partial(_served, sources.tables), settings))
        known = {attempt for wave in waves for attempt in wave.refused}
        partly = list(_of_single_clients(by_kind, known, sources.tables, settings))
        found = [_finding(wave, sources, settings) for wave in waves]
        found += [_partly(wave, sources, settings) for wave in partly]
        return last_of_each(found)


REFUSALS = KAFKA.of_area("coordinator")
_NOT_FOUND, _ELSEWHERE = error_name(KafkaError.COORDINATOR_NOT_AVAILABLE), error_name(KafkaError.NOT_COORDINATOR)
_USUAL_FACTOR = 3
"""Default of offsets.topic.replication.factor and transaction.state.log.replication.factor."""
_GROUP, _TRANSACTION = 0, 1
_MEMBERS, _COMMITS = "members", "commits"


def _of_single_clients(
    by_kind: Mapping[str, Sequence[Attempt]],
    known: Container[Attempt],
    tables: Tables,
    settings: CoordinatorUnavailable.Thresholds,
) -> Iterator[Wave]:
    """Clients that are refused on and on, while requests of others, or others of theirs, are accepted."""
    for kind, some in by_kind.items():
        left = [one for one in some if one not in known]
        often = lasting(left, settings.unavailable_refusals, int(settings.unavailable_seconds * 1_000_000))
        for by, own in groupby(sorted(often, key=attrgetter("by", "us")), key=attrgetter("by")):
            yield from lasting_waves(list(own), partial(_served, tables, kind=kind, by=by), settings)


_PLACE = """
    CASE WHEN transactional_id IS NULL THEN 'group ' || group_id ELSE 'transactional id ' || transactional_id END
"""
_OF_GROUP = "'group ' || group_id"
"""A commit goes to the coordinator of its group, also within a transaction."""
_ACCEPTED = ("committed", "txn_committed", "fetched_commit")
_BY_COORDINATORS = "kind <> 'txn_marker' AND coalesce(group_id, transactional_id) IS NOT NULL"


def _refused(sources: Sources) -> dict[str, list[Attempt]]:
    """What coordinators refused of requests in the name of a group or transactional id: of members, and of commits."""
    columns = f"""
        epoch_us(ts) AS us, exchange_id, error_name AS error, server, {BY} AS "by"
    """
    found: dict[str, list[Attempt]] = {_MEMBERS: [], _COMMITS: []}
    came = kinds(sources)
    if (came.codes_of_states | came.codes_of_events).isdisjoint(REFUSALS):
        return found
    rows = sources.tables.rows(f"""
        SELECT cluster, {_PLACE} AS place, {columns}, '{_MEMBERS}' AS kind FROM states
        WHERE error_code IN {REFUSALS} AND {_BY_COORDINATORS}
        UNION ALL SELECT cluster, {_OF_GROUP}, {columns}, '{_COMMITS}' FROM events
        WHERE error_code IN {REFUSALS} AND group_id IS NOT NULL
            AND kind IN ('commit_rejected', 'txn_commit_rejected', 'fetched_commit')
    """)
    for *attempt, kind in rows:
        found[kind].append(Attempt(*attempt))
    return found


def _served(
    tables: Tables, refused: Iterable[Attempt], kind: str | None = None, by: str | None = None
) -> dict[tuple[str, str], list[int]]:
    """When they accepted such requests of the same groups and ids, ascending.

    Args:
        tables: ``states``, ``events``.
        refused: refusals.
        kind, by: of members or of commits, and of one client; by default of all.
    """
    rows = tables.rows(
        f"""
        WITH accepted AS (
            SELECT cluster, {_PLACE} AS place, epoch_us(ts) AS us FROM states
            WHERE error_code = 0 AND {_BY_COORDINATORS} AND coalesce($kind, '{_MEMBERS}') = '{_MEMBERS}'
                AND coalesce(transactional_id, group_id) IN (SELECT unnest($names)) AND ($by IS NULL OR {BY} = $by)
            UNION ALL SELECT cluster, {_OF_GROUP}, epoch_us(ts) FROM events
            WHERE error_code = 0 AND kind IN {_ACCEPTED}
                AND coalesce($kind, '{_COMMITS}') = '{_COMMITS}'
                AND group_id IN (SELECT unnest($names)) AND ($by IS NULL OR {BY} = $by)
        )
        SELECT cluster, place, list(us ORDER BY us) AS times FROM accepted GROUP BY ALL
        """,
        names=sorted({name.removeprefix("group ").removeprefix("transactional id ") for _, name, *_ in refused}),
        kind=kind,
        by=by,
    )
    return {(row.cluster, row.place): row.times for row in rows}


def _not_found(sources: Sources) -> Iterator[Attempt]:
    """Refusals of FindCoordinator, of one key or several (version 4 on)."""
    return _in_bodies(ApiKey.FIND_COORDINATOR, _keys, sources)


def _offsets_refused(sources: Sources) -> Iterator[Attempt]:
    """Refusals of OffsetFetch as a whole, of one group or several (version 8 on): their answers name no partition."""
    return _in_bodies(ApiKey.OFFSET_FETCH, _groups, sources)


RefusedBy = Callable[[int | None, Json, Json], Iterable[tuple[str, int]]]
"""Places that an exchange refuses, each with its code, by the api's version and both bodies."""


def _in_bodies(api: ApiKey, refused_by: RefusedBy, sources: Sources) -> Iterator[Attempt]:
    for cluster, row in refused_requests(sources, api, REFUSALS):
        for place, code in refused_by(row.api_version, parsed(row.request_body), parsed(row.response_body)):
            yield Attempt(cluster, place, row.us, row.exchange_id, error_name(code), row.server, row.by)


def _groups(_: int | None, request: Json, answer: Json) -> Iterator[tuple[str, int]]:
    for one in items(answer, "groups") or [{**answer, "groupId": text(request, "groupId")}]:
        group, code = text(one, "groupId"), integer(one, "errorCode")
        if group and code is not None and code in REFUSALS:
            yield f"group {group}", code


def _keys(version: int | None, request: Json, answer: Json) -> Iterator[tuple[str, int]]:
    kind = _GROUP if version == 0 else integer(request, "keyType")
    name = {_GROUP: "group", _TRANSACTION: "transactional id"}.get(-1 if kind is None else kind)
    single = [{**answer, "key": request["key"]}] if "key" in request else []
    for one in items(answer, "coordinators") or single:
        key, code = text(one, "key"), integer(one, "errorCode")
        if name and key and code is not None and code in REFUSALS:
            yield f"{name} {key}", code


def _finding(wave: Wave, sources: Sources, settings: CoordinatorUnavailable.Thresholds) -> Finding:
    places = wave.places
    shown = ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
    shown = shown[:1].upper() + shown[1:]
    silent, brokers = _never_asking(wave, sources, settings), _few_brokers(wave, sources)
    is_elsewhere = bool(silent) and {one.by for one in wave.refused} == set(silent)
    of = f"{shown[:1].lower()}{shown[1:]}"
    elsewhere = f"{wave.refused[0].server}, which does not coordinate {of}, was asked"
    what = elsewhere if is_elsewhere else f"{shown} had no coordinator"
    advice, more = ADVICE, ""
    if silent:
        advice, more = RESTART.format(clients=first_of(silent)), f" {first_of(silent)} sent no FindCoordinator since."
    elif brokers:
        advice = _too_few(brokers, places)
        more = f" Metadata lists {pluralize(brokers, 'broker')}, and no coordinator was found before."
    details = {**({"never_asked": silent} if silent else {}), **({"brokers": brokers} if brokers else {})}
    return _made(wave, what, advice, more, details, sources, settings)


def _partly(wave: Wave, sources: Sources, settings: CoordinatorUnavailable.Thresholds) -> Finding:
    """Of one client that is refused while the coordinator accepts other requests: it is there."""
    if any(one.error == _ELSEWHERE for one in wave.refused):
        return _finding(wave, sources, settings)
    shown = first_of(wave.places)
    what = f"The coordinator of {shown} refused some requests, and accepted others,"
    advice = PARTLY.format(clients=first_of(sorted({one.by for one in wave.refused})))
    return _made(wave, what, advice, "", {"is_partly": True}, sources, settings)


def _made(
    wave: Wave, what: str, advice: str, more: str, details: dict[str, object], sources: Sources,
    settings: CoordinatorUnavailable.Thresholds,
) -> Finding:  # fmt: skip
    """The finding about a wave; ``more``: further sentences of its summary."""
    found = finding(
        wave, CoordinatorUnavailable, wave.refused[0].server, what, advice, sources, settings.max_evidence,
        settings.unavailable_refusals,
    )  # fmt: skip
    places = wave.places
    groups = [place.removeprefix("group ") for place in places if place.startswith("group ")]
    only = groups[0] if len(places) == len(groups) == 1 else None
    facts = {**found.details, "groups": groups, **details}
    return replace(found, summary=found.summary + more, group_id=only, details=facts)


def _never_asking(wave: Wave, sources: Sources, settings: CoordinatorUnavailable.Thresholds) -> list[str]:
    """Clients that were answered again and again that the broker is not the coordinator, and looked for no other one.

    Of a client of whose connections the capture lost something nothing follows from what was not seen.
    """
    refused = [one for one in wave.refused if one.error == _ELSEWHERE]
    least_us = settings.unavailable_seconds * 1_000_000
    found = []
    for by, some in groupby(sorted(refused, key=attrgetter("by", "us")), key=attrgetter("by")):
        times = [one.us for one in some]
        if len(times) >= settings.unavailable_refusals and times[-1] - times[0] >= least_us:
            found.append((by, times[0], times[-1]))
    if not found:
        return []
    asked: defaultdict[str, list[int]] = defaultdict(list)
    for row in sources.tables.rows(_ASKED):
        asked[row.by].append(row.us)
    lossy = {row.by for row in sources.tables.rows(_LOSSY)}
    return [by for by, first, last in found if by not in lossy and not any(first <= us <= last for us in asked[by])]


_BY_EXCHANGE = f"coalesce(nullif(client_id, ''), '{NAMELESS}') || ' at ' || client_ip"
_ASKED = f"""
    SELECT {_BY_EXCHANGE} AS "by", epoch_us(ts) AS us FROM exchanges
    WHERE protocol = 'kafka' AND api_key = {ApiKey.FIND_COORDINATOR}
"""
_LOSSY = f"""
    SELECT DISTINCT {_BY_EXCHANGE} AS "by" FROM exchanges SEMI JOIN (FROM gaps WHERE {IS_LOSS}) USING (connection_id)
    WHERE protocol = 'kafka'
"""


def _few_brokers(wave: Wave, sources: Sources) -> int:
    """How many brokers the cluster has at most, if they are too few for the internal topics by default; else 0.

    Only where FindCoordinator finds none, and no client in the cluster was ever answered by a coordinator: the internal
    topic was never there.
    """
    last_us = wave.refused[-1].us
    if not any(one.error == _NOT_FOUND for one in wave.refused):
        return 0
    of_cluster = _answers_by_cluster(sources).get(wave.cluster, [])
    if any(row.is_found and row.us <= last_us for row in of_cluster) or _was_answered(wave, sources.tables):
        return 0
    brokers = max((_brokers_in(row.response_body) for row in of_cluster if row.us <= last_us), default=0)
    return brokers if brokers < _USUAL_FACTOR else 0


def _answers_by_cluster(sources: Sources) -> Mapping[str, list[Row]]:
    def found() -> Mapping[str, list[Row]]:
        rows = sources.tables.rows(_OF_CLUSTER)
        by_cluster: defaultdict[str, list[Row]] = defaultdict(list)
        for cluster, row in zip(sources.catalog.clusters_at((row.server, row.us) for row in rows), rows, strict=True):
            by_cluster[cluster].append(row)
        return by_cluster

    return sources.once("answers about brokers and coordinators", found)


_OF_CLUSTER = f"""
    SELECT {ADDRESS["server"]} AS server, epoch_us(ts) AS us,
        CASE WHEN api_key = {ApiKey.METADATA} THEN response_body END AS response_body,
        api_key = {ApiKey.FIND_COORDINATOR} AND len(coalesce(error_codes, [])) = 0 AS is_found
    FROM exchanges
    WHERE protocol = 'kafka' AND status = 'paired' AND api_key IN {numbers(ApiKey.METADATA, ApiKey.FIND_COORDINATOR)}
"""


def _was_answered(wave: Wave, tables: Tables) -> bool:
    """Whether a coordinator of the cluster accepted anything before the wave ended."""
    rows = tables.rows(
        f"""
        SELECT 1 AS one FROM states WHERE error_code = 0 AND {_BY_COORDINATORS} AND cluster = $cluster
            AND epoch_us(ts) <= $until
        UNION ALL SELECT 1 FROM events WHERE error_code = 0 AND group_id IS NOT NULL AND cluster = $cluster
            AND kind IN {_ACCEPTED} AND epoch_us(ts) <= $until
        LIMIT 1
        """,
        cluster=wave.cluster, until=wave.refused[-1].us,
    )  # fmt: skip
    return bool(rows)


def _brokers_in(body: str | None) -> int:
    return len(items(parsed(body), "brokers"))


def _too_few(brokers: int, places: Sequence[str]) -> str:
    topics = [
        factor
        for kind, factor in (
            ("group ", "offsets.topic.replication.factor"),
            ("transactional id ", "transaction.state.log.replication.factor"),
        )
        if any(place.startswith(kind) for place in places)
    ]
    return TOO_FEW.format(brokers=pluralize(brokers, "broker"), factors=" and ".join(topics), number=brokers)
