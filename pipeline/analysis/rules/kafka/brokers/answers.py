"""Rules about answers that come late or never: ``latency_outlier`` and ``unanswered_requests``."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pipeline.analysis.rules.counted import clients, finding, last_of_each
from pipeline.analysis.rules.episodes import Episode, Shown
from pipeline.analysis.rules.kafka.symptoms import LEFT_BEHIND, WAITING_APIS
from pipeline.analysis.rules.model import Finding, Sources, clock, seconds
from pipeline.analysis.rules.rule import Rule, finds
from pipeline.analysis.tables import ADDRESS, Row, Tables
from pipeline.finding_settings import FindingSettings

LATENCY = Rule(
    "latency_outlier",
    "kafka",
    ("warning", "info"),
    "A broker took far longer than usual to answer requests that do not wait by design.",
    ("slow_seconds", "slow_answers", "slow_ratio", "slow_samples"),
)
UNANSWERED = Rule(
    "unanswered_requests",
    "kafka",
    ("critical", "info"),
    "A broker did not answer requests although their client waited for it.",
    ("slow_seconds", "unanswered_times"),
)
_REPLICATED = ("Produce", "OffsetCommit", "TxnOffsetCommit")
_REPLICA_LAG_US = 30_000_000
"""A leader waits so long for a follower that is gone (replica.lag.time.max.ms)."""
_SETTLED_US = 5_000_000
_WAS_DOWN = 10
"""Times ``slow_seconds`` until a broker that answers nobody does not just restart."""
_ADVICE_SLOW = (
    "Now: look at the broker at that time: garbage collection, a full or slow disk, an election, replicas that lag "
    "(acks=all waits for them); `silver.exchanges` by latency_us shows which clients and requests it hit. Fix: move "
    "leaders off it (`kafka-leader-election.sh`, `kafka-reassign-partitions.sh`), or give it what it lacks; "
    "replica.lag.time.max.ms and min.insync.replicas decide how long acks=all waits."
)
_ADVICE_UNANSWERED = (
    "Now: look whether the broker hangs (garbage collection, disk, network), restart it if it does. Fix: a "
    "request.timeout.ms (librdkafka: socket.timeout.ms, request.timeout.ms of the topic) of the client that is longer "
    "than what the broker takes."
)


@finds(LATENCY, UNANSWERED)
def find(sources: Sources, settings: FindingSettings) -> Iterator[Finding]:
    """Apply the rules."""
    yield from _latency_outlier(sources, settings)
    yield from _unanswered(sources, settings)


def beside_throttling(found: Sequence[Shown]) -> list[Shown]:
    """The symptoms without slow answers that a quota explains: a broker reads on from who was throttled afterwards."""
    held: defaultdict[tuple[str, str | None, str], list[tuple[int, int]]] = defaultdict(list)
    for one in found:
        if one.rule == "throttled":
            answered_us = one.us + one.latency_us
            held[one.server, one.client_id, one.client_ip].append((answered_us, answered_us + round(1000 * one.value)))

    merged = {who: _merged(spans) for who, spans in held.items()}

    def is_held(one: Shown) -> bool:
        spans = merged.get((one.server, one.client_id, one.client_ip), [])
        place = bisect_left(spans, (one.us + one.latency_us, 0))
        return place > 0 and spans[place - 1][1] > one.us

    return [one for one in found if one.rule != LATENCY.name or not is_held(one)] if held else list(found)


def on_settled_connections(found: Sequence[Shown], tables: Tables) -> list[Shown]:
    """The symptoms without slow answers to what a connection begins with.

    A client's first requests wait for logins and metadata, and meet brokers that have just started.

    Args:
        found: symptoms.
        tables: ``exchanges``.
    """
    slow = sorted({one.connection_id for one in found if one.rule == LATENCY.name})
    if not slow:
        return list(found)
    rows = tables.rows(
        """
        SELECT connection_id, min(epoch_us(ts)) AS us FROM exchanges
        WHERE list_contains($slow, connection_id) GROUP BY connection_id
        """,
        slow=slow,
    )
    begun = {row.connection_id: row.us for row in rows}
    return [one for one in found if one.rule != LATENCY.name or one.us - begun[one.connection_id] >= _SETTLED_US]


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same times, in order, without any that overlap."""
    found: list[tuple[int, int]] = []
    for from_us, until_us in sorted(spans):
        if found and from_us <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], until_us)
        else:
            found.append((from_us, until_us))
    return found


def _latency_outlier(sources: Sources, settings: FindingSettings) -> Iterator[Finding]:
    """Answers that took far longer than that broker takes for the same api, of which enough was seen."""
    many = [e for e in sources.episodes.get(LATENCY.name, ()) if e.times >= settings.slow_answers]
    outliers: dict[str, tuple[dict[str, int], Episode]] = {}
    for episode in last_of_each(many):
        usual = _usual(sources.tables, episode, settings)
        slow = {api: us for api, us in usual.items() if episode.peak >= settings.slow_ratio * us}
        if slow:
            outliers[episode.subject] = slow, episode
    for slow, episode in outliers.values():
        is_replication = set(slow) <= set(_REPLICATED) and episode.peak < _REPLICA_LAG_US
        why = " Only what waits for replicas was slow: a follower was late or gone." if is_replication else ""
        summary = (
            f"{episode.server} took up to {episode.peak / 1_000_000:.1f} s to answer {', '.join(slow)}, usually below "
            f"{max(*slow.values(), 1000) / 1000:.0f} ms: {episode.times} answers from "
            f"{clock(episode.first_us)} to {clock(episode.last_us)} UTC, to {clients(episode)}.{why}"
        )
        severity = "info" if is_replication else "warning"
        yield finding(episode, severity, summary, _ADVICE_SLOW, sources, settings.slow_answers)


def _usual(tables: Tables, episode: Episode, settings: FindingSettings) -> dict[str, int]:
    """By api that was slow its usual 95th percentile at that broker, µs; without those of which too little was seen.

    The usual is what the broker takes at other times, if enough was seen of them.
    """
    rows = tables.rows(
        f"""
        WITH answers AS (
            SELECT api_name, latency_us, epoch_us(ts) NOT BETWEEN $first AND $last AS outside
            FROM exchanges
            WHERE protocol = 'kafka' AND latency_us IS NOT NULL AND {ADDRESS["server"]} = $server
                AND list_contains($apis, api_name)
        )
        SELECT api_name, count(*) AS answers, count(*) FILTER (outside) AS others,
            quantile_disc(latency_us, 0.95) AS usual,
            quantile_disc(latency_us, 0.95) FILTER (outside) AS other
        FROM answers GROUP BY api_name ORDER BY api_name
        """,
        first=episode.first_us,
        last=episode.last_us,
        server=episode.subject,
        apis=list(episode.names),
    )
    enough = settings.slow_samples
    return {row.api_name: row.other if row.others >= enough else row.usual for row in rows if row.answers >= enough}


@dataclass(frozen=True, slots=True)
class _InVain:
    """Requests of an episode for which their client waited in vain. Times are µs.

    Attributes:
        requests: how many; of connections on which the client sent further ones meanwhile, or that it made anew.
        waited_us: the longest time from one to the last request on its connection, or to the last one of them.
        others: how many others the broker answered that were sent meanwhile.
    """

    requests: int
    waited_us: int
    others: int


def _unanswered(sources: Sources, settings: FindingSettings) -> Iterator[Finding]:
    """Requests without an answer for whom the client waited: it sent more on that connection, or made others.

    What stands behind a request that waits by design (a long poll) waits as well: a client may close meanwhile.
    """
    least = settings.unanswered_times
    many = [e for e in sources.episodes.get(UNANSWERED.name, ()) if e.times >= least]
    for episode in last_of_each(many):
        told = _in_vain(sources.tables, episode, settings)
        if told.requests < least:
            continue
        is_hurt = told.others > 0 or told.waited_us >= _WAS_DOWN * settings.slow_seconds * 1_000_000
        meanwhile = (
            f"; {told.others} that others sent meanwhile were answered"
            if told.others
            else "; it answered nothing that was sent meanwhile"
        )
        summary = (
            f"{episode.server} left {told.requests} requests of {clients(episode)} without an answer "
            f"({', '.join(episode.names)}), from {clock(episode.first_us)} to {clock(episode.last_us)} UTC, although "
            f"the client waited up to {seconds(told.waited_us)}{meanwhile}."
        )
        severity = "critical" if is_hurt else "info"
        made = finding(episode, severity, summary, _ADVICE_UNANSWERED, sources, least)
        yield replace(made, details={**made.details, "waited_us": told.waited_us, "others_answered": told.others})


def _in_vain(tables: Tables, episode: Episode, settings: FindingSettings) -> _InVain:
    slow_us = int(settings.slow_seconds * 1_000_000)
    _, _, client_id = episode.subject.partition("/")
    rows = tables.rows(
        _CONNECTIONS, server=episode.server, client=client_id, first=episode.first_us, last=episode.last_us
    )
    waiting = [row for row in rows if row.last_us - row.head_us >= slow_us]
    requests = sum(row.requests for row in waiting)
    waited_us = max((row.last_us - row.head_us for row in waiting), default=0)
    by_host: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_host[row.client_ip].append(row)
    for some in by_host.values():
        if _moments([row.head_us for row in some], slow_us) >= settings.unanswered_times:
            requests = max(requests, sum(row.requests for row in some))
            waited_us = max(waited_us, some[-1].head_us - some[0].head_us)
    (others,) = tables.rows(_OTHERS, server=episode.server, first=episode.first_us, last=episode.last_us)
    return _InVain(requests, waited_us, others.answered)


def _moments(times_us: Sequence[int], apart_us: int) -> int:
    """How many times there are if those within ``apart_us`` of the first of them are one: what a kill leaves behind."""
    count, last_us = 0, None
    for us in times_us:
        if last_us is None or us - last_us >= apart_us:
            count, last_us = count + 1, us
    return count


_CONNECTIONS = f"""
    WITH lossy AS (SELECT DISTINCT connection_id FROM gaps), asked AS (
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
    SELECT connection_id, client_ip, head_us, last_us, requests FROM each
    WHERE requests > 0 AND head NOT IN {WAITING_APIS} AND head_us BETWEEN $first AND $last
    ORDER BY head_us, connection_id
"""
"""Connections that ended without some answers: when the first request of them and when the last of all was sent."""
_OTHERS = f"""
    SELECT count(*) AS answered FROM exchanges
    WHERE protocol = 'kafka' AND status = 'paired' AND {ADDRESS["server"]} = $server
        AND epoch_us(ts) BETWEEN $first AND $last
"""
