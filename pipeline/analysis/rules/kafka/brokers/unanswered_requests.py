"""Rule ``unanswered_requests``: a broker leaves requests without an answer, and their clients wait without success."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pipeline.analysis.claims.kafka.brokers import UNANSWERED_REQUESTS
from pipeline.analysis.rules.capture.connections.connection_failed import explained
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.capture.other_protocol import IS_SILENT
from pipeline.analysis.rules.case.entities import CLIENT, SERVER
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, never, not_why, own_clients
from pipeline.analysis.rules.counted import clients, finding, last_of_each
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.links import RESENT
from pipeline.analysis.rules.kafka.member_texts import SLOW_BROKER
from pipeline.analysis.rules.kafka.symptoms import LEFT_BEHIND, WAITING_APIS
from pipeline.analysis.rules.kafka.thresholds import SLOW_SECONDS
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.recurrence import moments
from pipeline.analysis.rules.rule import OF_SERVER, Link, Rule
from pipeline.analysis.rules.thresholds import UNANSWERED_TIMES, Count, RuleThresholds, Seconds
from pipeline.analysis.tables import ADDRESS, IS_LOSS, Row, Tables
from pipeline.humanize import clock, pluralize, seconds

ADVICE = (
    "Now: look whether the broker hangs (garbage collection, disk, network), restart it if it does. Fix: a "
    "request.timeout.ms (librdkafka: socket.timeout.ms, request.timeout.ms of the topic) of the client that is longer "
    "than what the broker takes."
)


class UnansweredRequests(Rule):
    """A broker did not answer requests although their client waited for it."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        slow_seconds: Seconds = SLOW_SECONDS
        unanswered_times: Count = UNANSWERED_TIMES

    name = "unanswered_requests"
    title = "Requests unanswered"
    protocol = "kafka"
    about = "clients and brokers"
    severities = ("critical", "info")
    advice = (ADVICE,)
    urgency = REFUSED
    texts = Texts(
        headline=lambda case: (
            f"Broker {case.server} left {pluralize(case.times, 'request')} of {case.who} without an answer "
            f"({case.kinds})"
        ),
        now=lambda case: (
            f"Look whether broker {case.server} hangs (`jcmd PID Thread.print`, its garbage collection and disk), and "
            "restart it if it does. What was produced may or may not be written."
        ),
        fix=f"{SLOW_BROKER} request.timeout.ms of the clients must be longer than what it takes.",
        reasoning=f"{SEEN}the connections ended without these answers. {not_why('broker')}",
        source=lambda case: f"broker {case.server}",
        affected=own_clients,
        is_cause=never,
    )
    gathered = OF_SERVER
    subject = (SERVER, CLIENT)
    effects = (Link(("duplicate_write", "sequence_gap", "connection_churn"), (CLIENT,), RESENT),)
    claims = UNANSWERED_REQUESTS

    @classmethod
    def detect(cls, sources: Sources, settings: AnswerThresholds) -> Iterator[Finding]:
        """Requests without an answer for whom the client waited: it sent more on that connection, or made others.

        What is behind a request that waits by design (a long poll) waits as well: a client may close meanwhile.
        """
        least = settings.unanswered_times
        many = [e for e in sources.episodes.get(cls.name, ()) if e.times >= least]
        of_brokers = _of_brokers(sources.tables, last_of_each(many))
        if not of_brokers:
            return
        for episode, in_vain in _in_vain(sources.tables, of_brokers, explained(sources, settings), settings):
            if in_vain.requests < least:
                continue
            is_hurt = in_vain.others > 0 or in_vain.waited_us >= _WAS_DOWN * settings.slow_seconds * 1_000_000
            meanwhile = (
                f"; {in_vain.others} that others sent meanwhile {'was' if in_vain.others == 1 else 'were'} answered"
                if in_vain.others
                else "; it answered nothing that was sent meanwhile"
            )
            summary = (
                f"{episode.server} left {pluralize(in_vain.requests, 'request')} of {clients(episode)} without an "
                f"answer ({', '.join(episode.names)}), from {clock(episode.first_us)} to {clock(episode.last_us)} "
                f"UTC, although the client waited up to {seconds(in_vain.waited_us)}{meanwhile}."
            )
            severity = "critical" if is_hurt else "info"
            made = finding(episode, severity, summary, ADVICE, sources, least)
            counts = {"times": in_vain.requests, "waited_us": in_vain.waited_us, "others_answered": in_vain.others}
            yield replace(made, details={**made.details, **counts})


_WAS_DOWN = 10
"""Times ``slow_seconds`` until a broker that answers no client does not just restart."""


@dataclass(frozen=True, slots=True)
class _InVain:
    """Requests of an episode whose client waited without success. Times are µs.

    Attributes:
        requests: how many; of connections on which the client sent further ones meanwhile, or that it made again.
        waited_us: the longest time from one to the last request on its connection, or to the last one of them.
        others: how many others the broker answered that were sent meanwhile.
    """

    requests: int
    waited_us: int
    others: int


class AnswerThresholds(UnansweredRequests.Thresholds, ConnectionThresholds):
    """With those of connections on which nothing comes through."""


def _of_brokers(tables: Tables, episodes: Sequence[Episode]) -> list[Episode]:
    """Those whose server ever answered, or at least waited: one that closes at once may be none (other_protocol)."""
    answers = tables.of_each(_EVER, [{"server": one.server} for one in episodes])
    return [one for one, (row,) in zip(episodes, answers, strict=True) if row.answered or row.waited]


def _in_vain(
    tables: Tables, episodes: Sequence[Episode], without: Collection[str], settings: AnswerThresholds
) -> Iterator[tuple[Episode, _InVain]]:
    times = [{"server": one.server, "first_us": one.first_us, "last_us": one.last_us} for one in episodes]
    clients_of = [one.subject.partition("/")[2] for one in episodes]
    connections = tables.of_each(
        _CONNECTIONS, [{**one, "client": client} for one, client in zip(times, clients_of, strict=True)]
    )
    tables.add("spans", pa.Table.from_pylist([{**one, "number": number} for number, one in enumerate(times)]))
    for episode, found, row in zip(episodes, connections, tables.rows(_OTHERS), strict=True):
        yield episode, _waited_for(found, row.answered, without, settings)


def _waited_for(found: Sequence[Row], others: int, without: Collection[str], settings: AnswerThresholds) -> _InVain:
    slow_us = int(settings.slow_seconds * 1_000_000)
    rows = [row for row in found if row.connection_id not in without]
    waiting = [row for row in rows if row.last_us - row.head_us >= slow_us]
    requests = sum(row.requests for row in waiting)
    waited_us = max((row.last_us - row.head_us for row in waiting), default=0)
    by_host: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_host[row.client_ip].append(row)
    for some in by_host.values():
        if moments((row.head_us for row in some), slow_us) >= settings.unanswered_times:
            requests = max(requests, sum(row.requests for row in some))
            waited_us = max(waited_us, some[-1].head_us - some[0].head_us)
    return _InVain(requests, waited_us, others)


_CONNECTIONS = f"""
    WITH lossy AS (SELECT DISTINCT connection_id FROM gaps WHERE {IS_LOSS}), asked AS (
        SELECT connection_id, client_ip, epoch_us(ts) AS us, api_key, status = 'unanswered' AS is_lost
        FROM exchanges ANTI JOIN lossy USING (connection_id)
        WHERE protocol = 'kafka' AND {ADDRESS["server"]} = $server AND coalesce(nullif(client_id, ''), '?') = $client
            AND status <> 'orphan_response'
    ), each AS (
        SELECT connection_id, client_ip, min(us) FILTER (is_lost) AS head_us, max(us) AS last_us,
            arg_min(api_key, us) FILTER (is_lost) AS head,
            count(*) FILTER (is_lost AND api_key NOT IN {(*WAITING_APIS, *LEFT_BEHIND)}) AS requests
        FROM asked GROUP BY connection_id, client_ip
    )
    SELECT head_us, connection_id, client_ip, last_us, requests FROM each
    WHERE requests > 0 AND head NOT IN {WAITING_APIS} AND head_us BETWEEN $first_us AND $last_us
"""
"""Connections that ended without some answers: when the first request of them and when the last of all was sent."""
_OTHERS = f"""
    WITH answered AS (
        SELECT {ADDRESS["server"]} AS server, epoch_us(ts) AS us FROM exchanges
        WHERE protocol = 'kafka' AND status = 'paired'
    ), counted AS (
        SELECT server, us, sum(count(*)) OVER (PARTITION BY server ORDER BY us) AS n
        FROM answered SEMI JOIN spans USING (server) GROUP BY server, us
    )
    SELECT (coalesce(until.n, 0) - coalesce(before.n, 0))::BIGINT AS answered
    FROM (SELECT *, first_us - 1 AS before_us FROM spans) AS spans
    ASOF LEFT JOIN counted AS until ON spans.server = until.server AND spans.last_us >= until.us
    ASOF LEFT JOIN counted AS before ON spans.server = before.server AND spans.before_us >= before.us
    ORDER BY spans.number
"""
"""How many requests sent to the server of each span, from its first to its last time, were answered."""
_EVER = f"""
    SELECT count(*) FILTER (response_ts IS NOT NULL) AS answered,
        count(*) FILTER (response_ts IS NULL AND NOT {IS_SILENT}) AS waited
    FROM exchanges WHERE {ADDRESS["server"]} = $server
"""
